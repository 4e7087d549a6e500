"""
Table of what was read of each source, by version of the host and UTC day of reading (`core.drift`).

*day* is days since 1970; *unknown* is a JSON object of counts by type. A row a day and version at most.
"""

from __future__ import annotations

__all__ = ["STRETCHES_1"]

STRETCHES_1: tuple[str, ...] = (
    """
    CREATE TABLE stretches (
        source INTEGER NOT NULL,
        day INTEGER NOT NULL,
        version TEXT NOT NULL,
        records INTEGER NOT NULL,
        unreadable INTEGER NOT NULL,
        turns INTEGER NOT NULL,
        unknown TEXT NOT NULL DEFAULT '{}',
        PRIMARY KEY (source, day, version)
    ) WITHOUT ROWID
    """,
)

"""Table of kept readings: what a package said when its files had a certain signature. It can be emptied at any time."""

from __future__ import annotations

__all__ = ["LIBRARY_1"]

LIBRARY_1: tuple[str, ...] = (
    """
    CREATE TABLE package_readings (
        library TEXT NOT NULL,
        place TEXT NOT NULL,
        signature BLOB NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (library, place)
    ) WITHOUT ROWID
    """,
)

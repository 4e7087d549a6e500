"""Table of remembered answers of models. It can be emptied at any time; that costs money and nothing else."""

from __future__ import annotations

__all__ = ["ANSWERS_1"]

ANSWERS_1: tuple[str, ...] = (
    """
    CREATE TABLE model_answers (
        key TEXT PRIMARY KEY,
        scope TEXT NOT NULL,
        answer BLOB NOT NULL,
        kept_at INTEGER NOT NULL,
        used_at INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX model_answers_scope ON model_answers (scope, kept_at)",
)

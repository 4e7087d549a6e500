"""
Values in the database that curatord cannot have written.

SQLite tells damage of its own structure and nothing of a bit that flipped inside a value. Most such bits nobody could
see. Those that make of a state a word that is none, of a time a text, of JSON something else, of text no UTF-8, end
whatever reads them by an error that says nothing. So after an error of that kind, and before a marked database is
taken for sound, each value is held against what its column may have; every row is read, which costs a second for a
large state.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from curatord.core.transcript.events import SessionKind
from curatord.core.values import EventKind, Importance, Mode, Outcome, State, Trigger

__all__ = ["odd_value"]

_TYPES: Final = {
    "INTEGER": ("integer", "null"),
    "TEXT": ("text", "null"),
    "BLOB": ("blob", "null"),
    "REAL": ("real", "null"),
}
_WORDS: Final[dict[str, dict[str, type[StrEnum]]]] = {
    "skills": {"state": State, "importance": Importance},
    "history": {"from_state": State, "to_state": State},
    "runs": {"trigger": Trigger, "mode": Mode, "outcome": Outcome},
    "sessions": {"kind": SessionKind},
    "events": {"kind": EventKind},
}
_JSON: Final = {
    "sessions": ("cwds",),
    "parts": ("tool_calls",),
    "files": ("bad", "restarts", "kin", "copies"),
    "sources": ("unknown", "versions", "problems"),
    "stretches": ("unknown",),
    "proposals": ("targets", "actions"),
    "actions": ("entry",),
    "distil_sessions": ("offsets",),
    "distil_log": ("told",),
    "candidates": ("told",),
}


def odd_value(connection: sqlite3.Connection) -> str | None:
    """Return in words the first value that curatord cannot have written, or None."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        if table.startswith("sqlite_"):
            continue
        columns = {row[1]: str(row[2]).upper() for row in connection.execute(f"PRAGMA table_info({table})")}
        for column, why, condition in _conditions(table, columns):
            found = connection.execute(f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1").fetchone()  # noqa: S608
            if found is not None:
                return f"{table}.{column} {why}"
        texts = [column for column, declared in columns.items() if declared == "TEXT"]
        for column in texts:
            if not _is_text_throughout(connection, table, column):
                return f"{table}.{column} holds text that is no UTF-8"
    return None


def _conditions(table: str, columns: dict[str, str]) -> Iterable[tuple[str, str, str]]:
    """Yield for each column of *table* what may be wrong with it, in words and as SQL; names are our own."""
    for column, declared in columns.items():
        types = _TYPES.get(declared)
        if types is not None:
            yield column, "holds a value of another type", f"typeof({column}) NOT IN {types}"
    for column, words in _WORDS.get(table, {}).items():
        known = ", ".join(f"'{word.value}'" for word in words)
        yield column, "holds a word that is none of curatord's", f"{column} NOT IN ({known})"
    for column in _JSON.get(table, ()):
        if column in columns:
            yield column, "holds no JSON", f"NOT json_valid(CAST({column} AS TEXT))"


def _is_text_throughout(connection: sqlite3.Connection, table: str, column: str) -> bool:
    factory = connection.text_factory
    connection.text_factory = bytes
    try:
        with contextlib.closing(connection.execute(f"SELECT {column} FROM {table}")) as rows:  # noqa: S608 -- as above
            for (value,) in rows:
                if isinstance(value, bytes):
                    value.decode()
    except UnicodeDecodeError:
        return False
    finally:
        connection.text_factory = factory
    return True

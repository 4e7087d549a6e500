"""Remembered answers of models in the state database; fills the port `AnswerMemory`."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from curatord.adapters.store.database import Database, to_ms
from curatord.errors import StateError

__all__ = ["StoredAnswers"]

SCOPE_HEARD = 64  # newest answers of one scope; older ones are about a library of long ago


class StoredAnswers:
    """Answers that outlive the process. May be used from one thread at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def answer(self, key: str, *, now: datetime) -> bytes | None:
        """See `AnswerMemory.answer`."""
        connection = self._database.connection
        row = connection.execute("SELECT answer FROM model_answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        if not self._database.read_only:
            self._write("UPDATE model_answers SET used_at = ? WHERE key = ?", (to_ms(now), key))
        return bytes(row[0])

    def answers(self, scope: str) -> Sequence[bytes]:
        """See `AnswerMemory.answers`."""
        rows = self._database.connection.execute(
            "SELECT answer FROM model_answers WHERE scope = ? ORDER BY used_at DESC, key LIMIT ?", (scope, SCOPE_HEARD)
        )
        return [bytes(row[0]) for row in rows]

    def keep(self, key: str, scope: str, answer: bytes, *, now: datetime) -> None:
        """See `AnswerMemory.keep`."""
        if not self._database.read_only:
            self._write(
                "INSERT OR REPLACE INTO model_answers (key, scope, answer, kept_at, used_at) VALUES (?, ?, ?, ?, ?)",
                (key, scope, answer, to_ms(now), to_ms(now)),
            )

    def forget(self, *, before: datetime) -> int:
        """See `AnswerMemory.forget`."""
        return self._write("DELETE FROM model_answers WHERE used_at < ?", (to_ms(before),))

    def _write(self, statement: str, values: tuple[object, ...]) -> int:
        try:
            with self._database.transaction() as connection:
                return connection.execute(statement, values).rowcount
        except sqlite3.OperationalError as error:
            raise StateError(f"an answer could not be remembered: {error}", hint="look at the free space") from error

"""Twin problems kept in the state database; fills the port `passes.look.Twins`."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from itertools import chain

import msgspec

from curatord.adapters.store.database import Database
from curatord.core.library import Problem
from curatord.core.small_facts import TWINS
from curatord.core.twin_digest import Listed, twin_digest
from curatord.core.values import SkillKey

__all__ = ["StoredTwins"]

_Kept = tuple[str, list[tuple[int, str, str]]]  # digest; place in the order that it was made of, code, words


class StoredTwins:
    """
    Finds twins once for each state of the libraries: comparing 5,000 descriptions takes as long as looking at the disk.

    What is kept stands under a digest of everything it follows from, so it holds for no other skills; what cannot be
    read is found anew. Opened read-only, nothing is kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def __call__(self, listed: Sequence[Listed]) -> Mapping[SkillKey, Sequence[Problem]]:
        """Return the problems by key, those without any left out."""
        digest = twin_digest(listed)
        keys = [skill.key for skill in chain.from_iterable(skills for _, skills in listed)]
        rows = self._kept(digest)
        found: dict[SkillKey, list[Problem]] = {}
        if rows is None or not all(0 <= place < len(keys) for place, _, _ in rows):
            from curatord.core.skill_quality import twins_among  # what compares is needed where something changed

            told = twins_among(listed)
            self._keep(digest, [(n, p.code, p.words) for n, key in enumerate(keys) for p in told.get(key, ())])
            return told
        for place, code, words in rows:
            found.setdefault(keys[place], []).append(Problem(code=code, words=words))
        return found

    def _kept(self, digest: str) -> list[tuple[int, str, str]] | None:
        row = self._database.connection.execute("SELECT value FROM meta WHERE key = ?", (TWINS,)).fetchone()
        try:
            told, rows = msgspec.json.decode(row[0], type=_Kept) if row is not None else ("", [])
        except (msgspec.DecodeError, UnicodeError):
            return None
        return rows if told == digest else None

    def _keep(self, digest: str, rows: list[tuple[int, str, str]]) -> None:
        if self._database.read_only:
            return
        try:
            with self._database.transaction() as connection:
                value = msgspec.json.encode((digest, rows)).decode()
                connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (TWINS, value))
        except (sqlite3.OperationalError, UnicodeEncodeError):
            # Busy or full, or a name that is no text: found anew next time, and whoever has something to lose meets
            # the error itself.
            return

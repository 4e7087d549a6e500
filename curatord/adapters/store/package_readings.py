"""Kept readings of packages in the state database; fills the port `PackageCache`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from curatord.adapters.store.database import Database

__all__ = ["StoredReadings"]


class StoredReadings:
    """
    Readings that outlive the process.

    Opened read-only, nothing is kept: the command that only looks reads once more what changed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, library: str) -> Mapping[str, tuple[bytes, bytes]]:
        """Return all kept readings of *library* by the package's place."""
        rows = self._database.connection.execute(
            "SELECT place, signature, content FROM package_readings WHERE library = ?", (library,)
        )
        return {place: (signature, content) for place, signature, content in rows}

    def keep(self, library: str, new: Mapping[str, tuple[bytes, bytes]], gone: Iterable[str]) -> None:
        """Keep the *new* readings of *library* and forget the *gone*, together."""
        if self._database.read_only:
            return
        try:
            self._write(library, new, gone)
        except sqlite3.OperationalError:
            # Busy or full: what is not kept is read again, and whoever has something to lose meets the error itself.
            return

    def _write(self, library: str, new: Mapping[str, tuple[bytes, bytes]], gone: Iterable[str]) -> None:
        with self._database.transaction() as connection:
            connection.executemany(
                "DELETE FROM package_readings WHERE library = ? AND place = ?", [(library, place) for place in gone]
            )
            connection.executemany(
                "INSERT OR REPLACE INTO package_readings (library, place, signature, content) VALUES (?, ?, ?, ?)",
                [(library, place, signature, content) for place, (signature, content) in new.items()],
            )

"""
The database looked at as a file, so that not even a shared-memory file is left beside it.

Without a `-wal` nobody has it open, and it is opened as immutable; what goes wrong then may only mean that somebody has
begun to write, so it is looked at once more the ordinary way. The pages are read for a bounded time.
"""

from __future__ import annotations

import os
import sqlite3
import time
from datetime import datetime
from pathlib import Path

from curatord.adapters.store.damage import is_damage, marked
from curatord.adapters.store.database import FILE_NAME, NEWEST, Database, from_ms, migrate
from curatord.core.doctor.setup import DatabaseFacts
from curatord.errors import StateError

__all__ = ["look_into", "newest_times"]

LOOK_S = 15.0
BUSY_TIMEOUT_S = 5.0
MAX_COPY = 512 * 2**20  # bytes of an older database that are copied into memory to be looked at


def look_into(state_dir: Path, *, seconds: float = LOOK_S) -> tuple[DatabaseFacts, Database | None]:
    """
    Return how the database of *state_dir* is, and the database opened for looking; None where it cannot be used.

    The pages are looked at for at most *seconds*.
    """
    path = state_dir / FILE_NAME
    try:
        path.stat()
        mark = marked(path)
    except (FileNotFoundError, NotADirectoryError):
        return DatabaseFacts(path=str(path), exists=False, newest=NEWEST), None
    except (OSError, StateError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return DatabaseFacts(path=str(path), exists=True, newest=NEWEST, error=why), None
    if mark is not None and mark.is_about(path):
        return DatabaseFacts(path=str(path), exists=True, newest=NEWEST, damage=mark.why), None
    before = _signs(path)
    still = not before[-1]
    facts, database = _look(path, seconds, immutable=still)
    if still and (facts.damage is not None or facts.error is not None) and _signs(path) != before:
        facts, database = _look(path, seconds, immutable=False)
    return facts, database


def _signs(path: Path) -> tuple[int, int, int]:
    """Return what is different where somebody writes: size and time of the file, size of its `-wal`."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_size, found.st_mtime_ns, _bytes(f"{path}-wal"))


def _bytes(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - text in, a number out
    except OSError:
        return 0


def _look(path: Path, seconds: float, *, immutable: bool) -> tuple[DatabaseFacts, Database | None]:
    connection = None
    try:
        how = "immutable=1" if immutable else "mode=ro"
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{how}",
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,  # one who looks, in whatever thread
        )
        schema = int(connection.execute("PRAGMA user_version").fetchone()[0])
        damage, whole = _checked(connection, seconds)
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        broken = isinstance(error, sqlite3.DatabaseError) and is_damage(error)
        found = DatabaseFacts(
            path=str(path),
            exists=True,
            newest=NEWEST,
            damage=str(error) if broken else None,
            error=None if broken else str(error),
        )
        return found, None
    facts = DatabaseFacts(
        path=str(path),
        exists=True,
        schema=schema,
        newest=NEWEST,
        damage=damage,
        looked_whole=whole,
        size=_bytes(str(path)),
        wal=_bytes(f"{path}-wal"),
    )
    if damage is None and schema < NEWEST and facts.size <= MAX_COPY:
        connection = _migrated(connection)
    elif damage is not None or schema != NEWEST:
        connection.close()
        return facts, None
    return facts, Database(connection=connection, path=path, read_only=True)


def _migrated(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Return a copy in memory of an older database, brought up to date, and close *connection*."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        connection.backup(copy)
        migrate(copy)
    except BaseException:
        copy.close()
        raise
    finally:
        connection.close()
    return copy


def _checked(connection: sqlite3.Connection, seconds: float) -> tuple[str | None, bool]:
    """Return what is damaged, or None, and whether all was looked at in the time given."""
    until = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    try:
        (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return None, False
        raise
    finally:
        connection.set_progress_handler(None, 0)
    return (None if answer == "ok" else " ".join(str(answer).split())), True


def newest_times(database: Database) -> tuple[datetime, str] | None:
    """Return the latest time that curatord wrote down and what it was of, or None."""
    asked = (
        ("SELECT max(started_at) FROM runs", "a run"),
        ("SELECT max(scanned_at) FROM sources", "a scan"),
    )
    found = [
        (at, what)
        for query, what in asked
        if (at := from_ms(database.connection.execute(query).fetchone()[0])) is not None
    ]
    return max(found, default=None)

"""
Opening the database: pragmas, the ladder of migrations, and what happens when it is too new or damaged.

A database of a newer curatord is refused with both versions named. A damaged one is set aside under a name with the
time in it and a fresh one is begun: everything in it but decisions can be rebuilt from transcripts and libraries, and
decisions stand in a plain file beside it (`decisions.json`). `Database.rebuilt_from` says that this happened, so that
the run can say it; a rebuilt database has seen no skill before, so nothing is aged because of it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from curatord.core.cheap import dataclass, field
from curatord.errors import StateCorruptError, StateError, StateTooNewError

__all__ = ["FILE_NAME", "Database", "from_ms", "open_database", "open_empty_database", "to_ms"]

NEWEST = 4  # migrations in `schema`, which is imported only where one is due; a test holds them equal
BUSY_TIMEOUT_S = 10.0
FILE_NAME = "curatord.db"


def to_ms(at: datetime | None) -> int | None:
    """Return *at* as milliseconds since 1970, or None for None; a naive datetime is a `ValueError`."""
    if at is None:
        return None
    if at.utcoffset() is None:
        raise ValueError(f"naive datetime: {at!r}")
    return round(at.timestamp() * 1000)


def from_ms(ms: int | None) -> datetime | None:
    """Return *ms* milliseconds since 1970 as an aware UTC datetime, or None for None."""
    if ms is None:
        return None
    # Integer arithmetic: a float of seconds would lose the last millisecond now and then.
    return datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)


@dataclass(slots=True, kw_only=True)
class Database:
    """
    An open connection and how it was come by.

    *is_new*: it was made just now; *rebuilt_from* is where a damaged predecessor was put.
    """

    connection: sqlite3.Connection
    path: Path
    read_only: bool = False
    is_new: bool = False
    rebuilt_from: Path | None = None
    _one_at_a_time: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """
        Yield the connection inside BEGIN IMMEDIATE … COMMIT; any exception rolls all of it back.

        One at a time: a connection has one transaction, and several threads book what a model cost.
        """
        with self._one_at_a_time:
            yield from self._transaction()

    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
            self.connection.commit()
        except BaseException:
            # Also after a commit that failed (full disk): SQLite keeps that transaction open.
            self.connection.rollback()
            raise

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def open_database(state_dir: Path, *, now: datetime, read_only: bool = False) -> Database:
    """
    Return the open database of *state_dir*, made or migrated where needed.

    Args:
        state_dir: The state folder; it must exist.
        now: Goes into the name under which a damaged file is set aside.
        read_only: For commands that only look: nothing is made, migrated or set aside.

    Raises:
        StateTooNewError: It was written by a newer curatord.
        StateCorruptError: It is damaged and *read_only* forbids to set it aside.
        StateError: It cannot be opened or written (permissions, full disk, no such file with *read_only*).
    """
    path = state_dir / FILE_NAME
    if read_only and not path.exists():
        raise StateError(f"no state yet: {path} does not exist", hint="run `curatord scan` or start the daemon first")
    is_new = not path.exists()
    try:
        connection = _connect(path, read_only=read_only)
        return Database(connection=connection, path=path, read_only=read_only, is_new=is_new)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise StateError(
                f"cannot use the database {path}: {error}", hint="look at its permissions and the free space"
            ) from error
        if read_only:
            raise StateCorruptError(
                f"the database {path} is damaged: {error}",
                hint="`curatord scan` sets it aside and rebuilds it from transcripts and libraries",
            ) from error
    aside = _set_aside(path, now)
    return Database(connection=_connect(path, read_only=False), path=path, is_new=True, rebuilt_from=aside)


def open_empty_database() -> Database:
    """Return an empty database in memory, for commands that look where no state is yet: they should make none."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _check_and_migrate(connection, Path(":memory:"), read_only=False)
    return Database(connection=connection, path=Path(":memory:"), read_only=True)


def _connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    if not read_only:
        # Private to its user from the first byte: it names every project the agents worked on.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    mode = "ro" if read_only else "rw"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,  # one writer at a time is kept by BEGIN IMMEDIATE and the work lock, not by threads
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        if not read_only:
            connection.execute("PRAGMA journal_mode = WAL")
            # A journaled action is only done once it is on the platter (promise 7); ingest relaxes this for itself.
            connection.execute("PRAGMA synchronous = FULL")
        _check_and_migrate(connection, path, read_only=read_only)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_and_migrate(connection: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    have = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if have > NEWEST:
        raise StateTooNewError(
            f"{path} was written by a newer curatord: it has schema {have}, this one knows up to {NEWEST}",
            have=have,
            need=NEWEST,
            hint="install that newer curatord again; nothing was changed",
        )
    if have == NEWEST:
        # Reads the root pages of every table, which finds a file that was cut or overwritten at little cost.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return
    if read_only:
        raise StateError(
            f"{path} has schema {have}, this curatord needs {NEWEST}", hint="any writing command brings it up to date"
        )
    from curatord.adapters.store.schema import MIGRATIONS

    connection.execute("BEGIN IMMEDIATE")
    try:
        have = int(connection.execute("PRAGMA user_version").fetchone()[0])  # another process may have been quicker
        for number, migration in enumerate(MIGRATIONS[have:], start=have + 1):
            for statement in migration.statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def _set_aside(path: Path, now: datetime) -> Path:
    """Rename the damaged file with its companions, so that nothing is lost to looking at it later."""
    aside = path.with_name(f"{path.name}.damaged-{now.astimezone(UTC):%Y%m%d%H%M%S}")
    try:
        for suffix in ("-wal", "-shm", ""):
            part = path.with_name(path.name + suffix)
            if part.exists():
                part.rename(aside.with_name(aside.name + suffix))
    except OSError as error:
        raise StateCorruptError(
            f"the database {path} is damaged and cannot be set aside: {error}",
            hint=f"move {path} away by hand; curatord rebuilds it from transcripts and libraries",
        ) from error
    return aside

"""
Opening the database: pragmas, the ladder of migrations, and what happens when it is too new or damaged.

A database of a newer curatord is refused with both versions named. A damaged one is set aside under a name with the
time in it and a fresh one is begun: everything in it but decisions can be rebuilt from transcripts and libraries, and
decisions stand in a plain file beside it (`decisions.json`). `Database.rebuilt_from` says that this happened, so that
the run can say it; a rebuilt database has seen no skill before, so nothing is aged because of it.

Opening reads the first page and the schema and no more, since `status` opens it too. Damage elsewhere is met later, by
whoever reads that page: `Database.failure` leaves a mark then, and the next opening for writing acts on it (`damage`).
Making and setting aside are done under the work lock, so that two processes at the same first start share one database;
a process that had the old one open finds out by `Database.is_current`, and cannot write into it any more.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from curatord.core.cheap import dataclass, field
from curatord.errors import StateCorruptError, StateError, StateTooNewError

__all__ = ["FILE_NAME", "Database", "from_ms", "migrate", "open_database", "open_empty_database", "to_ms"]

NEWEST = 8  # migrations in `schema`, which is imported only where one is due; a test holds them equal
BUSY_TIMEOUT_S = 10.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FILE_NAME = "curatord.db"
_NOT_UTF8 = "Could not decode to UTF-8"  # what Python says of a text in which a bit has flipped


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
    return _EPOCH + timedelta(milliseconds=ms)


@dataclass(slots=True, kw_only=True)
class Database:
    """
    An open connection and how it was come by.

    *is_new*: it was made just now; *rebuilt_from* is where a damaged predecessor was put, until `mended` is said;
    *identity* is device and inode of the file that was opened, None for one in memory.
    """

    connection: sqlite3.Connection
    path: Path
    read_only: bool = False
    is_new: bool = False
    rebuilt_from: Path | None = None
    identity: tuple[int, int] | None = None
    _one_at_a_time: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """
        Yield the connection inside BEGIN IMMEDIATE … COMMIT; any exception rolls all of it back.

        One at a time: a connection has one transaction, and several threads book what a model cost.

        Raises:
            StateError: Another process has set this file aside since it was opened; nothing may go into it any more.
        """
        if not self._is_in_place():
            raise StateError(
                f"the database {self.path} was replaced by another process", hint="start again; nothing was changed"
            )
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

    def is_current(self) -> bool:
        """Return whether this still is the state's database: not replaced by another, and not known to be damaged."""
        if not self._is_in_place():
            return False
        if self.identity is None or not _may_be_damaged(self.path):
            return True
        from curatord.adapters.store.damage import marked

        damage = marked(self.path)
        return damage is None or not damage.is_about(self.path)

    def _is_in_place(self) -> bool:
        return self.identity is None or _identity(self.path) == self.identity

    def failure(self, error: sqlite3.Error) -> StateError:
        """
        Return *error* as one of ours, to be raised.

        Where it says that the file is damaged, a mark is left, so that the next opening for writing looks at all of it
        and sets it aside if that is so.
        """
        from curatord.adapters.store.damage import is_damage

        if is_damage(error) or _NOT_UTF8 in str(error):
            return self._marked(error)
        return _unusable(self.path, error)

    def odd(self) -> StateCorruptError | None:
        """
        Return that the database is damaged where it holds a value that curatord cannot have written, else None.

        All of it is read, so this is asked only after an error that such a value may have led to. It is marked then.
        """
        if self.identity is None or not self.path.exists():
            return None
        from curatord.adapters.store.audit import odd_value

        try:
            with contextlib.closing(
                sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
            ) as connection:
                why = odd_value(connection)
        except sqlite3.Error as error:
            failure = self.failure(error)
            return failure if isinstance(failure, StateCorruptError) else None
        return None if why is None else self._marked(why)

    def _marked(self, why: object) -> StateCorruptError:
        """Leave a mark on this very file, and return that it is damaged."""
        from curatord.adapters.store.damage import mark

        if self.identity is not None:
            mark(self.path, why, self.identity)
        return _damaged(self.path, why)

    def mended(self) -> None:
        """Say that what could be brought into a rebuilt database is in it: its predecessor is settled."""
        if _may_be_damaged(self.path):
            from curatord.adapters.store.damage import marked, unmark

            damage = marked(self.path)
            if damage is None or not damage.is_about(self.path):
                unmark(self.path)

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
        BusyError: It has to be made or set aside, and another process holds the work lock.
    """
    path = state_dir / FILE_NAME
    if read_only:
        return _look_into(path)
    if path.exists() and not _may_be_damaged(path):
        try:
            return _opened(path)
        except sqlite3.OperationalError as error:
            raise _unusable(path, error) from error
        except sqlite3.DatabaseError:
            pass  # looked at again under the lock
    from curatord.adapters.lock import work_lock

    with work_lock(state_dir):
        try:
            return _made_or_mended(path, now)
        except sqlite3.Error as error:
            raise _unusable(path, error) from error


def _look_into(path: Path) -> Database:
    if not path.exists():
        raise StateError(f"no state yet: {path} does not exist", hint="run `curatord scan` or start the daemon first")
    if _may_be_damaged(path):
        from curatord.adapters.store.damage import marked

        damage = marked(path)
        if damage is not None and damage.is_about(path):
            raise _damaged(path, damage.why)
    try:
        return _opened(path, read_only=True)
    except sqlite3.OperationalError as error:
        raise _unusable(path, error) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) from error


def _made_or_mended(path: Path, now: datetime) -> Database:
    """Open the database for who holds the work lock: made where there is none, set aside where it is damaged."""
    from curatord.adapters.store import damage

    found = damage.marked(path)
    if found is None or not found.is_about(path):
        try:
            if found is not None and found.aside is not None:  # set aside before, and cut before the new one was ready
                aside = damage.set_aside(path, found, now)
                return _opened(path, is_new=True, rebuilt_from=aside)
            damage.unmark(path)  # about a file that is not here any more
            return _opened(path, is_new=not path.exists())
        except sqlite3.DatabaseError as error:
            if not damage.is_damage(error):
                raise
            found = damage.mark(path, error)
            if found is None:
                raise _damaged(path, error) from error
    elif damage.is_sound(path):
        damage.unmark(path)
        return _opened(path)
    aside = damage.set_aside(path, found, now)
    return _opened(path, is_new=True, rebuilt_from=aside)


def _opened(path: Path, *, read_only: bool = False, is_new: bool = False, rebuilt_from: Path | None = None) -> Database:
    if not read_only:
        # Private to its user from the first byte: it names every project the agents worked on.
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            pass
        except OSError as error:
            raise StateError(
                f"cannot make the database {path}: {error.strerror}", hint="look at its permissions and the free space"
            ) from error
    # Asked before it is opened: replaced in between, it counts as not current, which only costs opening it again.
    identity = _identity(path)
    connection = _connect(path, read_only=read_only)
    return Database(
        connection=connection,
        path=path,
        read_only=read_only,
        is_new=is_new,
        rebuilt_from=rebuilt_from,
        identity=identity,
    )


def _identity(path: Path) -> tuple[int, int]:
    """Return device and inode of the file; (0, 0) where there is none."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def _may_be_damaged(path: Path) -> bool:
    """Return whether somebody left a mark; what is in it is `damage`'s business, which is imported only then."""
    return os.path.lexists(f"{path}.damage")


def _damaged(path: Path, why: object) -> StateCorruptError:
    return StateCorruptError(
        f"the database {path} is damaged: {why}",
        hint="`curatord scan` sets it aside and rebuilds it from transcripts and libraries",
    )


def _unusable(path: Path, error: sqlite3.Error) -> StateError:
    return StateError(
        f"the database {path} cannot be used: {error}",
        hint="look at the free space and the permissions of the state folder",
    )


def open_empty_database() -> Database:
    """Return an empty database in memory, for commands that look where no state is yet: they should make none."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _check_and_migrate(connection, Path(":memory:"), read_only=False)
    return Database(connection=connection, path=Path(":memory:"), read_only=True)


def _connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
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
        _must_be_ours(connection, path)
        if not read_only:
            connection.execute("PRAGMA journal_mode = WAL")
            # A journaled action is only done once it is on the platter (promise 7); ingest relaxes this for itself.
            connection.execute("PRAGMA synchronous = FULL")
        _check_and_migrate(connection, path, read_only=read_only)
    except BaseException:
        connection.close()
        raise
    return connection


def _must_be_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse another program's database before a byte of it changes."""
    table = connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchone()
    # Ours gets tables and version in one transaction: where a table was seen, the version is there to be seen.
    if table is not None and int(connection.execute("PRAGMA user_version").fetchone()[0]) == 0:
        raise StateError(
            f"{path} is no database of curatord: it has no version, but holds {table[0]!r}",
            hint="move it away; curatord builds its own anew, with the decisions of decisions.json beside it",
        )


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
        # Reads the first page and the schema's own: a file that is no database or was cut short is found here.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return
    if read_only:
        raise StateError(
            f"{path} has schema {have}, this curatord needs {NEWEST}", hint="any writing command brings it up to date"
        )
    migrate(connection)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a database up to date, all of its missing steps in one transaction."""
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

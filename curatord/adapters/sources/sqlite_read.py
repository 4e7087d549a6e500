"""
Reading another program's SQLite database without leaving a trace and without making it wait (promise 1).

What can go wrong, and what is done about it:

- A database in WAL mode that nobody has open: an ordinary read-only connection would create `-wal` and `-shm` beside
  it. Without a `-wal` the file alone is the whole truth, so it is opened `immutable=1`, which touches nothing; since
  SQLite then does not look whether somebody writes, we do: size, time and inode before and after (`Reading.check`).
- A live writer (`-wal` and `-shm` are there): `mode=ro` with a busy timeout; SQLite's own locks in the `-shm` are all
  that is touched. Transactions are short, since a reader keeps a writer's checkpoint from finishing.
- What cannot be opened in place: a `-wal` without its `-shm` (a writer that crashed; recovery would write), a folder
  that may not be written, a `-journal` to be rolled back. Then a private copy is read, made in a folder of our own with
  mode 0600, checked not to have been changed while it was copied, and removed afterwards.
- In use by somebody else for longer than the busy timeout, or changing faster than it can be read: `InUseError`, an
  `OSError` that says "later", not "broken".
- Damage: `TranscriptError`, with what SQLite said.

Unsure: when a writer ends just between our look at its companions and our opening, SQLite makes an empty `-wal` and a
`-shm` again. A read-only `-shm` would leave out even that, but then SQLite may show an older state than is committed.

Nothing here ever checkpoints, vacuums, sets a pragma that is written, or opens the original for writing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from curatord.core.cheap import dataclass
from curatord.errors import TranscriptError

__all__ = ["ChangedError", "DatabaseFile", "DatabaseFiles", "InUseError", "Reading", "signature", "way_to_open"]

BUSY_TIMEOUT_S = 2.0
COPY_TRIES = 3
COPY_CHUNK = 1024 * 1024
MAX_VALUE = 256 * 1024 * 1024  # a single text or blob beyond this is an error, not an allocation
COMPANIONS = ("-wal", "-shm", "-journal")

Way = Literal["immutable", "shared", "copy"]
Stamp = tuple[int, int, int, int]  # device, inode, size, mtime in ns


class InUseError(BlockingIOError):
    """The database is locked, or changes faster than it can be read; trying again later makes sense."""


class ChangedError(Exception):
    """The file changed while it was read as immutable: what was read since opening is void."""


def way_to_open(companions: dict[str, int]) -> Way:
    """
    Return how to open a database with these *companions* (suffix to size in bytes, those that exist).

    A `-journal` is left to SQLite, which reads past one that is no longer hot; see `DatabaseFile.open`.
    """
    if "-wal" in companions:
        if "-shm" in companions:
            return "shared"
        return "copy" if companions["-wal"] else "immutable"
    return "shared" if companions.get("-journal") else "immutable"


def signature(path: str) -> tuple[Stamp, int, int]:
    """
    Return the stamp of the database at *path*, and size and mtime (ns) over it and its `-wal`.

    Raises:
        FileNotFoundError: There is none.
    """
    main = _stamp(path)
    size, mtime = main[2], main[3]
    with contextlib.suppress(FileNotFoundError):
        wal = _stamp(path + "-wal")
        size += wal[2]
        mtime = max(mtime, wal[3])
    return main, size, mtime


@dataclass(slots=True)
class Reading:
    """
    An open connection; *way* is how it was come by.

    Text comes as bytes: what is no UTF-8 is for the reader to replace, where SQLite's own decoding would give up.
    """

    connection: sqlite3.Connection
    way: Way
    path: str
    stamp: Stamp

    def check(self) -> None:
        """Raise `ChangedError` where the file is not what it was when it was opened and that can have mattered."""
        if self.way == "immutable":
            try:
                now = _stamp(self.path)
            except OSError as error:
                raise ChangedError(f"{self.path} went away while it was read") from error
            if now != self.stamp:
                raise ChangedError(f"{self.path} changed while it was read")

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection with one consistent view of everything."""
        self.connection.execute("BEGIN")
        try:
            yield self.connection
        finally:
            with contextlib.suppress(sqlite3.Error):  # damage that was found is told by the error under way
                self.connection.rollback()

    def columns(self, table: str) -> list[str]:
        """Return the names of a table's columns, none where there is no such table."""
        return [
            str(row[1], "utf-8", "replace") for row in self.connection.execute(f"PRAGMA table_info({_quoted(table)})")
        ]


class DatabaseFile:
    """
    One database, opened as often as is wanted; a private copy is kept between openings while it is good.

    Args:
        path: Of the database.
        scratch: Where a private copy goes; None: the system's folder for temporary files.
    """

    def __init__(self, path: str, *, scratch: str | None = None) -> None:
        self.path = path
        self._scratch = scratch
        self._copy: tuple[dict[str, Stamp], tempfile.TemporaryDirectory[str]] | None = None

    @contextlib.contextmanager
    def open(self) -> Iterator[Reading]:
        """
        Yield the open database.

        Raises:
            FileNotFoundError: There is none. InUseError: Locked. OSError: It cannot be opened or copied.
            TranscriptError: It is damaged, or no database; also when that shows only while it is read.
        """
        stamp = _stamp(self.path)
        way = way_to_open({suffix: size for suffix in COMPANIONS if (size := _size(self.path + suffix)) is not None})
        reading = self._open_as(way, stamp)
        try:
            yield reading
        except sqlite3.Error as error:
            raise explained(error, self.path) from error
        finally:
            reading.connection.close()

    def release(self) -> None:
        """Remove the private copy, if there is one."""
        if self._copy is not None:
            self._copy[1].cleanup()
            self._copy = None

    def _open_as(self, way: Way, stamp: Stamp) -> Reading:
        if way == "immutable":
            return Reading(_connect(self.path, "immutable=1"), way, self.path, stamp)
        if way == "shared":
            connection = None
            try:
                connection = _connect(self.path, "mode=ro")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.Error as error:
                if connection is not None:
                    connection.close()
                if _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR):
                    raise explained(error, self.path) from error
            else:
                return Reading(connection, way, self.path, stamp)
        return Reading(_connect(self._private_copy(), "mode=rw"), "copy", self.path, stamp)

    def _private_copy(self) -> str:
        """Return the path of a copy of what is there now, made anew only where that changed."""
        name = "copy.db"
        for _ in range(COPY_TRIES):
            before = self._stamps()
            if self._copy is not None and self._copy[0] == before:
                return os.path.join(self._copy[1].name, name)
            self.release()
            folder = tempfile.TemporaryDirectory(prefix="curatord-", dir=self._scratch)  # mode 0700
            try:
                for suffix in before:
                    if suffix != "-shm":  # an index of the -wal, made anew
                        _copy_private(self.path + suffix, os.path.join(folder.name, name + suffix))
                same = self._stamps() == before
            except BaseException:
                folder.cleanup()
                raise
            if same:
                self._copy = (before, folder)
                return os.path.join(folder.name, name)
            folder.cleanup()
        raise InUseError(f"{self.path} changes faster than it can be copied")

    def _stamps(self) -> dict[str, Stamp]:
        found = {"": _stamp(self.path)}
        for suffix in COMPANIONS:
            with contextlib.suppress(FileNotFoundError):
                found[suffix] = _stamp(self.path + suffix)
        return found


class DatabaseFiles:
    """
    Databases by their paths, each with its private copy, where one is needed, for as long as this object lives.

    For who asks the same database many times: a copy is made again only where the original changed.
    """

    def __init__(self, *, scratch: str | None = None) -> None:
        self._scratch = scratch
        self._files: dict[str, DatabaseFile] = {}
        weakref.finalize(self, _release_all, self._files)

    def at(self, path: str) -> DatabaseFile:
        """Return the database at *path*."""
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = DatabaseFile(path, scratch=self._scratch)
        return file


def _release_all(files: dict[str, DatabaseFile]) -> None:
    for file in files.values():
        file.release()


def explained(error: sqlite3.Error, path: str) -> OSError | TranscriptError:
    """Return what SQLite's *error* means for who reads *path*."""
    code = _code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return InUseError(f"{path} is in use: {error}")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY):
        return OSError(f"cannot open the database {path}: {error}")
    return TranscriptError(
        f"cannot read the database {path}: {error}",
        hint="what was read of it before is kept; it is read on when its program has repaired or replaced it",
    )


def _connect(path: str, how: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            f"{Path(path).absolute().as_uri()}?{how}", uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None
        )
    except sqlite3.Error as error:
        raise explained(error, path) from error
    connection.text_factory = bytes
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
    # A hostile schema must not run functions of its own choice through views or generated columns.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA query_only = ON")
    return connection


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _stamp(path: str) -> Stamp:
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None


def _copy_private(source: str, target: str) -> None:
    with open(source, "rb") as reading:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as writing:
            shutil.copyfileobj(reading, writing, COPY_CHUNK)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

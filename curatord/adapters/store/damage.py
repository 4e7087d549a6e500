"""
A damaged database: how it is marked, looked at once more, and set aside.

*Wanted.* Damage shows when a page is read that nobody read at the opening, in any process, also in one that only looks.
Whoever meets it leaves a *mark* beside the database: which file it was (device and inode), and what SQLite said, or
which value cannot be ours (`audit`). The next opening for writing reads the whole file; where it is sound, the mark
goes, else the file is set aside and a new one begun.

*What can go wrong, and what prevents it.* Two processes set aside one after the other, the second one the fresh file:
all of this is done under the work lock, and a mark is only about the file with its inode. A kill half-way: the main
file is renamed first, and a `-wal` without it is either taken along by the next opening or dropped by SQLite, which
never replays one into an empty file; the mark holds the new name from before the rename and goes only when the new
database has its decisions (`Database.mended`), so the run that follows can still tell where the old one is.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from curatord.adapters.store.audit import odd_value
from curatord.core.cheap import dataclass, replace
from curatord.errors import StateCorruptError, StateError

__all__ = ["Mark", "is_damage", "is_sound", "mark", "marked", "set_aside", "unmark"]

_COMPANIONS = ("-wal", "-shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Which file is thought to be damaged, why, and under which name it is set aside, once that was decided."""

    device: int
    inode: int
    why: str
    aside: str | None = None

    def is_about(self, path: Path) -> bool:
        """Return whether the file at *path* is the one that is meant; False where there is none."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == (self.device, self.inode)


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether *error* says that the file's own content is broken, rather than that it cannot be reached."""
    code = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def mark(path: Path, error: object, identity: tuple[int, int] | None = None) -> Mark | None:
    """
    Leave a mark on the database at *path* (or on the file *identity*, where that is known), and return it.

    None where nothing can be written: the next who meets the damage tries again.
    """
    try:
        if identity is None:
            found = path.stat()
            identity = (found.st_dev, found.st_ino)
        made = Mark(device=identity[0], inode=identity[1], why=str(error))
        _write(path, made)
    except OSError:
        return None
    return made


def marked(path: Path) -> Mark | None:
    """Return the mark on the database at *path*, or None; one that cannot be read is none."""
    try:
        told = json.loads(_place(path).read_bytes())
        return Mark(device=told["device"], inode=told["inode"], why=str(told["why"]), aside=told["aside"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    except OSError as error:
        raise StateError(f"{_place(path)} cannot be read: {error}", hint="look at its permissions") from error


def unmark(path: Path) -> None:
    """Take the mark away."""
    with contextlib.suppress(FileNotFoundError):
        _place(path).unlink()


def is_sound(path: Path) -> bool:
    """Return whether every page and every value of the database at *path* is what it should be; reads all of it."""
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=10.0, isolation_level=None)) as connection:
            sound = connection.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
            return sound and odd_value(connection) is None
    except sqlite3.OperationalError as error:
        raise StateError(f"cannot use the database {path}: {error}", hint="look at its permissions") from error
    except sqlite3.DatabaseError:
        return False


def set_aside(path: Path, of: Mark, now: datetime) -> Path:
    """
    Rename the file that *of* is about, with its companions, and return its new path; for who holds the work lock.

    Called again after a cut it goes on where that left off.

    Raises:
        StateCorruptError: It cannot be renamed.
    """
    try:
        if of.aside is None:
            of = replace(of, aside=_free_name(path, now))
            _write(path, of)
        aside = path.with_name(str(of.aside))
        # The main file first: a companion alone is harmless, a main file without its companion has lost commits.
        if of.is_about(path):
            path.rename(aside)
        if not path.exists():
            for suffix in _COMPANIONS:
                with contextlib.suppress(FileNotFoundError):
                    path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    except OSError as error:
        raise StateCorruptError(
            f"the database {path} is damaged and cannot be set aside: {error}",
            hint=f"move {path} away by hand; curatord rebuilds it from transcripts and libraries",
        ) from error
    return aside


def _free_name(path: Path, now: datetime) -> str:
    stem = f"{path.name}.damaged-{now.astimezone(UTC):%Y%m%d%H%M%S}"
    taken = {entry.name for entry in path.parent.iterdir()}
    return next(
        name for number in range(len(taken) + 1) if (name := stem if number == 0 else f"{stem}-{number}") not in taken
    )


def _place(path: Path) -> Path:
    return path.with_name(f"{path.name}.damage")


def _write(path: Path, what: Mark) -> None:
    told = {"device": what.device, "inode": what.inode, "why": what.why, "aside": what.aside}
    place = _place(path)
    temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(told) + "\n", encoding="utf-8")
    temporary.replace(place)

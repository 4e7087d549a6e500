"""The limits of inotify, what is used of them, and how many folders there are to watch (inotify(7), proc(5))."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = ["Folders", "Used", "count_folders", "limits", "used_by"]

PROC = Path("/proc")
MAX_FOLDERS = 1_000_000
COUNT_S = 10.0
MAX_LINKS = 20


class Used(NamedTuple):
    """Watches and instances that programs of one user hold."""

    watches: int
    instances: int


class Folders(NamedTuple):
    """How many folders take a watch each; *whole*: none was left out; *links* are some that lead to further folders."""

    number: int
    whole: bool
    links: tuple[str, ...] = ()


def limits(proc: Path = PROC) -> tuple[int | None, int | None]:
    """Return how many watches and instances a user may have; None where this system does not say."""
    return tuple(_number(proc / "sys/fs/inotify" / name) for name in ("max_user_watches", "max_user_instances"))  # type: ignore[return-value]  # two of them


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def used_by(user: int, proc: Path = PROC, *, only: int | None = None) -> Used:
    """Return what the processes of *user* hold, or the one with the id *only*; what cannot be seen is left out."""
    watches = instances = 0
    for process in [proc / str(only)] if only is not None else _processes(user, proc):
        try:
            descriptors = list((process / "fd").iterdir())
        except OSError:
            continue  # it has ended, or is none of ours to look at
        for descriptor in descriptors:
            try:
                if str(descriptor.readlink()) != "anon_inode:inotify":
                    continue
                told = (process / "fdinfo" / descriptor.name).read_bytes()
            except OSError:
                continue  # closed in between
            instances += 1
            watches += sum(line.startswith(b"inotify ") for line in told.split(b"\n"))
    return Used(watches, instances)


def _processes(user: int, proc: Path) -> Iterable[Path]:
    try:
        found = [path for path in proc.iterdir() if path.name.isdigit()]
    except OSError:
        return
    for path in found:
        try:
            if path.stat().st_uid == user:
                yield path
        except OSError:
            continue


def count_folders(roots: Iterable[Path], *, seconds: float = COUNT_S) -> Folders:
    """Return how many folders lie at and below *roots*, links not followed."""
    until = time.monotonic() + seconds
    count = 0
    links: list[str] = []
    for root in roots:
        waiting = [os.path.realpath(root)]
        while waiting:
            if count >= MAX_FOLDERS or time.monotonic() > until:
                return Folders(count, whole=False, links=tuple(links))
            folder = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                        elif len(links) < MAX_LINKS and entry.is_symlink() and entry.is_dir():
                            links.append(entry.path)
            except NotADirectoryError:
                pass  # a database file takes a watch too
            except OSError:
                continue
            count += 1
    return Folders(count, whole=True, links=tuple(links))

"""Reads, writes and removes the files of a service, each as a whole; `core.service.plan` decides which."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from curatord.core.service.plan import FileChange
from curatord.errors import StateError

__all__ = ["carry_out", "make_folder", "present"]

MAX_BYTES = 1024 * 1024


def present(path: str) -> str | None:
    """
    Return the text that stands at *path*, or None where nothing does.

    A link, a folder and what is no text are somebody's: they are told as a text that no fingerprint fits.

    Raises:
        StateError: This user may not look.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return ""
        raise StateError(f"{path}: {error.strerror}", hint="another user (sudo) may read it") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return ""
        return file.read(MAX_BYTES).decode("utf-8", "surrogateescape")


def carry_out(changes: Sequence[FileChange]) -> None:
    """
    Do *changes*, none of which may be a refusal.

    Raises:
        StateError: One could not be done; those before it were.
    """
    for change in changes:
        path = Path(change.path)
        try:
            if change.act == "remove":
                path.unlink()
            elif change.act in ("write", "replace"):
                if change.keep_as:
                    _set_aside(path, change.keep_as)
                _write(path, change.text, anew=change.act == "write" or bool(change.keep_as))
        except OSError as error:
            raise StateError(
                f"{path}: {error.strerror or error}",
                hint="another user (sudo), or --output with a folder that this user can write",
            ) from error


def make_folder(path: str, *, owner: tuple[int, int] | None = None) -> bool:
    """
    Make the folder *path*, private to its user, and return whether it was not there.

    *owner*: user and group that it and the folders made above it belong to, where root makes them in that user's home.
    Links are not followed then: else the user could have root make and hand over a folder anywhere.

    Raises:
        StateError: It cannot be made.
    """
    there = os.path.isdir(path)  # noqa: PTH112 - pathlib's raises where this user may not look
    try:
        if owner is None:
            Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
        else:
            _make_for(path, owner)
    except OSError as error:
        raise StateError(
            f"cannot make {path}: {error.strerror}", hint="look at the rights of the folder above"
        ) from error
    return not there


def _make_for(path: str, owner: tuple[int, int]) -> None:
    """Make *path*, absolute and without links in it, step by step; what is made is given to *owner*."""
    names = [name for name in path.split("/") if name]
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open("/", flags)
    try:
        for left, name in zip(range(len(names) - 1, -1, -1), names, strict=True):
            made = False
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755 if left else 0o700, dir_fd=folder)
                made = True
            inner = os.open(name, flags, dir_fd=folder)
            os.close(folder)
            folder = inner
            if made:
                os.fchown(folder, *owner)
    finally:
        os.close(folder)


def _set_aside(path: Path, name: str) -> None:
    target = Path(name)
    number = 1
    while target.exists() or target.is_symlink():
        number += 1
        target = Path(f"{name}-{number}")
    path.rename(target)


def _write(path: Path, text: str, *, anew: bool) -> None:
    """Write *text* by way of a temporary sibling; *anew*: nothing may stand there by now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()  # of an earlier try that was killed
    try:
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if anew:
            os.link(temporary, path)  # unlike a rename, never over something
        else:
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

"""
Paths as text, as other programs wrote them: POSIX and Windows forms, `~`, relative ones, without looking at a disk.

A path in a transcript belongs to the machine, container or user that wrote it, so nothing here resolves links or asks
what exists. The *plain* form that everything is compared in: `/` between the parts, no `.` or empty part, `..` folded,
no `/` at the end, drive letters in upper case. A relative path stays relative where nobody says to what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["fold_key", "is_absolute", "join", "parents", "plain", "printable_path"]

_DRIVE = re.compile(r"^[A-Za-z]:(?=[\\/]|$)")
_UNTIDY = re.compile(r"//|\\|(?:^|/)\.{1,2}(?:/|$)|/$")


def is_absolute(path: str) -> bool:
    """Return whether *path* starts at a root: `/…`, `~…`, `C:\\…`, `\\\\host\\…`."""
    return path.startswith(("/", "~", "\\\\")) or _DRIVE.match(path) is not None


def plain(path: str, *, home: str | None = None) -> str:
    """
    Return *path* in plain form; `~` and `~/…` become *home* where that is given and stay as they are else.

    `..` above the root or above the start of a relative path is dropped and kept, in that order, as a shell does.
    """
    if path.startswith("file://"):
        path = path[7:]
    if home is not None and (path == "~" or path.startswith(("~/", "~\\"))):
        path = home + path[1:]
    if len(path) > 1 and path[1] == ":" and _DRIVE.match(path):
        path = path[0].upper() + path[1:]
    # Most paths are tidy already, and this is called for each event of a first scan.
    if _UNTIDY.search(path) is None:
        return path
    if "\\" in path:
        path = path.replace("\\", "/")
    rooted = path.startswith("/")
    anchored = rooted or path.startswith("~") or _DRIVE.match(path) is not None
    out: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if out and out[-1] != ".." and not (anchored and not rooted and len(out) == 1):
                out.pop()
            elif not anchored:
                out.append(part)
            continue
        out.append(part)
    return ("/" if rooted else "") + "/".join(out)


def join(folder: str | None, path: str, *, home: str | None = None) -> str:
    """Return *path* in plain form, taken from *folder* where it is relative and a folder is known."""
    if folder is None or not folder or is_absolute(path):
        return plain(path, home=home)
    return plain(f"{folder}/{path}", home=home)


def parents(path: str) -> Iterator[str]:
    """Yield the folders above the plain *path*, nearest first, without the root itself."""
    end = path.rfind("/")
    while end > 0:
        yield path[:end]
        end = path.rfind("/", 0, end)


def fold_key(path: str) -> str:
    """Return what the plain *path* is compared by: itself, and without case where it is a Windows path."""
    return path.casefold() if len(path) > 1 and path[1] == ":" and _DRIVE.match(path) else path


def printable_path(path: str) -> str:
    """Return *path*, of this machine, as it can be stored and printed: bytes that are no UTF-8 as `\\xff`."""
    return path if path.isascii() else path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

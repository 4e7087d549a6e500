"""
Listing a tree of transcripts: one `scandir` a folder, one `stat` a file, nothing opened.

Links to folders are followed, but no folder is walked twice, whatever leads to it. A folder that cannot be listed is
noted and passed over; the root that does not exist is an error of the caller's, since then the source waits. So is a
file whose path is not UTF-8: no row of a database and no line of a report could name it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from curatord.core.path_text import printable_path
from curatord.ports.ingest_store import Known
from curatord.ports.source import Item

__all__ = ["item_at", "walk"]


def walk(
    root: str,
    *,
    suffixes: tuple[str, ...],
    skip_folders: frozenset[str],
    problems: list[str],
    known: dict[str, Known] | None = None,
    collect: set[int] | None = None,
    census: set[int] | None = None,
) -> Iterator[Item]:
    """
    Yield the files below *root* (or *root* itself, where it is one) whose names end in one of *suffixes*.

    Args:
        root: Absolute path.
        suffixes: Of names, with the dot.
        skip_folders: Names of folders that hold no transcripts.
        problems: Gets a line for each folder that could not be listed.
        known: Rows by path; a file that is still as its row says is not yielded, but taken out of them; nearly
            all files of nearly all scans end here, at the cost of their stat.
        collect: Gets the mark of each file that was taken out of *known* (`ingest_store.Census`).
        census: Marks; a file that has one of them is not yielded, and its mark taken out.

    Raises:
        FileNotFoundError: *root* does not exist. OSError: It cannot be listed.
    """
    top = os.stat(root)
    if not os.path.isdir(root):
        yield _item(root, top)
        return
    rows = {} if known is None else known
    linked: set[str] = set()  # real paths of folders reached through a link
    real_root = os.path.realpath(root)
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = os.scandir(folder)
        except OSError as error:
            if folder == root:
                raise
            problems.append(f"cannot list {folder}: {error.strerror}")
            continue
        try:
            with entries:
                for entry in entries:
                    name = entry.name
                    if name.endswith(suffixes):
                        try:
                            if entry.is_file():
                                path = entry.path
                                if not path.isascii() and not _is_text(path):
                                    problems.append(f"cannot name {printable_path(path)}: {_NOT_UTF8}")
                                    continue
                                found = entry.stat()
                                row = rows.pop(path, None)
                                if row is not None:
                                    _, _, _, ino, size, mtime_ns, special = row
                                    if (
                                        size == found.st_size
                                        and mtime_ns == found.st_mtime_ns
                                        and ino == found.st_ino
                                        and found.st_nlink == 1
                                        and not special
                                    ):
                                        if collect is not None:
                                            collect.add(hash((path, ino, size, mtime_ns)))
                                        continue
                                    rows[path] = row
                                elif census is not None:
                                    mark = hash((path, found.st_ino, found.st_size, found.st_mtime_ns))
                                    if mark in census and found.st_nlink == 1:
                                        census.discard(mark)
                                        continue
                                yield _item(path, found)
                                continue
                        except FileNotFoundError:
                            continue  # gone since it was listed, or a link to nowhere
                        except OSError as error:
                            problems.append(f"cannot look at {entry.path}: {error.strerror}")
                            continue
                    if entry.is_dir(follow_symlinks=False):
                        if name not in skip_folders:
                            folders.append(entry.path)
                    elif entry.is_symlink() and name not in skip_folders and _new_folder(entry.path, real_root, linked):
                        folders.append(entry.path)
        except OSError as error:  # some file systems let a folder be opened and then refuse to say what is in it
            problems.append(f"cannot list {folder}: {error.strerror}")


def item_at(path: str) -> tuple[Item, bool]:
    """Return *path* as an item, and whether it is a regular file; raises `FileNotFoundError` or another `OSError`."""
    found = os.stat(path)
    if not path.isascii() and not _is_text(path):
        raise OSError(errno.EILSEQ, _NOT_UTF8)
    return _item(path, found), stat.S_ISREG(found.st_mode)


_NOT_UTF8 = "its path is not UTF-8; rename it, and it is read"


def _is_text(path: str) -> bool:
    """Return whether *path* is UTF-8 throughout; nearly all are ASCII, which is told without looking at each letter."""
    if path.isascii():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _item(path: str, found: os.stat_result) -> Item:
    return Item(path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_nlink > 1)


def _new_folder(path: str, real_root: str, linked: set[str]) -> bool:
    """Return whether the link at *path* leads to a folder that is not walked anyway, and remember it."""
    if not os.path.isdir(path):
        return False
    real = os.path.realpath(path)
    if _is_in(real, real_root) or _is_in(real_root, real) or any(_is_in(real, folder) for folder in linked):
        return False
    linked.add(real)
    return True


def _is_in(path: str, folder: str) -> bool:
    """Return whether *path* is *folder* or below it; both are real paths, and either may be `/`."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)

"""
One package on disk: a quick look that tells whether it changed, and a full reading when it did.

The quick look (`survey`) lists the folder and asks each file for its stat, nothing more. Name, mode, size, mtime,
ctime and inode of all files together are the package's *signature*. A kept reading is taken as long as the signature
is the same: an edit in place moves ctime, `git checkout` or `rsync -t` with old mtimes makes a new inode or a new
ctime, a rename moves the file into another row. What a signature cannot tell is a second write within one tick of the
file system's clock, so a reading made while any file was younger than `RACY_NS` is used and not kept; the next one is.

Nothing is followed and nothing special is opened: a FIFO in a package would hang whoever reads it, a link may lead
anywhere. Files are opened with O_NOFOLLOW and O_NONBLOCK and asked again what they are once open. A package larger than
the limits below is broken to us: it is listed with that reason, never read whole, never changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from curatord.core.fingerprint import (
    IGNORED_FOLDERS,
    PackageEntry,
    fingerprint,
    is_ignored,
    link_entry,
)
from curatord.core.library import SkillContent
from curatord.core.package import ReadFile, describe
from curatord.core.values import Fingerprint
from curatord.errors import InputError

__all__ = [
    "MAX_FILE_BYTES",
    "ChangedWhileReadError",
    "Survey",
    "entries_of",
    "fingerprint_of",
    "is_racy",
    "open_beneath",
    "printable",
    "read_beneath",
    "read_content",
    "survey",
    "survey_file",
]

MAX_FILES = 5000
MAX_DEPTH = 24
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_PACKAGE_BYTES = 256 * 1024 * 1024
MAX_ENTRY_BYTES = 4 * 1024 * 1024  # of SKILL.md; Hermes refuses 100,000 characters
MAX_TEXT_BYTES = 256 * 1024  # of a support file whose links are looked at
RACY_NS = 2_000_000_000  # FAT, the coarsest of all, counts in steps of two seconds
_CHUNK = 1024 * 1024

READING = 1  # raised whenever the same bytes are read as something else, so that kept readings are made again

Row = tuple[str, int, int, int, int, int]  # rel, mode, size, mtime_ns, ctime_ns, inode


class ChangedWhileReadError(InputError):
    """A package changed between the quick look and the reading."""


@dataclass(slots=True, kw_only=True)
class Survey:
    """
    What the quick look at one package found.

    Attributes:
        rows: Files and links that could matter, sorted by path; ignored folders are not entered.
        broken: Why the package cannot be read as a whole, in words, or None.
        nested: Paths of further SKILL.md files below the package's own.
        newest_ns: Newest mtime or ctime, ns since 1970.
    """

    rows: list[Row] = field(default_factory=list)
    broken: str | None = None
    nested: list[str] = field(default_factory=list)
    newest_ns: int = 0

    def signature(self) -> bytes | None:
        """Return the same bytes as long as nothing of the package was touched, or None: do not keep the reading."""
        try:
            return _encode((READING, self.broken, self.rows))
        except UnicodeEncodeError:  # a file name that is no text
            return None


_encode = msgspec.msgpack.Encoder().encode


def survey(path: str, entries: Sequence[os.DirEntry[str]]) -> Survey:
    """Return the quick look at the package folder *path*, of which *entries* were listed already."""
    found = Survey()
    rows = found.rows
    newest = 0
    waiting: list[tuple[str, Sequence[os.DirEntry[str]], int]] = [("", entries, 0)]
    while waiting:
        prefix, listed, depth = waiting.pop()
        for entry in listed:
            name = entry.name
            try:
                if entry.is_dir(follow_symlinks=False):
                    if name in IGNORED_FOLDERS:
                        continue
                    if depth >= MAX_DEPTH:
                        found.broken = f"folders nested more than {MAX_DEPTH} deep: {prefix}{name}"
                        continue
                    with os.scandir(entry.path) as scan:
                        waiting.append((f"{prefix}{name}/", list(scan), depth + 1))
                    continue
                status = entry.stat(follow_symlinks=False)
            except OSError as error:
                found.broken = f"cannot be read: {prefix}{name}: {error.strerror}"
                continue
            mode = status.st_mode
            ctime = status.st_ctime_ns
            mtime = status.st_mtime_ns
            rows.append((prefix + name, mode, status.st_size, mtime, ctime, status.st_ino))
            if ctime > newest:
                newest = ctime
            if mtime > newest:
                newest = mtime
            if depth and len(name) == 8 and name.lower() == "skill.md":
                found.nested.append(prefix + name)
        if len(rows) > MAX_FILES:
            found.broken = f"more than {MAX_FILES} files: too large for a skill"
            break
    if len(rows) > 1:
        rows.sort()
    found.newest_ns = newest
    if found.broken is None:
        found.broken = _odd_rows(rows)
    return found


def survey_file(path: str) -> Survey:
    """Return the quick look at the flat skill *path*."""
    found = Survey()
    try:
        status = os.lstat(path)
    except OSError as error:
        found.broken = f"cannot be read: {error.strerror}"
        return found
    name = path.rpartition("/")[2]
    found.rows.append((name, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))
    found.newest_ns = max(status.st_mtime_ns, status.st_ctime_ns)
    found.broken = _odd_rows(found.rows)
    return found


def _odd_rows(rows: Sequence[Row]) -> str | None:
    """Return why a package with *rows* must not be opened, or None."""
    total = 0
    for rel, mode, size, *_ in rows:
        kind = stat.S_IFMT(mode)
        if kind == stat.S_IFREG:
            total += size
            if size > MAX_FILE_BYTES:
                return f"{printable(rel)} is {size} bytes: too large for a skill"
        elif kind != stat.S_IFLNK:
            return f"{printable(rel)} is {_KINDS.get(kind, 'no ordinary file')}, which is never opened"
        if not rel.isascii() and rel != printable(rel):
            return f"a file name is not UTF-8: {printable(rel)}"
    return f"{total} bytes in all: too large for a skill" if total > MAX_PACKAGE_BYTES else None


_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def printable(name: str) -> str:
    """Return *name* with bytes that are not UTF-8 as `\\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def is_racy(found: Survey, begun_ns: int) -> bool:
    """Return whether a reading that began at *begun_ns* (system clock, ns since 1970) could miss a later write."""
    return found.newest_ns > begun_ns - RACY_NS


def read_content(path: str, found: Survey, entry_file: str, *, flat: bool = False) -> SkillContent:
    """
    Return what the package at *path* says, read in full.

    Args:
        path: Its folder, or with *flat* its one file.
        found: A quick look made just before.
        entry_file: Which of its files makes it a skill.

    Raises:
        ChangedWhileReadError: It is not any more what *found* saw; look again.
    """
    base = path.rpartition("/")[0] if flat else path
    broken = found.broken
    files: list[ReadFile] = []
    for row in found.rows:
        # Of a package that cannot be read as a whole only the entry file is, to say whose it is.
        if is_ignored(row[0], link=stat.S_ISLNK(row[1])) or (found.broken and row[0] != entry_file):
            continue
        if found.broken and (not stat.S_ISREG(row[1]) or row[2] > MAX_ENTRY_BYTES):
            continue
        try:
            files.append(_read_row(base, row, entry_file))
        except PermissionError as error:
            broken = broken or f"cannot be read: {printable(row[0])}: {error.strerror}"
    newest = max((row[3] for row in found.rows if not is_ignored(row[0], link=stat.S_ISLNK(row[1]))), default=0)
    return describe(files, entry_file, newest_ns=newest, nested=found.nested, flat=flat, broken=broken)


def _read_row(base: str, row: Row, entry_file: str) -> ReadFile:
    rel, mode, size = row[:3]
    if stat.S_ISLNK(mode):
        try:
            target = Path(base, rel).readlink()
        except OSError as error:
            raise ChangedWhileReadError(f"{base}/{rel} changed while it was read") from error
        return ReadFile(entry=link_entry(rel, str(target)), data=None, link_target=str(target))
    keep = rel == entry_file or (rel.endswith((".md", ".markdown")) and size <= MAX_TEXT_BYTES)
    limit = MAX_ENTRY_BYTES if keep else 0
    try:
        descriptor = open_beneath(base, rel)
    except PermissionError:
        raise
    except OSError as error:
        raise ChangedWhileReadError(f"{base}/{rel} changed while it was read") from error
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        digest, data = _hash(file.fileno(), limit if size <= limit else 0)
        after = os.fstat(file.fileno())
    if row[1:] != (after.st_mode, after.st_size, after.st_mtime_ns, after.st_ctime_ns, after.st_ino):
        raise ChangedWhileReadError(f"{base}/{rel} changed while it was read")
    entry = PackageEntry(rel=rel, kind="file", executable=bool(mode & stat.S_IXUSR), digest=digest, size=size)
    return ReadFile(entry=entry, data=data, link_target=None)


def _hash(descriptor: int, keep: int) -> tuple[str, bytes | None]:
    """Return the digest of an open file, and its content where that is at most *keep* bytes."""
    whole = hashlib.sha256()
    kept: list[bytes] | None = [] if keep else None
    length = 0
    while chunk := os.read(descriptor, _CHUNK):
        whole.update(chunk)
        length += len(chunk)
        if length > MAX_FILE_BYTES:
            raise ChangedWhileReadError("a file grew while it was read")
        if kept is not None:
            kept.append(chunk)
            if length > keep:
                kept = None
    return whole.hexdigest(), None if kept is None else b"".join(kept)


def open_beneath(base: str, rel: str) -> int:
    """
    Return an open descriptor of the ordinary file *rel* below the folder *base*, with no link followed below it.

    Raises:
        OSError: A part of *rel* is a link, `..` or missing, or it is no ordinary file.
    """
    parts = rel.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise OSError(f"not a path within a package: {rel!r}")
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    if len(parts) == 1:
        descriptor = os.open(f"{base}/{rel}", flags | os.O_NONBLOCK)
    else:
        parent = os.open(base, flags & ~os.O_NOFOLLOW | os.O_DIRECTORY)
        try:
            for part in parts[:-1]:
                child = os.open(part, flags | os.O_DIRECTORY, dir_fd=parent)
                os.close(parent)
                parent = child
            descriptor = os.open(parts[-1], flags | os.O_NONBLOCK, dir_fd=parent)
        finally:
            os.close(parent)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"not an ordinary file: {base}/{rel}")
    return descriptor


def read_beneath(base: str, rel: str, *, limit: int = MAX_FILE_BYTES) -> bytes:
    """
    Return the bytes of the ordinary file *rel* below the folder *base*; no link is followed below it.

    Raises:
        InputError: It is missing, a link, no ordinary file, unreadable, or longer than *limit* bytes.
    """
    try:
        with os.fdopen(open_beneath(base, rel), "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise InputError(f"cannot read {rel} in {base}: {error.strerror or error}") from error
    if len(data) > limit:
        raise InputError(f"{rel} in {base} is longer than {limit} bytes")
    return data


def entries_of(path: str) -> tuple[PackageEntry, ...]:
    """
    Return all files and links of the package at *path* (folder, or one flat file), sorted by path, caches left out.

    Raises:
        InputError: It cannot be read whole, holds something special, or kept changing.
        FileNotFoundError: There is nothing at *path*.
    """
    for _ in range(3):
        try:
            return tuple(_entries(path))
        except ChangedWhileReadError as error:
            last = error
    raise last


def fingerprint_of(path: str) -> Fingerprint:
    """Return the fingerprint of the package at *path*, read now; raises as `entries_of`."""
    return fingerprint(entries_of(path))


def _entries(path: str) -> Iterator[PackageEntry]:
    status = os.lstat(path)
    flat = not stat.S_ISDIR(status.st_mode)
    if flat:
        found = survey_file(path)
    else:
        try:
            with os.scandir(path) as scan:
                listed = list(scan)
        except PermissionError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error
        found = survey(path, listed)
    if found.broken is not None:
        raise InputError(f"{path}: {found.broken}")
    base = path.rpartition("/")[0] if flat else path
    for row in found.rows:
        if is_ignored(row[0], link=stat.S_ISLNK(row[1])):
            continue
        try:
            yield _read_row(base, row, "").entry
        except PermissionError as error:
            raise InputError(f"{path}/{row[0]} cannot be read: {error.strerror}") from error

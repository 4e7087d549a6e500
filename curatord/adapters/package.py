"""
One package on disk: whether it is still the one that was read, and a full reading when it is not.

A reading is kept together with a *signature*: for each folder and file of the package its mode, size, mtime, ctime and
inode, as they were before it was read. It holds as long as asking each of those paths again gives the same. A file
edited in place moves its ctime, `git checkout` or `rsync -t` with old times makes a new inode or a new ctime, a file
that is added, removed or renamed moves the times of its folder, so the folders of an unchanged package need not be
listed again, which is half the cost. (Only folders *within* packages are trusted so far; those that group packages are
listed each time.) What a signature cannot tell is a second write within one tick of the file system's clock, so a
reading made while anything was younger than `RACY_NS` is used and not kept; the next one is.

Nothing is followed and nothing special is opened: a FIFO in a package would hang whoever reads it, a link may lead
anywhere. Files are opened with O_NOFOLLOW and O_NONBLOCK and asked again what they are once open. A package larger than
the limits below is broken to us: it is listed with that reason, never read whole, never changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from curatord.core.cheap import dataclass, field
from curatord.core.fingerprint import (
    IGNORED_FOLDERS,
    PackageEntry,
    ReadFile,
    fingerprint,
    is_ignored,
    link_entry,
)
from curatord.core.library import SkillContent
from curatord.core.names import SKILL_FILE
from curatord.core.path_text import printable_path
from curatord.core.values import Fingerprint
from curatord.errors import InputError

__all__ = [
    "ATTEMPTS",
    "MAX_ENTRY_BYTES",
    "MAX_FILE_BYTES",
    "ChangedWhileReadError",
    "Survey",
    "entries_of",
    "fingerprint_of",
    "is_racy",
    "is_unchanged",
    "open_beneath",
    "read_beneath",
    "read_content",
    "survey",
    "vcs_name",
]

MAX_FILES = 5000  # and folders
MAX_DEPTH = 24
ATTEMPTS = 3
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_PACKAGE_BYTES = 256 * 1024 * 1024
MAX_ENTRY_BYTES = 4 * 1024 * 1024  # of SKILL.md; Hermes refuses 100,000 characters
MAX_TEXT_BYTES = 256 * 1024  # of a support file whose links are looked at
RACY_NS = 2_000_000_000  # FAT, the coarsest of all, counts in steps of two seconds
_CHUNK = 1024 * 1024

READING = 4  # raised whenever the same bytes are read as something else, so that kept readings are made again

_VCS_NAMES = frozenset({".git", ".hg", ".svn", ".jj"})

Row = tuple[
    str, int, int, int, int, int
]  # "/" + path within the package (or ""), mode, size, mtime_ns, ctime_ns, inode


class ChangedWhileReadError(InputError):
    """A package changed between the quick look and the reading."""


@dataclass(slots=True, kw_only=True)
class Survey:
    """
    What a quick look at one package found.

    Attributes:
        rows: The package itself first, then everything in it, parents before children; caches are not entered.
        broken: Why the package cannot be read as a whole, in words, or None.
        nested: Paths of further SKILL.md files below the package's own.
        own_vcs: Name of a version control entry at its top, or None.
    """

    rows: list[Row] = field(default_factory=list)
    broken: str | None = None
    nested: list[str] = field(default_factory=list)
    own_vcs: str | None = None

    def signature(self) -> bytes:
        """Return what `is_unchanged` asks for; only for a package whose names are all text."""
        return _encode((READING, self.rows))


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, list[Row]]).decode


def is_unchanged(path: str, signature: bytes) -> bool:
    """Return whether the package at *path* (folder or flat file) is still what the reading with *signature* saw."""
    try:
        reading, rows = _decode(signature)
    except msgspec.DecodeError:
        return False
    if reading != READING:
        return False
    lstat = os.lstat
    try:
        for rel, mode, size, mtime, ctime, inode in rows:
            status = lstat(path + rel)
            if (
                status.st_ctime_ns != ctime
                or status.st_ino != inode
                or status.st_size != size
                or status.st_mtime_ns != mtime
                or status.st_mode != mode
            ):
                return False
    except OSError:
        return False
    return bool(rows)


def survey(path: str) -> Survey:
    """
    Return the quick look at the package *path*, a folder or a flat file.

    Raises:
        OSError: There is nothing, or it cannot be listed.
    """
    found = Survey()
    rows = found.rows
    # A folder is asked for its times before it is listed: what comes later then shows as a change.
    status = os.lstat(path)
    rows.append(_row("", status))
    if not stat.S_ISDIR(status.st_mode):
        found.broken = _odd_rows(rows, path)
        return found
    with os.scandir(path) as scan:
        top = sorted(scan, key=_by_name)
    found.own_vcs = vcs_name(entry.name for entry in top)
    waiting: list[tuple[str, list[os.DirEntry[str]], int]] = [("/", top, 0)]
    while waiting:
        prefix, listed, depth = waiting.pop()
        for entry in listed:
            name = entry.name
            try:
                is_dir = entry.is_dir(follow_symlinks=False)
                if is_dir and name in IGNORED_FOLDERS:
                    continue
                rows.append(_row(prefix + name, entry.stat(follow_symlinks=False)))
                if is_dir:
                    if depth >= MAX_DEPTH:
                        found.broken = f"folders nested more than {MAX_DEPTH} deep: {printable_path(prefix[1:] + name)}"
                        continue
                    with os.scandir(entry.path) as scan:
                        waiting.append((f"{prefix}{name}/", sorted(scan, key=_by_name), depth + 1))
            except OSError as error:
                found.broken = f"cannot be read: {printable_path(prefix[1:] + name)}: {error.strerror}"
                continue
            if depth and len(name) == len(SKILL_FILE) and name.lower() == SKILL_FILE.lower():
                found.nested.append(prefix[1:] + name)
        if len(rows) > MAX_FILES:
            found.broken = f"more than {MAX_FILES} files and folders: too large for a skill"
            break
    found.broken = found.broken or _odd_rows(rows, path)
    return found


def vcs_name(names: Iterable[str]) -> str | None:
    """Return which of *names* says that a folder is under a version control of its own."""
    return min(_VCS_NAMES.intersection(names), default=None)


def _by_name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _row(rel: str, status: os.stat_result) -> Row:
    return rel, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _odd_rows(rows: Sequence[Row], path: str) -> str | None:
    """Return why the package at *path* with *rows* must not be opened, or None."""
    total = 0
    for rel, mode, size, _, _, _ in rows:
        name = printable_path(rel[1:] or path.rpartition("/")[2])
        kind = stat.S_IFMT(mode)
        if kind == stat.S_IFREG:
            total += size
            if size > MAX_FILE_BYTES:
                return f"{name} is {size} bytes: too large for a skill"
        elif kind not in (stat.S_IFLNK, stat.S_IFDIR):
            return f"{name} is {_KINDS.get(kind, 'no ordinary file')}, which is never opened"
        if not rel.isascii() and rel[1:] != name:
            return f"a file name is not UTF-8: {name}"
    return f"{total} bytes in all: too large for a skill" if total > MAX_PACKAGE_BYTES else None


_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def is_racy(found: Survey, begun_ns: int) -> bool:
    """Return whether a reading that began at *begun_ns* (system clock, ns since 1970) could miss a later write."""
    return max(max(row[3], row[4]) for row in found.rows) > begun_ns - RACY_NS


def _files(found: Survey, path: str) -> Iterator[tuple[str, Row]]:
    """Yield (path within the package, row) of every file and link that counts for identity."""
    for row in found.rows:
        rel = row[0][1:] or path.rpartition("/")[2]
        if not stat.S_ISDIR(row[1]) and not is_ignored(rel, link=stat.S_ISLNK(row[1])):
            yield rel, row


def read_content(path: str, found: Survey, entry_file: str) -> SkillContent:
    """
    Return what the package at *path* (folder or flat file) says, read in full.

    Args:
        found: A quick look made just before.
        entry_file: Which of its files makes it a skill.

    Raises:
        ChangedWhileReadError: It is not any more what *found* saw; look again.
    """
    from curatord.core.package import describe  # the parsers, which a look at an unchanged library does not need

    base = _base(path, found)
    broken = found.broken
    files: list[ReadFile] = []
    newest = 0
    for rel, row in _files(found, path):
        newest = max(newest, row[3])
        # Of a package that cannot be read as a whole only the entry file is, to say whose it is.
        if found.broken and (rel != entry_file or not stat.S_ISREG(row[1]) or row[2] > MAX_ENTRY_BYTES):
            continue
        try:
            files.append(_read_row(base, rel, row, keep=rel == entry_file))
        except PermissionError as error:
            broken = broken or f"cannot be read: {printable_path(rel)}: {error.strerror}"
    return describe(
        files,
        entry_file,
        newest_ns=newest,
        nested=found.nested,
        flat=base != path,
        broken=broken,
        own_vcs=found.own_vcs,
    )


def _base(path: str, found: Survey) -> str:
    """Return the folder that the paths within the package at *path* start from."""
    return path if stat.S_ISDIR(found.rows[0][1]) else path.rpartition("/")[0]


def _read_row(base: str, rel: str, row: Row, *, keep: bool) -> ReadFile:
    """Return one file or link with its digest; its content with *keep* or where it is a short text."""
    mode, size = row[1:3]
    if stat.S_ISLNK(mode):
        try:
            target = str(Path(base, rel).readlink())
        except OSError as error:
            raise ChangedWhileReadError(f"{base}/{rel} changed while it was read") from error
        return ReadFile(entry=link_entry(rel, target), data=None, link_target=printable_path(target))
    limit = MAX_ENTRY_BYTES if keep else MAX_TEXT_BYTES if rel.endswith((".md", ".markdown")) else 0
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
    for _ in range(ATTEMPTS):
        try:
            return tuple(sorted(_entries(path), key=lambda entry: entry.rel))
        except ChangedWhileReadError as error:
            last = error
    raise last


def fingerprint_of(path: str) -> Fingerprint:
    """Return the fingerprint of the package at *path*, read now; raises as `entries_of`."""
    return fingerprint(entries_of(path))


def _entries(path: str) -> Iterator[PackageEntry]:
    try:
        found = survey(path)
    except PermissionError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if found.broken is not None:
        raise InputError(f"{path}: {found.broken}")
    base = _base(path, found)
    for rel, row in _files(found, path):
        try:
            yield _read_row(base, rel, row, keep=False).entry
        except PermissionError as error:
            raise InputError(f"{base}/{rel} cannot be read: {error.strerror}") from error

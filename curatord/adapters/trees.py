"""
Sealing a package and copying one to another file system, both relative to open folders and never through a link.

A *seal* is a hash over everything that "byte for byte" means: sorted relative paths, types, permission bits, link
targets, contents; empty folders count. Times, owners and hard-link counts do not. Beside it comes a cheap *trace* of
the same walk (inodes, sizes, change times), with which a later look tells whether anybody wrote to the tree meanwhile.

Special files (FIFO, socket, device) are sealed by type and are never opened, so nothing hangs; they can be renamed with
their package, but not be copied.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from curatord.adapters.disk import Disk
from curatord.core.cheap import dataclass
from curatord.core.journal import Seal
from curatord.errors import InputError
from curatord.ports.mutator import LinkError

__all__ = ["SealedTree", "copy_tree", "names_in", "remove_tree", "seal_at", "trace_at"]

CHUNK = 1 << 20
MAX_DEPTH = 64  # a package deeper than this is no package; the bound keeps open descriptors few
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIR_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedTree:
    """A package as it stood at one moment; *trace* is comparable within one process only."""

    seal: Seal
    trace: str


def seal_at(folder: int, name: str) -> SealedTree:
    """
    Return the seal of what stands at *name* in *folder*: a folder with all below it, a file, or a link.

    Raises:
        FileNotFoundError: Nothing stands there, or it vanished while we looked.
        OSError: Something in it cannot be read.
    """
    seal = hashlib.sha256()
    trace = hashlib.sha256()
    for path, found, detail in _walk(folder, name, contents=True):
        head = f"{path}\0{stat.S_IFMT(found.st_mode):o}\0{stat.S_IMODE(found.st_mode):o}\0"
        seal.update(os.fsencode(head) + detail + b"\n")
        trace.update(_trace_of(path, found))
    return SealedTree(seal=Seal(seal.hexdigest()), trace=trace.hexdigest())


def trace_at(folder: int, name: str) -> str:
    """Return the trace alone, without reading any content; raises like `seal_at`."""
    trace = hashlib.sha256()
    for path, found, _ in _walk(folder, name, contents=False):
        trace.update(_trace_of(path, found))
    return trace.hexdigest()


def _trace_of(path: str, found: os.stat_result) -> bytes:
    # The change time of the top itself is moved by our own rename; below it nothing but an edit moves it.
    changed = found.st_ctime_ns if path else 0
    told = (found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, changed)
    return os.fsencode(path) + repr(told).encode()


def _walk(folder: int, name: str, *, contents: bool, path: str = "") -> Iterator[tuple[str, os.stat_result, bytes]]:
    """Yield (path, stat, hash of the content or link target) for *name* and all below it, in sorted order."""
    if path.count("/") >= MAX_DEPTH:
        raise InputError(f"folders are nested deeper than {MAX_DEPTH} below the package: {path!r}")
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        yield path, found, os.fsencode(os.readlink(name, dir_fd=folder)) if contents else b""
    elif stat.S_ISREG(found.st_mode):
        yield path, found, _hash(folder, name) if contents else b""
    elif stat.S_ISDIR(found.st_mode):
        yield path, found, b""
        below = os.open(name, _DIR_FLAGS, dir_fd=folder)
        try:
            for child in names_in(below):
                yield from _walk(below, child, contents=contents, path=f"{path}/{child}")
        finally:
            os.close(below)
    else:
        yield path, found, b""


def names_in(folder: int) -> list[str]:
    """Return the sorted names in an open folder."""
    return sorted(os.listdir(folder))  # pathlib cannot list an open folder


def _hash(folder: int, name: str) -> bytes:
    descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise LinkError(f"{name!r} turned into something else while it was read")
        told = hashlib.sha256()
        while chunk := os.read(descriptor, CHUNK):
            told.update(chunk)
        return told.digest()
    finally:
        os.close(descriptor)


def copy_tree(disk: Disk, source: int, name: str, target: int, new_name: str) -> None:
    """
    Copy a package to another file system, synced file by file; the caller verifies it by its seal.

    Modes, links, empty folders, extended attributes and file times are kept; owners too, where we may.

    Raises:
        InputError: It holds a FIFO, socket or device.
        OSError: As the disk says.
    """
    disk.hook("copy")
    found = os.stat(name, dir_fd=source, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), new_name, dir_fd=target)
    elif stat.S_ISREG(found.st_mode):
        _copy_file(disk, source, name, target, new_name, found)
    elif stat.S_ISDIR(found.st_mode):
        os.mkdir(new_name, 0o700, dir_fd=target)
        below = os.open(name, _DIR_FLAGS, dir_fd=source)
        try:
            new_below = os.open(new_name, _DIR_FLAGS, dir_fd=target)
            try:
                for child in names_in(below):
                    copy_tree(disk, below, child, new_below, child)
                _copy_attributes(below, new_below)
                _dress(new_below, found)
                disk.sync_dir(new_below)
            finally:
                os.close(new_below)
        finally:
            os.close(below)
    else:
        raise InputError(f"{name!r} is neither file, folder nor link, and cannot go to another file system")
    disk.hook("copy.done")


def _copy_file(disk: Disk, source: int, name: str, target: int, new_name: str, found: os.stat_result) -> None:
    reading = os.open(name, _FILE_FLAGS, dir_fd=source)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        writing = os.open(new_name, flags, 0o600, dir_fd=target)
        try:
            disk.hook("write")
            while chunk := os.read(reading, CHUNK):
                left = memoryview(chunk)
                while left:
                    left = left[os.write(writing, left) :]
            _copy_attributes(reading, writing)
            _dress(writing, found)
            disk.hook("sync")
            os.fsync(writing)
            disk.hook("sync.done")
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _copy_attributes(reading: int, writing: int) -> None:
    """Copy the extended attributes that belong to the user, where both file systems know them."""
    with suppress(OSError, AttributeError):
        for name in os.listxattr(reading):
            if name.startswith("user."):
                os.setxattr(writing, name, os.getxattr(reading, name))


def _dress(descriptor: int, found: os.stat_result) -> None:
    if os.geteuid() == 0:
        with suppress(PermissionError):  # root in a service or container that took the right from it
            os.fchown(descriptor, found.st_uid, found.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(found.st_mode))
    os.utime(descriptor, ns=(found.st_atime_ns, found.st_mtime_ns))


def remove_tree(disk: Disk, folder: int, name: str) -> None:
    """
    Remove a copy: what stands at *name* is, by its seal, whole somewhere else, or is our own unfinished copy.

    This is no way to delete a skill: `mutate` calls it for its own temporary names only, after verification.
    """
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISDIR(found.st_mode):
        below = os.open(name, _DIR_FLAGS, dir_fd=folder)
        try:
            if stat.S_IMODE(found.st_mode) & 0o700 != 0o700:
                os.fchmod(below, 0o700)  # a folder kept read-only would keep its copy for ever
            for child in names_in(below):
                remove_tree(disk, below, child)
        finally:
            os.close(below)
        disk.hook("rmdir")
        os.rmdir(name, dir_fd=folder)
        disk.hook("rmdir.done")
    else:
        disk.unlink(folder, name)

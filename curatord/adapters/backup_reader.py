"""
Reading folders into a backup: every name as bytes, relative to open folders, no link followed, nothing special opened.

Somebody may be writing meanwhile. A file is asked what it is before and after it is read, and read again where that
differs; one that never stands still is left out and named. What vanishes between the list and the look was not there.
A folder that has a `pyvenv.cfg` is a virtual environment whatever it is called, and is made anew by whoever made it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from curatord.adapters.backup_store import BackupStore, attributes_to_bytes
from curatord.adapters.disk import open_dir
from curatord.adapters.trees import names_in
from curatord.core.backup import MAX_DEPTH, MAX_LEFT_OUT, Entry, LeftOut, content_id, quoted, render_tree, why_left_out
from curatord.core.cheap import dataclass, field
from curatord.core.values import BlobId
from curatord.errors import InputError
from curatord.ports.backups import FoundTree, TooLargeError
from curatord.ports.mutator import LinkError

__all__ = ["BackupReader"]

MAX_FILE_BYTES = 64 * 1024 * 1024  # as for packages: a larger file makes a skill too large to be managed
MAX_ENTRIES = 500_000  # of one folder with all below it
ATTEMPTS = 3
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIR_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SPECIAL = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


class _Keeper:
    """Where a reader puts what it reads: into the store, or, for a look, nowhere but in this memory."""

    def __init__(self, store: BackupStore | None) -> None:
        self.store = store
        self.trees: dict[BlobId, tuple[Entry, ...]] = {}

    def keep(self, data: bytes) -> BlobId:
        if self.store is not None:
            return self.store.keep(data)
        import hashlib

        return BlobId(hashlib.sha256(data).hexdigest())

    def keep_tree(self, entries: Sequence[Entry]) -> BlobId:
        ordered = tuple(sorted(entries, key=lambda entry: entry.name))
        ref = self.keep(render_tree(ordered))
        if self.store is None:
            self.trees[ref] = ordered
        return ref

    def tree(self, ref: BlobId) -> tuple[Entry, ...]:
        return self.trees[ref]


@dataclass(slots=True, kw_only=True)
class BackupReader:
    """The real `TreeReader`. *max_bytes* bounds what one backup may need in all."""

    store: BackupStore
    max_bytes: int

    def read(self, path: str, *, apart: Collection[str] = (), hidden: Collection[str] = ()) -> FoundTree:
        """See `TreeReader.read`."""
        walk = _Walk(keeper=_Keeper(self.store), limit=self._limit, apart=_identities(apart))
        with open_dir(path) as folder:
            found = os.fstat(folder)
            names = [name for name in names_in(folder) if self._is_read(folder, name, hidden)]
            ref = walk.folder(folder, b"", names, 0)
            top = Entry(
                name=b"top",
                kind="dir",
                mode=stat.S_IMODE(found.st_mode),
                ref=ref,
                attributes=walk.attributes(folder),
            )
        return FoundTree(
            top=top,
            left_out=tuple(walk.left_out),
            left_out_count=walk.left_out_count,
            files=walk.files,
            bytes=walk.size_bytes,
        )

    def _is_read(self, folder: int, name: str, hidden: Collection[str]) -> bool:
        if not name.startswith(".") or name in hidden:
            return True
        try:
            return not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        except OSError:
            return False

    def _limit(self) -> None:
        if self.store.needed_bytes() > self.max_bytes:
            raise TooLargeError(
                f"it would need more than {self.max_bytes} bytes, which is all that backups may need together",
                hint="raise backups.max_size",
            )

    def read_file(self, path: str) -> tuple[BlobId, int] | None:
        """See `TreeReader.read_file`."""
        above, _, name = path.rpartition("/")
        try:
            with open_dir(above or "/") as folder:
                data, found, _ = _read(folder, os.fsencode(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            link = error.errno == errno.ELOOP
            raise InputError("it is a link, which is not followed" if link else f"cannot be read: {error}") from error
        return self.store.keep(data), stat.S_IMODE(found.st_mode)

    def look(self, root: str, path: bytes) -> tuple[Entry, str] | None:
        """See `TreeReader.look`."""
        keeper = _Keeper(None)
        above, _, name = path.rpartition(b"/")
        walk = _Walk(keeper=keeper, limit=lambda: None, apart=frozenset())
        try:
            with open_dir(root, os.fsdecode(above)) as folder:
                entry = walk.entry(folder, name, above + b"/" if above else b"", above.count(b"/") + 1)
        except FileNotFoundError:
            return None
        if walk.left_out:
            raise InputError(f"{walk.left_out[0].path}: {walk.left_out[0].why}")
        return None if entry is None else (entry, content_id(entry, keeper.tree))


@dataclass(slots=True, kw_only=True)
class _Walk:
    keeper: _Keeper
    limit: Callable[[], None]
    apart: frozenset[tuple[int, int]]
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_count: int = 0
    files: int = 0
    size_bytes: int = 0
    entries: int = 0

    def folder(self, folder: int, path: bytes, names: Sequence[str], depth: int) -> BlobId:
        """Keep the open *folder* with those of its *names* that belong into a backup."""
        found = []
        for name in sorted(os.fsencode(name) for name in names):
            entry = self.entry(folder, name, path, depth + 1)
            if entry is not None:
                found.append(entry)
        return self.keeper.keep_tree(found)

    def entry(self, folder: int, name: bytes, path: bytes, depth: int) -> Entry | None:
        """Return what stands at *name*, kept; None where it is left out."""
        try:
            return self._entry(folder, name, path, depth)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
                self._leave(path + name, "it turned into something else while it was read")
            else:
                self._leave(path + name, f"cannot be read: {error.strerror or error}")
        return None

    def _entry(self, folder: int, name: bytes, path: bytes, depth: int) -> Entry | None:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        is_dir = stat.S_ISDIR(found.st_mode)
        if why_left_out(name, folder=is_dir) is not None and not stat.S_ISLNK(found.st_mode):
            return None
        self.entries += 1
        if self.entries > MAX_ENTRIES:
            raise TooLargeError(f"there are more than {MAX_ENTRIES} files and folders", hint="is that a library?")
        if stat.S_ISLNK(found.st_mode):
            return Entry(name=name, kind="link", target=os.fsencode(os.readlink(name, dir_fd=folder)))
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISREG(found.st_mode):
            return self._file(folder, name, path, found)
        if not is_dir:
            what = _SPECIAL.get(stat.S_IFMT(found.st_mode), "no ordinary file")
            self._leave(path + name, f"it is {what}, which no backup holds", ordinary=True)
            return None
        if (found.st_dev, found.st_ino) in self.apart:
            return None
        if depth > MAX_DEPTH:
            self._leave(path + name, f"folders are nested deeper than {MAX_DEPTH}")
            return None
        below = os.open(name, _DIR_FLAGS, dir_fd=folder)
        try:
            names = names_in(below)
            if "pyvenv.cfg" in names:
                return None
            ref = self.folder(below, path + name + b"/", names, depth)
            return Entry(name=name, kind="dir", mode=mode, ref=ref, attributes=self.attributes(below))
        finally:
            os.close(below)

    def _file(self, folder: int, name: bytes, path: bytes, found: os.stat_result) -> Entry | None:
        if found.st_size > MAX_FILE_BYTES:
            self._leave(path + name, f"it has {found.st_size} bytes, more than the {MAX_FILE_BYTES} of a skill's file")
            return None
        try:
            data, found, attributes = _read(folder, name)
        except InputError as error:
            self._leave(path + name, str(error))
            return None
        self.files += 1
        self.size_bytes += len(data)
        ref = self.keeper.keep(data)
        self.limit()
        return Entry(
            name=name,
            kind="file",
            mode=stat.S_IMODE(found.st_mode),
            ref=ref,
            size=len(data),
            mtime_ns=found.st_mtime_ns,
            attributes=self._kept_attributes(attributes),
        )

    def attributes(self, descriptor: int) -> BlobId:
        """Keep the extended attributes of an open folder; empty where there are none."""
        return self._kept_attributes(_attributes(descriptor))

    def _kept_attributes(self, attributes: Sequence[tuple[str, bytes]]) -> BlobId:
        return self.keeper.keep(attributes_to_bytes(attributes)) if attributes else BlobId("")

    def _leave(self, path: bytes, why: str, *, ordinary: bool = False) -> None:
        self.left_out_count += 1
        if len(self.left_out) < MAX_LEFT_OUT:
            self.left_out.append(LeftOut(path=quoted(path), why=why, ordinary=ordinary))


def _read(folder: int, name: bytes) -> tuple[bytes, os.stat_result, Sequence[tuple[str, bytes]]]:
    """Return content, facts and extended attributes of a file that stood still while it was read."""
    for _ in range(ATTEMPTS):
        descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise LinkError("it turned into something else while it was read")
            data = file.read(MAX_FILE_BYTES + 1)
            attributes = _attributes(descriptor)
            after = os.fstat(descriptor)
        if _facts(before) == _facts(after) and len(data) == after.st_size:
            return data, after, attributes
    raise InputError("it kept changing while it was read")


def _attributes(descriptor: int) -> Sequence[tuple[str, bytes]]:
    """Return the extended attributes of something open that belong to its user."""
    try:
        names = [name for name in os.listxattr(descriptor) if name.startswith("user.")]
        return [(name, os.getxattr(descriptor, name)) for name in names]
    except (OSError, AttributeError):  # a file system, or a Python, without them
        return ()


def _facts(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode


def _identities(paths: Collection[str]) -> frozenset[tuple[int, int]]:
    """Return how the folders *paths* are known whatever they are called; those that are not there cannot be met."""
    known = set()
    for path in paths:
        try:
            found = Path(path).stat()
        except OSError:
            continue
        known.add((found.st_dev, found.st_ino))
    return frozenset(known)

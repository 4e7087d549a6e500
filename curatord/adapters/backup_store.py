"""
`<state_dir>/backups/`: contents and trees by their hash (`blobs/`), and one manifest a backup (`<id>.backup`).

*A backup is listed when it is whole.* Contents are written under `incoming/`, synced there, renamed to their hash,
and their folders synced; the manifest comes last. A kill before that leaves bytes that nothing names, which the next
backup or collection removes; a kill after it leaves a backup.

*A listed backup is never robbed.* Dropping one takes its manifest away first and its bytes afterwards, and only those
that no other listed backup needs. While any listed one cannot be read as a whole, nobody knows what it needs, and no
byte is removed at all.

*Damage is found and mended.* Everything is hashed when it is read. A content that a new backup needs and that lies here
damaged is written anew from the library, which makes older backups whole again.

One lock (`backup.lock`) is held by whoever makes, drops or takes out; listing needs none.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from curatord.adapters.disk import Disk, open_dir
from curatord.adapters.lock import backup_lock
from curatord.core.backup import (
    BackupId,
    Entry,
    Manifest,
    age_key,
    is_backup_id,
    manifest_from_bytes,
    manifest_to_bytes,
    parse_tree,
    render_tree,
)
from curatord.core.cheap import dataclass, field
from curatord.core.values import BlobId
from curatord.errors import StateError
from curatord.ports.backups import DamagedBackupError

__all__ = ["FOLDER", "BackupStore"]

FOLDER = "backups"
_SHELF = re.compile("[0-9a-f]{2}")
_CONTENT = re.compile("[0-9a-f]{64}")
_SUFFIX = ".backup"


@dataclass(slots=True, kw_only=True)
class BackupStore:
    """The backups of one state folder; tests cut at the hook of *disk*, and the lock is waited for *wait_s* seconds."""

    state_dir: Path
    disk: Disk = field(default_factory=Disk)
    wait_s: float = 10.0
    _fresh: dict[BlobId, int] = field(default_factory=dict, init=False)
    _trees: dict[BlobId, tuple[Entry, ...]] = field(default_factory=dict, init=False)
    _holding: bool = field(default=False, init=False)

    @property
    def folder(self) -> Path:
        """Where they are."""
        return self.state_dir / FOLDER

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the backups' lock; `BusyError` where another process does."""
        with backup_lock(self.state_dir, self.wait_s):
            self._holding = True
            try:
                yield
            finally:
                self._holding = False
                self._trees.clear()

    # -- looking

    def ids(self) -> tuple[BackupId, ...]:
        """See `Backups.ids`."""
        try:
            names = [path.name for path in self.folder.iterdir()]
        except FileNotFoundError:
            return ()
        found = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
        return tuple(BackupId(name) for name in sorted(filter(is_backup_id, found), key=age_key, reverse=True))

    def manifest(self, backup: BackupId) -> Manifest:
        """See `Backups.manifest`."""
        path = self.folder / f"{backup}{_SUFFIX}"
        try:
            manifest = manifest_from_bytes(_read_file(path))
        except FileNotFoundError as error:
            raise DamagedBackupError(f"there is no backup {backup}", hint="curatord backup list names them") from error
        except (OSError, ValueError) as error:
            raise DamagedBackupError(
                f"backup {backup} cannot be read: {error}", hint=f"its file is {path}; take another backup"
            ) from error
        if manifest.id != backup:
            raise DamagedBackupError(f"backup {backup} says that it is {manifest.id}", hint=f"its file is {path}")
        return manifest

    def content(self, ref: BlobId) -> bytes:
        """See `Backups.content`."""
        path = self._path(ref)
        try:
            data = _read_file(path)
        except OSError as error:
            raise DamagedBackupError(f"a kept content is gone: {error.strerror} ({path})") from error
        if hashlib.sha256(data).hexdigest() != ref:
            raise DamagedBackupError(f"a kept content is damaged: {path}")
        return data

    def tree(self, ref: BlobId) -> tuple[Entry, ...]:
        """See `Backups.tree`."""
        known = self._trees.get(ref)
        if known is None:
            try:
                known = self._trees[ref] = parse_tree(self.content(ref))
            except ValueError as error:
                raise DamagedBackupError(f"a kept folder cannot be read: {error} ({self._path(ref)})") from error
        return known

    def _path(self, ref: str) -> Path:
        return self.folder / "blobs" / ref[:2] / ref

    # -- making

    def begin(self) -> None:
        """See `Backups.begin`."""
        assert self._holding, "a backup is made under its lock"
        self._make_dirs()
        self.abandon()

    def keep(self, data: bytes) -> BlobId:
        """See `Backups.keep`."""
        ref = BlobId(hashlib.sha256(data).hexdigest())
        if ref not in self._fresh:
            try:
                if not self._is_kept(ref, data):
                    self._bring_in(ref, data)
            except OSError as error:  # said here, since a reader's own errors are about the library
                raise StateError(
                    f"no backup was made: {error.strerror or error}",
                    hint="look at the free space and the permissions of the state folder; earlier backups stay",
                ) from error
            self._fresh[ref] = len(data)
        return ref

    def _bring_in(self, ref: BlobId, data: bytes) -> None:
        self.disk.hook("backup.write")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self.folder / "incoming" / ref, flags, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        self.disk.hook("backup.write.done")

    def keep_tree(self, entries: Sequence[Entry]) -> BlobId:
        """See `Backups.keep_tree`."""
        return self.keep(render_tree(entries))

    def _is_kept(self, ref: BlobId, data: bytes) -> bool:
        """Return whether *data* lies here whole: what is damaged is written again."""
        try:
            path = self._path(ref)
            return path.lstat().st_size == len(data) and _read_file(path) == data
        except (FileNotFoundError, NotAFileError):
            return False

    def needed_bytes(self) -> int:
        """See `Backups.needed_bytes`."""
        return sum(self._fresh.values())

    def commit(self, manifest: Manifest) -> None:
        """See `Backups.commit`."""
        assert self._holding, "a backup is made under its lock"
        incoming = self.folder / "incoming"
        names = sorted(path.name for path in incoming.iterdir())
        for name in names:
            self._check_and_sync(incoming / name, name)
        blobs = self.folder / "blobs"
        for first in sorted({name[:2] for name in names}):
            (blobs / first).mkdir(mode=0o700, exist_ok=True)
        for name in names:
            self.disk.hook("backup.rename")
            (incoming / name).rename(self._path(name))
            self.disk.hook("backup.rename.done")
        for first in sorted({name[:2] for name in names}):
            _sync_folder(blobs / first)
        _sync_folder(blobs)
        self.disk.put(self.folder / f"{manifest.id}{_SUFFIX}", manifest_to_bytes(manifest))

    def abandon(self) -> None:
        """See `Backups.abandon`."""
        assert self._holding, "what is not listed is forgotten under the lock"
        self._fresh.clear()
        with suppress(OSError):
            for path in (self.folder / "incoming").iterdir():
                path.unlink()

    def _check_and_sync(self, path: Path, ref: str) -> None:
        """Read back what was written, so that a backup that says it is there can be taken out (bugs B036)."""
        self.disk.hook("backup.sync")
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            os.fsync(descriptor)
            if hashlib.sha256(file.read()).hexdigest() != ref:
                raise StateError(f"{path} is not what was written", hint="look at that disk; no backup was made")
        self.disk.hook("backup.sync.done")

    def _make_dirs(self) -> Path:
        for path in (self.folder, self.folder / "blobs", self.folder / "incoming"):
            path.mkdir(mode=0o700, exist_ok=True)
        return self.folder

    # -- what is needed, and what is not

    def needs(self, manifest: Manifest) -> dict[str, int]:
        """See `Backups.needs`."""
        needed: dict[str, int] = {}
        for library in manifest.libraries:
            for top in (library.top(), library.archive_top()):
                if top is not None:
                    self._need(top, needed)
            for file in library.host_files:
                self._need_content(BlobId(file.ref), needed)
        return needed

    def _need(self, entry: Entry, needed: dict[str, int]) -> None:
        if entry.attributes:
            self._need_content(entry.attributes, needed)
        if entry.kind == "file":
            self._need_content(entry.ref, needed)
        elif entry.kind == "dir" and entry.ref not in needed:
            self._need_content(entry.ref, needed)
            for below in self.tree(entry.ref):
                self._need(below, needed)

    def _need_content(self, ref: BlobId, needed: dict[str, int]) -> None:
        if ref not in needed:
            try:
                needed[ref] = self._path(ref).stat().st_size
            except FileNotFoundError:
                needed[ref] = 0  # lost: found when it is taken out, and by `backup verify`

    def drop(self, backup: BackupId) -> None:
        """See `Backups.drop`."""
        assert self._holding, "a backup is dropped under its lock"
        with open_dir(str(self.folder)) as folder:
            self.disk.unlink(folder, f"{backup}{_SUFFIX}")
            self.disk.sync_dir(folder)

    def collect(self) -> int:
        """See `Backups.collect`."""
        assert self._holding, "bytes are dropped under the lock"
        needed: set[str] = set()
        for backup in self.ids():
            needed.update(self.needs(self.manifest(backup)))
        freed = 0
        for path in self._blobs():
            if path.name not in needed:
                self.disk.hook("backup.unlink")
                freed += path.stat().st_size
                path.unlink()
                self.disk.hook("backup.unlink.done")
        return freed

    def _blobs(self) -> Iterator[Path]:
        """Yield the kept contents; what somebody else put beside them is not ours to count or to drop."""
        blobs = self.folder / "blobs"
        with suppress(FileNotFoundError):
            for first in sorted(blobs.iterdir()):
                if _SHELF.fullmatch(first.name) and first.is_dir() and not first.is_symlink():
                    yield from (
                        path
                        for path in sorted(first.iterdir())
                        if _CONTENT.fullmatch(path.name) and stat.S_ISREG(path.lstat().st_mode)
                    )

    def total_bytes(self) -> int:
        """See `Backups.total_bytes`."""
        manifests = (self.folder / f"{backup}{_SUFFIX}" for backup in self.ids())
        return sum(path.lstat().st_size for path in (*self._blobs(), *manifests))

    # -- taking out

    def take_out(self, entry: Entry, folder: int, name: str, like: os.stat_result) -> list[str]:
        """See `Backups.take_out`."""
        return list(self._out(entry, folder, os.fsencode(name), like, name))

    def _out(self, entry: Entry, folder: int, name: bytes, like: os.stat_result, shown: str) -> Iterator[str]:
        self.disk.hook("backup.out")
        if entry.kind == "link":
            os.symlink(entry.target, name, dir_fd=folder)
            if os.geteuid() == 0:
                os.chown(name, like.st_uid, like.st_gid, dir_fd=folder, follow_symlinks=False)
            return
        if entry.kind == "file":
            try:
                data = self.content(entry.ref)
            except DamagedBackupError as error:
                yield f"{shown}: {error}"
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, 0o600, dir_fd=folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                yield from self._dress(descriptor, entry, like, shown)
                os.utime(descriptor, ns=(entry.mtime_ns, entry.mtime_ns))
                os.fsync(descriptor)
            return
        try:
            entries = self.tree(entry.ref)
        except DamagedBackupError as error:
            yield f"{shown}: {error}"
            return
        os.mkdir(name, 0o700, dir_fd=folder)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            for one in entries:
                yield from self._out(one, below, one.name, like, f"{shown}/{os.fsdecode(one.name)}")
            yield from self._dress(below, entry, like, shown)
            os.fsync(below)
        finally:
            os.close(below)

    def _dress(self, descriptor: int, entry: Entry, like: os.stat_result, shown: str) -> Iterator[str]:
        """Give what was made its owner, extended attributes and mode, in this order: each would undo the one before."""
        if os.geteuid() == 0:
            os.fchown(descriptor, like.st_uid, like.st_gid)
        if entry.attributes:
            try:
                for name, value in _attributes(self.content(entry.attributes)):
                    os.setxattr(descriptor, name, value)
            except (OSError, ValueError, DamagedBackupError) as error:
                yield f"{shown}: its extended attributes could not be put back: {error}"
        os.fchmod(descriptor, stat.S_IMODE(entry.mode))

    # -- asking

    def check(self, manifest: Manifest) -> list[str]:
        """See `Backups.check`."""
        damaged: list[str] = []
        seen: set[str] = set()
        for library in manifest.libraries:
            for top in (library.top(), library.archive_top()):
                if top is not None:
                    self._check(top, f"{library.name}/{os.fsdecode(top.name)}", seen, damaged)
            for file in library.host_files:
                self._check_content(BlobId(file.ref), f"{library.name}: {file.path}", seen, damaged)
        return damaged

    def _check(self, entry: Entry, shown: str, seen: set[str], damaged: list[str]) -> None:
        for ref in (entry.attributes, entry.ref if entry.kind == "file" else BlobId("")):
            if ref:
                self._check_content(ref, shown, seen, damaged)
        if entry.kind == "dir" and entry.ref not in seen:
            seen.add(entry.ref)
            try:
                entries = self.tree(entry.ref)
            except DamagedBackupError as error:
                damaged.append(f"{shown}: {error}")
                return
            for below in entries:
                self._check(below, f"{shown}/{os.fsdecode(below.name)}", seen, damaged)

    def _check_content(self, ref: BlobId, shown: str, seen: set[str], damaged: list[str]) -> None:
        if ref not in seen:
            seen.add(ref)
            try:
                self.content(ref)
            except DamagedBackupError as error:
                damaged.append(f"{shown}: {error}")


def attributes_to_bytes(attributes: Sequence[tuple[str, bytes]]) -> bytes:
    """Return extended attributes as one content, sorted by name."""
    from curatord.core.backup import as_bytes, quoted

    return "".join(f"{quoted(as_bytes(name))} {quoted(value)}\n" for name, value in sorted(attributes)).encode()


class NotAFileError(OSError):
    """There is a link, a folder, a pipe … where a file of the store should be."""


def _read_file(path: Path) -> bytes:
    """Return the bytes of an ordinary file; a pipe in its place makes nobody wait, a link leads nowhere."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise NotAFileError(error.errno, "it is no ordinary file", str(path)) from error
        raise
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotAFileError(errno.EINVAL, "it is no ordinary file", str(path))
        return file.read()


def _attributes(data: bytes) -> list[tuple[str, bytes]]:
    from curatord.core.backup import as_text, unquoted

    found = []
    for line in data.decode("ascii").splitlines():
        name, _, value = line.partition(" ")
        found.append((as_text(unquoted(name)), unquoted(value)))
    return found


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

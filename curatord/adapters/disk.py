"""
The few things that are ever done to a file system, relative to an open folder, each synced, each with a place to cut.

*Links.* Every path below a root is walked part by part with `O_NOFOLLOW`, and everything is done relative to the
descriptor of its folder: a folder that is swapped for a link while we work leads nowhere (`LinkError`), never out.

*Loss.* Replacing a file goes through a temporary sibling that is exchanged with it in one step where the kernel can do
that (Linux `RENAME_EXCHANGE`): what was there is looked at once more after it was taken out, so an edit that slipped
in between the look and the rename is found and put back. Nothing is ever renamed over something unseen
(`RENAME_NOREPLACE`, its like on macOS, else a look before).

*Cuts.* `Disk.hook` is called with a name before and after every effect (`rename`, `rename.done`, …). Tests kill the
process or raise "no space" there; the default does nothing.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from curatord.core.cheap import dataclass, field
from curatord.core.journal import Place
from curatord.ports.mutator import LinkError, TakenError

__all__ = ["Disk", "TornWriteError", "exists_at", "open_dir", "parent_of"]

_DIR_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NOREPLACE = 1
_EXCHANGE = 2
_MACOS_EXCL = 4
_MACOS_SWAP = 2


class TornWriteError(OSError):
    """Fewer bytes arrived than were written."""


@contextmanager
def open_dir(root: str, path: str = "") -> Iterator[int]:
    """
    Yield a descriptor of the folder *path* below *root*, walked without following a link.

    Args:
        root: Absolute; it may itself be reached over links, since the configuration names it.
        path: POSIX, relative, without `..`; empty for the root itself.

    Raises:
        LinkError: A part below the root is a link or no folder.
        FileNotFoundError: A part is missing.
    """
    descriptor = os.open(root, _DIR_FLAGS)
    try:
        for part in path.split("/") if path else ():
            if part in ("", ".", ".."):
                raise LinkError(f"not a path below {root}: {path!r}")
            try:
                below = os.open(part, _DIR_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise LinkError(
                        f"{root}/{path}: {part!r} is a link or no folder", hint="put a real folder there"
                    ) from error
                raise
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def parent_of(place: Place) -> Iterator[tuple[int, str]]:
    """Yield a descriptor of the folder that holds *place*, and its name therein; raises like `open_dir`."""
    above, _, name = place.path.rpartition("/")
    if name in ("", ".", ".."):
        raise LinkError(f"not a path below {place.root}: {place.path!r}")
    with open_dir(place.root, above) as descriptor:
        yield descriptor, name


def exists_at(descriptor: int, name: str) -> os.stat_result | None:
    """Return what stands at *name* in the folder, a link as itself; None where there is nothing."""
    try:
        return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _nothing(_name: str) -> None:
    """Do nothing: the hook outside of tests."""


@dataclass(slots=True, kw_only=True)
class Disk:
    """The writing primitives; *hook* is told before and after each effect."""

    hook: Callable[[str], None] = field(default=_nothing)

    def write_new(self, folder: int, name: str, data: bytes, *, mode: int, like: os.stat_result | None = None) -> None:
        """
        Make the file *name* with *data*, synced; the folder is not synced yet.

        *like* gives the owner (who runs as root for another user must not take files away from that user). A torn
        write is noticed, and what was begun is removed again.
        """
        self.hook("create")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        try:
            try:
                self.hook("write")
                left = memoryview(data)
                while left:
                    count = os.write(descriptor, left)
                    if count <= 0:
                        raise TornWriteError(errno.ENOSPC, "nothing more can be written", name)
                    left = left[count:]
                self.hook("write.done")
                _give_to(descriptor, like if like is not None else os.fstat(folder))
                os.fchmod(descriptor, mode)
                self.hook("sync")
                os.fsync(descriptor)
                if os.fstat(descriptor).st_size != len(data):
                    raise TornWriteError(errno.EIO, "the file has another length than was written", name)
                self.hook("sync.done")
            finally:
                os.close(descriptor)
        except OSError:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise

    def replace(self, folder: int, name: str, temporary: str) -> bool:
        """
        Put *temporary* in the place of *name*; return whether the old file now stands at *temporary*.

        Where the kernel cannot exchange, the old one is gone, and False comes back.
        """
        self.hook("rename")
        if _rename2(folder, temporary, folder, name, _EXCHANGE):
            self.hook("rename.done")
            return True
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        self.hook("rename.done")
        return False

    def rename_new(self, source: int, name: str, target: int, new_name: str) -> None:
        """
        Rename to where nothing may stand.

        Raises:
            TakenError: Something stands there.
            OSError: With `EXDEV` where it is another file system.
        """
        self.hook("rename")
        try:
            if not _rename2(source, name, target, new_name, _NOREPLACE):
                if exists_at(target, new_name) is not None:
                    raise TakenError(f"something stands at {new_name!r} already")
                os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)
        except FileExistsError as error:
            raise TakenError(f"something stands at {new_name!r} already") from error
        self.hook("rename.done")

    def sync_dir(self, folder: int) -> None:
        """Sync the names in a folder."""
        self.hook("sync_dir")
        os.fsync(folder)
        self.hook("sync_dir.done")

    def unlink(self, folder: int, name: str) -> None:
        """Remove one file or link of ours, or one whose bytes are kept elsewhere."""
        self.hook("unlink")
        os.unlink(name, dir_fd=folder)
        self.hook("unlink.done")

    def make_dir(self, folder: int, name: str, mode: int) -> None:
        """Make a folder with exactly *mode*, whatever the umask; the parent is synced."""
        self.hook("mkdir")
        os.mkdir(name, 0o700, dir_fd=folder)
        descriptor = os.open(name, _DIR_FLAGS | os.O_NOFOLLOW, dir_fd=folder)
        try:
            _give_to(descriptor, os.fstat(folder))
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self.hook("mkdir.done")
        self.sync_dir(folder)

    def remove_empty_dir(self, folder: int, name: str) -> bool:
        """Remove a folder if it is empty; return whether it is gone."""
        self.hook("rmdir")
        try:
            os.rmdir(name, dir_fd=folder)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY, errno.ENOTDIR):
                return False
            raise
        self.hook("rmdir.done")
        self.sync_dir(folder)
        return True

    def put(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        """
        Write one of our own files in the state folder, whole or not at all, synced with its folder.

        Whatever stands there is replaced; a temporary sibling of an earlier kill is, too.
        """
        with open_dir(str(path.parent)) as folder:
            temporary = f".{path.name}.tmp"
            if exists_at(folder, temporary) is not None:
                self.unlink(folder, temporary)
            self.write_new(folder, temporary, data, mode=mode)
            self.hook("rename")
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            self.hook("rename.done")
            self.sync_dir(folder)


def _give_to(descriptor: int, like: os.stat_result) -> None:
    """Give a new file to the owner of what it stands for or beside, where that is another and we may."""
    have = os.fstat(descriptor)
    if (have.st_uid, have.st_gid) != (like.st_uid, like.st_gid) and os.geteuid() == 0:
        with suppress(PermissionError):  # root in a service or container that took the right from it
            os.fchown(descriptor, like.st_uid, like.st_gid)


@cache
def _load_rename2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    import ctypes  # nothing but this needs it

    try:
        library = ctypes.CDLL(None, use_errno=True)
        function = library.renameatx_np if sys.platform == "darwin" else library.renameat2
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    function.restype = ctypes.c_int
    return function


# Kernels, libraries and file systems that do not know it say so in different words.
_UNKNOWN = frozenset((errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM))


def _rename2(source: int, name: str, target: int, new_name: str, flag: int) -> bool:
    """Rename in one step with a condition; False where that cannot be had here, `OSError` where it was refused."""
    function = _load_rename2()
    if function is None:
        return False
    if sys.platform == "darwin":
        flag = _MACOS_EXCL if flag == _NOREPLACE else _MACOS_SWAP
    if function(source, os.fsencode(name), target, os.fsencode(new_name), flag) == 0:
        return True
    import ctypes

    number = ctypes.get_errno()
    if number in _UNKNOWN:
        return False
    raise OSError(number, os.strerror(number), name, None, new_name)

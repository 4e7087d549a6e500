"""What the backup pass asks of where backups are kept, and of the disk that they are made of."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from curatord.core.backup import BackupId, Entry, LeftOut, Manifest
from curatord.core.cheap import dataclass
from curatord.core.values import BlobId
from curatord.errors import InputError

__all__ = ["Backups", "DamagedBackupError", "FoundTree", "TooLargeError", "TreeReader"]


class DamagedBackupError(InputError):
    """A manifest, a tree or a content is not what it was, or is gone; the rest can still be taken out."""


class TooLargeError(InputError):
    """What is to be backed up is larger than all backups together may be; nothing of it was kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTree:
    """A folder as it was read: *top* with its tree kept, what is no cache and still *left_out*, and how much it is."""

    top: Entry
    left_out: tuple[LeftOut, ...] = ()
    left_out_count: int = 0
    files: int = 0
    bytes: int = 0


class Backups(Protocol):
    """The store. What changes it is called under `hold`."""

    def hold(self) -> AbstractContextManager[None]:
        """Hold the backups' lock; `BusyError` where another process does."""
        ...

    def ids(self) -> tuple[BackupId, ...]:
        """Return all listed backups, newest first."""
        ...

    def manifest(self, backup: BackupId) -> Manifest:
        """Return what *backup* says of itself, or raise `DamagedBackupError`."""
        ...

    def content(self, ref: BlobId) -> bytes:
        """Return kept bytes, verified by their hash, or raise `DamagedBackupError`."""
        ...

    def tree(self, ref: BlobId) -> tuple[Entry, ...]:
        """Return the entries of a kept folder, or raise `DamagedBackupError`."""
        ...

    def begin(self) -> None:
        """Begin a backup: what an earlier one that was cut had brought in is forgotten."""
        ...

    def keep(self, data: bytes) -> BlobId:
        """Keep *data* for the backup that was begun, written only where it does not lie here whole."""
        ...

    def keep_tree(self, entries: Sequence[Entry]) -> BlobId:
        """Keep a folder."""
        ...

    def needed_bytes(self) -> int:
        """Return how much the backup that was begun needs so far, kept before or not."""
        ...

    def commit(self, manifest: Manifest) -> None:
        """List the backup: everything it needs is on the platter before it is named."""
        ...

    def abandon(self) -> None:
        """Forget what was brought in and not listed, so that a backup that failed takes no space."""
        ...

    def needs(self, manifest: Manifest) -> dict[str, int]:
        """Return the bytes of everything that a backup needs, by hash; `DamagedBackupError` where that is not known."""
        ...

    def drop(self, backup: BackupId) -> None:
        """List a backup no more; its bytes go with `collect`."""
        ...

    def collect(self) -> int:
        """
        Remove what no listed backup needs; return how many bytes that freed.

        Raises:
            DamagedBackupError: One cannot be read, so nobody knows what it needs; nothing was removed.
        """
        ...

    def total_bytes(self) -> int:
        """Return how much lies there."""
        ...

    def take_out(self, entry: Entry, folder: int, name: str, like: os.stat_result) -> list[str]:
        """
        Make *entry* anew as *name* in an open folder, synced, owned like *like*; return what could not be, in words.

        Nothing may stand there. Whatever is not damaged is made.
        """
        ...

    def check(self, manifest: Manifest) -> list[str]:
        """Read everything that a backup needs; return what is damaged, in words."""
        ...


class TreeReader(Protocol):
    """Reads folders of the disk into a store's form, following no link."""

    def read(self, path: str, *, apart: Collection[str] = (), hidden: Collection[str] = ()) -> FoundTree:
        """
        Read the folder *path* and keep all of it but caches.

        Args:
            path: Absolute; it may be reached over links itself, since the configuration names it.
            apart: Absolute paths of folders that are no part of it wherever they lie (the archive, our own state).
            hidden: Names of hidden folders at its top that are read all the same; others belong to tools.

        Raises:
            FileNotFoundError: There is none.
            OSError: It cannot be listed.
            TooLargeError: It is more than may be kept.
        """
        ...

    def read_file(self, path: str) -> tuple[BlobId, int] | None:
        """Keep one file of the host; return its content's hash and its mode, None for no file; `InputError`: a link."""
        ...

    def look(self, root: str, path: bytes) -> tuple[Entry, str] | None:
        """
        Return what stands at *path* below *root* now and its `content_id`, keeping nothing; None where nothing does.

        Raises:
            OSError: It cannot be read.
            InputError: A part of the path is a link, or it holds what no backup holds.
        """
        ...

"""Libraries, read: what a pass asks of the skills on disk. Nothing here can change one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from curatord.core.fingerprint import PackageEntry
from curatord.core.library import LibrarySnapshot, Skill
from curatord.core.ownership import LibraryView
from curatord.core.values import Fingerprint

__all__ = ["LibraryReader", "PackageCache"]


class LibraryReader(Protocol):
    """One configured library."""

    def look(self, *, observed: Sequence[str] = ()) -> LibraryView:
        """
        Return what is there now and what bears on whose it is; whatever is wrong is in there, never an exception.

        *observed* are words for conflicts with other libraries: nothing in this one may be changed because of them.
        """
        ...

    def read(self) -> LibrarySnapshot:
        """Return the snapshot of a look."""
        ...

    def read_text(self, skill: Skill) -> bytes:
        """
        Return the bytes of the file that makes *skill* one.

        Raises:
            InputError: It cannot be read any more.
        """
        ...

    def read_file(self, skill: Skill, rel: str) -> bytes:
        """
        Return the bytes of the file *rel* of the package; links are not followed.

        Raises:
            InputError: It is not there, no ordinary file, or too large.
        """
        ...

    def entries(self, skill: Skill) -> tuple[PackageEntry, ...]:
        """
        Return all files and links of the package with their digests, read now.

        Raises:
            InputError: It cannot be read whole.
            FileNotFoundError: It is gone.
        """
        ...

    def fingerprint(self, path: str) -> Fingerprint:
        """Return the fingerprint of the package at the absolute *path*, read now; raises as `entries`."""
        ...


class PackageCache(Protocol):
    """
    Kept readings of packages, so that what did not change is not read again.

    Losing one costs time only. A reading is a pair: the signature of the files it was made from, and the encoded
    content.
    """

    def load(self, library: str) -> Mapping[str, tuple[bytes, bytes]]:
        """Return all kept readings of *library* by the package's path within it."""
        ...

    def keep(self, library: str, new: Mapping[str, tuple[bytes, bytes]], gone: Iterable[str]) -> None:
        """Keep the *new* readings of *library*, and forget those at the paths *gone*."""
        ...

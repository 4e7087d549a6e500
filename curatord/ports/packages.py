"""Packages with all their bytes, for whoever folds them; nothing here can change one."""

from __future__ import annotations

from typing import Protocol

from curatord.core.library import Skill
from curatord.core.umbrella.packed import Packed
from curatord.core.values import SkillKey

__all__ = ["PackageReader"]


class PackageReader(Protocol):
    """Reads packages whole, each time anew."""

    def read(self, skill: Skill) -> Packed:
        """
        Return the package of *skill* as it is now.

        Raises:
            InputError: It is gone, cannot be read whole, or is larger than what is ever folded.
        """
        ...

    def read_at(self, key: SkillKey, path: str) -> Packed:
        """Return the package at the absolute *path* as that of *key*, a folder or a flat file; raises as `read`."""
        ...

    def entry(self, skill: Skill) -> bytes:
        """
        Return the file that makes it a skill, as it is now.

        Raises:
            InputError: It is gone, cannot be read, or is longer than any text that is worth comparing.
        """
        ...

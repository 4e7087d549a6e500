"""
Whether packages have gone from their libraries, for who must not wait.

What did not answer in time, and what cannot be looked at, may be there.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from curatord.adapters.in_time import in_time

__all__ = ["absent"]

WITHIN_S = 1.0


def absent(wanted: Mapping[str, Collection[str]], *, within_s: float = WITHIN_S) -> set[tuple[str, str]]:
    """
    Return those of *wanted* that are surely not there: each the library's folder and the package's path in it.

    A library that holds nothing at all may be one that is not mounted just now: all of it may be there.
    """
    told = in_time({root: partial(_absent_in, root, rels) for root, rels in wanted.items()}, within_s=within_s)
    return {(root, rel) for root, rels in told.items() for rel in rels}


def _absent_in(root: str, rels: Iterable[str]) -> list[str]:
    absent = [rel for rel in rels if not any(_may_be_there(f"{root}/{rel}{end}") for end in ("", ".md"))]
    return absent if absent and _holds_anything(root) else []


def _may_be_there(path: str) -> bool:
    """Return whether something is at *path*, or nobody can tell: a folder above it may be closed to this user."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _holds_anything(root: str) -> bool:
    """Return whether a skill could be in the library, and it is known to be mounted by that."""
    try:
        with os.scandir(root) as entries:
            return any(not entry.name.startswith(".") for entry in entries)
    except OSError:
        return False

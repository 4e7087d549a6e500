"""
Whether packages have gone from their libraries, for who must not wait: on a dead network mount a look never returns.

Each library is looked at by a thread of its own, all of them within one short time. What did not answer by then, and
what cannot be looked at, may be there. A thread that hangs is left to hang, since nothing can end it but its disk or
the process; until then its library is not asked again, so that there is never more than one for each.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterable, Mapping

__all__ = ["absent"]

WITHIN_S = 1.0

_looks: dict[str, threading.Thread] = {}  # by library; those that have not come back


def absent(wanted: Mapping[str, Collection[str]], *, within_s: float = WITHIN_S) -> set[tuple[str, str]]:
    """
    Return those of *wanted* that are surely not there: each the library's folder and the package's path in it.

    A library that holds nothing at all may be one that is not mounted just now: all of it may be there.
    """
    answers: dict[str, list[str]] = {}

    def look(root: str) -> None:
        answers[root] = _absent_in(root, wanted[root])

    until = time.monotonic() + within_s
    asked = [root for root in wanted if not _hangs(root)]
    for root in asked:
        _looks[root] = threading.Thread(target=look, args=(root,), name="absence", daemon=True)
        _looks[root].start()
    for root in asked:
        _looks[root].join(max(0.0, until - time.monotonic()))
    return {(root, rel) for root in asked if not _hangs(root) for rel in answers.get(root, ())}


def _hangs(root: str) -> bool:
    """Return whether a look at the library has not come back."""
    if root in _looks and not _looks[root].is_alive():
        del _looks[root]
    return root in _looks


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

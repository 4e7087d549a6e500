"""
The last line of a file that `service install` wrote: a fingerprint of all before it.

So the file itself tells whether anybody changed it since, without a record elsewhere that could be lost: one that was
not changed may be replaced or removed, one that was is its owner's.
"""

from __future__ import annotations

import hashlib
from typing import Literal

__all__ = ["Standing", "signed", "standing_of"]

Standing = Literal["ours", "changed", "foreign"]
"""Of a file that is there: as it was written, changed since, or never written by us."""

_WORDS = "written by `curatord service install`, which replaces and removes it only while unchanged; fingerprint "


def signed(text: str, *, comment: tuple[str, str] = ("# ", "")) -> str:
    """Return *text*, which ends with a line break, with its fingerprint as a last line between the two of *comment*."""
    return f"{text}{comment[0]}{_WORDS}{_digest(text)}{comment[1]}\n"


def standing_of(text: str) -> Standing:
    """Return what became of a file that now holds *text*."""
    head, words, tail = text.rpartition(_WORDS)
    if not words:
        return "foreign"
    body, newline, opening = head.rpartition("\n")
    said = tail.split()
    whole = body + newline
    one_line = tail.count("\n") == 1 and tail.endswith("\n") and opening in ("# ", "<!-- ")
    return "ours" if said and one_line and said[0] == _digest(whole) else "changed"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]

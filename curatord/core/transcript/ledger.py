"""
Which records of a database are counted, for readers whose rows are read in any order and more than once.

A file of lines is read on from where it ended, and a record that stands in it twice is one more. Rows of a database are
looked at again whenever their program may have changed them, and a fork's copies stand beside their originals: so here
a record with a known key is none at all, whoever counted it and when.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

from curatord.core.transcript.ids import Guard

__all__ = ["Ledger"]

WINDOW = 262_144  # keys held in a set; more than so many are packed to eight bytes each, and searched


class Ledger:
    """
    The keys of one reading of one item.

    *guard* holds those that were counted before, here or elsewhere. `heads` are the keys by which a copy of a session
    is met although most of its records are no anchors.
    """

    __slots__ = ("_guard", "_heads", "_new", "_packed", "_seen")

    def __init__(self, guard: Guard) -> None:
        self._guard = guard or None  # asked for each record: None is told quicker from something than emptiness
        self._new: dict[bytes, None] = {}
        self._seen: set[bytes] = set()
        self._packed = array("Q")  # in order
        self._heads: list[bytes] = []

    def __contains__(self, key: bytes) -> bool:
        if key in self._new or key in self._seen or (self._guard is not None and key in self._guard):
            return True
        if not self._packed:
            return False
        number = int.from_bytes(key, "big")
        at = bisect_left(self._packed, number)
        return at < len(self._packed) and self._packed[at] == number

    def first(self, key: bytes, *, head: bool = False) -> bool:
        """Return whether *key* was never counted, and count it; a *head* becomes an anchor in any case."""
        if head:
            self._heads.append(key)
        if key in self:
            return False
        self._new[key] = None
        return True

    @property
    def new(self) -> dict[bytes, None] | None:
        """The keys counted since `take`, for a loop that asks and adds by itself; None where others are to be asked."""
        return None if self._seen or self._packed or self._guard is not None else self._new

    def take(self) -> tuple[bytes, bytes]:
        """Return the packed keys counted since the last call, and the heads met, and begin anew."""
        keys, heads = b"".join(self._new), b"".join(self._heads)
        self._seen.update(self._new)
        if len(self._seen) >= WINDOW:
            numbers = [int.from_bytes(key, "big") for key in self._seen]
            self._packed = array("Q", sorted([*self._packed, *numbers]))
            self._seen = set()
        self._new = {}
        self._heads = []
        return keys, heads

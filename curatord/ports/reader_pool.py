"""Reading several files at once: a pool that parses in other processes while the pass commits."""

from __future__ import annotations

from typing import Protocol

from curatord.core.cheap import dataclass
from curatord.ports.source import Item, Slice, Start

__all__ = ["PoolResult", "ReaderPool"]


@dataclass(frozen=True, slots=True)
class PoolResult:
    """
    What became of the job with *number*: its slices, or the error that reading it raised.

    Neither: its worker is gone, and the pass reads the item itself.
    """

    number: int
    slices: tuple[Slice, ...]
    error: OSError | None = None


class ReaderPool(Protocol):
    """Workers that each know the same sources as the pass."""

    @property
    def free(self) -> bool:
        """Whether a job given now would be begun soon."""
        ...

    def submit(self, number: int, source: int, item: Item, start: Start) -> None:
        """Have *item* of the pass's source number *source* read from *start* to its end."""
        ...

    def results(self, *, wait: bool) -> list[PoolResult]:
        """Return what is done; with *wait*, at least one, unless nothing is under way."""
        ...

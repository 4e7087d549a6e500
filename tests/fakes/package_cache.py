"""Kept readings of packages in memory, beside the database that the product keeps them in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["MemoryCache"]


class MemoryCache:
    """The `PackageCache` that lives as long as this object."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, tuple[bytes, bytes]]] = {}

    def load(self, library: str) -> Mapping[str, tuple[bytes, bytes]]:
        """Return all kept readings of *library*."""
        return self._kept.get(library, {})

    def keep(self, library: str, new: Mapping[str, tuple[bytes, bytes]], gone: Iterable[str]) -> None:
        """Keep the *new* readings, forget the *gone*."""
        kept = self._kept.setdefault(library, {})
        for path in gone:
            kept.pop(path, None)
        kept.update(new)

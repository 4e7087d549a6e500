"""Tables of the ingest: what was read of which transcript, and what it said."""

from __future__ import annotations

__all__ = ["INGEST_1"]

INGEST_1: tuple[str, ...] = ()

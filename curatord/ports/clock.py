"""Time, handed in: the shell reads the clock once per tick and hands `now` down."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

__all__ = ["Clock"]


class Clock(Protocol):
    """Where *now* comes from."""

    def now(self) -> datetime:
        """Return the present as an aware datetime in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds of a clock that is never set back; only differences mean anything."""
        ...

"""The machine's own clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime

__all__ = ["SystemClock"]


class SystemClock:
    """The real `Clock`."""

    def now(self) -> datetime:
        """Return the present as an aware datetime in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds of the system's monotonic clock."""
        return time.monotonic()

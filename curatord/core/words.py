"""Times and spans as people read them: UTC days, whole units, never rounded up over a limit that was not reached."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from curatord.core.values import require_aware

__all__ = ["SKEW", "day", "days", "exact", "iso", "plural", "span", "stamp"]

SKEW = timedelta(days=1)
"""By how much times of different machines differ ordinarily: local times written as UTC are off by up to 14 hours."""

_UNITS = ((timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute"))


def day(at: datetime) -> str:
    """Return the UTC day of *at*, `2026-09-01`."""
    return at.astimezone(UTC).strftime("%Y-%m-%d")


def stamp(at: datetime) -> str:
    """Return *at* in UTC to the second, `2026-09-01T10:00:00Z`, as all JSON of curatord has it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def iso(at: datetime | None) -> str | None:
    """Return *at*, aware and in UTC, as ISO 8601 with milliseconds and `Z`, or None for None."""
    if at is None:
        return None
    require_aware("at", at)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def days(length: timedelta) -> float:
    """Return *length* in days with two places, rounded down: 29.999 days must not read as the 30 that archive."""
    return (length // timedelta(seconds=864)) / 100


def plural(count: int, noun: str) -> str:
    """Return `1 day`, `2 days`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@lru_cache(maxsize=64)  # settings: few, and told of every skill
def exact(length: timedelta) -> str:
    """Return *length* in all its units down to seconds, for settings: `30 days`, `1 day 12 hours`, `0 seconds`."""
    parts: list[str] = []
    for unit, noun in (*_UNITS, (timedelta(seconds=1), "second")):
        count, length = length // unit, length % unit
        if count:
            parts.append(plural(count, noun))
    return " ".join(parts) or "0 seconds"


def span(length: timedelta) -> str:
    """Return *length* in its largest fitting unit, rounded down: `41 days`, `1 day`, `5 hours`, `0 minutes`."""
    for unit, noun in _UNITS:
        if length >= unit:
            return plural(length // unit, noun)
    return "0 minutes"

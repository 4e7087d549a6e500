"""Times and spans as people read them: UTC days, whole units, never rounded up over a limit that was not reached."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["day", "days", "exact", "plural", "span", "stamp"]

_UNITS = ((timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute"))


def day(at: datetime) -> str:
    """Return the UTC day of *at*, `2026-09-01`."""
    return at.astimezone(UTC).strftime("%Y-%m-%d")


def stamp(at: datetime) -> str:
    """Return *at* in UTC to the second, `2026-09-01T10:00:00Z`, as all JSON of curatord has it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def days(length: timedelta) -> float:
    """Return *length* in days with two places, rounded down: 29.999 days must not read as the 30 that archive."""
    return (length // timedelta(seconds=864)) / 100


def plural(count: int, noun: str) -> str:
    """Return `1 day`, `2 days`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


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

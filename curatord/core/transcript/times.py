"""
Times as hosts write them, into milliseconds since 1970, UTC (bugs B106).

A time without a zone is taken as UTC and noted. A time more than 48 h in the future is no time (a wrong clock must not
lead every list or hold a gate open for years), nor is one before 1970 or one that cannot be read.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

__all__ = ["FUTURE_MS", "Told", "iso_of", "ms_of_iso", "ms_of_number"]

LAST_MS = 253_402_300_799_999  # the end of the year 9999; what is later is no time, and may not fit a column
FUTURE_MS = 48 * 3_600_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Told(NamedTuple):
    """A time that was read: *ms* None where it cannot be used; *naive* it had no zone; *future* it is too far ahead."""

    ms: int | None
    naive: bool = False
    future: bool = False


def ms_of_iso(text: str, *, now_ms: int) -> Told:
    """Return the time that ISO 8601 *text* tells; *now_ms* 0 means that no future is too far."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return Told(None)
    naive = at.tzinfo is None
    if naive:
        at = at.replace(tzinfo=UTC)
    try:
        ms = (at - _EPOCH) // timedelta(milliseconds=1)
    except OverflowError:
        return Told(None)
    return _checked(ms, now_ms, naive=naive)


def ms_of_number(value: float, *, now_ms: int) -> Told:
    """Return the time of *value*, seconds or milliseconds since 1970 (told apart by size: 10¹¹ s is the year 5138)."""
    try:
        # Cut off to ms as an ISO time is, but only once the float's own error is rounded away: .123 may be .1229999.
        ms = int(value) if abs(value) >= 1e11 else round(value * 1_000_000) // 1000
    except (ValueError, OverflowError):  # not a number, or no end
        return Told(None)
    return _checked(ms, now_ms, naive=False)


def _checked(ms: int, now_ms: int, *, naive: bool) -> Told:
    if not 0 <= ms <= LAST_MS:
        return Told(None, naive)
    if now_ms and ms > now_ms + FUTURE_MS:
        return Told(None, naive, future=True)
    return Told(ms, naive)


def iso_of(ms: int) -> str:
    """Return *ms* as `2026-11-30T12:00:00.000Z`."""
    at = _EPOCH + timedelta(milliseconds=ms)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"

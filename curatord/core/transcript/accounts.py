"""
A session's counts while its records are read, with times as text.

Records come by the hundred thousand, times in one common form (`2026-03-01T10:00:00.000Z`) that compares as text. So
times are kept as they stand, the first and the last of each hour, and only those are made numbers when findings are
taken.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from curatord.core.transcript.events import DAY_MS, HOUR_MS, HourTally, SessionTally

__all__ = ["Account", "common_ms", "tell_times"]


class Account:
    """
    One session's tally with its times still as text: by hour `[first, last, turns of the model]`.

    *work*: what shows that somebody works; *rest*: all other records.
    """

    __slots__ = ("rest", "tally", "work")

    def __init__(self, tally: SessionTally) -> None:
        self.tally = tally
        self.work: dict[str, list[Any]] = {}
        self.rest: dict[str, list[Any]] = {}


def common_ms(time: str) -> int | None:
    """Return the milliseconds of a time in the common form; of one that only looks like it, None."""
    try:
        return round(datetime.fromisoformat(time).timestamp() * 1000)
    except ValueError:
        return None


def tell_times(account: Account) -> None:
    """Turn the times of *account* into those of its tally."""
    tally = account.tally
    for hours, work in ((account.rest, False), (account.work, True)):
        for first, last, turns in hours.values():
            if not last:
                continue  # made ready for records that did not come
            first_ms = common_ms(first)
            last_ms = common_ms(last)
            if first_ms is None:
                first_ms = last_ms
            if last_ms is None:
                last_ms = first_ms
            if first_ms is None or last_ms is None:
                continue
            if tally.first_ms is None or first_ms < tally.first_ms:
                tally.first_ms = first_ms
            if tally.last_ms is None or last_ms > tally.last_ms:
                tally.last_ms = last_ms
            if turns:
                day = first_ms // DAY_MS
                tally.turns_by_day[day] = tally.turns_by_day.get(day, 0) + turns
            if work:
                tally.hours[first_ms // HOUR_MS] = HourTally(first_ms, last_ms)

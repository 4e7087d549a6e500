"""
How often the same trouble came in a row, and when it is worth saying again.

A file that cannot be read is met at every scan, a server that is down at every run. Said each time it fills a disk and
hides everything else; said once it is forgotten by the time somebody looks. So it is said first, then at its second,
fourth, eighth … time, and its end is told with the count: "recovered after n". Another text of the same thing is news.

`Repeats` is a value; whoever keeps it is in `curatord.logs`. It holds at most `MOST` things: beyond that the one that
was quiet for longest is forgotten, and is news again when it comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from curatord.core.cheap import dataclass, field

__all__ = ["MOST", "Recovered", "Repeats", "Trouble"]

MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """The last of a row of equal troubles: its *text*, how many *times* it came, *since* when."""

    text: str
    times: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """The end of a row: it came *times* times over *duration_s* seconds."""

    text: str
    times: int
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """All that is in trouble now, by key, the one that came last at the end."""

    troubles: Mapping[str, Trouble] = field(default_factory=dict)

    def met(self, key: str, text: str, now: datetime) -> tuple[Repeats, int | None]:
        """Return this with one more trouble, and how often it came by now if that is worth saying."""
        before = self.troubles.get(key)
        same = before is not None and before.text == text
        times = before.times + 1 if before is not None else 1
        trouble = Trouble(text=text, times=times, since=before.since if before is not None else now)
        rest = {name: one for name, one in self.troubles.items() if name != key}
        if len(rest) >= MOST:
            del rest[next(iter(rest))]
        worth = not same or times & (times - 1) == 0
        return Repeats(troubles={**rest, key: trouble}), times if worth else None

    def gone(self, key: str, now: datetime) -> tuple[Repeats, Recovered | None]:
        """Return this without the trouble of *key*, and what it was; None where there was none."""
        trouble = self.troubles.get(key)
        if trouble is None:
            return self, None
        rest = {name: one for name, one in self.troubles.items() if name != key}
        length = max((now - trouble.since).total_seconds(), 0.0)  # a clock may have been set back meanwhile
        return Repeats(troubles=rest), Recovered(text=trouble.text, times=trouble.times, duration_s=length)

    def others(self, keys: Iterable[str]) -> list[str]:
        """Return the keys in trouble that are not among *keys*: those that a whole look did not meet again."""
        met = set(keys)
        return [key for key in self.troubles if key not in met]

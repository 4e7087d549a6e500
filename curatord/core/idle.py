"""
How long a skill has been idle, on a clock that stands still while nobody works.

What is wanted. A skill is idle since the newest evidence that anyone cared for it (the *anchor*), but a month of
holidays must not archive a library, a host that keeps transcripts for 30 days must not be taken for 90 days of
silence, and a clock that jumped must not age anything.

The anchor is the newest of: the last event of any kind, birth, restore, and the time from which the library's sources
can testify (`observed_since`). Before that last one nobody was watching, so nothing can be said.

The clock. Work cuts time into stretches without work. A stretch longer than `away_after` is an absence: its first
`away_after` runs, its rest stands still::

    work  work                                work       now
     |-----|----------- absence ---------------|----------|
     ======|======= away_after :..............:|==========      = runs   : stands still
                A (anchor)
                 ==

    idle = (now - A) - all that stands still between A and now

The stretch up to now is one as well, so while nobody works idle stops growing. Where the anchor lies within an
absence, only what still ran of it after the anchor counts; where no work at all is known before the anchor, the first
stretch begins at the anchor. All of this is exact arithmetic on datetimes; there is no sampling and no rounding.

What holds (and is tested): idle is never negative and never more than the wall time since the anchor; a newer anchor
never makes it larger; more work with the same anchor never makes it smaller (work lets the clock run); it never falls
as *now* moves on, and never grows faster than *now*; a longer `away_after` never makes it smaller.

Doubt. Without a source, or without testimony, there is no idle at all (bugs B018: counters nobody moved would have
aged a whole library in one day). Evidence dated later than *now* says that the clock was set back, or that it was
ahead when the evidence was written; evidence that ends more than `LEAP` ago says that the clock was set forward, or
that nobody has worked for half a year. In both cases nothing can be told from the difference, and `IdleUnknown` says
so. A leap smaller than that costs at most `away_after`, as any absence does. Differences below `SKEW` are ordinary:
hosts in other zones that write local time, machines without a time server.

What we are unsure of: work is known to the record, not to the minute, so an absence could be longer by one session's
last thoughts than it was. A session that was pruned before the first scan leaves a gap that was none; that makes idle
smaller, which is the harmless side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import msgspec

from curatord.core.cheap import dataclass
from curatord.core.values import LibraryName, require_aware
from curatord.core.words import SKEW, day, span, stamp

__all__ = [
    "LEAP",
    "Aging",
    "Anchor",
    "Forecast",
    "Gap",
    "Idle",
    "IdleUnknown",
    "LibraryClock",
    "Stretch",
    "forecast",
    "idle_since",
    "stops",
    "work_gaps",
]

LEAP = timedelta(days=180)  # silence longer than this is rather a wrong clock, and if not, waiting harms nobody

_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Stretch:
    """Time from *start* to *end*, never negative."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        require_aware("start", self.start)
        require_aware("end", self.end)
        if self.end < self.start:
            raise ValueError(f"a stretch ends before it starts: {self.start} .. {self.end}")

    @property
    def length(self) -> timedelta:
        """Wall time of it."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Gap(Stretch):
    """A stretch without work between two records of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryClock:
    """
    What a library's own sources say about time.

    Attributes:
        sources: How many sources count for this library, empty ones too.
        observed_since: From when they can testify (contract, section 7, rule 4); None while none of them can.
        first_scan_at: When curatord first scanned the library; what appears later is never older than its first sight.
        first_work, newest_work: Oldest and newest record of a person's or program's session; both None where there is
            none.
        newest_evidence: Newest record of any session, scheduled runs too: it ends no absence, but tells the clock.
        gaps: Stretches between two records of work that are longer than `away_after`; sorted, not overlapping.
        doubts: What others found wrong with the clock or the sources, in words; any makes the clock unknown.
    """

    library: LibraryName
    sources: int
    observed_since: datetime | None = None
    first_scan_at: datetime | None = None
    first_work: datetime | None = None
    newest_work: datetime | None = None
    newest_evidence: datetime | None = None
    gaps: tuple[Gap, ...] = ()
    doubts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("observed_since", "first_scan_at", "first_work", "newest_work", "newest_evidence"):
            require_aware(name, getattr(self, name))
        if (self.first_work is None) != (self.newest_work is None):
            raise ValueError("first_work and newest_work go together")
        if any(later.start < earlier.end for earlier, later in zip(self.gaps, self.gaps[1:], strict=False)):
            raise ValueError(f"gaps of {self.library} overlap or are not sorted")

    @property
    def last_evidence(self) -> datetime | None:
        """The newest time that anything in the sources bears."""
        return max((at for at in (self.newest_work, self.newest_evidence) if at is not None), default=None)


class Anchor(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """From when idle is counted, and *what* that is in words: `its last use (claude-code)`."""

    at: datetime
    what: str

    def __post_init__(self) -> None:
        if self.at.tzinfo is not UTC:  # in line, since a run makes thousands of these
            require_aware("at", self.at)

    def __str__(self) -> str:
        return f"{self.what}, {stamp(self.at)}"


class Idle(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    How long a skill has been idle.

    Attributes:
        idle: On the clock that stops.
        anchor: What it is counted from.
        stopped: How long the clock stood still between anchor and now.
        observed_since: From when the library's sources can testify.
        stands_still: The clock stands still now: nobody has worked for longer than `away_after`.
    """

    idle: timedelta
    anchor: Anchor
    stopped: timedelta
    observed_since: datetime
    stands_still: bool

    @property
    def counted_from(self) -> str:
        """The anchor in words, with its time."""
        return str(self.anchor)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleUnknown:
    """Why nothing can be said about how long a skill has been idle, in words; nothing ages because of it."""

    reason: str
    observed_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """
    When idle will reach what was asked for.

    *if_worked*: somebody works from now on without an absence. *if_away*: nobody works any more; None when the clock
    stops before. Neither lies before now.
    """

    if_worked: datetime
    if_away: datetime | None


def work_gaps(work: Iterable[Stretch | datetime], away_after: timedelta) -> tuple[Gap, ...]:
    """
    Return the gaps longer than *away_after* in *work*, oldest first.

    Args:
        work: Instants of work, or stretches known to hold no longer gap; in any order, overlapping or not.
    """
    gaps: list[Gap] = []
    reached: datetime | None = None
    for start, end in sorted((w, w) if isinstance(w, datetime) else (w.start, w.end) for w in work):
        if reached is not None and start - reached > away_after:
            gaps.append(Gap(start=reached, end=start))
        reached = end if reached is None else max(reached, end)
    return tuple(gaps)


def _stretches(clock: LibraryClock, anchor: datetime, now: datetime) -> Iterable[tuple[datetime, datetime]]:
    """Yield the stretches without work that may matter between *anchor* and *now*, none overlapping another."""
    if clock.first_work is None or clock.newest_work is None:
        yield anchor, max(anchor, now)
        return
    if anchor < clock.first_work:
        yield anchor, clock.first_work
    for gap in clock.gaps:
        yield gap.start, gap.end
    if clock.newest_work < now:
        yield clock.newest_work, now


def stops(clock: LibraryClock, anchor: datetime, now: datetime, away_after: timedelta) -> tuple[Stretch, ...]:
    """Return when the clock stood still between *anchor* and *now*, oldest first; none is empty."""
    found: list[Stretch] = []
    for began, ended in _stretches(clock, anchor, now):
        if ended <= anchor:
            continue
        start = max(began + away_after, anchor)
        end = min(ended, now)
        if start < end:
            found.append(Stretch(start=start, end=end))
    return tuple(found)


class Aging:
    """
    Tells how long skills of one library have been idle at one time; what is the same for all of them is told once.

    Args:
        clock: The library's.
        away_after: Absences stop the clock after this long.
        now: The caller's one reading of the clock.

    Source: contract, section 7, rule 4; bugs B018, B021, B022.
    """

    def __init__(self, clock: LibraryClock, away_after: timedelta, now: datetime) -> None:
        self._clock = clock
        self._away_after = away_after
        self._now = now
        self._latest = now + SKEW
        self._unknown: IdleUnknown | None = None
        if clock.observed_since is None or clock.sources == 0:
            self._unknown = IdleUnknown(reason=_no_testimony(clock))
        elif doubt := _doubt(clock, now):
            self._unknown = IdleUnknown(reason=doubt, observed_since=clock.observed_since)
        self._silence = _silence(clock, now)
        # Where work begins, and when the clock stands still for every anchor from there on.
        self._first_work = clock.first_work if clock.first_work is not None else now
        self._stops = stops(clock, self._first_work, now, away_after) if clock.first_work is not None else ()

    def idle_since(self, anchor: Anchor | None) -> Idle | IdleUnknown:
        """
        Return how long a skill has been idle, or why that cannot be told.

        *anchor* is the newest that is known of it: last event, birth or restore; None for nothing. The time from which
        the sources can testify is added here.
        """
        now, observed_since = self._now, self._clock.observed_since
        if self._unknown is not None or observed_since is None:
            return self._unknown or IdleUnknown(reason=_no_testimony(self._clock))
        if anchor is not None and anchor.at > self._latest:
            doubt = f"the clock cannot be trusted: {anchor} lies in the future, it is {stamp(now)} here"
            return IdleUnknown(reason=doubt, observed_since=observed_since)
        if self._silence is not None:
            return IdleUnknown(reason=self._silence, observed_since=observed_since)
        if anchor is None or anchor.at < observed_since:
            what = f"the time from which the sources of library {self._clock.library!r} can testify"
            anchor = Anchor(at=observed_since, what=what)
        begin = anchor.at
        if begin >= now:
            return Idle(idle=_ZERO, anchor=anchor, stopped=_ZERO, observed_since=observed_since, stands_still=False)
        stopped, stands_still = _ZERO, False
        if begin < self._first_work:  # no work is known before the anchor: the first stretch begins at it
            start, end = begin + self._away_after, min(self._first_work, now)
            if start < end:
                stopped, stands_still = end - start, end == now
        for stop in self._stops:
            if stop.end > begin:
                stopped += stop.end - max(stop.start, begin)
                stands_still = stop.end == now
        return Idle(
            idle=now - begin - stopped,
            anchor=anchor,
            stopped=stopped,
            observed_since=observed_since,
            stands_still=stands_still,
        )


def idle_since(
    evidence: Sequence[Anchor], clock: LibraryClock, away_after: timedelta, now: datetime
) -> Idle | IdleUnknown:
    """
    Return how long one skill has been idle at *now*, or why that cannot be told; see `Aging`.

    *evidence* is what is known of it, in order of preference for equal times; it may be empty.
    """
    return Aging(clock, away_after, now).idle_since(max(evidence, key=_at, default=None))  # the first of equals


_at = attrgetter("at")


def _no_testimony(clock: LibraryClock) -> str:
    if clock.sources == 0:
        return f"no usage signal: no source of transcripts counts for library {clock.library!r}"
    return f"no usage signal: the sources of library {clock.library!r} hold no session yet"


def _doubt(clock: LibraryClock, now: datetime) -> str | None:
    """Return why the clock cannot be trusted whatever a skill's evidence is, in words, or None."""
    if clock.doubts:
        return "; ".join(clock.doubts)
    last = clock.last_evidence
    if last is not None and last - now > SKEW:
        return (
            f"the clock cannot be trusted: the transcripts of library {clock.library!r} reach to {stamp(last)}, "
            f"but it is {stamp(now)} here"
        )
    return None


def _silence(clock: LibraryClock, now: datetime) -> str | None:
    """Return why nothing can be told from transcripts that ended long ago, in words, or None."""
    last = clock.last_evidence or clock.observed_since
    if last is None or now - last <= LEAP:
        return None
    return (
        f"no usage signal: the transcripts of library {clock.library!r} end on {day(last)}, {span(now - last)} "
        "ago; either nobody has worked since, or the clock was set forward"
    )


def forecast(idle: Idle, target: timedelta, clock: LibraryClock, away_after: timedelta, now: datetime) -> Forecast:
    """
    Return when *idle* (as `idle_since` gave it at *now*) will reach *target*.

    An anchor in the future (by less than `SKEW`) is counted from when it comes.
    """
    begin = max(now, idle.anchor.at)
    missing = target - idle.idle
    if missing <= _ZERO:
        return Forecast(if_worked=now, if_away=now)
    reached = begin + missing
    # Without more work the stretch up to now began at the newest work, or where there was none, at the anchor.
    stops_at = (clock.newest_work or idle.anchor.at) + away_after
    return Forecast(if_worked=reached, if_away=reached if reached <= stops_at else None)

"""The clock that stops: exact cases, then what must hold for any history (theory on top of core/idle.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.idle import (
    LEAP,
    Anchor,
    Gap,
    Idle,
    IdleUnknown,
    LibraryClock,
    Stretch,
    forecast,
    idle_since,
    stops,
    work_gaps,
)
from curatord.core.values import LibraryName
from curatord.core.words import SKEW

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
START = datetime(2026, 1, 1, tzinfo=UTC)


def at(days: float) -> datetime:
    """Return the instant *days* after the start of all cases here."""
    return START + days * DAY


def a_clock(*work: float, observed: float | None = 0, away_after: timedelta = WEEK, sources: int = 1) -> LibraryClock:
    """Return the clock of a library whose sources show work on those *work* days."""
    instants = sorted(at(w) for w in work)
    return LibraryClock(
        library=LibraryName("lib"),
        sources=sources,
        observed_since=None if observed is None else at(observed),
        first_work=instants[0] if instants else None,
        newest_work=instants[-1] if instants else None,
        newest_evidence=instants[-1] if instants else None,
        gaps=work_gaps(instants, away_after),
    )


def used(day: float) -> tuple[Anchor, ...]:
    """Return the evidence of a skill that was used on *day*."""
    return (Anchor(at=at(day), what="its last use"),)


def idle_days(evidence: tuple[Anchor, ...], clock: LibraryClock, now: float, away_after: timedelta = WEEK) -> float:
    """Return idle in days; it must be known."""
    idle = idle_since(evidence, clock, away_after, at(now))
    assert isinstance(idle, Idle), idle
    return idle.idle / DAY


def test_idle_is_wall_time_while_somebody_works() -> None:
    """With work every day the clock never stops."""
    idle = idle_since(used(10), a_clock(*range(101)), WEEK, at(100))

    assert isinstance(idle, Idle)
    assert (90 * DAY, timedelta(0), False) == (idle.idle, idle.stopped, idle.stands_still)


def test_a_month_away_counts_as_a_week() -> None:
    """An absence runs for `away_after` and then stands still, and says so."""
    clock = a_clock(*range(11), *range(41, 46))

    idle = idle_since(used(10), clock, WEEK, at(45))

    assert isinstance(idle, Idle)
    assert (11 * DAY, 24 * DAY) == (idle.idle, idle.stopped)


def test_a_gap_of_exactly_away_after_stops_nothing() -> None:
    """Only a gap longer than `away_after` is an absence."""
    assert 14.0 == idle_days(used(0), a_clock(0, 7, 14), 14)


def test_the_gap_up_to_now_stops_the_clock() -> None:
    """While nobody works idle stops growing, and `stands_still` tells."""
    clock = a_clock(0, 1)

    seen = [idle_since(used(0), clock, WEEK, at(now)) for now in (5, 8, 9, 100)]

    assert [5.0, 8.0, 8.0, 8.0] == [idle.idle / DAY for idle in seen if isinstance(idle, Idle)]
    assert [False, False, True, True] == [idle.stands_still for idle in seen if isinstance(idle, Idle)]


def test_an_anchor_within_an_absence_counts_only_what_still_ran() -> None:
    """Restored on day 3 of an absence: 4 days still ran. Restored on day 20: none did."""
    clock = a_clock(0, 30)

    assert 4.0 + 1.0 == idle_days(used(3), clock, 31)
    assert 0.0 + 1.0 == idle_days(used(20), clock, 31)


def test_work_before_the_first_known_is_not_made_up() -> None:
    """The stretch between an anchor and the first known work is an absence like any other."""
    assert 7.0 + 2.0 == idle_days(used(0), a_clock(50, 51, 52), 52)


def test_scheduled_runs_alone_let_a_week_pass_and_no_more() -> None:
    """Records that are no work end no absence: a machine that only runs jobs never ages its library past a week."""
    clock = LibraryClock(
        library=LibraryName("lib"), sources=1, observed_since=at(0), newest_evidence=at(120), first_scan_at=at(0)
    )

    assert 7.0 == idle_days(used(2), clock, 120)


def test_nothing_is_counted_from_before_the_sources_can_testify() -> None:
    """A skill last used in a time nobody can testify to is idle since testimony began, and the words say so."""
    idle = idle_since(used(-300), a_clock(*range(21)), WEEK, at(20))

    assert isinstance(idle, Idle)
    assert 20 * DAY == idle.idle
    assert "the time from which the sources of library 'lib' can testify, 2026-01-01T00:00:00Z" == idle.counted_from


def test_of_equal_times_the_first_evidence_names_the_anchor() -> None:
    """The caller's order breaks ties, and any evidence goes before the testimony's begin."""
    evidence = (Anchor(at=at(0), what="its last use"), Anchor(at=at(0), what="its birth"))

    idle = idle_since(evidence, a_clock(0, 1), WEEK, at(1))

    assert isinstance(idle, Idle)
    assert "its last use" == idle.anchor.what


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        (a_clock(0, sources=0), "no source of transcripts counts"),
        (a_clock(observed=None), "hold no session yet"),
    ],
)
def test_without_testimony_there_is_no_idle(clock: LibraryClock, words: str) -> None:
    """Bugs B018: no source, or none that can testify, is 'no usage signal', never 100 days of silence."""
    idle = idle_since(used(0), clock, WEEK, at(100))

    assert isinstance(idle, IdleUnknown)
    assert idle.reason.startswith("no usage signal")
    assert words in idle.reason


@pytest.mark.parametrize("years", [-1, 1])
def test_a_clock_off_by_a_year_is_doubt(years: int) -> None:
    """Set back or set forward by a year: nothing is told from the difference."""
    clock = a_clock(*range(101))

    idle = idle_since(used(50), clock, WEEK, at(100 + 365 * years))

    assert isinstance(idle, IdleUnknown)


def test_small_differences_between_clocks_are_no_doubt() -> None:
    """A record some hours ahead is idle 0; one more than a day ahead is doubt."""
    clock = a_clock(0)

    assert 0.0 == idle_days(used(10.5), clock, 10)
    assert isinstance(idle_since(used(11.5), clock, WEEK, at(10)), IdleUnknown)


@pytest.mark.parametrize(("ahead", "doubted"), [(1.0, False), (1.01, True)])
def test_transcripts_that_reach_into_the_future_are_doubt(ahead: float, doubted: bool) -> None:
    """Even for a skill whose own evidence is old: the library's clock and ours disagree by more than a day."""
    idle = idle_since(used(5), a_clock(0, 10 + ahead), WEEK, at(10))

    assert doubted == isinstance(idle, IdleUnknown)
    if isinstance(idle, IdleUnknown):
        assert "reach to 2026-01-12" in idle.reason


@pytest.mark.parametrize(("days", "doubted"), [(180, False), (180.01, True)])
def test_silence_of_half_a_year_is_doubt(days: float, doubted: bool) -> None:
    """Up to `LEAP` it is an absence, beyond it nobody can tell an absence from a wrong clock."""
    assert doubted == isinstance(idle_since(used(0), a_clock(0), WEEK, at(days)), IdleUnknown)


def test_scheduled_runs_tell_the_clock_though_they_are_no_work() -> None:
    """Nobody has worked for 200 days, but jobs ran until yesterday: an absence, and no doubt about the date."""
    clock = replace(a_clock(0, 1), newest_evidence=at(200))

    assert 8.0 == idle_days(used(0), clock, 201)


def test_the_evidence_furthest_ahead_is_named() -> None:
    """Of several times in the future the reason names the latest."""
    evidence = (Anchor(at=at(13), what="its last use"), Anchor(at=at(30), what="its last restore or undo"))

    idle = idle_since(evidence, a_clock(0, 10), WEEK, at(10))

    assert isinstance(idle, IdleUnknown)
    assert "its last restore or undo, 2026-01-31T00:00:00Z lies in the future" in idle.reason


def test_what_is_reached_is_foretold_as_now() -> None:
    """Exactly reached is reached, and so is what was passed, also while the clock stands still."""
    clock = a_clock(0)
    idle = idle_since(used(0), clock, WEEK, at(50))
    assert isinstance(idle, Idle)

    told = [forecast(idle, target * DAY, clock, WEEK, at(50)) for target in (6, 7)]

    assert [(at(50), at(50))] * 2 == [(one.if_worked, one.if_away) for one in told]


def test_without_any_work_a_forecast_stops_a_week_after_the_anchor() -> None:
    """Where no work was ever seen the only stretch began at the anchor."""
    clock = a_clock()
    idle = idle_since(used(0), clock, WEEK, at(3))
    assert isinstance(idle, Idle)

    near, far = (forecast(idle, target * DAY, clock, WEEK, at(3)) for target in (7, 8))

    assert (at(7), None) == (near.if_away, far.if_away)


def test_a_clock_refuses_half_of_what_is_known_of_work() -> None:
    """Oldest and newest work go together: with one alone the first stretch could not be told."""
    with pytest.raises(ValueError, match="go together"):
        LibraryClock(library=LibraryName("lib"), sources=1, newest_work=at(0))


def test_a_doubt_of_others_is_passed_on_in_their_words() -> None:
    """What a daemon saw of the clock, or a scan of its sources, makes the clock unknown."""
    clock = LibraryClock(
        library=LibraryName("lib"), sources=1, observed_since=at(0), doubts=("a source could not be read",)
    )

    idle = idle_since(used(0), clock, WEEK, at(1))

    assert IdleUnknown(reason="a source could not be read", observed_since=at(0)) == idle


def test_gaps_are_found_in_unsorted_overlapping_work() -> None:
    """A long stretch of work covers what lies within it."""
    work: list[datetime | Stretch] = [
        at(30),
        Stretch(start=at(0), end=at(20)),
        at(5),
        Stretch(start=at(10), end=at(12)),
    ]

    assert (Gap(start=at(20), end=at(30)),) == work_gaps(work, WEEK)


def test_a_clock_refuses_gaps_out_of_order() -> None:
    """Overlapping gaps would count twice."""
    with pytest.raises(ValueError, match="overlap or are not sorted"):
        LibraryClock(
            library=LibraryName("lib"),
            sources=1,
            gaps=(Gap(start=at(0), end=at(20)), Gap(start=at(10), end=at(30))),
        )


def test_forecast_tells_both_futures() -> None:
    """With work, after what is missing; without, only if it comes before the clock stops."""
    clock = a_clock(*range(26))
    idle = idle_since(used(0), clock, WEEK, at(25))
    assert isinstance(idle, Idle)

    near = forecast(idle, 30 * DAY, clock, WEEK, at(25))
    far = forecast(idle, 90 * DAY, clock, WEEK, at(25))

    assert (at(30), at(30)) == (near.if_worked, near.if_away)
    assert (at(90), None) == (far.if_worked, far.if_away)


# What must hold for any history. All times are whole quarters of a day, so that borders are hit often.

quarters = st.integers(min_value=0, max_value=400).map(lambda quarter: quarter / 4)
aways = st.integers(min_value=0, max_value=120).map(lambda quarter: quarter * DAY / 4)


@dataclass(frozen=True)
class History:
    """A skill last used on day *anchor*, work in its library on some days, and *now* after all of it."""

    anchor: float
    work: tuple[float, ...]
    away: timedelta
    now: float

    def idle(
        self,
        *,
        anchor: float | None = None,
        more: tuple[float, ...] = (),
        away: timedelta | None = None,
        now: float | None = None,
    ) -> timedelta:
        """Return idle, with one thing changed."""
        patience = self.away if away is None else away
        idle = idle_since(
            used(self.anchor if anchor is None else anchor),
            a_clock(*self.work, *more, observed=-1, away_after=patience),
            patience,
            at(self.now if now is None else now),
        )
        assert isinstance(idle, Idle), idle
        return idle.idle


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Draw a history whose silence up to now is shorter than what counts as a leap of the clock."""
    anchor = draw(quarters)
    work = tuple(draw(st.lists(quarters, max_size=12)))
    quiet = draw(st.integers(min_value=0, max_value=300).map(lambda quarter: quarter / 4))
    now = max(anchor, *work, 0.0) + quiet
    return History(anchor=anchor, work=work or (anchor,), away=draw(aways), now=now)


@given(history=histories())
def test_idle_lies_between_nothing_and_wall_time(history: History) -> None:
    """0 <= idle <= wall time since the anchor, and what ran and what stood still make up all of it."""
    clock = a_clock(*history.work, observed=-1, away_after=history.away)

    idle = idle_since(used(history.anchor), clock, history.away, at(history.now))

    assert isinstance(idle, Idle)
    assert timedelta(0) <= idle.idle <= at(history.now) - idle.anchor.at
    assert at(history.now) - idle.anchor.at == idle.idle + idle.stopped


@given(history=histories())
def test_idle_is_what_a_walk_day_by_day_counts(history: History) -> None:
    """The arithmetic equals a slow walk in quarters of a day that asks at each whether the clock runs."""
    step = DAY / 4
    counted = timedelta(0)
    moment = at(history.anchor)
    while moment < at(history.now):
        before = [at(w) for w in history.work if at(w) <= moment]
        counted += step if moment - max(before, default=at(history.anchor)) < history.away else timedelta(0)
        moment += step

    assert counted == history.idle()


@given(history=histories(), share=st.floats(min_value=0, max_value=1))
def test_an_event_never_makes_idle_larger(history: History, share: float) -> None:
    """Newer evidence, the same work: idle stays or shrinks."""
    newer = history.anchor + round((history.now - history.anchor) * share * 4) / 4

    assert history.idle(anchor=newer) <= history.idle()


@given(history=histories(), share=st.floats(min_value=0, max_value=1))
def test_more_work_never_makes_idle_smaller(history: History, share: float) -> None:
    """Work lets the clock run: with the same anchor, work after it lets idle stay or grow, up to wall time."""
    more = history.anchor + round((history.now - history.anchor) * share * 4) / 4

    assert history.idle() <= history.idle(more=(more,))


@given(history=histories(), more=quarters)
def test_idle_never_falls_and_never_outruns_the_wall(history: History, more: float) -> None:
    """As time goes on without more work, idle stays or grows, at most by the time that went by."""
    later = min(history.now + more, max(history.anchor, *history.work, 0.0) + LEAP / DAY)
    later = min(later, max(history.work) + LEAP / DAY)
    later = max(later, history.now)

    grown = history.idle(now=later) - history.idle()

    assert timedelta(0) <= grown <= at(later) - at(history.now)


@given(history=histories(), more=aways)
def test_more_patience_never_makes_idle_smaller(history: History, more: timedelta) -> None:
    """A longer `away_after` lets the clock run longer."""
    assert history.idle() <= history.idle(away=history.away + more)


@given(history=histories(), missing=st.integers(min_value=1, max_value=200).map(lambda quarter: quarter * DAY / 4))
def test_forecasts_come_true(history: History, missing: timedelta) -> None:
    """At the time foretold idle is exactly the target; None means it is not reached before silence is doubt."""
    clock = a_clock(*history.work, observed=-1, away_after=history.away)
    idle = idle_since(used(history.anchor), clock, history.away, at(history.now))
    assert isinstance(idle, Idle)

    told = forecast(idle, idle.idle + missing, clock, history.away, at(history.now))

    assert at(history.now) + missing == told.if_worked
    if told.if_away is not None:
        assert told.if_worked == told.if_away
        assert idle.idle + missing == history.idle(now=(told.if_away - START) / DAY)
    else:
        assert history.idle(now=max(history.now, max(history.work) + LEAP / DAY)) < idle.idle + missing


@given(history=histories())
def test_stops_do_not_overlap_and_lie_between(history: History) -> None:
    """Stops are disjoint, ordered, not empty and within anchor and now."""
    clock = a_clock(*history.work, away_after=history.away)

    found = stops(clock, at(history.anchor), at(history.now), history.away)

    borders = [at(history.anchor), *(b for stop in found for b in (stop.start, stop.end)), at(history.now)]
    assert sorted(borders) == borders
    assert all(stop.length > timedelta(0) for stop in found)


@given(days=st.floats(min_value=SKEW / DAY + 0.01, max_value=4000))
def test_evidence_from_the_future_is_always_doubt(days: float) -> None:
    """However far ahead: unknown, not a negative or a zero idle."""
    assert isinstance(idle_since(used(100 + days), a_clock(100), WEEK, at(100)), IdleUnknown)

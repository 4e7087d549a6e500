"""
Whether a run may begin, and whether a session is settled: questions about stored times, without side effects.

A gate is asked again at every tick, so it must be cheap, and its answer must not depend on how long the process has
been up: a machine that restarts every hour still becomes due (bugs B024), one that slept through its day is due once
when it wakes (B126). All gates are always asked and all are listed, so that a person sees everything a run waits for
and not the first of it.

Missing state never means due (B001: 54 of 87 skills went in the first tick after an upgrade, since an empty last-run
field read as "long ago" and an unknown idle time as "infinitely idle"). No finished run: the first one is a *baseline*
that records and reports and changes nothing; the first change comes one interval later. No known work: nobody can say
that nobody works, so the idle gate is closed until twice the interval has gone by.

Last run in the future: the clock was set back, or was ahead when that run finished. It is then neither due nor for
ever closed: a run by hand finishes now, becomes the last one, and the schedule goes on from it. (For that the last run
is the one that was *stored* last, not the one with the largest time.)

A run that failed is no finished run, and would be due again at the next tick. `retry` spaces these: an hour after the
first failure, then twice as long each time, up to the interval (B029).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from curatord.core.cheap import dataclass
from curatord.core.settings import GateSettings
from curatord.core.values import require_aware
from curatord.core.words import SKEW, exact, stamp

__all__ = [
    "CLOCK_SLACK",
    "Closed",
    "Gate",
    "GateFacts",
    "Open",
    "SessionTimes",
    "Settled",
    "Unsettled",
    "due",
    "settled",
]

CLOCK_SLACK = timedelta(minutes=5)  # what a time server may correct without anybody having set the clock
_FIRST_RETRY = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFacts:
    """
    What the gates look at; every time is of stored evidence.

    Attributes:
        paused_since: When somebody said `pause`; None while not paused.
        running: Who is at work now (`run 20261130-…, pid 4711`); None for nobody.
        last_finished_at: End of the last finished whole run: no dry run, no distil batch, no failed one. By order of
            storing, not by time.
        failures: How many whole runs have failed since, one after another; *last_failed_at* is the newest's end.
        newest_work_at: Newest record of a person's or program's session over all sources; None where there is none.
    """

    paused_since: datetime | None = None
    running: str | None = None
    last_finished_at: datetime | None = None
    failures: int = 0
    last_failed_at: datetime | None = None
    newest_work_at: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("paused_since", "last_finished_at", "last_failed_at", "newest_work_at"):
            require_aware(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One gate's answer. *look_again_at* is when a closed one may open by itself; None where only an act opens it."""

    name: str
    open: bool
    reason: str
    look_again_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A run may begin. As a *baseline* it records and reports, and changes nothing."""

    gates: tuple[Gate, ...]
    baseline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """
    A run may not begin.

    *reasons* are those of the closed gates, in the gates' order. *look_again_at* is when all of them may be open if
    nothing happens till then; None where one of them opens only by somebody's act.
    """

    gates: tuple[Gate, ...]
    reasons: tuple[str, ...]
    look_again_at: datetime | None


def due(facts: GateFacts, settings: GateSettings, now: datetime, *, bypass: bool = False) -> Open | Closed:
    """
    Return whether a whole run may begin at *now*, with every gate's answer.

    Args:
        facts: Stored evidence.
        settings: Interval, idle time, kind of first run.
        now: The tick's one reading of the clock.
        bypass: Somebody asked for this run by hand: only "one at a time" may keep it, and it is no baseline.

    Source: contract, section 7, "Gates of a run"; hermes.md, section 3, cases 1 to 8.
    """
    gates = (
        _paused(facts),
        _one_at_a_time(facts),
        _clock(facts, settings, now),
        _first_run(facts, settings),
        _interval(facts, settings, now),
        _min_idle(facts, settings, now),
        _retry(facts, settings, now),
    )
    closed = [gate for gate in gates if not gate.open and (not bypass or gate.name == "one_at_a_time")]
    if closed:
        times = [gate.look_again_at for gate in closed]
        known = [at for at in times if at is not None]
        return Closed(
            gates=gates,
            reasons=tuple(gate.reason for gate in closed),
            look_again_at=max(known) if len(known) == len(times) else None,
        )
    return Open(gates=gates, baseline=not bypass and _is_baseline(facts, settings))


def _is_baseline(facts: GateFacts, settings: GateSettings) -> bool:
    return facts.last_finished_at is None and settings.first_run == "baseline"


def _paused(facts: GateFacts) -> Gate:
    if facts.paused_since is None:
        return Gate(name="paused", open=True, reason="not paused")
    reason = f"paused since {stamp(facts.paused_since)}; `resume` ends it"
    return Gate(name="paused", open=False, reason=reason)


def _one_at_a_time(facts: GateFacts) -> Gate:
    if facts.running is None:
        return Gate(name="one_at_a_time", open=True, reason="no other run is at work")
    return Gate(name="one_at_a_time", open=False, reason=f"another is at work: {facts.running}")


def _clock(facts: GateFacts, settings: GateSettings, now: datetime) -> Gate:
    """Refuse a clock that lies before what this clock itself has written."""
    last = max((at for at in (facts.last_finished_at, facts.last_failed_at) if at is not None), default=None)
    if last is not None and last - now > CLOCK_SLACK:
        reason = (
            f"the last run ended at {stamp(last)}, but it is {stamp(now)} here: the clock was set back, or was ahead "
            "then; set it right, or say `run` to go on from now"
        )
        return Gate(name="clock", open=False, reason=reason, look_again_at=last)
    if facts.newest_work_at is not None and facts.newest_work_at - now > SKEW:
        reason = (
            f"the newest work in the transcripts is dated {stamp(facts.newest_work_at)}, but it is {stamp(now)} here"
        )
        return Gate(name="clock", open=False, reason=reason, look_again_at=facts.newest_work_at)
    return Gate(name="clock", open=True, reason="the clock agrees with what is stored")


def _first_run(facts: GateFacts, settings: GateSettings) -> Gate:
    if facts.last_finished_at is not None:
        return Gate(name="first_run", open=True, reason="a whole run has finished before")
    if settings.first_run == "baseline":
        reason = (
            "no run has finished yet: the first one records and reports, "
            f"the first change comes {exact(settings.interval)} later"
        )
        return Gate(name="first_run", open=True, reason=reason)
    return Gate(name="first_run", open=True, reason="no run has finished yet, and first_run is `run`")


def _interval(facts: GateFacts, settings: GateSettings, now: datetime) -> Gate:
    last = facts.last_finished_at
    if last is None:
        return Gate(name="interval", open=True, reason="no run has finished yet")
    due_at = last + settings.interval
    reason = f"the last whole run ended at {stamp(last)}, the interval is {exact(settings.interval)}"
    if now >= due_at:
        return Gate(name="interval", open=True, reason=reason)
    return Gate(name="interval", open=False, reason=reason, look_again_at=due_at)


def _min_idle(facts: GateFacts, settings: GateSettings, now: datetime) -> Gate:
    if _is_baseline(facts, settings):
        return Gate(name="min_idle", open=True, reason="a baseline changes nothing and disturbs nobody")
    last = facts.last_finished_at
    overdue_at = None if last is None else last + 2 * settings.interval
    overdue = overdue_at is not None and now >= overdue_at
    if facts.newest_work_at is None:
        if overdue:
            return Gate(name="min_idle", open=True, reason="no work was ever seen, and two intervals have gone by")
        if last is None:
            return Gate(name="min_idle", open=True, reason="no work was ever seen, and first_run is `run`")
        reason = "no work was ever seen, so nobody can tell that nobody works"
        return Gate(name="min_idle", open=False, reason=reason, look_again_at=overdue_at)
    needed, name = settings.min_idle, "min_idle"
    if overdue and settings.session_quiet < needed:
        needed, name = settings.session_quiet, "session_quiet (two intervals have gone by)"
    idle_at = facts.newest_work_at + needed
    reason = f"the newest work was at {stamp(facts.newest_work_at)}, {name} is {exact(needed)}"
    if now >= idle_at:
        return Gate(name="min_idle", open=True, reason=reason)
    if overdue_at is not None:
        idle_at = min(idle_at, max(overdue_at, facts.newest_work_at + settings.session_quiet))
    return Gate(name="min_idle", open=False, reason=reason, look_again_at=idle_at)


def _retry(facts: GateFacts, settings: GateSettings, now: datetime) -> Gate:
    if facts.failures == 0 or facts.last_failed_at is None:
        return Gate(name="retry", open=True, reason="the last run did not fail")
    wait = min(settings.interval, _FIRST_RETRY * 2 ** min(facts.failures - 1, 20))
    again_at = facts.last_failed_at + wait
    failed = "the last run failed" if facts.failures == 1 else f"the last {facts.failures} runs failed"
    reason = f"{failed}, the newest at {stamp(facts.last_failed_at)}; the next try is {exact(wait)} later"
    if now >= again_at:
        return Gate(name="retry", open=True, reason=reason)
    return Gate(name="retry", open=False, reason=reason, look_again_at=again_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTimes:
    """
    What is known of when a session was alive.

    Attributes:
        newest_record_at: Newest time that one of its records bears; None where none bears any.
        growth_seen_at: When curatord last saw it grow, by its own clock.
        oldest_unreviewed_at: Time of its oldest record that no review has looked at; None where there is none.
    """

    newest_record_at: datetime | None
    growth_seen_at: datetime | None
    oldest_unreviewed_at: datetime | None

    def __post_init__(self) -> None:
        for name in ("newest_record_at", "growth_seen_at", "oldest_unreviewed_at"):
            require_aware(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A session may be looked at: it is quiet, or (*forced*) endless."""

    reason: str
    forced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """A session is still going on; None in *look_again_at* where nothing is known of its time."""

    reason: str
    look_again_at: datetime | None


def settled(times: SessionTimes, settings: GateSettings, now: datetime) -> Settled | Unsettled:
    """
    Return whether a session has been quiet for `session_quiet`, or has gone on for `session_force`.

    A time more than a day ahead is no evidence of when its session was alive.

    Source: contract, section 4, `gates`.
    """
    signs = _plausible((times.newest_record_at, times.growth_seen_at), now)
    if not signs:
        return Unsettled(reason="nothing tells when it was alive, or only times in the future do", look_again_at=None)
    newest = max(signs)
    quiet_at = newest + settings.session_quiet
    if now >= quiet_at:
        return Settled(reason=f"quiet since {stamp(newest)}, session_quiet is {exact(settings.session_quiet)}")
    oldest = _plausible((times.oldest_unreviewed_at,), now)
    reason = f"alive at {stamp(newest)}, session_quiet is {exact(settings.session_quiet)}"
    if not oldest:
        return Unsettled(reason=reason, look_again_at=quiet_at)
    force_at = oldest[0] + settings.session_force
    if now >= force_at:
        reason = (
            f"endless: its oldest unreviewed record is of {stamp(oldest[0])}, "
            f"session_force is {exact(settings.session_force)}"
        )
        return Settled(reason=reason, forced=True)
    return Unsettled(reason=reason, look_again_at=min(quiet_at, force_at))


def _plausible(times: Iterable[datetime | None], now: datetime) -> list[datetime]:
    return [at for at in times if at is not None and at - now <= SKEW]

"""When a run may begin and when a session is settled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.gates import Closed, GateFacts, Open, SessionTimes, Settled, Unsettled, due, settled
from curatord.core.settings import GateSettings

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
DEFAULTS = GateSettings()
GATES = ("paused", "one_at_a_time", "clock", "first_run", "interval", "min_idle", "retry")


def facts(**changes: object) -> GateFacts:
    """Return facts with all gates open: the last run 8 days ago, nobody at work for 3 hours."""
    values: dict[str, object] = {"last_finished_at": NOW - 8 * DAY, "newest_work_at": NOW - 3 * HOUR}
    return GateFacts(**(values | changes))  # type: ignore[arg-type]


def closed_gates(answer: Open | Closed) -> list[str]:
    """Return the names of the closed gates."""
    return [gate.name for gate in answer.gates if not gate.open]


def test_an_overdue_quiet_machine_is_due() -> None:
    """hermes.md, cases 3 and 6: two things suffice, the interval and quiet; every gate is listed."""
    answer = due(facts(), DEFAULTS, NOW)

    assert isinstance(answer, Open)
    assert (GATES, False) == (tuple(gate.name for gate in answer.gates), answer.baseline)


def test_missing_state_gives_a_baseline_and_never_a_change() -> None:
    """hermes.md, cases 1 and 2; bugs B001: however idle, the first run only records."""
    answer = due(GateFacts(), DEFAULTS, NOW)

    assert isinstance(answer, Open)
    assert answer.baseline


def test_the_first_change_comes_one_interval_after_the_baseline() -> None:
    """A baseline is a finished run: closed for an interval, then open and no baseline."""
    after = facts(last_finished_at=NOW)

    soon, later = due(after, DEFAULTS, NOW + 6 * DAY), due(after, DEFAULTS, NOW + 7 * DAY)

    assert (["interval"], Open) == (closed_gates(soon), type(later))
    assert isinstance(later, Open)
    assert not later.baseline


@pytest.mark.parametrize(
    ("last", "settings", "words"),
    [
        (NOW - 8 * DAY, DEFAULTS, "a whole run has finished before"),
        (None, DEFAULTS, "the first one records and reports, the first change comes 7 days later"),
        (None, GateSettings(first_run="run"), "first_run is `run`"),
    ],
)
def test_the_first_run_gate_says_what_the_run_will_be(
    last: datetime | None, settings: GateSettings, words: str
) -> None:
    """It never closes: it tells whether changes are to be expected."""
    gate = next(gate for gate in due(facts(last_finished_at=last), settings, NOW).gates if gate.name == "first_run")

    assert gate.open
    assert words in gate.reason


def test_first_run_may_be_a_run() -> None:
    """`first_run: run` is no baseline, and waits for quiet like any."""
    settings = GateSettings(first_run="run")

    quiet = due(facts(last_finished_at=None), settings, NOW)
    busy = due(facts(last_finished_at=None, newest_work_at=NOW - HOUR), settings, NOW)

    assert isinstance(quiet, Open)
    assert not quiet.baseline
    assert ["min_idle"] == closed_gates(busy)


@pytest.mark.parametrize(
    ("changes", "gate", "look_again"),
    [
        ({"paused_since": NOW - DAY}, "paused", None),  # hermes.md, case 4
        ({"running": "run 20260601-115900"}, "one_at_a_time", None),
        ({"last_finished_at": NOW}, "interval", NOW + 7 * DAY),  # case 3
        ({"newest_work_at": NOW - timedelta(seconds=60)}, "min_idle", NOW + 2 * HOUR - timedelta(seconds=60)),  # 6
        ({"failures": 1, "last_failed_at": NOW - HOUR / 2}, "retry", NOW + HOUR / 2),
        ({"failures": 3, "last_failed_at": NOW}, "retry", NOW + 4 * HOUR),
        ({"failures": 99, "last_failed_at": NOW}, "retry", NOW + 7 * DAY),
    ],
)
def test_each_gate_closes_alone(changes: dict[str, object], gate: str, look_again: datetime | None) -> None:
    """One reason, the gate's, and when to look again."""
    answer = due(facts(**changes), DEFAULTS, NOW)

    assert isinstance(answer, Closed)
    assert ([gate], 1, look_again) == (closed_gates(answer), len(answer.reasons), answer.look_again_at)


def test_all_closed_gates_are_told_and_the_latest_decides() -> None:
    """A person sees everything a run waits for; looking again before the last of it makes no sense."""
    answer = due(facts(last_finished_at=NOW - 6 * DAY, newest_work_at=NOW), DEFAULTS, NOW)

    assert isinstance(answer, Closed)
    assert ["interval", "min_idle"] == closed_gates(answer)
    assert NOW + DAY == answer.look_again_at


def test_after_two_intervals_session_quiet_is_enough() -> None:
    """On a machine that is never idle for two hours, half an hour is enough in the end."""
    work = NOW - timedelta(minutes=31)

    overdue = due(facts(last_finished_at=NOW - 14 * DAY, newest_work_at=work), DEFAULTS, NOW)
    not_yet = due(facts(last_finished_at=NOW - 13 * DAY, newest_work_at=work), DEFAULTS, NOW)

    assert (Open, ["min_idle"]) == (type(overdue), closed_gates(not_yet))


def test_idleness_is_of_the_evidence_and_not_of_the_process() -> None:
    """Bugs B024, B025: the newest record decides, so a restart neither delays nor hastens; asking again is the same."""
    assert due(facts(), DEFAULTS, NOW) == due(facts(), DEFAULTS, NOW)
    assert isinstance(due(facts(newest_work_at=NOW - 2 * HOUR), DEFAULTS, NOW), Open)


def test_unknown_idleness_holds_until_two_intervals_have_gone_by() -> None:
    """No work was ever seen: nobody can tell that nobody works, but it is no reason to wait for ever."""
    waiting = due(facts(newest_work_at=None), DEFAULTS, NOW)

    assert isinstance(waiting, Closed)
    assert (["min_idle"], NOW + 6 * DAY) == (closed_gates(waiting), waiting.look_again_at)
    assert isinstance(due(facts(newest_work_at=None), DEFAULTS, NOW + 6 * DAY), Open)


def test_a_run_in_the_future_is_a_clock_set_back() -> None:
    """A year back: neither due nor a double run, and the reason says what to do."""
    answer = due(facts(last_finished_at=NOW + 365 * DAY), DEFAULTS, NOW)

    assert isinstance(answer, Closed)
    assert ["clock", "interval"] == closed_gates(answer)
    assert any("the clock was set back" in reason for reason in answer.reasons)


@pytest.mark.parametrize(
    ("changes", "closed"),
    [
        ({"last_finished_at": NOW + timedelta(minutes=5)}, False),  # what a time server corrects
        ({"last_finished_at": NOW + timedelta(minutes=5, seconds=1)}, True),
        ({"failures": 1, "last_failed_at": NOW + HOUR}, True),  # a failed run was timed by this clock too
        ({"failures": 1, "last_failed_at": NOW + HOUR, "last_finished_at": None}, True),
        ({"newest_work_at": NOW + DAY}, False),  # other machines, other zones
        ({"newest_work_at": NOW + DAY + timedelta(seconds=1)}, True),
    ],
)
def test_the_clock_gate_at_its_borders(changes: dict[str, object], closed: bool) -> None:
    """Our own times may be minutes ahead, those of transcripts a day."""
    assert closed == ("clock" in closed_gates(due(facts(**changes), DEFAULTS, NOW)))


def test_work_from_the_future_is_a_clock_set_back() -> None:
    """Transcripts that reach further than now: the clock gate says so."""
    assert "clock" in closed_gates(due(facts(newest_work_at=NOW + 30 * DAY), DEFAULTS, NOW))


def test_a_machine_that_slept_is_due_once() -> None:
    """Bugs B126: nine days after the last run with an interval of seven: due; after that run: not."""
    slept = facts(last_finished_at=NOW - 9 * DAY, newest_work_at=NOW - 9 * DAY)

    assert isinstance(due(slept, DEFAULTS, NOW), Open)
    assert isinstance(due(facts(last_finished_at=NOW), DEFAULTS, NOW + timedelta(minutes=1)), Closed)


def test_by_hand_only_another_run_is_in_the_way() -> None:
    """`run` bypasses all gates but one, lists them all the same, and is never a baseline."""
    everything = facts(paused_since=NOW, last_finished_at=None, newest_work_at=NOW, failures=2, last_failed_at=NOW)

    free = due(everything, DEFAULTS, NOW, bypass=True)
    busy = due(facts(running="pid 4711"), DEFAULTS, NOW, bypass=True)

    assert isinstance(free, Open)
    assert (["paused", "retry"], False) == (closed_gates(free), free.baseline)
    assert isinstance(busy, Closed)
    assert ("another is at work: pid 4711",) == busy.reasons


@given(
    last=st.none() | st.integers(-100, 2000),
    work=st.none() | st.integers(-100, 2000),
    failures=st.integers(0, 30),
    failed=st.none() | st.integers(-100, 2000),
    paused=st.booleans(),
)
def test_looking_again_when_told_to_finds_no_clock_gate_closed(
    last: int | None, work: int | None, failures: int, failed: int | None, paused: bool
) -> None:
    """If nothing happens till then, all gates that time alone opens are open at `look_again_at`, and it lies ahead."""

    def hours_ago(hours: int | None) -> datetime | None:
        return None if hours is None else NOW - hours * HOUR

    state = GateFacts(
        paused_since=NOW if paused else None,
        last_finished_at=hours_ago(last),
        newest_work_at=hours_ago(work),
        failures=failures,
        last_failed_at=hours_ago(failed),
    )

    answer = due(state, DEFAULTS, NOW)

    if isinstance(answer, Closed) and answer.look_again_at is not None:
        assert answer.look_again_at > NOW
        assert isinstance(due(state, DEFAULTS, answer.look_again_at), Open)
    if last is None:
        assert not isinstance(answer, Open) or answer.baseline


def session(record: float | None = None, growth: float | None = None, oldest: float | None = None) -> SessionTimes:
    """Return the times of a session, in minutes before now."""

    def at(minutes: float | None) -> datetime | None:
        return None if minutes is None else NOW - timedelta(minutes=minutes)

    return SessionTimes(newest_record_at=at(record), growth_seen_at=at(growth), oldest_unreviewed_at=at(oldest))


@pytest.mark.parametrize(
    ("times", "is_settled", "forced"),
    [
        (session(record=30), True, False),
        (session(record=29), False, False),
        (session(record=90, growth=10), False, False),  # a record without time, or copied late, was seen to grow
        (session(record=10, growth=90), False, False),
        (session(record=90, growth=31), True, False),
        (session(record=1, oldest=24 * 60), True, True),
        (session(record=1, oldest=24 * 60 - 1), False, False),
        (session(), False, False),
        (session(record=-3 * 24 * 60, growth=40), True, False),  # dated three days ahead: only growth is evidence
        (session(record=-3 * 24 * 60), False, False),
        (session(record=-24 * 60, growth=40), False, False),  # a day ahead may be another zone
        (session(record=40, growth=-3 * 24 * 60), True, False),  # our clock was ahead when it saw the growth
    ],
)
def test_a_session_is_settled_when_quiet_or_endless(times: SessionTimes, is_settled: bool, forced: bool) -> None:
    """Quiet for half an hour by records and by growth, or older than a day without a review."""
    answer = settled(times, DEFAULTS, NOW)

    assert is_settled == isinstance(answer, Settled)
    assert forced == (isinstance(answer, Settled) and answer.forced)


def test_an_unsettled_session_says_when_to_look_again() -> None:
    """At the end of the quiet time, or of its day, whichever comes first."""
    quiet, force = session(record=10, oldest=60), session(record=10, oldest=24 * 60 - 5)

    answers = [settled(times, DEFAULTS, NOW) for times in (quiet, force)]

    assert [NOW + timedelta(minutes=20), NOW + timedelta(minutes=5)] == [
        answer.look_again_at for answer in answers if isinstance(answer, Unsettled)
    ]

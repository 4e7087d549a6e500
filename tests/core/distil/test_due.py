"""When a session is looked at: settled, enough, out of cooldown, allowed; the longest waiting first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from curatord.core.distil.digest import Digest, Entry
from curatord.core.distil.due import (
    Due,
    NotDue,
    SessionFacts,
    due,
    excluded_by,
    next_try,
    nothing_to_learn,
    pause,
    source_off,
)
from curatord.core.settings import DistilSettings, GateSettings

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def session(**changes: Any) -> SessionFacts:
    """Return a session that is due, but for *changes*."""
    usual: dict[str, Any] = {
        "host": "claude-code",
        "session_id": "s",
        "last_at": NOW - HOUR,
        "oldest_unreviewed_at": NOW - 2 * HOUR,
        "user_turns": 3,
        "tool_calls": 0,
    }
    return SessionFacts(**(usual | changes))


def judge(*, backfill: bool = False, **changes: Any) -> Due | NotDue:
    return due(session(**changes), DistilSettings(), GateSettings(), NOW, backfill=backfill)


def test_a_settled_session_with_enough_in_it_is_due() -> None:
    """Three turns, or ten tool calls."""
    assert isinstance(judge(), Due)
    assert isinstance(judge(user_turns=0, tool_calls=10), Due)


def test_too_little_waits_for_more() -> None:
    """The reason says what is there and what is asked for."""
    found = judge(user_turns=2, tool_calls=9)

    assert isinstance(found, NotDue)
    assert ("waiting", None) == (found.code, found.look_again_at)
    assert "2 user turns and 9 tool calls" in found.reason


def test_a_session_that_goes_on_waits_for_quiet() -> None:
    """30 minutes without a record; it is looked at again when they are over."""
    found = judge(last_at=NOW - timedelta(minutes=10))

    assert isinstance(found, NotDue)
    assert ("waiting", NOW + timedelta(minutes=20)) == (found.code, found.look_again_at)


def test_growth_counts_as_life() -> None:
    """A record whose time is old may have been written a minute ago."""
    assert isinstance(judge(grew_at=NOW - timedelta(minutes=1)), NotDue)


def test_an_endless_session_is_due_after_a_day() -> None:
    """Counted from its oldest record that was not looked at."""
    alive = NOW - timedelta(minutes=1)

    assert isinstance(judge(last_at=alive, oldest_unreviewed_at=NOW - timedelta(hours=24)), Due)
    assert isinstance(judge(last_at=alive, oldest_unreviewed_at=NOW - timedelta(hours=23)), NotDue)
    assert isinstance(judge(settled=False, last_at=alive, oldest_unreviewed_at=NOW - timedelta(hours=24)), Due)


def test_the_callers_word_on_quiet_counts() -> None:
    """Where it knows more than the three times tell."""
    assert isinstance(judge(settled=True, last_at=None, oldest_unreviewed_at=None), Due)
    assert isinstance(judge(settled=False), NotDue)


def test_cooldown() -> None:
    """One hour between two looks at one session."""
    found = judge(looked_at=NOW - timedelta(minutes=40))

    assert isinstance(found, NotDue)
    assert ("cooldown", NOW + timedelta(minutes=20)) == (found.code, found.look_again_at)
    assert isinstance(judge(looked_at=NOW - HOUR), Due)


@pytest.mark.parametrize("kind", ["scheduled", "subagent", "reviewer", "own"])
def test_what_is_no_work_teaches_nothing(kind: str) -> None:
    """Schedules, sub-agents, reviewers of the host, curatord itself."""
    found = judge(kind=kind)

    assert isinstance(found, NotDue)
    assert found.code == "skipped"


def test_an_excluded_session_is_never_due() -> None:
    """Whatever else speaks for it, a backfill too."""
    found = judge(excluded="its working folder matches", backfill=True)

    assert isinstance(found, NotDue)
    assert ("skipped", "its working folder matches") == (found.code, found.reason)


def test_failures_wait_longer_and_longer_and_then_for_a_person() -> None:
    """1 m, 5 m, 30 m, 1 h; after the fifth it is put aside."""
    waits = [next_try(n, NOW) - NOW for n in range(1, 7)]

    assert [timedelta(minutes=m) for m in (1, 5, 30, 60, 360, 360)] == waits
    waiting = judge(failures=2, retry_at=NOW + timedelta(minutes=5))
    assert isinstance(waiting, NotDue)
    assert ("error", NOW + timedelta(minutes=5)) == (waiting.code, waiting.look_again_at)
    assert isinstance(judge(failures=2, retry_at=NOW), Due)
    aside = judge(failures=5, retry_at=NOW - HOUR)
    assert isinstance(aside, NotDue)
    assert ("error", None) == (aside.code, aside.look_again_at)
    assert isinstance(judge(put_aside=True), NotDue)


def test_who_had_a_turn_goes_behind_whoever_waited_meanwhile() -> None:
    """Its place is that of its next try; else the oldest that always fails would be asked first for ever."""
    tried = judge(oldest_unreviewed_at=NOW - 9 * HOUR, failures=1, retry_at=NOW - timedelta(minutes=1))
    waited = judge(oldest_unreviewed_at=NOW - HOUR)

    assert isinstance(tried, Due)
    assert isinstance(waited, Due)
    assert waited.order_key < tried.order_key


def test_pauses_are_doubled_up_to_six_hours() -> None:
    """However often it was."""
    minutes = [pause(n, timedelta(minutes=5)) / timedelta(minutes=1) for n in (1, 2, 3, 7, 8, 10_000)]

    assert [5, 10, 20, 320, 360, 360] == minutes


def test_the_backlog_of_a_first_start_is_left_but_for_72_hours() -> None:
    """The rest is looked at on demand, or when it goes on."""
    first = NOW - timedelta(days=10)
    old: dict[str, Any] = {"first_seen_backlog": True, "first_seen_at": first}
    found = judge(**old, last_at=first - timedelta(hours=73))

    assert isinstance(found, NotDue)
    assert found.code == "skipped"
    assert "curatord refine" in found.reason
    assert isinstance(judge(**old, last_at=first - timedelta(hours=72)), Due)
    assert isinstance(judge(**old, last_at=first - timedelta(hours=73), backfill=True), Due)
    assert isinstance(judge(**old, last_at=first + HOUR), Due)
    assert isinstance(judge(**old, last_at=first - timedelta(days=30), looked_at=first), Due)


def test_the_longest_waiting_comes_first() -> None:
    """By its oldest record that was not looked at; ties by host and id."""
    keys = []
    for number, hours in enumerate((3, 30, 5)):
        found = judge(session_id=str(number), oldest_unreviewed_at=NOW - hours * HOUR)
        assert isinstance(found, Due)
        keys.append(found.order_key)
    nothing = judge(oldest_unreviewed_at=None, last_at=None, settled=True, session_id="n")

    assert ["1", "2", "0"] == [key[2] for key in sorted(keys)]
    assert isinstance(nothing, Due)
    assert min([*keys, nothing.order_key]) == nothing.order_key


@pytest.mark.parametrize(
    ("cwds", "globs", "excluded"),
    [
        (["/home/me/work/app"], [], False),
        (["/home/me/work/app"], ["/home/me/private*"], False),
        (["/home/me/private/notes"], ["/home/me/private"], True),
        (["/home/me/private/notes/deep"], ["*/private"], True),
        (["/home/me/work", "/home/me/private"], ["/home/me/private/"], True),
        (["/home/me/private2"], ["/home/me/private"], False),
        ([], ["/home/me/private"], True),
        ([], [], False),
        (["C:\\Users\\me\\private"], ["*/private"], True),
    ],
)
def test_excluded_folders(cwds: list[str], globs: list[str], excluded: bool) -> None:
    """Any record's folder, or one above it; a session without a folder where something is excluded."""
    assert excluded is (excluded_by(cwds, globs) is not None)


@pytest.mark.parametrize(
    ("distil", "local", "reviewer", "off"),
    [
        ("on", False, True, False),
        ("off", True, False, True),
        ("auto", True, False, False),
        ("auto", False, False, True),
        ("auto", True, True, True),
    ],
)
def test_which_sources_are_distilled(
    distil: Literal["on", "off", "auto"], local: bool, reviewer: bool, off: bool
) -> None:
    """`auto`: only while the model runs here and the host has no reviewer of its own."""
    assert off is (source_off(distil, enabled=True, local_model=local, host_reviewer=reviewer) is not None)
    assert source_off(distil, enabled=False, local_model=local, host_reviewer=reviewer) is not None


def a_digest(text: str = "x" * 300, **changes: Any) -> Digest:
    usual: dict[str, Any] = {
        "entries": (Entry(id="r1", role="user", text=text, evidence=True),),
        "user_messages": 3,
        "assistant_messages": 3,
    }
    return Digest(**(usual | changes))


@pytest.mark.parametrize("sign", [{"tool_calls": 1}, {"corrected": True}, {"fixed": True}, {"asked": True}])
def test_one_sign_of_a_lesson_is_enough_for_a_call(sign: dict[str, Any]) -> None:
    """Work with a tool, a correction, a mended failure, a wish, in however few words."""
    assert nothing_to_learn(a_digest("hi", **sign)) is None


def test_talk_that_says_something_is_enough_for_a_call() -> None:
    """How work shall be done may be told without any work."""
    assert nothing_to_learn(a_digest()) is None


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("hi", {}),
        ("x" * 300, {"user_messages": 1, "assistant_messages": 2, "tool_calls": 20}),
        ("x" * 300, {"entries": (), "tool_calls": 20}),
        ("x" * 300, {"entries": (), "asked": True}),
    ],
)
def test_without_a_sign_nobody_is_asked(text: str, changes: dict[str, Any]) -> None:
    """Small talk, three messages, nothing said at all."""
    assert nothing_to_learn(a_digest(text, **changes)) is not None


def test_a_wish_is_enough_in_the_shortest_session() -> None:
    """What a user asks for in so many words is looked at."""
    assert nothing_to_learn(a_digest("keep it", asked=True, user_messages=1, assistant_messages=0)) is None

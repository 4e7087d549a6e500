"""What `explain` says: the contract's JSON, and lines a person believes."""

from __future__ import annotations

from typing import Any

import pytest

from curatord.core.explain import StateChange, explain_json, explain_text
from curatord.core.idle import LibraryClock
from curatord.core.lifecycle import SkillFacts, judge
from curatord.core.values import Importance, Mode, RunId, State
from tests.core.skill_facts import NOW, POLICY, a_clock, a_clock_with_work, a_key, a_skill, ago

HISTORY = (
    StateChange(at=ago(300), from_state=None, to_state=State.ACTIVE, reason="first seen"),
    StateChange(
        at=ago(20),
        from_state=State.ACTIVE,
        to_state=State.STALE,
        reason="idle for 30 days",
        run_id=RunId("20260512-120000"),
    ),
)


def text(facts: SkillFacts, clock: LibraryClock | None = None, mode: Mode = Mode.GUARDED, **more: Any) -> str:
    """Return what `explain` prints of *facts*."""
    return explain_text(facts, judge(facts, clock or a_clock(), POLICY, NOW), more.get("history", ()), mode)


def test_json_has_the_keys_of_the_contract() -> None:
    """All of `explain`'s keys, with times as ISO and periods in days."""
    facts = a_skill(last=50, stale=20)

    value = explain_json(facts, judge(facts, a_clock(), POLICY, NOW), HISTORY)

    assert {
        "skill": "claude/csv-fix",
        "state": "stale",
        "since": "2026-05-12T12:00:00.000Z",
        "idle_days": 50.0,
        "counted_from": "its last use (claude-code), 2026-04-12T12:00:00Z",
        "observed_since": "2025-06-01T12:00:00.000Z",
        "stopped_days": 0.0,
        "rule": None,
        "reason": "stays stale: idle for 50 days, counted from its last use (claude-code), "
        "2026-04-12T12:00:00Z; archive_after is 90 days",
        "next": {
            "state": "archived",
            "at": "2026-07-11T12:00:00.000Z",
            "condition": "unless it is used, viewed or changed before; the clock stands still while nobody works",
        },
        "history": [
            {
                "at": "2025-08-05T12:00:00.000Z",
                "from": None,
                "to": "active",
                "reason": "first seen",
                "run_id": None,
            },
            {
                "at": "2026-05-12T12:00:00.000Z",
                "from": "active",
                "to": "stale",
                "reason": "idle for 30 days",
                "run_id": "20260512-120000",
            },
        ],
    } == {name: value[name] for name in value if name not in {"warning", "managed", "would", "clock", "edited"}}


def test_json_says_null_where_nothing_can_be_told() -> None:
    """Without testimony no number is made up; the reason says why."""
    facts = a_skill(last=50)

    value = explain_json(facts, judge(facts, a_clock(observed_since=None), POLICY, NOW), ())

    assert (None, None, None, None, 4, "unknown") == tuple(
        value[name] for name in ("idle_days", "counted_from", "observed_since", "stopped_days", "rule", "clock")
    )
    assert "no usage signal" in value["reason"]


def test_a_person_reads_where_why_what_next_and_what_to_do() -> None:
    """The four answers, in order."""
    assert (
        "claude/csv-fix is stale since 2026-05-12.\n"
        "  Why: stays stale: idle for 50 days, counted from its last use (claude-code), 2026-04-12T12:00:00Z; "
        "archive_after is 90 days.\n"
        "  Used: 1 use in 1 session of claude-code; last use 2026-04-12.\n"
        "  Clock: idle for 50 days; the transcripts can tell since 2025-06-01.\n"
        "  Next: archived in the first run after 2026-07-11 (if nobody works from now on: not before somebody does), "
        "unless it is used, viewed or changed before; the clock stands still while nobody works.\n"
        "  To keep it as it is: curatord pin claude/csv-fix\n"
        "  To be warned instead: curatord importance claude/csv-fix important\n"
        "  History:\n"
        "    2025-08-05 active: first seen\n"
        "    2026-05-12 active → stale: idle for 30 days (run 20260512-120000)"
    ) == text(a_skill(last=50, stale=20), history=HISTORY)


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        (
            a_skill(last=200, managed=False, why="nobody did"),
            "To hand it over: curatord adopt claude/csv-fix",
        ),
        (a_skill(last=200, managed=False, why="nobody did"), "If it were adopted: stale with the next run"),
        (a_skill(last=200, pinned=True), "To let it age: curatord unpin claude/csv-fix"),
        (a_skill(last=200, importance=Importance.CRITICAL), "curatord importance claude/csv-fix normal"),
        (a_skill(last=200, host_pinned=True), "To let it age: take the pin away in the host"),
        (a_skill(last=200, stale=50, edited="edited by hand"), "Next: proposed to be archived with the next run"),
        (a_skill(last=1, edited="edited by hand"), "To let it be changed again: curatord adopt claude/csv-fix"),
        (a_skill(last=1, edited="edited by hand"), "Edited: edited by hand; changes of it are only proposed"),
        (a_skill(last=None), "Used: never, as far as anybody saw."),
        (
            a_skill(last=9, state=State.ARCHIVED, archived_at=ago(20), state_since=ago(20)),
            "To have it back: curatord restore claude/csv-fix",
        ),
        (
            a_skill(last=200, stale=50, importance=Importance.IMPORTANT),
            "Note: claude/csv-fix would be archived",
        ),
    ],
)
def test_the_way_out_is_named(facts: SkillFacts, line: str) -> None:
    """Each kind of state names what changes it."""
    assert line in text(facts)


def test_review_says_that_it_will_ask() -> None:
    """In mode review a due skill is proposed, not archived."""
    facts = a_skill(last=200, stale=50)

    assert "Next: archived with the next run" in text(facts)
    assert "Next: proposed to be archived with the next run" in text(facts, mode=Mode.REVIEW)


def test_a_clock_that_stands_still_is_told() -> None:
    """While nobody works a person sees that nothing ages, and how much did not count."""
    shown = text(a_skill(last=80), a_clock_with_work(80, 75, 70, 65, 60))

    assert "Clock: idle for 27 days; not counting 53 days in which nobody worked;" in shown
    assert "it stands still now, until somebody works again." in shown


def test_a_broken_skill_offers_no_command() -> None:
    """Nothing curatord could do would help: the reason is all."""
    shown = text(a_skill(last=200, broken="SKILL.md line 2: no header"))

    assert "Why: unchanged: it is broken: SKILL.md line 2: no header." in shown
    assert "curatord" not in shown


def test_only_the_newest_changes_are_shown() -> None:
    """A long history is cut at its old end, and says so."""
    history = tuple(
        StateChange(at=ago(100 - n), from_state=State.ACTIVE, to_state=State.STALE, reason=f"change {n}")
        for n in range(15)
    )

    shown = text(a_skill(last=50), history=history)

    assert "(5 older changes not shown; --json has all)" in shown
    assert ("change 4" in shown, "change 5" in shown, "change 14" in shown) == (False, True, True)


def test_names_and_reasons_of_others_cannot_act_on_a_terminal() -> None:
    """A skill's path and what is wrong with it are somebody else's text."""
    shown = text(a_skill(key=a_key("evil\x1b[2J\nOK: all fine"), last=1, broken="\x1b]0;title\x07"))

    assert "\x1b" not in shown
    assert not any(line.startswith("OK:") for line in shown.splitlines())


def test_commands_survive_a_shell() -> None:
    """A path with blanks is quoted where it is part of a command."""
    assert "curatord pin 'claude/my skill'" in text(a_skill(key=a_key("my skill"), last=1))

"""
The rules: golden cases, one file each, then what must hold for any facts.

A file of `tests/golden/lifecycle` holds the facts (numbers are days before *now*), `expect`, which a person wrote, and
`verdict`, the whole answer in words, which `CURATORD_GOLDEN=rewrite` writes anew. Read the
difference before committing it.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.cheap import replace
from curatord.core.explain import next_json
from curatord.core.idle import Idle, LibraryClock
from curatord.core.lifecycle import SkillFacts, Verdict, birth_of, judge
from curatord.core.settings import LifecycleSettings
from curatord.core.states import Signal
from curatord.core.usage import Activity, SkillUsage
from curatord.core.values import EventKind, Importance, LibraryName, State
from curatord.core.words import days
from tests.core.skill_facts import (
    DAY,
    NOW,
    POLICY,
    a_clock,
    a_clock_with_work,
    a_record,
    a_skill,
    ago,
)

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "lifecycle"
CASES = sorted(GOLDEN.glob("*.json"))


def facts_of(skill: dict[str, Any]) -> SkillFacts:
    """Return the facts that a golden file tells."""
    left = dict(skill)
    newest: dict[EventKind, Activity] = {}
    for kind, name in ((EventKind.USE, "last_use"), (EventKind.VIEW, "last_view"), (EventKind.PATCH, "last_patch")):
        at = left.pop(name, None)
        if at is not None:
            newest[kind] = Activity(at=ago(at), kind=kind, witness="claude-code")
    born = left.pop("born", 300)
    record: dict[str, Any] = {
        "born_at": ago(born),
        "born_from": left.pop("born_from", "seen"),
        "first_seen_at": ago(left.pop("first_seen", 300)),
        "pinned": left.pop("pinned", False),
        "importance": Importance(left.pop("importance", "normal")),
    }
    if "stale_for" in left:
        record["stale"] = left.pop("stale_for")
    if "archived_for" in left:
        at = ago(left.pop("archived_for"))
        record |= {"state": State.ARCHIVED, "state_since": at, "archived_at": at, "archive_reason": "idle for 90 days"}
    for ours, name in (("restored_at", "restored"), ("missing_since", "missing_for"), ("owner_at", "owned_for")):
        if name in left:
            record[ours] = ago(left.pop(name))
    if "owner" in left:
        record["owner"] = left.pop("owner")
    facts = SkillFacts(
        record=a_record(**record),
        managed=left.pop("managed", True),
        why=left.pop("why", "adopted by you"),
        protected=left.pop("protected", None),
        broken=left.pop("broken", None),
        referenced=left.pop("referenced", None),
        host_pinned=left.pop("host_pinned", False),
        edited=left.pop("edited", None),
        archive_rejected=left.pop("rejected", None),
        usage=SkillUsage(
            use=int(EventKind.USE in newest),
            view=int(EventKind.VIEW in newest),
            patch=int(EventKind.PATCH in newest),
            sessions=1,
            hosts=("claude-code",),
            newest=newest,
            ever_used=EventKind.USE in newest,
        ),
    )
    assert {} == left, f"the case tells what no test reads: {left}"
    return facts


def clock_of(library: dict[str, Any]) -> LibraryClock:
    """Return the clock that a golden file tells; without a word about work there was some every day."""
    changes: dict[str, Any] = {
        ours: None if library[name] is None else ago(library[name])
        for ours, name in (("observed_since", "observed"), ("first_scan_at", "first_scan"))
        if name in library
    }
    changes |= {name: library[name] for name in ("sources",) if name in library}
    changes["doubts"] = tuple(library.get("doubts", ()))
    work = library.get("work")
    if work is None:
        return a_clock(**changes)
    if not work:
        return a_clock(first_work=None, newest_work=None, newest_evidence=None, **changes)
    return a_clock_with_work(*work, **changes)


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Return all of a verdict that golden files keep."""
    idle = verdict.idle
    return {
        "state": verdict.state.value,
        "to": verdict.to.value,
        "signal": verdict.signal.value,
        "rule": verdict.rule,
        "reason": verdict.reason,
        "idle_days": days(idle.idle) if isinstance(idle, Idle) else None,
        "stopped_days": days(idle.stopped) if isinstance(idle, Idle) else None,
        "counted_from": idle.counted_from if isinstance(idle, Idle) else None,
        "next": next_json(verdict.next),
        "would": next_json(verdict.would),
        "would_be": verdict.would_be,
        "warning": verdict.warning,
        "needs_yes": verdict.needs_yes,
    }


def policy_of(changes: dict[str, float]) -> LifecycleSettings:
    """Return the default policy with the periods that a golden file changes, in days."""
    periods: dict[str, Any] = {name: value * DAY for name, value in changes.items()}
    return replace(POLICY, **periods)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    """The facts of the file lead to what it expects, and to the words it keeps."""
    case = json.loads(path.read_text(encoding="utf-8"))

    verdict = judge(
        facts_of(case["skill"]),
        clock_of(case.get("library", {})),
        policy_of(case.get("policy", {})),
        NOW + case.get("now", 0) * DAY,
    )

    if os.environ.get("CURATORD_GOLDEN") == "rewrite":
        text = json.dumps(case | {"verdict": as_json(verdict)}, indent=2, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8")
    expect = case["expect"]
    assert (expect["to"], expect["rule"]) == (verdict.to.value, verdict.rule), verdict.reason
    if "would" in expect:
        would = verdict.would.state if verdict.would else None
        assert expect["would"] == (would.value if would else None)
    assert expect.get("warned", False) == (verdict.warning is not None)
    assert expect.get("asks", False) == (verdict.needs_yes is not None)
    kept = json.loads(path.read_text(encoding="utf-8")).get("verdict")
    assert kept == as_json(verdict)


def test_there_are_enough_cases() -> None:
    """An empty folder must not pass for a green one."""
    assert len(CASES) >= 40


def test_the_clock_of_another_library_is_refused() -> None:
    """A wrong pairing would time a skill by somebody else's work."""
    with pytest.raises(ValueError, match="cannot time"):
        judge(a_skill(last=1), replace(a_clock(), library=LibraryName("other")), POLICY, NOW)


def test_what_is_foretold_comes_true() -> None:
    """Working on daily, the state named in `next` is reached at its time and not a minute before."""
    active = a_skill(last=10)
    coming = judge(active, a_clock(), POLICY, NOW).next
    assert coming.at is not None

    def at(moment: timedelta) -> Verdict:
        now = NOW + moment
        return judge(active, a_clock(newest_work=now, newest_evidence=now), POLICY, now)

    assert (State.STALE, NOW + 20 * DAY) == (coming.state, coming.at)
    assert [State.ACTIVE, State.STALE] == [at(20 * DAY - timedelta(minutes=1)).to, at(20 * DAY).to]


def test_next_of_a_stale_skill_waits_for_the_notice() -> None:
    """Idle long enough in 2 days, notice over in 6: archived in 6."""
    verdict = judge(a_skill(last=88, stale=1), a_clock(), POLICY, NOW)

    assert (State.ARCHIVED, NOW + 6 * DAY) == (verdict.next.state, verdict.next.at)


def test_next_says_when_the_clock_would_stop() -> None:
    """If nobody works any more the clock stops 7 days after the newest work, and 20 days are never reached."""
    near, far = (judge(a_skill(last=last), a_clock(), POLICY, NOW).next for last in (26, 10))

    assert (NOW + 4 * DAY, None) == (near.at_if_away, far.at_if_away)


def test_away_the_notice_still_has_to_pass() -> None:
    """Idle is reached in 2 days before the clock stops, the notice in 6: archived in 6 whether anybody works or not."""
    coming = judge(a_skill(last=88, stale=1), a_clock(), POLICY, NOW).next

    assert (NOW + 6 * DAY, NOW + 6 * DAY) == (coming.at, coming.at_if_away)


@pytest.mark.parametrize(("idle_days", "rule"), [(29.99, 5), (30, 7)])
def test_the_grace_ends_when_it_is_reached(idle_days: float, rule: int) -> None:
    """Never used for exactly never_used_grace is no grace any more."""
    assert rule == judge(a_skill(first_seen_at=ago(idle_days)), a_clock(), POLICY, NOW).rule


def test_an_archived_skill_is_offered_only_for_what_came_after() -> None:
    """The event that archiving was decided on does not ask for it again; a later one does."""
    archived = {"state": State.ARCHIVED, "state_since": ago(20), "archived_at": ago(20)}

    asked = [judge(a_skill(last=last, **archived), a_clock(), POLICY, NOW).warning for last in (21, 20, 19)]

    assert [True, True, False] == [warning is None for warning in asked]


@pytest.mark.parametrize(
    ("facts", "checked"),
    [
        (a_skill(last=1), True),
        (a_skill(last=1, pinned=True), True),
        (a_skill(last=1, managed=False), False),
        (a_skill(last=1, broken="no header"), False),
        (a_skill(last=1, state=State.ARCHIVED), False),
        (a_skill(last=1, state=State.ARCHIVED, managed=False), False),
    ],
)
def test_checked_are_live_skills_that_are_curatords_to_change(facts: SkillFacts, checked: bool) -> None:
    """hermes.md, case 19: what was not handed over is not even checked."""
    assert checked == judge(facts, a_clock(), POLICY, NOW).checked


@pytest.mark.parametrize(
    ("born_from", "born", "first_seen", "first_scan", "birth"),
    [
        ("file", 360, 300, 300, 360),  # there at the first scan: as old as its files say
        ("file", 360, 5, 300, 5),  # appeared later: not older than its first sight
        ("ledger", 360, 5, 300, 5),
        ("file", 1, 100, 100, 100),  # touched: not younger either
        ("ledger", 10, 100, 100, 10),  # the host made it anew under an old name
        ("event", 10, 100, 300, 10),
        ("seen", 50, 50, None, 50),
        ("file", 360, 300, 300 + 0.5 / 86_400, 360),  # the first scan's time, stored to the millisecond and not
        ("file", 360, 300, 300 + 2 / 86_400, 300),
    ],
)
def test_birth(born_from: str, born: float, first_seen: float, first_scan: float | None, birth: float) -> None:
    """Contract, section 6: born by ledger, event or file time, but never older than a sight that came late."""
    facts = a_skill(born_at=ago(born), born_from=born_from, first_seen_at=ago(first_seen))
    clock = a_clock(first_scan_at=None if first_scan is None else ago(first_scan))

    assert ago(birth) == birth_of(facts, clock).at


# What must hold for any facts.

hundredths = st.integers(min_value=0, max_value=400)
texts = st.sampled_from([None, "something in words"])


@st.composite
def any_facts(draw: st.DrawFn) -> SkillFacts:
    """Draw facts of every kind, contradictory ones too."""
    first_seen = draw(hundredths)
    record: dict[str, Any] = {
        "born_at": ago(draw(hundredths)),
        "first_seen_at": ago(first_seen),
        "importance": draw(st.sampled_from(Importance)),
        "pinned": draw(st.booleans()),
        "restored_at": draw(st.none() | hundredths.map(ago)),
        "missing_since": draw(st.none() | hundredths.map(ago)),
    }
    state = draw(st.sampled_from(State))
    since = ago(draw(hundredths))
    record |= {"state": state, "state_since": since}
    if state is State.STALE:
        record["stale_since"] = draw(st.none() | st.just(since))
    if state is State.ARCHIVED:
        record["archived_at"] = since
    newest = {
        kind: Activity(at=ago(draw(st.integers(min_value=-3, max_value=400))), kind=kind, witness="codex")
        for kind in draw(st.sets(st.sampled_from(EventKind)))
    }
    return SkillFacts(
        record=a_record(**record),
        managed=draw(st.booleans()),
        why="as drawn",
        protected=draw(texts),
        broken=draw(texts),
        referenced=draw(texts),
        host_pinned=draw(st.booleans()),
        edited=draw(texts),
        archive_rejected=draw(texts),
        usage=SkillUsage(newest=newest, ever_used=EventKind.USE in newest),
    )


@st.composite
def free_facts(draw: st.DrawFn) -> SkillFacts:
    """Draw facts of a skill that nothing but its age decides on."""
    facts = draw(any_facts())
    record = replace(facts.record, pinned=False, importance=Importance.NORMAL, missing_since=None)
    return replace(
        facts,
        record=record,
        managed=True,
        protected=None,
        broken=None,
        referenced=None,
        host_pinned=False,
        archive_rejected=None,
    )


@st.composite
def clocks(draw: st.DrawFn) -> LibraryClock:
    """Draw a library's clock: well watched, poorly watched, not at all, or in doubt."""
    changes: dict[str, Any] = {
        "observed_since": draw(st.none() | hundredths.map(ago)),
        "sources": draw(st.integers(0, 2)),
        "doubts": draw(st.sampled_from([(), ("it jumped",)])),
    }
    if draw(st.booleans()):
        changes |= {"observed_since": ago(365), "sources": 1, "doubts": ()}
    work = draw(st.lists(st.integers(min_value=-3, max_value=400), max_size=8))
    if not work:
        return a_clock(**changes)
    return a_clock_with_work(*work, **changes)


@given(facts=any_facts() | free_facts(), clock=clocks())
def test_nothing_is_archived_by_rule_without_a_notice_long_enough(facts: SkillFacts, clock: LibraryClock) -> None:
    """Archived means: it was stale, for at least `notice`, and idle for at least `archive_after`."""
    verdict = judge(facts, clock, POLICY, NOW)

    if verdict.moves and verdict.to is State.ARCHIVED:
        assert State.STALE is verdict.state
        assert NOW - (facts.record.stale_since or facts.record.state_since) >= POLICY.notice
        assert isinstance(verdict.idle, Idle)
        divisor = 2 if facts.record.importance is Importance.LOW else 1
        assert verdict.idle.idle >= POLICY.archive_after / divisor
        assert Signal.LONG_IDLE is verdict.signal


@given(facts=any_facts(), clock=clocks())
def test_what_is_kept_exempt_or_doubtful_never_moves(facts: SkillFacts, clock: LibraryClock) -> None:
    """Pinned, critical, unmanaged, protected, broken, missing: never. Nothing at all while idle is unknown."""
    verdict = judge(facts, clock, POLICY, NOW)

    if facts.kept_by or facts.exempt_by or not isinstance(verdict.idle, Idle) or clock.doubts:
        assert verdict.state is verdict.to
    if facts.record.state is State.ARCHIVED:
        assert State.ARCHIVED is verdict.to
    if facts.record.importance is Importance.IMPORTANT or facts.archive_rejected:
        assert not (verdict.moves and verdict.to is State.ARCHIVED)


@given(facts=any_facts() | free_facts(), clock=clocks())
def test_every_verdict_says_why(facts: SkillFacts, clock: LibraryClock) -> None:
    """A reason in words always; a rule for every move; asking twice gives the same; times lie ahead."""
    verdict = judge(facts, clock, POLICY, NOW)

    assert verdict == judge(facts, clock, POLICY, NOW)
    assert verdict.reason
    assert verdict.next.condition
    assert not verdict.moves or verdict.rule in {3, 5, 6, 7, 8}
    assert verdict.next.at is None or verdict.next.at >= NOW
    assert (verdict.next.state is None) == (verdict.next.at is None)
    assert verdict.next.due == verdict.moves


@given(facts=free_facts(), clock=clocks(), kind=st.sampled_from(EventKind))
def test_activity_now_is_never_answered_by_ageing(facts: SkillFacts, clock: LibraryClock, kind: EventKind) -> None:
    """Whatever was true before: with an act at this moment a skill is not made stale and not archived."""
    newest = {**facts.usage.newest, kind: Activity(at=NOW, kind=kind, witness="codex")}
    touched = replace(facts, usage=replace(facts.usage, newest=newest))

    verdict = judge(touched, clock, POLICY, NOW)

    assert not verdict.moves or State.ACTIVE is verdict.to


@given(facts=free_facts(), clock=clocks())
def test_would_is_what_a_managed_skill_gets(facts: SkillFacts, clock: LibraryClock) -> None:
    """What is shown to a newcomer is what happens once the skill is handed over."""
    unmanaged = judge(replace(facts, managed=False), clock, POLICY, NOW)
    managed = judge(facts, clock, POLICY, NOW)

    if facts.record.state is not State.ARCHIVED:
        assert (managed.next, managed.to) == (unmanaged.would, unmanaged.would_be)
    assert unmanaged.state is unmanaged.to


@given(facts=free_facts(), clock=clocks())
def test_a_run_twice_changes_once(facts: SkillFacts, clock: LibraryClock) -> None:
    """After a verdict was carried out, the same facts on the same day give no further move."""
    first = judge(facts, clock, POLICY, NOW)
    if not first.moves:
        return
    record = replace(
        facts.record, state=first.to, state_since=NOW, stale_since=NOW if first.to is State.STALE else None
    )

    second = judge(replace(facts, record=record), clock, POLICY, NOW)

    assert second.state is second.to, (first.reason, second.reason)

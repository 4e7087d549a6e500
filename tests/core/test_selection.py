"""What a run does with its verdicts, and when it does nothing because it would do too much."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.idle import LibraryClock
from curatord.core.lifecycle import Verdict, judge
from curatord.core.selection import cap_of, select
from curatord.core.settings import ArchiveCap
from curatord.core.values import Importance, LibraryName, Mode, State
from tests.core.skill_facts import LIB, NOW, POLICY, a_clock, a_key, a_skill, ago

OTHER = LibraryName("hermes")
CLOCKS = {LIB: a_clock(), OTHER: a_clock(library=OTHER)}


def a_verdict(rel: str, *, library: str = LIB, clock: LibraryClock | None = None, **changes: Any) -> Verdict:
    """Return the verdict on a skill."""
    key = a_key(rel, library)
    return judge(a_skill(key=key, **changes), clock or CLOCKS[key.library], POLICY, NOW)


def due(count: int, *, library: str = LIB, **changes: Any) -> list[Verdict]:
    """Return verdicts on so many skills that are due for the archive."""
    return [a_verdict(f"due-{n:03}", library=library, last=200, stale=100, **changes) for n in range(count)]


def fresh(count: int, *, library: str = LIB) -> list[Verdict]:
    """Return verdicts on so many skills in use."""
    return [a_verdict(f"fresh-{n:03}", library=library, last=1) for n in range(count)]


@pytest.mark.parametrize(
    ("managed", "allowed"),
    [(0, 3), (5, 3), (15, 3), (19, 3), (20, 4), (49, 9), (50, 10), (51, 10), (1000, 10)],
)
def test_the_cap_is_the_smaller_of_count_and_share_but_three(managed: int, allowed: int) -> None:
    """10, or a fifth rounded down, but 3 in any library."""
    assert allowed == cap_of(ArchiveCap(count=10, share=0.2), managed)


def test_a_share_is_taken_as_it_is_written() -> None:
    """0.29 of 100 are 29: no floating-point dust decides."""
    assert 29 == cap_of(ArchiveCap(count=100, share=0.29), 100)


def test_within_the_cap_all_are_applied() -> None:
    """Reactivations first, then stale marks, then archivings, each by name."""
    waking = a_verdict("waking", last=1, stale=5)
    ageing = a_verdict("ageing", last=40)

    selection = select([*reversed(due(3)), ageing, waking, *fresh(5)], POLICY.max_archive, Mode.GUARDED)

    assert ["waking", "ageing", "due-000", "due-001", "due-002"] == [v.key.name for v in selection.apply]
    assert ((), ()) == (selection.propose, selection.held)


def test_beyond_the_cap_none_is_archived() -> None:
    """Four due of eight, three allowed: all four become one held proposal; stale marks go on."""
    selection = select([*due(4), a_verdict("ageing", last=40), *fresh(3)], POLICY.max_archive, Mode.AUTO)

    assert ["ageing"] == [v.key.name for v in selection.apply]
    assert [(LIB, 4, 3)] == [(held.library, len(held.due), held.cap) for held in selection.held]
    assert "4 skills of library 'claude' would be archived in one run" in selection.held[0].reason


def test_libraries_are_held_apart() -> None:
    """One library beyond its cap does not hold another."""
    selection = select([*due(4), *due(3, library=OTHER)], POLICY.max_archive, Mode.GUARDED)

    assert [OTHER] * 3 == [v.key.library for v in selection.apply]
    assert [LIB] == [held.library for held in selection.held]


def test_prunes_of_a_model_count() -> None:
    """Two by rule and two by a model's plan are four."""
    assert [] != list(select([*due(2), *fresh(5)], POLICY.max_archive, Mode.AUTO, prunes={LIB: 2}).held)
    assert [] == list(select([*due(2), *fresh(5)], POLICY.max_archive, Mode.AUTO, prunes={LIB: 1}).held)


def test_review_asks_before_archiving_only() -> None:
    """In mode review archivings wait, state marks do not."""
    selection = select([*due(2), a_verdict("ageing", last=40)], POLICY.max_archive, Mode.REVIEW)

    assert ["ageing"] == [v.key.name for v in selection.apply]
    assert [("due-000", "mode `review` asks before a skill is archived")] == [
        (v.key.name, why) for v, why in selection.propose if v.key.name == "due-000"
    ]


def test_a_hand_edited_skill_waits_in_every_mode_and_holds_nobody() -> None:
    """Promise 10: archived only with a yes; and an unanswered one must not hold the others for ever."""
    edited = [a_verdict(f"edited-{n}", last=200, stale=100, edited="SKILL.md was edited") for n in range(4)]

    selection = select([*edited, *due(3)], POLICY.max_archive, Mode.AUTO)

    assert ["due-000", "due-001", "due-002"] == [v.key.name for v in selection.apply]
    assert {"SKILL.md was edited"} == {why for _, why in selection.propose}
    assert () == selection.held


def test_unmanaged_and_archived_skills_are_no_share() -> None:
    """The share is of managed live skills; a hundred others do not raise it."""
    others = [a_verdict(f"other-{n}", last=1, managed=False) for n in range(100)]

    assert [3] == [held.cap for held in select([*due(4), *others], POLICY.max_archive, Mode.AUTO).held]


@pytest.mark.parametrize(("managed", "held"), [(30, False), (29, True)])
def test_the_share_is_of_live_managed_skills(managed: int, held: bool) -> None:
    """Six due: of 30 live ones a fifth are six, of 29 five; archived ones raise nothing."""
    gone = [
        a_verdict(f"gone-{n}", last=1, state=State.ARCHIVED, state_since=ago(9), archived_at=ago(9)) for n in range(20)
    ]

    selection = select([*due(6), *fresh(managed - 6), *gone], POLICY.max_archive, Mode.AUTO)

    assert held == bool(selection.held)
    assert (0 if held else 6) == len(selection.apply)


def test_warnings_reach_the_run() -> None:
    """An important skill that is due is named, and stays."""
    verdict = a_verdict("worth", last=200, stale=100, importance=Importance.IMPORTANT)

    selection = select([verdict], POLICY.max_archive, Mode.AUTO)

    assert (1, ()) == (len(selection.warnings), selection.apply)
    assert "claude/worth would be archived" in selection.warnings[0]


@given(
    archivings=st.integers(0, 30),
    others=st.integers(0, 60),
    mode=st.sampled_from(Mode),
    count=st.integers(0, 20),
    share=st.floats(0, 1),
    order=st.randoms(use_true_random=False),
)
def test_no_run_archives_more_than_the_cap(
    archivings: int, others: int, mode: Mode, count: int, share: float, order: object
) -> None:
    """Whatever is due: at most the cap goes, all or none, and the order of the verdicts changes nothing."""
    cap = ArchiveCap(count=count, share=share)
    verdicts = due(archivings) + fresh(others)
    shuffled = sorted(verdicts, key=lambda _: order.random())  # type: ignore[attr-defined]  # hypothesis hands a Random

    selection = select(verdicts, cap, mode)

    gone = [v for v in selection.apply if v.to is State.ARCHIVED]
    waiting = len(selection.propose) + sum(len(held.due) for held in selection.held)
    allowed = cap_of(cap, archivings + others)
    assert (archivings if archivings <= allowed and mode is not Mode.REVIEW else 0) == len(gone)
    assert (archivings > allowed) == bool(selection.held)
    assert archivings == len(gone) + waiting
    assert not gone or not waiting
    assert selection == select(shuffled, cap, mode)

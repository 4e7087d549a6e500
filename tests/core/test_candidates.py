"""Which skills a model may touch at all (promise 4)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from curatord.core.candidates import why_no_merge, why_no_prune
from curatord.core.lifecycle import SkillFacts
from curatord.core.values import Importance, State
from tests.core.skill_facts import DAY, NOW, POLICY, a_clock, a_skill, ago


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (a_skill(last=1), None),
        (a_skill(last=60, stale=20), None),
        (a_skill(last=1, referenced="the Hermes job 'nightly'"), None),  # references follow a merge
        (a_skill(last=1, importance=Importance.IMPORTANT), None),
        (a_skill(last=1, pinned=True), "it is pinned"),
        (a_skill(last=1, host_pinned=True), "its host has it pinned"),
        (a_skill(last=1, importance=Importance.CRITICAL), "its importance is critical"),
        (a_skill(last=1, managed=False, why="nobody handed it over"), "it is not managed: nobody handed it over"),
        (a_skill(last=1, protected="bundled"), "it is protected: bundled"),
        (a_skill(last=1, broken="no header"), "it is broken: no header"),
        (a_skill(last=1, missing_since=ago(3)), "its files have not been found since 2026-05-29"),
        (a_skill(last=1, state=State.ARCHIVED), "it is archived"),
    ],
)
def test_who_may_be_merged(facts: SkillFacts, reason: str | None) -> None:
    """Everything a person keeps or never handed over is out, with the reason."""
    assert reason == why_no_merge(facts, a_clock(), NOW)


def test_the_young_may_be_left_alone() -> None:
    """Bugs B007: written this morning, absorbed minutes later. Age is of the birth that counts, not of file times."""
    young = a_skill(born_at=ago(300), first_seen_at=ago(2))

    assert "it is too young: 2 days old, and at least 7 days are asked for" == why_no_merge(
        young, a_clock(first_scan_at=ago(100)), NOW, min_age=7 * DAY
    )
    assert why_no_merge(young, a_clock(first_scan_at=ago(100)), NOW, min_age=timedelta(days=2)) is None


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (a_skill(last=60, stale=7), None),
        (a_skill(last=60, stale=6), "it has been stale only since 2026-05-26, and notice is 7 days"),
        (a_skill(last=60), "it is not stale"),
        (a_skill(last=60, stale=20, referenced="the Hermes job 'nightly'"), "the Hermes job 'nightly' names it"),
        (a_skill(last=60, stale=20, importance=Importance.IMPORTANT), "its importance is important"),
        (a_skill(last=60, stale=20, pinned=True), "it is pinned"),
        (a_skill(last=60, stale=20, managed=False, why="yours"), "it is not managed: yours"),
    ],
)
def test_who_may_be_pruned(facts: SkillFacts, reason: str | None) -> None:
    """Stale for the notice, named by nothing, important to nobody."""
    assert reason == why_no_prune(facts, a_clock(), POLICY, NOW)


def test_nothing_is_pruned_that_was_used_again_or_under_doubt() -> None:
    """The stale mark is old news: the same rules look at today's evidence first."""
    again = why_no_prune(a_skill(last=1, stale=20), a_clock(), POLICY, NOW)
    doubt = why_no_prune(a_skill(last=60, stale=20), a_clock(doubts=("the clock jumped",)), POLICY, NOW)

    assert again is not None
    assert again.startswith("active again")
    assert "the clock jumped" == doubt

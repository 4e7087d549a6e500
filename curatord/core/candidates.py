"""
Which skills a model's plan may touch at all. Asked before anything is sent, and again before anything is applied.

Pinned and critical skills, unmanaged, protected and broken ones are never offered, neither as members nor as umbrellas
(promise 4). `core.lifecycle` decides by rule; here are only the answers that a merge pass needs, each with its reason.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from curatord.core.idle import IdleUnknown, LibraryClock
from curatord.core.lifecycle import SkillFacts, birth_of, judge
from curatord.core.settings import LifecycleSettings
from curatord.core.values import Importance, State
from curatord.core.words import day, exact, span

__all__ = ["why_no_merge", "why_no_prune"]


def why_no_merge(
    facts: SkillFacts, clock: LibraryClock, now: datetime, *, min_age: timedelta = timedelta(0)
) -> str | None:
    """
    Return why this skill may be neither a member nor an umbrella of a merge, in words; None where it may.

    Args:
        facts: The skill.
        clock: Its library's; tells what counts as its birth.
        now: The run's one reading of the clock.
        min_age: Younger skills are left alone: what was written this morning is not settled yet (bugs B007).
    """
    if facts.record.state is State.ARCHIVED:
        return "it is archived"
    if reason := facts.exempt_by or facts.kept_by:
        return reason
    age = now - birth_of(facts, clock).at
    if age < min_age:
        return f"it is too young: {span(age)} old, and at least {exact(min_age)} are asked for"
    return None


def why_no_prune(facts: SkillFacts, clock: LibraryClock, policy: LifecycleSettings, now: datetime) -> str | None:
    """
    Return why a model may not even propose to prune this skill, in words; None where it may.

    Only what has been stale for `notice`, never what something names or what a person called important, and nothing
    while the clock is in doubt (contract, section 9; promise 9).
    """
    if reason := why_no_merge(facts, clock, now):
        return reason
    if facts.referenced is not None:
        return f"{facts.referenced} names it"
    if facts.record.importance is Importance.IMPORTANT:
        return "its importance is important"
    verdict = judge(facts, clock, policy, now)
    if isinstance(verdict.idle, IdleUnknown):
        return verdict.idle.reason
    if facts.record.state is not State.STALE or verdict.to is State.ACTIVE:
        return "it is not stale" if facts.record.state is not State.STALE else verdict.reason
    stale_since = facts.record.stale_since or facts.record.state_since
    if now - stale_since < policy.notice:
        return f"it has been stale only since {day(stale_since)}, and notice is {exact(policy.notice)}"
    return None

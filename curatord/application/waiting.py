"""What waits for a yes: one answer for `pending`, `approve --all`, `status` and the figures, so that they agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curatord.core.curation import Proposal
    from curatord.core.values import SkillKey
    from curatord.wiring import Parts

__all__ = ["count_waiting", "waiting_proposals"]


def count_waiting(parts: Parts) -> int:
    """Return how many proposals `pending` lists; quick where none waits, since they are not read then."""
    return len(waiting_proposals(parts)) if parts.overview.pending() else 0


def waiting_proposals(parts: Parts) -> list[Proposal]:
    """
    Return the proposals that wait for a yes and whose skills are there, as far as a short look at their paths tells.

    Nothing is written, and a skill or library that cannot be looked at, or not soon, may be there: its proposals are
    listed.
    """
    from curatord.adapters.absence import absent
    from curatord.passes.withdrawing import needed_by, why_gone

    waiting = [(proposal, needed_by(proposal)) for proposal in parts.store.proposals("pending")]
    roots = {settings.name: settings.path for settings in parts.config.libraries}
    gone: set[SkillKey] = set()
    unsure: dict[str, dict[str, SkillKey]] = {}
    for key in {key for _, keys in waiting for key in keys}:
        if why_gone(parts.store.skill(key)) is not None:
            gone.add(key)
        elif key.library in roots:
            unsure.setdefault(roots[key.library], {})[key.rel] = key
    gone.update(unsure[root][rel] for root, rel in absent(unsure))
    return [proposal for proposal, keys in waiting if gone.isdisjoint(keys)]

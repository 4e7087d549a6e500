"""
Taking back proposals whose skill is gone: nobody can say yes to a change of what is not there.

A skill goes by an archiving, a merge, an undo, or because somebody deleted it. Where our records say that it is in the
archive, a proposal on it is withdrawn at once. A package that is only missing on disk may be a folder that is not
mounted just now, so it counts as deleted only where the library could be read whole and still holds others.

A proposal of many archivings at once is left to the rules, which ask again for what is still due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from curatord.core.curation import Proposal
from curatord.core.plan import Action, Archive, Merge, Patch, WriteSupportFile
from curatord.core.skill_record import SkillRecord
from curatord.core.values import SkillKey, State
from curatord.passes.proposals import KIND_HELD

if TYPE_CHECKING:
    from curatord.passes.look import Look
    from curatord.ports.curation_store import CurationStore

__all__ = ["is_moot", "needed_skills", "why_gone", "withdraw", "withdraw_gone"]


def needed_skills(actions: Iterable[Action]) -> tuple[SkillKey, ...]:
    """Return the skills that must be there for *actions* to be done."""
    found: list[SkillKey] = []
    for action in actions:
        match action:
            case Patch() | WriteSupportFile() | Archive():
                found.append(action.key)
            case Merge():
                found += [member.key for member in action.members]
            case _:
                pass
    return tuple(dict.fromkeys(found))


def why_gone(record: SkillRecord | None) -> str | None:
    """Return in words that our record has the skill in the archive, or None."""
    if record is None or record.state is not State.ARCHIVED:
        return None
    if record.absorbed_into is not None:
        return f"{record.key} was merged into {record.absorbed_into}"
    return f"{record.key} was archived"


def withdraw(
    store: CurationStore, gone: Callable[[SkillKey], str | None], *, now: datetime, but: str | None = None
) -> tuple[str, ...]:
    """
    Withdraw each proposal that needs a skill of which *gone* says why it is not there; return their ids.

    *but*: one that is left as it is, since it is being carried out.
    """
    withdrawn: list[str] = []
    for waiting in store.proposals("pending"):
        if waiting.id == but or waiting.kind == KIND_HELD:
            continue
        whys = [why for key in needed_skills(waiting.actions) if (why := gone(key)) is not None]
        if whys and store.decide(waiting.id, "superseded", now=now, reason=f"withdrawn: {'; '.join(whys[:3])}"):
            withdrawn.append(waiting.id)
    return tuple(withdrawn)


def withdraw_gone(store: CurationStore, look: Look) -> tuple[str, ...]:
    """Withdraw the proposals on what *look* did not find; return their ids."""

    def gone(key: SkillKey) -> str | None:
        library = look.libraries.get(key.library)
        if key in look.live or library is None:
            return None
        facts = look.facts.get(key)
        archived = why_gone(facts.record if facts is not None else None)
        if archived is not None:
            return archived
        doubtful = library.snapshot.observe_only or not library.snapshot.complete or not library.snapshot.skills
        return None if doubtful else f"{key} is not in the library any more"

    return withdraw(store, gone, now=look.now)


def is_moot(proposal: Proposal, is_gone: Callable[[SkillKey], bool]) -> bool:
    """Return whether a proposal needs a skill that *is_gone*; nothing is decided by that."""
    return proposal.kind != KIND_HELD and any(is_gone(key) for key in needed_skills(proposal.actions))

"""
Taking back proposals whose skill is gone: nobody can say yes to a change of what is not there.

A skill goes by an archiving, a merge, an undo, or because somebody deleted it. Where our records say that it is in the
archive, a proposal on it is withdrawn at once. A package that is only missing on disk may be a folder that is not
mounted just now, so it counts as deleted only where the library could be read whole and still holds others.

What was withdrawn waits again when its skill is back as it was, by an undo or a restore: the lesson was never refused.
A proposal of many archivings at once is left to the rules, which ask again for what is still due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from curatord.core.curation import Proposal
from curatord.core.plan import Action, Archive, CreateSkill, Merge, Patch, WriteSupportFile, expectations
from curatord.core.skill_record import SkillRecord
from curatord.core.values import SkillKey, State
from curatord.passes.proposals import KIND_ARCHIVE, KIND_HELD

if TYPE_CHECKING:
    from curatord.passes.look import Look
    from curatord.ports.curation_store import CurationStore

__all__ = ["WITHDRAWN", "is_moot", "needed_skills", "why_gone", "withdraw", "withdraw_gone"]

WITHDRAWN = "withdrawn: "  # how the reason of such a decision begins
ASKED_AGAIN_WITHIN = timedelta(days=90)


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
    store: CurationStore,
    gone: Callable[[SkillKey], str | None],
    *,
    now: datetime,
    but: str | None = None,
    there: Callable[[SkillKey], bool] = lambda _: False,
) -> tuple[str, ...]:
    """
    Withdraw each proposal that needs a skill of which *gone* says why it is not there; return that in words.

    *but*: one that is left as it is, since it is being carried out. *there*: whether a skill stands there, where a new
    one would be made.
    """
    withdrawn: list[str] = []
    for waiting in store.proposals("pending"):
        if waiting.id == but or waiting.kind == KIND_HELD:
            continue
        whys = [why for key in needed_skills(waiting.actions) if (why := gone(key)) is not None]
        made = [action.key for action in waiting.actions if isinstance(action, CreateSkill)]
        whys += [f"{key} stands there by now" for key in made if there(key)]
        if whys and store.decide(waiting.id, "superseded", now=now, reason=WITHDRAWN + "; ".join(whys[:3])):
            withdrawn.append(f"{waiting.summary} ({waiting.id}) is not asked any more: {'; '.join(whys[:3])}")
    return tuple(withdrawn)


def withdraw_gone(store: CurationStore, look: Look) -> tuple[str, ...]:
    """Withdraw the proposals on what *look* did not find, ask again those on what is back; return that in words."""

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

    return (*withdraw(store, gone, now=look.now, there=lambda key: key in look.live), *_back(store, look))


def _back(store: CurationStore, look: Look) -> list[str]:
    """Ask again what was withdrawn and could be done now, unless something newer is asked about the same skills."""
    told: list[str] = []
    for proposal in store.withdrawn():
        if (
            look.now - (proposal.decided_at or proposal.created_at) > ASKED_AGAIN_WITHIN
            or proposal.kind == KIND_ARCHIVE
        ):
            continue
        wanted = {key: fingerprint for action in proposal.actions for key, fingerprint in expectations(action)}
        found = {key: look.live[key].fingerprint if key in look.live else None for key in wanted}
        if not wanted or found != wanted:
            continue
        if any(set(other.targets) & set(proposal.targets) for other in store.proposals("pending")):
            continue
        if store.propose(proposal) == "new":
            told.append(f"{proposal.summary} ({proposal.id}) waits again: what it is about is back")
    return told


def is_moot(proposal: Proposal, is_gone: Callable[[SkillKey], bool]) -> bool:
    """Return whether a proposal needs a skill that *is_gone*; nothing is decided by that."""
    return proposal.kind != KIND_HELD and any(is_gone(key) for key in needed_skills(proposal.actions))

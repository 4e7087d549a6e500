"""
Taking back proposals whose skill is gone: nobody can say yes to a change of what is not there.

A skill goes by an archiving, a merge, an undo, or because somebody deleted it. What an action of ours puts into the
archive takes the proposals on it along, in the act (`withdraw`). What else is gone is found by runs, each for its
record to say it (`withdraw_gone`); a dry run says what it would do, and stores nothing. Where our records have the
skill in the archive that is certain. A package that is only missing on disk may be a folder that is not mounted just
now, so it counts as deleted only where the library could be read whole and still holds others. A skill that was to be
made and stands there by now is nobody's question either.

What was withdrawn in the last 90 days waits again when its skill is back as it was: the lesson was never refused.
Archivings are left to the rules, which ask again for what is still due; a question of many is never withdrawn here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from curatord.core.curation import WITHDRAWN, Proposal
from curatord.core.plan import Archive, CreateSkill, Merge, Patch, WriteSupportFile, expectations
from curatord.core.skill_record import SkillRecord
from curatord.core.values import LibraryName, SkillKey, State
from curatord.passes.proposals import KIND_ARCHIVE, KIND_HELD

if TYPE_CHECKING:
    from curatord.passes.look import Look
    from curatord.ports.curation_store import CurationStore

__all__ = ["needed_by", "why_gone", "withdraw", "withdraw_gone"]

ASKED_AGAIN_WITHIN = timedelta(days=90)
_OF_RULES = (KIND_ARCHIVE, KIND_HELD)


def needed_by(proposal: Proposal) -> tuple[SkillKey, ...]:
    """
    Return the skills without one of which nobody can say yes to *proposal*.

    Of a question of many archivings none: the rules put another one in its place.
    """
    if proposal.kind == KIND_HELD:
        return ()
    found: list[SkillKey] = []
    for action in proposal.actions:
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
    Withdraw each proposal that needs a skill of which *gone* says why it is not there; return that in words.

    *but*: one that is left as it is, since it is being carried out.
    """
    waiting = [proposal for proposal in store.proposals("pending") if proposal.id != but]
    return tuple(
        _not_asked(proposal, why)
        for proposal, why in _moot(waiting, gone, lambda _: False)
        if store.decide(proposal.id, "superseded", now=now, reason=WITHDRAWN + why)
    )


def withdraw_gone(
    store: CurationStore, look: Look, *, library: LibraryName | None = None, dry_run: bool = False
) -> tuple[str, ...]:
    """
    Withdraw the proposals on what *look* did not find, ask again those on what is back; return that in words.

    *library*: only those on this one. A *dry_run* decides and stores nothing, and says what would become of them.
    """

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

    waiting = {one.id: one for one in store.proposals("pending") if library in (None, one.library)}
    told: list[str] = []
    for proposal, why in _moot(tuple(waiting.values()), gone, lambda key: key in look.live):
        if dry_run or store.decide(proposal.id, "superseded", now=look.now, reason=WITHDRAWN + why):
            del waiting[proposal.id]
            told.append(_not_asked(proposal, why, dry_run=dry_run))
    withdrawn = store.withdrawn(since=look.now - ASKED_AGAIN_WITHIN)
    back = [one for one in withdrawn if library in (None, one.library) and one.kind not in _OF_RULES]
    return (*told, *_back(store, look, back, waiting.values(), dry_run=dry_run))


def _moot(
    waiting: Sequence[Proposal], gone: Callable[[SkillKey], str | None], there: Callable[[SkillKey], bool]
) -> Iterator[tuple[Proposal, str]]:
    """Yield what of *waiting* cannot be done, with why; *there*: whether a skill stands where a new one would be."""
    for proposal in waiting:
        whys = [why for key in needed_by(proposal) if (why := gone(key)) is not None]
        made = [action.key for action in proposal.actions if isinstance(action, CreateSkill)]
        whys += [f"{key} stands there by now" for key in made if there(key)]
        if whys:
            yield proposal, "; ".join(whys[:3])


def _not_asked(proposal: Proposal, why: str, *, dry_run: bool = False) -> str:
    what = "would not be asked any more" if dry_run else "is not asked any more"
    return f"{proposal.summary} ({proposal.id}) {what}: {why}"


def _back(
    store: CurationStore, look: Look, withdrawn: Iterable[Proposal], waiting: Iterable[Proposal], *, dry_run: bool
) -> list[str]:
    """Ask again what of *withdrawn* could be done now, unless one of *waiting*, or of those, is about its skills."""
    asked = {key for proposal in waiting for key in proposal.targets}
    told: list[str] = []
    for proposal in withdrawn:
        if not asked.isdisjoint(proposal.targets):
            continue
        wanted = {key: fingerprint for action in proposal.actions for key, fingerprint in expectations(action)}
        found = {key: look.live[key].fingerprint if key in look.live else None for key in wanted}
        if not wanted or found != wanted:
            continue
        again = proposal.id not in store.rejections() if dry_run else store.propose(proposal) == "new"
        if again:
            asked.update(proposal.targets)
            what = "would wait again" if dry_run else "waits again"
            told.append(f"{proposal.summary} ({proposal.id}) {what}: what it is about is back")
    return told

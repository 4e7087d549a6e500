"""
Turning what needs a person's yes into proposals, and taking back those that nothing asks for any more.

A proposal's id is a hash of what it would do, so a run that comes to the same conclusion renews it instead of asking
twice. What a run no longer finds due (a skill was used again, somebody pinned it) must not wait for a yes for ever:
such proposals of the rules are marked superseded, with that reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from curatord.core.cheap import dataclass
from curatord.core.curation import Proposal, content_of
from curatord.core.inert import one_line
from curatord.core.lifecycle import Verdict
from curatord.core.plan import Archive
from curatord.core.proposal_id import proposal_id
from curatord.core.run_record import PendingRow, SkippedRow
from curatord.core.selection import Held, Selection
from curatord.core.values import LibraryName, RunId, SkillKey
from curatord.core.words import plural
from curatord.ports.curation_store import CurationStore

__all__ = ["KIND_ARCHIVE", "KIND_HELD", "Asked", "archive_of", "ask", "proposals_of"]

KIND_ARCHIVE = "archive"
KIND_HELD = "archive-held"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came of asking: what waits now, and what was left alone since a person had said no."""

    pending: tuple[PendingRow, ...] = ()
    skipped: tuple[SkippedRow, ...] = ()


def archive_of(verdict: Verdict) -> Archive:
    """Return the action that *verdict* asks for, on the content it was decided on."""
    return Archive(key=verdict.key, reason=verdict.reason, by="rules", expected=verdict.fingerprint)


def proposals_of(
    selection: Selection, *, now: datetime, run_id: RunId | None, archives: Mapping[LibraryName, str]
) -> tuple[Proposal, ...]:
    """
    Return the proposals that *selection* leads to, those of single skills first.

    Args:
        selection: Only *propose* and *held* are used.
        now, run_id: When and by whom they are made.
        archives: Path of each library's archive, for the words of the diff.
    """
    single = [_one(verdict, why, now, run_id, archives) for verdict, why in selection.propose]
    return (*single, *(_many(held, now, run_id, archives) for held in selection.held))


def ask(
    store: CurationStore, proposals: Sequence[Proposal], *, now: datetime, libraries: Iterable[LibraryName]
) -> Asked:
    """
    Keep *proposals*, each once, and withdraw the rules' others of *libraries*, since nothing asks for them now.

    *libraries* are those whose skills were judged in this run; proposals of others are not this run's business.
    """
    pending: list[PendingRow] = []
    skipped: list[SkippedRow] = []
    for proposal in proposals:
        status = store.propose(proposal)
        if status == "rejected":
            skipped.append(
                SkippedRow(
                    action=proposal.summary, reason="you rejected that, and nothing changed since", declined=True
                )
            )
        elif status in ("new", "pending"):
            pending.append(PendingRow(id=proposal.id, summary=proposal.summary, reason=proposal.reason))
    wanted = {proposal.id for proposal in proposals}
    judged = set(libraries)
    for waiting in store.proposals("pending"):
        ours = waiting.kind in (KIND_ARCHIVE, KIND_HELD) and waiting.library in judged
        if ours and waiting.id not in wanted:
            store.decide(waiting.id, "superseded", now=now, reason="it is not due any more, or due in another form")
    return Asked(pending=tuple(pending), skipped=tuple(skipped))


def _one(
    verdict: Verdict, why: str, now: datetime, run_id: RunId | None, archives: Mapping[LibraryName, str]
) -> Proposal:
    actions = (archive_of(verdict),)
    key = verdict.key
    return Proposal(
        id=proposal_id(key.library, KIND_ARCHIVE, [key], content_of(actions)),
        kind=KIND_ARCHIVE,
        library=key.library,
        targets=(key,),
        summary=f"archive {key}",
        reason=f"{verdict.reason}; it waits, since {why}",
        created_at=now,
        actions=actions,
        run_id=run_id,
        diff=_diff([key], archives, {key: verdict.reason}),
    )


def _many(held: Held, now: datetime, run_id: RunId | None, archives: Mapping[LibraryName, str]) -> Proposal:
    actions = tuple(archive_of(verdict) for verdict in held.due)
    keys = [verdict.key for verdict in held.due]
    return Proposal(
        id=proposal_id(held.library, KIND_HELD, keys, content_of(actions)),
        kind=KIND_HELD,
        library=held.library,
        targets=tuple(keys),
        summary=f"archive {plural(len(keys), 'skill')} of {held.library} at once",
        reason=held.reason,
        created_at=now,
        actions=actions,
        run_id=run_id,
        diff=_diff(keys, archives, {verdict.key: verdict.reason for verdict in held.due}),
    )


def _diff(keys: Iterable[SkillKey], archives: Mapping[LibraryName, str], reasons: Mapping[SkillKey, str]) -> str:
    """Return what a person reads before deciding: what goes where, and why; no byte of a package changes."""
    lines = []
    for key in keys:
        lines += [
            f"- {one_line(str(key))}",
            f"+ {one_line(archives.get(key.library, 'the archive'))}/{one_line(key.name)}",
            f"  {one_line(reasons[key])}",
        ]
    return "\n".join(lines) + "\n"

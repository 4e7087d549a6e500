"""
What the database keeps of the curation beside skills: runs, proposals, done actions, lines of history.

A proposal's id is a hash of what it would do, so the same one is never asked twice, and one that was rejected stays
rejected until its content changes (contract, section 7).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from curatord.core.cheap import dataclass
from curatord.core.values import ActionId, LibraryName, Mode, Outcome, RunId, SkillKey, State, Trigger, require_aware

if TYPE_CHECKING:
    from curatord.core.journal import JournalEntry
    from curatord.core.plan import Action

__all__ = ["WITHDRAWN", "ActionRow", "HistoryRow", "Proposal", "ProposalStatus", "RunRow", "content_of"]

ProposalStatus = Literal["pending", "approved", "rejected", "superseded"]
WITHDRAWN = "withdrawn: "  # how the reason begins where a proposal was superseded since a skill of it was gone


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """
    One run as `curatord runs` lists it; a live one has no end and the outcome `running`.

    *whole*: it was about all libraries. One of a single library says nothing of when the others were last looked after.
    """

    run_id: RunId
    trigger: Trigger
    dry_run: bool
    mode: Mode
    outcome: Outcome
    started_at: datetime
    finished_at: datetime | None = None
    duration_s: float | None = None
    summary: str = ""
    whole: bool = True

    def __post_init__(self) -> None:
        require_aware("started_at", self.started_at)
        require_aware("finished_at", self.finished_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """One change of a skill's state, and why."""

    key: SkillKey
    at: datetime
    from_state: State | None
    to_state: State
    reason: str
    run_id: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRow:
    """An action that was done; *seq* grows with time. *undone_by* names the action that took it back."""

    seq: int
    entry: JournalEntry
    status: Literal["done", "undone"]
    undone_by: ActionId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Something that waits for a person's yes, complete: approving it is applying its *actions*."""

    id: str
    kind: str
    library: LibraryName
    targets: tuple[SkillKey, ...]
    summary: str
    reason: str
    created_at: datetime
    actions: tuple[Action, ...]
    run_id: RunId | None = None
    diff: str = ""
    status: ProposalStatus = "pending"
    decided_at: datetime | None = None
    decided_reason: str | None = None

    def __post_init__(self) -> None:
        require_aware("created_at", self.created_at)
        require_aware("decided_at", self.decided_at)


def content_of(actions: Iterable[Action]) -> str:
    """
    Return what *actions* would do, without the words around it: what a proposal's id is taken over.

    Reasons, ids and who wanted it do not count (a model says the same thing differently each time); the fingerprints
    decided on do, so that a rejection holds until the content changes.
    """
    import msgspec

    from curatord.core.plan import Merge, expectations

    told = []
    for action in actions:
        fields = {
            name: value
            for name, value in msgspec.to_builtins(action).items()
            if name not in ("reason", "by", "proposal", "members")
        }
        fields["expected"] = msgspec.to_builtins(expectations(action))
        if isinstance(action, Merge):
            fields["members"] = [(str(member.key), member.absorbed) for member in action.members]
        told.append(fields)
    return msgspec.json.encode(told, order="sorted").decode()

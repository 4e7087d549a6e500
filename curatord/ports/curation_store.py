"""What curatord remembers of skills, runs, proposals and actions; times are aware UTC, all calls are transactions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from curatord.core.curation import ActionRow, HistoryRow, Proposal, RunRow
from curatord.core.journal import ArchiveItem, JournalEntry
from curatord.core.skill_record import SkillRecord
from curatord.core.values import ActionId, LibraryName, RunId, SkillKey
from curatord.ports.decisions import KnownDecisions, Rejection

__all__ = ["CurationStore"]


class CurationStore(Protocol):
    """
    The curation's half of the database. Every method raises `StateError` where the database cannot be used.
    """

    # -- skills

    def skill(self, key: SkillKey) -> SkillRecord | None:
        """Return the record of *key*, or None."""
        ...

    def skills(self, library: LibraryName | None = None) -> dict[SkillKey, SkillRecord]:
        """Return all records, or those of one library, sorted by key."""
        ...

    def put_skills(self, records: Iterable[SkillRecord], *, gone: Iterable[SkillKey] = ()) -> None:
        """
        Insert records, or bring up to date what a scan may say of a known skill (birth, management, content, absence).

        States and decisions of a known skill are left alone: actions change those. A record with another
        `first_seen_at` than the known one is another skill at the same path, and takes its place whole.
        Records of *gone*, which stand under another key now, are dropped in the same transaction.
        """
        ...

    def history(self, key: SkillKey) -> tuple[HistoryRow, ...]:
        """Return the changes of a skill's state, oldest first."""
        ...

    # -- actions and archive

    def commit_action(self, entry: JournalEntry) -> None:
        """
        Record a done action in one transaction: record changes, history, archive, the action itself.

        Only fields that *entry* changes are written. A second call for the same action does nothing. Where *entry*
        undoes another, that one is marked, and its proposal counts as rejected.
        """
        ...

    def has_action(self, action_id: ActionId) -> bool:
        """Return whether the action was recorded."""
        ...

    def action(self, action_id: ActionId) -> ActionRow | None:
        """Return a recorded action, or None."""
        ...

    def actions(
        self,
        *,
        run_id: RunId | None = None,
        proposal: str | None = None,
        key: SkillKey | None = None,
        limit: int | None = None,
    ) -> tuple[ActionRow, ...]:
        """Return recorded actions, newest first, of one run, one proposal or one skill where that is asked for."""
        ...

    def last_run_to_undo(self) -> RunId | None:
        """Return the newest run with an action that was not undone."""
        ...

    def archive(self, library: LibraryName | None = None) -> tuple[ArchiveItem, ...]:
        """Return what we know of archived packages, newest first."""
        ...

    def forget_actions(self, keep: int) -> int:
        """
        Forget all but the newest *keep* actions, and note until when; return how many went.

        Runs and proposals are forgotten whole or not at all, and those stay that put something into the archive which
        is still known there: undoing them is the way to bring it back.
        """
        ...

    def blobs_in_use(self) -> frozenset[str]:
        """Return the ids of all blobs that a recorded action refers to."""
        ...

    # -- runs

    def put_run(self, run: RunRow) -> None:
        """Insert a run, or bring it up to date."""
        ...

    def forget_runs(self, run_ids: Iterable[RunId]) -> None:
        """Drop the rows of runs whose folders are gone; what they did stays in the actions and can be undone."""
        ...

    def run(self, run_id: RunId) -> RunRow | None:
        """Return a run, or None."""
        ...

    def runs(self, limit: int | None = None) -> tuple[RunRow, ...]:
        """Return runs, those that were begun last first: by order of storing, since a clock may have jumped."""
        ...

    def interrupt_runs(self, now: datetime) -> tuple[RunId, ...]:
        """Mark every run that still says `running` as interrupted; for a start that holds the lock of all runs."""
        ...

    def last_finished(self) -> RunRow | None:
        """
        Return the newest whole run that came to its end: of all libraries, no dry run, no distil batch, and neither
        failed nor interrupted.
        """
        ...

    # -- proposals

    def propose(self, proposal: Proposal) -> str:
        """
        Keep a proposal, and return `new`, `pending` (known and waiting) or `rejected` (decided before).

        One that was approved or superseded and is wanted again waits anew; what was rejected stays rejected.
        Pending ones of the same library, kind and targets with another content are superseded.
        """
        ...

    def proposal(self, proposal_id: str) -> Proposal | None:
        """Return a proposal, or None; a unique beginning of the id is enough."""
        ...

    def proposals(self, status: str | None = "pending") -> tuple[Proposal, ...]:
        """Return proposals, oldest first; *status* None: all."""
        ...

    def withdrawn(self, *, since: datetime) -> tuple[Proposal, ...]:
        """
        Return the proposals that were taken back at or after *since* as a skill of theirs was gone (their reason begins
        with `WITHDRAWN`), oldest first.
        """
        ...

    def decide(self, proposal_id: str, status: str, *, now: datetime, reason: str = "") -> bool:
        """
        Mark a proposal that waits `approved`, `rejected` or `superseded`, or say more of one that is so already.

        False, and nothing is changed: it was decided otherwise meanwhile. A rejection of what is not known is kept.
        """
        ...

    def reject_id(self, rejection: Rejection) -> None:
        """Keep that something must not be asked again, whether it was ever proposed by itself or not."""
        ...

    def rejections(self) -> dict[str, Rejection]:
        """Return everything that must not be asked again."""
        ...

    # -- small facts

    def meta(self, key: str) -> str | None:
        """Return a small fact, or None."""
        ...

    def set_meta(self, key: str, value: str | None) -> None:
        """Keep a small fact; None forgets it."""
        ...

    def refill(self, known: KnownDecisions, *, now: datetime, rebuilt_from: str | None = None) -> int:
        """
        Put decisions, rejections and archive origins into a database that lost them; return how many were missing.

        That it was done, and from where a damaged predecessor's place *rebuilt_from*, is noted in the same transaction.

        Skills that a scan has found already get their decisions; the others get a record first seen *now*.
        """
        ...

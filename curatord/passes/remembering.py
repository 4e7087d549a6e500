"""
Putting what a look found into the store, and what people decided before into the look.

First sights, absences and content are plain updates. A state that changed by other hands (the host archived it, a
person put it back) and a skill that moved are written as *observed* entries: they change our records and the plain
file of decisions, and touch no library.

Looking takes no lock, since it is slow. What it led to is written under the work lock, and only where the record it
came from is still the one that is stored: what an action did meanwhile is not taken back and not told as another's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime

from curatord.core.cheap import dataclass, field
from curatord.core.curation import content_of
from curatord.core.journal import HistoryChange, JournalEntry, RecordChange
from curatord.core.observation import Observation
from curatord.core.plan import Archive
from curatord.core.proposal_id import proposal_id
from curatord.core.skill_record import SkillRecord
from curatord.core.small_facts import library_facts
from curatord.core.values import ActionId, LibraryName, SkillKey
from curatord.core.words import day
from curatord.passes.proposals import KIND_ARCHIVE
from curatord.ports.curation_store import CurationStore
from curatord.ports.decisions import Decisions, Rejection

__all__ = ["OBSERVED", "SkillMemory"]

OBSERVED = "observed"  # kind of an entry that records what others did; there is nothing in it to undo


@dataclass(slots=True)
class SkillMemory:
    """Fills the port `passes.look.Records`; *decisions*, *new_id* and *lock* (the work lock) are needed to remember."""

    store: CurationStore
    decisions: Decisions | None = None
    new_id: Callable[[], ActionId] | None = None
    lock: Callable[[], AbstractContextManager[object]] = nullcontext
    _rejected: dict[str, Rejection] | None = field(default=None)

    def skills(self, library: LibraryName | None = None) -> dict[SkillKey, SkillRecord]:
        """Return all records; also where a new look begins, so what people rejected is read anew."""
        self._rejected = None
        return self.store.skills(library)

    def rejected_archiving(self, key: SkillKey, record: SkillRecord) -> str | None:
        """Return a person's no to archiving this content, in words, or None."""
        if self._rejected is None:
            self._rejected = self.store.rejections()
        if not self._rejected or record.seen_fingerprint is None:
            return None
        rejection = self._rejected.get(archive_id(key, record))
        if rejection is None:
            return None
        why = f" ({rejection.reason})" if rejection.reason else ""
        return f"its archiving was rejected on {day(rejection.at)}{why}, and it has not changed since"

    def first_scan_at(self, library: LibraryName) -> datetime | None:
        """Return when the library was first looked at, None where it never was."""
        told = self.store.meta(_first_look(library))
        return datetime.fromisoformat(told) if told is not None else None

    def remember(
        self,
        library: LibraryName,
        observation: Observation,
        *,
        now: datetime,
        host_pinned: Collection[SkillKey],
        problems: Sequence[str],
    ) -> Observation:
        """
        Put what a look found into the store, and decisions about moved skills into the plain file.

        Args:
            library: Whose.
            observation: What the look led to.
            now: When it began.
            host_pinned: The skills that their host has pinned. `status` shows them, and the problems, without a look of
                its own.
            problems: What is wrong with the library as a whole, in words.

        Returns:
            What of *observation* still held when it was written; records that others changed meanwhile are theirs.

        Raises:
            BusyError: The work lock is held by somebody else.
        """
        facts = json.dumps({"host_pinned": sorted(key.rel for key in host_pinned), "problems": list(problems)})
        if self.store.meta(library_facts(library)) != facts:
            self.store.set_meta(library_facts(library), facts)
        if self.store.meta(_first_look(library)) is None:
            self.store.set_meta(_first_look(library), now.isoformat())
        if observation.put or observation.gone or observation.shifts or observation.moved:
            with self.lock():
                observation = observation.unless_overtaken(self.store.skills(library))
                self._write(library, observation, now)
        return observation

    def _write(self, library: LibraryName, observation: Observation, now: datetime) -> None:
        # The plain file first. No intent stands for any of this: cut before the records are put, the next look finds
        # the same again; cut after, both know whose pin a moved skill has.
        moved = [
            self._entry(
                library,
                [RecordChange(key=record.key, before=None, after=record)],
                [],
                "it stands at another path now",
                now,
            )
            for record in observation.moved
        ]
        for entry in moved:
            self._decisions.record(entry)
        if observation.put or observation.gone:
            self.store.put_skills(observation.put, gone=observation.gone)
        for shift in observation.shifts:
            history = HistoryChange(
                key=shift.after.key, from_state=shift.before.state, to_state=shift.after.state, reason=shift.reason
            )
            change = RecordChange(key=shift.after.key, before=shift.before, after=shift.after)
            entry = self._entry(library, [change], [history], shift.reason, now)
            self._decisions.record(entry)
            self.store.commit_action(entry)
        for entry in moved:
            self.store.commit_action(entry)

    @property
    def _decisions(self) -> Decisions:
        if self.decisions is None:
            raise ValueError("this memory was made for looking only")
        return self.decisions

    def _entry(
        self,
        library: LibraryName,
        changes: Iterable[RecordChange],
        history: Iterable[HistoryChange],
        reason: str,
        now: datetime,
    ) -> JournalEntry:
        if self.new_id is None:
            raise ValueError("this memory was made for looking only")
        changes = tuple(changes)
        return JournalEntry(
            action_id=self.new_id(),
            run_id=None,
            at=now,
            kind=OBSERVED,
            by="user",
            library=library,
            targets=tuple(change.key for change in changes),
            summary=f"{changes[0].key}: {reason}",
            reason=reason,
            changes=changes,
            history=tuple(history),
        )


def archive_id(key: SkillKey, record: SkillRecord) -> str:
    """Return the id that a proposal to archive this content of the skill has, or would have."""
    action = Archive(key=key, reason="", expected=record.seen_fingerprint)
    return proposal_id(key.library, KIND_ARCHIVE, [key], content_of([action]))


def _first_look(library: LibraryName) -> str:
    return f"library.first_look.{library}"

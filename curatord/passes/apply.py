"""
The gate that every change goes through: rules, a model's plan, a person's command, an undo.

For one action: take the locks -> finish what a kill left -> look at each skill anew -> let `plan.objections` judge ->
work out the steps -> intent -> steps -> database -> plain file -> intent gone. Whatever stands in the way makes a
`Skipped` with its reason; a fault makes a `Failed`, after everything was taken back. Only three things are raised: the
lock is held elsewhere (`BusyError`), our own state cannot be used (`StateError`), and a library that nobody configured
(`UsageError`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from curatord.core.cheap import dataclass, field, replace
from curatord.core.curation import Proposal
from curatord.core.journal import Conflict, JournalEntry, RecordChange, Undo
from curatord.core.plan import (
    Action,
    Applied,
    Archive,
    CreateSkill,
    Failed,
    Merge,
    Outcome,
    Patch,
    Restore,
    SkipCode,
    Skipped,
    Standing,
    WriteSupportFile,
    objections,
    targets,
)
from curatord.core.reach import Site
from curatord.core.skill_record import SkillRecord
from curatord.core.values import ActionId, Fingerprint, LibraryName, RunId, SkillKey
from curatord.errors import BusyError, CuratorError, InputError, StateError, UsageError
from curatord.passes.compile import Draft, NotNowError, compile_action
from curatord.passes.withdrawing import why_gone, withdraw
from curatord.ports.curation_store import CurationStore
from curatord.ports.decisions import Decisions, Rejection
from curatord.ports.mutator import (
    EditedError,
    LinkError,
    Look,
    Mutator,
    RefusedError,
    TakenError,
    UnfinishedError,
    UnreadableIntent,
)

__all__ = ["Applier", "Recovered", "standing_with"]


_CHANGE_PACKAGES = (Archive, Merge, Patch, WriteSupportFile, CreateSkill)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """
    What became of the actions that a kill left half-way.

    Attributes:
        finished: They are done now, and recorded.
        dropped: They are as if they had never begun, each with why.
        conflicts: Nobody can tell; they wait for a person, and their skills with them.
        busy: The host was at work; they are looked at again next time.
    """

    finished: tuple[JournalEntry, ...] = ()
    dropped: tuple[tuple[JournalEntry, str], ...] = ()
    conflicts: tuple[tuple[JournalEntry | UnreadableIntent, str], ...] = ()
    busy: tuple[JournalEntry, ...] = ()

    def waits(self) -> dict[SkillKey, str]:
        """Return the skills that must be left alone, with the reason."""
        waiting: dict[SkillKey, str] = {}
        for entry, why in self.conflicts:
            if isinstance(entry, JournalEntry):
                waiting.update(dict.fromkeys(entry.targets, why))
        for entry in self.busy:
            waiting.update(dict.fromkeys(entry.targets, "an unfinished action waits until its host is not at work"))
        return waiting


def standing_with(seen: Standing, record: SkillRecord | None) -> Standing:
    """Return what the disk says of a skill together with what our record says: either word pins it."""
    if record is None:
        return seen
    return replace(seen, pinned=seen.pinned or record.pinned, importance=record.importance, state=record.state)


@dataclass(slots=True, kw_only=True)
class Applier:
    """
    Applies actions, one at a time.

    Attributes:
        mutator: The one that writes.
        store, decisions: Our records, twice.
        look: Reads skills, whose they are and what their hosts say of them, from disk, each time anew.
        sites: The libraries that may be changed.
        new_id: Makes the ids of actions.
        before_run: Told before the first action of a run that changes a package, under no lock.
        told: Hears of each action as it is applied, skipped or failed.
    """

    mutator: Mutator
    store: CurationStore
    decisions: Decisions
    look: Look
    sites: Mapping[LibraryName, Site]
    new_id: Callable[[], ActionId]
    before_run: Callable[[RunId], None] = lambda _run_id: None
    told: Callable[[Outcome], None] = lambda _outcome: None
    last_recovery: Recovered = field(default_factory=Recovered)
    _tidy: bool = field(default=False, init=False)
    _told: RunId | None = field(default=None, init=False)

    def standings(self, keys: Sequence[SkillKey]) -> dict[SkillKey, Standing]:
        """Return what is true of *keys* right now."""
        seen = self.look(keys)
        return {key: standing_with(seen[key], self.store.skill(key)) for key in keys}

    # -- applying

    def apply(
        self,
        action: Action,
        *,
        now: datetime,
        run_id: RunId | None = None,
        unless: Callable[[], str | None] = lambda: None,
    ) -> Outcome:
        """
        Carry out one action, or say why not. *unless* is asked under the locks; what it returns speaks against it.

        Raises:
            BusyError: A lock is held by somebody else.
            StateError: Our own files cannot be used; nothing was changed.
            UsageError: Its library is not configured.
        """
        outcome = self._tried(action, now=now, run_id=run_id, unless=unless)
        self.told(outcome)
        return outcome

    def _tried(
        self, action: Action, *, now: datetime, run_id: RunId | None, unless: Callable[[], str | None]
    ) -> Outcome:
        site = self._site(targets(action)[0].library)
        if run_id is not None and run_id != self._told and isinstance(action, _CHANGE_PACKAGES):
            self._told = run_id
            self.before_run(run_id)
        waits = self.recover(now=now).waits()
        try:
            return self._apply(action, site, waits, now, run_id, unless)
        except OSError as error:  # the library itself is away, or may not be entered
            return Failed(action=action, error=_words(error), errno=error.errno)
        except LinkError as error:
            return Skipped(action=action, code="unreadable", reason=str(error), keys=targets(action))

    def _apply(
        self,
        action: Action,
        site: Site,
        waits: Mapping[SkillKey, str],
        now: datetime,
        run_id: RunId | None,
        unless: Callable[[], str | None],
    ) -> Outcome:
        with self.mutator.hold(site):
            if (against := unless()) is not None:
                return Skipped(action=action, code="conflict", reason=against, keys=targets(action))
            blocked = self._blocked(targets(action), waits)
            if blocked is not None:
                return Skipped(action=action, code="conflict", reason=blocked[1], keys=(blocked[0],))
            try:
                draft = self._draft(action, site, now, run_id)
            except NotNowError as error:
                return Skipped(action=action, code=error.code, reason=str(error), keys=(error.key,))
            except _ObjectedError as error:
                return error.outcome
            except InputError as error:
                return Skipped(action=action, code="unreadable", reason=str(error), keys=targets(action))
            except OSError as error:
                return Failed(action=action, error=_words(error), errno=error.errno)
            return self.carry_out(action, draft)

    def apply_all(
        self,
        actions: Iterable[Action],
        *,
        now: datetime,
        run_id: RunId | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> tuple[Outcome, ...]:
        """Carry out *actions* in order; a lock held elsewhere skips one and no more. *stop* is asked between two."""
        outcomes: list[Outcome] = []
        for action in actions:
            if stop():
                break
            outcomes.append(self._try(action, now, run_id, lambda: None))
        return tuple(outcomes)

    def _try(self, action: Action, now: datetime, run_id: RunId | None, unless: Callable[[], str | None]) -> Outcome:
        try:
            return self.apply(action, now=now, run_id=run_id, unless=unless)
        except BusyError as error:
            return Skipped(action=action, code="busy", reason=str(error), keys=targets(action))
        except UsageError as error:
            return Skipped(action=action, code="gone", reason=str(error), keys=targets(action))

    def approve(
        self,
        proposal: Proposal,
        *,
        now: datetime,
        run_id: RunId | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> tuple[Outcome, ...]:
        """
        Apply a proposal, whole: where anything speaks against any part of it, none of it is applied.

        Whether it still waits is asked again under the locks, before each action. *stop* is asked between two actions.
        What is done counts as the work of *run_id*, else of the run that proposed it, so that an undo of that run,
        or of the last, finds it.

        Raises:
            UsageError: It was decided already.
        """
        self._must_wait(proposal)
        run_id = run_id or proposal.run_id
        applied = False

        def unless() -> str | None:
            # The first action that is recorded marks it approved; until then it must wait, from then on be that.
            now_is = self._status(proposal)
            expected = "approved" if applied else "pending"
            return None if now_is == expected else f"proposal {proposal.id} is {now_is} already"

        actions = [_under(action, proposal.id) for action in proposal.actions]
        against: list[Outcome] = [outcome for action in actions if (outcome := self.would_skip(action)) is not None]
        if against:
            return tuple(against)
        outcomes: list[Outcome] = []
        for action in actions:
            if stop():
                break
            tried = self._try(action, now, run_id, unless)
            applied = applied or isinstance(tried, Applied)
            outcomes.append(tried)
        return tuple(outcomes)

    def _status(self, proposal: Proposal) -> str:
        """Return what the proposal is now; one that the store does not know is what it says itself."""
        stored = self.store.proposal(proposal.id)
        return proposal.status if stored is None or stored.id != proposal.id else stored.status

    def _must_wait(self, proposal: Proposal) -> None:
        status = self._status(proposal) if proposal.status == "pending" else proposal.status
        if status != "pending":
            raise UsageError(f"proposal {proposal.id} is {status} already")

    def reject(self, proposal: Proposal, *, now: datetime, reason: str = "", also: Sequence[str] = ()) -> None:
        """
        Refuse a proposal, and the ids *also* with it; they are not asked again until their content changes.

        Raises:
            UsageError: It was decided already.
        """
        with self.mutator.hold(None):
            self._must_wait(proposal)
            rejected = [Rejection(id=id_, at=now, reason=reason) for id_ in dict.fromkeys((proposal.id, *also))]
            self.decisions.reject(*rejected)
            self.store.decide(proposal.id, "rejected", now=now, reason=reason)
            for rejection in rejected:
                self.store.reject_id(rejection)

    def would_skip(self, action: Action) -> Skipped | None:
        """Return what speaks against *action* right now, or None; nothing is locked or written."""
        return _skipped(action, self.standings(targets(action)))

    def _draft(self, action: Action, site: Site, now: datetime, run_id: RunId | None) -> Draft:
        keys = targets(action)
        standings = self.standings(keys)
        skipped = _skipped(action, standings)
        if skipped is not None:
            raise _ObjectedError(skipped)
        return compile_action(
            action,
            site=site,
            standings=standings,
            records={key: record for key in keys if (record := self.store.skill(key)) is not None},
            archive=self.store.archive(site.library) if isinstance(action, Restore) else (),
            disk=self.mutator,
            now=now,
            run_id=run_id,
            action_id=self.new_id(),
        )

    def carry_out(self, action: Action | None, draft: Draft) -> Outcome:
        """Do what *draft* says, under the locks that the caller holds."""
        entry = draft.entry
        self.decisions.load()  # unreadable: nothing is begun whose end could not be written down
        try:
            self.mutator.begin(entry, draft.blobs)
        except RefusedError as error:
            return Skipped(action=action, code=error.code, reason=str(error), keys=(error.key,))
        except OSError as error:
            return Failed(action=action, error=_words(error), errno=error.errno)
        try:
            self.mutator.carry_out(entry)
        except UnfinishedError as error:
            return Failed(action=action, error=str(error), unfinished=True)
        except StateError as error:  # what it needs to go on is damaged; nothing of it stays
            self.mutator.finish(entry)
            return Failed(action=action, error=str(error))
        except InputError as error:
            self.mutator.finish(entry)
            return Skipped(action=action, code=_code_of(error), reason=str(error), keys=entry.targets)
        except OSError as error:
            self.mutator.finish(entry)
            return Failed(action=action, error=_words(error), errno=error.errno)
        try:
            entry = self._with_content(entry)
            self.store.commit_action(entry)
        except (OSError, CuratorError) as error:
            failed = self._not_recorded(action, entry, error)
            if failed is not None:
                return failed
        note = ""
        try:
            self.decisions.record(entry)
            self.mutator.finish(entry)
        except (OSError, CuratorError) as error:
            note = f"done, but its record is not complete yet and is mended at the next start: {error}"
        self._withdraw(entry)
        return Applied(action=action, entry=entry, after=entry.after, note=note)

    def _withdraw(self, entry: JournalEntry) -> None:
        """Take back what waits for a yes about skills that *entry* put into the archive."""
        gone = {change.key: why for change in entry.changes if (why := why_gone(change.after)) is not None}
        if gone:
            # Not of the action itself: cut before this, the next run takes them back.
            with contextlib.suppress(CuratorError):
                withdraw(self.store, gone.get, now=entry.at, but=entry.proposal)

    def _not_recorded(self, action: Action | None, entry: JournalEntry, error: Exception) -> Failed | None:
        """Take back what the database would not record; None where it did, after all."""
        try:
            if self.store.has_action(entry.action_id):
                return None  # the commit was made; only its reply was an error
            self.mutator.take_back(entry)
            self.mutator.finish(entry)
        except (OSError, CuratorError) as worse:
            return Failed(action=action, error=f"{error}; it could not be taken back now: {worse}", unfinished=True)
        return Failed(action=action, error=str(error))

    def _with_content(self, entry: JournalEntry) -> JournalEntry:
        """Return *entry* with the fingerprints of what stands on disk now that it is done."""
        written = tuple(change.key for change in entry.changes if change.written)
        seen = self.look(written) if written else {}
        after: list[tuple[SkillKey, Fingerprint | None]] = []
        changes: list[RecordChange] = []
        for change in entry.changes:
            if change.written:
                fingerprint = seen[change.key].fingerprint
                record = replace(
                    change.after, trusted_fingerprint=fingerprint, seen_fingerprint=fingerprint, seen_at=entry.at
                )
                after.append((change.key, fingerprint))
                changes.append(msgspec.structs.replace(change, after=record))
            else:
                changes.append(change)
        return msgspec.structs.replace(entry, changes=tuple(changes), after=tuple(after))

    # -- after a kill

    def recover(self, *, now: datetime) -> Recovered:
        """
        Bring every unfinished action to before or after; done at each start and before each action.

        Raises:
            BusyError: The work lock is held.
        """
        if self._tidy and not self.mutator.unfinished():
            self.last_recovery = Recovered()
            return self.last_recovery
        finished: list[JournalEntry] = []
        dropped: list[tuple[JournalEntry, str]] = []
        conflicts: list[tuple[JournalEntry | UnreadableIntent, str]] = []
        busy: list[JournalEntry] = []
        with self.mutator.hold(None):
            self.mutator.tidy()
            self._tidy = True
            for entry in self.mutator.unfinished():
                if isinstance(entry, UnreadableIntent):
                    conflicts.append((entry, f"{entry.path} cannot be read: {entry.error}"))
                    continue
                try:
                    why = self._recover(entry)
                except BusyError:
                    busy.append(entry)
                    continue
                except (OSError, CuratorError) as error:
                    conflicts.append((entry, str(error)))
                    continue
                if isinstance(why, Conflict):
                    conflicts.append((entry, _conflict(entry, why)))
                elif why is None:
                    finished.append(entry)
                else:
                    dropped.append((entry, why))
        self.last_recovery = Recovered(
            finished=tuple(finished), dropped=tuple(dropped), conflicts=tuple(conflicts), busy=tuple(busy)
        )
        return self.last_recovery

    def _recover(self, entry: JournalEntry) -> str | Conflict | None:
        """Return None where it is done now, why it was dropped, or the conflict."""
        if not self.store.has_action(entry.action_id):
            resolution = self.mutator.recover(entry)
            if isinstance(resolution, Conflict):
                return resolution
            if isinstance(resolution, Undo):
                self.mutator.finish(entry)
                return resolution.why
            entry = self._with_content(entry)
            self.store.commit_action(entry)
        self.decisions.record(entry)
        self.mutator.finish(entry)
        return None

    def forget_old(self, keep: int) -> int:
        """Forget all but the newest *keep* actions and those that the archive needs; return how many went."""
        with self.mutator.hold(None):
            return self.store.forget_actions(keep)

    def drop_blobs(self) -> int:
        """Remove kept bytes that no action needs any more; return how many files went."""
        with self.mutator.hold(None):
            return self.mutator.drop_blobs(self.store.blobs_in_use())

    def _blocked(self, keys: Sequence[SkillKey], waits: Mapping[SkillKey, str]) -> tuple[SkillKey, str] | None:
        for key in keys:
            if key in waits:
                return key, waits[key]
        # Somebody may have been killed between our recovery and our lock.
        for entry in self.mutator.unfinished():
            if isinstance(entry, JournalEntry):
                for key in keys:
                    if key in entry.targets:
                        return key, f"the unfinished action {entry.action_id} is about it"
        return None

    def _site(self, library: LibraryName) -> Site:
        site = self.sites.get(library)
        if site is None:
            raise UsageError(f"there is no library {library!r}", hint="`curatord config show` lists them")
        return site


class _ObjectedError(InputError):
    """Something speaks against the action; *outcome* is how that is told."""

    def __init__(self, outcome: Skipped) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


def _code_of(error: InputError) -> SkipCode:
    if isinstance(error, EditedError):
        return "edited"
    return "taken" if isinstance(error, TakenError) else "unreadable"


def _conflict(entry: JournalEntry, conflict: Conflict) -> str:
    """Return the conflict in words, and the two ways out of it."""
    return (
        f"{conflict.where}: expected {conflict.expected}, found {conflict.found}. Put that place as it was before or as"
        f" it shall be, and it goes on by itself; or remove journal/{entry.action_id}.json in the state folder to leave"
        " everything as it is now"
    )


def _skipped(action: Action, standings: Mapping[SkillKey, Standing]) -> Skipped | None:
    found = objections(action, standings)
    if not found:
        return None
    return Skipped(
        action=action,
        code=found[0].code,
        reason="; ".join(dict.fromkeys(f"{violation.key}: {violation.what}" for violation in found)),
        keys=tuple(dict.fromkeys(violation.key for violation in found)),
    )


def _under(action: Action, proposal: str) -> Action:
    return msgspec.structs.replace(action, proposal=proposal)


def _words(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"

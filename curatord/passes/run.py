"""
One whole curation: gates -> scan -> look -> decide -> apply -> look again -> report.

Order of effects, and what a cut leaves behind:

1. The lock of all runs is taken. (Nothing.)
2. A folder is made, `run.json` says `running`, and so does the row in the store. (Cut here or later: the next start
   finds both and says `interrupted`.)
3. Transcripts are read, libraries looked at. What was learnt is in the store. (Nothing in a library has changed.)
4. `plan.json` says what was decided. (Nothing has changed.)
5. Each action goes through the gate of `passes.apply`, one journal entry each. (Each is whole or absent.)
6. The disk is looked at again, and the report is written from that. (All is done; the report says `interrupted`.)

A dry run is the same path up to 4; it has no applier at all, so it cannot change anything even by mistake (bugs B015).
A baseline, the first run that the daemon does by itself, stops there too, but counts as the first whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Any

from curatord.core.cheap import dataclass, field, replace
from curatord.core.curation import RunRow
from curatord.core.files_changed import files_changed
from curatord.core.gates import Closed, Gate
from curatord.core.library import LibrarySnapshot
from curatord.core.library_cost import LibraryCost, index_warning
from curatord.core.lifecycle import Verdict
from curatord.core.plan import Action, Applied, Failed, Plan, Skipped
from curatord.core.plan import Outcome as ActionOutcome
from curatord.core.run_record import (
    AutoTransitions,
    FailedRow,
    GateRow,
    PassRow,
    PendingRow,
    ReferenceRow,
    RunRecord,
    SkippedRow,
    TransitionRow,
    operations_of,
    summary_of,
    to_json,
    to_report,
)
from curatord.core.selection import Selection, cap_of, select
from curatord.core.settings import Config
from curatord.core.small_facts import BASELINE_RUN, REBUILT_FROM, RUN_COUNT
from curatord.core.values import LibraryName, Outcome, RunId, SkillKey, State, Trigger
from curatord.core.words import plural, span
from curatord.errors import BusyError, CuratorError, StateError
from curatord.passes.distil_record import with_distil
from curatord.passes.interrupted_runs import finish_interrupted
from curatord.passes.look import Look, Looker
from curatord.passes.proposals import ask, proposals_of
from curatord.passes.run_parts import ActionGate, Consult, Folders, Gatekeeper, Merger, Unsettled
from curatord.passes.run_rows import (
    action_json,
    action_of,
    advice_rows,
    cost_json,
    place_of,
    problem_rows,
    rebuilt_words,
    reference_rows,
    scan_warnings,
    transition_row,
    unknown_ages,
    verb_of,
)
from curatord.passes.withdrawing import withdraw_gone
from curatord.ports.clock import Clock
from curatord.ports.curation_store import CurationStore

if TYPE_CHECKING:
    from curatord.passes.consult import Consultation
    from curatord.passes.distil_order import Distiller, DistilResult
    from curatord.passes.umbrella_case import LibraryCase

__all__ = ["Curation", "RunOrder", "keep_record", "prune_folders"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """
    What is asked for.

    *respect_gates*: begin only where every gate is open. *llm* False: no pass that needs a model. *library*: this one
    alone; the others are looked at but nothing of them is changed or proposed.
    """

    trigger: Trigger
    dry_run: bool = False
    respect_gates: bool = False
    llm: bool = True
    library: LibraryName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curation:
    """
    Does runs.

    Attributes:
        config: The configuration in force.
        version: curatord's own, for the report.
        scan: Reads the transcripts and returns the value of `scan`; its problems are in it, not raised.
        looker: Looks at libraries and records.
        gates: Says whether a run may begin.
        applier: Gives what carries actions out; a dry run never asks for it.
        consult: Opens a run's dealings with models.
        distiller: Does the distil pass.
        merger: Does the umbrella pass.
        store, folders: Where runs are remembered.
        one_at_a_time: The lock of all runs; entering it raises `BusyError` where it is held.
        cost_of: What a library's live skills cost in every call.
        keep_house: Done before anything is decided in a run that is no dry run (the host's own curator is paused where
            that was asked for, bytes that nothing needs any more are dropped); returns warnings.
        unsettled: Words for each action that a kill left half-way and that waits for a person (in a dry run, which
            settles nothing, for each that waits at all).
        notes: What is to be told of the backup before the run's first change; each is given once.
        clock: For durations; `now` of the run is read once.
        telling: Entered as a run begins, and left when its record is written.
    """

    config: Config
    version: str
    scan: Callable[[Callable[[], bool]], Mapping[str, Any]]
    looker: Looker
    gates: Gatekeeper
    applier: Callable[[], ActionGate]
    consult: Consult
    distiller: Distiller
    merger: Merger
    store: CurationStore
    folders: Folders
    one_at_a_time: Callable[[], AbstractContextManager[object]]
    cost_of: Callable[[LibrarySnapshot], LibraryCost]
    keep_house: Callable[[Sequence[LibraryName]], Sequence[str]]
    unsettled: Unsettled
    notes: Callable[[], Sequence[str]]
    clock: Clock
    telling: Callable[[RunRecord], AbstractContextManager[object]] = lambda _record: nullcontext()

    def run(
        self,
        order: RunOrder,
        *,
        stop: Callable[[], bool] = lambda: False,
        alive: Callable[[], None] = lambda: None,
    ) -> RunRecord:
        """
        Do one run and return its record, which is in its folder as well.

        Where gates are closed and respected, nothing is begun, no folder is made, and the record has no id.

        Raises:
            BusyError: Another run is at work.
            StateError: The state folder cannot be used; what was done stays done and journaled.
        """
        with self.one_at_a_time(), ExitStack() as telling:
            now = self.clock.now()
            finish_interrupted(self.store, self.folders, now)
            if order.respect_gates and order.trigger is Trigger.MANUAL:
                self.scan(stop)  # the gates ask when somebody last worked, and should not be told old news
            answer = self.gates(now, bypass=not order.respect_gates)
            record = self.begin_record(order, answer.gates, now)
            if isinstance(answer, Closed):
                waiting = f"waiting: {'; '.join(answer.reasons)}"
                return replace(record, outcome=Outcome.NOTHING_TO_DO, warnings=(waiting,))
            record = replace(record, run_id=self.folders.create(now))
            telling.enter_context(self.telling(record))
            rebuilt = self.store.meta(REBUILT_FROM)
            doubts = [gate.reason for gate in answer.gates if gate.name == "clock" and not gate.open]
            work = _Work(
                curation=self,
                order=order,
                record=record,
                baseline=answer.baseline or (rebuilt is not None and not order.dry_run),
                doubts=tuple(doubts),
            )
            if rebuilt is not None:
                work.record = record = replace(
                    record,
                    warnings=(rebuilt_words(rebuilt),),
                )
            began = self.clock.monotonic()
            try:
                work.keep()
            except StateError:
                self.folders.discard(record.run_id)  # a run that could not even begin leaves nothing behind
                raise
            try:
                work.do(stop, alive)
            except CuratorError as error:
                work.record = replace(
                    work.record, outcome=Outcome.FAILED, error=f"{error}{f' ({error.hint})' if error.hint else ''}"
                )
            finally:
                # Also on a bug or an interrupt that passes through here: the record must not say `running` for ever.
                if work.record.outcome is Outcome.RUNNING:
                    work.record = replace(
                        work.record,
                        outcome=Outcome.FAILED,
                        error=work.record.error or "it ended by an unforeseen error",
                    )
                work.record = replace(
                    work.record, finished_at=self.clock.now(), duration_s=round(self.clock.monotonic() - began, 3)
                )
                work.keep()
            if not order.dry_run:
                if work.record.outcome is not Outcome.FAILED:
                    self.store.set_meta(REBUILT_FROM, None)
                self.store.set_meta(RUN_COUNT, str(int(self.store.meta(RUN_COUNT) or 0) + 1))
                if work.baseline:
                    self.store.set_meta(BASELINE_RUN, work.record.run_id)
            problems = prune_folders(self, work.record.run_id)
            if problems:
                work.record = replace(work.record, warnings=(*work.record.warnings, *problems))
                work.keep()
            return work.record

    def begin_record(self, order: RunOrder, gates: Sequence[Gate], now: datetime) -> RunRecord:
        """Return the record of a run that begins now; it has no id yet."""
        return RunRecord(
            run_id=RunId(""),
            trigger=order.trigger,
            dry_run=order.dry_run,
            mode=self.config.mode,
            outcome=Outcome.RUNNING,
            started_at=now,
            version=self.version,
            config_fingerprint=self.config.fingerprint,
            gates=tuple(GateRow(gate=gate.name, open=gate.open, reason=gate.reason) for gate in gates),
        )


def keep_record(
    curation: Curation, record: RunRecord, *, whole: bool, roots: Mapping[str, str] | None = None
) -> RunRecord:
    """
    Write *record* into the store and its folder, with what it did to files, and return it so.

    *whole*: it is about all libraries; *roots* are their paths, as they were found.
    """
    # The row first: gates and retries go by it, and a folder that cannot be written must not make them forget.
    curation.store.put_run(
        RunRow(
            run_id=record.run_id,
            trigger=record.trigger,
            dry_run=record.dry_run,
            mode=record.mode,
            outcome=record.outcome,
            started_at=record.started_at,
            finished_at=record.finished_at,
            duration_s=record.duration_s,
            summary=summary_of(record),
            whole=whole,
        )
    )
    rows = curation.store.actions(run_id=record.run_id)
    if rows:  # what it did to files is told from the journal, whatever became of the run
        record = replace(record, files=files_changed([row.entry for row in reversed(rows)], dict(roots or {})))
    undoable = any(row.status == "done" for row in rows)
    curation.folders.write(record.run_id, to_json(record), to_report(record, undoable=undoable))
    return record


def prune_folders(curation: Curation, spare: RunId) -> list[str]:
    """Remove the oldest runs' folders beyond what is kept, and not *spare*; return what could not be removed."""
    last = curation.store.last_finished()
    spared = [spare, *([last.run_id] if last is not None else [])]
    dry = [row.run_id for row in curation.store.runs() if row.dry_run]
    removed, problems = curation.folders.prune(curation.config.reports.keep, spare=spared, apart=dry)
    curation.store.forget_runs(removed)
    return problems


@dataclass(slots=True)
class _Work:
    """One run at work: its record grows as facts become known."""

    curation: Curation
    order: RunOrder
    record: RunRecord
    baseline: bool
    distil: DistilResult | None = None
    umbrella_state: str = "skipped"
    prunes_held: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    _consulted: list[Consultation | None] = field(default_factory=list)
    undone: bool = False
    doubts: tuple[str, ...] = ()
    roots: dict[str, str] = field(default_factory=dict)

    def keep(self) -> None:
        """Write what is known into folder and store."""
        self.record = keep_record(self.curation, self.record, whole=self.order.library is None, roots=self.roots)

    def do(self, stop: Callable[[], bool], alive: Callable[[], None]) -> None:
        """Do the passes in their order."""
        curation, now = self.curation, self.record.started_at
        stop = _and_alive(stop, alive)  # whoever asks whether to stop shows by that that it is alive
        self._scan(stop)
        self._warn(curation.unsettled(dry_run=self.order.dry_run))
        if not self.order.dry_run and not self.baseline:
            self._warn(curation.keep_house(self._names()))
        look = seen = curation.looker.look(now, remember=True, doubts=self.doubts)
        self._saw(look)
        self._withdraw(look)
        if stop():
            self.undone = True
            self.record = replace(self.record, outcome=Outcome.INTERRUPTED)
            return
        if self._distil(look, stop):
            # What it changed is judged as it stands now.
            look = curation.looker.look(now, remember=True, doubts=self.doubts)
            self._withdraw(look)
        if stop():
            self.undone = True
            self.record = replace(self.record, after=look.counts(), outcome=Outcome.INTERRUPTED)
            return
        selection = self._decide(look)
        plan = Plan(actions=tuple(action_of(verdict) for verdict in selection.apply))
        proposals = proposals_of(
            selection,
            now=now,
            run_id=self.record.run_id,
            archives={name: library.snapshot.archive for name, library in look.libraries.items()},
        )
        distilled = self.distil.actions if self.distil is not None else []
        curation.folders.write_plan(
            self.record.run_id,
            {
                "actions": [action_json(action) for action in (*distilled, *plan.actions)],
                "proposed": [
                    {"id": p.id, "kind": p.kind, "actions": [action_json(action) for action in p.actions]}
                    for p in (*(self.distil.proposals if self.distil is not None else ()), *proposals)
                ],
            },
        )
        if self.order.dry_run or self.baseline:
            rows = tuple(PendingRow(id=p.id, summary=p.summary, reason=p.reason, diff=p.diff) for p in proposals)
            if self.baseline:
                self._only_recorded(selection)
            else:
                self._would(selection, plan, rows)
        else:
            asked = ask(curation.store, proposals, now=now, libraries=self._judged(look))
            self.record = replace(
                self.record,
                pending=(*self.record.pending, *asked.pending),
                skipped=(*self.record.skipped, *asked.skipped),
            )
            self._apply(selection.apply, plan.actions, stop)
            if plan.actions:
                look = curation.looker.look(now, remember=True, doubts=self.doubts)
                self._withdraw(look)
                self._check_archived(look)
        if stop():
            self.undone = True
        elif not self.baseline:
            changed = self._merge(look, selection, plan, stop)
            if changed:
                look = curation.looker.look(now, remember=True, doubts=self.doubts)
                self._withdraw(look)
        if look is not seen:
            self.record = replace(self.record, after=look.counts())
        self._warn(curation.notes())
        self._finish(selection)

    def _scan(self, stop: Callable[[], bool]) -> None:
        """Read the transcripts; where somebody else does that now, go on with what is known."""
        try:
            scan = self.curation.scan(stop)
        except BusyError as error:
            self._pass("scan", "skipped", f"{error}; what it has read so far counts")
            return
        trouble = scan_warnings(scan)
        self.record = replace(self.record, scan=scan)
        self._warn(trouble)
        self._pass("scan", "failed" if trouble else "done", trouble[0] if trouble else "")

    def _names(self) -> list[LibraryName]:
        """Return the libraries of this run, as configured."""
        names = [LibraryName(settings.name) for settings in self.curation.config.libraries]
        return [name for name in names if self.order.library in (None, name)]

    def _warn(self, words: Sequence[str]) -> None:
        self.record = replace(self.record, warnings=tuple(dict.fromkeys((*self.record.warnings, *words))))

    def _withdraw(self, look: Look) -> None:
        """Take back what waits on skills that are gone, ask again on those that are back; a dry run only says it."""
        order = self.order
        self._warn(withdraw_gone(self.curation.store, look, library=order.library, dry_run=order.dry_run))

    def _apply(self, verdicts: Sequence[Verdict], actions: Sequence[Action], stop: Callable[[], bool]) -> None:
        """Carry *actions* out one by one, so that whatever happens in between, what was done is in the record."""
        outcomes: list[ActionOutcome] = []
        now, run_id = self.record.started_at, self.record.run_id
        try:
            for action in actions:
                done = self.curation.applier().apply_all((action,), now=now, run_id=run_id, stop=stop)
                if not done:
                    self.undone = True
                    break
                outcomes += done
        finally:
            self._did(verdicts, outcomes)

    # What was found.

    def _saw(self, look: Look) -> None:
        self.roots = {str(name): library.snapshot.root for name, library in look.libraries.items()}
        costs = self._costs(look)
        warning = index_warning(costs)
        warnings = [*self.record.warnings, *look.warnings, *unknown_ages(look)]
        if warning is not None:
            warnings.append(warning)
        counts = look.counts()
        self.record = replace(
            self.record,
            before=counts,
            after=counts,
            warnings=tuple(dict.fromkeys(warnings)),
            advice=advice_rows(look),
            problems=problem_rows(look),
            library_cost=cost_json(costs),
        )

    def _costs(self, look: Look) -> list[LibraryCost]:
        return [self.curation.cost_of(library.snapshot) for _, library in sorted(look.libraries.items())]

    def _consultation(self) -> Consultation | None:
        """Return this run's dealings with models, opened by the first pass that wants them."""
        if not self._consulted:
            by_hand = self.order.trigger is Trigger.MANUAL
            self._consulted.append(self.curation.consult(by_hand=by_hand))
        return self._consulted[0]

    def _tell_llm(self) -> None:
        """Put what was asked so far into the record."""
        consultation = self._consulted[0] if self._consulted else None
        if consultation is not None:
            self.record = replace(self.record, llm={**consultation.record(), "prompts": dict(self.prompts)})

    def _distil(self, look: Look, stop: Callable[[], bool]) -> bool:
        """Look at sessions that are due, and return whether anything of a library was changed."""
        from curatord.passes.distil_order import DistilOrder

        if self.baseline and not self.order.dry_run:
            self._pass("distil", "skipped", "this run only records")
            return False
        result = self.curation.distiller(
            DistilOrder(
                dry_run=self.order.dry_run,
                llm=self.order.llm,
                library=self.order.library,
                by_hand=self.order.trigger is Trigger.MANUAL,
            ),
            look=look,
            now=self.record.started_at,
            run_id=lambda: self.record.run_id,
            consultation=self._consultation,
            stop=stop,
        )
        self.prompts |= result.prompts
        self.record = with_distil(self.record, result)
        self.distil = result
        self._pass("distil", "done" if result.state in ("done", "budget", "stopped") else result.state, result.reason)
        self._tell_llm()
        if result.state != "skipped":
            self.keep()  # models are slow: what was learnt is not to be lost with the rest of the run
        return result.changed

    def _pass(self, name: str, state: str, reason: str = "") -> None:
        self.record = replace(self.record, passes=(*self.record.passes, PassRow(name=name, state=state, reason=reason)))

    # The umbrella pass.

    def _merge(self, look: Look, selection: Selection, plan: Plan, stop: Callable[[], bool]) -> bool:
        """Merge what belongs together in the libraries of this run, and return whether anything was changed."""
        from curatord.passes.umbrella_case import LibraryCase  # late: a batch of lessons needs nothing of that pass

        curation, policy = self.curation, self.curation.config.lifecycle

        def cases() -> list[LibraryCase]:
            found = []
            for name in self._judged(look):
                library = look.libraries[name]
                managed = sum(facts.managed for key, facts in look.facts.items() if key.library == name)
                gone = sum(v.to is State.ARCHIVED for v in selection.apply if v.key.library == name)
                found.append(
                    LibraryCase(
                        snapshot=library.snapshot,
                        facts={key: facts for key, facts in look.facts.items() if key.library == name},
                        clock=library.clock,
                        policy=policy,
                        seen_as=library.settings.seen_as,
                        prune_room=max(0, cap_of(policy.max_archive, managed) - gone),
                    )
                )
            return found

        result = curation.merger(
            cases,
            now=self.record.started_at,
            run_id=self.record.run_id,
            dry_run=self.order.dry_run,
            llm=self.order.llm,
            consultation=self._consultation,
            stop=stop,
        )
        state = "done" if result.state in ("done", "budget", "stopped") else result.state
        self._pass("umbrella", state, result.reason)
        record = self.record
        self.record = replace(
            record,
            consolidated=(*record.consolidated, *result.consolidated),
            pruned=(*record.pruned, *result.pruned),
            added=(*record.added, *result.added),
            pending=(*record.pending, *result.pending),
            skipped=(*record.skipped, *result.skipped),
            failed=(*record.failed, *result.failed),
            references=(*record.references, *result.references),
            warnings=tuple(dict.fromkeys((*record.warnings, *result.warnings))),
            merges=tuple(result.libraries),
            left=tuple(result.left),
        )
        self.prompts |= result.prompts
        self._tell_llm()
        self.umbrella_state, self.prunes_held = result.state, result.held
        self.undone = self.undone or result.state == "stopped"
        if result.actions:
            curation.folders.write_plan(
                record.run_id,
                {
                    "actions": [
                        action_json(action)
                        for action in (*(self.distil.actions if self.distil else ()), *plan.actions, *result.actions)
                    ]
                },
            )
        return any(isinstance(outcome, Applied) for outcome in result.outcomes)

    # What was decided.

    def _judged(self, look: Look) -> list[LibraryName]:
        """Return the libraries in which this run may change something."""
        return [
            name
            for name, library in sorted(look.libraries.items())
            if not library.snapshot.observe_only and self.order.library in (None, name)
        ]

    def _decide(self, look: Look) -> Selection:
        """Return what is to be done, with what keeps a library from it in the record."""
        judged = set(self._judged(look))
        verdicts = [verdict for key, verdict in look.verdicts.items() if key.library in judged]
        others = [v for key, v in look.verdicts.items() if key.library not in judged and v.moves]
        for verdict in sorted(others, key=place_of):
            if self.order.library in (None, verdict.key.library):
                reason = "its library can only be observed: " + "; ".join(
                    p.words for p in look.libraries[verdict.key.library].snapshot.problems if p.severity != "note"
                )
                self._skip(verdict, reason)
        selection = select(verdicts, self.curation.config.lifecycle.max_archive, self.curation.config.mode)
        self.record = replace(
            self.record,
            auto_transitions=AutoTransitions(
                checked=sum(verdict.checked for verdict in verdicts), skipped=len(self.record.skipped)
            ),
            warnings=(*self.record.warnings, *selection.warnings),
        )
        self._pass("lifecycle", "done")
        return selection

    def _skip(self, verdict: Verdict, reason: str) -> None:
        row = SkippedRow(action=f"{verb_of(verdict.to)} {verdict.key}", reason=reason)
        self.record = replace(self.record, skipped=(*self.record.skipped, row))

    # What was done.

    def _would(self, selection: Selection, plan: Plan, pending: tuple[PendingRow, ...]) -> None:
        told = zip(selection.apply, plan.actions, strict=True)
        rows = tuple(transition_row(verdict, reason=action.reason) for verdict, action in told)
        self.record = replace(self.record, transitions=rows, pending=(*self.record.pending, *pending))
        self._tally()

    def _only_recorded(self, selection: Selection) -> None:
        waiting = (*(verdict for verdict, _ in selection.propose), *(v for held in selection.held for v in held.due))
        due = tuple(transition_row(verdict) for verdict in (*selection.apply, *waiting))
        interval = self.curation.config.gates.interval
        warning = (
            f"this run only records. {plural(len(due), 'change')} would be due; "
            f"the first change comes one interval ({span(interval)}) later"
        )
        self.record = replace(self.record, due=due)
        self._warn((warning,))

    def _did(self, verdicts: Sequence[Verdict], outcomes: Sequence[ActionOutcome]) -> None:
        transitions: list[TransitionRow] = []
        skipped: list[SkippedRow] = []
        failed: list[FailedRow] = []
        references: list[ReferenceRow] = []
        for verdict, outcome in zip(verdicts, outcomes, strict=False):
            what = f"{verb_of(verdict.to)} {verdict.key}"
            match outcome:
                case Applied():
                    transitions.append(transition_row(verdict, outcome.entry.action_id))
                    references += reference_rows(outcome)
                case Skipped():
                    skipped.append(SkippedRow(action=what, reason=outcome.reason))
                case Failed():
                    failed.append(FailedRow(action=what, error=outcome.error))
        for verdict in verdicts[len(outcomes) :]:
            reason = "the run was stopped before it; the next one does it"
            skipped.append(SkippedRow(action=f"{verb_of(verdict.to)} {verdict.key}", reason=reason))
        self.record = replace(
            self.record,
            transitions=tuple(transitions),
            skipped=(*self.record.skipped, *skipped),
            failed=(*self.record.failed, *failed),
            references=(*self.record.references, *references),
        )
        self._tally()

    def _tally(self) -> None:
        count = dict.fromkeys(State, 0)
        for row in self.record.transitions:
            count[State(row.to_state)] += 1
        self.record = replace(
            self.record,
            auto_transitions=replace(
                self.record.auto_transitions,
                marked_stale=count[State.STALE],
                archived=count[State.ARCHIVED],
                reactivated=count[State.ACTIVE],
                skipped=len(self.record.skipped),
            ),
        )

    def _check_archived(self, look: Look) -> None:
        """Hold every line that says `archived` against the disk (bugs B030)."""
        kept: list[TransitionRow] = []
        wrong: list[FailedRow] = []
        on_disk = {package.path for library in look.libraries.values() for package in library.snapshot.archived}
        for row in self.record.transitions:
            key = SkillKey(library=LibraryName(row.library), rel=row.skill)  # type: ignore[arg-type]  # made from a key
            facts = look.facts.get(key)
            path = facts.record.archive_path if facts is not None else None
            if row.to_state == State.ARCHIVED and path not in on_disk:
                wrong.append(FailedRow(action=f"archive {key}", error=f"it is not at {path}, where it was put"))
            else:
                kept.append(row)
        if wrong:
            self.record = replace(self.record, transitions=tuple(kept), failed=(*self.record.failed, *wrong))
            self._tally()

    def _finish(self, selection: Selection) -> None:
        record = self.record
        done = (record.transitions, record.consolidated, record.pruned, record.added, record.patched)
        # What somebody has said no to is told again in each run, and is no fault of it.
        skipped = [row for row in record.skipped if not row.declined]
        lessons = [operations_of(record.distil, state) for state in ("candidate", "refused")]
        nothing = not any((*done, record.pending, skipped, record.failed, *lessons))
        states = (self.umbrella_state, "" if self.distil is None else self.distil.state)
        if self.undone and not self.order.dry_run:
            outcome = Outcome.INTERRUPTED
        elif self.curation.unsettled(dry_run=self.order.dry_run):
            outcome = Outcome.HELD  # an action that a kill left half-way waits for a person
        elif (selection.held and not self.baseline) or self.prunes_held:
            outcome = Outcome.HELD
        elif "budget" in states:
            outcome = Outcome.BUDGET
        elif "failed" in states and not any(done):
            # Nothing came of the run but an endpoint's error: that must not look like nothing to do (bugs B014).
            outcome = Outcome.FAILED
            self.record = replace(record, error=next((p.reason for p in record.passes if p.state == "failed"), None))
            record = self.record
        elif record.failed or skipped or any(row.state == "failed" for row in record.passes):
            outcome = Outcome.PARTIAL
        else:
            outcome = Outcome.NOTHING_TO_DO if nothing else Outcome.OK
        self.record = replace(record, outcome=outcome)


def _and_alive(stop: Callable[[], bool], alive: Callable[[], None]) -> Callable[[], bool]:
    def asked() -> bool:
        alive()
        return stop()

    return asked

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
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol

from curatord.core.cheap import dataclass, replace
from curatord.core.curation import RunRow
from curatord.core.gates import Closed, Gate, Open
from curatord.core.idle import Idle
from curatord.core.journal import EditItem
from curatord.core.library_cost import IndexEntry, LibraryCost, index_warning, library_cost
from curatord.core.lifecycle import Verdict
from curatord.core.plan import Action, Applied, Archive, Failed, MarkStale, Plan, Reactivate, Skipped
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
    summary_of,
    to_json,
    to_report,
)
from curatord.core.selection import Selection, select
from curatord.core.settings import Config
from curatord.core.values import LibraryName, Outcome, RunId, SkillKey, State, Trigger
from curatord.core.words import plural
from curatord.errors import CuratorError
from curatord.passes.look import Look, Looker
from curatord.passes.proposals import archive_of, ask, proposals_of
from curatord.ports.clock import Clock
from curatord.ports.curation_store import CurationStore

__all__ = ["Curation", "RunOrder"]

MAX_PROBLEMS = 200  # of skills, in run.json; `skills --problems` lists all


class Gatekeeper(Protocol):
    """Answers whether a run may begin."""

    def __call__(self, now: datetime, *, bypass: bool) -> Open | Closed:
        """Return all gates' answers at *now*."""
        ...


class Folders(Protocol):
    """The folders of runs."""

    def create(self, started_at: datetime) -> RunId:
        """Make a folder and return its id."""
        ...

    def write(self, run_id: RunId, run: Mapping[str, Any], report: str) -> None:
        """Write `run.json` and `REPORT.md`."""
        ...

    def write_plan(self, run_id: RunId, plan: Mapping[str, Any]) -> None:
        """Write `plan.json`."""
        ...

    def read(self, run_id: RunId) -> dict[str, Any]:
        """Return `run.json`."""
        ...

    def outcome(self, run_id: RunId) -> str | None:
        """Return the outcome that `run.json` tells, None where there is no whole one."""
        ...

    def ids(self) -> list[RunId]:
        """Return all ids, oldest first."""
        ...

    def prune(self, keep: int, *, spare: Sequence[RunId] = ()) -> list[RunId]:
        """Remove the oldest beyond *keep*."""
        ...


class ActionGate(Protocol):
    """What applies actions (`passes.apply.Applier`)."""

    def apply_all(
        self,
        actions: Sequence[Action],
        *,
        now: datetime,
        run_id: RunId | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> tuple[ActionOutcome, ...]:
        """Carry out actions in order."""
        ...


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
        applier: Carries actions out.
        store, folders: Where runs are remembered.
        one_at_a_time: The lock of all runs; entering it raises `BusyError` where it is held.
        calls_per_day: Model calls a day of a library's sources, None where none were seen.
        clock: For durations; `now` of the run is read once.
    """

    config: Config
    version: str
    scan: Callable[[Callable[[], bool]], Mapping[str, Any]]
    looker: Looker
    gates: Gatekeeper
    applier: ActionGate
    store: CurationStore
    folders: Folders
    one_at_a_time: Callable[[], AbstractContextManager[object]]
    calls_per_day: Callable[[LibraryName], float | None]
    clock: Clock

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
        with self.one_at_a_time():
            now = self.clock.now()
            answer = self.gates(now, bypass=not order.respect_gates)
            record = self._begin_record(order, answer.gates, now)
            if isinstance(answer, Closed):
                waiting = f"waiting: {'; '.join(answer.reasons)}"
                return replace(record, outcome=Outcome.NOTHING_TO_DO, warnings=(waiting,))
            record = replace(record, run_id=self.folders.create(now))
            work = _Work(curation=self, order=order, record=record, baseline=answer.baseline)
            began = self.clock.monotonic()
            work.keep()
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
            self.folders.prune(self.config.reports.keep, spare=[work.record.run_id])
            return work.record

    def finish_interrupted(self, now: datetime) -> tuple[RunId, ...]:
        """
        Tell the truth about runs that a kill left behind, and return their ids; only for who holds the runs' lock.

        What they had done by then is in the journal and was finished or dropped by the applier's recovery.
        """
        found = set(self.store.interrupt_runs(now))
        for run_id in self.folders.ids()[-self.config.reports.keep :]:
            # A folder whose first write was cut has no run.json, and so claims nothing.
            if self.folders.outcome(run_id) == Outcome.RUNNING.value:
                found.add(run_id)
                self._rewrite_interrupted(run_id, self.folders.read(run_id), now)
        return tuple(sorted(found))

    def _rewrite_interrupted(self, run_id: RunId, run: dict[str, Any], now: datetime) -> None:
        done = self.store.actions(run_id=run_id)
        warning = f"it was interrupted; {plural(len(done), 'action')} had been done by then, each of them whole"
        run["outcome"] = Outcome.INTERRUPTED.value
        run["warnings"] = [*run.get("warnings", ()), warning]
        run["summary"] = warning
        undo = f"\n`curatord undo {run_id}` takes back what it did.\n" if done else ""
        report = f"# curatord run {run_id}\n\n**{warning}**\n{undo}"
        self.folders.write(run_id, run, report)

    def _begin_record(self, order: RunOrder, gates: Sequence[Gate], now: datetime) -> RunRecord:
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


@dataclass(slots=True)
class _Work:
    """One run at work: its record grows as facts become known."""

    curation: Curation
    order: RunOrder
    record: RunRecord
    baseline: bool

    def keep(self) -> None:
        """Write what is known into folder and store."""
        record, curation = self.record, self.curation
        undoable = any(row.status == "done" for row in curation.store.actions(run_id=record.run_id))
        curation.folders.write(record.run_id, to_json(record), to_report(record, undoable=undoable))
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
            )
        )

    def do(self, stop: Callable[[], bool], alive: Callable[[], None]) -> None:
        """Do the passes in their order."""
        curation, now = self.curation, self.record.started_at
        scan = curation.scan(stop)
        self.record = replace(self.record, scan=scan, warnings=_scan_warnings(scan))
        alive()
        look = curation.looker.look(now, remember=True)
        self._saw(look)
        if stop():
            self.record = replace(self.record, outcome=Outcome.INTERRUPTED)
            return
        self._pass("scan", "done")
        self._model_passes()
        selection = self._decide(look)
        plan = Plan(actions=tuple(_action_of(verdict) for verdict in selection.apply))
        curation.folders.write_plan(
            self.record.run_id,
            {
                "actions": [_told(action) for action in plan.actions],
                "proposed": [v.key.rel for v, _ in selection.propose],
            },
        )
        proposals = proposals_of(
            selection,
            now=now,
            run_id=self.record.run_id,
            archives={name: library.snapshot.archive for name, library in look.libraries.items()},
        )
        if self.order.dry_run or self.baseline:
            rows = tuple(PendingRow(id=p.id, summary=p.summary, reason=p.reason) for p in proposals)
            if self.baseline:
                self._only_recorded(selection)
            else:
                self._would(selection, rows)
        else:
            asked = ask(curation.store, proposals, now=now, libraries=self._judged(look))
            self.record = replace(self.record, pending=asked.pending, skipped=(*self.record.skipped, *asked.skipped))
            outcomes = curation.applier.apply_all(
                plan.actions, now=now, run_id=self.record.run_id, stop=_and_alive(stop, alive)
            )
            self._did(selection.apply, outcomes)
            if plan.actions:
                look = curation.looker.look(now, remember=True)
                self._check_archived(look)
        self.record = replace(self.record, after=look.counts())
        self._finish(selection, stopped=stop() and not self.order.dry_run)

    # What was found.

    def _saw(self, look: Look) -> None:
        costs = self._costs(look)
        warning = index_warning(costs)
        warnings = [*self.record.warnings, *look.warnings]
        if warning is not None:
            warnings.append(warning)
        self.record = replace(
            self.record,
            before=look.counts(),
            after=look.counts(),
            warnings=tuple(dict.fromkeys(warnings)),
            advice=_advice(look),
            problems=_problems(look),
            library_cost=_cost_json(costs),
        )

    def _costs(self, look: Look) -> list[LibraryCost]:
        return [
            library_cost(
                name,
                [
                    IndexEntry(
                        name=skill.name,
                        description_bytes=len(skill.description.encode("utf-8", "replace")),
                        description_tokens=skill.content.description_tokens,
                        body_tokens=skill.content.body_tokens,
                    )
                    for skill in library.snapshot.skills
                    if skill.broken is None
                ],
                calls_per_day=self.curation.calls_per_day(name),
            )
            for name, library in sorted(look.libraries.items())
        ]

    def _model_passes(self) -> None:
        for name, enabled in (
            ("distil", self.curation.config.distill.enabled),
            ("umbrella", self.curation.config.umbrella.enabled),
        ):
            if not enabled:
                self._pass(name, "skipped", "switched off in the configuration")
            elif not self.order.llm:
                self._pass(name, "skipped", "--no-llm was given")
            else:
                self._pass(name, "skipped", "not configured")

    def _pass(self, name: str, state: str, reason: str = "") -> None:
        self.record = replace(self.record, passes=(*self.record.passes, PassRow(name=name, state=state, reason=reason)))

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
        verdicts: list[Verdict] = []
        for key, verdict in sorted(look.verdicts.items(), key=lambda item: item[0].place):
            if key.library in judged:
                verdicts.append(verdict)
            elif verdict.moves and self.order.library in (None, key.library):
                reason = "its library can only be observed: " + "; ".join(
                    p.words for p in look.libraries[key.library].snapshot.problems if p.severity != "note"
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
        row = SkippedRow(action=f"{_verb(verdict.to)} {verdict.key}", reason=reason)
        self.record = replace(self.record, skipped=(*self.record.skipped, row))

    # What was done.

    def _would(self, selection: Selection, pending: tuple[PendingRow, ...]) -> None:
        rows = tuple(_row(verdict) for verdict in selection.apply)
        self.record = replace(self.record, transitions=rows, pending=pending)
        self._tally()

    def _only_recorded(self, selection: Selection) -> None:
        due = len(selection.apply) + len(selection.propose) + sum(len(held.due) for held in selection.held)
        interval = self.curation.config.gates.interval
        warning = (
            f"first run: it only records. {plural(due, 'change')} would be due; "
            f"the first change comes one interval ({interval.days} days) later"
        )
        self.record = replace(self.record, warnings=(*self.record.warnings, warning))

    def _did(self, verdicts: Sequence[Verdict], outcomes: Sequence[ActionOutcome]) -> None:
        transitions: list[TransitionRow] = []
        skipped: list[SkippedRow] = []
        failed: list[FailedRow] = []
        references: list[ReferenceRow] = []
        for verdict, outcome in zip(verdicts, outcomes, strict=False):
            what = f"{_verb(verdict.to)} {verdict.key}"
            match outcome:
                case Applied():
                    transitions.append(_row(verdict, outcome.entry.action_id))
                    references += _references(outcome)
                case Skipped():
                    skipped.append(SkippedRow(action=what, reason=outcome.reason))
                case Failed():
                    failed.append(FailedRow(action=what, error=outcome.error))
        for verdict in verdicts[len(outcomes) :]:
            reason = "the run was stopped before it; the next one does it"
            skipped.append(SkippedRow(action=f"{_verb(verdict.to)} {verdict.key}", reason=reason))
        self.record = replace(
            self.record,
            transitions=tuple(transitions),
            skipped=(*self.record.skipped, *skipped),
            failed=tuple(failed),
            references=tuple(references),
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

    def _finish(self, selection: Selection, *, stopped: bool) -> None:
        record = self.record
        nothing = not (record.transitions or record.pending or record.skipped or record.failed)
        if stopped:
            outcome = Outcome.INTERRUPTED
        elif selection.held and not self.baseline:
            outcome = Outcome.HELD
        elif record.failed or record.skipped or any(row.state == "failed" for row in record.passes):
            outcome = Outcome.PARTIAL
        else:
            outcome = Outcome.NOTHING_TO_DO if nothing else Outcome.OK
        self.record = replace(record, outcome=outcome)


def _action_of(verdict: Verdict) -> MarkStale | Reactivate | Archive:
    if verdict.to is State.ARCHIVED:
        return archive_of(verdict)
    kind = MarkStale if verdict.to is State.STALE else Reactivate
    return kind(key=verdict.key, reason=verdict.reason, by="rules", expected=verdict.fingerprint)


def _told(action: Action) -> dict[str, Any]:
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(action)
    return told


def _verb(to: State) -> str:
    return {State.ARCHIVED: "archive", State.STALE: "mark stale", State.ACTIVE: "reactivate"}[to]


def _row(verdict: Verdict, action_id: str | None = None) -> TransitionRow:
    idle = verdict.idle.idle if isinstance(verdict.idle, Idle) else timedelta(0)
    return TransitionRow(
        library=verdict.key.library,
        skill=verdict.key.rel,
        from_state=verdict.state.value,
        to_state=verdict.to.value,
        idle=idle,
        reason=verdict.reason,
        action_id=action_id,
    )


def _references(applied: Applied) -> list[ReferenceRow]:
    rows = []
    for step in applied.entry.steps:
        if isinstance(step, EditItem) and step.format == "jobs":
            for edit in step.edits:
                rows.append(
                    ReferenceRow(
                        file=f"{step.file} (job {step.item}, {edit.name})",
                        before=edit.before or "absent",
                        after=edit.after or "absent",
                    )
                )
    return rows


def _scan_warnings(scan: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what of a scan a person should hear of; restarts and vanished files are ordinary and only in the log."""
    return tuple(
        f"{note['path']}: {note['text']}" for note in scan.get("notes", ()) if note["kind"] in ("failed", "problem")
    )


def _advice(look: Look) -> tuple[Mapping[str, Any], ...]:
    """Return what would become of skills that were not handed over, where that is anything but staying."""
    return tuple(
        {"library": key.library, "skill": key.rel, "would": verdict.would_be}
        for key, verdict in sorted(look.verdicts.items(), key=lambda item: item[0].place)
        if verdict.would is not None and verdict.would.due and verdict.would_be
    )


def _problems(look: Look) -> tuple[Mapping[str, Any], ...]:
    rows: list[Mapping[str, Any]] = []
    for key, skill in sorted(look.live.items(), key=lambda item: item[0].place):
        words = [skill.broken] if skill.broken is not None else []
        words += [problem.words for problem in skill.problems]
        rows += [{"library": key.library, "skill": key.rel, "problem": text} for text in words]
    return tuple(rows[:MAX_PROBLEMS])


def _cost_json(costs: Sequence[LibraryCost]) -> dict[str, Any]:
    known = [cost.tokens_per_year for cost in costs if cost.tokens_per_year is not None]
    rates = [cost.calls_per_day for cost in costs if cost.calls_per_day is not None]
    tokens = sum(cost.description_tokens for cost in costs)
    return {
        "description_tokens": tokens,
        "per_call": tokens,
        "calls_per_day": round(sum(rates), 1) if rates else None,
        "tokens_per_year": sum(known) if known else None,
        "libraries": [cost.as_json() for cost in costs],
    }


def _and_alive(stop: Callable[[], bool], alive: Callable[[], None]) -> Callable[[], bool]:
    def asked() -> bool:
        alive()
        return stop()

    return asked

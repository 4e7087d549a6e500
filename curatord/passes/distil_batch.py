"""
Distilling between runs: a batch of sessions that settled, or one session that a person names.

A batch is a run of its own only where it changes or proposes something. So its folder is made before the first change,
and not at all where every session taught nothing: an idle daemon leaves no trail of empty reports.
"""

from __future__ import annotations

from collections.abc import Callable

from curatord.core.cheap import dataclass, field, replace
from curatord.core.gates import Gate
from curatord.core.run_record import PassRow, RunRecord
from curatord.core.small_facts import RUN_COUNT
from curatord.core.values import Outcome, RunId, Trigger
from curatord.errors import CuratorError, StateError
from curatord.passes.consult import Consultation
from curatord.passes.distil_order import DistilOrder, DistilResult
from curatord.passes.distil_record import with_distil
from curatord.passes.interrupted_runs import finish_interrupted
from curatord.passes.run import Curation, RunOrder, keep_record, prune_folders
from curatord.passes.withdrawing import withdraw_gone

__all__ = ["DistilBatch"]


@dataclass(slots=True, kw_only=True)
class DistilBatch:
    """One batch over *curation*'s parts; used once."""

    curation: Curation
    _record: RunRecord | None = None
    _roots: dict[str, str] = field(default_factory=dict)
    _consulted: list[Consultation | None] = field(default_factory=list)

    def run(
        self,
        order: DistilOrder,
        *,
        stop: Callable[[], bool] = lambda: False,
        alive: Callable[[], None] = lambda: None,
    ) -> tuple[RunRecord, DistilResult]:
        """
        Look at the sessions that are meant, and return the record with what came of them.

        The record has no id where nothing was changed or proposed.

        Raises:
            BusyError: Another run is at work.
            StateError: Our own state cannot be used.
            ConfigError: A prompt, or `llm`, cannot be used.
        """
        curation = self.curation

        def asked() -> bool:
            alive()
            return stop()

        with curation.one_at_a_time():
            now = curation.clock.now()
            finish_interrupted(curation.store, curation.folders, now)
            began = curation.clock.monotonic()
            reason = "a person asked for it" if order.by_hand else "sessions have settled"
            gates = (Gate(name="distil", open=True, reason=reason),)
            self._record = curation.begin_record(RunOrder(trigger=Trigger.DISTIL), gates, now)
            waits = curation.unsettled(dry_run=False)
            look = curation.looker.look(now, remember=True)
            self._roots = {str(name): library.snapshot.root for name, library in look.libraries.items()}
            self._record = replace(self._record, before=look.counts(), after=look.counts(), warnings=tuple(waits))
            result = DistilResult(state="failed", reason="it ended by an unforeseen error")
            try:
                result = curation.distiller(
                    order,
                    look=look,
                    now=now,
                    run_id=self._begin,
                    consultation=lambda: self._consult(by_hand=order.by_hand),
                    stop=asked,
                )
                if result.changed:
                    look = curation.looker.look(now, remember=True)
                    self._record = replace(self._record, after=look.counts())
                if self._record.run_id:  # a batch that is no run has no record to say it in; the next run does it
                    told = withdraw_gone(curation.store, look, library=order.library)
                    self._record = replace(self._record, warnings=(*self._record.warnings, *told))
            except CuratorError as error:
                self._record = replace(self._record, error=str(error))
                raise
            finally:
                self._finish(result, round(curation.clock.monotonic() - began, 3))
            return self._record, result

    def _begin(self) -> RunId:
        """Return the run's id; its folder is made when that is first asked for."""
        assert self._record is not None, "a batch has begun"
        if not self._record.run_id:
            self._record = replace(self._record, run_id=self.curation.folders.create(self._record.started_at))
            try:
                self._record = keep_record(self.curation, self._record, whole=False, roots=self._roots)
            except StateError:
                self.curation.folders.discard(self._record.run_id)
                raise
        return self._record.run_id

    def _consult(self, *, by_hand: bool) -> Consultation | None:
        if not self._consulted:
            self._consulted.append(self.curation.consult(by_hand=by_hand))
        return self._consulted[0]

    def _finish(self, result: DistilResult, duration_s: float) -> None:
        """Put what came of it into the record, and write that where it is a run."""
        assert self._record is not None, "a batch has begun"
        consultation = self._consulted[0] if self._consulted else None
        llm = None if consultation is None else {**consultation.record(), "prompts": dict(result.prompts)}
        record = replace(with_distil(self._record, result), llm=llm)
        state = "done" if result.state in ("done", "budget", "stopped") else result.state
        passes = (PassRow(name="distil", state=state, reason=result.reason),)
        record = replace(record, passes=passes, outcome=_outcome(record, result), duration_s=duration_s)
        if record.outcome is Outcome.FAILED and record.error is None:
            record = replace(record, error=result.reason)
        self._record = record = replace(record, finished_at=self.curation.clock.now())
        if record.run_id:
            self._record = keep_record(self.curation, record, whole=False, roots=self._roots)
            self.curation.store.set_meta(RUN_COUNT, str(int(self.curation.store.meta(RUN_COUNT) or 0) + 1))
            for problem in prune_folders(self.curation, record.run_id):
                self._record = replace(self._record, warnings=(*self._record.warnings, problem))


def _outcome(record: RunRecord, result: DistilResult) -> Outcome:
    done = record.added or record.patched
    if result.state == "stopped":
        return Outcome.INTERRUPTED
    if result.state == "budget":
        return Outcome.BUDGET
    if result.state == "failed":
        return Outcome.PARTIAL if done or record.pending else Outcome.FAILED
    if record.failed or record.skipped:
        return Outcome.PARTIAL
    return Outcome.OK if done or record.pending else Outcome.NOTHING_TO_DO

"""
What the daemon says of what happens, one event each, and the figures that it keeps; and the quieter way of a command.

A command answers with its result, so it only logs what a person should look at. The daemon has nothing but its log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from curatord.core.plan import Applied, Failed, Outcome, Skipped
from curatord.core.run_record import RunRecord, summary_of
from curatord.logs import Log, Repeating, bound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curatord.application.metering import Meter
    from curatord.passes.consult import Exchange
    from curatord.passes.ingest import ScanReport

__all__ = ["Narrator", "QuietObserver"]

SHOWN = 20  # problems of one source that are told one by one, so that none of another is forgotten for them
_MORE = "it has more problems; `curatord status` names them"
_TROUBLE = ("failed", "problem")


class QuietObserver:
    """An `Observer` for commands: it warns of transcripts that cannot be read. *log* is only made when it is needed."""

    def __init__(self, log: Callable[[], Log]) -> None:
        self._log = log

    def running(self, record: RunRecord) -> AbstractContextManager[object]:
        """Bind the run's id; a command says nothing more."""
        return bound(run_id=record.run_id) if record.run_id else nullcontext()

    def ran(self, record: RunRecord) -> None:
        """Say nothing; the command answers."""

    def acted(self, outcome: Outcome) -> None:
        """Say nothing; the command answers."""

    def asked(self, exchange: Exchange) -> None:
        """Say nothing; the command answers."""

    def scanned(self, report: ScanReport, *, whole: bool) -> None:
        """Warn of what could not be read."""
        for note in report.notes:
            say = self._log().warning if note.kind in _TROUBLE else self._log().debug
            say(f"transcript.{note.kind}", path=note.path, text=note.text)


class Narrator:
    """
    An `Observer` for the daemon: events for the log, figures for *meter*, repeated trouble said seldom.

    Its methods are called by the worker, but for `asked`, which comes from the threads that ask; they take turns.
    """

    def __init__(self, log: Log, repeating: Repeating, meter: Meter) -> None:
        self._log = log
        self._repeating = repeating
        self._meter = meter
        self._unread: set[str] = set()

    @contextmanager
    def running(self, record: RunRecord) -> Iterator[None]:
        """Say that it begins, and bind its id."""
        with bound(run_id=record.run_id):
            self._log.info("run.started", trigger=record.trigger.value, dry_run=record.dry_run, mode=record.mode.value)
            yield

    def ran(self, record: RunRecord) -> None:
        """Say what it came to."""
        self._meter.ran(record)
        say = self._log.info if record.outcome.value in ("ok", "nothing_to_do") else self._log.warning
        llm = record.llm or {}
        say(
            "run.finished",
            run_id=record.run_id,
            trigger=record.trigger.value,
            dry_run=record.dry_run,
            outcome=record.outcome.value,
            duration_s=record.duration_s,
            summary=summary_of(record),
            transitions=len(record.transitions),
            merged=len(record.consolidated),
            pending=len(record.pending),
            skipped=len(record.skipped),
            failed=len(record.failed),
            model_calls=llm.get("calls", 0),
            cost_usd=llm.get("usd", 0.0),
        )

    def acted(self, outcome: Outcome) -> None:
        """Say what was done to a library, or why it was not."""
        match outcome:
            case Applied():
                entry = outcome.entry
                self._log.info("action.applied", action=entry.action_id, kind=entry.kind, summary=entry.summary)
            case Skipped():
                skills = [str(key) for key in outcome.keys[:5]]
                self._log.info("action.skipped", skills=skills, reason=outcome.reason)
            case Failed():
                self._log.error("action.failed", error=outcome.error, unfinished=outcome.unfinished)

    def asked(self, exchange: Exchange) -> None:
        """Say what an exchange cost; an endpoint that fails again and again is said seldom."""
        self._meter.asked(exchange)
        usage, fault = exchange.bill.usage, exchange.fault
        said: dict[str, Any] = {"task": exchange.task, "model": exchange.model, "role": exchange.role}
        if fault is not None:
            self._repeating.met("model.failed", exchange.model, f"{fault.kind.value}: {fault.message}", **said)
            return
        self._repeating.gone("model.failed", exchange.model, model=exchange.model)
        self._log.info(
            "model.answered",
            **said,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cached_tokens,
            output_tokens=usage.output_tokens,
            cost_usd=exchange.bill.usd,
            requests=exchange.bill.requests,
        )

    def scanned(self, report: ScanReport, *, whole: bool) -> None:
        """Say what was new in it; one that found nothing is none of anybody's business."""
        self._meter.scanned(report)
        problems: dict[str, dict[str, Any]] = {}
        of_source: Counter[str] = Counter()
        for note in report.notes:
            if note.kind == "failed":
                self._unread.add(note.path)
                self._repeating.met("transcript.failed", note.path, note.text, path=note.path)
            elif note.kind == "problem":
                # Each by itself: a source may have several, which are met again and again in turn.
                text = note.text if of_source[note.path] < SHOWN else _MORE
                of_source[note.path] += 1
                what = f"{note.path}: {text}"
                if what in problems:
                    continue
                problems[what] = {}
                self._repeating.met("source.failed", what, text, path=note.path)
            elif note.kind == "restart":
                self._log.info("transcript.restarted", path=note.path, reason=note.text)
            else:
                self._log.debug(f"transcript.{note.kind}", path=note.path, text=note.text)
        if whole:
            self._repeating.whole("source.failed", problems)
        for path in self._unread.intersection(report.changed_paths):
            self._unread.discard(path)
            self._repeating.gone("transcript.failed", path, path=path)
        files = sum(source.changed for source in report.sources)
        if files:
            say = self._log.info if whole else self._log.debug
            say(
                "scan.finished",
                files=files,
                size_bytes=sum(source.bytes for source in report.sources),
                records=sum(source.records for source in report.sources),
                unreadable=sum(source.unreadable for source in report.sources),
                sessions=report.sessions,
                skill_events=report.events,
                duration_s=round(report.elapsed_s, 3),
            )

"""
The figures that the daemon keeps for whoever scrapes it.

Counters begin at nought with the process, as scrapers expect. Gauges are read from the store by the worker, once a
round at most and only where somebody may ask; a scrape then reads memory and nothing else, so that it cannot slow the
daemon down, however often it comes.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from curatord.application.waiting import count_waiting
from curatord.core.cheap import dataclass, field
from curatord.core.metrics import Family, Sample, place_names

if TYPE_CHECKING:
    from curatord.core.run_record import RunRecord
    from curatord.passes.consult import Exchange
    from curatord.passes.ingest import ScanReport
    from curatord.wiring import Parts

__all__ = ["Gauges", "Meter", "gauges_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGauge:
    """
    One source: when it was last scanned, and how many sessions it has.

    *due*: those that wait to be distilled; None where nothing is distilled at all.
    """

    place: str
    host: str
    scanned_at: datetime | None
    sessions: int
    due: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """What the store said at the last round."""

    sources: tuple[SourceGauge, ...] = ()
    skills: Mapping[str, int] = field(default_factory=dict)
    pending: int = 0
    paused: bool = False
    breaker_open: bool = False
    last_success_at: datetime | None = None


def gauges_of(parts: Parts) -> Gauges:
    """Return the gauges as the store has them now."""
    from curatord.application.distilling import why_off
    from curatord.core.small_facts import PAUSED_SINCE

    due = parts.distil_store.due_by_source() if why_off(parts) is None else None
    states, placed = parts.overview.sources(), parts.placed_sources
    sources = []
    for name, one in zip(place_names(one.settings.host for one in placed), placed, strict=True):
        state = states.get(one.key)
        sources.append(
            SourceGauge(
                place=name,
                host=one.settings.host,
                scanned_at=state.scanned_at if state is not None else None,
                sessions=state.sessions if state is not None else 0,
                due=None if due is None else due.get(one.key, 0),
            )
        )
    last = parts.store.last_finished()
    return Gauges(
        sources=tuple(sources),
        skills={name: parts.overview.skills()[name] for name in ("active", "stale", "archived")},
        pending=count_waiting(parts),
        paused=parts.store.meta(PAUSED_SINCE) is not None,
        breaker_open=parts.open_breaker(parts.clock.now()) is not None,
        last_success_at=last.finished_at if last is not None else None,
    )


class Meter:
    """Counts what happens, from any thread, and tells it."""

    def __init__(self, *, version: str, now: Callable[[], datetime]) -> None:
        self._version = version
        self._now = now
        self._lock = threading.Lock()
        self._runs: Counter[tuple[str, str]] = Counter()
        self._calls: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._usd = 0.0
        self._read = 0
        self._records = 0
        self._last_duration_s: float | None = None
        self._gauges = Gauges()

    def ran(self, record: RunRecord) -> None:
        """Count a run that is over."""
        with self._lock:
            self._runs["dry" if record.dry_run else record.trigger.value, record.outcome.value] += 1
            self._last_duration_s = record.duration_s

    def asked(self, exchange: Exchange) -> None:
        """Count an exchange with a model, and what it cost."""
        usage = exchange.bill.usage
        with self._lock:
            self._calls["ok" if exchange.fault is None else exchange.fault.kind.value] += 1
            self._tokens["input"] += usage.input_tokens - usage.cached_tokens
            self._tokens["cached"] += usage.cached_tokens
            self._tokens["output"] += usage.output_tokens
            self._usd += exchange.bill.usd or 0.0

    def scanned(self, report: ScanReport) -> None:
        """Count what a scan read."""
        with self._lock:
            self._read += sum(source.bytes for source in report.sources)
            self._records += sum(source.records for source in report.sources)

    def note(self, gauges: Gauges) -> None:
        """Take over what the store says."""
        self._gauges = gauges

    def families(self, live: Mapping[str, Any]) -> list[Family]:
        """Return all figures; *live* is what the daemon tells of itself (`queue`, `silent_s`, `scanned_at` …)."""
        with self._lock:
            runs, calls, tokens = dict(self._runs), dict(self._calls), dict(self._tokens)
            usd, read, records, last = self._usd, self._read, self._records, self._last_duration_s
        gauges, now = self._gauges, self._now()
        seen = datetime.fromisoformat(live["scanned_at"]) if live.get("scanned_at") else None

        def one(name: str, help_: str, value: float | None, kind: Any = "gauge") -> Family:
            samples = () if value is None else (Sample(value, {}),)
            return Family(name=f"curatord_{name}", kind=kind, help=help_, samples=samples)

        def by_source(name: str, help_: str, value: Callable[[SourceGauge], float | None]) -> Family:
            found = [(source, value(source)) for source in gauges.sources]
            samples = (Sample(v, {"source": s.place, "host": s.host}) for s, v in found if v is not None)
            return Family(name=f"curatord_{name}", kind="gauge", help=help_, samples=tuple(samples))

        def lag_s(source: SourceGauge) -> float | None:
            times = [at for at in (source.scanned_at, seen if source.scanned_at else None) if at is not None]
            return max(round((now - max(times)).total_seconds(), 1), 0.0) if times else None

        def by(name: str, help_: str, label: str, counts: Mapping[str, float], kind: Any = "counter") -> Family:
            samples = tuple(Sample(count, {label: key}) for key, count in sorted(counts.items()))
            return Family(name=f"curatord_{name}", kind=kind, help=help_, samples=samples)

        watches = Counter(str(watch["how"]) for watch in live.get("watches", ()))
        run_samples = tuple(Sample(n, {"trigger": t, "outcome": o}) for (t, o), n in sorted(runs.items()))
        version = (Sample(1, {"version": self._version}),)
        return [
            Family(name="curatord_build_info", kind="gauge", help="Which curatord this is.", samples=version),
            by_source("source_lag_seconds", "Time since a source was last listed as a whole.", lag_s),
            by_source("source_sessions", "Sessions known of a source.", lambda source: source.sessions),
            by_source("sessions_due", "Sessions that wait to be distilled.", lambda source: source.due),
            Family(name="curatord_runs_total", kind="counter", help="Runs that are over.", samples=run_samples),
            one(
                "last_success_timestamp_seconds",
                "When the last whole run that was no failure ended.",
                None if gauges.last_success_at is None else gauges.last_success_at.timestamp(),
            ),
            one("last_run_duration_seconds", "How long the last run took.", last),
            one("scanned_bytes_total", "Bytes of transcripts that were read.", read, "counter"),
            one("scanned_records_total", "Records of transcripts that were counted.", records, "counter"),
            by("model_calls_total", "Exchanges with models, by what came of them.", "outcome", calls),
            by("model_tokens_total", "Tokens of exchanges with models.", "kind", tokens),
            one("model_cost_usd_total", "US dollars of exchanges, where the price is known.", usd, "counter"),
            one("model_breaker_open", "1 while the model is left alone after failures.", gauges.breaker_open),
            one("proposals_pending", "Changes that wait for a decision.", gauges.pending),
            by("skills", "Skills by state.", "state", gauges.skills, "gauge"),
            one("paused", "1 while nothing begins by itself.", gauges.paused),
            one("queue_messages", "What waits for the worker.", live.get("queue")),
            one("worker_silence_seconds", "Time since the worker's last sign of life.", live.get("silent_s")),
            one("worker_in_trouble", "1 while the last work of some kind failed.", bool(live.get("last_error"))),
            by("watched_places", "Places by the way they are watched.", "how", watches, "gauge"),
        ]

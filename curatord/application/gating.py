"""Stored facts for the gates of a run, and what `status` says of the next one."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from curatord.core.gates import GateFacts
from curatord.core.small_facts import KILLED, PAUSED_SINCE
from curatord.core.values import Outcome, Trigger

if TYPE_CHECKING:
    from curatord.wiring import Parts

__all__ = ["gate_facts"]

MAX_FAILURES_READ = 50


def gate_facts(parts: Parts) -> GateFacts:
    """Return what the gates look at, all of it from the store."""
    store = parts.store
    paused = store.meta(PAUSED_SINCE)
    last = store.last_finished()
    failures = 0
    last_failed_at: datetime | None = None
    for run in store.runs(limit=MAX_FAILURES_READ):
        if run.dry_run or run.trigger is Trigger.DISTIL or run.outcome is Outcome.RUNNING:
            continue
        killed = run.outcome is Outcome.INTERRUPTED and run.summary.startswith(KILLED)
        if run.outcome is not Outcome.FAILED and not killed:
            break  # one that a person stopped is no failure
        failures += 1
        last_failed_at = last_failed_at or run.finished_at
    sources = parts.ingest_reader.source_ids()
    return GateFacts(
        paused_since=datetime.fromisoformat(paused) if paused else None,
        last_finished_at=last.finished_at if last is not None else None,
        failures=failures if last_failed_at is not None else 0,
        last_failed_at=last_failed_at,
        newest_work_at=parts.ingest_reader.newest_work_at(sources) if sources else None,
    )

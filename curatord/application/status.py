"""What `status` answers, from stored facts alone: it must be quick, and it must work beside a busy daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curatord.adapters.instance import running_daemon
from curatord.application.gating import PAUSED_SINCE, gate_facts
from curatord.core.gates import Closed, due
from curatord.core.run_record import iso
from curatord.core.units import format_duration
from curatord.core.values import State

if TYPE_CHECKING:
    from curatord.wiring import Parts

__all__ = ["status"]

SHOWN = 5


def status(parts: Parts) -> dict[str, Any]:
    """Return the contract's `status`."""
    config, store, now = parts.config, parts.store, parts.clock.now()
    runs = store.runs()
    last = next((run for run in runs if not run.dry_run), None)
    answer = due(gate_facts(parts), config.gates, now)
    waiting = list(answer.reasons) if isinstance(answer, Closed) else []
    daemon = running_daemon(parts.state_dir)
    most, least = _ranking(parts)
    return {
        "enabled": True,
        "paused": store.meta(PAUSED_SINCE) is not None,
        "daemon": {
            "alive": daemon["alive"],
            "pid": daemon.get("pid"),
            "since": daemon.get("since"),
            "watching": daemon.get("watching"),
            "activity": daemon.get("activity"),
            "last_error": daemon.get("last_error"),
            "watches": daemon.get("watches", []),
        },
        "runs": sum(not run.dry_run for run in runs),
        "last_run": None
        if last is None
        else {
            "run_id": last.run_id,
            "at": iso(last.started_at),
            "outcome": last.outcome.value,
            "summary": last.summary,
            "report": _report_path(parts, last.run_id),
        },
        "next_run": {
            "at": iso(answer.look_again_at if isinstance(answer, Closed) else now),
            "waiting_for": waiting,
        },
        "interval": format_duration(config.gates.interval),
        "stale_after": format_duration(config.lifecycle.stale_after),
        "archive_after": format_duration(config.lifecycle.archive_after),
        "mode": config.mode.value,
        "counts": _counts(parts),
        "pending": len(store.proposals("pending")),
        "sources": _sources(parts),
        "llm": {
            "configured": config.llm is not None,
            "last_error": None,
            "fallback_used": False,
            "spent_today": {"tokens": 0, "usd": 0.0},
            "breaker": None,
        },
        "most_used": most,
        "least_used": least,
        "state_dir": str(parts.state_dir),
        "rebuilt_from": store.meta("state.rebuilt"),
    }


def _report_path(parts: Parts, run_id: str) -> str | None:
    path = parts.folders.report_path(run_id)  # type: ignore[arg-type]  # ids of stored runs are ids of runs
    return str(path) if path.exists() else f"{path} (missing)"


def _counts(parts: Parts) -> dict[str, int]:
    records = [record for record in parts.store.skills().values() if record.missing_since is None]
    live = [record for record in records if record.state is not State.ARCHIVED]
    return {
        "managed": sum(record.managed_since is not None for record in live),
        "unmanaged": sum(record.managed_since is None for record in live),
        "active": sum(record.state is State.ACTIVE for record in live),
        "stale": sum(record.state is State.STALE for record in live),
        "archived": len(records) - len(live),
        "pinned": sum(record.pinned for record in records),
    }


def _sources(parts: Parts) -> list[dict[str, Any]]:
    states = {(state.host, state.path): state for state in parts.ingest_reader.sources()}
    now = parts.clock.now()
    rows = []
    for placed in parts.placed_sources:
        state = states.get(placed.key)
        scanned = state.scanned_at if state is not None else None
        rows.append(
            {
                "host": placed.settings.host,
                "path": placed.path,
                "lag_s": None if scanned is None else max(round((now - scanned).total_seconds(), 1), 0.0),
                "sessions": state.sessions if state is not None else 0,
                "due": 0,
                "problems": list(state.problems) if state is not None else ["it was never scanned"],
                "newest_record_at": iso(state.newest_record_at) if state is not None else None,
            }
        )
    return rows


def _ranking(parts: Parts) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the most and the least used live skills, by their names in the transcripts."""
    from curatord.core.usage import Heard, usage_by_skill
    from curatord.core.values import LibraryName, SkillName

    live = [
        record.key
        for record in parts.store.skills().values()
        if record.missing_since is None and record.state is not State.ARCHIVED
    ]
    if not live:
        return [], []
    heard = [
        Heard(
            library=LibraryName(use.library) if use.library is not None else None,
            skill=SkillName(use.skill),
            counts=use.counts,
            newest=use.newest,
            sessions=use.sessions,
            hosts=use.hosts,
        )
        for use in parts.ingest_reader.skill_usage(resolve=parts.resolver({}))
    ]
    usage = usage_by_skill(live, heard)
    ranked = sorted(live, key=lambda key: (-usage[key].use - usage[key].view, key))

    def line(index: int) -> dict[str, Any]:
        key = ranked[index]
        told = usage[key]
        return {
            "library": key.library,
            "name": key.name,
            "use": told.use,
            "view": told.view,
            "patch": told.patch,
            "last_activity_at": iso(told.last_at),
        }

    most = [line(n) for n in range(min(SHOWN, len(ranked))) if usage[ranked[n]].use + usage[ranked[n]].view]
    least = [line(n) for n in range(len(ranked) - 1, max(len(ranked) - 1 - SHOWN, -1), -1)]
    return most, least

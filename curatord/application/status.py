"""
What `status` answers, from stored facts: it must be quick, and it must work beside a busy daemon. Of the libraries it
asks only whether the skills are there that something waits for, and not for long.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from curatord.adapters.instance import running_daemon, silence_of
from curatord.application.gating import gate_facts
from curatord.application.waiting import count_waiting
from curatord.core.gates import Closed, due
from curatord.core.small_facts import PAUSED_SINCE, RUN_COUNT, library_facts
from curatord.core.units import format_duration
from curatord.core.values import EventKind, LibraryName, RelPath, SkillKey
from curatord.core.words import iso
from curatord.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from curatord.adapters.store.overview import LastRun, Spoken
    from curatord.core.resolve import HostResolvers
    from curatord.wiring import Parts

__all__ = ["UNANSWERED", "daemon_now", "status"]

SHOWN = 5
UNANSWERED = "it does not answer on its socket: it was stopped, or hangs"


def status(parts: Parts) -> dict[str, Any]:
    """Return the contract's `status`."""
    config, store, overview, now = parts.config, parts.store, parts.overview, parts.clock.now()
    last = overview.last_run()
    answer = due(gate_facts(parts), config.gates, now)
    waiting = list(answer.reasons) if isinstance(answer, Closed) else []
    daemon = daemon_now(parts.state_dir)
    most, least = _ranking(parts)
    libraries = _libraries(parts)
    return {
        "enabled": True,
        "paused": store.meta(PAUSED_SINCE) is not None,
        "daemon": {
            "alive": daemon["alive"],
            "pid": daemon.get("pid"),
            "since": daemon.get("since"),
            "watching": daemon.get("watching"),
            "activity": daemon.get("activity"),
            "at": daemon.get("at"),
            "last_error": silence_of(daemon, now) or daemon.get("last_error") or _failed_run(last),
            "watches": daemon.get("watches", []),
            "control": daemon.get("control"),
        },
        "runs": int(store.meta(RUN_COUNT) or 0),
        "last_run": None
        if last is None
        else {
            "run_id": last.run_id,
            "at": iso(last.started_at),
            "outcome": last.outcome,
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
        "counts": _counts(parts, libraries),
        "pending": count_waiting(parts),
        "sources": _sources(parts, daemon.get("scanned_at")),
        "libraries": [
            {"name": name, "path": path, "problems": facts.get("problems", [])} for name, path, facts in libraries
        ],
        "distil": _distil(parts),
        "llm": _llm(parts, now),
        "most_used": most,
        "least_used": least,
        "state_dir": str(parts.state_dir),
        "rebuilt_from": store.meta("state.rebuilt"),
    }


def daemon_now(state_dir: Path) -> dict[str, Any]:
    """
    Return what is known of the daemon of *state_dir*: what it says itself, else what it published last.

    `control` is `answers`, `silent` where it does not though it was asked twice (it was stopped, or hangs: it is not
    well, whatever it published before), or `absent` where it has no socket.
    """
    published = running_daemon(state_dir)
    if not published["alive"]:
        return published
    from curatord.adapters.control_client import has_socket, insist, live_status

    told = live_status(state_dir)
    if told is None and has_socket(state_dir):
        told = insist(state_dir)
        published = running_daemon(state_dir)  # it may have ended meanwhile
        if not published["alive"]:
            return published
        if told is None and has_socket(state_dir):
            return {**published, "control": "silent", "last_error": UNANSWERED}
    if told is None:
        return {**published, "control": "absent"}
    return {**published, **told, "alive": True, "control": "answers"}


def _libraries(parts: Parts) -> list[tuple[str, str, dict[str, Any]]]:
    """Return name, path and what the newest look found of each configured library."""
    return [
        (settings.name, settings.path, json.loads(parts.store.meta(library_facts(settings.name)) or "{}"))
        for settings in parts.config.libraries
    ]


def _counts(parts: Parts, libraries: list[tuple[str, str, dict[str, Any]]]) -> dict[str, int]:
    """Return the numbers of remembered skills; those that only their host has pinned are pinned too."""
    by_host = [
        SkillKey(library=LibraryName(name), rel=RelPath(rel))
        for name, _, facts in libraries
        for rel in facts.get("host_pinned", ())
    ]
    counts = parts.overview.skills()
    counts["pinned"] += parts.overview.unpinned_of(by_host)
    return counts


def _distil(parts: Parts) -> dict[str, Any]:
    """Return whether sessions are distilled, how many are due, and how many were put aside after failures."""
    off = "`distill.enabled` is false" if not parts.config.distill.enabled else None
    if off is None and parts.config.llm is None:
        off = "no model is configured (`llm`)"
    due, aside = parts.distil_store.totals() if off is None else (0, 0)
    return {"off": off, "due": due, "aside": aside}


def _llm(parts: Parts, now: datetime) -> dict[str, Any]:
    """Return what is known of models, without asking one; little is imported where none is configured."""
    if parts.config.llm is None:
        spent: dict[str, Any] = {"tokens": 0, "usd": 0.0}
        return {
            "configured": False,
            "last_error": None,
            "fallback_used": False,
            "spent_today": spent,
            "breaker": None,
        }
    today, error = parts.books.spent_on(now), parts.books.last_error()
    last = parts.overview.last_run()
    return {
        "configured": True,
        "last_error": error,
        "fallback_used": last is not None and _fallback_used(parts, last.run_id),
        "spent_today": {"tokens": today.usage.tokens, "usd": round(today.usd, 6)},
        "breaker": parts.open_breaker(now),
    }


def _fallback_used(parts: Parts, run_id: str) -> bool:
    """Return whether the newest run had to ask the fallback; a run whose files are gone had no need to."""
    try:
        run = parts.folders.read(run_id)  # type: ignore[arg-type]  # ids of stored runs are ids of runs
    except InputError:
        return False
    return bool((run.get("llm") or {}).get("fallback_used"))


def _failed_run(last: LastRun | None) -> str | None:
    return f"the last run failed: {last.summary}" if last is not None and last.outcome == "failed" else None


def _report_path(parts: Parts, run_id: str) -> str | None:
    path = parts.folders.report_path(run_id)  # type: ignore[arg-type]  # ids of stored runs are ids of runs
    return str(path) if path.exists() else f"{path} (missing)"


def _sources(parts: Parts, by_daemon: str | None) -> list[dict[str, Any]]:
    """Return the sources; *by_daemon* is when the running daemon last scanned all of them, as it publishes it."""
    seen = datetime.fromisoformat(by_daemon) if by_daemon else None
    states = parts.overview.sources()
    now = parts.clock.now()
    distils = parts.config.llm is not None and parts.config.distill.enabled
    waiting = parts.distil_store.due_by_source() if distils else {}
    rows = []
    for placed in parts.placed_sources:
        state = states.get(placed.key)
        scanned = state.scanned_at if state is not None else None
        if scanned is not None and seen is not None:
            scanned = max(scanned, seen)
        rows.append(
            {
                "host": placed.settings.host,
                "path": placed.path,
                "lag_s": None if scanned is None else max(round((now - scanned).total_seconds(), 1), 0.0),
                "sessions": state.sessions if state is not None else 0,
                "due": waiting.get(placed.key, 0),
                "problems": list(state.problems) if state is not None else ["it was never scanned"],
                "newest_record_at": iso(state.newest_record_at) if state is not None else None,
            }
        )
    return rows


def _ranking(parts: Parts) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the most and the least used live skills, by their names in the transcripts."""
    from curatord.core.namesakes import Namesakes

    live = parts.overview.live()
    namesakes = Namesakes(live)
    # With one library it does not matter whether a path tells that a skill was its own: it counts for it either way.
    apart = len(parts.config.libraries) > 1
    resolve = parts.resolver({}) if apart and live else None
    counts: dict[SkillKey, dict[EventKind, int]] = {}
    newest: dict[SkillKey, datetime] = {}
    for said in parts.overview.spoken(with_paths=apart):
        library = None if resolve is None else _named(resolve, said)
        for key in namesakes.meant(library, said.skill):
            counted = counts.setdefault(key, {})
            counted[said.kind] = counted.get(said.kind, 0) + said.times
            newest[key] = max(newest.get(key, said.newest), said.newest)

    def uses(key: SkillKey) -> int:
        counted = counts.get(key, {})
        return counted.get(EventKind.USE, 0) + counted.get(EventKind.VIEW, 0)

    def line(key: SkillKey) -> dict[str, Any]:
        counted = counts.get(key, {})
        return {
            "library": key.library,
            "name": key.name,
            "use": counted.get(EventKind.USE, 0),
            "view": counted.get(EventKind.VIEW, 0),
            "patch": counted.get(EventKind.PATCH, 0),
            "last_activity_at": iso(newest.get(key)),
        }

    ranked = sorted(live, key=uses, reverse=True)  # equal ones stay in the order of their names
    most = [line(key) for key in ranked[:SHOWN] if uses(key)]
    least = [line(key) for key in reversed(ranked[-SHOWN:])]
    return most, least


def _named(resolve: HostResolvers, said: Spoken) -> LibraryName | None:
    name = resolve(host=said.host, skill=said.skill, path=said.path, cwd=said.cwd)
    return None if name is None else LibraryName(name)

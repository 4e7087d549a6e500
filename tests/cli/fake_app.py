"""A small application for tests of the command line: it answers with made-up values of the contract's shapes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from curatord.cli.app import App, Surroundings
from curatord.config import Loaded

AT = "2026-03-01T10:00:00.000Z"

RUN: dict[str, Any] = {
    "schema": 1,
    "run_id": "20260301-100000",
    "trigger": "manual",
    "dry_run": False,
    "mode": "guarded",
    "outcome": "ok",
    "started_at": AT,
    "finished_at": AT,
    "duration_s": 1.25,
    "summary": "archived 1, marked 1 stale (5 managed of 9 skills)",
    "gates": [],
    "transitions": [
        {
            "library": "hermes",
            "skill": "nginx-reload",
            "from": "stale",
            "to": "archived",
            "idle_days": 140.0,
            "reason": "idle for 140 days",
        }
    ],
    "consolidated": [],
    "pending": [],
    "skipped": [],
    "failed": [],
    "warnings": [],
    "advice": [{"library": "claude", "skill": "react-tables", "would": "stale"}],
    "error": None,
}

SKILL: dict[str, Any] = {
    "library": "claude",
    "name": "pdf-forms",
    "path": "pdf-forms",
    "state": "active",
    "managed": False,
    "why": "yours until adopted",
    "pinned": True,
    "importance": "important",
    "created_at": AT,
    "first_seen_at": AT,
    "last_activity_at": AT,
    "use": 12,
    "view": 3,
    "patch": 1,
    "sessions": 7,
    "hosts": ["claude-code"],
    "idle_days": 3.25,
    "observed_since": AT,
    "stopped_days": 0.0,
    "next": {"state": "stale", "at": "2026-03-28T10:00:00.000Z"},
    "would": None,
    "description": "Fills forms",
    "description_tokens": 40,
    "body_tokens": 400,
    "files": 3,
    "bytes": 1200,
    "fingerprint": "ab" * 32,
    "problems": [],
}

STATUS: dict[str, Any] = {
    "enabled": True,
    "paused": False,
    "daemon": {"alive": True, "pid": 42, "since": AT, "watching": "events", "activity": "idle"},
    "runs": 12,
    "last_run": {
        "run_id": RUN["run_id"],
        "at": AT,
        "outcome": "ok",
        "summary": RUN["summary"],
        "report": "/r/REPORT.md",
    },
    "next_run": {"at": "2026-03-08T10:00:00.000Z", "waiting_for": ["min_idle"]},
    "interval": "7d",
    "stale_after": "30d",
    "archive_after": "90d",
    "counts": {"managed": 5, "unmanaged": 4, "active": 3, "stale": 1, "archived": 1, "pinned": 1},
    "pending": 2,
    "sources": [{"host": "hermes", "path": "/h/.hermes", "lag_s": 3.2, "sessions": 1, "due": 0, "problems": ["odd"]}],
    "llm": {"configured": False, "last_error": None, "fallback_used": False, "spent_today": None, "breaker": None},
    "most_used": [{"library": "claude", "name": "pdf-forms", "use": 12, "view": 3, "patch": 1, "last_activity_at": AT}],
    "least_used": [{"library": "claude", "name": "old", "use": 0, "view": 0, "patch": 0, "last_activity_at": None}],
}

SCAN: dict[str, Any] = {
    "sources": [
        {"host": "hermes", "path": "/h", "files": 1, "changed": 1, "bytes": 10, "records": 4, "unreadable": 0},
    ],
    "sessions": 2,
    "events": 3,
    "elapsed_s": 0.12,
}

SESSION: dict[str, Any] = {
    "host": "hermes",
    "session_id": "s1",
    "path": "/h/state.db",
    "parent": None,
    "cwd": "/srv",
    "first_at": AT,
    "last_at": AT,
    "records": 4,
    "unreadable": 0,
    "user_turns": 1,
    "assistant_turns": 2,
    "tool_calls": {"skill_view": 1},
    "skill_events": 1,
    "watermark": {"offset": 4, "size": 4},
    "restarts": [],
    "settled": True,
    "distil": {"state": "off", "reason": "no model", "at": None, "through": None},
}

EVENT: dict[str, Any] = {
    "host": "hermes",
    "session_id": "s1",
    "at": AT,
    "library": None,
    "skill": "pdf-forms",
    "kind": "use",
    "via": "skill_view",
}

EXPLAIN: dict[str, Any] = {
    "skill": "claude/pdf-forms",
    "state": "active",
    "since": AT,
    "text": "claude/pdf-forms is active since 2026-03-01.\n  Why: it was used",
    "idle_days": 3.25,
    "counted_from": AT,
    "observed_since": AT,
    "stopped_days": 2.0,
    "rule": "pinned",
    "reason": "it is pinned",
    "next": {"state": None, "at": None, "condition": "it is unpinned"},
    "history": [{"at": AT, "from": None, "to": "active", "reason": "first seen", "run_id": None}],
}

COST: dict[str, Any] = {
    "libraries": [
        {
            "name": "claude",
            "skills": 6,
            "description_tokens": 81,
            "body_tokens": 146,
            "per_call_tokens": 81,
            "calls_per_day": None,
            "tokens_per_year": None,
            "usd_per_year": None,
            "top": [{"skill": "pdf-forms", "description_tokens": 19}],
        }
    ],
    "curation": {"runs": 1, "calls": 2, "tokens": 300, "usd": None, "usd_at_least": 0.01},
    "index": {"bytes": 700, "warn_at": 6144, "error_at": 8192, "warning": None},
}

DOCTOR: list[dict[str, Any]] = [
    {
        "check": "state",
        "ok": True,
        "level": "fine",
        "found": "/home/u/.local/state/curatord",
        "mend": "",
        "details": [],
    },
    {
        "check": "source codex",
        "ok": True,
        "level": "warning",
        "found": "/home/u/.codex: 3 files, 3 sessions; 12 records could not be read",
        "mend": "look at the offsets in the details; what is whole was counted",
        "details": ["unreadable: /home/u/.codex/a.jsonl at offset 17: not JSON"],
    },
]

PENDING: dict[str, Any] = {
    "id": "3f9a2c",
    "kind": "archive",
    "library": "hermes",
    "targets": ["nginx-reload"],
    "summary": "archive nginx-reload",
    "reason": "idle",
    "created_at": AT,
    "run_id": RUN["run_id"],
    "diff_lines": 2,
}

BACKUP: dict[str, Any] = {
    "id": "20260301-100000",
    "at": AT,
    "reason": "made by hand",
    "libraries": [{"name": "claude", "skills": 6, "files": 9, "bytes": 2048}],
    "damaged": None,
}

CREATED: dict[str, Any] = {
    **BACKUP,
    "left_out": [{"path": "/h/.claude/skills/a/pipe", "why": "it is a pipe", "ordinary": True}],
    "left_out_count": 1,
    "failed": [],
    "faults": 0,
    "dropped": ["20250301-100000"],
    "freed": 10,
    "total_bytes": 4096,
    "warnings": [],
}

CHANGES: dict[str, Any] = {
    "done": [{"skill": "claude/pdf-forms", "what": "pinned", "action": "a1"}],
    "unchanged": [],
    "skipped": [],
    "failed": [],
}


REFINED: dict[str, Any] = {
    "host": "hermes",
    "session_id": "s1",
    "state": "pending",
    "reason": "it was left out",
    "asked": True,
    "operations": [
        {"op": "patch", "library": "claude", "skill": "pdf-forms", "state": "pending", "id": "3f9a2c", "reason": "x"},
        {"op": "create", "library": "claude", "skill": "x", "state": "refused", "code": "similar", "reason": "as y"},
    ],
    "lines": ["💾 skill review: patch of claude/pdf-forms waits for your yes (3f9a2c): it was left out"],
    "run_id": RUN["run_id"],
    "focus": None,
    "digest": None,
    "llm": None,
}

DISTILLED: dict[str, Any] = {
    "host": "hermes",
    "session_id": "s1",
    "at": AT,
    "state": "created",
    "reason": "asked for",
    "run_id": RUN["run_id"],
    "asked": True,
    "digest": None,
    "operations": [],
    "tokens": 12,
}


class FakeApp:
    """Answers every method of `App`; *answers* replaces some, an exception among them is raised. Calls are noted."""

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.loaded: Loaded | None = None
        self.surroundings: Surroundings | None = None
        self._answers: dict[str, Any] = {
            "status": STATUS,
            "skills": [SKILL],
            "show": SKILL,
            "sessions": [SESSION],
            "events": [EVENT],
            "runs": [
                {key: RUN[key] for key in ("run_id", "trigger", "outcome", "started_at", "duration_s", "summary")}
            ],
            "report": {"run_id": RUN["run_id"], "path": "/r/REPORT.md", "text": "# curatord run\n", "run": RUN},
            "explain": EXPLAIN,
            "cost": COST,
            "doctor": DOCTOR,
            "scan": SCAN,
            "run": RUN,
            "refine": REFINED,
            "distil_log": [DISTILLED],
            "daemon": 143,
            "pending": [PENDING],
            "diff": {**PENDING, "diff": "--- a\n+++ b\n-old\n+new\n"},
            "backup_create": CREATED,
            "backup_list": [BACKUP],
            "backup_verify": [{"id": BACKUP["id"], "damaged": []}],
            **(answers or {}),
        }

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, args, kwargs))
            answer = self._answers.get(name, CHANGES)
            if isinstance(answer, BaseException):
                raise answer
            if callable(answer):
                answer = answer()
            return copy.deepcopy(answer)

        return call

    @contextmanager
    def opened(self, loaded: Loaded, surroundings: Surroundings) -> Iterator[App]:
        """Be the application's factory."""
        self.loaded, self.surroundings = loaded, surroundings
        yield self

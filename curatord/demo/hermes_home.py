"""Writes the demo's Hermes home: skills in categories, that host's own records, a schedule, its session database."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from curatord.demo.claude_home import write_package
from curatord.demo.story import FIRST_DAY, HERMES_SKILLS, HOLIDAY, DemoSkill

__all__ = ["write_hermes_home"]

# The columns that matter of the tables of that host, in a version of mid-2026.
_SCHEMA = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (22);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, chat_id TEXT, thread_id TEXT, model TEXT, model_config TEXT,
  system_prompt TEXT, parent_session_id TEXT REFERENCES sessions(id), started_at REAL NOT NULL, ended_at REAL,
  end_reason TEXT, message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0,
  output_tokens INTEGER DEFAULT 0, cwd TEXT, title TEXT, rewind_count INTEGER NOT NULL DEFAULT 0,
  archived INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
  content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, token_count INTEGER,
  finish_reason TEXT, reasoning TEXT, observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1,
  compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT
);
CREATE INDEX idx_messages_session ON messages(session_id, id);
"""
_TALK = (
    ("Any errors on the build hosts tonight?", "Two time-outs, both recovered."),
    ("Who is on call this week?", "Mira until Thursday, then Tom."),
    ("Did the backup finish?", "Yes, at 02:14, all of it."),
)


def write_hermes_home(home: Path, now: datetime) -> int:
    """Write `.hermes` below *home* and return how many sessions it has."""
    root = home / ".hermes"
    skills = root / "skills"
    for skill in HERMES_SKILLS:
        below = skills / ".archive" if skill.archived is not None else skills / skill.category
        write_package(below / skill.name, skill, now - timedelta(days=skill.born))
    _write_json(skills / ".usage.json", {s.name: _usage(s, now) for s in HERMES_SKILLS if not s.broken}, sort=True)
    bundled = [skill for skill in HERMES_SKILLS if skill.owner == "bundled"]
    lines = [f"{s.name}:{_manifest_hash(skills / s.category / s.name)}\n" for s in bundled]
    (skills / ".bundled_manifest").write_text("".join(lines), encoding="utf-8")
    _write_json(skills / ".hub" / "lock.json", {"version": 1, "installed": dict(_hub(now))})
    _write_json(root / "cron" / "jobs.json", {"jobs": list(_jobs()), "updated_at": _iso(now - timedelta(days=1))})
    return _write_database(root / "state.db", now)


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds")


def _write_json(path: Path, value: Any, *, sort: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=sort) + "\n", encoding="utf-8")


def _usage(skill: DemoSkill, now: datetime) -> dict[str, Any]:
    """Return the host's own record of *skill*, with the counts that its sessions show."""

    def newest(days: tuple[int, ...]) -> str | None:
        return _iso(now - timedelta(days=min(days), hours=2)) if days else None

    return {
        "created_by": "agent" if skill.owner == "agent" else None,
        "use_count": len(skill.uses),
        "view_count": len(skill.uses) + len(skill.views),
        "last_used_at": newest(skill.uses),
        "last_viewed_at": newest(skill.uses + skill.views),
        "patch_count": len(skill.patches),
        "last_patched_at": newest(skill.patches),
        "created_at": _iso(now - timedelta(days=skill.born)),
        "state": "archived" if skill.archived is not None else "active",
        "pinned": skill.pinned,
        "archived_at": None if skill.archived is None else _iso(now - timedelta(days=skill.archived)),
    }


def _manifest_hash(folder: Path) -> str:
    """Return what that host's manifest holds of a bundled skill: MD5 over sorted relative paths and contents."""
    digest = hashlib.md5(usedforsecurity=False)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _hub(now: datetime) -> Iterator[tuple[str, dict[str, Any]]]:
    for skill in HERMES_SKILLS:
        if skill.owner == "hub":
            path = f"{skill.category}/{skill.name}"
            at = _iso(now - timedelta(days=skill.born))
            yield skill.name, {"source": "demo-hub", "identifier": skill.name, "install_path": path, "installed_at": at}


def _jobs() -> Iterator[dict[str, Any]]:
    for number, skill in enumerate(skill for skill in HERMES_SKILLS if skill.scheduled):
        yield {
            "id": f"demo{number:08x}",
            "name": f"{skill.name} on Mondays",
            "prompt": "Send me the figures of the week.",
            "skills": [skill.name],
            "skill": skill.name,
            "schedule": {"kind": "cron", "expr": "0 8 * * 1"},
            "enabled": False,
            "state": "paused",
        }


def _write_database(path: Path, now: datetime) -> int:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(_SCHEMA)
        connection.execute("BEGIN")
        sessions = 0
        for day in range(FIRST_DAY, -1, -1):
            doings = list(_doings(day))
            if day in HOLIDAY or (not doings and day % 4):
                continue
            _write_session(connection, day, now - timedelta(days=day, hours=2), doings)
            sessions += 1
        connection.execute("COMMIT")
    finally:
        connection.close()
    return sessions


def _doings(day: int) -> Iterator[tuple[str, DemoSkill]]:
    for skill in HERMES_SKILLS:
        for kind, days in (("use", skill.uses), ("patch", skill.patches)):
            if day in days:
                yield kind, skill


def _write_session(
    connection: sqlite3.Connection, day: int, start: datetime, doings: list[tuple[str, DemoSkill]]
) -> None:
    session_id = f"{start.strftime('%Y%m%d_%H%M%S')}_{day:06x}"
    question, answer = _TALK[day % len(_TALK)]
    rows: list[dict[str, Any]] = [
        {"role": "user", "content": question},
        {"role": "assistant", "content": answer, "finish_reason": "stop"},
    ]
    for number, (kind, skill) in enumerate(doings):
        rows += _rows(f"call_{day:04d}_{number}", kind, skill)
    ended = start + timedelta(seconds=30 * len(rows) + 30)
    calls = sum("tool_calls" in row for row in rows)
    connection.execute(
        "INSERT INTO sessions (id, source, model, started_at, ended_at, end_reason, message_count, tool_call_count,"
        " cwd) VALUES (?, 'cli', 'demo-model', ?, ?, 'cli_close', ?, ?, '/srv/shop')",
        (session_id, start.timestamp(), ended.timestamp(), len(rows), calls),
    )
    for number, row in enumerate(rows):
        at = (start + timedelta(seconds=30 * number)).timestamp()
        names = ("role", "content", "tool_call_id", "tool_calls", "tool_name", "finish_reason")
        connection.execute(
            "INSERT INTO messages (session_id, timestamp, role, content, tool_call_id, tool_calls, tool_name,"
            " finish_reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (session_id, at, *(row.get(name) for name in names)),
        )


def _rows(call_id: str, kind: str, skill: DemoSkill) -> list[dict[str, Any]]:
    """Return the messages of one doing: what was asked, the call, its result, the answer."""
    if kind == "use":
        tool, arguments = "skill_view", {"name": skill.name}
        result: dict[str, Any] = {"success": True, "name": skill.name, "content": skill.body}
    else:
        tool = "skill_manage"
        arguments = {"action": "patch", "name": skill.name, "old_string": "once", "new_string": "twice"}
        result = {"success": True, "message": f"Patched SKILL.md of {skill.name}"}
    call = {"id": call_id, "call_id": call_id, "type": "function"}
    calls = [{**call, "function": {"name": tool, "arguments": json.dumps(arguments)}}]
    return [
        {"role": "user", "content": f"Please do the usual: {skill.description}"},
        {"role": "assistant", "content": "", "tool_calls": json.dumps(calls), "finish_reason": "tool_calls"},
        {"role": "tool", "content": json.dumps(result), "tool_call_id": call_id, "tool_name": tool},
        {"role": "assistant", "content": "Done, by the skill's steps.", "finish_reason": "stop"},
    ]

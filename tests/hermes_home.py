"""
A made-up Hermes home: its database as programs of several ages write it, and what they later do to its rows.

The database is written through an ordinary connection that can be left open, as by a live host (WAL).
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

__all__ = ["T0", "HermesHome", "call", "slash"]

T0 = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)

SESSIONS = {
    "old": "id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, model_config TEXT, system_prompt TEXT,"
    " parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0,"
    " tool_call_count INTEGER DEFAULT 0",
}
SESSIONS["22"] = SESSIONS["old"] + ", cwd TEXT, title TEXT, rewind_count INTEGER DEFAULT 0, archived INTEGER DEFAULT 0"
SESSIONS["30"] = SESSIONS["22"] + ", profile_name TEXT, something_new TEXT"
MESSAGES = {
    "old": "id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT,"
    " tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, token_count INTEGER,"
    " finish_reason TEXT",
}
MESSAGES["22"] = (
    MESSAGES["old"] + ", observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1,"
    " compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT"
)
MESSAGES["30"] = MESSAGES["22"] + ", display_kind TEXT, _compressed_summary TEXT"
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n--- END OF CONTEXT SUMMARY ---"


def call(name: str, call_id: str, /, **arguments: Any) -> dict[str, Any]:
    """Return one tool call as Hermes stores it."""
    return {
        "id": call_id,
        "call_id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def slash(name: str, text: str = "", word: str = "IMPORTANT", folder: str = "/h/skills/x") -> str:
    """Return the user row that `/name text` becomes."""
    tail = f"\n\nThe user has provided the following instruction alongside the skill invocation: {text}" if text else ""
    return (
        f'[{word}: The user has invoked the "{name}" skill, indicating they want you to follow its instructions.]\n\n'
        f"---\nname: {name}\n---\n# {name}\n\n[Skill directory: {folder}/{name}]{tail}"
    )


class HermesHome:
    """One home; *age* is `old`, `22` or `30`. Each row is a second later than the last unless a time is given."""

    def __init__(self, path: Path, *, age: str = "22", wal: bool = True) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.age = age
        self.now = T0
        self.file = path / "state.db"
        self.db = sqlite3.connect(self.file, isolation_level=None, timeout=10)
        if wal:
            self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
        self.db.execute("INSERT INTO schema_version VALUES (?)", (int(age) if age != "old" else 5,))
        self.db.execute(f"CREATE TABLE sessions ({SESSIONS[age]})")
        self.db.execute(f"CREATE TABLE messages ({MESSAGES[age]})")
        self.db.execute("CREATE INDEX idx_messages_session ON messages (session_id, timestamp)")
        self._calls = 0

    def close(self) -> None:
        """Close as a host does that ends: the WAL goes into the file and away."""
        self.db.close()

    def tick(self, seconds: float = 1.0) -> float:
        """Let time pass, and return it as Hermes stores it."""
        self.now += timedelta(seconds=seconds)
        return self.now.timestamp()

    def session(self, name: str, *, source: str = "cli", cwd: str | None = "/w", **columns: Any) -> str:
        """Insert a session."""
        values: dict[str, Any] = {"id": name, "source": source, "started_at": self.tick(), **columns}
        if self.age != "old":
            values["cwd"] = cwd
        if isinstance(values.get("model_config"), dict):
            values["model_config"] = json.dumps(values["model_config"])
        marks = ", ".join("?" for _ in values)
        self.db.execute(f"INSERT INTO sessions ({', '.join(values)}) VALUES ({marks})", list(values.values()))
        return name

    def end(self, session: str, reason: str) -> None:
        """End a session."""
        self.db.execute("UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ?", (self.tick(), reason, session))

    def row(self, session: str, role: str, content: str | None, *, at: float | None = None, **columns: Any) -> int:
        """Insert a message and return its id."""
        values: dict[str, Any] = {
            "session_id": session,
            "role": role,
            "content": content,
            "timestamp": self.tick() if at is None else at,
            **columns,
        }
        if isinstance(values.get("tool_calls"), list):
            values["tool_calls"] = json.dumps(values["tool_calls"])
        marks = ", ".join("?" for _ in values)
        cursor = self.db.execute(f"INSERT INTO messages ({', '.join(values)}) VALUES ({marks})", list(values.values()))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def user(self, session: str, text: str, **columns: Any) -> int:
        """Insert a user's row."""
        return self.row(session, "user", text, **columns)

    def says(self, session: str, text: str = "Done.", **columns: Any) -> int:
        """Insert a row of the model without calls."""
        return self.row(session, "assistant", text, **columns)

    def calls(self, session: str, name: str, result: object = None, /, **arguments: Any) -> str:
        """Insert a call and, where *result* is not None, its result; return the call's id."""
        self._calls += 1
        call_id = f"call_{self._calls}"
        self.row(session, "assistant", "", tool_calls=[call(name, call_id, **arguments)])
        if result is not None:
            self.answers(session, call_id, name, result)
        return call_id

    def answers(self, session: str, call_id: str, name: str, result: object) -> None:
        """Insert a call's result."""
        text = result if isinstance(result, str) else json.dumps(result)
        self.row(session, "tool", text, tool_call_id=call_id, tool_name=name)

    # -- what Hermes does later

    def compact(self, session: str, *, keep: int = 2, keep_times: bool = True, role: str = "assistant") -> None:
        """Compact in place: all active rows are put aside, a summary and copies of the last *keep* inserted."""
        names = [row[1] for row in self.db.execute("PRAGMA table_info(messages)") if row[1] != "id"]
        rows = self.db.execute(
            f"SELECT {', '.join(names)} FROM messages WHERE session_id = ? AND active = 1 ORDER BY id", (session,)
        ).fetchall()
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute("UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", (session,))
        self.tick(600)
        self.row(session, role, SUMMARY)
        for values in rows[len(rows) - keep :] if keep else []:
            copy = dict(zip(names, values, strict=True))
            if not keep_times:
                copy["timestamp"] = self.tick(0.01)
            copy.update(active=1, compacted=0)
            marks = ", ".join("?" for _ in copy)
            self.db.execute(f"INSERT INTO messages ({', '.join(copy)}) VALUES ({marks})", list(copy.values()))
        self.db.execute("COMMIT")
        self.tick(60)

    def rewind(self, session: str, rows: int) -> None:
        """Undo: the last *rows* active rows are put aside."""
        self.db.execute(
            "UPDATE messages SET active = 0 WHERE id IN"
            " (SELECT id FROM messages WHERE session_id = ? AND active = 1 ORDER BY id DESC LIMIT ?)",
            (session, rows),
        )

    def rewrite(self, session: str, *, drop: int = 0) -> None:
        """Replace all rows of a session by themselves, but for the last *drop*, with new ids and new times."""
        names = [row[1] for row in self.db.execute("PRAGMA table_info(messages)") if row[1] != "id"]
        rows = self.db.execute(
            f"SELECT {', '.join(names)} FROM messages WHERE session_id = ? ORDER BY id", (session,)
        ).fetchall()
        self.db.execute("DELETE FROM messages WHERE session_id = ?", (session,))
        self.tick(60)
        for values in rows[: len(rows) - drop]:
            copy = dict(zip(names, values, strict=True))
            copy["timestamp"] = self.tick(0.000001)
            marks = ", ".join("?" for _ in copy)
            self.db.execute(f"INSERT INTO messages ({', '.join(copy)}) VALUES ({marks})", list(copy.values()))

    def branch(self, session: str, name: str, *, keep_times: bool = True) -> str:
        """Branch: a new session that begins with copies of the other's rows."""
        self.session(name, parent_session_id=session, model_config={"_branched_from": session})
        self._copy_rows(session, name, keep_times=keep_times)
        return name

    def _copy_rows(self, session: str, name: str, *, keep_times: bool) -> None:
        names = [row[1] for row in self.db.execute("PRAGMA table_info(messages)") if row[1] != "id"]
        started = self.now.timestamp()
        for nth, values in enumerate(
            self.db.execute(
                f"SELECT {', '.join(names)} FROM messages WHERE session_id = ? ORDER BY id", (session,)
            ).fetchall()
        ):
            copy = dict(zip(names, values, strict=True))
            copy["session_id"] = name
            if not keep_times:
                copy["timestamp"] = started + 0.001 * nth
            marks = ", ".join("?" for _ in copy)
            self.db.execute(f"INSERT INTO messages ({', '.join(copy)}) VALUES ({marks})", list(copy.values()))
        self.tick(30)

    def prune(self, session: str) -> None:
        """Delete a session with its rows."""
        self.db.execute("DELETE FROM messages WHERE session_id = ?", (session,))
        self.db.execute("DELETE FROM sessions WHERE id = ?", (session,))

    def rebuild(self, *, keep_ids: bool = True) -> None:
        """Replace the file by one with the same rows, as a repair does: another inode, ids kept or given anew."""
        sessions = self.db.execute("SELECT * FROM sessions").fetchall()
        messages = self.db.execute("SELECT * FROM messages ORDER BY id").fetchall()
        self.db.close()
        for suffix in ("-wal", "-shm", ""):
            (self.path / f"state.db{suffix}").unlink(missing_ok=True)
        elsewhere = HermesHome(self.path / "rebuilt", age=self.age)
        for values in sessions:
            elsewhere.db.execute(f"INSERT INTO sessions VALUES ({', '.join('?' for _ in values)})", values)
        for values in messages:
            given = values if keep_ids else (None, *values[1:])
            elsewhere.db.execute(f"INSERT INTO messages VALUES ({', '.join('?' for _ in given)})", given)
        elsewhere.close()
        shutil.move(self.path / "rebuilt" / "state.db", self.file)
        (self.path / "rebuilt").rmdir()
        self.db = sqlite3.connect(self.file, isolation_level=None, timeout=10)

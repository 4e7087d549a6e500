"""Builder of made-up OpenClaw sessions: entries as JSON, put into files or into an agent's database."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from curatord.core.transcript.times import iso_of

START_MS = 1_772_366_400_000  # 2026-03-01T12:00Z

SCHEMA = """
CREATE TABLE session_nodes (session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL,
    entry_json TEXT NOT NULL, created_via TEXT, parent_session_key TEXT, spawned_by TEXT, updated_at INTEGER NOT NULL);
CREATE TABLE session_windows (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL,
    previous_session_id TEXT, reason TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    parent_session_key TEXT, spawned_by TEXT);
CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,
    created_at INTEGER NOT NULL, event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT,
    PRIMARY KEY (session_id, seq));
CREATE TABLE transcript_rewrite_watermarks (session_id TEXT NOT NULL PRIMARY KEY, generation TEXT NOT NULL,
    updated_at INTEGER NOT NULL);
CREATE TABLE auth_profile_store (store_key TEXT PRIMARY KEY, store_json TEXT);
"""


class Entries:
    """One session's entries, a second apart; each method returns the entry's id, or the call's."""

    def __init__(self, session: str, *, start_ms: int = START_MS, cwd: str = "/home/dev/claw", **header: Any) -> None:
        self.session = session
        self.ms = start_ms
        self._last: str | None = None
        self._counter = 0
        self.call_prefix = "call_"
        self.entries: list[dict[str, Any]] = []
        self.raw({"type": "session", "version": 3, "id": session, "timestamp": iso_of(self.ms), "cwd": cwd, **header})

    def raw(self, entry: dict[str, Any]) -> None:
        """Add any entry."""
        self.entries.append(entry)

    def add(self, kind: str, **more: Any) -> str:
        """Add an entry of the tree."""
        self.ms += 1000
        self._counter += 1
        ident = f"{abs(hash(self.session)) % 0xFFFFFFFF:08x}-0000-4000-8000-{self._counter:012x}"
        self.raw({"type": kind, "id": ident, "parentId": self._last, "timestamp": iso_of(self.ms), **more})
        self._last = ident
        return ident

    def said(self, text: Any = "please go on", **more: Any) -> str:
        """Add a message of role user."""
        return self.add("message", message={"role": "user", "content": text, "timestamp": self.ms, **more})

    def model(self, *blocks: dict[str, Any], text: str = "done") -> str:
        """Add a message of the model."""
        content = [*blocks] or [{"type": "text", "text": text}]
        return self.add("message", message={"role": "assistant", "content": content, "stopReason": "stop"})

    def call(self, tool: str, /, **arguments: Any) -> str:
        """Add a call, and return its id: small servers number them anew in each session, after a short prefix."""
        ident = f"{self.call_prefix}{self._counter}"
        self.model({"type": "toolCall", "id": ident, "name": tool, "arguments": arguments})
        return ident

    def result(self, call: str, *, error: bool = False) -> str:
        """Add the result of a call."""
        content = [{"type": "text", "text": "…"}]
        return self.add(
            "message",
            message={"role": "toolResult", "toolCallId": call, "toolName": "x", "content": content, "isError": error},
        )

    def read(self, skill: str, *, error: bool = False) -> None:
        """Let the model read a skill."""
        self.result(self.call("read", path=f"/home/dev/claw/skills/{skill}/SKILL.md"), error=error)

    def lines(self) -> bytes:
        """Return all entries as a file's content."""
        return b"".join(map(encoded, self.entries))


def encoded(entry: dict[str, Any]) -> bytes:
    """Return an entry as the host writes it."""
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


class OpenClawHome:
    """A home with one agent."""

    def __init__(self, path: Path, agent: str = "main") -> None:
        self.path = path
        self.folder = path / "agents" / agent
        self.sessions = self.folder / "sessions"
        self._index: dict[str, Any] = {}

    def write(self, entries: Entries, *, name: str | None = None, below: str = "sessions", cut: int = 0) -> Path:
        """Write a session's file; *cut* bytes of its end are missing."""
        folder = self.folder / below
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name or f"{entries.session}.jsonl")
        data = entries.lines()
        path.write_bytes(data[: len(data) - cut] if cut else data)
        os.utime(path, (entries.ms / 1000, entries.ms / 1000))
        return path

    def index(self, key: str, session: str, **more: Any) -> None:
        """Add a session to the index beside the files."""
        self._index[key] = {"sessionId": session, "updatedAt": 1, "skillsSnapshot": {"prompt": "…"}, **more}
        self.sessions.mkdir(parents=True, exist_ok=True)
        (self.sessions / "sessions.json").write_text(json.dumps(self._index))


class OpenClawDatabase:
    """An agent's database in WAL mode; closed, no companions are left."""

    def __init__(self, home: OpenClawHome) -> None:
        folder = home.folder / "agent"
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.file = folder / "openclaw-agent.sqlite"
        self.connection = sqlite3.connect(self.file, isolation_level=None, timeout=30)
        self.connection.execute("PRAGMA journal_mode = WAL")
        with contextlib.suppress(sqlite3.OperationalError):
            self.connection.executescript(SCHEMA)

    def execute(self, query: str, *values: Any) -> None:
        """Change what the methods do not."""
        self.connection.execute(query, values)

    def window(
        self, session: str, key: str = "agent:main:main", *, node: dict[str, Any] | None = None, **more: Any
    ) -> None:
        """Add a session to the tables of sessions."""
        self._insert(
            "session_nodes",
            {"session_key": key, "current_session_id": session, "entry_json": "{}", "updated_at": 1, **(node or {})},
        )
        self._insert(
            "session_windows", {"session_id": session, "session_key": key, "created_at": 1, "updated_at": 1, **more}
        )
        self._insert("transcript_rewrite_watermarks", {"session_id": session, "generation": "g0", "updated_at": 1})

    def put(self, entries: Entries, *, packed: Any = None, begin: int = 0) -> None:
        """Insert a session's entries from the one numbered *begin* on; *packed* compresses some of them."""
        for seq, entry in enumerate(entries.entries[begin:], begin):
            self.event(entries.session, seq, encoded(entry)[:-1], packed=packed if seq % 2 else None)

    def event(self, session: str, seq: int, data: bytes, *, packed: Any = None) -> None:
        """Insert one event."""
        row: dict[str, Any] = {"session_id": session, "seq": seq, "created_at": START_MS + seq}
        if packed is not None:
            row |= {"event_zstd": packed(data), "event_utf8_bytes": len(data), "navigation_json": "{}"}
        else:
            row["event_json"] = data.decode("utf-8", "surrogateescape")
        self._insert("transcript_events", row)

    def rewritten(self, session: str, generation: str, at: int) -> None:
        """Note that a transcript was rewritten."""
        self._insert(
            "transcript_rewrite_watermarks", {"session_id": session, "generation": generation, "updated_at": at}
        )

    def close(self) -> None:
        """End as the host does."""
        self.connection.close()

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        self.connection.execute(
            f"INSERT OR REPLACE INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
            list(row.values()),
        )

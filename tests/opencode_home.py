"""Builder of made-up OpenCode data: its database, or the tree of files of before 1.2, with the same methods."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

START_MS = 1_772_366_400_000  # 2026-03-01T12:00Z

SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, directory text NOT NULL,
    title text NOT NULL, version text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX part_session_idx ON part (session_id);
"""


class _Maker:
    """Messages and parts, a second apart; subclasses keep them."""

    def __init__(self) -> None:
        self.ms = START_MS
        self._counter = 0

    def put(self, table: str, row: dict[str, Any]) -> None:
        raise NotImplementedError

    def ident(self, prefix: str, ms: int | None = None) -> str:
        """Return an id as made at *ms*."""
        self._counter += 1
        at = (self.ms if ms is None else ms) * 0x1000 + self._counter % 0x1000
        return f"{prefix}_{at & 0xFFFFFFFFFFFF:012x}{self._counter:014d}"

    def session(self, session: str = "ses_1", *, parent: str | None = None, directory: str = "/home/dev/app") -> str:
        """Add a session."""
        self.put(
            "session",
            {"id": session, "project_id": "p", "parent_id": parent, "directory": directory, "title": "t",
             "version": "1.18.0", "time_created": self.ms, "time_updated": self.ms},
        )  # fmt: skip
        return session

    def message(self, session: str, role: str, *, created: int | None = None, **more: Any) -> str:
        """Add a message; *created* makes it the copy of one of that time."""
        self.ms += 1000
        ident = self.ident("msg")
        at = self.ms if created is None else created
        data = {"role": role, "time": {"created": at}, "agent": "build", **more}
        self.put(
            "message", {"id": ident, "session_id": session, "time_created": at, "time_updated": self.ms, "data": data}
        )
        return ident

    def part(self, session: str, message: str, ident: str | None = None, **data: Any) -> str:
        """Add a part, or change the one with *ident*."""
        self.ms += 10
        ident = ident or self.ident("prt")
        self.put(
            "part",
            {"id": ident, "message_id": message, "session_id": session, "time_created": self.ms,
             "time_updated": self.ms, "data": data},
        )  # fmt: skip
        return ident

    def said(self, session: str, text: str = "please go on", **more: Any) -> str:
        """Add a person's message with one text."""
        message = self.message(session, "user")
        self.part(session, message, type="text", text=text, **more)
        return message

    def model(self, session: str, text: str = "done") -> str:
        """Add a message of the model with one text."""
        message = self.message(session, "assistant")
        self.part(session, message, type="text", text=text)
        return message

    def tool(
        self,
        session: str,
        message: str,
        tool: str,
        *,
        status: str = "completed",
        ident: str | None = None,
        metadata: dict[str, Any] | None = None,
        **given: Any,
    ) -> str:
        """Add a call of *tool*, or bring the one with *ident* to another *status*."""
        state = {
            "status": status, "input": given, "output": "…", "metadata": metadata or {}, "time": {"start": self.ms + 5}
        }  # fmt: skip
        return self.part(session, message, ident, type="tool", tool=tool, callID="call_1", state=state)


class OpenCodeHome(_Maker):
    """A data folder with a database in WAL mode; closed, no companions are left."""

    def __init__(self, path: Path, name: str = "opencode.db") -> None:
        super().__init__()
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.file = path / name
        self.connection = sqlite3.connect(self.file, isolation_level=None, timeout=30)
        self.connection.execute("PRAGMA journal_mode = WAL")
        with contextlib.suppress(sqlite3.OperationalError):
            self.connection.executescript(SCHEMA)

    def put(self, table: str, row: dict[str, Any]) -> None:
        """Insert or update a row, as the host does."""
        values = [json.dumps(value) if key == "data" else value for key, value in row.items()]
        marks = ", ".join("?" * len(row))
        sets = ", ".join(f"{key} = excluded.{key}" for key in ("data", "time_updated") if key in row)
        self.connection.execute(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"
            + (f" ON CONFLICT (id) DO UPDATE SET {sets}" if "data" in row else ""),
            values,
        )

    def execute(self, query: str, *values: Any) -> None:
        """Change what the methods do not."""
        self.connection.execute(query, values)

    def close(self) -> None:
        """End as the host does."""
        self.connection.close()


class OpenCodeTree(_Maker):
    """The tree of files; *old* is the layout with `info`."""

    def __init__(self, path: Path, *, old: bool = False) -> None:
        super().__init__()
        self.path = path
        self.old = old
        self.top = path / "project" / "app" / "storage" / "session" if old else path / "storage"

    def put(self, table: str, row: dict[str, Any]) -> None:
        """Write a file."""
        if table == "session":
            where = self.top / "info" if self.old else self.top / "session" / "p"
            value: Any = {
                "id": row["id"], "parentID": row["parent_id"], "directory": row["directory"],
                "version": row["version"], "time": {"created": row["time_created"]},
            }  # fmt: skip
        else:
            inner = [row["message_id"]] if table == "part" else [row["session_id"]]
            if table == "part" and self.old:
                inner.insert(0, row["session_id"])
            where = self.top.joinpath(table, *inner)
            value = {"id": row["id"], "sessionID": row["session_id"], **row["data"]}
        where.mkdir(parents=True, exist_ok=True)
        (where / f"{row['id']}.json").write_text(json.dumps(value))

    def close(self) -> None:
        """Do nothing: files are closed."""

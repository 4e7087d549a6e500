"""Builder of made-up Claude Code transcripts: short to write, exact in shape."""

from __future__ import annotations

import itertools
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BODY = "Base directory for this skill: /home/dev/.claude/skills/"


def iso(at: datetime) -> str:
    """Return *at* as Claude Code writes it."""
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


class Log:
    """
    Records of one session, one after the other, a second apart.

    Every method adds records and returns the `uuid` (or call id) that others refer to. `lines` holds them as JSON text.
    """

    def __init__(
        self, session: str = "s-1", *, start: datetime = START, name: str | None = None, **envelope: Any
    ) -> None:
        self.session = session
        self.name = name or session
        self.at = start
        self.lines: list[str] = []
        self.envelope = {"cwd": "/home/dev/app", "version": "2.1.100", "isSidechain": False, **envelope}
        self._numbers = itertools.count(1)
        self._last: str | None = None

    def add(self, **record: Any) -> str:
        """Add a record of the conversation; its parent is the one before."""
        uuid = self._uuid()
        self.at += timedelta(seconds=1)
        whole = {
            "parentUuid": self._last,
            "sessionId": self.session,
            **self.envelope,
            "uuid": uuid,
            "timestamp": iso(self.at),
            **record,
        }
        self.raw(whole)
        self._last = uuid
        return uuid

    def raw(self, record: Any) -> None:
        """Add any JSON value as a line."""
        self.lines.append(json.dumps(record))

    def said(self, text: Any = "please go on", **more: Any) -> str:
        """Add a prompt."""
        return self.add(type="user", message={"role": "user", "content": text}, **more)

    def model(self, *blocks: dict[str, Any], message: str | None = None, model: str = "claude-x", **more: Any) -> str:
        """Add one record of a model's message."""
        ident = message or f"msg_{self.name}_{next(self._numbers)}"
        content = list(blocks) or [{"type": "text", "text": "done"}]
        body = {"id": ident, "role": "assistant", "type": "message", "model": model, "content": content}
        return self.add(type="assistant", message=body, **more)

    def call(self, tool: str, /, **arguments: Any) -> str:
        """Add a call of *tool* and return its id."""
        ident = f"toolu_{self.name}_{next(self._numbers)}"
        self.model({"type": "tool_use", "id": ident, "name": tool, "input": arguments})
        return ident

    def result(self, call: str, text: str = "ok", *, error: bool = False, outcome: Any = None, **more: Any) -> str:
        """Add the result of *call*."""
        block = {"type": "tool_result", "tool_use_id": call, "content": text, **({"is_error": True} if error else {})}
        structured = ("Error: " + text if error else {"stdout": text}) if outcome is None else outcome
        return self.add(type="user", message={"role": "user", "content": [block]}, toolUseResult=structured, **more)

    def skill(self, name: str, *, folder: str | None = None) -> str:
        """Add a call of the skill tool, its result and the body that follows."""
        call = self.call("Skill", skill=name)
        self.result(call, f"Launching skill: {name}", outcome={"success": True, "commandName": name})
        self.meta(f"{BODY}{folder or name}\n\n# {name}", sourceToolUseID=call)
        return call

    def meta(self, text: str, **more: Any) -> str:
        """Add a meta record."""
        return self.said([{"type": "text", "text": text}], isMeta=True, **more)

    def slash(self, name: str) -> str:
        """Add a slash command's record."""
        return self.said(f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>")

    def queue(self, operation: str, text: str | None = None) -> None:
        """Add a queue operation."""
        self.at += timedelta(seconds=1)
        record = {
            "type": "queue-operation",
            "operation": operation,
            "timestamp": iso(self.at),
            "sessionId": self.session,
        }
        self.raw(record if text is None else {**record, "content": text})

    def attachment(self, **attachment: Any) -> str:
        """Add an attachment."""
        return self.add(type="attachment", attachment=attachment)

    def forked(self, session: str) -> Log:
        """Return a log that begins with copies of this one's records that have a uuid, under *session*."""
        fork = Log(session, start=self.at, name=session, **self.envelope)
        fork._last = self._last
        for line in self.lines:
            record = json.loads(line)
            if "uuid" in record:
                fork.raw({**record, "sessionId": session})
        return fork

    def text(self) -> bytes:
        """Return all lines as a file's content."""
        return "".join(line + "\n" for line in self.lines).encode()

    def write(self, projects: Path, *, folder: str = "-home-dev-app", settled_at: datetime | None = None) -> Path:
        """Write the log below *projects*; its time is that of its last record, or *settled_at*."""
        path = projects / folder / f"{self.session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.text())
        touch(path, settled_at or self.at)
        return path

    def _uuid(self) -> str:
        number = next(self._numbers)
        return f"{abs(hash_of(self.name)):08x}-0000-4000-8000-{number:012x}"


def hash_of(text: str) -> int:
    """Return a number of 32 bits that is the same in every process."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def touch(path: Path, at: datetime) -> None:
    """Set *path*'s times to *at*."""

    os.utime(path, (at.timestamp(), at.timestamp()))

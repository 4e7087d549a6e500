"""A small world with time in it: the demonstration's two homes, a clock moved by hand, and the whole application."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from curatord.application import Application
from curatord.application.working import Service
from curatord.cli.app import Surroundings
from curatord.config import parse
from curatord.demo.make import make_demo
from curatord.wiring import Parts

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class HandClock:
    """A clock that moves when it is told to."""

    def __init__(self, now: datetime) -> None:
        self.at = now

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


def tree(root: Path, *, times: bool = False) -> dict[str, str]:
    """Return what stands below *root*: kind, mode, content or link target of each path, and its time where asked."""
    found: dict[str, str] = {}
    for folder, names, files in os.walk(root):
        for name in sorted([*names, *files]):
            path = Path(folder, name)
            facts = path.lstat()
            rel = str(path.relative_to(root))
            when = f" {facts.st_mtime_ns}" if times else ""
            if stat.S_ISLNK(facts.st_mode):
                found[rel] = f"link {path.readlink()}"
            elif stat.S_ISREG(facts.st_mode):
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[rel] = f"file {stat.S_IMODE(facts.st_mode):o} {digest}{when}"
            else:
                found[rel] = f"dir {stat.S_IMODE(facts.st_mode):o}"
    return found


@dataclass(slots=True)
class World:
    """The homes below *folder*, the application over them, and what may happen to both."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    clock: HandClock = field(default_factory=lambda: HandClock(START))
    parts: Parts = field(init=False)

    def __post_init__(self) -> None:
        make_demo(self.folder, self.clock.at)
        self.open()

    # -- the application

    def open(self) -> None:
        """Open it anew, as a new process would."""
        config = self.folder / "curatord.yaml"
        loaded = parse(
            config.read_bytes(),
            # These tests are about the rules; the demonstration itself merges too.
            {"HOME": str(self.folder / "home"), "CURATORD_UMBRELLA__ENABLED": "false", **self.settings},
            file=str(config),
            home=str(self.folder / "home"),
        )
        self.parts = Parts(loaded.config, Surroundings(), environ={"HOME": str(self.folder / "home")}, clock=self.clock)

    def reopen(self) -> None:
        """Close it and open it anew."""
        self.parts.close()
        self.open()

    @property
    def app(self) -> Application:
        return Application(self.parts)

    def run(self, **order: Any) -> dict[str, Any]:
        """Do a run by hand. It must not fail: nothing changed is no good answer of a run that died."""
        asked = {"dry_run": False, "respect_gates": False, "llm": True, "library": None, **order}
        value: dict[str, Any] = self.app.run(**asked)
        assert "failed" != value["outcome"], value["error"]
        return value

    def tick(self) -> str | None:
        """Do what the daemon does once a minute."""
        service = Service(self.parts)
        service.rescan(stop=lambda: False, alive=lambda: None)
        return service.work_if_due(stop=lambda: False, alive=lambda: None)

    def skill(self, name: str) -> dict[str, Any]:
        """Return the entry of `skills` with this name."""
        (row,) = [row for row in self.app.skills(problems=False, library=None) if row["name"] == name]
        entry: dict[str, Any] = row
        return entry

    # -- time and work

    def days(self, count: float, *, work: bool = True, uses: tuple[str, ...] = ()) -> None:
        """Let *count* days pass, with somebody at work in both homes every day unless *work* is False."""
        until = self.clock.at + timedelta(days=count)
        while self.clock.at < until:
            self.clock.at = min(self.clock.at + timedelta(days=1), until)
            if work:
                self.work(uses)
        self.clock.at += timedelta(hours=3)  # nobody has worked for a while when the next tick comes

    def work(self, uses: tuple[str, ...] = ()) -> None:
        """Write one more session into each home, now, in which the model loads the skills *uses*."""
        self._claude_session(uses)
        self._hermes_session(uses)

    def _claude_session(self, uses: tuple[str, ...]) -> None:
        session = str(uuid.uuid4())
        path = self.claude / "projects" / "-home-dev-app" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        at = self.clock.at

        def stamp(step: int) -> str:
            return (at + timedelta(seconds=step)).strftime("%Y-%m-%dT%H:%M:%S.000Z")

        base = {"sessionId": session, "cwd": "/home/dev/app", "version": "2.1.0", "isSidechain": False}
        records: list[dict[str, Any]] = [
            {
                **base,
                "type": "user",
                "uuid": str(uuid.uuid4()),
                "timestamp": stamp(0),
                "message": {"role": "user", "content": "please go on"},
            }
        ]
        for number, skill in enumerate(uses):
            call = f"toolu_{uuid.uuid4().hex}"
            records += [
                {
                    **base,
                    "type": "assistant",
                    "uuid": str(uuid.uuid4()),
                    "timestamp": stamp(1 + number),
                    "message": {
                        "id": f"msg_{uuid.uuid4().hex}",
                        "role": "assistant",
                        "model": "some-model",
                        "content": [{"type": "tool_use", "id": call, "name": "Skill", "input": {"skill": skill}}],
                    },
                },
                {
                    **base,
                    "type": "user",
                    "uuid": str(uuid.uuid4()),
                    "timestamp": stamp(1 + number),
                    "message": {
                        "role": "user",
                        "content": [
                            {"type": "tool_result", "tool_use_id": call, "content": f"Launching skill: {skill}"}
                        ],
                    },
                    "toolUseResult": {"success": True, "commandName": skill},
                },
            ]
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")

    def _hermes_session(self, uses: tuple[str, ...]) -> None:
        import sqlite3

        name = f"{self.clock.at:%Y%m%d_%H%M%S}_{uuid.uuid4().hex[:6]}"
        at = self.clock.at.timestamp()
        with sqlite3.connect(self.hermes / "state.db") as db:
            db.execute("INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', ?)", (name, at))
            db.execute(
                "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'go on', ?)", (name, at)
            )
            for number, skill in enumerate(uses):
                call = f"call_{uuid.uuid4().hex[:8]}"
                told = [
                    {
                        "id": call,
                        "type": "function",
                        "function": {"name": "skill_view", "arguments": json.dumps({"name": skill})},
                    }
                ]
                db.execute(
                    "INSERT INTO messages (session_id, role, content, tool_calls, timestamp)"
                    " VALUES (?, 'assistant', '', ?, ?)",
                    (name, json.dumps(told), at + 1 + number),
                )
                db.execute(
                    "INSERT INTO messages (session_id, role, content, tool_call_id, tool_name, timestamp)"
                    " VALUES (?, 'tool', ?, ?, 'skill_view', ?)",
                    (name, json.dumps({"success": True, "name": skill, "content": "…"}), call, at + 1 + number),
                )
        db.close()

    # -- places

    @property
    def hermes(self) -> Path:
        return self.folder / "home" / ".hermes"

    @property
    def claude(self) -> Path:
        return self.folder / "home" / ".claude"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def libraries(self) -> dict[str, dict[str, str]]:
        """Return the trees of both libraries."""
        return {"hermes": tree(self.hermes / "skills"), "claude": tree(self.claude / "skills")}

    def usage(self) -> dict[str, Any]:
        """Return Hermes' own records."""
        told: dict[str, Any] = json.loads((self.hermes / "skills" / ".usage.json").read_text(encoding="utf-8"))
        return told

    def run_files(self, run_id: str) -> tuple[dict[str, Any], str]:
        """Return run.json and REPORT.md of a run."""
        folder = self.state / "runs" / run_id
        return json.loads((folder / "run.json").read_text()), (folder / "REPORT.md").read_text()

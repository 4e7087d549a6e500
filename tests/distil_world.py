"""A home with Claude Code sessions that teach something, a library, a stub model, and the whole application."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from curatord.application import Application
from curatord.application.working import Service
from curatord.cli.app import Surroundings
from curatord.config import parse
from curatord.wiring import Parts

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LONG = "I looked into it, found the cause, changed what was wrong, and ran the checks until they passed. " * 2
DEPLOY = "# Deploy\n\n1. Build it.\n2. Push it.\n3. Look at the log.\n"


@dataclass(slots=True)
class HandClock:
    """A clock that moves when it is told to; durations are real, so that nothing waits for it."""

    at: datetime = NOW
    steps: int = 0

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        self.steps += 1
        return self.at.timestamp() + self.steps / 1000


def claude_records(
    session: str, said: Sequence[str], at: datetime, *, cwd: str | None = "/home/dev/app", tools: int = 4, **more: Any
) -> list[dict[str, Any]]:
    """Return a conversation: each prompt is answered with *tools* calls and a long text."""
    base: dict[str, Any] = {"sessionId": session, "version": "2.1.0", "isSidechain": False, **more}
    if cwd is not None:
        base["cwd"] = cwd
    records: list[dict[str, Any]] = []

    def add(kind: str, message: dict[str, Any]) -> None:
        stamp = (at + timedelta(seconds=len(records))).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        records.append({**base, "type": kind, "uuid": str(uuid.uuid4()), "timestamp": stamp, "message": message})

    def answer(content: list[dict[str, Any]]) -> None:
        add("assistant", {"id": f"msg_{uuid.uuid4().hex}", "role": "assistant", "model": "m", "content": content})

    for text in said:
        add("user", {"role": "user", "content": text})
        for _ in range(tools):
            call = f"toolu_{uuid.uuid4().hex}"
            answer([{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "make check"}}])
            add("user", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "fine"}]})
        answer([{"type": "text", "text": LONG}])
    return records


@dataclass(slots=True, kw_only=True)
class DistilWorld:
    """The home below *folder*; *settings* go over the configuration's text, by name of the section."""

    folder: Path
    url: str | None = None
    sections: dict[str, Any] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    library: dict[str, Any] = field(default_factory=dict)
    llm: dict[str, Any] = field(default_factory=dict)
    clock: HandClock = field(default_factory=HandClock)
    parts: Parts = field(init=False)

    def __post_init__(self) -> None:
        self.skills.mkdir(parents=True, exist_ok=True)
        (self.claude / "projects").mkdir(parents=True, exist_ok=True)
        self.open()

    # -- the application

    def config(self) -> dict[str, Any]:
        """Return the configuration, which is JSON and so YAML."""
        value: dict[str, Any] = {
            "state_dir": str(self.state),
            "sources": [{"host": "claude-code", "path": str(self.claude), **self.source}],
            "libraries": [
                {"name": "lib", "path": str(self.skills), "host": "claude-code", "manage": "all", **self.library}
            ],
            "umbrella": {"enabled": False},
            **self.sections,
        }
        if self.url is not None:
            value["llm"] = {"primary": {"base_url": self.url, "model": "stub"}, **self.llm}
        return value

    def write_config(self) -> Path:
        """Write the configuration and return its path."""
        path = self.folder / "curatord.yaml"
        path.write_text(json.dumps(self.config()), encoding="utf-8")
        return path

    def open(self) -> None:
        """Open the application anew, as a new process would."""
        path = self.write_config()
        loaded = parse(path.read_bytes(), {"HOME": str(self.folder)}, file=str(path), home=str(self.folder))
        self.parts = Parts(loaded.config, Surroundings(), environ={"HOME": str(self.folder)}, clock=self.clock)

    def reopen(self, **changes: Any) -> None:
        """Close it and open it anew, with other settings."""
        self.parts.close()
        for name, value in changes.items():
            setattr(self, name, value)
        self.open()

    @property
    def app(self) -> Application:
        return Application(self.parts)

    def run(self, **order: Any) -> dict[str, Any]:
        """Do a run by hand."""
        asked = {"dry_run": False, "respect_gates": False, "llm": True, "library": None, **order}
        value: dict[str, Any] = self.app.run(**asked)
        return value

    def tick(self) -> str | None:
        """Do what the daemon does once a minute."""
        service = Service(self.parts)
        service.begin_round()
        service.rescan(stop=lambda: False, alive=lambda: None)
        return service.work_if_due(stop=lambda: False, alive=lambda: None)

    def batch(self) -> str | None:
        """Distil what is due between runs, as the daemon does where no run is due."""
        from curatord.application.distilling import batch

        service = Service(self.parts)
        service.begin_round()
        service.rescan(stop=lambda: False, alive=lambda: None)
        return batch(self.parts, stop=lambda: False, alive=lambda: None)

    # -- places

    @property
    def claude(self) -> Path:
        return self.folder / "claude"

    @property
    def skills(self) -> Path:
        return self.folder / "claude" / "skills"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    # -- what is there

    def skill(self, name: str, body: str = DEPLOY, *, description: str = "", data: bytes | None = None) -> Path:
        """Write a skill and return its SKILL.md."""
        path = self.skills / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        words = description or f"Use when {name.replace('-', ' ')} is to be done."
        path.write_bytes(data or f"---\nname: {name}\ndescription: {words}\n---\n\n{body}".encode())
        return path

    def session(self, name: str, said: Sequence[str], *, ago: float = 2, **more: Any) -> Path:
        """Write a session that ended *ago* hours ago, and return its transcript."""
        path = self.claude / "projects" / "-home-dev-app" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        records = claude_records(name, said, self.clock.at - timedelta(hours=ago, minutes=5), **more)
        with path.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(record) + "\n" for record in records))
        return path

    def wish(self, name: str, skill: str, **more: Any) -> Path:
        """Write a session in which the user asks for a skill."""
        return self.session(name, ["deploy it", "now the log", f"keep this as a skill: {skill} please"], **more)

    # -- what is known

    def distil(self, session: str) -> dict[str, Any]:
        """Return what `sessions` says of distilling a session."""
        rows = self.app.sessions(host=None, since=None)
        found: dict[str, Any] = next(row["distil"] for row in rows if row["session_id"] == session)
        return found

    def states(self) -> dict[str, str]:
        """Return the outcome of every session."""
        return {row["session_id"]: row["distil"]["state"] for row in self.app.sessions(host=None, since=None)}

    def log(self) -> list[tuple[str, str]]:
        """Return the log of distilling: session and outcome."""
        return [(row["session_id"], row["state"]) for row in self.app.distil_log(host=None, since=None)]

    def live(self) -> list[str]:
        """Return the names of the live skills, as they are on disk."""
        return sorted(path.parent.name for path in self.skills.glob("*/SKILL.md"))

    def text(self, name: str) -> str:
        """Return a skill's SKILL.md."""
        return (self.skills / name / "SKILL.md").read_text(encoding="utf-8")


def patch(skill: str, old: str, new: str, **more: Any) -> dict[str, Any]:
    """Return a patch operation."""
    return {"op": "patch", "skill": skill, "old": old, "new": new, "reason": "it was left out", **more}


def create(skill: str, **more: Any) -> dict[str, Any]:
    """Return a create operation."""
    return {
        "op": "create",
        "skill": skill,
        "description": f"Use when {skill.replace('-', ' ')} is wanted, to do it in the right order.",
        "when_to_use": "",
        "content": f"# {skill}\n\n1. Prepare {skill}.\n2. Do it.\n3. Check it.\n",
        "reason": "it came up again",
        **more,
    }


def reply(*operations: Mapping[str, Any], nothing: str | None = None) -> str:
    """Return a distil reply; operations without evidence cite the first user's row."""
    told = [{"evidence": ["r1"], **operation} for operation in operations]
    return json.dumps({"operations": told, "nothing": nothing})

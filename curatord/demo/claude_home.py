"""Writes the demo's Claude Code home: skills, and a session file per day, with the records that host writes."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from curatord.demo.story import CLAUDE_SKILLS, FIRST_DAY, HOLIDAY, DemoSkill

__all__ = ["write_claude_home", "write_package"]

_SPACE = uuid.UUID("9d6f0d3e-6f3c-5a44-9c50-6f0c1f5a7e11")
_TALK = (
    ("Why does the nightly export take so long?", "It reads the whole table twice; one pass is enough."),
    ("Rename the column in the report.", "Renamed in the query and in the header."),
    ("Is the test for the date parser still flaky?", "It used the local zone. It is pinned to UTC now."),
    ("Draft a reply to the supplier.", "Here is a short one, with the two dates."),
)


def _id(*parts: object) -> str:
    return str(uuid.uuid5(_SPACE, "/".join(map(str, parts))))


class _Session:
    """Collects the records of one session file, each a minute after the one before."""

    def __init__(self, name: str, start: datetime, cwd: str) -> None:
        self.session_id = _id("session", name)
        self.lines: list[str] = []
        self.at = start
        self._cwd = cwd
        self._parent: str | None = None

    def add(self, kind: str, message: dict[str, Any], **more: Any) -> str:
        self.at += timedelta(minutes=1)
        record_id = _id(self.session_id, len(self.lines))
        record = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self._cwd,
            "sessionId": self.session_id,
            "version": "2.1.200",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            "uuid": record_id,
            "timestamp": self.at.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            **more,
        }
        self.lines.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")))
        self._parent = record_id
        return record_id

    def says_user(self, text: str) -> str:
        return self.add("user", {"role": "user", "content": text})

    def says_model(self, *blocks: dict[str, Any]) -> str:
        message_id = "msg_" + _id(self.session_id, "m", len(self.lines)).replace("-", "")[:24]
        usage = {"input_tokens": 1200, "output_tokens": 80}
        message = {"id": message_id, "type": "message", "role": "assistant", "model": "claude-demo"}
        return self.add("assistant", {**message, "content": list(blocks), "stop_reason": None, "usage": usage})

    def calls(self, tool: str, arguments: dict[str, Any], result: str, structured: Any) -> str:
        """Add a tool call of the model and its result; return the call's id."""
        call_id = "toolu_" + _id(self.session_id, "t", len(self.lines)).replace("-", "")[:24]
        self.says_model({"type": "tool_use", "id": call_id, "name": tool, "input": arguments})
        block = {"type": "tool_result", "tool_use_id": call_id, "content": result}
        self.add("user", {"role": "user", "content": [block]}, toolUseResult=structured)
        return call_id


def write_package(folder: Path, skill: DemoSkill, made: datetime) -> None:
    """Write the package of *skill* into *folder*, its files' times as of *made*."""
    folder.mkdir(parents=True)
    header = f"---\nname: {skill.name}\ndescription: {skill.description}\n---\n"
    if skill.broken:
        header = f"---\nname: {skill.name}\n"
    title = skill.name.replace("-", " ").capitalize()
    texts = {"SKILL.md": f"{header}\n# {title}\n\n{skill.body}\n", **skill.files}
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if name.endswith(".sh"):
            path.chmod(0o755)
        os.utime(path, (made.timestamp(), made.timestamp()))


def write_claude_home(home: Path, now: datetime) -> int:
    """Write `.claude` below *home* and return how many sessions it has."""
    skills = home / ".claude" / "skills"
    for skill in CLAUDE_SKILLS:
        write_package(skills / skill.name, skill, now - timedelta(days=skill.born))
    project = home / ".claude" / "projects" / "-srv-shop"
    project.mkdir(parents=True)
    sessions = 0
    for day in range(FIRST_DAY, -1, -1):
        session = _session(day, now, skills)
        if session is None:
            continue
        sessions += 1
        path = project / f"{session.session_id}.jsonl"
        # The newest one is being written: its last line has no end yet.
        half = '{"parentUuid":null,"type":"user","message":{"role":"user","content":"And one mo' if day == 0 else ""
        path.write_text("\n".join(session.lines) + "\n" + half, encoding="utf-8")
        os.utime(path, (session.at.timestamp(), session.at.timestamp()))
    return sessions


def _session(day: int, now: datetime, skills: Path) -> _Session | None:
    """Return the session of *day*: what the story says, or every third day some talk without a skill."""
    doings = list(_doings(day))
    if day in HOLIDAY or (not doings and day % 3):
        return None
    start = now - timedelta(days=day, hours=3)
    session = _Session(f"claude-{day}", start, "/srv/shop")
    question, answer = _TALK[day % len(_TALK)]
    session.says_user(question)
    session.says_model({"type": "text", "text": answer})
    for kind, skill in doings:
        _do(session, kind, skill, skills / skill.name, day)
    return session


def _doings(day: int) -> Iterator[tuple[str, DemoSkill]]:
    for skill in CLAUDE_SKILLS:
        if skill.created_in_session and day == skill.born:
            yield "create", skill
        for kind, days in (("use", skill.uses), ("view", skill.views), ("patch", skill.patches)):
            if day in days:
                yield kind, skill


def _do(session: _Session, kind: str, skill: DemoSkill, folder: Path, day: int) -> None:
    file = str(folder / "SKILL.md")
    if kind == "use" and day % 2:
        # A person's slash command, and the body that the host puts behind it.
        session.says_user(
            f"<command-message>{skill.name}</command-message>\n<command-name>/{skill.name}</command-name>"
        )
        body = f"Base directory for this skill: {folder}\n\n{skill.body}"
        session.add("user", {"role": "user", "content": [{"type": "text", "text": body}]}, isMeta=True)
        session.says_model({"type": "text", "text": "Done, by the skill's steps."})
    elif kind == "use":
        session.says_user(f"Please do the usual: {skill.description}")
        outcome = {"success": True, "commandName": skill.name}
        call_id = session.calls("Skill", {"skill": skill.name}, f"Launching skill: {skill.name}", outcome)
        body = f"Base directory for this skill: {folder}\n\n{skill.body}"
        content = [{"type": "text", "text": body}]
        session.add("user", {"role": "user", "content": content}, isMeta=True, sourceToolUseID=call_id)
        session.says_model({"type": "text", "text": "Done, by the skill's steps."})
    elif kind == "view":
        session.says_user("What does our skill say about this?")
        session.calls("Read", {"file_path": file}, skill.body, {"type": "text", "file": {"filePath": file}})
        session.says_model({"type": "text", "text": "It says to keep it short."})
    elif kind == "patch":
        session.says_user("That step was wrong, please correct the skill.")
        change = {"file_path": file, "old_string": "once", "new_string": "twice"}
        session.calls("Edit", change, f"The file {file} has been updated.", {"filePath": file, "oldString": "once"})
        session.says_model({"type": "text", "text": "Corrected."})
    else:
        session.says_user("Keep this as a skill for next time.")
        written = {"file_path": file, "content": skill.body}
        session.calls("Write", written, f"File created successfully at: {file}", {"type": "create", "filePath": file})
        session.says_model({"type": "text", "text": "Kept."})

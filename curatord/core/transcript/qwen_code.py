"""
Qwen Code's sessions: records with ids in a tree, one a line (formats page, section 9).

Every call and answer stands twice, as a record and as `ui_telemetry`: the latter is not looked into, nor are the copies
in `chat_compression`. A sub-agent's records stand in a file below `subagents/` or carry an agent's name.

The tool `skill` loads a skill; typed as `/name` its body is the user's message, which begins with the folder.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from curatord.core.transcript.calls import Call, may_touch, names_skill
from curatord.core.transcript.events import SessionKind, SessionTally, Sighting
from curatord.core.transcript.gemini_cli import tells_of_new_file
from curatord.core.transcript.record_parser import Carried, RecordParser
from curatord.core.transcript.salvage import decoded, text_of_raw
from curatord.core.values import EventKind

__all__ = ["QwenCodeParser"]

Raw = msgspec.Raw
NOTHING = Raw(b"")

KNOWN_TYPES = frozenset({"user", "assistant", "tool_result", "system"})
KNOWN_SUBTYPES = frozenset({
    "chat_compression", "slash_command", "at_command", "ui_telemetry", "attribution_snapshot", "notification", "cron",
    "mid_turn_user_message", "custom_title", "rewind", "file_history_snapshot", "session_model",
})  # fmt: skip
PASSED_OVER = KNOWN_SUBTYPES - {"cron", "mid_turn_user_message"}
OPEN_SUBTYPES = ("agent_", "goal_", "session_", "file_history")
INJECTED = ("<session_context>", "[SYSTEM", "<system", "<environment", "This is the Qwen Code. We are setting up")
FILE_TOOLS = {
    "read_file": EventKind.VIEW,
    "grep_search": EventKind.VIEW,
    "search_file_content": EventKind.VIEW,
    "edit": EventKind.PATCH,
    "replace": EventKind.PATCH,
    "write_file": EventKind.PATCH,
}
BODY = "Base directory for this skill:"
_BODY = re.compile(r'"output"\s*:\s*"' + BODY + r"\s*([^\\\"]{1,4096})")


class _FunctionCall(msgspec.Struct, gc=False):
    id: str | None = None
    name: str | None = None
    args: Raw = NOTHING


class _Response(msgspec.Struct, gc=False):
    id: str | None = None
    name: str | None = None
    response: Raw = NOTHING


class _Part(msgspec.Struct, gc=False):
    text: Raw = NOTHING
    thought: bool | None = None
    functionCall: _FunctionCall | None = None  # noqa: N815 -- the host's names
    functionResponse: _Response | None = None  # noqa: N815
    inlineData: Raw = NOTHING  # noqa: N815


class _Content(msgspec.Struct, gc=False):
    role: str = ""
    parts: list[_Part] | None = None


class _CallResult(msgspec.Struct, gc=False):
    callId: str | None = None  # noqa: N815
    status: str | None = None


class _Record(msgspec.Struct, gc=False):
    uuid: str | None = None
    sessionId: str | None = None  # noqa: N815
    timestamp: str | float | None = None
    type: str = ""
    subtype: str | None = None
    provenance: str | None = None
    cwd: str | None = None
    version: str | None = None
    message: _Content | None = None
    toolCallResult: _CallResult | None = None  # noqa: N815
    agentId: str | None = None  # noqa: N815
    agentName: str | None = None  # noqa: N815
    subagentId: str | None = None  # noqa: N815
    isSidechain: bool | None = None  # noqa: N815


class _Arguments(msgspec.Struct, gc=False):
    skill: str | None = None
    name: str | None = None
    file_path: str | None = None
    absolute_path: str | None = None
    path: str | None = None
    command: str | None = None
    directory: str | None = None


class _Error(msgspec.Struct, gc=False):
    error: Raw = NOTHING


class _Saved(Carried, array_like=True):
    scheduled: bool = False  # the last prompt was a schedule's


class QwenCodeParser(RecordParser[_Record, _Saved]):
    """The `LineParser` of one session's file, or of a sub-agent's."""

    record = _Record
    by_uuid = True
    carried = _Saved

    def __init__(self, path: str, **how: Any) -> None:
        parts = path.split("/")
        agent = "subagents" in parts[:-1]
        session = parts[-1].partition(".json")[0]
        if agent and parts.index("subagents"):
            session = parts[parts.index("subagents") - 1]
        super().__init__(session, side=agent, **how)

    def ident_of(self, record: _Record) -> bytes:
        """Return nothing: a record has a uuid, or is known by its place."""
        return b""

    def uuid_of(self, record: _Record) -> str | None:
        """Return the record's uuid."""
        return record.uuid

    def tell(self, record: _Record, tally: SessionTally) -> int | None:
        """Count what a person and the model said, called and were answered, and pass over bookkeeping."""
        if (
            record.sessionId != self._session
            or record.cwd != self._cwd
            or record.version != self._version
            or record.agentId
            or record.agentName
            or record.subagentId
            or record.isSidechain
            or self.saved.scheduled
        ):
            return None
        kind = record.type
        if kind == "tool_result":
            return None if self._pending or self._released else 0
        message = record.message
        parts = (message.parts if message is not None else None) or ()
        if kind == "user":
            if self._side or record.provenance not in (None, "real_user"):
                return None
            for part in parts:
                if part.functionResponse is not None:
                    return None
            self._time = str(record.timestamp)
            self._user(parts, tally)
            return 0
        if kind != "assistant":
            return -1 if kind == "system" and record.subtype in PASSED_OVER else None
        for part in parts:
            call = part.functionCall
            if call is not None and (call.name == "skill" or names_skill(call.args)):
                return None
        for part in parts:
            call = part.functionCall
            if call is not None:
                self._called(call.name or "(unnamed)", call.id, tally)
        return self._answered(None, tally)

    def time_of(self, record: _Record) -> str | float | None:
        """Return the record's time."""
        return record.timestamp

    def note(self, record: _Record) -> None:
        """Take session, folder and version."""
        if record.sessionId and record.sessionId != self._session:
            self._in_session(record.sessionId)
        if record.cwd and record.cwd != self._cwd:
            self._in_folder(record.cwd)
        if record.version and record.version != self._version:
            self._of_version(record.version)

    def count(self, record: _Record, tally: SessionTally) -> tuple[int, bool]:
        """Count what was said, called and answered."""
        kind = record.type
        parts = (record.message.parts if record.message is not None else None) or ()
        agent = bool(
            self._side or record.agentId or record.agentName or record.subagentId or record.isSidechain is True
        )
        works = not agent and not self.saved.scheduled
        if kind == "assistant":
            for part in parts:
                if part.functionCall is not None:
                    self._call(part.functionCall, tally)
            return self._answered(None, tally), works
        if kind == "tool_result":
            self._results(record, parts)
            return 0, works
        if kind == "user":
            if any(part.functionResponse is not None for part in parts):
                self._results(record, parts)
                return 0, works
            if record.provenance == "cron":
                self.saved.scheduled = True
            if agent or record.provenance not in (None, "real_user"):
                return 0, False
            self.saved.scheduled = False
            self._user(parts, tally)
            return 0, True
        if kind == "system":
            subtype = record.subtype or ""
            if subtype == "cron":
                self.saved.scheduled = True
            if subtype == "mid_turn_user_message" and not agent:
                self.saved.scheduled = False
                self._said("\n".join(filter(None, map(_text_of, parts))), tally)
                return 0, True
            if subtype not in KNOWN_SUBTYPES and not subtype.startswith(OPEN_SUBTYPES):
                self._findings.unknown_type(f"system/{subtype or '(none)'}")
        else:
            self._findings.unknown_type(kind or "(none)")
        return 0, False

    def _user(self, parts: Any, tally: SessionTally) -> None:
        text = "\n".join(filter(None, (_text_of(part) for part in parts if not part.thought)))
        if text.lstrip().startswith(INJECTED):
            return
        if not text.strip() and not any(bytes(part.inlineData) for part in parts):
            return
        if text.startswith(BODY):
            folder = text[len(BODY) :].partition("\n")[0].strip()
            name = folder.replace("\\", "/").rstrip("/").rpartition("/")[2]
            tally.sightings += self._here(None).skill(name, "slash", folder)
        self._said(text, tally, SessionKind.PERSON)

    # -- calls

    def _call(self, call: _FunctionCall, tally: SessionTally) -> None:
        name = call.name or "(unnamed)"
        if self._called(name, call.id, tally) and (name == "skill" or may_touch(call.args)):
            self._hold(call.id, self._touches(name, call), tally)

    def _touches(self, name: str, call: _FunctionCall) -> list[Sighting]:
        given = decoded(call.args, _Arguments)
        if name == "run_shell_command":
            return self._here(call.id, given.directory).shell(given.command or "")
        here = self._here(call.id)
        if name == "skill":
            return here.skill(given.skill or given.name or "", name)
        path = given.file_path or given.absolute_path or given.path or ""
        return here.file(path, FILE_TOOLS[name], name) if name in FILE_TOOLS else []

    def _results(self, record: _Record, parts: Any) -> None:
        if not (self._pending or self._released):
            return
        status = record.toolCallResult.status if record.toolCallResult is not None else None
        failed = status in ("error", "cancelled")
        answered = [part.functionResponse for part in parts if part.functionResponse is not None]
        for response in answered:
            data = bytes(response.response)
            error = bytes(decoded(data, _Error).error)
            if not response.id:
                continue
            said = data[:8192].decode("utf-8", "replace")
            body = _BODY.search(said) if BODY in said else None
            for _, sighting in self._pending.get(response.id, ()) if body else ():
                if sighting.kind is EventKind.USE:
                    sighting.path = body[1].strip() if body else None
            self._answer(
                response.id,
                failed=failed or error not in (b"", b"null", b'""', b"false"),
                created=tells_of_new_file(said),
            )
        if not answered and record.toolCallResult is not None and record.toolCallResult.callId:
            self._answer(record.toolCallResult.callId, failed=failed)

    def _here(self, ref: str | None, folder: str | None = None) -> Call:
        return Call(at_ms=self._now(), cwd=folder or self._cwd or None, ref=ref)


def _text_of(part: _Part) -> str:
    return text_of_raw(part.text)

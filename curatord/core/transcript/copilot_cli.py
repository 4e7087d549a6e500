"""
GitHub Copilot CLI's events: one a line, in `session-state/<id>/events.jsonl` (formats page, section 10).

A skill shows up to three times: the model's call of the tool `skill`, the event `skill.invoked`, and a message that
carries the body. `skill.invoked` is the use; a call that it belongs to is let go, whichever of the two came first.
Where older versions have no such event the call is the use, once it succeeded.

A message may come in several events (`chunkCount`): those count once by `messageId`. A call stands in its message and
again when it begins; it counts once by `toolCallId`.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from curatord.core.transcript.calls import Call, may_touch, names_skill
from curatord.core.transcript.events import MAX_FOLDER, SessionKind, SessionTally, Sighting
from curatord.core.transcript.record_parser import LONG_ENOUGH, Carried, RecordParser, ends
from curatord.core.transcript.salvage import cut_off, decoded, fit, text_of_raw
from curatord.core.values import EventKind

__all__ = ["CopilotCliParser"]

Raw = msgspec.Raw
NOTHING = Raw(b"")

KNOWN_FAMILIES = frozenset({
    "session", "user", "assistant", "tool", "skill", "subagent", "hook", "system", "abort", "permission", "mcp",
    "model", "elicitation", "exit_plan_mode", "command", "commands", "external_tool", "capabilities", "sampling",
    "user_input", "auto_mode_switch",
})  # fmt: skip
PASSED_OVER = KNOWN_FAMILIES - {"session", "user", "skill"}
NOT_SAID = ("skill-", "agent-", "system", "schedule-", "instruction-")
VIEWS = frozenset({"view", "read", "read_file", "grep", "rg"})
EDITS = frozenset({"edit", "create", "str_replace", "insert", "write", "apply_patch"})
SHELLS = frozenset({"bash", "powershell", "shell"})
_TAIL_ID = re.compile(rb'"id"\s*:\s*"([^"\\]{1,100})"\s*,\s*"timestamp"\s*:\s*"([^"\\]{1,40})"')


class _Request(msgspec.Struct, gc=False):
    toolCallId: str | None = None  # noqa: N815 -- the host's names
    name: str | None = None
    arguments: Raw = NOTHING


class _Context(msgspec.Struct, gc=False):
    cwd: str | None = None


class _Data(msgspec.Struct, gc=False):
    sessionId: str | None = None  # noqa: N815
    copilotVersion: str | None = None  # noqa: N815
    context: _Context | None = None
    content: Raw = NOTHING
    source: Raw = NOTHING
    isAutopilotContinuation: bool | None = None  # noqa: N815
    parentAgentTaskId: str | None = None  # noqa: N815
    messageId: str | None = None  # noqa: N815
    chunkCount: int | None = None  # noqa: N815
    toolRequests: list[_Request] | None = None  # noqa: N815
    parentToolCallId: str | None = None  # noqa: N815
    toolCallId: str | None = None  # noqa: N815
    toolName: str | None = None  # noqa: N815
    arguments: Raw = NOTHING
    success: bool | None = None
    name: str | None = None
    path: str | None = None
    trigger: str | None = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    data: _Data | None = None
    uuid: str | None = msgspec.field(name="id", default=None)  # not in all files
    timestamp: str | float | None = None
    agentId: str | None = None  # noqa: N815


class _Arguments(msgspec.Struct, gc=False):
    skill: str | None = None
    name: str | None = None
    path: str | None = None
    file_path: str | None = None
    command: str | None = None
    input: str | None = None
    patch: str | None = None


class _Saved(Carried, array_like=True):
    # Skills that calls used and no `skill.invoked` has named yet, with the call.
    uses: list[tuple[str, str]] = msgspec.field(default_factory=list)
    scheduled: bool = False  # the last prompt was a schedule's


class CopilotCliParser(RecordParser[_Event, _Saved]):
    """The `LineParser` of one session's events."""

    record = _Event
    by_uuid = True
    carried = _Saved

    def __init__(self, path: str, **how: Any) -> None:
        parts = path.split("/")
        named = parts[-2] if parts[-1].startswith("events.") and len(parts) > 1 else parts[-1].partition(".json")[0]
        super().__init__(named, **how)

    def uuid_of(self, event: _Event) -> str | None:
        """Return the event's id where it is a UUID."""
        ident = event.uuid
        return ident if ident is not None and len(ident) >= 32 else None

    def ident_of(self, event: _Event) -> bytes:
        """Return of an id that is no UUID what else tells the event from another."""
        ident = event.uuid
        if not ident or len(ident) >= 32:
            return b""
        data = event.data or _Data()
        return f"{event.type}\0{ident}\0{event.timestamp}\0".encode("utf-8", "surrogatepass") + b"\0".join(
            (
                (data.messageId or data.toolCallId or data.name or "").encode("utf-8", "surrogatepass"),
                (data.parentToolCallId or "").encode("utf-8", "surrogatepass"),
                b"" if data.chunkCount is None else b"chunk",
                ends(bytes(data.content)),
            )
        )

    def tell(self, event: _Event, tally: SessionTally) -> int | None:
        """Count what a person and the model said, called and were answered, and pass over bookkeeping."""
        kind = event.type
        data = event.data
        if data is None or len(event.uuid or "") < 32:
            return None
        if kind == "tool.execution_complete":
            if self._pending or self._released:
                return None
        elif kind == "tool.execution_start":
            if data.toolName == "skill" or names_skill(data.arguments):
                return None
            self._counted(data.toolName or "(unnamed)", data.toolCallId, tally)
        elif kind == "assistant.message":
            if self._rests(event):
                return None
            requests = data.toolRequests or ()
            for request in requests:
                if request.name == "skill" or names_skill(request.arguments):
                    return None
            for request in requests:
                self._counted(request.name or "(unnamed)", request.toolCallId, tally)
            return self._answered(data.messageId if (data.chunkCount or 0) > 1 else None, tally)
        elif kind == "user.message":
            if data.source is not NOTHING or data.isAutopilotContinuation or self._rests(event):
                return None
            self._time = str(event.timestamp)
            self._said(text_of_raw(data.content), tally, SessionKind.PERSON)
            return 0
        else:
            return -1 if kind.partition(".")[0] in PASSED_OVER else None
        return -1 if self._rests(event) else 0

    def _rests(self, event: _Event) -> bool:
        """Return whether *event* is an agent's or of a schedule, which is no work."""
        data = event.data or _Data()
        return bool(event.agentId or data.parentToolCallId or data.parentAgentTaskId or self.saved.scheduled)

    def time_of(self, event: _Event) -> str | float | None:
        """Return the event's time."""
        return event.timestamp

    def note(self, event: _Event) -> None:
        """Take session, folder and version where the session starts or goes on."""
        if not event.type.startswith("session.") or event.data is None:
            return
        data = event.data
        if event.type == "session.start":
            self._in_session(data.sessionId or "")
        if data.context is not None:
            self._in_folder(data.context.cwd or "")
        self._of_version(data.copilotVersion or "")

    def count(self, event: _Event, tally: SessionTally) -> tuple[int, bool]:
        """Count messages, calls and skills; the rest is bookkeeping."""
        kind = event.type
        data = event.data
        if data is None:
            data = _Data()
        agent = bool(event.agentId or data.parentToolCallId or data.parentAgentTaskId)
        works = not agent and not self.saved.scheduled
        if kind == "assistant.message":
            turns = self._answered(data.messageId if (data.chunkCount or 0) > 1 else None, tally)
            for request in data.toolRequests or ():
                self._call(request.name, request.toolCallId, request.arguments, tally)
            return turns, works
        if kind == "tool.execution_start":
            self._call(data.toolName, data.toolCallId, data.arguments, tally)
            return 0, works
        if kind == "tool.execution_complete":
            if (self._pending or self._released) and data.toolCallId:
                self._ended(data.toolCallId, failed=data.success is False)
            return 0, works
        if kind == "user.message":
            said = not agent and data.isAutopilotContinuation is not True
            source = text_of_raw(data.source)
            said = said and not source.startswith(NOT_SAID)
            self.saved.scheduled = source.startswith("schedule-") or (self.saved.scheduled and not said)
            if said:
                self._said(text_of_raw(data.content), tally, SessionKind.PERSON)
            return 0, said
        if kind == "skill.invoked":
            self._invoked(data, tally)
            return 0, works
        if kind.partition(".")[0] not in KNOWN_FAMILIES:
            self._findings.unknown_type(kind or "(none)")
        return 0, False

    def from_ends(self, head: bytes, tail: bytes) -> _Event:
        """Return what both ends of a line too long to hold show: type and data come first, id and time last."""
        event = fit(cut_off(head), _Event)
        last = list(_TAIL_ID.finditer(tail))
        if last and not event.uuid:
            event.uuid = last[-1][1].decode("utf-8", "replace")
            event.timestamp = last[-1][2].decode("utf-8", "replace")
        return event

    # -- calls and skills

    def _call(self, name: str | None, ident: str | None, arguments: Raw, tally: SessionTally) -> None:
        name = name or "(unnamed)"
        if self._counted(name, ident, tally) and (name == "skill" or may_touch(arguments)):
            self._hold(ident, self._touches(name, ident, arguments), tally)

    def _counted(self, name: str, ident: str | None, tally: SessionTally) -> bool:
        """Count a call; return whether it was new."""
        # It stands in its message and where it begins, so even a short id is one within its session.
        once = f"{self._session}/{ident}" if ident else None
        if once is not None and len(ident or "") < LONG_ENOUGH:
            once = f"{self._session}/{ident:>{LONG_ENOUGH}}"
        return self._called(name, once, tally)

    def _touches(self, name: str, call: str | None, arguments: Raw) -> list[Sighting]:
        text = bytes(arguments)
        if text.startswith(b'"'):
            text = text_of_raw(arguments).encode("utf-8", "replace")
        given = decoded(text, _Arguments)
        here = Call(at_ms=self._now(), cwd=self._cwd or None, ref=call)
        if name == "skill":
            return here.skill(given.skill or given.name or "", name)
        if name in SHELLS:
            return here.shell(given.command or "")
        path = given.path or given.file_path or ""
        if name == "str_replace_editor":  # its `command` says what it does
            name = given.command or ""
        if name == "apply_patch":
            return here.patch(given.input or given.patch or text.decode("utf-8", "replace"), name)
        if name in VIEWS:
            return here.file(path, EventKind.VIEW, name)
        if name not in EDITS:
            return []
        found = here.file(path, EventKind.PATCH, name)
        for sighting in found:
            if name == "create" and (sighting.path or "").endswith("/SKILL.md"):
                sighting.kind = EventKind.CREATE  # the tool refuses a file that is there
        return found

    def _ended(self, call: str, *, failed: bool) -> None:
        waiting = self._pending.get(call)
        if waiting is not None and not failed and waiting[0][1].via == "skill":
            self.saved.uses = [*self.saved.uses[-31:], (waiting[0][1].skill, call)]
        self._answer(call, failed=failed)

    def _invoked(self, data: _Data, tally: SessionTally) -> None:
        name = (data.name or "").strip()
        if not name:
            return
        if data.trigger in (None, "agent-invoked"):
            for at, (skill, call) in enumerate(self.saved.uses):
                if skill == name:  # its call was counted
                    self.saved.uses = self.saved.uses[:at] + self.saved.uses[at + 1 :]
                    if data.path and len(data.path) <= MAX_FOLDER:
                        self._learn(call, data.path, tally)
                    return
            for call, waiting in self._pending.items():
                if waiting[0][1].via == "skill" and waiting[0][1].skill == name:
                    del self._pending[call]
                    break
        via = {"user-invoked": "slash", "context-load": "preload"}.get(data.trigger or "", "skill")
        tally.sightings += Call(at_ms=self._now(), cwd=self._cwd or None, ref=None).skill(name, via, data.path)

    def _learn(self, call: str, path: str, tally: SessionTally) -> None:
        for sighting in reversed(tally.sightings[-8:]):
            if sighting.ref == call:
                sighting.path = path
                return
        tally.amended[call] = path

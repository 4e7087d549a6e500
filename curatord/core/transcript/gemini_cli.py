"""
Gemini CLI's chats: a journal of JSON lines, and the older document that holds the same messages (section 8).

A message is written again whenever it grows, mostly by the calls of its turn and their results: the last state of an
id holds, and each call has its result beside it. So every message counts once by its id, and every call once by its
message and its own id, in whatever state it is first seen to be finished. `$set` with `messages` lists again what is
known; `$rewindTo` takes back what did happen, and happened.

The document is turned into the same lines (`explode`): what was counted of it is known when the newer program goes on
with it as a journal.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from curatord.core.transcript.calls import Call, may_touch, names_skill
from curatord.core.transcript.events import SessionKind, SessionTally, Sighting
from curatord.core.transcript.record_parser import Carried, RecordParser
from curatord.core.transcript.salvage import decoded, decoded_list, text_of_raw
from curatord.core.values import EventKind

__all__ = ["GeminiCliParser", "explode", "tells_of_new_file"]

Raw = msgspec.Raw
NOTHING = Raw(b"")

KNOWN_TYPES = frozenset({"user", "gemini", "info", "warning", "error", "system", "compression", "about", "help"})
INJECTED = ("<session_context>", "[SYSTEM", "<system", "<environment", "This is the Gemini CLI. We are setting up")
FILE_TOOLS = {
    "read_file": EventKind.VIEW,
    "search_file_content": EventKind.VIEW,
    "grep_search": EventKind.VIEW,
    "replace": EventKind.PATCH,
    "edit": EventKind.PATCH,
    "write_file": EventKind.PATCH,
}
FAILED = frozenset({"error", "cancelled", "canceled", "rejected"})
OPEN = frozenset({"validating", "scheduled", "awaiting_approval", "executing", "pending", "in_progress"})
# What the tools answer when the file was not there before.
_CREATED = re.compile(r"\bcreated and wrote to new file\b|\bCreated new file\b")
_ACTIVATED = re.compile(rb"Resources loaded from `([^`\\\n]{1,4096})`")


class _Part(msgspec.Struct, gc=False):
    text: str | None = None
    functionResponse: Raw = NOTHING  # noqa: N815 -- the host's names
    inlineData: Raw = NOTHING  # noqa: N815


class _ToolCall(msgspec.Struct, gc=False):
    id: str | None = None
    name: str | None = None
    args: Raw = NOTHING
    result: Raw = NOTHING
    status: str | None = None
    timestamp: str | float | None = None
    resultDisplay: Raw = NOTHING  # noqa: N815


class _Message(msgspec.Struct, gc=False):
    id: str | None = None
    type: str = ""
    timestamp: str | float | None = None
    content: Raw = NOTHING
    toolCalls: list[_ToolCall] | None = None  # noqa: N815


class _Set(msgspec.Struct, gc=False):
    messages: list[_Message] | None = None
    directories: list[str] | None = None


class _Line(_Message, gc=False):
    sessionId: str | None = None  # noqa: N815
    projectHash: str | None = None  # noqa: N815
    startTime: str | None = None  # noqa: N815
    kind: str | None = None
    directories: list[str] | None = None
    set_: _Set | None = msgspec.field(name="$set", default=None)
    rewind_to: Raw = msgspec.field(name="$rewindTo", default=NOTHING)


class _Arguments(msgspec.Struct, gc=False):
    name: str | None = None
    file_path: str | None = None
    absolute_path: str | None = None
    path: str | None = None
    paths: list[str] | None = None
    include: list[str] | None = None
    command: str | None = None
    directory: str | None = None
    dir_path: str | None = None


class GeminiCliParser(RecordParser[_Line, Carried]):
    """The `LineParser` of one chat's file, or of the lines that `explode` makes of a document."""

    record = _Line
    timeless = True
    carried = Carried

    def __init__(self, path: str, **how: Any) -> None:
        parts = path.split("/")
        # `chats/<parent>/<id>.jsonl` is a sub-agent's; its own header names itself only.
        agent = len(parts) > 2 and parts[-3] == "chats"
        super().__init__(parts[-2] if agent else parts[-1].partition(".json")[0], side=agent, **how)
        self._agent = agent

    def ident_of(self, line: _Line) -> bytes:
        """Return the id of a message with the state it is in, since each writing of it is a record."""
        if line.set_ is not None or not line.type or not line.id:
            return b""
        return _known_as(line)

    def tell(self, line: _Line, tally: SessionTally) -> int | None:
        """Count what a person and the model said and called, and pass over what became of the session meanwhile."""
        changed = line.set_
        if line.type == "user" and changed is None and line.timestamp:
            self._time = str(line.timestamp)
            self._user(line, tally)
            return 0
        if line.type != "gemini":
            if changed is None or changed.messages or changed.directories:
                return None
            return None if line.type or line.timestamp or line.startTime or line.sessionId else -1
        if changed is not None or not line.timestamp:
            return None
        calls = line.toolCalls or ()
        for call in calls:
            if names_skill(call.args) or call.name == "activate_skill":
                return None
        for call in calls:
            name = call.name or "(unnamed)"
            if self._first_time(f"call\0message\0{line.id or ''}\0{call.id or name}".encode()):
                tally.called(name[:200])
        return self._answered(None, tally)

    def time_of(self, line: _Line) -> str | float | None:
        """Return the message's time, or the session's start from its header."""
        return line.timestamp or line.startTime

    def note(self, line: _Line) -> None:
        """Take the session from the header."""
        if line.sessionId and not line.type:
            if not self._agent:
                self._in_session(line.sessionId)
                if line.kind == "subagent":
                    self._driven_by(SessionKind.SUBAGENT)
            if line.directories:
                self._in_folder(line.directories[0])
        elif line.set_ is not None and line.set_.directories:
            self._in_folder(line.set_.directories[0])

    def count(self, line: _Line, tally: SessionTally) -> tuple[int, bool]:
        """Count what is new in a message, or in each of a list of them."""
        if line.set_ is not None:
            turns = 0
            for message in line.set_.messages or ():
                turns += self._listed(message, tally)
            return turns, False
        if line.type:
            return self._message(line, tally), line.type in ("user", "gemini")
        if not line.sessionId and not bytes(line.rewind_to):
            self._findings.unknown_type("(none)")
        return 0, False

    def again(self, line: _Line, tally: SessionTally) -> None:
        """Take the calls that a message has got since it was written before."""
        if line.type == "gemini":
            self._tools(line, tally)
        elif line.set_ is not None:
            for message in line.set_.messages or ():
                self._listed(message, tally)

    # -- messages

    def _listed(self, message: _Message, tally: SessionTally) -> int:
        """Count a message of a list where it is not known; return the turns of the model."""
        if not message.id:
            return 0  # of a list that may stand here again: without an id nothing tells
        if not self._first_time(_known_as(message)):
            self._tools(message, tally)
            return 0
        turns = self._message(message, tally)
        time = self._noted_time(message.timestamp)
        if time:
            work = message.type in ("user", "gemini") and not self._side
            self._clock(self._current, time, turns, work=work)
            return 0
        return turns

    def _message(self, message: _Message, tally: SessionTally) -> int:
        kind = message.type
        if kind == "user":
            self._user(message, tally)
        elif kind == "gemini":
            self._tools(message, tally)
            return self._answered(None, tally)
        elif kind not in KNOWN_TYPES:
            self._findings.unknown_type(kind or "(none)")
        return 0

    def _user(self, message: _Message, tally: SessionTally) -> None:
        if self._side or not self._works:
            return
        data = bytes(message.content)
        if data.startswith(b'"'):
            text, other = text_of_raw(message.content), False
        else:
            parts = decoded_list(message.content, _Part)
            if any(bytes(part.functionResponse) for part in parts):
                return
            text = "\n".join(part.text for part in parts if part.text)
            other = any(bytes(part.inlineData) for part in parts)
        if (text.strip() or other) and not text.lstrip().startswith(INJECTED):
            self._said(text, tally)

    # -- calls

    def _tools(self, message: _Message, tally: SessionTally) -> None:
        for call in message.toolCalls or ():
            name = call.name or "(unnamed)"
            known_as = b"call\0%b\0%b" % (_known_as(message), (call.id or name).encode("utf-8", "surrogatepass"))
            if self._first_time(known_as):
                tally.called(name[:200])
            if call.status in OPEN:
                continue
            # Counted when it was still at work, its events come with the state that says how it ended.
            if call.status in FAILED or not (may_touch(call.args) or name == "activate_skill"):
                continue
            if self._first_time(b"ended\0" + known_as):
                tally.sightings += self._touches(name, call, message)

    def _touches(self, name: str, call: _ToolCall, message: _Message) -> list[Sighting]:
        given = decoded(call.args, _Arguments)
        time = self._time
        self._noted_time(call.timestamp or message.timestamp)
        here = Call(at_ms=self._now(), cwd=self._cwd or None, ref=call.id)
        self._time = time
        if name == "activate_skill":
            folder = _ACTIVATED.search(bytes(call.resultDisplay))
            path = folder[1].decode("utf-8", "replace") if folder else None
            return here.skill(given.name or "", name, path)
        if name == "run_shell_command":
            return here.shell(given.command or "")
        if name == "read_many_files":
            found = []
            for path in (given.paths or given.include or [])[:64]:
                found += here.file(path, EventKind.VIEW, name)
            return found
        if name not in FILE_TOOLS:
            return []
        found = here.file(given.file_path or given.absolute_path or given.path or "", FILE_TOOLS[name], name)
        if tells_of_new_file(bytes(call.result).decode("utf-8", "replace")):
            for sighting in found:
                if sighting.kind is EventKind.PATCH and (sighting.path or "").endswith("/SKILL.md"):
                    sighting.kind = EventKind.CREATE
        return found


def tells_of_new_file(answer: str) -> bool:
    """Return whether the *answer* of a tool says that the file was not there before."""
    if "reated" not in answer:  # a search for words tries each of thousands of places
        return False
    return _CREATED.search(answer) is not None


def _known_as(message: _Message) -> bytes:
    return b"message\0" + (message.id or "").encode("utf-8", "surrogatepass")


class _Document(msgspec.Struct):
    sessionId: str | None = None  # noqa: N815
    startTime: Raw = NOTHING  # noqa: N815
    kind: str | None = None
    directories: Raw = NOTHING
    messages: list[Raw] = []


def explode(data: bytes) -> Iterable[bytes] | None:
    """Return the document *data* as the lines of a journal, None where it is not whole JSON of that shape."""
    try:
        document = msgspec.json.decode(data.lstrip(b"\xef\xbb\xbf"), type=_Document)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if document.sessionId is None:
        return []
    fields: dict[str, Any] = {"sessionId": document.sessionId, "kind": document.kind}
    if bytes(document.startTime):
        fields["startTime"] = document.startTime
    if bytes(document.directories).startswith(b"["):
        fields["directories"] = document.directories
    return itertools.chain([msgspec.json.encode(fields)], map(bytes, document.messages))

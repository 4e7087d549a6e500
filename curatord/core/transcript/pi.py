"""
Pi's sessions: a header and a tree of entries, one a line (formats page, section 4).

All branches of the tree did happen, so order does not matter here. A fork copies entries with their ids; a migration
of an old file writes all anew under new ids, in the same place. Times and contents are the same in either, so those are
what an entry is known by: nothing is counted twice, whichever of the two brought it again.

The model reads SKILL.md by the tool `read`, which is Pi's skill mechanism (also `skill://name` in its fork oh-my-pi);
`/skill:name` puts the body into the user's message.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec

from curatord.core.transcript.calls import Call, may_touch, names_skill
from curatord.core.transcript.events import SessionKind, SessionTally, Sighting
from curatord.core.transcript.record_parser import ENDS, LONG_ENOUGH, Carried, RecordParser, ends
from curatord.core.transcript.salvage import decoded, text_of_raw
from curatord.core.values import EventKind

__all__ = ["PiParser"]

Raw = msgspec.Raw
NOTHING = Raw(b"")

KNOWN_TYPES = frozenset({
    "session", "message", "model_change", "thinking_level_change", "compaction", "branch_summary", "custom",
    "custom_message", "label", "session_info",
})  # fmt: skip
KNOWN_ROLES = frozenset({
    "user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage", "branchSummary", "compactionSummary",
    "system", "developer",
})  # fmt: skip
FILE_TOOLS = {"read": EventKind.VIEW, "grep": EventKind.VIEW, "edit": EventKind.PATCH, "write": EventKind.PATCH}
SHELLS = frozenset({"bash", "powershell"})
_SKILL = re.compile(r'\s*<skill name="([^"\n]{1,200})"(?: location="([^"\n]{1,4096})")?')


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: Raw = NOTHING
    id: str | None = None
    name: str | None = None
    arguments: Raw = NOTHING


class _Message(msgspec.Struct, gc=False):
    role: str = ""
    content: str | list[_Block] | None = None
    toolCallId: str | None = None  # noqa: N815 -- the host's names
    isError: bool | None = None  # noqa: N815
    stopReason: str | None = None  # noqa: N815
    command: str | None = None
    exitCode: int | None = None  # noqa: N815


class _Entry(msgspec.Struct, gc=False):
    type: str = ""
    id: str | None = None
    timestamp: str | float | None = None
    cwd: str | None = None
    version: int | None = None
    parentSession: str | None = None  # noqa: N815
    branchedFrom: str | None = None  # noqa: N815
    message: _Message | None = None


class _Arguments(msgspec.Struct, gc=False):
    path: str | None = None
    file_path: str | None = None
    command: str | None = None


_NO_BLOCK = _Block()


class PiParser(RecordParser[_Entry, Carried]):
    """The `LineParser` of one session's file."""

    record = _Entry
    prompts_are_usual: ClassVar[bool] = True  # whether a prompt changes nothing for what follows
    carried = Carried

    def __init__(self, path: str, **how: Any) -> None:
        super().__init__(_session_in(path), **how)

    def ident_of(self, entry: _Entry) -> bytes:
        """Return time, kind and content: the same in a fork's copy and after a migration."""
        if entry.type == "session":
            return b"session\0" + (entry.id or "").encode("utf-8", "surrogatepass")
        if not entry.timestamp:
            return b""
        message = entry.message
        if message is None:
            return f"{entry.timestamp}\0{entry.type}".encode()
        # The role is left out, since a migration renames some; the call tells results of one moment apart.
        content = message.content
        if not isinstance(content, list):
            told = f"{entry.timestamp}\0{entry.type}\0{message.toolCallId or ''}\0"
            return told.encode() + ends((content or "").encode())
        first = content[0] if content else _NO_BLOCK
        call = message.toolCallId or ""
        told = f"{entry.timestamp}\0{entry.type}\0{call}\0{first.type}\0"
        if len(call) >= LONG_ENOUGH:  # no other result has that, whatever the host left of this one's text
            return told.encode()
        rest = f"{first.id or ''}\0{len(content)}"
        text = bytes(first.text)
        size = len(text)
        if size <= 2 * ENDS:
            return b"%b%b%b" % (told.encode(), text, rest.encode())
        return b"%b%b%b%b%b" % (told.encode(), text[:ENDS], text[-ENDS:], size.to_bytes(5, "big"), rest.encode())

    def tell(self, entry: _Entry, tally: SessionTally) -> int | None:
        """Count what a person and the model said, what it called and what its tools answered."""
        message = entry.message
        if message is None or entry.type != "message":
            return None
        if message.role == "toolResult":
            return None if self._pending or self._released else 0
        if message.role == "user" and self.prompts_are_usual:
            self._time = str(entry.timestamp)
            self._user(message, tally)
            return 0
        content = message.content
        if message.role != "assistant" or not content or isinstance(content, str):
            return None
        calls = [block for block in content if block.type == "toolCall"]
        for block in calls:
            if names_skill(block.arguments):
                return None
        for block in calls:
            self._called(block.name or "(unnamed)", None, tally)
        return self._answered(None, tally)

    def time_of(self, entry: _Entry) -> str | float | None:
        """Return the entry's time."""
        return entry.timestamp

    def note(self, entry: _Entry) -> None:
        """Take session, folder, format and origin from the header."""
        if entry.type == "session":
            self._in_session(entry.id or "")
            self._in_folder(entry.cwd or "")
            self._of_version(f"v{entry.version or 1}")
            origin = entry.parentSession or entry.branchedFrom
            if origin:
                self._child_of(_session_in(origin.replace("\\", "/")))

    def count(self, entry: _Entry, tally: SessionTally) -> tuple[int, bool]:
        """Count messages; all else is bookkeeping or a copy."""
        message = entry.message
        if entry.type != "message" or message is None:
            if entry.type not in KNOWN_TYPES:
                self._findings.unknown_type(entry.type or "(none)")
            return 0, False
        role = message.role
        if role == "assistant":
            return self._model(message, tally), True
        if role == "toolResult":
            if (self._pending or self._released) and message.toolCallId:
                self._answer(message.toolCallId, failed=message.isError is True)
        elif role == "user":
            self._user(message, tally)
        elif role == "bashExecution":
            if message.command and may_touch(message.command.encode("utf-8", "replace")) and not message.exitCode:
                # A user's own command: what it shows is in the context, but no skill was called by it.
                here = Call(at_ms=self._now(), cwd=self._cwd or None, ref=None)
                tally.sightings += here.shell(message.command)
        else:
            if role not in KNOWN_ROLES:
                self._findings.unknown_type(f"message/{role or '(none)'}")
            return 0, False
        return 0, True

    def _model(self, message: _Message, tally: SessionTally) -> int:
        blocks = message.content if isinstance(message.content, list) else []
        if not message.content and message.stopReason == "error":
            return 0  # the provider failed before it said anything
        for block in blocks:
            if block.type == "toolCall":
                name = block.name or "(unnamed)"
                if self._called(name, None, tally) and _touches_skill(block.arguments):
                    self._hold(block.id, self._touches(name, block), tally)
        return self._answered(None, tally)

    def _touches(self, name: str, block: _Block) -> list[Sighting]:
        given = decoded(block.arguments, _Arguments)
        here = Call(at_ms=self._now(), cwd=self._cwd or None, ref=block.id, reading_is_use=True)
        if name in SHELLS:
            return here.shell(given.command or "")
        path = given.path or given.file_path or ""
        if name == "read" and path.startswith("skill://"):
            return here.skill(path[8:].strip("/").partition("/")[0], name)
        return here.file(path, FILE_TOOLS[name], name) if name in FILE_TOOLS else []

    def _user(self, message: _Message, tally: SessionTally) -> None:
        blocks = message.content if isinstance(message.content, list) else []
        content = message.content
        text = content if isinstance(content, str) else "\n".join(text_of_raw(block.text) for block in blocks)
        if not text.strip() and not any(block.type == "image" for block in blocks):
            return
        skill = _SKILL.match(text)
        if skill:
            here = Call(at_ms=self._now(), cwd=self._cwd or None, ref=None)
            tally.sightings += here.skill(skill[1], "slash", skill[2])
        self._said(text, tally, SessionKind.PERSON)


def _touches_skill(arguments: Raw) -> bool:
    return may_touch(arguments) or b"skill://" in bytes(arguments)


def _session_in(path: str) -> str:
    """Return the session's id out of a file's path, `…/<time>_<uuid>.jsonl`."""
    return path.rpartition("/")[2].partition(".jsonl")[0].rpartition("_")[2]

"""
Cursor's agent transcripts: messages without ids and mostly without times (formats page, section 11).

Nothing in them identifies a record, so its place does: keys are chained from the session's id on. Where a record has no
time the file's is taken for its events, marked as estimated; the session's own first and last time stay unknown.

Calls have no ids, and results are often left out. A call waits for the next record: where that brings as many results
as there were calls, they belong to each other in this order; whatever else comes, the calls are taken as done.

The older text form (`CursorTextParser`) has blocks headed `user:` and `assistant:`, calls with their arguments on the
lines behind them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from curatord.core.transcript.calls import Call, may_touch
from curatord.core.transcript.events import SessionKind, SessionTally, Sighting
from curatord.core.transcript.ids import ANCHOR_FIRST, KEY_BYTES, content_key
from curatord.core.transcript.record_parser import Carried, RecordParser, chained_key
from curatord.core.transcript.salvage import decoded, text_of_raw
from curatord.core.values import EventKind

__all__ = ["CursorParser", "CursorTextParser"]

Raw = msgspec.Raw
NOTHING = Raw(b"")

VIEWS = frozenset({"Read", "read_file", "ReadFile", "Grep", "grep", "grep_search"})
EDITS = frozenset({
    "Write", "write", "write_file", "StrReplace", "search_replace", "Edit", "MultiEdit", "edit_file", "EditFile",
    "multi_edit", "reapply",
})  # fmt: skip
DELETES = frozenset({"Delete", "delete_file", "DeleteFile"})
SHELLS = frozenset({"Shell", "Bash", "run_terminal_cmd", "run_terminal_command", "Terminal"})
PATCHES = frozenset({"ApplyPatch", "apply_patch"})
_CONTEXT = re.compile(
    r"<(?:attached_files|open_and_recently_viewed_files|system_reminder|system-reminder|user_info|git_status|"
    r"environment_details|agent_skills|available_skills|rules|additional_data|project_layout|agent_transcripts|"
    r"mcp_instructions|tool_results?|summary|conversation_summary|task_notification|system_notification)\b"
)


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: Raw = NOTHING
    id: str | None = None
    name: str | None = None
    input: Raw = NOTHING
    tool_use_id: str | None = None
    is_error: bool | None = None


class _Message(msgspec.Struct, gc=False):
    content: str | list[_Block] | None = None


class _Record(msgspec.Struct, gc=False):
    role: str = ""
    message: _Message | None = None
    timestamp: str | float | None = None


class _BriefBlock(msgspec.Struct, gc=False):
    type: str
    text: Raw = NOTHING
    id: str | None = None
    name: str | None = None


class _BriefMessage(msgspec.Struct, gc=False):
    content: list[_BriefBlock]


class _Brief(msgspec.Struct, gc=False):
    role: str
    message: _BriefMessage
    timestamp: Raw = NOTHING


class _Arguments(msgspec.Struct, gc=False):
    path: str | None = None
    target_file: str | None = None
    file_path: str | None = None
    command: str | None = None
    working_directory: str | None = None
    patch: str | None = None
    input: str | None = None


_decode_brief = msgspec.json.Decoder(_Brief).decode


class _Saved(Carried, array_like=True):
    begun: bool = False
    unnamed: list[str] = msgspec.field(default_factory=list)  # ids given here to the calls of the message before
    number: int = 0


class CursorParser(RecordParser[_Record, _Saved]):
    """The `LineParser` of one session's file, or of a sub-agent's below it."""

    record = _Record
    carried = _Saved

    def __init__(self, path: str, **how: Any) -> None:
        parts = path.split("/")
        stem = parts[-1].partition(".jsonl")[0].removesuffix(".txt")
        agent = "subagents" in parts[1:-1]
        super().__init__(parts[parts.index("subagents", 1) - 1] if agent else stem, side=agent, **how)
        if not self.saved.begun:
            self.saved.begun = True
            self._last_key = content_key(b"cursor", stem.encode("utf-8", "surrogatepass"))

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """
        Take whole lines with the offset at which each begins.

        Nine of ten are of the model or of a tool, without a time, and touch no skill: those are counted here, and all
        others by `_read`. Both say the same; a test feeds each file through either.
        """
        new, saved, brief = self._new, self.saved, _decode_brief
        key = int.from_bytes(self._last_key, "big")
        for line, offset in lines:
            try:
                record = brief(line)
            except (msgspec.MsgspecError, RecursionError):
                role = ""
            else:
                role = record.role
                blocks = record.message.content
            if (
                (role == "assistant" and b"skill" not in line and b"SKILL.md" not in line) or role == "user"
            ) and self._is_quick(record):
                key = chained_key(key, line, 0)
                new[key.to_bytes(KEY_BYTES, "big")] = None
                tally = self._current.tally
                tally.records += 1
                if saved.unnamed:
                    saved.unnamed = []
                if role == "assistant":
                    for block in blocks:
                        if block.type != "tool_use":
                            continue
                        if self._called(block.name or "(unnamed)", block.id, tally) and not block.id:
                            self._unnamed_call()
                    self._answered(None, tally)
                elif not blocks or blocks[0].type != "tool_result":
                    self._prompt(blocks, tally)
                continue
            self._last_key = key.to_bytes(KEY_BYTES, "big") if key else b""
            self._read(line, offset)
            key = int.from_bytes(self._last_key, "big")
        self._last_key = key.to_bytes(KEY_BYTES, "big") if key else b""

    def _is_quick(self, record: _Brief) -> bool:
        """Return whether *record* needs no more than counting: nothing waits, and there are no times."""
        if self._pending or self._time or record.timestamp is not NOTHING:
            return False
        return self._quick and len(self._heads) >= ANCHOR_FIRST

    def ident_of(self, record: _Record) -> bytes:
        """Return nothing: a record is known by its place."""
        return b""

    def time_of(self, record: _Record) -> str | float | None:
        """Return the record's time, which few versions write."""
        return record.timestamp

    def note(self, record: _Record) -> None:
        """Take nothing: the session is the file's, its folder is not told."""

    def count(self, record: _Record, tally: SessionTally) -> tuple[int, bool]:
        """Count a message and its calls."""
        if record.role not in ("user", "assistant"):
            if record.role not in ("system", "tool"):
                self._findings.unknown_type(record.role or "(none)")
            return 0, False
        content = record.message.content if record.message is not None else None
        blocks = content if isinstance(content, list) else []
        if record.role == "assistant":
            if self.saved.unnamed:
                self._results([])
            for block in blocks:
                if block.type == "tool_use":
                    self._call(block, record, tally)
            return self._answered(None, tally), True
        results = [block for block in blocks if block.type == "tool_result"]
        if self.saved.unnamed or (results and self._pending):
            self._results(results)
        if not results:
            self._prompt(content if isinstance(content, str) else blocks, tally)
        return 0, True

    def _prompt(self, said: str | Sequence[_Block | _BriefBlock], tally: SessionTally) -> None:
        """Count what stands under the name of the user and is no result, where a person said it."""
        text, other = said if isinstance(said, str) else "", False
        if not isinstance(said, str):
            if any(block.type == "tool_result" for block in said):
                return
            text = "\n".join(text_of_raw(block.text) for block in said)
            other = any(block.type not in ("text", "thinking") for block in said)
        if self._is_said(text, other=other):
            self._said(text, tally, SessionKind.PERSON)

    def _is_said(self, text: str, *, other: bool) -> bool:
        if self._side:
            return False
        text = text.strip()
        return "<user_query>" in text or (bool(text or other) and _CONTEXT.match(text) is None)

    def _call(self, block: _Block, record: _Record, tally: SessionTally) -> None:
        name = block.name or "(unnamed)"
        if not self._called(name, block.id, tally):
            return
        ident = block.id
        if not ident:
            ident = self._unnamed_call()
        if may_touch(block.input):
            given = decoded(block.input, _Arguments)
            self._hold(ident, touches(name, given, self._here(ident, record.timestamp), block.input), tally)

    def _unnamed_call(self) -> str:
        """Return an id for a call that has none."""
        self.saved.number += 1
        ident = f"#{self.saved.number}"
        self.saved.unnamed = [*self.saved.unnamed[-255:], ident]
        return ident

    def _results(self, results: list[_Block]) -> None:
        unnamed, self.saved.unnamed = self.saved.unnamed, []
        for result in results:
            if result.tool_use_id and result.tool_use_id in self._pending:
                self._answer(result.tool_use_id, failed=result.is_error is True)
        if not unnamed:
            return
        failed = [result.is_error is True for result in results] if len(results) == len(unnamed) else []
        for at, ident in enumerate(unnamed):
            if ident in self._pending:
                self._answer(ident, failed=bool(failed) and failed[at])

    def _here(self, ref: str, time: object) -> Call:
        at = self._now() if time and self._time else self._mtime_ms or None
        return Call(at_ms=at, cwd=self._cwd or None, ref=ref, reading_is_use=True, estimated=not time)

    def settle(self) -> None:
        """Take calls that wait as done."""
        self.saved.unnamed = []
        super().settle()


def touches(name: str, given: _Arguments, here: Call, raw: Raw | bytes = b"") -> list[Sighting]:
    """Return what a call of the tool *name* does to skills."""
    if name in SHELLS:
        return here.shell(given.command or "")
    if name in PATCHES:
        text = given.patch or given.input or (text_of_raw(raw) if isinstance(raw, Raw) else "")
        return here.patch(text, name)
    path = given.path or given.target_file or given.file_path or ""
    if name in VIEWS:
        return here.file(path, EventKind.VIEW, name)
    if name in EDITS:
        return here.file(path, EventKind.PATCH, name)
    if name not in DELETES:
        return []
    found = here.file(path, EventKind.PATCH, name)
    for sighting in found:
        if (sighting.path or "").endswith("/SKILL.md"):
            sighting.kind = EventKind.DELETE
    return found


# -- the text form


class _TextSaved(_Saved, array_like=True):
    role: str = ""  # of the block that lines belong to, empty where that is known already
    said: bool = False  # that block was counted as a user's turn
    tool: str = ""  # whose arguments the lines are
    arguments: dict[str, str] = msgspec.field(default_factory=dict)


_TOOL = re.compile(rb"^\[Tool call\]\s*(\S[^\r\n]{0,199})")
_ARGUMENT = re.compile(r"^(path|target_file|file_path|command|patch|input)\s*:\s*(.{1,8192})", re.DOTALL)


class CursorTextParser(RecordParser[_Record, _TextSaved]):
    """The `LineParser` of the older text form: a block is a record."""

    record = _Record
    carried = _TextSaved

    def __init__(self, path: str, **how: Any) -> None:
        parts = path.split("/")
        stem = parts[-1].partition(".txt")[0]
        agent = "subagents" in parts[1:-1]
        super().__init__(parts[parts.index("subagents", 1) - 1] if agent else stem, side=agent, **how)
        if not self.saved.begun:
            self.saved.begun = True
            self._last_key = content_key(b"cursor-text", stem.encode("utf-8", "surrogatepass"))

    def ident_of(self, record: _Record) -> bytes:
        """Return nothing: a record is known by its place."""
        return b""

    def time_of(self, record: _Record) -> None:
        """Return nothing: there are no times."""

    def note(self, record: _Record) -> None:
        """Take nothing."""

    def count(self, record: _Record, tally: SessionTally) -> tuple[int, bool]:
        """Count the head of a block."""
        self.saved.said = False
        self.saved.role = record.role
        return (self._answered(None, tally) if record.role == "assistant" else 0), False

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """Take lines; a head begins a block, all others belong to the one before."""
        for line, _ in lines:
            if line in (b"user:", b"assistant:"):
                self._finish_call()
                self.saved.role = ""
                self._take(_Record(role=line[:-1].decode("ascii")), line)
            elif self.saved.role:
                self._line(line)

    def settle(self) -> None:
        """Take the last call as done."""
        self._finish_call()
        super().settle()

    @property
    def waiting(self) -> bool:
        """Whether a call's arguments may go on."""
        return bool(self.saved.tool) or super().waiting

    def _line(self, line: bytes) -> None:
        saved = self.saved
        if line.startswith(b"["):
            self._finish_call()
            tool = _TOOL.match(line)
            if tool:
                saved.tool = tool[1].decode("utf-8", "replace").strip()
            return
        if saved.tool:
            argument = _ARGUMENT.match(line.decode("utf-8", "replace"))
            if argument and argument[1] not in saved.arguments:
                saved.arguments = {**saved.arguments, argument[1]: argument[2].strip()}
            return
        if saved.role == "user" and not saved.said and not self._side:
            text = line.decode("utf-8", "replace")
            if _CONTEXT.match(text) is None and not text.startswith("</"):
                saved.said = True
                self._said(text, self._current.tally)

    def _finish_call(self) -> None:
        saved = self.saved
        name, saved.tool = saved.tool, ""
        arguments, saved.arguments = saved.arguments, {}
        if not name or saved.role != "assistant":
            return
        tally = self._current.tally
        self._called(name, None, tally)
        if any(may_touch(value.encode("utf-8", "replace")) for value in arguments.values()):
            here = Call(at_ms=self._mtime_ms or None, cwd=None, ref=None, reading_is_use=True, estimated=True)
            tally.sightings += touches(name, _Arguments(**arguments), here)

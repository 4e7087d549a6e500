"""
Codex' rollouts: one thread a file, one record a line (formats page, section 3).

What can go wrong, and where it is met here:

- Every prompt, answer and command stands twice, as a `response_item` and as an `event_msg`: only the former count,
  the latter give outcomes.
- A fork copies its parent's lines with new times, the parent's `session_meta` among them: keys leave the line's time
  out, and a `session_meta` is keyed by its id, so what follows it in the copy is chained as it was in the original.
- A sub-agent is a file of its own that names its root thread (newer) or only its parent (older): the first counts for
  the root's session, the second is a session of its own that is no work and has no turns of a user.
- `compacted` holds copies of what was said; it is not looked into. Rolled back turns stay, and did happen.
- No skill tool: a mention puts `<skill>` into a user's message, and else the model reads SKILL.md by shell: both uses.
- The oldest files have bare items without envelope and time. Their times are those of the header, marked as estimated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from curatord.core.path_text import join
from curatord.core.transcript.calls import Call, may_touch
from curatord.core.transcript.codex_records import (
    Item,
    Outcome,
    Record,
    Shell,
    exit_failed,
    output_failed,
    parts_of,
)
from curatord.core.transcript.events import SessionKind, SessionTally, Sighting
from curatord.core.transcript.ids import ANCHOR_FIRST, KEY_BYTES, Guard
from curatord.core.transcript.record_parser import LONG_ENOUGH, Carried, RecordParser, chained_key, key_of
from curatord.core.transcript.salvage import decoded, text_of_raw

__all__ = ["CodexParser"]

ABOUT = frozenset({
    "session_meta", "turn_context", "compacted", "world_state", "token_usage_record", "retained_context",
    "inter_agent_communication", "inter_agent_communication_metadata", "security_risk_score", "realtime_item",
})  # fmt: skip
QUICK = frozenset({"response_item", "event_msg"})
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
ITEMS = frozenset({
    "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
    "local_shell_call", "local_shell_call_output", "web_search_call", "tool_search_call", "tool_search_output",
    "tool_search_call_output", "image_generation_call", "agent_message", "additional_tools", "compaction",
    "compaction_summary", "context_compaction", "ghost_snapshot", "item_reference", "other",
})  # fmt: skip
EVENTS = frozenset({
    "user_message", "agent_message", "agent_message_delta", "agent_reasoning", "agent_reasoning_raw_content",
    "agent_reasoning_section_break", "token_count", "task_started", "task_complete", "turn_started", "turn_complete",
    "turn_aborted", "exec_command_begin", "exec_command_end", "patch_apply_begin", "patch_apply_end",
    "mcp_tool_call_begin", "mcp_tool_call_end", "web_search_begin", "web_search_end", "context_compacted",
    "thread_rolled_back", "sub_agent_activity", "entered_review_mode", "exited_review_mode", "item_started",
    "item_completed", "thread_settings_applied", "thread_goal_updated", "thread_name_updated", "undo_started",
    "undo_completed", "view_image_tool_call", "image_generation_end", "guardian_assessment", "error", "warning",
    "stream_error", "dynamic_tool_call_request", "dynamic_tool_call_response", "plan_update", "turn_diff",
    "background_event", "session_configured", "model_reroute", "deprecation_notice", "raw_response_item",
})  # fmt: skip
# Section 3.6: what a message of role user begins with when no person wrote it.
INJECTED = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>",
    "<permissions instructions>", "<skills_instructions>", "<skill>", "<turn_aborted>", "<subagent_notification>",
    "<goal_context>", "<codex_internal_context", "<user_shell_command>", "<collaboration_mode>", "<personality_spec>",
)  # fmt: skip
PAYLOAD = b'"payload":'
_NO_HOUR: list[Any] = ["~", "", 0]
_SKILL = re.compile(r"\s*<skill>\s*<name>\s*([^<\n]{1,200}?)\s*</name>(?:\s*<path>\s*([^<\n]{1,4096}?)\s*</path>)?")
_FILE_ID = re.compile(r"([0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})$")
_PROGRAMS = ("exec", "mcp")


class _Saved(Carried, array_like=True):
    owned: bool = False  # the file's own session_meta was met
    program: bool = False
    bare: bool = False  # the oldest form: no time but the header's


class CodexParser(RecordParser[Record, _Saved]):
    """The `LineParser` of one rollout."""

    record = Record
    carried = _Saved

    def __init__(
        self, path: str, *, state: bytes, fresh: bool, guard: Guard, before: Guard, now_ms: int, mtime_ms: int = 0
    ) -> None:
        stem = path.rpartition("/")[2].partition(".jsonl")[0].removesuffix(".json")
        named = _FILE_ID.search(stem)
        super().__init__(
            named[1] if named else stem,
            state=state,
            fresh=fresh,
            guard=guard,
            before=before,
            now_ms=now_ms,
            mtime_ms=mtime_ms,
        )

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """
        Take whole lines with the offset at which each begins.

        Nine of ten records are a further item or event in the same hour: those are counted here, in locals, and all
        others by `_take`. Both say the same; a test feeds each file through either.
        """
        decode = self._decode
        quick = self._guard is None and self._before is None
        new, seen, calls = self._new, self._seen, self._calls
        hour_from, hour_to = "", ""
        tally = self._current.tally
        names = tally.tool_calls
        work_hour = rest_hour = _NO_HOUR
        last_key = int.from_bytes(self._last_key, "big")
        for line, offset in lines:
            try:
                record = decode(line)
            except (msgspec.MsgspecError, RecursionError):
                self._last_key = last_key.to_bytes(KEY_BYTES, "big")
                self._odd(line, offset)
                last_key = int.from_bytes(self._last_key, "big")
                hour_to = ""
                continue
            time = record.timestamp
            item = record.payload
            type_ = record.type
            if (
                item is not None
                and time is not None
                and hour_from <= time < hour_to
                and len(time) == 24
                and time[23] == "Z"
                and type_ in QUICK
            ):
                hour = rest_hour
                turns = 0
                is_item = type_ == "response_item"
                ident = (item.id or item.call_id) if is_item else None
                if ident is not None and len(ident) >= LONG_ENOUGH:
                    key = key_of(f"{item.type}\0{ident}".encode("utf-8", "surrogatepass"))
                    if key in new or key in seen:
                        key = b""
                    else:
                        last_key = int.from_bytes(key, "big")
                else:
                    at = line.find(PAYLOAD, 0, 400)
                    last_key = chained_key(last_key, line, at if at > 0 else 0)
                    key = last_key.to_bytes(KEY_BYTES, "big")
                if key:
                    if not is_item:
                        if self._pending or self._released or item.type not in EVENTS:
                            self._event(item)
                    else:
                        kind = item.type
                        hour = work_hour
                        if kind == "function_call":
                            arguments = bytes(item.arguments)
                            ident = item.call_id
                            name = item.name
                            if (
                                ident is None
                                or len(ident) < LONG_ENOUGH
                                or ident in calls
                                or name not in names
                                or b"SKILL.md" in arguments
                                or b"/skill" in arguments
                                or b"\\skill" in arguments
                            ):
                                self._time = time
                                self._item(item, tally)
                            else:
                                calls[ident] = None
                                names[name] += 1
                        elif kind != "reasoning" and not (kind in OUTPUTS and not (self._pending or self._released)):
                            self._time = time
                            turns, work = self._item(item, tally)
                            if not work:
                                hour = rest_hour
                    new[key] = None
                    tally.records += 1
                    if time > hour[1]:
                        hour[1] = time
                    if time < hour[0]:
                        hour[0] = time
                    if turns:
                        hour[2] += turns
                    continue
            self._last_key = last_key.to_bytes(KEY_BYTES, "big")
            self._take(record, line)
            last_key = int.from_bytes(self._last_key, "big")
            if quick and time == self._time and len(self._heads) >= ANCHOR_FIRST:
                tally = self._current.tally
                names = tally.tool_calls
                if time[:13] != hour_from or not hour_to:
                    hour_from = time[:13]
                    hour_to = hour_from + "~"
                account = self._current
                rest_hour = account.rest.setdefault(hour_from, ["~", "", 0])
                works = not self._side and self._works
                work_hour = account.work.setdefault(hour_from, ["~", "", 0]) if works else rest_hour
            else:
                hour_to = ""
        self._last_key = last_key.to_bytes(KEY_BYTES, "big")

    def ident_of(self, record: Record) -> bytes:
        """Return the id of a thread, turn, message or call with what it is the id of."""
        item = record.payload
        kind = record.type
        if item is None:
            if kind == "" and record.id and record.timestamp:
                return b"session_meta\0" + _bytes(record.id)
            item = record
        elif kind == "session_meta":
            return b"session_meta\0" + _bytes(item.id or item.session_id or "")
        elif kind == "turn_context":
            ident = item.turn_id
            return b"turn_context\0" + _bytes(ident) if ident and len(ident) >= LONG_ENOUGH else b""
        elif kind != "response_item":
            return b""
        ident = item.id or item.call_id
        if not ident or len(ident) < LONG_ENOUGH:
            return b""
        return _bytes(item.type) + b"\0" + _bytes(ident)

    def content_at(self, line: bytes) -> int:
        """Return where the line's payload begins: its own time, which a fork gives anew, stands before it."""
        return max(line.find(PAYLOAD, 0, 400), 0)

    def time_of(self, record: Record) -> str | None:
        """Return the line's time."""
        return record.timestamp

    def note(self, record: Record) -> None:
        """Take thread, folder and version from the file's own header, and the folder of each turn."""
        kind = record.type
        item = record.payload
        if kind == "turn_context":
            if item is not None and item.cwd:
                self._in_folder(item.cwd)
        elif kind == "session_meta":
            if item is not None:
                self._of_version(item.cli_version or "")
                if not self.saved.owned:
                    self._owned_by(item)
        elif kind == "" and item is None and record.id and not self.saved.owned:
            self.saved.owned = self.saved.bare = True
            self._in_session(record.id)

    def count(self, record: Record, tally: SessionTally) -> tuple[int, bool]:
        """Count what the model was told and said; of events only outcomes."""
        kind = record.type
        item = record.payload
        if kind == "response_item" and item is not None:
            return self._item(item, tally)
        if kind == "event_msg" and item is not None:
            self._event(item)
        elif item is None and kind in ITEMS:
            return self._item(record, tally)
        elif kind not in ABOUT and not (kind == "" and (record.record_type or record.id)):
            self._findings.unknown_type(kind or "(none)")
        return 0, False

    # -- the thread

    def _owned_by(self, meta: Item) -> None:
        self.saved.owned = True
        thread = meta.id or meta.session_id or self._session
        source = bytes(meta.source)
        agent = source.startswith(b"{") and b'"subagent"' in source
        if agent and meta.session_id and meta.session_id != thread:
            self._in_session(meta.session_id)
            self._beside()
        else:
            self._in_session(thread)
            self._child_of(meta.parent_thread_id or _parent_in(source) or meta.forked_from_id)
            if agent:
                self._driven_by(SessionKind.SUBAGENT)
            if b"memory_consolidation" in source:
                self._driven_by(SessionKind.REVIEWER)
        self.saved.program = text_of_raw(meta.source).startswith(_PROGRAMS)
        self._in_folder(meta.cwd or "")

    # -- items

    def _item(self, item: Item, tally: SessionTally) -> tuple[int, bool]:
        kind = item.type
        works = self._works
        if kind == "message":
            if item.role == "assistant":
                return self._answered(item.id, tally), works
            if item.role == "user":
                return 0, self._user(item, tally) and works
            return 0, False
        if kind in ("function_call", "custom_tool_call"):
            self._call(item.name or "(unnamed)", item, tally)
        elif kind in OUTPUTS:
            call = item.call_id
            if call and (call in self._pending or call in self._released):
                self._answer(call, failed=output_failed(item.output))
        elif kind in ("local_shell_call", "web_search_call"):
            self._call(kind, item, tally)
        elif kind not in ITEMS:
            self._findings.unknown_type(f"response_item/{kind or '(none)'}")
        return 0, works

    def _user(self, item: Item, tally: SessionTally) -> bool:
        """Count a prompt and what skills are in the message; return whether a person or program said it."""
        parts = parts_of(item.content)
        texts = [part.text for part in parts if part.text]
        first = next((text.lstrip() for text in texts if not text.isspace()), "")
        if first.startswith(INJECTED):
            for text in texts:
                skill = _SKILL.match(text)
                if skill:
                    tally.sightings += self._a_call(None).skill(skill[1], "mention", skill[2])
            return False
        if self._side or not self._works or not (first or parts):
            return False
        self._said("\n".join(texts), tally, SessionKind.PROGRAM if self.saved.program else SessionKind.PERSON)
        return True

    def _call(self, name: str, item: Item, tally: SessionTally) -> None:
        call = item.call_id or item.id
        if not self._called(name, call, tally):
            return
        if may_touch(bytes(item.arguments) or bytes(item.input) or bytes(item.action)):
            self._hold(call, self._touches(name, item, call), tally)

    def _touches(self, name: str, item: Item, call: str | None) -> list[Sighting]:
        given = Shell()
        text = ""
        if bytes(item.action):
            given = decoded(item.action, Shell)
        else:
            text = text_of_raw(item.arguments) or text_of_raw(item.input)
            if text.lstrip().startswith("{"):
                given = decoded(text, Shell)
                text = given.input or given.patch or ""
        here = self._a_call(call, given.workdir or given.working_directory)
        if "*** Begin Patch" in text:
            return here.patch(text, name)
        command = given.cmd or given.command
        return here.shell(command) if command else []

    def _event(self, item: Item) -> None:
        kind = item.type
        if kind not in EVENTS and not kind.startswith("collab_"):
            self._findings.unknown_type(f"event_msg/{kind or '(none)'}")
        elif not (self._pending or self._released):
            return
        elif kind in ("exec_command_end", "patch_apply_end"):
            if item.call_id and exit_failed(item):
                self._answer(item.call_id, failed=True)
        elif kind == "item_completed":
            told = decoded(item.item, Outcome)
            if told.id and told.type in ("CommandExecution", "FileChange") and exit_failed(told):
                self._answer(told.id, failed=True)

    def _a_call(self, ref: str | None, folder: str | None = None) -> Call:
        cwd = join(self._cwd or None, folder) if folder else self._cwd or None
        return Call(at_ms=self._now(), cwd=cwd, ref=ref, reading_is_use=True, estimated=self.saved.bare)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _parent_in(source: bytes) -> str | None:
    """Return the thread that a sub-agent's *source* names."""
    found = re.search(rb'"parent_thread_id"\s*:\s*"([^"\\]{1,100})"', source)
    return found[1].decode("ascii", "replace") if found else None

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
from hashlib import blake2b
from zlib import crc32

import msgspec

from curatord.core.path_text import join
from curatord.core.transcript.calls import Call, may_touch
from curatord.core.transcript.codex_records import (
    EVENTS,
    NO_LINE,
    Called,
    Event,
    Item,
    Message,
    Other,
    Outcome,
    Record,
    Shell,
    decode_line,
    exit_failed,
    output_failed,
    parts_of,
)
from curatord.core.transcript.events import SessionKind, SessionTally, Sighting
from curatord.core.transcript.ids import KEY_BYTES, Guard
from curatord.core.transcript.record_parser import (
    ENDS,
    LONG_ENOUGH,
    Carried,
    RecordParser,
    chained_key,
    halves,
    packed,
    unpacked,
)
from curatord.core.transcript.salvage import decoded, text_of_raw

__all__ = ["CodexParser"]

ABOUT = frozenset({
    "session_meta", "turn_context", "compacted", "world_state", "token_usage_record", "retained_context",
    "inter_agent_communication", "inter_agent_communication_metadata", "security_risk_score", "realtime_item",
})  # fmt: skip
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
ITEMS = frozenset({
    "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
    "local_shell_call", "local_shell_call_output", "web_search_call", "tool_search_call", "tool_search_output",
    "tool_search_call_output", "image_generation_call", "agent_message", "additional_tools", "compaction",
    "compaction_summary", "context_compaction", "ghost_snapshot", "item_reference", "other",
})  # fmt: skip
OUTCOMES = frozenset({"exec_command_end", "patch_apply_end", "item_completed"})
# Section 3.6: what a message of role user begins with when no person wrote it.
INJECTED = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>",
    "<permissions instructions>", "<skills_instructions>", "<skill>", "<turn_aborted>", "<subagent_notification>",
    "<goal_context>", "<codex_internal_context", "<user_shell_command>", "<collaboration_mode>", "<personality_spec>",
)  # fmt: skip
PAYLOAD = b'"payload":'
LONG_LINE = 1024  # bytes of a line from which on a quicker look at it pays
_OUTPUT = re.compile(
    rb'\{"timestamp":"([0-9T:.-]{23}Z)","type":"response_item",'
    rb'"payload":\{"type":"((?:function|custom_tool)_call_output)","call_id":"([\w-]{16,64})","output":"'
).match
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

        Nine of ten records are a further item or event of the same hour, not before the last, of which little matters:
        those are counted here, in locals, and all others by `_read`. Both say the same; a test feeds each file through
        either.
        """
        new, seen, calls, messages = self._new, self._seen, self._calls, self._messages
        low, high, tally, work, rest, waiting = self._bearings()
        names = tally.tool_calls
        key_high, key_low = halves(self._last_key)
        records = turns = 0
        stamp = work_first = work_last = rest_first = rest_last = ""
        for line, offset in lines:
            size = len(line)
            if size > LONG_LINE and line.rfind(b'"', LONG_LINE // 2, size - 4) < 0 and not waiting:
                key, stamp = _plain_output(line)
                if low <= stamp < high and key not in new and key not in seen:
                    new[key] = None
                    key_high, key_low = unpacked(key)
                    records += 1
                    low = work_last = stamp
                    work_first = work_first or stamp
                    continue
            try:
                record = decode_line(line)
            except (msgspec.MsgspecError, RecursionError):
                record = NO_LINE
            stamp = record.timestamp
            if low <= stamp < high and stamp[-1] == "Z":
                item = record.payload
                kind = type(item)
                if kind is Event or kind is Other:
                    if not waiting or kind is Other or item.type not in OUTCOMES:
                        at = line.find(PAYLOAD, 0, 400)
                        size -= at
                        if line[-1] == 10:
                            size -= 1
                        if size <= ENDS:
                            told = line[at : at + size]
                            key_high, key_low = crc32(told, key_low), crc32(told, key_high ^ size)
                        else:
                            end = at + size
                            told = line[at : at + ENDS]
                            key_high, key_low = crc32(told, key_low), crc32(line[end - ENDS : end], key_high ^ size)
                        new[packed(key_high, key_low)] = None
                        records += 1
                        low = rest_last = stamp
                        rest_first = rest_first or stamp
                        continue
                else:
                    ident = item.id or item.call_id or ""
                    if kind is Called:
                        if (
                            item.name not in names
                            or item.call_id in calls
                            or b"skill" in line  # and see there whether it is in a path
                            or b"SKILL.md" in line
                        ):
                            ident = None
                    elif kind is Message:
                        if item.id in messages:
                            ident = None
                    elif waiting and (item.call_id in self._pending or item.call_id in self._released):
                        ident = None
                    if ident is not None:
                        if len(ident) >= LONG_ENOUGH:
                            key = blake2b(kind.prefix + ident.encode(), digest_size=KEY_BYTES).digest()
                        else:
                            before = key_high << 32 | key_low
                            key = chained_key(before, line, self.content_at(line)).to_bytes(KEY_BYTES, "big")
                        if key not in new and key not in seen:
                            new[key] = None
                            key_high, key_low = unpacked(key)
                            records += 1
                            if kind is Message and item.role != "assistant":
                                self._time = stamp
                                if item.role != "user" or not self._user(item, tally):
                                    low = rest_last = stamp
                                    rest_first = rest_first or stamp
                                    continue
                                if not self._works:  # from here on
                                    high = ""
                            low = work_last = stamp
                            work_first = work_first or stamp
                            if kind is Called:
                                calls[item.call_id] = None
                                names[item.name] += 1
                            elif kind is Message and item.role == "assistant":
                                turns += self._answered(item.id, tally)
                            continue
            if records:
                self._add_up(records, turns, (work, work_first, work_last), (rest, rest_first, rest_last))
                self._last_key = packed(key_high, key_low)
                records = turns = 0
                work_first = work_last = rest_first = rest_last = ""
            self._read(line, offset)
            low, high, tally, work, rest, waiting = self._bearings()
            names = tally.tool_calls
            key_high, key_low = halves(self._last_key)
        if records:
            self._add_up(records, turns, (work, work_first, work_last), (rest, rest_first, rest_last))
            self._last_key = packed(key_high, key_low)

    def _at_work(self) -> bool:
        return self._works and not self._side

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

    def _user(self, item: Item | Message, tally: SessionTally) -> bool:
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


def _plain_output(line: bytes) -> tuple[bytes, str]:
    """
    Return key and time of a long *line* that is a call's output without a single quote in it; else a time of no hour.

    The bytes before and behind such an output say all that matters, and nothing can hide in it: another record, a
    further field, and an end that was cut off would each show a quote. So the output need not be looked through. (A
    fault within it, such as a bit that turned over, is not seen then, and the record is counted.)
    """
    head = _OUTPUT(line)
    if head is None or not line.endswith((b'"}}', b'"}}\n')) or b"\0" in line:
        return b"", "~"
    if line.rfind(b'"', head.end(), LONG_LINE) >= 0 or line[-5 if line[-1] == 10 else -4] in b'\\"':
        return b"", "~"
    time, kind, call = head.groups()
    return blake2b(b"%b\0%b" % (kind, call), digest_size=KEY_BYTES).digest(), time.decode()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _parent_in(source: bytes) -> str | None:
    """Return the thread that a sub-agent's *source* names."""
    found = re.search(rb'"parent_thread_id"\s*:\s*"([^"\\]{1,100})"', source)
    return found[1].decode("ascii", "replace") if found else None

"""
DSH's sessions: a header and a log of numbered events, one a line (formats page, section 6).

What can go wrong, and where it is met here:

- Streamed text, the queue of prompts and the model's own list of calls repeat what stands in rows of their own: only
  `user/message`, `assistant/message`, `tool/call` and `tool/result` are looked into.
- A format upgrade writes the whole log anew into another file. Rows are numbered anew then, perhaps; messages keep
  their ids and calls their times, so those are what they are known by, within their session.
- A fork begins with its origin's rows under its own id: of known length in the older formats, up to the last inherited
  `session/end-seed` in the newer. They are passed over.
- A compaction writes messages and results again, with `surfaceOp` `replace`: no turns.
- A sub-agent is a session of its own; what its log calls a user's prompt is its parent's.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from curatord.core.transcript.accounts import Account
from curatord.core.transcript.calls import Call, may_touch, names_skill
from curatord.core.transcript.events import HOUR_MS, SessionKind, SessionTally, Sighting
from curatord.core.transcript.ids import ANCHOR_FIRST, KEY_BYTES, content_key
from curatord.core.transcript.lines import printable
from curatord.core.transcript.record_parser import Carried, RecordParser
from curatord.core.transcript.salvage import decoded
from curatord.core.transcript.times import FUTURE_MS, ms_of_number
from curatord.core.values import EventKind

__all__ = ["DshParser"]

Raw = msgspec.Raw
NOTHING = Raw(b"")

KNOWN_TYPES = frozenset({
    "session", "user/message", "assistant/message", "assistant/chunk", "assistant/attempt", "system/message",
    "developer/message", "tool/call", "tool/result", "text-chunks", "reasoning-chunks", "tool-call-chunks",
    "agent/inbox/spliced", "turn/start", "turn/end", "step/start", "step/end", "request/header", "request/context",
    "session/end-seed", "permission/preset", "sandbox/mode", "goal/change", "plan/mode", "todo/write",
    "subagent/descriptor", "subagent/catalog", "tool/code-dispatch", "tool/ptc-dispatch", "schedule/change",
    "model/selection", "deliverables/presented", "image/offload",
})  # fmt: skip
KNOWN_FAMILIES = (
    "session/title", "command/", "approval/", "hook/", "llm/", "compaction/", "tool-workflow/", "team/", "feedback/",
)  # fmt: skip
# Of these nothing is taken but that they are there; of a result, where no call waits for it.
COUNTED = KNOWN_TYPES - {"session", "session/end-seed", "user/message", "assistant/message", "tool/call"}
EARLIEST_MS = 100_000_000_000  # before that, a number may be of seconds
BY_ITSELF = frozenset({"schedule", "scheduled", "cron", "heartbeat", "timer"})
FILE_TOOLS = {
    "read": EventKind.VIEW,
    "grep": EventKind.VIEW,
    "write": EventKind.PATCH,
    "edit": EventKind.PATCH,
    "multi_edit": EventKind.PATCH,
}
SHELLS = frozenset({"bash", "powershell", "shell"})
EDITOR = {
    "view": EventKind.VIEW,
    "create": EventKind.CREATE,
    "str_replace": EventKind.PATCH,
    "insert": EventKind.PATCH,
    "undo_edit": EventKind.PATCH,
}
_FOLDER = re.compile(r"Base directory for this skill: ([^\n\"\\]{1,4096})")
_ESCAPED = re.compile(r"~([0-9A-Fa-f]{4})")


class _Row(msgspec.Struct, gc=False):
    type: str = ""
    seq: int | None = None
    seq0: int | None = None
    time: int | float | None = None
    time0: int | float | None = None
    data: Raw = NOTHING
    surfaceOp: Raw = NOTHING  # noqa: N815 -- the host's names
    # of the header
    version: int | None = None
    id: str | None = None
    createdAt: float | None = None  # noqa: N815
    cwd: str | None = None
    parentSession: str | None = None  # noqa: N815
    origin: str | None = None
    delegationDepth: int | None = None  # noqa: N815
    seedLength: int | None = None  # noqa: N815
    isSeeded: bool | None = None  # noqa: N815


class _Source(msgspec.Struct, gc=False):
    kind: str | None = None
    name: str | None = None
    callId: str | None = None  # noqa: N815


class _Block(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None
    toolCallId: str | None = None  # noqa: N815
    isError: bool | None = None  # noqa: N815


class _Said(msgspec.Struct, gc=False):
    id: str | None = None
    source: _Source | None = None
    content: list[_Block] | str | None = None


class _Answer(msgspec.Struct, gc=False):
    id: str | None = None


class _Answered(msgspec.Struct, gc=False):
    message: _Answer | None = None


class _Called(msgspec.Struct, gc=False):
    callId: str | None = None  # noqa: N815
    name: str | None = None
    arguments: str | None = None


class _Result(msgspec.Struct, gc=False):
    source: _Source | None = None
    content: Raw = NOTHING
    toolCallId: str | None = None  # noqa: N815
    isError: bool | None = None  # noqa: N815


class _Diff(msgspec.Struct, gc=False):
    path: str | None = None
    oldText: str | None = None  # noqa: N815


class _Meta(msgspec.Struct, gc=False):
    exitCode: int | None = None  # noqa: N815
    diffs: list[_Diff] | None = None


class _Returned(msgspec.Struct, gc=False):
    message: _Result | None = None
    error: Raw = NOTHING
    meta: _Meta | None = None


class _EndSeed(msgspec.Struct, gc=False):
    inherited: bool | None = None


class _BriefData(msgspec.Struct, gc=False):
    callId: str | None = None  # noqa: N815
    name: str | None = None
    arguments: Raw = NOTHING
    message: _Answer | None = None


class _Brief(msgspec.Struct, gc=False):
    """What nine of ten rows come down to."""

    type: str = ""
    seq: int | None = None
    seq0: int | None = None
    time: int | None = None
    time0: int | None = None
    data: _BriefData | None = None
    surfaceOp: Raw = NOTHING  # noqa: N815


_decode_brief = msgspec.json.Decoder(_Brief).decode


class _Arguments(msgspec.Struct, gc=False):
    name: str | None = None
    file_path: str | None = None
    path: str | None = None
    command: str | None = None


class _Carried(Carried, array_like=True):
    seed: int = 0
    seeded: bool = False
    resting: bool = False
    ms: int = 0


class DshParser(RecordParser[_Row, _Carried]):
    """The `LineParser` of one session's log."""

    record = _Row
    carried = _Carried

    def __init__(self, path: str, **how: Any) -> None:
        super().__init__(_session_in(path), **how)
        self._seed = self.saved.seed
        self._seeded = self.saved.seeded
        self._resting = self.saved.resting
        self._ms = self.saved.ms  # of the last row that told its time
        self._latest_ms = self._now_ms + FUTURE_MS if self._now_ms else 1 << 60
        self._created: float | None = None  # where the header is in this stretch
        self._data: Any = None  # of the row at hand, decoded
        self._inherited = False  # the row at hand is the origin's

    def state(self) -> bytes:
        """Return what must be known to go on after the last line fed."""
        self.saved.seed = self._seed
        self.saved.seeded = self._seeded
        self.saved.resting = self._resting
        self.saved.ms = self._ms
        return super().state()

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """
        Take whole lines with the offset at which each begins.

        The usual row is new and in a log that shares nothing: it is taken here, in locals, all others by `_take`.
        """
        new, seen = self._new, self._seen
        session, base, seed, earliest, latest, tally, works, waiting = self._where()
        row: Any  # what may be missing in it is met as an error
        for line, offset in lines:
            ident = b""
            try:
                row = _decode_brief(line)
                kind, seq, time, data = row.type, row.seq, row.time, row.data
                if seq is None:
                    seq, time = row.seq0, row.time0
                if not earliest < time < latest or seq < seed or row.surfaceOp is not NOTHING:
                    pass
                elif kind in COUNTED:
                    if kind != "tool/result" or not waiting:
                        ident = b"%b%d %d %b" % (base, seq, time, kind.encode())
                elif kind == "tool/call":
                    if data.callId and not (data.name == "skill" or names_skill(data.arguments)):
                        ident = f"{session}\0tool/call\0{data.callId}\0{time}".encode()
                elif kind == "assistant/message" and data.message.id:
                    ident = f"{session}\0assistant/message\0{data.message.id}".encode()
            except (msgspec.MsgspecError, RecursionError, AttributeError, TypeError):
                ident = b""  # it has not all of that
            if ident:
                key = blake2b(ident, digest_size=KEY_BYTES).digest()
                if key not in new and key not in seen:
                    new[key] = None
                    self._last_key = key
                    self._ms = time
                    tally.records += 1
                    turns = 0
                    if kind == "assistant/message":
                        turns = self._answered(data.message.id, tally)
                    elif kind == "tool/call":
                        self._called(data.name or "(unnamed)", None, tally)
                    hour = tally.hours.get(time // HOUR_MS) if works else None
                    if hour is None or turns or not hour.first_ms <= time:
                        tally.saw(time, work=works, assistant_turns=turns)
                    elif time > hour.last_ms:
                        hour.last_ms = time
                        if tally.last_ms is None or time > tally.last_ms:
                            tally.last_ms = time
                    continue
            self._inherited = False
            self._read(line, offset)
            session, base, seed, earliest, latest, tally, works, waiting = self._where()

    def _where(self) -> tuple[str, bytes, int, int, int, SessionTally, bool, bool]:
        """
        Return what the usual row is told from others by: session, what keys begin with, first row, and times between.

        The last three: where it is counted, whether it shows that somebody works, and whether a call waits. Where rows
        are to go the long way, no time lies between those two.
        """
        usual = self._quick and len(self._heads) >= ANCHOR_FIRST and not self._seeded and "skill" not in self._cwd
        return (
            self._session,
            _base_of(self._session),
            self._seed,
            EARLIEST_MS if usual else self._latest_ms,
            self._latest_ms,
            self._current.tally,
            self._works and not self._resting,
            bool(self._pending or self._released),
        )

    def _noted_time(self, time: str | float | None) -> str:
        """Remember *time*, and return something where it is one: this host's are numbers, and stay so."""
        if isinstance(time, (int, float)) and not isinstance(time, bool):
            told = ms_of_number(time, now_ms=self._now_ms)
            self._findings.future_times += told.future
            if told.ms is not None:
                self._ms = told.ms
                return "told"
        return ""

    def _clock(self, account: Account, time: str, turns: int, *, work: bool) -> None:
        account.tally.saw(self._ms, work=work, assistant_turns=turns)

    def _now(self) -> int | None:
        return self._ms or None

    def torn(self, content: bytes, offset: int, reason: str) -> None:
        """Count a stretch of the file, beginning with *content*, of which no lines can be had."""
        if self._first_time(b"torn\0" + content):
            self._current.tally.unreadable += 1
            self._findings.note_bad(offset, reason)

    # -- what `RecordParser` asks

    def note(self, row: _Row) -> None:
        """Take session, folder and format from the header, and find out whether a row is the session's own."""
        kind = row.type
        if kind == "session":
            self._header(row)
        elif kind == "session/end-seed" and decoded(row.data, _EndSeed).inherited:
            if not self._seeded:
                self._forget()  # what stood since the last such mark was inherited as well
            self._seeded = False
            self._inherited = True
            return
        seq = row.seq if row.seq is not None else row.seq0
        self._inherited = kind != "session" and (self._seeded or (seq is not None and seq < self._seed))

    def _header(self, row: _Row) -> None:
        self._in_session(row.id or "")
        self._in_folder(row.cwd or "")
        self._of_version(f"v{row.version or 0}")
        self._child_of(row.parentSession)
        if row.origin == "subagent" or (row.delegationDepth or 0) > 0:
            self._driven_by(SessionKind.SUBAGENT)
        self._created = row.createdAt
        self._seed = row.seedLength or 0
        self._seeded = row.isSeeded is True

    def ident_of(self, row: _Row) -> bytes:
        """Return a message's id, or a row's type, number and time; within the session."""
        kind = row.type
        session = self._session
        self._data = None
        if kind == "session":
            return f"session\0{row.id or session}".encode("utf-8", "surrogatepass")
        if kind == "user/message":
            self._data = said = decoded(row.data, _Said)
            known_by = said.id
        elif kind == "assistant/message":
            self._data = answered = decoded(row.data, _Answered)
            known_by = answered.message.id if answered.message is not None else None
        elif kind == "tool/call":
            self._data = called = decoded(row.data, _Called)
            known_by = f"{called.callId}\0{row.time}" if called.callId and row.time is not None else None
        else:
            seq = row.seq if row.seq is not None else row.seq0
            time = row.time if row.time is not None else row.time0
            return (
                b""
                if seq is None
                else b"%b%d %d %b" % (_base_of(session), seq, int(time or 0), kind.encode("utf-8", "replace"))
            )
        if not known_by:
            return b""
        if _is_replacement(row):
            known_by += f"\0{row.seq}"
        return f"{session}\0{kind}\0{known_by}".encode("utf-8", "surrogatepass")

    def time_of(self, row: _Row) -> str | float | None:
        """Return the row's time; of one that is the origin's, none."""
        if self._inherited:
            return None
        if row.type == "session":
            return row.createdAt
        return row.time if row.time is not None else row.time0

    def count(self, row: _Row, tally: SessionTally) -> tuple[int, bool]:
        """Count messages, calls and what comes of them."""
        if self._inherited:
            tally.records -= 1  # it is its origin's record, counted there
            return 0, False
        kind = row.type
        turns = 0
        if kind == "user/message":
            self._user(row, tally)
        elif kind == "assistant/message":
            said = self._data.message
            turns = 0 if _is_replacement(row) else self._answered(said.id if said is not None else None, tally)
        elif kind == "tool/call":
            self._call(self._data, tally)
        elif kind == "tool/result":
            if self._pending or self._released:
                self._result(row)
        elif kind not in KNOWN_TYPES and not kind.startswith(KNOWN_FAMILIES):
            self._findings.unknown_type(kind or "(none)")
        return turns, self._works and not self._resting

    # -- rows

    def _forget(self) -> None:
        """Take back what was counted in this stretch: it is the origin's."""
        counted_header = self._current.tally.records > 0 and self._created is not None
        self._accounts.clear()
        self._pending.clear()
        self._current = self._account(self._session)
        if counted_header:
            self._current.tally.records = 1
            self._clock(self._current, self._noted_time(self._created), 0, work=False)

    def _user(self, row: _Row, tally: SessionTally) -> None:
        said: _Said = self._data
        source = said.source or _Source()
        if _is_replacement(row):
            return
        if source.kind == "skill-invocation":
            text = _text_of(said)
            folder = _FOLDER.search(text)
            here = Call(at_ms=self._now(), cwd=self._cwd or None, ref=said.id)
            tally.sightings += here.skill(source.name or "", "slash", printable(folder[1].strip()) if folder else None)
        elif source.kind == "user":
            self._resting = False
            if self._kind is not SessionKind.SUBAGENT:
                self._said(_text_of(said), tally)
        elif source.kind in BY_ITSELF:
            self._resting = True

    def _call(self, call: _Called, tally: SessionTally) -> None:
        name = call.name or "(unnamed)"
        if not self._called(name, None, tally):
            return
        arguments = (call.arguments or "").encode("utf-8", "replace")
        if name == "skill" or may_touch(arguments) or "skill" in self._cwd:
            self._hold(call.callId, self._touches(name, call.callId, arguments), tally)

    def _touches(self, name: str, call: str | None, arguments: bytes) -> list[Sighting]:
        given = decoded(arguments, _Arguments)
        here = Call(at_ms=self._now(), cwd=self._cwd or None, ref=call)
        if name == "skill":
            return here.skill(given.name or "", name)
        if name in SHELLS:
            return here.shell(given.command or "")
        path = given.file_path or given.path or ""
        if name == "str_replace_editor":
            kind = EDITOR.get(given.command or "")
            if kind is EventKind.CREATE and not path.replace("\\", "/").endswith("SKILL.md"):
                kind = EventKind.PATCH
        else:
            kind = FILE_TOOLS.get(name)
        return here.file(path, kind, name) if kind is not None else []

    def _result(self, row: _Row) -> None:
        returned = decoded(row.data, _Returned)
        message = returned.message or _Result()
        blocks = _blocks_of(message.content)
        call = message.toolCallId or (message.source.callId if message.source is not None else None)
        call = call or next((block.toolCallId for block in blocks if block.toolCallId), None)
        if not call:
            return
        failed = (
            message.isError is True
            or any(block.isError for block in blocks)
            or bytes(returned.error) not in (b"", b"null")
            or (returned.meta is not None and returned.meta.exitCode not in (None, 0))
        )
        diffs = (returned.meta.diffs if returned.meta is not None else None) or []
        created = bool(diffs) and all(diff.oldText is None for diff in diffs)
        self._answer(call, failed=failed, created=created)


_blocks = msgspec.json.Decoder(list[_Block]).decode


def _blocks_of(content: Raw) -> list[_Block]:
    try:
        return _blocks(content)
    except (msgspec.MsgspecError, RecursionError):
        return []


def _text_of(said: _Said) -> str:
    if isinstance(said.content, str):
        return said.content
    return "\n".join(block.text for block in said.content or [] if block.text)


@functools.lru_cache(maxsize=8)
def _base_of(session: str) -> bytes:
    """Return what the keys of a session's rows begin with."""
    return content_key(b"dsh", session.encode("utf-8", "surrogatepass"))


def _is_replacement(row: _Row) -> bool:
    return row.surfaceOp is not NOTHING and b"replace" in bytes(row.surfaceOp)


def _session_in(path: str) -> str:
    """Return the session's id out of a file's path, `…/<session>/session.jsonl`."""
    parts = path.split("/")
    name = parts[-2] if len(parts) > 1 else parts[-1].partition(".")[0]
    return printable(_ESCAPED.sub(lambda found: chr(int(found[1], 16)), name))

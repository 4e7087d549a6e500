"""
OpenCode's sessions: messages and their parts, rows of its database or files of its older tree (formats page,
section 7).

Wanted: each message and call once, though rows change in place while a turn runs, though a revert deletes them and a
fork copies them. What can go wrong, and where it is met here:

- A tool's part is written when the call begins and again when it ends. It is a record and a call at first sight; what
  it did with a skill counts when it is `completed`. Parts that are not at their end are asked for again (`open_parts`).
- A fork copies messages and parts under new ids, but a message's own time stays, and an id tells when it was made. A
  message whose id was made later than itself, and which is there already with that role and time, is a copy
  (`_is_copy`): a row, and nothing else. So are its parts.
- A user's message is a person's only by a text part that is not synthetic; in a sub-agent's session it is the parent's.
- A slash command of a skill leaves the skill's body as the user's text; its folder is named in it, the skill is not.

Unsure: a client with a clock that is wrong by more than a second makes ids that look like a fork's. Both must be so,
and another message of the same role and millisecond be known, before a message is taken for a copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

import msgspec

from curatord.core.path_text import join
from curatord.core.transcript.calls import Call, may_touch
from curatord.core.transcript.columns import column_bytes, column_text
from curatord.core.transcript.events import HOUR_MS, OWN_MARK, Findings, SessionKind, SessionTally, Sighting
from curatord.core.transcript.ids import KEY_BYTES, Guard, content_key
from curatord.core.transcript.kept_state import kept_state
from curatord.core.transcript.ledger import Ledger
from curatord.core.transcript.lines import Unreadable, objects, printable
from curatord.core.transcript.salvage import cut_off, decoded, fit, text_of_raw
from curatord.core.transcript.times import FUTURE_MS, ms_of_number
from curatord.core.values import EventKind

__all__ = ["Lookup", "OpenCodeParser", "SessionFacts"]

Raw = msgspec.Raw
NOTHING = Raw(b"")

KEEP_OPEN = 512
KEEP_MESSAGES = 65_536
COPIED_LATER_MS = 1000
_ID_MS = 1 << 36  # an id holds so much of the time (ms) at which it was made
MAX_ID = 200

KNOWN_PARTS = frozenset({
    "text", "reasoning", "tool", "file", "step-start", "step-finish", "patch", "snapshot", "compaction", "subtask",
    "agent", "retry",
})  # fmt: skip
KNOWN_ROLES = frozenset({"user", "assistant"})
FILE_TOOLS = {
    "read": EventKind.VIEW,
    "grep": EventKind.VIEW,
    "edit": EventKind.PATCH,
    "multiedit": EventKind.PATCH,
    "write": EventKind.PATCH,
}
PATCH_TOOLS = frozenset({"apply_patch", "patch"})
SHELLS = frozenset({"bash", "shell"})
EARLIEST_MS = 100_000_000_000  # before that, a number may be of seconds
FINAL = frozenset({"completed", "error"})
_BODY = re.compile(r"^Base directory for this skill: ([^\n]{1,4096}?)\s*$", re.MULTILINE)


class _Moment(msgspec.Struct, gc=False):
    created: int | float | None = None
    start: int | float | None = None


class _Message(msgspec.Struct, gc=False):
    role: str = ""
    time: _Moment | None = None


class _ToolState(msgspec.Struct, gc=False):
    status: str = ""
    input: Raw = NOTHING
    metadata: Raw = NOTHING
    time: _Moment | None = None


class _Part(msgspec.Struct, gc=False):
    type: str = ""
    text: Raw = NOTHING
    synthetic: bool | None = None
    ignored: bool | None = None
    tool: str | None = None
    state: _ToolState | None = None


class _Input(msgspec.Struct, gc=False):
    name: str | None = None
    filePath: str | None = None  # noqa: N815 -- the host's names
    path: str | None = None
    command: str | None = None
    workdir: str | None = None
    patchText: str | None = None  # noqa: N815


class _Outcome(msgspec.Struct, gc=False):
    dir: str | None = None
    exit: int | None = None
    exists: bool | None = None


class _Saved(msgspec.Struct, array_like=True):
    """The parser's state between two readings; new fields go to the end and have a default."""

    open: dict[str, bool] = {}  # parts not at their end; True: taken as done when the session had settled


_encode = msgspec.msgpack.Encoder().encode
_message = msgspec.json.Decoder(_Message).decode
_part = msgspec.json.Decoder(_Part).decode


class SessionFacts(NamedTuple):
    """What is known of a session besides its messages; *version* is the program's."""

    parent: str | None = None
    directory: str | None = None
    version: str | None = None


class Lookup(Protocol):
    """What the parser may ask about what stands elsewhere."""

    def session(self, session_id: str) -> SessionFacts | None:
        """Return what is known of a session, or None where there is nothing."""
        ...

    def message(self, message_id: str) -> bytes | None:
        """Return a message's JSON, or None where it is gone."""
        ...


class _Session:
    """One session within one reading."""

    __slots__ = ("cwd", "kind", "parent", "works")

    def __init__(self, facts: SessionFacts | None) -> None:
        self.parent = facts.parent if facts is not None else None
        self.cwd = facts.directory if facts is not None else None
        self.kind = SessionKind.SUBAGENT if self.parent else SessionKind.UNKNOWN
        self.works = self.kind.is_work


class _Seen(NamedTuple):
    """What parts want to know of their message."""

    role: str
    copy: bool
    at_ms: int | None


class OpenCodeParser:
    """
    The reader of messages and parts, messages before their parts.

    Args:
        lookup: Answers about sessions and about messages that were read before.
        state: Of the reading before, or empty.
        guard: Keys of all records that are counted already, here and elsewhere.
        now_ms: For times in the future.
    """

    def __init__(self, lookup: Lookup, *, state: bytes, guard: Guard, now_ms: int) -> None:
        self._lookup = lookup
        self._open = kept_state(state, _Saved).open
        self._held: dict[str, tuple[str, list[Sighting]]] = {}
        self._ledger = Ledger(guard)
        self._now_ms = now_ms
        self._sessions: dict[str, _Session] = {}
        self._messages: dict[str, _Seen] = {}
        self._findings = Findings()

    # -- what the adapter calls

    def message(self, message_id: str, session_id: str, at: Any, data: bytes, *, place: int, cut: bool = False) -> None:
        """
        Take one message.

        Args:
            message_id: Its id.
            session_id: Of its session.
            at: When it was made, ms; None: its own data say so.
            data: Its JSON, or of one that is too long its beginning (*cut*).
            place: Row or offset, for what is unreadable.
            cut: See *data*.
        """
        session = self._session(session_id)
        if not self._ledger.first(_key_of(message_id)):
            self._findings.repeated += 1
            return
        record = self._decoded(data, _Message, session_id, place, cut)
        if record is None:
            return
        tally = self._tally(session_id, session)
        tally.records += 1
        at_ms = self._time(at, record.time.created if record.time is not None else None)
        seen = self._remember(message_id, record, new=True)
        turns = 0
        if record.role == "assistant":
            if not seen.copy:
                tally.assistant_turns += 1
                turns = 1
        elif record.role not in KNOWN_ROLES:
            self._findings.unknown_type(f"role {record.role or '(none)'}")
        if at_ms is not None and not seen.copy:
            tally.saw(at_ms, work=session.kind.is_work, assistant_turns=turns)

    def part(
        self, part_id: str, message_id: str, session_id: str, at: Any, data: bytes, *, place: int, cut: bool = False
    ) -> None:
        """Take one part of a message; see `message`. *at* None: its own data or its message say when it was made."""
        session = self._session(session_id)
        new = self._ledger.first(_key_of(part_id))
        if not new and part_id not in self._open:
            self._findings.repeated += 1
            return
        record = self._decoded(data, _Part, session_id, place, cut)
        if record is None:
            return
        tally = self._tally(session_id, session)
        message = self._message(message_id)
        if new:
            tally.records += 1
        if message is not None and message.copy:
            return
        started = record.state.time.start if record.state is not None and record.state.time is not None else None
        own = at if at is not None else started
        at_ms = self._time(own, message.at_ms if message is not None else None)
        if new and at_ms is not None:
            tally.saw(at_ms, work=session.kind.is_work)
        kind = record.type
        if kind == "tool":
            self._tool(part_id, record, self._time(started, at_ms), session_id, session, tally, new=new)
        elif kind == "text":
            if message is not None and message.role == "user" and not record.synthetic and not record.ignored:
                self._said(message_id, record, at_ms, session_id, session, tally)
        elif kind not in KNOWN_PARTS:
            self._findings.unknown_type(f"part {kind or '(none)'}")

    def messages(self, rows: Iterable[tuple[int, Any, Any, Any, Any, Any, int]]) -> None:
        """
        Take rows of messages, with the columns of `parts`.

        The usual message is new and in a database that shares nothing: it is taken here, in locals, all others by
        `message`. Both say the same.
        """
        new, latest, known = self._ledger.new, self._now_ms, self._messages
        last_session, name = None, ""
        session = _Session(None)
        tally = SessionTally(session_id="")
        for number, ident, _, session_id, at, data, cut in rows:
            record = None
            if new is not None and type(data) is type(ident) is type(session_id) is bytes and not cut:
                key = blake2b(ident, digest_size=KEY_BYTES).digest()
                if key not in new:
                    try:
                        record = _message(data)
                    except (msgspec.MsgspecError, RecursionError):
                        record = None
            if record is None or new is None:
                self.message(
                    column_text(ident), column_text(session_id), at, column_bytes(data), place=number, cut=bool(cut)
                )
                last_session = None
                continue
            if session_id != last_session:
                last_session, name = session_id, column_text(session_id)
                session = self._session(name)
                tally = self._tally(name, session)
            new[key] = None
            tally.records += 1
            created = record.time.created if record.time is not None else None
            own = created if type(created) is int and EARLIEST_MS < created <= latest else self._time(created, None)
            if type(at) is not int or not EARLIEST_MS < at <= latest:
                at = self._time(at, created)
            role = record.role
            message_id = column_text(ident)
            copy = False
            if own is not None:
                made_ms = _made_ms(message_id)
                if made_ms is not None and COPIED_LATER_MS < (made_ms - own) % _ID_MS < _ID_MS // 2:
                    copy = self._is_copy(message_id, role, own, new=True)
                else:
                    made = _key_of_moment(role, own)
                    copy = made[::-1] in new
                    if not copy:
                        new[made] = None
            if len(known) >= KEEP_MESSAGES:
                known.clear()
            known[message_id] = _Seen(role, copy, own)
            turns = 0
            if role == "assistant":
                if not copy:
                    tally.assistant_turns += 1
                    turns = 1
            elif role not in KNOWN_ROLES:
                self._findings.unknown_type(f"role {role or '(none)'}")
            if at is not None and not copy:
                tally.saw(at, work=session.works, assistant_turns=turns)

    def parts(self, rows: Iterable[tuple[int, Any, Any, Any, Any, Any, int]]) -> None:
        """
        Take rows of parts: number, id, message, session, time, data, whether they are cut; texts are bytes.

        The usual part is new, of the message and session of the one before, and in a database that shares nothing: it
        is taken here, in locals, all others by `part`. Both say the same.
        """
        new = self._ledger.new
        last_session = last_message = None
        message: _Seen | None = None
        latest = self._now_ms + FUTURE_MS if self._now_ms else 1 << 60
        name = text_id = ""
        session = _Session(None)
        tally = SessionTally(session_id="")
        for number, part_id, message_id, session_id, at, data, cut in rows:
            record = None
            if (
                new is not None
                and type(data) is type(part_id) is type(message_id) is type(session_id) is bytes
                and type(at) is int
                and EARLIEST_MS < at < latest
                and not cut
            ):
                key = blake2b(part_id, digest_size=KEY_BYTES).digest()
                if key not in new:
                    try:
                        record = _part(data)
                    except (msgspec.MsgspecError, RecursionError):
                        record = None
            if record is None or new is None:
                self.part(
                    column_text(part_id),
                    column_text(message_id),
                    column_text(session_id),
                    at,
                    column_bytes(data),
                    place=number,
                    cut=bool(cut),
                )
                last_session = last_message = None
                continue
            new[key] = None
            if session_id != last_session:
                last_session, name = session_id, column_text(session_id)
                session = self._session(name)
                tally = self._tally(name, session)
            if message_id != last_message:
                last_message, text_id = message_id, column_text(message_id)
                message = self._message(text_id)
            tally.records += 1
            if message is not None and message.copy:
                continue
            work = session.works
            hour = tally.hours.get(at // HOUR_MS) if work else None
            if hour is None or at < hour.first_ms:
                tally.saw(at, work=work)
            elif at > hour.last_ms:
                hour.last_ms = at
                if tally.last_ms is None or at > tally.last_ms:
                    tally.last_ms = at
            kind = record.type
            if kind == "tool":
                state = record.state
                started = self._time(state.time.start if state is not None and state.time is not None else None, at)
                self._tool(column_text(part_id), record, started, name, session, tally, new=True)
            elif kind == "text":
                if message is not None and message.role == "user" and not record.synthetic and not record.ignored:
                    self._said(text_id, record, at, name, session, tally)
            elif kind not in KNOWN_PARTS:
                self._findings.unknown_type(f"part {kind or '(none)'}")

    def open_parts(self) -> list[str]:
        """Return the ids of the parts that were not at their end and are to be taken again, first of all."""
        return list(self._open)

    def gone(self, part_id: str) -> None:
        """Note that an open part is not there any more: what it was about to do, nobody knows."""
        self._open.pop(part_id, None)

    def settle(self) -> None:
        """Take calls that have not ended as done; a failure that shows later takes them back."""
        for part_id, (session_id, sightings) in self._held.items():
            self._findings.session(session_id).sightings.extend(sightings)
            self._open[part_id] = True
        for part_id, released in list(self._open.items()):
            if not released:
                del self._open[part_id]  # of no concern to any skill
        self._held.clear()

    def note(self, text: str) -> None:
        """Add a remark for the log."""
        self._findings.notes.append(text)

    def findings(self) -> Findings:
        """Return what was found since the last call, and begin anew."""
        found = self._findings
        found.keys, found.heads = self._ledger.take()
        self._findings = Findings()
        return found

    def state(self) -> bytes:
        """Return what must be known to go on."""
        return _encode(_Saved(open=dict(list(self._open.items())[-KEEP_OPEN:])))

    @property
    def waiting(self) -> bool:
        """Whether a call has not ended."""
        return not all(self._open.values())

    # -- sessions and messages

    def _session(self, session_id: str) -> _Session:
        session = self._sessions.get(session_id)
        if session is None:
            if len(self._sessions) > KEEP_MESSAGES:
                self._sessions.clear()
            facts = self._lookup.session(session_id)
            session = self._sessions[session_id] = _Session(facts)
            self._ledger.first(content_key(b"session", session_id.encode("utf-8", "surrogatepass")), head=True)
            if facts is not None and facts.version:
                self._findings.of_version(facts.version)
        return session

    def _tally(self, session_id: str, session: _Session) -> SessionTally:
        tally = self._findings.sessions.get(session_id)
        if tally is None:
            tally = self._findings.session(session_id)
            tally.kind = session.kind
            tally.parent = session.parent
            if session.cwd:
                tally.was_in(session.cwd)
        return tally

    def _message(self, message_id: str) -> _Seen | None:
        seen = self._messages.get(message_id)
        if seen is None:
            data = self._lookup.message(message_id)
            if data is None:
                return None
            seen = self._remember(message_id, decoded(data, _Message), new=False)
        return seen

    def _remember(self, message_id: str, record: _Message, *, new: bool) -> _Seen:
        at_ms = self._time(record.time.created if record.time is not None else None, None)
        seen = _Seen(record.role, at_ms is not None and self._is_copy(message_id, record.role, at_ms, new=new), at_ms)
        if len(self._messages) >= KEEP_MESSAGES:
            self._messages.clear()
        self._messages[message_id] = seen
        return seen

    def _is_copy(self, message_id: str, role: str, at_ms: int, *, new: bool) -> bool:
        """
        Return whether a message repeats another; a *new* one that does not is remembered for those that repeat it.

        A message and its copy may be read in either order, where they stand in files of their own: then the copy came
        first, is taken for the message itself, and the message for the copy.
        """
        moment = f"{role} {at_ms}".encode("utf-8", "surrogatepass")
        made = _key_of_moment(role, at_ms)
        displaced = bytes(made[::-1])  # another key for the same moment, at no cost
        made_ms = _made_ms(message_id)
        later = 0 if made_ms is None else (made_ms - at_ms) % _ID_MS
        ledger = self._ledger
        if not COPIED_LATER_MS < later < _ID_MS // 2:
            if displaced in ledger:
                return True
            if new:
                ledger.first(made)
            return False
        own = content_key(b"own", message_id.encode("utf-8", "surrogatepass"), moment)
        if not new:
            return own not in ledger and (made in ledger or displaced in ledger)
        if made in ledger or displaced in ledger:
            return True
        ledger.first(displaced, head=True)
        ledger.first(own)
        return False

    # -- parts

    def _said(
        self,
        message_id: str,
        record: _Part,
        at_ms: int | None,
        session_id: str,
        session: _Session,
        tally: SessionTally,
    ) -> None:
        """Take a text of a user's message: a turn once a message, and the body of a skill that was called by it."""
        text = text_of_raw(record.text)
        if not text.strip():
            return
        body = _BODY.search(text)
        if body:
            folder = printable(body[1])
            name = folder.replace("\\", "/").rstrip("/").rpartition("/")[2]
            tally.sightings += Call(at_ms=at_ms, cwd=session.cwd, ref=None).skill(name, "slash", folder)
        if session.kind is SessionKind.SUBAGENT:
            return
        if self._ledger.first(content_key(b"turn", message_id.encode("utf-8", "surrogatepass"))):
            tally.user_turns += 1
            session.kind = session.kind.stronger(SessionKind.PERSON)
            if (
                self._ledger.first(content_key(b"prompted", session_id.encode("utf-8", "surrogatepass")))
                and OWN_MARK in text
            ):
                session.kind = SessionKind.OWN
                session.works = False
            tally.kind = tally.kind.stronger(session.kind)

    def _tool(
        self,
        part_id: str,
        record: _Part,
        at_ms: int | None,
        session_id: str,
        session: _Session,
        tally: SessionTally,
        *,
        new: bool,
    ) -> None:
        name = printable(record.tool or "(unnamed)")[:MAX_ID]
        if new:
            tally.called(name)
        state = record.state or _ToolState()
        released = self._open.pop(part_id, False)
        self._held.pop(part_id, None)
        if state.status not in FINAL:
            found = [] if released else self._touches(part_id, name, state, at_ms, session.cwd)
            if found:
                self._held[part_id] = (session_id, found)
            self._open[part_id] = released
            self._make_room()
            return
        if state.status == "error" or self._failed(name, state):
            if released:
                tally.retracted.append(part_id)
        elif not released:
            tally.sightings += self._touches(part_id, name, state, at_ms, session.cwd)

    def _make_room(self) -> None:
        while len(self._open) > KEEP_OPEN:
            oldest = next(iter(self._open))
            del self._open[oldest]
            session_id, sightings = self._held.pop(oldest, ("", []))
            if sightings:
                self._findings.session(session_id).sightings.extend(sightings)

    @staticmethod
    def _failed(tool: str, state: _ToolState) -> bool:
        if tool not in SHELLS or not may_touch(state.input):
            return False
        return decoded(state.metadata, _Outcome).exit not in (None, 0)

    @staticmethod
    def _touches(part_id: str, tool: str, state: _ToolState, at_ms: int | None, cwd: str | None) -> list[Sighting]:
        """Return what a call does with skills if it succeeds."""
        if tool != "skill" and not may_touch(state.input) and not (cwd and "skill" in cwd):
            return []
        given = decoded(state.input, _Input)
        here = Call(at_ms=at_ms, cwd=cwd, ref=part_id)
        if tool == "skill":
            return here.skill(given.name or "", tool, decoded(state.metadata, _Outcome).dir)
        if tool in SHELLS:
            where = join(cwd, given.workdir) if given.workdir else cwd
            return Call(at_ms=at_ms, cwd=where, ref=part_id).shell(given.command or "")
        if tool in PATCH_TOOLS:
            return here.patch(given.patchText or "", tool)
        kind = FILE_TOOLS.get(tool)
        if kind is None:
            return []
        path = given.filePath or given.path or ""
        if tool == "write" and path.replace("\\", "/").endswith("SKILL.md"):
            # The result says whether there was such a file before.
            kind = EventKind.CREATE if decoded(state.metadata, _Outcome).exists is False else kind
        return here.file(path, kind, tool)

    # -- values

    def _decoded(self, data: bytes, shape: type[Any], session_id: str, place: int, cut: bool) -> Any:
        """Return the record that *data* is, None where it is none, which is counted."""
        if cut:
            self._findings.oversize += 1
            return fit(cut_off(data), shape)
        try:
            return _message(data) if shape is _Message else _part(data)
        except (msgspec.MsgspecError, RecursionError):
            pass
        reason = "no JSON object"
        for value in objects(data):
            if not isinstance(value, Unreadable):
                return fit(value, shape)
            reason = value.reason
        self._findings.unreadable(session_id, place, reason)
        return None

    def _time(self, value: Any, otherwise: Any) -> int | None:
        """Return *value* as a time in ms, that of *otherwise* where it is none."""
        for candidate in (value, otherwise):
            if type(candidate) is int and EARLIEST_MS < candidate <= self._now_ms:
                return candidate  # the usual, told without a call
            if isinstance(candidate, (int, float)) and not isinstance(candidate, bool):
                told = ms_of_number(candidate, now_ms=self._now_ms)
                self._findings.future_times += told.future
                if told.ms is not None:
                    return told.ms
        return None


_MADE = (4).to_bytes(8, "big") + b"made"


def _key_of_moment(role: str, at_ms: int) -> bytes:
    """Return the key of a message's role and time: the `content_key` of `made` and both, in one step."""
    moment = f"{role} {at_ms}".encode("utf-8", "surrogatepass")
    return blake2b(b"%b%b%b" % (_MADE, len(moment).to_bytes(8, "big"), moment), digest_size=KEY_BYTES).digest()


def _key_of(ident: str) -> bytes:
    return blake2b(ident.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


def _made_ms(message_id: str) -> int | None:
    """Return when an id was made (ms, modulo `_ID_MS`): its first twelve hex digits are that time and a counter."""
    digits = message_id[4:16]
    if len(digits) != 12:
        return None
    try:
        return int(digits, 16) >> 12
    except ValueError:
        return None

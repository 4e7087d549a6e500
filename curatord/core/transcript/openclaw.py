"""
OpenClaw's sessions: Pi's tree of entries, one a line or one a row of the database (formats page, section 5).

What differs from Pi, whose parser this one is built on:

- Much of role user is no person: heartbeats, schedules, other sessions' messages, notices of the program, the text
  around a person's message (`spoken`). What runs by itself is no sign that somebody works, nor are the answers to it.
- A sub-agent is a session of its own, known by its key, which stands in the database or in an index beside the files;
  its first prompt says so as well.
- A person calls a skill by name, and the model is then told to read it: `Use the "N" skill for this request.` That
  prompt is the use, and the read that it causes is not another one. Otherwise the read is the use. A mention in the raw
  text is none, since nothing says whether the host took it for one.
- The upgrade to the database copies entries from files that stay: both give the same keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from curatord.core.transcript.calls import Call
from curatord.core.transcript.events import Findings, SessionKind, SessionTally, Sighting
from curatord.core.transcript.ids import KEY_BYTES
from curatord.core.transcript.ledger import Ledger
from curatord.core.transcript.lines import MAX_LINE, Unreadable, objects, printable
from curatord.core.transcript.pi import KNOWN_TYPES, PiParser, _Block, _Entry, _Message, _session_in
from curatord.core.transcript.record_parser import ENDS, LONG_ENOUGH, Carried, ends, key_of
from curatord.core.transcript.salvage import decoded, fit, text_of_raw
from curatord.core.values import EventKind

__all__ = ["OpenClawParser", "OpenClawRows", "Place", "kind_of_session", "session_in", "spoken"]

KEEP_ASKED = 16
CLAW_TYPES = KNOWN_TYPES | {"reset", "new", "leaf", "link", "metadata"}

_INTERNAL = re.compile(r"<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>.*?(?:<<<END_OPENCLAW_INTERNAL_CONTEXT>>>|\Z)", re.DOTALL)
_ENVELOPE = re.compile(r"\s*\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d[^\]\n]{0,40}\]\s*")  # when it was sent
_NOT_SAID = (
    "[cron:", "[Inter-session message]", "[System Message]", "[Subagent Context]", "[Internal task completion event]",
    "[OpenClaw runtime",
)  # fmt: skip
_SUBAGENT = "[Subagent Context]"
_SYSTEM_LINE = re.compile(r"(?:System(?: \(untrusted\))?: [^\n]*(?:\n|\Z)\s*)+")
_ONE_SKILL = re.compile(r'(?:^|\n)Use the "([^"\n]{1,200})" skill for this request\.')
_MANY_SKILLS = re.compile(r"(?:^|\n)Use the following explicitly referenced skills for this request\.[^\n]*\n")
_NAMED = re.compile(r"- ([^\s(][^\n(]{0,198}?)(?: \(SKILL\.md: ([^\n]{1,4096})\))?\s*(?:\n|\Z)")


_NO_BLOCK = _Block()


class _ClawMessage(_Message, gc=False):
    provenance: Any = None


class _ClawEntry(_Entry, gc=False):
    message: _ClawMessage | None = None


class _ClawCarried(Carried, array_like=True):
    resting: bool = False
    asked: list[tuple[str, str]] = msgspec.field(default_factory=list)


def kind_of_session(key: str | None, created_via: str | None, spawned_by: str | None) -> SessionKind:
    """Return who drives a session, by its key and what the tables or the index say of how it came about."""
    key = key or ""
    if spawned_by or created_via == "spawn" or ":subagent:" in key:
        return SessionKind.SUBAGENT
    if created_via == "cron" or ":cron:" in key or key.startswith("cron:") or ":heartbeat" in key:
        return SessionKind.SCHEDULED
    if created_via in ("plugin", "internal") or ":hook:" in key:
        return SessionKind.PROGRAM
    return SessionKind.UNKNOWN


def session_in(path: str) -> str:
    """Return the session's id out of a file's path: `<id>.jsonl`, `<id>-topic-<n>.jsonl`, and put away under others."""
    name = path.rpartition("/")[2].partition(".jsonl")[0]
    return name.partition("-topic-")[0].partition(".checkpoint.")[0]


def spoken(text: str) -> str:
    """Return what a person said in a user's *text*, empty where the program made it."""
    if "<<<BEGIN" in text:
        text = _INTERNAL.sub("", text)
    envelope = _ENVELOPE.match(text)
    if envelope:
        text = text[envelope.end() :]
    system = _SYSTEM_LINE.match(text)
    if system:
        text = text[system.end() :]
    text = text.strip()
    if text.startswith(_NOT_SAID) or ("HEARTBEAT.md" in text and "HEARTBEAT_OK" in text):
        return ""
    return text


class OpenClawParser(PiParser):
    """
    The `LineParser` of one session's file.

    Args:
        path: Below the source's folder.
        kind: Of the session, as the index beside the file says.
        parent: Id of the session that it goes on from or belongs to.
        how: See `RecordParser`.
    """

    record = _ClawEntry  # type: ignore[assignment]  # its constructor takes more than that of Pi's; nobody calls it
    carried = _ClawCarried
    prompts_are_usual = False  # it tells whether what follows is work

    def __init__(
        self, path: str, *, kind: SessionKind = SessionKind.UNKNOWN, parent: str | None = None, **how: Any
    ) -> None:
        super().__init__(path, **how)
        saved: Any = self.saved
        if not saved.session:
            self._in_session(session_in(path))
        self._driven_by(kind)
        self._child_of(parent)
        self._resting: bool = saved.resting
        self._asked: dict[str, tuple[str, Sighting | None]] = {name: (ref, None) for name, ref in saved.asked}

    def ident_of(self, entry: _Entry) -> bytes:
        """Return time, kind and the ends of the content, as Pi's reader does, in fewer steps."""
        time, kind, message = entry.timestamp, entry.type, entry.message
        if kind == "session" or not time:
            return super().ident_of(entry)
        if message is None:
            return f"{time}\0{kind}".encode()
        content = message.content
        if isinstance(content, list):
            first = content[0] if content else _NO_BLOCK
            call = message.toolCallId
            if call is not None and len(call) >= LONG_ENOUGH:
                return f"{time}\0{kind}\0{call}\0{first.type}\0".encode()  # pruned or not, it is that call's result
            told = f"{time}\0{kind}\0{call}\0{first.type}\0{first.id}\0{len(content)}"
            text = bytes(first.text)
        else:
            told = f"{time}\0{kind}\0{message.toolCallId}"
            text = (content or "").encode()
        return b"%b\0%b%b%d" % (told.encode(), text[:ENDS], text[-ENDS:], len(text))

    def _at_work(self) -> bool:
        return self._works and not self._side and not self._resting

    def note(self, entry: _Entry) -> None:
        """Take session, folder, format and origin from the header."""
        if entry.type == "session":
            self._note_session(entry)
            self._in_folder(entry.cwd or "")
            self._of_version(f"v{entry.version or 1}")
            origin = entry.parentSession or entry.branchedFrom
            if origin:
                self._child_of(session_in(_session_in(origin.replace("\\", "/"))))

    def _note_session(self, entry: _Entry) -> None:
        self._in_session(entry.id or "")

    def count(self, entry: _Entry, tally: SessionTally) -> tuple[int, bool]:
        """Count messages; what runs by itself is no work."""
        if entry.type in CLAW_TYPES and entry.type not in KNOWN_TYPES:
            return 0, False
        turns, work = super().count(entry, tally)
        return turns, work and self._works and not self._resting

    def findings(self) -> Findings:
        """Return what was found since the last call, and begin anew."""
        self._asked = {name: (ref, None) for name, (ref, _) in self._asked.items()}
        return super().findings()

    def state(self) -> bytes:
        """Return what must be known to go on after the last line fed."""
        saved: Any = self.saved
        saved.resting = self._resting
        saved.asked = [(name, ref) for name, (ref, _) in self._asked.items()]
        return super().state()

    def _user(self, message: _Message, tally: SessionTally) -> None:
        content = message.content
        blocks: list[_Block] = content if isinstance(content, list) else []
        text = content if isinstance(content, str) else "\n".join(text_of_raw(block.text) for block in blocks)
        source = getattr(message, "provenance", None)
        routed = isinstance(source, dict) and source.get("kind") not in (None, "external_user")
        said = "" if routed else spoken(text)
        if _SUBAGENT in text[:200] and not self._prompted:
            self._driven_by(SessionKind.SUBAGENT)
        self._asked = {}
        if not said:
            pictures = not routed and not text.strip() and any(block.type == "image" for block in blocks)
            self._resting = not pictures
            if not pictures:
                return
        self._resting = False
        self._ask(said, tally)
        if self._kind is not SessionKind.SUBAGENT:
            scheduled = self._kind is SessionKind.SCHEDULED
            self._said(text, tally, SessionKind.SCHEDULED if scheduled else SessionKind.PERSON)

    def _ask(self, said: str, tally: SessionTally) -> None:
        """Count the skills that the host put before the model by name."""
        if "Use the " not in said[:4096]:  # a search for whole lines tries each of thousands of places
            return
        named = [(found[1], "") for found in [_ONE_SKILL.search(said[:4096])] if found]
        many = _MANY_SKILLS.search(said[:4096])
        if many:
            at = many.end()
            while (found := _NAMED.match(said, at)) and len(named) < KEEP_ASKED:
                named.append((found[1], found[2] or ""))
                at = found.end()
        for name, path in named:
            ref = f"asked {self._time} {name}"[:200]
            here = Call(at_ms=self._now(), cwd=self._cwd or None, ref=ref)
            for sighting in here.skill(printable(name), "slash", path or None):
                tally.sightings.append(sighting)
                self._asked[_plain(name)] = (ref, sighting)

    def _touches(self, name: str, block: Any) -> list[Sighting]:
        found = []
        for sighting in super()._touches(name, block):
            asked = self._asked.get(_plain(sighting.skill)) if sighting.kind is EventKind.USE else None
            if asked is None:
                found.append(sighting)
                continue
            # The read that the person's call caused: it only shows which skill of that name was meant.
            ref, use = asked
            if use is not None:
                use.path = use.path or sighting.path
            elif sighting.path:
                self._current.tally.amended[ref] = sighting.path
        return found


Row = tuple[Any, ...]  # number, session, seq, event, packed event, size


class Place:
    """How far the reading of a database has come: row *at*, with *room* for so many bytes more, *count* rows on."""

    __slots__ = ("at", "count", "room")

    def __init__(self, at: int, room: int) -> None:
        self.at = at
        self.room = room
        self.count = 0


class OpenClawRows(OpenClawParser):
    """
    The reader of one session's rows in a database.

    The rows of many sessions stand mixed, are read again when a transcript was rewritten, and a fork's beside those of
    its origin: a *ledger* that all sessions share says what is counted.
    """

    prompts_are_usual = True

    def __init__(self, session: str, ledger: Ledger, **how: Any) -> None:
        super().__init__(session, **how)
        self._in_session(session)
        self._ledger = ledger
        self._seq = 0

    def _note_session(self, entry: _Entry) -> None:
        """The table says which session a row is of; a fork's header may be its origin's."""

    def note_header(self, line: bytes) -> None:
        """Take from the session's first row, counted before, in which folder it is."""
        entry = decoded(line, _ClawEntry)
        if entry.type == "session":
            self.note(entry)

    def rows(self, raw: Row, rows: Iterator[Row], place: Place) -> Row | None:
        """
        Take *raw* and what follows in *rows* of this session; return the first row that was not taken, None at the end.

        That is one of another session, one that needs care, or any once the slice is full. Nine of ten rows are new and
        of the hour at hand: those are counted here, in locals, all others by `_take`.
        """
        decode, ident_of, tell = self._decode, self.ident_of, self.tell
        session, new = raw[1], self._ledger.new
        low, high, tally, work, _, _ = self._bearings()
        at, room, count, most = place.at, place.room, place.count, MAX_LINE
        held: Row | None = raw
        try:
            while held is not None:
                number, of, seq, line, _, size = held
                if of != session or type(line) is not bytes or type(seq) is not int:
                    break
                if size > most or number <= at or room <= 0:
                    break
                at = number
                room -= size
                count += 1
                entry: Any = None
                try:
                    entry = decode(line)
                    time = entry.timestamp
                    timely = low <= time < high and time[23:] == "Z"
                except (msgspec.MsgspecError, RecursionError):
                    timely = False
                except TypeError:  # it has no time, or a number
                    timely = False
                if timely and new is not None:
                    key = blake2b(ident_of(entry), digest_size=KEY_BYTES).digest()
                    turns = tell(entry, tally) if key not in new else None
                    if turns is not None:
                        if not turns and entry.message.role == "user":  # it says whether what follows is work
                            low, high, tally, work, _, _ = self._bearings()
                        new[key] = None
                        self._time = time
                        tally.records += 1
                        if time > work[1]:
                            work[1] = time
                        if time < work[0]:
                            work[0] = time
                        work[2] += turns
                        held = next(rows, None)
                        continue
                self._seq = seq
                if entry is None:
                    self._odd(line, number)
                else:
                    self._take(entry, line)
                low, high, tally, work, _, _ = self._bearings()
                held = next(rows, None)
        finally:
            place.at, place.room, place.count = at, room, count
        return held

    def take(self, line: bytes, seq: int, number: int) -> None:
        """Take the row with this *seq* of the session and *number* of the table."""
        self._seq = seq
        try:
            record = self._decode(line)
        except (msgspec.MsgspecError, RecursionError):
            self._odd(line, number)
            return
        self._take(record, line)

    def _take(self, record: Any, line: bytes) -> None:
        self.note(record)
        ident = self.ident_of(record)
        key = key_of(ident) if ident else self._key_in_place(self._seq, line)
        time = self._noted_time(self.time_of(record))
        if not self._ledger.first(key, head=record.type == "session"):
            self._findings.repeated += 1
            return
        account = self._current
        account.tally.records += 1
        turns, work = self.count(record, account.tally)
        if time:
            self._clock(account, time, turns, work=work)

    def unreadable(self, content: bytes, seq: int, number: int, reason: str) -> None:
        """Count a row that holds no record."""
        if self._ledger.first(self._key_in_place(seq, content)):
            self._current.tally.unreadable += 1
            self._findings.note_bad(number, reason)
        else:
            self._findings.repeated += 1

    def _key_in_place(self, seq: int, content: bytes) -> bytes:
        """Return what a row without a time is known by: its session, its place there and its content."""
        owner = self._session.encode("utf-8", "surrogatepass")
        return key_of(owner + seq.to_bytes(KEY_BYTES, "big", signed=True) + ends(content))

    def _odd(self, line: bytes, offset: int) -> None:
        for value in objects(line):
            if isinstance(value, Unreadable):
                self.unreadable(line, self._seq, offset, value.reason)
            else:
                self._take(fit(value, self.record), json.dumps(value, sort_keys=True).encode("ascii"))


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")

"""
Hermes' sessions: rows of its database, and messages of its older files, into turns, calls and skill events.

Wanted: each message once, whatever Hermes does to its rows. What can go wrong, and where it is met here (formats page,
section 2; an adapter hands the rows over in order of their id):

- **Compaction in place** inserts copies of the kept tail under new ids. A copy has the body (role, content, calls) and
  the time of an older row of its session; where the old time was lost it stands within `BATCH_S` of the summary.
- **Branches and compaction's children** begin with copies of another session's rows: compared with those in the same
  way (`_Session.ancestors`).
- **A session rewritten whole** (`/undo`, `/retry` of the gateway, older compaction): all rows deleted and inserted
  again with new ids, often with new times. So what a record is *known by* has no id and no time: its session, its body,
  and how many rows with that body the session has before it. That is the same again after a database was rebuilt.
- **Rewound** rows did happen and count. **Pruned** sessions are gone from the database, not from our counts.
- A result is another row than its call, perhaps of a later scan (`_pending`).
- Summaries, the reviewer's prompts of older builds, other people's talk in a group and a sub-agent's prompt are rows of
  role user, and no user's turn.

A copy is a row more and nothing else: no turn, no call, no event. Where rows of one session repeat a body, the older
rows are asked for (`History.earlier`), once a reading and session, and only then; the first row with a body is told by
its key alone.

Unsure: a person who repeats a sentence within `BATCH_S` of a compaction's end would be taken for a copy; and copies in
a branch are recognised as long as the session they came from, or its keys, are still there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import msgspec

from curatord.core.path_text import join
from curatord.core.transcript.events import MAX_FOLDER, OWN_MARK, Findings, SessionKind, SessionTally, Sighting
from curatord.core.transcript.ids import Guard, content_key
from curatord.core.transcript.kept_state import kept_state
from curatord.core.transcript.lines import printable
from curatord.core.transcript.packages import in_package, skill_of_path
from curatord.core.transcript.shell import patch_targets, touched
from curatord.core.transcript.times import FUTURE_MS, Told, ms_of_iso, ms_of_number
from curatord.core.values import EventKind

__all__ = ["HermesParser", "History", "Row", "SessionFacts", "kind_of_session", "text_of_content"]

BATCH_S = 2.0  # rows that one compaction or branch inserts are stamped within so many seconds
KEEP_PENDING = 512
HEADS = 4  # of each session; a session's file begins with one or two records that the database has not
KEEP_SESSIONS = 64  # of what the state says of sessions
KEEP_BODIES = 100_000  # bodies of rows held over all sessions of one reading; a session dropped is asked for again
BODY_EDGE = 512  # bytes
MAX_ANCESTORS = 64
MAX_OPERATIONS = 20
MAX_NAME = 200

KNOWN_ROLES = frozenset({"user", "assistant", "tool", "system", "session_meta", "developer"})
SUMMARY = (b"[CONTEXT COMPACTION", b"[CONTEXT SUMMARY]", b"[PRIOR CONTEXT")
REVIEW = re.compile(
    r"\s*Review the conversation above and (?:update the skill library|consider saving|update two things)"
)
_INVOKED = re.compile(
    r'\[(?:IMPORTANT|SYSTEM): The user has invoked the "([^"\n]{1,400})" (stacked skill bundle|skill bundle|skill)\b'
)
_LOADED = re.compile(r'^\[(?:IMPORTANT|SYSTEM): The "([^"\n]{1,200})" skill is auto-loaded', re.MULTILINE)
_PRELOADED = re.compile(
    r'^\[(?:IMPORTANT|SYSTEM): The user launched this (?:CLI )?session with the "([^"\n]{1,200})" skill\s+preloaded',
    re.MULTILINE,
)
_BUNDLE_NAMES = re.compile(r"^Skills loaded: ([^\n]{1,4000})$", re.MULTILINE)
_SKILL_FOLDER = re.compile(r"^\[Skill directory: ([^\]\n]{1,4096})\]", re.MULTILINE)
_FAILED = re.compile(r'"success"\s*:\s*false|"exit_code"\s*:\s*-?[1-9]|"error"\s*:\s*(?!null|""|false)[^\s]')
_STRUCTURED = b"\0json:"

SOURCES = {
    "subagent": SessionKind.SUBAGENT,
    "cron": SessionKind.SCHEDULED,
    "heartbeat": SessionKind.SCHEDULED,
    "curator": SessionKind.REVIEWER,
    "background_review": SessionKind.REVIEWER,
    "tool": SessionKind.PROGRAM,
    "api_server": SessionKind.PROGRAM,
    "webhook": SessionKind.PROGRAM,
    "batch": SessionKind.PROGRAM,
}
SKILL_TOOLS = frozenset({"skill_view", "skill_manage"})
_MENTIONS = re.compile(r"skill|SKILL\.md|\\u")  # an escape may hide the word
FILE_TOOLS = {
    "read_file": EventKind.VIEW,
    "search_files": EventKind.VIEW,
    "write_file": EventKind.PATCH,
    "patch": EventKind.PATCH,
    "edit_file": EventKind.PATCH,
}
MANAGE_ACTIONS = {
    "create": EventKind.CREATE,
    "edit": EventKind.PATCH,
    "patch": EventKind.PATCH,
    "write_file": EventKind.PATCH,
    "remove_file": EventKind.PATCH,
    "delete": EventKind.DELETE,
}


class Row(NamedTuple):
    """
    One message; columns that a database lacks are None. *timestamp* is seconds since 1970 (or text, or None).

    *content* and *tool_calls* are as they stand in the database, since most of them need never be decoded.
    """

    id: int
    session_id: str
    role: str
    content: bytes | None
    tool_call_id: str | None = None
    tool_calls: bytes | None = None
    tool_name: str | None = None
    timestamp: Any = None
    observed: int = 0


class SessionFacts(NamedTuple):
    """What the table of sessions says of one; *preloads* is its system prompt where that speaks of preloaded skills."""

    id: str
    source: str | None = None
    parent: str | None = None
    model_config: str | None = None
    started_at: Any = None
    end_reason: str | None = None
    cwd: str | None = None
    preloads: str | None = None


class History(Protocol):
    """What the parser may ask about rows that stand before those it is fed."""

    def session(self, session_id: str) -> SessionFacts | None:
        """Return what is known of a session, or None where it has no row of its own."""
        ...

    def earlier(self, session_id: str, before_id: int) -> Iterable[Row]:
        """Yield the session's rows with a smaller id than *before_id*, in order."""
        ...


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct, gc=False):
    id: str | None = None
    call_id: str | None = None
    function: _Function | None = None
    name: str | None = None


class _Saved(msgspec.Struct, array_like=True):
    """The parser's state between two readings; new fields go to the end and have a default."""

    pending: list[tuple[str, str, str, list[tuple[str, str, str, int | None, str | None, str | None]]]] = []
    released: list[tuple[str, str]] = []
    reviewed: list[str] = []
    own: list[str] = []


_calls = msgspec.json.Decoder(list[_Call])
_object = msgspec.json.Decoder(dict[str, Any])
_encode = msgspec.msgpack.Encoder().encode


def kind_of_session(facts: SessionFacts | None) -> SessionKind:
    """Return who drives a session, by its source and the markers in its configuration."""
    if facts is None or not facts.source:
        return SessionKind.UNKNOWN
    if facts.model_config and '"_delegate_from"' in facts.model_config:
        return SessionKind.SUBAGENT
    return SOURCES.get(facts.source, SessionKind.PERSON)


def text_of_content(content: bytes | None) -> str:
    """Return the text of a message: itself, or that of the text parts where it is structured."""
    if not content:
        return ""
    text = content.decode("utf-8", "replace")
    if not content.startswith(_STRUCTURED):
        return text
    try:
        value = json.loads(text[len(_STRUCTURED) :], strict=False)
    except (ValueError, RecursionError):
        return text
    return text_of_value(value)


def text_of_value(value: object) -> str:
    """Return the text in the value of a message's content as chat formats have it: a string, or a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return ""
    return "\n".join(part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str))


class _Repeated:
    """A body that several rows of a session have: how many, and their times."""

    __slots__ = ("count", "times")

    def __init__(self, time: object) -> None:
        self.count = 1
        self.times = {time}


class _Session:
    """One session within one reading."""

    __slots__ = (
        "ancestors",
        "bodies",
        "cwd",
        "facts",
        "first_id",
        "heads",
        "inherited",
        "kind",
        "loaded",
        "owner",
        "prompted",
        "started",
        "time_ms",
        "zone",
    )

    def __init__(
        self, session_id: str, facts: SessionFacts | None, first_id: int, ancestors: list[str], *, loaded: bool
    ) -> None:
        self.owner = _owner(session_id)
        self.facts = facts
        self.kind = kind_of_session(facts)
        self.cwd = facts.cwd if facts is not None and isinstance(facts.cwd, str) and facts.cwd else None
        self.ancestors = ancestors
        self.first_id = first_id  # of this reading; what `History.earlier` is asked about
        self.loaded = loaded  # `bodies` are of all its rows so far, not only of this reading's
        self.bodies: dict[bytes, Any] = {}  # the time of the only row with a body, or a `_Repeated`
        self.heads = 0  # so many of its next rows are its first ones
        self.inherited: tuple[set[tuple[bytes, Any]], set[bytes]] | None = None
        self.prompted = False
        self.started = _seconds(facts.started_at) if facts is not None else None
        self.zone: float | None = None  # time of the newest summary: rows that soon after it are copies
        self.time_ms: int | None = None

    def met(self, body: bytes, time: object) -> tuple[int, bool]:
        """Note a row; return how many with its *body* were before it, and whether one of them had its *time*."""
        bodies = self.bodies
        if body not in bodies:
            bodies[body] = time
            return 0, False
        held = bodies[body]
        if not isinstance(held, _Repeated):
            held = bodies[body] = _Repeated(held)
        twin = time in held.times
        held.times.add(time)
        held.count += 1
        return held.count - 1, twin


class HermesParser:
    """
    The reader of rows, in order of their id.

    Args:
        history: Answers about rows and sessions that stand before.
        home: The Hermes home as it is written here; a created skill's path is below its `skills`.
        state: Of the reading before, or empty.
        fresh: Reading begins at the first row there is; of *state* only what waits for a result is kept.
        guard: Keys of records that are counted already, in another item or, when all is read anew, in this one.
        before: Keys of this item's records before the place where reading begins.
        now_ms: For times in the future.
        copies: Whether equal rows of one time are copies, as in a database; a session file has none, nor exact times.
    """

    def __init__(
        self,
        history: History,
        *,
        home: str | None,
        state: bytes,
        fresh: bool,
        guard: Guard,
        before: Guard,
        now_ms: int,
        copies: bool = True,
    ) -> None:
        saved = kept_state(state, _Saved)
        self._copies = copies
        self._history = history
        self._home = home
        self._fresh = fresh
        self._guard = guard or None  # asked for each row: None is told quicker from something than emptiness
        self._before = before or None
        self._now_ms = now_ms
        self._latest = (now_ms + FUTURE_MS) / 1000 if now_ms else 1e11
        self._pending: dict[tuple[str, str], tuple[str, list[Sighting]]] = {
            (session, call): (
                tool,
                [
                    Sighting(skill=skill, kind=EventKind(kind), via=via, at_ms=at, path=path, cwd=cwd, ref=call)
                    for skill, kind, via, at, path, cwd in sightings
                ],
            )
            for session, call, tool, sightings in saved.pending
        }
        self._released: dict[tuple[str, str], None] = dict.fromkeys(saved.released)
        self._reviewed: dict[str, None] = dict.fromkeys(() if fresh else saved.reviewed)
        self._own: dict[str, None] = dict.fromkeys(() if fresh else saved.own)
        self._sessions: dict[str, _Session] = {}
        self._held = 0
        self._dropped: set[str] = set()  # sessions that were in `_sessions` and had to make room
        self._preloaded: set[str] = set()
        self._begin()

    # -- what the adapter calls

    def feed(self, rows: Iterable[Row]) -> None:
        """Take rows in order of their id."""
        for row in rows:
            self._take(row)

    def unreadable(self, session_id: str, offset: int, reason: str, content: bytes) -> None:
        """Count what cannot be read, once; *content* is what it is known by."""
        key = content_key(b"unreadable", session_id.encode("utf-8", "replace"), content)
        if self._is_known(key):
            self._findings.repeated += 1
            return
        self._keys.append(key)
        self._findings.unreadable(session_id, offset, reason)

    def settle(self) -> None:
        """Take calls without a result as done; a failure that shows later takes them back."""
        for (session, call), (_, sightings) in self._pending.items():
            self._findings.session(session).sightings.extend(sightings)
            self._released[session, call] = None
        self._pending.clear()
        while len(self._released) > KEEP_PENDING:
            del self._released[next(iter(self._released))]

    def findings(self) -> Findings:
        """Return what was found since the last call, and begin anew."""
        found = self._findings
        found.keys = b"".join(self._keys)
        found.heads = b"".join(self._heads)
        for session_id, tally in list(found.sessions.items()):
            if not (tally.records or tally.unreadable or tally.sightings or tally.retracted):
                del found.sessions[session_id]
        self._begin()
        return found

    def state(self) -> bytes:
        """Return what must be known to go on after the last row fed."""
        pending = list(self._pending.items())[-KEEP_PENDING:]
        return _encode(
            _Saved(
                pending=[
                    (session, call, tool, [(s.skill, s.kind.value, s.via, s.at_ms, s.path, s.cwd) for s in sightings])
                    for (session, call), (tool, sightings) in pending
                ],
                released=list(self._released)[-KEEP_PENDING:],
                reviewed=list(self._reviewed)[-KEEP_SESSIONS:],
                own=list(self._own)[-KEEP_SESSIONS:],
            )
        )

    @property
    def waiting(self) -> bool:
        """Whether a call waits for its result."""
        return bool(self._pending)

    # -- sessions

    def _begin(self) -> None:
        self._findings = Findings()
        self._keys: list[bytes] = []
        self._heads: list[bytes] = []

    def _session(self, row: Row) -> _Session:
        session = self._sessions.get(row.session_id)
        if session is not None:
            return session
        while self._held > KEEP_BODIES and self._sessions:
            oldest = next(iter(self._sessions))
            self._held -= len(self._sessions.pop(oldest).bodies)
            self._dropped.add(oldest)
        facts = self._history.session(row.session_id)
        session = _Session(row.session_id, facts, row.id, self._ancestors(facts), loaded=self._fresh)
        if row.session_id in self._own:
            session.kind = SessionKind.OWN
        self._sessions[row.session_id] = session
        if row.session_id in self._dropped:
            session.loaded = False
            self._load(row.session_id, session)
        elif self._fresh or next(iter(self._history.earlier(row.session_id, row.id)), None) is None:
            session.loaded = True
            session.heads = HEADS
        self._preloads(session)
        return session

    def _is_known(self, key: bytes) -> bool:
        return (self._before is not None and key in self._before) or (self._guard is not None and key in self._guard)

    def _ancestors(self, facts: SessionFacts | None) -> list[str]:
        """Return the ids of the sessions whose conversation this one goes on with, nearest first."""
        found: list[str] = []
        while facts is not None and facts.parent and facts.parent not in found and len(found) < MAX_ANCESTORS:
            config = facts.model_config or ""
            parent = self._history.session(facts.parent)
            carries_on = '"_branched_from"' in config or (
                parent is not None and parent.end_reason in ("compression", "orphaned_compression", "branched")
            )
            delegated = kind_of_session(facts) is SessionKind.SUBAGENT or '"_reset_from"' in config
            if delegated or not carries_on:
                break
            found.append(facts.parent)
            facts = parent
        return found

    def _tally(self, session_id: str, session: _Session) -> SessionTally:
        tally = self._findings.sessions.get(session_id)
        if tally is None:
            tally = self._findings.session(session_id)
            tally.kind = session.kind
            if session.facts is not None and session.facts.parent:
                tally.parent = session.facts.parent
            if session.cwd:
                tally.was_in(session.cwd)
        return tally

    def _preloads(self, session: _Session) -> None:
        """Count the skills that the command line put into the system prompt, once a session."""
        facts = session.facts
        if facts is None or not facts.preloads or facts.id in self._preloaded:
            return
        self._preloaded.add(facts.id)
        if session.ancestors or not session.kind.counts:
            return  # what goes on with another session was preloaded there
        at = self._time(facts.started_at)
        for name, folder in _with_folders(_PRELOADED, facts.preloads):
            key = content_key(b"preload", facts.id.encode("utf-8", "replace"), name.encode("utf-8", "replace"))
            if self._is_known(key):
                continue
            self._keys.append(key)
            self._tally(facts.id, session).sightings.append(
                Sighting(
                    skill=name,
                    kind=EventKind.USE,
                    via="preload",
                    at_ms=at,
                    path=folder or self._where(name),
                    cwd=session.cwd,
                )
            )

    # -- rows

    def _take(self, row: Row) -> None:
        session = self._session(row)
        role = row.role
        text = ""
        answers_review = False
        if role == "user":
            text = text_of_content(row.content)
            if not session.prompted:
                session.prompted = True
                self._look_for_own(row, text, session)
            if REVIEW.match(text):
                self._reviewed[row.session_id] = None
        elif role == "assistant":
            answers_review = row.session_id in self._reviewed
            self._reviewed.pop(row.session_id, None)
        summary = role in ("user", "assistant") and _is_summary(row.content)
        state = self._state_of(row, session)
        if summary:
            session.zone = _seconds(row.timestamp)
        if state == "known":
            self._findings.repeated += 1
            return
        tally = self._findings.sessions.get(row.session_id) or self._tally(row.session_id, session)
        kind = session.kind
        if tally.kind is not kind:
            tally.kind = tally.kind.stronger(kind)
        tally.records += 1
        if state == "copy":
            return
        at = self._time(row.timestamp)
        if at is not None:
            session.time_ms = at
        if role not in KNOWN_ROLES:
            self._findings.unknown_type(f"role {role}")
        turns = 0
        if not summary and (kind is SessionKind.PERSON or kind.counts):
            if role == "assistant" and not answers_review:
                turns = self._assistant(row, at, session, tally)
            elif role == "user":
                self._user(row, text, at, session, tally)
            elif role == "tool":
                self._result(row, tally)
        if at is not None:
            # What a compaction writes, or others say to each other, is no sign that somebody works.
            work = (kind is SessionKind.PERSON or kind.is_work) and not summary and not row.observed
            tally.saw(at, work=work, assistant_turns=turns)

    def _look_for_own(self, row: Row, text: str, session: _Session) -> None:
        """Know a session of curatord itself, put through Hermes, by its first prompt (bugs B107)."""
        if OWN_MARK in text and not any(
            earlier.role == "user" for earlier in self._history.earlier(row.session_id, row.id)
        ):
            session.kind = SessionKind.OWN
            self._own[row.session_id] = None

    def _state_of(self, row: Row, session: _Session) -> str:
        """Return whether *row* is `new`, a `copy` of another row, or `known`: counted by an earlier reading."""
        body = _body(row)
        key = _key(session.owner, body, 0)
        known = self._is_known(key)
        if not session.loaded and (known or body in session.bodies):
            self._load(row.session_id, session)
        nth, twin = session.met(body, row.timestamp)
        if nth:
            key = _key(session.owner, body, nth)
            known = self._is_known(key)
        else:
            self._held += 1
        if session.heads:
            session.heads -= 1
            self._heads.append(key)
        if known:
            return "known"
        self._keys.append(key)
        if (twin and self._copies) or (nth and _within(row.timestamp, session.zone)):
            return "copy"
        if session.ancestors and self._is_inherited(row, body, session):
            return "copy"
        return "new"

    def _load(self, session_id: str, session: _Session) -> None:
        """Add the session's rows of before this reading to what is known of it."""
        for earlier in self._history.earlier(session_id, session.first_id):
            self._held += not session.met(_body(earlier), earlier.timestamp)[0]
        session.loaded = True

    def _is_inherited(self, row: Row, body: bytes, session: _Session) -> bool:
        """Return whether *row* repeats one of the session that this one goes on with."""
        time = _seconds(row.timestamp)
        if time is not None and session.started is not None and time > session.started + BATCH_S:
            return False  # said after this session began
        if session.inherited is None:
            times: set[tuple[bytes, Any]] = set()
            bodies: set[bytes] = set()
            for ancestor in session.ancestors:
                for earlier in self._history.earlier(ancestor, row.id):
                    inherited = _body(earlier)
                    bodies.add(inherited)
                    times.add((inherited, earlier.timestamp))
            session.inherited = (times, bodies)
        times, bodies = session.inherited
        if (body, row.timestamp) in times:
            return True
        if not _within(row.timestamp, session.started):
            return False
        if body in bodies:
            return True
        return any(self._is_known(_key(_owner(ancestor), body, 0)) for ancestor in session.ancestors)

    def _user(self, row: Row, text: str, at: int | None, session: _Session, tally: SessionTally) -> None:
        if row.observed or REVIEW.match(text):
            return
        if session.kind is not SessionKind.SUBAGENT:
            tally.user_turns += 1
        for name, via, folder in _invoked(text):
            tally.sightings.append(
                Sighting(
                    skill=name,
                    kind=EventKind.USE,
                    via=via,
                    at_ms=at if at is not None else session.time_ms,
                    path=folder or self._where(name),
                    cwd=session.cwd,
                    ref=f"row {row.id}",
                )
            )

    def _assistant(self, row: Row, at: int | None, session: _Session, tally: SessionTally) -> int:
        """Count a message of the model; return how many turns it is."""
        tally.assistant_turns += 1
        if not row.tool_calls:
            return 1
        when = at if at is not None else session.time_ms
        for nth, call in enumerate(_decode_calls(row.tool_calls)):
            name, arguments = _name_and_arguments(call, session.cwd)
            if not name:
                continue
            tally.called(name)
            sightings = self._sightings(name, arguments, when, session.cwd)
            if sightings:
                ref = printable(call.id or call.call_id or f"row {row.id}.{nth}")[:MAX_NAME]
                for sighting in sightings:
                    sighting.ref = ref
                self._wait(row.session_id, ref, name, sightings)
        return 1

    def _wait(self, session_id: str, call: str, tool: str, sightings: list[Sighting]) -> None:
        """Hold the sightings of *call* until its result is there."""
        held = self._pending.pop((session_id, call), None)
        if held is not None:
            # Small servers number their calls anew in each answer: the older call will get no result any more.
            self._findings.session(session_id).sightings.extend(held[1])
        self._pending[session_id, call] = (tool, sightings)
        while len(self._pending) > KEEP_PENDING:
            oldest = next(iter(self._pending))
            self._findings.session(oldest[0]).sightings.extend(self._pending.pop(oldest)[1])

    def _result(self, row: Row, tally: SessionTally) -> None:
        if not self._pending and not self._released:
            return
        call = row.tool_call_id
        if call is None:
            # Older rows: the oldest call of that tool that still waits.
            call = next(
                (
                    waiting
                    for (owner, waiting), (tool, _) in self._pending.items()
                    if owner == row.session_id and tool == row.tool_name
                ),
                None,
            )
            if call is None:
                return
        call = printable(call)[:MAX_NAME]
        held = self._pending.pop((row.session_id, call), None)
        if held is None:
            if (row.session_id, call) in self._released and _failed(row.content, None):
                del self._released[row.session_id, call]
                tally.retracted.append(call)
            return
        tool, sightings = held
        outcome = _decode_object(row.content)
        if _failed(row.content, outcome):
            return
        if outcome is not None and tool in ("skill_view", "skill_manage"):
            if tool == "skill_view" and (outcome.get("dedup") or outcome.get("content_returned") is False):
                return  # the answer to a repeated view: nothing was put into the context
            if tool == "skill_manage" and (outcome.get("staged") or outcome.get("pending_id")):
                return  # waits for a person's yes: nothing was changed
            self._complete(outcome, sightings)
        tally.sightings.extend(sightings)

    def _complete(self, outcome: dict[str, Any], sightings: list[Sighting]) -> None:
        """Take from a result what the call does not say: where the skill is, and its name where it was a path."""
        folder = outcome.get("skill_dir")
        below = outcome.get("path")
        for sighting in sightings:
            if isinstance(folder, str) and 0 < len(folder) <= MAX_FOLDER:
                sighting.path = printable(folder)
            elif isinstance(below, str) and 0 < len(below) <= MAX_FOLDER and self._home and len(sightings) == 1:
                sighting.path = join(f"{self._home}/skills", printable(below))
            name = outcome.get("name")
            if isinstance(name, str) and name and "/" in sighting.skill and len(sightings) == 1:
                sighting.skill = printable(name)[:MAX_NAME]

    def _sightings(self, tool: str, arguments: dict[str, Any], at: int | None, cwd: str | None) -> list[Sighting]:
        """Return what a call would do with skills if it succeeds."""
        if tool == "skill_view":
            name = _name(arguments.get("name"))
            if not name:
                return []
            file_path = arguments.get("file_path")
            support = isinstance(file_path, str) and file_path.strip() not in ("", "SKILL.md")
            kind = EventKind.VIEW if support else EventKind.USE
            return [Sighting(skill=name, kind=kind, via=tool, at_ms=at, path=self._where(name), cwd=cwd)]
        if tool == "skill_manage":
            operations = arguments.get("operations")
            if not isinstance(operations, list):
                operations = [arguments]
            found = []
            for operation in operations[:MAX_OPERATIONS]:
                if not isinstance(operation, dict):
                    continue
                name = _name(operation.get("name") or arguments.get("name"))
                action = operation.get("action")
                changed = MANAGE_ACTIONS.get(action) if isinstance(action, str) else None
                if name and changed is not None:
                    found.append(
                        Sighting(skill=name, kind=changed, via=tool, at_ms=at, path=self._where(name), cwd=cwd)
                    )
            return found
        if tool == "terminal":
            command = arguments.get("command")
            folder = arguments.get("workdir") or arguments.get("cwd")
            where = join(cwd, folder) if isinstance(folder, str) and folder else cwd
            if not isinstance(command, str):
                return []
            return list(_from_shell(command, at, where))
        changed = FILE_TOOLS.get(tool)
        if changed is None:
            return []
        found = []
        paths = [arguments.get("path") or arguments.get("file_path")]
        text = arguments.get("patch")
        if tool == "patch" and isinstance(text, str):
            paths += [target.path for target in patch_targets(text)]
        for path in paths:
            if isinstance(path, str) and path and len(path) <= 4096:
                whole = join(cwd, printable(path))
                skill = skill_of_path(whole)
                if skill:
                    found.append(Sighting(skill=skill, kind=changed, via=tool, at_ms=at, path=whole, cwd=cwd))
        return found

    def _where(self, name: str) -> str | None:
        """Return where Hermes looks for a skill first: its home's `skills`; a plugin's skill stands elsewhere."""
        return f"{self._home}/skills" if self._home and ":" not in name else None

    def _time(self, value: object) -> int | None:
        """Return the time of a row or session in ms, or None where it says none that can be."""
        told: Told | None = None
        if type(value) is float and 0.0 <= value < self._latest:
            return round(value * 1_000_000) // 1000  # as `ms_of_number` has it, for nearly every row
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            told = ms_of_number(value, now_ms=self._now_ms)
        elif isinstance(value, str):
            told = ms_of_iso(value, now_ms=self._now_ms)
        if told is None:
            return None
        self._findings.naive_times += told.naive
        self._findings.future_times += told.future
        return told.ms


# --- texts -----------------------------------------------------------------------------------------------------


def _is_summary(content: bytes | None) -> bool:
    return content is not None and content[:64].lstrip().startswith(SUMMARY)


def _invoked(text: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield (name, via, folder) of the skills that Hermes put in front of a user's message, or made it of."""
    if not text.startswith(("[IMPORTANT: ", "[SYSTEM: ")):
        return
    invoked = _INVOKED.match(text)
    if invoked is None:
        if _LOADED.match(text):
            for name, folder in _with_folders(_LOADED, text):
                yield name, "auto-load", folder
        return
    folders = _SKILL_FOLDER.findall(text)
    if invoked[2] == "skill":
        name = _name(invoked[1].lstrip("/"))
        if name:
            yield name, "slash", printable(folders[-1]) if folders else None
        return
    listed = _BUNDLE_NAMES.search(text)
    names = listed[1].split(", ") if listed else [word.lstrip("/") for word in invoked[1].split()]
    if not listed and invoked[2] == "skill bundle":
        return  # a bundle's own name says nothing of its skills
    for nth, given in enumerate(dict.fromkeys(names)):
        name = _name(given)
        if name:
            # One block a skill, in the order of the list, each with its folder; where one has none, none is sure.
            yield name, "slash", printable(folders[nth]) if len(folders) == len(names) else None


def _with_folders(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each name that *pattern* finds at a line's start, with the skill folder told before the next one."""
    marks = list(pattern.finditer(text))[:MAX_OPERATIONS]
    for mark, end in zip(marks, [*(following.start() for following in marks[1:]), len(text)], strict=True):
        name = _name(mark[1])
        folder = _SKILL_FOLDER.search(text, mark.end(), end)
        if name:
            yield name, printable(folder[1]) if folder else None


def _from_shell(command: str, at: int | None, cwd: str | None) -> Iterator[Sighting]:
    if "SKILL.md" not in command and "skill" not in command and (cwd is None or "skill" not in cwd):
        return
    for touch in touched(command, cwd=cwd, in_package=in_package):
        skill = skill_of_path(touch.path)
        if skill:
            yield Sighting(
                skill=printable(skill), kind=touch.kind, via="shell", at_ms=at, path=printable(touch.path), cwd=cwd
            )


def _name(value: object) -> str:
    """Return *value* as a skill's name, empty where it is none."""
    if not isinstance(value, str):
        return ""
    name = printable(value).strip()
    return name if len(name) <= MAX_NAME and "\n" not in name and "\0" not in name else ""


# --- values ----------------------------------------------------------------------------------------------------


def _body(row: Row) -> bytes:
    """
    Return what a message is known by besides its session: eight bytes over role, content and calls.

    Of a long content both ends and the length stand for the whole. Two that differ only in between would be rows of one
    body, which are told apart by their number; they would be taken for copies only if their times were equal as well.
    """
    calls = row.tool_calls or b""
    content = row.content or b""
    front = f"{row.role}\0{row.tool_call_id or ''}\0{len(calls)}\0{len(content)}\0".encode("utf-8", "replace")
    if len(content) > 4 * BODY_EDGE:
        content = content[:BODY_EDGE] + content[-BODY_EDGE:]
    return hashlib.blake2b(front + calls + content, digest_size=8).digest()


def _owner(session_id: str) -> bytes:
    return hashlib.blake2b(session_id.encode("utf-8", "replace"), digest_size=16).digest()


def _key(owner: bytes, body: bytes, nth: int) -> bytes:
    """Return the key of the *nth* (from 0) row with *body* of the session *owner*."""
    return hashlib.blake2b(owner + body + nth.to_bytes(4, "big") if nth else owner + body, digest_size=8).digest()


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _within(time: object, start: float | None) -> bool:
    """Return whether *time* is no more than `BATCH_S` from *start*."""
    seconds = _seconds(time)
    return seconds is not None and start is not None and abs(seconds - start) <= BATCH_S


def _decode_calls(data: bytes) -> list[_Call]:
    try:
        return _calls.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        value = json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return []
    found = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            function = item.get("function")
            function = function if isinstance(function, dict) else {}
            arguments = function.get("arguments")
            found.append(
                _Call(
                    id=_text(item.get("id")),
                    call_id=_text(item.get("call_id")),
                    name=_text(item.get("name")),
                    function=_Function(
                        name=_text(function.get("name")),
                        arguments=arguments if isinstance(arguments, (str, dict)) else None,
                    ),
                )
            )
    return found


def _text(value: object) -> str | None:
    return printable(value) if isinstance(value, str) else None


def _name_and_arguments(call: _Call, cwd: str | None) -> tuple[str, dict[str, Any]]:
    """Return a call's tool and, where they can name a skill at all, its arguments."""
    function = call.function or _Function()
    name = _name(function.name or call.name)
    arguments = function.arguments
    if name not in SKILL_TOOLS:
        if name not in FILE_TOOLS and name != "terminal":
            return name, {}
        # Of a thousand commands and paths one has to do with skills: the others are not even decoded.
        if isinstance(arguments, str) and not _MENTIONS.search(arguments) and not (cwd and "skill" in cwd):
            return name, {}
    if isinstance(arguments, dict):
        return name, arguments
    return name, _decode_object(arguments.encode("utf-8", "replace")) or {} if arguments else {}


def _decode_object(data: bytes | None) -> dict[str, Any] | None:
    """Return the JSON object that *data* is, or None."""
    if not data or not data.lstrip().startswith(b"{"):
        return None
    try:
        return _object.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        value = json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _failed(content: bytes | None, outcome: dict[str, Any] | None) -> bool:
    """Return whether a result tells of a failure; *outcome* is its content decoded, where that was an object."""
    if outcome is None:
        outcome = _decode_object(content)
    if outcome is not None:
        if outcome.get("success") is False or outcome.get("error") not in (None, "", False):
            return True
        code = outcome.get("exit_code", outcome.get("returncode"))
        return isinstance(code, int) and not isinstance(code, bool) and code != 0
    text = (content or b"").decode("utf-8", "replace").lstrip()
    if text.startswith("{"):
        # Too long to be whole, or cut: the marks stand near one of its ends.
        return _FAILED.search(text[:512]) is not None or _FAILED.search(text[-512:]) is not None
    return text.startswith(("Error", "[Tool execution ", "Tool error"))

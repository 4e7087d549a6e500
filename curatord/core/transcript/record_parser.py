"""
What every reader of JSON lines does with a record besides understanding it: keys, sessions, times, calls that wait.

A host's module derives its parser from `RecordParser` and answers four questions about a record: what it is known by
(`ident_of`), when it was (`time_of`), what it says about the session (`note`, asked of every record, known ones too)
and what it counts (`count`, asked of new ones only). Of nine records in ten one question is enough (`tell`), and the
rest of what is done with them is done in one loop, in locals (`feed`).

Keys. A record with an id that is worth the name is keyed by it; others by their content and the key before them
(`chained_key`). Local model servers number calls and messages from 1 in each session, so an id shorter than
`LONG_ENOUGH` identifies nothing beyond its neighbourhood: such a record is keyed like one without. A record that stands
in its file twice is a record more and nothing else.

Events wait for their call's result (`_hold`, `_answer`): a failed call is none. Calls whose result never comes are
taken as done when the session has settled (`settle`), and taken back if a failure shows later after all.
"""

from __future__ import annotations

import functools
import itertools
import json
import struct
from abc import abstractmethod
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Generic, TypeVar
from zlib import crc32

import msgspec

from curatord.core.transcript.accounts import Account, common_ms, tell_times
from curatord.core.transcript.events import (
    MAX_FOLDER,
    MAX_NAME,
    MAX_NAMES,
    MAX_SESSION,
    OWN_MARK,
    Findings,
    SessionKind,
    SessionTally,
    Sighting,
    short_ones,
)
from curatord.core.transcript.ids import ANCHOR_FIRST, KEY_BYTES, Guard, content_key, fold_uuids, id_key
from curatord.core.transcript.kept_state import kept_state
from curatord.core.transcript.lines import Unreadable, objects
from curatord.core.transcript.salvage import cut_off, fit
from curatord.core.transcript.times import FUTURE_MS, iso_of, ms_of_iso, ms_of_number
from curatord.core.values import EventKind

__all__ = ["LONG_ENOUGH", "Carried", "RecordParser", "chained_key", "ends", "key_of"]

LONG_ENOUGH = 16  # characters of an id that is the only one of its kind
ENDS = 192  # bytes of a record's beginning and of its end that it is known by
KEEP_IDS = 64  # ids that the state carries over; repetitions stand close together
KEEP_PENDING = 256
WINDOW = 65_536  # keys held in memory; a copy from further back within one file shows by its anchors
_LOW = 0xFFFFFFFF

Waiting = tuple[str, str, str, str, int | None, str | None, str | None, bool]


class Carried(msgspec.Struct, array_like=True):
    """The state between two scans; a host's own fields follow, and new ones go to the end with a default."""

    session: str = ""
    last_key: bytes = b""
    last_time: str = ""
    cwd: str = ""
    version: str = ""
    kind: str = SessionKind.UNKNOWN.value
    parent: str | None = None
    side: bool = False
    prompted: bool = False
    messages: list[str] = []
    calls: list[str] = []
    pending: dict[str, list[Waiting]] = {}
    released: list[str] = []


R = TypeVar("R", bound=msgspec.Struct)
C = TypeVar("C", bound=Carried)
_encode = msgspec.msgpack.Encoder().encode
_NO_HOUR: list[Any] = ["~", "", 0]
_HALVES = struct.Struct(">II")
packed, unpacked = _HALVES.pack, _HALVES.unpack  # a key and its halves


Stamp = Annotated[str, msgspec.Meta(min_length=24, max_length=24)]  # a time in the common form, or nearly


class RecordParser(Generic[R, C]):
    """
    The `LineParser` of one file, host-independent part.

    Args:
        session: What the file's name says; a record may say better.
        side: The file is a sub-agent's that counts for that session.
        state: Of the reading before, or empty.
        fresh: Reading begins at the start of the file; of *state* only what waits for a result is kept.
        guard: Keys of records that are counted already, here or elsewhere.
        before: Keys of this file's records before the place where reading begins.
        now_ms: For times in the future.
        mtime_ms: The file's own time.
    """

    record: ClassVar[type[msgspec.Struct]]
    carried: ClassVar[type[Carried]]
    by_uuid: ClassVar[bool] = False  # whether most records have a `uuid` that is one
    timeless: ClassVar[bool] = False  # whether records without a time are usual, of which none is work

    def __init__(
        self,
        session: str,
        *,
        side: bool = False,
        state: bytes,
        fresh: bool,
        guard: Guard,
        before: Guard,
        now_ms: int,
        mtime_ms: int = 0,
    ) -> None:
        saved = kept_state(state, self.carried)
        if fresh:
            saved = self.carried(pending=saved.pending, released=saved.released, side=side)
        self.saved: C = saved  # type: ignore[assignment]  # a host names its own class of both at once
        self._decode: Callable[[bytes], R] = _decoder(self.record).decode
        self._guard = guard or None
        self._before = before or None
        self._quick = not guard and not before
        self._now_ms = now_ms
        self._mtime_ms = mtime_ms
        self._latest = iso_of(now_ms + FUTURE_MS) if now_ms else "9999"
        self._session = (saved.session or session)[:MAX_SESSION]
        self._side = saved.side or side
        self._kind = SessionKind(saved.kind)
        self._works = self._kind.is_work
        self._parent = saved.parent
        self._last_key = saved.last_key
        self._time = saved.last_time
        self._cwd = saved.cwd
        self._version = saved.version
        self._prompted = saved.prompted
        self._messages: dict[str, None] = dict.fromkeys(saved.messages)
        self._calls: dict[str, None] = dict.fromkeys(saved.calls)
        self._pending: dict[str, list[tuple[str, Sighting]]] = {
            call: [
                (of, Sighting(skill=skill, kind=EventKind(kind), via=via, at_ms=at, path=path, cwd=cwd, ref=call,
                              estimated=estimated))
                for of, skill, kind, via, at, path, cwd, estimated in sightings
            ]
            for call, sightings in saved.pending.items()
        }  # fmt: skip
        self._released = list(saved.released)
        self._heads: list[bytes] = [] if fresh else [b""] * ANCHOR_FIRST
        self._new: dict[bytes, None] = {}  # keys of this slice, in order
        self._seen: set[bytes] = set()  # of those before, and of known ones
        self._ids: dict[str, None] = {}  # UUIDs of this slice, whose keys are not in `_new`
        self._seen_ids: set[str] = set()
        self._begin()

    # -- what a host answers

    @abstractmethod
    def ident_of(self, record: R) -> bytes:
        """Return what *record* is known by, wherever it stands; empty where it has no id."""

    @abstractmethod
    def time_of(self, record: R) -> str | float | None:
        """Return when *record* was: ISO 8601 text, or seconds or milliseconds since 1970."""

    @abstractmethod
    def note(self, record: R) -> None:
        """Take from *record* what it says about the session, its folder and the host's version."""

    @abstractmethod
    def count(self, record: R, tally: SessionTally) -> tuple[int, bool]:
        """Count *record*; return the turns of the model in it, and whether it shows that somebody works."""

    def again(self, record: R, tally: SessionTally) -> None:
        """Take from a *record* whose id is known what may be new in it all the same."""

    def content_at(self, line: bytes) -> int:
        """Return where in *line* that begins what a record without an id is known by."""
        return 0

    def from_ends(self, head: bytes, tail: bytes) -> R:
        """Return what both ends of a line too long to hold show of its record."""
        record: R = fit(cut_off(head), self.record)  # type: ignore[assignment]
        return record

    # -- the LineParser protocol

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """
        Take whole lines with the offset at which each begins.

        Nine of ten records are new, not before the last, of the same hour, and say little: those are counted here, in
        locals, and all others by `_take`. Both say the same; a test feeds each file through either.
        """
        if self.by_uuid:
            self._feed_by_uuid(lines)
            return
        decode, ident_of, tell = self._decode, self.ident_of, self.tell
        new, seen = self._new, self._seen
        low, high, tally, work, rest, _ = self._bearings()
        last_key, timeless = self._last_key, self.timeless
        records = turns = 0
        work_first = work_last = rest_first = rest_last = ""
        for line, offset in lines:
            record: Any = None
            try:
                record = decode(line)
                stamp = record.timestamp
                timely = low <= stamp < high and stamp[23:] == "Z"
            except (msgspec.MsgspecError, RecursionError):
                timely = False
            except TypeError:  # it has no time, or a number
                timely = timeless and stamp is None and high != ""
            if timely:
                ident = ident_of(record)
                if ident:
                    key = blake2b(ident, digest_size=KEY_BYTES).digest()
                else:
                    key = chained_key(int.from_bytes(last_key, "big"), line, 0).to_bytes(KEY_BYTES, "big")
                told = None
                if key not in new and key not in seen:
                    new[key] = None
                    told = tell(record, tally)
                    if told is None:
                        del new[key]
                if told is not None:
                    last_key = key
                    records += 1
                    if told >= 0:
                        turns += told
                        low = work_last = stamp
                        work_first = work_first or stamp
                    elif stamp:
                        low = rest_last = stamp
                        rest_first = rest_first or stamp
                    continue
            if records:
                self._last_key = last_key
                self._add_up(records, turns, (work, work_first, work_last), (rest, rest_first, rest_last))
                records = turns = 0
                work_first = work_last = rest_first = rest_last = ""
            if record is None:
                self._odd(line, offset)
            else:
                self._take(record, line)
            low, high, tally, work, rest, _ = self._bearings()
            last_key = self._last_key
        if records:
            self._last_key = last_key
            self._add_up(records, turns, (work, work_first, work_last), (rest, rest_first, rest_last))

    def _feed_by_uuid(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """Do what `feed` does for records with a UUID: those are kept as they are, and folded in bulk."""
        decode, tell, ids, seen = self._decode, self.tell, self._ids, self._seen_ids
        low, high, tally, work, rest, _ = self._bearings()
        records = turns = 0
        ident: Any = ""
        work_first = work_last = rest_first = rest_last = ""
        for line, offset in lines:
            record: Any = None
            try:
                record = decode(line)
                stamp = record.timestamp
                timely = low <= stamp < high and stamp[23:] == "Z"
            except (msgspec.MsgspecError, RecursionError):
                pass
            except TypeError:  # it has no time, or a number
                timely = False
            if record is None:
                told = None
            elif timely and record.uuid and record.uuid not in ids and record.uuid not in seen:
                told = tell(record, tally)
            else:
                told = None
            if told is not None:
                ident = record.uuid
                ids[ident] = None
                records += 1
                low = stamp
                if told >= 0:
                    turns += told
                    work_last = stamp
                    work_first = work_first or stamp
                else:
                    rest_last = stamp
                    rest_first = rest_first or stamp
                continue
            if records:
                self._last_key = id_key(ident)
                self._add_up(records, turns, (work, work_first, work_last), (rest, rest_first, rest_last))
                records = turns = 0
                work_first = work_last = rest_first = rest_last = ""
            if record is None:
                self._odd(line, offset)
            else:
                self._take(record, line)
            low, high, tally, work, rest, _ = self._bearings()
        if records:
            self._last_key = id_key(ident)
            self._add_up(records, turns, (work, work_first, work_last), (rest, rest_first, rest_last))

    def uuid_of(self, record: R) -> str | None:
        """Return the UUID that *record* is known by and nothing else, where it has one."""
        return None

    def tell(self, record: R, tally: SessionTally) -> int | None:
        """
        Count a new *record* with a time of the common form where there is little to it.

        Return the turns of the model in it, less than 0 where it is no work. None, with nothing counted, sends it the
        long way: it says something about the session, a person said it, it touches a skill, or answers a call that
        waits.
        """
        return None

    def _bearings(self) -> tuple[str, str, SessionTally, list[Any], list[Any], bool]:
        """
        Return what a usual record's time must lie between, and where it is counted.

        The last four: the tally, the hour of what is work, that of what is none, and whether a call waits for its
        result. Where records are to go the long way, no time lies between the first two.
        """
        account = self._current
        waiting = bool(self._pending or self._released)
        if not self._quick or len(self._heads) < ANCHOR_FIRST or not self._time:
            return "~", "", account.tally, _NO_HOUR, _NO_HOUR, waiting
        hour = self._time[:13]
        rest = account.rest.setdefault(hour, ["~", "", 0])
        work = account.work.setdefault(hour, ["~", "", 0]) if self._at_work() else rest
        return hour, min(hour + "~", self._latest), account.tally, work, rest, waiting

    def _at_work(self) -> bool:
        """Return whether what the model does here and now is a sign that somebody works."""
        return not self._side

    def _add_up(
        self, records: int, turns: int, work: tuple[list[Any], str, str], rest: tuple[list[Any], str, str]
    ) -> None:
        """Add what was counted in locals: *work* and *rest* are an hour each, and first and last time within it."""
        self._current.tally.records += records
        work[0][2] += turns
        self._time = max(work[2], rest[2]) or self._time
        for hour, first, last in (work, rest):
            if last:
                if last > hour[1]:
                    hour[1] = last
                if first < hour[0]:
                    hour[0] = first

    def _read(self, line: bytes, offset: int) -> None:
        """Take one line the long way."""
        try:
            record = self._decode(line)
        except (msgspec.MsgspecError, RecursionError):
            self._odd(line, offset)
        else:
            self._take(record, line)

    def oversize(self, head: bytes, tail: bytes, size: int, offset: int) -> None:
        """Count a line too long to hold by what its ends show."""
        self._findings.oversize += 1
        if len(self._findings.notes) < MAX_NAMES:
            self._findings.notes.append(f"a line of {size} bytes at offset {offset}: only its ends were read")
        self._take(self.from_ends(head, tail), content_key(head, tail, size.to_bytes(8, "big")))

    def settle(self) -> None:
        """Take calls without a result as done; a failure that shows later takes them back by their ids."""
        for call, sightings in self._pending.items():
            for session, sighting in sightings:
                self._account(session).tally.sightings.append(sighting)
            if len(call) >= LONG_ENOUGH:  # the next result of that id is surely this call's
                self._released.append(call)
        self._pending.clear()
        del self._released[:-KEEP_PENDING]

    def findings(self) -> Findings:
        """Return what was found since the last call, and begin anew."""
        found = self._findings
        for session, account in self._accounts.items():
            tally = account.tally
            told = tally.records or tally.unreadable or tally.sightings or tally.retracted or tally.amended
            if told or tally.user_turns or tally.assistant_turns:
                tell_times(account)
                found.sessions[session] = tally
        found.heads = b"".join(self._heads)
        self._heads = [b""] * ANCHOR_FIRST  # later slices have none
        found.keys = fold_uuids(list(self._ids)) + b"".join(self._new)
        if len(self._seen) >= WINDOW:
            self._seen = set()
            self._messages = dict.fromkeys(list(self._messages)[-KEEP_IDS:])
            self._calls = dict.fromkeys(list(self._calls)[-KEEP_IDS:])
        if len(self._seen_ids) >= WINDOW:
            self._seen_ids = set()
        self._seen.update(self._new)
        self._seen_ids.update(self._ids)
        self._new = {}
        self._ids = {}
        self._begin()
        return found

    def state(self) -> bytes:
        """Return what must be known to go on after the last line fed."""
        saved = self.saved
        saved.session = self._session
        saved.last_key = self._last_key
        saved.last_time = self._time
        saved.cwd = self._cwd
        saved.version = self._version
        saved.kind = self._kind.value
        saved.parent = self._parent
        saved.side = self._side
        saved.prompted = self._prompted
        saved.messages = short_ones(list(self._messages)[-KEEP_IDS:])
        saved.calls = short_ones(list(self._calls)[-KEEP_IDS:])
        saved.pending = {
            call: [(of, s.skill, s.kind.value, s.via, s.at_ms, s.path, s.cwd, s.estimated) for of, s in sightings]
            for call, sightings in self._pending.items()
        }
        saved.released = self._released
        return _encode(saved)

    @property
    def waiting(self) -> bool:
        """Whether a call waits for its result."""
        return bool(self._pending)

    # -- one record

    def _begin(self) -> None:
        self._findings = Findings()
        self._accounts: dict[str, Account] = {}
        self._current = self._account(self._session)
        if self._version:
            self._findings.of_version(self._version)

    def _account(self, session: str) -> Account:
        account = self._accounts.get(session)
        if account is None:
            tally = SessionTally(session_id=session, side=self._side)
            if session == self._session:
                tally.kind = self._kind
                tally.parent = self._parent
                if self._cwd:
                    tally.cwds.append(self._cwd)
            account = self._accounts[session] = Account(tally)
        return account

    def _take(self, record: R, line: bytes) -> None:
        """Count one record, which *line* is the text of."""
        self.note(record)
        known = copy = False
        ident = self.ident_of(record)
        place = b""
        uuid = self.uuid_of(record)
        if uuid:
            ident = b"uuid"
            place = key = id_key(uuid)
            copy = uuid in self._ids or uuid in self._seen_ids or (self._before is not None and key in self._before)
        elif ident:
            place = key = key_of(ident)
            copy = key in self._new or key in self._seen or (self._before is not None and key in self._before)
        if not ident or copy:
            key = chained_key(int.from_bytes(self._last_key, "big"), line, self.content_at(line)).to_bytes(
                KEY_BYTES, "big"
            )
        if self._guard is not None and key in self._guard:
            known = True
            self._seen.add(key)
            if uuid:
                self._seen_ids.add(uuid)
        elif (not ident or copy) and self._before is not None and key in self._before:
            known = True  # told by its place, it is the same record: the file was cut, and written whole again
        elif uuid and not copy:
            self._ids[uuid] = None
        else:
            self._new[key] = None
        self._last_key = place or key  # what stands behind a copy is chained as it was behind the original
        if len(self._heads) < ANCHOR_FIRST:
            self._heads.append(key)
        time = self._noted_time(self.time_of(record))
        account = self._current
        tally = account.tally
        if known:
            self._findings.repeated += 1
            self.again(record, tally)
            return
        tally.records += 1
        if copy:
            self.again(record, tally)
            return
        turns, work = self.count(record, tally)
        if time:
            self._clock(account, time, turns, work=work and not self._side)
        elif turns and self._time:
            self._clock(account, self._time, turns, work=False)

    def _noted_time(self, time: str | float | None) -> str:
        """Return *time* in the common form, empty where there is none that can be used, and remember it."""
        if not time:
            return ""
        if type(time) is not str or len(time) != 24 or time[23] != "Z" or time[10] != "T" or time > self._latest:
            told = ms_of_iso(time, now_ms=self._now_ms) if type(time) is str else self._number_time(time)
            self._findings.naive_times += told.naive
            self._findings.future_times += told.future
            if told.ms is None:
                return ""
            time = iso_of(told.ms)
        self._time = time
        return time

    def _number_time(self, time: Any) -> Any:
        return ms_of_number(time, now_ms=self._now_ms)

    def _clock(self, account: Account, time: str, turns: int, *, work: bool) -> None:
        hours = account.work if work else account.rest
        hour = hours.get(time[:13])
        if hour is None:
            hours[time[:13]] = [time, time, turns]
        else:
            if time > hour[1]:
                hour[1] = time
            if time < hour[0]:
                hour[0] = time
            hour[2] += turns

    def _odd(self, line: bytes, offset: int) -> None:
        """Take a line apart that holds several objects, none, or one with values of other types than usual."""
        values = objects(line)
        first, second = next(values, None), next(values, None)
        for value in itertools.chain([first, second], values):
            if value is None:
                continue
            if isinstance(value, Unreadable):
                key = chained_key(int.from_bytes(self._last_key, "big"), line, 0).to_bytes(KEY_BYTES, "big")
                self._last_key = key
                if any(held is not None and key in held for held in (self._guard, self._before)):
                    self._findings.repeated += 1
                    continue
                self._new[key] = None
                self._current.tally.unreadable += 1
                self._findings.note_bad(offset, value.reason)
            else:
                record: R = fit(value, self.record)  # type: ignore[assignment]
                # One that stands alone is known as where `brief` takes it; of several, each by its own text.
                self._take(record, line if second is None else json.dumps(value, sort_keys=True).encode("ascii"))

    # -- for the hosts' `note` and `count`

    def _in_session(self, session: str) -> None:
        if session != self._session and session:
            self._session = session[:MAX_SESSION]
            self._current = self._account(self._session)

    def _in_folder(self, cwd: str) -> None:
        if cwd and cwd != self._cwd and len(cwd) <= MAX_FOLDER:
            self._cwd = cwd
            self._current.tally.was_in(cwd)

    def _of_version(self, version: str) -> None:
        version = version[:MAX_NAME]
        if version and version != self._version:
            self._version = version
            self._findings.of_version(version)

    def _driven_by(self, kind: SessionKind) -> None:
        if kind is self._kind and kind is self._current.tally.kind:
            return
        self._kind = self._kind.stronger(kind)
        self._works = self._kind.is_work
        self._current.tally.kind = self._current.tally.kind.stronger(self._kind)

    def _child_of(self, parent: str | None) -> None:
        if parent and parent != self._session:
            self._parent = self._current.tally.parent = parent[:MAX_SESSION]

    def _beside(self) -> None:
        """From here on, records are a sub-agent's that count for the session."""
        self._side = self._current.tally.side = True

    def _first_time(self, ident: bytes) -> bool:
        """Return whether what *ident* is the id of was never counted, and remember it as counted."""
        key = key_of(ident)
        if key in self._new or key in self._seen:
            return False
        if (self._before is not None and key in self._before) or (self._guard is not None and key in self._guard):
            return False
        self._new[key] = None
        return True

    def _said(self, text: str, tally: SessionTally, by: SessionKind = SessionKind.PERSON) -> None:
        """Count a turn of a user."""
        tally.user_turns += 1
        self._driven_by(by)
        if not self._prompted:
            self._prompted = True
            if OWN_MARK in text:
                self._driven_by(SessionKind.OWN)

    def _answered(self, ident: str | None, tally: SessionTally) -> int:
        """Count a message of the model, once where it has an id; return the turns."""
        if ident is not None and len(ident) >= LONG_ENOUGH:
            if ident in self._messages:
                return 0
            self._messages[ident] = None
        tally.assistant_turns += 1
        return 1

    def _called(self, name: str, ident: str | None, tally: SessionTally) -> bool:
        """Count a call, once where it has an id; return whether it was new."""
        if ident is not None and len(ident) >= LONG_ENOUGH:
            if ident in self._calls:
                return False
            self._calls[ident] = None
        calls = tally.tool_calls
        if name in calls:
            calls[name] += 1
        else:
            tally.called(name)
        return True

    def _hold(self, call: str | None, found: list[Sighting], tally: SessionTally) -> None:
        """Let *found* wait for the result of *call*."""
        if not found:
            return
        if not call:
            tally.sightings.extend(found)
            return
        call = call[:MAX_NAME]
        if len(self._pending) >= KEEP_PENDING:
            for session, sighting in self._pending.pop(next(iter(self._pending))):
                self._account(session).tally.sightings.append(sighting)
        earlier = self._pending.pop(call, [])  # of the same number and never answered
        for session, sighting in earlier:
            self._account(session).tally.sightings.append(sighting)
        self._pending[call] = [(tally.session_id, sighting) for sighting in found]

    def _answer(self, call: str, *, failed: bool, created: bool = False) -> None:
        """Let the events of *call* happen, or not; *created*: the result says that the file is new."""
        call = call[:MAX_NAME]
        if call in self._released:
            self._released.remove(call)
            if failed:
                self._current.tally.retracted.append(call)
            return
        waiting = self._pending.pop(call, None)
        if waiting is None or failed:
            return
        for session, sighting in waiting:
            if created and sighting.kind is EventKind.PATCH and is_skill_file(sighting.path):
                sighting.kind = EventKind.CREATE
            self._account(session).tally.sightings.append(sighting)

    def _now(self) -> int | None:
        """Return the time (ms) of the record at hand, else of the one before it."""
        return common_ms(self._time) if self._time else None


@functools.cache
def _decoder(record: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(record)  # dear to make, and one is needed for each file


def is_skill_file(path: str | None) -> bool:
    """Return whether *path* is a package's main file."""
    return path is not None and path.replace("\\", "/").endswith("/SKILL.md")


def key_of(ident: bytes) -> bytes:
    """Return the key of what *ident* is the id of."""
    return blake2b(ident, digest_size=KEY_BYTES).digest()


def halves(key: bytes) -> tuple[int, int]:
    """Return both halves of *key*; of none, zeros."""
    high, low = _HALVES.unpack(key) if key else (0, 0)
    return high, low


def chained_key(before: int, data: bytes, at: int) -> int:
    """
    Return the key of a record without an id behind the one with key *before*, told by its *data* from *at* on.

    Two running checksums, over the ends of each: a third of what a hash costs, and half of all records of some hosts
    are keyed this way. They tell apart what differs by chance, which is all that is asked; a writer who wants two
    records taken for one need only leave one out.
    """
    end = len(data)
    if end and data[end - 1] == 10:  # a newline, which lines from some places have and the same from others have not
        end -= 1
    size = end - at
    if size <= ENDS:
        told = data[at:end]
        return crc32(told, before & _LOW) << 32 | crc32(told, before >> 32 ^ size)
    return crc32(data[at : at + ENDS], before & _LOW) << 32 | crc32(data[end - ENDS : end], before >> 32 ^ size & _LOW)


def ends(data: bytes, at: int = 0) -> bytes:
    """Return *data* from *at* on, of much its ends and its size: enough to tell it from others in its place."""
    size = len(data) - at
    if size <= 2 * ENDS:
        return data[at:]
    return data[at : at + ENDS] + data[-ENDS:] + size.to_bytes(5, "big")

"""
The generic host `jsonl`: any log of one JSON object a line, described by `fields` (see `jsonl_fields`).

It knows nothing of a host but what the fields say, so it is as careful as the other readers and less clever: a record
is a turn, calls, results and skills by its fields, once. It is known by its id, or by its content and the number of
times that stood in the file before it, so that files may be copied, rewritten and read anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from curatord.core.path_text import join
from curatord.core.transcript.events import OWN_MARK, Findings, SessionKind, SessionTally, Sighting
from curatord.core.transcript.ids import ANCHOR_FIRST, Guard, content_key, id_key, occurrence
from curatord.core.transcript.jsonl_fields import CallPlace, Fields, first_value, kind_of, values_at
from curatord.core.transcript.kept_state import kept_state
from curatord.core.transcript.lines import Unreadable, objects, printable
from curatord.core.transcript.packages import in_package, skill_of_path
from curatord.core.transcript.shell import patch_targets, touched
from curatord.core.transcript.times import Told, ms_of_iso, ms_of_number
from curatord.core.values import EventKind

__all__ = ["JsonlParser"]

KEEP_PENDING = 256
KEEP_SESSIONS = 64
MAX_REPEATS = 65_536  # contents remembered in one reading
MAX_NAME = 200
MAX_CALLS = 64
COMMON_NAMES = frozenset({"events", "session", "messages", "transcript", "conversation", "log", "chat", "history"})


class _Saved(msgspec.Struct, array_like=True):
    """The parser's state between two readings; new fields go to the end and have a default."""

    session: str = ""
    time_ms: int | None = None
    cwd: str | None = None
    prompted: list[str] = []
    own: list[str] = []
    pending: list[tuple[str, str, list[tuple[str, str, str, int | None, str | None, str | None]]]] = []
    released: list[tuple[str, str]] = []


_any = msgspec.json.Decoder()
_encode = msgspec.msgpack.Encoder().encode


class JsonlParser:
    """
    The `LineParser` of one file.

    Args:
        path: Below the source's folder; names the session where the records do not.
        fields: Where things are.
        state: Of the reading before, or empty.
        fresh: Reading begins at the start of the file; of *state* only what waits for a result is kept.
        guard: Keys of records that are counted already, here or elsewhere.
        before: Keys of this file's records before the place where reading begins.
        now_ms: For times in the future.
    """

    def __init__(
        self, path: str, fields: Fields, *, state: bytes, fresh: bool, guard: Guard, before: Guard, now_ms: int
    ) -> None:
        saved = kept_state(state, _Saved)
        if fresh:
            saved = _Saved(pending=saved.pending, released=saved.released)
        self._fields = fields
        self._guard = guard or None
        self._before = before or None
        self._now_ms = now_ms
        self._default = _session_of_path(path)
        self._session = saved.session or self._default
        self._time_ms = saved.time_ms
        self._cwd = saved.cwd
        self._prompted = dict.fromkeys(saved.prompted)
        self._own = dict.fromkeys(saved.own)
        self._pending: dict[tuple[str, str], list[Sighting]] = {
            (session, call): [
                Sighting(skill=skill, kind=EventKind(kind), via=via, at_ms=at, path=path, cwd=cwd, ref=call)
                for skill, kind, via, at, path, cwd in sightings
            ]
            for session, call, sightings in saved.pending
        }
        self._released = dict.fromkeys(saved.released)
        self._repeats: dict[bytes, int] = {}
        self._heads: list[bytes] = [] if fresh else [b""] * ANCHOR_FIRST
        self._begin()

    # -- the LineParser protocol

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """Take whole lines with the offset at which each begins."""
        for line, offset in lines:
            try:
                value = _any.decode(line)
            except (msgspec.MsgspecError, RecursionError, ValueError):
                value = None
            if isinstance(value, dict):
                self._take(value, line.rstrip(b"\n"))
                continue
            for each in objects(line):
                if isinstance(each, Unreadable):
                    self._unreadable(line.rstrip(b"\n"), offset, each.reason)
                else:
                    self._take(each, json.dumps(each, sort_keys=True).encode("ascii"))

    def oversize(self, head: bytes, tail: bytes, size: int, offset: int) -> None:
        """Count a line that is too long to hold; what it says is not known."""
        self._findings.oversize += 1
        self._unreadable(head + tail + str(size).encode(), offset, f"a line of {size} bytes")

    def settle(self) -> None:
        """Take calls without a result as done; a failure that shows later takes them back."""
        for (session, call), sightings in self._pending.items():
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
        self._heads = [b""] * ANCHOR_FIRST  # later slices have none
        self._begin()
        return found

    def state(self) -> bytes:
        """Return what must be known to go on after the last line fed."""
        return _encode(
            _Saved(
                session=self._session,
                time_ms=self._time_ms,
                cwd=self._cwd,
                prompted=list(self._prompted)[-KEEP_SESSIONS:],
                own=list(self._own)[-KEEP_SESSIONS:],
                pending=[
                    (session, call, [(s.skill, s.kind.value, s.via, s.at_ms, s.path, s.cwd) for s in sightings])
                    for (session, call), sightings in self._pending.items()
                ],
                released=list(self._released)[-KEEP_PENDING:],
            )
        )

    @property
    def waiting(self) -> bool:
        """Whether a call waits for its result."""
        return bool(self._pending)

    # -- one record

    def _begin(self) -> None:
        self._findings = Findings()
        self._keys: list[bytes] = []

    def _take(self, record: dict[str, Any], content: bytes) -> None:
        fields = self._fields
        named = _short(first_value(record, fields.session))
        if named:
            self._session = named
        session = self._session
        ident = first_value(record, fields.id)
        state = self._state_of(session, ident if isinstance(ident, (str, int)) else None, content)
        if state == "known":
            self._findings.repeated += 1
            return
        tally = self._findings.session(session)
        tally.records += 1
        if state == "copy":
            return
        at = self._time(first_value(record, fields.time))
        if at is not None:
            self._time_ms = at
        cwd = first_value(record, fields.cwd)
        if isinstance(cwd, str) and cwd:
            self._cwd = printable(cwd)[:4096]
            tally.was_in(self._cwd)
        parent = _short(first_value(record, fields.parent))
        if parent and parent != session and tally.parent is None:
            tally.parent = parent
        turns = self._talk(record, session, tally)
        if at is not None:
            tally.saw(at, work=tally.kind.is_work and not tally.parent, assistant_turns=turns)

    def _talk(self, record: dict[str, Any], session: str, tally: SessionTally) -> int:
        """Count what a record says and does; return how many turns of the model it is."""
        fields = self._fields
        if tally.parent:
            tally.kind = tally.kind.stronger(SessionKind.SUBAGENT)
        if first_value(record, fields.ignore):
            return 0
        role = first_value(record, fields.role)
        answered = self._results(record, session, tally)
        turns = 0
        if isinstance(role, str) and role in fields.user_roles:
            text = _text(first_value(record, fields.text))
            if text.strip() and not answered:
                if session not in self._prompted:
                    self._prompted[session] = None
                    if OWN_MARK in text:
                        self._own[session] = None
                if not first_value(record, fields.sidechain) and not tally.parent:
                    tally.user_turns += 1
                    tally.kind = tally.kind.stronger(SessionKind.PERSON)
        elif isinstance(role, str) and role in fields.assistant_roles:
            turns = 1
            tally.assistant_turns += 1
        if session in self._own:
            tally.kind = SessionKind.OWN
        if not answered and not self._failed(record):
            self._skills(record, tally)
        self._calls(record, session, tally, answered=answered)
        return turns

    def _state_of(self, session: str, ident: str | int | None, content: bytes) -> str:
        """Return whether a record is `new`, a `copy` within its file, or `known`: counted by an earlier reading."""
        if ident is not None and ident != "":
            text = str(ident)
            # A UUID is the record's wherever it stands; any other id may only number the records of its session.
            body = (
                id_key(text)
                if len(text) == 36
                else content_key(session.encode("utf-8", "replace"), text.encode("utf-8", "replace"))
            )
        else:
            # Two short logs may well hold the same words: they are one only if they are one session.
            body = content_key(session.encode("utf-8", "replace"), b"", content)
        nth = self._repeats.pop(body, None)
        if nth is None:
            nth = _first_free(body, self._before)
        key = occurrence(body, nth)
        self._repeats[body] = nth + 1
        if len(self._heads) < ANCHOR_FIRST:
            self._heads.append(key)
        if len(self._repeats) > MAX_REPEATS:
            del self._repeats[next(iter(self._repeats))]
        if self._guard is not None and key in self._guard:
            return "known"
        self._keys.append(key)
        return "copy" if nth and ident is not None and ident != "" else "new"

    def _unreadable(self, line: bytes, offset: int, reason: str) -> None:
        if self._state_of(self._session, None, b"\0unreadable" + line) == "known":
            self._findings.repeated += 1
            return
        self._findings.unreadable(self._session, offset, reason)

    # -- calls, results, skills

    def _calls(self, record: dict[str, Any], session: str, tally: SessionTally, *, answered: bool) -> None:
        for place in self._fields.calls:
            if answered and not place.base:
                continue  # the tool that a result names is not called again
            found = list(_calls_at(record, place))
            for name, arguments, call in found[:MAX_CALLS]:
                tally.called(name)
                sightings = self._sightings(name, arguments)
                if not sightings:
                    continue
                if call is None:
                    if not self._failed(record):
                        tally.sightings.extend(sightings)
                    continue
                for sighting in sightings:
                    sighting.ref = call
                held = self._pending.pop((session, call), None)
                if held is not None:
                    tally.sightings.extend(held)
                self._pending[session, call] = sightings
                while len(self._pending) > KEEP_PENDING:
                    oldest = next(iter(self._pending))
                    self._findings.session(oldest[0]).sightings.extend(self._pending.pop(oldest))
            if found:
                return  # one shape of calls a record

    def _results(self, record: dict[str, Any], session: str, tally: SessionTally) -> bool:
        """Match the results in a record to their calls; return whether it holds any."""
        calls: list[str] = []
        for path in self._fields.result:
            calls = [call for value in values_at(record, path) if (call := _short(value))]
            if calls:
                break
        if not calls:
            return False
        failed = self._failed(record)
        for call in calls:
            held = self._pending.pop((session, call), None)
            if held is not None:
                if not failed:
                    tally.sightings.extend(held)
            elif failed and (session, call) in self._released:
                del self._released[session, call]
                tally.retracted.append(call)
        return True

    def _failed(self, record: dict[str, Any]) -> bool:
        failed = first_value(record, self._fields.failed)
        return bool(failed) or first_value(record, self._fields.success) is False

    def _skills(self, record: dict[str, Any], tally: SessionTally) -> None:
        """Count the skills that a record names by itself."""
        fields = self._fields
        names: list[str] = []
        for path in fields.skill:
            for value in values_at(record, path):
                items = value if isinstance(value, list) else [value]
                names += [name for item in items[:MAX_CALLS] if isinstance(item, str) and (name := _short(item))]
            if names:
                break
        if not names:
            return
        kind = kind_of(first_value(record, fields.kind))
        path = first_value(record, fields.skill_path)
        for name in dict.fromkeys(names):
            tally.sightings.append(
                Sighting(
                    skill=name,
                    kind=kind,
                    via="skill",
                    at_ms=self._time_ms,
                    path=printable(path)[:4096] if isinstance(path, str) and path else None,
                    cwd=self._cwd,
                )
            )

    def _sightings(self, tool: str, arguments: dict[str, Any] | str) -> list[Sighting]:
        """Return what a call would do with skills if it succeeds."""
        fields = self._fields
        at, cwd = self._time_ms, self._cwd
        given = arguments if isinstance(arguments, dict) else {}
        named = fields.skill_tools.get(tool)
        if named is not None:
            name = _short(first_value(given, named)) or (_short(arguments) if isinstance(arguments, str) else "")
            return [Sighting(skill=name, kind=EventKind.USE, via=tool, at_ms=at, cwd=cwd)] if name else []
        if tool in fields.shell_tools:
            command = next((given[key] for key in ("command", "cmd", "script") if key in given), arguments)
            if isinstance(command, list):
                command = [str(word) for word in command]
            elif not isinstance(command, str):
                return []
            folder = given.get("cwd") or given.get("workdir")
            where = join(cwd, folder) if isinstance(folder, str) and folder else cwd
            return [
                Sighting(
                    skill=printable(skill),
                    kind=EventKind.USE if fields.read_is_use and touch.kind is EventKind.VIEW else touch.kind,
                    via="shell",
                    at_ms=at,
                    path=printable(touch.path),
                    cwd=cwd,
                )
                for touch in touched(command, cwd=where, in_package=in_package)
                if (skill := skill_of_path(touch.path))
            ]
        if tool not in fields.read_tools and tool not in fields.write_tools:
            return []
        kind = EventKind.PATCH if tool in fields.write_tools else EventKind.VIEW
        paths = [given[key] for key in fields.file_arguments if isinstance(given.get(key), str)][:1]
        if kind is EventKind.PATCH:
            text = next(
                (given[key] for key in ("patch", "patchText", "input") if isinstance(given.get(key), str)), None
            )
            paths += [
                target.path for target in patch_targets(text or (arguments if isinstance(arguments, str) else ""))
            ]
        found = []
        for path in paths:
            whole = join(cwd, printable(path)) if path and len(path) <= 4096 else ""
            skill = skill_of_path(whole) if whole else None
            if skill:
                told = (
                    EventKind.USE
                    if fields.read_is_use and kind is EventKind.VIEW and whole.endswith("/SKILL.md")
                    else kind
                )
                found.append(Sighting(skill=skill, kind=told, via=tool, at_ms=at, path=whole, cwd=cwd))
        return found

    def _time(self, value: object) -> int | None:
        told: Told | None = None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            told = ms_of_number(value, now_ms=self._now_ms)
        elif isinstance(value, str):
            told = ms_of_iso(value, now_ms=self._now_ms)
            if told.ms is None and not told.future and value.replace(".", "", 1).isdigit() and len(value) < 32:
                told = ms_of_number(float(value), now_ms=self._now_ms)
        if told is None:
            return None
        self._findings.naive_times += told.naive
        self._findings.future_times += told.future
        return told.ms


def _calls_at(record: dict[str, Any], place: CallPlace) -> Iterator[tuple[str, dict[str, Any] | str, str | None]]:
    """Yield name, arguments and id of the calls at *place*."""
    bases = values_at(record, place.base)
    for base in bases:
        for item in base if isinstance(base, list) else [base]:
            if not isinstance(item, dict):
                continue
            tool = first_value(item, place.tool)
            if isinstance(tool, list):
                yield from ((each, {}, None) for value in tool[:MAX_CALLS] if (each := _short(value)))
                continue
            name = _short(tool)
            if not name:
                continue
            arguments = first_value(item, place.arguments)
            # Results and texts may have a name as well; a call among blocks is told by its arguments or its type.
            kind = item.get("type")
            if place.base and arguments is None and kind not in (None, "function", "tool_use", "toolCall", "tool-call"):
                continue
            if isinstance(arguments, str) and arguments.lstrip().startswith("{"):
                try:
                    decoded = json.loads(arguments, strict=False)
                except (ValueError, RecursionError):
                    decoded = None
                arguments = decoded if isinstance(decoded, dict) else arguments
            if not isinstance(arguments, (dict, str)):
                arguments = {}
            yield name, arguments, _short(first_value(item, place.call)) or None


def _first_free(body: bytes, before: Guard | None) -> int:
    """Return how many records with this *body* stand before the place of reading; they are numbered without a gap."""
    if before is None or occurrence(body, 0) not in before:
        return 0
    high = 1
    while occurrence(body, high) in before:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if occurrence(body, middle) in before:
            low = middle
        else:
            high = middle
    return high


def _session_of_path(path: str) -> str:
    parts = path.split("/")
    stem = parts[-1].partition(".")[0] or parts[-1]
    return parts[-2] if len(parts) > 1 and stem in COMMON_NAMES else stem


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return ""
    return "\n".join(
        part if isinstance(part, str) else part["text"]
        for part in value
        if isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))
    )


def _short(value: object) -> str:
    """Return *value* as an id or a name, empty where it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        return ""
    text = printable(value).strip()
    return text if len(text) <= MAX_NAME and "\n" not in text and "\0" not in text else ""

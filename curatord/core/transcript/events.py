"""
What a transcript is turned into, whatever host wrote it.

A reader goes through one *item* (a file, or a database) and fills one `Findings`: per session a `SessionTally` with
counts, hours and skill sightings, and for the whole item the keys of the records it counted. Findings are
**additions**: the store adds the counts to what it holds for that item and session, unites the times, and appends the
sightings. What makes that safe is the key of every record (`ids.py`): a reader skips a record whose key is known, so
the same content read twice, from the same item or a copy of it, adds nothing.

Tallies are plain mutable accumulators with integer milliseconds, not frozen values with datetimes: half a million
records a gibibyte go through them, and each object per record would cost as much as the decoding. They are frozen by
leaving the reader's hands. Everything in them is bounded: at most `MAX_CWDS` folders a session, `MAX_NAMES` names of
tools or unknown types, `MAX_OFFSETS` offsets of unreadable records an item.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from curatord.core.cheap import dataclass, field
from curatord.core.values import EventKind

__all__ = [
    "DAY_MS",
    "HOUR_MS",
    "MAX_CWDS",
    "MAX_FOLDER",
    "MAX_NAME",
    "MAX_NAMES",
    "MAX_OFFSETS",
    "MAX_SESSION",
    "OTHER",
    "OWN_MARK",
    "Findings",
    "HourTally",
    "SessionKind",
    "SessionTally",
    "Sighting",
    "short_ones",
]

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MAX_CWDS = 16
MAX_NAMES = 256  # distinct tool names a session, distinct unknown types an item; further ones are counted as OTHER
MAX_OFFSETS = 32
MAX_SESSION = 300  # characters of a session's id
MAX_NAME = 200  # characters of a tool's name, a skill's, a version's, a call's id
MAX_FOLDER = 4096  # characters of a path; what is longer can be none
OTHER = "(other)"

# A line of this text in a session's first prompt says that curatord itself asked (contract section 11; bugs B107).
OWN_MARK = "<curatord-data>"


class SessionKind(enum.StrEnum):
    """
    Who drives a session, weakest word first: a later one replaces an earlier one, never back (`stronger`).

    `person` and `program` are work: they hold the idle gate open and end an absence. `scheduled` and `subagent` are
    not. `reviewer` (the host's own background reviewer or curator) and `own` (curatord itself) count for nothing at
    all.
    """

    UNKNOWN = "unknown"
    PERSON = "person"
    PROGRAM = "program"
    SCHEDULED = "scheduled"
    SUBAGENT = "subagent"
    REVIEWER = "reviewer"
    OWN = "own"

    @property
    def is_work(self) -> bool:
        """Whether its records show that somebody works."""
        return self in (SessionKind.UNKNOWN, SessionKind.PERSON, SessionKind.PROGRAM)

    def stronger(self, other: SessionKind) -> SessionKind:
        """Return the one of the two that stands later in the list."""
        return self if _RANK[self] >= _RANK[other] else other

    @property
    def counts(self) -> bool:
        """Whether its turns and events count at all."""
        return self not in (SessionKind.REVIEWER, SessionKind.OWN)


_RANK = {kind: rank for rank, kind in enumerate(SessionKind)}


@dataclass(slots=True, kw_only=True)
class Sighting:
    """
    One thing that a session did with a skill, before its library is known.

    *at_ms* is the record's own time (ms since 1970, UTC), None where no record near it has one. *skill* is the host's
    name for it, else the name of the folder that holds SKILL.md. *via* is the host's way: a tool's name, `slash`,
    `preload`, `shell`. *path* is the file or folder that was named, made absolute against *cwd* where it was relative
    and that is known. *ref* is the call's id, under which a later scan can take the sighting back (`retracted`).
    """

    skill: str
    kind: EventKind
    via: str
    at_ms: int | None
    path: str | None = None
    cwd: str | None = None
    ref: str | None = None
    estimated: bool = False


@dataclass(slots=True)
class HourTally:
    """Times (ms) of the first and the last record of one session within one hour."""

    first_ms: int
    last_ms: int


@dataclass(slots=True, kw_only=True)
class SessionTally:
    """
    What one item says about one session.

    *hours* maps `at_ms // HOUR_MS` to its tally, for all records with a time that are **work of this session itself**
    (not of its sub-agents or schedules); *first_ms* and *last_ms* are over all records. *turns_by_day* maps
    `at_ms // DAY_MS` to turns of the model (each one paid call), those of sub-agents too. *records* counts whole JSON
    objects (rows), *unreadable* those that could not be decoded. *side*: the item is a sub-agent's own file that counts
    for this session, so the session's path is another one.

    *retracted* are `ref`s of sightings of earlier scans that did not happen after all; *amended* gives sightings of
    earlier scans, by their `ref`, the path that only a later record told.
    """

    session_id: str
    kind: SessionKind = SessionKind.UNKNOWN
    parent: str | None = None
    side: bool = False
    cwds: list[str] = field(default_factory=list)  # distinct, in order of appearance, at most MAX_CWDS
    first_ms: int | None = None
    last_ms: int | None = None
    records: int = 0
    unreadable: int = 0
    user_turns: int = 0
    assistant_turns: int = 0
    tool_calls: dict[str, int] = field(default_factory=dict)
    hours: dict[int, HourTally] = field(default_factory=dict)
    turns_by_day: dict[int, int] = field(default_factory=dict)
    sightings: list[Sighting] = field(default_factory=list)
    retracted: list[str] = field(default_factory=list)
    amended: dict[str, str] = field(default_factory=dict)

    def saw(self, at_ms: int, *, work: bool, assistant_turns: int = 0) -> None:
        """Note a record's time; *work*: it is a person's or program's own. For readers without a hot loop."""
        if self.first_ms is None or at_ms < self.first_ms:
            self.first_ms = at_ms
        if self.last_ms is None or at_ms > self.last_ms:
            self.last_ms = at_ms
        if assistant_turns:
            day = at_ms // DAY_MS
            self.turns_by_day[day] = self.turns_by_day.get(day, 0) + assistant_turns
        if not work:
            return
        hour = self.hours.get(at_ms // HOUR_MS)
        if hour is None:
            self.hours[at_ms // HOUR_MS] = HourTally(at_ms, at_ms)
        else:
            hour.first_ms = min(hour.first_ms, at_ms)
            hour.last_ms = max(hour.last_ms, at_ms)

    def called(self, tool: str) -> None:
        """Count one call of *tool*."""
        calls = self.tool_calls
        if tool in calls:
            calls[tool] += 1
        elif len(tool) > MAX_NAME:
            self.called(tool[:MAX_NAME])
        elif len(calls) < MAX_NAMES:
            calls[tool] = 1
        else:
            calls[OTHER] = calls.get(OTHER, 0) + 1

    def was_in(self, cwd: str) -> None:
        """Note a working folder."""
        if cwd and cwd not in self.cwds and len(self.cwds) < MAX_CWDS and len(cwd) <= MAX_FOLDER:
            self.cwds.append(cwd)


@dataclass(slots=True, kw_only=True)
class Findings:
    """
    All that one reading of (a stretch of) an item found.

    *keys* holds 8 bytes for each record counted, in order (`ids.py`); *heads* those of the first few records of an
    item that was read from its start, or of each session that begins here in an item that holds many, counted now or
    known, so that a copy of it is met by its beginning. *unknown*
    maps record types that the reader does not know to how often they came; *bad* holds (offset, reason) of the first
    `MAX_OFFSETS` unreadable records; *repeated* counts records that were skipped because they are known; *notes* are
    remarks for `doctor` and the log.
    """

    sessions: dict[str, SessionTally] = field(default_factory=dict)
    keys: bytes = b""
    heads: bytes = b""
    unknown: dict[str, int] = field(default_factory=dict)
    bad: list[tuple[int, str]] = field(default_factory=list)
    oversize: int = 0
    repeated: int = 0
    naive_times: int = 0
    future_times: int = 0
    versions: set[str] = field(default_factory=set)  # of the host program or the format, at most MAX_NAMES
    notes: list[str] = field(default_factory=list)

    def session(self, session_id: str) -> SessionTally:
        """Return the tally of *session_id*, made where it is new."""
        tally = self.sessions.get(session_id)
        if tally is None:
            tally = self.sessions[session_id] = SessionTally(session_id=session_id)
        return tally

    def unreadable(self, session_id: str, offset: int, reason: str) -> None:
        """Count an unreadable record of *session_id* that begins at *offset*."""
        self.session(session_id).unreadable += 1
        self.note_bad(offset, reason)

    def note_bad(self, offset: int, reason: str) -> None:
        """Remember where something unreadable stands, up to a bound."""
        if len(self.bad) < MAX_OFFSETS:
            self.bad.append((offset, reason))

    def of_version(self, version: str) -> None:
        """Note a version of the host or the format, up to a bound."""
        if len(self.versions) < MAX_NAMES:
            self.versions.add(version[:MAX_NAME])

    def unknown_type(self, name: str) -> None:
        """Count a record of a type that this reader does not know."""
        name = name[:80]
        if name not in self.unknown and len(self.unknown) >= MAX_NAMES:
            name = OTHER
        self.unknown[name] = self.unknown.get(name, 0) + 1

    @property
    def records(self) -> int:
        """Records over all sessions."""
        return sum(tally.records for tally in self.sessions.values())


def short_ones(ids: Iterable[str]) -> list[str]:
    """Return those *ids* that may be one: what is kept of a file between two scans has a bound."""
    return [ident for ident in ids if len(ident) <= MAX_NAME]

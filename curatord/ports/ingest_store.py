"""
What the ingest pass keeps, and what others ask of it.

The pass writes through `IngestWriter` (one transaction a batch: watermark, counts, events and parser state of each file
together); everything else in the product only reads, through `IngestReader`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from curatord.core.cheap import dataclass
from curatord.core.values import Event, EventKind

if TYPE_CHECKING:
    from curatord.core.drift import Stretch
    from curatord.core.watermark import Watermark
    from curatord.ports.source import Item, Slice

__all__ = [
    "Census",
    "CreatedBy",
    "Details",
    "IngestReader",
    "IngestWriter",
    "Known",
    "Reading",
    "Resolve",
    "SessionRow",
    "SkillUse",
    "SourceState",
    "signed_inode",
]


Known = tuple[str, int, int, int, int, int, int]
"""
A file's row as far as "unchanged?" needs it: path, file id, device, inode, size, mtime_ns, special.

Device and inode are signed (`signed_inode`); *special*: it waits for something or failed, see its `Details`. A plain
tuple, since a scan that finds nothing new makes one for each file and little else: names for its places would cost a
tenth of it.
"""


def signed_inode(number: int) -> int:
    """Return the inode or device *number* as rows hold it: some file systems use all 64 bits, SQLite's are signed."""
    return number - (1 << 64) if number >= 1 << 63 else number


@dataclass(frozen=True, slots=True)
class Census:
    """
    All files of a source at a time when none of them was news, for who looks again soon: some 70 bytes a file.

    *marks* are `hash((path, inode, size, mtime_ns))` of those whose rows are equal to what is there, which is as good
    as their rows while nothing is written; *special* counts the others, which wait for something or failed.
    """

    marks: frozenset[int]
    special: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """
    The rest of a file's row.

    *kin* are the files that repeat its records or whose records it repeats. *restarted*: it was read from its start
    once more, since it was cut or replaced; what it brings from then on may be what it had before.
    """

    file_id: int
    path: str
    dev: int
    ino: int
    size: int
    mtime_ns: int
    watermark: Watermark
    state: bytes
    waiting: bool
    kin: tuple[int, ...]
    grown_ms: int | None
    gone: bool
    failures: int
    retry_ms: int | None
    error: str | None
    restarted: bool = False

    @property
    def whole(self) -> bool:
        """Whether it was read to its end, as that was then; else its time is held as 0, so it looks changed."""
        return self.mtime_ns != 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """
    One slice of one item on its way into the store.

    *file_id* None: a file never seen before, else *held* is what was counted of it when the reading began: where that
    is not what the store holds, somebody else was quicker, and nothing may be added a second time. *anchors* and
    *probes* (looked up only) are salted; *guarded* are the files under whose keys it was read. *grown*: it was seen to
    grow since an earlier scan. *restarted* is the reason where it was read anew. *gone*: nothing was read, and its row
    stays that of a file that is gone.
    """

    source_id: int
    item: Item
    file_id: int | None
    held: Watermark | None = None
    slice: Slice
    anchors: Sequence[int]
    probes: Sequence[int] = ()
    guarded: frozenset[int] = frozenset()
    grown: bool = False
    restarted: str | None = None
    gone: bool = False


class Resolve(Protocol):
    """Says which library an event belongs to (contract section 5), or None."""

    def __call__(self, *, host: str, skill: str, path: str | None, cwd: str | None) -> str | None:
        """Return the library's name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """
    One session over all its files.

    *cwds* are all working folders that its records name (at most 16), *cwd* is the first. *skill_events* counts them.
    *offset* and *size* are of the file *path*. *settled_from*: the newest of its records' times and of growth that was
    seen; it is settled when that is `session_quiet` ago. *kind* is a `SessionKind`.
    """

    host: str
    session_id: str
    source_id: int
    path: str
    parent: str | None
    kind: str
    cwds: tuple[str, ...]
    first_at: datetime | None
    last_at: datetime | None
    records: int
    unreadable: int
    user_turns: int
    assistant_turns: int
    tool_calls: dict[str, int]
    skill_events: int
    offset: int
    size: int
    restarts: tuple[tuple[datetime, str], ...]
    settled_from: datetime | None
    present: bool

    @property
    def cwd(self) -> str | None:
        """The first working folder."""
        return self.cwds[0] if self.cwds else None

    def is_settled(self, *, now: datetime, quiet: timedelta) -> bool:
        """Return whether nothing was seen of it for *quiet*; one without any time is settled."""
        return self.settled_from is None or now - self.settled_from >= quiet

    def as_json(self, *, now: datetime, quiet: timedelta) -> dict[str, Any]:
        """Return it as `curatord sessions --json` shows it; `distil` is added by who knows of it."""
        return {
            "host": self.host,
            "session_id": self.session_id,
            "path": self.path,
            "parent": self.parent,
            "cwd": self.cwd,
            "first_at": _iso(self.first_at),
            "last_at": _iso(self.last_at),
            "records": self.records,
            "unreadable": self.unreadable,
            "user_turns": self.user_turns,
            "assistant_turns": self.assistant_turns,
            "tool_calls": self.tool_calls,
            "skill_events": self.skill_events,
            "watermark": {"offset": self.offset, "size": self.size},
            "restarts": [{"at": _iso(at), "reason": reason} for at, reason in self.restarts],
            "settled": self.is_settled(now=now, quiet=quiet),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedBy:
    """The first `create` event of a skill: who made it, when, in which session."""

    host: str
    session_id: str
    at: datetime
    via: str
    path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillUse:
    """All that the events say of one skill name in one library (None: it is unknown which)."""

    library: str | None
    skill: str
    counts: dict[EventKind, int]
    newest: dict[EventKind, datetime]
    created: CreatedBy | None
    sessions: int
    hosts: tuple[str, ...]

    @property
    def last_at(self) -> datetime:
        """The newest event of any kind."""
        return max(self.newest.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """
    One source for `status` and `doctor`.

    *present* files were there at the last scan, *gone* ones were before. *records*, *unreadable*, *oversize* and
    *unknown* (per type) are over all that was ever read; *bad* are some (path, offset, reason). *stretches* say how
    that came about by version and day; readings before they were kept are in none.
    """

    source_id: int
    host: str
    path: str
    scanned_at: datetime | None
    complete_at: datetime | None
    testifies_from: datetime | None
    newest_record_at: datetime | None
    sessions: int
    present: int
    gone: int
    failing: int
    records: int
    unreadable: int
    oversize: int
    repeated: int
    naive_times: int
    future_times: int
    unknown: dict[str, int]
    versions: tuple[str, ...]
    problems: tuple[str, ...]
    bad: tuple[tuple[str, int, str], ...]
    stretches: tuple[Stretch, ...] = ()


class IngestWriter(Protocol):
    """What the pass needs. Nothing is kept of a `write` that raises."""

    def source_id(self, host: str, path: str, *, now_ms: int) -> int:
        """Return the row of the source, made where it is new."""
        ...

    def known(self, source_id: int) -> dict[str, Known]:
        """Return all files of the source that were there when last looked, by path."""
        ...

    def census(self, source_id: int) -> Census | None:
        """Return what `keep_census` was given last, None where anything was written since, by whomever."""
        ...

    def keep_census(self, source_id: int, census: Census) -> None:
        """Keep *census*, made of the rows that `known` returned last, in memory."""
        ...

    def known_at(self, source_id: int, paths: Sequence[str]) -> dict[str, Known]:
        """Return those of them that are at *paths*."""
        ...

    def details(self, file_id: int) -> Details:
        """Return a file's row."""
        ...

    def details_of(self, file_ids: Sequence[int]) -> dict[int, Details]:
        """Return the rows of several files at once."""
        ...

    def keys_of(self, file_ids: Sequence[int]) -> dict[int, list[bytes]]:
        """Return each file's own packed keys; one that has none is left out."""
        ...

    def any_gone(self, host: str) -> bool:
        """Return whether any file of the host is gone."""
        ...

    def at_inode(self, source_id: int, item: Item) -> list[tuple[int, str]]:
        """Return (file id, path) of files of the source that are thought to be there and had *item*'s inode."""
        ...

    def gone_like(self, host: str, item: Item, head: bytes) -> list[Details]:
        """Return files of the host that are gone and had this head or inode, those of the same inode first."""
        ...

    def left_waiting(self, source_id: int, *, since_ms: int, most: int) -> list[Details]:
        """
        Return files of the source, *most* of them, that are gone while something in them waits.

        Only those that have not changed since *since_ms*, or have been gone for as long.
        """
        ...

    def keys(self, file_ids: Iterable[int], *, kin: bool) -> list[bytes]:
        """Return the packed keys of the files and, with *kin*, of all that repeat or are repeated by one of them."""
        ...

    def related(self, file_ids: Iterable[int]) -> list[int]:
        """Return the files and, nearest first and bounded, all that repeat or are repeated by one of them."""
        ...

    def write(self, readings: Sequence[Reading], *, now_ms: int) -> list[tuple[int, int | None, frozenset[int]]]:
        """
        Commit the readings in one transaction, each of them whole or, where it meets others' anchors, not at all.

        Returns:
            For each reading, in order: its place, the file's id (None: not written), and the files that it shares
            anchors with; those are to be read again under their keys.
        """
        ...

    def gone(self, file_ids: Sequence[int], *, now_ms: int) -> None:
        """Note that files are no longer there."""
        ...

    def failed(self, source_id: int, item: Item, file_id: int | None, error: str, *, retry_ms: int) -> None:
        """Note that a file could not be read, and when to try again."""
        ...

    def missing(self, source_id: int, *, now_ms: int) -> None:
        """Note that a source that was there before is not there now; one that never was has no problem, it waits."""
        ...

    def finished(
        self,
        source_id: int,
        *,
        now_ms: int,
        complete: bool,
        present: int,
        problems: Sequence[str],
        lazily: bool = False,
    ) -> None:
        """
        Note the end of a scan of the source; a *complete* one settles from when the source testifies.

        *lazily*: it found nothing new; where that is all there is to say, its time is only kept in memory, until a
        scan has something to write.
        """
        ...


class IngestReader(Protocol):
    """What was learnt from the transcripts. Sessions of curatord itself and of hosts' reviewers are left out."""

    def sessions(
        self, *, host: str | None = None, since: datetime | None = None, session_id: str | None = None
    ) -> list[SessionRow]:
        """Return the sessions, oldest first; *since* is of their last record."""
        ...

    def events(
        self,
        *,
        resolve: Resolve,
        skill: str | None = None,
        since: datetime | None = None,
        host: str | None = None,
        library: str | None = None,
        session_id: str | None = None,
    ) -> list[Event]:
        """Return the skill events, oldest first."""
        ...

    def skill_usage(self, *, resolve: Resolve) -> list[SkillUse]:
        """Return what the events say per library and skill, ordered by both."""
        ...

    def work_gaps(self, source_ids: Sequence[int], *, longer_than: timedelta) -> list[tuple[datetime, datetime]]:
        """Return the stretches without work on any of the sources, between work before and work after, oldest first."""
        ...

    def first_work_at(self, source_ids: Sequence[int]) -> datetime | None:
        """Return when somebody first worked on any of the sources, as far as it is known."""
        ...

    def newest_work_at(self, source_ids: Sequence[int]) -> datetime | None:
        """Return when somebody last worked on any of the sources."""
        ...

    def testifies_from(self, source_ids: Sequence[int]) -> datetime | None:
        """Return the latest time from which each of the non-empty sources can testify; None: there is none such."""
        ...

    def sources(self) -> list[SourceState]:
        """Return all sources, for `status` and `doctor`."""
        ...

    def calls_per_day(self, source_ids: Sequence[int], *, since: datetime, until: datetime) -> float:
        """Return turns of the model per day over the time given."""
        ...


def _iso(at: datetime | None) -> str | None:
    from curatord.core.transcript.times import iso_of

    return None if at is None else iso_of(round(at.timestamp() * 1000))


Progress = Callable[[int, int], None]

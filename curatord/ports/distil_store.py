"""
What is remembered of distilling: which session was looked at how far, what came of it, and lessons seen once.

A session's outcome, its watermark and its line in the log are one transaction, so it is either still due or settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from curatord.core.cheap import dataclass, field

__all__ = [
    "UNREAD",
    "DistilStore",
    "FilePart",
    "Judged",
    "LastLook",
    "LogRow",
    "LookedTo",
    "SessionToDistil",
    "Settled",
    "SkillTouch",
    "StoredCandidate",
]


class LookedTo(NamedTuple):
    """
    How far a file was looked at: its watermark then, and the hash of its first record, by which it is recognised. An
    empty *head*: it was known at the last look and gone, so nothing of it was looked at, however old it is.
    """

    offset: int
    head: str


UNREAD = LookedTo(0, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """
    One file (or database) that holds records of a session. *host*, *source* name the place it belongs to.

    *counts*: the user turns and tool calls that it holds of the session up to *offset*; None where nobody knows.
    """

    file_id: int
    source_id: int
    host: str
    source: str
    path: str
    offset: int
    head: str
    gone: bool
    records: int
    last_ms: int | None
    counts: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLook:
    """
    The last outcome of a session, and how far it was looked at.

    *state* None: never. *at_ms* is the outcome's time, *looked_ms* that of the last settled one. *failures* are those
    since then; *aside*: so many that it is left alone until somebody asks for it. *waits*: how often in a row
    something that is not its own fault stood in the way.
    """

    state: str | None = None
    reason: str = ""
    at_ms: int | None = None
    looked_ms: int | None = None
    through_ms: int | None = None
    user_turns: int = 0
    tool_calls: int = 0
    offsets: Mapping[int, LookedTo] = field(default_factory=dict)
    failures: int = 0
    retry_ms: int | None = None
    aside: bool = False
    waits: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionToDistil:
    """
    A session with all that tells whether it is due.

    *row* is its key here. *alive_ms* is the newest of its records' times and of growth that was seen. *user_turns*
    and *tool_calls* are over its whole life, its sub-agents' too; of a file of its own that is gone they hold what was
    looked at, since the last look's hold that too, and nothing of one that went before anybody looked at it. *files*
    are its own (no sub-agents'), oldest first. *since_ms* stands for its oldest record after the last look.
    *first_seen_ms*: when its place was first read. *answer* is a reply that was decided on and not settled; *verdict*
    and *why* are what was last found when it was asked whether it is due.
    """

    row: int
    host: str
    session_id: str
    kind: str
    parent: str | None
    cwds: tuple[str, ...]
    files: tuple[FilePart, ...]
    first_ms: int | None
    last_ms: int | None
    alive_ms: int | None
    user_turns: int
    tool_calls: int
    touches: int
    since_ms: int | None
    first_seen_ms: int
    look: LastLook
    answer: bytes | None = None
    verdict: str | None = None
    why: str = ""

    @property
    def new_turns(self) -> int:
        """User turns since the last look."""
        return max(0, self.user_turns - self.look.user_turns)

    @property
    def new_calls(self) -> int:
        """Tool calls since the last look."""
        return max(0, self.tool_calls - self.look.tool_calls)


class Judged(NamedTuple):
    """
    The answer whether a session is due, given its state *touches*; *due* None: it is not, else its place in the order.

    *look_at_ms* None: not before it grows.
    """

    row: int
    touches: int
    verdict: str
    why: str
    look_at_ms: int | None = None
    due: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """
    A settled outcome of a session as it was read: the watermark moves to *offsets* and *through_ms*.

    *told* is what the log shows besides: operations, candidates, refusals, tokens.
    """

    session: SessionToDistil
    state: str
    reason: str
    at: datetime
    through_ms: int | None
    offsets: Mapping[int, LookedTo]
    run_id: str | None = None
    asked: bool = False
    digest: str | None = None
    told: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """One outcome, as `events --distil` lists it."""

    host: str
    session_id: str
    at: datetime
    state: str
    reason: str
    run_id: str | None
    asked: bool
    digest: str | None
    told: Mapping[str, Any]


class SkillTouch(NamedTuple):
    """A skill that the session used, read or changed, as its host named it."""

    skill: str
    kind: str
    path: str | None
    cwd: str | None


class StoredCandidate(NamedTuple):
    """A lesson seen once: *told* is its value as JSON."""

    id: str
    library: str
    name: str
    last_at: datetime
    told: Mapping[str, Any]


class DistilStore(Protocol):
    """Every method is one transaction, and raises `StateError` where the database cannot be used."""

    def queued(self, now: datetime, *, limit: int = 500) -> list[SessionToDistil]:
        """Return sessions about which it has to be asked whether they are due."""
        ...

    def judge(self, judged: Iterable[Judged]) -> None:
        """Keep answers; one about a session that grew meanwhile is passed over."""
        ...

    def ask_all_again(self) -> None:
        """Let every session be judged anew: what an answer hangs on has changed."""
        ...

    def unlooked(self, *, after: int = 0, limit: int = 500) -> list[SessionToDistil]:
        """Return sessions that were never looked at, beyond the row *after*."""
        ...

    def due(self) -> list[int]:
        """Return the rows of the sessions that were found due, in their order."""
        ...

    def waiting(self) -> list[int]:
        """Return the rows of sessions that wait for something that is not their own fault, oldest look first."""
        ...

    def session(self, row: int) -> SessionToDistil:
        """Return one session as it is now."""
        ...

    def find(self, said: str) -> list[SessionToDistil]:
        """Return the sessions that *said* means: an id, `host:id`, or a beginning of the id that is unique."""
        ...

    def lineage(self, host: str, session_id: str) -> str:
        """Return the id of the oldest session that this one goes back to, itself where it goes back to none."""
        ...

    def touched(self, row: int) -> list[SkillTouch]:
        """Return which skills the session touched, newest first, each once a kind."""
        ...

    def keep_answer(self, row: int, answer: bytes | None) -> None:
        """Keep what is being decided on, so that a kill loses no answer that was paid for."""
        ...

    def settle(self, settled: Settled, candidates: Sequence[StoredCandidate] = ()) -> None:
        """Keep an outcome: the watermark moves, failures are forgotten, *candidates* are brought up to date."""
        ...

    def failed(
        self,
        session: SessionToDistil,
        *,
        state: str,
        reason: str,
        at: datetime,
        counts: bool,
        retry_at: datetime | None,
        aside: bool = False,
        run_id: str | None = None,
        asked: bool = False,
        waits: bool = False,
    ) -> None:
        """
        Keep that nothing was settled; the session stays due. *counts*: it is the session's own fault; *waits*: one more
        wait for something that is not.

        A *retry_at* that has come leaves it due, behind all that have waited since before then. A wait for the same
        reason as before has no line of its own in the log.
        """
        ...

    def retry(self, rows: Iterable[int] | None) -> list[tuple[str, str]]:
        """Take sessions (None: all that were put aside) back; return host and id of each that was."""
        ...

    def aside(self) -> list[SessionToDistil]:
        """Return the sessions that were put aside."""
        ...

    def log(
        self, *, since: datetime | None = None, host: str | None = None, session_id: str | None = None
    ) -> list[LogRow]:
        """Return outcomes, oldest first."""
        ...

    def candidates(self, library: str) -> list[StoredCandidate]:
        """Return the library's lessons that were seen once."""
        ...

    def forget_candidates(self, ids: Iterable[str]) -> None:
        """Drop candidates: confirmed, or too old."""
        ...

    def new_skills_since(self, at: datetime) -> int:
        """Return how many creates were applied or proposed by distilling since then."""
        ...

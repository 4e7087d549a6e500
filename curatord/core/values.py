"""
The words of the product as types: names easily confused, states, kinds, and the few values that every module shares.

A skill is known by its library and its path within it (`SkillKey`), since two categories may hold the same name
(bugs B069). Its *name* is the last part of that path. All datetimes here are aware and in UTC.
"""

from __future__ import annotations

import enum
from datetime import UTC, datetime
from functools import lru_cache
from typing import NewType

from curatord.core.cheap import dataclass

__all__ = [
    "ActionId",
    "BlobId",
    "Event",
    "EventKind",
    "Fingerprint",
    "Importance",
    "LibraryName",
    "Mode",
    "Outcome",
    "RelPath",
    "RunId",
    "SessionId",
    "SkillKey",
    "SkillName",
    "State",
    "Trigger",
    "require_aware",
    "skill_key",
]

LibraryName = NewType("LibraryName", str)
SkillName = NewType("SkillName", str)
SessionId = NewType("SessionId", str)
RunId = NewType("RunId", str)  # YYYYMMDD-HHMMSS[-N], UTC
ActionId = NewType("ActionId", str)
RelPath = NewType("RelPath", str)  # POSIX, relative, no `..`, no empty part
Fingerprint = NewType("Fingerprint", str)  # lower-case hex of SHA-256 over a package (core/fingerprint.py)
BlobId = NewType("BlobId", str)  # lower-case hex of SHA-256 over bytes kept in the state folder


class State(enum.StrEnum):
    """Where a skill stands in its life."""

    ACTIVE = "active"
    STALE = "stale"
    ARCHIVED = "archived"


class Importance(enum.StrEnum):
    """What a person said a skill is worth; only a person can say it."""

    CRITICAL = "critical"
    IMPORTANT = "important"
    NORMAL = "normal"
    LOW = "low"


class Mode(enum.StrEnum):
    """How much may be applied without a person's yes (contract, section 7)."""

    REVIEW = "review"
    GUARDED = "guarded"
    AUTO = "auto"


class EventKind(enum.StrEnum):
    """What a session did with a skill (contract, section 5)."""

    USE = "use"
    VIEW = "view"
    PATCH = "patch"
    CREATE = "create"
    DELETE = "delete"


class Trigger(enum.StrEnum):
    """Why a run began."""

    MANUAL = "manual"
    SCHEDULE = "schedule"
    DISTIL = "distil"


class Outcome(enum.StrEnum):
    """How a run ended; `RUNNING` is only ever seen of a live or a killed one."""

    RUNNING = "running"
    OK = "ok"
    NOTHING_TO_DO = "nothing_to_do"
    PARTIAL = "partial"
    HELD = "held"
    BUDGET = "budget"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


_NO_PARTS = frozenset({"", ".", ".."})


def require_aware(name: str, at: datetime | None) -> None:
    """Raise `ValueError` where *at* is a naive datetime; *name* says which one it was."""
    # Nearly all are of this one zone, and a run asks it of thousands.
    if at is not None and at.tzinfo is not UTC and at.utcoffset() is None:
        raise ValueError(f"{name} is a naive datetime: {at!r}")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SkillKey:
    """
    Identity of a skill: its library and its path in it, `cat/name` or `name` (flat files without `.md`).

    Raises:
        ValueError: The path is absolute, empty or leaves the library.
    """

    library: LibraryName
    rel: RelPath

    def __post_init__(self) -> None:
        if not self.library or not _NO_PARTS.isdisjoint(self.rel.split("/")) or "\0" in self.rel:
            raise ValueError(f"not a skill's path within a library: {self.library!r}, {self.rel!r}")

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not SkillKey:
            return NotImplemented
        return self.rel == other.rel and self.library == other.library

    def __hash__(self) -> int:
        return hash(self.rel)  # asked a hundred thousand times a run, and a text keeps its own; few share a path

    @property
    def place(self) -> tuple[str, str]:
        """Library and path: what keys are sorted by."""
        return self.library, self.rel

    @property
    def name(self) -> SkillName:
        """The last part of the path."""
        return self.rel.rpartition("/")[2]  # type: ignore[return-value]  # asked a hundred thousand times a run

    def __str__(self) -> str:
        return f"{self.library}/{self.rel}"


@lru_cache(maxsize=1 << 16)
def skill_key(library: str, rel: str) -> SkillKey:
    """Return the key of a skill; the same object each time, so that it is found at once where it is looked up."""
    return SkillKey(library=LibraryName(library), rel=RelPath(rel))


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """
    One thing that a session did with a skill, as `curatord events` shows it.

    *library* is None where nothing tells which of several it was. *via* is the host's way: a tool's name, `slash`,
    `preload`, `shell` …; *path* the file that was named, where there was one.
    """

    host: str
    session_id: SessionId
    at: datetime
    library: LibraryName | None
    skill: SkillName
    kind: EventKind
    via: str
    path: str | None = None

    def __post_init__(self) -> None:
        require_aware("at", self.at)

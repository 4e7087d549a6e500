"""What people decided, kept a second time in a plain file, since nothing could rebuild it."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from curatord.core.cheap import dataclass, field
from curatord.core.journal import ArchiveItem, JournalEntry
from curatord.core.skill_record import Owner, SkillRecord
from curatord.core.values import Importance, SkillKey

__all__ = ["Decision", "Decisions", "KnownDecisions", "Rejection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a person said of one skill, or that curatord made it."""

    owner: Owner | None = None
    owner_at: datetime | None = None
    pinned: bool = False
    importance: Importance = Importance.NORMAL

    @classmethod
    def of(cls, record: SkillRecord) -> Decision:
        """Return what of *record* is a decision."""
        return cls(owner=record.owner, owner_at=record.owner_at, pinned=record.pinned, importance=record.importance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A proposal that was refused, or undone after it was applied."""

    id: str
    at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDecisions:
    """All that the file holds."""

    skills: dict[SkillKey, Decision] = field(default_factory=dict)
    rejected: dict[str, Rejection] = field(default_factory=dict)
    archive: tuple[ArchiveItem, ...] = ()
    paused_since: str | None = None


class Decisions(Protocol):
    """The plain file; each call reads it anew, and a file that cannot be read is a `StateCorruptError`."""

    def load(self) -> KnownDecisions:
        """Return what is in it; nothing where there is no file yet."""
        ...

    def record(self, entry: JournalEntry) -> None:
        """Write down what *entry* changes of decisions and archive, if anything; writing it again changes nothing."""
        ...

    def pause(self, since: str | None) -> None:
        """Write down since when (an ISO time) automatic runs are paused; None: they are not."""
        ...

    def reject(self, *rejections: Rejection) -> None:
        """Write down that proposals were rejected, all of them or none."""
        ...

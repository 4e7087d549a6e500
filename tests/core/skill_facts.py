"""Builders with defaults for the lifecycle: a managed, plain skill in a library that is worked on daily."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from curatord.core.idle import LibraryClock, work_gaps
from curatord.core.lifecycle import SkillFacts
from curatord.core.settings import LifecycleSettings
from curatord.core.skill_record import SkillRecord
from curatord.core.usage import Activity, SkillUsage
from curatord.core.values import EventKind, Fingerprint, LibraryName, RelPath, SkillKey, State

DAY = timedelta(days=1)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LIB = LibraryName("claude")
POLICY = LifecycleSettings()


def ago(days: float) -> datetime:
    """Return the instant *days* before `NOW`."""
    return NOW - days * DAY


def a_key(rel: str = "csv-fix", library: str = LIB) -> SkillKey:
    """Return the key of a skill."""
    return SkillKey(library=LibraryName(library), rel=RelPath(rel))


def a_clock(**changes: Any) -> LibraryClock:
    """Return the clock of a library with a year of testimony and work on every day of it."""
    values: dict[str, Any] = {
        "library": LIB,
        "sources": 1,
        "observed_since": ago(365),
        "first_scan_at": ago(300),
        "first_work": ago(365),
        "newest_work": ago(0.125),
        "newest_evidence": ago(0.125),
    }
    return LibraryClock(**(values | changes))


def a_clock_with_work(*days_ago: float, **changes: Any) -> LibraryClock:
    """Return such a clock where work was seen only so many days ago."""
    work = sorted(ago(days) for days in days_ago)
    gaps = work_gaps(work, POLICY.away_after)
    return a_clock(
        **({"first_work": work[0], "newest_work": work[-1], "newest_evidence": work[-1], "gaps": gaps} | changes)
    )


def a_record(**changes: Any) -> SkillRecord:
    """Return the record of an active skill, born and first seen 300 days ago; *stale* days make it stale."""
    values: dict[str, Any] = {
        "key": a_key(),
        "state_since": ago(300),
        "first_seen_at": ago(300),
        "born_at": ago(300),
        "seen_fingerprint": Fingerprint("f" * 64),
    }
    stale = changes.pop("stale", None)
    if stale is not None:
        values |= {"state": State.STALE, "state_since": ago(stale), "stale_since": ago(stale)}
    return SkillRecord(**(values | changes))


def used(days: float | None, kind: EventKind = EventKind.USE, *, count: int = 1) -> SkillUsage:
    """Return the usage of a skill with one kind of act, the newest so many days ago; None is no act at all."""
    if days is None:
        return SkillUsage()
    return SkillUsage(
        **{str(kind): count},  # type: ignore[arg-type]  # the counts are named after the kinds
        sessions=1,
        hosts=("claude-code",),
        newest={kind: Activity(at=ago(days), kind=kind, witness="claude-code")},
        ever_used=kind is EventKind.USE,
    )


def a_skill(*, last: float | None = None, **changes: Any) -> SkillFacts:
    """Return a managed skill, last used *last* days ago (None: never); fields of its record may be named too."""
    of_facts = {name: changes.pop(name) for name in tuple(changes) if name in SkillFacts.__struct_fields__}
    values: dict[str, Any] = {
        "record": a_record(**changes),
        "managed": True,
        "why": "adopted by you",
        "usage": used(last),
    }
    return SkillFacts(**(values | of_facts))

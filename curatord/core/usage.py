"""
What is known of a skill's use, joined from every witness.

Transcripts are the first witness: each event is evidence of one kind, at one time, in one session. Hermes is a second:
it counts for itself in `.usage.json`. The two saw the same acts, so their counts are never added: the larger of both
is shown (and `counted_by` says whose it is), and of their times the newest counts. A witness who saw less can thus
never make a skill look older.

An event names a skill, and where its library could not be worked out, only a name. Such an event is activity of every
skill with that name: it may be one use shown twice, but never a skill retired because its use was put down to another
(contract, promise 9). Which skills a name means is `core.namesakes`' answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal

import msgspec

from curatord.core.cheap import dataclass
from curatord.core.namesakes import Namesakes
from curatord.core.values import EventKind, LibraryName, SkillKey, SkillName, require_aware

__all__ = [
    "NO_USAGE",
    "Activity",
    "Heard",
    "HostCounters",
    "SkillUsage",
    "usage_by_skill",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """
    What the transcripts say of one skill's name in one library, or in a library that nobody knows (None).

    A store gives these by grouping its events.

    Attributes:
        skill: What the sessions called it: a name, or a path within the library.
        counts: Events of each kind; kinds without any may be left out.
        newest: Newest time of each kind that there is.
        sessions: Distinct sessions; *hosts* are theirs, sorted.
    """

    library: LibraryName | None
    skill: SkillName
    counts: Mapping[EventKind, int]
    newest: Mapping[EventKind, datetime]
    sessions: int
    hosts: tuple[str, ...]

    def __post_init__(self) -> None:
        for kind, at in self.newest.items():
            require_aware(kind, at)
        if any(count < 0 for count in self.counts.values()) or self.sessions < 0:
            raise ValueError(f"negative counts of {self.skill!r}: {self.counts}, {self.sessions} sessions")


class HostCounters(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a host counted for itself (Hermes' `.usage.json`); *host* names it in explanations."""

    host: str
    use: int = 0
    view: int = 0
    patch: int = 0
    last_used_at: datetime | None = None
    last_viewed_at: datetime | None = None
    last_patched_at: datetime | None = None

    def __post_init__(self) -> None:
        for at in (self.last_used_at, self.last_viewed_at, self.last_patched_at):
            if at is not None and at.tzinfo is not UTC:
                require_aware("a host's time", at)


class Activity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The newest act of a kind: when, which, and who says so (`claude-code`, `codex or pi`, `hermes' own counter`)."""

    at: datetime
    kind: EventKind
    witness: str

    @property
    def _rank(self) -> tuple[datetime, bool, str]:
        return (self.at, self.kind is EventKind.USE, self.witness)


class SkillUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    All that is known of one skill's use.

    Attributes:
        use, view, patch, create, delete: Counts; of `use`, `view` and `patch` the larger of the transcripts' and the
            host's own.
        sessions: Sessions with an event of any kind; one that named the skill with and without its library may count
            twice. *hosts* are those sessions' hosts, sorted.
        newest: Newest act of each kind that there is.
        ever_used: There was a `use`, by anyone's word.
        counted_by: Whose counts are shown: `transcripts`, or `host` where the host counted more of any kind.
    """

    use: int = 0
    view: int = 0
    patch: int = 0
    create: int = 0
    delete: int = 0
    sessions: int = 0
    hosts: tuple[str, ...] = ()
    newest: Mapping[EventKind, Activity] = msgspec.field(default_factory=dict)
    ever_used: bool = False
    counted_by: Literal["transcripts", "host"] = "transcripts"

    @property
    def last(self) -> Activity | None:
        """The newest act of any kind; of two at one time, a use."""
        if len(self.newest) < 2:  # as most have it
            return next(iter(self.newest.values()), None)
        return max(self.newest.values(), key=lambda activity: activity._rank)

    @property
    def last_at(self) -> datetime | None:
        """When the newest act of any kind was."""
        last = self.last
        return last.at if last else None

    def newest_at(self, kind: EventKind) -> datetime | None:
        """When the newest act of *kind* was."""
        activity = self.newest.get(kind)
        return activity.at if activity else None

    def joined(self, other: SkillUsage) -> SkillUsage:
        """Return the usage of one skill that hosts know under two names, as a package and as a link to it."""
        newest = dict(self.newest)
        for kind, activity in other.newest.items():
            if kind not in newest or activity._rank > newest[kind]._rank:
                newest[kind] = activity
        return SkillUsage(
            use=self.use + other.use,
            view=self.view + other.view,
            patch=self.patch + other.patch,
            create=self.create + other.create,
            delete=self.delete + other.delete,
            sessions=self.sessions + other.sessions,
            hosts=tuple(sorted({*self.hosts, *other.hosts})),
            newest=newest,
            ever_used=self.ever_used or other.ever_used,
            counted_by=self.counted_by if self.counted_by == other.counted_by else "host",
        )


NO_USAGE = SkillUsage()


_NO_COUNTS: dict[EventKind, int] = dict.fromkeys(EventKind, 0)


class _Tally:
    """Grows while testimonies are read; becomes a `SkillUsage`."""

    __slots__ = ("counts", "hosts", "newest", "sessions")

    def __init__(self) -> None:
        self.counts = _NO_COUNTS.copy()
        self.newest: dict[EventKind, Activity] = {}
        self.sessions = 0
        self.hosts: set[str] = set()

    def add(self, testimony: Heard) -> None:
        for kind, count in testimony.counts.items():
            self.counts[kind] += count
        for kind, at in testimony.newest.items():
            self.see(Activity(at=at, kind=kind, witness=" or ".join(testimony.hosts)))
        self.sessions += testimony.sessions
        self.hosts.update(testimony.hosts)

    def see(self, activity: Activity) -> None:
        known = self.newest.get(activity.kind)
        if known is None or activity._rank > known._rank:
            self.newest[activity.kind] = activity

    def join(self, counters: HostCounters | None) -> SkillUsage:
        counted_by: Literal["transcripts", "host"] = "transcripts"
        if counters is not None:
            for kind, count, at in (
                (EventKind.USE, counters.use, counters.last_used_at),
                (EventKind.VIEW, counters.view, counters.last_viewed_at),
                (EventKind.PATCH, counters.patch, counters.last_patched_at),
            ):
                if count > self.counts[kind]:
                    self.counts[kind] = count
                    counted_by = "host"
                if at is not None:
                    self.see(Activity(at=at, kind=kind, witness=f"{counters.host}' own counter"))
        return SkillUsage(
            use=self.counts[EventKind.USE],
            view=self.counts[EventKind.VIEW],
            patch=self.counts[EventKind.PATCH],
            create=self.counts[EventKind.CREATE],
            delete=self.counts[EventKind.DELETE],
            sessions=self.sessions,
            hosts=tuple(sorted(self.hosts)),
            newest=self.newest,
            ever_used=self.counts[EventKind.USE] > 0 or EventKind.USE in self.newest,
            counted_by=counted_by,
        )


def usage_by_skill(
    keys: Iterable[SkillKey],
    heard: Iterable[Heard],
    counters: Mapping[SkillKey, HostCounters] | None = None,
) -> dict[SkillKey, SkillUsage]:
    """
    Return the usage of each of *keys*, in their sorted order; one with no testimony has `NO_USAGE`'s values.

    Args:
        keys: All skills of all libraries, archived ones too.
        heard: From the transcripts, in any order. A testimony with a library counts for that library's skills of the
            name; one without counts for every library's. A name with a `/` counts for the skills whose path ends so,
            and where none does, for those of its last part. What fits no key is left out: the skill is gone.
        counters: What hosts counted for themselves, per skill.
    """
    ordered = sorted(set(keys), key=lambda key: key.place)
    namesakes = Namesakes(ordered)
    known = counters or {}
    tallies: dict[SkillKey, _Tally] = defaultdict(_Tally)  # of thousands of skills most were never heard of
    for testimony in heard:
        for key in namesakes.meant(testimony.library, testimony.skill):
            tallies[key].add(testimony)
    usage = dict.fromkeys(ordered, NO_USAGE)
    usage.update((key, tally.join(known.get(key))) for key, tally in tallies.items())
    usage.update((key, _counted(counters)) for key, counters in known.items() if key in usage and key not in tallies)
    return usage


_COUNTED = (EventKind.USE, EventKind.VIEW, EventKind.PATCH)


def _counted(counters: HostCounters) -> SkillUsage:
    """Return the usage of a skill that only its host speaks of."""
    newest: dict[EventKind, Activity] = {}
    witness = f"{counters.host}' own counter"
    for kind, at in zip(
        _COUNTED, (counters.last_used_at, counters.last_viewed_at, counters.last_patched_at), strict=True
    ):
        if at is not None:
            newest[kind] = Activity(at=at, kind=kind, witness=witness)
    use, view, patch = max(counters.use, 0), max(counters.view, 0), max(counters.patch, 0)
    return SkillUsage(
        use=use,
        view=view,
        patch=patch,
        newest=newest,
        ever_used=use > 0 or counters.last_used_at is not None,
        counted_by="host" if use or view or patch else "transcripts",
    )

"""
One look at everything: libraries on disk, what is remembered, what transcripts and hosts testify, and what the rules
say of each skill. Commands that only look and runs that change start from the same value, so they cannot differ.

Looking writes nothing to a library. What it learns of skills (first sights, absences, trusted content) is put into the
store only where the caller says `remember`, which a run and a scan do and a reading command does not. Looking decides
no proposal: whether what waits for a yes can still be done is asked by runs, of the look (passes/withdrawing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Protocol

import msgspec

from curatord.core.cheap import dataclass, field
from curatord.core.idle import LibraryClock
from curatord.core.library import LibrarySnapshot, Problem, Skill, linked_skills
from curatord.core.lifecycle import Judge, SkillFacts, Verdict
from curatord.core.observation import Birth, Observation, observe
from curatord.core.ownership import SLACK, LibraryView, hand_edited
from curatord.core.run_record import Counts
from curatord.core.settings import LibrarySettings, LifecycleSettings
from curatord.core.skill_record import SkillRecord
from curatord.core.twin_digest import Listed
from curatord.core.usage import NO_USAGE, HostCounters, SkillUsage
from curatord.core.values import LibraryName, SkillKey, State

__all__ = ["HostView", "LibraryLook", "Look", "Looker", "Standings", "Testimony", "Twins"]


class Standings(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Whose one skill is, by ownership's one function.

    *managed* and *why* as everywhere; *protected* is words or None; *host_pinned* is the host's own pin.
    """

    managed: bool
    why: str
    protected: str | None = None
    host_pinned: bool = False


class HostView(Protocol):
    """What a host's own files say about one library, read at one time. A library without such files says nothing."""

    @property
    def warnings(self) -> Sequence[str]:
        """What could not be read or is odd, in words."""
        ...

    @property
    def doubts(self) -> Sequence[str]:
        """Why nothing of the library may be aged at all, in words; empty where nothing speaks against it."""
        ...

    def standing(self, skill: Skill, record: SkillRecord) -> Standings:
        """Return whose *skill* is."""
        ...

    def birth(self, skill: Skill) -> datetime | None:
        """Return when the host's ledger says that *skill* was made."""
        ...

    def counters(self) -> Mapping[SkillKey, HostCounters]:
        """Return what the host counted for itself, of the library's skills that it counted anything of."""
        ...

    def changes(self, skill: Skill, since: datetime) -> Sequence[datetime]:
        """Return when the host's own ledger says that *skill* was changed, at or after *since*."""
        ...

    def archived_at(self) -> Mapping[str, datetime]:
        """Return when the host says that it archived which name."""
        ...

    def references(self) -> Mapping[SkillKey, str]:
        """Return which skills the host's schedules or other live skills name, with who does in words."""
        ...


class Testimony(Protocol):
    """What transcripts say, over all libraries, read at one time."""

    def usage(
        self, keys: Iterable[SkillKey], counters: Mapping[SkillKey, HostCounters]
    ) -> Mapping[SkillKey, SkillUsage]:
        """Return the usage of each skill."""
        ...

    def created_at(self, skill: Skill) -> datetime | None:
        """Return when a session was seen to create *skill*."""
        ...

    def changes(self, skill: Skill, since: datetime) -> Sequence[datetime]:
        """Return when sessions were seen to change *skill*, at or after *since*, as far as it is known."""
        ...

    def clock(self, library: LibrarySettings, *, first_scan_at: datetime | None, doubts: Sequence[str]) -> LibraryClock:
        """Return the library's clock."""
        ...


class Twins(Protocol):
    """Tells skills apart; what `core.skill_quality.twins_among` finds, whether it is compared now or was before."""

    def __call__(self, listed: Sequence[Listed]) -> Mapping[SkillKey, Sequence[Problem]]:
        """Return what is wrong with skills beside each other, per key, those without any left out."""
        ...


class Records(Protocol):
    """What is remembered of skills; the part of the store that looking needs."""

    def skills(self, library: LibraryName | None = None) -> dict[SkillKey, SkillRecord]:
        """Return all records."""
        ...

    def rejected_archiving(self, key: SkillKey, record: SkillRecord) -> str | None:
        """Return a person's no to archiving this content, in words, or None."""
        ...

    def first_scan_at(self, library: LibraryName) -> datetime | None:
        """Return when the library was first looked at, None where it never was."""
        ...

    def remember(
        self,
        library: LibraryName,
        observation: Observation,
        *,
        now: datetime,
        host_pinned: Collection[SkillKey],
        problems: Sequence[str],
    ) -> Observation:
        """Put what a look found into the store; return it as far as nobody has changed these records meanwhile."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryLook:
    """One library at one time. *first_look*: it was never looked at before."""

    settings: LibrarySettings
    snapshot: LibrarySnapshot
    clock: LibraryClock
    standings: Mapping[SkillKey, Standings]
    references: Mapping[SkillKey, str]
    warnings: tuple[str, ...] = ()
    first_look: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Everything at one time. *facts* and *verdicts* have every skill that is remembered or there."""

    now: datetime
    libraries: Mapping[LibraryName, LibraryLook]
    facts: Mapping[SkillKey, SkillFacts]
    verdicts: Mapping[SkillKey, Verdict]
    warnings: tuple[str, ...] = ()
    twins: Twins = field(compare=False)
    _live: dict[SkillKey, Skill] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for library in self.libraries.values():
            self._live.update(library.snapshot.by_key)

    @property
    def live(self) -> Mapping[SkillKey, Skill]:
        """All live skills of all libraries."""
        return self._live

    def problems(self) -> Mapping[SkillKey, Sequence[str]]:
        """Return in words what is wrong with each live skill, by itself or beside others; sound ones are left out."""
        order = [library for _, library in sorted(self.libraries.items())]
        twins = self.twins(
            [
                (
                    library.settings.host or library.settings.name,
                    [skill for skill in library.snapshot.skills if skill.broken is None],
                )
                for library in order
            ]
        )
        found: dict[SkillKey, Sequence[str]] = {}
        for skill in chain.from_iterable(library.snapshot.skills for library in order):
            key = skill.key
            if skill.broken is None and not skill.problems and key not in twins:
                continue
            words = [f"broken: {skill.broken}"] if skill.broken is not None else []
            words += [problem.words for problem in (*skill.problems, *twins.get(key, ()))]
            if words:
                found[key] = words
        return found

    def counts(self) -> Counts:
        """Return the libraries by numbers, as this look found them."""
        total = managed = 0
        states = dict.fromkeys(State, 0)
        for facts in self.facts.values():
            if facts.record.missing_since is not None:
                continue
            total += 1
            managed += facts.managed and facts.record.state is not State.ARCHIVED
            states[facts.record.state] += 1
        return Counts(
            total=total,
            managed=managed,
            active=states[State.ACTIVE],
            stale=states[State.STALE],
            archived=states[State.ARCHIVED],
        )


Judged = dict[SkillKey, tuple[SkillRecord, Standings]]  # whose a skill is, with the record that was asked with


@dataclass(frozen=True, slots=True, kw_only=True)
class Looker:
    """
    Makes looks.

    Attributes:
        libraries: Each configured library with how it is read.
        host_views: Reads the files of the libraries' hosts.
        testimony: Reads what transcripts say.
        twins: Tells skills apart.
        records: What is remembered.
        policy: The periods of the lifecycle.
    """

    libraries: Sequence[tuple[LibrarySettings, Callable[[], LibraryView]]]
    host_views: Callable[[Mapping[LibraryName, LibraryView]], Mapping[LibraryName, HostView]]
    testimony: Callable[[Mapping[LibraryName, LibrarySnapshot]], Testimony]
    twins: Twins
    records: Records
    policy: LifecycleSettings

    def look(self, now: datetime, *, remember: bool, doubts: Sequence[str] = ()) -> Look:
        """
        Return everything as it is.

        Args:
            now: The caller's one reading of the clock.
            remember: Put what is found into the store.
            doubts: Why nothing may be aged at all, in words.
        """
        # Before the disk: what an action does between the two shows as a record that changed, not as somebody's hand.
        known = self.records.skills()
        looked_at = [(settings, look()) for settings, look in self.libraries]
        read = [(settings, view.snapshot) for settings, view in looked_at]
        testimony = self.testimony({snapshot.library: snapshot for _, snapshot in read})
        views = self.host_views({view.snapshot.library: view for _, view in looked_at})
        observations: dict[LibraryName, Observation] = {}
        counters: dict[SkillKey, HostCounters] = {}
        judged: Judged = {}
        for _, snapshot in read:
            view = views[snapshot.library]
            observation = observations[snapshot.library] = self._observe(snapshot, known, view, testimony, judged, now)
            if remember:
                observations[snapshot.library] = self.records.remember(
                    snapshot.library,
                    observation,
                    now=now,
                    host_pinned=[
                        key
                        for key, (_, standing) in judged.items()
                        if standing.host_pinned and key.library == snapshot.library
                    ],
                    problems=[problem.words for problem in snapshot.problems if problem.severity != "note"],
                )
            counters.update(view.counters())
        keys = [key for observation in observations.values() for key in observation.records]
        usage = dict(testimony.usage(keys, counters))
        for link, real in linked_skills([snapshot for _, snapshot in read]).items():
            if real in usage:
                usage[real] = usage[real].joined(usage.get(link, NO_USAGE))
        looks: dict[LibraryName, LibraryLook] = {}
        facts: dict[SkillKey, SkillFacts] = {}
        verdicts: dict[SkillKey, Verdict] = {}
        for settings, snapshot in read:
            looked = looks[snapshot.library] = self._library(
                settings,
                snapshot,
                views[snapshot.library],
                observations[snapshot.library],
                judged,
                testimony,
                now,
                doubts,
            )
            judge = Judge(looked.clock, self.policy, now).judge
            for key, record in observations[snapshot.library].records.items():
                known_now = facts[key] = self._facts(record, looked, usage.get(key, NO_USAGE))
                verdicts[key] = judge(known_now)
        return Look(
            now=now,
            libraries=looks,
            facts=facts,
            verdicts=verdicts,
            warnings=tuple(warning for look in looks.values() for warning in look.warnings),
            twins=self.twins,
        )

    def _observe(
        self,
        snapshot: LibrarySnapshot,
        known: Mapping[SkillKey, SkillRecord],
        view: HostView,
        testimony: Testimony,
        judged: Judged,
        now: datetime,
    ) -> Observation:
        def birth(skill: Skill) -> Birth | None:
            if (at := view.birth(skill)) is not None:
                return Birth(at=at, source="ledger")
            if (at := testimony.created_at(skill)) is not None:
                return Birth(at=at, source="event")
            return None

        def explained(skill: Skill, record: SkillRecord) -> bool:
            since = record.seen_at or record.first_seen_at
            times = [*view.changes(skill, since - SLACK), *testimony.changes(skill, since - SLACK)]
            trusted = record.trusted_fingerprint
            return hand_edited(skill, trusted=trusted, trusted_at=since, explanations=times) is None

        def managed(skill: Skill, record: SkillRecord) -> bool:
            standing = view.standing(skill, record)
            judged[skill.key] = record, standing
            return standing.managed

        return observe(
            snapshot,
            known,
            now=now,
            birth=birth,
            managed=managed,
            explained=explained,
            archived_by_host=view.archived_at(),
        )

    def _library(
        self,
        settings: LibrarySettings,
        snapshot: LibrarySnapshot,
        view: HostView,
        observation: Observation,
        judged: Judged,
        testimony: Testimony,
        now: datetime,
        doubts: Sequence[str],
    ) -> LibraryLook:
        first_scan_at = self.records.first_scan_at(snapshot.library)
        standings: dict[SkillKey, Standings] = {}
        for skill in snapshot.skills:
            key = skill.key
            record = observation.records.get(key)
            if record is not None:
                # Observing asked already; most records are the very ones it asked with.
                asked = judged.get(key)
                known = asked is not None and asked[0] is record
                standings[key] = asked[1] if asked is not None and known else view.standing(skill, record)
        return LibraryLook(
            settings=settings,
            snapshot=snapshot,
            clock=testimony.clock(settings, first_scan_at=first_scan_at or now, doubts=[*view.doubts, *doubts]),
            standings=standings,
            references=view.references(),
            warnings=(
                *(f"library {problem.library}: {problem.words}" for problem in snapshot.problems),
                *view.warnings,
            ),
            first_look=first_scan_at is None,
        )

    def _facts(self, record: SkillRecord, looked: LibraryLook, usage: SkillUsage) -> SkillFacts:
        key = record.key
        skill = looked.snapshot.by_key.get(key)
        standing = looked.standings.get(key) or Standings(managed=False, why="it is not in the library")
        return SkillFacts(
            record=record,
            managed=standing.managed,
            why=standing.why,
            protected=standing.protected,
            broken=skill.broken if skill is not None else None,
            referenced=looked.references.get(key) if looked.references else None,
            host_pinned=standing.host_pinned,
            edited=_edited(record) if standing.managed else None,
            archive_rejected=self.records.rejected_archiving(key, record),
            usage=usage,
        )


def _edited(record: SkillRecord) -> str | None:
    """Return how the content differs from what curatord last had the licence to change, in words (promise 10)."""
    if record.trusted_fingerprint is None or record.seen_fingerprint == record.trusted_fingerprint:
        return None
    return f"it was edited by hand (`curatord adopt {record.key}` hands it over as it is now)"

"""
What transcripts say of libraries and skills, put together for one look.

Everything is read from the ingest's store once a look. Which library an event meant is worked out anew each time
(contract, section 5), since libraries move, appear and go while transcripts stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from curatord.core.affinity import PlacedSource, host_of, speaks_of
from curatord.core.namesakes import fold_name
from curatord.core.resolve import HostResolvers, KnownLibrary, KnownSkill
from curatord.core.settings import LibrarySettings
from curatord.core.usage import Heard, HostCounters, SkillUsage, usage_by_skill
from curatord.core.values import EventKind, LibraryName, SkillKey, SkillName

if TYPE_CHECKING:
    from curatord.core.idle import LibraryClock
    from curatord.core.library import LibrarySnapshot, Skill
    from curatord.ports.ingest_store import CreatedBy, IngestReader, Resolve, SkillUse, SourceState

__all__ = ["TranscriptTestimony", "known_libraries", "resolvers"]


def known_libraries(
    libraries: Iterable[LibrarySettings],
    snapshots: Mapping[LibraryName, LibrarySnapshot],
    archived_keys: Iterable[SkillKey] = (),
) -> tuple[KnownLibrary, ...]:
    """Return the libraries as far as an event can mean them; archived skills too, since agents still ask for them."""
    archived: dict[LibraryName, list[KnownSkill]] = {}
    for key in archived_keys:
        archived.setdefault(key.library, []).append(KnownSkill(rel=key.rel))
    known = []
    for settings in libraries:
        name = LibraryName(settings.name)
        snapshot = snapshots.get(name)
        live = [
            KnownSkill(
                rel=skill.key.rel,
                header_name=skill.content.header_name if skill.content.header_name != skill.name else None,
            )
            for skill in (snapshot.skills if snapshot is not None else ())
        ]
        there = {skill.rel for skill in live}
        live += [skill for skill in archived.get(name, ()) if skill.rel not in there]
        known.append(
            KnownLibrary(
                name=name,
                path=settings.path,
                host=host_of(settings),
                seen_as=settings.seen_as,
                skills=tuple(live),
            )
        )
    return tuple(known)


def resolvers(libraries: Iterable[KnownLibrary], sources: Iterable[PlacedSource], home: str | None) -> HostResolvers:
    """
    Return what tells whose skill an event meant, for all hosts of *sources*.

    Events are stored by host and not by place, so several places of a host are taken together: the libraries that any
    of them names, or the default where one of them names none; where its home is, the first tells.
    """
    only: dict[str, set[str] | None] = {}
    places: dict[str, str] = {}
    for source in sources:
        host, named = source.settings.host, source.settings.libraries
        places.setdefault(host, source.path)
        so_far = only.get(host, set())
        only[host] = None if named is None or so_far is None else so_far | set(named)
    return HostResolvers(
        libraries, only={host: names for host, names in only.items() if names is not None}, places=places, home=home
    )


class TranscriptTestimony:
    """
    Fills the port `passes.look.Testimony`.

    Args:
        reader: The ingest's store.
        sources: All places that are read.
        libraries: All libraries, for whose sources speak of which.
        resolve: Whose skill an event meant.
        away_after: Gaps of work longer than this matter to the clock.
        states: Returns how each source stands; the reader's own answer where nothing else is given.
    """

    def __init__(
        self,
        reader: IngestReader,
        *,
        sources: Sequence[PlacedSource],
        libraries: Sequence[LibrarySettings],
        resolve: Resolve,
        away_after: timedelta,
        states: Callable[[], Sequence[SourceState]] | None = None,
    ) -> None:
        self._reader = reader
        self._sources = sources
        self._libraries = libraries
        self._away_after = away_after
        self._states = {(state.host, state.path): state for state in (states or reader.sources)()}
        uses = reader.skill_usage(resolve=resolve)
        self._uses = uses
        self._by_name: dict[str, list[SkillUse]] = {}
        for use in uses:
            self._by_name.setdefault(fold_name(use.skill).rpartition("/")[2], []).append(use)

    def usage(
        self, keys: Iterable[SkillKey], counters: Mapping[SkillKey, HostCounters]
    ) -> Mapping[SkillKey, SkillUsage]:
        """Return the usage of each skill."""
        heard = [
            Heard(
                library=LibraryName(use.library) if use.library is not None else None,
                skill=SkillName(use.skill),
                counts=use.counts,
                newest=use.newest,
                sessions=use.sessions,
                hosts=use.hosts,
            )
            for use in self._uses
        ]
        return usage_by_skill(keys, heard, counters)

    def created_by(self, key: SkillKey) -> CreatedBy | None:
        """Return the first session that was seen to create the skill."""
        made = [use.created for use in self._about(key) if use.created is not None]
        return min(made, key=lambda created: created.at, default=None)

    def created_at(self, skill: Skill) -> datetime | None:
        """Return when a session was seen to create *skill*."""
        created = self.created_by(skill.key)
        return created.at if created is not None else None

    def changes(self, skill: Skill, since: datetime) -> Sequence[datetime]:
        """Return when sessions were seen to change *skill*, at or after *since*; of each kind of change the newest."""
        return [
            at
            for use in self._about(skill.key)
            for kind in (EventKind.PATCH, EventKind.CREATE)
            if (at := use.newest.get(kind)) is not None and at >= since
        ]

    def source_ids(self, library: LibrarySettings) -> list[int]:
        """Return the store's ids of the sources that speak of *library* and were ever scanned."""
        return [state.source_id for state in self._states_of(library)]

    def clock(self, library: LibrarySettings, *, first_scan_at: datetime | None, doubts: Sequence[str]) -> LibraryClock:
        """Return the library's clock; *doubts* are others' reasons why it cannot be trusted."""
        from curatord.core.idle import Gap, LibraryClock

        states = self._states_of(library)
        ids = [state.source_id for state in states]
        # What one file hides is a warning of the scan; a source that could not be listed at all cannot testify.
        # What is unreadable within a file is counted and told; a place or file that cannot be read at all hides uses.
        unread = [
            f"{state.path} could not be read whole: {state.problems[0]}"
            if state.problems
            else f"{state.path} was never read whole"
            for source, state in self._sources_of(library)
            if state.problems or (state.complete_at is None and not _never_was(source, state))
        ]
        return LibraryClock(
            library=LibraryName(library.name),
            sources=len([source for source in self._sources if speaks_of(source.settings, library, self._libraries)]),
            observed_since=self._reader.testifies_from(ids),
            first_scan_at=first_scan_at,
            first_work=self._reader.first_work_at(ids),
            newest_work=self._reader.newest_work_at(ids),
            newest_evidence=max(
                (state.newest_record_at for state in states if state.newest_record_at is not None), default=None
            ),
            gaps=tuple(
                Gap(start=start, end=end) for start, end in self._reader.work_gaps(ids, longer_than=self._away_after)
            ),
            doubts=(*unread, *doubts),
        )

    def _states_of(self, library: LibrarySettings) -> list[SourceState]:
        return [state for _, state in self._sources_of(library)]

    def _sources_of(self, library: LibrarySettings) -> list[tuple[PlacedSource, SourceState]]:
        return [
            (source, state)
            for source in self._sources
            if (state := self._states.get(source.key)) is not None
            and speaks_of(source.settings, library, self._libraries)
        ]

    def _about(self, key: SkillKey) -> list[SkillUse]:
        return [use for use in self._by_name.get(fold_name(key.name), ()) if use.library in (None, key.library)]


def _never_was(source: PlacedSource, state: SourceState) -> bool:
    """
    Return whether *state* is of a place where the host could have been and was not, as far as anybody looked.

    Hosts have moved and been renamed, so most have several default places of which one is in use; the others say
    nothing. A place that somebody named is another matter: there a host is missing.
    """
    return source.settings.path is None and state.scanned_at is None and state.records == 0

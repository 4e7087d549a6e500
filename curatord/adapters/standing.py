"""
What is true of skills right now, for the gate and for the writer: one fresh look at the library, its host's files, and
our own records.

Readings of packages that did not change are kept, as everywhere, so that a look costs one listing and one stat a file;
ownership files are read anew each time. A pin counts where either word says so, also where several skills share the
name that the host's record is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from curatord.adapters.library import DiskLibrary
from curatord.core.cheap import dataclass
from curatord.core.library import Skill
from curatord.core.ownership import LibraryView, OwnershipFacts, decide
from curatord.core.plan import Standing
from curatord.core.reach import Site
from curatord.core.settings import LibrarySettings
from curatord.core.skill_record import SkillRecord
from curatord.core.values import Importance, LibraryName, SkillKey

__all__ = ["LibraryStandings", "Sites", "site_of"]


@dataclass(slots=True, kw_only=True)
class LibraryStandings:
    """
    Fills `ports.mutator.Look` from real libraries.

    Attributes:
        libraries, settings: By the library's name; a skill of any other library is not there.
        record_of: Our record of a skill, or None.
        observed: Tells words why a library is only looked at (conflicts between libraries), if any.
    """

    libraries: Mapping[LibraryName, DiskLibrary]
    settings: Mapping[LibraryName, LibrarySettings]
    record_of: Callable[[SkillKey], SkillRecord | None]
    observed: Callable[[LibraryName], Sequence[str]]

    def __call__(self, keys: Sequence[SkillKey]) -> dict[SkillKey, Standing]:
        """Return what is true of each of *keys*."""
        found: dict[SkillKey, Standing] = {}
        for name in dict.fromkeys(key.library for key in keys):
            library = self.libraries.get(name)
            mine = [key for key in keys if key.library == name]
            if library is None:
                found.update((key, Standing(key=key, there=False, why="its library is not configured")) for key in mine)
                continue
            view = library.look_at(mine, observed=self.observed(name))
            skills = {skill.key: skill for skill in view.snapshot.skills}
            for key in mine:
                found[key] = self._standing(key, skills.get(key), view.facts)
        return found

    def _standing(self, key: SkillKey, skill: Skill | None, facts: OwnershipFacts) -> Standing:
        record = self.record_of(key)
        pinned = record is not None and record.pinned
        importance = Importance.NORMAL if record is None else record.importance
        state = None if record is None else record.state
        if skill is None:
            return Standing(key=key, there=False, pinned=pinned, importance=importance, state=state)
        whose = decide(skill, facts, record, self.settings[key.library])
        names = {skill.name, skill.content.header_name}
        return Standing(
            key=key,
            there=True,
            managed=whose.managed,
            why=whose.why,
            fingerprint=skill.fingerprint,
            protected=whose.protected,
            broken=skill.broken,
            pinned=pinned or any(row.pinned for name in names if name and (row := facts.usage.get(name)) is not None),
            importance=importance,
            state=state,
        )


class Sites(Mapping[LibraryName, Site]):
    """
    Where libraries are, each looked for when it is first asked for.

    One that can be seen keeps its site for as long as this object lives, which is one command or one round of the
    daemon. One that cannot is looked for anew each time: when it comes back it may turn out to be a host's own, and
    then the host's locks and records are part of every change.
    """

    def __init__(self, libraries: Iterable[tuple[LibrarySettings, DiskLibrary]]) -> None:
        self._libraries = {LibraryName(settings.name): (settings, library) for settings, library in libraries}
        self._seen: dict[LibraryName, Site] = {}

    def __getitem__(self, name: LibraryName) -> Site:
        site = self._seen.get(name)
        if site is None:
            settings, library = self._libraries[name]
            view = library.look_at(())
            site = site_of(view, settings)
            if not any(problem.code in ("missing", "unreadable") for problem in view.snapshot.problems):
                self._seen[name] = site
        return site

    def __iter__(self) -> Iterator[LibraryName]:
        return iter(self._libraries)

    def __len__(self) -> int:
        return len(self._libraries)


def site_of(view: LibraryView, settings: LibrarySettings) -> Site:
    """Return where the library of *view* is, for the writer."""
    snapshot = view.snapshot
    other = (snapshot.real_root,) if snapshot.real_root != snapshot.root else ()
    return Site(
        library=snapshot.library,
        root=snapshot.root,
        archive=snapshot.archive.rstrip("/"),
        layout=snapshot.layout,
        home=None if view.hermes is None else view.hermes.home,
        seen_as=(*settings.seen_as, *other),
    )

"""
Who names whom: the skills that a schedule or another live skill's text leads to, which therefore stay active.

A schedule names skills by name or by absolute path (bugs B019). Text names them by a relative path from its own file,
an absolute one, one below `~` or a host's view of the library, or by `[[name]]`. A path in an example counts like a
link: a command that runs another skill's script breaks just as surely when that skill is moved. Prose that merely
mentions a name does not count, nor do lists of related skills in a header, which installers fill by the dozen.

A name that several skills share protects all of them; one that nobody has protects nobody and is told.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

from curatord.core.cheap import dataclass
from curatord.core.hermes_files import ScheduleReference
from curatord.core.library import LibrarySnapshot, OutwardLink, Skill
from curatord.core.settings import LibrarySettings
from curatord.core.values import SkillKey

__all__ = ["Reference", "SkillIndex", "references_by_skill"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One reason why a skill is needed: *words* name who names it, *kind* says what that is."""

    kind: Literal["schedule", "link"]
    words: str


class SkillIndex:
    """
    Looks up live skills by name and by path; most libraries' texts name none, so what for is made when it is asked for.

    Args:
        snapshots: The libraries that references may lead into.
        settings: Their configuration, by name, for `seen_as`.
        home: What `~` stands for.
    """

    def __init__(
        self, snapshots: Sequence[LibrarySnapshot], settings: Mapping[str, LibrarySettings], *, home: str
    ) -> None:
        self._snapshots = snapshots
        self._settings = settings
        self._home = home.rstrip("/")

    @cached_property
    def _by_place(self) -> dict[str, SkillKey]:
        return {
            path: skill.key
            for snapshot in self._snapshots
            for skill in snapshot.skills
            for path in (skill.path, *skill.also_at)
        }

    @cached_property
    def _by_name(self) -> dict[str, list[SkillKey]]:
        found: dict[str, list[SkillKey]] = {}
        for snapshot in self._snapshots:
            for skill in snapshot.skills:
                for name in {skill.name, skill.content.header_name} - {None}:
                    found.setdefault(str(name), []).append(skill.key)
        return found

    @cached_property
    def _roots(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for snapshot in self._snapshots:
            configured = self._settings.get(snapshot.library)
            seen_as = configured.seen_as if configured is not None else ()
            found += [(root.rstrip("/"), snapshot.root) for root in (snapshot.real_root, *seen_as)]
        return sorted(found, key=lambda pair: -len(pair[0]))

    @cached_property
    def _begins(self) -> tuple[str, ...]:
        # Texts are full of `/usr/bin/env`; what begins like no library is not looked up part by part.
        places = {f"{posixpath.dirname(path)}/" for path in self._by_place}
        return tuple({*places, *(f"{seen}/" for seen, _ in self._roots)})

    def named(self, target: str) -> list[SkillKey]:
        """Return the skills that *target*, a name, `category/name` or a path, may mean."""
        if target.startswith(("/", "~")):
            key = self.at(target)
            return [] if key is None else [key]
        keys = self._by_name.get(target)
        if keys is None and "/" in target:
            keys = [
                key for key in self._by_name.get(target.rpartition("/")[2], ()) if f"/{key.rel}".endswith(f"/{target}")
            ]
        return list(keys or ())

    def at(self, path: str) -> SkillKey | None:
        """Return the skill that holds the absolute *path* (or is it), or None."""
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        path = posixpath.normpath(path)
        if not path.startswith(self._begins):
            return None
        for seen, root in self._roots:
            if path.startswith(f"{seen}/"):
                path = root + path[len(seen) :]
                break
        while len(path) > 1:
            key = self._by_place.get(path) or self._by_place.get(f"{path}.md")
            if key is not None:
                return key
            path = posixpath.dirname(path)
        return None


def references_by_skill(
    snapshots: Sequence[LibrarySnapshot], schedules: Iterable[tuple[str, ScheduleReference]], index: SkillIndex
) -> tuple[dict[SkillKey, tuple[Reference, ...]], list[str]]:
    """
    Return why each referenced skill is needed, and words for each schedule that names nobody.

    Args:
        snapshots: All libraries; a broken skill's links count too, since its text is read by agents all the same.
        schedules: (library, reference) of all hosts; one prefers the skills of its own library.
        index: Of the same snapshots.
    """
    found: dict[SkillKey, dict[str, Reference]] = {}  # by who names it, so that one that does it often counts once
    unknown: list[str] = []
    for library, reference in schedules:
        keys = index.named(reference.target)
        keys = [key for key in keys if key.library == library] or keys
        job = f"the scheduled job `{reference.job}`{'' if reference.enabled else ' (paused)'}"
        if not keys:
            unknown.append(f"{job} names `{reference.target}`, which is no live skill")
        for key in keys:
            found.setdefault(key, {}).setdefault(job, Reference(kind="schedule", words=f"{job} names it"))
    for snapshot in snapshots:
        for skill in snapshot.skills:
            for link in skill.content.outward:
                words = f"`{skill.key.rel}` leads to it ({link.file}, line {link.line})"
                for key in _targets(skill, link, index):
                    if key != skill.key:
                        found.setdefault(key, {}).setdefault(str(skill.key), Reference(kind="link", words=words))
    return {key: tuple(found[key].values()) for key in sorted(found)}, unknown


def _targets(skill: Skill, link: OutwardLink, index: SkillIndex) -> Iterator[SkillKey]:
    if link.kind == "wiki":
        keys = index.named(link.target)
        yield from [key for key in keys if key.library == skill.key.library] or keys
        return
    target = link.target
    if not target.startswith(("/", "~")):
        base = posixpath.dirname(skill.path) if skill.form == "flat" else skill.path
        target = posixpath.join(base, target)
    key = index.at(target)
    if key is not None:
        yield key

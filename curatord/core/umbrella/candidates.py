"""
Which skills a model may be asked about, and which of them may belong together, before any model is asked.

Never offered, neither as member nor as umbrella: what is pinned, critical, unmanaged, protected or broken (promise 4),
what cannot be folded without loss, and what a skill that may not be changed points at: its link would be dead, and
nobody may mend it. Young skills are left alone too (bugs B007), where their age is known: the newest file time at the
first look at a library says when it was copied, not when it was written.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from curatord.core.candidates import why_no_merge
from curatord.core.cheap import dataclass
from curatord.core.cluster import SHORTLIST, Clustering, Cut, Index, build_index, cut, links
from curatord.core.cluster import SkillText as ClusterText
from curatord.core.idle import LibraryClock
from curatord.core.library import LibrarySnapshot, Skill
from curatord.core.lifecycle import SkillFacts
from curatord.core.skill import SKILL_FILE
from curatord.core.umbrella.links import Ground, below_root
from curatord.core.values import SkillKey

__all__ = ["Offered", "group", "inbound", "labels_of", "offered", "place_of_package", "resolve_target"]

_SURE_BIRTHS = frozenset({"ledger", "event"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """
    Who may be asked about.

    Attributes:
        skills: May be members and umbrellas, by key.
        left: Managed skills that may not, each with why; unmanaged ones are no news to anybody.
        pointing: For each offered skill those that point at it, and that will be written when it moves.
        changeable: Every skill whose text may be changed.
    """

    skills: tuple[Skill, ...]
    left: Mapping[SkillKey, str]
    pointing: Mapping[SkillKey, frozenset[SkillKey]]
    changeable: frozenset[SkillKey]


def offered(
    snapshot: LibrarySnapshot,
    facts: Mapping[SkillKey, SkillFacts],
    clock: LibraryClock,
    now: datetime,
    *,
    min_age: timedelta,
) -> Offered:
    """Return who of the library may be asked about; *min_age* is what they must have, where their age is known."""
    changeable = frozenset(
        skill.key
        for skill in snapshot.skills
        if skill.key in facts and skill.broken is None and why_no_merge(facts[skill.key], clock, now) is None
    )
    pointing = inbound(snapshot)
    skills: list[Skill] = []
    left: dict[SkillKey, str] = {}
    for skill in snapshot.skills:
        its = facts.get(skill.key)
        if its is None or not its.managed:
            continue
        why = why_no_merge(its, clock, now, min_age=min_age if _born_surely(its, clock) else timedelta(0))
        why = why or skill.broken or _own_reasons(skill)
        if why is None:
            stuck = sorted(pointing.get(skill.key, frozenset()) - changeable)
            if stuck:
                why = f"{stuck[0]} points at it, and that may not be changed"
        if why is None:
            skills.append(skill)
        else:
            left[skill.key] = why
    keys = {skill.key for skill in skills}
    return Offered(
        skills=tuple(skills),
        left=left,
        pointing={key: whom for key, whom in pointing.items() if key in keys},
        changeable=changeable,
    )


def _born_surely(facts: SkillFacts, clock: LibraryClock) -> bool:
    if facts.record.born_from in _SURE_BIRTHS:
        return True
    first = clock.first_scan_at
    return first is not None and facts.record.first_seen_at - first > timedelta(seconds=1)


def _own_reasons(skill: Skill) -> str | None:
    if skill.form == "folder" and skill.content.entry_file != SKILL_FILE:
        return f"its text is `{skill.content.entry_file}`, which not every host sees"
    if skill.link_target is not None or skill.also_at:
        return "it is reached through a link"
    return None


def labels_of(snapshot: LibrarySnapshot) -> dict[SkillKey, str]:
    """Return what a model calls each skill: its name, or its path where two have one name."""
    count: dict[str, int] = {}
    for skill in snapshot.skills:
        count[skill.name] = count.get(skill.name, 0) + 1
    return {skill.key: skill.name if count[skill.name] == 1 else skill.key.rel for skill in snapshot.skills}


def place_of_package(skill: Skill) -> str:
    """Return the place of a package within its library; see `links`."""
    return f"{skill.key.rel}.md" if skill.form == "flat" else skill.key.rel


def inbound(snapshot: LibrarySnapshot) -> dict[SkillKey, frozenset[SkillKey]]:
    """Return for each skill which others' texts point into its package, by path or as `[[name]]`."""
    places = {place_of_package(skill): skill.key for skill in snapshot.skills}
    names: dict[str, list[SkillKey]] = {}
    for skill in snapshot.skills:
        names.setdefault(skill.name, []).append(skill.key)
    ground = Ground(
        files=frozenset(), packages=frozenset(places), moved={}, went={}, roots=(snapshot.root, snapshot.real_root)
    )
    found: dict[SkillKey, set[SkillKey]] = {}
    for skill in snapshot.skills:
        for link in skill.content.outward:
            if link.kind == "wiki":
                keys: Iterable[SkillKey] = names.get(link.target, [])
            else:
                key = resolve_target(link.target, skill, places, ground)
                keys = () if key is None else (key,)
            for key in keys:
                if key != skill.key:
                    found.setdefault(key, set()).add(skill.key)
    return {key: frozenset(whom) for key, whom in found.items()}


def resolve_target(target: str, skill: Skill, places: Mapping[str, SkillKey], ground: Ground) -> SkillKey | None:
    """Return the skill into whose package *target*, as *skill*'s package names it, leads."""
    if target.startswith(("/", "~")):
        absolute = below_root(target, ground.roots)
        if absolute is None:
            return None
        place = absolute[1]
    else:
        base = posixpath.dirname(skill.key.rel) if skill.form == "flat" else skill.key.rel
        place = posixpath.normpath(posixpath.join(base, target))
    while place and place != ".":
        if place in places:
            return places[place]
        place = posixpath.dirname(place)
    return None


def group(texts: Sequence[ClusterText], how: Cut = SHORTLIST) -> tuple[Index, Clustering]:
    """Return the index of *texts* and its groups by the cut *how*."""
    index = build_index(texts)
    return index, cut(links(index), how)

"""
Whose a skill is, and whether curatord may change it: the one answer that every listing, pass and writer uses.

Three questions, in this order (contract, section 6; bugs B046, B047, B050, B052):

1. Is it *protected*? Broken, bundled, installed from a hub or as a plugin, external, under somebody else's version
   control, a link out of the library, or in a library that cannot be judged or written now. Nothing opens that.
2. Does the library hand skills over at all (`manage`)? `none`: no. `all`: every one that is not protected.
3. With `owned`: is there a licence for this one? curatord made it, the user adopted it, or Hermes' own record hands
   it to curation. A user's `disown` beats every licence, with `all` too.

Whatever is not known to be handed over is the user's. A skill that an agent was seen to make is shown as such, and
that is no licence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from curatord.core.cheap import dataclass, field
from curatord.core.hermes_files import HermesFacts, LedgerEntry, UsageRow
from curatord.core.library import LibrarySnapshot, Skill
from curatord.core.settings import LibrarySettings
from curatord.core.skill_record import Owner, SkillRecord
from curatord.core.values import Fingerprint, require_aware

__all__ = [
    "HandEdit",
    "LibraryView",
    "Licence",
    "Ownership",
    "OwnershipFacts",
    "Protection",
    "decide",
    "hand_edited",
    "ledger_explains",
    "ownership_facts",
    "usage_of",
]

Licence: TypeAlias = Literal["curatord", "adopted", "host", "all"]
Protection: TypeAlias = Literal["broken", "unjudged", "observed", "link", "external", "vcs", "plugin", "hub", "bundled"]

# How long after an agent's call the file may have been written: the call's time is when it was asked for, and a person
# may take a while to allow it. Later than that it was somebody else.
EXPLAINED_FOR = timedelta(hours=1)
# File times are cut to what the file system can hold, and two clocks need not agree to the second.
SLACK = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipFacts:
    """
    What is known about a library's skills from outside of them.

    Attributes:
        unjudged: Words for each ownership file that cannot be read.
        observed: Words why the library is only looked at (read-only, in conflict with another).
        bundled, hub: Words by the names that the host's files use.
        hub_paths: Words by the paths within the library where a hub installed something.
        plugin: Words where the whole library belongs to a plugin.
        usage: Hermes' records, by the name that Hermes uses.
        shared_names: Names that several live skills share, so that a record by name says nothing of either.
    """

    unjudged: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()
    bundled: Mapping[str, str] = field(default_factory=dict)
    hub: Mapping[str, str] = field(default_factory=dict)
    hub_paths: Mapping[str, str] = field(default_factory=dict)
    plugin: str | None = None
    usage: Mapping[str, UsageRow] = field(default_factory=dict)
    shared_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """
    The answer: exactly one of *licence* and the absence of it, with *why* in words a user can act on.

    *protection* is set where no adoption could make it managed.
    """

    managed: bool
    why: str
    licence: Licence | None = None
    protection: Protection | None = None

    @property
    def protected(self) -> bool:
        """Whether nothing, not even the user's adoption, lets curatord change it as it is."""
        return self.protection is not None


def decide(skill: Skill, facts: OwnershipFacts, record: SkillRecord | None, settings: LibrarySettings) -> Ownership:
    """
    Return whether curatord may change *skill*, and why.

    Args:
        skill: As the newest look at the library found it.
        facts: What the host and the installers say about this library.
        record: What curatord remembers of it, or None when it was never seen before.
        settings: The library's part of the configuration; only *manage* is used.
    """
    protection = _protection(skill, facts)
    if protection is not None:
        return protection
    if settings.manage == "none":
        return _NOTHING
    if record is not None and record.owner is not None:
        return _BY_OWNER[record.owner]
    if settings.manage == "all":
        return _ALL
    row = usage_of(skill, facts)
    if row is not None and row.agent_made:
        return _BY_HOST
    return Ownership(managed=False, why=_unhanded(skill, facts))


_NOTHING = Ownership(managed=False, why="nothing in this library is handed over (`manage: none`)")
_BY_OWNER: dict[Owner, Ownership] = {
    "disowned": Ownership(managed=False, why="you took it back (`curatord adopt` hands it over again)"),
    "curatord": Ownership(managed=True, licence="curatord", why="curatord made it"),
    "adopted": Ownership(managed=True, licence="adopted", why="you adopted it"),
}
_ALL = Ownership(managed=True, licence="all", why="the whole library is handed over (`manage: all`)")
_BY_HOST = Ownership(managed=True, licence="host", why="Hermes' own record hands it to curation (agent-made)")


def _protection(skill: Skill, facts: OwnershipFacts) -> Ownership | None:
    found = _first_protection(skill, facts)
    return None if found is None else Ownership(managed=False, protection=found[0], why=found[1])


def _first_protection(skill: Skill, facts: OwnershipFacts) -> tuple[Protection, str] | None:
    if skill.broken is not None:
        return "broken", f"it is broken: {skill.broken}"
    if facts.unjudged:
        return "unjudged", f"whose it is cannot be told: {facts.unjudged[0]}"
    if skill.external is not None:
        return "external", f"it is {skill.external}" if skill.external.startswith("an ") else skill.external
    if skill.link_target is not None:
        return "link", f"it is a link out of the library, to {skill.link_target}"
    if skill.foreign_vcs is not None:
        return "vcs", skill.foreign_vcs
    if facts.plugin is not None:
        return "plugin", facts.plugin
    if skill.content.installed_by is not None:
        return "plugin", f"it is {skill.content.installed_by}"
    if facts.hub_paths or facts.hub or facts.bundled:
        names = _names(skill)
        hub = _below(facts.hub_paths, skill.key.rel) or _first(facts.hub, names)
        if hub is not None:
            return "hub", hub
        bundled = _first(facts.bundled, names)
        if bundled is not None:
            return "bundled", bundled
    if facts.observed:
        return "observed", f"the library is only looked at: {facts.observed[0]}"
    return None


def _below(words: Mapping[str, str], rel: str) -> str | None:
    """Return the words for *rel* or the nearest folder above it."""
    while rel and words:
        if rel in words:
            return words[rel]
        rel = rel.rpartition("/")[0]
    return None


def _names(skill: Skill) -> tuple[str, ...]:
    """Return the names a host may know *skill* by: its folder's, and its header's spelling of it."""
    header = skill.content.header_name
    return (skill.name,) if header is None or header == skill.name else (skill.name, header)


def _first(words: Mapping[str, str], names: Sequence[str]) -> str | None:
    for name in names:
        if name in words:
            return words[name]
    return None


def usage_of(skill: Skill, facts: OwnershipFacts) -> UsageRow | None:
    """Return what Hermes recorded of *skill*, or None where it recorded nothing or a shared name hides which."""
    if not facts.usage:
        return None
    name, header = skill.name, skill.content.header_name
    if name in facts.shared_names:
        return None
    row = facts.usage.get(header) if header is not None and header != name else None
    return facts.usage.get(name) if row is None else row  # Hermes keys by the header's name where there is one


def _unhanded(skill: Skill, facts: OwnershipFacts) -> str:
    if skill.name in facts.shared_names and any(
        row.agent_made for name in _names(skill) if (row := facts.usage.get(name)) is not None
    ):
        return "several skills share its name, and Hermes' record does not say which is meant (`curatord adopt`)"
    return "nobody handed it over (`curatord adopt` does)"


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryView:
    """One look at a library with all that bears on whose its skills are; *hermes* is None in other layouts."""

    snapshot: LibrarySnapshot
    facts: OwnershipFacts
    hermes: HermesFacts | None = None


def ownership_facts(
    snapshot: LibrarySnapshot,
    hermes: HermesFacts | None = None,
    *,
    installed: Mapping[str, str] | None = None,
    unjudged: Sequence[str] = (),
    observed: Sequence[str] = (),
    plugin: str | None = None,
) -> OwnershipFacts:
    """
    Return the facts that `decide` needs for the skills of *snapshot*.

    Args:
        hermes: What the Hermes home around the library says, where there is one.
        installed: Words by name of what other installers' lock files list.
        unjudged: Words for lock files of theirs that cannot be read.
        observed: Words for conflicts found by looking at all libraries; those of the snapshot are added.
        plugin: Words where the whole library belongs to a plugin.
    """
    hub = dict(installed or {})
    hub_paths: dict[str, str] = {}
    by_rel: dict[str, Skill] = {skill.key.rel: skill for skill in snapshot.skills} if hermes and hermes.hub else {}
    for entry in hermes.hub if hermes else ():
        words = f"it was installed from a hub ({entry.source})"
        hub[entry.name] = words
        if entry.install_path is not None:
            hub_paths[entry.install_path] = words
            place = by_rel.get(entry.install_path)
            if place is not None and place.content.header_name is not None:
                hub[place.content.header_name] = words
    counted = Counter([skill.name for skill in snapshot.skills])
    return OwnershipFacts(
        unjudged=(*(hermes.protected if hermes else ()), *unjudged),
        observed=(*(p.words for p in snapshot.problems if p.severity != "note"), *observed),
        bundled=dict.fromkeys(hermes.bundled, "it came with Hermes (`.bundled_manifest`)") if hermes else {},
        hub=hub,
        hub_paths=hub_paths,
        plugin=plugin,
        usage=hermes.usage if hermes else {},
        shared_names=frozenset(name for name, count in counted.items() if count > 1),
    )


# --- Edited by hand ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HandEdit:
    """A managed skill was changed by somebody else: only proposals until `adopt` is said again (promise 10)."""

    why: str


def hand_edited(
    skill: Skill, *, trusted: Fingerprint | None, trusted_at: datetime, explanations: Iterable[datetime] = ()
) -> HandEdit | None:
    """
    Return that *skill* was edited by hand since it was last trusted, or None.

    Args:
        trusted: Its content when curatord last had the licence to change it; None: never yet, so now is the first.
        trusted_at: When that was; aware.
        explanations: Times of the patches and creations of it that transcripts or the host's ledger show.

    A change is explained by a patch since *trusted_at* that is no older than an hour before the newest file of the
    package was written. Where the content cannot be told, it counts as edited: doubt means no change.
    """
    require_aware("trusted_at", trusted_at)
    if trusted is None or skill.fingerprint == trusted:
        return None
    if skill.fingerprint is None:
        return HandEdit(why="its content cannot be read, so whether it was edited by hand cannot be told")
    times = [at for at in explanations if at >= trusted_at - SLACK]
    written = skill.newest_file_at
    if times and (written is None or written <= max(times) + EXPLAINED_FOR):
        return None
    if times:
        return HandEdit(why="it was edited by hand after an agent's last change to it (`curatord adopt` hands it over)")
    return HandEdit(why="it was edited by hand since curatord last saw it (`curatord adopt` hands it over again)")


_CHANGING = frozenset({"create", "edit", "patch", "write_file", "remove_file", "restore", "rollback", "consolidate"})


def ledger_explains(entries: Iterable[LedgerEntry], skill: Skill) -> list[datetime]:
    """Return the times at which the host's own ledger says that *skill* was changed, in their order."""
    prefix = f"{skill.path}/"
    return [
        entry.at
        for entry in entries
        if entry.action in _CHANGING
        and (
            entry.skill in _names(skill)
            or any(path == skill.path or path.startswith(prefix) for path, _ in (*entry.before, *entry.after))
        )
    ]

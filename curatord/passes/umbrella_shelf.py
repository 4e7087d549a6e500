"""
One library as planned so far: what stands on disk, with this run's merges done to it in memory.

Rounds ask about this and not about the disk (contract, section 9). The same code builds what is applied in the end, on
a fresh shelf, so that a plan and its execution cannot differ.
"""

from __future__ import annotations

from collections.abc import Collection

from curatord.core.cheap import dataclass, field, replace
from curatord.core.umbrella.build import Built, Fallen, build
from curatord.core.umbrella.candidates import Offered, place_of_package
from curatord.core.umbrella.decision import Decision
from curatord.core.umbrella.fold import moved_text
from curatord.core.umbrella.links import Edit, Ground, Moved
from curatord.core.umbrella.packed import Packed
from curatord.core.values import SkillKey
from curatord.errors import InputError
from curatord.passes.umbrella_case import LibraryCase
from curatord.ports.packages import PackageReader

__all__ = ["Shelf"]


@dataclass(slots=True, kw_only=True)
class Shelf:
    """See the module. *changed* are packages as they shall be, *homes* says which umbrella took a skill in."""

    case: LibraryCase
    offered: Offered
    packages: PackageReader
    changed: dict[SkillKey, Packed] = field(default_factory=dict)
    homes: dict[SkillKey, SkillKey] = field(default_factory=dict)
    _moved: dict[str, Moved] = field(default_factory=dict)
    _went: dict[str, Moved] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _files: frozenset[str] = frozenset()

    def copy(self) -> Shelf:
        """Return a shelf that goes its own way from here."""
        return replace(
            self,
            changed=dict(self.changed),
            homes=dict(self.homes),
            _moved=dict(self._moved),
            _went=dict(self._went),
            _names=dict(self._names),
        )

    def package(self, key: SkillKey) -> Packed:
        """
        Return a package as planned.

        Raises:
            InputError: It is not there, cannot be read, or is not what the run looked at.
        """
        if key in self.changed:
            return self.changed[key]
        skill = self.case.snapshot.by_key.get(key)
        if skill is None or key in self.homes:
            raise InputError(f"{key} is not in the library")
        package = self.packages.read(skill)
        if package.fingerprint != skill.fingerprint:
            raise InputError(f"{key} was edited since it was looked at")
        return package

    def ground(self) -> Ground:
        """Return what references are resolved against."""
        snapshot = self.case.snapshot
        return Ground(
            files=self._files,
            packages=frozenset(place_of_package(skill) for skill in snapshot.skills),
            moved=self._moved,
            went=self._went,
            roots=tuple(dict.fromkeys((snapshot.root, snapshot.real_root, *self.case.seen_as))),
            names=self._names,
        )

    def build(self, decision: Decision, *, later: Collection[SkillKey] = ()) -> Built | Fallen:
        """
        Return the merge that *decision* leads to as things stand here.

        *later* are skills that a merge after this one takes in or writes: their texts follow then.
        """
        keys = [member.key for member in decision.members]
        try:
            members = {key: self.package(key) for key in keys}
            there = decision.umbrella in self.changed or decision.umbrella in self.case.snapshot.by_key
            before = self.package(decision.umbrella) if there else None
            pointing = {key: self.package(key) for key in self._pointing(decision, later)}
        except InputError as error:
            return Fallen(umbrella=decision.umbrella, members=tuple(keys), reasons=(str(error),))
        if before is not None and not decision.existing:
            reason = f"a skill stands at {decision.umbrella} already"
            return Fallen(umbrella=decision.umbrella, members=tuple(keys), reasons=(reason,))
        return build(
            decision,
            before=before,
            members=members,
            pointing=pointing,
            layout=self.case.layout,
            others=self.ground(),
            reasons={},
        )

    def _pointing(self, decision: Decision, later: Collection[SkillKey]) -> list[SkillKey]:
        own = {decision.umbrella, *(member.key for member in decision.members)}
        found = {
            self.homes.get(whom, whom)
            for member in decision.members
            for whom in self.offered.pointing.get(member.key, frozenset())
        }
        return sorted(found - own - set(later))

    def take(self, built: Built) -> None:
        """Let *built* be done."""
        umbrella = built.decision.umbrella
        self.changed[umbrella] = built.folded.after
        for _, after in built.others:
            self.changed[after.key] = after
        for member in built.decision.members:
            self.homes[member.key] = umbrella
            self.changed.pop(member.key, None)
        ground = built.folded.ground
        self._moved = dict(ground.moved)
        self._went = dict(ground.went)
        self._names = dict(ground.names)
        self._files = ground.files

    def follow(self, key: SkillKey) -> tuple[Packed, Packed, tuple[Edit, ...]]:
        """
        Return a package that stays, as it is and with its references following all that was done here.

        Raises:
            InputError: It cannot be read.
        """
        package = self.package(key)
        after, edits = moved_text(package, self.ground())
        return package, after, edits

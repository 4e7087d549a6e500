"""What shall become of a cluster: a `Decision`, made of a model's reply by `draft`, or by the lexical planner."""

from __future__ import annotations

from typing import Literal

from curatord.core.cheap import dataclass, replace
from curatord.core.values import SkillKey

__all__ = ["Decision", "Folding", "Kept", "Pruned", "Taken"]

Folding = Literal["section", "reference", "template", "script"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """
    A member that goes in.

    *title* heads its section or its row of the index, empty: made of its name. *path* is where its text shall stand
    within the umbrella's package, empty: code chooses.
    """

    key: SkillKey
    how: Folding
    title: str = ""
    path: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A skill that was asked about and stays as it is."""

    key: SkillKey
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """A skill that a model would archive without taking it in anywhere."""

    key: SkillKey
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """
    One umbrella with what goes in, over all rounds of a run.

    *description* empty: the umbrella keeps its own. *body* None: code writes it (contract, section 9).
    """

    umbrella: SkillKey
    existing: bool
    members: tuple[Taken, ...]
    description: str = ""
    overview: str = ""
    body: str | None = None
    reason: str = ""
    kept: tuple[Kept, ...] = ()
    pruned: tuple[Pruned, ...] = ()
    notes: tuple[str, ...] = ()

    def grown(self, later: Decision) -> Decision:
        """Return this decision with what a later round of the same run adds to the same umbrella."""
        have = {member.key for member in self.members}
        kept = {row.key: row for row in (*self.kept, *later.kept)}
        return replace(
            self,
            members=(*self.members, *(member for member in later.members if member.key not in have)),
            description=later.description or self.description,
            overview=later.overview or self.overview,
            kept=tuple(kept.values()),
            pruned=(*self.pruned, *later.pruned),
            notes=(*self.notes, *later.notes),
        )

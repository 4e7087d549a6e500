"""
What the umbrella pass is given and what it comes to, apart from how it works: most runs find that there is no model to
ask, and need none of the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curatord.core.cheap import dataclass, field
from curatord.core.curation import Proposal
from curatord.core.idle import LibraryClock
from curatord.core.library import LibrarySnapshot
from curatord.core.lifecycle import SkillFacts
from curatord.core.names import Layout
from curatord.core.plan import Action, Outcome
from curatord.core.run_record import FailedRow, PendingRow, ReferenceRow, SkippedRow
from curatord.core.settings import LifecycleSettings
from curatord.core.values import LibraryName, SkillKey

__all__ = ["LibraryCase", "UmbrellaResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryCase:
    """
    One library as the run found it.

    Attributes:
        snapshot: What stands on disk, after the rules have acted.
        facts: Of each of its skills.
        seen_as: Other absolute paths under which hosts name it.
        prune_room: How many skills a model may still prune in this run (what the cap leaves beside the rules' own).
    """

    snapshot: LibrarySnapshot
    facts: Mapping[SkillKey, SkillFacts]
    clock: LibraryClock
    policy: LifecycleSettings
    seen_as: tuple[str, ...] = ()
    prune_room: int = 3

    @property
    def name(self) -> LibraryName:
        """Its name."""
        return self.snapshot.library

    @property
    def layout(self) -> Layout:
        """Its layout."""
        return self.snapshot.layout


@dataclass(slots=True, kw_only=True)
class UmbrellaResult:
    """
    What the pass came to, in the rows of `run.json`.

    Attributes:
        state: `done`, `skipped`, `failed` (nothing was changed), `budget` (what was decided so far was used) or
            `stopped` (a signal; nothing further was begun).
        reason: Why, where it is not `done`.
        consolidated, pruned, added: What was found on disk to be so; of a dry run, what would be.
        pending: Proposals made or renewed.
        actions: What was, or would be, asked of the gate, for `plan.json`.
        left: Skills that were looked at and stay, with why.
        libraries: Per library its rounds, questions and coverage.
        prompts: Hash of each prompt file that was used.
        held: More prunes were wanted than the cap allows.
    """

    state: str = "done"
    reason: str = ""
    consolidated: list[Mapping[str, Any]] = field(default_factory=list)
    pruned: list[Mapping[str, Any]] = field(default_factory=list)
    added: list[Mapping[str, Any]] = field(default_factory=list)
    pending: list[PendingRow] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    skipped: list[SkippedRow] = field(default_factory=list)
    failed: list[FailedRow] = field(default_factory=list)
    references: list[ReferenceRow] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    left: list[Mapping[str, str]] = field(default_factory=list)
    libraries: list[Mapping[str, Any]] = field(default_factory=list)
    prompts: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    held: bool = False

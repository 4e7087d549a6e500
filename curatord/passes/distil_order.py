"""What is asked of the distil pass, and what it came to, in the rows of `run.json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from curatord.core.cheap import dataclass, field
from curatord.core.run_record import FailedRow, PendingRow, SkippedRow
from curatord.core.values import LibraryName, RunId

if TYPE_CHECKING:
    from curatord.core.curation import Proposal
    from curatord.core.plan import Action, Outcome
    from curatord.passes.consult import Consultation
    from curatord.passes.look import Look

__all__ = ["DistilOrder", "DistilResult", "Distiller"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilOrder:
    """
    What is asked for.

    Attributes:
        dry_run: Ask, show what would be done, change nothing, settle nothing.
        llm: A model may be asked.
        library: Change this one alone.
        by_hand: A person asked, so what keeps the daemon from asking too often is passed over.
        sessions: These rows of the store and no others, whatever the counters say; None: those that are due.
        backfill: The backlog of the first start as well.
        focus: What the person wants to be looked at.
        only_propose: Why nothing may be applied yet, in words; None where the mode alone decides.
    """

    dry_run: bool = False
    llm: bool = True
    library: LibraryName | None = None
    by_hand: bool = False
    sessions: tuple[int, ...] | None = None
    backfill: bool = False
    focus: str | None = None
    only_propose: str | None = None


@dataclass(slots=True, kw_only=True)
class DistilResult:
    """
    What the pass came to.

    Attributes:
        state: `done`, `skipped`, `failed` (no model could be asked), `budget` or `stopped`; *reason* in words.
        sessions: One row a session that was looked at: its outcome, operations, refusals.
        added, patched: What was applied and found on disk; of a dry run, what would be.
        pending, proposals: What waits for a yes.
        lines: One plain line a change, for log and report.
        changed: Something of a library was changed.
        left: Sessions that stay due.
        retry_at: When the daemon should try again, where something kept it from going on.
    """

    state: str = "done"
    reason: str = ""
    sessions: list[dict[str, Any]] = field(default_factory=list)
    added: list[Mapping[str, Any]] = field(default_factory=list)
    patched: list[Mapping[str, Any]] = field(default_factory=list)
    pending: list[PendingRow] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    skipped: list[SkippedRow] = field(default_factory=list)
    failed: list[FailedRow] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    prompts: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    changed: bool = False
    asked: int = 0
    left: int = 0
    retry_at: datetime | None = None

    def tally(self) -> dict[str, int]:
        """Return how many sessions came to which outcome."""
        found: dict[str, int] = {}
        for row in self.sessions:
            found[row["state"]] = found.get(row["state"], 0) + 1
        return dict(sorted(found.items()))


class Distiller(Protocol):
    """Does the distil pass; says of itself what it may do (a dry run's cannot change anything)."""

    def __call__(
        self,
        order: DistilOrder,
        *,
        look: Look,
        now: datetime,
        run_id: Callable[[], RunId],
        consultation: Callable[[], Consultation | None],
        stop: Callable[[], bool],
    ) -> DistilResult:
        """
        Return what the pass came to.

        Args:
            look: Everything as it is.
            run_id: Asked before the first change or proposal, which are its work.
            consultation: Asked for where a model is to be asked.
        """
        ...

"""What a run works with and does not make itself: each part as the run sees it; the wiring hands them over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from curatord.core.gates import Closed, Open
from curatord.core.plan import Action
from curatord.core.plan import Outcome as ActionOutcome
from curatord.core.values import RunId

if TYPE_CHECKING:
    from curatord.passes.consult import Consultation
    from curatord.passes.umbrella_case import LibraryCase, UmbrellaResult

__all__ = ["ActionGate", "Consult", "Folders", "Gatekeeper", "Merger", "Unsettled"]


class Gatekeeper(Protocol):
    """Answers whether a run may begin."""

    def __call__(self, now: datetime, *, bypass: bool) -> Open | Closed:
        """Return all gates' answers at *now*."""
        ...


class Folders(Protocol):
    """The folders of runs."""

    def create(self, started_at: datetime) -> RunId:
        """Make a folder and return its id."""
        ...

    def write(self, run_id: RunId, run: Mapping[str, Any], report: str) -> None:
        """Write `run.json` and `REPORT.md`."""
        ...

    def write_plan(self, run_id: RunId, plan: Mapping[str, Any]) -> None:
        """Write `plan.json`."""
        ...

    def read(self, run_id: RunId) -> dict[str, Any]:
        """Return `run.json`."""
        ...

    def outcome(self, run_id: RunId) -> str | None:
        """Return the outcome that `run.json` tells, None where there is no whole one."""
        ...

    def ids(self) -> list[RunId]:
        """Return all ids, oldest first."""
        ...

    def tidy(self, run_id: RunId) -> None:
        """Remove what a kill left of a file that was being written."""
        ...

    def discard(self, run_id: RunId) -> None:
        """Remove the folder of a run that could not even begin."""
        ...

    def prune(
        self, keep: int, *, spare: Sequence[RunId] = (), apart: Sequence[RunId] = ()
    ) -> tuple[list[RunId], list[str]]:
        """Remove the oldest beyond *keep*, of those *apart* as many; return which, and what could not be removed."""
        ...


class Consult(Protocol):
    """Opens one run's dealings with models, which all its passes share: one budget, one record."""

    def __call__(self, *, by_hand: bool) -> Consultation | None:
        """Return them, or None where no model is configured."""
        ...


class Merger(Protocol):
    """Merges narrow skills into umbrellas; says of itself what it may do (a dry run's cannot change anything)."""

    def __call__(
        self,
        cases: Callable[[], Sequence[LibraryCase]],
        *,
        now: datetime,
        run_id: RunId,
        dry_run: bool,
        llm: bool,
        consultation: Callable[[], Consultation | None],
        stop: Callable[[], bool],
    ) -> UmbrellaResult:
        """Return what the pass came to; *cases* and *consultation* are asked for where there is something to do."""
        ...


class Unsettled(Protocol):
    """Says which unfinished actions wait, in words."""

    def __call__(self, *, dry_run: bool) -> Sequence[str]:
        """Return the words; empty where nothing waits."""
        ...


class ActionGate(Protocol):
    """What applies actions (`passes.apply.Applier`)."""

    def apply_all(
        self,
        actions: Sequence[Action],
        *,
        now: datetime,
        run_id: RunId | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> tuple[ActionOutcome, ...]:
        """Carry out actions in order."""
        ...

"""Whoever hears what happens as it happens: logs, metrics. Nothing depends on what it does with it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from curatord.core.plan import Outcome
    from curatord.core.run_record import RunRecord
    from curatord.passes.consult import Exchange
    from curatord.passes.ingest import ScanReport

__all__ = ["Observer"]


class Observer(Protocol):
    """Told of each thing once, after it happened; must not raise, and must be quick."""

    def running(self, record: RunRecord) -> AbstractContextManager[object]:
        """Return what is entered as a run begins, and left when its record is written."""
        ...

    def ran(self, record: RunRecord) -> None:
        """Take note of a run that is over."""
        ...

    def acted(self, outcome: Outcome) -> None:
        """Take note of an action that was applied, skipped or failed."""
        ...

    def asked(self, exchange: Exchange) -> None:
        """Take note of an exchange with a model; called from whichever thread had it."""
        ...

    def scanned(self, report: ScanReport, *, whole: bool) -> None:
        """Take note of a scan, of all sources (*whole*) or of single files."""
        ...

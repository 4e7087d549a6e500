"""A run, and what a person hears of it: the log's event, the notice by the ways that the configuration names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from curatord.core.inert import shorten
from curatord.core.run_record import RunRecord

if TYPE_CHECKING:
    from curatord.passes.run import RunOrder
    from curatord.wiring import Parts

__all__ = ["announce", "announced_run"]


def announced_run(
    parts: Parts, order: RunOrder, *, stop: Callable[[], bool], alive: Callable[[], None] = lambda: None
) -> RunRecord:
    """
    Do a run, tell of it, and return its record; whatever becomes of the telling harms neither.

    Raises:
        BusyError: Another run is at work.
        StateError: The state folder cannot be used.
    """
    curation = parts.curation
    waited = frozenset(proposal.id for proposal in parts.store.proposals())
    record = curation.run(order, stop=stop, alive=alive)
    announce(parts, record, waited, stop=stop, alive=alive)
    return record


def announce(
    parts: Parts,
    record: RunRecord,
    waited: frozenset[str],
    *,
    stop: Callable[[], bool],
    alive: Callable[[], None] = lambda: None,
) -> None:
    """Tell of a run that is over; *waited* are the proposals that waited before it. What was no run has no id."""
    if not record.run_id:
        return
    parts.observer.ran(record)

    def asked() -> bool:
        alive()
        return stop()

    _tell(parts, record, waited, asked)


def _tell(parts: Parts, record: RunRecord, waited: frozenset[str], stop: Callable[[], bool]) -> None:
    settings = parts.config.notices
    if record.dry_run or not (settings.log or settings.file or settings.command):
        return
    from curatord.core.notice import notice_of

    notice = notice_of(record, waited=waited)
    if notice is None:
        return
    if settings.log and parts.narrating:
        parts.log.info("notice", run_id=notice.run_id, text=notice.text)
    if settings.file is not None:
        from curatord.adapters.notices import write_file

        try:
            write_file(Path(settings.file), shorten(notice.text, settings.chars))
        except OSError as error:
            parts.log.warning("notice.failed", path=settings.file, error=error.strerror or str(error))
    if settings.command is not None:
        from curatord.adapters.notices import run_command

        wrong = run_command(
            settings.command,
            notice.text,
            environ=parts.environ,
            facts={
                "CURATORD_RUN_ID": notice.run_id,
                "CURATORD_OUTCOME": notice.outcome,
                "CURATORD_REPORT": str(parts.folders.report_path(record.run_id)),
            },
            timeout_s=settings.timeout.total_seconds(),
            stop=stop,
        )
        if wrong is not None:
            parts.log.warning("notice.failed", command=settings.command[0], error=wrong)

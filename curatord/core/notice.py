"""What a person is told of a run, in one plain line; nothing for a run that changed nothing."""

from __future__ import annotations

from collections.abc import Collection

from curatord.core.cheap import dataclass
from curatord.core.inert import one_line
from curatord.core.redact import redact
from curatord.core.run_record import RunRecord, summary_of

__all__ = ["Notice", "notice_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """*text* is one line, inert and without secrets, of any length; its beginning stands alone."""

    run_id: str
    outcome: str
    text: str


def notice_of(record: RunRecord, *, waited: Collection[str]) -> Notice | None:
    """
    Return the notice of a run that is over, or None where there is nothing to tell.

    Told are runs that changed a library, and such as have something *new* for a person to decide; what *waited* (ids of
    proposals) before the run was told then. A dry run changes nothing, and who asked for it sees its answer.
    """
    if record.dry_run:
        return None
    changed = any((record.transitions, record.consolidated, record.pruned, record.added, record.patched))
    fresh = [row for row in record.pending if row.id not in waited]
    if not changed and not fresh:
        return None
    return Notice(
        run_id=record.run_id, outcome=record.outcome.value, text=f"curatord: {one_line(redact(summary_of(record)))}"
    )

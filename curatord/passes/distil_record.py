"""What distilling came to, put into the record of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curatord.core.cheap import replace
from curatord.core.run_record import RunRecord

if TYPE_CHECKING:
    from curatord.passes.distil_order import DistilResult

__all__ = ["with_distil"]


def with_distil(record: RunRecord, result: DistilResult) -> RunRecord:
    """Return *record* with what *result* tells."""
    return replace(
        record,
        added=(*record.added, *result.added),
        patched=(*record.patched, *result.patched),
        pending=(*record.pending, *result.pending),
        skipped=(*record.skipped, *result.skipped),
        failed=(*record.failed, *result.failed),
        warnings=tuple(dict.fromkeys((*record.warnings, *result.warnings))),
        distil={
            "asked": result.asked,
            "left": result.left,
            "outcomes": result.tally(),
            "sessions": [dict(row) for row in result.sessions],
            "lines": list(result.lines),
        }
        if result.sessions or result.left
        else None,
    )

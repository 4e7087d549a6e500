"""What `cost` answers: what the libraries cost in every call of an agent, and what curation itself has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curatord.core.library import LibrarySnapshot
from curatord.core.library_cost import (
    ERROR_AT_BYTES,
    WARN_AT_BYTES,
    IndexEntry,
    LibraryCost,
    index_warning,
    library_cost,
    utf8_length,
)
from curatord.core.small_facts import RUN_COUNT

if TYPE_CHECKING:
    from curatord.wiring import Parts

__all__ = ["cost", "cost_of"]


def cost_of(parts: Parts, snapshot: LibrarySnapshot) -> LibraryCost:
    """Return what the live skills of one library cost."""
    llm = parts.config.llm
    price = llm.primary.price if llm is not None and llm.primary is not None else None
    return library_cost(
        snapshot.library,
        [
            IndexEntry(
                skill.name,
                utf8_length(skill.content.description),
                skill.content.description_tokens,
                skill.content.body_tokens,
            )
            for skill in snapshot.skills
            if skill.broken is None
        ],
        calls_per_day=parts.calls_per_day(snapshot.library),
        usd_per_million_input=price.input if price is not None else None,
    )


def cost(parts: Parts) -> dict[str, Any]:
    """Return the contract's `cost`."""
    llm = parts.config.llm
    context_tokens = llm.primary.context_tokens if llm is not None and llm.primary is not None else None
    costs = [cost_of(parts, library.read()) for _, library in parts.libraries]
    spent = parts.books.spent_ever()
    return {
        "libraries": [one.as_json() for one in costs],
        "curation": {
            "runs": int(parts.store.meta(RUN_COUNT) or 0),
            "calls": spent.calls,
            "tokens": spent.usage.tokens,
            "usd": round(spent.usd, 6) if not spent.unpriced_calls else None,
            "usd_at_least": round(spent.usd, 6),
        },
        "index": {
            "bytes": max((one.index_bytes for one in costs), default=0),
            "warn_at": WARN_AT_BYTES,
            "error_at": ERROR_AT_BYTES,
            "warning": index_warning(costs, context_tokens=context_tokens),
        },
    }

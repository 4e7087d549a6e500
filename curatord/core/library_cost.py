"""
What a library costs whether it is used or not: the names and descriptions that every call of an agent carries.

Hosts put an index of all live skills in front of each conversation. Its size in bytes is what their own limits speak
of (they begin to cut descriptions near 8 KiB), its size in tokens is what is paid, once per call. Bodies are paid only
when a skill is used, and are shown for comparison. All token figures are estimates and are called so where shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Any

import msgspec

from curatord.core.cheap import dataclass

__all__ = [
    "ERROR_AT_BYTES",
    "WARN_AT_BYTES",
    "IndexEntry",
    "LibraryCost",
    "index_warning",
    "library_cost",
    "utf8_length",
]

# Claude Code and Codex both shorten what they list near 8 KiB; three quarters of that is the time to do something.
WARN_AT_BYTES = 6 * 1024
ERROR_AT_BYTES = 8 * 1024
WARN_SHARE, ERROR_SHARE = 0.15, 0.25  # of a model's context
DAYS_PER_YEAR = 365
TOP = 10


class IndexEntry(msgspec.Struct, frozen=True, gc=False):
    """One live skill as an index lists it; tokens are estimates."""

    name: str
    description_bytes: int
    description_tokens: int
    body_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryCost:
    """
    One library's standing cost.

    *per_call_tokens* is what each call of an agent carries because of it, *calls_per_day* what the transcripts of its
    own sources showed (None: no evidence). *usd_per_year* is None where no price is known.
    """

    name: str
    skills: int
    description_tokens: int
    body_tokens: int
    per_call_tokens: int
    index_bytes: int
    calls_per_day: float | None
    tokens_per_year: int | None
    usd_per_year: float | None
    top: tuple[tuple[str, int], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the value that `cost` shows for this library."""
        return {
            "name": self.name,
            "skills": self.skills,
            "description_tokens": self.description_tokens,
            "body_tokens": self.body_tokens,
            "per_call_tokens": self.per_call_tokens,
            "calls_per_day": self.calls_per_day,
            "tokens_per_year": self.tokens_per_year,
            "usd_per_year": self.usd_per_year,
            "top": [{"skill": name, "description_tokens": tokens} for name, tokens in self.top],
        }


def utf8_length(text: str) -> int:
    """Return how many bytes *text* is in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def library_cost(
    name: str,
    entries: Iterable[IndexEntry],
    *,
    calls_per_day: float | None,
    usd_per_million_input: float | None = None,
) -> LibraryCost:
    """
    Return what the live skills *entries* of library *name* cost.

    Args:
        calls_per_day: Model calls a day of the sources that use it, None where none was seen.
        usd_per_million_input: Price of input tokens; cached input is cheaper, so money is an upper bound.
    """
    rows = list(entries)
    top = nsmallest(TOP, [(-row.description_tokens, row.name) for row in rows])
    tokens = sum(row.description_tokens for row in rows)
    yearly = None if calls_per_day is None else round(tokens * calls_per_day * DAYS_PER_YEAR)
    usd = None if yearly is None or usd_per_million_input is None else round(yearly * usd_per_million_input / 1e6, 2)
    return LibraryCost(
        name=name,
        skills=len(rows),
        description_tokens=tokens,
        body_tokens=sum(row.body_tokens for row in rows),
        per_call_tokens=tokens,
        index_bytes=sum([utf8_length(row.name) + row.description_bytes + 4 for row in rows]),
        calls_per_day=None if calls_per_day is None else round(calls_per_day, 1),
        tokens_per_year=yearly,
        usd_per_year=usd,
        top=tuple((name, -less) for less, name in top),
    )


def index_warning(costs: Sequence[LibraryCost], *, context_tokens: int | None = None) -> str | None:
    """
    Return what to say of the largest index, or None where nothing needs saying.

    Args:
        costs: Each library; hosts list one library each, so the largest counts, not the sum.
        context_tokens: The agents' context, where it is known.
    """
    worst: tuple[int, str] | None = None
    for cost in costs:
        share = cost.description_tokens / context_tokens if context_tokens else 0.0
        size = f"{cost.index_bytes / 1024:.1f} KiB"
        part = f", {share:.0%} of the context" if share >= WARN_SHARE else ""
        if cost.index_bytes > ERROR_AT_BYTES or share > ERROR_SHARE:
            grade, text = 2, f"the index of {cost.name} is too large: {size}{part}; hosts cut descriptions above 8 KiB"
        elif cost.index_bytes > WARN_AT_BYTES or share > WARN_SHARE:
            grade, text = 1, f"the index of {cost.name} grows large: {size}{part}; hosts cut descriptions above 8 KiB"
        else:
            continue
        if worst is None or grade > worst[0]:
            worst = (grade, text)
    return worst[1] if worst else None

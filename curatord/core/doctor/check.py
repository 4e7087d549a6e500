"""
One line of `curatord doctor`: what was looked at, how it is, and what mends it.

An examination gathers facts and gives them to a pure function of this package, which returns checks. Several things may
be wrong with one subject; they are `Issue`s of one check, which is as bad as the worst of them.

The levels, best first: `fine`; `note`, worth knowing and nothing to do; `warning`, works, and will some day matter;
`failure`, does not work, or something is lost while it stays so. Only a failure makes `ok` false and the exit code 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

from curatord.core.cheap import dataclass

__all__ = ["Check", "Issue", "Level", "check_of", "fine", "worst"]

Level = Literal["fine", "note", "warning", "failure"]

_RANK = {level: rank for rank, level in enumerate(get_args(Level))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One thing that is to be said of a subject: how bad it is, in words, and what mends it (empty for a note)."""

    level: Level
    words: str
    mend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """
    One subject and how it is.

    Attributes:
        check: The subject, a stable word, with a name where there are several: `state`, `library claude`.
        level: As bad as the worst that was found.
        found: What is so, in one sentence or several.
        mend: What to do about it, a line for each thing; empty where nothing is to be done.
        details: More, a line each, for who looks closer.
    """

    check: str
    level: Level
    found: str
    mend: str = ""
    details: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.level in ("warning", "failure") and not self.mend:
            raise ValueError(f"{self.check}: a {self.level} without a mend")

    @property
    def ok(self) -> bool:
        """Whether nothing is broken; a warning is no failure."""
        return self.level != "failure"

    def as_json(self) -> dict[str, Any]:
        """Return the contract's entry, with *level* and *details* beside its four keys."""
        return {
            "check": self.check,
            "ok": self.ok,
            "level": self.level,
            "found": self.found,
            "mend": self.mend,
            "details": list(self.details),
        }


def fine(check: str, found: str, details: Iterable[str] = ()) -> Check:
    """Return that nothing is wrong with a subject."""
    return Check(check=check, level="fine", found=found, details=tuple(details))


def check_of(check: str, summary: str, issues: Sequence[Issue], details: Iterable[str] = ()) -> Check:
    """
    Return the check of a subject with *issues*: *summary* first, then their words, worst first; mends each once.

    An empty *summary* is left out.
    """
    ordered = sorted(issues, key=lambda issue: -_RANK[issue.level])  # stable: equal ones stay in their order
    words = [text for text in (summary, *(issue.words for issue in ordered)) if text]
    return Check(
        check=check,
        level=ordered[0].level if ordered else "fine",
        found="; ".join(words),
        mend="\n".join(dict.fromkeys(issue.mend for issue in ordered if issue.mend)),
        details=tuple(details),
    )


def worst(checks: Iterable[Check]) -> Level:
    """Return the worst level of *checks*."""
    return max((check.level for check in checks), key=_RANK.__getitem__, default="fine")

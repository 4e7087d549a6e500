"""
What `curatord doctor` says of distilling: sessions that were put aside or wait, and silence where there should be none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from curatord.core.cheap import dataclass
from curatord.core.doctor.check import Check, Issue, check_of
from curatord.core.inert import shorten
from curatord.core.words import plural, stamp

__all__ = ["DistilFacts", "check_distil"]

SILENT_FOR = timedelta(days=7)  # sessions wait for so long, and none was looked at: somebody should know


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilFacts:
    """
    How distilling stands.

    Attributes:
        off: Why nothing is distilled at all, in words, or None.
        due: Sessions that are due.
        aside: Sessions that were put aside, each in words with its last error.
        waiting: Sessions that could not be looked at through no fault of their own, each in words with what is in the
            way.
        last_at: When one was last looked at with an outcome; None where none ever was.
        since: When distilling could first be done; None where it never could.
    """

    off: str | None = None
    due: int = 0
    aside: Sequence[str] = ()
    waiting: Sequence[str] = ()
    last_at: datetime | None = None
    since: datetime | None = None


def check_distil(facts: DistilFacts, now: datetime) -> Check:
    """Return whether sessions are distilled."""
    if facts.off is not None:
        return check_of("distilling", "", [Issue(level="note", words=f"no session is distilled: {facts.off}")])
    issues = []
    if facts.aside:
        words = f"{plural(len(facts.aside), 'session')} put aside after failing again and again"
        mend = "look at what failed (`curatord events --distil`), then `curatord refine --retry` takes them back"
        issues.append(Issue(level="warning", words=words, mend=mend))
    if facts.waiting:
        words = f"{plural(len(facts.waiting), 'session')} cannot be looked at just now"
        mend = "mend what stands in the way; they are tried again by themselves, and by `curatord run` at once"
        issues.append(Issue(level="warning", words=words, mend=mend))
    heard = facts.last_at or facts.since
    if facts.due and heard is not None and now - heard > SILENT_FOR:
        words = f"{plural(facts.due, 'session')} due, and none was looked at since {stamp(heard)}"
        mend = "start the daemon, or say `curatord run`; `curatord status` tells what it waits for"
        issues.append(Issue(level="warning", words=words, mend=mend))
    last = "none was looked at yet" if facts.last_at is None else f"the last was looked at {stamp(facts.last_at)}"
    summary = f"{plural(facts.due, 'session')} due; {last}"
    return check_of(
        "distilling", summary, issues, [shorten(words, 300) for words in (*facts.aside[:20], *facts.waiting[:10])]
    )

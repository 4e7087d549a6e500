"""
From when the sources of a library can testify, and the clock that comes of it.

A transcript that is not there says nothing. So each source carries the time from which its silence means something:

- From the oldest `last_at` among the sessions present at its first complete scan that found any. What lies before may
  have been pruned by the host, which keeps 30 days, or 7, or all.
- As long as curatord looks often enough to see sessions come and go, that time stands: what the host prunes later was
  counted before. But when a scan finds that *everything* older than the previous scan is gone, sessions may have come
  and gone unseen in between, and testimony starts again at that previous scan.

"Older" is told by a session's first record: one that was there before and has grown since is not gone, though its last
record is new. A scan that could not read all of a source proves nothing and changes nothing; the source is then a
doubt of its libraries until a scan is complete again (promise 9).

A library takes the latest of its sources that hold anything: a skill may have been used from any of them, so all of
them must be able to tell. An empty one tells nothing and holds nobody up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from curatord.core.cheap import dataclass
from curatord.core.idle import Gap, LibraryClock
from curatord.core.values import LibraryName, require_aware
from curatord.core.words import stamp

__all__ = ["ScanFacts", "SourceTestimony", "after_scan", "library_clock"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFacts:
    """
    What one scan found in one source.

    Attributes:
        at: When it began.
        problem: Why it is not complete (folder missing, files unreadable), in words; None for a complete one.
        sessions: How many sessions are present now, whatever their content.
        oldest_first_at, oldest_last_at: Oldest first and oldest last record among these; None where none bears a time.
    """

    at: datetime
    sessions: int
    oldest_first_at: datetime | None = None
    oldest_last_at: datetime | None = None
    problem: str | None = None

    def __post_init__(self) -> None:
        for name in ("at", "oldest_first_at", "oldest_last_at"):
            require_aware(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTestimony:
    """
    What is kept of a source between scans.

    Attributes:
        name: As people know it: `claude-code ~/.claude/projects`.
        since: From when it can testify; None before the first complete scan that found sessions.
        scanned_at: Its newest complete scan; *first_scanned_at* its first.
        sessions: Present at the newest complete scan.
        problem: Why the newest scan was not complete; None where it was.
        restarted: Why testimony started again the last time, in words, for the log and `doctor`.
    """

    name: str
    since: datetime | None = None
    first_scanned_at: datetime | None = None
    scanned_at: datetime | None = None
    sessions: int = 0
    problem: str | None = None
    restarted: str | None = None

    def __post_init__(self) -> None:
        for name in ("since", "first_scanned_at", "scanned_at"):
            require_aware(name, getattr(self, name))


def after_scan(before: SourceTestimony, scan: ScanFacts) -> SourceTestimony:
    """
    Return what is known of a source after *scan*.

    Source: contract, section 7, rule 4.
    """
    if scan.problem is not None:
        return SourceTestimony(
            name=before.name,
            since=before.since,
            first_scanned_at=before.first_scanned_at,
            scanned_at=before.scanned_at,
            sessions=before.sessions,
            problem=scan.problem,
            restarted=before.restarted,
        )
    since, restarted = before.since, before.restarted
    previous = before.scanned_at
    if since is None:
        since = scan.oldest_last_at
    elif previous is not None and (before.sessions or scan.sessions) and _all_gone(scan, previous):
        since = max(since, previous)
        restarted = (
            f"at {stamp(scan.at)} everything older than the previous scan was gone; it testifies from {stamp(since)} on"
        )
    return SourceTestimony(
        name=before.name,
        since=since,
        first_scanned_at=before.first_scanned_at or scan.at,
        scanned_at=scan.at,
        sessions=scan.sessions,
        restarted=restarted,
    )


def _all_gone(scan: ScanFacts, previous: datetime) -> bool:
    """Return whether nothing that *scan* found began before *previous*."""
    return scan.oldest_first_at is None or scan.oldest_first_at > previous


def library_clock(
    library: LibraryName,
    sources: Sequence[SourceTestimony],
    *,
    first_work: datetime | None,
    newest_work: datetime | None,
    gaps: Sequence[Gap],
    newest_evidence: datetime | None = None,
    first_scan_at: datetime | None = None,
    doubts: Sequence[str] = (),
) -> LibraryClock:
    """
    Return the clock of *library*.

    Args:
        library: Whose.
        sources: The testimony of each source whose sessions use it.
        first_work, newest_work: Oldest and newest work in these sources.
        gaps: Stretches without work between them, at least all that are longer than `away_after`; `core.idle.work_gaps`
            finds them.
        newest_evidence: Newest record of any session in these sources.
        first_scan_at: When the library itself was first scanned for skills.
        doubts: What else speaks against the clock, a jump that the daemon saw for instance.
    """
    unread = [f"{source.name} could not be read whole: {source.problem}" for source in sources if source.problem]
    return LibraryClock(
        library=library,
        sources=len(sources),
        observed_since=max((s.since for s in sources if s.sessions and s.since is not None), default=None),
        first_scan_at=first_scan_at,
        first_work=first_work,
        newest_work=newest_work,
        newest_evidence=newest_evidence,
        gaps=tuple(gaps),
        doubts=(*unread, *doubts),
    )

"""
What `status` asks of the database, each by one statement: it must be quick beside a large history, and where it is
asked nothing should be imported that only runs need.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from curatord.adapters.store.database import Database, from_ms
from curatord.core.values import EventKind, LibraryName, RelPath, SkillKey

__all__ = ["LastRun", "Overview", "Source", "Spoken"]


MAX_FAILING = 20  # files of a source that cannot be read are named; `doctor` has all


class LastRun(NamedTuple):
    """The newest run that was no dry run."""

    run_id: str
    started_at: datetime
    outcome: str
    summary: str


class Source(NamedTuple):
    """One source, as far as `status` tells of it; *problems* are in words."""

    scanned_at: datetime | None
    sessions: int
    newest_record_at: datetime | None
    problems: tuple[str, ...]


class Spoken(NamedTuple):
    """How often sessions of one host named a skill in one way, and when last; *path* and *cwd* may be unknown."""

    host: str
    skill: str
    kind: EventKind
    path: str | None
    cwd: str | None
    times: int
    newest: datetime


class Overview:
    """Counts and lists over the whole database."""

    def __init__(self, database: Database) -> None:
        self._connection = database.connection

    def last_run(self) -> LastRun | None:
        """Return the run that was begun last and was no dry run; by order of storing, since a clock may have jumped."""
        row = self._connection.execute(
            "SELECT run_id, started_at, outcome, summary FROM runs WHERE dry_run = 0 ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        if row is None:
            return None
        return LastRun(run_id=row[0], started_at=_at(row[1]), outcome=row[2], summary=row[3])

    def pending(self) -> int:
        """Return how many proposals wait for a decision."""
        (count,) = self._connection.execute("SELECT count(*) FROM proposals WHERE status = 'pending'").fetchone()
        return int(count)

    def sources(self) -> dict[tuple[str, str], Source]:
        """Return all sources by host and path."""
        rows = self._connection.execute("SELECT id, host, path, scanned_at, problems FROM sources").fetchall()
        found = {}
        for source_id, host, path, scanned_at, problems in rows:
            parts = "parts" if len(rows) == 1 else "parts WHERE file IN (SELECT id FROM files WHERE source = :source)"
            sessions, newest = self._connection.execute(
                f"SELECT count(DISTINCT session), max(last_at) FROM {parts}",  # noqa: S608  # two texts of our own
                {"source": source_id},
            ).fetchone()
            failing = self._connection.execute(
                "SELECT path, error FROM files WHERE source = ? AND gone_at IS NULL AND failures > 0"
                " ORDER BY path LIMIT ?",
                (source_id, MAX_FAILING),
            )
            found[host, path] = Source(
                scanned_at=from_ms(scanned_at),
                sessions=sessions,
                newest_record_at=from_ms(newest),
                problems=(
                    *json.loads(problems),
                    *(f"{path}: {error}" for path, error in failing),
                    *self._drift(source_id),
                ),
            )
        return found

    def scanned(self) -> set[tuple[str, str]]:
        """Return host and path of each source that was scanned as a whole before."""
        rows = self._connection.execute("SELECT host, path FROM sources WHERE scanned_at IS NOT NULL")
        return {(host, path) for host, path in rows}

    def _drift(self, source_id: int) -> list[str]:
        """Return what is unusual of late in what the source writes; mostly nothing is, and nothing is imported."""
        odd = "SELECT 1 FROM stretches WHERE source = ? AND (unknown != '{}' OR unreadable OR NOT turns) LIMIT 1"
        if self._connection.execute(odd, (source_id,)).fetchone() is None:
            return []
        from curatord.adapters.store.stretches import stretches_of
        from curatord.core.drift import drift_of

        return [f"{drift.sentence} (curatord doctor)" for drift in drift_of(stretches_of(self._connection, source_id))]

    def skills(self) -> dict[str, int]:
        """Return the numbers of remembered skills that are there: by state, by whose they are, pinned."""
        row = self._connection.execute(
            "SELECT coalesce(sum(live AND managed_since IS NOT NULL), 0), coalesce(sum(live AND managed_since IS NULL),"
            " 0), coalesce(sum(state = 'active'), 0), coalesce(sum(state = 'stale'), 0), coalesce(sum(NOT live), 0),"
            " coalesce(sum(pinned), 0) FROM (SELECT *, state <> 'archived' AS live FROM skills"
            " WHERE missing_since IS NULL)"
        ).fetchone()
        return dict(zip(("managed", "unmanaged", "active", "stale", "archived", "pinned"), row, strict=True))

    def unpinned_of(self, keys: Sequence[SkillKey]) -> int:
        """Return how many of *keys* are remembered as there and as not pinned by us."""
        if not keys:
            return 0
        given = json.dumps([[key.library, key.rel] for key in keys])
        row = self._connection.execute(
            "SELECT count(*) FROM skills JOIN json_each(?) k ON library = json_extract(k.value, '$[0]')"
            " AND rel = json_extract(k.value, '$[1]')"
            " WHERE missing_since IS NULL AND NOT pinned",
            (given,),
        ).fetchone()
        return int(row[0])

    def live(self) -> list[SkillKey]:
        """Return the remembered skills that are there and not archived, in their order."""
        rows = self._connection.execute(
            "SELECT library, rel FROM skills WHERE missing_since IS NULL AND state <> 'archived' ORDER BY library, rel"
        )
        return [SkillKey(library=LibraryName(library), rel=RelPath(rel)) for library, rel in rows]

    def archived(self) -> list[SkillKey]:
        """Return the remembered skills that are archived, whether they are there or not, in their order."""
        rows = self._connection.execute(
            "SELECT library, rel FROM skills WHERE state = 'archived' ORDER BY library, rel"
        )
        return [SkillKey(library=LibraryName(library), rel=RelPath(rel)) for library, rel in rows]

    def spoken(self, *, with_paths: bool) -> list[Spoken]:
        """Return what sessions said; *with_paths*: apart by path and working folder, else those are None."""
        apart = "e.path, e.cwd" if with_paths else "NULL, NULL"
        group = ", e.path, e.cwd" if with_paths else ""
        rows = self._connection.execute(
            f"SELECT s.host, e.skill, e.kind, {apart}, count(*), max(e.at)"  # noqa: S608  # two texts of our own
            " FROM events e JOIN sessions s ON s.id = e.session WHERE s.kind NOT IN ('own', 'reviewer')"
            f" GROUP BY s.host, e.skill, e.kind{group}"
        )
        return [
            Spoken(host, skill, EventKind(kind), path, cwd, count, _at(newest))
            for host, skill, kind, path, cwd, count, newest in rows
        ]


def _at(ms: int) -> datetime:
    at = from_ms(ms)
    assert at is not None, "the column is NOT NULL"
    return at

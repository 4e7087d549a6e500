"""Scan real sources into a real store, and say what came of it in values that tests compare."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from curatord.adapters.sources.pool import reader_processes
from curatord.adapters.sources.registry import open_source
from curatord.adapters.store.database import open_database
from curatord.adapters.store.ingest import IngestStore
from curatord.adapters.store.ingest_read import IngestQueries
from curatord.core.settings import HostName, SourceSettings
from curatord.core.transcript.times import iso_of
from curatord.passes.ingest import ScanReport, scan
from curatord.ports.ingest_store import SessionRow, SourceState
from curatord.ports.source import Source

__all__ = ["Scanner", "traces"]


@dataclass
class FixedClock:
    """A clock that is set by hand."""

    at: datetime

    def now(self) -> datetime:
        """Return the time it is set to."""
        return self.at

    def monotonic(self) -> float:
        """Return a time that does not pass."""
        return 0.0


class Scanner:
    """A store in *folder*, scanned into from *sources*: pairs of a host and its place; *workers* read too."""

    def __init__(
        self, folder: Path, *sources: tuple[HostName, Path], fields: dict[str, Any] | None = None, workers: int = 0
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.clock = FixedClock(datetime(2025, 3, 1, 12, 0, tzinfo=UTC))
        self.database = open_database(folder, now=self.clock.now())
        self.store = IngestStore(self.database)
        self.places = [(SourceSettings(host=host, fields=fields), str(path)) for host, path in sources]
        self.sources: list[Source] = [open_source(settings, path) for settings, path in self.places]
        self.pool = partial(reader_processes, self.places, count=workers) if workers else None
        self.report = ScanReport()

    def scan(self, *, settled: bool = True) -> Scanner:
        """Scan at a time at which everything that is there is settled, or nothing."""
        self.clock.at = datetime.now(UTC) + (timedelta(days=1) if settled else timedelta())
        quiet = timedelta(minutes=30) if settled else timedelta(days=9999)
        self.report = scan(self.sources, self.store, clock=self.clock, quiet=quiet, pool=self.pool)
        return self

    def close(self) -> None:
        """Close the store."""
        self.database.close()

    @property
    def notes(self) -> list[str]:
        """What the last scan noted, by kind and text."""
        return [f"{note.kind}: {note.text}" for note in self.report.notes]

    def counts(self) -> dict[str, tuple[int, int, int, dict[str, int]]]:
        """Return records, user turns, model turns and calls by session."""
        return {
            row.session_id: (row.records, row.user_turns, row.assistant_turns, row.tool_calls)
            for row in IngestQueries(self.database).sessions()
        }

    def sessions(self) -> dict[str, SessionRow]:
        """Return the sessions by id."""
        return {row.session_id: row for row in IngestQueries(self.database).sessions()}

    def newest_work(self) -> datetime | None:
        """Return when somebody last worked on any source."""
        queries = IngestQueries(self.database)
        return queries.newest_work_at([source.source_id for source in queries.sources()])

    def source(self) -> SourceState:
        """Return the state of the first source."""
        return IngestQueries(self.database).sources()[0]

    def turns(self) -> dict[str, tuple[int, int]]:
        """Return user turns and model turns by session."""
        return {session: counts[1:3] for session, counts in self.counts().items()}

    def events(self) -> list[tuple[str, str, str, str]]:
        """Return session, skill, kind and way of each event, oldest first."""
        return [
            (event.session_id, event.skill, event.kind.value, event.via)
            for event in IngestQueries(self.database).events(resolve=lambda **_: None)
        ]

    def paths(self) -> list[str | None]:
        """Return the paths of the events, oldest first."""
        return [event.path for event in IngestQueries(self.database).events(resolve=lambda **_: None)]

    def times(self) -> list[str]:
        """Return the times of the events, oldest first."""
        return [
            iso_of(round(event.at.timestamp() * 1000))
            for event in IngestQueries(self.database).events(resolve=lambda **_: None)
        ]


def traces(folder: Path, *, but: tuple[str, ...] = (), touched_by_root: bool = False) -> dict[str, tuple[Any, ...]]:
    """
    Return what must not change below *folder*: names, bytes, modes, owners and times but the access time.

    *touched_by_root*: SQLite, run by root, gives companions of a database that it opens the owner that they have,
    which shows in nothing but the time of their inode's change; those are left out for root.
    """
    told: dict[str, tuple[Any, ...]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        if path.name in but:
            continue
        s = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        changed = 0 if touched_by_root and os.getuid() == 0 and path.suffix != ".db" else s.st_ctime_ns
        told[str(path)] = (s.st_mode, s.st_ino, s.st_nlink, s.st_uid, s.st_size, s.st_mtime_ns, changed, digest)
    return told

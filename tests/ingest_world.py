"""A small Claude Code home with a database beside it, for tests of the ingest pass."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from curatord.adapters.sources.registry import open_source
from curatord.adapters.store.database import open_database
from curatord.adapters.store.ingest import IngestStore
from curatord.adapters.store.ingest_read import IngestQueries
from curatord.core.settings import SourceSettings
from curatord.passes.ingest import ScanReport, ingest_paths, scan
from curatord.ports.source import Source
from tests.claude_log import START

QUIET = timedelta(minutes=30)


class FakeClock:
    """A clock that is moved by hand."""

    def __init__(self, at: datetime) -> None:
        self.at = at
        self.seconds = 0.0

    def now(self) -> datetime:
        """Return the time that was set."""
        return self.at

    def monotonic(self) -> float:
        """Return seconds; each question takes one."""
        self.seconds += 1
        return self.seconds


class World:
    """The folders, the clock and the database of one test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.projects = root / "claude" / "projects"
        self.projects.mkdir(parents=True, exist_ok=True)
        self.state = root / "state"
        self.state.mkdir(exist_ok=True)
        self.clock = FakeClock(START + timedelta(minutes=1))
        self.database = open_database(self.state, now=self.clock.now())
        self.store = IngestStore(self.database)
        self.queries = IngestQueries(self.database)

    def source(self, path: Path | None = None) -> Source:
        """Return the source over the home, or another place."""
        return open_source(SourceSettings(host="claude-code"), str(path or self.projects))

    def scan(
        self, *paths: Path, stop: Callable[[], bool] = lambda: False, store: Any = None, lazily: bool = False
    ) -> ScanReport:
        """Scan the home, or the places given."""
        sources = [self.source(path) for path in paths] or [self.source()]
        return scan(sources, store or self.store, clock=self.clock, quiet=QUIET, stop=stop, lazily=lazily)

    def touch(self, *paths: Path) -> ScanReport:
        """Read single files of the home."""
        return ingest_paths(self.source(), list(map(str, paths)), self.store, clock=self.clock, quiet=QUIET)

    def later(self, **time: float) -> None:
        """Move the clock on."""
        self.clock.at += timedelta(**time)

    def reopened(self) -> World:
        """Return the same world after a restart."""
        self.database.close()
        world = World(self.root)
        world.clock = self.clock
        return world

    def rows(self) -> dict[str, tuple[int, int, int, int, dict[str, int], int]]:
        """Return per session: records, unreadable, turns of user and model, calls, events."""
        return {
            row.session_id: (
                row.records,
                row.unreadable,
                row.user_turns,
                row.assistant_turns,
                row.tool_calls,
                row.skill_events,
            )
            for row in self.queries.sessions()
        }

    def events(self) -> list[tuple[str, str, str]]:
        """Return session, skill and kind of each event, oldest first."""
        return [(e.session_id, e.skill, e.kind.value) for e in self.queries.events(resolve=lambda **_: None)]

    def totals(self) -> tuple[int, ...]:
        """Return records, turns of user and model, calls and events over all sessions."""
        rows = self.rows().values()
        return (
            sum(r[0] for r in rows),
            sum(r[2] for r in rows),
            sum(r[3] for r in rows),
            sum(sum(r[4].values()) for r in rows),
            len(self.events()),
        )

"""What no database of curatord holds is found, and nothing is found in one of its own."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from curatord.adapters.store import audit
from curatord.adapters.store.audit import odd_value
from curatord.adapters.store.database import FILE_NAME, open_database
from tests.e2e.world import World


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a state's database after some days of work and two runs."""
    world = World(tmp_path / "demo")
    world.run()
    world.days(3, uses=("nginx-reload",))
    world.app.pin(["nginx-reload"])
    world.run()
    world.parts.close()
    with contextlib.closing(sqlite3.connect(world.state / FILE_NAME)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        yield db


def test_nothing_is_odd_in_what_curatord_wrote(connection: sqlite3.Connection) -> None:
    """After scans, actions, runs and decisions; the tables that matter are not empty."""
    for table in ("skills", "runs", "events", "sessions", "parts", "actions", "history", "sources"):
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0], table

    assert odd_value(connection) is None


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE skills SET state = 'activd'", "skills.state holds a word"),
        ("UPDATE skills SET importance = ''", "skills.importance holds a word"),
        ("UPDATE runs SET mode = 'Review'", "runs.mode holds a word"),
        ("UPDATE events SET at = 'then'", "events.at holds a value of another type"),
        ("UPDATE files SET state = 7", "files.state holds a value of another type"),
        ("UPDATE runs SET summary = x'00'", "runs.summary holds a value of another type"),
        ("UPDATE parts SET tool_calls = '{\"Read\": 1'", "parts.tool_calls holds no JSON"),
        ("UPDATE actions SET entry = CAST('[' AS BLOB)", "actions.entry holds no JSON"),
        ("UPDATE sources SET path = CAST(x'61ff' AS TEXT)", "sources.path holds text that is no UTF-8"),
    ],
)
def test_what_is_odd_is_named(connection: sqlite3.Connection, damage: str, words: str) -> None:
    """By its table and column."""
    connection.execute(damage)

    assert (odd_value(connection) or "").startswith(words)


def test_every_column_that_is_named_exists(tmp_path: Path) -> None:
    """A table that is changed takes its rules along."""
    with contextlib.closing(open_database(tmp_path, now=datetime(2026, 3, 1, tzinfo=UTC))) as database:
        for named in (audit._WORDS, audit._JSON):
            for table, columns in named.items():
                there = {row[1] for row in database.connection.execute(f"PRAGMA table_info({table})")}
                assert set(columns) <= there, table


def test_all_json_that_the_schema_knows_of_is_named(tmp_path: Path) -> None:
    """A column whose default is an empty list or object holds JSON."""
    with contextlib.closing(open_database(tmp_path, now=datetime(2026, 3, 1, tzinfo=UTC))) as database:
        connection = database.connection
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
            found = {row[1] for row in rows if row[4] in ("'{}'", "'[]'")}
            assert found <= set(audit._JSON.get(table, ())), table

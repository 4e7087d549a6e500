"""Reading in other processes comes to the same as reading here, whatever becomes of them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from curatord.adapters.sources.pool import ProcessPool, reader_processes
from curatord.core.settings import SourceSettings
from curatord.passes import ingest
from curatord.passes.ingest import ScanReport, scan
from tests.claude_log import START, Log, touch
from tests.ingest_world import QUIET, World


def a_home(world: World, sessions: int) -> None:
    for number in range(sessions):
        log = Log(f"s-{number}", start=START + timedelta(minutes=number))
        for _ in range(number % 5 + 1):
            log.said("hello")
            log.skill("pdf-forms")
        log.write(world.projects)
        if number % 4 == 0:
            fork = log.forked(f"f-{number}")
            fork.said("own")
            fork.write(world.projects)


def pooled(world: World, *, killed: bool = False) -> ScanReport:
    places = [(SourceSettings(host="claude-code"), str(world.projects))]

    @contextlib.contextmanager
    def pool() -> Iterator[ProcessPool]:
        with reader_processes(places, count=2) as made:
            if killed:
                for worker in made._workers.values():
                    os.kill(worker._process.pid, signal.SIGKILL)
            yield made

    return scan([world.source()], world.store, clock=world.clock, quiet=QUIET, pool=pool)


@pytest.mark.parametrize("killed", [False, True])
def test_same_rows_as_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, killed: bool) -> None:
    """Two workers, alive or killed at once, end with the rows that one process comes to, forks counted once."""
    monkeypatch.setattr(ingest, "POOL_FROM", 0)
    world = World(tmp_path / "one")
    a_home(world, 40)
    alone = World(tmp_path / "two")
    scan([world.source()], alone.store, clock=world.clock, quiet=QUIET)

    report = pooled(world, killed=killed)

    expected = alone.rows(), alone.events()
    got = world.rows(), world.events()
    alone.database.close()
    world.database.close()
    assert expected == got
    assert report.notes == []


@pytest.mark.parametrize("mirrored", [False, True])
def test_what_is_gone_and_came_back_twice_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, mirrored: bool
) -> None:
    """A file was moved and copied, and both went on: what they have in common is counted once, whoever reads them."""
    monkeypatch.setattr(ingest, "POOL_FROM", 0)
    world = World(tmp_path)
    log = Log("s-1")
    log.said("hello")
    log.said("again")
    path = log.write(world.projects)
    world.scan()
    copied, moved = (path.with_name(f"{name}.jsonl") for name in ("copied", "moved"))
    copied.write_bytes(path.read_bytes())
    path.rename(moved)
    for number, file in enumerate((copied, moved), 1):
        own = Log("s-1", name="mirror" if mirrored else f"own-{number}")
        own.said("own")
        with file.open("ab") as stream:
            stream.write(own.text())
        touch(file, log.at + timedelta(seconds=number))

    pooled(world)

    totals = world.totals()
    world.database.close()
    assert (3 if mirrored else 4,) * 2 + (0, 0, 0) == totals


def test_unreadable_file_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker cannot read is noted as if it were read here."""
    monkeypatch.setattr(ingest, "POOL_FROM", 0)
    world = World(tmp_path)
    a_home(world, 8)
    bad = world.projects / "-home-dev-app" / "s-3.jsonl"
    items = list(world.source().items())
    bad.unlink()
    source = world.source()
    monkeypatch.setattr(type(source), "items", lambda _: iter(items))

    report = pooled(world)

    rows = world.rows()
    world.database.close()
    assert "s-3" not in rows
    assert [note.kind for note in report.notes] == ["vanished"]

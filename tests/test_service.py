"""What the daemon asks of the application: paths of events find their source, and a scan of nothing writes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curatord.application.working import Service
from curatord.cli.app import Surroundings
from curatord.config import parse
from curatord.wiring import Parts


def never() -> bool:
    """Never stop."""
    return False


def nothing() -> None:
    """Tell nobody that we live."""


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    """Return the parts of an application whose transcripts are reached through a link."""
    real = tmp_path / "disk" / "projects"
    (real / "p").mkdir(parents=True)
    (tmp_path / "projects").symlink_to(real)
    record(real / "p" / "one.jsonl", 1)
    text = "state_dir: state\nsources: [{host: claude-code, path: projects}]\nlibraries: []\n"
    config = parse(text, {}, file=str(tmp_path / "c.yaml"), home=str(tmp_path)).config
    return Parts(config, Surroundings(), environ={"HOME": str(tmp_path)})


def record(path: Path, number: int) -> None:
    """Append a user's record."""
    told = {
        "type": "user",
        "sessionId": "one",
        "uuid": f"u{number}",
        "timestamp": f"2026-11-30T10:00:{number:02}.000Z",
        "message": {"role": "user", "content": f"do {number}"},
    }
    with path.open("a") as file:
        file.write(json.dumps(told) + "\n")


def turns(parts: Parts) -> int:
    """Return the user's turns that are counted."""
    return sum(session.user_turns for session in parts.ingest_reader.sessions())


def test_an_event_on_the_real_path_reads_a_linked_source(parts: Parts, tmp_path: Path) -> None:
    """The kernel names files with links followed; the source is configured by its link."""
    service = Service(parts)
    service.rescan(stop=never, alive=nothing)
    path = tmp_path / "disk" / "projects" / "p" / "one.jsonl"
    record(path, 2)

    service.scan_paths([str(path), "/elsewhere/x.jsonl"], stop=never)
    assert 2 == turns(parts)


def test_a_rescan_tells_real_paths(parts: Parts, tmp_path: Path) -> None:
    """So that they can be compared with what events have named."""
    found = Service(parts).rescan(stop=never, alive=nothing)

    assert [str(tmp_path / "disk" / "projects" / "p" / "one.jsonl")] == list(found)


def test_a_rescan_that_finds_nothing_writes_nothing(parts: Parts) -> None:
    """Not a byte of the database or its log changes; the next one that finds something does."""
    service = Service(parts)
    service.rescan(stop=never, alive=nothing)
    before = parts.database.connection.total_changes

    service.rescan(stop=never, alive=nothing)
    service.rescan(stop=never, alive=nothing)
    assert before == parts.database.connection.total_changes

    record(Path(parts.config.sources[0].path or "") / "p" / "one.jsonl", 2)
    service.rescan(stop=never, alive=nothing)
    assert before < parts.database.connection.total_changes

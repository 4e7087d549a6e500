"""Every session of the real samples goes through the whole of distilling, with digests within their cap."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from curatord.core.redact import redact
from curatord.core.settings import DigestSettings
from tests.distil_world import DistilWorld, HandClock
from tests.fakes.stub import needs_stub, stub

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "transcripts"
HOSTS = (
    "claude-code", "codex", "hermes", "pi", "openclaw", "dsh", "opencode", "gemini-cli", "qwen-code", "copilot-cli",
    "cursor",
)  # fmt: skip

pytestmark = [
    needs_stub,
    pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not on this machine"),
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[DistilWorld]:
    """Yield an application whose sources are the samples where they are, a day after everything in them."""
    places = {
        "hermes": SAMPLES / "hermes" / "state.db",
        "opencode": SAMPLES / "opencode" / "opencode.db",
    }
    sources = [
        {"host": host, "path": str(places.get(host, SAMPLES / host)), "distil": "on", "libraries": ["lib"]}
        for host in HOSTS
    ]
    with stub(tmp_path) as server:
        world = DistilWorld(
            folder=tmp_path,
            url=server.url,
            sections={"sources": sources, "umbrella": {"enabled": False}},
            llm={"budget": {"tokens_per_run": 10**8, "tokens_per_day": 10**8, "calls_per_run": 10_000}},
            clock=HandClock(datetime.now(UTC) + timedelta(days=1)),
        )
        yield world
        world.parts.close()


def test_every_sample_is_looked_at_and_none_is_too_large(world: DistilWorld) -> None:
    """Each settles with an outcome; what is sent of it is within the configured cap; the last words stand whole."""
    world.app.scan()
    sessions = {row["session_id"]: row for row in world.app.sessions(host=None, since=None)}
    caps = DigestSettings()
    outcomes = {}
    for session_id, row in sessions.items():
        outcomes[session_id] = world.app.refine(f"{row['host']}:{session_id}", focus=None)
    digests = [
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in sorted((world.state / "digests").glob("*.jsonl"))
    ]

    assert set(HOSTS) == {row["host"] for row in sessions.values()}
    assert {"skipped"} == {value["state"] for value in outcomes.values()}
    asked = {row["host"] for session_id, row in sessions.items() if outcomes[session_id]["asked"]}
    assert set(HOSTS) == asked
    for rows in digests:
        assert caps.max_chars * 1.1 >= sum(len(row["text"]) for row in rows)
        assert rows[0]["role"] != "error"
        for row in rows:
            assert redact(row["text"]) == row["text"]


def test_by_themselves_most_end_without_a_question(world: DistilWorld) -> None:
    """The counters and the free filter leave few; a second look at the same asks nothing."""
    first = world.app.scan(backfill=True)["distil"]
    second = world.app.scan(backfill=True)["distil"]

    assert ("done", "done") == (first["state"], second["state"])
    assert first["asked"] < len(world.app.sessions(host=None, since=None)) / 2
    assert 0 == second["asked"]

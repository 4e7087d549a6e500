"""The samples of the hosts with databases or frames, copied and read, come to the values counted for them by hand."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from curatord.adapters.store.ingest_read import IngestQueries
from curatord.core.settings import HostName
from curatord.core.transcript.times import iso_of
from curatord.passes import ingest
from tests.scanned import Scanner, traces

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "transcripts"
EXPECTED = SAMPLES / "EXPECTED.json"
# Which folder or file is given as the host's place, and by which name the copy of the samples goes.
PLACES: list[tuple[HostName, str]] = [
    ("openclaw", "openclaw"),
    ("openclaw", "openclaw/agents"),
    ("openclaw", "openclaw/agents/main/agent/openclaw-agent.sqlite"),
    ("dsh", "dsh"),
    ("dsh", "dsh/sessions"),
    ("opencode", "opencode"),
    ("opencode", "opencode/opencode.db"),
]

pytestmark = pytest.mark.skipif(not EXPECTED.exists(), reason="the samples are not on this machine")


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(("host", "place"), PLACES)
def test_expected_values(
    host: HostName, place: str, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions, turns, calls by tool and skill events are those of EXPECTED.json, and nothing is changed or left."""
    # The databases are copied, since their program's own companions would be made in a folder of the samples.
    home = Path(shutil.copytree(SAMPLES / host, tmp_path / host))
    for path in [home, *home.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    before = traces(home)
    monkeypatch.setattr(ingest, "POOL_FROM", 0)
    scanner = Scanner(tmp_path / "state", (host, tmp_path / place), workers=workers)

    first = scanner.scan().report
    again = scanner.scan().report

    queries = IngestQueries(scanner.database)
    rows = queries.sessions()
    calls: Counter[str] = Counter()
    for row in rows:
        calls.update(row.tool_calls)
    got = {
        "records": sum(row.records for row in rows),
        "unreadable": sum(row.unreadable for row in rows),
        "user_turns": sum(row.user_turns for row in rows),
        "assistant_turns": sum(row.assistant_turns for row in rows),
        "tool_calls": dict(calls),
        "first_at": iso_of(min(round(row.first_at.timestamp() * 1000) for row in rows if row.first_at)),
        "last_at": iso_of(max(round(row.last_at.timestamp() * 1000) for row in rows if row.last_at)),
        "events": [
            {"at": iso_of(round(e.at.timestamp() * 1000)), "skill": e.skill, "kind": e.kind.value}
            for e in queries.events(resolve=lambda **_: None)
        ],
        "sessions": len(rows),
    }
    unknown = queries.sources()[0].unknown
    scanner.close()
    (expected,) = json.loads(EXPECTED.read_text(encoding="utf-8"))["hosts"][host]
    del expected["path"]
    assert expected == got
    assert before == traces(home)
    assert {} == unknown
    assert [] == first.notes
    assert 0 == again.events
    assert [0] == [source.changed for source in again.sources]

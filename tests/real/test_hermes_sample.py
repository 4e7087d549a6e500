"""The recorded Hermes sample comes to the values that were counted for it by hand, and is left as it is."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from curatord.adapters.sources.registry import open_source
from curatord.adapters.store.database import open_database
from curatord.adapters.store.ingest import IngestStore
from curatord.adapters.store.ingest_read import IngestQueries
from curatord.core.settings import SourceSettings
from curatord.core.transcript.times import iso_of
from curatord.passes.ingest import scan
from tests.scanned import FixedClock, traces

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "transcripts"
EXPECTED = SAMPLES / "EXPECTED.json"

pytestmark = pytest.mark.skipif(not EXPECTED.exists(), reason="the samples are not on this machine")


def ms(at: datetime | None) -> str | None:
    """Return a time as the expectations write it."""
    return None if at is None else iso_of(round(at.timestamp() * 1000))


def test_expected_values(tmp_path: Path) -> None:
    """Sessions, turns, calls by tool and skill events are those of EXPECTED.json."""
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(SAMPLES / "hermes" / "state.db", home)
    before = traces(home)
    clock = FixedClock(datetime.now(UTC) + timedelta(days=365))  # the sample is of a machine whose clock was ahead
    database = open_database(tmp_path, now=clock.now())
    source = open_source(SourceSettings(host="hermes"), str(home))

    report = scan([source], IngestStore(database), clock=clock, quiet=timedelta(minutes=30))

    queries = IngestQueries(database)
    rows = queries.sessions()
    calls: Counter[str] = Counter()
    for row in rows:
        calls.update(row.tool_calls)
    got = {
        "path": "hermes/state.db",
        "records": sum(row.records for row in rows),
        "unreadable": sum(row.unreadable for row in rows),
        "user_turns": sum(row.user_turns for row in rows),
        "assistant_turns": sum(row.assistant_turns for row in rows),
        "tool_calls": dict(calls),
        "first_at": ms(min(row.first_at for row in rows if row.first_at)),
        "last_at": ms(max(row.last_at for row in rows if row.last_at)),
        "events": [
            {"at": ms(event.at), "skill": event.skill, "kind": event.kind.value}
            for event in queries.events(resolve=lambda **_: None)
        ],
        "sessions": len(rows),
    }
    database.close()
    [expected] = json.loads(EXPECTED.read_text(encoding="utf-8"))["hosts"]["hermes"]
    assert expected == got
    assert [] == report.notes
    assert before == traces(home)

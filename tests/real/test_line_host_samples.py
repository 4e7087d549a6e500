"""The samples of the hosts that write JSON lines, read in place, come to the values counted for them by hand."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from curatord.adapters.sources.registry import open_source
from curatord.adapters.store.database import open_database
from curatord.adapters.store.ingest import IngestStore
from curatord.adapters.store.ingest_read import IngestQueries
from curatord.core.settings import HostName, SourceSettings
from curatord.core.transcript.times import iso_of
from curatord.passes.ingest import scan
from tests.scanned import FixedClock

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "transcripts"
EXPECTED = SAMPLES / "EXPECTED.json"
# Which folder is given as the host's place: its home, or the folder of its transcripts.
PLACES: list[tuple[HostName, str]] = [
    ("codex", "codex"),
    ("pi", "pi"),
    ("pi", "pi/sessions"),
    ("gemini-cli", "gemini-cli"),
    ("gemini-cli", "gemini-cli/tmp"),
    ("qwen-code", "qwen-code"),
    ("qwen-code", "qwen-code/projects"),
    ("copilot-cli", "copilot-cli"),
    ("copilot-cli", "copilot-cli/session-state"),
    ("cursor", "cursor"),
    ("cursor", "cursor/projects"),
]

pytestmark = pytest.mark.skipif(not EXPECTED.exists(), reason="the samples are not on this machine")


def session_of(path: str) -> str:
    """Return the id that a sample's session has, out of its file's path."""
    parts = Path(path).parts
    if parts[0] == "copilot-cli":
        return parts[-2]
    stem = Path(path).stem
    return {"codex": stem[-36:], "pi": stem.rpartition("_")[2]}.get(parts[0], stem)


def stats(root: Path) -> dict[str, tuple[Any, ...]]:
    """Return what must not change of each file and folder."""
    told = {}
    for path in [root, *sorted(root.rglob("*"))]:
        s = path.stat()
        fixed = (s.st_mode, s.st_ino, s.st_dev, s.st_nlink, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        told[str(path)] = (*fixed, digest)
    return told


@pytest.mark.parametrize(("host", "place"), PLACES)
def test_expected_values(host: HostName, place: str, tmp_path: Path) -> None:
    """Sessions, turns, calls by tool and skill events are those of EXPECTED.json, and no sample is changed."""
    before = stats(SAMPLES / place)
    clock = FixedClock(datetime.now(UTC) + timedelta(days=1))  # the samples may have been copied here just now
    database = open_database(tmp_path, now=clock.now())
    source = open_source(SourceSettings(host=host), str(SAMPLES / place))

    report = scan([source], IngestStore(database), clock=clock, quiet=timedelta(minutes=30))
    again = scan([source], IngestStore(database), clock=clock, quiet=timedelta(minutes=30))

    queries = IngestQueries(database)
    events = queries.events(resolve=lambda **_: None)
    got = {
        row.session_id[:8]: {
            "records": row.records,
            "unreadable": row.unreadable,
            "user_turns": row.user_turns,
            "assistant_turns": row.assistant_turns,
            "tool_calls": row.tool_calls,
            "first_at": iso_of(round(row.first_at.timestamp() * 1000)) if row.first_at else None,
            "last_at": iso_of(round(row.last_at.timestamp() * 1000)) if row.last_at else None,
            "events": [
                {"at": iso_of(round(e.at.timestamp() * 1000)), "skill": e.skill, "kind": e.kind.value}
                for e in events
                if e.session_id == row.session_id
            ],
        }
        for row in queries.sessions()
    }
    database.close()
    files = json.loads(EXPECTED.read_text(encoding="utf-8"))["hosts"][host]
    expected = {
        session_of(file["path"]).removeprefix("session-2026-11-30T17-55-")[:8]: {
            key: value for key, value in file.items() if key not in ("path", "sessions")
        }
        for file in files
    }
    assert expected == got
    assert stats(SAMPLES / place) == before
    assert report.notes == []
    assert again.events == 0
    assert [source.changed for source in again.sources] == [0]

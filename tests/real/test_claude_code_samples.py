"""The published Claude Code samples, read in place, come to the values that were counted for them by hand."""

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
from curatord.core.settings import SourceSettings
from curatord.core.transcript.times import iso_of
from curatord.passes.ingest import scan
from tests.scanned import FixedClock

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "transcripts"
HOME = SAMPLES / "claude-code"
EXPECTED = SAMPLES / "EXPECTED.json"

pytestmark = pytest.mark.skipif(not EXPECTED.exists(), reason="the samples are not on this machine")


def by_session(files: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the expected values summed over each session's files."""
    sessions: dict[str, dict[str, Any]] = {}
    for file in files:
        parts = Path(file["path"]).parts
        name = parts[parts.index("subagents") - 1] if "subagents" in parts else Path(file["path"]).stem
        held = sessions.setdefault(
            name, {"records": 0, "unreadable": 0, "user_turns": 0, "assistant_turns": 0, "tool_calls": {}, "events": []}
        )
        for key in ("records", "unreadable", "user_turns", "assistant_turns"):
            held[key] += file[key]
        for tool, count in file["tool_calls"].items():
            held["tool_calls"][tool] = held["tool_calls"].get(tool, 0) + count
        held["events"] += [(e["at"], e["skill"], e["kind"]) for e in file["events"]]
        held["first_at"] = min(held.get("first_at", file["first_at"]), file["first_at"])
        held["last_at"] = max(held.get("last_at", file["last_at"]), file["last_at"])
    return sessions


def stats(root: Path) -> dict[str, tuple[Any, ...]]:
    """Return what must not change of each file and folder: its stat but the access time, and its bytes."""
    told = {}
    for path in [root, *sorted(root.rglob("*"))]:
        s = path.stat()
        fixed = (s.st_mode, s.st_ino, s.st_dev, s.st_nlink, s.st_uid, s.st_gid, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        told[str(path)] = (*fixed, digest)
    return told


def test_expected_values(tmp_path: Path) -> None:
    """Sessions, turns, calls by tool and skill events are those of EXPECTED.json, and no sample is changed."""
    before = stats(HOME)
    clock = FixedClock(datetime.now(UTC) + timedelta(days=1))  # the samples may have been copied here just now
    database = open_database(tmp_path, now=clock.now())
    source = open_source(SourceSettings(host="claude-code"), str(HOME))

    report = scan([source], IngestStore(database), clock=clock, quiet=timedelta(minutes=30))

    queries = IngestQueries(database)
    events = queries.events(resolve=lambda **_: None)
    got = {
        row.session_id: {
            "records": row.records,
            "unreadable": row.unreadable,
            "user_turns": row.user_turns,
            "assistant_turns": row.assistant_turns,
            "tool_calls": row.tool_calls,
            "first_at": iso_of(round(row.first_at.timestamp() * 1000)) if row.first_at else None,
            "last_at": iso_of(round(row.last_at.timestamp() * 1000)) if row.last_at else None,
            "events": [
                (iso_of(round(e.at.timestamp() * 1000)), e.skill, e.kind.value)
                for e in events
                if e.session_id == row.session_id
            ],
        }
        for row in queries.sessions()
    }
    database.close()
    expected = by_session(json.loads(EXPECTED.read_text(encoding="utf-8"))["hosts"]["claude-code"])
    after = stats(HOME)
    assert expected == got
    assert before == after
    assert report.notes == []

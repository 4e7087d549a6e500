"""
Measures distilling over thousands of settled sessions with a stub: time, memory, questions, and who ends without one.

Run `python tests/bench/bench_distil.py [--sessions 2000] [--mb 128]` for a table, or `pytest -m bench
tests/bench/bench_distil.py` to hold the figures to their goals. Generator and stub stand beside the repository;
without them there is nothing to measure. The backlog of the generated sessions is looked at twice, each time by a
fresh process, with a library of 346 skills; one user turn is enough, so that as many as may be go all the way.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[2]
SHARED = REPO.parent / "shared"
GENERATOR = SHARED / "bench" / "gen_corpus.py"
STUB = SHARED / "stub_model.py"

if __name__ == "__main__":
    sys.path.insert(0, str(REPO))

from tests.fakes.stub import stub  # noqa: E402 - a script finds the package by the line above

SESSIONS = 2_000
CPU_SECONDS = 60.0  # curatord's own; wall time is the model's
PEAK_MIB = 120.0
SHARE_WITHOUT = 0.6  # of the generated sessions, two thirds of which have fewer than four messages


def _timed(command: list[str]) -> tuple[dict[str, Any], float, float, float]:
    """Run a command that prints JSON; return its value, wall and processor seconds, and the peak memory in MiB."""
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in (0, 3), done.stderr
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), seconds, cpu, after.ru_maxrss / 1024


def measure(folder: Path, sessions: int, mb: int) -> dict[str, Any]:
    """Generate, scan, look at everything twice, and return the figures."""
    corpus = folder / "corpus"
    words = ["--sessions", str(sessions), "--mb", str(mb), "--skills", "346", "--seed", "1"]
    subprocess.run([sys.executable, str(GENERATOR), "--out", str(corpus), *words], check=True, capture_output=True)
    with stub(folder) as server:
        config = folder / "curatord.yaml"
        value = {
            "state_dir": str(folder / "state"),
            "sources": [{"host": "claude-code", "path": str(corpus / "transcripts"), "distil": "on"}],
            "libraries": [{"name": "lib", "path": str(corpus / "library" / "skills")}],
            "distill": {"min_turns": 1, "min_tool_calls": 1},
            "umbrella": {"enabled": False},
            "llm": {
                "primary": {"base_url": server.url, "model": "stub", "context_tokens": 64_000},
                "concurrency": 4,
                "budget": {
                    "tokens_per_run": 10**9, "tokens_per_day": 10**9, "calls_per_run": 10**5, "wall_per_run": "6h",
                },
            },
        }  # fmt: skip
        config.write_text(json.dumps(value), encoding="utf-8")
        command = [sys.executable, "-m", "curatord", "--config", str(config), "scan", "--json"]
        _timed(command)
        first, seconds, cpu, peak = _timed([*command, "--backfill"])
        asked = len(server.calls())
        second, again_seconds, _, _ = _timed([*command, "--backfill"])
        again = len(server.calls()) - asked
        ids = [_session_of(call) for call in server.calls()]
    outcomes = first["distil"]["outcomes"]
    looked = sum(outcomes.values())
    return {
        "sessions": looked,
        "outcomes": outcomes,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "peak_mib": round(peak, 1),
        "calls": asked,
        "calls_per_100": round(100 * asked / looked, 1),
        "most_calls_of_one": max(ids.count(one) for one in set(ids)) if ids else 0,
        "without_a_call": round(1 - asked / looked, 3),
        "second_seconds": round(again_seconds, 1),
        "second_calls": again,
        "second": second["distil"]["outcomes"],
    }


def _session_of(call: dict[str, Any]) -> str:
    text = call["request"]["messages"][-1]["content"]
    text = text if isinstance(text, str) else "".join(part["text"] for part in text)
    data = json.loads(text.split("<curatord-data>")[1].split("</curatord-data>")[0])
    return str(data["session"]["id"])


@pytest.mark.bench
@pytest.mark.skipif(not (GENERATOR.is_file() and STUB.is_file()), reason="no generator or stub beside the repository")
def test_two_thousand_sessions_in_bounded_time_and_memory(tmp_path: Path) -> None:
    """One question at most a session, none in a second run, and most end without any."""
    found = measure(tmp_path, SESSIONS, 128)

    assert SESSIONS == found["sessions"]
    assert found["cpu_seconds"] <= CPU_SECONDS
    assert found["peak_mib"] <= PEAK_MIB
    assert 1 == found["most_calls_of_one"]
    assert 0 == found["second_calls"]
    assert found["without_a_call"] >= SHARE_WITHOUT


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--mb", type=int, default=128)
    said = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="curatord-bench-"))
    try:
        for name, value in measure(folder, said.sessions, said.mb).items():
            print(f"{name:<20}{value}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

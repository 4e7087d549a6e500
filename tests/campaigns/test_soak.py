"""
A simulated year: what the daemon holds stays bounded, and what it was given is all there in the end.

`year` lives it in a process of its own, four ticks a day, with time put in by hand. The ordinary run takes six weeks;

    python -m pytest -m campaign tests/campaigns/test_soak.py -s

takes 52, in a few minutes, and prints what the process held each eighth week.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.processes import ROOT

KEPT = 12  # `reports.keep` of `year`


def live(folder: Path, days: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return a sample for each week, and what was found in the end."""
    if not Path("/proc/self/status").exists():
        pytest.skip("what a process holds is read from /proc")
    done = subprocess.run(
        [sys.executable, "-m", "tests.campaigns.year", str(folder), str(days)],
        cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    *samples, end = [json.loads(line) for line in done.stdout.splitlines()]
    return samples, end


def bounded(samples: list[dict[str, Any]], end: dict[str, Any]) -> None:
    """Assert that the second half of the time took no more than what its own work left on disk."""
    middle, last = samples[len(samples) // 2], samples[-1]
    assert last["descriptors"] <= middle["descriptors"]
    assert last["threads"] == middle["threads"]
    assert last["objects"] <= middle["objects"] * 1.1 + 1000
    assert last["rss_kib"] <= middle["rss_kib"] * 1.15 + 2048
    assert last["runs_kept"] <= KEPT
    assert last["runs"] >= len(samples) - 1  # a run a week, in all of them
    assert end["lost"] == []
    assert end["idle_writes"] is False


def test_six_weeks(tmp_path: Path) -> None:
    """Memory, descriptors, threads and reports are bounded; every skill that was made is there, live or archived."""
    samples, end = live(tmp_path / "home", 42)
    bounded(samples, end)


@pytest.mark.campaign
def test_a_year(tmp_path: Path) -> None:
    """The same over 52 weeks; the database grows by what was learnt, not by how often somebody looked."""
    samples, end = live(tmp_path / "home", 364)
    print()
    for sample in samples[7::8]:
        print(json.dumps(sample))
    print(json.dumps(end))
    bounded(samples, end)
    first, second = (samples[half]["database"] for half in (len(samples) // 2, -1))
    assert second - first < 1 << 20  # half a year of work
    assert end["states"]["archived"] > 20

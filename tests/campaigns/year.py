"""
A year of a daemon in one process, with time put in by hand: `python -m tests.campaigns.year FOLDER DAYS`.

Each day somebody works in both homes, a host prunes old transcripts, an agent now and then makes a narrow skill, uses
some and forgets them, and the daemon's service does what it does at its ticks. Once a week the process looks at itself
and writes a line of JSON: what it holds in memory, files and threads, and how large its state is.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.e2e.world import World

SETTINGS = {
    "CURATORD_MODE": "auto",
    "CURATORD_UMBRELLA__ENABLED": "true",
    "CURATORD_UMBRELLA__PLANNER": "lexical",
    "CURATORD_REPORTS__KEEP": "12",
}
TICKS_A_DAY = 4
HOST_KEEPS = timedelta(days=30)
STAMP = re.compile(rb'"timestamp": ?"([^"]+)"')
TOPICS = ("kafka-lag", "tls-renewal", "pdf-tables", "flaky-tests", "docker-prune", "s3-lifecycle", "cron-zones")


class Year:
    """The two homes, and whoever works in them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.world = World(folder, settings=SETTINGS)
        self.dice = random.Random(seed)
        self.made: list[str] = []
        self.runs = 0

    def day(self, number: int) -> None:
        """Let one day pass."""
        world = self.world
        start = world.clock.at
        if number % 11 == 0:
            self.make_skill(number)
        if number % 50 < 43:  # a week of holidays now and then
            world.work(tuple(self.dice.sample(self.made[-12:], min(2, len(self.made[-12:])))))
        self.prune()
        for tick in range(1, TICKS_A_DAY + 1):
            world.clock.at = start + timedelta(hours=24 * tick / TICKS_A_DAY)
            if world.tick() is not None:
                self.runs += 1

    def make_skill(self, number: int) -> None:
        """Let Hermes' agent write a skill, as that host records it."""
        topic = TOPICS[number % len(TOPICS)]
        name = f"{topic}-{number}"
        folder = self.world.hermes / "skills" / "made" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: Use when {topic.replace('-', ' ')} is in trouble, case {number}.\n---\n\n"
            f"# {topic.replace('-', ' ')}\n\n1. Look at {topic} number {number}.\n2. Mend it.\n",
            encoding="utf-8",
        )
        path = self.world.hermes / "skills" / ".usage.json"
        usage = json.loads(path.read_text(encoding="utf-8"))
        usage[name] = {"created_by": "agent", "created_at": self.world.clock.at.isoformat(), "state": "active"}
        path.write_text(json.dumps(usage, indent=2, sort_keys=True), encoding="utf-8")
        self.made.append(name)

    def prune(self) -> None:
        """Remove transcripts as Claude Code does, by what their records say."""
        before = (self.world.clock.at - HOST_KEEPS).isoformat().encode()
        for path in (self.world.claude / "projects").glob("*/*.jsonl"):
            times = STAMP.findall(path.read_bytes())
            if times and max(times) < before:
                path.unlink()

    def sample(self, day: int) -> dict[str, Any]:
        """Return what this process holds now."""
        gc.collect()
        state = self.world.state
        return {
            "day": day,
            "rss_kib": int(next(line.split()[1] for line in _status() if line.startswith("VmRSS"))),
            "descriptors": len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - names are all that is wanted
            "threads": threading.active_count(),
            "objects": len(gc.get_objects()),
            "database": sum(path.stat().st_size for path in state.glob("curatord.db*")),
            "runs_kept": len(list((state / "runs").iterdir())) if (state / "runs").exists() else 0,
            "blobs": sum(path.stat().st_size for path in (state / "blobs").rglob("*") if path.is_file()),
            "state_files": sum(1 for _ in state.rglob("*")),
            "runs": self.runs,
            "made": len(self.made),
        }


def _status() -> list[str]:
    return Path("/proc/self/status").read_text().splitlines()


def main(folder: str, days: str) -> None:
    """Live *days* days in *folder* and write a line for each week."""
    year = Year(Path(folder), seed=1)
    for day in range(1, int(days) + 1):
        year.day(day)
        if day % 7 == 0:
            sys.stdout.write(json.dumps(year.sample(day)) + "\n")
            sys.stdout.flush()
    states: dict[str, int] = {}
    rows = year.world.app.skills(problems=False, library="hermes")
    for row in rows:
        states[row["state"]] = states.get(row["state"], 0) + 1
    idle = year.world.state / "curatord.db-wal"
    before = [idle.stat().st_size if idle.exists() else 0, (year.world.state / "curatord.db").stat().st_mtime_ns]
    for _ in range(50):  # nobody works any more: ticks find nothing, and write nothing
        year.world.tick()
    after = [idle.stat().st_size if idle.exists() else 0, (year.world.state / "curatord.db").stat().st_mtime_ns]
    names = [row["name"] for row in rows]
    sys.stdout.write(json.dumps({"states": states, "lost": sorted(set(year.made) - set(names)),
                                 "idle_writes": before != after}) + "\n")  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])

"""
Kill -9 at random instants while real processes distil; afterwards nothing was done twice and nothing was lost.

Each session teaches one patch that adds a line of its own to one skill, and would add it again if it were carried out
twice: whatever a kill leaves, in the end every line stands there once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.distil_world import DistilWorld, HandClock, patch, reply
from tests.fakes.stub import needs_stub, stub

pytestmark = needs_stub
SESSIONS = 6
ROOT = Path(__file__).resolve().parents[2]
MARK = "<!-- lessons -->"


def _script() -> list[Any]:
    """Return replies that each put a new line before the mark; the model words them anew each time it is asked."""
    return [
        {"text": reply(patch("deploy", MARK, f"Lesson {number}.\n{MARK}")), "delay_s": 0.05}
        for number in range(SESSIONS * 20)
    ]


def _world(folder: Path, url: str) -> DistilWorld:
    world = DistilWorld(folder=folder, url=url, clock=HandClock(datetime.now(UTC)))
    world.skill("deploy", f"# Deploy\n\nDo it.\n\n{MARK}\n")
    for number in range(SESSIONS):
        world.session(f"s{number}", ["deploy it", "that is wrong, you forgot the log", "thanks"], ago=2)
    world.parts.close()
    return world


def _process(world: DistilWorld, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "curatord", "--config", str(world.write_config()), *words]
    environ = {**os.environ, "HOME": str(world.folder)}
    return subprocess.Popen(command, cwd=ROOT, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _kill_now_and_then(folder: Path, seed: int, kills: int) -> None:
    chance = random.Random(seed)
    with stub(folder, script=_script()) as server:
        world = _world(folder, server.url)
        for _ in range(kills):
            process = _process(world, "run")
            time.sleep(chance.uniform(0.4, 2.2))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
        for _ in range(2):
            process = _process(world, "run", "--json")
            out, err = process.communicate(timeout=120)
            assert 0 == process.returncode, err
        last: dict[str, Any] = json.loads(out)
        calls = len(server.calls())
    world.open()
    lessons = [line for line in world.text("deploy").splitlines() if line.startswith("Lesson")]
    settled = [state for _, state in world.log()]

    assert "nothing_to_do" == last["outcome"]
    assert SESSIONS == len(lessons)
    assert len(lessons) == len(set(lessons))
    assert ["updated"] * SESSIONS == settled
    # One question a session, and one more for each kill at most: an answer that no process lived to see.
    assert SESSIONS <= calls <= SESSIONS + kills
    runs = [row["outcome"] for row in world.app.runs()]
    assert "running" not in runs
    told = [world.app.report(row["run_id"])["run"] for row in world.app.runs()]
    assert SESSIONS == sum(len(run["patched"]) for run in told)
    world.parts.close()


def test_kills_do_nothing_twice_and_lose_nothing(tmp_path: Path) -> None:
    """Each lesson is written once, each session is settled once, and every run's record tells the truth."""
    _kill_now_and_then(tmp_path, seed=1, kills=4)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(2, 14))
def test_many_kills_do_nothing_twice(tmp_path: Path, seed: int) -> None:
    """The same, at many more instants."""
    _kill_now_and_then(tmp_path, seed=seed, kills=6)


@pytest.mark.parametrize("words", [("daemon",), ("run",), ("refine", "s1")])
def test_a_stop_ends_a_wait_for_a_model(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A model that says nothing for ten minutes does not hold up a stop; the session stays due."""
    with stub(tmp_path, "--fault", "hang") as server:
        world = DistilWorld(
            folder=tmp_path,
            url=server.url,
            clock=HandClock(datetime.now(UTC)),
            sections={"gates": {"first_run": "run"}, "umbrella": {"enabled": False}},
        )
        world.session("s1", ["deploy it", "that is wrong, you forgot the log", "thanks"], ago=2)
        world.parts.close()
        process = _process(world, *words)
        deadline = time.monotonic() + 60
        while not list((world.state / "digests").glob("*.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1.0)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=10)

    world.open()
    assert (143, []) == (process.returncode, world.log()), err
    assert "due" == world.distil("s1")["state"]
    world.parts.close()

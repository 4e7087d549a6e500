"""
Real processes of the command line, killed by a timer at an instant that nobody chose, several commands at once.

    python -m pytest -m campaign tests/campaigns/test_kills.py -s
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time

import pytest

from tests.campaigns.home import BigHome
from tests.campaigns.processes import ROOT, Cutter, command, wait_for


def start(home: BigHome, *words: str) -> subprocess.Popen[bytes]:
    """Start a command over *home*."""
    environ = {**os.environ, **home.environ}
    return subprocess.Popen(
        command(home, *words), cwd=ROOT, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def some_command(home: BigHome, dice: random.Random) -> tuple[str, ...]:
    """Return words of a command that changes something, or tries to."""
    skill = f"skill-{dice.randrange(8, 300):03}"
    archived = [path.name for path in (home.library / ".archive").iterdir() if path.name.startswith("skill-")]
    return dice.choice(
        [
            ("archive", skill),
            ("archive", skill),
            ("pin", skill),
            ("importance", skill, dice.choice(["low", "critical", "normal"])),
            ("adopt", skill),
            ("undo", home.last_action() or "last"),
            ("run", "--no-llm"),
            ("restore", dice.choice(archived) if archived else skill),
        ]
    )


def _kill_at_random(home: BigHome, cutter: Cutter, *, kills: int, seed: int) -> int:
    dice = random.Random(seed)
    texts = home.texts()
    killed = 0
    for number in range(kills):
        together = [start(home, *some_command(home, dice)) for _ in range(dice.choice((1, 1, 2)))]
        time.sleep(dice.uniform(0.1, 0.7))
        for process in together:
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
        where = f"kill {number} of seed {seed}"
        done = cutter.do(home, order="recover")
        assert done.code == 0, (where, done)
        assert home.texts() == texts, where
        assert home.disagreements() == [], where
        assert home.leftovers() == [], where
    print(f"\n{killed} processes killed at work, seed {seed}, 0 losses")
    return killed


def test_killed_by_a_timer(big: BigHome, cutting: Cutter) -> None:
    """Six times, and again where all of them came too late; each text stands exactly once, and all records agree."""
    assert any(_kill_at_random(big, cutting, kills=6, seed=seed) for seed in range(101, 121))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(2, 6))
def test_killed_by_a_timer_often(big: BigHome, cutting: Cutter, seed: int) -> None:
    """Fifty times for each seed."""
    assert _kill_at_random(big, cutting, kills=50, seed=seed)


def test_many_commands_beside_each_other(big: BigHome, cutting: Cutter) -> None:
    """B158: ten that decide, ten that look, a run, a daemon: nobody meets a locked database, no decision is lost."""
    daemon = start(big, "daemon")
    running: list[tuple[tuple[str, ...], subprocess.Popen[str]]] = []
    try:
        wait_for(lambda: '"alive": true' in cutting.do(big, "status", "--json").out)
        second = start(big, "daemon")
        orders: list[tuple[str, ...]] = [("run", "--no-llm")]
        for number in range(10):
            orders += [("pin", f"skill-{100 + number}"), ("status", "--json")]
        environ = {**os.environ, **big.environ}
        for words in orders:
            process = subprocess.Popen(
                command(big, *words), cwd=ROOT, env=environ, text=True, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )  # fmt: skip
            running.append((words, process))
        for words, process in running:
            _, said = process.communicate(timeout=120)
            assert "locked" not in said, (words, said)
            assert "Traceback" not in said, (words, said)
            # Who waited ten seconds for the work lock, or met a run of the daemon, says so (exit code 5).
            assert process.returncode in (0, 5), (words, process.returncode, said)
        assert second.wait(timeout=60) == 5
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(timeout=30)
        for _, process in running:
            process.kill()
    assert cutting.do(big, order="recover").code == 0
    assert big.disagreements() == []
    usage = json.loads((big.library / ".usage.json").read_text(encoding="utf-8"))
    pinned = [words[1] for words, process in running if words[0] == "pin" and process.returncode == 0]
    assert pinned
    assert all(usage[name]["pinned"] is True for name in pinned)

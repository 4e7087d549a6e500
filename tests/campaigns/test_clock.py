"""The clock jumps, or the machine sleeps for a month: nothing ages because of it, and nothing is done twice."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.campaigns.home import BigHome, differences
from tests.campaigns.processes import Cutter
from tests.e2e.world import World

JUMPS = {
    "a minute on": timedelta(minutes=1),
    "a minute back": -timedelta(minutes=1),
    "a year on": timedelta(days=365),
    "a year back": -timedelta(days=365),
}


@pytest.mark.parametrize("jump", JUMPS)
def test_a_clock_that_jumps_between_two_commands(big: BigHome, cutting: Cutter, jump: str) -> None:
    """After the first run a second one in the jumped time archives nothing, and undo still works."""
    done = cutting.do(big, "run", "--no-llm")
    assert done.code == 0, done
    before = big.files()
    big.clock += JUMPS[jump]
    try:
        done = cutting.do(big, "run", "--no-llm")
        assert done.code == 0, (jump, done)
        found = big.files()
        assert found == before, (jump, differences(found, before))
        done = cutting.do(big, "archive", "skill-030")
        assert done.code == 0, (jump, done)
        done = cutting.do(big, "undo", str(big.last_action()))
        assert done.code == 0, (jump, done)
        found = big.files()
        assert found == before, (jump, differences(found, before))
        assert big.disagreements() == []
    finally:
        big.clock -= JUMPS[jump]


@pytest.mark.parametrize("days", [31, 365])
def test_a_machine_that_slept(tmp_path: Path, days: int) -> None:
    """B126: a daemon that wakes has one run to catch up with, and nobody grew older meanwhile."""
    world = World(tmp_path / "demo")
    world.clock.at += timedelta(hours=3)
    world.tick()
    world.days(8)
    world.tick()
    before = {name: world.skill(name)["state"] for name in ("deploy-checklist", "docker-cleanup")}
    idle = world.skill("deploy-checklist")["idle_days"]
    libraries = world.libraries()
    runs = len(world.app.runs())

    world.clock.at += timedelta(days=days)
    for _ in range(5):
        world.clock.at += timedelta(minutes=1)
        world.tick()

    assert len(world.app.runs()) <= runs + 1
    assert {name: world.skill(name)["state"] for name in before} == before
    slept = world.skill("deploy-checklist")["idle_days"]
    assert slept is None or slept - idle < 8.5  # `away_after`, and not a month; None: nobody can testify any more
    assert set(libraries["claude"]) == set(world.libraries()["claude"])

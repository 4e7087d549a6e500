"""Faults of `tests/known_faults.py` that show only over the whole application."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.world import World, tree

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "demo")


def test_a_copy_of_an_archived_skill_that_comes_back_is_known_again(world: World) -> None:
    """What an installer puts back is said to have come back, owned as before, and its clock begins anew (B044)."""
    name = next(
        row["name"]
        for row in world.app.skills(problems=False, library="claude")
        if row["state"] == "active" and not row["problems"] and not row["managed"]
    )
    place = world.claude / "skills" / world.skill(name)["path"]
    shutil.copytree(place, world.folder / "copy")
    world.app.adopt([name], everything=False, agent_made=False, dry_run=False)
    world.app.archive([name])
    world.app.disown([name])
    shutil.copytree(world.folder / "copy", place)
    before = tree(place)

    world.run()

    (row,) = [
        each
        for each in world.app.skills(problems=False, library="claude")
        if each["name"] == name and each["state"] != "archived"
    ]
    assert (False, "active") == (row["managed"], row["state"])
    assert any("put back by hand" in each["reason"] for each in world.app.explain(name)["history"])
    for _ in range(8):
        world.days(30)
        world.run()
    assert before == tree(place)


def test_a_pin_says_what_is_true_now(world: World) -> None:
    """Of one that is not managed, of none, and of one that is pinned already: three different answers (B051)."""
    unmanaged = next(row["name"] for row in world.app.skills(problems=False, library="claude") if not row["managed"])

    first = world.app.pin([unmanaged])
    again = world.app.pin([unmanaged])

    assert [1, 0] == [len(first["done"]), len(again["done"])]
    assert [0, 1] == [len(first["unchanged"]), len(again["unchanged"])]
    assert world.skill(unmanaged)["pinned"]
    with pytest.raises(Exception, match="no-such-skill"):
        world.app.pin(["no-such-skill"])


def test_many_commands_at_once_meet_no_locked_database(world: World) -> None:
    """Five that look and five that decide, while a run is at work (B158)."""
    world.parts.close()
    environ = {"HOME": str(world.folder / "home"), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "curatord", "--config", str(world.folder / "curatord.yaml")]
    orders = [["run"], *[["status"], ["pin", "nginx-reload"]] * 5]
    running = [
        subprocess.Popen(
            [*command, *order], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/"
        )
        for order in orders
    ]
    said = [process.communicate(timeout=120)[0] for process in running]

    assert {0} == {process.returncode for process in running}, said
    assert "locked" not in "".join(said)

"""A merge through the whole application: proposed, shown, approved, undone; by the planner that needs no model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.world import World, tree

LEXICAL = {"CURATORD_UMBRELLA__ENABLED": "true", "CURATORD_UMBRELLA__PLANNER": "lexical"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "demo", settings=LEXICAL)


def test_a_merge_waits_in_guarded_and_loses_nothing(world: World) -> None:
    """The proposal has a diff, a yes carries it out, an undo takes it back to the byte."""
    before = tree(world.hermes / "skills" / "data")
    bodies = [
        (world.hermes / "skills" / "data" / name / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)[2].strip()
        for name in ("csv-quoting", "csv-semicolons")
    ]
    record = world.run()
    (waiting,) = world.app.pending()

    assert before == tree(world.hermes / "skills" / "data")
    assert [] == record["consolidated"]
    assert "csv-quoting" in world.app.diff(waiting["id"])["diff"]

    changes = world.app.approve([waiting["id"]])

    assert [] == changes["skipped"] + changes["failed"]
    (umbrella,) = [
        row
        for row in world.app.skills(problems=False, library="hermes")
        if row["name"].startswith("csv-s") and row["state"] == "active"
    ]
    package = world.hermes / "skills" / umbrella["path"]
    everything = "\n".join(path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.md")))
    for body in bodies:
        assert all(line in everything for line in body.splitlines() if line.strip())
    assert ["archived", "archived"] == [world.skill(name)["state"] for name in ("csv-quoting", "csv-semicolons")]

    undone = world.app.undo(waiting["id"])

    assert [] == undone["skipped"] + undone["failed"]
    after = tree(world.hermes / "skills" / "data")
    assert before == {path: what for path, what in after.items() if path in before}
    assert not (package / "SKILL.md").exists()


def test_what_was_approved_is_the_last_that_is_undone(world: World) -> None:
    """It belongs to the run that proposed it, also when runs with nothing to undo came after; a no is no fault."""
    world.run()
    (waiting,) = world.app.pending()
    world.app.approve([waiting["id"]])
    world.run()

    undone = world.app.undo("last")
    again = world.run()

    assert [] == undone["skipped"] + undone["failed"]
    assert ["active", "active"] == [world.skill(name)["state"] for name in ("csv-quoting", "csv-semicolons")]
    assert [] == again["pending"]
    assert "nothing_to_do" == again["outcome"]
    assert "rejected" in again["skipped"][0]["reason"]


def test_auto_merges_at_once_and_asks_nothing_again(tmp_path: Path) -> None:
    """What became of each is in the record and in the report; the next run finds nothing to do."""
    world = World(tmp_path / "demo", settings={**LEXICAL, "CURATORD_MODE": "auto"})
    first = world.run()
    second = world.run()

    assert {"csv-quoting", "csv-semicolons"} == {row["name"].rpartition("/")[2] for row in first["consolidated"]}
    assert "Merged into an umbrella" in world.run_files(first["run_id"])[1]
    assert [] == second["consolidated"]
    assert "nothing_to_do" == second["outcome"]

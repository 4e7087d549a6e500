"""A library ages as the contract says, told over weeks of made-up work."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from curatord.errors import UsageError
from tests.e2e.world import World, tree


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "demo")


def test_the_daemons_first_run_only_records(world: World) -> None:
    """B001: on first sight nothing changes; the first change comes one interval later."""
    world.clock.at += timedelta(hours=3)
    before = world.libraries()

    first = world.tick()
    again = world.tick()

    assert before == world.libraries()
    assert first is not None
    assert again is None
    (run,) = world.app.runs()
    record, report = world.run_files(run["run_id"])
    assert "this run only records" in " ".join(record["warnings"])
    assert [] == record["transitions"]
    assert "only records" in report


def test_the_first_change_comes_one_interval_later(world: World) -> None:
    """One interval after the baseline the unused are marked stale, and nothing more."""
    world.clock.at += timedelta(hours=3)
    world.tick()
    world.days(6)
    early = world.tick()
    world.days(1.2)

    summary = world.tick()

    assert early is None
    assert summary is not None
    assert "stale" == world.skill("nginx-reload")["state"]
    assert "stale" == world.usage()["nginx-reload"]["state"]


def test_nothing_is_archived_that_was_not_shown_as_stale(world: World) -> None:
    """150 days idle is beyond archive_after, yet it is stale for `notice` first; then the whole package moves."""
    package = tree(world.hermes / "skills" / "devops" / "nginx-reload")
    first = world.run()
    world.days(6)
    second = world.run()
    world.days(1.5)

    third = world.run()

    assert [["active", "stale"]] == [
        [row["from"], row["to"]] for row in first["transitions"] if row["skill"].endswith("nginx-reload")
    ]
    assert [] == [row for row in second["transitions"] if row["skill"].endswith("nginx-reload")]
    assert [["stale", "archived"]] == [
        [row["from"], row["to"]] for row in third["transitions"] if row["skill"].endswith("nginx-reload")
    ]
    assert package == tree(world.hermes / "skills" / ".archive" / "nginx-reload")
    assert not (world.hermes / "skills" / "devops" / "nginx-reload").exists()
    record = world.usage()["nginx-reload"]
    assert "archived" == record["state"]
    assert record["archived_at"] is not None


def test_a_use_wakes_a_stale_skill(world: World) -> None:
    """Hermes case 16."""
    world.run()
    world.days(2, uses=("nginx-reload",))

    record = world.run()

    assert [["stale", "active"]] == [
        [row["from"], row["to"]] for row in record["transitions"] if row["skill"].endswith("nginx-reload")
    ]
    assert "active" == world.usage()["nginx-reload"]["state"]


def test_a_holiday_ages_nothing(world: World) -> None:
    """A gap without work stops the clock: two months away are worth `away_after`, not two months."""
    world.run()
    before = world.skill("deploy-checklist")["idle_days"]
    world.days(60, work=False)
    world.work()
    world.app.scan()

    after = world.skill("deploy-checklist")

    assert 7.5 > after["idle_days"] - before
    assert 52 < after["stopped_days"]
    assert "active" == after["state"]


def test_pinned_scheduled_and_unmanaged_skills_stay(world: World) -> None:
    """Hermes cases 15, 19, 21: after a year of disuse they are where they were, byte for byte."""
    before = world.libraries()
    for _ in range(14):
        world.days(7.5)
        world.run()

    after = world.libraries()
    for name in ("k8s-rollback", "weekly-figures", "paper-summary", "meeting-minutes", "release-notes"):
        kept = {path: what for path, what in before["hermes"].items() if f"/{name}" in path}
        assert kept
        assert kept == {path: what for path, what in after["hermes"].items() if f"/{name}" in path}
    assert before["claude"] == after["claude"]


def test_restored_skills_start_anew(world: World) -> None:
    """A restore brings category, bytes and modes back, and the idle clock begins again."""
    before = tree(world.hermes / "skills" / "devops")
    world.run()
    world.days(8)
    world.run()

    changes = world.app.restore(["nginx-reload"], anyway=False)

    assert 1 == len(changes["done"])
    assert before == tree(world.hermes / "skills" / "devops")
    assert 0.1 > world.skill("nginx-reload")["idle_days"]
    assert "active" == world.usage()["nginx-reload"]["state"]
    assert world.usage()["nginx-reload"]["archived_at"] is None


def test_undo_puts_back_what_a_run_did(world: World) -> None:
    """Tree and Hermes' records are as before the run; an undone act of the rules resets the clock."""
    world.run()
    world.days(8)
    before, usage = world.libraries(), world.usage()
    record = world.run()

    changes = world.app.undo(record["run_id"])

    assert [] == changes["skipped"] + changes["failed"]
    after = world.libraries()
    changed = {p for p in before["hermes"] if before["hermes"][p] != after["hermes"].get(p)}
    assert {".usage.json"} >= changed
    assert {name: row["state"] for name, row in usage.items()} == {
        name: row["state"] for name, row in world.usage().items()
    }
    assert 0.1 > world.skill("nginx-reload")["idle_days"]
    with pytest.raises(UsageError):
        world.app.undo(record["run_id"])


def test_undo_refuses_where_somebody_wrote_meanwhile(world: World) -> None:
    """What stands in the way is named, and nothing of that action is taken back (exit 3)."""
    world.run()
    world.days(8)
    record = world.run()
    (world.hermes / "skills" / ".archive" / "nginx-reload" / "SKILL.md").write_text("mine now", encoding="utf-8")

    changes = world.app.undo(record["run_id"])

    assert ["nginx-reload" in row["reason"] for row in changes["skipped"]] == [True]
    assert "mine now" == (world.hermes / "skills" / ".archive" / "nginx-reload" / "SKILL.md").read_text()


def test_too_many_at_once_are_held(tmp_path: Path) -> None:
    """More than max_archive: none goes, one proposal waits, the run says held; a yes carries all of them out."""
    world = World(tmp_path / "demo", settings={"CURATORD_LIBRARIES__0__MANAGE": "all"})
    for number in range(6):
        folder = world.hermes / "skills" / "old" / f"unused-{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            f"---\nname: unused-{number}\ndescription: Does the old thing number {number}.\n---\nOld.\n"
        )
    for _ in range(14):
        world.days(7.5)
        record = world.run()
        if record["outcome"] == "held":
            break

    assert "held" == record["outcome"]
    assert [] == [row for row in record["transitions"] if row["to"] == "archived"]
    (waiting,) = [row for row in world.app.pending() if row["kind"] == "archive-held"]
    assert all((world.hermes / "skills" / "old" / f"unused-{number}").exists() for number in range(6))

    changes = world.app.approve([waiting["id"]])

    assert len(waiting["targets"]) == len(changes["done"])
    assert not any((world.hermes / "skills" / "old" / f"unused-{number}").exists() for number in range(6))
    assert [] == world.app.pending()


def test_review_mode_asks_first(tmp_path: Path) -> None:
    """In `review` an archiving waits; a no holds until the content changes."""
    world = World(tmp_path / "demo", settings={"CURATORD_MODE": "review"})
    world.run()
    world.days(8)
    world.run()
    (waiting,) = world.app.pending()

    world.app.reject([waiting["id"]], reason="I need it")
    world.days(8)
    record = world.run()

    assert [] == world.app.pending()
    assert [] == [row for row in record["transitions"] if row["to"] == "archived"]
    assert "rejected" in world.app.explain("nginx-reload")["reason"]


def test_use_through_a_link_is_use_of_the_package(tmp_path: Path) -> None:
    """B054: a package kept in one library and linked into another does not age while it is used there."""
    world = World(tmp_path / "demo")
    (world.claude / "skills" / "nginx-reload").symlink_to(world.hermes / "skills" / "devops" / "nginx-reload")
    world.days(1)
    world._claude_session(("nginx-reload",))
    world.app.scan()

    (real,) = [row for row in world.app.skills(problems=False, library="hermes") if row["name"] == "nginx-reload"]

    assert 1 > real["idle_days"]
    assert ["claude-code", "hermes"] == real["hosts"]

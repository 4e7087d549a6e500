"""The promises of the contract, section 2, over the whole application: each test fails when its promise is broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.world import HandClock, World, tree


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "demo")


def edit_by_hand(path: Path) -> None:
    """Add a line, as a person's editor would."""
    path.write_text(path.read_text(encoding="utf-8") + "\nmy own note\n", encoding="utf-8")


def test_1_transcripts_are_read_only(world: World) -> None:
    """Not a byte, mode or time of a source changes, and no file appears beside one."""
    watched = [world.claude / "projects", world.hermes]

    def facts() -> list[dict[str, str]]:
        return [
            {p: what for p, what in tree(root, times=True).items() if not p.startswith(("skills", "cron"))}
            for root in watched
        ]

    before = facts()
    world.run()
    world.app.sessions(host=None, since=None)
    world.parts.close()

    assert before == facts()


def test_2_and_3_unmanaged_skills_stay_and_nothing_is_lost(world: World) -> None:
    """Over a year of runs every package is live or in the archive, byte for byte; unmanaged ones are untouched."""
    packages = {
        str(path.parent.relative_to(world.hermes / "skills")): tree(path.parent)
        for path in (world.hermes / "skills").rglob("SKILL.md")
        if ".archive" not in path.parts
    }
    unmanaged = {row["path"] for row in world.app.skills(problems=False, library="hermes") if not row["managed"]}
    for _ in range(20):
        world.days(7.5)
        world.run()

    archived = 0
    for rel, content in packages.items():
        live, away = world.hermes / "skills" / rel, world.hermes / "skills" / ".archive" / Path(rel).name
        assert content == tree(live if live.exists() else away)
        archived += not live.exists()
        if rel in unmanaged:
            assert live.exists()
    assert 0 < archived


def test_4_pinned_and_critical_skills_never_change(world: World) -> None:
    """Not their state and not a byte, however long nobody uses them."""
    world.app.pin(["nginx-reload"])
    world.app.importance("docker-cleanup", "critical")
    before = {name: tree(world.hermes / "skills" / "devops" / name) for name in ("nginx-reload", "docker-cleanup")}
    for _ in range(20):
        world.days(7.5)
        record = world.run()
        assert [] == [r for r in record["transitions"] if Path(r["skill"]).name in before]

    assert before == {name: tree(world.hermes / "skills" / "devops" / name) for name in before}
    assert ["active", "active"] == [world.skill(name)["state"] for name in before]


def test_4_holds_where_no_ledger_says_so_too(world: World) -> None:
    """In a library without records of its host, only curatord's own word keeps a pinned skill; its neighbour goes."""
    names = ("invoice-mail", "sql-explain", "terraform-plan")
    world.run()
    world.app.adopt([f"claude/{name}" for name in names], everything=False, agent_made=False, dry_run=False)
    world.app.pin(["claude/invoice-mail"])
    world.app.importance("claude/sql-explain", "critical")
    before = {name: tree(world.claude / "skills" / name) for name in names[:2]}
    for _ in range(20):
        world.days(7.5)
        world.run()

    assert before == {name: tree(world.claude / "skills" / name) for name in before}
    assert ["active", "active", "archived"] == [world.skill(name)["state"] for name in names]


def test_7_a_run_that_was_killed_leaves_its_trace(tmp_path: Path) -> None:
    """run.json says `running` from before the work starts, and the next start says what became of it."""
    for attempt in range(20):  # a kill may come too late
        world = World(tmp_path / f"demo-{attempt}", clock=HandClock(datetime.now(UTC)))
        run_id = killed_at_work(world)
        if run_id is not None:
            break
    assert run_id is not None
    (left,) = world.app.runs()
    assert "interrupted" == left["outcome"]  # nobody holds the runs' lock, so nobody is at work on it
    assert "running" == world.run_files(run_id)[0]["outcome"]

    world.reopen()
    world.clock.at += timedelta(minutes=1)
    world.run()

    assert ["interrupted"] == [row["outcome"] for row in world.app.runs() if row["run_id"] == run_id]
    assert "interrupted" == world.run_files(run_id)[0]["outcome"]


def killed_at_work(world: World) -> str | None:
    """Begin a run in a process, kill -9 it as soon as its run.json stands there; None: it had ended by then."""
    runs = world.parts.state_dir / "runs"
    process = subprocess.Popen(
        [sys.executable, "-m", "curatord", "--config", str(world.folder / "curatord.yaml"), "run"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(world.folder / "home"), "CURATORD_UMBRELLA__ENABLED": "false"},
    )  # fmt: skip
    while process.poll() is None and not (found := list(runs.glob("*/run.json"))):
        time.sleep(0.001)
    process.kill()
    process.wait()
    found = list(runs.glob("*/run.json"))
    record = json.loads(found[0].read_text(encoding="utf-8")) if found else {}
    return record["run_id"] if record.get("outcome") == "running" else None


def test_9_an_unreadable_ownership_file_protects_the_library(world: World) -> None:
    """A corrupt .usage.json is not read as empty, nothing of the library changes, and the run says so."""
    usage = world.hermes / "skills" / ".usage.json"
    usage.write_text("{ this is no JSON", encoding="utf-8")
    before = world.libraries()
    for _ in range(3):
        world.days(8)
        record = world.run()

    assert before == world.libraries()
    assert [] == record["transitions"]
    assert ".usage.json" in " ".join(record["warnings"])


def test_9_unreadable_schedules_age_nothing(world: World) -> None:
    """Whom a schedule names is not known, so nobody may be archived."""
    (world.hermes / "cron" / "jobs.json").write_text("[", encoding="utf-8")
    world.days(8)

    record = world.run()

    assert [] == [row for row in record["transitions"] if row["library"] == "hermes"]
    assert "jobs.json" in " ".join(record["warnings"])


@pytest.mark.parametrize("days", [365, -365])
def test_9_a_clock_that_jumped_ages_nothing(world: World, days: int) -> None:
    """A year forward or back without any work: nothing moves."""
    world.tick()
    before = world.libraries()
    world.clock.at += timedelta(days=days)

    record = world.run()

    assert before == world.libraries()
    assert [] == record["transitions"]


def test_9_a_library_that_is_away_is_not_archived(world: World) -> None:
    """A vanished folder is no decision of anyone, and comes back as it was."""
    world.run()
    skills, aside = world.hermes / "skills", world.hermes / "aside"
    skills.rename(aside)
    world.days(8)
    record = world.run()
    aside.rename(skills)

    assert [] == record["transitions"]
    assert "stale" == world.skill("nginx-reload")["state"]


def test_9_no_transcripts_no_ageing(world: World) -> None:
    """B018: a library whose sources say nothing at all does not age."""
    (world.hermes / "state.db").unlink()
    for name in ("state.db-wal", "state.db-shm"):
        (world.hermes / name).unlink(missing_ok=True)

    record = world.run(library="hermes")

    assert [] == record["transitions"]


def test_10_a_hand_edit_gets_proposals_only(world: World) -> None:
    """Until `adopt` is said again; then the rules go on."""
    world.run()
    edit_by_hand(world.hermes / "skills" / "devops" / "nginx-reload" / "SKILL.md")
    world.days(8)
    record = world.run()

    assert [] == [row for row in record["transitions"] if row["to"] == "archived"]
    (waiting,) = world.app.pending()
    assert "edited by hand" in waiting["reason"]

    world.app.adopt(["nginx-reload"], everything=False, agent_made=False, dry_run=False)
    world.days(1)
    after = world.run()

    assert ["devops/nginx-reload"] == [row["skill"] for row in after["transitions"] if row["to"] == "archived"]
    assert [] == world.app.pending()


def test_9_a_pin_that_the_host_cannot_be_told_is_refused(world: World) -> None:
    """With a corrupt .usage.json a pin is skipped with its reason (exit code 3), and recorded nowhere."""
    world.run()
    (world.hermes / "skills" / ".usage.json").write_text("{ this is no JSON", encoding="utf-8")

    changes = world.app.pin(["nginx-reload"])

    assert [] == changes["done"]
    assert ["unreadable"] == [row["code"] for row in changes["skipped"]]
    assert ".usage.json" in changes["skipped"][0]["reason"]
    record = next(r for key, r in world.parts.store.skills().items() if key.name == "nginx-reload")
    assert not record.pinned


def test_each_archived_package_of_a_name_is_listed_and_can_be_restored(world: World) -> None:
    """Two of one name are two rows, each with the label that brings back this one."""
    folder = world.hermes / "skills" / "my-notes"
    folder.mkdir()
    first = "---\nname: my-notes\ndescription: Notes.\n---\nOld.\n"
    (folder / "SKILL.md").write_text(first, encoding="utf-8")
    world.app.adopt(["my-notes"], everything=False, agent_made=False, dry_run=False)
    world.app.archive(["my-notes"])
    world.clock.at += timedelta(minutes=1)
    folder.mkdir()
    (folder / "SKILL.md").write_text(first + "\nanother\n", encoding="utf-8")
    world.app.adopt(["my-notes"], everything=False, agent_made=False, dry_run=False)
    world.app.archive(["my-notes"])

    rows = [r for r in world.app.skills(problems=False, library=None) if r["name"] == "my-notes"]

    assert ["archived", "archived"] == [row["state"] for row in rows]
    assert len(set(rows[0])) == len(set(rows[0]) & set(rows[1])) == len(rows[1])
    labels = sorted((row["archived_as"] for row in rows), key=len)
    assert "hermes/my-notes/" == labels[0]
    assert 1 == len(world.app.restore([labels[0]], anyway=False)["done"])
    assert first == (folder / "SKILL.md").read_text(encoding="utf-8")


def test_10_approving_what_was_edited_since_is_refused(tmp_path: Path) -> None:
    """A proposal holds the content it was decided on."""
    world = World(tmp_path / "demo", settings={"CURATORD_MODE": "review"})
    world.run()
    world.days(8)
    world.run()
    (waiting,) = world.app.pending()
    edit_by_hand(world.hermes / "skills" / "devops" / "nginx-reload" / "SKILL.md")

    changes = world.app.approve([waiting["id"]])

    assert ["edited"] == [row["code"] for row in changes["skipped"]]
    assert (world.hermes / "skills" / "devops" / "nginx-reload").exists()


def test_11_a_dry_run_changes_nothing_but_its_report(world: World) -> None:
    """Same plan as the run that follows, no proposal, no last-run time, nothing in the library (B015, B016)."""
    before = world.libraries()

    dry = world.run(dry_run=True)
    left = world.libraries()
    status = world.app.status()
    world.clock.at += timedelta(seconds=1)
    wet = world.run()

    assert before == left
    assert status["last_run"] is None
    assert [(r["skill"], r["to"]) for r in dry["transitions"]] == [(r["skill"], r["to"]) for r in wet["transitions"]]
    assert dry["transitions"]


def test_11_reports_are_written_for_every_run(world: World) -> None:
    """One that did nothing has its files too, and the report's numbers are those on disk."""
    world.run()
    world.clock.at += timedelta(minutes=1)
    record = world.run()

    on_disk, report = world.run_files(record["run_id"])
    assert "nothing_to_do" == on_disk["outcome"]
    assert json.loads(json.dumps(record)) == on_disk
    assert "nothing to do" in report
    stale = [row for row in world.app.skills(problems=False, library=None) if row["state"] == "stale"]
    assert len(stale) == on_disk["library"]["after"]["stale"]


def test_decisions_survive_a_lost_database(world: World) -> None:
    """Pins, adoption and importance stand in a plain file as well; the damaged database is kept aside."""
    world.app.pin(["docker-cleanup"])
    world.app.adopt(["react-tables"], everything=False, agent_made=False, dry_run=False)
    world.app.importance("deploy-checklist", "important")
    world.parts.close()
    for name in ("curatord.db-wal", "curatord.db-shm"):
        (world.state / name).unlink(missing_ok=True)
    (world.state / "curatord.db").write_bytes(b"\0" * 8192)

    world.open()
    world.run()

    assert world.skill("docker-cleanup")["pinned"]
    assert world.skill("react-tables")["managed"]
    assert "important" == world.skill("deploy-checklist")["importance"]
    assert 1 == len(list(world.state.glob("curatord.db.damaged-*")))


def test_only_so_many_runs_are_kept(tmp_path: Path) -> None:
    """Retention takes folders and rows; how often it ran stays known, and what a run did can still be undone."""
    world = World(tmp_path / "demo", settings={"CURATORD_REPORTS__KEEP": "2"})
    first = world.run()
    for _ in range(3):
        world.clock.at += timedelta(minutes=1)
        world.run()

    assert 2 == len(world.app.runs())
    assert 2 == len(list((world.state / "runs").iterdir()))
    assert 4 == world.app.status()["runs"]
    assert 2 == len(world.app.undo(first["run_id"])["done"])


def test_dry_runs_do_not_make_the_last_whole_run_forgotten(tmp_path: Path) -> None:
    """However often somebody asks what would happen, the interval is still counted from what did happen."""
    world = World(tmp_path / "demo", settings={"CURATORD_REPORTS__KEEP": "2"})
    whole = world.run()
    for _ in range(4):
        world.clock.at += timedelta(minutes=1)
        world.run(dry_run=True)
    last = world.parts.store.last_finished()

    assert last is not None
    assert whole["run_id"] == last.run_id
    assert 3 == len(list((world.state / "runs").iterdir()))


def test_a_run_whose_elders_cannot_be_removed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention that fails is a warning of a run that did its work."""
    world = World(tmp_path / "demo", settings={"CURATORD_REPORTS__KEEP": "1"})
    first = world.run()
    world.clock.at += timedelta(minutes=1)
    world.run()

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(shutil, "rmtree", refuse)
    world.clock.at += timedelta(minutes=1)
    record = world.run()

    assert first["run_id"] not in [row["run_id"] for row in world.app.runs()]
    assert any("cannot be removed" in warning for warning in record["warnings"])
    assert any("cannot be removed" in w for w in world.run_files(record["run_id"])[0]["warnings"])


def test_the_hosts_own_curator_is_paused_where_that_is_asked_for(tmp_path: Path) -> None:
    """`host_curator: pause` sets the one field, keeps the rest; `warn` only says so."""
    world = World(tmp_path / "demo", settings={"CURATORD_LIBRARIES__0__HOST_CURATOR": "pause"})
    state = world.hermes / "skills" / ".curator_state"
    state.write_text(json.dumps({"last_run_at": None, "run_count": 7, "paused": False}), encoding="utf-8")
    dry = world.run(dry_run=True)
    untouched = json.loads(state.read_text())

    world.clock.at += timedelta(minutes=1)
    world.run()

    assert "own curator" in " ".join(dry["warnings"])
    assert untouched["paused"] is False
    assert {"last_run_at": None, "run_count": 7, "paused": True} == json.loads(state.read_text())

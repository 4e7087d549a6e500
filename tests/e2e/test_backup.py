"""Backups as their user meets them: the commands, the backup before a run, and what is kept for undo."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from curatord.application.backing_up import backup_before_run
from tests.e2e.world import World, tree


def command(folder: Path, *arguments: str, check: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run the real command on the demonstration in *folder*."""
    environ = {"HOME": str(folder / "home"), "PATH": os.environ["PATH"], "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "curatord", "--config", str(folder / "curatord.yaml"), *arguments],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert check is None or check == done.returncode, (done.returncode, done.stdout, done.stderr)
    return done


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_commands_from_end_to_end(world: World) -> None:
    """Create, list, verify, a dry run, a restore, its undo: each says what it did, and exits 0."""
    folder = world.folder
    world.parts.close()
    made = json.loads(command(folder, "backup", "create", "--json", check=0).stdout)
    (listed,) = json.loads(command(folder, "backup", "list", "--json", check=0).stdout)
    assert {key: made[key] for key in listed} == listed
    assert [{"id": made["id"], "damaged": []}] == json.loads(
        command(folder, "backup", "verify", "--json", check=0).stdout
    )
    before = tree(world.claude / "skills")
    shutil.rmtree(world.claude / "skills/pdf-forms")

    dry = json.loads(command(folder, "backup", "restore", "last", "--dry-run", "--json", check=0).stdout)
    assert ["claude/pdf-forms"] == [row["skill"] for row in dry["done"]]
    assert not (world.claude / "skills/pdf-forms").exists()
    done = json.loads(
        command(folder, "backup", "restore", made["id"], "--skill", "pdf-forms", "--json", check=0).stdout
    )

    assert before == tree(world.claude / "skills")
    assert made["id"] == done["backup"]
    said = command(folder, "undo", done["done"][0]["action"], check=0).stdout
    assert "undone: pdf-forms: restored from backup" in said
    assert (world.claude / ".skills-archive/pdf-forms/SKILL.md").exists()
    assert "0 B" not in command(folder, "backup", "list", check=0).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["restore", "20200101-000000"], "there is no backup '20200101-000000'"),
        (["restore", "../../x"], "there is no backup"),
        (["restore", "last", "--skill", "nothing"], "is called 'nothing'"),
        (["restore", "last", "--library", "nothing"], "library 'nothing' is not in backup"),
        (["verify", "nothing"], "there is no backup 'nothing'"),
    ],
)
def test_what_is_not_there_is_2(world: World, arguments: list[str], words: str) -> None:
    """Said in one line, with nothing done."""
    world.app.backup_create(reason=None)
    world.parts.close()
    before = world.libraries()

    said = command(world.folder, "backup", *arguments, check=2)

    assert words in said.stderr
    assert before == world.libraries()


def test_without_any_backup(world: World) -> None:
    """Listing is no error; restoring is one, and says how to make one."""
    world.parts.close()

    assert "there is no backup yet" in command(world.folder, "backup", "list", check=0).stdout
    assert "curatord backup create" in command(world.folder, "backup", "restore", "last", check=2).stderr


def test_damage_is_3_and_the_rest_comes_back(world: World, tmp_path: Path) -> None:
    """A damaged content is found by verify, and a restore of all restores the others."""
    made = world.app.backup_create(reason=None)
    world.parts.close()
    skills = world.claude / "skills"
    lost = (skills / "pdf-forms/SKILL.md").read_bytes()
    for name in ("pdf-forms", "sql-explain"):
        shutil.rmtree(skills / name)
    for blob in (world.state / "backups/blobs").glob("*/*"):
        if blob.read_bytes() == lost:
            blob.write_bytes(lost[:-1] + b"?")

    verified = command(world.folder, "backup", "verify", check=3)
    done = json.loads(command(world.folder, "backup", "restore", "last", "--json", check=3).stdout)
    out = json.loads(
        command(world.folder, "backup", "restore", "last", "--to", str(tmp_path / "out"), "--json", check=3).stdout
    )

    assert "damaged" in verified.stdout
    assert ["claude/pdf-forms"] == [row["skill"] for row in done["failed"]]
    assert ["claude/sql-explain"] == [row["skill"] for row in done["done"]]
    assert not (skills / "pdf-forms").exists()
    assert ["pdf-forms/SKILL.md" in row["error"] for row in out["failed"]] == [True]
    assert (tmp_path / "out/claude/library/sql-explain/SKILL.md").exists()
    assert made["id"] == done["backup"]


def test_a_damaged_manifest_is_3(world: World) -> None:
    """Listed as damaged, and not taken for another."""
    world.app.backup_create(reason=None)
    world.parts.close()
    (manifest,) = (world.state / "backups").glob("*.backup")
    manifest.write_bytes(manifest.read_bytes()[:-20])

    assert "cut or changed" in command(world.folder, "backup", "list", check=3).stdout
    assert "cannot be read" in command(world.folder, "backup", "restore", "last", check=3).stderr
    command(world.folder, "backup", "create", check=3)  # made, and what is damaged is told
    command(world.folder, "backup", "restore", "last", check=0)


def test_out_into_a_folder(world: World, tmp_path: Path) -> None:
    """Libraries, archives and the schedule, byte for byte, touching no library; never over anything."""
    world.app.backup_create(reason=None)
    before = world.libraries()
    out = tmp_path / "out"

    done = world.app.backup_restore("last", library=None, skills=[], to=str(out), dry_run=False)

    assert before["claude"] == tree(out / "claude/library")
    whole = {
        **tree(out / "hermes/library"),
        **{f".archive/{path}": w for path, w in tree(out / "hermes/archive").items()},
    }
    apart = (".archive", ".hub", ".hub/lock.json")
    assert {path: what for path, what in before["hermes"].items() if path not in apart} == whole
    assert (world.hermes / "skills/.hub/lock.json").read_bytes() == (
        out / "hermes/host/skills-.hub-lock.json"
    ).read_bytes()
    assert (world.hermes / "cron/jobs.json").read_bytes() == (out / "hermes/host/cron-jobs.json").read_bytes()
    assert before == world.libraries()
    assert [] == done["failed"]
    world.parts.close()
    assert "is not empty" in command(world.folder, "backup", "restore", "last", "--to", str(out), check=2).stderr
    one = command(
        world.folder, "backup", "restore", "last", "--to", str(tmp_path / "one"), "--skill", "pdf-forms", check=0
    )
    assert "written to" in one.stdout
    assert ["claude/library/pdf-forms/SKILL.md"] == [
        path for path, what in tree(tmp_path / "one").items() if what.startswith("file") and "SKILL" in path
    ]


def test_a_library_that_is_not_configured_any_more(world: World, tmp_path: Path) -> None:
    """Is skipped with the way to have it all the same."""
    world.app.backup_create(reason=None)
    config = world.folder / "curatord.yaml"
    import yaml

    value = yaml.safe_load(config.read_text())
    value["libraries"] = [one for one in value["libraries"] if one["name"] != "claude"]
    for source in value["sources"]:
        source.pop("libraries", None)
    config.write_text(yaml.safe_dump(value))
    world.reopen()

    done = world.app.backup_restore("last", library=None, skills=[], to=None, dry_run=False)

    assert [("claude", True)] == [(row["skill"], "--to DIR" in row["reason"]) for row in done["skipped"]]
    world.app.backup_restore("last", library="claude", skills=[], to=str(tmp_path / "out"), dry_run=False)
    assert (tmp_path / "out/claude/library/pdf-forms/SKILL.md").exists()


def test_what_stays_as_it_is_is_told(world: World) -> None:
    """Skills that are newer than the backup, and files outside of skills that are gone."""
    (world.claude / "skills/README.md").write_text("mine")
    world.app.backup_create(reason=None)
    (world.claude / "skills/README.md").unlink()
    (world.claude / "skills/newer").mkdir()
    (world.claude / "skills/newer/SKILL.md").write_text("---\nname: newer\ndescription: d\n---\n")

    hint = world.app.backup_restore("last", library=None, skills=[], to=None, dry_run=False)["hint"]

    assert "not in this backup: 1 skill" in hint
    assert "in no skill: 1 file" in hint


# -- before a run


def an_old_world(folder: Path, **settings: str) -> World:
    world = World(folder, settings=settings)
    world.app.adopt([], everything=True, agent_made=False, dry_run=False)
    world.run()
    world.days(40)
    return world


def test_a_run_that_archives_backs_up_first(tmp_path: Path) -> None:
    """Once a run, before its first change; marks alone need none, and a run that changes nothing makes none."""
    world = World(tmp_path)
    world.app.adopt([], everything=True, agent_made=False, dry_run=False)
    marked = world.run()
    assert {"stale"} == {row["to"] for row in marked["transitions"]}
    assert [] == world.app.backup_list()
    world.days(40)
    before = tree(world.claude / "skills")

    run = world.run()

    assert [row for row in run["transitions"] if row["to"] == "archived" and row["library"] == "claude"]
    (backup,) = world.app.backup_list()
    assert "before a run" == backup["reason"]
    world.app.backup_restore("last", library=None, skills=[], to=str(tmp_path / "out"), dry_run=False)
    assert before == tree(tmp_path / "out/claude/library")
    again = world.run()
    assert not [row for row in again["transitions"] if row["to"] == "archived"]
    assert [backup] == world.app.backup_list()


def test_no_second_backup_of_the_same(tmp_path: Path) -> None:
    """Where the newest backup has it all already, none is made."""
    world = World(tmp_path)
    world.app.backup_create(reason=None)

    assert [] == backup_before_run(world.parts)

    assert ["made by hand"] == [row["reason"] for row in world.app.backup_list()]
    (world.claude / "skills/pdf-forms/SKILL.md").write_text("newer")
    assert [] == backup_before_run(world.parts)
    assert ["before a run", "made by hand"] == [row["reason"] for row in world.app.backup_list()]


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    """`backups.before_run: false`."""
    world = an_old_world(tmp_path, CURATORD_BACKUPS__BEFORE_RUN="false")

    run = world.run()

    assert [row for row in run["transitions"] if row["to"] == "archived"]
    assert [] == world.app.backup_list()


def test_a_dry_run_makes_none(tmp_path: Path) -> None:
    """Nothing is written but its report."""
    world = an_old_world(tmp_path)

    world.run(dry_run=True)

    assert not (world.state / "backups").exists()


def test_a_backup_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """The run goes on, since each of its acts can be undone by itself, and says that there is no backup."""
    world = an_old_world(tmp_path, CURATORD_BACKUPS__MAX_SIZE="1KiB")

    run = world.run()

    assert [row for row in run["transitions"] if row["to"] == "archived"]
    assert [words for words in run["warnings"] if words.startswith("no backup was made before this run")]


def test_beside_a_daemon(tmp_path: Path) -> None:
    """Backups are made and taken out while a daemon lives on the same state folder; both go on."""
    world = World(tmp_path)
    world.app.scan()
    world.parts.close()
    daemon = subprocess.Popen(
        [sys.executable, "-m", "curatord", "--config", str(world.folder / "curatord.yaml"), "daemon"],
        env={"HOME": str(world.folder / "home"), "PATH": os.environ["PATH"]},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd=Path(__file__).resolve().parents[2],
    )
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and command(world.folder, "status", "--check").returncode:
            time.sleep(0.2)
        command(world.folder, "backup", "create", check=0)
        shutil.rmtree(world.claude / "skills/pdf-forms")
        command(world.folder, "backup", "restore", "last", "--skill", "pdf-forms", check=0)
        assert (world.claude / "skills/pdf-forms/SKILL.md").exists()
        command(world.folder, "status", "--check", check=0)
    finally:
        daemon.send_signal(signal.SIGTERM)
        _, err = daemon.communicate(timeout=30)
    assert b"Traceback" not in err


# -- the host's files


def test_the_hosts_ledger_comes_back_where_it_is_gone(world: World) -> None:
    """Without its ledger a Hermes library would be nobody's: it is put back, and one that is there is left alone."""
    ledger = world.hermes / "skills/.usage.json"
    was = ledger.read_bytes()
    world.app.backup_create(reason=None)
    ledger.unlink()

    done = world.app.backup_restore("last", library=None, skills=[], to=None, dry_run=False)

    assert was == ledger.read_bytes()
    assert ["hermes: .usage.json"] == [row["skill"] for row in done["done"]]
    world.app.undo(done["done"][0]["action"])
    assert not ledger.exists()
    ledger.write_text("{}")
    again = world.app.backup_restore("last", library=None, skills=[], to=None, dry_run=False)
    assert "{}" == ledger.read_text()
    assert [True] == [
        "--to DIR" in row["reason"] for row in again["unchanged"] if row["skill"] == "hermes: .usage.json"
    ]


# -- what is kept for undo


def test_old_actions_are_forgotten_and_said_to_be(tmp_path: Path) -> None:
    """Beyond `undo.keep` an action cannot be undone, in words; its bytes go; what the archive needs stays."""
    world = an_old_world(tmp_path, CURATORD_UNDO__KEEP="1")
    run = world.run()
    archived = {row["action"] for row in run["transitions"] if row["to"] == "archived"}
    assert archived
    pinned = world.app.pin(["pdf-forms"])["done"][0]["action"]
    world.app.unpin(["pdf-forms"])
    world.days(20)
    world.run()

    known = {row.entry.action_id for row in world.parts.store.actions()}
    assert archived <= known
    assert pinned not in known
    world.parts.close()
    said = command(world.folder, "undo", pinned)
    assert 2 == said.returncode
    assert "too old to be undone (undo.keep)" in said.stderr
    newer = command(world.folder, "undo", f"{world.clock.at + timedelta(days=1):%Y%m%d-%H%M%S}")
    assert "too old" not in newer.stderr
    world.open()
    undone = world.app.undo(run["run_id"])
    assert len(archived) <= len(undone["done"])


def test_bytes_of_forgotten_actions_go(tmp_path: Path) -> None:
    """Kept bytes are bounded with the actions that need them."""
    world = World(tmp_path, settings={"CURATORD_UNDO__KEEP": "1"})
    from curatord.core.plan import FileChange, Patch
    from curatord.core.values import LibraryName, RelPath, SkillKey

    world.app.adopt(["pdf-forms"], everything=False, agent_made=False, dry_run=False)
    key = SkillKey(library=LibraryName("claude"), rel=RelPath("pdf-forms"))
    for number in range(3):
        look = world.parts.look(remember=True)
        files = (FileChange(path=RelPath("references/x.md"), content=f"text {number}".encode()),)
        change: dict[str, Any] = {"key": key, "reason": "r", "by": "model", "files": files}
        done = world.parts.applier.apply(Patch(expected=look.live[key].fingerprint, **change), now=world.clock.at)
        assert type(done).__name__ == "Applied", done
    blobs = world.state / "blobs"
    texts = {b"text 0", b"text 1", b"text 2"}
    assert texts == {path.read_bytes() for path in blobs.glob("*/*")} & texts

    world.run()

    assert {b"text 1", b"text 2"} == {path.read_bytes() for path in blobs.glob("*/*")} & texts

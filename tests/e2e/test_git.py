"""
A library under git: no tracked file is lost, and `git status` shows what the report says, no more and no less.

The real `git` looks at what curatord did; curatord itself never runs it and never writes below `.git`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.world import World, tree

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")

# Hermes' own lock beside its ledger: whoever changes the ledger makes it where it is missing, Hermes too.
HOSTS_OWN = {".usage.json.lock"}


def git(folder: Path, *arguments: str) -> str:
    environ = {
        **os.environ,
        **{f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout


def commit(folder: Path) -> None:
    """Put all of *folder* under a version control of its own."""
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "as it was")


def status(repo: Path, *, below: tuple[str, ...] = ("",)) -> set[tuple[str, str]]:
    """Return (state, path) of all that git finds changed below some folders, untracked files one by one."""
    told = git(repo, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames").split("\0")
    rows = {(row[:2].strip(), row[3:]) for row in told if row}
    return {row for row in rows if row[1].startswith(below)}


def expected(run: dict[str, Any], library: str, root: Path, repo: Path, before: set[str]) -> set[tuple[str, str]]:
    """Return what git must show, out of run.json alone: *before* are the files that were tracked."""
    rows: set[tuple[str, str]] = set()
    for row in run["files"]:
        if row["library"] != library:
            continue
        path = os.path.relpath(root / row["path"], repo)
        if row["what"] == "moved":
            to = os.path.relpath(root / row["to"], repo)
            for file in before:
                if file == path or file.startswith(f"{path}/"):
                    rows.add(("D", file))
                    if not to.startswith(".."):
                        rows.add(("??", to + file.removeprefix(path)))
        elif row["what"] == "created":
            rows.add(("??", path))
        else:
            rows.add(("M", path))
    return rows


def tracked(repo: Path) -> set[str]:
    return set(filter(None, git(repo, "ls-files", "-z").split("\0")))


def an_old_world(folder: Path, **settings: str) -> World:
    """Return a world in which much is stale and due, with everything handed over."""
    world = World(
        folder,
        settings={
            "CURATORD_MODE": "auto",
            "CURATORD_UMBRELLA__ENABLED": "true",
            "CURATORD_UMBRELLA__PLANNER": "lexical",
            **settings,
        },
    )
    world.app.adopt([], everything=True, agent_made=False, dry_run=False)
    world.run()
    world.days(40)
    return world


def test_the_repository_is_above_the_library(tmp_path: Path) -> None:
    """Library and archive in one work tree: a move is gone here and new there, which `git add` makes a rename."""
    world = an_old_world(tmp_path)
    root, repo = world.claude / "skills", world.claude
    commit(repo)
    files = tracked(repo)
    of_git = tree(repo / ".git")

    run = world.run()

    assert of_git == tree(repo / ".git")
    shown = status(repo, below=("skills", ".skills"))
    assert expected(run, "claude", root, repo, files) == shown
    assert ("??", ".skills-archive/react-tables/SKILL.md") in shown
    git(repo, "add", "-A")
    renames = git(repo, "status", "--porcelain")
    assert "R  skills/react-tables/SKILL.md -> .skills-archive/react-tables/SKILL.md" in renames


@pytest.mark.parametrize("library", ["claude", "hermes"])
def test_the_library_is_the_repository(tmp_path: Path, library: str) -> None:
    """Claude's archive lies outside of it, Hermes' own inside; git shows what run.json says in either case."""
    world = an_old_world(tmp_path)
    root = (world.claude if library == "claude" else world.hermes) / "skills"
    commit(root)
    files = tracked(root)

    run = world.run()

    shown = status(root)
    assert expected(run, library, root, root, files) == {row for row in shown if row[1] not in HOSTS_OWN}
    assert {"D"} <= {state for state, _ in shown}
    report = world.run_files(run["run_id"])[1]
    for row in run["files"]:
        assert f"`{row['path']}`" in report


def test_undo_leaves_git_with_nothing_to_show(tmp_path: Path) -> None:
    """After everything was undone, `git diff` and the untracked files are as if nothing had been."""
    world = an_old_world(tmp_path)
    root = world.claude / "skills"
    commit(root)
    assert status(root) == set()
    run = world.run()
    assert status(root)

    world.app.undo(run["run_id"])

    assert set() == {row for row in status(root) if row[1] not in HOSTS_OWN}


def test_no_tracked_byte_is_lost(tmp_path: Path) -> None:
    """Whatever git knew still stands, in the library or in the archive, with its mode."""
    world = an_old_world(tmp_path)
    root, repo = world.hermes / "skills", world.hermes / "skills"
    commit(repo)
    known = {path: (root / path).read_bytes() for path in tracked(repo) if path.endswith("SKILL.md")}

    world.run()

    now = [path.read_bytes() for path in root.rglob("SKILL.md")]
    assert [] == [path for path, data in known.items() if data not in now]


def test_a_submodule_is_left_alone(tmp_path: Path) -> None:
    """A skill that is a submodule, or lies in one, is somebody else's: no archive, no restore over it, and no dirt."""
    world = World(tmp_path, settings={"CURATORD_MODE": "auto"})
    other = tmp_path / "other"
    skill = other / "team-skill"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: team-skill\ndescription: d\n---\ntext\n")
    commit(skill)
    root = world.claude / "skills"
    commit(root)
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(skill), "team-skill")
    git(root, "commit", "-q", "-m", "a submodule")
    assert (root / "team-skill/.git").is_file()
    world.app.scan()
    made = world.app.backup_create(reason=None)

    adopted = world.app.adopt(["team-skill"], everything=False, agent_made=False, dry_run=False)
    archived = world.app.archive(["team-skill"])
    (root / "team-skill/SKILL.md").write_text("---\nname: team-skill\ndescription: d\n---\nnewer\n")
    restored = world.app.backup_restore(made["id"], library=None, skills=["team-skill"], to=None, dry_run=False)

    assert ["claude/team-skill"] == [row["skill"] for row in adopted["skipped"]]
    assert ["claude/team-skill"] == [row["skill"] for row in archived["skipped"]]
    assert ["claude/team-skill"] == [row["skill"] for row in restored["skipped"]]
    assert "version control" in restored["skipped"][0]["reason"]
    assert {("M", "team-skill")} == status(root)
    assert {("M", "SKILL.md")} == status(root / "team-skill")


def test_what_git_ignores_is_curated_like_all_else(tmp_path: Path) -> None:
    """An ignored skill is archived and comes back; git shows nothing of it before or after."""
    world = World(tmp_path)
    root = world.claude / "skills"
    (root / ".gitignore").write_text("terraform-plan/\n")
    commit(root)
    world.app.adopt(["terraform-plan"], everything=False, agent_made=False, dry_run=False)

    assert [] != world.app.archive(["terraform-plan"])["done"]
    assert set() == status(root)
    assert not (root / "terraform-plan").exists()
    assert [] != world.app.restore(["terraform-plan"], anyway=False)["done"]
    assert (root / "terraform-plan/SKILL.md").exists()
    assert set() == status(root)


def test_a_lock_of_git_is_nothing_to_us(tmp_path: Path) -> None:
    """git at work, or a lock that it left, stops nothing: only names are looked at below a `.git`."""
    world = an_old_world(tmp_path)
    root = world.claude / "skills"
    commit(root)
    (root / ".git/index.lock").write_text("")

    run = world.run()

    assert [row for row in run["transitions"] if row["to"] == "archived"]
    assert (root / ".git/index.lock").exists()


def test_a_backup_holds_nothing_of_git(tmp_path: Path) -> None:
    """Neither `.git` of the library nor of a clone within is in it; what the work tree has is."""
    world = World(tmp_path)
    root = world.claude / "skills"
    commit(root)
    made = world.app.backup_create(reason=None)
    out = tmp_path / "out"

    world.app.backup_restore(made["id"], library="claude", skills=[], to=str(out), dry_run=False)

    assert {path for path in tree(root) if ".git" not in path} == set(tree(out / "claude/library"))


def test_nothing_of_our_own_shows(tmp_path: Path) -> None:
    """No journal, no temporary name, no backup stands in the work tree after a run and a backup."""
    world = an_old_world(tmp_path)
    commit(world.claude)

    world.run()
    world.app.backup_create(reason=None)

    ours = ("backups", "journal", "blobs", "staging", ".curatord", "curatord")
    assert set() == {path for _, path in status(world.claude) if any(part.startswith(ours) for part in path.split("/"))}

"""Names that a host finds besides the skills of its libraries, from folders as they are."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from curatord.adapters import host_names
from curatord.adapters.host_names import HostNames
from tests.fakes.dead_disk import dead_disk


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x", encoding="utf-8")


def names(home: Path, *cwds: str, host: str = "claude-code") -> dict[str, str]:
    return HostNames(host=host, homes=[str(home)], home=str(home.parent)).taken(cwds)


def test_commands_of_the_host_its_files_and_its_plugins(tmp_path: Path) -> None:
    """Each with words for the place; a command in a subfolder is called by its file's name."""
    home = tmp_path / ".claude"
    touch(home / "commands" / "ship-it.md")
    touch(home / "commands" / "team" / "roll-out.md")
    touch(home / "commands" / "notes.txt")
    plugin = home / "plugins" / "cache" / "market" / "tools" / "1.0.0"
    touch(plugin / "skills" / "pdf-forms" / "SKILL.md")
    touch(plugin / "commands" / "pack.md")

    found = names(home)

    assert "a command of Claude Code's own" == found["compact"]
    assert found["ship-it"] == found["roll-out"] == f"the command files in {home}/commands"
    assert found["pdf-forms"] == found["pack"] == "the plugin tools"
    assert "notes" not in found


def test_a_projects_commands_and_skills_up_to_its_repository(tmp_path: Path) -> None:
    """A session in a subfolder finds them; what lies above the repository, or in the home, is another's."""
    project = tmp_path / "work" / "app"
    touch(project / ".git")
    touch(project / ".claude" / "commands" / "check-all.md")
    touch(project / "api" / ".claude" / "skills" / "api-care" / "SKILL.md")
    touch(tmp_path / "work" / ".claude" / "commands" / "above.md")

    found = names(tmp_path / ".claude", str(project / "api"), "relative/folder", "/nowhere/at/all", "/")

    assert {"check-all", "api-care"} <= found.keys()
    assert "above" not in found


def test_a_folder_on_a_dead_disk_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session may have worked on a mount whose server is gone; what else the host finds is found."""
    monkeypatch.setattr(host_names, "WITHIN_S", 0.2)
    touch(tmp_path / ".claude" / "commands" / "ship-it.md")
    touch(tmp_path / "mount" / "app" / ".claude" / "commands" / "check-all.md")
    began = time.monotonic()
    with dead_disk(tmp_path / "mount"):
        found = names(tmp_path / ".claude", str(tmp_path / "mount" / "app"))
        took = time.monotonic() - began

    assert "ship-it" in found
    assert "check-all" not in found
    assert 10 > took
    assert "check-all" in names(tmp_path / ".claude", str(tmp_path / "mount" / "app"))


def test_a_link_in_a_circle_and_a_flood_of_names_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands there may be anything."""
    home = tmp_path / ".claude"
    for number in range(300):
        touch(home / "commands" / f"name-{number}.md")
    monkeypatch.setattr(host_names, "MAX_ENTRIES", 200)
    flood = names(home)
    monkeypatch.setattr(host_names, "MAX_ENTRIES", 2000)
    (home / "commands" / "circle").symlink_to(home / "commands")

    assert 200 == sum(name.startswith("name-") for name in flood)
    assert 300 == sum(name.startswith("name-") for name in names(home))


def test_a_tree_that_gives_no_name_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget is of what is seen, in all folders together, not of what came of it."""
    for place in ("app", "api"):
        for number in range(60):
            (tmp_path / place / ".claude" / "commands" / f"d{number}" / "e").mkdir(parents=True)
    seen: list[str] = []
    real = os.scandir

    def counted(folder: str) -> Any:
        seen.append(folder)
        return real(folder)

    monkeypatch.setattr(os, "scandir", counted)
    monkeypatch.setattr(host_names, "MAX_ENTRIES", 70)
    names(tmp_path / ".claude", str(tmp_path / "app"), str(tmp_path / "api"))

    assert len([folder for folder in seen if "/.claude/commands/" in folder]) <= 70


@pytest.mark.parametrize("linked", [".claude", ".claude/commands", ".claude/skills"])
def test_a_projects_linked_folder_is_not_followed(tmp_path: Path, linked: str) -> None:
    """A transcript names the project; its link may lead anywhere."""
    elsewhere = tmp_path / "elsewhere"
    inside = {".claude": ["commands/private.md", "skills/private/SKILL.md"], ".claude/commands": ["private.md"]}
    for name in inside.get(linked, ["private/SKILL.md"]):
        touch(elsewhere / name)
    link = tmp_path / "app" / linked
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)

    assert "private" not in names(tmp_path / ".claude", str(tmp_path / "app"))


@pytest.mark.parametrize("kind", ["skills", "commands"])
def test_a_plugins_linked_folder_is_not_followed(tmp_path: Path, kind: str) -> None:
    """A plugin is others' work, and its link may lead anywhere."""
    touch(tmp_path / "elsewhere" / "far" / "SKILL.md")
    touch(tmp_path / "elsewhere" / "far.md")
    plugin = tmp_path / ".claude" / "plugins" / "cache" / "market" / "tools" / "1.0.0"
    plugin.mkdir(parents=True)
    (plugin / kind).symlink_to(tmp_path / "elsewhere")

    assert "far" not in names(tmp_path / ".claude")


def test_a_linked_skill_has_its_name_and_is_not_looked_into(tmp_path: Path) -> None:
    """The host follows it; whether there is a skill behind it, nobody asks."""
    (tmp_path / "app" / ".claude" / "skills").mkdir(parents=True)
    (tmp_path / "app" / ".claude" / "skills" / "shared").symlink_to("/nowhere/at/all")

    assert "shared" in names(tmp_path / ".claude", str(tmp_path / "app"))


def test_the_users_own_home_may_be_a_link(tmp_path: Path) -> None:
    """As those have it who keep it in a repository."""
    touch(tmp_path / "dotfiles" / "claude" / "commands" / "ship-it.md")
    (tmp_path / ".claude").symlink_to(tmp_path / "dotfiles" / "claude")

    assert "ship-it" in names(tmp_path / ".claude")


@pytest.mark.parametrize("cwd", ["/a\0b", "/a\ud800b"], ids=["nul", "surrogate"])
def test_a_folder_that_no_path_can_be_is_passed_over(tmp_path: Path, cwd: str) -> None:
    """A transcript may say anything; its other folders are looked at."""
    touch(tmp_path / "app" / ".claude" / "commands" / "check-all.md")

    assert "check-all" in names(tmp_path / ".claude", cwd, str(tmp_path / "app"))


def test_folders_that_no_path_can_be_take_no_others_place(tmp_path: Path) -> None:
    """Only so many folders are looked at; such are none of them."""
    touch(tmp_path / "app" / ".claude" / "commands" / "check-all.md")
    bad = [f"/a\0{number}" for number in range(host_names.MAX_FOLDERS)]

    assert "check-all" in names(tmp_path / ".claude", *bad, str(tmp_path / "app"))


def test_a_host_whose_names_are_not_known_has_none(tmp_path: Path) -> None:
    """Nothing is claimed of it."""
    assert {} == names(tmp_path, host="codex")

"""Names that a host finds besides the skills of its libraries, from folders as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from curatord.adapters import host_names
from curatord.adapters.host_names import HostNames


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


def test_a_link_in_a_circle_and_a_flood_of_names_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands there may be anything."""
    home = tmp_path / ".claude"
    for number in range(300):
        touch(home / "commands" / f"name-{number}.md")
    (home / "commands" / "circle").symlink_to(home / "commands")
    monkeypatch.setattr(host_names, "MAX_ENTRIES", 200)

    assert 200 == len(names(home))


def test_a_host_whose_names_are_not_known_has_none(tmp_path: Path) -> None:
    """Nothing is claimed of it."""
    assert {} == names(tmp_path, host="codex")

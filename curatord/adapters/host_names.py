"""
Names that a host finds besides the skills of its libraries: its own commands, files of commands, what plugins bring.

Of Claude Code's home: `commands/**/*.md`, and of each plugin in `plugins/cache/<market>/<plugin>/<version>` its
`skills/<name>/SKILL.md` and `commands/**/*.md`. Of the folders that a session worked in, and those above them up to the
first with a `.git`: `.claude/commands` and `.claude/skills`. Only names are read, never a file, links are not followed,
and what is looked at is bounded: a folder of a transcript may be anything by now.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from curatord.core.cheap import dataclass
from curatord.core.host_commands import commands_of

__all__ = ["HostNames"]

MAX_ENTRIES = 20_000  # of one host's folders together
MAX_FOLDERS = 8  # that a session worked in
MAX_DEPTH = 4
MAX_ABOVE = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNames:
    """
    Names of one host.

    Attributes:
        host: Its name, as in the configuration.
        homes: Folders that hold `commands` and `plugins`.
        home: Of the user; a `.claude` there is the host's home and no project's.
    """

    host: str
    homes: Sequence[str] = ()
    home: str = ""

    def taken(self, cwds: Iterable[str] = ()) -> dict[str, str]:
        """Return each name with words for the place where the host finds it; *cwds* are a session's folders."""
        found: dict[str, str] = {}
        if self.host != "claude-code":
            return found
        left = MAX_ENTRIES

        def enter(names: Iterable[str], words: str) -> None:
            nonlocal left
            for name in names:
                if left <= 0:
                    return
                left -= 1
                found.setdefault(name, words)

        enter(sorted(commands_of(self.host)), "a command of Claude Code's own")
        for home in dict.fromkeys(self.homes):
            enter(_commands(f"{home}/commands"), f"the command files in {home}/commands")
            for plugin, folder in _plugins(f"{home}/plugins/cache"):
                enter(_skills(f"{folder}/skills"), f"the plugin {plugin}")
                enter(_commands(f"{folder}/commands"), f"the plugin {plugin}")
        for project in self._projects(cwds):
            enter(_commands(f"{project}/.claude/commands"), f"the command files in {project}/.claude/commands")
            enter(_skills(f"{project}/.claude/skills"), f"the skills in {project}/.claude/skills")
        return found

    def _projects(self, cwds: Iterable[str]) -> Iterator[str]:
        seen: set[str] = set()
        for cwd in list(dict.fromkeys(cwds))[:MAX_FOLDERS]:
            folder = os.path.normpath(cwd)
            for _ in range(MAX_ABOVE):
                if not folder.startswith("/") or folder in ("/", self.home) or folder in seen:
                    break
                seen.add(folder)
                yield folder
                if os.path.lexists(f"{folder}/.git"):
                    break
                folder = folder.rpartition("/")[0]


def _commands(folder: str, depth: int = 1) -> Iterator[str]:
    """Yield the names of command files below *folder*; one in a subfolder has its file's name too."""
    for entry in _listed(folder):
        if entry.is_dir(follow_symlinks=False):
            if depth < MAX_DEPTH and not entry.name.startswith("."):
                yield from _commands(entry.path, depth + 1)
        elif entry.name.endswith(".md"):
            yield entry.name.removesuffix(".md")


def _skills(folder: str) -> Iterator[str]:
    for entry in _listed(folder):
        if os.path.lexists(f"{entry.path}/SKILL.md"):
            yield entry.name


def _plugins(cache: str) -> Iterator[tuple[str, str]]:
    """Yield each plugin's name with the folder of each version that is there."""
    for market in _listed(cache):
        for plugin in _listed(market.path):
            for version in _listed(plugin.path):
                yield plugin.name, version.path


def _listed(folder: str) -> list[os.DirEntry[str]]:
    """Return the entries of *folder* by name, none where it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            found = []
            for entry in entries:
                found.append(entry)
                if len(found) >= MAX_ENTRIES:
                    break
    except OSError:
        return []
    return sorted(found, key=lambda entry: entry.name)

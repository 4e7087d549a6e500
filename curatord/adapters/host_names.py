"""
Names that a host finds besides the skills of its libraries: its own commands, files of commands, what plugins bring.

Of Claude Code's home: `commands/**/*.md`, and of each plugin in `plugins/cache/<market>/<plugin>/<version>` its
`skills/<name>/SKILL.md` and `commands/**/*.md`. Of the folders that a session worked in, and those above them up to the
first with a `.git`: `.claude/commands` and `.claude/skills`.

A folder of a transcript may be anything by now, so what is looked at is bounded by one budget of entries, whether they
give a name or not, and only names are read, never a file. Nor is one waited for that lies on a disk which does not
answer: in none of those folders is anything found then. The user's own home, its `commands` and its `plugins/cache` may
be links, as those who keep them in a repository have it; no other is followed, be it a project's `.claude` or a
plugin's `skills`. One in a folder of skills counts as a skill of its name, whatever it points to.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from curatord.adapters.in_time import in_time
from curatord.core.cheap import dataclass
from curatord.core.host_commands import commands_of

__all__ = ["HostNames"]

MAX_ENTRIES = 20_000  # that are seen in all folders together
MAX_FOLDERS = 8  # that a session worked in
MAX_DEPTH = 4
MAX_ABOVE = 12
WITHIN_S = 5.0  # for all folders of a session
PROJECTS = "folders of sessions"


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
        look = _Look(left=MAX_ENTRIES)

        def enter(names: Iterable[str], words: str) -> None:
            for name in names:
                found.setdefault(name, words)

        enter(sorted(commands_of(self.host)), "a command of Claude Code's own")
        for home in dict.fromkeys(self.homes):
            enter(look.commands(f"{home}/commands"), f"the command files in {home}/commands")
            for plugin, folder in look.plugins(f"{home}/plugins/cache"):
                for kind in ("skills", "commands"):
                    enter(look.unlinked(folder, kind), f"the plugin {plugin}")
        for names, words in in_time({PROJECTS: lambda: self._of_projects(look, cwds)}, within_s=WITHIN_S).get(
            PROJECTS, ()
        ):
            enter(names, words)
        return found

    def _of_projects(self, look: _Look, cwds: Iterable[str]) -> list[tuple[list[str], str]]:
        """Return the names in each place of the folders that a session worked in, with words for it."""
        told: list[tuple[list[str], str]] = []
        for project in self._projects(cwds):
            own = f"{project}/.claude"
            if not _is_link(own):
                told.append((look.unlinked(own, "commands"), f"the command files in {own}/commands"))
                told.append((look.unlinked(own, "skills"), f"the skills in {own}/skills"))
        return told

    def _projects(self, cwds: Iterable[str]) -> Iterator[str]:
        seen: set[str] = set()
        for cwd in [cwd for cwd in dict.fromkeys(cwds) if "\0" not in cwd][:MAX_FOLDERS]:
            folder = os.path.normpath(cwd)
            for _ in range(MAX_ABOVE):
                if not folder.startswith("/") or folder in ("/", self.home) or folder in seen:
                    break
                seen.add(folder)
                yield folder
                if os.path.lexists(f"{folder}/.git"):
                    break
                folder = folder.rpartition("/")[0]


@dataclass(slots=True, kw_only=True)
class _Look:
    """What is read of folders, *left* entries at most."""

    left: int

    def unlinked(self, above: str, kind: str) -> list[str]:
        """Return the names in the folder *kind* of *above*, `skills` or `commands`, where that is no link."""
        folder = f"{above}/{kind}"
        if _is_link(folder):
            return []
        return list(self.skills(folder) if kind == "skills" else self.commands(folder))

    def commands(self, folder: str, depth: int = 1) -> Iterator[str]:
        """Yield the names of command files below *folder*; one in a subfolder has its file's name too."""
        for entry in self._listed(folder):
            if _is_folder(entry):
                if depth < MAX_DEPTH and not entry.name.startswith("."):
                    yield from self.commands(entry.path, depth + 1)
            elif entry.name.endswith(".md"):
                yield entry.name.removesuffix(".md")

    def skills(self, folder: str) -> Iterator[str]:
        """Yield the names of the skills in *folder*."""
        for entry in self._listed(folder):
            if _is_link(entry.path) or os.path.lexists(f"{entry.path}/SKILL.md"):
                yield entry.name

    def plugins(self, cache: str) -> Iterator[tuple[str, str]]:
        """Yield each plugin's name with the folder of each version that is there."""
        for market in self._folders(cache):
            for plugin in self._folders(market.path):
                for version in self._folders(plugin.path):
                    yield plugin.name, version.path

    def _folders(self, folder: str) -> Iterator[os.DirEntry[str]]:
        return (entry for entry in self._listed(folder) if _is_folder(entry))

    def _listed(self, folder: str) -> list[os.DirEntry[str]]:
        """Return the entries of *folder* by name, none where it cannot be listed; those beyond what is left are not."""
        found: list[os.DirEntry[str]] = []
        if self.left <= 0:
            return found
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    found.append(entry)
                    self.left -= 1
                    if self.left <= 0:
                        break
        except (OSError, ValueError):  # ValueError: no path can have such characters
            return []
        return sorted(found, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether *entry* is a folder and no link to one."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False

"""
Which library a skill event belongs to (contract, section 5), told by text alone.

What was sighted is a name as the host says it, perhaps a path, and the folder the session worked in. Several libraries
may hold a skill of that name (a personal and a project's one, two agents' homes), so the answer is, in this order:

1. the library with the longest path, or `seen_as`, that the file's path starts with;
2. the host's own precedence: where it looks for skills from the session's folder and its own home (`PRECEDENCE`);
3. the only one of the source's libraries that knows the name;
4. none; the event is kept without a library.

A name goes by folder first, then by the `name` in the header, then by either without regard to case, blanks, `_` and
Unicode form, the last two only where one skill alone fits. A plugin's skill, `plugin:skill`, is never the plain skill
of the same last part: it is a skill of that full name, or one of a library that lies in that plugin's own folder.

Paths are compared in plain form (`core.path_text`), with case, but for Windows paths without. Links are not followed:
a path in a transcript may be of another machine. What a link or a mount hides, `seen_as` tells.

A first scan asks for each of a million events, so a `Resolver` is built once a scan and source out of dictionaries, and
remembers its answers.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from curatord.core.cheap import dataclass
from curatord.core.path_text import fold_key, join, parents, plain
from curatord.core.values import LibraryName, RelPath, SkillName

__all__ = ["HostResolvers", "KnownLibrary", "KnownSkill", "Precedence", "Resolved", "Resolver", "lookup_name"]

MAX_REMEMBERED = 20_000
SKILL_FILE = "SKILL.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSkill:
    """A skill's path in its library, and the header's `name` where that is another; archived ones may be told too."""

    rel: RelPath
    header_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLibrary:
    """A library as far as an event can mean it; *path* and *seen_as* are absolute, *host* is whose it is."""

    name: LibraryName
    path: str
    host: str | None = None
    seen_as: tuple[str, ...] = ()
    skills: tuple[KnownSkill, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """
    The answer: *skill* is the folder's name where the skill is known, else the name as it was sighted.

    *rel* is the skill's path in *library*, None where it is not known there (any more).
    """

    library: LibraryName | None
    skill: SkillName
    rel: RelPath | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Precedence:
    """
    Where a host looks for skills.

    *project* folders are looked for in the session's folder and each one above it, nearest first; *personal* ones in
    the user's home. *personal_first* says whose skill wins where both have the name.
    """

    project: tuple[str, ...] = ()
    personal: tuple[str, ...] = ()
    personal_first: bool = False


# From the hosts' own documentation and sources; where a host shows both skills of one name, the nearer is taken.
PRECEDENCE: dict[str, Precedence] = {
    "claude-code": Precedence(project=(".claude/skills",), personal=(".claude/skills",), personal_first=True),
    "hermes": Precedence(personal_first=True),  # its home's `skills`, see `Resolver`
    "codex": Precedence(
        project=(".agents/skills", ".codex/skills"),
        personal=(".codex/skills", ".agents/skills", ".codex/skills/.system"),
    ),
    "pi": Precedence(
        project=(".pi/skills", ".agents/skills"), personal=(".pi/agent/skills", ".agents/skills"), personal_first=True
    ),
    "openclaw": Precedence(project=("skills", ".agents/skills"), personal=(".agents/skills", ".openclaw/skills")),
    "dsh": Precedence(project=(".dsh/skills", ".agents/skills"), personal=(".dsh/skills", ".agents/skills")),
    "opencode": Precedence(
        project=(".opencode/skill", ".opencode/skills", ".claude/skills", ".agents/skills"),
        personal=(".config/opencode/skill", ".config/opencode/skills", ".claude/skills", ".agents/skills"),
    ),
    "gemini-cli": Precedence(
        project=(".gemini/skills", ".agents/skills"), personal=(".gemini/skills", ".agents/skills")
    ),
    "qwen-code": Precedence(project=(".qwen/skills",), personal=(".qwen/skills",)),
    "copilot-cli": Precedence(
        project=(".github/skills", ".claude/skills", ".agents/skills"), personal=(".copilot/skills", ".agents/skills")
    ),
    "cursor": Precedence(
        project=(".cursor/skills", ".claude/skills", ".agents/skills"),
        personal=(".cursor/skills", ".cursor/skills-cursor", ".claude/skills", ".agents/skills"),
    ),
}


def lookup_name(name: str) -> str:
    """Return *name* as it is compared where only spelling differs: case, blanks, `_` and Unicode form."""
    return unicodedata.normalize("NFC", name).casefold().replace("_", "-").replace(" ", "-")


class _Library:
    """One library's names as dictionaries."""

    __slots__ = ("_by_spelling", "by_header", "by_name", "known", "rels", "shared")

    def __init__(self, known: KnownLibrary) -> None:
        self.known = known
        self.rels = {skill.rel for skill in known.skills}
        self.shared: set[str] = set()  # folder names of several skills
        self.by_name: dict[str, RelPath] = {}
        self.by_header: dict[str, RelPath | None] = {}
        self._by_spelling: dict[str, RelPath | None] | None = None
        for skill in self._in_order():
            folder = skill.rel.rpartition("/")[2]
            if folder in self.by_name:
                self.shared.add(folder)
            self.by_name.setdefault(folder, skill.rel)
            if skill.header_name and skill.header_name != folder:
                held = self.by_header.setdefault(skill.header_name, skill.rel)
                self.by_header[skill.header_name] = skill.rel if held == skill.rel else None

    def _in_order(self) -> list[KnownSkill]:
        return sorted(self.known.skills, key=lambda skill: (skill.rel.count("/"), skill.rel))

    def spelled(self, name: str) -> RelPath | None:
        """Return the path of the one skill that *name* means but for its spelling; most sessions spell as the disk."""
        if self._by_spelling is None:
            self._by_spelling = {}
            for skill in self._in_order():
                names = {skill.rel.rpartition("/")[2], skill.header_name} - {None, ""}
                for spelling in {lookup_name(str(one)) for one in names}:
                    held = self._by_spelling.setdefault(spelling, skill.rel)
                    self._by_spelling[spelling] = skill.rel if held == skill.rel else None
        return self._by_spelling.get(lookup_name(name))

    def find(self, name: str) -> RelPath | None:
        """Return the path of the skill that *name* means here, or None."""
        if name in self.rels:  # a host may name it with its category
            return RelPath(name)
        if ":" in name and (path := name.replace(":", "/")) in self.rels:
            return RelPath(path)
        return self.by_name.get(name) or self.by_header.get(name) or self.spelled(name)

    def holds(self, below: str) -> RelPath | None:
        """Return the skill that the file *below* (a path within the library) belongs to, or None."""
        if below in self.rels:
            return RelPath(below)
        if below.endswith(".md") and below[:-3] in self.rels:  # flat layout: `<name>.md` beside folders
            return RelPath(below[:-3])
        for folder in parents(below):
            if folder in self.rels:
                return RelPath(folder)
        return None


class Resolver:
    """
    The answers for one source.

    Args:
        libraries: All libraries there are; the first rule knows them all.
        host: The source's host.
        source_path: The source's folder or database: the host's home is it or a folder above it, and the nearest such
            folder whose `skills` is a library has that as the host's own one.
        only: Names of the libraries whose skills the source's sessions use; None: those of this host, else all.
        home: The user's home, for `~` and the personal folders.
    """

    def __init__(
        self,
        libraries: Iterable[KnownLibrary],
        *,
        host: str,
        source_path: str | None = None,
        only: Iterable[str] | None = None,
        home: str | None = None,
    ) -> None:
        self._home = plain(home) if home else None
        all_of_them = [_Library(known) for known in libraries]
        self._at: dict[str, _Library] = {}
        for library in all_of_them:
            for path in (library.known.path, *library.known.seen_as):
                self._at.setdefault(fold_key(plain(path, home=self._home)), library)
        if only is not None:
            wanted = set(only)
            self._ours = [library for library in all_of_them if library.known.name in wanted]
        else:
            self._ours = [library for library in all_of_them if library.known.host == host] or all_of_them
        self._precedence = PRECEDENCE.get(host, Precedence())
        self._personal = list(self._personal_libraries(source_path))
        self._projects: dict[str | None, list[_Library]] = {None: []}
        self._remembered: dict[tuple[str, str | None, str | None], Resolved] = {}

    def resolve(self, *, skill: str, path: str | None = None, cwd: str | None = None) -> Resolved:
        """Return whose *skill* was meant by a session in *cwd*; *path* is the file or folder that was named, if any."""
        question = (skill, path, cwd)
        answer = self._remembered.get(question)
        if answer is None:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            answer = self._remembered[question] = self._answer(skill, path, cwd)
        return answer

    def skill_at(self, path: str, *, cwd: str | None = None) -> Resolved | None:
        """Return the known skill whose package the file at *path* belongs to, or None where it is in none."""
        found = self._by_path(join(cwd, path, home=self._home))
        if found is None:
            return None
        library, below = found
        rel = library.holds(below)
        return None if rel is None else _resolved(library, rel)

    def in_package(self, path: str) -> bool:
        """Return whether the plain *path* is a file of a known skill (for `shell.touched`)."""
        return self.skill_at(path) is not None

    def _answer(self, skill: str, path: str | None, cwd: str | None) -> Resolved:
        if path:
            found = self._by_path(join(cwd, path, home=self._home))
            if found is not None:
                library, below = found
                if not below:
                    # A library's own folder is only where the host looked: it holds the skill, or says nothing.
                    rel = library.find(skill)
                    return _named(library, rel, skill) if rel is not None else self._by_name(skill, cwd)
                rel = library.holds(below)
                if rel is not None:
                    return _resolved(library, rel)
                folder = below.removesuffix("/" + SKILL_FILE)
                name = folder.rpartition("/")[2] if folder != below else skill
                return Resolved(library.known.name, SkillName(name))
        return self._by_name(skill, cwd)

    def _by_name(self, skill: str, cwd: str | None) -> Resolved:
        """Return the answer of the host's precedence, else of the name alone."""
        if ":" in skill and not any(library.find(skill) for library in self._ours):
            return self._of_plugin(skill)
        for library in self._in_order(cwd):
            rel = library.find(skill)
            if rel is not None:
                return _named(library, rel, skill)
        holders = [(library, rel) for library in self._ours if (rel := library.find(skill)) is not None]
        if len(holders) == 1:
            return _named(*holders[0], skill)
        return Resolved(None, SkillName(skill))

    def _by_path(self, path: str) -> tuple[_Library, str] | None:
        """Return the library with the longest path that the plain *path* starts with, and what is below it."""
        library = self._at.get(fold_key(path))
        if library is not None:
            return library, ""
        for folder in parents(path):
            library = self._at.get(fold_key(folder))
            if library is not None:
                return library, path[len(folder) + 1 :]
        return None

    def _of_plugin(self, skill: str) -> Resolved:
        plugin, _, name = skill.partition(":")
        holders = [
            (library, rel)
            for library in self._ours
            if plugin in _plugin_folders(library.known) and (rel := library.find(name)) is not None
        ]
        return _resolved(*holders[0]) if len(holders) == 1 else Resolved(None, SkillName(skill))

    def _in_order(self, cwd: str | None) -> Iterator[_Library]:
        """Yield the source's libraries in which the host looks from *cwd*, the one that wins first."""
        if cwd not in self._projects:
            if len(self._projects) >= MAX_REMEMBERED:
                self._projects = {None: []}
            self._projects[cwd] = list(self._project_libraries(cwd or ""))
        if self._precedence.personal_first:
            yield from self._personal
            yield from self._projects[cwd]
        else:
            yield from self._projects[cwd]
            yield from self._personal

    def _project_libraries(self, cwd: str) -> Iterator[_Library]:
        here = plain(cwd, home=self._home)
        for folder in (here, *parents(here)):
            if folder == self._home:
                continue  # what stands there is personal
            for name in self._precedence.project:
                library = self._at.get(fold_key(f"{folder}/{name}"))
                if library is not None and library in self._ours:
                    yield library

    def _personal_libraries(self, source_path: str | None) -> Iterator[_Library]:
        if source_path:
            source = plain(source_path, home=self._home)
            for folder in (source, *parents(source)):
                library = self._at.get(fold_key(f"{folder}/skills"))
                if library is not None and library in self._ours:
                    yield library
                    break
        if self._home is not None:
            for name in self._precedence.personal:
                library = self._at.get(fold_key(f"{self._home}/{name}"))
                if library is not None and library in self._ours:
                    yield library


class HostResolvers:
    """
    The answers for all hosts, as a store of events asks: host, skill, path and folder in, a library's name out.

    Args:
        libraries: All libraries there are.
        only: By host, the names of the libraries that its sources name; hosts that are not in it use the default.
        places: By host, the path of its (first) source.
        home: The user's home.
    """

    def __init__(
        self,
        libraries: Iterable[KnownLibrary],
        *,
        only: Mapping[str, Iterable[str]] | None = None,
        places: Mapping[str, str] | None = None,
        home: str | None = None,
    ) -> None:
        self._libraries = tuple(libraries)
        self._only = dict(only or {})
        self._places = dict(places or {})
        self._home = home
        self._by_host: dict[str, Resolver] = {}

    def of(self, host: str) -> Resolver:
        """Return the resolver of *host*."""
        resolver = self._by_host.get(host)
        if resolver is None:
            resolver = Resolver(
                self._libraries,
                host=host,
                source_path=self._places.get(host),
                only=self._only.get(host),
                home=self._home,
            )
            self._by_host[host] = resolver
        return resolver

    def __call__(self, *, host: str, skill: str, path: str | None, cwd: str | None) -> str | None:
        """Return the name of the library whose *skill* was meant, or None."""
        return self.of(host).resolve(skill=skill, path=path, cwd=cwd).library


def _resolved(library: _Library, rel: RelPath) -> Resolved:
    return Resolved(library.known.name, SkillName(rel.rpartition("/")[2]), rel)


def _named(library: _Library, rel: RelPath, name: str) -> Resolved:
    """Return the answer for a bare *name*: where several skills share it, which of them was meant stays open."""
    found = _resolved(library, rel)
    return Resolved(found.library, found.skill) if name in library.shared and name != rel else found


def _plugin_folders(library: KnownLibrary) -> set[str]:
    """Return the names of the folders above a library's `skills` that may be its plugin: `p/skills`, `p/1.2/skills`."""
    found: set[str] = set()
    for path in (library.path, *library.seen_as):
        parts = plain(path).split("/")
        if parts[-1] in ("skills", "skill") and "plugins" in parts[:-1]:
            found.update(parts[-3:-1])
    return found

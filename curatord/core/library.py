"""
A library as values: its live skills, its archived packages, and what is odd about either.

A `LibrarySnapshot` is what one look at the disk found; it decides nothing. `SkillContent` is what follows from the
bytes of one package alone and can be remembered as long as those do not change; `Skill` adds what follows from where it
lies: its key, links, twins, foreign ground. Whether curatord may change a skill is `core.ownership`'s answer.

Codes of problems (the words beside them are for people):

    mended-header     a plain `name` or `description` had to be quoted to be read
    no-header, no-description
    name-spelling     the header's name differs in case, blanks, `_` or Unicode form
    lower-case-file   only `skill.md`: agents on Linux do not see it
    two-spellings     `SKILL.md` and another spelling in one folder; the exact one counts
    same-name         another live skill of this library has the same name
    twin              another path differs only in case or Unicode form
    dead-link         a link in SKILL.md leads to nothing in the package
    link-outward      a link within the package leads out of it and would not survive a move
    nested-skill      another SKILL.md within the package
    several-paths     links show the same package under more than one path

and those of `core.skill_quality`, about descriptions and length.

What a look makes thousands of are structs and no dataclasses: they are decoded and made in a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from curatord.core.cheap import dataclass, field
from curatord.core.names import Layout
from curatord.core.values import Fingerprint, LibraryName, RelPath, SkillKey, SkillName

__all__ = [
    "NO_CONTENT",
    "ArchivedPackage",
    "LibraryProblem",
    "LibrarySnapshot",
    "OutwardLink",
    "Problem",
    "Skill",
    "SkillContent",
    "linked_skills",
]


class Problem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something odd about a skill that does not make it unusable."""

    code: str
    words: str


class OutwardLink(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    A path or name in a package's text that may mean another skill.

    *target* is as written where absolute or a bare `[[name]]` (kind `wiki`), else relative to the package's own folder.
    *file* and *line* (1-based) say where it stands.
    """

    target: str
    kind: Literal["link", "path", "code", "wiki"]
    file: str
    line: int


class SkillContent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What a package's bytes say, wherever it lies.

    Attributes:
        entry_file: The file that makes it a skill, within the package: `SKILL.md`, another spelling, or `<name>.md`.
        header_name: As written; None where there is none.
        broken: Why it cannot be used or judged, in words, or None. Nothing of a broken skill is ever changed.
        fingerprint: None where some file could not be read.
        files, bytes: Files and links that count for the fingerprint.
        newest_ns: Newest modification of such a file, ns since 1970; 0 where there is none.
        headings: Of the entry file, in order, cut to some dozens.
        outward: Paths and names that may mean another skill.
        line_name: What Hermes' own tools take for the name: that of the first line with `name:`, at any indentation,
            within the first 4,000 characters; None where there is none.
        own_vcs: Name of the version control entry (`.git` …) at its top, or None.
        installed_by: Words where a marker in the package says that a hub or plugin put it there.
    """

    entry_file: str = ""
    header_name: str | None = None
    line_name: str | None = None
    description: str = ""
    when_to_use: str = ""
    broken: str | None = None
    fingerprint: Fingerprint | None = None
    files: int = 0
    bytes: int = 0
    newest_ns: int = 0
    description_tokens: int = 0
    body_tokens: int = 0
    headings: tuple[str, ...] = ()
    outward: tuple[OutwardLink, ...] = ()
    problems: tuple[Problem, ...] = ()
    installed_by: str | None = None
    own_vcs: str | None = None


NO_CONTENT = SkillContent()


class Skill(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One live skill of a library.

    Attributes:
        path: Absolute path of the folder (or flat file), below the library's path as configured.
        form: `folder`, or `flat` for a `<name>.md` beside folders.
        broken: Why it is never changed, from its content or its place; None for a sound one.
        link_target: Where its path, or its SKILL.md, leads as a link out of what the library holds; else None.
        external: Words where it lies on ground that is never curatord's (external folder, an organisation's mirror).
        foreign_vcs: Words where it has a version control of its own (submodule, clone).
        also_at: Other paths of this library that lead to the same package by links.
    """

    key: SkillKey
    path: str
    form: Literal["folder", "flat"]
    content: SkillContent
    broken: str | None = None
    problems: tuple[Problem, ...] = ()
    link_target: str | None = None
    external: str | None = None
    foreign_vcs: str | None = None
    also_at: tuple[str, ...] = ()

    @property
    def name(self) -> SkillName:
        """Its name: that of its folder or file."""
        return self.key.rel.rpartition("/")[2]  # type: ignore[return-value]  # as `key.name`, a step shorter

    @property
    def fingerprint(self) -> Fingerprint | None:
        """Its identity by content, or None where some file could not be read."""
        return self.content.fingerprint

    @property
    def description(self) -> str:
        """As written in its header; empty where there is none."""
        return self.content.description

    @property
    def newest_file_at(self) -> datetime | None:
        """Newest modification of one of its files, as aware UTC; None where there is none."""
        ns = self.content.newest_ns
        return datetime.fromtimestamp(ns // 1_000_000_000, UTC) if ns > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedPackage:
    """
    A package below the archive.

    Attributes:
        path: Absolute path of the folder (or flat file).
        folder: Its own name there; *name* is that without the time that a taken name was given.
        archived_at: From a 14-digit suffix, aware UTC; None where there is none.
        category: Folders between the archive and the package, `a/b`, or the empty text.
        form: As in `Skill`.
    """

    path: str
    folder: str
    name: SkillName
    archived_at: datetime | None
    category: str = ""
    form: Literal["folder", "flat"] = "folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryProblem:
    """
    Something wrong with a library as a whole, or with how several lie to each other.

    *severity* `error` is a configuration that cannot be right; `observe` means that the library is read and reported
    and nothing in it is changed; `note` is only told. *hint* says what the reader can do.
    """

    library: LibraryName
    code: str
    words: str
    severity: Literal["error", "observe", "note"]
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrarySnapshot:
    """
    What one look at a library found.

    Attributes:
        root: Absolute path as configured; *real_root* with all links resolved.
        skills: Sorted by key.
        archive: Absolute path of its archive, whether it exists or not; *archived* is sorted by path.
        problems: Of the library as a whole.
        complete: False where something could not be listed, so that a skill that is not here need not be gone.
        reread: How many packages had to be read because they were new or changed.
    """

    library: LibraryName
    root: str
    real_root: str
    layout: Layout
    archive: str
    skills: tuple[Skill, ...] = ()
    archived: tuple[ArchivedPackage, ...] = ()
    problems: tuple[LibraryProblem, ...] = ()
    complete: bool = True
    reread: int = 0
    _by_key: dict[SkillKey, Skill] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._by_key.update((skill.key, skill) for skill in self.skills)

    @property
    def observe_only(self) -> bool:
        """Whether nothing in it may be changed, because of what was found."""
        return any(problem.severity != "note" for problem in self.problems)

    @property
    def by_key(self) -> Mapping[SkillKey, Skill]:
        """Its live skills by key."""
        return self._by_key

    def find(self, query: str) -> tuple[Skill, ...]:
        """
        Return the live skills that *query* may mean, sorted by key; more than one is for the caller to refuse.

        A path within the library means exactly that one. Else every skill with that name, or, where there is none,
        every skill whose header says so (bugs B068, B069).
        """
        try:
            exact = self._by_key.get(SkillKey(library=self.library, rel=RelPath(query)))
        except ValueError:
            return ()
        if exact is not None:
            return (exact,)
        named = tuple(skill for skill in self.skills if skill.name == query or skill.key.rel.endswith(f"/{query}"))
        return named or tuple(skill for skill in self.skills if skill.content.header_name == query)


def linked_skills(snapshots: Sequence[LibrarySnapshot]) -> dict[SkillKey, SkillKey]:
    """
    Return, for each skill that is a link into another library, the skill there that it really is.

    Usage of the one is usage of the other: a package kept in one place and linked into the library of each host would
    else grow old in its own library while every host uses it (bugs B054).
    """
    if all(skill.link_target is None for snapshot in snapshots for skill in snapshot.skills):
        return {}
    real: dict[str, SkillKey] = {}
    for snapshot in snapshots:
        for skill in snapshot.skills:
            if skill.link_target is None:
                suffix = ".md" if skill.form == "flat" else ""
                real[f"{snapshot.real_root}/{skill.key.rel}{suffix}"] = skill.key
    return {
        skill.key: real[skill.link_target]
        for snapshot in snapshots
        for skill in snapshot.skills
        if skill.link_target in real and real[skill.link_target].library != skill.key.library
    }

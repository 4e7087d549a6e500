"""
A library as distilling sees it: what a decision about a model's words is made on.

Built by the pass from the look at the disk, the records and the texts it read; nothing here reads anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from curatord.core.cheap import dataclass, field
from curatord.core.cluster import Index, build_index
from curatord.core.cluster_terms import SkillText as ClusterText
from curatord.core.distil.names import skeleton
from curatord.core.names import Layout
from curatord.core.values import Fingerprint, LibraryName, SkillKey

__all__ = ["LibraryView", "SkillView"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillView:
    """
    One live skill.

    Attributes:
        text: The bytes of its SKILL.md (or flat file); None where they were not read, and then it cannot be patched.
        body: Its body as text, for likeness; may be empty.
        entry_file: Name of that file within the package (`SKILL.md`; for a flat skill `<name>.md`).
        fingerprint: Of the package; None where it cannot be read.
        locked: Why no decision of ours may change it (unmanaged, protected, pinned, critical, broken, a link), in
            words; None for one that may be changed.
        edited: Words where a person edited it since curatord last knew it: proposals only.
        files: Support files by path within the package; None where the content was not read.
    """

    key: SkillKey
    description: str = ""
    when_to_use: str = ""
    text: bytes | None = None
    body: str = ""
    entry_file: str = "SKILL.md"
    fingerprint: Fingerprint | None = None
    locked: str | None = None
    edited: str | None = None
    files: Mapping[str, bytes | None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.name

    @property
    def sha256(self) -> str:
        """Lower-case hex over its SKILL.md, as a question shows it; empty where that was not read."""
        return "" if self.text is None else sha256(self.text).hexdigest()

    def cluster_text(self) -> ClusterText:
        """Return it as likeness is measured."""
        described = f"{self.description} {self.when_to_use}".strip()
        return ClusterText(key=str(self.key), name=self.name, description=described, body=self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryView:
    """
    One library.

    Attributes:
        skills: All live ones, also those that may not be changed.
        shadowed: Where else the host would find a skill of some name (other libraries, external folders, plugins,
            built-in commands): the name, and words for the place.
        archived: Names of its archived packages.
        handed_over: Something in it was ever handed over to curatord, or made by it.
        made_live: Live skills that curatord itself made. *made_today*: how many it made in this UTC day.
    """

    library: LibraryName
    layout: Layout = "agent-skills"
    skills: tuple[SkillView, ...] = ()
    shadowed: Mapping[str, str] = field(default_factory=dict)
    archived: tuple[str, ...] = ()
    handed_over: bool = False
    made_live: int = 0
    made_today: int = 0

    def named(self, name: str) -> tuple[SkillView, ...]:
        """Return the skills that a model may mean by *name*: by name, by path in the library, or by full key."""
        exact = [skill for skill in self.skills if name in (skill.name, skill.key.rel, str(skill.key))]
        whole = [skill for skill in exact if name in (skill.key.rel, str(skill.key))]
        return tuple(whole if len(whole) == 1 else exact)

    def twins_of(self, name: str) -> tuple[SkillView, ...]:
        """Return the skills whose name looks like *name*."""
        wanted = skeleton(name)
        return tuple(skill for skill in self.skills if skeleton(skill.name) == wanted)

    def index(self) -> Index:
        """Return the index that likeness is measured in."""
        return build_index(skill.cluster_text() for skill in self.skills)

"""
A package with all its bytes in hand, as folding needs it: values in, values out.

`Packed` is what was read from disk or what a fold has made of it; its fingerprint is worked out the way the library
reader does it, so that a planned package can be compared with what is found on disk after the apply.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from hashlib import sha256

from curatord.core.cheap import dataclass, field, replace
from curatord.core.fingerprint import file_entry, fingerprint, is_ignored, link_entry
from curatord.core.header import Fault
from curatord.core.skill import SKILL_FILE, SkillText, parse_skill
from curatord.core.values import Fingerprint, SkillKey

__all__ = ["TEXT_SUFFIXES", "Packed", "PackedFile", "is_text"]

TEXT_SUFFIXES = (".md", ".markdown", ".mdx", ".txt")
NEW_MODE = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFile:
    """One ordinary file: *path* within the package, *mode* its permission bits."""

    path: str
    data: bytes
    mode: int = NEW_MODE

    @property
    def sha256(self) -> str:
        """Lower-case hex of its content."""
        return sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """
    A whole package.

    Attributes:
        key: Whose it is, or shall be.
        entry: Path of the file that makes it a skill; that of a flat skill is `SKILL.md` here too.
        files: Sorted by path, caches left out.
        flat: It is a single `<name>.md`.
        links: Path and target of symbolic links in it; a package with such cannot be folded.
    """

    key: SkillKey
    files: tuple[PackedFile, ...]
    entry: str = SKILL_FILE
    flat: bool = False
    links: tuple[tuple[str, str], ...] = ()
    _by_path: dict[str, PackedFile] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._by_path.update((file.path, file) for file in self.files)

    @classmethod
    def of(
        cls,
        key: SkillKey,
        files: Iterable[PackedFile],
        *,
        entry: str = SKILL_FILE,
        flat: bool = False,
        links: Iterable[tuple[str, str]] = (),
    ) -> Packed:
        """Return a package of *files* in the order of their paths."""
        return cls(
            key=key,
            files=tuple(sorted(files, key=lambda file: file.path)),
            entry=entry,
            flat=flat,
            links=tuple(sorted(links)),
        )

    def file(self, path: str) -> PackedFile | None:
        """Return the file at *path*, or None."""
        return self._by_path.get(path)

    def holds(self, path: str) -> bool:
        """Return whether a file stands at *path*, or a folder with files in it."""
        return path in self._by_path or any(file.path.startswith(f"{path}/") for file in self.files)

    @property
    def text(self) -> SkillText | Fault:
        """What its entry file says."""
        entry = self.file(self.entry)
        return parse_skill(entry.data) if entry is not None else Fault(line=1, reason=f"there is no {self.entry}")

    @property
    def support(self) -> tuple[PackedFile, ...]:
        """All files but the entry."""
        return tuple(file for file in self.files if file.path != self.entry)

    @property
    def size_bytes(self) -> int:
        """Size of all files together."""
        return sum(len(file.data) for file in self.files)

    @property
    def fingerprint(self) -> Fingerprint:
        """
        Its identity by content, as the library reader works it out.

        A flat package's one entry has the file's own name there.
        """
        name = f"{self.key.name}.md" if self.flat else None
        return fingerprint(
            [
                *(
                    file_entry(name or file.path, file.data, executable=bool(file.mode & 0o100))
                    for file in self.files
                    if not is_ignored(file.path)
                ),
                *(link_entry(path, target) for path, target in self.links),
            ]
        )

    def place(self, path: str) -> str:
        """Return the path within the library of the package's file at *path*."""
        return f"{self.key.rel}.md" if self.flat else f"{self.key.rel}/{path}"

    def with_files(self, files: Iterable[PackedFile]) -> Packed:
        """Return the package with *files* added or replaced."""
        merged = dict(self._by_path) | {file.path: file for file in files}
        grown = self.flat and set(merged) == {self.entry}
        return replace(self, files=tuple(merged[path] for path in sorted(merged)), flat=grown)


def is_text(path: str) -> bool:
    """Return whether links are looked for in the file at *path*."""
    return posixpath.splitext(path)[1].lower() in TEXT_SUFFIXES

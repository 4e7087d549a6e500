"""
The fingerprint of a package: its identity by content.

It answers one question: is this, to its owner, still the same skill? So it covers what a person or an agent would call
an edit: the path of every file (its exact bytes, sorted, with `/`), its content, whether its owner may execute it, and
where a link points. Times, owners, inode numbers and the other permission bits change by copying, by `git checkout`
and by `umask`, and are left out, as are folders, which hold nothing themselves.

Caches that a host, an interpreter or a file browser leaves behind (`IGNORED_FOLDERS`, `IGNORED_FILES`) are left out
too: running a skill's script must not look like a hand edit that takes the skill out of curatord's care (promise 10).
They are part of the folder and move with it when it is archived; only identity does not see them. An editor's swap
file does count: while somebody has a skill open in an editor, it is better left alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

from curatord.core.cheap import dataclass
from curatord.core.values import Fingerprint

__all__ = [
    "IGNORED_FILES",
    "IGNORED_FOLDERS",
    "PackageEntry",
    "ReadFile",
    "file_entry",
    "fingerprint",
    "is_ignored",
    "link_entry",
]

IGNORED_FOLDERS = frozenset(
    {
        "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".venv", "venv", "site-packages",
        "node_modules", ".git", ".hg", ".svn", ".jj", ".cache", ".ipynb_checkpoints", "__MACOSX",
    }
)  # fmt: skip
IGNORED_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini", ".git", ".localized"})
_IGNORED_SUFFIXES = (".pyc", ".pyo")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageEntry:
    """
    One file or link of a package.

    Attributes:
        rel: Path within the package, with `/`; bytes that are not UTF-8 stand as lone surrogates.
        executable: Whether its owner may execute it; False for a link.
        digest: Lower-case hex of SHA-256 of the content; for a link, of the target's bytes.
        size: Bytes of the content; 0 for a link.
    """

    rel: str
    kind: Literal["file", "link"]
    executable: bool
    digest: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """One file or link with what was kept of it: *data* of Markdown files, *link_target* of links."""

    entry: PackageEntry
    data: bytes | None
    link_target: str | None


def is_ignored(rel: str, *, link: bool = False) -> bool:
    """Return whether identity does not see the file (or *link*) at *rel*, a path within a package, with `/`."""
    *folders, name = rel.split("/")
    return (
        name in IGNORED_FILES
        or name.endswith(_IGNORED_SUFFIXES)
        or (link and name in IGNORED_FOLDERS)
        or any(folder in IGNORED_FOLDERS for folder in folders)
    )


def file_entry(rel: str, data: bytes, *, executable: bool = False) -> PackageEntry:
    """Return the entry of a file that holds *data*."""
    digest = hashlib.sha256(data).hexdigest()
    return PackageEntry(rel=rel, kind="file", executable=executable, digest=digest, size=len(data))


def link_entry(rel: str, target: str) -> PackageEntry:
    """Return the entry of a link that points to *target*, which is never followed."""
    digest = hashlib.sha256(target.encode("utf-8", "surrogateescape")).hexdigest()
    return PackageEntry(rel=rel, kind="link", executable=False, digest=digest, size=0)


def fingerprint(entries: Iterable[PackageEntry]) -> Fingerprint:
    """
    Return the fingerprint of the package with *entries*, in whatever order they come.

    Ignored ones may be among them.

    Raises:
        ValueError: Two entries have one path.
    """
    rows: dict[bytes, PackageEntry] = {}
    for entry in entries:
        if is_ignored(entry.rel, link=entry.kind == "link"):
            continue
        rel = entry.rel.encode("utf-8", "surrogateescape")
        if rel in rows:
            raise ValueError(f"two entries have the path {entry.rel!r}")
        rows[rel] = entry
    whole = hashlib.sha256(b"curatord package 1\n")
    for rel, entry in sorted(rows.items()):
        kind = b"l" if entry.kind == "link" else (b"x" if entry.executable else b"f")
        # A length before the only free-form part: no two lists of entries give the same bytes.
        whole.update(b"%s %s %d " % (kind, entry.digest.encode(), len(rel)) + rel)
    return Fingerprint(whole.hexdigest())

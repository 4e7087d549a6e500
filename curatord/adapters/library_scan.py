"""
The one scanner: where in a library the live skills are.

Every listing, every pass and every command sees what this finds and nothing else (bugs B041, B054). It walks the real
folders first: a folder with a SKILL.md is a package and is not searched further; hidden folders (so `.archive`, `.hub`,
`.curator_backups`, a writer's half-done siblings), dependencies, caches and version control are never entered, build
folders only looked into for a SKILL.md of their own. Links are set aside during the walk and followed afterwards, each
once: one that leads to a package found already is a further path of that one, one that leads out of the library (or
into a hidden part of it) is a skill that is only listed, and a circle or a dead end is said.

Bounds: folders deeper than `MAX_DEPTH` or more than `MAX_FOLDERS` are not looked at, and the find says so, since a
"library" may turn out to be somebody's whole home.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from curatord.adapters.package import is_unchanged, vcs_name
from curatord.core.cheap import dataclass, field
from curatord.core.fingerprint import IGNORED_FOLDERS
from curatord.core.names import SKILL_FILE, Layout
from curatord.core.path_text import printable_path

__all__ = ["Find", "Package", "entry_file_of", "find_at", "is_flat_name", "scan_library", "visible"]

MAX_DEPTH = 8
MAX_FOLDERS = 200_000
MAX_BEHIND_LINK = 2_000  # folders behind one link out of the library, which may lead to a whole disk

_NEVER_ENTERED = IGNORED_FOLDERS | {"bower_components", "vendor", "__pypackages__"}
_BUILD_FOLDERS = frozenset({"build", "dist", "target", "out"})


class Package(msgspec.Struct, kw_only=True):
    """
    A package that was found, not yet read.

    Attributes:
        rel: Path within the library, flat files without `.md`; also the last part of its path for links.
        path: Absolute path below the library's configured root; *real* is where it really lies.
        entry_file: The file that makes it a skill, within the package.
        kept: Its reading where that still holds (encoded), else None.
        broken: Why nothing at all could be read, or None.
        link_target: Where it leads, when it was only reached through a link.
        vcs: Name of the version control entry that a folder between it and the root has; its own is in its content.
        also_at: Further paths that lead to it.
    """

    rel: str
    path: str
    real: str
    flat: bool
    entry_file: str
    kept: bytes | None = None
    broken: str | None = None
    link_target: str | None = None
    external: str | None = None
    vcs: str | None = None
    also_at: list[str] = msgspec.field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Find:
    """
    What the scan of one library found.

    Attributes:
        packages: By path within the library; a path with both forms has the folder, marked as broken.
        notes: (path, words) of what is odd but no skill.
        unlisted: Folders whose content could not be listed, as (path within the library, words).
        groups: What was listed in each folder that is no package, by real path.
        links: Whether any link was met, in or beside packages.
    """

    packages: dict[str, Package] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)
    unlisted: list[tuple[str, str]] = field(default_factory=list)
    groups: dict[str, Sequence[os.DirEntry[str]]] = field(default_factory=dict)
    links: bool = False


@dataclass(slots=True, kw_only=True)
class _Walk:
    """One walk; *prefix* and *shown* are what paths begin with in the library's own terms and on disk."""

    find: Find
    layout: Layout
    root: str
    real_root: str
    skipped: frozenset[str]  # real paths that are never entered: archive, state
    external: tuple[tuple[str, str], ...]  # real path, words
    kept: Mapping[str, tuple[bytes, bytes]]
    links: list[tuple[str, str, str]] = field(default_factory=list)  # rel, shown path, real path of its folder
    folders: int = 0
    most: int = MAX_FOLDERS
    cut: bool = False


def scan_library(
    root: str,
    layout: Layout,
    *,
    skipped: Sequence[str] = (),
    external: Sequence[tuple[str, str]] = (),
    kept: Mapping[str, tuple[bytes, bytes]],
) -> Find:
    """
    Return the packages of the library at *root*.

    Args:
        root: Absolute path as configured; it may itself be a link.
        layout: `flat` also takes `<name>.md` at the root.
        skipped: Paths that are never entered, such as the archive.
        external: (path, words) of folders whose skills are never curatord's; those outside of *root* are scanned too,
            as `@<folder>/…`.
        kept: (signature, encoded content) of earlier readings, by the places of the packages in `Find`.

    Raises:
        OSError: The root itself cannot be listed.
    """
    real_root = os.path.realpath(root)
    walk = _Walk(
        find=Find(),
        layout=layout,
        root=root,
        real_root=real_root,
        skipped=frozenset(os.path.realpath(path) for path in skipped),
        external=tuple((os.path.realpath(path), words) for path, words in external),
        kept=kept,
    )
    with os.scandir(real_root) as scan:
        listed = list(scan)
    _walk_folder(walk, "", root, real_root, listed, depth=0, vcs=None, external=None)
    _walk_external(walk)
    walk.find.links = bool(walk.links)
    _follow_links(walk)
    if walk.cut:
        walk.find.unlisted.append(("", f"more than {MAX_FOLDERS} folders: not all of them were looked at"))
    return walk.find


def _walk_folder(
    walk: _Walk,
    rel: str,
    shown: str,
    real: str,
    listed: Sequence[os.DirEntry[str]],
    *,
    depth: int,
    vcs: str | None,
    external: str | None,
) -> None:
    """Take the folder at *real* as a group of packages: find each, and go into what is none."""
    prefix = f"{rel}/" if rel else ""
    walk.find.groups[real] = listed
    folders: list[os.DirEntry[str]] = []
    for entry in listed:
        name = entry.name
        if name[0] == ".":
            continue
        if entry.is_symlink():
            walk.links.append((prefix + name, f"{shown}/{name}", real))
        elif entry.is_dir(follow_symlinks=False):
            folders.append(entry)
        elif walk.layout == "flat" and depth == 0 and is_flat_name(name):
            _add_flat(walk, name, f"{shown}/{name}", entry.path)
    for entry in folders:
        name = entry.name
        if name in _NEVER_ENTERED:
            continue
        _look_into(walk, prefix + name, f"{shown}/{name}", entry.path, depth=depth, vcs=vcs, external=external)


def _look_into(
    walk: _Walk, rel: str, shown: str, real: str, *, depth: int, vcs: str | None, external: str | None
) -> None:
    """Take the folder at *real* for a package where it has a SKILL.md, else go into it."""
    if walk.skipped and real in walk.skipped:
        return
    walk.folders += 1
    if walk.folders > walk.most:
        walk.cut = True
        return
    if walk.external:
        external = next((words for path, words in walk.external if f"{real}/".startswith(f"{path}/")), external)
    kept = walk.kept.get(rel)
    if kept is not None and is_unchanged(real, kept[0]):
        walk.find.packages[rel] = Package(
            rel=rel, path=shown, real=real, flat=False, entry_file="", kept=kept[1], external=external, vcs=vcs
        )
        return
    try:
        with os.scandir(real) as scan:
            listed = list(scan)
    except OSError as error:
        _add_unreadable(walk, rel, shown, real, error, external=external)
        return
    names = [entry.name for entry in listed]
    entry_file = entry_file_of(names)
    if entry_file is not None:
        walk.find.packages[rel] = Package(
            rel=rel, path=shown, real=real, flat=False, entry_file=entry_file, external=external, vcs=vcs
        )
    elif real.rpartition("/")[2] in _BUILD_FOLDERS:
        walk.find.groups[real] = listed
    elif depth + 1 >= MAX_DEPTH:
        walk.find.groups[real] = listed
        if any(entry.is_dir(follow_symlinks=False) for entry in listed):
            walk.find.unlisted.append((rel, f"folders nested more than {MAX_DEPTH} deep are not looked at"))
    else:
        vcs = vcs_name(names) or vcs
        _walk_folder(walk, rel, shown, real, listed, depth=depth + 1, vcs=vcs, external=external)


def visible(listed: Iterable[os.DirEntry[str]]) -> frozenset[str]:
    """Return what of a listing a scan goes by: each name that is not hidden, and whether it is a folder or a link."""
    return frozenset(
        f"{entry.name}{'@' if entry.is_symlink() else '/' if entry.is_dir(follow_symlinks=False) else ''}"
        for entry in listed
        if entry.name[0] != "."
    )


def find_at(
    root: str,
    layout: Layout,
    rel: str,
    names: Collection[str],
    *,
    skipped: Sequence[str] = (),
    external: Sequence[tuple[str, str]] = (),
) -> Package | Literal["absent", "unsure"]:
    """
    Return the package that `scan_library` would find at *rel*, looking at nothing but the way there.

    `absent`: a scan finds none there. `unsure`: only a scan can tell, as where a link or a hidden part is on the way.
    What other paths lead to it (`also_at`) is not looked for.

    Args:
        root, layout, skipped, external: As of `scan_library`.
        rel: Path within the library.
        names: What is listed in the root now.
    """
    parts = rel.split("/")
    if any(not part or part[0] in ".@" or part in _NEVER_ENTERED for part in parts) or len(parts) > MAX_DEPTH:
        return "unsure"
    real = os.path.realpath(root)
    shown, vcs, words = root, None, None
    apart = frozenset(os.path.realpath(path) for path in skipped)
    outside = [(os.path.realpath(path), said) for path, said in external]
    for depth, name in enumerate(parts):
        real, shown = f"{real}/{name}", f"{shown}/{name}"
        last = depth + 1 == len(parts)
        if real in apart:
            return "unsure"
        flat = last and layout == "flat" and os.path.lexists(f"{real}.md")
        status = _lstat(real)
        if status is None or not stat.S_ISDIR(status.st_mode):
            if status is None and flat and depth == 0 and stat.S_ISREG(os.lstat(f"{real}.md").st_mode):
                return Package(rel=rel, path=f"{shown}.md", real=f"{real}.md", flat=True, entry_file=f"{name}.md")
            return "unsure" if status is not None or flat else "absent"
        if flat:
            return "unsure"  # both forms of one name
        if name not in names:
            return "unsure"  # a file system that takes other spellings for this one
        words = next((said for path, said in outside if f"{real}/".startswith(f"{path}/")), words)
        try:
            names = os.listdir(real)  # noqa: PTH208 - names are all that is wanted
        except OSError:
            return "unsure"
        entry_file = entry_file_of(names)
        if last:
            if entry_file is None:
                return "unsure"
            return Package(rel=rel, path=shown, real=real, flat=False, entry_file=entry_file, external=words, vcs=vcs)
        if entry_file is not None:
            return "absent"  # inside another package, which is not searched
        if name in _BUILD_FOLDERS:
            return "absent"
        vcs = vcs_name(names) or vcs
    return "unsure"


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def entry_file_of(names: Sequence[str]) -> str | None:
    """Return which of *names* makes a folder a package: the exact spelling where there is one."""
    if SKILL_FILE in names:
        return SKILL_FILE
    spellings = [name for name in names if len(name) == len(SKILL_FILE) and name.lower() == "skill.md"]
    return min(spellings) if spellings else None


def _add_unreadable(walk: _Walk, rel: str, shown: str, real: str, error: OSError, *, external: str | None) -> None:
    """List a folder that cannot be listed: it may be a skill, or hold some."""
    words = f"the folder cannot be read: {error.strerror}"
    walk.find.unlisted.append((rel, words))
    walk.find.packages[rel] = Package(
        rel=rel, path=shown, real=real, flat=False, entry_file="", broken=words, external=external
    )


def is_flat_name(name: str) -> bool:
    """Return whether a file called *name* at the root may be a flat skill; what describes a folder is none."""
    return name.endswith(".md") and name.lower() not in ("skill.md", "description.md")


def _add_flat(walk: _Walk, name: str, shown: str, real: str, *, link_target: str | None = None) -> None:
    """Note a `<name>.md`; whether it is a skill is known only when it was read."""
    kept = walk.kept.get(name)
    walk.find.packages[name] = Package(
        rel=name.removesuffix(".md"),
        path=shown,
        real=real,
        flat=True,
        entry_file=real.rpartition("/")[2],
        kept=kept[1] if kept is not None and is_unchanged(real, kept[0]) else None,
        link_target=link_target,
    )


def _walk_external(walk: _Walk) -> None:
    """Scan the external folders that lie outside of the library, as `@<folder>/…`."""
    taken: set[str] = set()
    for path, words in walk.external:
        if path == walk.real_root or path.startswith(f"{walk.real_root}/") or walk.real_root.startswith(f"{path}/"):
            continue
        base = path.rpartition("/")[2] or "root"
        rel = f"@{base}"
        number = 2
        while rel in taken:
            rel, number = f"@{base}-{number}", number + 1
        taken.add(rel)
        try:
            with os.scandir(path) as scan:
                listed = list(scan)
        except OSError as error:
            walk.find.notes.append((path, f"external folder cannot be read: {error.strerror}"))
            continue
        _walk_folder(walk, rel, path, path, listed, depth=1, vcs=None, external=words)


def _follow_links(walk: _Walk) -> None:
    """Follow each link that was set aside, once; what lies behind it is listed and never searched for more links."""
    by_real = {package.real: package for package in walk.find.packages.values()}
    for rel, shown, _folder in sorted(walk.links):
        try:
            target = os.path.realpath(shown, strict=True)
            status = Path(target).stat()
        except OSError as error:
            _add_dead_link(walk, rel, shown, error)
            continue
        known = by_real.get(target)
        if known is not None:
            known.also_at.append(shown)
            continue
        if stat.S_ISDIR(status.st_mode):
            added = _behind_link(walk, rel, shown, target)
        elif walk.layout == "flat" and "/" not in rel and is_flat_name(rel) and stat.S_ISREG(status.st_mode):
            _add_flat(walk, rel, shown, target, link_target=target)
            added = [walk.find.packages[rel]]
        else:
            continue
        for package in added:
            by_real.setdefault(package.real, package)


def _behind_link(walk: _Walk, rel: str, shown: str, target: str) -> list[Package]:
    """Return the packages behind the link at *shown*, which leads to the folder *target*."""
    if target == walk.real_root or walk.real_root.startswith(f"{target.rstrip('/')}/"):
        walk.find.notes.append((rel, "a link to a folder above it: not followed"))
        return []
    inner = _Walk(
        find=Find(),
        layout=walk.layout,
        root=walk.root,
        real_root=walk.real_root,
        skipped=walk.skipped,
        external=walk.external,
        kept=walk.kept,
        folders=walk.folders,
        most=min(walk.most, walk.folders + MAX_BEHIND_LINK),
    )
    _look_into(inner, rel, shown, target, depth=1, vcs=None, external=None)
    walk.folders, walk.cut = min(inner.folders, inner.most), walk.cut or (inner.cut and inner.most == walk.most)
    if inner.cut:
        # No skill of this library's own is among them, so what is seen of it is complete all the same.
        walk.find.notes.append((rel, f"more than {MAX_BEHIND_LINK} folders behind this link: not all were looked at"))
    inside = target.startswith(f"{walk.real_root}/")
    known = {package.real for package in walk.find.packages.values()}
    added: list[Package] = []
    for package in inner.find.packages.values():
        if package.real in known:
            continue  # a link to a group of packages of this library; they are listed where they lie
        package.link_target = package.real
        if inside and package.external is None:
            package.external = "a link into a hidden part of the library"
        walk.find.packages[package.rel] = package
        added.append(package)
    walk.find.unlisted += inner.find.unlisted
    return added


def _add_dead_link(walk: _Walk, rel: str, shown: str, error: OSError) -> None:
    try:
        target = printable_path(str(Path(shown).readlink()))
    except OSError:
        return  # gone since it was listed
    if error.errno == errno.ENOENT:
        words = f"the link leads nowhere: {target}"
    elif error.errno == errno.ELOOP:
        words = f"the link leads in a circle: {target}"
    else:
        words = f"the link cannot be followed: {target}: {error.strerror}"
    # A dead link to some file says nothing of a skill; only what stands where a package would is one that broke.
    if walk.layout != "flat" and "." in rel.rpartition("/")[2]:
        walk.find.notes.append((rel, words))
        return
    walk.find.packages[rel] = Package(
        rel=rel.removesuffix(".md") if walk.layout == "flat" else rel,
        path=shown,
        real=shown,
        flat=walk.layout == "flat" and rel.endswith(".md"),
        entry_file="",
        broken=words,
        link_target=target,
    )

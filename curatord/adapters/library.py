"""
Reading a library: the scanner's find, each package's content (kept or read), put together into a snapshot.

What did not change costs one listing and one stat a file. What did is read in full, once more if it changed meanwhile,
and given up as broken for this time when it will not hold still. Whatever is wrong with one skill stays with that
skill (bugs B060); whatever is wrong with the library as a whole is a `LibraryProblem`, and nothing here raises for it.
"""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from curatord.adapters.hermes_home import HermesFiles, HermesHome
from curatord.adapters.installers import read_installed
from curatord.adapters.library_names import KnownNames, known_names
from curatord.adapters.library_scan import Find, Package, find_at, is_flat_name, scan_library
from curatord.adapters.package import (
    ATTEMPTS,
    MAX_ENTRY_BYTES,
    ChangedWhileReadError,
    entries_of,
    fingerprint_of,
    is_racy,
    is_unchanged,
    read_beneath,
    read_content,
    survey,
)
from curatord.core.cheap import replace
from curatord.core.fingerprint import IGNORED_FOLDERS, PackageEntry
from curatord.core.hermes_files import HermesFacts
from curatord.core.layout import archive_of, archived_name, detect_layout
from curatord.core.library import (
    NO_CONTENT,
    ArchivedPackage,
    LibraryProblem,
    LibrarySnapshot,
    Problem,
    Skill,
    SkillContent,
)
from curatord.core.names import SKILL_FILE, Layout, names_agree
from curatord.core.ownership import LibraryView, ownership_facts
from curatord.core.path_text import printable_path
from curatord.core.settings import LibrarySettings
from curatord.core.values import Fingerprint, LibraryName, RelPath, SkillKey, SkillName, skill_key
from curatord.errors import InputError
from curatord.ports.library import PackageCache

__all__ = ["DiskLibrary"]

MAX_ARCHIVE_DEPTH = 6
MAX_ARCHIVED = 50_000
MAX_READINGS = 4096
PEEK_BYTES = 256 * 1024  # of a flat file, to see whether it has a description

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SkillContent).decode


class DiskLibrary:
    """
    One configured library on disk; fills the port `LibraryReader`.

    Args:
        settings: Its part of the configuration; paths are absolute.
        cache: Kept readings; what is there is trusted as long as the files' signatures are the same.
    """

    def __init__(self, settings: LibrarySettings, cache: PackageCache) -> None:
        self._settings = settings
        self._cache = cache
        self._files = HermesFiles()
        self._readings: dict[str, tuple[bytes, bytes]] = {}  # of `look_at`: signature and content by real path
        self._layout: tuple[frozenset[str], Layout] | None = None
        self._names: KnownNames | None = None

    def look(self, *, observed: Sequence[str] = ()) -> LibraryView:
        """Return what is there now and what bears on whose it is; whatever is wrong is in there."""
        root = self._settings.path.rstrip("/") or "/"
        try:
            names, layout = _look_at_root(self._settings, root)
            hermes = HermesHome(root, self._files).read() if layout == "hermes" else None
            snapshot = self._snapshot(root, layout, names, hermes)
        except OSError as error:
            hermes, snapshot = None, self._unreadable(LibraryName(self._settings.name), root, error)
        installed = read_installed(root)
        facts = ownership_facts(
            snapshot,
            hermes,
            installed=installed.names,
            unjudged=installed.unjudged,
            observed=observed,
            plugin=installed.plugin,
        )
        return LibraryView(snapshot=snapshot, facts=facts, hermes=hermes)

    def look_at(self, keys: Collection[SkillKey], *, observed: Sequence[str] = ()) -> LibraryView:
        """
        Return what a whole look would say of *keys*, reading no packages but theirs, and the ownership files.

        Each reading is of now. What only shows beside other skills is left out of the skills' `problems` and `also_at`
        (further paths, same names, twins), the archive is not listed, and `facts.shared_names` speaks of these keys.
        Where only a whole look can tell (links, hidden parts, both forms of a name …), one is made.
        """
        try:
            view = self._look_at(keys, observed)
        except OSError:
            view = None  # gone or unreadable, in part or as a whole: the whole look has words for each of it
        return self.look(observed=observed) if view is None else view

    def _look_at(self, keys: Collection[SkillKey], observed: Sequence[str]) -> LibraryView | None:
        settings = self._settings
        root = settings.path.rstrip("/") or "/"
        names = frozenset(os.listdir(root))  # noqa: PTH208 - names are all that is wanted, of many
        # Which layout it is can cost a look into each folder; while the same names stand here, it is the same one.
        if self._layout is None or self._layout[0] != names:
            self._layout = _look_at_root(settings, root)
        layout = self._layout[1]
        hermes = HermesHome(root, self._files).read() if layout == "hermes" else None
        archive = archive_of(settings, layout)
        external = self._external(hermes)
        also = (
            {RelPath(entry.install_path) for entry in hermes.hub if entry.install_path} if hermes is not None else set()
        )
        skills: dict[SkillKey, Skill] = {}
        library = LibraryName(settings.name)
        for key in sorted({*keys, *(SkillKey(library=library, rel=rel) for rel in also)}):
            package = find_at(root, layout, key.rel, names, skipped=[archive], external=external)
            if package == "unsure":
                return None
            if isinstance(package, Package):
                content = self._content(package)
                if not package.flat or content.description or content.broken is not None:
                    skills[key] = _skill(library, layout, package, content)
        snapshot = LibrarySnapshot(
            library=library,
            root=root,
            real_root=os.path.realpath(root),
            layout=layout,
            archive=archive,
            skills=tuple(skills.values()),
            problems=tuple(_root_problems(library, root, names)),
        )
        installed = read_installed(root)
        facts = ownership_facts(
            snapshot,
            hermes,
            installed=installed.names,
            unjudged=installed.unjudged,
            observed=observed,
            plugin=installed.plugin,
        )
        asked = tuple(skill for key, skill in skills.items() if key in keys)
        named = {skill.name for skill in asked if facts.usage.keys() & {skill.name, skill.content.header_name}}
        shared = self._shared(named, root, layout, archive, external) if named else frozenset()
        if shared is None:
            return None
        facts = replace(facts, shared_names=shared)
        return LibraryView(snapshot=replace(snapshot, skills=asked), facts=facts, hermes=hermes)

    def _external(self, hermes: HermesFacts | None) -> list[tuple[str, str]]:
        external = [(path, "an external folder (configuration)") for path in self._settings.external_dirs]
        if hermes is not None:
            external += [(path, "an external folder (Hermes' config.yaml)") for path in hermes.config.external_dirs]
        return external

    def _content(self, package: Package) -> SkillContent:
        """Return the content of a package that was looked up alone."""
        known = self._readings.get(package.real)
        if known is not None and is_unchanged(package.real, known[0]):
            return _decode(known[1])
        content, signature = _read(package, time.time_ns())
        if signature is not None:
            if len(self._readings) >= MAX_READINGS:
                self._readings.clear()
            self._readings[package.real] = (signature, _encode(content))
        return content

    def _shared(
        self, names: Collection[str], root: str, layout: Layout, archive: str, external: Sequence[tuple[str, str]]
    ) -> frozenset[str] | None:
        """Return which of *names* more than one skill of the library has; None where only a whole look can tell."""
        if layout == "flat":
            return None
        known = self._names
        if known is None or not known.still_holds(external):
            begun_ns = time.time_ns()
            find = scan_library(root, layout, skipped=[archive], external=external, kept={})
            known = self._names = known_names(find, external, begun_ns)
        return None if known is None else known.shared & frozenset(names)

    def place(self) -> tuple[str, Layout, str]:
        """Return the library's path, its layout as it is now, and its archive's path, without reading a skill."""
        root = self._settings.path.rstrip("/") or "/"
        try:
            _, layout = _look_at_root(self._settings, root)
        except OSError:
            layout = self._layout_unseen()
        return root, layout, archive_of(self._settings, layout)

    def _layout_unseen(self) -> Layout:
        return self._settings.layout if self._settings.layout != "auto" else "agent-skills"

    def read(self) -> LibrarySnapshot:
        """Return the snapshot of a look."""
        return self.look().snapshot

    def _snapshot(
        self, root: str, layout: Layout, names: frozenset[str], hermes: HermesFacts | None
    ) -> LibrarySnapshot:
        settings = self._settings
        name = LibraryName(settings.name)
        archive = archive_of(settings, layout)
        external = self._external(hermes)
        kept = self._cache.load(settings.name)
        find = scan_library(root, layout, skipped=[archive], external=external, kept=kept)
        try:
            skills, reread, new = self._skills(name, layout, find)
        except msgspec.MsgspecError:  # damaged where it was kept: all is read anew this once, and kept anew
            find = scan_library(root, layout, skipped=[archive], external=external, kept={})
            skills, reread, new = self._skills(name, layout, find)
        gone = [place for place in kept if place not in find.packages]
        if new or gone:
            self._cache.keep(settings.name, new, gone)
        archived, archive_notes = _archived(archive)
        problems = [
            *_root_problems(name, root, names),
            *(_note(name, "unlisted", rel, words) for rel, words in find.unlisted),
            *(_note(name, "odd-entry", rel, words) for rel, words in (*find.notes, *archive_notes)),
        ]
        return LibrarySnapshot(
            library=name,
            root=root,
            real_root=os.path.realpath(root),
            layout=layout,
            archive=archive,
            skills=tuple(skills),
            archived=archived,
            problems=tuple(problems),
            complete=not find.unlisted,
            reread=reread,
        )

    def read_text(self, skill: Skill) -> bytes:
        """Return the bytes of the file that makes *skill* one."""
        base, rel = _entry_place(skill)
        return read_beneath(base, rel, limit=MAX_ENTRY_BYTES)

    def read_file(self, skill: Skill, rel: str) -> bytes:
        """Return the bytes of the file *rel* of the package; links are not followed."""
        if skill.form == "flat":
            base, own = _entry_place(skill)
            if rel != own:
                raise InputError(f"{skill.key} is one file, {own}; there is no {rel}")
            return read_beneath(base, rel)
        return read_beneath(_place(skill), rel)

    def entries(self, skill: Skill) -> tuple[PackageEntry, ...]:
        """Return all files and links of the package with their digests, read now."""
        return entries_of(_place(skill))

    def fingerprint(self, path: str) -> Fingerprint:
        """Return the fingerprint of the package at the absolute *path*, read now."""
        return fingerprint_of(path)

    def _unreadable(self, name: LibraryName, root: str, error: OSError) -> LibrarySnapshot:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        layout = self._layout_unseen()
        problem = LibraryProblem(
            library=name,
            code="missing" if missing else "unreadable",
            words=f"{root} {'is no folder' if missing else 'cannot be read'}: {error.strerror}",
            severity="observe",
            hint="nothing is aged or archived while the library cannot be seen; look at its path and its mount",
        )
        return LibrarySnapshot(
            library=name,
            root=root,
            real_root=os.path.realpath(root),
            layout=layout,
            archive=archive_of(self._settings, layout),
            problems=(problem,),
            complete=False,
        )

    def _skills(
        self, library: LibraryName, layout: Layout, find: Find
    ) -> tuple[list[Skill], int, dict[str, tuple[bytes, bytes]]]:
        """Return the skills of *find*, how many packages were read for it, and the readings to keep."""
        begun_ns = time.time_ns()  # compared with the kernel's file times and nothing else
        new: dict[str, tuple[bytes, bytes]] = {}
        reread = 0
        skills: list[Skill] = []
        for place, package in find.packages.items():
            if package.broken is not None:
                content = replace(NO_CONTENT, broken=package.broken)
            elif package.kept is not None:
                content = _decode(package.kept)
            else:
                reread += 1
                content, signature = _read(package, begun_ns)
                if signature is not None and printable_path(place) == place:
                    new[place] = (signature, _encode(content))
            if not package.flat or content.description or content.broken is not None:
                skills.append(_skill(library, layout, package, content))
        return _with_neighbours(skills), reread, new


# --- One skill --------------------------------------------------------------------------------------------------------


def _read(package: Package, begun_ns: int) -> tuple[SkillContent, bytes | None]:
    """Return the package's content read in full, and the signature to keep it under; None: do not keep it."""
    broken = "it kept changing while it was read"
    for _ in range(ATTEMPTS):
        try:
            found = survey(package.real)
            content = read_content(package.real, found, package.entry_file)
        except ChangedWhileReadError:
            continue
        except OSError as error:
            broken = f"cannot be read: {error.strerror}"
            break
        # What could not be read whole may be readable next time without a file having changed.
        keep = content.fingerprint is not None and not is_racy(found, begun_ns)
        return content, found.signature() if keep else None
    return replace(NO_CONTENT, entry_file=package.entry_file, broken=broken), None


def _skill(library: LibraryName, layout: Layout, package: Package, content: SkillContent) -> Skill:
    rel = printable_path(package.rel)
    broken = content.broken
    problems = content.problems
    if rel != package.rel:
        broken = broken or "its name is not UTF-8"
    name = rel.rpartition("/")[2]
    agreement = "same" if content.header_name == name else names_agree(name, content.header_name)
    if agreement == "same":
        pass
    elif agreement == "other":
        broken = broken or f"its header says `{content.header_name}`, its folder `{name}`"
    elif agreement == "spelling":
        words = f"its header spells it `{content.header_name}`"
        problems = (*problems, Problem(code="name-spelling", words=words))
    if layout == "hermes" and broken is None:
        broken = _broken_for_hermes(name, content)
    external = package.external
    if external is None and layout == "hermes" and rel.startswith("_org/"):
        external = "an organisation's mirror"
    if package.also_at:
        words = f"links show it as {', '.join(printable_path(path) for path in package.also_at)} too"
        problems = (*problems, Problem(code="several-paths", words=words))
    return Skill(
        key=skill_key(library, rel),
        path=printable_path(package.path),
        form="flat" if package.flat else "folder",
        content=content,
        broken=broken,
        problems=problems,
        link_target=None if package.link_target is None else printable_path(package.link_target),
        external=external,
        foreign_vcs=_foreign_vcs(content.own_vcs or package.vcs),
        also_at=tuple(map(printable_path, package.also_at)),
    )


def _broken_for_hermes(name: str, content: SkillContent) -> str | None:
    """Return why Hermes' own tools would take the skill for another, or for more than one."""
    if content.line_name not in (None, name) and names_agree(name, content.line_name) == "other":
        return f"Hermes takes `{content.line_name}` for its name, from the first line with `name:`"
    # Hermes lists the inner one by itself, so to move the outer one would take a skill away that nobody decided on.
    return next((problem.words for problem in content.problems if problem.code == "nested-skill"), None)


def _foreign_vcs(name: str | None) -> str | None:
    return None if name is None else f"it is under a version control of its own (`{name}`)"


def _with_neighbours(skills: list[Skill]) -> list[Skill]:
    """Return *skills* by key, with what only shows beside others: both forms of one name, same names, twins."""
    by_rel: dict[str, Skill] = {}
    for skill in skills:
        rel = skill.key.rel
        other = by_rel.get(rel)
        if other is None:
            by_rel[rel] = skill
            continue
        folder, flat = (skill, other) if skill.form == "folder" else (other, skill)
        words = f"there are both `{skill.name}/` and `{skill.name}.md`"
        by_rel[rel] = replace(folder, broken=words, also_at=(*folder.also_at, flat.path))
    _mark(by_rel, _name_of, "same-name", "the same name stands at {}")
    _mark(by_rel, _folded_rel, "twin", "{} differs from it only in case or Unicode form")
    return [by_rel[rel] for rel in sorted(by_rel)]


def _name_of(rel: str) -> str:
    return rel.rpartition("/")[2]


def _folded_rel(rel: str) -> str:
    return rel.lower() if rel.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFC", rel).casefold())


def _mark(skills: dict[str, Skill], group: Callable[[str], str], code: str, words: str) -> None:
    """Give every skill that shares its *group* with others a problem that names them."""
    if len({group(rel) for rel in skills}) == len(skills):
        return
    groups: dict[str, list[str]] = {}
    for rel in sorted(skills):
        groups.setdefault(group(rel), []).append(rel)
    for rels in groups.values():
        if len(rels) > 1:
            for rel in rels:
                others = ", ".join(f"`{other}`" for other in rels if other != rel)
                problem = Problem(code=code, words=words.format(others))
                skills[rel] = replace(skills[rel], problems=(*skills[rel].problems, problem))


def _place(skill: Skill) -> str:
    """Return where the package really lies; a skill that was found through a link is read there."""
    return skill.link_target or skill.path


def _entry_place(skill: Skill) -> tuple[str, str]:
    """Return the folder and the name of the file that makes *skill* one."""
    if not skill.content.entry_file:
        raise InputError(f"{skill.key} cannot be read: {skill.broken}")
    base = _place(skill).rpartition("/")[0] if skill.form == "flat" else _place(skill)
    rel = _place(skill).rpartition("/")[2] if skill.form == "flat" else skill.content.entry_file
    return base, rel


# --- The library as a whole -------------------------------------------------------------------------------------------


def _look_at_root(settings: LibrarySettings, root: str) -> tuple[frozenset[str], Layout]:
    """Return the names at the root and the layout that they tell of."""
    with os.scandir(root) as scan:
        listed = list(scan)
    names = frozenset(entry.name for entry in listed)
    if settings.layout != "auto":
        return names, settings.layout
    return names, detect_layout(
        settings,
        names,
        categories=lambda: any(_is_category(entry) for entry in listed),
        flat=lambda: any(_has_description(entry) for entry in listed),
    )


def _is_category(entry: os.DirEntry[str]) -> bool:
    return (
        not entry.name.startswith(".")
        and entry.is_dir(follow_symlinks=False)
        and os.path.lexists(f"{entry.path}/DESCRIPTION.md")
        and not os.path.lexists(f"{entry.path}/{SKILL_FILE}")
    )


def _has_description(entry: os.DirEntry[str]) -> bool:
    if not is_flat_name(entry.name) or entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
        return False
    try:
        data = read_beneath(entry.path.rpartition("/")[0], entry.name, limit=PEEK_BYTES)
    except InputError:
        return False
    from curatord.core.skill import SkillText, parse_skill  # an unchanged library needs no parser

    skill = parse_skill(data)
    return isinstance(skill, SkillText) and bool(skill.description)


def _root_problems(library: LibraryName, root: str, names: frozenset[str]) -> Iterator[LibraryProblem]:
    if SKILL_FILE in names:
        yield LibraryProblem(
            library=library,
            code="is-a-skill",
            words=f"{root} is itself a skill: it holds a SKILL.md",
            severity="observe",
            hint="configure the folder that holds the skills, not one of them",
        )
    effective = os.access in os.supports_effective_ids
    if not os.access(root, os.W_OK | os.X_OK, effective_ids=effective):
        yield LibraryProblem(
            library=library,
            code="read-only",
            words=f"{root} cannot be written",
            severity="observe",
            hint="it is read and reported, nothing in it is changed; give curatord's user the right to write, or "
            "say `manage: none`",
        )


def _note(library: LibraryName, code: str, rel: str, words: str) -> LibraryProblem:
    return LibraryProblem(library=library, code=code, severity="note", words=f"{printable_path(rel) or '.'}: {words}")


def _archived(archive: str) -> tuple[tuple[ArchivedPackage, ...], list[tuple[str, str]]]:
    """Return the packages below *archive* (nested as older tools left them), and what could not be listed."""
    found: list[ArchivedPackage] = []
    notes: list[tuple[str, str]] = []
    waiting = [(archive, "", 0)]
    while waiting and len(found) < MAX_ARCHIVED:
        folder, category, depth = waiting.pop()
        try:
            with os.scandir(folder) as scan:
                listed = list(scan)
        except FileNotFoundError:
            continue
        except OSError as error:
            notes.append((folder, f"the archive cannot be read: {error.strerror}"))
            continue
        names = {entry.name for entry in listed}
        if depth and any(len(name) == len(SKILL_FILE) and name.lower() == "skill.md" for name in names):
            found.append(_package_in_archive(folder, category.rpartition("/")[0], flat=False))
            continue
        for entry in listed:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth < MAX_ARCHIVE_DEPTH and entry.name not in IGNORED_FOLDERS:
                    waiting.append((entry.path, f"{category}/{entry.name}".lstrip("/"), depth + 1))
            elif entry.name.endswith(".md") and depth == 0 and entry.is_file(follow_symlinks=False):
                found.append(_package_in_archive(entry.path, "", flat=True))
    return tuple(sorted(found, key=lambda package: package.path)), notes


def _package_in_archive(path: str, category: str, *, flat: bool) -> ArchivedPackage:
    folder = printable_path(path.rpartition("/")[2])
    name, at = archived_name(folder.removesuffix(".md") if flat else folder)
    return ArchivedPackage(
        path=printable_path(path),
        folder=folder,
        name=SkillName(name),
        archived_at=at,
        category=printable_path(category),
        form="flat" if flat else "folder",
    )

"""
What the steps of an entry reach, and whether they may: the writer's own question, asked of the steps and not of whoever
made them.

A place in a library must lie in a package that the entry is about; that package must be managed, unpinned, not
critical, sound and unedited; a place where something is to appear must be free. The archive and the host's own three
files may be written, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from curatord.core.cheap import dataclass
from curatord.core.journal import (
    EditItem,
    JournalEntry,
    MakeDir,
    MovePackage,
    Place,
    RemoveDir,
    SetLine,
    Step,
    WriteFile,
    place_of,
)
from curatord.core.plan import SkipCode, Standing
from curatord.core.values import Importance, LibraryName, RelPath, SkillKey

__all__ = ["Reached", "Refusal", "Site", "host_files", "reached", "refusal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """
    Where a library is.

    Attributes:
        root, archive: Absolute paths of the library and of its archive, without a slash at the end.
        layout: As the library was found to be.
        home: Absolute path of the Hermes home whose files belong to this library, or None for other hosts.
        seen_as: Other absolute paths under which the host names this library.
    """

    library: LibraryName
    root: str
    archive: str
    layout: Literal["agent-skills", "hermes", "flat"] = "agent-skills"
    home: str | None = None
    seen_as: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A skill whose package is changed, or (*appears*) comes to stand where nothing may stand yet."""

    key: SkillKey
    appears: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why it may not be."""

    key: SkillKey
    code: SkipCode
    what: str


def host_files(site: Site) -> tuple[Place, ...]:
    """Return the files of the host that may be edited; none for a library that is not Hermes'."""
    if site.home is None:
        return ()
    return (
        Place(root=site.root, path=RelPath(".usage.json")),
        Place(root=site.root, path=RelPath(".curator_suppressed")),
        Place(root=site.home, path=RelPath("cron/jobs.json")),
    )


def reached(
    entry: JournalEntry, steps: Iterable[Step], site: Site | None, *, staging: str | None = None
) -> tuple[Reached, ...] | Refusal:
    """
    Return the skills that *steps*, some of the entry's, reach; or why they reach where they may not.

    Args:
        entry: What they belong to.
        steps: Those still to be done.
        site: The entry's library, or None where it is not configured any more.
        staging: Our own folder, out of which packages of a backup may come.
    """
    main = entry.targets[0]
    found: dict[Reached, None] = {}
    if entry.kind in ("mark_stale", "reactivate"):  # these change a state and no byte
        found[Reached(key=main)] = None
    for step in steps:
        if site is None:
            return Refusal(key=main, code="unmanaged", what=f"there is no library {entry.library!r} any more")
        if isinstance(step, EditItem | SetLine):
            if step.file not in host_files(site):
                return Refusal(key=main, code="invalid", what=f"{step.file} is no file of this library's host")
            continue
        if _is_host_file_put_back(step, entry, site):
            continue
        for place in place_of(step):
            folder = isinstance(step, MakeDir | RemoveDir)
            if place.root == staging and isinstance(step, MovePackage) and place is step.source:
                continue
            if place.root == site.archive or (folder and str(place) == site.archive):
                continue
            if place.root != site.root:
                return Refusal(key=main, code="invalid", what=f"{place} is in no library that curatord knows")
            if folder:
                continue  # an empty folder on the way to a package
            key = _package_of(place, entry, site)
            if key is None:
                return Refusal(key=main, code="invalid", what=f"{place} is in no package that this is about")
            appears = isinstance(step, MovePackage) and place is step.target
            if appears and isinstance(step, MovePackage) and _package_of(step.source, entry, site) == key:
                continue  # a flat file becomes the folder of the same skill
            if appears and Reached(key=key) in found:
                continue  # what stands there leaves first
            found[Reached(key=key, appears=appears)] = None
    return tuple(found)


def _is_host_file_put_back(step: Step, entry: JournalEntry, site: Site) -> bool:
    """Return whether *step* puts a file of the host back that was gone, out of a backup, or takes that back."""
    if entry.kind not in ("bring_back", "undo") or entry.by != "user":
        return False
    if isinstance(step, WriteFile):
        return None in (step.before, step.after) and step.place in host_files(site)
    above = {(place.root, place.path.rpartition("/")[0]) for place in host_files(site)}
    return isinstance(step, MakeDir | RemoveDir) and (step.place.root, str(step.place.path)) in above


def refusal(entry: JournalEntry, reached: Iterable[Reached], standings: Mapping[SkillKey, Standing]) -> Refusal | None:
    """Return why one of the skills *reached* may not be touched as things stand, or None."""
    expected = dict(entry.expected)
    for one in reached:
        why = _against(entry, one, standings[one.key], expected)
        if why is not None:
            return Refusal(key=one.key, code=why[0], what=why[1])
    return None


def _against(
    entry: JournalEntry, one: Reached, standing: Standing, expected: Mapping[SkillKey, str | None]
) -> tuple[SkipCode, str] | None:
    if entry.kind == "bring_back" and entry.by == "user" and not one.appears:
        return None  # ordered by a person, by name where it is pinned; what stands there goes into the archive whole
    if one.appears or (one.key in expected and expected[one.key] is None):
        return ("taken", "a skill stands there again") if standing.there else None
    if standing.pinned:
        return "pinned", "it is pinned"
    if standing.importance is Importance.CRITICAL:
        return "critical", "its importance is critical"
    if entry.kind == "undo":
        return None  # what stands there is ours, to the byte: that was looked at
    if not standing.there:
        return "gone", "it is not in the library any more"
    if standing.broken is not None:
        return "broken", standing.broken
    if not standing.managed:
        return "unmanaged", standing.why or "it was not handed over"
    if expected.get(one.key) not in (None, standing.fingerprint):
        return "edited", "it was edited since this was decided"
    return None


def _package_of(place: Place, entry: JournalEntry, site: Site) -> SkillKey | None:
    """Return which of the entry's own skills *place* belongs to, or None."""
    if place.root != site.root:
        return None
    for key in entry.targets:
        if key.library != site.library:
            continue
        if place.path == key.rel or place.path.startswith(f"{key.rel}/"):
            return key
        if site.layout == "flat" and place.path == f"{key.rel}.md":
            return key
    return None

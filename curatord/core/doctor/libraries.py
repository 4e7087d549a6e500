"""
How a library is: there, readable, writable where something in it is managed, and nobody else at work on it.

A library of which nothing is managed may be read-only and by anybody's side: curatord only looks at it then.
"""

from __future__ import annotations

from collections.abc import Sequence

from curatord.core.cheap import dataclass
from curatord.core.doctor.check import Check, Issue, check_of
from curatord.core.words import plural

__all__ = ["HostCurator", "LibraryFacts", "check_libraries", "check_library"]

SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCurator:
    """The host's own curator (Hermes): *asked* is the setting `host_curator`."""

    enabled: bool
    paused: bool
    at_work: bool
    asked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFacts:
    """
    One configured library.

    Attributes:
        missing: Why it cannot be seen at all, or None.
        conflicts: How it lies to other configured paths in ways that cannot be meant, as (words, hint).
        managed: Skills that curatord may change now; *managed_unknown*: without a database that cannot be told whole.
        unjudged: Why nobody can tell whose its skills are: words for each ownership file that cannot be read.
        writable: None where that was not asked.
        archive_apart: The archive lies on another file system, or None where that cannot be told.
        archive_writable: None where that was not asked.
        unlisted: What could not be listed, in words.
        schedule_unreadable: Words where the host's schedule cannot be read.
        warnings: What was odd in the host's files.
        held: Why nothing in it may be aged now, by what its sources can tell.
        others: Other daemons that curate it, in words.
        recorded: What the last run, scan or round of the daemon found wrong with it and this look does not: a service
            may see less than its user does (bugs B155), or it was mended since.
    """

    name: str
    path: str
    host: str | None
    layout: str
    manage: str
    missing: str | None = None
    conflicts: Sequence[tuple[str, str]] = ()
    skills: int = 0
    managed: int = 0
    managed_unknown: bool = False
    broken: Sequence[str] = ()
    archived: int = 0
    archive: str = ""
    unjudged: Sequence[str] = ()
    writable: bool | None = None
    archive_apart: bool | None = None
    archive_writable: bool | None = None
    unlisted: Sequence[str] = ()
    schedule_unreadable: str | None = None
    warnings: Sequence[str] = ()
    held: Sequence[str] = ()
    curator: HostCurator | None = None
    others: Sequence[str] = ()
    recorded: Sequence[str] = ()

    @property
    def handed_over(self) -> bool:
        """Whether something in it may be changed, now or as soon as an agent makes a skill."""
        return self.managed > 0 or self.manage == "all"


def check_libraries(libraries: Sequence[LibraryFacts]) -> list[Check]:
    """Return one check a library, or the one that there is none."""
    if not libraries:
        issue = Issue(
            level="warning",
            words="no library of skills is configured and none was found, so there is nothing to curate",
            mend="name one under `libraries`, or make a skill with an agent of this machine and run `curatord init`",
        )
        return [check_of("libraries", "", [issue])]
    return [check_library(library) for library in libraries]


def check_library(library: LibraryFacts) -> Check:
    """Return how *library* is."""
    name = f"library {library.name}"
    conflicts = [Issue(level="failure", words=words, mend=hint) for words, hint in library.conflicts]
    if library.missing is not None:
        mend = (
            f"look at its path and its mount, and at the rights of {library.path}; nothing of it is aged meanwhile. "
            "Take it out of `libraries` if it is gone for good"
        )
        gone = Issue(level="failure", words=library.missing, mend=mend)
        return check_of(name, "", [gone, *conflicts])
    managed = "managed not known" if library.managed_unknown else f"{library.managed} managed"
    summary = (
        f"{library.path}: {plural(library.skills, 'skill')} ({managed}), {library.archived} archived, "
        f"{library.layout} layout"
    )
    issues = [
        *conflicts,
        *_rights(library),
        *_recorded(library),
        *_held(library),
        *_ownership(library),
        *_archive(library),
        *_others(library),
    ]
    if library.broken:
        words = f"{plural(len(library.broken), 'broken skill')}: {'; '.join(library.broken[:2])}"
        more = f"; and {len(library.broken) - 2} more" if len(library.broken) > 2 else ""
        issues.append(
            Issue(level="warning", words=words + more, mend="curatord skills --problems; they are never changed")
        )
    details = [
        f"host {library.host or 'unknown'}, `manage: {library.manage}`, archive {library.archive}",
        *(f"passed over: {words}" for words in library.warnings[:SHOWN]),
    ]
    return check_of(name, summary, issues, details)


def _rights(library: LibraryFacts) -> list[Issue]:
    issues = []
    if library.writable is False and library.manage != "none":
        if library.handed_over:
            words = "it cannot be written, though skills in it are managed: it is only looked at"
            mend = (
                f"give this user the right to write {library.path} (a service also needs it among its ReadWritePaths), "
                "or say `manage: none`"
            )
            issues.append(Issue(level="failure", words=words, mend=mend))
        else:
            issues.append(Issue(level="note", words="it cannot be written, and nothing in it is managed"))
    if library.unlisted:
        words = f"not all of it can be listed: {'; '.join(library.unlisted[:2])}"
        mend = "let this user read it; what is not seen is not taken for gone"
        issues.append(Issue(level="warning", words=words, mend=mend))
    return issues


def _held(library: LibraryFacts) -> list[Issue]:
    if not library.held or library.manage == "none":
        return []
    words = f"nothing in it ages: {'; '.join(library.held[:2])}"
    mend = "curatord scan, then the checks of its sources; name under `sources` only places that are there"
    return [Issue(level="warning" if library.handed_over else "note", words=words, mend=mend)]


def _recorded(library: LibraryFacts) -> list[Issue]:
    if not library.recorded or library.manage == "none":
        return []
    words = f"the last scan or run found otherwise: {'; '.join(library.recorded[:2])}"
    mend = (
        "curatord scan, if that was mended since; else the service sees less than you do: add the folder above "
        f"{library.path} to its ReadWritePaths (systemctl --user edit curatord) and restart it"
    )
    return [Issue(level="warning" if library.handed_over else "note", words=words, mend=mend)]


def _ownership(library: LibraryFacts) -> list[Issue]:
    issues = []
    if library.unjudged:
        words = f"whose its skills are cannot be told, so all are protected: {'; '.join(library.unjudged[:2])}"
        mend = "mend that file (the host may have a copy of it), or let this user read it"
        issues.append(Issue(level="failure", words=words, mend=mend))
    if library.schedule_unreadable is not None:
        words = f"the host's schedule cannot be read, so nothing is archived: {library.schedule_unreadable}"
        issues.append(Issue(level="failure", words=words, mend="mend that file, or let this user read it"))
    return issues


def _archive(library: LibraryFacts) -> list[Issue]:
    issues = []
    if library.archive_apart:
        words = f"its archive {library.archive} lies on another file system, so a move there is a copy and a check"
        mend = "set `archive` to a folder on the file system of the library"
        issues.append(Issue(level="warning" if library.handed_over else "note", words=words, mend=mend))
    if library.archive_writable is False and library.manage != "none" and library.handed_over:
        words = f"its archive {library.archive} cannot be made or written, so nothing can be archived"
        mend = "let this user write there, or set `archive` to another folder outside of what hosts scan"
        issues.append(Issue(level="failure", words=words, mend=mend))
    return issues


def _others(library: LibraryFacts) -> list[Issue]:
    issues = []
    if library.others:
        words = f"another curatord is at work on it: {'; '.join(library.others)}"
        mend = (
            "stop one of the two, or take the library out of one's configuration: neither sees what the other decides"
        )
        issues.append(Issue(level="warning" if library.manage == "none" else "failure", words=words, mend=mend))
    curator = library.curator
    if curator is None or library.manage == "none":
        return issues
    if curator.at_work:
        issues.append(Issue(level="note", words="its host's own curator is at work just now; curatord waits for it"))
    if curator.enabled and not curator.paused:
        if curator.asked == "pause":
            issues.append(Issue(level="note", words="its host's own curator is on; the next run pauses it"))
        else:
            words = "its host's own curator is on and works by other rules on the same skills"
            mend = (
                f"set `host_curator: pause` for the library {library.name}, or say `hermes curator pause`; "
                "or `manage: none` here, and leave the work to it"
            )
            issues.append(Issue(level="warning", words=words, mend=mend))
    return issues

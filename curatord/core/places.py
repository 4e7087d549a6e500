"""
How libraries, sources and curatord's own folders lie to each other: what no configuration may mean.

Two libraries at one place would count one skill twice and archive it for the other's reasons; one within the other, or
a source or the state folder within a library, would be read as skills. Paths are compared with all links resolved, so
one reached through a link is found too. Looking is the caller's: this only compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from curatord.core.cheap import dataclass
from curatord.core.library import LibraryProblem
from curatord.core.values import LibraryName

__all__ = ["Place", "conflicts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """
    A configured path: *path* as written, *real* with links resolved.

    *label* names it for people: a library's name, a source's host, or what else it is.
    """

    kind: Literal["library", "source", "state", "archive"]
    label: str
    path: str
    real: str


def conflicts(places: Sequence[Place]) -> list[LibraryProblem]:
    """
    Return every pair that cannot be meant, as problems of the library that is hurt by it.

    Severity `error` stops the start; it is the same whichever of the two is written first.
    """
    found: list[LibraryProblem] = []
    libraries = [place for place in places if place.kind == "library"]
    for index, place in enumerate(libraries):
        for other in libraries[index + 1 :]:
            found += _libraries(place, other)
        for other in places:
            if other.kind != "library":
                found += _inside(place, other)
    return found


def _libraries(one: Place, other: Place) -> list[LibraryProblem]:
    hint = "give each folder of skills to one library only"
    if one.real == other.real:
        through = "" if one.path == other.path else f" ({one.path} and {other.path} are the same folder)"
        words = f"`{one.label}` and `{other.label}` are at one path{through}"
        return [_error(one, "same-path", words, hint), _error(other, "same-path", words, hint)]
    for outer, inner in ((one, other), (other, one)):
        if f"{inner.real}/".startswith(f"{outer.real.rstrip('/')}/"):
            words = f"`{inner.label}` ({inner.path}) lies within `{outer.label}` ({outer.path})"
            return [_error(outer, "nested", words, hint), _error(inner, "nested", words, hint)]
    return []


def _inside(library: Place, other: Place) -> list[LibraryProblem]:
    """Return the problem of something that is no skill within a library; a source *around* one is usual."""
    if not f"{other.real}/".startswith(f"{library.real.rstrip('/')}/"):
        return []
    if other.kind == "archive":
        return _archive_inside(library, other)
    what = {"source": f"the source `{other.label}`", "state": "the state folder"}[other.kind]
    hint = f"move {what} or the library; transcripts and state are no skills"
    return [_error(library, f"{other.kind}-inside", f"{what} ({other.path}) lies within `{library.label}`", hint)]


def _archive_inside(library: Place, archive: Place) -> list[LibraryProblem]:
    """Hermes keeps its own hidden in the library; anywhere else in one, hosts may go on loading what is archived."""
    if archive.label != library.label:
        words = f"the archive of `{archive.label}` ({archive.path}) lies within `{library.label}`"
        return [_error(library, "archive-inside", words, f"set `archive` of `{archive.label}` elsewhere")]
    if archive.real == library.real:
        return [
            _error(library, "archive-is-library", f"`{library.label}` is its own archive", "set `archive` elsewhere")
        ]
    within = archive.real[len(library.real.rstrip("/")) + 1 :]
    if any(part.startswith(".") for part in within.split("/")):
        return []
    words = f"its archive ({archive.path}) is a folder of the library that hosts may look into"
    hint = "set `archive` to a hidden folder or one outside of the library"
    return [
        LibraryProblem(
            library=LibraryName(library.label), code="archive-visible", words=words, severity="note", hint=hint
        )
    ]


def _error(place: Place, code: str, words: str, hint: str) -> LibraryProblem:
    return LibraryProblem(library=LibraryName(place.label), code=code, words=words, severity="error", hint=hint)

"""
The one that changes libraries: what a pass may ask of it.

An action runs `hold` -> read -> `begin` -> `carry_out` -> (the caller commits) -> `finish`. `begin` asks about
ownership, pins and content itself, whoever calls it (promise 2). Between `begin` and `finish` the journal knows the
action; what is found there later is for `recover`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from curatord.core.journal import JournalEntry, MakeDir, Place, Resolution, Seal
from curatord.core.plan import SkipCode
from curatord.core.values import LibraryName, SkillKey
from curatord.errors import InputError

__all__ = [
    "EditedError",
    "FoundPackage",
    "LinkError",
    "Mutator",
    "RefusedError",
    "Site",
    "TakenError",
    "UnreadableIntent",
]


class LinkError(InputError):
    """A part of a path below a root is a link or no folder, so it might lead out."""


class TakenError(InputError):
    """Something stands where something was to go."""


class EditedError(InputError):
    """Something is not what it was when the action was worked out; nothing of the action stays."""


class RefusedError(InputError):
    """The writer itself will not touch *key*, whatever was decided elsewhere."""

    def __init__(self, message: str, *, key: SkillKey, code: SkipCode, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.key = key
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """
    Where a library is.

    Attributes:
        root, archive: Absolute paths of the library and of its archive.
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
class FoundPackage:
    """What stands at a skill's path: a `folder`, a `file` (flat layout) or a `link`; *seal* is its whole content."""

    place: Place
    form: Literal["folder", "file", "link"]
    seal: Seal


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableIntent:
    """An unfinished action whose file cannot be read: a person has to look at *path*."""

    path: str
    error: str


class Mutator(Protocol):
    """Reads what an action needs to know, and carries actions out."""

    def hold(self, site: Site | None) -> AbstractContextManager[None]:
        """Hold the work lock and, for a host's own library, the host's locks and claim; `BusyError` where not had."""
        ...

    def package(self, site: Site, key: SkillKey) -> FoundPackage | None:
        """Return what stands at *key*, or None."""
        ...

    def archived(self, site: Site, path: str) -> FoundPackage | None:
        """Return what stands at *path* in the archive, or None."""
        ...

    def names(self, root: str, path: str = "") -> tuple[str, ...]:
        """Return the sorted names in a folder; empty where there is none."""
        ...

    def names_or_none(self, root: str, path: str) -> tuple[str, ...] | None:
        """Return the sorted names in a folder; None where no folder stands there."""
        ...

    def image(self, place: Place) -> tuple[bytes, int] | None:
        """Return content and permission bits of a file, or None where there is none."""
        ...

    def missing_dirs(self, place: Place) -> tuple[MakeDir, ...]:
        """Return the steps after which *place* has a folder to stand in, outermost first."""
        ...

    def begin(self, entry: JournalEntry, blobs: Iterable[bytes]) -> None:
        """
        Check that every place of *entry* may be touched, keep *blobs*, write the intent; nothing is changed yet.

        Raises:
            RefusedError: Ownership, a pin, importance or content speaks against it now.
        """
        ...

    def carry_out(self, entry: JournalEntry) -> None:
        """Do every step. On an error all is taken back before it is raised; `take_back` failing leaves the intent."""
        ...

    def take_back(self, entry: JournalEntry) -> None:
        """Undo whatever of *entry* was done."""
        ...

    def finish(self, entry: JournalEntry) -> None:
        """Forget the intent: the action is whole and recorded, or never was."""
        ...

    def unfinished(self) -> tuple[JournalEntry | UnreadableIntent, ...]:
        """Return the intents that lie in the journal, oldest first."""
        ...

    def tidy(self) -> None:
        """Clear away what a kill left of our own temporary files; under the lock."""
        ...

    def recover(self, entry: JournalEntry) -> Resolution:
        """
        Bring the files of an unfinished *entry* to before or after, as `core.journal.resolve` says, and return that.

        `Done` and `Redo`: all steps are done now, the records are the caller's. `Undo`: nothing of it is left.
        `Conflict`: nothing was touched.
        """
        ...

    def obstacles(self, entry: JournalEntry) -> tuple[str, ...]:
        """Return, in words, what is not as *entry* left it, so that it cannot be taken back; empty if nothing."""
        ...

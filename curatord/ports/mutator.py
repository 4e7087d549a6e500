"""
The one that changes libraries: what a pass may ask of it.

An action runs `hold` -> read -> `begin` -> `carry_out` -> (the caller commits) -> `finish`. `begin` asks about
ownership, pins and content itself, whoever calls it (promise 2). Between `begin` and `finish` the journal knows the
action; what is found there later is for `recover`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeAlias

from curatord.core.cheap import dataclass
from curatord.core.journal import JournalEntry, MakeDir, Place, Resolution, Seal
from curatord.core.plan import SkipCode, Standing
from curatord.core.reach import Site
from curatord.core.values import ActionId, SkillKey
from curatord.errors import InputError, StateError

__all__ = [
    "EditedError",
    "FoundPackage",
    "LinkError",
    "Look",
    "Mutator",
    "RefusedError",
    "TakenError",
    "UnfinishedError",
    "UnreadableIntent",
]


class LinkError(InputError):
    """A part of a path below a root is a link or no folder, so it might lead out."""


class TakenError(InputError):
    """Something stands where something was to go."""


# What is true of each of some skills, read from disk at the moment of asking. Every key that was asked for is in the
# answer. One call for many, since a look at a library costs the same for one skill as for all of them.
Look: TypeAlias = Callable[[Sequence[SkillKey]], Mapping[SkillKey, Standing]]


class EditedError(InputError):
    """Something is not what it was when the action was worked out; nothing of the action stays."""


class UnfinishedError(StateError):
    """It broke half-way and could not even be taken back; its intent waits for the next start."""


class RefusedError(InputError):
    """The writer itself will not touch *key*, whatever was decided elsewhere."""

    def __init__(self, message: str, *, key: SkillKey, code: SkipCode, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.key = key
        self.code = code


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

    def seal(self, place: Place) -> Seal | None:
        """Return the seal of what stands at *place*, or None."""
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
        """
        Do every step. On an error all is taken back before it is raised.

        Raises:
            UnfinishedError: It could not be taken back either.
        """
        ...

    def take_back(self, entry: JournalEntry) -> None:
        """Undo whatever of *entry* was done."""
        ...

    def finish(self, entry: JournalEntry) -> None:
        """Forget the intent: the action is whole and recorded, or never was."""
        ...

    def stage(self, action_id: ActionId, site: Site) -> AbstractContextManager[tuple[Place, int, os.stat_result]]:
        """
        Give room for a whole copy of a package that *action_id* will move into *site*, under the lock.

        Yields the place to make it at, the open folder of that place, and whose it shall be. What is left there when
        the action is over, or never began, is removed.
        """
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

    def pause_host(self, site: Site) -> bool:
        """
        Pause the host's own curator of this library, under the lock; return whether that changed anything.

        It is one field in one file, put there in one step, so it needs no journal; `hermes curator resume` takes it
        back. A library of another host has no such thing: False.

        Raises:
            InputError: The host's file cannot be read; it is left as it is.
        """
        ...

    def drop_blobs(self, in_use: Collection[str]) -> int:
        """Remove kept bytes that no recorded and no unfinished action refers to; return how many. Under the lock."""
        ...

    def obstacles(self, entry: JournalEntry) -> tuple[str, ...]:
        """Return, in words, what is not as *entry* left it, so that it cannot be taken back; empty if nothing."""
        ...

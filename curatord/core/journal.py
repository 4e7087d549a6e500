"""
What an unfinished action means, and how an action is taken back.

*Wanted.* An action (archive a skill, merge nine into one) touches several files, two of them the host's, and our own
database. A kill at any instant must leave all of it or nothing (promise 7), and everything done must be undoable byte
for byte.

*What can go wrong.* No file system renames three things at once. Between any two effects the machine may stop; before
the next start somebody may edit, move or delete what we were working on; the database may be lost altogether.

*The plan.* Before the first effect the whole action is written down as a `JournalEntry` and synced: every `Step` with
its place, what stands there before and what shall stand there after. Steps are such that looking at a place tells
whether the step was done (`Sighting`). Bytes that will be overwritten lie in the blob store by then. When the steps
are done, one database transaction records the entry, and the intent file is removed. So at any start:

- no intent file: before or after, and the database knows which;
- an intent file: `resolve` compares it with what is there. Nothing done: the action never was; the intent is dropped,
  and whoever wanted it may want it again, on fresh facts. Something done: the rest is done too, if it still may be, or
  else what was done is taken back. All done: only the database is behind.
- something there that is neither before nor after: nobody can know what was meant. The entry is kept, that skill is
  left alone until a person has looked, all others go on.

A package that moves is known by its *seal* (a hash over every path, type, mode, link target and byte of the tree),
not by its library fingerprint, which leaves out what does not matter to a model.

Undoing is an action like any other: its steps are the `inverse` of the steps, last first, and it is journaled.

*Unsure.* Whether a person's edit in the window between a kill and the next start should ever be merged with what was
half done. It is not: the edit is kept and the human is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NewType, TypeAlias, assert_never

import msgspec

from curatord.core.cheap import dataclass
from curatord.core.skill_record import SkillRecord
from curatord.core.values import ActionId, BlobId, Fingerprint, LibraryName, RelPath, RunId, SkillKey, State

__all__ = [
    "ArchiveChange",
    "ArchiveItem",
    "Conflict",
    "Done",
    "EditItem",
    "FieldEdit",
    "FileImage",
    "HistoryChange",
    "JournalEntry",
    "MakeDir",
    "MovePackage",
    "Place",
    "RecordChange",
    "Redo",
    "RemoveDir",
    "Resolution",
    "Seal",
    "SetLine",
    "Sighting",
    "Step",
    "Undo",
    "WriteFile",
    "describe",
    "entry_from_json",
    "entry_to_json",
    "inverse",
    "place_of",
    "resolve",
]

Seal = NewType("Seal", str)  # lower-case hex of SHA-256 over a whole tree: paths, types, modes, links, bytes


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """
    A path below a root that was given by the configuration; no part of *path* may be a link when it is used.

    Raises:
        ValueError: *root* is not absolute, or *path* might lead out of it.
    """

    root: str
    path: RelPath

    def __post_init__(self) -> None:
        parts = self.path.split("/")
        if not self.root.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in self.path:
            raise ValueError(f"not a place below a root: {self.root!r}, {self.path!r}")

    def __str__(self) -> str:
        return f"{self.root}/{self.path}"


class FileImage(msgspec.Struct, frozen=True, kw_only=True):
    """Content and permission bits of one file; the bytes lie in the blob store."""

    blob: BlobId
    mode: int


class MakeDir(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="make_dir"):
    """A folder appears; one that is there already is left as it is."""

    place: Place
    mode: int = 0o755


class RemoveDir(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="remove_dir"):
    """A folder that we made goes away, if it is empty; else it stays, and that is fine too."""

    place: Place
    mode: int = 0o755


class MovePackage(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="move"):
    """A whole package (folder, link or single file) goes from *source* to *target*, where nothing may stand."""

    source: Place
    target: Place
    seal: Seal


class WriteFile(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="write"):
    """One file changes from *before* to *after*; None means that there is no file."""

    place: Place
    before: FileImage | None
    after: FileImage | None


class FieldEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A field of somebody's JSON object, as JSON text before and after; None means that the field is absent."""

    name: str
    before: str | None
    after: str | None


class EditItem(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="edit"):
    """
    Fields of one item in a file that belongs to the host change, under the host's lock; all else in it stays.

    *format* `usage`: the record named *item* in `.usage.json`. `jobs`: the job with id *item* in `cron/jobs.json`.
    Where *item_there* is False the record is made, and goes again with the last of our fields when this is undone;
    the same holds for the file and *file_there*.
    """

    file: Place
    format: Literal["usage", "jobs"]
    item: str
    edits: tuple[FieldEdit, ...]
    item_there: bool = True
    file_there: bool = True


class SetLine(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="line"):
    """A line is, or is not, in a list of names that belongs to the host (`.curator_suppressed`)."""

    file: Place
    line: str
    before: bool
    after: bool
    file_there: bool = True


Step: TypeAlias = MakeDir | RemoveDir | MovePackage | WriteFile | EditItem | SetLine


class RecordChange(msgspec.Struct, frozen=True, kw_only=True):
    """
    Our record of a skill, whole, before and after; only the fields that differ are written.

    Both are whole because the database may be a new one by the time this is carried out. *written* says that our own
    write changed the content: the fingerprints we trust and have seen are then those of what stands on disk after it.
    """

    key: SkillKey
    before: SkillRecord | None
    after: SkillRecord
    written: bool = False


class ArchiveItem(msgspec.Struct, frozen=True, kw_only=True):
    """
    One package in an archive, and where it came from.

    *path* is its entry below the archive folder, *key* where it stood and where it goes back to.
    """

    key: SkillKey
    path: RelPath
    at: datetime
    reason: str
    action_id: ActionId
    absorbed_into: str | None = None
    fingerprint: Fingerprint | None = None


class ArchiveChange(msgspec.Struct, frozen=True, kw_only=True):
    """An archive item appears (*before* None) or goes (*after* None)."""

    before: ArchiveItem | None
    after: ArchiveItem | None


class HistoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a skill's history, as `explain` shows it."""

    key: SkillKey
    from_state: State | None
    to_state: State
    reason: str


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """
    One action, complete: what it does to files, in order, and what it changes in our own records.

    Attributes:
        kind: The action's own word (`archive`, `merge`, …) or `undo`.
        by: Who wanted it: `rules`, `model`, `user`.
        expected: Fingerprints it was decided on; None: nothing stood there.
        after: Fingerprints of what it left, taken from the disk when all was done.
        undoes: The action that this one takes back.
        proposal: Id of the proposal it carries out, if any; an undo of it counts as a rejection.
    """

    action_id: ActionId
    run_id: RunId | None
    at: datetime
    kind: str
    by: str
    library: LibraryName
    targets: tuple[SkillKey, ...]
    summary: str
    reason: str
    steps: tuple[Step, ...] = ()
    changes: tuple[RecordChange, ...] = ()
    archive: tuple[ArchiveChange, ...] = ()
    history: tuple[HistoryChange, ...] = ()
    expected: tuple[tuple[SkillKey, Fingerprint | None], ...] = ()
    after: tuple[tuple[SkillKey, Fingerprint | None], ...] = ()
    undoes: ActionId | None = None
    proposal: str | None = None
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """
    What a look at a step's places told.

    Attributes:
        what: `before` or `after` the step; `half`: a package stands whole at both ends of a move across file systems,
            so it may be finished or taken back; `edited`: surely not done, but what it starts from is another content
            now; `other`: neither, nobody can tell; `unreadable`: could not look.
        found: In words, for whoever has to settle it.
    """

    what: Literal["before", "after", "half", "edited", "other", "unreadable"]
    found: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """All steps are done; the records are still to be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redo:
    """Some steps are done; *steps*, in order, are still to be done."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """What was done is to be taken back by *steps*, in order; then the action never was. Empty: nothing was done."""

    steps: tuple[Step, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Neither before nor after: *where*, what was *expected* there, and what was *found*."""

    where: str
    expected: str
    found: str


Resolution: TypeAlias = Done | Redo | Undo | Conflict


def resolve(entry: JournalEntry, seen: Sequence[Sighting], *, may_go_on: bool = True, why_not: str = "") -> Resolution:
    """
    Return what is to become of an unfinished *entry*.

    Args:
        entry: As it was written before its first effect.
        seen: One sighting for each of its steps, in order.
        may_go_on: What is left to do would still be allowed now (pins, ownership, content).
        why_not: The reason where it would not.

    Raises:
        ValueError: *seen* has another length than the steps.
    """
    pairs = list(zip(entry.steps, seen, strict=True))
    for step, sighting in pairs:
        if sighting.what == "unreadable":
            return Conflict(where=describe(step), expected="to be looked at", found=sighting.found)
    # A folder that is there proves nothing: it may have been there before; nor does one that is not there any more.
    done = [
        step
        for step, sighting in pairs
        if sighting.what in ("after", "half") and not isinstance(step, MakeDir | RemoveDir)
    ]
    # A folder that is not empty yet looks as if it were to stay; whether it may go is only known in its turn.
    open_ = [step for step, sighting in pairs if sighting.what in ("before", "half") or isinstance(step, RemoveDir)]
    for step, sighting in pairs:
        if sighting.what == "other":
            return Conflict(where=describe(step), expected="the state before or after this step", found=sighting.found)
    if all(sighting.what == "after" for sighting in seen):
        return Done()
    if not done:
        made = [step for step, sighting in pairs if isinstance(step, MakeDir) and sighting.what == "after"]
        return Undo(steps=inverse(made), why="nothing had been done yet")
    edited = next((sighting for _, sighting in pairs if sighting.what == "edited"), None)
    if edited is not None or not may_go_on:
        undone = [step for step, sighting in pairs if sighting.what in ("after", "half")]
        return Undo(steps=inverse(undone), why=why_not if edited is None else edited.found)
    return Redo(steps=tuple(open_))


def inverse(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps that take *steps* back, last first."""
    return tuple(_inverse(step) for step in reversed(steps))


def _inverse(step: Step) -> Step:
    match step:
        case MakeDir():
            return RemoveDir(place=step.place, mode=step.mode)
        case RemoveDir():
            return MakeDir(place=step.place, mode=step.mode)
        case MovePackage():
            return MovePackage(source=step.target, target=step.source, seal=step.seal)
        case WriteFile():
            return WriteFile(place=step.place, before=step.after, after=step.before)
        case EditItem():
            return msgspec.structs.replace(
                step, edits=tuple(FieldEdit(name=e.name, before=e.after, after=e.before) for e in step.edits)
            )
        case SetLine():
            return msgspec.structs.replace(step, before=step.after, after=step.before)
        case _:
            assert_never(step)


def describe(step: Step) -> str:
    """Return *step* in words a user can act on."""
    match step:
        case MakeDir():
            return f"make the folder {step.place}"
        case RemoveDir():
            return f"remove the empty folder {step.place}"
        case MovePackage():
            return f"move {step.source} to {step.target}"
        case WriteFile():
            return f"write {step.place}" if step.after is not None else f"take {step.place} away again"
        case EditItem():
            names = ", ".join(edit.name for edit in step.edits)
            return f"set {names} of {step.item} in {step.file}"
        case SetLine():
            return f"{'add' if step.after else 'take'} {step.line} {'to' if step.after else 'out of'} {step.file}"
        case _:
            assert_never(step)


def place_of(step: Step) -> tuple[Place, ...]:
    """Return the places that *step* writes to, the one it takes from first."""
    match step:
        case MakeDir() | RemoveDir() | WriteFile():
            return (step.place,)
        case MovePackage():
            return (step.source, step.target)
        case EditItem() | SetLine():
            return (step.file,)
        case _:
            assert_never(step)


def entry_to_json(entry: JournalEntry) -> bytes:
    """Return *entry* as JSON, as the intent file and the database keep it."""
    return msgspec.json.encode(entry)


def entry_from_json(data: bytes) -> JournalEntry:
    """Return the entry in *data*; anything else is a `ValueError` that says where it differs."""
    return msgspec.json.decode(data, type=JournalEntry)

"""What an unfinished action means: every mixture of done, undone, edited and lost steps."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest

from curatord.core.journal import (
    Conflict,
    Done,
    EditItem,
    FieldEdit,
    FileImage,
    JournalEntry,
    MakeDir,
    MovePackage,
    Place,
    Redo,
    RemoveDir,
    Seal,
    SetLine,
    Sighting,
    Step,
    Undo,
    WriteFile,
    describe,
    entry_from_json,
    entry_to_json,
    inverse,
    place_of,
    resolve,
)
from curatord.core.values import ActionId, BlobId, LibraryName, RelPath, SkillKey

KEY = SkillKey(library=LibraryName("lib"), rel=RelPath("a"))


def place(path: str, root: str = "/lib") -> Place:
    return Place(root=root, path=RelPath(path))


IMAGE = FileImage(blob=BlobId("b"), mode=0o644)
STEPS: tuple[Step, ...] = (
    MakeDir(place=place("new")),
    WriteFile(place=place("new/SKILL.md"), before=None, after=IMAGE),
    EditItem(
        file=place(".usage.json"),
        format="usage",
        item="a",
        edits=(FieldEdit(name="state", before='"active"', after='"archived"'),),
    ),
    SetLine(file=place(".curator_suppressed"), line="a", before=False, after=True),
    MovePackage(source=place("a"), target=place("a", "/archive"), seal=Seal("s")),
)


def entry(*steps: Step) -> JournalEntry:
    return JournalEntry(
        action_id=ActionId("a1"),
        run_id=None,
        at=datetime(2026, 3, 1, tzinfo=UTC),
        kind="merge",
        by="model",
        library=LibraryName("lib"),
        targets=(KEY,),
        summary="s",
        reason="r",
        steps=steps or STEPS,
    )


def see(*words: str) -> list[Sighting]:
    return [Sighting(what=word, found="f") for word in words]  # type: ignore[arg-type]


B, A, E, X, U, H = "before", "after", "edited", "other", "unreadable", "half"


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ((A, A, A, A, A), Done()),
        ((B, B, B, B, B), Undo(steps=(), why="nothing had been done yet")),
        ((A, B, B, B, B), Undo(steps=inverse(STEPS[:1]), why="nothing had been done yet")),
        ((A, A, B, B, B), Redo(steps=STEPS[2:])),
        ((A, A, A, A, B), Redo(steps=STEPS[4:])),
        ((A, A, A, A, E), Undo(steps=inverse(STEPS[:4]), why="f")),
        ((B, B, B, B, E), Undo(steps=(), why="nothing had been done yet")),
        ((A, A, A, A, H), Redo(steps=STEPS[4:])),
        ((A, B, B, B, H), Redo(steps=STEPS[1:])),
    ],
)
def test_what_becomes_of_it(seen: tuple[str, ...], expected: object) -> None:
    """Nothing done: it never was. Something done: the rest too, unless what is left was edited. All done: done."""
    assert expected == resolve(entry(), see(*seen))


def test_what_may_not_go_on_is_taken_back() -> None:
    """A pin set since the kill: what was done is undone, last first."""
    found = resolve(entry(), see(A, A, A, B, B), may_go_on=False, why_not="it is pinned")

    assert Undo(steps=inverse(STEPS[:3]), why="it is pinned") == found


def test_doubt_is_a_conflict_in_every_mixture() -> None:
    """One step of which nobody can tell, or that cannot be looked at, and nothing at all is done."""
    for words in itertools.product((B, A, E, X, U), repeat=5):
        found = resolve(entry(), see(*words))
        assert isinstance(found, Conflict) == bool({X, U} & set(words)), words


def test_a_folder_of_ours_goes_in_its_turn() -> None:
    """A folder that still holds the package is asked again once the package has left."""
    steps: tuple[Step, ...] = (
        MovePackage(source=place("a/a.md", "/archive"), target=place("a.md"), seal=Seal("s")),
        RemoveDir(place=place("a", "/archive")),
        WriteFile(place=place("x"), before=None, after=IMAGE),
    )

    assert Redo(steps=steps[:2]) == resolve(entry(*steps), see(B, A, A))
    assert Undo(steps=(), why="nothing had been done yet") == resolve(entry(*steps), see(B, A, B))


def test_inverse_of_the_inverse() -> None:
    """Taking back what was taken back is the thing itself."""
    assert STEPS == inverse(inverse(STEPS))
    assert STEPS[::-1] == tuple(inverse((step,))[0] for step in inverse(STEPS))


def test_entries_survive_json() -> None:
    """The intent file gives back the very entry; anything else is a `ValueError`."""
    assert entry() == entry_from_json(entry_to_json(entry()))
    with pytest.raises(ValueError, match="truncated"):
        entry_from_json(entry_to_json(entry())[:-1])
    with pytest.raises(ValueError, match="delete"):
        entry_from_json(entry_to_json(entry()).replace(b'"step":"move"', b'"step":"delete"'))


def test_sightings_are_one_for_each_step() -> None:
    """Another number of them is our own bug, and is said."""
    with pytest.raises(ValueError, match="shorter"):
        resolve(entry(), see(A))


@pytest.mark.parametrize("step", [*STEPS, *inverse(STEPS)], ids=lambda step: type(step).__name__)
def test_steps_are_told_with_their_places(step: Step) -> None:
    """A person who has to settle a conflict is told the path."""
    assert str(place_of(step)[0]) in describe(step)

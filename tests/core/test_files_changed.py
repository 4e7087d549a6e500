"""What a run says it did to files: every move, every new and changed file, relative to its library, each once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from curatord.core.files_changed import FileRow, files_changed
from curatord.core.journal import (
    EditItem,
    FileImage,
    JournalEntry,
    MakeDir,
    MovePackage,
    Place,
    RemoveDir,
    Seal,
    SetLine,
    Step,
    WriteFile,
)
from curatord.core.values import ActionId, BlobId, LibraryName, RelPath, SkillKey

LIB = LibraryName("lib")
ROOT = "/home/u/.claude/skills"
IMAGE = FileImage(blob=BlobId("b"), mode=0o644)


def place(path: str, root: str = ROOT) -> Place:
    return Place(root=root, path=RelPath(path))


def entry(*steps: Step) -> JournalEntry:
    return JournalEntry(
        action_id=ActionId("a"),
        run_id=None,
        at=datetime(2026, 3, 1, tzinfo=UTC),
        kind="merge",
        by="rules",
        library=LIB,
        targets=(SkillKey(library=LIB, rel=RelPath("x")),),
        summary="s",
        reason="r",
        steps=steps,
    )


def row(what: str, path: str, to: str | None = None) -> FileRow:
    return FileRow(library="lib", what=what, path=path, to=to)  # type: ignore[arg-type]  # one of the four


@pytest.mark.parametrize(
    ("steps", "rows"),
    [
        (
            [
                MakeDir(place=place(".skills-archive", "/home/u/.claude")),
                MovePackage(
                    source=place("cat/x"), target=place("x", "/home/u/.claude/.skills-archive"), seal=Seal("s")
                ),
                RemoveDir(place=place("cat")),
            ],
            [row("moved", "cat/x", "../.skills-archive/x")],
        ),
        (
            [
                WriteFile(place=place("x/a"), before=None, after=IMAGE),
                WriteFile(place=place("x/b"), before=IMAGE, after=IMAGE),
                WriteFile(place=place("x/c"), before=IMAGE, after=None),
            ],
            [row("created", "x/a"), row("written", "x/b"), row("removed", "x/c")],
        ),
        (
            [
                EditItem(file=place(".usage.json"), format="usage", item="x", edits=(), file_there=False),
                EditItem(file=place(".usage.json"), format="usage", item="y", edits=()),
                EditItem(file=place("cron/jobs.json", "/home/u/.claude"), format="jobs", item="j", edits=()),
                SetLine(file=place(".curator_suppressed"), line="x", before=False, after=True),
            ],
            [row("created", ".usage.json"), row("written", "../cron/jobs.json"), row("written", ".curator_suppressed")],
        ),
    ],
    ids=["moves", "writes", "host files"],
)
def test_steps_are_told(steps: list[Step], rows: list[FileRow]) -> None:
    """Folders say nothing; a file that is edited twice, or made and then edited, is one row."""
    assert rows == list(files_changed([entry(*steps)], {"lib": ROOT}))


def test_a_library_that_nobody_knows_any_more_is_told_with_its_paths() -> None:
    """Nothing is left out because there is no root to be relative to."""
    step = WriteFile(place=place("x/a"), before=IMAGE, after=IMAGE)

    assert [row("written", f"{ROOT}/x/a")] == list(files_changed([entry(step), entry(step)], {}))

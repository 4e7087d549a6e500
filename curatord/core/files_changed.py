"""
What actions did to files, told so that `git status` can be held against it: every path that moved, appeared or changed.

Paths are relative to their library, whatever lies beside it as `../…`: a library is often (in) a git work tree, where
they read as git shows them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Literal

from curatord.core.cheap import dataclass
from curatord.core.journal import EditItem, JournalEntry, MovePackage, Place, SetLine, WriteFile

__all__ = ["FileRow", "files_changed"]

What = Literal["moved", "created", "written", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A package that was *moved* from *path* to *to*, or a file that was *created*, *written* or *removed*."""

    library: str
    what: What
    path: str
    to: str | None = None


def files_changed(entries: Iterable[JournalEntry], roots: dict[str, str]) -> tuple[FileRow, ...]:
    """
    Return what *entries*, oldest first, did to files; a file that several wrote is told once.

    Args:
        roots: The absolute path of each library; entries of another are told with absolute paths.
    """
    rows: dict[FileRow, None] = {}
    for entry in entries:
        root = roots.get(entry.library)
        for step in entry.steps:
            row: FileRow | None = None
            what: What
            match step:
                case MovePackage():
                    row = FileRow(
                        library=entry.library, what="moved", path=_rel(step.source, root), to=_rel(step.target, root)
                    )
                case WriteFile():
                    what = "created" if step.before is None else "removed" if step.after is None else "written"
                    row = FileRow(library=entry.library, what=what, path=_rel(step.place, root))
                case EditItem() | SetLine():
                    what = "written" if step.file_there else "created"
                    row = FileRow(library=entry.library, what=what, path=_rel(step.file, root))
                case _:
                    pass  # an empty folder is nothing to git, nor to a host
            if row is not None:
                rows[row] = None
    created = {(row.library, row.path) for row in rows if row.what == "created"}
    return tuple(row for row in rows if row.what != "written" or (row.library, row.path) not in created)


def _rel(place: Place, root: str | None) -> str:
    return str(place) if root is None else posixpath.relpath(str(place), root)

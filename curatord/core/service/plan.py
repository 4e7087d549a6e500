"""
What installing and uninstalling mean for each file, decided from what is there: nothing is ever overwritten unseen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from curatord.core.cheap import dataclass
from curatord.core.service.mark import standing_of

__all__ = ["FileChange", "install", "uninstall"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """
    What is to be done with one file.

    Attributes:
        act: `write` (nothing is there), `replace` (with `keep_as`: after setting the old one aside), `remove`, `keep`
            (it is as wanted, or not there to be removed), `refuse`.
        reason: In words, for `keep` and `refuse`.
        keep_as: Where a changed file goes before it is replaced.
    """

    path: str
    act: Literal["write", "replace", "remove", "keep", "refuse"]
    text: str = ""
    reason: str = ""
    keep_as: str = ""


def install(wanted: Mapping[str, str], there: Mapping[str, str | None], *, replace: bool) -> Sequence[FileChange]:
    """
    Return what to do with each file of *wanted*, by path, where *there* is what stands at it now (None: nothing).

    *replace*: one that was changed or is not ours is set aside as `NAME.before` and replaced, instead of refused.
    """
    changes = []
    for path, text in wanted.items():
        found = there[path]
        if found is None:
            changes.append(FileChange(path=path, act="write", text=text))
        elif found == text:
            changes.append(FileChange(path=path, act="keep", text=text, reason="as it should be"))
        elif standing_of(found) == "ours":
            changes.append(FileChange(path=path, act="replace", text=text))
        elif replace:
            changes.append(FileChange(path=path, act="replace", text=text, keep_as=f"{path}.before"))
        else:
            changes.append(FileChange(path=path, act="refuse", text=text, reason=_why(found)))
    return changes


def uninstall(paths: Sequence[str], there: Mapping[str, str | None]) -> Sequence[FileChange]:
    """Return what to do with each of *paths*: only what was written by us and not changed since goes."""
    changes = []
    for path in paths:
        found = there[path]
        if found is None:
            changes.append(FileChange(path=path, act="keep", reason="not there"))
        elif standing_of(found) == "ours":
            changes.append(FileChange(path=path, act="remove"))
        else:
            changes.append(FileChange(path=path, act="refuse", reason=_why(found)))
    return changes


def _why(found: str) -> str:
    return "changed since it was written" if standing_of(found) == "changed" else "not written by this command"

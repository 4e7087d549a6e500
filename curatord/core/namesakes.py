"""
Which skills a session may have meant by a name.

Names are compared by `fold_name`, since hosts spell them by folder, by header or by what was typed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from curatord.core.values import LibraryName, SkillKey

__all__ = ["Namesakes", "fold_name"]

_PLAIN = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*").fullmatch  # as nearly all names are: they fold to themselves
_SEPARATORS = str.maketrans("_-/", "   ")


def fold_name(name: str) -> str:
    """
    Return *name* without what the contract calls a difference only in case, spaces, `_` or Unicode form.

    The result holds no `/`, not even where a look-alike of it folds to one.
    """
    if _PLAIN(name):
        return name
    # Nothing of ASCII has another form than its lower case.
    if name.isascii():
        folded = name.lower()
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "-".join(folded.translate(_SEPARATORS).split())


def _fold_path(path: str) -> str:
    return "/".join([fold_name(part) for part in path.split("/")]) if "/" in path else fold_name(path)


class Namesakes:
    """Which skills a session may have meant by a name."""

    def __init__(self, keys: Iterable[SkillKey]) -> None:
        self._by_name: dict[str, list[SkillKey]] = {}
        for key in keys:
            self._by_name.setdefault(fold_name(key.name), []).append(key)

    def meant(self, library: LibraryName | None, skill: str) -> tuple[SkillKey, ...]:
        """Return the skills, in the order they were given in, that *skill* means in *library*, or anywhere (None)."""
        path = _fold_path(skill)
        namesakes = tuple(
            key for key in self._by_name.get(path.rpartition("/")[2], ()) if library is None or key.library == library
        )
        exact = tuple(key for key in namesakes if f"/{_fold_path(key.rel)}".endswith(f"/{path}")) if "/" in path else ()
        return exact or namesakes

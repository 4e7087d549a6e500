"""Which skills a session may have meant by a name."""

from __future__ import annotations

import pytest

from curatord.core.namesakes import Namesakes, fold_name
from curatord.core.values import LibraryName, RelPath, SkillKey

KEYS = [
    SkillKey(library=LibraryName(library), rel=RelPath(rel)) for library, rel in [("a", "x"), ("a", "c/x"), ("b", "X")]
]


@pytest.mark.parametrize(
    ("library", "skill", "meant"),
    [
        (None, "x", KEYS),
        ("a", "x", KEYS[:2]),
        (None, "c/X", [KEYS[1]]),
        (None, "d/x", KEYS),
        ("b", "c/x", [KEYS[2]]),
        (None, "y", []),
    ],
)
def test_a_path_goes_before_a_name(library: str | None, skill: str, meant: list[SkillKey]) -> None:
    """A path that fits is exact; one that fits nowhere counts as its last part; the library narrows."""
    found = Namesakes(KEYS).meant(LibraryName(library) if library else None, skill)

    assert meant == list(found)


@pytest.mark.parametrize("name", ["Foo_Bar baz", "a--b", " x ", "UPPER", "a/b"])
def test_names_of_ascii_fold_as_all_others_do(name: str) -> None:
    """The quick way gives what the long one gives: a letter outside of ASCII takes the long one."""
    assert fold_name(name + "é") == fold_name(name).rstrip("-") + ("-é" if name.endswith(" ") else "é")

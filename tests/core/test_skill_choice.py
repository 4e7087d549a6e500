"""Which skill and which run a person means."""

from __future__ import annotations

import pytest

from curatord.core.skill_choice import choose_run, choose_skill
from curatord.core.values import LibraryName, RelPath, RunId, SkillKey
from curatord.errors import UsageError


def key(text: str) -> SkillKey:
    """Return the key `library/path`."""
    library, _, rel = text.partition("/")
    return SkillKey(library=LibraryName(library), rel=RelPath(rel))


KNOWN = [
    key(text) for text in ("claude/pdf", "hermes/data/csv", "hermes/ops/pdf", "hermes/ops/csv", "pi/notes", "x/y/z")
]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("notes", "pi/notes"),
        ("pi/notes", "pi/notes"),
        ("claude/pdf", "claude/pdf"),
        ("hermes/pdf", "hermes/ops/pdf"),
        ("ops/pdf", "hermes/ops/pdf"),
        ("hermes/data/csv", "hermes/data/csv"),
        ("data/csv", "hermes/data/csv"),
        ("z", "x/y/z"),
    ],
)
def test_a_skill_is_known_by_any_name_that_is_its_alone(said: str, expected: str) -> None:
    """Name, category/name, library/name, library/category/name."""
    assert key(expected) == choose_skill(said, KNOWN)


@pytest.mark.parametrize(
    ("said", "choices"),
    [
        ("pdf", "claude/pdf, hermes/ops/pdf"),
        ("csv", "hermes/data/csv, hermes/ops/csv"),
        ("hermes/csv", "hermes/ops/csv"),
    ],
)
def test_an_ambiguous_name_lists_the_choices(said: str, choices: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(UsageError, match="several") as caught:
        choose_skill(said, KNOWN)

    assert choices in str(caught.value)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("note", "pi/notes"),
        ("PDF", "claude/pdf"),
        ("hermes/ops/psf", "hermes/ops/pdf"),
        ("qqqq", "curatord skills"),
        ("", "skills"),
    ],
)
def test_an_unknown_name_brings_near_ones(said: str, hint: str) -> None:
    """A slip of the finger, also in case, names what was likely meant."""
    with pytest.raises(UsageError, match="there is no skill") as caught:
        choose_skill(said, KNOWN)

    assert hint in caught.value.hint


def test_a_whole_name_wins_over_anothers_short_one() -> None:
    """`a/b` is the skill b of the library a, though another library has a category a with a b."""
    assert key("a/b") == choose_skill("a/b", [key("a/b"), key("c/a/b")])


RUNS = [RunId(text) for text in ("20260301-100000-10", "20260301-100000-9", "20260301-100000", "20260201-000000")]


@pytest.mark.parametrize(("said", "expected"), [("last", "20260301-100000-10"), ("20260201-000000", "20260201-000000")])
def test_a_run_is_known_by_its_id_or_as_the_last(said: str, expected: str) -> None:
    """The tenth run of one second comes after the ninth."""
    assert expected == choose_run(said, RUNS)


@pytest.mark.parametrize(
    ("said", "known", "hint"), [("last", [], "--dry-run"), ("2026", RUNS, "-10?"), ("x", RUNS, "runs")]
)
def test_an_unknown_run_says_how_to_find_one(said: str, known: list[RunId], hint: str) -> None:
    """No run yet, half an id, nonsense."""
    with pytest.raises(UsageError, match="no run") as caught:
        choose_run(said, known)

    assert hint in caught.value.hint

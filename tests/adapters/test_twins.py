"""Twin problems that are kept: they hold for the skills they were found among, and for no others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.adapters.store import Database, open_database
from curatord.adapters.store.twins import StoredTwins
from curatord.core.library import Skill, SkillContent
from curatord.core.skill_quality import twins_among
from curatord.core.small_facts import TWINS
from curatord.core.twin_digest import Listed, twin_digest
from curatord.core.values import LibraryName, RelPath, SkillKey

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LONG = "Fill PDF forms with pypdf and check that every field of the form was really written to the file"


def a_skill(rel: str, description: str, *, library: str = "lib") -> Skill:
    """Return a skill as it is listed."""
    return Skill(
        key=SkillKey(library=LibraryName(library), rel=RelPath(rel)),
        path=f"/{library}/{rel}",
        form="folder",
        content=SkillContent(description=description),
    )


ALIKE: list[Listed] = [("host", [a_skill("a", LONG), a_skill("b", f"{LONG} again"), a_skill("c", "Deploy it")])]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path, now=NOW)
    yield opened
    opened.close()


def kept(database: Database) -> str:
    """Return what stands in the database."""
    (value,) = database.connection.execute("SELECT value FROM meta WHERE key = ?", (TWINS,)).fetchone()
    return str(value)


def put(database: Database, value: str) -> None:
    """Let something else stand there."""
    with database.transaction() as connection:
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (TWINS, value))


def test_what_was_found_is_told_again(database: Database) -> None:
    """The second answer is the first one, and comes from what is kept."""
    first = StoredTwins(database)(ALIKE)
    put(database, kept(database).replace("nearly", "almost"))
    again = StoredTwins(database)(ALIKE)

    assert twins_among(ALIKE) == first
    assert {key: [p.words.replace("nearly", "almost") for p in told] for key, told in first.items()} == {
        key: [problem.words for problem in told] for key, told in again.items()
    }


@pytest.mark.parametrize(
    "rubbish",
    ["", "[]", "null", '["x", [[0, "a", "b"]]]', '["DIGEST", [[3, "a", "b"]]]', '["DIGEST", [[-1, "a", "b"]]]'],
)
def test_rubbish_is_found_anew(database: Database, rubbish: str) -> None:
    """What is kept and is no finding of these skills is not believed, and is put right."""
    put(database, rubbish.replace("DIGEST", twin_digest(ALIKE)))

    assert twins_among(ALIKE) == StoredTwins(database)(ALIKE)
    assert kept(database).startswith(f'["{twin_digest(ALIKE)}"')


def test_a_command_that_only_looks_keeps_nothing(tmp_path: Path) -> None:
    """Opened read-only, the answer is the same and nothing is written."""
    open_database(tmp_path, now=NOW).close()
    looking = open_database(tmp_path, now=NOW, read_only=True)
    told = StoredTwins(looking)(ALIKE)
    row = looking.connection.execute("SELECT value FROM meta WHERE key = ?", (TWINS,)).fetchone()
    looking.close()

    assert twins_among(ALIKE) == told
    assert None is row


WORDS = st.text(st.sampled_from("ab,0 \0\u00e9\ud800"), max_size=4)
LISTED = st.lists(
    st.tuples(WORDS, st.lists(st.builds(a_skill, st.sampled_from(["a", "b", "a/b"]), WORDS), max_size=3)), max_size=3
)


def looked_at(listed: list[Listed]) -> list[object]:
    """Return all that twins follow from."""
    return [(scope, [(skill.key, skill.description) for skill in skills]) for scope, skills in listed]


@given(one=LISTED, other=LISTED)
def test_digests_are_equal_for_equal_skills_only(one: list[Listed], other: list[Listed]) -> None:
    """No text can be taken for two, nor a skill of one scope for one of another."""
    assert (looked_at(one) == looked_at(other)) == (twin_digest(one) == twin_digest(other))

"""Which skills a session is about, and which a new one is too like."""

from __future__ import annotations

import pytest

from curatord.core.distil.similar import nearest, too_like
from curatord.core.distil.view import SkillView
from tests.core.distil.conversation import digest_of, said
from tests.core.distil.library import a_library, a_skill

TEXT = "---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n\n{body}\n"
SKILLS = {
    "postgres-backup": ("Backs a postgres database up.", "Run pg_dump, check the archive with pg_restore."),
    "postgres-tuning": ("Tunes postgres queries.", "Read the plan of explain analyze, add an index."),
    "pdf-forms": ("Fills in PDF forms.", "Read the fields with pypdf, write them back."),
    "kubernetes-rollout": ("Rolls a deployment out on kubernetes.", "kubectl rollout status, then undo."),
    "git-bisect": ("Finds the commit that broke something.", "git bisect start, run the test script."),
    "release-notes": ("Writes release notes.", "Group the merged changes by kind."),
}


def skill(name: str) -> SkillView:
    description, body = SKILLS[name]
    return a_skill(name, TEXT.format(name=name, description=description, body=body).encode())


LIBRARY = a_library(*map(skill, SKILLS))
TALK = digest_of(
    said("user", "the postgres backup with pg_dump fails, the archive cannot be restored", 1),
    said("assistant", "pg_restore needs the custom format; explain analyze is not needed for that", 2),
)


def test_the_nearest_skills_come_best_first() -> None:
    """By what was said; at most three, and none that has nothing to do with it."""
    names = [found.name for found in nearest(LIBRARY, TALK)]

    assert "postgres-backup" == names[0]
    assert "git-bisect" not in names
    assert len(names) <= 3


def test_what_the_session_used_is_there_in_any_case() -> None:
    """First, in the order of use, each once; a name that is no skill here is passed over."""
    names = [found.name for found in nearest(LIBRARY, TALK, used=["release-notes", "gone", "postgres-backup"])]

    assert ["release-notes", "postgres-backup"] == names[:2]
    assert len(names) == len(set(names)) <= 5


def test_context_and_errors_do_not_say_what_it_is_about() -> None:
    """Only what was said since the last look by somebody."""
    talk = digest_of(said("user", "git bisect it", 1), said("error", "postgres pg_dump pg_restore archive " * 5, 2))

    assert "git-bisect" == nearest(LIBRARY, talk)[0].name


def test_an_empty_library_has_nothing_near() -> None:
    """And nothing is too like anything in it."""
    empty = a_library(a_skill())
    assert nearest(empty, digest_of()) == ()
    assert too_like(LIBRARY, name="tea-kettle", description="Boils water.", body="Fill it, heat it.") is None


@pytest.mark.parametrize(
    ("name", "description", "body", "patch"),
    [
        ("postgres-backups", "Backs up a postgres database.", "Something else altogether.", True),
        ("git-bisects", "Draws a picture of a cat.", "Take a pencil.", False),
        ("find-bad-commit", *SKILLS["git-bisect"], True),
    ],
)
def test_what_is_too_like(name: str, description: str, body: str, patch: bool) -> None:
    """Name and description, the name alone, the text alone."""
    found = too_like(LIBRARY, name=name, description=description, body=body)

    assert found is not None
    assert patch is found.patch


def test_names_that_share_a_word_are_not_too_like() -> None:
    """A second skill for another work with the same tool may be."""
    assert (
        too_like(
            LIBRARY,
            name="postgres-upgrade",
            description="Moves a cluster to a new major version.",
            body="pg_upgrade --link",
        )
        is None
    )

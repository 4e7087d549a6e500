"""Few and exact checks of descriptions and lengths: what is wrong is told, what is well written is left in peace."""

from __future__ import annotations

import pytest

from curatord.core.header import Fault
from curatord.core.skill import SkillText, parse_skill
from curatord.core.skill_quality import Described, text_problems, twin_problems
from curatord.core.values import LibraryName, RelPath, SkillKey

BODY = "# Do it\n\n1. Look.\n"


def text(description: str, *, body: str = BODY, extra: str = "") -> SkillText:
    """Return a skill of that description."""
    parsed = parse_skill(f"---\nname: a\ndescription: >-\n  {description}\n{extra}---\n{body}".encode())
    assert not isinstance(parsed, Fault)
    return parsed


def codes(skill: SkillText) -> list[str]:
    """Return the codes of its problems."""
    return [problem.code for problem in text_problems(skill)]


@pytest.mark.parametrize(
    "description",
    [
        "Fill PDF forms with pypdf. Use when the user has a form to fill.",
        "Use when a build fails on the release branch, before any fix is tried.",
        "Whenever CI is red: read the log first",
        "Kubernetes rollouts: check, pause, undo. TRIGGER: 'rollout stuck'.",
        "Übersetzt Verträge ins Englische, wenn jemand darum bittet",
        "部署服务并检查日志",
    ],
)
def test_good_descriptions_are_left_in_peace(description: str) -> None:
    """A start that names its thing and any word of when it is for are enough; other scripts are not judged."""
    assert [] == codes(text(description))


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("PDF form filler with pypdf", ["no-trigger"]),
        ("A comprehensive guide that helps you when you want to do various things with skills", ["empty-start"]),
        ("This skill should be used when the user asks to do anything about Terraform state", ["empty-start"]),
        ("TODO", ["empty-start", "no-trigger"]),
        ("Rotates keys when asked. " + "x" * 1_010, ["long-description"]),
    ],
)
def test_descriptions_that_do_not_work(description: str, expected: list[str]) -> None:
    """What an agent cannot decide by is told."""
    assert expected == codes(text(description))


def test_a_trigger_in_its_own_key_counts() -> None:
    """`when_to_use` says when, whatever the description says."""
    assert [] == codes(text("PDF form filler", extra="when_to_use: a form is to be filled\n"))


def test_what_only_its_user_calls_needs_no_trigger() -> None:
    """A skill that no agent may choose is not judged by how an agent would choose it."""
    assert [] == codes(text("PDF form filler", extra="disable-model-invocation: true\n"))
    assert ["no-trigger"] == codes(text("PDF form filler", extra="disable-model-invocation: false\n"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("word\n" * 500, []),
        ("word\n" * 620, []),
        ("word\n" * 630, ["long-body"]),
        ("lorem ipsum dolor sit amet " * 2_000, ["long-body"]),
    ],
)
def test_long_bodies(body: str, expected: list[str]) -> None:
    """A body well beyond the specification's advice is told once, one at its limit is not."""
    assert expected == codes(text("Use for PDF forms", body=body))


def described(rel: str, description: str, *, library: str = "lib", scope: str = "host") -> Described:
    """Return a skill as it is listed."""
    return Described(key=SkillKey(library=LibraryName(library), rel=RelPath(rel)), scope=scope, description=description)


def found(*skills: Described) -> dict[str, list[str]]:
    """Return the codes by skill."""
    problems = twin_problems(skills)
    return {str(key): [problem.code for problem in rows] for key, rows in problems.items()}


LONG = "Fill PDF forms with pypdf and check that every field of the form was really written to the file"


def test_near_descriptions_are_told_at_both() -> None:
    """Two descriptions of nearly the same words are told, each naming the other."""
    expected = {"lib/a": ["near-description"], "lib/b": ["near-description"]}
    assert expected == found(described("a", LONG), described("b", LONG + " again"), described("c", "Deploy it"))


def test_short_descriptions_are_alike_by_chance() -> None:
    """A handful of words proves nothing."""
    assert {} == found(described("a", "Use for PDF forms"), described("b", "Use for PDF forms!"))


def test_descriptions_that_only_begin_alike() -> None:
    """Where the first 60 characters are the same, a host that cuts shows two skills as one."""
    start = "Look after the staging cluster of the payments team, which is "
    one, two = start + "slow: find the slow query", start + "full: drop old snapshots, rotate logs, tell everybody"
    assert {"lib/a": ["same-start"], "lib/b": ["same-start"]} == found(described("a", one), described("b", two))


def test_one_name_in_two_libraries_of_a_host() -> None:
    """Only one of the two is ever taken; the same skill for two hosts is nobody's trouble."""
    one = described("x/deploy", "Deploy to staging", library="mine")
    two = described("Deploy", "Ship to production", library="team")
    expected = {"mine/x/deploy": ["same-name-elsewhere"], "team/Deploy": ["same-name-elsewhere"]}
    assert expected == found(one, two)
    assert {} == found(one, described("deploy", "Ship to production", library="team", scope="other host"))


def test_a_pair_is_found_among_many() -> None:
    """The lookup by rare words misses no pair that shares four fifths of its words."""
    crowd = [
        described(f"s{n}", f"Use for task number {n} of the common kind with words {n * 7} shared") for n in range(400)
    ]
    pair = [described("p", LONG), described("q", LONG.replace("really", "truly"))]
    problems = found(*crowd, *pair)
    assert (["near-description"], ["near-description"]) == (problems.get("lib/p"), problems.get("lib/q"))

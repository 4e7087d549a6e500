"""New skills: valid by the specification's own validator, the body as it was given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skills_ref.validator import validate_metadata  # type: ignore[import-untyped]  # it ships no types

from curatord.core.agent_skills import violations
from curatord.core.distil.compose import NewSkill, NotComposed, compose
from curatord.core.header import Fault
from curatord.core.names import Layout
from curatord.core.skill import parse_skill
from tests.core.distil.library import a_create

LAYOUTS: tuple[Layout, ...] = ("agent-skills", "hermes", "flat")


def made(layout: Layout = "agent-skills", **changes: str) -> NewSkill:
    found = compose(a_create(**changes), layout)
    assert isinstance(found, NewSkill), found
    return found


def refused(**changes: str) -> str:
    found = compose(a_create(**changes), "agent-skills")
    assert isinstance(found, NotComposed), found
    return found.code


@settings(max_examples=200, deadline=None)
@given(
    name=st.text(min_size=1, max_size=80),
    description=st.text(min_size=1, max_size=1_200),
    when=st.text(max_size=200),
    content=st.text(min_size=1, max_size=300),
    layout=st.sampled_from(LAYOUTS),
)
def test_whatever_is_composed_is_valid(name: str, description: str, when: str, content: str, layout: Layout) -> None:
    """By the specification's own validator, and by ours for the layout."""
    found = compose(a_create(skill=name, description=description, when_to_use=when, content=content), layout)
    if isinstance(found, NotComposed):
        return
    assert [] == violations(found.data, found.name, layout)
    skill = parse_skill(found.data)
    assert not isinstance(skill, Fault)
    assert skill.header is not None
    assert (found.name, found.description, found.when_to_use) == (skill.name, skill.description, skill.when_to_use)
    metadata = {key: value for key, value in skill.header.values().items() if key != "whenToUse"}
    assert [] == validate_metadata(metadata)


BODIES = [
    "# A\n\n````markdown\n```bash\nmake\n```\n````\n\nend",
    "# A\n\n```jinja\n{{ x }} {% for y in z %} ${HOME} {{{{\n```\n",
    "Text.\n\n---\n\nMore.\n\n---\nname: not-a-header\n---\n",
    "# A\n\n~~~\n```\n~~~\n",
    "| a | b |\n|---|---|\n| `{` | `}` |",
    "# \u90e8\u7f72\n\n1. \u6784\u5efa\n",
]


@pytest.mark.parametrize("body", BODIES)
def test_a_body_is_written_as_it_was_given(body: str) -> None:
    """Fences in fences, braces, rules that look like headers, tables."""
    skill = parse_skill(made(content=body).data)

    assert not isinstance(skill, Fault)
    assert body.strip("\n") == skill.body.strip("\n")


def test_line_ends_become_lf_and_a_mark_goes() -> None:
    """A new file is UTF-8 with LF."""
    assert b"\n# A\n\nb\n" in made(content="\ufeff# A\r\n\r\nb\r\n").data
    assert b"\r" not in made(content="# A\rb").data


def test_a_header_in_the_content_is_replaced() -> None:
    """Many models write the whole file; the fields of the operation are what counts."""
    content = "---\nname: other\ndescription: other\nallowed-tools: Bash\n---\n\n# Rollback\n"
    data = made(content=content).data

    assert data.count(b"---") == 2
    assert b"allowed-tools" not in data
    assert data.endswith(b"\n\n# Rollback\n")


def test_a_rule_at_the_beginning_is_no_header() -> None:
    """It never closes, so it is text."""
    assert "---\n# A\n\ntext" == made(content="---\n# A\n\ntext").body


def test_when_to_use_is_part_of_the_description() -> None:
    """All hosts show that; a flat library's host knows a key for it."""
    text: dict[str, Any] = {"description": "Rolls back", "when_to_use": "Use after a failed migration."}

    assert ("Rolls back. Use after a failed migration.", "") == (made(**text).description, made(**text).when_to_use)
    flat = made("flat", **text)
    assert ("Rolls back", "Use after a failed migration.") == (flat.description, flat.when_to_use)
    assert b"whenToUse: Use after a failed migration.\n" in flat.data
    twice = made(description="Rolls back. Use after a failed migration.", when_to_use="use after a failed migration.")
    assert "Rolls back. Use after a failed migration." == twice.description


@pytest.mark.parametrize(
    ("name", "written"), [("Net Kit", "net-kit"), ("net_kit", "net-kit"), ("NET--kit-", "net-kit"), ("部署", "部署")]
)
def test_names_are_brought_to_form(name: str, written: str) -> None:
    """And it is told."""
    found = made(skill=name)

    assert written == found.name
    assert bool(found.notes) is (name != written)


def test_hermes_takes_ascii_alone() -> None:
    """What its alphabet has not becomes a short hash, so that two names never become one."""
    one, two = (made("hermes", skill=name).name for name in ("部署", "回滚"))

    assert one != two
    assert (one + two).isascii()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"skill": "../x"}, "name"),
        ({"skill": "a/b"}, "name"),
        ({"skill": "\u202e"}, "name"),
        ({"description": " \n"}, "form"),
        ({"description": "x" * 1_025}, "form"),
        ({"content": " \n"}, "nothing"),
        ({"content": "---\nname: x\n---\n"}, "nothing"),
        ({"content": "```\nopen"}, "form"),
        ({"content": "half \ud800"}, "form"),
        ({"description": "half \ud800"}, "form"),
        ({"content": "a\0b"}, "form"),
    ],
)
def test_what_cannot_be_a_skill(changes: dict[str, str], code: str) -> None:
    """Told by a code, never mended by guessing."""
    assert code == refused(**changes)

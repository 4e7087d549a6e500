"""A SKILL.md as a value, and the rules of the specification held against its own validator."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skills_ref.validator import validate_metadata  # type: ignore[import-untyped]  # it ships no types

from curatord.core.agent_skills import Layout, violations
from curatord.core.header import Fault
from curatord.core.skill import SkillText, names_agree, parse_skill, render_skill


def parsed(text: str) -> SkillText:
    """Return what *text* says; it must be readable."""
    skill = parse_skill(text.encode())
    assert isinstance(skill, SkillText), skill
    return skill


def test_a_skill() -> None:
    """Name, description, when_to_use, body, its line and its cost."""
    skill = parsed("---\nname: a\ndescription: Do b\nwhen_to_use: c d\n---\n\n# T\n[x](y/z.md)\n")

    assert ("a", "Do b", "c d", "\n# T\n[x](y/z.md)\n", 6) == (
        skill.name,
        skill.description,
        skill.when_to_use,
        skill.body,
        skill.body_line,
    )
    assert (2, 5) == (skill.description_tokens, skill.body_tokens)
    assert ["T"] == [heading.title for heading in skill.facts().headings]


@pytest.mark.parametrize("key", ["when_to_use", "whenToUse", "when-to-use"])
def test_spellings_of_when_to_use(key: str) -> None:
    """Each host's own key is understood."""
    assert "w" == parsed(f"---\nname: a\n{key}: w\n---\n").when_to_use


def test_no_header_no_name() -> None:
    """A file without a header is a skill without name and description, all of it body."""
    skill = parsed("\ufeff# T\n")

    assert (None, "", "# T\n", 1) == (skill.name, skill.description, skill.body, skill.body_line)


@pytest.mark.parametrize("line", ["name: [a]", "description: {a: b}", "whenToUse: [x]"])
def test_text_that_is_no_text(line: str) -> None:
    """A name or description that is a list is a fault of its line, not a guess."""
    fault = parse_skill(f"---\n# c\n{line}\n---\n".encode())

    assert isinstance(fault, Fault)
    assert (3, True) == (fault.line, fault.reason.endswith("is a list or a mapping, not text"))


@pytest.mark.parametrize(
    ("package", "header", "expected"),
    [
        ("my-skill", "my-skill", "same"),
        ("my-skill", None, "same"),
        ("my-skill", "My Skill", "spelling"),
        ("my_skill", "my-skill", "spelling"),
        ("caf\u00e9", "cafe\u0301", "spelling"),
        ("\uff41b", "ab", "spelling"),
        ("Straße", "strasse", "spelling"),
        ("soft-skill", "redesign-soft", "other"),
        ("my-skill", "myskill", "other"),
        ("a", "a2", "other"),
    ],
)
def test_names_agree(package: str, header: str | None, expected: str) -> None:
    """Case, blanks, `_` and Unicode form are spelling; anything else is another name (bugs B068)."""
    assert expected == names_agree(package, header)


@given(
    name=st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=8), text=st.text(max_size=80)
)
@settings(max_examples=150, deadline=None)
def test_what_is_rendered_is_read_back(name: str, text: str) -> None:
    """A new SKILL.md says what it was asked to say."""
    clean = "".join(char for char in text if char != "\0" and not "\ud800" <= char <= "\udfff")
    skill = parse_skill(render_skill(name, clean, "# Body", extra=[("whenToUse", "now")]))

    assert isinstance(skill, SkillText)
    assert (name.strip(), clean.strip(), "now", "\n# Body\n") == (
        skill.name, skill.description, skill.when_to_use, skill.body
    )  # fmt: skip


CODES = {
    "must be lowercase": "name-case",
    "hyphen": "name-hyphens",
    "consecutive": "name-hyphens",
    "invalid characters": "name-characters",
    "must match": "name-folder",
    "Skill name": "name-length",
    "'name' must be": "name-missing",
    "field in frontmatter: name": "name-missing",
    "Description exceeds": "description-length",
    "'description' must be": "description-missing",
    "field in frontmatter: description": "description-missing",
    "Compatibility": "compatibility",
    "Unexpected": "keys",
}


def code_of(message: str) -> str:
    """Return our code for a message of the specification's own validator."""
    for part in ("hyphen", "must match", "must be lowercase", "invalid characters", *CODES):
        if part in message and not (part == "hyphen" and "invalid characters" in message):
            return CODES[part]
    raise AssertionError(message)


names = st.one_of(
    st.sampled_from(
        ["a", "good-name", "Bad", "-a", "a-", "a--b", "a_b", "a b", "x" * 64, "x" * 65, "日本", "é", "e\u0301", "ａ"]
    ),
    st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), min_size=1, max_size=70),
)
metadata = st.fixed_dictionaries(
    {},
    optional={
        "name": names,
        "description": st.sampled_from(["", "  ", "d", "d" * 1024, "d" * 1025, "yes", "1.10"]),
        "compatibility": st.sampled_from(["", "c", "c" * 500, "c" * 501]),
        "license": st.just("MIT"),
        "version": st.just("1.0"),
        "allowed-tools": st.just("Read"),
    },
)


class FolderNamed:
    """As much of a path as the validator looks at."""

    def __init__(self, name: str) -> None:
        self.name = name


@given(values=metadata, folder=st.one_of(st.none(), names))
@settings(max_examples=400, deadline=None)
def test_violations_are_those_of_the_specification(values: dict[str, str], folder: str | None) -> None:
    """Whatever the header, the same rules are broken as `skills-ref` says, no more and no less."""
    folder = values.get("name", "x") if folder is None else folder
    header = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
    theirs = {code_of(message) for message in validate_metadata(values, FolderNamed(folder))}

    assert theirs == {found.code for found in violations(f"---\n{header}---\nbody\n".encode(), folder, "agent-skills")}


@pytest.mark.parametrize(
    ("text", "layout", "codes"),
    [
        ("---\nname: a\ndescription: d\nversion: 1\nplatforms: [linux]\n---\nb", "hermes", []),
        ("---\nname: a\ndescription: d\nwhenToUse: w\n---\nb", "flat", []),
        ("---\nname: a\ndescription: d\nwhenToUse: w\n---\nb", "hermes", ["keys"]),
        ("---\nname: a\ndescription: d\n---\n \n", "hermes", ["hermes-body"]),
        ("---\nname: a\ndescription: d\n---\n" + "é" * 100_001, "hermes", ["hermes-size"]),
        ("---\nname: a\ndescription: d\n---\n" + "é" * 99_000, "hermes", []),
        ("# no header", "agent-skills", ["format"]),
        ("---\nname: a\n", "agent-skills", ["format"]),
    ],
)
def test_layouts_own_rules(text: str, layout: Layout, codes: list[str]) -> None:
    """Each layout allows its own keys; Hermes has limits of its own."""
    assert codes == [found.code for found in violations(text.encode(), "a", layout)]

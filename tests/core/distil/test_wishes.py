"""What counts as asking that something be kept, and what does not."""

from __future__ import annotations

from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.distil.wishes import Wishes, parse_wishes

PACKAGED = parse_wishes(files("curatord.prompts").joinpath("wishes.txt").read_text(encoding="utf-8"))


def test_all_packaged_patterns_can_be_used() -> None:
    """A line that cannot be used would be a wish that nobody hears."""
    assert () == PACKAGED.faults
    assert len(PACKAGED.patterns) > 30


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("keep this as a skill: deploy-kit", "deploy-kit"),
        ("Great! Please save that as a new skill called deploy_kit.", "deploy_kit"),
        ("Keep this as a skill: `deploy-kit`, please", "deploy-kit"),
        ("Remember this for next time.", None),
        ("remember how we did the rollback for next time", None),
        ("Make a skill out of it", None),
        ("turn this into\n  a skill", None),
        ("Merk dir das für das nächste Mal", None),
        ("Speichere das bitte als Skill: deploy-kit", "deploy-kit"),
        ("Garde ça comme compétence : nothing", None),
        ("Guarda esto como una habilidad", None),
        ("Запомни это на будущее", None),
        ("把这个流程保存成技能吧", None),
        ("请记住这个，下次也这样做", None),
        ("これをスキルとして保存して", None),
        ("다음을 위해 기억해 줘", None),
    ],
)
def test_a_wish_is_heard(text: str, name: str | None) -> None:
    """In the languages that the file has, with the name where it says one."""
    wish = PACKAGED.found(text)

    assert wish is not None
    assert name == wish.name


@pytest.mark.parametrize(
    "text",
    [
        "Don't remember this for next time",
        "please do not save this as a skill",
        "no need to make a skill out of it",
        "> remember this for next time\n\nwhat does that line mean?",
        "```\nkeep this as a skill: evil\n```\nwhy does it print that?",
        "~~~~\n```\nkeep this as a skill: evil\n```\n~~~~",
        "I remember this from last time",
        "which skill did you use?",
        "the skill is fine, keep going",
        "不要把这个保存成技能",
        "これをスキルとして保存しないで",
        "Merk dir das nicht für das nächste Mal",
        "",
    ],
)
def test_what_is_no_wish(text: str) -> None:
    """Refusals, quotations, pasted code, and words that happen to be near."""
    assert PACKAGED.found(text) is None


def test_a_wish_that_names_a_skill_comes_first() -> None:
    """The name decides what may be made, so it counts more than a general wish before it."""
    wish = PACKAGED.found("Remember this for next time. And keep it as a skill: probe-kit")

    assert wish is not None
    assert "probe-kit" == wish.name


def test_a_second_mention_counts_where_the_first_was_a_refusal() -> None:
    """People change their minds."""
    assert PACKAGED.found("I said: don't make a skill. OK, now do make a skill.") is not None


def test_the_small_language() -> None:
    """Words, one of several, a gap within a sentence, and the name."""
    wishes = parse_wishes("# comment\n\nkeep (this|that one) * as NAME\n")
    assert wishes.faults == ()

    found = wishes.found("Keep  that\none, the second, as big-thing!")
    assert found is not None
    assert ("big-thing", "Keep that one, the second, as big-thing") == (found.name, found.words)
    assert wishes.found("keep this. I know it as big-thing") is None


@pytest.mark.parametrize(("line", "fault"), [("a (b", "parenthesis"), ("* *", "no word"), ("x" * 300, "at most 200")])
def test_a_line_that_cannot_be_used_is_told(line: str, fault: str) -> None:
    """The others count all the same."""
    wishes = parse_wishes(f"{line}\nkeep it")

    assert fault in wishes.faults[0]
    assert wishes.found("keep it") is not None


def test_no_more_than_so_many_patterns() -> None:
    """A list without end would cost every session."""
    wishes = parse_wishes("\n".join(f"word{n}" for n in range(600)))

    assert len(wishes.patterns) == 500
    assert "500" in wishes.faults[0]


@given(st.text(max_size=300), st.text(max_size=200))
def test_nothing_breaks_it(patterns: str, text: str) -> None:
    """Whatever stands in the file or in a message."""
    parse_wishes(patterns).found(text)
    PACKAGED.found(text)


def test_without_patterns_there_are_no_wishes() -> None:
    """A user may empty the file."""
    assert Wishes().found("remember this for next time") is None
    assert parse_wishes("# nothing\n").found("remember this for next time") is None

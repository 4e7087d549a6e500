"""References in texts: what counts as one, and how it reads once things moved."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from curatord.core.umbrella.links import Ground, Moved, find_references, relocate

ROOT = "/home/u/.claude/skills"


def ground(**moved: str) -> Ground:
    """Return a library where `me` became part of `kit`; *moved* maps further places."""
    files = {"me/SKILL.md", "me/scripts/run.sh", "me/FORMS.md", "me/über uns.md", "kit/SKILL.md", "kit/own.md"}
    went: Mapping[str, Moved] = {"me": Moved(place="kit")}
    places = {
        "me/SKILL.md": Moved(place="kit/references/me.md"),
        "me/scripts/run.sh": Moved(place="kit/references/me/scripts/run.sh"),
        "me/FORMS.md": Moved(place="kit/references/me/FORMS.md"),
        "me/über uns.md": Moved(place="kit/references/me/über uns.md"),
        **{old: Moved(place=new) for old, new in moved.items()},
    }
    return Ground(
        files=frozenset(files),
        packages=frozenset({"me", "kit", "cat/other"}),
        moved=places,
        went=went,
        roots=(ROOT,),
        names={"me": "kit"},
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[x](scripts/run.sh)", "[x](me/scripts/run.sh)"),
        ("[x](./scripts/run.sh)", "[x](./me/scripts/run.sh)"),
        ("[x](scripts/run.sh#L3)", "[x](me/scripts/run.sh#L3)"),
        ("[x](<über uns.md>)", "[x](<me/über uns.md>)"),
        ("[x](%C3%BCber%20uns.md)", "[x](me/%C3%BCber%20uns.md)"),
        ("[r]: scripts/run.sh 'title'", "[r]: me/scripts/run.sh 'title'"),
        ('<img src="scripts/run.sh">', '<img src="me/scripts/run.sh">'),
        ("[x](scripts/)", "[x](me/scripts/)"),
        ("run `bash scripts/run.sh -v`", "run `bash references/me/scripts/run.sh -v`"),
        ("see FORMS.md.", "see references/me/FORMS.md."),
        ("${SKILL_DIR}/scripts/run.sh", "${SKILL_DIR}/references/me/scripts/run.sh"),
        (f"{ROOT}/me/scripts/run.sh", f"{ROOT}/kit/references/me/scripts/run.sh"),
        ("~/.claude/skills/me/SKILL.md", "~/.claude/skills/kit/references/me.md"),
        ("[o](../cat/other/SKILL.md)", "[o](../../cat/other/SKILL.md)"),
        ("[out](../../README.md)", "[out](../../../README.md)"),
        ("[[me]] and [[you]]", "[[kit]] and [[you]]"),
        ("[self](SKILL.md)", "[self](me.md)"),
    ],
)
def test_a_moved_text_leads_where_it_led(before: str, after: str) -> None:
    """The text of `me` now stands at `kit/references/me.md`."""
    text, edits = relocate(
        before,
        ground=ground(),
        old="me/SKILL.md",
        new="kit/references/me.md",
        old_root="me",
        new_root="kit",
    )

    assert after == text
    assert 1 == len(edits)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/scripts/run.sh",
        "[x](https://example.org/a.md)",
        "[x](#section)",
        "[x](scripts/gone.sh)",
        "and/or, e.g. this. 1.2.3",
        "use scripts as you like",
        "</scripts/run.sh>",
        "/etc/passwd ~/.ssh/id_rsa",
        "otherscripts/run.sh scripts/run.shx",
    ],
)
def test_what_leads_nowhere_stays(text: str) -> None:
    """Dead links, URLs, prose and foreign paths are not touched."""
    assert (text, ()) == relocate(
        text, ground=ground(), old="me/SKILL.md", new="kit/references/me.md", old_root="me", new_root="kit"
    )


def test_a_text_that_stays_follows_what_moved() -> None:
    """A neighbour's links, by path from its own folder and absolute."""
    text, edits = relocate(
        f"[m](../../me/SKILL.md) [s](../../me/scripts/run.sh) [d](../../me) {ROOT}/me/FORMS.md",
        ground=ground(),
        old="cat/other/SKILL.md",
        new="cat/other/SKILL.md",
        old_root="cat/other",
        new_root="cat/other",
    )

    assert (
        "[m](../../kit/references/me.md) [s](../../kit/references/me/scripts/run.sh) [d](../../kit) "
        f"{ROOT}/kit/references/me/FORMS.md" == text
    )
    assert 4 == len(edits)


def test_an_edit_says_where_it_stood() -> None:
    """Line and column of the old text, whatever ends its lines."""
    _, (edit,) = relocate(
        "a\r\nb\rc [x](SKILL.md)", ground=ground(), old="me/SKILL.md", new="kit/references/me.md", old_root="me",
        new_root="kit",
    )  # fmt: skip

    assert (3, 6, "SKILL.md", "me.md") == (edit.line, edit.column, edit.before, edit.after)


def test_a_hostile_text_costs_little() -> None:
    """A megabyte of what looks like links is read in a moment, and no more than some thousand are taken."""
    text = "[x](" * 50_000 + "a/" * 100_000 + "." * 100_000 + "[[" * 50_000

    found = find_references(text)

    assert len(found) <= 5_000

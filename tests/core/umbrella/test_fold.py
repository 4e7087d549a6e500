"""Folding: where things go, and what goes the safer way."""

from __future__ import annotations

import pytest

from curatord.core.umbrella.decision import Decision, Taken
from curatord.core.umbrella.fold import INDEX_END, MAX_BODY_LINES, cannot_move, fold_in
from curatord.core.umbrella.packed import Packed, PackedFile
from tests.core.umbrella.packages import NOWHERE, a_decision, a_package


def text_of(package: Packed, path: str = "SKILL.md") -> str:
    """Return a file of the package as text."""
    file = package.file(path)
    assert file is not None
    return file.data.decode("utf-8")


def test_a_reference_is_byte_for_byte() -> None:
    """Header, line ends and byte-order mark stand in the file as they stood in SKILL.md."""
    member = a_package("one", "# One\n\nText.\n", bom=True, eol="\r\n", header="version: 1\n")

    folded = fold_in(None, a_decision("kit", member), {member.key: member}, others=NOWHERE)

    assert member.files[0].data == folded.after.file("references/one.md").data  # type: ignore[union-attr]


def test_a_section_stands_below_its_title() -> None:
    """Its header as code, its headings moved down, its code untouched, what it left open closed."""
    member = a_package("one", "# One\n\n## Two\n```sh\n# not a heading\n")

    folded = fold_in(None, a_decision("kit", member, how="section"), {member.key: member}, others=NOWHERE)

    assert (
        "## One\n\n```yaml\nname: one\ndescription: Use when asked.\n```\n\n"
        "### One\n\n#### Two\n```sh\n# not a heading\n```\n" in text_of(folded.after)
    )
    assert "- [One](#one) (was `one`): Use when asked." in text_of(folded.after)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("Title\n=====\n\ntext\n", "underlined headings"),
        ("[1]: https://a.example\n", "link label"),
        ("line\n" * (MAX_BODY_LINES + 1), "lines or"),
        ("word " * 30_000, "tokens"),
    ],
)
def test_what_cannot_be_a_section_becomes_a_reference(body: str, why: str) -> None:
    """With the reason in the notes; nothing of it is lost or cut."""
    first = a_package("first", "[1]: https://b.example\n")
    member = a_package("one", body)
    packages = {package.key: package for package in (first, member)}

    folded = fold_in(None, a_decision("kit", first, member, how="section"), packages, others=NOWHERE)

    assert ["section", "reference"] == [placed.how for placed in folded.placed]
    assert why in folded.placed[1].note
    assert "references/one.md" == folded.placed[1].path


def test_names_never_collide() -> None:
    """Neither with what the umbrella has, nor with each other, in whatever case or Unicode form."""
    before = a_package("kit", files={"references/ONE.md": (b"mine", 0o600), "references/two/x": (b"mine", 0o644)})
    one, two = a_package("one"), a_package("cat/one")
    third = a_package("two", files={"x": (b"its", 0o755)})
    packages = {package.key: package for package in (one, two, third)}

    folded = fold_in(before, a_decision("kit", one, two, third, existing=True), packages, others=NOWHERE)

    assert ["references/one-2.md", "references/one-3.md", "references/two.md"] == [p.path for p in folded.placed]
    assert b"mine" == folded.after.file("references/ONE.md").data  # type: ignore[union-attr]
    assert b"mine" == folded.after.file("references/two/x").data  # type: ignore[union-attr]
    assert 0o755 == folded.after.file("references/two-2/x").mode  # type: ignore[union-attr]


def test_an_umbrella_keeps_its_own_words() -> None:
    """Its body stands before the index, its header keeps all but the description."""
    before = a_package("kit", "# Mine\n\nOwn.", header="license: MIT # why\n", eol="\r\n")
    member = a_package("one")

    folded = fold_in(before, a_decision("kit", member, existing=True), {member.key: member}, others=NOWHERE)

    text = text_of(folded.after)
    assert text.startswith(
        "---\r\nname: kit\r\ndescription: Use for all of it.\r\nlicense: MIT # why\r\n---\r\n# Mine\r\n\r\nOwn.\r\n"
    )
    assert "\n" not in text.replace("\r\n", "")


def test_a_second_merge_adds_rows_to_the_index() -> None:
    """There is one index, and what stood in it stays."""
    one, two = a_package("one"), a_package("two")
    first = fold_in(None, a_decision("kit", one), {one.key: one}, others=NOWHERE).after

    second = fold_in(first, a_decision("kit", two, existing=True), {two.key: two}, others=NOWHERE).after

    text = text_of(second)
    assert 1 == text.count(INDEX_END)
    assert text.index("(was `one`)") < text.index("(was `two`)") < text.index(INDEX_END)


def test_a_flat_umbrella_becomes_a_folder_that_holds_files() -> None:
    """Its one file is the SKILL.md then."""
    before = a_package("kit", flat=True)
    member = a_package("one", flat=True)

    folded = fold_in(before, a_decision("kit", member, existing=True), {member.key: member}, others=NOWHERE)

    assert not folded.after.flat
    assert ["SKILL.md", "references/one.md"] == [file.path for file in folded.after.files]


@pytest.mark.parametrize(
    ("path", "why"),
    [("a/b/c/d/e/f/g.md", "too deep"), ("con.md", "cannot be moved"), ("a\\b.md", "cannot be moved")],
)
def test_some_packages_cannot_be_moved(path: str, why: str) -> None:
    """They are left alone, with that reason."""
    assert why in (cannot_move(a_package("one", files={path: (b"x", 0o644)})) or "")


def test_a_link_cannot_be_moved() -> None:
    """It may lead anywhere."""
    assert "holds a link" in (
        cannot_move(Packed.of(a_package("one").key, a_package("one").files, links=[("x", "y")])) or ""
    )


def test_a_path_that_is_no_markdown_is_code_s_choice() -> None:
    """A SKILL.md does not become a shell script because a model says so."""
    member = a_package("one")
    taken = Taken(key=member.key, how="script", path="scripts/run.sh")
    decision = Decision(umbrella=a_package("kit").key, existing=False, members=(taken,), description="d")

    folded = fold_in(None, decision, {member.key: member}, others=NOWHERE)

    assert "scripts/one.md" == folded.placed[0].path
    assert "its text is Markdown" in folded.placed[0].note


def test_a_file_that_is_no_text_moves_untouched() -> None:
    """Bytes and mode."""
    data = bytes(range(256))
    member = a_package("one", files={"assets/x.md": (data, 0o640)})

    folded = fold_in(None, a_decision("kit", member), {member.key: member}, others=NOWHERE)

    assert PackedFile(path="references/one/assets/x.md", data=data, mode=0o640) in folded.after.files

"""Headings, links and token estimates of a Markdown text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from curatord.core.markdown import Link, estimate_tokens, read_body


def headings(text: str) -> list[tuple[int, str]]:
    """Return the headings of *text* as (level, title)."""
    return [(heading.level, heading.title) for heading in read_body(text).headings]


def links(text: str) -> list[tuple[str, str]]:
    """Return the links of *text* as (kind, target)."""
    return [(link.kind, link.target) for link in read_body(text).links]


def oracle(text: str) -> list[tuple[int, str]]:
    """Return the top-level headings of *text* as `markdown-it-py` sees them."""
    tokens = MarkdownIt("commonmark").parse(text)
    return [
        (int(token.tag[1:]), tokens[index + 1].content.strip())
        for index, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]


@pytest.mark.parametrize(
    "text",
    [
        "# One\n## Two ##\ntext\n### Three\n",
        "Title\n=====\ntext\n\nSub\n---\n",
        "```sh\n# no heading\n```\n# Yes\n",
        "~~~~\n```\n# no\n~~~\n# no\n~~~~\n# Yes\n",
        "````md\n```\n# no\n```\n````\n# Yes\n",
        "``` `not a fence\n# Yes\n",
        "```\n# never closed\n",
        "<!--\n# hidden\n-->\n# Shown\n",
        "#NoBlank\n####### Seven\n#\n# # \n",
        "para\n\n---\n\n# After a rule\n",
        "- item\n---\n# x\n",
        "# `code` and *stars* #\n",
    ],
)
def test_headings_are_those_of_a_real_parser(text: str) -> None:
    """What is a heading, and what is only a comment in an example, agrees with a CommonMark parser."""
    assert oracle(text) == headings(text)


block = st.sampled_from(
    [
        "# Head one", "## Head two ##", "plain words", "", "```", "```python", "~~~", "````", "# in or out",
        "Under", "===", "---", "1. item", "- item", "> quote",
    ]
)  # fmt: skip


@given(st.lists(block, max_size=12).map("\n".join))
@settings(max_examples=300, deadline=None)
def test_titles_within_code_are_never_headings(text: str) -> None:
    """Whatever the order of fences: no `#` line is called a heading that a CommonMark parser does not call one."""
    hashes = {line.strip("# ") for line in ("# Head one", "## Head two ##", "# in or out")}

    assert [title for _, title in oracle(text) if title in hashes] == [
        title for _, title in headings(text) if title in hashes
    ]


def test_a_fence_within_a_list_is_a_fence() -> None:
    """Examples indented below a list item hide their comments too."""
    assert [(1, "After")] == headings("1. step\n\n      ```sh\n      # note\n      ```\n\n# After\n")


def test_line_ends() -> None:
    """CRLF and CR give the same headings, on the same lines."""
    text = "# One\n\n```\n# no\n```\n## Two\n"

    for eol in ("\r\n", "\r"):
        assert read_body(text) == read_body(text.replace("\n", eol))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [x](references/x.md) now", [("link", "references/x.md")]),
        ("![i](<assets/my pic.png>)", [("link", "assets/my pic.png")]),
        ("[x](../other/SKILL.md#part \"t\")", [("link", "../other/SKILL.md")]),
        ("[x](a%20b.md?raw=1)", [("link", "a b.md")]),
        ("[a]: ../b/SKILL.md 'title'\n", [("link", "../b/SKILL.md")]),
        ("run `scripts/y.sh --now`", [("path", "scripts/y.sh")]),
        ("run ~/.hermes/skills/z/run.sh.", [("path", "~/.hermes/skills/z/run.sh")]),
        ("like [[other-skill|that one]]", [("wiki", "other-skill")]),
        ("```sh\nbash ../other/scripts/run.sh\n[[ -f x ]]\n```\n", [("code", "../other/scripts/run.sh")]),
        ("[w](https://example.invalid/a/b.md) [m](mailto:a@b.c) [h](#part)", []),
        ("and/or but https://example.invalid/x/y", [("path", "and/or")]),
        ("[x](..\\other\\SKILL.md)", [("link", "../other/SKILL.md")]),
    ],
)  # fmt: skip
def test_links(text: str, expected: list[tuple[str, str]]) -> None:
    """Links, paths in code and wiki names are found; what leads into the network or within the page is not."""
    assert expected == links(text)


def test_lines_of_links() -> None:
    """A link knows its line."""
    assert (Link(target="a/b.md", kind="link", line=3),) == read_body("x\n\n[y](a/b.md)\n").links


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("日本語", 3), ("ab日本", 3)])
def test_token_estimate(text: str, tokens: int) -> None:
    """Four ASCII characters a token, every other character one."""
    assert tokens == estimate_tokens(text)


@pytest.mark.parametrize(
    "text",
    [
             "](" * 200_000, "[" * 400_000, "a/" * 200_000, "#" * 400_000, "`" * 400_000, "=" * 400_000,
             "[[a" * 150_000, " " * 400_000, "]( " * 150_000, "<!--" * 100_000, "-" * 399_999 + "x",
             "../" * 150_000, ("a" * 99 + " ") * 4000,
    ]
)  # fmt: skip
def test_hostile_text_takes_linear_time(text: str) -> None:
    """No text makes the expressions walk back and forth."""
    begun = time.process_time()
    read_body(text)

    assert time.process_time() - begun < 3.0

"""Other people's text is shown, never obeyed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.inert import in_markdown, one_line, shorten, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\u202eb", "a\\u202eb"),
        ("a\x9bb", "a\\x9bb"),
        ("\udc80", "\\udc80"),
        ("\U000e0041", "\\U000e0041"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("naïve 技能 🎉", "naïve 技能 🎉"),
    ],
)
def test_controls_become_visible(text: str, shown: str) -> None:
    """What could act on a terminal is shown as an escape, all else stays."""
    assert shown == visible(text)


def test_a_line_stays_one_line() -> None:
    """A name with line ends cannot forge a line of its own."""
    assert "a # Forged heading" == one_line("a\r\n\r\n# Forged heading\u2029")


def test_markdown_is_shown_as_it_is() -> None:
    """Markup in a name is no markup in a report."""
    assert "\\[x\\](javascript:y) \\<img\\> a\\|b" == in_markdown("[x](javascript:y) <img> a|b")


def test_a_bare_address_is_no_link() -> None:
    """Not even where the renderer makes links of what looks like one."""
    shown = in_markdown("see https://a.example/x, www.b.example and mailto:c@d.example")

    assert "see https\\://a.example/x, www\\.b.example and mailto\\:c@d.example" == shown


@given(st.text(), st.integers(min_value=1, max_value=80))
def test_shortened_text_fits_and_can_be_encoded(text: str, limit: int) -> None:
    """Whatever comes in, at most *limit* characters of valid UTF-8 on one line come out."""
    line = shorten(text, limit)

    line.encode("utf-8")
    assert limit >= len(line)
    assert "\n" not in line

"""Printing: inert, aligned, coloured only where it helps."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.cli.output import Output, json_text, line_text, width
from curatord.core.inert import visible


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def printed(environ: dict[str, str], *, terminal: bool) -> tuple[Output, io.StringIO]:
    """Return an output and the stream that it prints to."""
    stream: io.StringIO = Terminal() if terminal else io.StringIO()
    return Output(stream, io.StringIO(), environ), stream


@pytest.mark.parametrize(
    ("environ", "terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(environ: dict[str, str], terminal: bool, coloured: bool) -> None:
    """`NO_COLOR` (not blank) and `TERM=dumb` are respected; elsewhere than on a terminal there is none."""
    out, stream = printed(environ, terminal=terminal)
    out.line(("stale", "yellow"))

    assert coloured == ("\x1b[" in stream.getvalue())


def test_styles_are_put_around_inert_text() -> None:
    """The only escapes on the screen are ours."""
    out, stream = printed({}, terminal=True)
    out.line(("\x1b[31mred\n", "bold"), "\x1b[2J")

    assert "\x1b[1m\\x1b[31mred\\n\x1b[0m\\x1b[2J\n" == stream.getvalue()


def test_a_table_is_aligned_by_what_is_seen() -> None:
    """Wide characters take two columns, combining ones none; no blanks at line ends."""
    out, stream = printed({}, terminal=False)
    out.table(("name", "n"), [("技能", "1"), ("e\u0301a", "22"), (("abc", "bold"), "333")], right=(1,))

    assert ["name    n", "技能    1", "e\u0301a     22", "abc   333"] == stream.getvalue().splitlines()


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}])
def test_a_table_on_a_terminal_is_inert_too(environ: dict[str, str]) -> None:
    """Markup of the table library in a name is only text."""
    out, stream = printed(environ, terminal=True)
    out.table(("name",), [("[bold]x[/bold] :smile: \x1b[31m",)])

    assert "[bold]x[/bold] :smile: \\x1b[31m" in stream.getvalue()


@given(st.text())
def test_any_text_becomes_one_harmless_line(text: str) -> None:
    """No line end, no control character and nothing that is not visible is left."""
    line = line_text(text)

    assert "\n" not in line
    assert visible(line) == line
    assert width(line) >= 0
    line.encode()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, st.booleans())
def test_json_reads_back_and_is_harmless(value: Any, ascii_only: bool) -> None:
    """Whatever texts it holds: the same value comes back, and nothing in it acts on a terminal."""
    text = json_text(value, ascii_only=ascii_only)

    assert value == json.loads(text)
    assert visible(text) == text
    assert text.isascii() or not ascii_only


def test_a_closed_reader_ends_the_printing_only() -> None:
    """The command goes on and returns its own code."""

    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    out = Output(Gone(), io.StringIO(), {})
    out.line("one")
    out.table(("a",), [("b",)])
    out.flush()

"""The control protocol's lines: what is understood, and what is refused in words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.control import (
    MAX_QUESTION,
    Ask,
    BadAskError,
    answer_line,
    ask_line,
    final,
    read_answer,
    read_ask,
)

RUN = Ask(
    command="run",
    arguments={"dry_run": True, "respect_gates": False, "llm": True, "library": None},
    version="1.0",
    config="ab12",
)


@pytest.mark.parametrize("ask", [RUN, Ask(command="status"), Ask(command="scan", version="1.0")])
def test_a_question_is_read_as_it_was_asked(ask: Ask) -> None:
    """One line, small, and nothing is lost on the way."""
    line = ask_line(ask)

    assert line.endswith(b"\n")
    assert 1 == line.count(b"\n")
    assert len(line) < MAX_QUESTION
    assert ask == read_ask(line.rstrip(b"\n"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 16_000, "no JSON"),
        (b"[]", "one JSON object"),
        (b"{}", "version 1"),
        (b'{"curatord": true, "do": "scan"}', "version 1"),
        (b'{"curatord": 2, "do": "scan"}', "version 1"),
        (b'{"curatord": 1, "do": "shutdown"}', "unknown command"),
        (b'{"curatord": 1, "do": ["scan"]}', "unknown command"),
        (b'{"curatord": 1, "do": "scan", "with": []}', "object"),
        (b'{"curatord": 1, "do": "scan", "with": {"path": "/"}}', "does not take"),
        (b'{"curatord": 1, "do": "run", "with": {"dry_run": 1}}', "does not take"),
        (b'{"curatord": 1, "do": "run", "with": {"library": ["x"]}}', "does not take"),
        (b'{"curatord": 1, "do": "run", "config": 7}', "is a text"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_question_is_refused_in_words(line: bytes, words: str) -> None:
    """The words go back to whoever sent it, so they are short and say what was expected."""
    with pytest.raises(BadAskError, match=words) as met:
        read_ask(line)

    assert len(str(met.value)) < 250
    assert str(met.value).isprintable()


@given(st.binary(max_size=300))
def test_junk_is_refused_and_nothing_else_happens(line: bytes) -> None:
    """Whatever comes, it is either a question or a `BadAskError`."""
    try:
        read_ask(line)
    except BadAskError:
        return
    assert isinstance(json.loads(line), dict)


def test_an_answer_is_one_line_whatever_is_in_it() -> None:
    """Line ends of all alphabets stay within their text."""
    value = {"error": "a\nb\u2028c\x85d\ud800"}

    line = answer_line("result", value)

    assert 1 == len(line.splitlines())
    assert ("result", value) == read_answer(line)


@pytest.mark.parametrize("line", [b"{}", b"[]", b'{"a": 1, "b": 2}', b"junk"])
def test_an_answer_has_one_key(line: bytes) -> None:
    """Else it is none."""
    with pytest.raises(BadAskError):
        read_answer(line)


def test_three_keys_end_an_answer() -> None:
    """A result, an error, a refusal."""
    keys = ["waiting", "begun", "progress", "result", "error", "refused"]

    assert ["result", "error", "refused"] == [key for key in keys if final(key)]

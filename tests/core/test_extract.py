"""The one JSON object of a reply: found in every wrapping, and never when there is doubt."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.extract import MAX_REPLY_CHARS, Extracted, Unusable, extract

PLAN = {
    "clusters": [{"umbrella": "git", "members": ["a", "b"], "why": "a fence ```json\n{}\n``` and </think> in a value"}]
}
RAW = json.dumps(PLAN)


def fits(row: dict[str, Any]) -> dict[str, Any] | str:
    """Take what has clusters."""
    return row if "clusters" in row else "it has no clusters"


def read(text: str) -> Any:
    """Return the object found, or why not."""
    found = extract(text, fits)
    return found.value if isinstance(found, Extracted) else found


@pytest.mark.parametrize(
    "text",
    [
        RAW,
        "\ufeff  " + RAW + "\n",
        json.dumps(PLAN, indent=2),
        f"```json\n{RAW}\n```",
        f"```\n{RAW}\n```",
        f"Here is what you want {{as asked}}:\n\n{RAW}\n\nLet me know!",
        f"I considered {{}} and {{'x': 1}}.\n```json\n{RAW}\n```\nDone.",
        f"<think>Let me see {{ not json }} … </think>\n{RAW}",
        f'<think>A draft: {{"clusters": []}}</think>{RAW}',
        f"<think>I close </think> and again </think> {RAW}",
        f"<THINKING>x</THINKING>```json\n{RAW}\n```",
        f"[THINK]x[/THINK]{RAW}",
        f'so I thought about {{"clusters": []}} first\n</think>\n\n{RAW}',
        f'{{"clusters": []}} was my draft</think>{RAW}',
        f"<think>never closed, but the answer is the last thing\n{RAW}",
        f"<think>\n{RAW}\n```",
        f'{{"note": "an example"}}\n{RAW}',
        f"[{RAW}]",
    ],
)
def test_a_whole_object_is_found_in_any_wrapping(text: str) -> None:
    """Raw, fenced, after prose, behind thoughts: the same object, with its strings untouched."""
    assert read(text) == PLAN


@pytest.mark.parametrize("part", range(1, len(RAW)))
def test_a_cut_object_is_never_taken(part: int) -> None:
    """A reply that ends anywhere inside its object is refused, also where an inner object is whole."""
    assert isinstance(read(RAW[:part]), Unusable)
    assert isinstance(read("```json\n" + RAW[:part] + "\n```"), Unusable)
    assert isinstance(read("<think>x</think>" + RAW[:part]), Unusable)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no answer"),
        ("<think>only thoughts</think>", "no answer"),
        ("<think>never closed and nothing else", "no JSON object"),
        (f"<think>{RAW} and on I think", "never closed"),
        (f'<think>a draft {{"x": 1}} then {RAW}', "never closed"),
        (f"{RAW}\n{RAW}", "2 objects"),
        (f'{RAW}\n{{"clusters": []}}', "2 objects"),
        (f"{RAW}</think>", "no answer"),
        ('{"clusters": [], "clusters": [1]}', "given twice"),
        ('{"clusters": [{"a": 1, "a": 2}]}', "given twice"),
        ('{"clusters": NaN}', "NaN is not JSON"),
        ('{"clusters": ' + "9" * 5000 + "}", "cannot be read"),
        ("I would rather talk about the weather.", "no JSON object"),
        ('{"other": 1}', "no clusters"),
        ("[1, 2]", "no JSON object"),
        ("{" * 200, "nested"),
        ('{"clusters":' + "[" * 40 + "]" * 40 + "}", "nested"),
        ("{} " * 80, "braces"),
        ("x" * (MAX_REPLY_CHARS + 1), "longer than"),
    ],
)
def test_doubt_is_refused_with_the_reason(text: str, words: str) -> None:
    """No object, two objects, doubled keys, half thoughts, hostile sizes: refused, and the reason says why."""
    found = read(text)

    assert isinstance(found, Unusable)
    assert words in found.reason


def test_a_cut_reply_is_called_cut() -> None:
    """The end of the text inside the object is told apart from text that is no JSON."""
    assert read(RAW[: len(RAW) // 2]).cut
    assert not read("{ not json }").cut


@pytest.mark.parametrize(
    "text",
    [
        '\\"' * 400_000,
        '"' * 900_000,
        "{" * 900_000,
        "[" * 900_000,
        '{"a":' * 180_000,
        "<think>" * 140_000,
        "</think>" * 120_000,
        '{"x":"' + "</think>" * 100_000,
        "{ " * 450_000,
        ('{"clusters": ' + "{" * 20) * 20_000,
    ],
    ids=lambda t: t[:12],
)
def test_hostile_replies_are_refused_in_bounded_time(text: str) -> None:
    """Megabytes made to be slow to search are refused within two seconds."""
    begin = time.perf_counter()

    assert isinstance(read(text), Unusable)
    assert time.perf_counter() - begin < 2


@given(st.text(alphabet='{}[]"\\:,`<>/think \n1a', max_size=300))
def test_no_text_raises(text: str) -> None:
    """Whatever a model says, the outcome is a value."""
    assert isinstance(extract(text, fits), Extracted | Unusable)

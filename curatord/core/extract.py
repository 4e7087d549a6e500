r"""
The one JSON object out of a model's reply, or a reason why there is none that could be trusted.

What is wanted: the same object whether the model sends it raw, in a code fence, after a sentence, or behind its
thoughts; and never an object that is only part of what the model meant to say.

What can go wrong, and what is done:

- Thoughts. `<think>…</think>` at the start is cut, also where only the closing tag came (the opening one was part of
the
  server's template). A block that was never closed is cut at its tag: what follows counts only if it is one object
  that fits and nothing comes after it. Thoughts hold drafts, so an object inside a closed block is never looked at.
- Fences and prose. Objects are looked for where they begin, by the JSON grammar itself, so a fence inside a string
value or a
  brace in a sentence (`{as asked}`) is no trouble and no fence has to be understood.
- Cut text. An object that ran into the end of the text makes the whole reply cut, also when smaller objects inside
it are whole. - Doubt. Two objects that both fit, or a key given twice in one object, are refused: which one was
meant cannot be known. - Hostile size. Length, depth and the number of attempts are bounded; a reply beyond them is
refused, not searched.

Time is linear in the length for each attempt, and attempts are at most `MAX_ATTEMPTS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecodeError, JSONDecoder
from typing import Any, Generic, TypeVar

from curatord.core.cheap import dataclass

__all__ = ["MAX_DEPTH", "MAX_REPLY_CHARS", "Extracted", "Unusable", "extract"]

MAX_REPLY_CHARS = 1_000_000
MAX_DEPTH = 32
MAX_ATTEMPTS = 64

T = TypeVar("T")

WORDS = "think|thinking|thought|reasoning"
OPENING = re.compile(rf"[<\[](?:{WORDS})[>\]]", re.IGNORECASE)
CLOSING = re.compile(rf"[<\[]/(?:{WORDS})[>\]]", re.IGNORECASE)
# A string runs to its quote or to the end of the text: were an open one no token, a row of `\"` would cost a square.
TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Extracted(Generic[T]):
    """The one object that fits, as *value*."""

    value: T


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """
    Why a reply gives no object. *reason* is one sentence that can be told to the model; *cut*: it ended too early.
    """

    reason: str
    cut: bool = False
    too_large: bool = False


class _RefusedError(ValueError):
    """Raised inside the decoder where the grammar is kept and the meaning is in doubt."""


def _pairs(rows: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(rows)
    if len(found) != len(rows):
        names = [name for name, _ in rows]
        twice = next(name for name in names if names.count(name) > 1)
        raise _RefusedError(f"the key {twice[:60]!r} is given twice in one object")
    return found


def _constant(name: str) -> Any:
    raise _RefusedError(f"{name} is not JSON")


DECODER = JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def extract(text: str, fits: Callable[[dict[str, Any]], T | str]) -> Extracted[T] | Unusable:
    """
    Return the one object in *text* for which *fits* gives a value, or why there is none.

    Args:
        text: The whole reply, as it came.
        fits: Gives the typed value of an object, or a sentence that says what is wrong with it.
    """
    if len(text) > MAX_REPLY_CHARS:
        return Unusable(reason=f"the reply is longer than {MAX_REPLY_CHARS:,} characters", too_large=True)
    answer, open_thought = _without_thoughts(text.strip().lstrip("\ufeff"))
    if not answer.strip():
        return Unusable(reason="the reply holds no answer", cut=open_thought)
    depth = _depth(answer)
    if depth > MAX_DEPTH:
        return Unusable(reason=f"the reply is nested {depth} levels deep, at most {MAX_DEPTH} are read")
    return _search(answer, fits, alone=open_thought)


def _without_thoughts(text: str) -> tuple[str, bool]:
    """
    Return *text* behind its thoughts, and whether these were never closed.

    The last closing tag counts, with or without an opening one: a thought may speak of the tag. One inside a JSON
    object is content.
    """
    tags = list(CLOSING.finditer(text))
    if tags:
        objects = _objects(text)
        tags = [t for t in tags if not any(start < t.start() < end for start, end in objects)]
    if tags:
        return text[tags[-1].end() :], False
    opening = OPENING.match(text)
    return (text[opening.end() :], True) if opening else (text, False)


def _objects(text: str) -> list[tuple[int, int]]:
    """Return where the whole JSON objects of *text* begin and end: a tag in there is content, not markup."""
    found = []
    start = text.find("{")
    for _ in range(MAX_ATTEMPTS):
        if start < 0:
            break
        try:
            _, end = DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        found.append((start, end))
        start = text.find("{", end)
    return found


def _depth(text: str) -> int:
    """Return the deepest nesting of brackets outside strings. Prose can only make this larger than it is."""
    depth = deepest = 0
    for token in TOKEN.finditer(text):
        match token[0]:
            case "{" | "[":
                depth += 1
                deepest = max(deepest, depth)
            case "}" | "]":
                depth = max(0, depth - 1)
            case _:
                pass
    return deepest


def _search(text: str, fits: Callable[[dict[str, Any]], T | str], *, alone: bool) -> Extracted[T] | Unusable:
    """Return the one fitting object of *text*. *alone*: it must be the only one, and nothing but a fence may follow."""
    found: list[T] = []
    wrong: list[str] = []
    position, end = text.find("{"), 0
    for _ in range(MAX_ATTEMPTS):
        if position < 0:
            break
        try:
            value, end = DECODER.raw_decode(text, position)
        except _RefusedError as error:
            return Unusable(reason=str(error))
        except JSONDecodeError as error:
            if _ran_out(error, text):
                return Unusable(reason="the reply ends in the middle of its JSON object", cut=True)
            wrong.append(f"not JSON at character {error.pos}: {error.msg}")
            position = text.find("{", position + 1)
            continue
        except (ValueError, RecursionError) as error:  # a number of thousands of digits; nesting the decoder gave up on
            return Unusable(reason=f"the reply cannot be read as JSON ({type(error).__name__})")
        try:
            answer = fits(value)
        except RecursionError:  # nested less deep than the decoder's limit, deeper than anybody else's
            return Unusable(reason="the reply is nested too deeply")
        if isinstance(answer, str):
            wrong.insert(0, answer)
        else:
            found.append(answer)
        position = text.find("{", end)
    else:
        return Unusable(reason=f"the reply holds more than {MAX_ATTEMPTS} braces outside its JSON object")
    if len(found) == 1:
        if alone and (wrong or text[end:].strip().strip("`").strip()):
            return Unusable(reason="the thoughts were never closed and the object is not all that follows")
        return Extracted(found[0])
    if found:
        return Unusable(reason=f"the reply holds {len(found)} objects that could be the answer, and one is wanted")
    return Unusable(reason=wrong[0] if wrong else "the reply holds no JSON object")


def _ran_out(error: JSONDecodeError, text: str) -> bool:
    """Return whether the decoder met the end of *text*, rather than a character that does not belong."""
    rest = len(text.rstrip().rstrip("`").rstrip())
    return error.pos >= rest or error.msg.startswith("Unterminated string")

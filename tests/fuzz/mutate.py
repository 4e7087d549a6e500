"""
Changes of an input that know a little of its form: a value of a JSON line, a cell, a header line, a run of bytes.

Coverage guidance finds bytes; what breaks readers of records is more often a value of another type three levels down,
which flipped bits hardly ever make. Both are used: one change in two is of this module, the others are the fuzzer's.
"""

from __future__ import annotations

import json
import random
from typing import Any

__all__ = ["ODD_TEXTS", "ODD_VALUES", "mutated"]

ODD_TEXTS = (
    "", " ", "\0", "\x1b[31m", "\x1b]8;;http://x.invalid\x07y", "\x9b2J", "\u202eabc", "\u2028", "\ud800", "\ufeff",
    "../../../etc/passwd", "/", "..", ".", "CON", "a/../../b", "x" * 5000, "e\u0301", "\u00e9", "~", "${HOME}", "NaN",
    "2026-13-45T99:99:99Z", "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00+23:59", "1e400", "-0", "true", "null",
    "</curatord-data>", "```", "---", "- &a [*a]", "!!python/object/apply:os.system [id]", "{{7*7}}", "%s%n", "\r\n",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, -1e308, [], {}, [[]], [None], {"": None},
    {"text": 1}, [{"type": "text"}], [{"type": "text", "text": None}], [1, "a", None, {}], *ODD_TEXTS,
)  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return *data* with one to three changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice((_value, _value, _value, _line, _bytes))(data, rng)
    return data


def _value(data: bytes, rng: random.Random) -> bytes:
    """Change a value in one of the JSON lines, or in the document."""
    lines = data.split(b"\n")
    places = [number for number, line in enumerate(lines) if line[:1] in (b"{", b"[")]
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        if not places:
            return _bytes(data, rng)
        number = rng.choice(places)
        try:
            lines[number] = _dumped(_changed(json.loads(lines[number]), rng))
        except (ValueError, RecursionError):
            return _bytes(data, rng)
        return b"\n".join(lines)
    return _dumped(_changed(whole, rng))


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def _changed(value: Any, rng: random.Random) -> Any:
    """Return *value* with one part of it replaced, dropped, doubled or put elsewhere."""
    spots: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            spots += [(node, key) for key in node]
            stack += node.values()
        elif isinstance(node, list):
            spots += [(node, index) for index in range(len(node))]
            stack += node
    if not spots:
        return rng.choice(ODD_VALUES)
    node, key = rng.choice(spots)
    match rng.randrange(6):
        case 0 | 1 | 2:
            node[key] = rng.choice(ODD_VALUES)
        case 3:
            del node[key]
        case 4:
            other, there = rng.choice(spots)
            node[key] = json.loads(json.dumps(other[there])) if there in other or isinstance(other, list) else None
        case _:
            node[key] = [node[key]] if rng.random() < 0.5 else {"x": node[key]}
    return value


def _line(data: bytes, rng: random.Random) -> bytes:
    """Drop, double, swap or cut a line."""
    lines = data.split(b"\n")
    number = rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[number]
        case 1:
            lines.insert(rng.randrange(len(lines) + 1), lines[number])
        case 2:
            lines[number] = lines[number][: rng.randrange(len(lines[number]) + 1)]
        case _:
            lines[number] += lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def _bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip a bit, put an odd text in, or take a run of bytes out."""
    at = rng.randrange(len(data) + 1)
    match rng.randrange(4):
        case 0 if at < len(data):
            return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        case 1:
            return data[:at] + data[at + rng.randrange(1, 64) :]
        case 2:
            return data[:at] + bytes(rng.randrange(256) for _ in range(rng.randrange(1, 5))) + data[at:]
        case _:
            return data[:at] + rng.choice(ODD_TEXTS).encode("utf-8", "surrogatepass") + data[at:]

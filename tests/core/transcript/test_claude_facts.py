"""
Each made-up transcript in tests/data/claude_code stands for one fact; `expected.json` says what it comes to.

Each is read whole, one byte at a time, in random pieces, in two readings with the state carried over at every line, and
with rubbish before, between and behind its lines.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from curatord.core.transcript.claude_code import ClaudeCodeParser
from curatord.core.transcript.events import Findings
from curatord.core.transcript.ids import Guard
from curatord.core.transcript.lines import LineSplitter
from curatord.core.transcript.times import iso_of

DATA = Path(__file__).resolve().parents[2] / "data" / "claude_code"
EXPECTED: dict[str, dict[str, Any]] = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
FACTS = sorted(EXPECTED)
NOW_MS = 1_790_000_000_000  # September 2026


def parser(path: str, state: bytes = b"", before: bytes = b"", *, fresh: bool = True) -> ClaudeCodeParser:
    return ClaudeCodeParser(path, state=state, fresh=fresh, guard=Guard(), before=Guard(before), now_ms=NOW_MS)


def fed(reader: ClaudeCodeParser, splitter: LineSplitter, *pieces: bytes) -> None:
    for piece in pieces:
        reader.feed(splitter.feed(piece))


def summed(*found: Findings) -> dict[str, Any]:
    """Return in short what several readings found together."""
    calls: dict[str, int] = {}
    events = []
    retracted = []
    totals = dict.fromkeys(("records", "unreadable", "user_turns", "assistant_turns"), 0)
    for tally in (tally for findings in found for tally in findings.sessions.values()):
        for name in totals:
            totals[name] += getattr(tally, name)
        for name, count in tally.tool_calls.items():
            calls[name] = calls.get(name, 0) + count
        retracted += tally.retracted
        events += [(s.ref, [iso_of(s.at_ms or 0), s.skill, s.kind.value, s.via]) for s in tally.sightings]
    return {
        **totals,
        "tool_calls": dict(sorted(calls.items())),
        "events": sorted(told for ref, told in events if ref not in retracted),
    }


def whole(name: str, data: bytes) -> Findings:
    reader, splitter = parser(EXPECTED[name].get("path", "-p/main.jsonl")), LineSplitter()
    fed(reader, splitter, data)
    last = splitter.last_line()
    if last is not None:
        reader.feed([last])
    reader.settle()
    return reader.findings()


def expected(name: str) -> dict[str, Any]:
    counts = dict.fromkeys(("records", "unreadable", "user_turns", "assistant_turns"), 0)
    told = {**counts, "tool_calls": {}, "events": [], **EXPECTED[name]}
    told["events"] = sorted(told["events"])
    return {key: told[key] for key in (*counts, "tool_calls", "events")}


def content(name: str) -> bytes:
    return (DATA / f"{name}.jsonl").read_bytes()


@pytest.mark.parametrize("name", FACTS)
def test_whole(name: str) -> None:
    """Read in one piece, the transcript comes to what its fact says."""
    assert expected(name) == summed(whole(name, content(name)))


@pytest.mark.parametrize("name", FACTS)
def test_one_byte_at_a_time(name: str) -> None:
    """Fed byte by byte, it comes to the same."""
    reader, splitter = parser(EXPECTED[name].get("path", "-p/main.jsonl")), LineSplitter()
    data = content(name)
    fed(reader, splitter, *(data[at : at + 1] for at in range(len(data))))
    last = splitter.last_line()
    if last is not None:
        reader.feed([last])
    reader.settle()

    assert expected(name) == summed(reader.findings())


@pytest.mark.parametrize("name", FACTS)
@pytest.mark.parametrize("seed", range(5))
def test_random_pieces(name: str, seed: int) -> None:
    """Fed in pieces of any size, it comes to the same."""
    rng = random.Random(seed)
    reader, splitter = parser(EXPECTED[name].get("path", "-p/main.jsonl")), LineSplitter()
    data = content(name)
    at = 0
    while at < len(data):
        step = rng.choice((1, 7, 64, 500, 5000))
        fed(reader, splitter, data[at : at + step])
        at += step
    last = splitter.last_line()
    if last is not None:
        reader.feed([last])
    reader.settle()

    assert expected(name) == summed(reader.findings())


@pytest.mark.parametrize("name", FACTS)
def test_a_scan_after_every_line(name: str) -> None:
    """Read line by line with only the saved state between, by a new parser each time, it comes to the same."""
    path = EXPECTED[name].get("path", "-p/main.jsonl")
    data = content(name)
    found, state, keys = [], b"", b""
    splitter = LineSplitter()
    lines = [line for piece in data.splitlines(keepends=True) for line in splitter.feed(piece)]
    last = splitter.last_line()
    for number, line in enumerate(lines + ([last] if last is not None else [])):
        reader = parser(path, state, keys, fresh=number == 0)
        reader.feed([line])
        found.append(reader.findings())
        state = reader.state()
        keys += found[-1].keys
    reader = parser(path, state, keys, fresh=False)
    reader.settle()
    found.append(reader.findings())

    assert expected(name) == summed(*found)


@pytest.mark.parametrize("name", FACTS)
def test_read_again_under_its_own_keys(name: str) -> None:
    """Read anew under the guard of its keys, it adds nothing, not even an unreadable record."""
    once = whole(name, content(name))
    reader = ClaudeCodeParser(
        EXPECTED[name].get("path", "-p/main.jsonl"),
        state=b"",
        fresh=True,
        guard=Guard(once.keys),
        before=Guard(),
        now_ms=NOW_MS,
    )
    splitter = LineSplitter()
    fed(reader, splitter, content(name))
    last = splitter.last_line()
    if last is not None:
        reader.feed([last])
    reader.settle()
    again = reader.findings()
    tallies = again.sessions.values()

    assert sum(t.records + t.unreadable + t.user_turns + t.assistant_turns for t in tallies) == 0
    assert not again.keys
    assert not [s for t in tallies for s in t.sightings]


RUBBISH = [
    b"not json at all",
    b'{"type":"user","message":{"role":"user","content":"cut in the mid',
    b"\x00\x00\x00\x00\x00",
    b"   ",
    b'[1, 2, {"type": "user"}]',
    b"42",
    b'"text"',
    b"{}",
    b"\xff\xfe{\xff",
]


@pytest.mark.parametrize("name", FACTS)
def test_rubbish_around(name: str) -> None:
    """Rubbish before, between and behind the lines is counted as unreadable and changes nothing else."""
    lines = content(name).split(b"\n")
    mixed = b"\n".join(piece for line in lines for piece in (*RUBBISH, line)) + b"\n" + b"\n".join(RUBBISH) + b"\n"
    times = len(lines) + 1
    want = expected(name)
    got = summed(whole(name, mixed))

    # Three of nine are no JSON, `{}` is a record of no known type, and other values are passed over. A torn line is no
    # longer the last one.
    torn = name == "torn-last-line-waits"
    assert {**want, "records": want["records"] + times, "unreadable": want["unreadable"] + 3 * times + torn} == got

"""
Each made-up transcript in tests/data/<host> stands for one fact; the `expected.json` beside it says what it comes to.

Each is read whole, one byte at a time, in random pieces, in readings with only the state between, again under its own
keys, and with rubbish before, between and behind its lines. The last part feeds all readers what no host would write.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.cheap import replace
from curatord.core.transcript.codex import CodexParser
from curatord.core.transcript.copilot_cli import CopilotCliParser
from curatord.core.transcript.cursor import CursorParser, CursorTextParser
from curatord.core.transcript.events import Findings
from curatord.core.transcript.gemini_cli import GeminiCliParser
from curatord.core.transcript.ids import Guard
from curatord.core.transcript.lines import LineReader, LineSplitter, objects
from curatord.core.transcript.pi import PiParser
from curatord.core.transcript.qwen_code import QwenCodeParser
from curatord.core.transcript.record_parser import RecordParser
from curatord.core.transcript.times import iso_of

DATA = Path(__file__).resolve().parents[2] / "data"
NOW_MS = 1_790_000_000_000  # September 2026
MTIME_MS = 1_780_272_000_000  # 2026-06-01T00:00:00Z, what files without times are from
Parser = RecordParser[Any, Any]
HOSTS: dict[str, Callable[..., Parser]] = {
    "codex": CodexParser,
    "pi": PiParser,
    "gemini-cli": GeminiCliParser,
    "qwen-code": QwenCodeParser,
    "copilot-cli": CopilotCliParser,
    "cursor": CursorParser,
}
PATHS = {
    "codex": "2026/03/01/rollout-2026-03-01T12-00-00-019a0000-0000-7000-8000-00000000000a.jsonl",
    "pi": "--home-dev-app--/2026-03-01T12-00-00-000Z_01a22d95-12ad-708d-b228-7c8c0d3f69c6.jsonl",
    "gemini-cli": "app/chats/session-2026-03-01T12-00-76f9f554.jsonl",
    "qwen-code": "-home-dev-app/chats/fab5dbca-2f73-4269-887d-51c2737397d7.jsonl",
    "copilot-cli": "5b5b5b5b-0000-4000-8000-000000000001/events.jsonl",
}
COUNTS = ("records", "unreadable", "user_turns", "assistant_turns")


class Fact:
    """One fixture: its host, its name, its bytes, and what they come to."""

    def __init__(self, host: str, name: str, told: dict[str, Any]) -> None:
        self.host = host
        self.name = name
        self.told = told
        self.path: str = told.get("path") or PATHS[host]
        self.data = (DATA / host / told["file"]).read_bytes()
        self.is_text = told["file"].endswith(".txt")

    def __str__(self) -> str:
        return f"{self.host}-{self.name}"

    def parser(
        self, state: bytes = b"", *, fresh: bool = True, guard: Guard | None = None, before: bytes = b""
    ) -> Parser:
        """Return a parser for the fixture."""
        made = CursorTextParser if self.is_text else HOSTS[self.host]
        return made(
            self.path,
            state=state,
            fresh=fresh,
            guard=guard or Guard(),
            before=Guard(before),
            now_ms=NOW_MS,
            mtime_ms=MTIME_MS,
        )

    def expected(self) -> dict[str, Any]:
        """Return counts, calls and events."""
        told = {**dict.fromkeys(COUNTS, 0), "tool_calls": {}, "events": [], **self.told}
        told["events"] = sorted(told["events"])
        return {key: told[key] for key in (*COUNTS, "tool_calls", "events")}


def every_fact() -> list[Fact]:
    return [
        Fact(host, name, told)
        for host in HOSTS
        for name, told in sorted(json.loads((DATA / host / "expected.json").read_text(encoding="utf-8")).items())
    ]


FACTS = every_fact()
facts = pytest.mark.parametrize("fact", FACTS, ids=str)


def read(reader: Parser, *pieces: bytes) -> Findings:
    """Feed *pieces* as one settled file, and return what was found."""
    splitter = LineSplitter()
    for piece in pieces:
        reader.feed(splitter.feed(piece))
    last = splitter.last_line()
    if last is not None:
        reader.feed([last])
    reader.settle()
    return reader.findings()


def summed(*found: Findings) -> dict[str, Any]:
    """Return in short what several readings found together."""
    calls: dict[str, int] = {}
    events = []
    retracted = []
    totals = dict.fromkeys(COUNTS, 0)
    for tally in (tally for findings in found for tally in findings.sessions.values()):
        for name in totals:
            totals[name] += getattr(tally, name)
        for name, count in tally.tool_calls.items():
            calls[name] = calls.get(name, 0) + count
        retracted += tally.retracted
        events += [(s.ref, [iso_of(s.at_ms or 0), s.skill, s.kind.value, s.via]) for s in tally.sightings]
    return {
        **totals,
        "tool_calls": calls,
        "events": sorted(told for ref, told in events if ref not in retracted),
    }


@facts
def test_whole(fact: Fact) -> None:
    """Read in one piece, the transcript comes to what its fact says."""
    assert fact.expected() == summed(read(fact.parser(), fact.data))


@facts
def test_what_is_said_of_the_session(fact: Fact) -> None:
    """Session, parent, kind, unknown types and times are those of the fact, where it says something of them."""
    found = read(fact.parser(), fact.data)
    (tally,) = found.sessions.values()
    got: dict[str, Any] = {
        "session": tally.session_id,
        "kind": tally.kind.value,
        "parent": tally.parent,
        "side": tally.side,
        "cwds": tally.cwds,
        "unknown": found.unknown,
        "work": bool(tally.hours),
        "first_at": iso_of(tally.first_ms) if tally.first_ms else None,
        "last_at": iso_of(tally.last_ms) if tally.last_ms else None,
        "estimated": any(sighting.estimated for sighting in tally.sightings),
    }
    want = {"unknown": {}, "parent": None, "side": False, **{k: v for k, v in fact.told.items() if k in got}}

    assert want == {key: got[key] for key in want}


@facts
def test_one_byte_at_a_time(fact: Fact) -> None:
    """Fed byte by byte, it comes to the same."""
    pieces = (fact.data[at : at + 1] for at in range(len(fact.data)))

    assert fact.expected() == summed(read(fact.parser(), *pieces))


@facts
@pytest.mark.parametrize("seed", range(3))
def test_random_pieces(fact: Fact, seed: int) -> None:
    """Fed in pieces of any size, it comes to the same."""
    rng = random.Random(seed)
    pieces = []
    at = 0
    while at < len(fact.data):
        step = rng.choice((1, 7, 64, 500, 5000))
        pieces.append(fact.data[at : at + step])
        at += step

    assert fact.expected() == summed(read(fact.parser(), *pieces))


@facts
def test_a_scan_after_every_line(fact: Fact) -> None:
    """Read line by line with only the saved state between, by a new parser each time, it comes to the same."""
    splitter = LineSplitter()
    lines = [line for piece in fact.data.splitlines(keepends=True) for line in splitter.feed(piece)]
    last = splitter.last_line()
    found, state, keys = [], b"", b""
    for number, line in enumerate(lines + ([last] if last is not None else [])):
        reader = fact.parser(state, fresh=number == 0, before=keys)
        reader.feed([line])
        found.append(reader.findings())
        state = reader.state()
        keys += found[-1].keys
    reader = fact.parser(state, fresh=False, before=keys)
    reader.settle()
    found.append(reader.findings())

    assert fact.expected() == summed(*found)


@facts
def test_read_again_under_its_own_keys(fact: Fact) -> None:
    """Read anew under the guard of its keys, it adds nothing, not even an unreadable record."""
    once = read(fact.parser(), fact.data)
    again = read(fact.parser(guard=Guard(once.keys)), fact.data)

    assert not again.keys
    assert {**dict.fromkeys(COUNTS, 0), "tool_calls": {}, "events": []} == summed(again)


@facts
def test_keys_are_one_a_record_and_all_different(fact: Fact) -> None:
    """Each record counted has a key of its own; the first ones stand first among the heads."""
    found = read(fact.parser(), fact.data)
    keys = [found.keys[at : at + 8] for at in range(0, len(found.keys), 8)]

    assert len(keys) == len(set(keys))
    assert len(keys) >= found.records
    assert found.heads[:8] == keys[0]


@facts
def test_read_from_a_file_and_from_a_stream(fact: Fact) -> None:
    """Lines pulled from a file and lines split from a stream have the same keys, so a packed file is known again."""
    reader = fact.parser()
    lines = LineReader(io.BytesIO(fact.data).readline)
    while not lines.ended:
        reader.feed(lines.lines(500))
    last = lines.last_line()
    if last is not None:
        reader.feed([last])
    reader.settle()
    found = reader.findings()

    assert fact.expected() == summed(found)
    assert read(fact.parser(), fact.data).keys == found.keys


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


@pytest.mark.parametrize("fact", [fact for fact in FACTS if not fact.is_text], ids=str)
def test_rubbish_around(fact: Fact) -> None:
    """Rubbish before, between and behind the lines is counted as unreadable and changes nothing else."""
    lines = fact.data.split(b"\n")
    mixed = b"\n".join(piece for line in lines for piece in (*RUBBISH, line)) + b"\n" + b"\n".join(RUBBISH) + b"\n"
    times = len(lines) + 1
    want = fact.expected()
    torn = "torn" in fact.name  # no longer the last line

    got = summed(read(fact.parser(), mixed))

    # Three of nine are no JSON, `{}` is a record of no known type, and other values are passed over.
    assert {**want, "records": want["records"] + times, "unreadable": want["unreadable"] + 3 * times + torn} == got


@facts
def test_cut_anywhere(fact: Fact) -> None:
    """Cut at any byte, it raises nothing and finds no event that the whole does not have."""
    whole = summed(read(fact.parser(), fact.data))["events"]
    rng = random.Random(str(fact))

    for at in rng.sample(range(len(fact.data)), min(60, len(fact.data))):
        events = summed(read(fact.parser(), fact.data[:at]))["events"]
        # A failure may be told only behind the cut: what it is a failure of then counts as done.
        named = {event[1] for event in whole} | {"notes", "csv-clean", "gone", "nope", "fresh"}
        assert {event[1] for event in events} <= named


@facts
def test_bytes_overwritten(fact: Fact) -> None:
    """With bytes of it overwritten at random, it raises nothing, and every line is a record or an unreadable one."""
    rng = random.Random(str(fact))
    for _ in range(30):
        data = bytearray(fact.data)
        for _ in range(rng.randrange(1, 12)):
            data[rng.randrange(len(data))] = rng.choice((0, 10, 34, 92, 123, 125, 255, rng.randrange(256)))
        read(fact.parser(), bytes(data))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("host", HOSTS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_fields_of_any_type(host: str, data: st.DataObject) -> None:
    """With any value in any of its fields, a record raises nothing, is a record, and makes no event out of nothing."""
    fact = data.draw(st.sampled_from([fact for fact in FACTS if fact.host == host and not fact.is_text]))
    lines = [value for line in fact.data.splitlines() for value in objects(line) if isinstance(value, dict)]
    record = data.draw(st.sampled_from(lines))
    spots: list[tuple[Any, Any]] = []

    def gather(value: Any) -> None:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            spots.append((value, key))
            if isinstance(inner, (dict, list)):
                gather(inner)

    gather(record)
    holder, key = data.draw(st.sampled_from(spots))
    holder[key] = data.draw(VALUES)

    found = read(fact.parser(), json.dumps(record).encode() + b"\n")

    assert found.records == 1
    assert not [s for t in found.sessions.values() for s in t.sightings if not s.skill or len(s.skill) > 200]


@pytest.mark.parametrize("host", HOSTS)
@settings(max_examples=80, deadline=None)
@given(data=st.binary(max_size=400))
def test_any_bytes(host: str, data: bytes) -> None:
    """Any bytes at all raise nothing and are no event."""
    fact = next(fact for fact in FACTS if fact.host == host)
    found = read(fact.parser(), data)

    assert not [s for tally in found.sessions.values() for s in tally.sightings]


def names_in(value: Any) -> set[str]:
    """Return the names of all fields in *value*."""
    if isinstance(value, list):
        return {name for inner in value for name in names_in(inner)}
    if isinstance(value, dict):
        return {*value, *(name for inner in value.values() for name in names_in(inner))}
    return set()


def inflated(value: Any, name: str, *, here: bool = False) -> Any:
    """Return *value* with each text in a field *name* made huge."""
    if isinstance(value, dict):
        return {key: inflated(inner, name, here=key == name) for key, inner in value.items()}
    if isinstance(value, list):
        return [inflated(inner, name, here=here) for inner in value]
    return value + "x" * 50_000 if here and isinstance(value, str) else value


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_kept_is_bounded_whatever_a_field_holds(host: str) -> None:
    """No id, name, folder or time of megabytes goes from one scan to the next, or into the database."""
    kept: dict[str, int] = {}
    for fact in FACTS:
        if fact.host != host or fact.is_text:
            continue
        values = [value for line in fact.data.splitlines() for value in objects(line) if isinstance(value, dict)]
        for name in sorted(names_in(values)):
            reader = fact.parser()
            for at, value in enumerate(values):
                reader.feed([(json.dumps(inflated(value, name)).encode(), at)])
                state = reader.state()
                found = reader.findings()
                kept[name] = max(kept.get(name, 0), len(state), len(repr((found.versions, found.unknown, found.notes))))
                for tally in found.sessions.values():
                    kept[name] = max(kept[name], len(repr(replace(tally, hours={}, turns_by_day={}))))

    assert {} == {name: size for name, size in kept.items() if size > 40_000}


@pytest.mark.parametrize("host", HOSTS)
def test_oversize_lines_are_records_by_their_ends(host: str) -> None:
    """A line of which only both ends are held is a record of its session, with a note, and once however often read."""
    fact = next(fact for fact in FACTS if fact.host == host and fact.expected()["records"] > 2 and not fact.is_text)
    lines = [line for line in fact.data.splitlines() if line]
    huge = lines[2][:-1] + b',"blob":"' + b"x" * 200_000 + b'"}'
    reader = fact.parser()
    reader.feed([(line, at) for at, line in enumerate(lines[:2])])
    reader.oversize(huge[:65536], huge[-65536:], len(huge), 99)
    found = reader.findings()
    again = fact.parser(guard=Guard(found.keys))
    again.feed([(line, at) for at, line in enumerate(lines[:2])])
    again.oversize(huge[:65536], huge[-65536:], len(huge), 99)

    assert found.oversize == 1
    assert found.records == 3
    assert len(found.notes) == 1
    assert again.findings().records == 0

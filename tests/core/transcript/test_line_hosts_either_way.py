"""
The quick way through each host's records and the long one say the same of any lines.

A guard that holds none of their keys sends every record the long way and changes nothing else. The lines are made-up
conversations with the fixtures of `tests/data` between them, in runs, some of them twice, cut, glued to others, with
NULs, with another value, with one key more or twice, or with times that go back.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from curatord.core.transcript.codex import CodexParser
from curatord.core.transcript.copilot_cli import CopilotCliParser
from curatord.core.transcript.cursor import CursorParser
from curatord.core.transcript.dsh import DshParser
from curatord.core.transcript.events import Findings
from curatord.core.transcript.gemini_cli import GeminiCliParser
from curatord.core.transcript.ids import Guard
from curatord.core.transcript.ledger import Ledger
from curatord.core.transcript.lines import LineSplitter
from curatord.core.transcript.openclaw import OpenClawParser, OpenClawRows, Place
from curatord.core.transcript.pi import PiParser
from curatord.core.transcript.qwen_code import QwenCodeParser
from curatord.core.transcript.record_parser import RecordParser
from curatord.core.transcript.times import ms_of_iso
from tests.bench import bench_readers as made_up

DATA = Path(__file__).resolve().parents[2] / "data"
NOW_MS = 1_790_000_000_000
UNRELATED = Guard(b"\xff" * 8)
Lines = Callable[[str, Any, str, int], list[Any]]


def dsh(kind: str, what: Any, at: str, n: int) -> list[Any]:
    """Return the rows of a step as the host writes them."""
    ms = ms_of_iso(at, now_ms=0).ms
    rows: list[tuple[str, Any]]
    if kind == "prompt":
        said = {"id": f"u{n}", "role": "user", "content": [{"type": "text", "text": what}], "source": {"kind": "user"}}
        rows = [("turn/start", {"turn": n}), ("user/message", said)]
    elif kind == "result":
        block = {"type": "tool-result", "toolCallId": what[0], "isError": n % 7 == 0, "content": what[1]}
        message = {"source": {"kind": "tool", "callId": what[0]}, "content": [block], "role": "user"}
        rows = [("tool/result", {"turn": 1, "message": message}), ("step/end", {"turn": 1})]
    else:
        rows = [("text-chunks", {"texts": ["a"]}), ("assistant/message", {"message": {"id": f"m{n}"}})]
        if kind == "call":
            call = {"callId": what[0], "name": "read", "arguments": json.dumps({"file_path": what[1]})}
            rows.append(("tool/call", call))
    head = [{"type": "session", "version": 0, "id": "session-1", "createdAt": ms, "cwd": "/home/dev"}] if n == 1 else []
    return head + [
        {"type": type_, "seq": n * 4 + at, "time": ms, "data": data} for at, (type_, data) in enumerate(rows)
    ]


HOSTS: dict[str, tuple[Callable[..., RecordParser[Any, Any]], Lines, str]] = {
    "codex": (CodexParser, made_up.codex, "rollout-2026-03-01T12-00-00-019a0000-0000-7000-8000-00000000000a.jsonl"),
    "pi": (PiParser, made_up.pi, "--app--/2026_s.jsonl"),
    "openclaw": (OpenClawParser, made_up.pi, "main/sessions/s.jsonl"),
    "gemini-cli": (GeminiCliParser, made_up.gemini_cli, "app/chats/session-s.jsonl"),
    "qwen-code": (QwenCodeParser, made_up.qwen_code, "app/chats/s.jsonl"),
    "copilot-cli": (CopilotCliParser, made_up.copilot_cli, "s/events.jsonl"),
    "cursor": (CursorParser, made_up.cursor, "app/agent-transcripts/s/s.jsonl"),
    "dsh": (DshParser, dsh, "session-1/session.jsonl"),
}
ODD_VALUES: tuple[Any, ...] = (
    None, 1, 2.5, "", "x", True, [], {}, "user", "assistant", "message", "gemini", "response_item", [{"type": "text"}],
    "2026-03-02T10:00:00Z", "2199-03-02T10:00:00.000Z", "2026-03-02T10:00:00.000000Z", "2026-03-01T00:00:59.000Z",
    1_772_366_400_000, "call_000000000000000000000001", {"role": "assistant"}, "/home/dev/skills",
)  # fmt: skip


def talk(host: str, count: int) -> list[bytes]:
    """Return some *count* turns of a made-up conversation as the host's lines."""
    _, records, _ = HOSTS[host]
    talking = made_up.Talk()
    return [
        json.dumps(record, separators=(",", ":")).encode()
        for number, (kind, what) in enumerate(islice(talking.turns(), count), 1)
        for record in records(kind, what if isinstance(what, str) else tuple(part[:2000] for part in what),
                              talking.time(), number)
    ]  # fmt: skip


LONG = {
    "plain": "x" * 4000,
    "with quotes": 'say "yes" ' * 400,
    "with a quote at its end": "x" * 4000 + '"',
    "with a backslash at its end": "x" * 4000 + "\\",
    "like the end of a record": "x" * 4000 + '"}}',
    "like the beginning of one": '{"timestamp":"2026-03-01T00:00:00.000Z","type":"response_item"' + "x" * 4000,
}
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda line: line,
    "glued": lambda line: line + line,
    "glued inside": lambda line: line[:2000] + line,
    "glued to another's end": lambda line: line[:2000] + line[60:],
    "cut": lambda line: line[:-2],
    "cut within": lambda line: line[:3000],
    "cut before an end": lambda line: line[:-3] + b"}}",
    "a hole": lambda line: line[:2000] + b"\0" * 100 + line[2100:],
    "a field twice": lambda line: line[:-2] + b',"call_id":"call_ffffffffffffffffffffffff"}}',
    "a field within": lambda line: line[:2000] + b'","call_id":"call_ffffffffffffffffffffffff","x":"' + line[2000:],
    "an id behind": lambda line: line[:-2] + b',"id":"fco_ffffffffffffffffffffffff"}}',
    "a type behind": lambda line: line[:-1] + b',"type":"event_msg"}',
    "another time behind": lambda line: line[:-1] + b',"timestamp":"2026-03-05T00:00:00.000Z"}',
    "blanks": lambda line: line.replace(b'","', b'", "', 1),
    "not its time": lambda line: line.replace(b"00Z", b"000Z", 1),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("output", LONG)
def test_a_long_output_either_way(output: str, damage: str) -> None:
    """Codex's long outputs are told by both ends where nothing can hide between them, and decoded anywhere else."""
    lines = talk("codex", 20)
    at = max(at for at, line in enumerate(lines) if b"function_call_output" in line)
    record = json.loads(lines[at])
    record["payload"]["output"] = LONG[output]
    for ident in ("call_00000000000000000000000e", "call_0000000000000000000000ff"):
        record["payload"]["call_id"] = ident
        line = json.dumps(record, separators=(",", ":")).encode()
        lines[at + 1 : at + 1] = [DAMAGE[damage](line), line]

    assert read("codex", lines, Guard(), 1) == read("codex", lines, UNRELATED, 1)


def every_object(value: Any) -> Iterator[dict[str, Any]]:
    """Yield *value* and all objects in it."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from every_object(each)


def mixed(host: str, seed: int) -> list[bytes]:
    """Return lines of the made-up conversation and of the fixtures, of which some are damaged."""
    chance = random.Random(seed)
    told = talk(host, 60)
    fixtures = [path.read_bytes().splitlines() for path in sorted((DATA / host).glob("*.jsonl"))]
    out: list[bytes] = told[: chance.randrange(30, 60)]
    for _ in range(14):
        lines = chance.choice(fixtures) if fixtures and chance.randrange(3) == 0 else told
        begin = chance.randrange(len(lines))
        for line in lines[begin : begin + 12]:
            how = chance.randrange(20)
            if how == 0:
                line = line[: chance.randrange(len(line) + 1)]
            elif how == 1:
                line += chance.choice(lines)
            elif how == 2:
                line = line[: chance.randrange(len(line) + 1)] + chance.choice(lines)
            elif how == 3:
                out.append(line)
            elif how == 4 and line:
                at = chance.randrange(len(line))
                line = line[:at] + b"\0" * 3 + line[at + chance.randrange(4) :]
            elif how in (5, 6, 7) and line.startswith(b"{"):
                line = changed(line, chance)
            elif how == 8 and line.endswith(b"}"):
                name = chance.choice(("type", "timestamp", "id", "uuid", "payload", "message", "data", "role", "seq"))
                line = line[:-1] + json.dumps({name: chance.choice(ODD_VALUES)}).encode().replace(b"{", b",", 1)
            out.append(line)
    return [line for line in out if line.strip(b" \r\n\0\t")]


def changed(line: bytes, chance: random.Random) -> bytes:
    """Return *line* with one value of one of its objects replaced, left out or added."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line
    inside = chance.choice(list(every_object(record)))
    name = chance.choice([*inside, "isError", "agentId", "id", "timestamp", "cwd", "call_id"])
    if chance.randrange(4):
        inside[name] = chance.choice(ODD_VALUES)
    else:
        inside.pop(name, None)
    return json.dumps(record, separators=(",", ":")).encode()


def read(host: str, lines: list[bytes], guard: Guard, pieces: int) -> list[tuple[Findings, bytes]]:
    """Return findings and state after each of some *pieces* of the *lines*."""
    make, _, path = HOSTS[host]
    how = {} if host in ("dsh", "openclaw") else {"mtime_ms": 1}
    parser = make(path, state=b"", fresh=True, guard=guard, before=Guard(), now_ms=NOW_MS, **how)
    splitter = LineSplitter()
    out = []
    size = len(lines) // pieces + 1
    for at in range(0, len(lines), size):
        parser.feed(splitter.feed(b"".join(line + b"\n" for line in lines[at : at + size])))
        if at + size >= len(lines):
            parser.settle()
        out.append((parser.findings(), parser.state()))
    return out


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("host", HOSTS)
def test_either_way(host: str, seed: int) -> None:
    """Counts, keys, events, times, what was unreadable, and the state: all the same, in one slice or several."""
    lines = mixed(host, seed)

    assert read(host, lines, Guard(), 1 + seed % 3) == read(host, lines, UNRELATED, 1 + seed % 3)


@pytest.mark.parametrize("host", HOSTS)
def test_a_conversation_either_way(host: str) -> None:
    """The same for one that nothing happened to, in which the usual record is met hundreds of times."""
    lines = talk(host, 400)

    quick = read(host, lines, Guard(), 1)

    assert quick == read(host, lines, UNRELATED, 1)
    assert not quick[0][0].bad
    assert sum(len(tally.sightings) for tally in quick[0][0].sessions.values()) > 0 or host == "gemini-cli"


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_read_again_is_known(host: str) -> None:
    """Whatever way a line went, its key is the one it has on the other: a second reading counts nothing."""
    lines = mixed(host, 7)
    first = read(host, lines, Guard(), 1)[0][0]

    again = read(host, lines, Guard(first.keys), 1)[0][0]

    assert 0 == sum(tally.records + tally.unreadable for tally in again.sessions.values())


@pytest.mark.parametrize("seed", range(20))
def test_rows_either_way(seed: int) -> None:
    """The same for the rows of OpenClaw's database."""
    rows = [(at, b"s", at, line, None, len(line)) for at, line in enumerate(mixed("openclaw", seed), 1)]

    def found(guard: Guard) -> tuple[Findings, bytes, tuple[bytes, bytes], int]:
        ledger = Ledger(guard)
        how: dict[str, Any] = {"state": b"", "fresh": False, "guard": Guard(), "before": Guard(), "now_ms": NOW_MS}
        parser = OpenClawRows("s", ledger, **how)
        place = Place(0, 1 << 30)
        behind = iter(rows)
        assert parser.rows(next(behind), behind, place) is None
        parser.settle()
        return parser.findings(), parser.state(), ledger.take(), place.at

    assert found(Guard()) == found(UNRELATED)

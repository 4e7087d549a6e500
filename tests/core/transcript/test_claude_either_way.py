"""The quick way through Claude Code's records and the long one say the same of any file."""

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

DATA = Path(__file__).resolve().parents[2] / "data" / "claude_code"
ODD_VALUES: tuple[Any, ...] = (
    None, 1, "", "x", True, [], {}, "user", "assistant", "progress", "2026-03-02T10:00:00Z", "2199-03-02T10:00:00.000Z",
)  # fmt: skip
ODD_NAMES = ("sessionId", "cwd", "version", "isSidechain", "uuid", "timestamp", "type", "message", "subtype", "isMeta")


def read(data: bytes, guard: Guard) -> tuple[Findings, bytes]:
    parser = ClaudeCodeParser("-p/main.jsonl", state=b"", fresh=True, guard=guard, before=Guard(), now_ms=0)
    parser.feed(LineSplitter().feed(data))
    return parser.findings(), parser.state()


def mixed(seed: int) -> bytes:
    """Return lines of several files in runs, some of them twice, changed in one value, cut, or run into another."""
    chance = random.Random(seed)
    files = [path.read_bytes().splitlines() for path in sorted(DATA.glob("*.jsonl"))]
    out = []
    for _ in range(12):
        lines = chance.choice(files)
        begin = chance.randrange(len(lines) + 1)
        for line in lines[begin : begin + 8]:
            how = chance.randrange(8)
            if how == 0:
                line = line[: chance.randrange(len(line) + 1)]
            elif how == 1:
                line += chance.choice(lines)
            elif how == 2:
                out.append(line)
            elif how == 3 and line.startswith(b"{") and line.endswith(b"}"):
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                record[chance.choice(ODD_NAMES)] = chance.choice(ODD_VALUES)
                line = json.dumps(record, separators=(",", ":")).encode()
            out.append(line)
    return b"\n".join(out) + b"\n"


@pytest.mark.parametrize("seed", range(60))
def test_either_way(seed: int) -> None:
    """A guard that holds none of the keys sends each record the long way, and changes nothing."""
    data = mixed(seed)

    assert read(data, Guard(b"\xff" * 8)) == read(data, Guard())


@pytest.mark.parametrize("path", sorted(DATA.glob("*.jsonl")), ids=lambda path: path.stem)
def test_each_fact_either_way(path: Path) -> None:
    """The same for the files as they are."""
    data = path.read_bytes()

    assert read(data, Guard(b"\xff" * 8)) == read(data, Guard())

"""
Each reader of databases and frames beside Claude Code's, per MiB of the same made-up conversations.

Run with `-m bench`. The goal is a ratio: at most twice the processor time of the Claude Code reader for a mebibyte of
records, the median over pairs measured in turn. Here the whole source is read, opening and unpacking included. What is
held to is what was reached (`MOST`). DSH's packed logs are read with the package zstandard where that is installed;
without it more than half the time goes into a decompressor for each frame of two KiB, 18 µs where a processor's
features are asked for through a virtual machine (`dsh alone`). `dsh plain` is the same without frames.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curatord.adapters.sources.registry import open_source
from curatord.core.settings import HostName, SourceSettings
from curatord.core.transcript.times import ms_of_iso
from curatord.ports.source import Start
from tests.bench.bench_readers import SIZE, Talk, claude_code, pi
from tests.dsh_log import line, packed
from tests.openclaw_home import OpenClawDatabase, OpenClawHome
from tests.opencode_home import OpenCodeHome

pytestmark = pytest.mark.bench

PAIRS = 5
MOST = {
    "openclaw": 2.6,
    "opencode": 2.3,
    "dsh": 3.6,
    "dsh alone": 10.0,
    "dsh plain": 2.4,
}  # with a fifth to spare for a busy machine
GIB = 1024**3
SESSIONS = 8


def make_claude_code(home: Path) -> tuple[Path, int]:
    """Write one file of lines."""
    talk = Talk()
    home.mkdir()
    size = 0
    with (home / "s.jsonl").open("wb") as file:
        for number, (kind, what) in enumerate(talk.turns(), 1):
            for record in claude_code(kind, what, talk.time(), number):
                size += file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
            if size >= SIZE:
                return home, size
    raise AssertionError("talk never ends")


def make_openclaw(home: Path) -> tuple[Path, int]:
    """Insert the rows of some sessions that are at work at once."""
    talk = Talk()
    database = OpenClawDatabase(OpenClawHome(home))
    names = [f"{n:08x}-0000-4000-8000-000000000000" for n in range(SESSIONS)]
    for name in names:
        database.window(name, f"agent:main:{name}")
    database.execute("BEGIN")
    size = 0
    for number, (kind, what) in enumerate(talk.turns(), 1):
        for record in pi(kind, what, talk.time(), number):
            data = json.dumps(record, separators=(",", ":")).encode()
            size += len(data)
            database.event(names[number // 20 % SESSIONS], number, data)
        if size >= SIZE:
            break
    database.execute("COMMIT")
    database.close()
    return home, size


def make_opencode(home: Path) -> tuple[Path, int]:
    """Insert messages and parts as the host writes them: a call and its result are one part."""
    talk = Talk()
    made = OpenCodeHome(home)
    for n in range(SESSIONS):
        made.session(f"ses_{n}")
    made.execute("BEGIN")
    called: tuple[str, str] = ("", "")
    size = 0
    for number, (kind, what) in enumerate(talk.turns(), 1):
        session = f"ses_{number // 20 % SESSIONS}"
        tokens = {"input": 1, "output": 9, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        more: dict[str, Any] = {
            "modelID": "m",
            "providerID": "p",
            "path": {"cwd": "/home/dev/app", "root": "/"},
            "tokens": tokens,
        }
        if kind == "prompt":
            made.said(session, what)
        elif kind == "answer":
            message = made.message(session, "assistant", **more)
            made.part(session, message, type="step-start", snapshot="a" * 40)
            made.part(session, message, type="text", text=what)
            made.part(session, message, type="step-finish", reason="stop", tokens=tokens, cost=0)
        elif kind == "call":
            called = what
        else:
            message = made.message(session, "assistant", **more)
            made.part(session, message, type="step-start", snapshot="a" * 40)
            state = {"status": "completed", "input": {"filePath": called[1]}, "output": what[1], "title": called[1]}
            shown = {"type": "file", "path": called[1], "text": what[1]}  # so it stands in recorded ones, twice
            state |= {"metadata": {"preview": what[1][:400], "display": shown}, "time": {"start": made.ms}}
            made.part(session, message, type="tool", tool="read", callID=called[0], state=state)
            made.part(session, message, type="step-finish", reason="tool-calls", tokens=tokens, cost=0)
        size += 3 * 200 + (len(what) if isinstance(what, str) else len(what[1]))
        if size >= SIZE:
            break
    made.execute("COMMIT")
    (held,) = made.connection.execute(
        "SELECT (SELECT sum(length(data)) FROM part) + (SELECT sum(length(data)) FROM message)"
    ).fetchone()
    made.close()
    return home, held


def make_plain_dsh(home: Path) -> tuple[Path, int]:
    """Write the same log without packing it."""
    return make_dsh(home, plain=True)


def make_dsh(home: Path, *, plain: bool = False) -> tuple[Path, int]:
    """Write one log of frames, a step each, streamed text before each message as the older formats have it."""
    talk = Talk()
    folder = home / "sessions" / "--app--" / "session-1"
    folder.mkdir(parents=True)
    seq = size = 0
    framed: Callable[..., bytes] = (lambda *lines: b"".join(lines)) if plain else packed
    with (folder / ("session.jsonl" if plain else "session.jsonl.zstd")).open("wb") as file:
        head = {"type": "session", "version": 0, "id": "session-1", "createdAt": 1_772_366_400_000, "cwd": "/home/dev"}
        file.write(framed(line(head)))
        for number, (kind, what) in enumerate(talk.turns(), 1):
            at = ms_of_iso(talk.time(), now_ms=0).ms
            rows: list[tuple[str, Any]]
            if kind == "prompt":
                content = [{"type": "text", "text": what}]
                said = {"id": f"u{number:036d}", "role": "user", "content": content, "source": {"kind": "user"}}
                rows = [("turn/start", {"turn": number}), ("user/message", said)]
            elif kind == "result":
                block = {"type": "tool-result", "toolCallId": what[0], "isError": False}
                block["content"] = [{"type": "text", "text": what[1]}]
                message = {"source": {"kind": "tool", "callId": what[0]}, "content": [block], "role": "user"}
                rows = [("tool/result", {"turn": 1, "message": message}), ("step/end", {"turn": 1, "step": 1})]
            else:
                content = [{"type": "text", "text": what}]
                call = {"callId": what[0], "name": "read", "arguments": json.dumps({"file_path": what[1]})}
                if kind == "call":
                    content = [{"type": "tool-call", "id": what[0], "name": "read", "arguments": call["arguments"]}]
                message = {"role": "assistant", "id": f"m{number:036d}", "content": content}
                texts = {"turn": 1, "step": 1, "index": 0, "dt": [1] * 40, "texts": [str(what)[:400]]}
                rows = [("text-chunks", texts), ("assistant/message", {"turn": 1, "step": 1, "message": message})]
                rows += [("tool/call", {"turn": 1, "step": 1, **call})] if kind == "call" else []
            lines = []
            for kind_of_row, data in rows:
                lines.append(line({"type": kind_of_row, "seq": seq, "time": at, "data": data}))
                seq += 1
                size += len(lines[-1])
            file.write(framed(*lines))
            if size >= SIZE:
                return home, size
    raise AssertionError("talk never ends")


MAKE = {
    "claude-code": make_claude_code,
    "openclaw": make_openclaw,
    "opencode": make_opencode,
    "dsh": make_dsh,
    "dsh alone": make_dsh,
    "dsh plain": make_plain_dsh,
}


def seconds(host: HostName, place: Path) -> float:
    """Return the processor seconds that reading all of a place takes."""
    source = open_source(SourceSettings(host=host), str(place))
    began = time.process_time()
    turns = 0
    for item in source.items():
        for done in source.read(item, Start(now_ms=1_790_000_000_000, settled=True), lambda: False):
            turns += sum(tally.user_turns for tally in done.findings.sessions.values())
            assert not done.findings.unknown
            assert not done.findings.bad
    took = time.process_time() - began
    assert turns > 100
    return took


@pytest.mark.parametrize("host", [host for host in MAKE if host != "claude-code"])
def test_a_mebibyte_costs_little_more_than_one_of_claude_code(
    host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The median ratio of pairs measured in turn is not above what was reached."""
    name: Any = host.partition(" ")[0]
    if host == "dsh":
        pytest.importorskip("zstandard")
    elif host == "dsh alone":
        monkeypatch.setitem(sys.modules, "zstandard", None)
    theirs, their_size = MAKE["claude-code"](tmp_path / "claude")
    ours, our_size = MAKE[host](tmp_path / host)
    gc.collect()
    gc.disable()
    try:
        pairs = [(seconds("claude-code", theirs) / their_size, seconds(name, ours) / our_size) for _ in range(PAIRS)]
    finally:
        gc.enable()
    ratio = statistics.median(b / a for a, b in pairs)
    with capsys.disabled():
        print(f"\n{host}: {ratio:.2f} x Claude Code, {min(b for _, b in pairs) * GIB:.2f} s a GiB, {our_size} bytes")

    assert ratio <= MOST[host]

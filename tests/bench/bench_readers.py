"""
Each reader of JSON lines beside Claude Code's, per MiB of the same made-up conversations.

Run with `-m bench`. The goal is a ratio: at most twice the processor time of the Claude Code reader for a mebibyte, the
median over pairs measured in turn. Each host's records carry the same prompts, calls and results, so a host whose
records are small pays more of the cost of a record for each mebibyte.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from curatord.core.transcript.claude_code import ClaudeCodeParser
from curatord.core.transcript.codex import CodexParser
from curatord.core.transcript.copilot_cli import CopilotCliParser
from curatord.core.transcript.cursor import CursorParser
from curatord.core.transcript.gemini_cli import GeminiCliParser
from curatord.core.transcript.ids import Guard
from curatord.core.transcript.lines import LineSplitter
from curatord.core.transcript.pi import PiParser
from curatord.core.transcript.qwen_code import QwenCodeParser

pytestmark = pytest.mark.bench

MIB = 1024 * 1024
SIZE = 24 * MIB
PAIRS = 5
MOST = 2.0
WORDS = ["the", "quick", "build", "of", "a", "small", "tool", "reads", "each", "file", "once", "and", "tells\n"]


class Talk:
    """The same conversation for every host: prompts, calls with results, answers, with long tails in their sizes."""

    def __init__(self) -> None:
        self.rng = random.Random(7)
        self.second = 0

    def text(self, middle: int) -> str:
        size = max(12, min(200_000, int(self.rng.lognormvariate(0, 1.1) * middle)))
        words = self.rng.choices(WORDS, k=60)
        return (" ".join(words) * (size // 200 + 1))[:size]

    def time(self) -> str:
        self.second += 1
        minutes, seconds = divmod(self.second, 60)
        hours, minutes = divmod(minutes, 60)
        return f"2026-03-{1 + hours // 24:02d}T{hours % 24:02d}:{minutes:02d}:{seconds:02d}.000Z"

    def turns(self) -> Iterator[tuple[str, Any]]:
        """Yield `prompt`, `call`, `result` and `answer` with what is in them, without end."""
        number = 0
        while True:
            yield "prompt", self.text(160)
            for _ in range(1 + int(self.rng.expovariate(1 / 9))):
                number += 1
                path = "/home/dev/.claude/skills/notes/SKILL.md" if number % 33 == 0 else "/home/dev/app/src/main.py"
                yield "call", (f"call_{number:024x}", path)
                yield "result", (f"call_{number:024x}", self.text(1800))
            yield "answer", self.text(700)


def claude_code(kind: str, what: Any, at: str, n: int) -> list[Any]:
    shell: dict[str, Any] = {
        "uuid": f"{n:08x}-0000-4000-8000-{n:012x}",
        "parentUuid": None,
        "sessionId": "s",
        "timestamp": at,
    }
    shell |= {"cwd": "/home/dev/app", "version": "2.1.100", "isSidechain": False, "userType": "external"}
    if kind in ("prompt", "result"):
        content: Any = what
        if kind == "result":
            content = [{"type": "tool_result", "tool_use_id": what[0], "content": what[1]}]
        return [{**shell, "type": "user", "message": {"role": "user", "content": content}}]
    block: dict[str, Any] = {"type": "text", "text": what}
    if kind == "call":
        block = {"type": "tool_use", "id": what[0], "name": "Read", "input": {"file_path": what[1]}}
    message = {
        "id": f"msg_{n:024x}",
        "role": "assistant",
        "model": "m",
        "content": [block],
        "usage": {"output_tokens": 9},
    }
    return [{**shell, "type": "assistant", "message": message}]


def codex(kind: str, what: Any, at: str, n: int) -> list[Any]:
    def line(type_: str, payload: Any) -> Any:
        return {"timestamp": at, "type": type_, "payload": payload}

    if kind == "call":
        arguments = json.dumps({"cmd": f"cat {what[1]}"})
        call = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": what[0]}
        return [line("response_item", call)]
    if kind == "result":
        counted = {"type": "token_count", "info": {"total": n}}
        output = {"type": "function_call_output", "call_id": what[0], "output": what[1]}
        return [line("response_item", output), line("event_msg", counted)]
    role, part, event = ("user", "input_text", "user_message")
    if kind == "answer":
        role, part, event = ("assistant", "output_text", "agent_message")
    said = {"type": "message", "role": role, "content": [{"type": part, "text": what}]}
    return [line("response_item", said), line("event_msg", {"type": event, "message": what})]


def pi(kind: str, what: Any, at: str, n: int) -> list[Any]:
    message: dict[str, Any]
    if kind == "prompt":
        message = {"role": "user", "content": [{"type": "text", "text": what}]}
    elif kind == "result":
        message = {"role": "toolResult", "toolCallId": what[0], "content": [{"type": "text", "text": what[1]}]}
    else:
        block: dict[str, Any] = {"type": "text", "text": what}
        if kind == "call":
            block = {"type": "toolCall", "id": what[0], "name": "read", "arguments": {"path": what[1]}}
        message = {"role": "assistant", "content": [block], "provider": "p", "model": "m", "usage": {"output": 9}}
    return [{"type": "message", "id": f"{n:08x}", "parentId": None, "timestamp": at, "message": message}]


def gemini_cli(kind: str, what: Any, at: str, n: int) -> list[Any]:
    if kind == "prompt":
        return [{"id": f"user-{n:016d}", "timestamp": at, "type": "user", "content": [{"text": what}]}]
    message = {"id": f"model-{n:016d}", "timestamp": at, "type": "gemini", "content": "", "tokens": {"input": 1}}
    if kind == "answer":
        return [{**message, "content": what}, {"$set": {"lastUpdated": at}}]
    if kind == "call":
        return [message]
    result = [{"functionResponse": {"id": what[0], "name": "read_file", "response": {"output": what[1]}}}]
    call = {"id": what[0], "name": "read_file", "args": {"file_path": "/home/dev/app/main.py"}, "status": "success"}
    return [{**message, "toolCalls": [{**call, "timestamp": at, "result": result}]}]


def qwen_code(kind: str, what: Any, at: str, n: int) -> list[Any]:
    shell: dict[str, Any] = {"uuid": f"{n:08x}-0000-4000-8000-{n:012x}", "parentUuid": None, "sessionId": "s"}
    shell |= {"timestamp": at, "cwd": "/home/dev/app", "version": "0.24.4", "provenance": "real_user"}
    part: dict[str, Any] = {"text": what}
    if kind == "prompt":
        return [{**shell, "type": "user", "message": {"role": "user", "parts": [part]}}]
    if kind == "result":
        part = {"functionResponse": {"id": what[0], "name": "read_file", "response": {"output": what[1]}}}
        return [{**shell, "type": "tool_result", "message": {"role": "user", "parts": [part]}}]
    if kind == "call":
        part = {"functionCall": {"id": what[0], "name": "read_file", "args": {"file_path": what[1]}}}
    return [{**shell, "type": "assistant", "message": {"role": "model", "parts": [part]}}]


def copilot_cli(kind: str, what: Any, at: str, n: int) -> list[Any]:
    def event(type_: str, data: Any, number: int = 0) -> Any:
        return {"type": type_, "data": data, "id": f"{n:08x}-{number:04d}-4000-8000-{n:012x}", "timestamp": at}

    if kind == "prompt":
        return [event("user.message", {"content": what, "attachments": []})]
    if kind == "answer":
        return [event("assistant.message", {"messageId": f"m-{n}", "content": what, "toolRequests": []})]
    if kind == "call":
        call = {"toolCallId": what[0], "name": "view", "arguments": {"path": what[1]}}
        begun = {"toolCallId": what[0], "toolName": "view", "arguments": {"path": what[1]}}
        said = {"messageId": f"m-{n}", "content": "", "toolRequests": [call]}
        return [event("assistant.message", said), event("tool.execution_start", begun, 1)]
    return [event("tool.execution_complete", {"toolCallId": what[0], "success": True, "result": {"content": what[1]}})]


def cursor(kind: str, what: Any, at: str, n: int) -> list[Any]:
    if kind == "prompt":
        block: dict[str, Any] = {"type": "text", "text": f"<user_query>{what}</user_query>"}
    elif kind == "result":
        block = {"type": "tool_result", "tool_use_id": what[0], "content": what[1]}
    elif kind == "call":
        block = {"type": "tool_use", "name": "Read", "input": {"path": what[1]}}
    else:
        block = {"type": "text", "text": what}
    role = "user" if kind in ("prompt", "result") else "assistant"
    return [{"role": role, "message": {"content": [block]}}]


HOSTS: dict[str, tuple[Callable[..., Any], Callable[[str, Any, str, int], list[Any]], str]] = {
    "claude-code": (ClaudeCodeParser, claude_code, "-app/s.jsonl"),
    "codex": (CodexParser, codex, "rollout-2026-03-01T12-00-00-019a0000-0000-7000-8000-00000000000a.jsonl"),
    "pi": (PiParser, pi, "--app--/2026_s.jsonl"),
    "gemini-cli": (GeminiCliParser, gemini_cli, "app/chats/session-s.jsonl"),
    "qwen-code": (QwenCodeParser, qwen_code, "app/chats/s.jsonl"),
    "copilot-cli": (CopilotCliParser, copilot_cli, "s/events.jsonl"),
    "cursor": (CursorParser, cursor, "app/agent-transcripts/s/s.jsonl"),
}


def corpus(host: str) -> bytes:
    """Return `SIZE` bytes of the host's lines."""
    _, lines, _ = HOSTS[host]
    talk = Talk()
    out: list[bytes] = []
    size = 0
    for number, (kind, what) in enumerate(talk.turns(), 1):
        for record in lines(kind, what, talk.time(), number):
            out.append(json.dumps(record, separators=(",", ":")).encode() + b"\n")
            size += len(out[-1])
        if size >= SIZE:
            return b"".join(out)
    raise AssertionError("talk never ends")


def seconds(host: str, data: bytes) -> float:
    """Return the processor seconds that reading *data* takes."""
    parser, _, path = HOSTS[host]
    how = {} if host == "claude-code" else {"mtime_ms": 1}
    reader = parser(path, state=b"", fresh=True, guard=Guard(), before=Guard(), now_ms=1_790_000_000_000, **how)
    splitter = LineSplitter()
    began = time.process_time()
    for at in range(0, len(data), MIB):
        reader.feed(splitter.feed(data[at : at + MIB]))
    reader.settle()
    found = reader.findings()
    took = time.process_time() - began
    assert sum(tally.user_turns for tally in found.sessions.values()) > 100
    assert not found.unknown
    assert not found.bad
    return took


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "claude-code"])
def test_a_mebibyte_costs_at_most_twice_that_of_claude_code(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The median ratio of pairs measured in turn is within the goal."""
    theirs, ours = corpus("claude-code"), corpus(host)
    gc.collect()
    gc.disable()
    try:
        pairs = [(seconds("claude-code", theirs), seconds(host, ours)) for _ in range(PAIRS)]
    finally:
        gc.enable()
    ratio = statistics.median(b / a for a, b in pairs)
    with capsys.disabled():
        best = min(b for _, b in pairs) / SIZE * 1024 * MIB
        print(f"\n{host}: {ratio:.2f} x Claude Code, {best:.2f} s a GiB, {ours.count(10)} records")

    assert ratio <= MOST

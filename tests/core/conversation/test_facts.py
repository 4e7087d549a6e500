"""
The made-up transcripts of tests/data, told: as many turns as ingest counts, whatever stands in them.

The tellers listen to the ingest's parsers, so this holds by construction but for what is left out on purpose, which is
named here: `LEFT_OUT` says of which fixture how many of the counted turns are not told, and why.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.conversation.claude_code import ClaudeCodeTeller
from curatord.core.conversation.codex import CodexTeller
from curatord.core.conversation.copilot_cli import CopilotCliTeller
from curatord.core.conversation.cursor import CursorTeller, CursorTextTeller
from curatord.core.conversation.dsh import DshTeller
from curatord.core.conversation.gemini_cli import GeminiCliTeller
from curatord.core.conversation.jsonl import JsonlTeller
from curatord.core.conversation.openclaw import OpenClawTeller
from curatord.core.conversation.pi import PiTeller
from curatord.core.conversation.qwen_code import QwenCodeTeller
from curatord.core.conversation.telling import Telling
from curatord.core.distil.said import Said
from curatord.core.transcript.ids import Guard
from curatord.core.transcript.jsonl_fields import Fields
from curatord.core.transcript.lines import LineSplitter, give

DATA = Path(__file__).resolve().parents[2] / "data"
CLAUDE = "claude_code"
TELLERS: dict[str, Callable[..., Any]] = {
    CLAUDE: ClaudeCodeTeller,
    "codex": CodexTeller,
    "pi": PiTeller,
    "gemini-cli": GeminiCliTeller,
    "qwen-code": QwenCodeTeller,
    "copilot-cli": CopilotCliTeller,
    "cursor": CursorTeller,
}
PATHS = {
    CLAUDE: "-p/main.jsonl",
    "codex": "2026/03/01/rollout-2026-03-01T12-00-00-019a0000-0000-7000-8000-00000000000a.jsonl",
    "pi": "--home-dev-app--/2026-03-01T12-00-00-000Z_01a22d95-12ad-708d-b228-7c8c0d3f69c6.jsonl",
    "gemini-cli": "app/chats/session-2026-03-01T12-00-76f9f554.jsonl",
    "qwen-code": "-home-dev-app/chats/fab5dbca-2f73-4269-887d-51c2737397d7.jsonl",
    "copilot-cli": "5b5b5b5b-0000-4000-8000-000000000001/events.jsonl",
}
# Prompts and answers that are counted and not told.
LEFT_OUT: dict[tuple[str, str], tuple[int, int]] = {
    (CLAUDE, "sub-agents-file-counts-for-its-parent-without-turns"): (0, 3),
    (CLAUDE, "old-sub-agents-file-beside-its-parent-with-the-flag-false"): (0, 1),
    (CLAUDE, "oldest-sub-agent-records-inside-the-main-file"): (0, 1),
    (CLAUDE, "a-program-and-a-schedule-drive-it"): (1, 0),  # the schedule's prompt
    ("codex", "a-sub-agent-that-names-its-root-counts-for-it"): (0, 1),
    ("codex", "a-sub-agent-that-names-only-its-parent-is-no-work"): (0, 1),
    ("codex", "the-hosts-own-memory-worker-does-not-count"): (0, 1),
    ("codex", "a-session-that-curatord-itself-began"): (1, 1),
    ("gemini-cli", "a-list-set-again-is-known-and-rewound-turns-did-happen"): (1, 0),  # taken back
    ("gemini-cli", "a-sub-agents-chat-counts-for-its-parent"): (0, 1),
    ("qwen-code", "a-sub-agents-file-counts-for-its-session"): (0, 1),
    ("qwen-code", "sub-agent-records-in-the-main-file-and-records-written-twice"): (0, 1),
    ("copilot-cli", "who-is-no-person-and-messages-in-chunks"): (0, 1),  # a sub-agent's
    ("cursor", "a-sub-agents-file-counts-for-its-parent"): (0, 1),
}


class Fact:
    """One fixture."""

    def __init__(self, host: str, name: str, told: dict[str, Any]) -> None:
        self.host = host
        self.name = name
        self.file = DATA / host / told.get("file", f"{name}.jsonl")
        self.path: str = told.get("path") or PATHS[host]
        self.turns = (told.get("user_turns", 0), told.get("assistant_turns", 0))

    def __str__(self) -> str:
        return f"{self.host}-{self.name}"

    def teller(self, telling: Telling) -> Any:
        """Return a teller for the fixture."""
        made = CursorTextTeller if self.file.suffix == ".txt" else TELLERS[self.host]
        more = {} if self.host == CLAUDE else {"mtime_ms": 0}
        return made(self.path, telling=telling, state=b"", fresh=True, guard=Guard(), before=Guard(), now_ms=0, **more)

    def sessions(self) -> list[str]:
        """Return the sessions that the fixture has turns of."""
        teller = self.teller(Telling("none of them"))
        feed(teller, self.file.read_bytes())
        return list(teller.findings().sessions)

    def said(self, *pieces: bytes) -> list[Said]:
        """Return what is told of all its sessions."""
        told = []
        for session in self.sessions():
            telling = Telling(session)
            feed(self.teller(telling), *pieces)
            telling.finish()
            told += telling.take()
        return told


def feed(teller: Any, *pieces: bytes) -> None:
    """Feed *pieces* as one settled file."""
    splitter = LineSplitter()
    for piece in pieces:
        give(teller, splitter, piece)
    last = splitter.last_line()
    if last is not None:
        teller.feed([last])


FACTS = [
    Fact(host, name, told)
    for host in TELLERS
    for name, told in sorted(json.loads((DATA / host / "expected.json").read_text(encoding="utf-8")).items())
]
facts = pytest.mark.parametrize("fact", FACTS, ids=str)


@facts
def test_as_many_turns_as_are_counted(fact: Fact) -> None:
    """As many prompts and answers are told as ingest counts, but for what is left out on purpose."""
    users, assistants = fact.turns
    without = LEFT_OUT.get((fact.host, fact.name), (0, 0))

    said = fact.said(fact.file.read_bytes())

    wordless = sum(each.role == "assistant" and not each.text and bool(each.tools) for each in said)
    told_users = sum(each.role == "user" for each in said)
    told = sum(each.role == "assistant" for each in said)
    assert users - without[0] == told_users
    # Codex and DSH write calls as records of their own: those that no message follows are told without words.
    assert told - (wordless if fact.host == "codex" else 0) <= assistants - without[1] <= told


@facts
def test_in_pieces(fact: Fact) -> None:
    """One byte at a time, and in random pieces, the same is told."""
    data = fact.file.read_bytes()
    whole = fact.said(data)
    cuts = sorted(random.Random(7).sample(range(len(data)), min(9, len(data) - 1)))
    pieces = [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]

    assert whole == fact.said(*pieces)
    if len(data) < 20_000:
        assert whole == fact.said(*(data[at : at + 1] for at in range(len(data))))


@facts
def test_texts_can_be_stored_and_sent(fact: Fact) -> None:
    """Whatever a text held, it is UTF-8, and calls are one line."""
    for each in fact.said(fact.file.read_bytes()):
        assert each.text == each.text.encode().decode()
        assert not [tool for tool in each.tools if "\n" in tool.arguments or tool.name == ""]


# -- what no host would write

Json = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 1 << 40) | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    "type", "role", "message", "content", "payload", "data", "text", "id", "uuid", "sessionId", "timestamp", "parts",
    "toolCalls", "toolRequests", "functionCall", "functionResponse", "response", "error", "result", "isError", "source",
    "messages", "$set", "$rewindTo", "output", "call_id", "toolCallId", "name", "arguments", "input", "state", "status",
    "summary", "is_error", "tool_use_id", "tool_calls", "operation", "attachment", "prompt", "kind", "seq", "meta",
)  # fmt: skip
WORDS = (
    "user", "assistant", "message", "response_item", "event_msg", "function_call", "function_call_output", "gemini",
    "tool_result", "tool_use", "text", "toolCall", "toolResult", "user/message", "assistant/message", "tool/call",
    "tool/result", "user.message", "assistant.message", "tool.execution_start", "tool.execution_complete", "enqueue",
    "remove", "queue-operation", "queued_command", "attachment", "error", "session", "s-1", "session_meta", "system",
    "<command-name>/x</command-name><command-args>", "Base directory for this skill: /a/b\n", "\ud800",
)  # fmt: skip
Hostile = st.recursive(
    st.sampled_from(WORDS) | Json,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=24,
)
ALL: list[Callable[..., Any]] = [
    *TELLERS.values(), CursorTextTeller, DshTeller, OpenClawTeller,
    lambda path, **how: JsonlTeller(path, Fields(), **{key: value for key, value in how.items() if key != "mtime_ms"}),
]  # fmt: skip


@pytest.mark.parametrize("made", ALL, ids=lambda made: getattr(made, "__name__", "Jsonl"))
@given(records=st.lists(Hostile, max_size=6))
@settings(max_examples=60, deadline=None)
def test_nothing_is_raised_for_what_a_record_holds(made: Callable[..., Any], records: list[Any]) -> None:
    """Any JSON in any place is taken without an error, and what is told of it can be stored."""
    telling = Telling("s-1")
    more = {} if made is ClaudeCodeTeller else {"mtime_ms": 0}
    teller = made(
        "x/s-1.jsonl", telling=telling, state=b"", fresh=True, guard=Guard(), before=Guard(), now_ms=0, **more
    )
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)

    feed(teller, data)
    telling.finish()

    for each in telling.take():
        assert each.text == each.text.encode().decode()
        assert each.ref == each.ref.encode().decode()
        assert [] == [tool for tool in each.tools if tool.arguments.encode().decode() != tool.arguments]

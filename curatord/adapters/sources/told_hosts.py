"""
Each host's source and its teller put together.

A new one is a teller module in `core/conversation`, a function here and a line in `conversations`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from curatord.adapters.sources import claude_code as claude_code_source
from curatord.adapters.sources import line_hosts
from curatord.adapters.sources.json_lines import JsonLinesSource
from curatord.adapters.sources.told_lines import LineConversations, TellerFactory
from curatord.core.conversation.telling import Telling
from curatord.core.transcript.ids import Guard
from curatord.ports.conversation import Conversations
from curatord.ports.source import LineParser, Source, Start

__all__ = [
    "claude_code", "codex", "copilot_cli", "cursor", "dsh", "gemini_cli", "hermes", "jsonl", "openclaw", "opencode",
    "pi", "qwen_code",
]  # fmt: skip

Fields = Mapping[str, Any] | None


def claude_code(path: str, fields: Fields) -> Conversations:
    """Return the conversations of Claude Code's projects."""
    from curatord.core.conversation.claude_code import ClaudeCodeTeller

    def teller(path: str, start: Start, telling: Telling) -> LineParser:
        return ClaudeCodeTeller(
            path, telling=telling, state=b"", fresh=True, guard=Guard(), before=Guard(), now_ms=start.now_ms
        )

    return LineConversations(_lines(claude_code_source.source(path, fields)), teller)


def codex(path: str, fields: Fields) -> Conversations:
    """Return the conversations of Codex' rollouts."""
    from curatord.core.conversation.codex import CodexTeller

    return LineConversations(_lines(line_hosts.codex(path, fields)), made_by(CodexTeller))


def hermes(path: str, fields: Fields) -> Conversations:
    """Return the conversations of a Hermes home."""
    from curatord.adapters.sources.told_hermes import HermesConversations

    return HermesConversations(path)


def pi(path: str, fields: Fields) -> Conversations:
    """Return the conversations of Pi's sessions."""
    from curatord.core.conversation.pi import PiTeller

    return LineConversations(_lines(line_hosts.pi(path, fields)), made_by(PiTeller))


def dsh(path: str, fields: Fields) -> Conversations:
    """Return the conversations of DSH's logs."""
    from curatord.adapters.sources.told_dsh import DshConversations

    return DshConversations(path)


def openclaw(path: str, fields: Fields) -> Conversations:
    """Return the conversations of an OpenClaw home."""
    from curatord.adapters.sources.told_openclaw import OpenClawConversations

    return OpenClawConversations(path)


def opencode(path: str, fields: Fields) -> Conversations:
    """Return the conversations of OpenCode's data folder."""
    from curatord.adapters.sources.told_opencode import OpenCodeConversations

    return OpenCodeConversations(path)


def gemini_cli(path: str, fields: Fields) -> Conversations:
    """Return the conversations of Gemini CLI's chats."""
    from curatord.core.conversation.gemini_cli import GeminiCliTeller

    return LineConversations(_lines(line_hosts.gemini_cli(path, fields)), made_by(GeminiCliTeller))


def qwen_code(path: str, fields: Fields) -> Conversations:
    """Return the conversations of Qwen Code's chats; very old ones have Gemini CLI's form."""
    from curatord.core.conversation.gemini_cli import GeminiCliTeller
    from curatord.core.conversation.qwen_code import QwenCodeTeller

    def teller(path: str, start: Start, telling: Telling) -> LineParser:
        return made_by(GeminiCliTeller if path.endswith(".json") else QwenCodeTeller)(path, start, telling)

    return LineConversations(_lines(line_hosts.qwen_code(path, fields)), teller)


def copilot_cli(path: str, fields: Fields) -> Conversations:
    """Return the conversations of Copilot CLI's sessions."""
    from curatord.core.conversation.copilot_cli import CopilotCliTeller

    return LineConversations(_lines(line_hosts.copilot_cli(path, fields)), made_by(CopilotCliTeller))


def cursor(path: str, fields: Fields) -> Conversations:
    """Return the conversations of Cursor's agent transcripts."""
    from curatord.core.conversation.cursor import CursorTeller, CursorTextTeller

    def teller(path: str, start: Start, telling: Telling) -> LineParser:
        return made_by(CursorTextTeller if path.endswith(".txt") else CursorTeller)(path, start, telling)

    return LineConversations(_lines(line_hosts.cursor(path, fields)), teller)


def jsonl(path: str, fields: Fields) -> Conversations:
    """Return the conversations of a host that *fields* describe."""
    from curatord.adapters.sources import jsonl as jsonl_source
    from curatord.core.conversation.jsonl import JsonlTeller
    from curatord.core.transcript.jsonl_fields import fields_of

    source = _lines(jsonl_source.source(path, fields))  # tells what is wrong with the fields
    described = fields_of(fields)

    def teller(path: str, start: Start, telling: Telling) -> LineParser:
        return JsonlTeller(
            path,
            described,
            telling=telling,
            state=b"",
            fresh=True,
            guard=Guard(),
            before=Guard(),
            now_ms=start.now_ms,
        )

    return LineConversations(source, teller)


def made_by(teller: Callable[..., LineParser]) -> TellerFactory:
    """Return the factory of a host whose *teller* wants nothing but what all want."""

    def factory(path: str, start: Start, telling: Telling) -> LineParser:
        return teller(
            path,
            telling=telling,
            state=b"",
            fresh=True,
            guard=Guard(),
            before=Guard(),
            now_ms=start.now_ms,
            mtime_ms=start.mtime_ms,
        )

    return factory


def _lines(source: Source) -> JsonLinesSource:
    assert isinstance(source, JsonLinesSource), "the source of a host that writes lines"
    return source

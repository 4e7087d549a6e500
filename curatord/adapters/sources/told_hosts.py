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

__all__ = ["claude_code", "codex", "hermes"]

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

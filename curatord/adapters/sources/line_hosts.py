"""
Where in a host's home its transcripts are, and which files they are: the hosts that append JSON lines.

A new one is a parser module in `core/transcript`, a function here and a line in the registry.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from curatord.adapters.sources.tree import TreeSource, forms
from curatord.core.transcript.codex import CodexParser
from curatord.core.transcript.codex_records import explode as explode_rollout
from curatord.core.transcript.copilot_cli import CopilotCliParser
from curatord.core.transcript.cursor import CursorParser, CursorTextParser
from curatord.core.transcript.gemini_cli import GeminiCliParser
from curatord.core.transcript.gemini_cli import explode as explode_chat
from curatord.core.transcript.pi import PiParser
from curatord.core.transcript.qwen_code import QwenCodeParser
from curatord.ports.source import LineParser, ParserFactory, Source, Start

__all__ = ["codex", "copilot_cli", "cursor", "gemini_cli", "pi", "qwen_code"]

Fields = Mapping[str, Any] | None


def codex(path: str, fields: Fields) -> Source:
    """Return the rollouts below `sessions` and `archived_sessions`, plain and compressed; the oldest are documents."""
    return TreeSource(
        host="codex",
        path=path,
        parser=_made_by(CodexParser),
        below=("sessions", "archived_sessions"),
        accepts=_is_rollout,
        suffixes=forms(".jsonl", ".json"),
        named_by_time=True,
        explode=explode_rollout,
    )


def pi(path: str, fields: Fields) -> Source:
    """Return the sessions in folders by project, or all in one."""
    return TreeSource(
        host="pi", path=path, parser=_made_by(PiParser), below=("agent/sessions", "sessions"), named_by_time=True
    )


def gemini_cli(path: str, fields: Fields) -> Source:
    """Return the chats of all projects, journals and older documents."""
    return TreeSource(
        host="gemini-cli",
        path=path,
        parser=_made_by(GeminiCliParser),
        below=(".gemini/tmp/*/chats", "tmp/*/chats", "*/chats"),
        accepts=_is_chat,
        suffixes=forms(".jsonl", ".json"),
        explode=explode_chat,
    )


def qwen_code(path: str, fields: Fields) -> Source:
    """Return the chats of all projects; very old ones have Gemini CLI's form of a document."""

    def parser(path: str, start: Start) -> LineParser:
        return _made_by(GeminiCliParser if path.endswith(".json") else QwenCodeParser)(path, start)

    return TreeSource(
        host="qwen-code",
        path=path,
        parser=parser,
        below=("projects/*/chats", "tmp/*/chats", "*/chats"),
        accepts=_is_chat,
        suffixes=forms(".jsonl", ".json"),
        explode=explode_chat,
    )


def copilot_cli(path: str, fields: Fields) -> Source:
    """Return the event files: one in each session's folder, older ones flat."""
    return TreeSource(
        host="copilot-cli",
        path=path,
        parser=_made_by(CopilotCliParser),
        below=("session-state",),
        accepts=_is_event_file,
        skip_folders=frozenset({"checkpoints", "files", "rewind-snapshots", "research"}),
    )


def cursor(path: str, fields: Fields) -> Source:
    """Return the agent transcripts of all projects; of one that is there as lines and as text, the lines."""

    def parser(path: str, start: Start) -> LineParser:
        return _made_by(CursorTextParser if path.endswith(".txt") else CursorParser)(path, start)

    return TreeSource(
        host="cursor",
        path=path,
        parser=parser,
        below=("projects/*/agent-transcripts", "*/agent-transcripts"),
        accepts=_is_agent_transcript,
        suffixes=forms(".jsonl", ".txt"),
    )


def _made_by(parser: Callable[..., LineParser]) -> ParserFactory:
    def factory(path: str, start: Start) -> LineParser:
        return parser(
            path,
            state=start.state,
            fresh=start.offset == 0,
            guard=start.guard,
            before=start.before,
            now_ms=start.now_ms,
            mtime_ms=start.mtime_ms,
        )

    return factory


def _is_rollout(path: str) -> bool:
    return path.rpartition(os.sep)[2].startswith("rollout-")


def _is_chat(path: str) -> bool:
    folder, _, name = path.rpartition(os.sep)
    return "chats" in folder.split(os.sep) and (name.endswith(".jsonl") or name.startswith("session-"))


def _is_event_file(path: str) -> bool:
    folder, _, name = path.rpartition(os.sep)
    return name == "events.jsonl" or folder.rpartition(os.sep)[2] == "session-state"


def _is_agent_transcript(path: str) -> bool:
    folder, _, name = path.rpartition(os.sep)
    if "agent-transcripts" not in folder.split(os.sep):
        return False
    if not name.endswith(".txt"):
        return True
    stem = name.removesuffix(".txt")
    twins = (os.path.join(folder, stem + ".jsonl"), os.path.join(folder, stem, stem + ".jsonl"))
    return not any(os.path.exists(twin) for twin in twins)

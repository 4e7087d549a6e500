"""The hosts whose transcripts can be read: one line a host."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

from curatord.adapters.sources import line_hosts
from curatord.adapters.sources.dsh_frames import DshSource
from curatord.adapters.sources.hermes_db import HermesSource
from curatord.adapters.sources.json_lines import JsonLinesSource
from curatord.adapters.sources.openclaw_db import OpenClawSource
from curatord.adapters.sources.opencode_db import OpenCodeSource
from curatord.core.settings import HostName, SourceSettings
from curatord.core.transcript.claude_code import ClaudeCodeParser
from curatord.core.transcript.jsonl import JsonlParser
from curatord.core.transcript.jsonl_fields import Fields, fields_of
from curatord.errors import ConfigError
from curatord.ports.source import LineParser, Source, Start

__all__ = ["READERS", "open_source"]

Reader = Callable[[str, Mapping[str, Any] | None], Source]


def _claude_code(path: str, fields: Mapping[str, Any] | None) -> Source:
    # The host's home and its `projects` folder are both fine; other folders are walked as they are.
    inner = os.path.join(path, "projects")
    return JsonLinesSource(
        host="claude-code",
        path=path,
        root=inner if os.path.isdir(inner) else path,
        parser=_claude_code_parser,
        skip_folders=frozenset({"tool-results", "memory", "todos", "file-history", "shell-snapshots"}),
    )


def _claude_code_parser(path: str, start: Start) -> LineParser:
    return ClaudeCodeParser(
        path,
        state=start.state,
        fresh=start.offset == 0,
        guard=start.guard,
        before=start.before,
        now_ms=start.now_ms,
    )


def _jsonl(path: str, fields: Mapping[str, Any] | None) -> Source:
    try:
        described = fields_of(fields)
    except ValueError as error:
        raise ConfigError(
            f"the fields of the jsonl source {path} cannot be used: {error}",
            key="sources.fields",
            hint='README, "A host of your own", tells every field',
        ) from error

    return JsonLinesSource(
        host="jsonl",
        path=path,
        root=path,
        parser=functools.partial(_jsonl_parser, described),
        suffixes=(".jsonl", ".ndjson"),
    )


def _jsonl_parser(described: Fields, path: str, start: Start) -> LineParser:
    return JsonlParser(
        path,
        described,
        state=start.state,
        fresh=start.offset == 0,
        guard=start.guard,
        before=start.before,
        now_ms=start.now_ms,
    )


READERS: dict[HostName, Reader] = {
    "claude-code": _claude_code,
    "codex": line_hosts.codex,
    "pi": line_hosts.pi,
    "dsh": lambda path, fields: DshSource(path),
    "openclaw": lambda path, fields: OpenClawSource(path),
    "opencode": lambda path, fields: OpenCodeSource(path),
    "gemini-cli": line_hosts.gemini_cli,
    "qwen-code": line_hosts.qwen_code,
    "copilot-cli": line_hosts.copilot_cli,
    "cursor": line_hosts.cursor,
    "hermes": lambda path, fields: HermesSource(path),
    "jsonl": _jsonl,
}


def open_source(settings: SourceSettings, path: str) -> Source:
    """
    Return the source of *settings* at *path*, one of its places.

    Raises:
        ConfigError: The host's transcripts cannot be read by this version.
    """
    reader = READERS.get(settings.host)
    if reader is None:
        raise ConfigError(
            f"transcripts of {settings.host} cannot be read yet",
            key="sources.host",
            hint=f"readable are: {', '.join(READERS)}",
        )
    return reader(path, settings.fields)

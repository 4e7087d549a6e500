"""
The hosts whose transcripts can be read: one line a host.

A reader is named and only imported when it is needed: who has one host starts without the modules of eleven others.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from curatord.core.settings import HostName, SourceSettings
from curatord.errors import ConfigError
from curatord.ports.source import Source

__all__ = ["READERS", "open_source"]

Reader = Callable[[str, Mapping[str, Any] | None], Source]


def _by(module: str, name: str) -> Reader:
    """Return the reader that is the function *name* of a sibling *module*, given the place and the host's fields."""

    def reader(path: str, fields: Mapping[str, Any] | None) -> Source:
        source: Source = getattr(importlib.import_module(f"{__package__}.{module}"), name)(path, fields)
        return source

    return reader


def _of(module: str, name: str) -> Reader:
    """Return the reader that is the class *name* of a sibling *module*, given the place alone."""

    def reader(path: str, fields: Mapping[str, Any] | None) -> Source:
        source: Source = getattr(importlib.import_module(f"{__package__}.{module}"), name)(path)
        return source

    return reader


READERS: dict[HostName, Reader] = {
    "claude-code": _by("claude_code", "source"),
    "codex": _by("line_hosts", "codex"),
    "pi": _by("line_hosts", "pi"),
    "dsh": _of("dsh_frames", "DshSource"),
    "openclaw": _of("openclaw_db", "OpenClawSource"),
    "opencode": _of("opencode_db", "OpenCodeSource"),
    "gemini-cli": _by("line_hosts", "gemini_cli"),
    "qwen-code": _by("line_hosts", "qwen_code"),
    "copilot-cli": _by("line_hosts", "copilot_cli"),
    "cursor": _by("line_hosts", "cursor"),
    "hermes": _of("hermes_db", "HermesSource"),
    "jsonl": _by("jsonl", "source"),
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

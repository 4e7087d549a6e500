"""
Where the words of each host's sessions come from: one line a host, as in `registry`.

A host's conversations are its source with a teller in the parser's place, so its line here names a function of a
sibling module that puts the two together. All is imported when it is needed and not before.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from curatord.core.settings import HostName, SourceSettings
from curatord.errors import ConfigError
from curatord.ports.conversation import Conversations

__all__ = ["TELLERS", "open_conversations"]

Opened = Callable[[str, Mapping[str, Any] | None], Conversations]


def _by(module: str, name: str) -> Opened:
    """Return the opener that is the function *name* of a sibling *module*, given the place and the host's fields."""

    def opener(path: str, fields: Mapping[str, Any] | None) -> Conversations:
        opened: Conversations = getattr(importlib.import_module(f"{__package__}.{module}"), name)(path, fields)
        return opened

    return opener


TELLERS: dict[HostName, Opened] = {
    "claude-code": _by("told_hosts", "claude_code"),
    "codex": _by("told_hosts", "codex"),
    "pi": _by("told_hosts", "pi"),
    "dsh": _by("told_hosts", "dsh"),
    "openclaw": _by("told_hosts", "openclaw"),
    "opencode": _by("told_hosts", "opencode"),
    "gemini-cli": _by("told_hosts", "gemini_cli"),
    "qwen-code": _by("told_hosts", "qwen_code"),
    "copilot-cli": _by("told_hosts", "copilot_cli"),
    "cursor": _by("told_hosts", "cursor"),
    "hermes": _by("told_hosts", "hermes"),
    "jsonl": _by("told_hosts", "jsonl"),
}


def open_conversations(settings: SourceSettings, path: str) -> Conversations:
    """
    Return the conversations of the source *settings* at *path*, one of its places.

    Raises:
        ConfigError: What was said in the host's sessions cannot be read by this version, or its fields are of no use.
    """
    opener = TELLERS.get(settings.host)
    if opener is None:
        raise ConfigError(
            f"what was said in sessions of {settings.host} cannot be read yet",
            key="sources.host",
            hint=f"readable are: {', '.join(TELLERS)}",
        )
    return opener(path, settings.fields)

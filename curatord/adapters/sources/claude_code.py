"""Claude Code's places: its home, its `projects` folder, or any folder or file with its transcripts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from curatord.adapters.sources.json_lines import JsonLinesSource
from curatord.ports.source import LineParser, Source, Start

__all__ = ["source"]

NO_TRANSCRIPTS = frozenset({"tool-results", "memory", "todos", "file-history", "shell-snapshots"})


def source(path: str, fields: Mapping[str, Any] | None = None) -> Source:
    """Return the source at *path*; *fields* mean nothing to this host."""
    inner = os.path.join(path, "projects")
    return JsonLinesSource(
        host="claude-code",
        path=path,
        root=inner if os.path.isdir(inner) else path,
        parser=_parser,
        skip_folders=NO_TRANSCRIPTS,
    )


def _parser(path: str, start: Start) -> LineParser:
    from curatord.core.transcript.claude_code import ClaudeCodeParser  # late: where nothing changed, nothing is parsed

    return ClaudeCodeParser(
        path,
        state=start.state,
        fresh=start.offset == 0,
        guard=start.guard,
        before=start.before,
        now_ms=start.now_ms,
    )

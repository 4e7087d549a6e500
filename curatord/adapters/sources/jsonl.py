"""Hosts that only the configuration describes: JSON lines with fields at places that it names."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from curatord.adapters.sources.json_lines import JsonLinesSource
from curatord.core.transcript.jsonl import JsonlParser
from curatord.core.transcript.jsonl_fields import Fields, fields_of
from curatord.errors import ConfigError
from curatord.ports.source import LineParser, Source, Start

__all__ = ["source"]


def source(path: str, fields: Mapping[str, Any] | None = None) -> Source:
    """
    Return the source at *path* with the *fields* of the configuration.

    Raises:
        ConfigError: The fields cannot be used.
    """
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
        parser=functools.partial(_parser, described),
        suffixes=(".jsonl", ".ndjson"),
    )


def _parser(described: Fields, path: str, start: Start) -> LineParser:
    return JsonlParser(
        path,
        described,
        state=start.state,
        fresh=start.offset == 0,
        guard=start.guard,
        before=start.before,
        now_ms=start.now_ms,
    )

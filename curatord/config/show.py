"""The configuration in force as YAML that can be used again, each value with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curatord.config.nodes import Origin
from curatord.config.parse import Loaded
from curatord.config.render import effective, said_as_yaml

__all__ = ["as_json", "as_yaml"]

_COLUMN = 48


def as_json(loaded: Loaded) -> dict[str, Any]:
    """Return `{file, fingerprint, config, origins, notices}`; keys that *origins* lacks are defaults."""
    return {
        "file": loaded.config.origin,
        "fingerprint": loaded.config.fingerprint,
        "config": effective(loaded.config),
        "origins": {key: str(origin) for key, origin in loaded.origins.items()},
        "notices": list(loaded.notices),
    }


def as_yaml(loaded: Loaded) -> list[str]:
    """Return the lines of a configuration file that says the same, with origins as comments."""
    head = [f"# file: {loaded.config.origin or 'none'}", f"# fingerprint: {loaded.config.fingerprint}"]
    lines: list[str] = []
    for name, value in effective(loaded.config).items():
        lines += _lines(name, value, name, "", "", loaded.origins, loaded.config.origin or "")
    return head + lines


def _lines(
    name: str, value: Any, key: str, indent: str, lead: str, origins: Mapping[str, Origin], file: str
) -> list[str]:
    start = f"{indent}{lead}{name}:"
    if isinstance(value, dict) and value and not key.endswith((".extra_body", ".fields")):
        inner = indent + " " * (len(lead) + 2)
        lines = [start]
        for child, item in value.items():
            lines += _lines(child, item, f"{key}.{child}", inner, "", origins, file)
        return lines
    if isinstance(value, list) and value and isinstance(value[0], dict):
        lines = [_with_origin(start, key, origins, file)]
        for number, entry in enumerate(value):
            for position, (child, item) in enumerate(entry.items()):
                lead_in, inner = ("- ", indent + "  ") if position == 0 else ("", indent + "    ")
                lines += _lines(child, item, f"{key}[{number}].{child}", inner, lead_in, origins, file)
        return lines
    return [_with_origin(f"{start} {said_as_yaml(value)}", key, origins, file)]


def _with_origin(line: str, key: str, origins: Mapping[str, Origin], file: str) -> str:
    origin = origins.get(key) or next((origins[k] for k in origins if k.startswith((f"{key}[", f"{key}."))), None)
    if origin is None:
        return line
    where = f"line {origin.line}" if origin.line and origin.file == file else str(origin)
    return f"{line:<{_COLUMN - 1}} # {where}"

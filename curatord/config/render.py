"""A configuration as plain values (JSON, YAML) in the words in which it can be said again."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from curatord.core.cheap import fields, is_dataclass
from curatord.core.settings import Config, KeyRef
from curatord.core.units import ByteSize, format_duration, format_size

__all__ = ["effective", "plain", "said_as_yaml", "values_by_key"]


def plain(value: Any) -> Any:
    """Return *value*, a setting or a whole `Config`, as dicts, lists, texts, numbers, booleans and None."""
    if isinstance(value, KeyRef):
        return {value.kind: value.name}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, ByteSize):
        return format_size(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def values_by_key(value: Any, key: str = "") -> list[tuple[str, Any]]:
    """Return the leaves of plain *value* with their keys, in order: `("sources[0].host", "hermes")`."""
    if isinstance(value, dict) and value:
        return [
            leaf for name, item in value.items() for leaf in values_by_key(item, f"{key}.{name}" if key else str(name))
        ]
    if isinstance(value, list) and value:
        return [leaf for index, item in enumerate(value) for leaf in values_by_key(item, f"{key}[{index}]")]
    return [(key, value)]


def said_as_yaml(value: Any) -> str:
    """Return a scalar, or an empty list or object, as YAML in one line that `parse` reads back to the same."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(said_as_yaml(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{said_as_yaml(str(key))}: {said_as_yaml(item)}" for key, item in value.items()) + "}"
    text = str(value)
    if _is_safe_plain(text):
        return text
    import json

    return json.dumps(text, ensure_ascii=not text.isprintable())


def _is_safe_plain(text: str) -> bool:
    """Whether *text* may stand unquoted: it reads back as itself, also inside brackets, and looks like no null."""
    if not text or text != text.strip() or not text.isprintable() or text.lower() in ("null", "~", "true", "false"):
        return False
    if text[0] in "-?:,[]{}#&*!|>'\"%@`" or any(ch in text for ch in ",[]{}#&*!|>'\"%@`\\"):
        return False
    return ": " not in text and not text.endswith(":") and text not in ("=", "<<", "---", "...")


def effective(config: Config) -> dict[str, Any]:
    """Return *config* as plain values without what is no setting."""
    values: dict[str, Any] = plain(config)
    return {key: value for key, value in values.items() if key not in ("origin", "fingerprint")}

"""The configuration's JSON Schema (2020-12), made from the settings' own types: for editors and other checkers."""

from __future__ import annotations

import enum
import typing
from datetime import timedelta
from typing import Any

from curatord.config.reader import fields_of, optional, unmarked
from curatord.core.cheap import is_dataclass
from curatord.core.setting_docs import SETTING_DOCS
from curatord.core.setting_rules import Rule
from curatord.core.settings import Config, KeyRef

__all__ = ["json_schema"]

_DURATION = r"^([0-9]+(\.[0-9]+)?(ms|[wdhms])\s*)+$|^0$"
_SIZE = r"^[0-9]+(\.[0-9]+)?\s*(B|KiB|MiB|GiB|kB|MB|GB)$|^0$"


def json_schema() -> dict[str, Any]:
    """Return the schema of a whole configuration file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "curatord configuration",
        **_object(Config, ""),
    }


def _object(cls: type[Any], key: str) -> dict[str, Any]:
    properties = {}
    required = []
    for item in fields_of(cls).values():
        full = f"{key}.{item.name}" if key else item.name
        schema = _value(item.hint, full)
        doc = SETTING_DOCS.get(full.replace("llm.fallback.", "llm.primary."))
        properties[item.name] = {"description": doc, **schema} if doc else schema
        if item.required and full != "state_dir":
            required.append(item.name)
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _value(hint: Any, key: str) -> dict[str, Any]:
    hint, may_be_null = optional(hint)
    hint, rule = unmarked(hint)
    schema = _plain_value(hint, rule, key)
    if not may_be_null:
        return schema
    return {"anyOf": [schema, {"type": "null"}]}


def _plain_value(hint: Any, rule: Rule, key: str) -> dict[str, Any]:
    if hint is KeyRef:
        one = {"type": "string"}
        shape = {"type": "object", "properties": {"env": one, "file": one, "credential": one}}
        return {**shape, "additionalProperties": False, "minProperties": 1, "maxProperties": 1}
    if is_dataclass(hint):
        return _object(typing.cast("type[Any]", hint), key)
    if typing.get_origin(hint) is tuple:
        return {"type": "array", "items": _value(typing.get_args(hint)[0], f"{key}[]")}
    if typing.get_origin(hint) is dict:
        return {"type": "object"}
    if typing.get_origin(hint) is typing.Literal:
        return {"enum": list(typing.get_args(hint))}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if hint is timedelta:
        return {"type": "string", "pattern": _DURATION}
    if rule.size:
        return {"type": "string", "pattern": _SIZE}
    if hint is bool:
        return {"type": "boolean"}
    if hint in (int, float):
        bounds = {"minimum": rule.at_least, "exclusiveMinimum": rule.above, "maximum": rule.at_most}
        kind = "integer" if hint is int else "number"
        return {"type": kind, **{name: bound for name, bound in bounds.items() if bound is not None}}
    return {"type": "string", "minLength": 1}

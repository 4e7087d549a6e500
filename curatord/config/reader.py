"""
One walk over a tree, driven by the types of the settings' dataclasses: the value, or what is wrong and where.

No key has code of its own here. A field's annotation says what it takes: a dataclass is an object, `tuple[X, ...]` a
list, `Literal` a choice, `timedelta` a duration, `X | None` may be null, and a `Rule` beside it bounds it. All problems
of a file are collected, so that one look at the message mends them all. A value is repeated in a message only where it
cannot be a secret.
"""

from __future__ import annotations

import enum
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import PurePath
from typing import Any, NamedTuple

from curatord.config.environ import open_text
from curatord.config.nodes import Mapping_, Node, Origin, Scalar, Sequence_, TreeError, resolve_plain
from curatord.core.cheap import MISSING, fields, is_dataclass
from curatord.core.setting_rules import Rule
from curatord.core.settings import KeyRef
from curatord.core.units import format_duration, parse_duration, parse_size

__all__ = ["BAD", "Expansion", "Problem", "Reader", "fields_of", "nearest"]

BAD: Any = type("Bad", (), {"__repr__": lambda self: "BAD"})()
"""Stands for a value that could not be read; its problem is in the reader's list."""

_NULLS = ("", "~", "null", "Null", "NULL")
_TRUE = ("true", "yes", "on")
_FALSE = ("false", "no", "off")
# Compiled when they are first needed: most configurations need none of them.
_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}"
_ENV_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,127}"
_SECRET_KEY = r"(?i:(api[-_]?key|token|secret|password|authorization|credential)s?$)"  # noqa: S105 - a pattern of names


class Problem(NamedTuple):
    """What is wrong with *key*, where it stands, and what to do."""

    key: str
    what: str
    origin: Origin
    hint: str = ""


class Expansion(NamedTuple):
    """What texts in paths stand for: the user's *home*, the variables, the file's folder; None where there is none."""

    home: str | None
    environ: Mapping[str, str]
    folder: str | None


class Field(NamedTuple):
    """One field of a settings dataclass: its type without marks, its rule, and whether it must be said."""

    name: str
    hint: Any
    required: bool


_FIELDS: dict[type[Any], dict[str, Field]] = {}


def fields_of(cls: type[Any]) -> dict[str, Field]:
    """Return the fields of a settings dataclass by name, in order, with their types resolved."""
    if cls not in _FIELDS:
        hints = typing.get_type_hints(cls, include_extras=True)
        missing = MISSING
        _FIELDS[cls] = {
            f.name: Field(f.name, hints[f.name], f.default is missing and f.default_factory is missing)
            for f in fields(cls)
            if f.metadata.get("setting", True)
        }
    return _FIELDS[cls]


def nearest(word: str, known: typing.Iterable[str], likeness: float = 0.6) -> str:
    """Return the one of *known* that *word* is most like, or nothing where none is near."""
    import difflib

    choices = list(known)
    lowered = word.lower().replace("-", "_")
    if lowered in choices:
        return lowered
    return next(iter(difflib.get_close_matches(lowered, choices, 1, likeness)), "")


def optional(hint: Any) -> tuple[Any, bool]:
    """Return *hint* without `| None`, and whether it had that."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = [arg for arg in typing.get_args(hint) if arg is not types.NoneType]
        if len(inner) == 1:
            return inner[0], True
    return hint, False


def unmarked(hint: Any) -> tuple[Any, Rule]:
    """Return *hint* without `Annotated`, and its rule."""
    if typing.get_origin(hint) is typing.Annotated:
        inner, *marks = typing.get_args(hint)
        return inner, next((mark for mark in marks if isinstance(mark, Rule)), Rule())
    return hint, Rule()


class Reader:
    """Reads nodes as values of a type; *problems* and *origins* (by key) grow as it goes."""

    def __init__(self, expansion: Expansion, suggest: Callable[[str], str] = lambda _: "") -> None:
        self._expansion = expansion
        self._suggest = suggest
        self.problems: list[Problem] = []
        self.origins: dict[str, Origin] = {}

    def fail(self, key: str, what: str, origin: Origin, hint: str = "") -> Any:
        """Note a problem and return `BAD`."""
        self.problems.append(Problem(key=key, what=what, origin=origin, hint=hint))
        return BAD

    def read_object(self, cls: type, node: Node, key: str) -> Any:
        """Return a *cls* out of an object, defaults where nothing is said; `BAD` when any part of it is."""
        opened = self._opened(node, key)
        if opened is BAD:
            return BAD
        if isinstance(opened, Scalar) and opened.plain and opened.text in _NULLS:
            opened = Mapping_({}, opened.origin)
        if not isinstance(opened, Mapping_):
            return self.fail(key, "expected an object (`key: value`)", opened.origin)
        known = fields_of(cls)
        values: dict[str, Any] = {}
        for name, child in opened.items.items():
            where = opened.keys.get(name, child.origin)
            full = f"{key}.{name}" if key else name
            if name not in known:
                self.fail(full, "unknown key", where, self._did_you_mean(name, key, known))
                continue
            self.origins[full] = where
            values[name] = self.read(known[name].hint, child, full)
        for field in known.values():
            if field.required and field.name not in values:
                self.fail(f"{key}.{field.name}" if key else field.name, "must be set", opened.origin)
                values[field.name] = BAD
        if any(value is BAD for value in values.values()) or not values.keys() <= known.keys():
            return BAD
        return cls(**values)

    def read(self, hint: Any, node: Node, key: str) -> Any:
        """Return *node* as a value of the type *hint*, or `BAD` after noting why not."""
        hint, may_be_null = optional(hint)
        hint, rule = unmarked(hint)
        if isinstance(node, Scalar) and node.plain and self._says_null(node):
            if may_be_null:
                return None
            if is_dataclass(hint) and hint is not KeyRef:
                return self.read_object(typing.cast(type, hint), node, key)
            quoted = (
                "write '~' in quotes, or a path below it" if node.text == "~" else "leave the key out for its default"
            )
            return self.fail(key, "is empty", node.origin, quoted)
        if hint is KeyRef:
            return self._key_ref(node, key)
        if is_dataclass(hint):
            return self.read_object(typing.cast(type, hint), node, key)
        origin = typing.get_origin(hint)
        if origin is tuple:
            return self._list(typing.get_args(hint)[0], node, key)
        if origin is dict:
            return self._free(node, key)
        if not isinstance(node, Scalar):
            kind = "a list" if isinstance(node, Sequence_) else "an object"
            return self.fail(key, f"expected {_expected(hint, rule)}, found {kind}", node.origin)
        return self._scalar(hint, rule, node, key)

    def _says_null(self, node: Scalar) -> bool:
        return node.text.strip() == "null" if node.origin.variable else node.text in _NULLS

    def _opened(self, node: Node, key: str) -> Any:
        if isinstance(node, Scalar) and node.origin.variable:
            try:
                return open_text(node)
            except TreeError as error:
                return self.fail(key, str(error), node.origin)
        return node

    def _did_you_mean(self, name: str, key: str, known: Mapping[str, Field]) -> str:
        elsewhere = self._suggest(name)
        if key and elsewhere.startswith(f"{key}."):
            elsewhere = ""
        # A slip of the finger first, then the same word in another section, then whatever is a little like it.
        near = nearest(name, known, 0.85) or elsewhere or nearest(name, known)
        if near:
            return f"did you mean {near}?"
        return f"known here: {', '.join(known)}"

    def _list(self, hint: Any, node: Node, key: str) -> Any:
        opened = self._opened(node, key)
        if opened is BAD:
            return BAD
        if not isinstance(opened, Sequence_):
            hint_text = "write [value], or one `- value` a line" if isinstance(opened, Scalar) else ""
            return self.fail(key, "expected a list", opened.origin, hint_text)
        values = []
        for index, item in enumerate(opened.items):
            full = f"{key}[{index}]"
            self.origins[full] = item.origin
            values.append(self.read(hint, item, full))
        return BAD if any(value is BAD for value in values) else tuple(values)

    def _free(self, node: Node, key: str) -> Any:
        """An object of the user's own shape; a secret in it is refused, since it would be shown and hashed."""
        opened = self._opened(node, key)
        if opened is BAD:
            return BAD
        if not isinstance(opened, Mapping_):
            return self.fail(key, "expected an object (`key: value`)", opened.origin)
        for name, child in opened.items.items():
            if re.search(_SECRET_KEY, name) and not (isinstance(child, Scalar) and child.text.isdigit()):
                where = opened.keys.get(name, child.origin)
                return self.fail(f"{key}.{name}", "looks like a secret; keys are named, not written here", where)
        return resolve_plain(opened)

    def _key_ref(self, node: Node, key: str) -> Any:
        shape = "name where it is: {env: NAME}, {file: PATH} or {credential: NAME}"
        opened = self._opened(node, key)
        if opened is BAD:
            return BAD
        if not isinstance(opened, Mapping_):
            return self.fail(key, "a literal key is refused", opened.origin, shape)
        known = ("env", "file", "credential")
        for name in opened.items:
            if name not in known:
                near = nearest(name, known)
                return self.fail(
                    f"{key}.{name}", "unknown key", opened.keys[name], f"did you mean {near}?" if near else shape
                )
        # The environment says one of them: it wins over another that the file says.
        said = [name for name in opened.items if opened.items[name].origin.variable] or list(opened.items)
        if len(said) != 1:
            return self.fail(key, "exactly one of env, file and credential must be set", opened.origin, shape)
        kind = said[0]
        value = opened.items[kind]
        if not isinstance(value, Scalar) or self._says_null(value) or not value.text.strip():
            return self.fail(f"{key}.{kind}", "expected a name", value.origin, shape)
        if kind == "file":
            path = self._text(Rule(text="path"), value, f"{key}.file")
            return BAD if path is BAD else KeyRef(kind="file", name=path)
        if not re.fullmatch(
            _ENV_NAME, value.text.replace("-", "_").replace(".", "_") if kind == "credential" else value.text
        ):
            return self.fail(f"{key}.{kind}", "that is no name; a literal key is refused", value.origin, shape)
        return KeyRef(kind="env" if kind == "env" else "credential", name=value.text)

    def _scalar(self, hint: Any, rule: Rule, node: Scalar, key: str) -> Any:
        text = node.text.strip()
        if hint is str:
            return self._text(rule, node, key)
        if typing.get_origin(hint) is typing.Literal:
            return self._choice(typing.get_args(hint), node, key)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            chosen = self._choice([member.value for member in hint], node, key)
            return BAD if chosen is BAD else hint(chosen)
        wrong = f"expected {_expected(hint, rule)}, found {_shown(node.text)}"
        if hint is bool:
            if text.lower() in _TRUE + _FALSE:
                return text.lower() in _TRUE
            return self.fail(key, wrong, node.origin, "write true or false")
        try:
            value = _number(hint, rule, text)
        except ValueError as error:
            return self.fail(key, wrong, node.origin, str(error))
        outside = _outside(rule, value)
        return self.fail(key, f"{outside}, found {_shown(text)}", node.origin) if outside else value

    def _choice(self, choices: typing.Sequence[str], node: Scalar, key: str) -> Any:
        if node.text in choices:
            return node.text
        near = nearest(node.text, [choice.replace("-", "_") for choice in choices]).replace("_", "-")
        hint = f"did you mean {near}?" if near in choices else ""
        return self.fail(key, f"expected {' | '.join(choices)}, found {_shown(node.text)}", node.origin, hint)

    def _text(self, rule: Rule, node: Scalar, key: str) -> Any:
        text = node.text.strip() if node.plain else node.text
        if not text.strip():
            return self.fail(key, "is empty", node.origin)
        if any(ch < " " or ch == "\x7f" for ch in text):
            return self.fail(key, "holds a control character", node.origin)
        match rule.text:
            case "plain":
                return text
            case "name":
                if "/" in text or text != text.strip() or not text.isprintable() or len(text) > 100:
                    return self.fail(key, "a name is short, printable and has no /", node.origin)
                return text
            case "url":
                return self._url(text, node, key)
            case _:
                return self._path(rule, text, node, key)

    def _url(self, text: str, node: Scalar, key: str) -> Any:
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(text)
            host, _ = parts.hostname, parts.port
        except ValueError:
            return self.fail(key, "is no URL", node.origin)
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            hint = "keys go into api_key: {env: NAME}"
            return self.fail(key, "a URL with a login, a query or a fragment is refused", node.origin, hint)
        if parts.scheme not in ("http", "https") or not host or any(ch.isspace() for ch in text):
            return self.fail(key, "expected a URL such as http://localhost:11434/v1", node.origin)
        return text.rstrip("/")

    def _path(self, rule: Rule, text: str, node: Scalar, key: str) -> Any:
        missing: list[str] = []

        def value(found: re.Match[str]) -> str:
            said = self._expansion.environ.get(found[1], "").strip()
            if not said and found[2] is None:
                missing.append(found[1])
            return said or found[2] or ""

        expanded = re.sub(_VARIABLE, value, text) if "${" in text else text
        if missing:
            hint = f"set it, or write ${{{missing[0]}:-DEFAULT}}"
            return self.fail(key, f"the environment variable {missing[0]} is not set", node.origin, hint)
        if expanded == "~" or expanded.startswith("~/"):
            if self._expansion.home is None:
                return self.fail(key, "~ cannot be expanded: no home folder is known", node.origin, "set HOME")
            expanded = self._expansion.home + expanded[1:]
        elif expanded.startswith("~") and rule.text != "glob":
            return self.fail(key, "only ~ alone is expanded, no ~name", node.origin, "write the whole path")
        if any(ch < " " or ch == "\x7f" for ch in expanded) or not expanded:
            return self.fail(key, "is no path once its variables are expanded", node.origin)
        if rule.text == "glob":
            return expanded
        path = PurePath(expanded)
        if path.is_absolute():
            return str(path)
        if rule.text == "view_path":
            return self.fail(key, "expected an absolute path, as the host sees it", node.origin)
        if self._expansion.folder is None:
            return self.fail(
                key, "expected an absolute path: there is no file that it could be relative to", node.origin
            )
        return str(PurePath(self._expansion.folder) / path)


_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,2}(_[0-9]{3})*|[1-9][0-9]{0,20})")


def _number(hint: Any, rule: Rule, text: str) -> Any:
    """Return *text* as a duration, size, whole number or number; raise `ValueError` with the right way to write it."""
    if hint is timedelta:
        return parse_duration(text)
    if rule.size:
        return parse_size(text)
    if hint is int:
        if not _WHOLE.fullmatch(text):
            raise ValueError("write a whole number")
        return int(text)
    number = float(text) if re.fullmatch(r"[+-]?[0-9.]{1,30}(e[+-]?[0-9]{1,2})?", text) else math.nan
    if not math.isfinite(number):
        raise ValueError("write a number")
    return number


def _shown(text: str) -> str:
    """Return *text* fit for a message: short, and inert on a terminal."""
    return ascii(text) if len(text) <= 40 else ascii(text[:37] + "...")


def _expected(hint: Any, rule: Rule) -> str:
    if rule.size:
        return "a size such as 8KiB"
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return " | ".join(str(member.value) for member in hint)
    names = {timedelta: "a duration such as 90d", bool: "true or false", int: "a whole number", float: "a number"}
    return names.get(hint, "a path" if rule.text in ("path", "view_path") else "a text")


def _outside(rule: Rule, value: Any) -> str:
    """Return what bound *value* breaks, in words, or nothing."""
    number = value.total_seconds() if isinstance(value, timedelta) else value

    def said(bound: float) -> str:
        return format_duration(timedelta(seconds=bound)) if isinstance(value, timedelta) else f"{bound:g}"

    if rule.at_least is not None and number < rule.at_least:
        return f"must be at least {said(rule.at_least)}"
    if rule.above is not None and number <= rule.above:
        return f"must be more than {said(rule.above)}"
    if rule.at_most is not None and number > rule.at_most:
        return f"must be at most {said(rule.at_most)}"
    return ""

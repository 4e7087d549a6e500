"""
The tree that a configuration's text becomes: marked nodes of text, and nothing more than that is believed of it.

The classes are tuples and bare slots, not dataclasses: every command reads a configuration first, and making one of
those costs half a millisecond.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["MAX_BYTES", "Mapping_", "Node", "Origin", "Scalar", "Sequence_", "TreeError", "decode", "resolve_plain"]

MAX_BYTES = 256 * 1024


class Origin(NamedTuple):
    """Where a value was said: a *line* (1-based) of *file*, or the environment *variable*; `found` on this machine."""

    file: str = ""
    line: int = 0
    variable: str = ""
    found: bool = False

    def __str__(self) -> str:
        if self.variable:
            return f"environment variable {self.variable}"
        if self.found:
            return "found"
        return f"{self.file}:{self.line}" if self.line else self.file or "default"


class Scalar:
    """One value as text. *plain*: written without quotes, so it may mean null, a number or a boolean."""

    __slots__ = ("origin", "plain", "text")

    def __init__(self, text: str, plain: bool, origin: Origin) -> None:
        self.text = text
        self.plain = plain
        self.origin = origin


class Sequence_:  # noqa: N801 - the bare word is taken by typing
    """A list."""

    __slots__ = ("items", "origin")

    def __init__(self, items: list[Node], origin: Origin) -> None:
        self.items = items
        self.origin = origin


class Mapping_:  # noqa: N801 - the bare word is taken by typing
    """An object; *keys* has where each key stands."""

    __slots__ = ("items", "keys", "origin")

    def __init__(self, items: dict[str, Node], origin: Origin, keys: dict[str, Origin] | None = None) -> None:
        self.items = items
        self.origin = origin
        self.keys = {} if keys is None else keys


Node = Scalar | Sequence_ | Mapping_


class TreeError(Exception):
    """The text is no tree we take; *line* is 1-based, 0 where unknown; *key* is the one that is twice."""

    def __init__(self, message: str, line: int, hint: str = "", key: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.hint = hint
        self.key = key


def decode(data: bytes) -> str:
    """
    Return *data* as text, a byte order mark taken off.

    Raises:
        TreeError: It is too large, not UTF-8, or holds control characters.
    """
    if len(data) > MAX_BYTES:
        raise TreeError(f"the file is larger than {MAX_BYTES // 1024} KiB, so it is no configuration", 0)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TreeError("the file is UTF-16, not UTF-8", 1, "save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TreeError("the file is not UTF-8", line, "save it as UTF-8") from None
    for number, line_text in enumerate(text.split("\n"), start=1):
        if any((ch < " " and ch not in "\t\r") or ch == "\x7f" for ch in line_text):
            raise TreeError("a control character that no YAML file may hold", number)
    return text


_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")


def resolve_plain(node: Node) -> Any:
    """
    Return *node* as plain values (dict, list, str, int, float, bool, None), for settings whose shape is the user's own.

    Unquoted words follow the JSON-like core of YAML 1.2: `on`, `yes` and `1:30` are text.
    """
    if isinstance(node, Mapping_):
        return {key: resolve_plain(value) for key, value in node.items.items()}
    if isinstance(node, Sequence_):
        return [resolve_plain(item) for item in node.items]
    text = node.text
    if not node.plain:
        return text
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if len(text) < 40 and text[-1:].isdigit() and text.isascii():
        for kind in (int, float):
            try:
                return kind(text) if "_" not in text else text
            except ValueError:
                continue
    return text

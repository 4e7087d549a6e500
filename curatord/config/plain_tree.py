"""
The plain part of YAML that configurations are written in, read without PyYAML, which is a sixth of `status`'s start.

Accepted is only what cannot be meant otherwise: lines of `key: value` and `- value`, indented by blanks, with
lower-case keys; values that are words, numbers, paths and URLs, simple quoted texts, and one-line lists and objects of
such. Everything else (anchors, tags, escapes, block texts, several documents, doubled keys, tabs, any error) is not
judged here: the answer is None, and `yaml_tree` reads the text. A test holds both equal, lines included, on what is
accepted.
"""

from __future__ import annotations

import re

from curatord.config.nodes import Mapping_, Node, Origin, Scalar, Sequence_

__all__ = ["parse_plain"]

_KEY = r"[a-z_][a-z0-9_]*"
# A word that is nothing but text in YAML 1.1: it begins with a letter, digit, `/`, `~`, `.` or `${VAR}`, and has no
# character that could end or mean anything; a colon only within a word (`http://h:1/v1`, `qwen3:14b`).
_VARIABLE = r"\$\{[A-Za-z0-9_]+(?::-[A-Za-z0-9_/.~-]*)?\}"
_WORD = rf"(?:[A-Za-z0-9/.~]|{_VARIABLE})(?:[A-Za-z0-9_/.~+()@-]|:(?=[A-Za-z0-9_/])|{_VARIABLE})*"
_SIMPLE = r"[A-Za-z0-9/.~](?:[A-Za-z0-9_/.~-])*"  # within brackets fewer characters are safe
_QUOTED = r"\"[^\"\\]*\"|'[^']*'"
_ITEM = rf"(?:{_SIMPLE}|{_QUOTED})"
_VALUE = (
    rf"{_WORD}(?: {_WORD})*|{_QUOTED}|\[(?:{_ITEM}(?:, {_ITEM})*)?\]|\{{(?:{_KEY}: {_ITEM}(?:, {_KEY}: {_ITEM})*)?\}}"
)
_LINE = re.compile(rf"( *)((?:- )?)(?:({_KEY}):(?: +|$))?({_VALUE})?(?: +#.*| *)")
_BLANK = re.compile(r" *(?:#.*)?")
_PART = re.compile(rf"(?:({_KEY}): )?({_ITEM})")

MAX_DEPTH = 16


class _NotPlainError(Exception):
    """The text is not, or may not be, plain."""


class _Open:
    """A mapping or sequence that is being filled: its column, and the key whose value has not come yet."""

    __slots__ = ("column", "key", "key_origin", "node")

    def __init__(self, column: int, node: Mapping_ | Sequence_) -> None:
        self.column = column
        self.node = node
        self.key: str | None = None
        self.key_origin: Origin | None = None


def parse_plain(text: str, file: str) -> Mapping_ | None:
    """Return the tree of *text*, or None where it is not plain enough to be sure."""
    if not text.isascii() and not text.replace("\n", "").isprintable():
        return None
    try:
        return _Reader(file).read(text)
    except _NotPlainError:
        return None


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._open: list[_Open] = []

    def read(self, text: str) -> Mapping_:
        for number, line in enumerate(text.split("\n"), start=1):
            if _BLANK.fullmatch(line):
                continue
            found = _LINE.fullmatch(line)
            if found is None:
                raise _NotPlainError
            self._line(found, Origin(self._file, number))
        root = self._open[0].node if self._open else Mapping_({}, Origin(self._file))
        while self._open:
            self._close()
        if not isinstance(root, Mapping_):
            raise _NotPlainError
        return root

    def _line(self, found: re.Match[str], origin: Origin) -> None:
        indent, dash, key, value = found.groups()
        column = len(indent)
        if dash:
            self._item(column, origin)
            column += len(dash)
            if key is None:
                if value is None:
                    raise _NotPlainError
                self._put(self._value(value, origin))
                return
        if key is None:
            raise _NotPlainError
        self._mapping_at(column, origin, fresh=bool(dash))
        holder = self._open[-1]
        node = holder.node
        if not isinstance(node, Mapping_) or key in node.items:
            raise _NotPlainError
        holder.key, holder.key_origin = key, origin
        if value is not None:
            self._put(self._value(value, origin))

    def _item(self, column: int, origin: Origin) -> None:
        """Make the sequence at *column* the innermost open node, opening it where a key waits for its value."""
        while self._open and (
            self._open[-1].column > column
            or (
                self._open[-1].column == column and isinstance(self._open[-1].node, Mapping_) and not self._open[-1].key
            )
        ):
            self._close()
        if not self._open:
            raise _NotPlainError
        top = self._open[-1]
        if isinstance(top.node, Sequence_) and top.column == column:
            return
        # A list may stand at its key's own column, or deeper.
        if isinstance(top.node, Mapping_) and top.key is not None and column >= top.column:
            self._push(column, Sequence_([], origin))
            return
        raise _NotPlainError

    def _mapping_at(self, column: int, origin: Origin, *, fresh: bool) -> None:
        """Make the mapping at *column* the innermost open node; *fresh*: it begins a list's entry."""
        if fresh or not self._open:
            if not fresh and column:
                raise _NotPlainError
            self._push(column, Mapping_({}, origin))
            return
        while self._open and self._open[-1].column > column:
            self._close()
        if not self._open:
            raise _NotPlainError
        top = self._open[-1]
        if top.column == column and isinstance(top.node, Sequence_):
            # The list stood at its key's column; the mapping around it goes on.
            self._close()
            top = self._open[-1] if self._open else top
        if top.column == column and isinstance(top.node, Mapping_):
            if top.key is not None:
                self._put(Scalar("", True, top.key_origin or origin))
            return
        if isinstance(top.node, Mapping_) and top.key is not None and column > top.column:
            self._push(column, Mapping_({}, origin))
            return
        raise _NotPlainError

    def _push(self, column: int, node: Mapping_ | Sequence_) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise _NotPlainError
        self._open.append(_Open(column, node))

    def _close(self) -> None:
        """Give the innermost node to the one around it; a key without a value is null."""
        top = self._open[-1]
        if top.key is not None:
            self._put(Scalar("", True, top.key_origin or Origin(self._file)))
        self._open.pop()
        if self._open:
            self._put(top.node)

    def _put(self, node: Node) -> None:
        top = self._open[-1]
        if isinstance(top.node, Sequence_):
            top.node.items.append(node)
        elif top.key is not None and top.key_origin is not None:
            top.node.items[top.key] = node
            top.node.keys[top.key] = top.key_origin
            top.key = None
        else:
            raise _NotPlainError

    def _value(self, text: str, origin: Origin) -> Node:
        if text[0] == "[":
            items: list[Node] = [_scalar(part[2], origin) for part in _PART.finditer(text, 1)]
            return Sequence_(items, origin)
        if text[0] == "{":
            mapping = Mapping_({}, origin)
            for part in _PART.finditer(text, 1):
                if part[1] in mapping.items:
                    raise _NotPlainError
                mapping.items[part[1]] = _scalar(part[2], origin)
                mapping.keys[part[1]] = origin
            return mapping
        return _scalar(text, origin)


def _scalar(text: str, origin: Origin) -> Scalar:
    if text[0] in "\"'":
        return Scalar(text[1:-1], False, origin)
    return Scalar(text, True, origin)

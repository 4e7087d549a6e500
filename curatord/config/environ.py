"""
Settings out of environment variables: `CURATORD_LLM__PRIMARY__MODEL`, `CURATORD_SOURCES__0__PATH`.

They are laid over the file's tree, so one reader sees both. A variable's text is never YAML for a text setting (a path
of `~` stays one); for a list or an object it is read as YAML (`CURATORD_SOURCES='[{host: hermes}]'`). Blank counts as
unset, since compose files and unit files pass blanks along. Which variables are ours and no settings stands in
`NOT_SETTINGS`; what Kubernetes puts beside a service of our name is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from curatord.config.nodes import Mapping_, Node, Origin, Scalar, Sequence_, TreeError
from curatord.config.tree import parse_tree

__all__ = ["NOT_SETTINGS", "PREFIX", "lay_over"]

PREFIX = "CURATORD_"
NOT_SETTINGS = frozenset({"CURATORD_CONFIG", "CURATORD_LOG_FORMAT"})
_KUBERNETES = r"CURATORD_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?)"

Problem = tuple[Origin, str, str, str]  # where, key, what is wrong, hint


def lay_over(root: Mapping_, environ: Mapping[str, str]) -> list[Problem]:
    """Put the settings among *environ* into *root*, outer ones first; return what cannot be put."""
    problems: list[Problem] = []
    ours: list[tuple[list[str | int], str]] = []
    for name in environ:
        if not name.startswith(PREFIX) or name in NOT_SETTINGS or re.fullmatch(_KUBERNETES, name):
            continue
        if not environ[name].strip():
            continue
        words = name.removeprefix(PREFIX).lower().split("__")
        ours.append(([int(word) if word.isascii() and word.isdigit() else word for word in words], name))
    for parts, name in sorted(ours, key=lambda pair: [(isinstance(p, str), str(p).zfill(9)) for p in pair[0]]):
        problem = _put(root, parts, Scalar(environ[name], True, Origin(variable=name)))
        if problem:
            problems.append((Origin(variable=name), "", *problem))
    return problems


def _put(root: Mapping_, parts: list[str | int], value: Scalar) -> tuple[str, str] | None:
    """Put *value* at *parts* below *root*; return what is wrong and a hint where that cannot be."""
    node: Node = root
    for depth, part in enumerate(parts):
        last = depth == len(parts) - 1
        if isinstance(node, Sequence_) and isinstance(part, int):
            if part > len(node.items):
                return f"there is no entry {part}; the next one would be {len(node.items)}", "entries count from 0"
            child = node.items[part] if part < len(node.items) else None
        elif isinstance(node, Mapping_):
            child = node.items.get(str(part))
        else:
            return "what it would be set in is no list and no object", ""
        if last:
            _set(node, part, value)
            return None
        inner = _opened(child, parts[depth + 1], value.origin)
        if isinstance(inner, str):
            return inner, ""
        if inner is not child:
            _set(node, part, inner)
        node = inner
    return None


def _set(holder: Mapping_ | Sequence_, part: str | int, node: Node) -> None:
    if isinstance(holder, Mapping_):
        holder.items[str(part)] = node
        holder.keys[str(part)] = node.origin
    elif int(part) == len(holder.items):
        holder.items.append(node)
    else:
        holder.items[int(part)] = node


def _opened(child: Node | None, part: str | int, origin: Origin) -> Node | str:
    """Return *child* as something that *part* can be set in, or what is wrong; an alias's node is copied first."""
    if isinstance(child, Mapping_):
        return Mapping_(dict(child.items), child.origin, dict(child.keys))
    if isinstance(child, Sequence_):
        return Sequence_(list(child.items), child.origin)
    if isinstance(child, Scalar) and child.origin.variable:
        try:
            return open_text(child)
        except TreeError as error:
            return str(error)
    if child is None or (child.plain and child.text in ("", "~", "null")):
        return Sequence_([], origin) if isinstance(part, int) else Mapping_({}, origin)
    return child


def open_text(scalar: Scalar) -> Node:
    """
    Return the list or object that a variable's text says in YAML; the scalar itself where it says neither.

    Raises:
        TreeError: It is not YAML.
    """
    if scalar.text.strip()[:1] not in ("[", "{"):
        return scalar
    tree = parse_tree(f"value: {scalar.text.strip()}", "")
    node = tree.items["value"] if tree else scalar
    return _with_origin(node, scalar.origin)


def _with_origin(node: Node, origin: Origin) -> Node:
    if isinstance(node, Scalar):
        return Scalar(node.text, node.plain, origin)
    if isinstance(node, Sequence_):
        return Sequence_([_with_origin(item, origin) for item in node.items], origin)
    items = {key: _with_origin(item, origin) for key, item in node.items.items()}
    return Mapping_(items, origin, dict.fromkeys(items, origin))

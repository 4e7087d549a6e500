"""
YAML text as a tree of marked nodes, and nothing more than that is believed of it.

Why not `yaml.safe_load`: it loses the lines that an error must name, lets a later duplicate key win silently, turns
`on` into True, `1:30` into 90 and `012` into 10, and follows aliases without end. So the events are taken from PyYAML
and the tree is built here: text stays text, and `curatord.config.reader` decides by the setting's type what it means.

Bounds: a file is at most 256 KiB, a tree at most 32 deep and 20,000 nodes, aliases counted each time they are used
(that is what defuses "billion laughs"). What passes a bound is an error with its line, not a slow start.
"""

from __future__ import annotations

from typing import Any

import yaml

from curatord.config.nodes import Mapping_, Node, Origin, Scalar, Sequence_, TreeError

__all__ = ["parse_tree"]

MAX_DEPTH = 32
MAX_NODES = 20_000


def _events(text: str) -> Any:
    """Return PyYAML's event stream of *text*: libyaml's where it is built in, some ten times quicker."""
    return yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _line_of(mark: Any) -> int:
    return 0 if mark is None else int(mark.line) + 1


def parse_tree(text: str, file: str) -> Mapping_ | None:
    """
    Return the one document of *text* as a tree; None where there is nothing but comments and blanks.

    Raises:
        TreeError: Not YAML, several documents, not an object at the top, a key twice, a tag, or past a bound.
    """
    try:
        root = _Builder(file).build(_events(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = _line_of(mark)
        problem = error.problem or error.context or "not YAML"
        hint = ""
        lines = text.split("\n")
        if "'\\t'" in problem or (0 < line <= len(lines) and lines[line - 1].lstrip(" ").startswith("\t")):
            hint = "YAML is indented with blanks, not with tabs"
        raise TreeError(f"not YAML: {problem}", line, hint) from None
    except yaml.YAMLError as error:
        # Characters that YAML does not allow; the reader tells an index, and its text would show the file's content.
        position = getattr(error, "position", 0)
        raise TreeError("a character that YAML does not allow", text.count("\n", 0, position) + 1) from None
    if root is None or (isinstance(root, Scalar) and root.plain and root.text in ("", "null", "~")):
        return None
    if not isinstance(root, Mapping_):
        raise TreeError("expected settings written as `key: value`", root.origin.line or 1)
    return root


class _Builder:
    """Builds the tree out of events without recursion, holding the bounds."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._anchors: dict[str, Node] = {}
        self._sizes: dict[int, tuple[int, int]] = {}  # id of a node -> nodes below it, depth below it

    def build(self, events: Any) -> Node | None:
        root: Node | None = None
        documents = 0
        open_nodes: list[tuple[Mapping_ | Sequence_, str | None]] = []
        pending: list[Scalar | None] = []  # per open mapping: the key that waits for its value
        for event in events:
            line = _line_of(event.start_mark)
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise TreeError("a second document begins here; a configuration is one", line)
                continue
            node: Node
            if isinstance(event, yaml.AliasEvent):
                found = self._anchors.get(event.anchor or "")
                if found is None:
                    raise TreeError(f"the alias *{event.anchor} names nothing before it", line)
                if any(found is holder for holder, _ in open_nodes):
                    raise TreeError(f"the alias *{event.anchor} holds itself", line)
                node = found
            elif isinstance(event, yaml.ScalarEvent):
                self._refuse_tag(event, line)
                plain = event.style in (None, "")
                node = Scalar(event.value, plain, Origin(self._file, line))
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._refuse_tag(event, line)
                origin = Origin(self._file, line)
                node = Mapping_({}, origin) if isinstance(event, yaml.MappingStartEvent) else Sequence_([], origin)
                if len(open_nodes) >= MAX_DEPTH:
                    raise TreeError(f"nested deeper than {MAX_DEPTH}", line)
                if open_nodes and isinstance(open_nodes[-1][0], Mapping_) and pending[-1] is None:
                    raise TreeError("a key must be plain text", line)
                open_nodes.append((node, event.anchor))
                pending.append(None)
                continue
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                node, anchor = open_nodes.pop()
                pending.pop()
                self._measure(node, line)
                if anchor:
                    self._anchors[anchor] = node
                root = self._put(node, open_nodes, pending, root, line)
                continue
            else:
                continue
            if getattr(event, "anchor", None) and not isinstance(event, yaml.AliasEvent):
                self._anchors[event.anchor] = node
            root = self._put(node, open_nodes, pending, root, line)
        return root

    def _refuse_tag(self, event: Any, line: int) -> None:
        if event.tag is not None and event.tag != "!":
            raise TreeError(f"the tag {event.tag} is not used in a configuration", line)

    def _put(
        self,
        node: Node,
        open_nodes: list[tuple[Mapping_ | Sequence_, str | None]],
        pending: list[Scalar | None],
        root: Node | None,
        line: int,
    ) -> Node | None:
        if not open_nodes:
            return node
        holder = open_nodes[-1][0]
        if isinstance(holder, Sequence_):
            holder.items.append(node)
            return root
        key = pending[-1]
        if key is None:
            if not isinstance(node, Scalar):
                raise TreeError("a key must be plain text", line)
            if node.text in holder.items:
                first = holder.keys[node.text].line
                what = f"the key {node.text!r} is here twice; the first is in line {first}"
                raise TreeError(what, line, "keep one of them", node.text)
            pending[-1] = Scalar(node.text, node.plain, Origin(self._file, line))
        else:
            holder.items[key.text] = node
            holder.keys[key.text] = key.origin
            pending[-1] = None
        return root

    def _measure(self, node: Mapping_ | Sequence_, line: int) -> None:
        children = node.items.values() if isinstance(node, Mapping_) else node.items
        measured = [self._sizes.get(id(child), (1, 0)) for child in children]
        count = 1 + sum(size for size, _ in measured)
        depth = 1 + max((below for _, below in measured), default=0)
        if count > MAX_NODES:
            raise TreeError(f"expands to more than {MAX_NODES} values", line)
        if depth > MAX_DEPTH:
            raise TreeError(f"nested deeper than {MAX_DEPTH}", line)
        self._sizes[id(node)] = (count, depth)

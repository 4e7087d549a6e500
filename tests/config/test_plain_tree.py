"""The quick reader of plain YAML says exactly what PyYAML says, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curatord.config.nodes import Mapping_, Node, Scalar, Sequence_, TreeError
from curatord.config.plain_tree import parse_plain
from curatord.config.yaml_tree import parse_tree

ROOT = Path(__file__).resolve().parents[2]


def told(node: Node | None) -> Any:
    """Return all that a tree says, lines included, as something to compare."""
    match node:
        case None:
            return None
        case Scalar():
            return (node.text, node.plain, node.origin.line)
        case Sequence_():
            return [node.origin.line, *map(told, node.items)]
        case Mapping_():
            keys = {key: origin.line for key, origin in node.keys.items()}
            return {
                "": node.origin.line if node.items else None,
                **{k: (keys[k], told(v)) for k, v in node.items.items()},
            }


def agrees(text: str) -> bool:
    """Return whether the quick reader took *text*; fail where it says another thing than PyYAML."""
    quick = parse_plain(text, "f")
    if quick is None:
        return False
    try:
        whole = parse_tree(text, "f")
    except TreeError as error:
        raise AssertionError(f"taken, though {error}: {text!r}") from None
    assert told(whole or Mapping_({}, quick.origin)) == told(quick), text
    return True


@pytest.mark.parametrize(
    "path", [ROOT / "config/curatord.yaml", *sorted((ROOT / "config/samples").glob("*.yaml"))], ids=str
)
def test_the_samples_are_read_quickly(path: Path) -> None:
    """What we tell people to write needs no PyYAML."""
    text = path.read_text(encoding="utf-8")

    assert agrees(text) or path.stem == "several-hosts"


def test_the_sample_with_everything_said_is_read_quickly() -> None:
    """Also once its commented parts are in use."""
    import re

    text = (ROOT / "config/curatord.yaml").read_text(encoding="utf-8")
    assert agrees(re.sub(r"(?m)^# (?=( *(- )?[a-z_]+:( .*# | *# |$)| +))", "", text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only this\n\n",
        "a: b",
        "a:\n  b: c\n  d:\n    - e: 1\n      f: 2\n    - e: 3\ng: h\n",
        "a:\n- 1\n- 2\nb: c\n",
        "a:\n- b: 1\n  c: 2\n- b: 3\nd: 4\n",
        "a:\nb:\n  c:\nd:\n",
        "a: [x, 'y z', \"w\"]\nb: {env: KEY}\nc: []\nd: {}\n",
        "a: ${X:-~/.b}/c\nb: http://h:1/v1\nc: qwen3:14b  # said\nd: two words\n",
        "a:  b   # c\n",
        "a: '~'\nb: ~\nc: null\nd: \"#x\"\n",
    ],
)
def test_plain_texts_are_taken(text: str) -> None:
    """Mappings, lists at and below their key's column, comments, nulls, brackets, quotes."""
    assert agrees(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: b\n  c: d\n", "a: b\n c\n", "  a: b\nc: d\n", "a: &x b\n", "a: *x\n", "a: !t b\n", "a: |\n  b\n",
        "---\na: b\n", "a: b\na: c\n", "a:\tb\n", "a: 'it''s'\n", "a: \"\\n\"\n", "a: [b\n", "a: [[b]]\n",
        "a: b: c\n", "a: b#c\n", "- a\n", "a: [b: c]\n", "a: {b}\n", "? a\n: b\n", "a: - b\n",
        "a:\n  - b\n - c\n", "a:\n - b\n  c: d\n", "a: b\n- c\n", "a: \x85b\n", "a: \u2028b\n", "\ufeffa: b\n",
        "a: b\r\n", "a: 'x\n", "A: b\n", "a: {b: c, b: d}\n", "a: @b\n", "a: %b\n", "a: -1\n", "...\n",
        "a:\n    b: c\n  d: e\n", "a:b\n", "a: b:\n", "a: é\n",
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_alone(text: str) -> None:
    """Errors, and everything that may mean more than it looks like, are PyYAML's to judge."""
    assert parse_plain(text, "f") is None


_WORDS = st.sampled_from(
    [
        *(
            "a",
            "b: c",
            "a:",
            "- ",
            "- a",
            "- a: b",
            "  ",
            " ",
            "\n",
            "\n  ",
            "\n    ",
            "#",
            " # c",
            "'x'",
            '"y"',
            "~",
            "null",
        ),
        *(
            "[",
            "]",
            "{",
            "}",
            ", ",
            ": ",
            "1:2",
            "${A}",
            "${A:-b}",
            "-",
            "--",
            ".",
            "/p",
            "&a",
            "*a",
            "!",
            "|",
            ">",
            "%",
            "@",
        ),
        *("\t", "?"),
    ],
)


@settings(max_examples=600)
@given(st.lists(_WORDS, max_size=14).map("".join))
@example("a:\n- b: c\n  - d\n")
def test_any_text_is_read_alike_or_left_alone(text: str) -> None:
    """Random texts of YAML's own signs: whatever is taken, is taken as PyYAML takes it."""
    agrees(text)


_KEYS = st.sampled_from(["a", "b_c", "d1"])
_SCALARS = st.sampled_from(
    ["x", "1", "7d", "/p/q", "~/x", "null", "''", "'q r'", "[]", "[x, y]", "{}", "{env: K}", "two words"]
)
_TREES: st.SearchStrategy[Any] = st.recursive(
    _SCALARS,
    lambda inner: st.dictionaries(_KEYS, inner, min_size=1, max_size=3) | st.lists(inner, min_size=1, max_size=3),
    max_leaves=8,
)


def written(value: Any, indent: int = 0) -> str:
    """Return *value* in block form."""
    blank = " " * indent
    lines = []
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str):
                lines.append(f"{blank}{key}: {item}  # said")
            else:
                lines += [f"{blank}{key}:", written(item, indent + 2)]
    else:
        for item in value:
            inner = item if isinstance(item, str) else written(item, indent + 2).lstrip(" ")
            lines.append(f"{blank}- {inner}")
    return "\n".join(lines)


@settings(max_examples=300)
@given(st.dictionaries(_KEYS, _TREES, min_size=1, max_size=3))
def test_written_trees_are_read_alike(value: dict[str, Any]) -> None:
    """Trees written in block form; lists within lists may be left alone."""
    text = written(value)
    yaml.safe_load(text)  # the maker of this test writes YAML
    agrees(text)

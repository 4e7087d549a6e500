"""The header of a SKILL.md: what is read, what is refused with its line, and edits that keep every other byte."""

from __future__ import annotations

import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.header import HEADER_CAP, Fault, Header, SplitText, render_value, set_header_value, split_text


def read(data: str | bytes) -> Header:
    """Return the header of *data*, which must have one that can be read."""
    split = split_text(data.encode() if isinstance(data, str) else data)
    assert isinstance(split, SplitText), split
    assert split.header is not None
    return split.header


def refused(data: str | bytes) -> Fault:
    """Return why *data* is refused, which it must be."""
    split = split_text(data.encode() if isinstance(data, str) else data)
    assert isinstance(split, Fault), split
    return split


def skill(header: str, body: str = "# Body\n", eol: str = "\n") -> str:
    """Return a SKILL.md with *header* between its fences."""
    return f"---\n{header}\n---\n{body}".replace("\n", eol)


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["plain", "bom"])
def test_line_ends_and_byte_order_mark(eol: str, bom: str) -> None:
    """LF, CRLF and CR are read alike, with and without a byte-order mark (bugs B057, B058, B059)."""
    split = split_text((bom + skill("name: a\ndescription: b", eol=eol)).encode())

    assert isinstance(split, SplitText)
    assert split.header
    assert {"name": "a", "description": "b"} == split.header.values()
    assert ("# Body" + eol, eol) == (split.body, split.eol)


def test_mixed_line_ends() -> None:
    """A header whose lines end in three ways is one header, and lines are counted as an editor would."""
    header = read("---\r\nname: a\rdescription: b\n---\r\nbody")

    assert [("name", 2), ("description", 3)] == [(entry.key, entry.line) for entry in header.entries]


@pytest.mark.parametrize("fence", ["--- ", "---\t", "---  \t "])
def test_fences_with_blanks(fence: str) -> None:
    """A fence is three dashes and whatever blanks, on either side (bugs B059)."""
    assert {"name": "a"} == read(f"{fence}\nname: a\n{fence}\nbody").values()


@pytest.mark.parametrize("text", ["# Title\n", "", "----\nname: a\n----\n", "\n---\nname: a\n---\n", "--- x\n"])
def test_no_header_is_no_fault(text: str) -> None:
    """A file whose first line is no fence has no header, and all of it is body."""
    split = split_text(text.encode())

    assert isinstance(split, SplitText)
    assert (None, text) == (split.header, split.body)


def test_header_without_keys() -> None:
    """Fences with nothing or only comments between them are a header without keys."""
    assert ({}, {}) == (read("---\n---\nx").values(), read("---\n# why\n\n---\n").values())


def test_unterminated() -> None:
    """A header that never closes is a fault that says so, whatever the body holds (bugs B061)."""
    assert Fault(line=1, reason="no closing fence: the header begun with `---` never ends") == refused(
        "---\nname: a\ndescription: b\n\n# Body ---\n ---\n"
    )


def test_closing_fence_at_the_very_end() -> None:
    """The closing fence may be the last thing in the file, without a line end."""
    assert {"name": "a"} == read("---\nname: a\n---").values()


def test_long_header_is_read_and_a_longer_one_refused() -> None:
    """6 KB are read, what passes the cap is refused without being parsed (bugs B074)."""
    long = "x " * 3000

    assert long.strip() == read(skill(f"name: a\nnotes: {long}\ndescription: b")).text("notes")
    assert "at most 65536 are read" in refused(skill("name: a\nnotes: " + "x" * HEADER_CAP)).reason


@pytest.mark.parametrize(
    "value", ["007", "1.10", "yes", "2024-01-01", "0x1F", "1e3", "12:30:45", ".5", "true", "=", "<<x"]
)
def test_values_stay_as_written(value: str) -> None:
    """No value becomes a number, a date or a boolean (bugs B064)."""
    assert value == read(skill(f"name: {value}\ndescription: d")).text("name")


@pytest.mark.parametrize("value", ["", " ~", " null"])
def test_nothing_is_none(value: str) -> None:
    """What YAML calls null is no text."""
    assert {"name": "a", "description": None} == read(skill(f"name: a\ndescription:{value}")).values()


def test_block_scalars() -> None:
    """Folded and literal blocks are read in full (bugs B065)."""
    header = read(skill("name: a\ndescription: >\n  one\n  two\n\n  three\nnotes: |-\n  - a\n    b"))

    assert ("one two\nthree\n", "- a\n  b") == (header.text("description"), header.text("notes"))


def test_nested_values_are_text_too() -> None:
    """Lists and mappings hold text, never objects."""
    header = read(skill("name: a\nmetadata:\n  hermes:\n    tags: [x, 1, yes]\n    config: {a: 1.0}"))

    assert {"hermes": {"tags": ["x", "1", "yes"], "config": {"a": "1.0"}}} == header.values()["metadata"]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("description: Helps with plans: weekly and daily", "Helps with plans: weekly and daily"),
        ("description: @team asks: who", "@team asks: who"),
        ("description: Use `x`: always  # note", "Use `x`: always"),
        ("description: one: two\n  three: four", "one: two three: four"),
        ('description: say "hi": loud', 'say "hi": loud'),
        ("description: back\\slash: yes", "back\\slash: yes"),
        ("description: `code` first", "`code` first"),
        ("description: ends with colon:", "ends with colon:"),
        ("description: a\u2028b: c", "a\u2028b: c"),
    ],
)
def test_plain_values_are_mended(line: str, value: str) -> None:
    """A plain description that YAML cannot read is read as written, and it is said which key it was (bugs B055)."""
    header = read(skill(f"name: x\n{line}\nflag: yes # kept"))

    assert {"name": "x", "description": value, "flag": "yes"} == header.values()
    assert "description" in header.mended


@pytest.mark.parametrize(
    ("header", "line", "reason"),
    [
        ("name: a\ndescription: [one: two: three", 3, "not YAML"),
        ("name: a\n\tdescription: b", 3, "not YAML"),
        ("name: a\nother: b: c", 3, "not YAML"),
        ("name: a\nname: b", 3, "`name` stands twice"),
        ("m:\n  x: 1\n  x: 2", 4, "`x` stands twice"),
        ("- name: a", 2, "not a mapping"),
        ("just text", 2, "not a mapping"),
        ("a: &x [1]\nb: *x", 3, "aliases"),
        ("a: !!python/object/apply:os.system [id]", 2, "tags"),
        ("a: !!binary aGk=", 2, "tags"),
        ("? [a, b]\n: c", 2, "a key is a list"),
        ("a: " + "[" * 40 + "]" * 40, 2, "nested more than"),
        ("a: \x07", 2, "U+0007"),
        ("a: b\n--- second\nc: d", 3, ""),
        ('a: "\\ud800"', 2, ""),
    ],
)
def test_refusals_name_line_and_reason(header: str, line: int, reason: str) -> None:
    """What cannot be taken says where and why."""
    fault = refused(skill(header))

    assert line == fault.line
    assert reason in fault.reason


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"---\nname: \xff\n---\n", 2, "not UTF-8"),
        (b"---\nname: a\n---\nok\r\nbad \xc3(", 5, "not UTF-8"),
        (b"---\nname: a\n---\nx\0y", 4, "NUL"),
        ("---\nname: a\n---\n".encode("utf-16"), 1, "not UTF-8"),
    ],
)
def test_bytes_that_are_no_text(data: bytes, line: int, reason: str) -> None:
    """Bad bytes name their line, in the header and in the body (bugs B077)."""
    fault = refused(data)

    assert line == fault.line
    assert reason in fault.reason


def test_second_document_is_refused_by_both_readers() -> None:
    """`...` and a new document within a header are no way to smuggle a second name in."""
    assert "second YAML document" in refused("---\nname: a\n...\n--- {name: b}\n---\n").reason


BOMBS = {
    "laughs": "a: &a [x,x]\n"
    + "".join(f"{c}: &{c} [*{p},*{p}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)),
    "flow": "a: " + "[" * 60_000,
    "braces": "a: " + "{" * 60_000,
    "dashes": "- " * 30_000,
    "questions": "? " * 30_000,
    "keys": "\n".join(f"k{n}: {n}" for n in range(6000)),
    "quotes": "a: '" + "''" * 30_000,
    "colons": "description: " + "a: " * 20_000,
    "anchors": "\n".join(f"k{n}: &a{n} x" for n in range(4000)),
    "merge": "a: &a {b: c}\nd:\n  <<: *a",
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("pure", [False, True], ids=["c", "pure"])
def test_bombs_end_in_bounded_time(name: str, pure: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing within the cap takes more than a moment, with either reader of PyYAML."""
    if pure:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    begun = time.process_time()
    split = split_text(skill(BOMBS[name]).encode())

    assert isinstance(split, SplitText | Fault)
    assert time.process_time() - begun < 5.0


# --- Edits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("name: a\ndescription: old # why\nflag: yes", "name: a\ndescription: new text # why\nflag: yes"),
        ("name: a\ndescription: 'old' # why", "name: a\ndescription: 'new text' # why"),
        ('description: "old"\nname: a', 'description: "new text"\nname: a'),
        ("name: a\ndescription:\nz: 1", "name: a\ndescription: new text\nz: 1"),
        ("name: a\ndescription: ~\nz: 1", "name: a\ndescription: new text\nz: 1"),
        ("name: a\ndescription: one\n  two\nz: 1", "name: a\ndescription: new text\nz: 1"),
        ("description: >- # why\n  one\n  two\n\n# c\nname: a", "description: new text # why\n\n# c\nname: a"),
        ("description: |\n  one\n # c\nname: a", "description: new text\n # c\nname: a"),
        ("description: |2\n    one\n  two\nname: a", "description: new text\nname: a"),
        ("name: a\nversion: 1.10", "name: a\nversion: 1.10\ndescription: new text"),
        ("name: a\ndescription: plans: daily # c", "name: a\ndescription: new text # c"),
        ("{name: a, description: old}", "{name: a, description: new text}"),
    ],
)
@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["plain", "bom"])
def test_edits(before: str, after: str, eol: str, bom: str) -> None:
    """The value is replaced in its own way of quoting; comments, order, line ends and mark stay."""
    old, new = (bom + skill(text, body="x: y\n---\n", eol=eol) for text in (before, after))

    assert new.encode() == set_header_value(old.encode(), "description", "new text")


def test_editing_beside_an_old_fault() -> None:
    """A header that needed mending can be edited elsewhere, and what was mended stays as it was (bugs B056)."""
    before = skill("description: plans: daily\nname: old\nflag: yes").encode()

    assert before.replace(b"name: old", b"name: new") == set_header_value(before, "name", "new")


def test_edit_refused_for_an_old_fault() -> None:
    """An edit that cannot be done for an old fault says that it was there before, and where (bugs B056)."""
    fault = set_header_value(skill("name: a\nother: b: c").encode(), "name", "x")

    assert isinstance(fault, Fault)
    assert (3, True) == (fault.line, fault.reason.startswith("existing header fault"))


@pytest.mark.parametrize(
    ("header", "key"), [("tags: [a]\nname: b", "tags"), ("{name: a}", "description"), ("a: &x 1\nb: *x", "a")]
)
def test_edits_that_cannot_be(header: str, key: str) -> None:
    """A list, a key to be added to a flow mapping, a header with an alias: refused, never half done."""
    assert isinstance(set_header_value(skill(header).encode(), key, "new"), Fault)


def test_no_header_is_added() -> None:
    """A file without a header gets none by an edit: a second header is never put on top (bugs B058)."""
    assert Fault(line=1, reason="there is no header to edit") == set_header_value(b"# Title\n", "name", "x")


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)
eols = st.sampled_from(["\n", "\r\n", "\r"])
lines = st.sampled_from(
    [
        "# a comment",
        "version: 1.10   # kept",
        "flag: yes",
        "",
        "metadata:\n  hermes:\n    tags: [a, b]",
        "notes: |\n  a\n\n  b",
        "list:\n- x\n- y",
        "quoted: 'it''s'",
    ]
)
descriptions = st.one_of(
    st.sampled_from(
        [
            "description: plain",
            "description: plain # c",
            "description: plans: daily",
            "description: >\n  a\n  b",
            "description: |+\n  a\n\n",
            'description: "a\\u0041"',
            "description: 'x'",
            "description:",
            "description: one\n  two\n",
        ]
    ),
    words.map(lambda text: f"description: {render_value(text, 'double')}"),
)


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """Draw a SKILL.md as (before the description's entry, the entry, behind it)."""
    eol = draw(eols)
    unique = draw(st.lists(lines, unique=True, max_size=5))
    cut = draw(st.integers(0, len(unique)))
    head = draw(st.sampled_from(["", "\ufeff"])) + "---\nname: a\n" + "".join(f"{line}\n" for line in unique[:cut])
    tail = "".join(f"{line}\n" for line in unique[cut:]) + "---" + draw(st.sampled_from(["", " ", "\t"])) + "\n"
    entry = draw(descriptions) + "\n"
    body = draw(words)
    return (
        head.replace("\n", eol).encode(),
        entry.replace("\n", eol).encode(),
        tail.replace("\n", eol).encode() + body.encode(),
    )


@given(parts=files(), value=words)
@settings(max_examples=300, deadline=None)
def test_an_edit_changes_nothing_else(parts: tuple[bytes, bytes, bytes], value: str) -> None:
    """Whatever the file: all before and behind the entry is byte-equal, and reading again gives the value."""
    head, entry, tail = parts
    before = split_text(head + entry + tail)
    assert isinstance(before, SplitText)
    assert before.header
    edited = set_header_value(head + entry + tail, "description", value)

    assert isinstance(edited, bytes), edited
    assert edited.startswith(head + b"description:")
    assert edited.endswith(tail)
    again = split_text(edited)
    assert isinstance(again, SplitText)
    assert again.header
    assert {**before.header.values(), "description": value or ""} == again.header.values()
    assert before.body == again.body


@given(value=words)
@settings(max_examples=200, deadline=None)
def test_rendered_values_are_text_for_everyone(value: str) -> None:
    """What is written is one line, and PyYAML's ordinary loader takes it for the same text."""
    rendered = render_value(value)

    assert 1 == len(rendered.splitlines() or [""])
    assert {"k": value} == yaml.safe_load(f"k: {rendered}\n")


@given(data=st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_give_an_answer(data: bytes) -> None:
    """Rubbish between fences is a value or a fault, never an exception."""
    assert isinstance(split_text(b"---\n" + data + b"\n---\n"), SplitText | Fault)

"""What is saved of records that the typed decoder refuses, and of lines of which only the ends are there."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.transcript.record_parser import chained_key
from curatord.core.transcript.salvage import cut_off, decoded, decoded_list, fit, text_of_raw


class Inner(msgspec.Struct):
    name: str | None = None
    size: int = 0


class Outer(msgspec.Struct):
    kind: str = "?"
    flag: bool | None = None
    share: float | None = None
    inner: Inner | None = None
    parts: str | list[Inner] | None = None
    raw: msgspec.Raw = msgspec.Raw(b"")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def test_fields_of_the_wrong_type_are_left_out() -> None:
    """One number where a text belongs does not cost the rest, at any depth; numbers and truth are kept apart."""
    value = {"kind": 7, "flag": 1, "share": 2, "inner": {"name": 3, "size": True}, "parts": [{"name": "a"}, 5], "x": 1}

    got = fit(value, Outer)

    assert Outer(flag=None, share=2, inner=Inner(), parts=[Inner(name="a")]) == got


def test_a_union_takes_what_fits() -> None:
    """A content that may be a text or a list is taken as either, and as nothing when it is neither."""
    assert "x" == fit({"parts": "x"}, Outer).parts
    assert [Inner(size=1)] == fit({"parts": [{"size": 1}]}, Outer).parts
    assert fit({"parts": 4}, Outer).parts is None


def test_raw_fields_are_json_again() -> None:
    """What is decoded later is kept as JSON, lone surrogates as their escapes."""
    assert '{"a": "\\ud83d"}' == bytes(fit({"raw": {"a": "\ud83d"}}, Outer).raw).decode()


@given(st.dictionaries(st.sampled_from(["kind", "flag", "share", "inner", "parts", "raw"]), VALUES))
def test_any_value_fits_somehow(value: dict[str, object]) -> None:
    """Whatever a record holds, it gives a record whose texts can be written to a file."""
    got = fit(value, Outer)

    assert got.kind.encode() is not None  # a lone surrogate would raise


@given(VALUES.filter(lambda value: isinstance(value, dict)), st.integers(0, 400))
def test_every_member_of_a_cut_line_is_one_of_the_whole(value: dict[str, object], at: int) -> None:
    """Cut anywhere, a line gives only members that stand in the whole one, whole or begun."""
    text = json.dumps(value).encode()

    got = cut_off(text[:at])

    assert got.keys() <= value.keys()


def test_a_cut_line_keeps_what_stands_before_the_big_value() -> None:
    """Type, id and time are known of a line that ends within its content; so are the parts before the big one."""
    content = [{"type": "text", "text": 'say, "hi" {'}, {"type": "image", "data": "x" * 500}]
    line = json.dumps({"id": "a", "message": {"role": "user", "content": content}, "time": "t"}).encode()

    got = cut_off(line[:200])

    told = {"id": "a", "message": {"role": "user", "content": [content[0], {"type": "image"}]}}
    assert told == got


@pytest.mark.parametrize(
    "head", [b"", b"{", b'{"a', b'{"a":', b'{"a":"b', b"}", b"[1,2", b"not json", b'{"a":1}}', b"\xff"]
)
def test_a_head_with_no_whole_member_gives_none(head: bytes) -> None:
    """Where no member is whole, nothing is told, and nothing raised."""
    assert cut_off(head) in ({}, {"a": 1})


def test_text_and_lists_with_lone_surrogates() -> None:
    """Half an emoji costs neither the text nor the list that it stands in."""
    assert "a?" == text_of_raw(msgspec.Raw(b'"a\\ud83d"'))
    assert [Inner(name="a?")] == decoded_list(msgspec.Raw(b'[{"name":"a\\ud83d"}]'), Inner)
    assert Inner(name="a?", size=1) == decoded(b'{"name":"a\\ud83d","size":1}', Inner)


def test_what_is_no_list_and_no_object() -> None:
    """A value of another form is an empty one."""
    assert [] == decoded_list(msgspec.Raw(b'"x"'), Inner)
    assert [] == decoded_list(msgspec.Raw(b'[{"name":'), Inner)
    assert Inner() == decoded(b"[1]", Inner)
    assert Inner() == decoded("{", Inner)


@given(st.binary(max_size=600), st.binary(max_size=600), st.integers(0, 2**64 - 1))
def test_chained_keys_tell_contents_and_places_apart(one: bytes, other: bytes, before: int) -> None:
    """The same content behind the same record has the same key; another content, or another place, another one."""
    key = chained_key(before, one, 0)

    assert 0 <= key < 2**64
    assert key == chained_key(before, one, 0)
    assert key == chained_key(before, b"12345" + one, 5)
    assert key == chained_key(before, one + b"\n", 0) or one.endswith(b"\n")
    assert key != chained_key(before ^ 1, one, 0)
    if one.rstrip(b"\n") != other.rstrip(b"\n") and len(one) <= 384 and len(other) <= 384:
        assert key != chained_key(before, other, 0)

"""
What can be had of a record that the typed decoder refuses, or of which only both ends are there.

`fit` takes what the standard library made of a line and keeps those fields that are of the wanted type, so that one
number where a string belongs does not cost the record. `cut_off` makes whole JSON of the beginning of a line too long
to hold: it ends at the last member that is complete, which is where most hosts have put type, id and time by then.
"""

from __future__ import annotations

import functools
import json
import re
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from curatord.core.transcript.lines import Unreadable, objects, printable

__all__ = ["cut_off", "decoded", "decoded_list", "fit", "text_of_raw"]

T = TypeVar("T", bound=msgspec.Struct)
_MISSING: Any = object()
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],]', re.DOTALL)
_CLOSES = {b"{": b"}", b"[": b"]"}
_text = msgspec.json.Decoder(str).decode
MAX_ITEMS = 10_000  # of one list


def fit(value: dict[str, Any], shape: type[T]) -> T:
    """Return *value* as a *shape*, without those of its fields that are not of the type it has for them."""
    record = _fit_struct(value, shape)
    assert isinstance(record, shape)
    return record


def cut_off(head: bytes) -> dict[str, Any]:
    """Return the object that the line beginning with *head* holds, as far as its members are complete in it."""
    open_: list[bytes] = []
    at, closers = 0, b""
    for token in _TOKEN.finditer(head):
        mark = token[0][:1]
        if mark in b"{[":
            open_.append(_CLOSES[mark])
            if not at:
                at, closers = token.end(), _CLOSES[mark]
        elif mark in b"}]":
            if not open_ or open_.pop() != mark:
                break
        elif mark == b",":
            at, closers = token.start(), b"".join(reversed(open_))
    for value in objects(head[:at] + closers):
        if not isinstance(value, Unreadable):
            return value
    return {}


@functools.cache
def _decoder(shape: type[msgspec.Struct]) -> Callable[..., Any]:
    """Return what decodes a *shape*; made for each call anew, it would take longer than a short record itself."""
    return msgspec.json.Decoder(shape).decode


def decoded(data: bytes | str | msgspec.Raw, shape: type[T]) -> T:
    """Return the JSON *data* as a *shape*, without what does not fit, and an empty one where it is no object."""
    try:
        return cast(T, _decoder(shape)(data))
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        pass
    text = data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)
    for value in objects(text):
        if not isinstance(value, Unreadable):
            return fit(value, shape)
    return shape()


def decoded_list(data: msgspec.Raw, shape: type[T]) -> list[T]:
    """Return the JSON list *data* as objects of *shape*, without what does not fit; empty where it is no list."""
    raw = bytes(data)
    if not raw.startswith(b"["):
        return []
    try:
        return cast(list[T], _list_decoder(shape).decode(raw))
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        values = json.loads(raw.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return []
    return [fit(value, shape) for value in values[:MAX_ITEMS] if isinstance(value, dict)]


@functools.cache
def _list_decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(list[shape])


def text_of_raw(raw: msgspec.Raw) -> str:
    """Return the string that *raw* holds, empty where it is something else."""
    data = bytes(raw)
    if not data.startswith(b'"'):
        return ""
    try:
        return _text(data)
    except msgspec.MsgspecError:
        pass
    try:
        text = json.loads(data.decode("utf-8", "replace"), strict=False)
    except ValueError:
        return ""
    return printable(text) if isinstance(text, str) else ""


def _fit_struct(value: dict[str, Any], shape: type[msgspec.Struct]) -> msgspec.Struct:
    taken = {}
    for field in msgspec.structs.fields(shape):
        if field.encode_name in value:
            fitted = _fit(value[field.encode_name], field.type)
            if fitted is not _MISSING:
                taken[field.name] = fitted
    return shape(**taken)


def _fit(value: object, wanted: Any) -> Any:
    origin = typing.get_origin(wanted)
    if origin in (types.UnionType, typing.Union):
        for option in typing.get_args(wanted):
            fitted = _fit(value, option)
            if fitted is not _MISSING:
                return fitted
        return _MISSING
    if wanted is msgspec.Raw:
        return msgspec.Raw(json.dumps(value).encode("ascii"))
    if wanted is str:
        return printable(value) if isinstance(value, str) else _MISSING
    if wanted is None or wanted is type(None):
        return None if value is None else _MISSING
    if origin is list:
        if not isinstance(value, list):
            return _MISSING
        fitted = [_fit(item, typing.get_args(wanted)[0]) for item in value[:MAX_ITEMS]]
        return [item for item in fitted if item is not _MISSING]
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return _fit_struct(value, wanted) if isinstance(value, dict) else _MISSING
    if wanted in (bool, int, float):
        right = isinstance(value, (int, float) if wanted is float else wanted)
        return value if right and isinstance(value, bool) is (wanted is bool) else _MISSING
    return value if wanted is Any else _MISSING

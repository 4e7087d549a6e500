"""What a reader kept from one reading to the next, as it comes back."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import msgspec

__all__ = ["kept_state"]

S = TypeVar("S", bound=msgspec.Struct)


def kept_state(state: bytes, shape: type[S]) -> S:
    """
    Return what *state* holds, an empty *shape* where it is empty.

    One of another version is void: what waited in it is given up, everything that was counted stays.
    """
    if not state:
        return shape()
    try:
        kept: S = _decoder(shape).decode(state)
    except msgspec.MsgspecError:
        return shape()
    return kept


@functools.cache
def _decoder(shape: type[msgspec.Struct]) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(shape)

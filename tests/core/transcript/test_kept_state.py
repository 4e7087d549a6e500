"""What a reader kept comes back, or is given up as a whole."""

from __future__ import annotations

import msgspec
import pytest

from curatord.core.transcript.kept_state import kept_state


class Older(msgspec.Struct, array_like=True):
    """What was kept by the version before."""

    session: str = ""


class Kept(msgspec.Struct, array_like=True):
    """What is kept now: a field more, behind the others."""

    session: str = ""
    calls: list[str] = []


encode = msgspec.msgpack.encode


def test_it_comes_back() -> None:
    """As it was, and from an older version with what that lacked left empty."""
    assert Kept(session="s", calls=["c"]) == kept_state(encode(Kept(session="s", calls=["c"])), Kept)
    assert Kept(session="s") == kept_state(encode(Older(session="s")), Kept)


@pytest.mark.parametrize("state", [b"", b"\xc1", encode(["s", "no list"]), encode({"session": "s"}), b"\x92\xa1s"])
def test_what_cannot_be_read_is_void(state: bytes) -> None:
    """Nothing kept, rubbish, another version's, cut."""
    assert Kept() == kept_state(state, Kept)

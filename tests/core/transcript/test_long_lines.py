"""Lines that are too long to hold: the same ends and the same order, whichever way a file is read."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest

from curatord.core.transcript import lines
from curatord.core.transcript.lines import LineReader, LineSplitter, give, give_oversize

LONG = b'{"a":"' + b"x" * 90 + b'","z":"' + b"y" * 90 + b'"}'
LONGER = LONG.replace(b"x", b"xx")
SHORT = b'{"b":1}'

Told = tuple[str, bytes, bytes, int]


class Taker:
    """Notes what it is given, in order."""

    def __init__(self) -> None:
        self.told: list[Told] = []

    def feed(self, found: Iterable[tuple[bytes, int]]) -> None:
        """Note whole lines."""
        self.told += [("line", line.rstrip(b"\n"), b"", offset) for line, offset in found]

    def oversize(self, head: bytes, tail: bytes, size: int, offset: int) -> None:
        """Note a line by its ends."""
        self.told.append((f"{size} bytes", head, tail, offset))


@pytest.fixture(autouse=True)
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a line be too long soon."""
    monkeypatch.setattr(lines, "MAX_LINE", 100)
    monkeypatch.setattr(lines, "EDGE", 16)


def long(line: bytes, offset: int) -> Told:
    """Return what is told of a line that is too long."""
    return f"{len(line)} bytes", line[:16], line[-16:], offset


JUST = b"[" + b"1" * 99 + b"]"
WHOLE = [SHORT, LONG, SHORT, LONG, LONGER, JUST, SHORT]
DATA = b"".join(line + b"\n" for line in WHOLE)
OFFSETS = [sum(len(line) + 1 for line in WHOLE[:n]) for n in range(len(WHOLE))]
TOLD = [("line", line, b"", at) if line is SHORT else long(line, at) for line, at in zip(WHOLE, OFFSETS, strict=True)]


def read(data: bytes, most: int) -> tuple[LineReader, list[Told]]:
    """Read *data* from a file, *most* bytes at a time."""
    taker, reader = Taker(), LineReader(io.BytesIO(data).readline)
    while not reader.ended:
        taker.feed(reader.lines(most))
        give_oversize(taker, reader.oversize)
    return reader, taker.told


@pytest.mark.parametrize("most", [1, 50, 10_000])
def test_a_file_tells_them_in_their_place(most: int) -> None:
    """Also where one ends the stretch that is read at once."""
    reader, told = read(DATA, most)

    assert TOLD == told
    assert (len(DATA), 0) == (reader.offset, reader.half_size)


def test_a_stream_tells_the_same_however_it_comes() -> None:
    """In pieces of any size, several in one piece too: a packed copy has the records of the file."""
    for size in range(1, len(DATA) + 1):
        taker, splitter = Taker(), LineSplitter()
        for at in range(0, len(DATA), size):
            give(taker, splitter, DATA[at : at + size])
            assert not splitter.held_up

        assert TOLD == taker.told
        assert (len(DATA), 0) == (splitter.offset, splitter.half_size)


def test_one_that_has_not_ended_waits() -> None:
    """Behind the last line feed nothing is told, and the watermark stays before it."""
    reader, told = read(DATA + LONG, 10_000)
    taker, splitter = Taker(), LineSplitter()
    give(taker, splitter, DATA + LONG)

    assert TOLD == told == taker.told
    assert (len(DATA), len(LONG)) == (reader.offset, reader.half_size) == (splitter.offset, splitter.half_size)
    assert None is reader.last_line() is splitter.last_line()

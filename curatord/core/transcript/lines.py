"""
Bytes into whole lines, and lines into single JSON objects.

Wanted: each record once, with the offset at which it begins, in memory that does not depend on the file or the line.
What can go wrong (formats page, section 0; bugs B079, B085–B088): a line is caught half-written; two writers glue two
objects together or one writes into the other's line; an image makes a line of 200 MB; NULs stand where a crash left a
hole; a BOM or CRs come from another system; U+2028 or NEL stand inside strings, so only LF ends a line.

The plan: `LineReader` pulls lines from a file's own buffer, which is the quickest way there is; `LineSplitter` is fed
chunks, for streams that come in pieces (decompressed ones). Both hold back what follows the last LF; `offset` is the
watermark, the byte after the last LF that was given out. A line longer than `MAX_LINE` is streamed past: its first
and last `EDGE` bytes are put by as an `Oversize`, and giving out stops there, so that it can be taken in its place:
what a record counts for depends on those before it. The common line costs one slice and two comparisons; everything odd
is found by its first or last byte not being a brace, and cleaned then.

`objects` is for the line that the fast decoder refused: it takes value after value from it with the standard library's
decoder, which is slow but takes lone surrogates, cut characters and glued objects, and says what was left over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol

from curatord.core.cheap import dataclass

__all__ = [
    "EDGE",
    "MAX_LINE",
    "LineReader",
    "LineSplitter",
    "Oversize",
    "TakesLines",
    "Unreadable",
    "clean",
    "give",
    "give_oversize",
    "objects",
    "printable",
]

MAX_LINE = 8 * 1024 * 1024  # bugs B087
EDGE = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_AROUND = b" \t\r\n\0"
_DECODER = json.JSONDecoder(strict=False)
MAX_VALUES = 10_000  # in one line


@dataclass(frozen=True, slots=True, kw_only=True)
class Oversize:
    """A line of *size* bytes at *offset*, of which only both ends were kept."""

    head: bytes
    tail: bytes
    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What could not be decoded of a line, and why."""

    reason: str


class LineReader:
    """
    Yields the lines of a file from *offset* on, as `LineSplitter` would, mostly with their LF: cutting it off would
    copy every byte once more.

    Args:
        readline: The file's own `readline`, positioned at *offset*; it is given how many bytes to read at most.
        offset: Where reading begins.
        short: The file itself, where it is known that none of its lines is longer than `MAX_LINE`: going through it
            is quicker than asking for each line.
    """

    __slots__ = ("_half", "_readline", "_short", "ended", "half_size", "offset", "oversize")

    def __init__(
        self, readline: Callable[[int], bytes], offset: int = 0, *, short: Iterable[bytes] | None = None
    ) -> None:
        self._readline = readline
        self._short = short
        self._half = b""
        self.half_size = 0  # bytes that wait for their LF
        self.offset = offset
        self.oversize: list[Oversize] = []
        self.ended = False

    def lines(self, most: int) -> Iterator[tuple[bytes, int]]:
        """Yield lines until some *most* bytes were read, one was too long or the file `ended`; to be run to its end."""
        at = self.offset
        stop = at + most
        for line in iter(partial(self._readline, MAX_LINE + 1), b"") if self._short is None else self._short:
            if line[-1] != 10:  # LF
                at += self._without_end(line, at)
                break  # at the file's end, or behind a line that is to be taken before the next
            offset = at
            at += len(line)
            if line[0] == 123 and line[-2] == 125:  # { and }
                yield line, offset
            else:
                line = clean(line, first=offset == 0)
                if line:
                    yield line, offset
            if at >= stop:
                break
        else:
            self.ended = True
        self.offset = at

    def last_line(self) -> tuple[bytes, int] | None:
        """Return the unfinished last line if it is whole all the same; see `LineSplitter.last_line`."""
        line = _whole(self._half, first=self.offset == 0)
        if not line:
            return None
        at = self.offset
        self.offset += self.half_size
        self._half = b""
        self.half_size = 0
        return line, at

    def _without_end(self, line: bytes, offset: int) -> int:
        """Take a *line* that did not end: the last one, or one too long; return its size, or 0 where it still waits."""
        if len(line) <= MAX_LINE:
            self._half, self.half_size = line, len(line)
            self.ended = True
            return 0
        head, tail, size = line[:EDGE], line[-EDGE:], len(line)
        while True:
            piece = self._readline(MAX_LINE)
            size += len(piece)
            tail = (tail + piece)[-EDGE - 1 :]  # with the LF, which the line has not
            if piece.endswith(b"\n"):
                self.oversize.append(Oversize(head=head, tail=tail[:-1], size=size - 1, offset=offset))
                return size
            if not piece:
                self.half_size = size
                self.ended = True
                return 0


class LineSplitter:
    """
    Splits a stream at LF, from *offset* on.

    `feed` gives `(line, offset of its first byte)` of each whole line, cleaned and never empty; `oversize` holds those
    too long since it was last emptied. Behind one of those it stops, `held_up`, and goes on when fed the next time,
    with nothing if need be. `offset` is the byte after the last LF. `half` is what waits for its LF.
    """

    __slots__ = ("_cut", "_half", "_half_size", "_rest", "_tail", "offset", "oversize")

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset
        self.oversize: list[Oversize] = []
        self._half: list[bytes] = []
        self._half_size = 0
        self._rest = b""  # what stands behind a line that was too long
        self._cut = False  # the half line passed MAX_LINE: _half holds its head, _tail its end
        self._tail = b""

    @property
    def half_size(self) -> int:
        """Bytes that wait for their LF."""
        return self._half_size

    @property
    def held_up(self) -> bool:
        """Whether it was fed more than it has given out."""
        return bool(self._rest)

    def feed(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        """
        Yield the lines that the next bytes of the stream complete; to be run to its end before it is fed again.

        One line at a time, since a list of them all would be twice as slow: each line is used while it is warm.
        """
        if self._rest:
            data, self._rest = self._rest + data, b""
        find = data.find
        end = find(b"\n")
        if end < 0:
            self._hold(data)
            return
        begin = 0
        if self._half_size:
            self._hold(data[:end])
            offset = self.offset
            self.offset += self._half_size + 1
            if self._cut:
                self.oversize.append(Oversize(head=self._half[0], tail=self._tail, size=self._half_size, offset=offset))
                self._drop_half()
                self._rest = data[end + 1 :]
                return
            line = clean(b"".join(self._half), first=offset == 0)
            self._drop_half()
            if line:
                yield line, offset
            begin = end + 1
            end = find(b"\n", begin)
        at_begin = self.offset - begin  # offset of data[0]
        while end >= 0:
            line = data[begin:end]
            offset = at_begin + begin
            begin = end + 1
            end = find(b"\n", begin)
            if not line:
                continue
            if line[0] != 123 or line[-1] != 125:  # { and }
                line = clean(line, first=offset == 0)
                if not line:
                    continue
            if len(line) > MAX_LINE:
                self.oversize.append(Oversize(head=line[:EDGE], tail=line[-EDGE:], size=len(line), offset=offset))
                self.offset = at_begin + begin
                self._rest = data[begin:]
                return
            yield line, offset
        self.offset = at_begin + begin
        self._hold(data[begin:])

    def last_line(self) -> tuple[bytes, int] | None:
        """
        Return the unfinished last line if it holds at least one whole object and nothing else, and count it as read.

        For settled files: exporters cut the final LF (bugs B082). `offset` then stands behind it, so the LF that may
        come later is a blank line. None leaves everything as it was.
        """
        line = b"" if self._cut else _whole(b"".join(self._half), first=self.offset == 0)
        if not line:
            return None
        at = self.offset
        self.offset += self._half_size
        self._drop_half()
        return line, at

    def _hold(self, data: bytes) -> None:
        if not data:
            return
        self._half_size += len(data)
        if self._cut:
            self._tail = (self._tail + data)[-EDGE:]
            return
        self._half.append(data)
        if self._half_size > MAX_LINE:
            whole = b"".join(self._half)
            self._cut = True
            self._half = [whole[:EDGE]]
            self._tail = whole[-EDGE:]
        elif len(self._half) > 64:
            self._half = [b"".join(self._half)]

    def _drop_half(self) -> None:
        self._half = []
        self._half_size = 0
        self._cut = False
        self._tail = b""


class TakesLines(Protocol):
    """What is given lines: a `LineParser`, for one."""

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """Take whole lines with the offset at which each begins."""
        ...

    def oversize(self, head: bytes, tail: bytes, size: int, offset: int) -> None:
        """Take the ends of a line that is too long."""
        ...


def give(taker: TakesLines, splitter: LineSplitter, data: bytes) -> None:
    """Give *taker* the lines that *data*, the next of a stream, completes; those that are too long in their place."""
    taker.feed(splitter.feed(data))
    while splitter.oversize:
        give_oversize(taker, splitter.oversize)
        taker.feed(splitter.feed(b""))


def give_oversize(taker: TakesLines, lines: list[Oversize]) -> None:
    """Give *taker* the ends of the *lines* that were too long, and empty the list."""
    for line in lines:
        taker.oversize(line.head, line.tail, line.size, line.offset)
    lines.clear()


def _whole(half: bytes, *, first: bool) -> bytes:
    """Return an unfinished line, cleaned, if it holds whole objects and nothing else; empty if not."""
    line = clean(half, first=first)
    return line if line and all(isinstance(value, dict) for value in objects(line)) else b""


def clean(line: bytes, *, first: bool = False) -> bytes:
    """Return *line* without blanks, CR and NULs at its ends and, where it is the *first* of its file, without BOM."""
    if first and line.startswith(_BOM):
        line = line[len(_BOM) :]
    return line.strip(_AROUND)


def objects(line: bytes) -> Iterator[dict[str, Any] | Unreadable]:
    """
    Yield the JSON objects that stand in *line* one after the other, and `Unreadable` where something is none.

    Broken UTF-8 is replaced, not refused. After garbage the next object is looked for from the next `{"` on, so half an
    object with a whole one behind it gives one `Unreadable` and the whole one. Other JSON values are passed over.
    """
    text = line.decode("utf-8", "replace")
    at = 0
    end = len(text)
    for _ in range(MAX_VALUES):
        while at < end and text[at] in " \t\r\n\0\ufeff,":
            at += 1
        if at >= end:
            return
        try:
            value, at = _DECODER.raw_decode(text, at)
        except RecursionError:
            yield Unreadable("nested too deeply")
            return
        except ValueError as error:
            yield Unreadable(f"no JSON: {str(error)[:120]}")
            # An object cut in the middle holds `{"` of its own parts: only one that reaches a record's end is taken.
            at = _next_record(text, at + 1)
            continue
        if isinstance(value, dict):
            yield value
    yield Unreadable(f"more than {MAX_VALUES} values in one line")


def _next_record(text: str, at: int) -> int:
    """Return where, after garbage, an object begins that reaches to the end of *text*; its length if there is none."""
    tried = 0
    while tried < 64:
        at = text.find('{"', at)
        if at < 0:
            return len(text)
        tried += 1
        try:
            _, stop = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        if not text[stop:].strip(" \t\r\n\0") or text[stop:].lstrip().startswith("{"):
            return at
        at += 1
    return len(text)


def printable(text: str) -> str:
    """Return *text* without lone surrogates, which no database, file or request may hold (bugs B086)."""
    return text.encode("utf-8", "replace").decode("utf-8")

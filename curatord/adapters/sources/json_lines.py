"""
The shared tailer: hosts that append JSON lines to files, with a `LineParser` a host.

A file is read through a buffer of 1 MiB from its watermark, so memory does not depend on its size, and given out in
slices of some 32 MiB, each with its own watermark. The file is opened read-only and, where the owner may ask for it,
without touching its access time: not a byte, mode or time of a transcript changes.

What is left of most files is little, so up to `WHOLE` it is taken in one read, together with the bytes before the
watermark; and since an item that is examined is nearly always read next, `examine` takes up to `AHEAD` of it along: a
file that has grown by a line is opened once. Enough is what reaches to the size that the item's stat showed: what came
since then changes size and time, and the next scan sees it.
"""

from __future__ import annotations

import copy
import errno
import functools
import hashlib
import io
import os
from collections.abc import Callable, Iterator
from typing import Self

from curatord.adapters.sources.walk import item_at, walk
from curatord.core.cheap import dataclass
from curatord.core.transcript.events import Findings
from curatord.core.transcript.lines import MAX_LINE, LineReader, give_oversize
from curatord.ports.ingest_store import Known
from curatord.ports.source import Item, LineParser, Marks, ParserFactory, Slice, Start

__all__ = ["SLICE", "JsonLinesSource", "open_quietly"]

BUFFER = 1024 * 1024  # 8 KiB would take four times as long
SLICE = 32 * 1024 * 1024
WHOLE = BUFFER
AHEAD = 64 * 1024
MORE = 4096  # read beyond the size that the stat showed: who writes now, writes a line or two meanwhile
HEAD = 4096  # of a first record, so much is looked at: session, folder and time stand in front
TAIL = 256
_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)  # a pipe in the tree must not hang us
_READ_QUIETLY = _READ | getattr(os, "O_NOATIME", 0)


def open_quietly(path: str) -> int:
    """Return a read-only descriptor of *path* that leaves its access time alone where that is permitted."""
    try:
        return os.open(path, _READ_QUIETLY)
    except PermissionError:  # only a file's owner may ask for it
        return os.open(path, _READ)


@dataclass(slots=True)
class _Rest:
    """What is left of *item* from *offset* on, with up to `TAIL` bytes before it: *data* begins at *begin*."""

    item: Item
    offset: int
    head: bytes
    begin: int
    data: bytes

    @property
    def is_enough(self) -> bool:
        """Whether it reaches as far as the file did when it was listed."""
        return self.begin + len(self.data) >= self.item.size

    def tail(self, offset: int) -> bytes:
        """Return the hash of the bytes before *offset*; empty where there are none, or it ends earlier."""
        end = offset - self.begin
        return _hash(self.data[max(0, end - TAIL) : end]) if 0 < end <= len(self.data) else b""


class JsonLinesSource:
    """
    The `Source` over a tree of JSON lines files.

    Args:
        host: As in the configuration.
        path: The place that was configured or found.
        root: The folder or file that is walked.
        parser: Makes a parser for one file.
        suffixes: Of the files' names.
        skip_folders: Folders that hold other things.
    """

    def __init__(
        self,
        *,
        host: str,
        path: str,
        root: str,
        parser: ParserFactory,
        suffixes: tuple[str, ...] = (".jsonl",),
        skip_folders: frozenset[str] = frozenset(),
    ) -> None:
        self.host = host
        self.path = path
        self.root = root
        self._parser = parser
        self._suffixes = suffixes
        self._skip_folders = skip_folders
        self._problems: list[str] = []
        self._prefix = root.rstrip(os.sep) + os.sep
        self._ahead: _Rest | None = None  # of the item examined last, if it was little, until it is read

    def parsed_by(self, parser: ParserFactory) -> Self:
        """Return this source with another parser: the same files, read for another end."""
        other = copy.copy(self)
        other._parser = parser
        return other

    def is_document(self, path: str) -> bool:
        """Return whether the file at *path* is one document, which is written anew as a whole."""
        return False

    @property
    def problems(self) -> list[str]:
        """What the last `items` could not look at."""
        return self._problems

    def items(self) -> Iterator[Item]:
        """Yield the files with one stat each."""
        self._problems = []
        return walk(self.root, suffixes=self._suffixes, skip_folders=self._skip_folders, problems=self._problems)

    def news(
        self, known: dict[str, Known], *, collect: set[int] | None = None, census: set[int] | None = None
    ) -> Iterator[Item]:
        """Yield the files that are not as *known* says, and take out of it those that are (see `ports.source`)."""
        if type(self).items is not JsonLinesSource.items:
            return self.items()  # it lists in a way of its own
        self._problems = []
        return walk(
            self.root,
            suffixes=self._suffixes,
            skip_folders=self._skip_folders,
            problems=self._problems,
            known=known,
            collect=collect,
            census=census,
        )

    def item_at(self, path: str) -> Item | None:
        """Return the file at *path*, or None where it is no transcript of this source."""
        if path != self.root:
            below = path.removeprefix(self._prefix)
            parts = below.split(os.sep)
            if below == path or not parts[-1].endswith(self._suffixes):
                return None
            if not self._skip_folders.isdisjoint(parts[:-1]):
                return None
        item, is_file = item_at(path)
        return item if is_file else None

    def examine(self, item: Item, offset: int) -> Marks:
        """Return the hashes of the first record and of the bytes before *offset*."""
        rest = _look(item, offset, AHEAD)
        self._ahead = rest if rest.is_enough else None
        return Marks(head=rest.head, tail=rest.tail(offset))

    def read(self, item: Item, start: Start, stop: Callable[[], bool]) -> Iterator[Slice]:
        """Yield what the file holds from *start* on."""
        parser = self._parser(self.below(item.path), start)
        offset = start.offset
        rest, self._ahead = self._ahead, None
        if rest is None or rest.item is not item or rest.offset != offset:
            rest = _look(item, offset, WHOLE) if item.size - offset <= WHOLE else None
        if rest is not None and rest.is_enough:
            file = io.BytesIO(rest.data)
            file.seek(offset - rest.begin)
            reader = LineReader(file.readline, offset, short=file if len(rest.data) <= MAX_LINE else None)
            yield from _slices(parser, reader, start, rest.head, rest.tail, stop)
            return
        descriptor = open_quietly(item.path)
        with open(descriptor, "rb", buffering=BUFFER) as stream:
            _refuse_another(descriptor, item)
            head = _head(os.pread(descriptor, HEAD, 0))
            if offset:
                stream.seek(offset)
            reader = LineReader(stream.readline, offset)
            yield from _slices(parser, reader, start, head, functools.partial(_tail, descriptor), stop)

    def left_behind(self, item: Item, start: Start) -> tuple[Findings, bytes]:
        """Return what waited in *item*, which is gone, taken as done, and the state behind that."""
        parser = self._parser(self.below(item.path), start)
        parser.settle()
        return parser.findings(), parser.state()

    def below(self, path: str) -> str:
        """Return *path* below the folder that is walked, with `/` between its parts: what parsers are given."""
        below = path.removeprefix(self._prefix)
        if below == path:
            below = os.path.basename(path)
        return below if os.sep == "/" else below.replace(os.sep, "/")


def _refuse_another(descriptor: int, item: Item) -> None:
    """
    Raise `BlockingIOError` where another file took the path since *item* was listed.

    Its records would be noted under the size, time and inode of the one that was meant, which would then look read.
    The path is asked once more, since there are file systems whose inode numbers do not last.
    """
    found = os.fstat(descriptor)
    if found.st_ino != item.ino or found.st_dev != item.dev:
        now = os.stat(item.path)
        if now.st_ino != item.ino or now.st_dev != item.dev:
            raise BlockingIOError(errno.EAGAIN, "another file has taken its place meanwhile; the next scan reads it")


def _look(item: Item, offset: int, most: int) -> _Rest:
    """Return the file's head and what it holds around *offset*: behind it only where that is at most *most* bytes."""
    begin = max(0, offset - TAIL)
    left = item.size - offset
    wanted = offset - begin + (left + MORE if 0 <= left <= most else 0)
    descriptor = open_quietly(item.path)
    try:
        _refuse_another(descriptor, item)
        data = os.pread(descriptor, wanted, begin)
        first = data if not begin and wanted >= HEAD else os.pread(descriptor, HEAD, 0)
    finally:
        os.close(descriptor)
    return _Rest(item, offset, _head(first), begin, data)


def _slices(
    parser: LineParser,
    reader: LineReader,
    start: Start,
    head: bytes,
    tail: Callable[[int], bytes],
    stop: Callable[[], bool],
) -> Iterator[Slice]:
    """Yield what *reader* holds; *tail* gives the hash of the bytes before an offset."""
    while True:
        began = reader.offset
        while True:
            parser.feed(reader.lines(SLICE - (reader.offset - began)))
            if not reader.oversize:
                break
            give_oversize(parser, reader.oversize)
            if reader.offset - began >= SLICE:
                break
        read = reader.offset + reader.half_size - began
        if reader.ended and start.settled:
            last = reader.last_line()
            if last is not None:
                parser.feed([last])
            parser.settle()
        stopped = not reader.ended and stop()
        yield Slice(
            findings=parser.findings(),
            offset=reader.offset,
            size=reader.offset + reader.half_size,
            state=parser.state(),
            marks=Marks(head=head, tail=tail(reader.offset)),
            bytes_read=read,
            waiting=not start.settled and (parser.waiting or reader.half_size > 0),
            last=reader.ended,
        )
        if reader.ended or stopped:
            return


def _head(data: bytes) -> bytes:
    """Return the hash of the first record of a file that begins with *data*; empty while it is not whole."""
    end = data.find(b"\n", 0, HEAD)
    if end < 0 and len(data) < HEAD:
        return b""
    return _hash(data[: end if end >= 0 else HEAD])


def _tail(descriptor: int, offset: int) -> bytes:
    size = min(TAIL, offset)
    data = os.pread(descriptor, size, offset - size) if size else b""
    return _hash(data) if data and len(data) == size else b""


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()

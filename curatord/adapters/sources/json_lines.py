"""
The shared tailer: hosts that append JSON lines to files, with a `LineParser` a host.

A file is read through a buffer of 1 MiB from its watermark, so memory does not depend on its size, and given out in
slices of some 32 MiB, each with its own watermark. The file is opened read-only and, where the owner may ask for it,
without touching its access time: not a byte, mode or time of a transcript changes.
"""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Self

from curatord.adapters.sources.walk import item_at, walk
from curatord.core.transcript.lines import LineReader
from curatord.ports.source import Item, Marks, ParserFactory, Slice, Start

__all__ = ["SLICE", "JsonLinesSource", "open_quietly"]

BUFFER = 1024 * 1024  # 8 KiB would take four times as long
SLICE = 32 * 1024 * 1024
HEAD = 4096  # of a first record, so much is looked at: session, folder and time stand in front
TAIL = 256
_NOATIME = getattr(os, "O_NOATIME", 0)


def open_quietly(path: str) -> int:
    """Return a read-only descriptor of *path* that leaves its access time alone where that is permitted."""
    flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)  # a pipe in the tree must not hang us
    try:
        return os.open(path, flags | _NOATIME)
    except PermissionError:  # only a file's owner may ask for it
        return os.open(path, flags)


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

    def item_at(self, path: str) -> Item | None:
        """Return the file at *path*, or None where it is no transcript of this source."""
        if path != self.root:
            below = path.removeprefix(self.root.rstrip(os.sep) + os.sep)
            parts = below.split(os.sep)
            if below == path or not parts[-1].endswith(self._suffixes):
                return None
            if not self._skip_folders.isdisjoint(parts[:-1]):
                return None
        item, is_file = item_at(path)
        return item if is_file else None

    def examine(self, item: Item, offset: int) -> Marks:
        """Return the hashes of the first record and of the bytes before *offset*."""
        descriptor = open_quietly(item.path)
        try:
            return Marks(head=_head(descriptor), tail=_tail(descriptor, offset))
        finally:
            os.close(descriptor)

    def read(self, item: Item, start: Start, stop: Callable[[], bool]) -> Iterator[Slice]:
        """Yield what the file holds from *start* on."""
        parser = self._parser(self.below(item.path), start)
        descriptor = open_quietly(item.path)
        with open(descriptor, "rb", buffering=BUFFER) as file:
            head = _head(descriptor)
            if start.offset:
                file.seek(start.offset)
            reader = LineReader(file.readline, start.offset)
            while True:
                began = reader.offset
                parser.feed(reader.lines(SLICE))
                for line in reader.oversize:
                    parser.oversize(line.head, line.tail, line.size, line.offset)
                reader.oversize.clear()
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
                    marks=Marks(head=head, tail=_tail(descriptor, reader.offset)),
                    bytes_read=read,
                    waiting=not start.settled and (parser.waiting or reader.half_size > 0),
                    last=reader.ended,
                )
                if reader.ended or stopped:
                    return

    def below(self, path: str) -> str:
        """Return *path* below the folder that is walked, with `/` between its parts: what parsers are given."""
        below = path.removeprefix(self.root.rstrip(os.sep) + os.sep)
        return (os.path.basename(path) if below == path else below).replace(os.sep, "/")


def _head(descriptor: int) -> bytes:
    data = os.pread(descriptor, HEAD, 0)
    end = data.find(b"\n")
    if end < 0 and len(data) < HEAD:
        return b""  # not whole yet
    return _hash(data[:end] if end >= 0 else data)


def _tail(descriptor: int, offset: int) -> bytes:
    if not offset:
        return b""
    size = min(TAIL, offset)
    data = os.pread(descriptor, size, offset - size)
    return _hash(data) if len(data) == size else b""


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()

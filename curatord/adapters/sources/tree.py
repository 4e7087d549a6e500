"""
Files of JSON lines in the folders that one host uses, plain or compressed, and whole JSON documents beside them.

The shared tailer walks one folder and reads plain files. This one knows the folders below a host's home, so that its
caches, logs and databases are neither walked nor read, and reads two further kinds:

- **Compressed** files, in offsets of their unpacked bytes: packed after the fact, a file has its old head and tail, is
  recognised as moved, and read on. Present in both forms it shares all its keys with its twin and counts once.
- **Documents** that the host rewrites whole at every change. Its parts are handed to the host's line parser one by
  one; all of them are known by ids, so nothing is ever counted twice, and no rewriting is a restart. The watermark is
  the size that was read. A document caught half-written waits for its other half.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from curatord.adapters.sources.compressed import PACKED, Unpacked, unpacked
from curatord.adapters.sources.json_lines import (
    BUFFER,
    HEAD,
    SLICE,
    TAIL,
    JsonLinesSource,
    _hash,
    open_quietly,
)
from curatord.adapters.sources.walk import item_at, walk
from curatord.core.transcript.ids import Guard, content_key
from curatord.core.transcript.lines import LineSplitter, give
from curatord.errors import TranscriptError
from curatord.ports.source import Item, Marks, ParserFactory, Slice, Start

__all__ = ["MAX_DOCUMENT", "TreeSource", "forms"]

MAX_DOCUMENT = 128 * 1024 * 1024  # held whole: a document has no end before its end

_TIME = re.compile(r"(?<!\d)(\d{4})-([01]\d)-([0-3]\d)T([0-2]\d)-([0-5]\d)-([0-5]\d)")

Accepts = Callable[[str], bool]
Explode = Callable[[bytes], Iterable[bytes] | None]


def forms(*suffixes: str) -> tuple[str, ...]:
    """Return *suffixes* and what they become when the file is compressed."""
    return tuple(suffix + packed for suffix in suffixes for packed in ("", *PACKED))


class TreeSource(JsonLinesSource):
    """
    The `Source` over some folders below a host's home.

    Args:
        host: As in the configuration.
        path: The place that was configured or found: the home, or a folder of its transcripts.
        parser: Makes a parser for one file.
        below: Folders with transcripts below the home, `*` for any one name. Where none of them exists, *path* itself
            is walked.
        accepts: Says of a path, without a packed form's suffix, whether it is a transcript's.
        suffixes: Of the files' names, in all forms.
        skip_folders: Folders that hold other things.
        named_by_time: The files' names tell when their sessions began.
        explode: Turns a document (`.json`) into lines, None where it is not whole.
    """

    def __init__(
        self,
        *,
        host: str,
        path: str,
        parser: ParserFactory,
        below: tuple[str, ...],
        accepts: Accepts = lambda path: True,
        suffixes: tuple[str, ...] = forms(".jsonl"),
        skip_folders: frozenset[str] = frozenset(),
        named_by_time: bool = False,
        explode: Explode | None = None,
    ) -> None:
        super().__init__(host=host, path=path, root=path, parser=parser, suffixes=suffixes, skip_folders=skip_folders)
        self._folders = below
        self._accepts = accepts
        self._named_by_time = named_by_time
        self._explode = explode

    def began_ns(self, item: Item) -> int:
        """Return when the session in *item* began, by its name where that tells: originals come before their forks."""
        named = _TIME.search(os.path.basename(item.path)) if self._named_by_time else None
        if named is None:
            return item.mtime_ns
        year, month, day, hour, minute, second = map(int, named.groups())
        try:
            began = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:  # the 31st of some months, and whatever else a file may be called
            return item.mtime_ns
        return int(began.timestamp()) * 1_000_000_000

    # -- listing

    def items(self) -> Iterator[Item]:
        """Yield the files with one stat each."""
        self._problems = []
        roots = self._roots()
        for root in roots:
            try:
                for item in walk(
                    root, suffixes=self._suffixes, skip_folders=self._skip_folders, problems=self._problems
                ):
                    if self._is_ours(item.path):
                        yield item
            except OSError as error:
                if len(roots) == 1 and root == self.path:
                    raise
                if not isinstance(error, FileNotFoundError):
                    self._problems.append(f"cannot list {root}: {error.strerror}")

    def item_at(self, path: str) -> Item | None:
        """Return the file at *path*, or None where it is no transcript of this source."""
        if path != self.path:
            below = path.removeprefix(self.path.rstrip(os.sep) + os.sep)
            parts = below.split(os.sep)
            if below == path or not parts[-1].endswith(self._suffixes):
                return None
            if not self._skip_folders.isdisjoint(parts[:-1]) or not self._is_ours(path):
                return None
        item, is_file = item_at(path)
        return item if is_file else None

    def watch_paths(self) -> list[str]:
        """Return the folders below which a change may be a transcript's: those that are there now, else the home."""
        heads = [pattern.partition("*")[0].rstrip("/") for pattern in self._folders]
        folders = [os.path.join(self.path, head) for head in heads if head]
        return [folder for folder in folders if os.path.isdir(folder)] or [self.path]

    def _roots(self) -> list[str]:
        """Return the folders that are walked now; the first level is looked at anew each time, as projects come."""
        roots: list[str] = []
        for pattern in self._folders:
            found = [self.path]
            for part in pattern.split("/"):
                if part == "*":
                    found = [inner for folder in found for inner in self._inside(folder)]
                else:
                    found = [f"{folder.rstrip(os.sep)}{os.sep}{part}" for folder in found]
                    found = [folder for folder in found if os.path.isdir(folder)]
            roots += found
        return roots or [self.path]

    def _inside(self, folder: str) -> list[str]:
        try:
            with os.scandir(folder) as entries:
                return sorted(entry.path for entry in entries if entry.is_dir())
        except OSError as error:
            self._problems.append(f"cannot list {folder}: {error.strerror}")
            return []

    def _is_ours(self, path: str) -> bool:
        return self._accepts(_plain_name(path))

    # -- reading

    def examine(self, item: Item, offset: int) -> Marks:
        """Return what the file is recognised by; *offset* counts unpacked bytes."""
        if self.is_document(item.path):
            mark = content_key(self.host.encode(), os.path.basename(_plain_name(item.path)).encode(errors="replace"))
            return Marks(head=mark, tail=mark if offset else b"")
        if not item.path.endswith(PACKED):
            return super().examine(item, offset)
        descriptor = open_quietly(item.path)
        try:
            stream = unpacked(descriptor)
            if stream is None:
                return super().examine(item, offset)
            return _marks_of(stream, offset)
        finally:
            os.close(descriptor)

    def read(self, item: Item, start: Start, stop: Callable[[], bool]) -> Iterator[Slice]:
        """Yield what the file holds from *start* on."""
        if self.is_document(item.path):
            yield self._read_document(item, start)
            return
        if not item.path.endswith(PACKED):
            yield from super().read(item, start, stop)
            return
        descriptor = open_quietly(item.path)
        try:
            stream = unpacked(descriptor)
            if stream is None:
                yield from super().read(item, start, stop)
            else:
                yield from self._read_packed(stream, item, start, stop)
        finally:
            os.close(descriptor)

    def below(self, path: str) -> str:
        """Return *path* below the place, without the suffix of a packed form."""
        return _plain_name(super().below(path))

    def is_document(self, path: str) -> bool:
        """Return whether the file at *path* is one document, which is written anew as a whole."""
        return self._explode is not None and _plain_name(path).endswith(".json")

    def _read_packed(self, stream: Unpacked, item: Item, start: Start, stop: Callable[[], bool]) -> Iterator[Slice]:
        parser = self._parser(self.below(item.path), start)
        splitter = LineSplitter(start.offset)
        marks = _Marking(start.offset)
        at = 0
        while at < start.offset:
            chunk = stream.read(min(BUFFER, start.offset - at))
            if not chunk:
                raise TranscriptError(f"ends before offset {start.offset} where it was read up to", offset=at)
            marks.saw(chunk)
            at += len(chunk)
        read = 0
        while True:
            chunk = stream.read(BUFFER)
            read += len(chunk)
            marks.saw(chunk)
            if chunk:
                give(parser, splitter, chunk)
            ended = len(chunk) < BUFFER
            if ended and start.settled:
                last = splitter.last_line()
                if last is not None:
                    parser.feed([last])
                parser.settle()
            if ended or read >= SLICE:
                stopped = not ended and stop()
                found = parser.findings()
                cut = ended and stream.cut
                if cut and start.settled:
                    found.notes.append("the compressed file is cut: what is whole in it was read")
                yield Slice(
                    findings=found,
                    offset=splitter.offset,
                    size=item.size,
                    state=parser.state(),
                    marks=Marks(head=marks.head(), tail=marks.tail(splitter.offset)),
                    bytes_read=read,
                    waiting=not start.settled and (parser.waiting or splitter.half_size > 0 or cut),
                    last=ended,
                )
                read = 0
                if ended or stopped:
                    return

    def _read_document(self, item: Item, start: Start) -> Slice:
        descriptor = open_quietly(item.path)
        try:
            data = _whole(descriptor)
        finally:
            os.close(descriptor)
        assert self._explode is not None
        lines = self._explode(data)
        marks = self.examine(item, 1)
        if lines is None and not start.settled:
            # Caught while it was written: what is known stays, and it is looked at again when it changes or settles.
            parser = self._parser(self.below(item.path), start)
            return Slice(
                findings=parser.findings(), offset=start.offset, size=item.size, state=start.state, marks=marks,
                bytes_read=len(data), waiting=True,
            )  # fmt: skip
        # All of it is known by ids: what was counted before is passed over, wherever it stands now.
        anew = Start(
            state=start.state,
            guard=Guard(*start.guard.packed, *start.before.packed),
            settled=start.settled,
            now_ms=start.now_ms,
            mtime_ms=start.mtime_ms,
        )
        parser = self._parser(self.below(item.path), anew)
        parser.feed(_places(lines if lines is not None else [data[:HEAD]], data))
        if start.settled:
            parser.settle()
        return Slice(
            findings=parser.findings(), offset=max(len(data), 1), size=item.size, state=parser.state(), marks=marks,
            bytes_read=len(data), waiting=parser.waiting,
        )  # fmt: skip


def _places(lines: Iterable[bytes], data: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield *lines* with where they stand in the document *data*; of one that was made anew, near where it stood."""
    at = 0
    for line in lines:
        found = data.find(line, at, at + len(line) + HEAD)
        begin = found if found >= 0 else at
        yield line, begin
        at = min(begin + len(line), len(data))


class _Marking:
    """The head and the bytes before an offset of a stream that goes by once."""

    def __init__(self, offset: int) -> None:
        self._first = b""
        self._recent = b""  # what ends at the last newline, or at *offset* before one came
        self._since = b""  # what came behind it, its end
        self._at = 0
        self._line_at = 0
        self._offset = offset

    def saw(self, chunk: bytes) -> None:
        if len(self._first) < HEAD:
            self._first += chunk[: HEAD - len(self._first)]
        end = chunk.rfind(b"\n") + 1
        if self._at + len(chunk) <= self._offset:
            end = len(chunk)  # all of it is before the watermark
        if end:
            self._recent = (self._recent + self._since + chunk[:end])[-TAIL:]
            self._line_at = self._at + end
            self._since = chunk[end:][-TAIL:]
        else:
            self._since = (self._since + chunk)[-TAIL:]
        self._at += len(chunk)

    def head(self) -> bytes:
        return _head_of(self._first)

    def tail(self, offset: int) -> bytes:
        """Return the mark of the bytes before *offset*, which is behind the last newline or at the very end."""
        if not offset:
            return b""
        data = self._recent if offset == self._line_at else (self._recent + self._since)
        return _hash(data[-min(TAIL, offset) :])


def _marks_of(stream: Unpacked, offset: int) -> Marks:
    first = recent = b""
    at = 0
    while at < max(offset, HEAD):
        chunk = stream.read(min(BUFFER, max(offset, HEAD) - at))
        if not chunk:
            break
        if len(first) < HEAD:
            first += chunk[: HEAD - len(first)]
        if at < offset:
            recent = (recent + chunk[: offset - at])[-TAIL:]
        at += len(chunk)
    whole = at >= offset > 0
    return Marks(head=_head_of(first), tail=_hash(recent) if whole else b"")


def _head_of(data: bytes) -> bytes:
    end = data.find(b"\n")
    if end < 0 and len(data) < HEAD:
        return b""
    return _hash(data[:end] if end >= 0 else data)


def _plain_name(path: str) -> str:
    """Return *path* without the suffix of a packed form."""
    return path[: path.rindex(".")] if path.endswith(PACKED) else path


def _whole(descriptor: int) -> bytes:
    stream = unpacked(descriptor)
    parts: list[bytes] = []
    size = 0
    while True:
        chunk = os.read(descriptor, BUFFER) if stream is None else stream.read(BUFFER)
        if not chunk:
            return b"".join(parts)
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_DOCUMENT:
            raise TranscriptError(f"is one JSON document of more than {MAX_DOCUMENT} bytes", offset=size)

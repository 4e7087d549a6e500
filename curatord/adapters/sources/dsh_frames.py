"""
DSH's sessions: logs that grow by zstd frames, and plain ones (formats page, section 6).

Each batch of rows is a frame of its own, with a checksum. Wanted: an append costs its own frames, not the whole file;
what a frame says is taken when it is whole; a file cut or damaged in one place gives all the rest.

The watermark is the end of the last whole frame behind which no line is torn, in bytes of the file as it is packed.
Where lines were taken from beyond it, the state says how many unpacked bytes to pass over (`skip`). A frame's content
is held back until its checksum is seen, up to `HOLD` bytes: a log that somebody packed anew is one frame, and its lines
are given out as they come. A frame that ends with the file waits. One that is damaged is counted as unreadable, and
reading goes on at the next place where a frame can be read; so it is with a torn one that has frames behind it.

Of the files of one session, one for each format that it went through, only that of the highest version is read: it
holds all that the others do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

import msgspec

from curatord.adapters.sources.compressed import MOST, WINDOW_LOG, _zstd, many_frames, whole_frames
from curatord.adapters.sources.json_lines import BUFFER, HEAD, SLICE, TAIL, _hash, open_quietly
from curatord.adapters.sources.tree import TreeSource, _head_of
from curatord.core.cheap import replace
from curatord.core.transcript.dsh import DshParser
from curatord.core.transcript.events import Findings
from curatord.core.transcript.kept_state import kept_state
from curatord.core.transcript.lines import LineSplitter, give
from curatord.errors import TranscriptError
from curatord.ports.source import Item, Marks, Slice, Start

__all__ = ["DshSource", "Frames"]

HOLD = 16 * 1024 * 1024
BATCH = 512 * 1024
READ = 256 * 1024
TOGETHER = 64 * 1024  # packed bytes of small frames that are unpacked in one call
MAGIC = b"\x28\xb5\x2f\xfd"
TRIES = 256  # places where a frame could begin again that are looked at behind a damaged one
_NAME = re.compile(r"session(?:\.v(\d{1,4}))?\.jsonl(?:\.zstd|\.zst|\.gz)?")


class _State(msgspec.Struct, array_like=True):
    """What goes from one reading to the next."""

    parser: bytes = b""
    unpacked: int = 0  # bytes that the frames before the watermark unpack to
    skip: int = 0  # unpacked bytes behind it that were read as well


_encode = msgspec.msgpack.Encoder().encode


class DshSource(TreeSource):
    """The `Source` over one home, or its folder of sessions."""

    def __init__(self, path: str) -> None:
        super().__init__(
            host="dsh",
            path=path,
            parser=_parser_of,
            below=("sessions",),
            accepts=lambda path: os.path.basename(path).startswith("session."),
            skip_folders=frozenset({"attachments"}),
        )

    # -- listing

    def items(self) -> Iterator[Item]:
        """Yield the files, of each session those of its highest version."""
        newest: dict[str, tuple[int, list[Item]]] = {}
        for item in super().items():
            folder, name = os.path.split(item.path)
            version = _version(name)
            held = newest.get(folder)
            if version is None or (held is not None and held[0] > version):
                continue
            if held is None or held[0] < version:
                newest[folder] = held = (version, [])
            held[1].append(item)
        for _, items in newest.values():
            yield from items

    def item_at(self, path: str) -> Item | None:
        """Return the file at *path*, or None where it is none of these, or one of a lower version."""
        item = super().item_at(path)
        if item is None:
            return None
        folder, name = os.path.split(path)
        versions = [version for other in os.listdir(folder) if (version := _version(other)) is not None]
        return item if versions and _version(name) == max(versions) else None

    # -- reading

    def examine(self, item: Item, offset: int) -> Marks:
        """Return what the file is recognised by; of a packed one, *offset* counts packed bytes."""
        descriptor = open_quietly(item.path)
        try:
            if os.pread(descriptor, 4, 0) != MAGIC:
                return super().examine(item, offset)
            return _marks(descriptor, offset)
        finally:
            os.close(descriptor)

    def read(self, item: Item, start: Start, stop: Callable[[], bool]) -> Iterator[Slice]:
        """Yield what the file holds from *start* on."""
        descriptor = open_quietly(item.path)
        try:
            if os.pread(descriptor, 4, 0) == MAGIC:
                yield from Frames(descriptor, item, start, self.below(item.path), _parser_of).slices(stop)
                return
        finally:
            os.close(descriptor)
        yield from super().read(item, start, stop)

    def left_behind(self, item: Item, start: Start) -> tuple[Findings, bytes]:
        """Return what waited in *item*, which is gone, taken as done, and the state behind that."""
        try:
            saved = msgspec.msgpack.decode(start.state, type=_State)
        except msgspec.MsgspecError:  # it was not packed
            return super().left_behind(item, start)
        found, state = super().left_behind(item, replace(start, state=saved.parser))
        return found, _encode(_State(parser=state, unpacked=saved.unpacked, skip=saved.skip))


class Frames:
    """
    One reading of one packed log.

    Args:
        descriptor: Of the open file.
        item: The file.
        start: Where and how to read.
        path: Below the source's folder.
        parser: Makes the parser.
        ends: Gets, for each frame that was read whole, how many unpacked bytes there were behind it and where it ends
            in the file; None where nobody asks.
    """

    def __init__(
        self,
        descriptor: int,
        item: Item,
        start: Start,
        path: str,
        parser: Callable[[str, Start], DshParser],
        ends: list[tuple[int, int]] | None = None,
    ) -> None:
        saved = kept_state(start.state, _State)
        self._descriptor = descriptor
        self._item = item
        self._start = start
        self._zstd = _zstd()
        self._options = {int(self._zstd.DecompressionParameter.window_log_max): WINDOW_LOG}
        self._whole_frame = whole_frames(HOLD)
        self._many_frames = many_frames(HOLD) if ends is None else None
        self._one_by_one = 0  # up to there, frames are looked at by themselves
        self._window = memoryview(b"")  # of the packed file, from `_window_at` on
        self._window_at = 0
        self._parser = parser(path, replace(start, state=saved.parser))
        self._ends = ends
        self._seen = 0  # unpacked bytes so far
        self._mark = start.offset  # the watermark
        self._unpacked = saved.unpacked if start.offset else 0
        self._skip = saved.skip if start.offset else 0  # still to be passed over
        self._splitter = LineSplitter(self._unpacked + self._skip)
        self._given = 0
        self._batch: list[bytes] = []  # content of whole frames that the parser has not seen
        self._batched = 0

    def slices(self, stop: Callable[[], bool]) -> Iterator[Slice]:
        """Yield what there is."""
        at = self._mark
        read = 0
        while True:
            ended = True
            begun = False
            for held in self._frame(at):
                if isinstance(held, int):
                    at, ended = held, False
                    if self._ends is not None:
                        self._ends.append((self._seen, at))
                    break
                begun = True
                read += len(held)
                self._seen += len(held)
                self._batch.append(held)
                self._batched += len(held)
                if self._batched >= BATCH:
                    self._feed()
                if read >= SLICE:
                    self._feed()
                    stopped = stop()
                    yield self._slice(read, waiting=False, last=False)
                    read = 0
                    if stopped:
                        return
            if not ended:
                if not self._batch:
                    self._pass_mark(at)
                continue
            self._feed()
            if not begun:  # else lines were taken from a frame whose end is not there
                self._pass_mark(at)
            there = os.fstat(self._descriptor).st_size
            torn = at < there
            if torn:
                onward = self._onward(at, there)
                if onward is not None:
                    at = onward
                    continue
            if self._start.settled and not torn:
                last = self._splitter.last_line()
                if last is not None:
                    self._parser.feed([last])
                self._parser.settle()
                self._pass_mark(at)
            elif self._start.settled:
                self._parser.settle()
            waits = self._parser.waiting or (not self._start.settled and (torn or self._splitter.half_size > 0))
            yield self._slice(read, waiting=waits and not self._start.settled, last=True)
            return

    def _frame(self, at: int) -> Iterator[bytes | int]:
        """
        Yield the content of the frame that begins at *at*, and where the next one does.

        Nothing behind the content, or nothing at all: the frame is not whole, or damaged.
        """
        quick = self._small_frame(at)
        if quick is not None:
            yield from quick
            return
        decoder = self._zstd.ZstdDecompressor(options=self._options)
        parts: list[bytes] = []
        size = taken = 0
        streaming = False
        while True:
            packed = b""
            if decoder.needs_input:
                packed = os.pread(self._descriptor, READ, at + taken)
                if not packed:
                    return
                taken += len(packed)
            try:
                piece = decoder.decompress(packed, BUFFER)
            except self._zstd.ZstdError:
                return
            if streaming:
                yield piece
            else:
                parts.append(piece)
                size += len(piece)
                if size > HOLD:
                    streaming = True
                    yield b"".join(parts)
                    parts = []
            if decoder.eof:
                yield b"".join(parts)
                yield at + taken - len(decoder.unused_data)
                return

    def _small_frame(self, at: int) -> tuple[bytes, int] | None:
        """Return the content of a frame that is whole in the window, and where the next begins; None for any other."""
        begin = at - self._window_at
        size = 0
        if 0 <= begin < len(self._window):
            size = self._frame_size(begin)
        if not size:
            self._window = memoryview(os.pread(self._descriptor, BUFFER, at))
            self._window_at = at
            begin = 0
            size = self._frame_size(0) if self._window else 0
        if not size:
            return None
        if self._many_frames is not None and at >= self._one_by_one:
            end = begin + size
            while end < len(self._window) and end - begin < TOGETHER and (more := self._frame_size(end)):
                end += more
            content = self._many_frames(self._window[begin:end])
            if content is not None:
                return content, self._window_at + end
            self._one_by_one = self._window_at + end
        frame = self._window[begin : begin + size]
        if self._whole_frame is not None and (content := self._whole_frame(frame)) is not None:
            return content, at + size
        decoder = self._zstd.ZstdDecompressor(options=self._options)
        try:
            content = decoder.decompress(frame, HOLD)
        except self._zstd.ZstdError:
            return None
        return (content, at + size) if decoder.eof else None

    def _frame_size(self, begin: int) -> int:
        """Return the packed size of the frame that begins there in the window, 0 where it is not whole in it."""
        try:
            size: int = self._zstd.get_frame_size(self._window[begin:])
        except self._zstd.ZstdError:
            return 0
        return size

    def _feed(self) -> None:
        """Give the parser what was gathered: a call for each frame would cost more than its rows."""
        data = b"".join(self._batch)
        self._batch.clear()
        self._batched = 0
        if self._skip:
            passed = min(self._skip, len(data))
            self._skip -= passed
            data = data[passed:]
        self._given += len(data)
        if self._given > MOST:
            raise TranscriptError(f"unpacks to more than {MOST} bytes", offset=self._given)
        if not data:
            return
        give(self._parser, self._splitter, data)

    def _pass_mark(self, at: int) -> None:
        """Set the watermark to *at*, where a frame ends, unless a line is torn there."""
        if not self._splitter.half_size and not self._skip:
            self._mark = at
            self._unpacked = self._splitter.offset

    def _onward(self, at: int, there: int) -> int | None:
        """
        Return where to go on behind the frame at *at*, which cannot be read to its end, None for nowhere yet.

        A frame that is only cut off by the file's end may still grow, so it is left alone until the file has settled.
        """
        cut = self._is_cut(at)
        if cut and not self._start.settled:
            return None
        for place in self._beginnings(at + 1, there):
            if self._is_whole(place):
                self._lost(at, place)
                return place
        if not cut and self._start.settled:
            self._lost(at, there)
            return there
        return None

    def _lost(self, at: int, onward: int) -> None:
        content = os.pread(self._descriptor, TAIL, at)
        self._parser.torn(content, at, f"{onward - at} bytes are no whole frame")
        # The half line before it will get no other half.
        self._unpacked = self._splitter.offset + self._splitter.half_size
        self._splitter = LineSplitter(self._unpacked)
        self._skip = 0
        self._mark = onward

    def _is_cut(self, at: int) -> bool:
        """Return whether the frame at *at* is fine as far as the file goes."""
        try:
            self._run(at)
        except self._zstd.ZstdError:
            return False
        return True

    def _is_whole(self, at: int) -> bool:
        try:
            return self._run(at)
        except self._zstd.ZstdError:
            return False

    def _run(self, at: int) -> bool:
        """Unpack the frame at *at* into nothing; return whether it ended."""
        decoder = self._zstd.ZstdDecompressor(options=self._options)
        given = 0
        while not decoder.eof:
            packed = b""
            if decoder.needs_input:
                packed = os.pread(self._descriptor, READ, at)
                if not packed:
                    return False
                at += len(packed)
            given += len(decoder.decompress(packed, BUFFER))
            if given > MOST:
                return False
        return True

    def _beginnings(self, at: int, there: int) -> Iterator[int]:
        """Yield the places from *at* on where a frame may begin."""
        found = 0
        before = b""
        while at < there and found < TRIES:
            data = os.pread(self._descriptor, BUFFER, at)
            if not data:
                return
            whole = before + data
            base = at - len(before)
            place = whole.find(MAGIC)
            while place >= 0 and found < TRIES:
                found += 1
                yield base + place
                place = whole.find(MAGIC, place + 1)
            before = whole[-3:]
            at += len(data)

    def _slice(self, read: int, *, waiting: bool, last: bool) -> Slice:
        skip = self._splitter.offset - self._unpacked
        return Slice(
            findings=self._parser.findings(),
            offset=self._mark,
            size=self._item.size,
            state=_encode(_State(parser=self._parser.state(), unpacked=self._unpacked, skip=skip)),
            marks=_marks(self._descriptor, self._mark),
            bytes_read=read,
            waiting=waiting,
            last=last,
        )


def _marks(descriptor: int, offset: int) -> Marks:
    """Return the hash of the first record, and of the packed bytes before *offset*."""
    zstd = _zstd()
    decoder = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW_LOG})
    try:
        first = decoder.decompress(os.pread(descriptor, READ, 0), HEAD)
    except zstd.ZstdError:
        first = b""
    tail = b""
    if offset:
        size = min(TAIL, offset)
        data = os.pread(descriptor, size, offset - size)
        tail = _hash(data) if len(data) == size else b""
    return Marks(head=_head_of(first), tail=tail)


def _parser_of(path: str, start: Start) -> DshParser:
    return DshParser(
        path,
        state=start.state,
        fresh=start.offset == 0,
        guard=start.guard,
        before=start.before,
        now_ms=start.now_ms,
        mtime_ms=start.mtime_ms,
    )


def _version(name: str) -> int | None:
    """Return the format version that a file's name tells, None where it is no log."""
    found = _NAME.fullmatch(name)
    return int(found[1] or 0) if found else None

"""
Compressed transcripts as streams: gzip and zstd, told by their first bytes and not by their names.

Codex compresses rollouts after a week, users compress what they archive, DSH writes nothing else. All offsets of such a
file are those of its unpacked bytes, so that a watermark is good before and after it was packed (bugs B094).

Memory is bounded whatever the file says: a chunk at a time comes out, and a zstd window above 128 MiB is refused. Time
is bounded by `MOST` bytes that one file may unpack to. A stream that ends early (still being written, or cut) gives
what is whole in it. Several members or frames behind one another are one stream; what follows the last is passed over.
"""

from __future__ import annotations

import importlib
import os
import zlib
from collections.abc import Callable
from typing import Any

from curatord.errors import TranscriptError

__all__ = ["PACKED", "Unpacked", "many_frames", "unpacked", "whole_frames", "zstd_is_there"]

PACKED = (".gz", ".zst", ".zstd")
MOST = 16 * 1024**3
WINDOW_LOG = 27
_CHUNK = 256 * 1024
_UNTOLD = 128 * 1024  # room for a frame that does not tell its size, as DSH's do not
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # a frame without content, after one byte 0x50…0x5f


class Unpacked:
    """
    The unpacked bytes of an open file, from its start.

    Args:
        descriptor: Stands at the file's start; stays open.
        begin: Makes a decompressor for the next member or frame.
        errors: What it raises for broken data.
    """

    def __init__(self, descriptor: int, begin: Callable[[], Any], errors: tuple[type[Exception], ...]) -> None:
        self._descriptor = descriptor
        self._begin = begin
        self._errors = errors
        self._now = begin()
        self._fed = False
        self._rest = b""
        self._given = 0
        self._ended = False

    @property
    def cut(self) -> bool:
        """Whether the file ended before the stream did: it is still being written, or was cut."""
        return self._ended and self._fed

    def read(self, size: int) -> bytes:
        """
        Return the next *size* bytes, fewer only at the end.

        Raises:
            TranscriptError: The data is broken, or unpacks to more than `MOST`.
        """
        parts: list[bytes] = []
        wanted = size
        while wanted > 0 and not self._ended:
            piece = self._next(wanted)
            parts.append(piece)
            wanted -= len(piece)
        data = b"".join(parts)
        self._given += len(data)
        if self._given > MOST:
            raise TranscriptError(f"unpacks to more than {MOST} bytes", offset=self._given)
        return data

    def _next(self, most: int) -> bytes:
        if not self._rest and getattr(self._now, "needs_input", True):
            self._rest = os.read(self._descriptor, _CHUNK)
            if not self._rest:
                self._ended = True
                return b""
        try:
            piece: bytes = self._now.decompress(self._rest, most)
        except self._errors as error:
            if not self._fed and self._given:
                self._ended, self._fed = True, False  # padding, or whatever stands behind the last member
                return b""
            raise TranscriptError(f"cannot be unpacked: {error}", offset=self._given) from error
        self._fed = True
        # zlib hands back what it did not take; the zstd module keeps it.
        self._rest = getattr(self._now, "unconsumed_tail", b"")
        if self._now.eof:
            self._rest = self._now.unused_data
            self._now = self._begin()
            self._fed = False
        return piece


def unpacked(descriptor: int) -> Unpacked | None:
    """
    Return the unpacked stream of the file open at *descriptor*, or None where it is not compressed.

    Raises:
        TranscriptError: It is compressed with zstd, and no module for that is there.
    """
    magic = os.pread(descriptor, 4, 0)
    if magic[:2] == _GZIP:
        return Unpacked(descriptor, lambda: zlib.decompressobj(wbits=31), (zlib.error,))
    if magic == _ZSTD or (magic[1:] == _SKIPPABLE and 0x50 <= magic[0] <= 0x5F):
        zstd = _zstd()
        options = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
        return Unpacked(descriptor, lambda: zstd.ZstdDecompressor(options=options), (zstd.ZstdError,))
    return None


def whole_frames(most: int) -> Callable[[memoryview], bytes | None] | None:
    """
    Return what unpacks one small zstd frame after another, or None where the module for it is not installed.

    Python's own decompressor is good for one frame, and a new one costs 18 µs where a processor's features are asked
    for through a virtual machine: six times as much as unpacking two KiB. The package zstandard has one that is used
    again. What it returns is the content of a frame given whole; None for one that is damaged, tells of more than
    *most* bytes, or tells no size and has more than `_UNTOLD`, which is for the other decompressor to judge.
    """
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        return None
    size_of, error = zstandard.frame_content_size, zstandard.ZstdError
    unpack = zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG).decompress

    def content(frame: memoryview) -> bytes | None:
        try:
            size = size_of(frame)
            if size > most:
                return None
            data: bytes = unpack(frame, most if size >= 0 else _UNTOLD)
        except error:
            return None
        return data

    return content


def many_frames(most: int) -> Callable[[memoryview], bytes | None] | None:
    """
    Return what unpacks whole zstd frames that stand one behind the other, or None where no module for that is there.

    One call for some dozens of them saves a fifth of what a call for each costs. What it returns is their content;
    None where one is damaged, or there is more in them than *most* bytes: then each is to be looked at by itself.
    """
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        return None
    error, reader = zstandard.ZstdError, zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG).stream_reader

    def content(frames: memoryview) -> bytes | None:
        try:
            with reader(frames, read_across_frames=True) as stream:
                data: bytes = stream.read(most)
                return None if len(data) == most or stream.read(1) else data
        except error:
            return None

    return content


def zstd_is_there() -> bool:
    """Return whether what is compressed with zstd can be read here."""
    try:
        _zstd()
    except TranscriptError:
        return False
    return True


def _zstd() -> Any:
    """Return the zstd module of this Python: its own from 3.14 on, the same as a package before."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise TranscriptError(
        "is compressed with zstd, for which no module is installed",
        hint="install the package backports.zstd, or run curatord with Python 3.14 or newer",
    )

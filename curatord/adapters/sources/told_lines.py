"""
What was said in files: the ingest's own tailer, with a teller in the parser's place.

A file is read from its beginning to the watermark that ingest has reached. What stands before the last look is read
too, since it says what the rest means (whose file it is, which message goes on, which call failed), but not told. So
half lines, lines too long to hold, compressed files and whole documents are what they are to ingest; what is ready is
handed on after each stretch of some 32 MiB, which with the teller's own bounds is all that is held.

What stands in two files of one name is told once: see `replaced`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Protocol, cast

from curatord.adapters.sources.compressed import PACKED
from curatord.adapters.sources.json_lines import JsonLinesSource
from curatord.core.conversation.telling import Telling
from curatord.core.distil.said import Said
from curatord.ports.conversation import Since
from curatord.ports.source import Item, LineParser, Slice, Start

__all__ = ["LineConversations", "TellerFactory", "handed", "replaced", "whole"]


class TellerFactory(Protocol):
    """Makes the teller of one file."""

    def __call__(self, path: str, start: Start, telling: Telling) -> LineParser:
        """Return a teller for *path*, the file's path below the source's."""
        ...


class LineConversations:
    """
    The `Conversations` of a source of files.

    Args:
        source: Which reads the files.
        teller: Makes the teller of one.
    """

    def __init__(self, source: JsonLinesSource, teller: TellerFactory) -> None:
        self._source = source
        self._teller = teller

    def said(
        self, path: str, session_id: str, since: Since, *, until: int | None, stop: Callable[[], bool]
    ) -> Iterator[Said]:
        """Yield what was said in the file at *path*; see `Conversations`."""
        item = self._source.item_at(path)
        if item is None or replaced(item.path):
            return  # no transcript of this source, or one that another file replaces
        telling = self._telling(item, session_id, since, until)
        start = whole(item, until)
        source = self._source.parsed_by(lambda below, start: self._teller(below, start, telling))
        with closing(cast("Generator[Slice]", source.read(item, start, stop))) as slices:
            for slice_ in slices:
                yield from handed(telling)
                if telling.silent or (until is not None and slice_.offset >= until and not slice_.last):
                    break
        telling.finish()
        yield from handed(telling)

    def _telling(self, item: Item, session_id: str, since: Since, until: int | None) -> Telling:
        if not self._source.is_document(item.path):
            return Telling(session_id, offset=since.offset, until=until)
        # Its watermark is its size: of one that was written anew and shorter, places say nothing any more.
        offset = 0 if item.size < since.offset and not item.path.endswith(PACKED) else since.offset
        return Telling(session_id, offset=offset, at_ms=since.at_ms, until=until, by_time=True)


def handed(telling: Telling) -> Iterator[Said]:
    """Yield what is ready; where an item is written anew as a whole, without places that say nothing the next time."""
    for said in telling.take():
        yield said._replace(offset=0) if telling.by_time and said.at_ms is not None else said


def replaced(path: str) -> bool:
    """
    Return whether another file beside the one at *path* holds all of it.

    A packed file beside itself plain was left behind when it was unpacked, a document beside a journal of its name when
    a newer version went on with it, a `.bak` beside what it is a copy of.
    """
    plain = path[: path.rindex(".")] if path.endswith(PACKED) else path
    if plain != path and os.path.exists(plain):
        return True
    if plain.endswith(".json") and os.path.exists(plain + "l"):
        return True
    live, bak, _ = plain.rpartition(".bak.")
    return bool(bak) and os.path.exists(live)


def whole(item: Item, until: int | None) -> Start:
    """Return how an item is read from its beginning."""
    # With a watermark, what has no newline below it was taken by ingest; without one it waits.
    return Start(settled=until is not None, mtime_ms=item.mtime_ns // 1_000_000)

"""
What was said in DSH's logs: plain ones as any file of lines, packed ones by the places of their frames.

The watermark of a packed log counts its packed bytes, and a line has a place in the unpacked ones. Each frame that is
read says where both are, so a line's place is the end of the frame that its last byte is in.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator

from curatord.adapters.sources.dsh_frames import MAGIC, DshSource, Frames
from curatord.adapters.sources.json_lines import open_quietly
from curatord.adapters.sources.told_lines import LineConversations, replaced, whole
from curatord.core.conversation.dsh import DshTeller
from curatord.core.conversation.telling import Telling
from curatord.core.distil.said import Said
from curatord.core.transcript.ids import Guard
from curatord.ports.conversation import Since
from curatord.ports.source import Item, Start

__all__ = ["DshConversations"]


class DshConversations(LineConversations):
    """The `Conversations` of one home of DSH."""

    def __init__(self, path: str) -> None:
        super().__init__(DshSource(path), _teller)

    def said(
        self, path: str, session_id: str, since: Since, *, until: int | None, stop: Callable[[], bool]
    ) -> Iterator[Said]:
        """Yield what was said in the log at *path*; see `Conversations`."""
        item = self._source.item_at(path)
        if item is None or replaced(item.path):
            return  # a log of a newer format, or the same one unpacked, holds all of it
        descriptor = open_quietly(item.path)
        try:
            if os.pread(descriptor, len(MAGIC), 0) == MAGIC:
                yield from self._in_frames(descriptor, item, session_id, since, until, stop)
                return
        finally:
            os.close(descriptor)
        yield from super().said(path, session_id, since, until=until, stop=stop)

    def _in_frames(
        self,
        descriptor: int,
        item: Item,
        session_id: str,
        since: Since,
        until: int | None,
        stop: Callable[[], bool],
    ) -> Iterator[Said]:
        telling = Telling(session_id)
        ends: list[tuple[int, int]] = []
        below = self._source.below(item.path)
        frames = Frames(
            descriptor,
            item,
            whole(item, until),
            below,
            lambda path, start: _teller(path, start, telling),
            ends,
        )
        for slice_ in frames.slices(stop):
            yield from _placed(telling.take(), ends, item.size, since.offset, until)
            if telling.silent or (until is not None and slice_.offset >= until and not slice_.last):
                break
        telling.finish()
        yield from _placed(telling.take(), ends, item.size, since.offset, until)


def _teller(path: str, start: Start, telling: Telling) -> DshTeller:
    return DshTeller(
        path,
        telling=telling,
        state=b"",
        fresh=True,
        guard=Guard(),
        before=Guard(),
        now_ms=start.now_ms,
        mtime_ms=start.mtime_ms,
    )


def _placed(told: list[Said], ends: list[tuple[int, int]], size: int, since: int, until: int | None) -> Iterator[Said]:
    """Yield of *told* what lies in frames between the watermarks, with places in the packed file."""
    for said in told:
        at = bisect_left(ends, (said.offset, 0))
        end = ends[at][1] if at < len(ends) else size  # of a frame that is not whole yet, the file's own end
        if end > since and (until is None or end <= until):
            ref = said.ref if not said.ref.startswith("@") else f"@{end}/{said.offset}"
            yield said._replace(offset=end, ref=ref)

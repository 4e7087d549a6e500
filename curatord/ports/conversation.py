"""
What was said in one session since it was last looked at, read again from its transcripts when it is wanted.

How a host is added. Its ingest parser knows which records are turns (`ports/source.py`); a teller in
`core/conversation/<host>.py` is that parser, listened to, and says where such a record keeps its words, its calls and
its errors. A host that writes lines is then a function in `adapters/sources/told_hosts.py`, any other a `Conversations`
of its own, and either way one line in `adapters/sources/conversations.py`.

What is told is what ingest counts, but for what nobody should learn from: prompts of schedules, what sub-agents said,
whole sessions that are curatord's own, a sub-agent's or the host's reviewer's, and what the host itself took back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from curatord.core.cheap import dataclass
from curatord.core.distil.said import Said

__all__ = ["Conversations", "Since"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """
    From where an item is read.

    *offset* is a watermark of the item as ingested (bytes, or a row id; 0: from its start); *at_ms* the time of the
    newest record that was looked at. Where an offset means nothing in the host's form (a document that is written
    anew), records up to *at_ms* are passed over instead.
    """

    offset: int = 0
    at_ms: int | None = None


class Conversations(Protocol):
    """One source's transcripts, as text. Bounded memory whatever the size of a file or a line."""

    def said(
        self, path: str, session_id: str, since: Since, *, until: int | None, stop: Callable[[], bool]
    ) -> Iterator[Said]:
        """
        Yield what was said in *session_id* in the item at *path* after *since*, in the item's order.

        *until*: not beyond this watermark, which is what ingest has counted. What cannot be read is passed over, as
        in the ingest pass; side files (sub-agents) yield nothing.

        Raises:
            FileNotFoundError: It vanished. OSError: It cannot be read. TranscriptError: It is no transcript.
        """
        ...

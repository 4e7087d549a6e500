"""
A text without its secrets, cut to its two ends: redacted first, cut afterwards.

The other order would cut a secret in half, and half a secret is none to a detector. A text of megabytes is not redacted
whole for the few hundred characters that are shown of it: two windows of it are kept, each reaching `MARGIN` characters
beyond what can be shown, and `MARGIN` is more than the longest secret. So a secret at the edge of a window, which a
detector may not know, lies in what is cut away. Redacting makes a window shorter (a key of 3,000 characters becomes a
mark of 22), and then the edge would come nearer to what is shown: so of the redacted window, too, `MARGIN` characters
at its edge are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from curatord.core.cheap import dataclass
from curatord.core.redact import redacted

__all__ = ["MARGIN", "Cut", "Window", "windowed"]

MARGIN = 20_200  # a private key block is the longest that `core.redact` knows: 20,000 characters and its two lines
HEAD_SHARE = 0.65  # the rest is the tail: how a message begins says more than how it ends
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Cut:
    """What is shown of a text, how many of its characters (as redacted) are not, and what was replaced by kind."""

    text: str
    missing: int
    redacted: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Window:
    """The two ends of a text as it was written; *skipped* characters between them are not kept."""

    head: str
    skipped: int = 0
    tail: str = ""

    def __len__(self) -> int:
        return len(self.head) + self.skipped + len(self.tail)

    def cut(self, limit: int, *, emails: bool = False, head_only: bool = False) -> Cut:
        """
        Return the text redacted and in at most *limit* characters, with a mark where something is missing.

        Args:
            limit: Characters, the mark included.
            emails: Replace e-mail addresses too.
            head_only: Show its beginning alone.
        """
        head = redacted(_whole_characters(self.head), emails=emails)
        counts = dict(head.counts)
        if not self.skipped:
            if len(head.text) <= limit:
                return Cut(head.text, 0, counts)
            return _ends(head.text, head.text, len(head.text), limit, counts, head_only=head_only)
        tail = redacted(_whole_characters(self.tail), emails=emails)
        for kind, count in tail.counts.items():
            counts[kind] = counts.get(kind, 0) + count
        total = len(head.text) + self.skipped + len(tail.text)
        safe_head = head.text[: max(0, len(head.text) - MARGIN)]
        return _ends(safe_head, tail.text[MARGIN:], total, limit, counts, head_only=head_only)


def windowed(text: str, shown: int) -> Window:
    """Return what must be kept of *text* so that any *shown* characters of its ends can be shown later."""
    width = shown + MARGIN
    if len(text) <= 2 * width:
        return Window(text)
    return Window(text[:width], len(text) - 2 * width, text[-width:])


def _ends(head: str, tail: str, total: int, limit: int, counts: Mapping[str, int], *, head_only: bool) -> Cut:
    room = limit - len(_gap(total))
    if room <= 0:
        shown = head[: max(0, limit)]
        return Cut(shown, total - len(shown), counts)
    front = head[: room if head_only else int(room * HEAD_SHARE)]
    back = "" if head_only else tail[max(0, len(tail) - (room - int(room * HEAD_SHARE))) :]
    missing = total - len(front) - len(back)
    return Cut(f"{front}{_gap(missing)}{back}", missing, counts)


def _gap(count: int) -> str:
    return f" […{count} characters left out…] "


def _whole_characters(text: str) -> str:
    """Return *text* without halves of characters, which no file and no request can hold."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)

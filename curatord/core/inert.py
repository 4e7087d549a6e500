"""
Making other people's text harmless to look at: in a terminal, in Markdown, on one line.

Names, descriptions and paths come from skills, transcripts and models. Printed raw they could move the cursor, colour
the screen, reverse the reading order, forge lines of a report or open a link. Everything printed or reported goes
through here: control characters and bidirectional marks become visible escapes, line ends become blanks.
"""

from __future__ import annotations

import re

__all__ = ["in_markdown", "one_line", "shorten", "visible"]

# C0 and C1 controls but tab and line feed, DEL, bidirectional controls, zero-width characters, line and paragraph
# separators, interlinear marks, the byte-order mark, tag characters, and lone surrogates that no encoder takes.
_UNSAFE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_MARKDOWN = r"([\\`*_{}\[\]<>|#!~&])"
# Many renderers make links of bare addresses too; an escaped sign within one keeps it a text.
_BARE_LINK = r"(?i)\b([a-z][a-z0-9+.-]*(?=://)|mailto(?=:)|www(?=\.))([:.])"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str) -> str:
    """Return *text* with every character that could act on a terminal shown as an escape; line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_UNSAFE, _escape, text)


def one_line(text: str) -> str:
    """Return *text* as one visible line: runs of white space become one blank."""
    return visible(re.sub(r"\s+", " ", text).strip())


def shorten(text: str, limit: int) -> str:
    """Return *text* as one line of at most *limit* characters, with an ellipsis where it was cut."""
    line = one_line(text)
    return line if len(line) <= limit else line[: max(limit - 1, 0)].rstrip() + "…"


def in_markdown(text: str) -> str:
    """Return *text* as one line that Markdown shows as it is: no markup, no HTML, no link, no table cell."""
    return re.sub(_BARE_LINK, r"\1\\\2", re.sub(_MARKDOWN, r"\\\1", one_line(text)))

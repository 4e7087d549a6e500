"""
Markdown by lines: which stand in fenced code or in a comment, what is left open at the end, headings moved down.

Only what folding one text into another needs. Line ends are whatever they are; a line here is without its end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from curatord.core.cheap import dataclass

__all__ = ["Structure", "anchor_of", "cannot_nest", "shifted", "split_lines", "structure"]

_BREAK = re.compile(r"\r\n|\r|\n")
_FENCE = re.compile(r"(?P<indent>[ \t>]*)(?P<mark>`{3,}|~{3,})(?P<info>.*)\Z", re.DOTALL)
_HEADING = re.compile(r"(?P<indent> {0,3})(?P<hashes>#{1,6})(?P<rest>(?:[ \t].*)?)\Z", re.DOTALL)
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*\Z")
_NO_PARAGRAPH = re.compile(r"\s*(?:[-*+>#|]|\d+[.)]\s|[=-]+$|`{3}|~{3}|<)")
_LABEL = re.compile(r" {0,3}\[(?P<label>[^\]\n]{1,256})\]:")
MAX_LEVEL = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """
    What a text is made of.

    Attributes:
        plain: Per line, whether it is neither fenced code (fences included) nor inside an HTML comment.
        blocks: Fenced code as (first line, last line), 0-based, fences included; one left open ends at the end.
        closes: The lines that have to follow so that nothing is left open: a fence, `-->`, or nothing.
    """

    plain: tuple[bool, ...]
    blocks: tuple[tuple[int, int], ...]
    closes: tuple[str, ...]


def split_lines(text: str) -> list[str]:
    """Return the lines of *text* without their ends; LF, CRLF and CR all end one."""
    return _BREAK.split(text)


def structure(lines: Sequence[str]) -> Structure:
    """Return what *lines* are made of."""
    plain = [True] * len(lines)
    blocks: list[tuple[int, int]] = []
    fence = indent = ""
    begun = 0
    in_comment = False
    for number, line in enumerate(lines):
        if in_comment:
            plain[number] = False
            in_comment = "-->" not in line
            continue
        found = _FENCE.match(line)
        if fence:
            plain[number] = False
            if (
                found
                and found["mark"][0] == fence[0]
                and len(found["mark"]) >= len(fence)
                and not found["info"].strip()
            ):
                blocks.append((begun, number))
                fence = ""
        elif found and (found["mark"][0] == "~" or "`" not in found["info"]):
            plain[number] = False
            fence, indent, begun = found["mark"], found["indent"], number
        elif "<!--" in line:
            tail = line[line.rindex("<!--") :]
            in_comment = "-->" not in tail
    closes: tuple[str, ...] = ()
    if fence:
        blocks.append((begun, len(lines) - 1))
        closes = (indent + fence,)
    elif in_comment:
        closes = ("-->",)
    return Structure(plain=tuple(plain), blocks=tuple(blocks), closes=closes)


def headings(lines: Sequence[str], found: Structure) -> list[tuple[int, int, str]]:
    """Return (line, level, title) of the `#` headings outside of code."""
    rows = []
    for number, line in enumerate(lines):
        if found.plain[number] and (match := _HEADING.match(line)):
            title = re.sub(r"(?:^|[ \t]+)#+[ \t]*$", "", match["rest"]).strip()
            rows.append((number, len(match["hashes"]), title))
    return rows


def cannot_nest(lines: Sequence[str], found: Structure) -> str | None:
    """
    Return why a text must stay a file of its own, in words, or None.

    Underlined headings have no deeper form, and rewriting them would take a line away.
    """
    for number, line in enumerate(lines[1:], start=1):
        above = lines[number - 1]
        if (
            found.plain[number]
            and found.plain[number - 1]
            and _UNDERLINE.match(line)
            and above.strip()
            and not _NO_PARAGRAPH.match(above)
        ):
            return "it has underlined headings, which cannot be moved down"
    return None


def labels(lines: Sequence[str], found: Structure) -> set[str]:
    """Return the labels that a text defines for its links, folded: two texts in one must not share any."""
    return {
        " ".join(match["label"].casefold().split())
        for number, line in enumerate(lines)
        if found.plain[number] and (match := _LABEL.match(line))
    }


def shifted(lines: Sequence[str], found: Structure, *, under: int) -> list[str]:
    """Return *lines* with all headings moved down so that the highest stands below a heading of the level *under*."""
    rows = headings(lines, found)
    if not rows:
        return list(lines)
    down = max(0, under + 1 - min(level for _, level, _ in rows))
    result = list(lines)
    for number, level, _ in rows:
        match = _HEADING.match(lines[number])
        assert match is not None
        result[number] = match["indent"] + "#" * min(MAX_LEVEL, level + down) + match["rest"]
    return result


def anchor_of(title: str, taken: dict[str, int]) -> str:
    """Return the anchor that renderers make of a heading; *taken* counts those before and is brought up to date."""
    slug = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
    count = taken.get(slug, 0)
    taken[slug] = count + 1
    return f"{slug}-{count}" if count else slug

"""
What curatord needs to know of a Markdown text: its headings, its links, and about how many tokens it costs.

This is no renderer. Five thousand skills must be read in seconds, so a line is looked at only where its first character
could matter, and links only where a text has the marks of one. What has to be right is fenced code: a `# comment` in a
shell example is no heading, and the fence may stand indented in a list. Tests hold it against `markdown-it-py`.

Token estimates: one token for four ASCII characters, one for each other character. English prose comes out within a
tenth of what common tokenizers say, code some fifth too low, Chinese and Japanese somewhat too high, accented Latin
too high. An estimate is only ever compared with another estimate or with a limit.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Literal
from urllib.parse import unquote

from curatord.core.cheap import dataclass

__all__ = ["BodyFacts", "Heading", "Link", "LinkKind", "estimate_tokens", "read_body"]

LinkKind = Literal["link", "path", "code", "wiki"]

MAX_HEADINGS = 1000
MAX_LINKS = 2000

# What a line that matters can begin with; all others are passed by without a regular expression. So are those that lack
# what each expression needs: a search for a short text takes a fifth of the time.
_FIRST = frozenset(" \t#`~=-<>")
_FENCE = re.compile(r"[ \t>]*(?P<mark>`{3,}|~{3,})(?P<info>.*)", re.DOTALL)
_HEADING = re.compile(r" {0,3}(?P<hashes>#{1,6})(?:[ \t]+(?P<title>.*))?\Z", re.DOTALL)
_UNDERLINE = re.compile(r" {0,3}(?P<mark>=+|-+)[ \t]*\Z")
_COMMENT = re.compile(r" {0,3}<!--")
_NO_PARAGRAPH = re.compile(r"(?:[-*+>#|]|\d+[.)]\s|[=-]+$|`{3}|~{3}|<)")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t]+)#+$")
_INLINE = re.compile(r"\]\([ \t]{0,8}(?:<(?P<angle>[^<>\n]{1,1024})>|(?P<bare>[^\s()<>]{1,1024}))")
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]{1,256}\]:[ \t]{0,8}<?(?P<target>[^\s<>]{1,1024})", re.MULTILINE)
_WIKI = re.compile(r"\[\[(?P<name>[^\]\[|#\n]{1,200})")
_PATH_TAIL = re.compile(r"/[\w.@+~/-]{0,400}")
_PATH_HEAD = re.compile(r"[\w.~@+-]*\Z")
_HEAD_CHARS = 100  # of a path before its first slash
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading outside of code; *line* is 1-based within the text that was given."""

    level: int
    title: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """
    Something that names another file.

    Attributes:
        target: A path as written (unquoted, without `#…` and `?…`), or with kind `wiki` a name.
        kind: `link` a Markdown link or image, `path` a path written in the text or in inline code, `code` a path in
            fenced code, `wiki` a `[[name]]`.
        line: 1-based within the text that was given.
    """

    target: str
    kind: LinkKind
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFacts:
    """Headings and links in the order of the text; both are cut at some thousand."""

    headings: tuple[Heading, ...]
    links: tuple[Link, ...]


def estimate_tokens(text: str) -> int:
    """Return about how many tokens *text* costs; see the module's page for the rule."""
    if text.isascii():
        return (len(text) + 3) // 4
    ascii_chars = len(text.encode("ascii", "ignore"))
    return (ascii_chars + 3) // 4 + len(text) - ascii_chars


def read_body(text: str) -> BodyFacts:
    """Return what *text* (Markdown, any line ends) has of headings and links to files."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    headings, code = _structure(lines)
    return BodyFacts(headings=tuple(headings), links=tuple(_links(text, lines, code)))


def _structure(lines: list[str]) -> tuple[list[Heading], list[tuple[int, int]]]:
    """Return the headings, and the stretches of fenced code as (first line, last line), 1-based."""
    headings: list[Heading] = []
    code: list[tuple[int, int]] = []
    fence = ""
    fence_line = 0
    in_comment = False
    for number, line in enumerate(lines, start=1):
        if in_comment:
            in_comment = "-->" not in line
            continue
        if line[:1] not in _FIRST:
            continue
        found = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence:
            if (
                found
                and found["mark"][0] == fence[0]
                and len(found["mark"]) >= len(fence)
                and not found["info"].strip()
            ):
                code.append((fence_line, number))
                fence = ""
        elif found:
            if found["mark"][0] == "~" or "`" not in found["info"]:
                fence, fence_line = found["mark"], number
        elif "<!--" in line and _COMMENT.match(line):
            in_comment = "-->" not in line
        elif len(headings) < MAX_HEADINGS:
            heading = _heading(line, lines[number - 2] if number > 1 else "", number)
            if heading:
                headings.append(heading)
    if fence:
        code.append((fence_line, len(lines)))
    return headings, code


def _heading(line: str, above: str, number: int) -> Heading | None:
    """Return the heading that *line* is, or that it makes of the line *above* it."""
    if "#" in line and (found := _HEADING.match(line)):
        title = _CLOSING_HASHES.sub("", (found["title"] or "").rstrip()).strip()
        return Heading(level=len(found["hashes"]), title=title, line=number)
    if line.rstrip(" \t")[-1:] in ("=", "-") and (found := _UNDERLINE.match(line)):
        title = above.strip()
        if title and len(above) - len(above.lstrip()) <= 3 and not _NO_PARAGRAPH.match(title):
            return Heading(level=1 if found["mark"][0] == "=" else 2, title=title, line=number)
    return None


def _links(text: str, lines: list[str], code: list[tuple[int, int]]) -> list[Link]:
    """Return the links in the order of the text; what each expression looks for, `in` rules out at once."""
    found: list[tuple[int, LinkKind, str]] = []
    taken: list[tuple[int, int]] = []  # stretches that are links already, and so no paths
    if "](" in text:
        for match in _INLINE.finditer(text):
            found.append((match.start(), "link", match["angle"] or match["bare"]))
            taken.append(match.span())
    if "]:" in text:
        for match in _DEFINITION.finditer(text):
            found.append((match.start(), "link", match["target"]))
            taken.append(match.span())
    if "[[" in text:
        for match in _WIKI.finditer(text):
            found.append((match.start(), "wiki", match["name"].strip()))
            taken.append(match.span())
    if "/" in text:
        found.extend((start, "path", path) for start, path in _paths(text, taken))
    if not found:
        return []
    found.sort()
    ends = list(accumulate(len(line) + 1 for line in lines))
    first_lines = [first for first, _ in code]
    links: list[Link] = []
    for start, kind, target in found:
        line = bisect.bisect_right(ends, start) + 1
        block = bisect.bisect_right(first_lines, line) - 1
        if block >= 0 and line <= code[block][1]:
            if kind == "wiki":
                continue  # `[[ -f x ]]` is a test in a shell
            kind = "code"
        if kind != "wiki":
            target = _path_of(target)
        if target:
            links.append(Link(target=target, kind=kind, line=line))
        if len(links) >= MAX_LINKS:
            break
    return links


def _paths(text: str, taken: list[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """Yield (offset, path) for what is written like a path, `a/b`, `../a`, `/a` or `~/a`, outside of *taken*."""
    taken.sort()
    starts = [start for start, _ in taken]
    at = 0
    while (slash := text.find("/", at)) >= 0:
        tail = _PATH_TAIL.match(text, slash)
        assert tail is not None
        at = tail.end()
        head = _PATH_HEAD.search(text[max(0, slash - _HEAD_CHARS) : slash])
        start = slash - (len(head[0]) if head else 0)
        before = text[start - 1 : start]
        if before == ":" or (before == "<" and start == slash):
            continue  # `https://…`, `</tag>`
        index = bisect.bisect_right(starts, start) - 1
        if index >= 0 and start < taken[index][1]:
            continue
        path = text[start:at].rstrip(".")
        if len(path) > 1:
            yield start, path


def _path_of(target: str) -> str:
    """Return the path in *target*, or the empty text where it leads into the network or within the same page."""
    if _SCHEME.match(target) or target.startswith(("//", "#")):
        return ""
    path = re.split("[#?]", target, maxsplit=1)[0]
    path = unquote(path) if "%" in path else path
    return "" if "\0" in path else path.replace("\\", "/")

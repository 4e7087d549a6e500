"""
What curatord needs to know of a Markdown text: its headings, its links, and about how many tokens it costs.

This is no renderer. Five thousand skills must be read in seconds, so two regular expressions find the lines and the
marks that matter, and everything else is never looked at. What has to be right is fenced code: a `# comment` in a
shell example is no heading, and the fence may stand indented in a list. Tests hold it against `markdown-it-py`.

Token estimates: one token for four ASCII characters, one for each other character. English prose comes out within a
tenth of what common tokenizers say, code some fifth too low, Chinese and Japanese somewhat too high, accented Latin
too high. An estimate is only ever compared with another estimate or with a limit.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

__all__ = ["BodyFacts", "Heading", "Link", "LinkKind", "estimate_tokens", "read_body"]

LinkKind = Literal["link", "path", "code", "wiki"]

MAX_HEADINGS = 1000
MAX_LINKS = 2000

_STRUCTURE = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$"
    r"|^ {0,3}(?P<hashes>#{1,6})(?:[ \t]+(?P<title>[^\n]*?))?[ \t]*$"
    r"|^ {0,3}(?P<under>=+|-+)[ \t]*$"
    r"|(?P<comment><!--)",
    re.MULTILINE,
)
_CLOSING_HASHES = re.compile(r"(?:^|[ \t]+)#+$")
_TARGETS = re.compile(
    r"\]\([ \t]{0,8}(?:<(?P<angle>[^<>\n]{1,1024})>|(?P<bare>[^\s()<>]{1,1024}))"
    r"|^ {0,3}\[[^\]\n]{1,256}\]:[ \t]{0,8}<?(?P<defined>[^\s<>]{1,1024})"
    r"|\[\[(?P<wiki>[^\]\[|#\n]{1,200})"
    r"|(?P<path>(?<![\w/.~:-])(?:~?/|\.{1,2}/|[\w.-]{1,100}/)[\w.@+~/-]{0,400})",
    re.MULTILINE,
)
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
    starts = [0]
    starts.extend(found.end() for found in re.finditer("\n", text))
    headings: list[Heading] = []
    code: list[tuple[int, int]] = []
    for kind, start, end, level, title in _structure(text):
        if kind == "heading":
            if len(headings) < MAX_HEADINGS:
                headings.append(Heading(level=level, title=title, line=bisect.bisect_right(starts, start)))
        elif kind == "code":
            code.append((start, end))
    return BodyFacts(headings=tuple(headings), links=tuple(_links(text, starts, code)))


def _structure(text: str) -> Iterator[tuple[Literal["heading", "code"], int, int, int, str]]:
    """Yield headings and stretches of fenced code as (kind, start, end, level, title)."""
    at = 0
    fence = ""
    fence_start = 0
    may_close = True
    while found := _STRUCTURE.search(text, at):
        at = max(found.end(), found.start() + 1)
        mark = found["fence"]
        if fence:
            if mark and mark[0] == fence[0] and len(mark) >= len(fence) and not found["info"].strip():
                yield "code", fence_start, found.end(), 0, ""
                fence = ""
        elif mark:
            if mark[0] == "~" or "`" not in found["info"]:
                fence, fence_start = mark, found.start()
        elif found["comment"]:
            # Looked for once more only while there are any: a text full of openings must not be searched for each.
            closing = text.find("-->", found.end()) if may_close else -1
            may_close = closing >= 0
            at = closing + 3 if may_close else at
        elif found["hashes"]:
            title = _CLOSING_HASHES.sub("", found["title"] or "").strip()
            yield "heading", found.start(), found.end(), len(found["hashes"]), title
        elif found["under"]:
            title = _paragraph_above(text, found.start())
            if title:
                yield "heading", found.start(), found.end(), 1 if found["under"][0] == "=" else 2, title
    if fence:
        yield "code", fence_start, len(text), 0, ""


def _paragraph_above(text: str, start: int) -> str:
    """Return the line above *start* where an underline there makes it a heading, else the empty text."""
    if start == 0:
        return ""
    begin = text.rfind("\n", 0, start - 1) + 1
    line = text[begin : start - 1]
    bare = line.strip()
    if not bare or len(line) - len(line.lstrip()) > 3 or re.match(r"(?:[-*+>#|]|\d+[.)]\s|[=-]+$|`{3}|~{3}|<)", bare):
        return ""
    return bare


def _links(text: str, starts: list[int], code: list[tuple[int, int]]) -> Iterator[Link]:
    code_starts = [start for start, _ in code]
    count = 0
    for found in _TARGETS.finditer(text):
        kind: LinkKind
        if wiki := found["wiki"]:
            kind, target = "wiki", wiki.strip()
        elif path := found["path"]:
            kind, target = "path", path.rstrip(".")
        else:
            kind, target = "link", found["angle"] or found["bare"] or found["defined"]
        inside = bisect.bisect_right(code_starts, found.start()) - 1
        if inside >= 0 and found.start() < code[inside][1]:
            if kind == "wiki":
                continue
            kind = "code"
        if kind != "wiki":
            target = _path_of(target)
        if target:
            yield Link(target=target, kind=kind, line=bisect.bisect_right(starts, found.start()))
            count += 1
            if count >= MAX_LINKS:
                return


def _path_of(target: str) -> str:
    """Return the path in *target*, or the empty text where it leads into the network or within the same page."""
    if _SCHEME.match(target) or target.startswith(("//", "#")):
        return ""
    path = re.split("[#?]", target, maxsplit=1)[0]
    path = unquote(path) if "%" in path else path
    return "" if "\0" in path else path.replace("\\", "/")

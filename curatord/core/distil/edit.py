"""
One place of a SKILL.md replaced, every other byte kept.

The text that a model saw went through JSON, and models write LF whatever they read. So where the text as given is not
there, it is looked for with the file's own line ends, and what replaces it gets them too. Found once, or nothing is
done: a second place would be changed by chance.

The header is not the model's. A patch may say the description anew (and `when_to_use`, which is part of it); when any
other key would have another value afterwards, or anything else of the header's text would change, comments too, the
patch is refused.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from curatord.core.cheap import dataclass
from curatord.core.header import Fault, SplitText, split_text
from curatord.core.plan import MAX_PATH_PARTS
from curatord.core.screen import is_unseen
from curatord.core.skill import parse_skill

__all__ = ["FOLDERS", "Edited", "NotEdited", "is_script", "open_fences", "patched", "support_path"]

FOLDERS = ("references", "templates", "scripts")
MAX_PART_BYTES = 120
_DESCRIBES = frozenset({"description", "when_to_use", "whenToUse", "when-to-use"})
_PROGRAMS = re.compile(
    r"\.(?:sh|bash|zsh|fish|ksh|command|ps1|psm1|bat|cmd|vbs|py|pyw|js|mjs|cjs|ts|rb|pl|pm|php|lua|tcl|awk|r|jl|applescript|scpt"
    r"|exe|com|jar|so|dll|dylib|hta|html?|xhtml|svg|desktop|url|lnk|reg|plist|service|ipynb|docm|xlsm)\Z|(?:\A|/)(?:Makefile|Justfile|Rakefile|Dockerfile)\Z",
    re.IGNORECASE,
)
# Names under which hosts look for skills and for instructions, in whatever folder they come upon.
_READ_BY_ITSELF = re.compile(
    r"(?:skill|(?:claude|agents|gemini|qwen|copilot-instructions)(?:[.-]\w+)?)\.md\Z|\w+\.instructions\.md\Z",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])[ ]*(?:\.|\Z)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """
    A patched SKILL.md.

    *described*: what hosts show of it in every session is another now. *lost_lines*: lines that said something, and are
    not in it any more. *lines* are those of the body.
    """

    data: bytes
    described: bool
    header_before: str
    header: str
    description_before: str
    description: str
    body_before: str
    body: str
    lines_before: int
    lines: int
    lost_lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotEdited:
    """Why a patch cannot be made."""

    code: Literal["match", "header", "nothing", "form", "locked"]
    reason: str


def patched(data: bytes, old: str, new: str) -> Edited | NotEdited:
    """Return *data*, a whole SKILL.md, with the one place that says *old* saying *new*, or why it cannot be."""
    before = split_text(data)
    skill_before = parse_skill(data)
    if isinstance(before, Fault) or isinstance(skill_before, Fault):
        return NotEdited(
            code="locked", reason=f"its text cannot be read: {before if isinstance(before, Fault) else skill_before}"
        )
    place = _place(before.text, old, new, before.eol)
    if isinstance(place, NotEdited):
        return place
    start, end, replacement = place
    text = before.text[:start] + replacement + before.text[end:]
    if text == before.text:
        return NotEdited(code="nothing", reason="it changes nothing")
    try:
        result = text.encode("utf-8")
    except UnicodeEncodeError:
        return NotEdited(code="form", reason="it holds half a character")
    after = split_text(result)
    skill_after = parse_skill(result)
    if isinstance(after, Fault) or isinstance(skill_after, Fault):
        fault = after if isinstance(after, Fault) else skill_after
        return NotEdited(code="header", reason=f"it would break the header: {fault}")
    values = {} if before.header is None else before.header.values()
    values_after = {} if after.header is None else after.header.values()
    if (before.header is None) != (after.header is None):
        return NotEdited(code="header", reason="it would make or take away the header")
    changed = {k for k in values.keys() | values_after.keys() if values.get(k) != values_after.get(k)}
    changed |= values.keys() ^ values_after.keys()
    if changed - _DESCRIBES:
        return NotEdited(
            code="header", reason=f"it would change the header's {', '.join(sorted(changed - _DESCRIBES))}"
        )
    if _frame(before) != _frame(after):
        return NotEdited(code="header", reason="it would change more of the header than the description's words")
    if after.header is not None and before.header is not None and set(after.header.mended) - set(before.header.mended):
        return NotEdited(code="header", reason="its description could not be read without quotes")
    if not skill_after.body.strip() and skill_before.body.strip():
        return NotEdited(code="nothing", reason="it would leave an empty body")
    if open_fences(skill_after.body) and not open_fences(skill_before.body):
        return NotEdited(code="form", reason="a code block would not be closed")
    return Edited(
        data=result,
        described=bool(changed) or _header_text(before) != _header_text(after),
        header_before=_header_text(before),
        header=_header_text(after),
        description_before=_described(before, skill_before.description),
        description=_described(after, skill_after.description),
        body_before=skill_before.body,
        body=skill_after.body,
        lines_before=len(skill_before.body.splitlines()),
        lines=len(skill_after.body.splitlines()),
        lost_lines=_lost_lines(before.text, text),
    )


def support_path(path: str) -> str | None:
    """
    Return a model's path for a support file, as it is, or None where it is no plain path under one of three folders.
    """
    parts = path.split("/")
    if not 2 <= len(parts) <= MAX_PATH_PARTS - 2 or parts[0] not in FOLDERS:
        return None
    for part in parts:
        if (
            part.startswith(".")
            or part != part.strip()
            or part.rstrip(".") != part
            or len(part.encode("utf-8", "replace")) > MAX_PART_BYTES
        ):
            return None
        if not part or _RESERVED.match(part) or unicodedata.normalize("NFC", part) != part:
            return None
        # Letters, digits and what names of files are made of: nothing that a shell or another file system would take
        # for more, also where it is another form of it (a full stop of another width).
        plain = unicodedata.normalize("NFKC", part)
        if plain.startswith(("-", ".")) or plain in (".", "..") or any(not _is_plain(char) for char in plain):
            return None
    if _READ_BY_ITSELF.match(parts[-1]) or is_unseen(path):
        return None
    return path


def _is_plain(char: str) -> bool:
    return char in " ._-+,@()" or unicodedata.category(char)[0] in "LMN"


def is_script(path: str, content: bytes) -> bool:
    """Return whether a support file is one to be run: by its folder, its name, or its first line."""
    first = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    return path.startswith("scripts/") or _PROGRAMS.search(path) is not None or first.startswith(b"#!")


def _place(text: str, old: str, new: str, eol: str) -> tuple[int, int, str] | NotEdited:
    """Return where the one occurrence of *old* is, and what takes its place."""
    if not old.strip():
        return NotEdited(code="match", reason="what it would replace is blank")
    for ends in dict.fromkeys((None, eol, "\r\n", "\n", "\r")):
        wanted = old if ends is None else _with_ends(old, ends)
        first = text.find(wanted)
        if first < 0:
            continue
        if text.find(wanted, first + 1) >= 0:
            return NotEdited(code="match", reason="what it would replace stands there more than once")
        used = ends if ends is not None else _ends_near(text, first, first + len(wanted), eol)
        return first, first + len(wanted), _with_ends(new, used)
    return NotEdited(code="match", reason="what it would replace does not stand there")


def _ends_near(text: str, start: int, end: int, eol: str) -> str:
    """Return the line end that the place at *start* uses: that within it, else of the file."""
    found = re.search(r"\r\n|\r|\n", text[start:end])
    return found[0] if found else eol


def _with_ends(text: str, eol: str) -> str:
    return re.sub(r"\r\n|\r|\n", lambda _: eol, text)


def _header_text(split: SplitText) -> str:
    return "" if split.header is None else split.text[split.header.start : split.header.end]


def _frame(split: SplitText) -> str:
    """Return the header's text without the lines that describe; what is left is nobody's to change."""
    if split.header is None:
        return ""
    text, at, kept = split.text, split.header.start, []
    for entry in sorted(split.header.entries, key=lambda entry: entry.start):
        if entry.key not in _DESCRIBES:
            continue
        start, end = entry.start, entry.end
        found = list(re.finditer(rf"(?:\A|(?<=[\r\n]))[\"']?{re.escape(entry.key)}[\"']?[ \t]*:\s*\Z", text[at:start]))
        if found:
            start = at + found[-1].start()
            blank = re.compile(r"[ \t]*(?:\r\n|\r|\n|\Z)").match(text, end)
            end = blank.end() if blank else end
        value = text[entry.start : entry.end]
        kept.append(text[at:start])
        if entry.style == "block":  # `| # words`: a comment beside the sign of a block is no part of the value
            kept.append(value.splitlines()[0].lstrip("|>+-0123456789 \t") if value else "")
        elif entry.style == "nested":
            kept.append(value)
        at = end
    kept.append(text[at : max(at, split.header.end)])
    return "".join(kept)


def _described(split: SplitText, description: str) -> str:
    """Return all words that describe, under whichever keys: hosts differ in which of them they show."""
    values = {} if split.header is None else split.header.values()
    said = [description, *(str(v) for k, v in values.items() if k in _DESCRIBES and v is not None)]
    return " ".join(dict.fromkeys(said)).strip()


def _lost_lines(before: str, after: str) -> int:
    kept = {" ".join(line.split()) for line in after.splitlines()}
    return sum(bool(line.strip()) and " ".join(line.split()) not in kept for line in before.splitlines())


def open_fences(body: str) -> bool:
    """Return whether the last code block of *body* is not closed (CommonMark, 4.5)."""
    fence = ""
    for match in _FENCE.finditer(body.replace("\r\n", "\n").replace("\r", "\n")):
        marks, rest = match[1], match[2]
        if not fence:
            if marks[0] == "~" or "`" not in rest:
                fence = marks
        elif marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip():
            fence = ""
    return bool(fence)

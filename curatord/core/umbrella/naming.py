"""
Words of a model on their way to disk: names, descriptions, overviews, titles and paths, made harmless or refused.

A name that leads anywhere (`../x`, `/abs`, a control character) is refused, never mended: who writes such a thing means
no name. What merely misses the rules of the specification (`Net Kit`) is brought to them; what cannot be written in a
layout's alphabet gets a short hash, so that it is never empty and two different names never become one (bugs B073).
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Collection
from hashlib import sha256
from typing import Protocol

from curatord.core.agent_skills import MAX_DESCRIPTION, MAX_NAME, Layout
from curatord.core.plan import MAX_PATH_PARTS, RESERVED, fold
from curatord.core.screen import Where, is_unseen, new_findings
from curatord.core.umbrella.links import find_references

__all__ = [
    "Screen",
    "cleaned_path",
    "cleaned_text",
    "description_of",
    "free_name",
    "overview_of",
    "screened",
    "valid_name",
]

MAX_OVERVIEW = 6_000
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|\Z)")


class Screen(Protocol):
    """Says why a model's text may not be written into a skill; `screened` is the one that is used."""

    def __call__(self, text: str, where: Where = "body", *, before: str = "") -> str | None:
        """Return why *text* may not be written there, in words, or None; what stands in *before* is no news."""
        ...


def valid_name(name: str, layout: Layout) -> str | None:
    """
    Return *name* as a skill of the layout may be called, or None where it leads somewhere or says nothing.

    Lower case, letters, digits and single hyphens, 64 characters at most (the specification, section `name`).
    """
    if not name.strip() or any(char in "/\\\0:" for char in name) or _hides(name) or ".." in name:
        return None
    whole = unicodedata.normalize("NFKC", name).strip().lower()
    ascii_only = layout == "hermes"
    kept = "".join(
        char if char.isalnum() and (char.isascii() or not ascii_only) else "-" if char in " _-.–—" else "\0"
        for char in whole
    )
    lost = "\0" in kept
    slug = re.sub(r"-+", "-", kept.replace("\0", "")).strip("-")
    if lost or not slug or len(slug) > MAX_NAME:
        # Something had to go, so a hash of the whole keeps two names apart.
        mark = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:6]
        slug = f"{slug[: MAX_NAME - 7].strip('-')}-{mark}".strip("-") if slug else f"skills-{mark}"
    return None if slug in RESERVED else slug  # a name of a device: it cannot be checked out everywhere


def _hides(text: str) -> bool:
    return _HIDDEN.search(text) is not None or is_unseen(text)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return *name*, or where a skill is called so already, in whatever case or Unicode form, one made of it."""
    folded = {fold(other) for other in taken}
    if fold(name) not in folded:
        return name
    stem = name[: MAX_NAME - 9].rstrip("-")
    number = 1
    while True:
        candidate = f"{stem}-guide" if number == 1 else f"{stem}-guide-{number}"
        if fold(candidate) not in folded:
            return candidate
        number += 1


def cleaned_text(text: str) -> str:
    """Return *text* without characters that are not seen or act on a reader's screen, with LF for line ends."""
    return _HIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def description_of(text: str) -> tuple[str, str]:
    """Return a description as one line of at most 1,024 characters, and a note where it had to be shortened."""
    # Some readers of SKILL.md end its header at the first `---`, wherever that stands.
    line = re.sub("-{3,}", "–", " ".join(cleaned_text(text).split()))
    return _shortened(line, MAX_DESCRIPTION, "description")


def overview_of(text: str) -> tuple[str, tuple[str, ...]]:
    """
    Return an overview that can be written into a SKILL.md, and notes on what had to go.

    Links to files go, and their words stay: a model has not seen where code puts things.
    """
    notes = []
    cleaned = cleaned_text(text).replace("<!--", "").replace("-->", "").strip()
    plain, note = _shortened(cleaned, MAX_OVERVIEW, "overview")
    if note:
        notes.append(note)
    without = _without_links(plain)
    if without != plain:
        notes.append("links in the overview were taken out: they led to files that no one had")
    return without, tuple(notes)


def cleaned_path(path: str) -> str | None:
    """
    Return a model's path for a file within the package: itself, empty where code shall choose, None where refused.

    Refused is what leads out, or is no plain path; whatever lies outside the three folders is left to code.
    """
    if not path.strip():
        return ""
    if _hides(path) or "\\" in path or "\0" in path or ":" in path or path.startswith(("/", "~")):
        return None
    parts = path.split("/")
    if any(part in ("", ".", "..") or part.strip() != part or part.rstrip(".") != part for part in parts):
        return None
    if len(parts) < 2 or len(parts) > MAX_PATH_PARTS - 2 or parts[0] not in ("references", "templates", "scripts"):
        return ""
    if any(len(part.encode()) > 120 for part in parts) or posixpath.basename(path).startswith("."):
        return ""
    return path


def screened(text: str, where: Where = "body", *, before: str = "") -> str | None:
    """
    Return why *text* of a model may not be written into a skill, in words, or None.

    *before*: what it is made of; what stood there is no news, and a merge is not to blame for it.
    """
    found = new_findings(before, text, where=where)
    return f"{found[0].words}: {found[0].excerpt}" if found else None


def _shortened(text: str, limit: int, what: str) -> tuple[str, str]:
    if len(text) <= limit:
        return text, ""
    cut = text[:limit]
    ends = [found.end() for found in _SENTENCE_END.finditer(cut)]
    kept = cut[: ends[-1]] if ends and ends[-1] > limit // 2 else cut.rsplit(" ", 1)[0]
    return kept.rstrip(), f"the {what} had {len(text):,} characters and was shortened to {len(kept):,}"


def _without_links(text: str) -> str:
    """Return *text* in which links that are no URLs are their own words."""
    pieces: list[str] = []
    at = 0
    for reference in find_references(text, mentions=False):
        if reference.kind != "link" or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", reference.raw):
            continue
        begin = text.rfind("](", at, reference.start)
        opening = text.rfind("[", at, begin) if begin >= 0 else -1
        closing = text.find(")", reference.end)
        if opening < 0 or closing < 0:
            continue
        pieces += (text[at:opening].removesuffix("!"), text[opening + 1 : begin])
        at = closing + 1
    return "".join((*pieces, text[at:])) if pieces else text

r"""
Whether a user asked in so many words that something be kept.

Patterns stand in `wishes.txt` of the prompts folder, one a line, in a small language of its own: a user's regular
expression could run for hours on a transcript, and nobody wants to quote parentheses for a sentence.

    # a comment
    remember (this|that) for next time      words; any white space between them; one of several
    keep this as a skill: NAME              NAME is the name that the skill shall have
    make * a skill                          `*` is up to 60 characters of the same sentence

Case does not matter, nor do the forms of quotes and blanks. A word of letters is only found as a whole word; scripts
without blanks between words are found anywhere. What stands in code blocks or behind `>` was pasted, not said, and a
wish with a `don't` before it is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from curatord.core.cheap import dataclass

__all__ = ["MAX_PATTERNS", "Wish", "Wishes", "parse_wishes"]

MAX_PATTERNS = 500
MAX_PATTERN_CHARS = 200
READ_CHARS = 20_000
_PIECE = re.compile(r"\(([^()]*)\)|(\s*\*\s*)|(?<!\w)(NAME)(?!\w)|(\s+)|([^()*\s]+?(?=[()*\s]|\Z))", re.DOTALL)
_GAP = r"[^.!?\n。！？]{0,60}?"
_NAME = r"[\"'`«“„「『]?(?P<name{n}>[^\W_](?:[\w-]{{0,62}}[^\W_])?)"
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_QUOTED = re.compile(r"^[ \t]{0,3}>[^\n]*$", re.MULTILINE)
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " ", "\u202f": " "})
_NEGATION = (
    r"(?:\b(?:don'?t|do not|never|not|no need to|needn'?t|without|nicht|kein\w*|nie|ne|pas|jamais|no|nunca"
    r"|n[aã]o|non|niet|не)\b|n't|不要|不用|别|別|不必|ないで|しなくて|하지 마)"
)
_NOT_BEFORE = re.compile(rf"{_NEGATION}[^.!?\n]{{0,25}}\Z", re.IGNORECASE)
_NOT_WITHIN = re.compile(_NEGATION, re.IGNORECASE)
_NOT_BEHIND = re.compile(r"[^.!?\n]{0,12}(?:しないで|しなくて|하지 마|nicht\b|niet\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was said; *name* is the skill's where the user named it."""

    words: str
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The patterns, ready; *faults* say in words which lines could not be used."""

    patterns: tuple[re.Pattern[str], ...] = ()
    faults: tuple[str, ...] = ()

    def found(self, text: str) -> Wish | None:
        """Return the first wish in a user's *text*, one that names a skill before one that does not, or None."""
        said = _said(text)
        plain: Wish | None = None
        for pattern in self.patterns:
            for match in pattern.finditer(said):
                before = said[max(0, match.start() - 40) : match.start()]
                if _NOT_BEFORE.search(before) or _NOT_WITHIN.search(match[0]) or _NOT_BEHIND.match(said, match.end()):
                    continue
                names = [value for value in match.groupdict().values() if value]
                if names:
                    return Wish(words=" ".join(match[0].split()), name=names[0])
                plain = plain or Wish(words=" ".join(match[0].split()))
                break
        return plain


def parse_wishes(text: str) -> Wishes:
    """Return the patterns of a `wishes.txt`; a line that cannot be used is told, and the others count."""
    patterns: list[re.Pattern[str]] = []
    faults: list[str] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip().lstrip("\ufeff").strip()
        if not line or line.startswith("#"):
            continue
        if len(line) > MAX_PATTERN_CHARS:
            faults.append(f"line {number} has {len(line)} characters; at most {MAX_PATTERN_CHARS} are taken")
            continue
        if len(patterns) >= MAX_PATTERNS:
            faults.append(f"line {number} and those after it: at most {MAX_PATTERNS} patterns are taken")
            break
        compiled = _compiled(line)
        if isinstance(compiled, str):
            faults.append(f"line {number}: {compiled}")
        else:
            patterns.append(compiled)
    return Wishes(patterns=tuple(patterns), faults=tuple(faults))


def _compiled(line: str) -> re.Pattern[str] | str:
    folded = _folded(line)
    if folded.count("(") != folded.count(")"):
        return "a parenthesis is not closed"
    pieces: list[str] = []
    at = names = 0
    words = False
    while at < len(folded):
        match = _PIECE.match(folded, at)
        if match is None or match.end() == at:
            return f"cannot be read at {folded[at : at + 20]!r}"
        at = match.end()
        choice, star, name, blank, word = match.groups()
        if choice is not None:
            options = [option.strip() for option in choice.split("|")]
            pieces.append("(?:" + "|".join(_words(option) for option in options) + ")")
            words = words or any(options)
        elif star:
            # With blanks around it stands for whole words; without, as scripts without blanks need it, for anything.
            pieces.append(_GAP if star == "*" else rf"(?!\w){_GAP}(?<!\w)")
        elif name:
            names += 1
            pieces.append(_NAME.format(n=names))
        elif blank:
            pieces.append(r"\s+" if pieces and not pieces[-1].startswith(r"\s") else "")
        else:
            pieces.append(_words(word))
            words = True
    if not words:
        return "it has no word"
    body = "".join(pieces)
    before = r"(?<!\w)" if _letter(folded[0]) else ""
    after = r"(?!\w)" if _letter(folded[-1]) else ""
    return re.compile(before + body + after, re.IGNORECASE)


def _words(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in text.split())


def _letter(char: str) -> bool:
    """Return whether *char* is a letter of a script that puts blanks between words."""
    return char.isalnum() and not unicodedata.name(char, "").startswith(
        ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI")
    )


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).translate(_QUOTES)


def _said(text: str) -> str:
    """Return what of *text* its author said: without code blocks and quoted lines."""
    folded = _folded(text[:READ_CHARS])
    if "```" in folded or "~~~" in folded:
        folded = "\n".join(_outside_fences(folded.split("\n")))
    return _QUOTED.sub("", folded)


def _outside_fences(lines: Iterable[str]) -> Iterable[str]:
    fence = ""
    for line in lines:
        match = _FENCE.match(line)
        if match and not fence:
            fence = match[1]
        elif match and match[1].startswith(fence):
            fence = ""
        elif not fence:
            yield line

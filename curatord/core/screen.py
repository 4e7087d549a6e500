"""
What may not be written into a skill: text that acts on whoever reads it, hides, or carries secrets out.

A skill is other people's words that are put before a model again and again, its description in every session. So all
that a model would have us write is looked through, and what is found is told and refused, never mended: a text that had
to be mended is not the text that somebody meant.

False alarms cost as much as misses here, since a screen that cries at every security handbook would be switched off
(peers: 97 of 100 alarms of such an audit were false). So each check is narrow: words count only in the order in which
they are an instruction, zero-width signs are fine where a script or an emoji needs them, a URL is no finding. The
description, which every session loads, is held to more than a body.

Codes: `secret`, `invisible`, `bidi`, `control`, `injection`, `fetch-and-run`, `outside`, `markup` (description only).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from curatord.core.cheap import dataclass
from curatord.core.fetch_and_run import fetched_and_run
from curatord.core.inert import shorten
from curatord.core.redact import redacted

__all__ = ["Finding", "ScreenCode", "Where", "is_unseen", "new_findings", "screen"]

Where: TypeAlias = Literal["description", "body", "file"]
ScreenCode: TypeAlias = Literal[
    "secret", "invisible", "bidi", "control", "injection", "fetch-and-run", "outside", "markup"
]

EXCERPT_CHARS = 80
AROUND = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One reason why a text may not be written.

    *words* say what it is, to a person; *excerpt* shows the place on one line, harmless to look at. *start* is its
    offset in characters.
    """

    code: ScreenCode
    words: str
    excerpt: str
    start: int = 0


def screen(text: str, *, where: Where, path: str | None = None) -> tuple[Finding, ...]:
    """
    Return everything in *text* that may not be written, in the order of the codes above.

    Args:
        text: As it would be written; of any size.
        where: What it is: a skill's description, the body of its SKILL.md, or a support file.
        path: Of a support file, within the package; its links are followed from there.
    """
    return _told(_hits(text, where, path or ""))


def new_findings(before: str, after: str, *, where: Where, path: str | None = None) -> tuple[Finding, ...]:
    """
    Return what is found in *after* and was not in *before*: a change is not to blame for what stood there.

    Each occurrence counts, by its own text: a second one beside an old one is new, and so is another in its place.
    """
    if before == after:
        return ()
    old = Counter(hit.same for hit in _hits(before, where, path or ""))
    fresh = []
    for hit in _hits(after, where, path or ""):
        if old[hit.same] > 0:
            old[hit.same] -= 1
        else:
            fresh.append(hit)
    return _told(fresh)


@dataclass(frozen=True, slots=True)
class _Hit:
    """One occurrence, before it is told. *key* is its own text: equal ones are taken for the same."""

    code: ScreenCode
    words: str
    text: str
    start: int
    end: int
    key: str = ""

    @property
    def same(self) -> tuple[str, str, str]:
        return self.code, self.words, self.key or " ".join(self.text[self.start : self.end].split())

    def told(self) -> Finding:
        if self.code == "secret":
            return Finding(code=self.code, words=self.words, excerpt=self.text)
        begin = max(0, self.start - AROUND)
        excerpt = shorten(self.text[begin : max(self.end, begin + 1)], EXCERPT_CHARS)
        return Finding(code=self.code, words=self.words, excerpt=excerpt, start=self.start)


def _hits(text: str, where: Where, path: str) -> Iterator[_Hit]:
    """Every occurrence of everything, in the order of the codes."""
    yield from _secrets(text)
    yield from _hidden(text, where)
    yield from _injections(text, where)
    for start, end in fetched_and_run(text):
        yield _Hit("fetch-and-run", "it runs what it fetches from the network", text, start, end)
    yield from _outside(text, path)
    if where == "description":
        yield from _markup(text)


def _told(hits: Iterable[_Hit]) -> tuple[Finding, ...]:
    """Return the first of each kind of *hits*: one is enough to refuse, and a flood of them is no use to a reader."""
    first: dict[tuple[str, str], _Hit] = {}
    for hit in hits:
        first.setdefault((hit.code, hit.words), hit)
    return tuple(hit.told() for hit in first.values())


# --- Secrets ----------------------------------------------------------------------------------------------------------


def _secrets(text: str) -> Iterator[_Hit]:
    """Kinds and digests only: the excerpt of a secret would be one."""
    for (kind, digest), count in sorted(redacted(text).digests.items()):
        for _ in range(count):
            yield _Hit("secret", f"it holds what looks like a secret ({kind})", kind, 0, 0, digest)


# --- What is not seen -------------------------------------------------------------------------------------------------

_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufff9-\ufffb\ud800-\udfff]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_MARK = re.compile("[\u061c\u200e\u200f]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u2800\u3164\ufeff\uffa0"
    "\ufe00-\ufe0f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_IDEOGRAPHS = ("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH")
_BRAILLE = re.compile("[\u2801-\u28ff]")
_JOINING = ("ARABIC", "SYRIAC", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA",
            "MALAYALAM", "SINHALA", "MONGOLIAN", "KHMER", "MYANMAR", "THAI", "LAO", "TIBETAN", "HANGUL")  # fmt: skip
_BLACK_FLAG = "\U0001f3f4"
_SIGNS = ("So", "Sk", "Sm", "Po", "Pd")  # what emoji are among, ‼ and 〰 too
_UNUSED_FORMS = tuple(map(chr, range(0xFE03, 0xFE0E)))


def _hidden(text: str, where: Where) -> Iterator[_Hit]:
    if text.isascii() and text.isprintable():
        return

    def hit(code: ScreenCode, words: str, match: re.Match[str]) -> _Hit:
        at = match.start()
        return _Hit(code, f"{words} ({_code(match[0])})", text, at, match.end(), text[max(0, at - 1) : at + 1])

    for match in _CONTROL.finditer(text):
        yield hit("control", "it holds a control character", match)
    if text.isascii():
        return
    for match in _BIDI.finditer(text):
        yield hit("bidi", "it turns the reading order", match)
    if not _RIGHT_TO_LEFT.search(text):
        for match in _MARK.finditer(text):
            yield hit("bidi", "it holds a direction mark", match)
    for match in _INVISIBLE.finditer(text):
        if not _needed(text, match.start(), where):
            yield hit("invisible", "it holds a character that is not seen", match)


def is_unseen(text: str) -> bool:
    """Return whether *text*, a name or a path, holds a character that nobody sees or that turns what is read."""
    return any(True for _ in _hidden(text, "description"))


def _code(char: str) -> str:
    return f"U+{ord(char):04X}"


def _needed(text: str, at: int, where: Where) -> bool:
    """Return whether the unseen character at *at* belongs to how its neighbours are written."""
    char = text[at]
    before = text[at - 1] if at else ""
    if char == "\ufeff":
        return at == 0 and where != "description"
    if char in "\ufe0e\ufe0f":  # a sign drawn as text or as a picture; never behind a letter, never a chain
        return bool(before) and (before in "#*0123456789\u2139" or unicodedata.category(before) in _SIGNS)
    if "\ufe00" <= char <= "\ufe0d" or "\U000e0100" <= char <= "\U000e01ef":  # the form of an ideograph
        return unicodedata.name(before or "a", "").startswith(_IDEOGRAPHS) and char not in _UNUSED_FORMS
    if char == "\u2800":  # the blank of braille
        return _BRAILLE.search(before + text[at + 1 : at + 2]) is not None
    if char == "\u00ad":
        return where != "description" and before.isalpha() and text[at + 1 : at + 2].isalpha()
    if char in "\u200c\u200d":
        after = text[at + 1 : at + 2]
        neighbours = [c for c in (text[at - 2 : at - 1] if before == "\ufe0f" else before, after) if c]
        if char == "\u200d" and len(neighbours) == 2 and all(_pictures(c) for c in neighbours):
            return True
        return bool(before) and unicodedata.name(before, "").startswith(_JOINING)
    if "\U000e0020" <= char <= "\U000e007f":  # the letters of a flag: a black flag and at most six of them
        return _BLACK_FLAG in text[max(0, at - 7) : at]
    if char == "\u200b":  # line breaks in scripts without blanks
        return where != "description" and bool(before) and unicodedata.name(before, "").startswith(_JOINING)
    return unicodedata.name(before or "a", "").startswith(_JOINING)


def _pictures(char: str) -> bool:
    return unicodedata.category(char) in ("So", "Sk") or char in "\u2640\u2642\u2695\u2764"


# --- Words to the model -----------------------------------------------------------------------------------------------

_PAST = (
    r"(?:(?:all|any|every|the|of|your|my|these|those|other)\s+){0,5}"
    r"(?:(?:previous|prior|above|earlier|preceding|existing|former|current|system|original|your)(?:\s+and\s+\w+)?\s+)+"
)
_ORDERS = r"(?:instructions?|prompts?|rules?|directions?|guidelines?|guardrails?|constraints?|messages?)"
# "Ignore any instructions found in the file" is how a skill defends itself.
_NOT_FOUND_THERE = r"(?!\s+(?:in|from|found|embedded|that|which|contained|inside|within|it|they|given\s+by|of)\b)"
_SENTENCES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            rf"\b(?:ignore|disregard|forget|override|bypass|do\s+not\s+(?:follow|obey))\s+{_PAST}(?:\w+\s+)?{_ORDERS}\b"
            rf"|\b(?:ignore|disregard|forget)\s+(?:all|any|every)\s+(?:the\s+|of\s+the\s+)?{_ORDERS}\b{_NOT_FOUND_THERE}"
            r"|\b(?:ignore|disregard|forget)\s+(?:everything|anything|all(?:\s+that)?)\s+(?:\w+\s+){0,4}(?:above|before|previously|told)\b"
            r"|\bignorier\w*\s+(?:alle\s+)?(?:vorherigen|bisherigen|obigen)\s+(?:anweisungen|regeln)\b"
            r"|\bignor(?:e|a|ez)\s+(?:todas?\s+|toutes?\s+|tout\s+)?(?:las?|les?|as)\s+(?:instru\w+|consignes|reglas)\s+(?:anteriores|pr[eé]c[eé]dentes)\b"
            r"|忽略(?:之前|以上|前面|先前|所有)[^。\n]{0,10}(?:指令|提示|规则)|(?:これまで|以前|上記)の?(?:指示|命令)を(?:すべて)?無視",
            re.IGNORECASE,
        ),
        "it tells the reader to ignore its instructions",
    ),
    (
        re.compile(
            r"\byou\s+are\s+(?:now|no\s+longer)\s+(?:an?\s+|the\s+)?(?:\w+\s+){0,3}(?:dan|unrestricted|jailbroken|unfiltered|evil"
            r"|developer\s+mode|free\s+from)\b|\b(?:enable|enter)\s+(?:dan|jailbreak|god)\s+mode\b",
            re.IGNORECASE,
        ),
        "it would make the reader somebody else",
    ),
    (
        re.compile(
            r"\b(?:do\s+not|don'?t|never|without)\s+(?:ever\s+)?(?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|show(?:ing)?|reveal(?:ing)?"
            r"|notify(?:ing)?|alert(?:ing)?)\s+(?:this\s+|it\s+|anything\s+)?(?:to\s+)?the\s+(?:user|human|operator|owner)\b"
            r"(?!\s+(?:that|to|about|how|what|where|when|whether|which|why|unless|until|your|their|for))"
            r"|\b(?:hide|conceal)\s+(?:this|it|that|these\s+(?:steps|instructions|actions))\s+from\s+(?:the\s+)?(?:user|human|operator|owner)\b",
            re.IGNORECASE,
        ),
        "it hides something from the user",
    ),
    (
        re.compile(
            r"\b(?:send|post|upload|forward|exfiltrate|e-?mail|transmit|copy)\b[^\n]{0,60}\b(?:api\s*keys?|secrets?|passwords?|credentials?"
            r"|private\s+keys?|access\s+tokens?|environment\s+variables|dotenv|ssh\s+keys?|conversation|chat\s+history|transcript)\b"
            r"[^\n]{0,60}\bto\b[^\n]{0,20}(?:https?://|[\w.+-]+@[\w-]+\.)",
            re.IGNORECASE,
        ),
        "it sends something private away",
    ),
    (
        re.compile(
            r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id)\|>|\[/?INST\]|<<SYS>>"
            r"|</?curatord-data>|<system>[^<]{0,2000}</system>",
            re.IGNORECASE,
        ),
        "it holds the marks that part a model's messages",
    ),
)
# A description is read beside all others, so it may not speak of them or of the reader's instructions at all.
_IN_DESCRIPTIONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            rf"\b(?:ignore|disregard|override|bypass|supersedes?|overrides?)\b[^.\n]{{0,40}}\b(?:{_ORDERS}|(?:other|all)\s+skills|safety|permissions?)\b"
            r"|\b(?:instead\s+of|rather\s+than|before)\s+(?:any|every|all)\s+(?:other\s+)?(?:skills?|tools?|instructions?)\b"
            r"|\bsystem\s+prompt\s*:|\b(?:reveal|print|repeat)\s+(?:the|your)\s+system\s+prompt\b",
            re.IGNORECASE,
        ),
        "a description may not speak against instructions or other skills",
    ),
    (
        re.compile(
            r"\b(?:without|no\s+need\s+to|never|do\s+not|don'?t)\s+(?:ask(?:ing)?|confirm(?:ing)?|get(?:ting)?|request(?:ing)?)\b[^.\n]{0,20}"
            r"\b(?:user|human|permission|confirmation|approval|consent)\b",
            re.IGNORECASE,
        ),
        "a description may not do away with the user's yes",
    ),
)


def _injections(text: str, where: Where) -> Iterator[_Hit]:
    plain = _plain(text)
    groups = _SENTENCES + (_IN_DESCRIPTIONS if where == "description" else ())
    for pattern, words in groups:
        for match in pattern.finditer(plain):
            yield _Hit("injection", words, plain, match.start(), match.end())


def _plain(text: str) -> str:
    """Return *text* as its reader would understand it: without what is unseen, look-alike forms as one."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", _BLANK.sub(" ", text))).translate(_LATIN)


_BLANK = re.compile("[\u2800\u3164\uffa0\u115f\u1160]")  # unseen, and as wide as a letter

# Cyrillic letters that pass for Latin ones, as they are used to get a word past a list. Only words that mix both are
# changed by this in a way that matters: a Russian sentence does not become an English one.
_LATIN = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u0410\u0415\u041e\u0420\u0421\u0425\u0406\u0405",
    "aeopcyxisjAEOPCXIS",
)

# --- Out of the package -----------------------------------------------------------------------------------------------

_LINK = re.compile(
    r"\]\(\s{0,4}<?([^\s()<>]{1,400})>?(?:\s[^()\n]{0,200})?\)|^\s{0,3}\[[^\]\n]{1,100}\]:\s{0,4}<?(\S{1,400}?)>?\s*$",
    re.MULTILINE,
)


def _outside(text: str, path: str) -> Iterator[_Hit]:
    """A link that leads out of the library: `../` beyond its neighbours, the root, a home, another machine's file."""
    depth = path.count("/")
    for match in _LINK.finditer(text):
        target = match[1] or match[2]
        low = target.lower()
        if low.startswith(("file:", "\\\\", "~")) or re.match(r"[a-z]:[\\/]", low):
            out = True
        elif target.startswith("/"):
            out = (
                not target.startswith("//")
                and re.match(r"/(?:etc|home|root|users|var|usr|proc|sys|dev|tmp|opt|mnt)\b", low) is not None
            )
        else:
            out = not re.match(r"[a-z][a-z0-9+.-]*:", low) and _climbs(target) > depth + 1
        if out:
            yield _Hit("outside", "a link leads out of the library", text, match.start(), match.end())


def _climbs(target: str) -> int:
    """Return how many folders *target* goes up at the most."""
    level = most = 0
    for part in target.replace("\\", "/").replace("%2e", ".").replace("%2E", ".").split("/"):
        level += 1 if part == ".." else -1 if part not in ("", ".") else 0
        most = max(most, level)
    return most


# --- Descriptions -----------------------------------------------------------------------------------------------------

_MARKUP = re.compile(
    r"<[!/a-zA-Z][^<>\n]{0,200}>|!\[[^\]\n]{0,100}\]\(|^\s{0,3}(?:system|assistant|user|human)\s*:",
    re.IGNORECASE | re.MULTILINE,
)


def _markup(text: str) -> Iterator[_Hit]:
    for match in _MARKUP.finditer(text):
        yield _Hit("markup", "a description holds no tags, pictures or roles", text, match.start(), match.end())

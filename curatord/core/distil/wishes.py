r"""
Whether a user asked in so many words that something be kept.

Patterns stand in `wishes.txt` of the prompts folder, one a line, in a small language of its own: a user's regular
expression could run for hours on a transcript, and nobody wants to quote parentheses for a sentence.

    # a comment
    remember (this|that) for next time      words; any white space between them; one of several
    keep this as a skill: NAME              NAME is the name that the skill shall have
    make * a skill                          `*` is up to 60 characters of the same sentence

Case does not matter, nor do the forms of quotes and blanks. A word of letters is only found as a whole word; scripts
without blanks between words are found anywhere.

Saying the words is not yet asking: people paste pages, quote logs, and ask how a skill is made. What a wish opens is
large (one session writes a skill), and what is missed costs little (the lesson waits to be seen again), so in doubt
there is none. These are no wishes:

- what was pasted: code blocks, lines behind `>`, quotation marks around more than a name, elements in angle brackets,
  what follows a line like `Here is the page:`, and what is said to `AI agents:`;
- a question (`Could you …?` is polite, and one), a `how`, `when` or `if` in the same clause, a tale (`I make …`);
- what has a `don't` before it.
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
SENTENCE_CHARS = 200  # as much of a sentence as is looked at on either side of a wish
_PIECE = re.compile(r"\(([^()]*)\)|(\s*\*\s*)|(?<!\w)(NAME)(?!\w)|(\s+)|([^()*\s]+?(?=[()*\s]|\Z))", re.DOTALL)
_GAP = r"[^.!?\n。！？]{0,60}?"
_NAME = r"[\"'`«“„「『]?(?P<name{n}>[^\W_](?:[\w-]{{0,62}}[^\W_])?)"
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_QUOTED = re.compile(r"^[ \t]{0,3}>[^\n]*$", re.MULTILINE)
# Between two marks of one kind; what has no blank in it is a name, and stays.
_IN_QUOTES = re.compile(
    r"(?<!\w)[\"\u201e](?=\S)[^\"\u201e]*\"(?!\w)|(?<!\w)'(?=\S)[^'\n]*'(?!\w)|`[^`\n]*`|\u00ab[^\u00ab\u00bb]*\u00bb"
    r"|\u300c[^\u300c\u300d]*\u300d|\u300e[^\u300e\u300f]*\u300f"
)
_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]{0,60})(?:\s[^<>]{0,500})?>")
# A line that says that something to read comes: the paragraph behind it is another's.
_SHOWN = re.compile(
    r"\b(?:page|website|site|article|text|file|doc|docs|document|documentation|readme|log|logs|output|mail|email|message"
    r"|issue|ticket|comment|thread|post|transcript|prompt|snippet|content|contents|response|answer|reply|error|says"
    r"|said|reads|wrote|states|seite|datei|ausgabe|nachricht|antwort|fehler|sagt|steht|fichier|texte|sortie|dit"
    r"|archivo|texto|salida|mensaje|dice|arquivo|mensagem|diz|testo|messaggio|bestand|bericht|zegt|страница|текст"
    r"|файл|сообщение|вывод)\b[^\n:]{0,60}[:\uff1a][ \t]*\Z",
    re.IGNORECASE,
)
_TO_MACHINES = re.compile(
    r"(?:\A|\n)\W*(?:(?:hey|dear|all|any|to|for|attention|important)\b\W+){0,3}"
    r"(?:(?:(?:ai|llms?|automated)\b(?:[\s/-]+\w+)?|agents|assistants|bots|chatbots|(?:language )?models)\s*[:,]"
    r"|(?:system|instructions?|assistant|agent|prompt)\s*:)[^.!?\n]{0,80}\Z",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"(?<!\bi )(?<!\bwe )\b(?:says?|said|reads?|wrote|states?|stated|sagt|sagte|steht|schrieb|dit|dice|diz|zegt|пишет"
    r"|сказано)\b[^.!?\n:]{0,30}:[^.!?\n]{0,40}\Z",
    re.IGNORECASE,
)
_SENTENCE_ENDS = ".!?\n\u3002\uff01\uff1f"
_CLAUSE = re.compile(r"[^.!?\n\u3002\uff01\uff1f,;:\uff0c\u3001]*\Z")
_SENTENCE = re.compile(rf"[^{_SENTENCE_ENDS}]*\Z")
_END = re.compile(rf"[^{_SENTENCE_ENDS}]*([{_SENTENCE_ENDS}]|\Z)")
_POLITE = re.compile(
    r"\A[\W_]*(?:(?:so|ok|okay|great|thanks|perfect|good|and|now|please|then|also|bitte|und)\b[\W_]*){0,3}"
    r"(?:(?:can|could|would|will) you|would you mind|(?:kannst|könntest|würdest) du"
    r"|können sie|könnten sie|(?:peux|pourrais)[- ]tu|(?:pouvez|pourriez)[- ]vous|puedes|podr\u00edas|pode"
    r"|poderia|puoi|potresti|kun je|kan je|можешь|можете)\b",
    re.IGNORECASE,
)
_ASKING = (
    r"(?:how|when|whenever|if|whether|unless|why|wie|wann|wenn|falls|ob|warum|wieso|comment|quand|si|pourquoi|cómo|como"
    r"|cuándo|cuando|por qué|por que|quando|se|come|perché|hoe|wanneer|als|waarom|как"
    r"|когда|если|почему)"
)
_ASKED_FIRST = re.compile(
    rf"\A[\W_]*(?:(?:so|and|but|then|also|und|et|y|e|en|а|и)\s+)?(?:{_ASKING}|what|which|where|who|was|welche\w*|wo"
    r"|wer|que|qu'est-ce|quel\w*|où|qué|qual\w*|o que|cosa|che|wat|welke|что)\b",
    re.IGNORECASE,
)
_ASKED_NEAR = re.compile(rf"\b{_ASKING}\b(?:(?!\b(?:and|und|et|y|e|en|и)\b)[^\n]){{0,30}}\Z", re.IGNORECASE)
_ASKED_UNSPACED = re.compile("如\u4f55|怎么|怎样|为什么|如果|どう|なぜ|もし|어떻\uac8c|왜|만약")
_TOLD = re.compile(
    r"\b(?:i|we|they|he|she|who|people|users?|it|that|which)(?:\s+(?:always|usually|often|never|already|only|just|also"
    r"|did|do|does|had|have|would|could|can|might|may|to)){0,2}\s+\Z",
    re.IGNORECASE,
)
_WANTED = re.compile(r"\b(?:want|like|love|wish|need|prefer)\b[^.!?\n]{0,20}\Z", re.IGNORECASE)
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " ", "\u202f": " "})
_NEGATION = (
    r"(?:\b(?:don'?t|do not|never|not|no need to|needn'?t|without|nicht|kein\w*|nie|ne|pas|jamais|no(?!,)|nunca"
    r"|n[aã]o|non(?!,)|niet|не)\b|n't|不要|不用|别|別|不必|ないで|しなくて|하지 마)"
)
_NOT_BEFORE = re.compile(
    rf"{_NEGATION}(?:(?![,;:]\s|\b(?:but|and|so|aber|und|mais|pero)\b)[^.!?\n]){{0,60}}\Z", re.IGNORECASE
)
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
                if not _asks(said, match):
                    continue
                names = [value for value in match.groupdict().values() if value]
                if names:
                    return Wish(words=" ".join(match[0].split()), name=names[0])
                plain = plain or Wish(words=" ".join(match[0].split()))
                break
        return plain


def _asks(said: str, match: re.Match[str]) -> bool:
    """Return whether *match* in *said* is a wish of its author: no refusal, question, tale, or word of another."""
    before = said[max(0, match.start() - SENTENCE_CHARS) : match.start()]
    if _NOT_BEFORE.search(before[-80:]) or _NOT_WITHIN.search(match[0]) or _NOT_BEHIND.match(said, match.end()):
        return False
    if _TO_MACHINES.search(before) or _SAYS.search(before[-100:]):
        return False
    sentence, clause = _tail(_SENTENCE, before), _tail(_CLAUSE, before)
    end = _END.match(said, match.end(), match.end() + SENTENCE_CHARS)
    asked = end is not None and end[1] in ("?", "\uff1f")
    if asked and not (_POLITE.match(sentence) or _POLITE.match(clause)):
        return False
    if _ASKED_FIRST.match(f"{clause}{match[0]}") or _ASKED_NEAR.search(clause) or _ASKED_UNSPACED.search(clause):
        return False
    return not _TOLD.search(clause) or _WANTED.search(clause) is not None


def _tail(pattern: re.Pattern[str], text: str) -> str:
    """Return what of *text* stands behind the last mark that ends what *pattern* takes."""
    found = pattern.search(text)
    return "" if found is None else found[0]


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
    """Return what of *text* its author said himself: without what he pasted and quoted."""
    folded = _folded(text[:READ_CHARS])
    if "```" in folded or "~~~" in folded:
        folded = "\n".join(_outside_fences(folded.split("\n")))
    folded = _outside_tags(_QUOTED.sub("", folded))
    return "\n".join(_own_lines(_IN_QUOTES.sub(_named, folded).split("\n")))


def _named(quoted: re.Match[str]) -> str:
    """Return what stands for a quotation: itself where it can be a name, else a mark that no pattern finds."""
    return "\u2026" if any(char.isspace() for char in quoted[0]) else quoted[0]


def _outside_tags(text: str) -> str:
    """Return *text* without its elements, from a tag to the one that closes it; in linear time."""
    opened: dict[str, list[int]] = {}
    spans: list[tuple[int, int]] = []
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        if not tag[1]:
            opened.setdefault(name, []).append(tag.start())
        elif opened.get(name):
            start = opened[name].pop()
            while spans and spans[-1][0] >= start:
                spans.pop()
            spans.append((start, tag.end()))
    pieces, at = [], 0
    for start, end in sorted(spans):
        if start >= at:
            pieces.append(text[at:start])
        at = max(at, end)
    return "\n".join([*pieces, text[at:]])


def _own_lines(lines: Iterable[str]) -> Iterable[str]:
    """Yield the lines that are not of a paragraph which the line before it shows as another's."""
    foreign = empty = False
    for line in lines:
        if foreign and not line.strip():
            foreign = empty  # the blank line between the announcement and what it shows is none of its ends
            continue
        empty = False
        if not foreign:
            yield line
            foreign = empty = bool(_SHOWN.search(line[-SENTENCE_CHARS:]))


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

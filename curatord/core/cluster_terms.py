"""
What a skill's text says, as weighted terms: the words that `cluster_index` compares.

Wanted: "clone", "Cloning" and "clones" are one term; "the" and "When to use" are none; a text in Chinese, Hindi or
German gives terms too; a hostile text (a megabyte on one line, a key in base64) costs no more than a normal one.

- Only the head of each field is read (`NAME_CHARS`, `DESCRIPTION_CHARS`, `BODY_CHARS`), so the cost is bounded per
  skill.
- Text is compared decomposed, without accents, in one case. ASCII, the common case, takes a short way.
- Words of scripts without blanks are cut into overlapping pairs of signs, which needs no dictionary. Pairs of
  hiragana alone are grammar, and Chinese particles separate words, so both are left out.
- English words lose their endings by a dozen rules, far fewer than a real stemmer's: a wrong conflation here only
  makes two texts a little more alike, and stems stay close to words. `Terms.surface` leads back to a readable word.
- Function words of eight languages and the boilerplate of skill files are dropped. Counting would find them in a
  large library, but the library of ten skills needs the list.
- Numbers, long runs (hashes, keys) and single letters say nothing about the theme.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from operator import add

from curatord.core.cheap import dataclass

__all__ = ["DESCRIPTION_CHARS", "NAME_CHARS", "SkillText", "Terms", "fold", "name_pairs", "read_terms", "terms_of"]

NAME_CHARS = 256
DESCRIPTION_CHARS = 2_048
BODY_CHARS = 6_144

# A name was chosen to say what a skill is about, a description nearly so.
NAME_WEIGHT = 4
DESCRIPTION_WEIGHT = 2

LONGEST_TERM = 32

# Of a short text all signs are read, though they are a third of what a long one gives.
SIGNS = 512

# Letters and digits with the marks that belong to them: Python's \w knows no combining marks, which would cut Hindi,
# Arabic or Thai words at each vowel sign. The danda (a full stop) lies inside the Indic block and stays out.
_MARKS = (
    "\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0966-\u0dff\u0e00-\u0e3a\u0e40-\u0e4e\u0e80-\u0eff\u1000-\u1049"
    "\u1780-\u17d3"
)
_WORD = re.compile(rf"[\w{_MARKS}]+")
_ASCII_WORD = re.compile(r"[a-z0-9_]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003134f]+"
)
_PARTICLES = re.compile("[的了和是在与或不也就都而及把被这那个们\u3040\u3092]")
_HIRAGANA_SIGN = re.compile("[\u3040-\u309f]")
_HIRAGANA = re.compile("[\u3040-\u309f\u30fc]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CYRILLIC = re.compile("[\u0400-\u052f]{4,}")
_CYRILLIC_ENDING = re.compile("(?<=...)(?:[ыиая]ми|[ое]го|[ое]му|[ыиая]х|[ыиоеая]м|[ое]в|[аеиоуыэюяйь]{1,2})$")
_ACCENTS = re.compile("[\u0300-\u036f]+")

# Function words: English, German, French, Spanish, Portuguese, Italian, Dutch, Russian. Folded, like what they meet.
_FUNCTION_WORDS = """
a about above after again against all also am an and any are as at be because been before being below between both but
by can cannot could did do does doing down during each either else etc few for from further had has have having he her
here hers him his how however i if in instead into is it its itself just let like many may me might more most must my
neither no nor not now of off on once one only onto or other our ours out over own per same shall she should since so
some still such than that the their theirs them then there these they this those though through thus to too two under
unless until up upon us using very via was we well were what when where whether which while who whom whose why will
with within without would yes yet you your yours aren couldn didn doesn don hasn haven isn ll re shouldn ve wasn won
wouldn

aber als am auch auf aus bei bin bis da dann das dass dem den der des die dies diese diesem diesen dieser dieses doch
du durch ein eine einem einen einer eines er es fur gegen hat haben hier ich ihr im ist jede jeder jedes kann kein
keine konnen man mehr mit muss nach nicht noch nur ob oder ohne sein sich sie sind so soll sollte sondern sowie um und
uber unter vom von vor wann war was weil wenn wer werden wie wir wird wo zu zum zur zwischen

alors au aux avec ce ces cette comme dans de depuis des donc du elle en entre est et etre eux fait il ils je la le les
leur lors lui mais meme mes moins mon ne nos notre nous on ou par pas peut plus pour quand que quel quelle qui sa sans
se sera ses si sont sur ta tous tout toute tres tu un une vers vos votre vous

al algo ante antes cada como con contra cual cuando de del desde donde dos e el ella ellos entre era es esa ese eso
esta este esto estos fue ha hace hacia hasta hay la las lo los mas mi mientras muy nada ni no nos o para pero poco por
porque pueden puede que se sea segun ser si sin sobre son su sus tambien tanto te tiene tu un una uno usted y ya

ao aos as ate com da das depois do dos ela ele em essa esse esta estao foi foram isso isto ja lhe mais mas mesmo meu
muito na nao nas nem no nos num numa ou pela pelo pode por qual quando quem sao se seja sem ser seu sua tem um uma
voce

agli alla alle allo anche che chi ci come con cui da dal dalla dalle degli dei del della delle dello di dopo dove e ed
essere gli ha hanno il in io loro ma nel nella nelle non o per perche piu puo quale quando quello questa questo se si
sono sul sulla tra un una uno

aan alle als bij dan dat de deze die dit doen door een en er geen gebruik haar heeft het hij hoe hun iets ik in is je
kan maar met mijn moet na naar niet nog nu of om omdat ons onder ook op over te tegen toe toen tot uit van veel voor
waar wanneer wat we wel werd wie wij worden wordt ze zich zij zijn zo zonder

а без более бы был была были было быть в вам вас весь во вот все вы где да для до его ее если есть еще же за и из или
им их к как когда который ли мы на над не нет ни но о об он она они от по под при с со так также такой там то того
только ты у уже чем что чтобы эта эти это этот я
"""

# Words that nearly each skill file holds whatever it is about, and how an agent's instructions are worded.
_BOILERPLATE = """
add additional always ask avoid available based best call case change check claude command common complete create
current default description detail different ensure error example file find first fix follow following full general
generate get give given good guide guideline handle have help important include information input instruction
instructions item keep key know last line list load look main make mode name need never new next note off old open
option output overview part path pitfall pitfalls practice prefer prerequisite prerequisites problem procedure provide
purpose read recommended reference remove require required requirement response result return right rule run safety
save second section see set show skill skills specific start state step step-by-step stop support sure take task tell
text thing tip tool type update usage use used useful user value verification verify version want way work workflow
write wrong yaml md http https www com true false null none todo end done left right
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillText:
    """
    A skill as clustering sees it; the texts may be empty.

    *key* tells it from all others of an index: `str(SkillKey)`, or the id of an archived package, or any other.
    """

    key: str
    name: str
    description: str = ""
    body: str = ""

    def __post_init__(self) -> None:
        if not self.key:
            raise ValueError("a skill text needs a key that identifies it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Weighted term counts of one text, and the shortest word met for each term that is not one of its words itself."""

    counts: dict[str, int]
    surface: dict[str, str]


def fold(text: str) -> str:
    """Return *text* in the one spelling that is compared: compatibility forms and accents resolved, one case."""
    if text.isascii():
        return text.lower()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", bare).casefold()


def read_terms(skill: SkillText, *, body_chars: int = BODY_CHARS) -> Terms:
    """
    Return the terms of *skill*, a name's word counting four times and a description's twice.

    Args:
        skill: Its fields may be of any size and in any language.
        body_chars: How much of the body is read.
    """
    return _stemmed(
        (_HUMP.sub(" ", skill.name[:NAME_CHARS].replace("_", " ")), NAME_WEIGHT),
        (skill.description[:DESCRIPTION_CHARS], DESCRIPTION_WEIGHT),
        (skill.body[:body_chars], 1),
    )


def terms_of(text: str, *, chars: int = DESCRIPTION_CHARS) -> dict[str, int]:
    """Return the term counts of the first *chars* characters of a plain *text*."""
    return _stemmed((text[:chars], 1)).counts


def name_pairs(name: str) -> frozenset[str]:
    """Return the pairs of neighbouring signs in a name, which tell how alike two spellings are."""
    bare = "".join(_WORD.findall(fold(name[:NAME_CHARS]).replace("_", " ")))
    if len(bare) < 2:
        return frozenset({bare} - {""})
    return frozenset(map("".join, pairwise(bare)))


def _stemmed(*fields: tuple[str, int]) -> Terms:
    counts: dict[str, int] = {}
    surface: dict[str, str] = {}
    for text, weight in fields:
        words, pairs = _words(fold(text))
        for pair, times in Counter(pairs).items():
            counts[pair] = counts.get(pair, 0) + weight * times
        for word, times in Counter(words).items():
            term, worth = _term(word), weight * times
            if not term:
                continue
            if term in _STOP_STEMS:
                if weight != NAME_WEIGHT:
                    continue
                worth = 1
            if term == word:
                if term in surface:
                    surface[term] = term
            elif term not in surface:
                if term not in counts:
                    surface[term] = word.strip("_")
            elif (len(word), word) < (len(surface[term]), surface[term]):
                surface[term] = word.strip("_")
            counts[term] = counts.get(term, 0) + worth
    return Terms(counts=counts, surface=surface)


def _words(folded: str) -> tuple[list[str], list[str]]:
    """Return the words of *folded* in order, and the overlapping pairs of its runs without blanks."""
    if folded.isascii():
        return _ASCII_WORD.findall(folded), []
    runs = _UNSPACED.findall(folded)
    if not runs:
        return _WORD.findall(folded), []
    pairs: list[str] = []
    for run in runs:
        for piece in _PARTICLES.split(run):
            if len(piece) == 1:
                pairs.append(piece)
            elif _HIRAGANA_SIGN.search(piece):
                pairs.extend(pair for pair in map(add, piece, piece[1:]) if not _HIRAGANA.fullmatch(pair))
            else:
                pairs.extend(map(add, piece, piece[1:]))
    # A sign says about as much as three letters, so a third of the pairs is as much text as is read of others.
    del pairs[max(SIGNS, len(folded) // 3) :]
    return _WORD.findall(_UNSPACED.sub(" ", folded)), pairs


@lru_cache(maxsize=1 << 16)
def _term(word: str) -> str:
    """Return the term that *word* counts for, empty for one that says nothing."""
    if word in _STOP or len(word) > LONGEST_TERM:
        return ""
    if not word.isascii():
        if _CYRILLIC.fullmatch(word):
            return _CYRILLIC_ENDING.sub("", word)
        return "" if len(word) < 2 or word.isdigit() else word
    word = word.strip("_")
    if len(word) < 2 or not word.strip("0123456789_"):
        return ""
    return _stem(word) if word.isalpha() else word


def _stem(word: str) -> str:
    """Return an English *word* without plural, -ing, -ed, -er and final -e; short words stay."""
    if len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "ches", "shes", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed", "er"):
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= 4 and not _VOWELS.isdisjoint(root):
            word = root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root
            break
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    return word


_VOWELS = frozenset("aeiouy")
_STOP = frozenset(_FUNCTION_WORDS.split())
_STOP_STEMS = frozenset(_stem(word) for word in _BOILERPLATE.split())

r"""
What makes a sound skill hard to find or dear to use: few checks, each exact enough to be silent on good libraries.

A host shows an agent only names and descriptions, so those are what is looked at. Two kinds of checks:

`text_problems`, of one skill by itself:

    long-description  beyond the 1,024 characters of the Agent Skills specification
    empty-start       the first 60 characters, which is all that some hosts and people see, name no thing and no work
    no-trigger        nothing in it says when to use the skill
    long-body         more lines or tokens than the specification advises for a SKILL.md

`twin_problems`, of one against the others that an agent sees beside it:

    same-name-elsewhere   another library of the same host has the name, and only one of the two is ever meant
    near-description      two descriptions of nearly the same words
    same-start            two descriptions that differ, but not in their first 60 characters

Unsure: whether a description has a trigger is a matter of words, and the words are English. So a text that is not in
Latin letters is never blamed for that, and many words count as a trigger: a false silence is worth more here than a
false alarm. A skill that only its user may call (`disable-model-invocation`) needs neither trigger nor start.

Measured on 80 skills of four published libraries that are known as good (autumn 2026): 6 problems at 5 skills, each of
them true: four bodies and one description beyond the advice, and one start without a word of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from curatord.core.agent_skills import MAX_DESCRIPTION
from curatord.core.cheap import dataclass
from curatord.core.library import Problem
from curatord.core.skill import SkillText
from curatord.core.twin_digest import Listed
from curatord.core.values import SkillKey

__all__ = ["MAX_BODY_LINES", "MAX_BODY_TOKENS", "Described", "text_problems", "twin_problems", "twins_among"]

START = 60  # characters that must stand alone: contract, section 7
MAX_BODY_LINES = 500  # the specification's advice for a SKILL.md, both
MAX_BODY_TOKENS = 5_000
# What is above the advice by a little is nobody's trouble, and tokens are an estimate.
LEEWAY = 1.25
NEAR = 0.8  # shared share of the words of two descriptions
NEAR_WORDS = 6  # below that, two short descriptions are alike by chance
MAX_SHARED = 200  # skills that one word is looked up in; what more of them share is common vocabulary

_WORD = re.compile(r"\w+(?:[-'.]\w+)*")
_TRIGGER = re.compile(
    r"\b(?:when|whenever|if|once|before|after|while|during|until|where|upon|for|use[ds]?|using|invoked?|trigger\w*|"
    r"call(?:ed)?|asks?|asked|requests?|requested|wants?|needs?|needed|says?|mentions?|mentioned|any\s?time|every\s?time|"
    r"wenn|falls|bei|für|quand|lorsque|pour|si|cuando|para|quando|per|se|als|voor|gdy|jeśli|dla)\b",
    re.IGNORECASE,
)
# Words that say that it is a skill, not of what: the start of a description without them has to name something.
_EMPTY = frozenset(
    _WORD.findall(
        "a about advanced agent agents ai all allow allows also always an and any anything applies apply are as "
        "ask asked asks assist assistant assists at automatically be best by can case cases certain claude "
        "collection complete comprehensive contain contains could describe describes description different do "
        "does each enable enables essential every everything explain explains for from general generic give gives "
        "guide guides he help helper helpers helpful helping helps how i if in include includes including into is "
        "it its kind kinds let lets make makes many may me might model more most must my need needed needs new "
        "not of offer offers on one or our placeholder powerful proactively provide provides providing purpose "
        "purposes related relevant request requested requests set several shall she should situation situations "
        "skill skills some something specific task tasks tbd that the their them these they thing things this "
        "those time times to todo tool tools type types ultimate us usage use used useful user users uses using "
        "various very want wants was way ways we well were what when whenever which who will with would you your "
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """
    A live skill as an agent sees it listed. *scope* names what is listed together: a host, or the library itself.
    """

    key: SkillKey
    scope: str
    description: str


def text_problems(text: SkillText) -> Iterator[Problem]:
    """Yield what is wrong with a skill's own description and length; nothing where it has no description at all."""
    if text.description:
        yield from _description_problems(text)
    lines = text.body.count("\n")
    if lines > MAX_BODY_LINES * LEEWAY:
        words = f"the body has {lines} lines; the specification advises {MAX_BODY_LINES} and files for the rest"
        yield Problem(code="long-body", words=words)
    elif text.body_tokens > MAX_BODY_TOKENS * LEEWAY:
        words = (
            f"a use costs about {text.body_tokens} tokens; the specification advises {MAX_BODY_TOKENS} and files for "
            "the rest"
        )
        yield Problem(code="long-body", words=words)


def _description_problems(text: SkillText) -> Iterator[Problem]:
    size = len(text.description)
    if size > MAX_DESCRIPTION:
        words = f"the description has {size} characters; the specification allows {MAX_DESCRIPTION}, and hosts cut it"
        yield Problem(code="long-description", words=words)
    if _only_by_user(text) or not _is_latin(text.description):
        return
    start = _start(text.description)
    if not any(word.casefold() not in _EMPTY for word in _WORD.findall(start)):
        yield Problem(
            code="empty-start", words=f"the first {START} characters of the description say nothing by themselves"
        )
    if not text.when_to_use and not _TRIGGER.search(text.description):
        yield Problem(code="no-trigger", words="the description does not say when to use it")


def _only_by_user(text: SkillText) -> bool:
    value = text.header.values().get("disable-model-invocation") if text.header is not None else None
    return isinstance(value, str) and value.strip().lower() in ("true", "yes", "on")


def _is_latin(text: str) -> bool:
    if text.isascii():
        return any(c.isalpha() for c in text)
    letters = [c for c in text if c.isalpha()]
    return sum("LATIN" in unicodedata.name(c, "") for c in letters[:400]) * 2 > len(letters[:400])


def _start(description: str) -> str:
    """Return the first `START` characters, without a word that was cut."""
    flat = " ".join(description.split())
    if len(flat) <= START:
        return flat
    cut = flat[:START]
    return cut if flat[START].isspace() else cut.rpartition(" ")[0] or cut


def twin_problems(skills: Iterable[Described]) -> Mapping[SkillKey, Sequence[Problem]]:
    """
    Return what is wrong with skills beside each other, per key, those without any left out.

    Each skill gets at most one problem of a kind, naming the nearest other. Time grows with the number of skills and of
    rare words that they share, not with the number of pairs.
    """
    by_scope: dict[str, list[Described]] = {}
    for skill in sorted(skills, key=lambda item: item.key.place):
        by_scope.setdefault(skill.scope, []).append(skill)
    found: dict[SkillKey, list[Problem]] = {}
    for group in by_scope.values():
        for key, problem in (*_same_names(group), *_near(group)):
            found.setdefault(key, []).append(problem)
    return found


def twins_among(listed: Iterable[Listed]) -> Mapping[SkillKey, Sequence[Problem]]:
    """Return `twin_problems` of the live skills *listed*."""
    return twin_problems(
        Described(key=skill.key, scope=scope, description=skill.description)
        for scope, skills in listed
        for skill in skills
    )


def _same_names(group: Sequence[Described]) -> Iterator[tuple[SkillKey, Problem]]:
    by_name: dict[str, list[SkillKey]] = {}
    for skill in group:
        by_name.setdefault(unicodedata.normalize("NFC", str(skill.key.name)).casefold(), []).append(skill.key)
    for keys in by_name.values():
        for key in keys:
            other = next((o for o in keys if o.library != key.library), None)
            if other is not None:
                words = f"{other} has the same name, and the host only ever takes one of the two"
                yield key, Problem(code="same-name-elsewhere", words=words)


def _bag(description: str) -> frozenset[str]:
    """Return the words of *description*, whatever their case."""
    if description.isascii():  # folding cannot move where words end, so that all of them are folded at once
        return frozenset(_WORD.findall(description.lower()))
    return frozenset(word.casefold() for word in _WORD.findall(description))


def _near(group: Sequence[Described]) -> Iterator[tuple[SkillKey, Problem]]:
    """Yield skills whose descriptions are nearly another's, then those that only begin alike."""
    bags = [_bag(skill.description) for skill in group]
    frequency = Counter(chain.from_iterable(bags))
    words_by_rarity = sorted(frequency, key=lambda word: (frequency[word], word))
    rarity = {word: rank for rank, word in enumerate(words_by_rarity)}.__getitem__
    # Two bags that share NEAR of their words share one among the rarest of each (the prefix filter of set joins).
    lists: dict[str, list[int]] = {}
    told: set[int] = set()
    nearest: dict[int, tuple[float, int]] = {}
    for index, bag in enumerate(bags):
        if len(bag) < NEAR_WORDS:
            continue
        ordered = sorted(bag, key=rarity)
        prefix = ordered[: len(bag) - int(NEAR * len(bag) + 0.999) + 1]
        near: set[int] = set()
        for word in prefix:
            if word in lists:
                near.update(lists[word][-MAX_SHARED:])
        for other in sorted(near):
            shared = len(bag & bags[other])
            share = shared / (len(bag) + len(bags[other]) - shared)
            if share >= NEAR:
                for one, two in ((index, other), (other, index)):
                    if one not in nearest or share > nearest[one][0]:
                        nearest[one] = (share, two)
        for word in prefix:
            lists.setdefault(word, []).append(index)
    for index, (_, other) in sorted(nearest.items()):
        told.add(index)
        words = f"its description is nearly that of {group[other].key}, so no agent can tell which is meant"
        yield group[index].key, Problem(code="near-description", words=words)
    starts: dict[str, list[int]] = {}
    for index, skill in enumerate(group):
        flat = " ".join(skill.description.split()).casefold()
        if len(flat) >= START:
            starts.setdefault(flat[:START], []).append(index)
    for indices in starts.values():
        for index in indices:
            other = next((o for o in indices if o != index), index)
            if other != index and index not in told:
                words = f"its description begins with the same {START} characters as that of {group[other].key}"
                yield group[index].key, Problem(code="same-start", words=words)

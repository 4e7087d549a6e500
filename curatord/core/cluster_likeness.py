"""
How alike skills and texts are: one question a function, asked of an index.

Used for three decisions, each with its measure: which skills a session's text is about (`most_similar`), whether a new
skill is an old one again (`twins`), and whether the members of a merge that a model proposes have anything to do with
each other (`overlap`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import nlargest

from curatord.core.cheap import dataclass
from curatord.core.cluster_index import FLOOR, ONE, Index, Near, build_index, product, share, weigh
from curatord.core.cluster_terms import SkillText, name_pairs, read_terms, terms_of

__all__ = ["RELATED", "Likeness", "likeness", "most_similar", "overlap", "similarity", "twins"]

# The least that members of a merge have in common: 99 of 100 pairs taken at random from a public library of 559 skills
# are below, 1 in 100 is not, so this tells the unrelated, not the good merges.
RELATED = 0.1

# When a skill is another one again: names as alike as voice-clone and voice-cloning-2 and nearly the same description,
# or nearly the same text. In that library copies that live on by themselves measure 0.74 to 1, the closest two that say
# different things 0.69. A copy of which every tenth line was replaced measures 0.75 or more in 19 of 20 cases.
TWIN_NAME = 0.7
TWIN_DESCRIPTION = 0.75
TWIN_CONTENT = 0.72

# A query may be a stretch of a transcript, which says more than a skill's head does.
QUERY_CHARS = 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How alike two skills are, each 0 to 1: the spelling of their names, their descriptions, and all they say."""

    key: str
    name: float
    description: float
    content: float

    @property
    def same(self) -> bool:
        """Return whether the two are one skill under two names."""
        named = self.name >= TWIN_NAME and self.description >= TWIN_DESCRIPTION
        return named or self.content >= TWIN_CONTENT


def most_similar(index: Index, text: SkillText | str, n: int = 5, *, floor: float = FLOOR) -> tuple[Near, ...]:
    """
    Return the *n* skills of *index* most like *text*, most alike first; none below *floor*.

    A skill with the key of *text* is not its own neighbour. Plain text is read up to QUERY_CHARS characters.
    """
    if isinstance(text, str):
        asked, own = weigh(index, terms_of(text, chars=QUERY_CHARS)), -1
    else:
        asked, own = weigh(index, read_terms(text).counts), index.places.get(text.key, -1)
    score: defaultdict[int, int] = defaultdict(int)
    for term, weight in asked.items():
        place = index.vocabulary.get(term)
        if place is not None:
            begin, end = index.starts[place], index.starts[place + 1]
            for other, its in zip(index.holders[begin:end], index.held[begin:end], strict=True):
                score[other] += weight * its
    score.pop(own, None)
    best = nlargest(n, ((whole, -other) for other, whole in score.items() if whole >= floor * ONE))
    return tuple(Near(key=index.keys[-other], similarity=share(whole)) for whole, other in best)


def similarity(one: SkillText, two: SkillText, *, index: Index | None = None) -> float:
    """
    Return how alike two skills are, 0 (nothing in common) to 1, words weighted as in the library of *index*.

    Without an *index* all words weigh about the same. The skills need not be in it.
    """
    library = index or build_index([])
    left, right = (weigh(library, read_terms(skill).counts) for skill in (one, two))
    return product(left, right)


def likeness(one: SkillText, two: SkillText, *, index: Index | None = None) -> Likeness:
    """Return in what two skills are alike; the key is that of *two*."""
    library = index or build_index([])
    left, right = (weigh(library, terms_of(skill.description)) for skill in (one, two))
    return Likeness(
        key=two.key,
        name=_alike_names(name_pairs(one.name), name_pairs(two.name)),
        description=product(left, right),
        content=similarity(one, two, index=library),
    )


def twins(index: Index, skill: SkillText, *, n: int = 5) -> tuple[Likeness, ...]:
    """
    Return the skills of *index* that *skill* may be a second copy of, most alike first, *n* at most.

    A skill is listed when its name is spelled alike (TWIN_NAME) or its content is the same (TWIN_CONTENT); whether the
    two are one is `Likeness.same`. A skill with the key of *skill* is left out.
    """
    pairs, wanted = name_pairs(skill.name), weigh(index, terms_of(skill.description))
    content = {near.key: near.similarity for near in most_similar(index, skill, len(index), floor=0.0)}
    found = []
    for place, key in enumerate(index.keys):
        alike = _alike_names(pairs, name_pairs(index.names[place]))
        if key == skill.key or (alike < TWIN_NAME and content.get(key, 0.0) < TWIN_CONTENT):
            continue
        described = product(wanted, weigh(index, terms_of(index.descriptions[place])))
        found.append(Likeness(key=key, name=alike, description=described, content=content.get(key, 0.0)))
    found.sort(key=lambda twin: (not twin.same, -twin.content - twin.name, index.places[twin.key]))
    return tuple(found[:n])


def overlap(index: Index, keys: Sequence[str]) -> tuple[Near, ...]:
    """
    Return for each of *keys* how alike it is to the most similar other one, in the order of *keys*.

    This is what is measured of a merge that a model proposes: who stays below RELATED has nothing to do with the rest.

    Raises:
        KeyError: A key is not in the index.
    """
    vectors = [index.vector(index.places[key]) for key in keys]
    return tuple(
        Near(key=key, similarity=max((product(mine, its) for its in vectors if its is not mine), default=0.0))
        for key, mine in zip(keys, vectors, strict=True)
    )


def _alike_names(one: frozenset[str], two: frozenset[str]) -> float:
    both = len(one) + len(two)
    return round(2 * len(one & two) / both, 3) if both else 0.0

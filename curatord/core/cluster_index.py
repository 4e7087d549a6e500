"""
An index over a library's texts: how alike two skills are, which are most like a text, and which pairs are worth a
look.

Each skill becomes its `TOP_TERMS` strongest terms, weighted by how often it says them and how rarely others do,
scaled to length one; how alike two skills are is the product of two such vectors, 0 to 1. Four points differ from the
textbook:

- **Weights are integers.** Logarithms are rounded once and all the rest is whole numbers, so sums do not depend on
  their order and every platform computes the same. Skills are put in an order of their own first (by name, then key):
  the order they came in cannot matter.
- **A small library is weighed as if it were part of a larger one** (`PRIOR`), since "seen in 2 of 3 skills" does not
  make a word common. And a word that all have still counts a little (`COMMON`), or 5,000 near-copies would have
  nothing in common but what sets them apart.
- **Common terms do not make pairs of everything.** A term that more than `CROWD` skills hold only proposes the
  `WINDOW` neighbours before in the order (by name: where near-copies stand together); whoever is found is then
  measured in full. So the work grows with the number of skills, not with its square, whatever the texts are.
- **Memory is bounded.** Vectors and postings are flat arrays; the vocabulary forgets words met once when it outgrows
  `VOCABULARY`. Bodies are not kept.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from math import isqrt, log
from operator import mul
from typing import TypeVar

from curatord.core.cheap import dataclass
from curatord.core.cluster_terms import (
    DESCRIPTION_CHARS,
    NAME_CHARS,
    SkillText,
    fold,
    read_terms,
)

__all__ = ["FLOOR", "ONE", "Index", "Near", "build_index", "link", "product", "share", "weigh"]

TOP_TERMS = 40
PRIOR = 20
COMMON = 0.5
CROWD = 256
WINDOW = 48
LINKS = 64
# A library of this many words has room, and so has one of so many words a skill: real ones stay far below.
VOCABULARY = 1 << 18
VOCABULARY_PER_SKILL = 64

# Vectors have this length; a product of two is out of UNIT * UNIT.
UNIT = 1 << 14
ONE = UNIT * UNIT

# Below this two skills count as unrelated: a single shared word of no great weight.
FLOOR = 0.06

_Term = TypeVar("_Term", int, str)

_OFTEN = tuple(round(64 * (1 + log(times))) if times else 0 for times in range(256))


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A skill and how alike it is to what was asked about, 0 to 1."""

    key: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """
    A library, ready to be asked; made by `build_index`, never changed.

    Positions 0 to n-1 are the skills by folded name and key. A skill's vector is `terms[b:e]` with `weights[b:e]`,
    `b, e = bounds[i], bounds[i + 1]`; a term's postings are `holders[b:e]` with `held[b:e]`, `b, e = starts[t],
    starts[t + 1]`, ascending. `rarity` tells what a term of two skills or more is worth, under "" what any other is.
    """

    keys: tuple[str, ...]
    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    places: Mapping[str, int]
    vocabulary: Mapping[str, int]
    rarity: Mapping[str, int]
    words: Sequence[str]
    bounds: array[int]
    terms: array[int]
    weights: array[int]
    starts: array[int]
    holders: array[int]
    held: array[int]

    def __len__(self) -> int:
        return len(self.keys)

    def vector(self, place: int) -> dict[int, int]:
        """Return the weight per term of the skill at *place*."""
        begin, end = self.bounds[place], self.bounds[place + 1]
        return dict(zip(self.terms[begin:end], self.weights[begin:end], strict=True))

    def spread(self, term: int) -> int:
        """Return how many skills hold *term* among their strongest, one or more."""
        return self.starts[term + 1] - self.starts[term]

    def similarity(self, key: str, other: str) -> float:
        """
        Return how alike two skills of the library are, 0 (nothing in common) to 1.

        Raises:
            KeyError: A key is not in the index.
        """
        return product(self.vector(self.places[key]), self.vector(self.places[other]))


def build_index(skills: Iterable[SkillText]) -> Index:
    """
    Return the index of *skills*, the same for any order they come in.

    Raises:
        ValueError: Two skills have the same key.
    """
    ordered = sorted(skills, key=lambda skill: (fold(skill.name[:NAME_CHARS]), skill.key))
    places = {skill.key: place for place, skill in enumerate(ordered)}
    if len(places) != len(ordered):
        seen: set[str] = set()
        twice = next(skill.key for skill in ordered if skill.key in seen or seen.add(skill.key))  # type: ignore[func-returns-value]  # add() is None: falsy on purpose
        raise ValueError(f"two skills have the key {twice!r}")

    census = _Census(room=max(VOCABULARY, VOCABULARY_PER_SKILL * len(ordered)))
    for skill in ordered:
        census.count(skill)
    return census.index(ordered, places)


class _Census:
    """Counts terms over a library, then weighs them; lives for the length of one `build_index`."""

    def __init__(self, *, room: int) -> None:
        self.room = room
        self.ids: dict[str, int] = {}
        self.surface: dict[str, str] = {}
        self.plain = bytearray()
        self.holders = array("I")
        self.texts: list[tuple[array[int], bytes]] = []

    def count(self, skill: SkillText) -> None:
        found = read_terms(skill)
        ids, holders, plain, surface = self.ids, self.holders, self.plain, found.surface
        fresh = [term for term in found.counts if term not in ids]
        ids.update(zip(fresh, range(len(holders), len(holders) + len(fresh)), strict=True))
        holders.extend([0] * len(fresh))
        plain.extend(bytes(len(fresh)))
        mine = array("I", map(ids.__getitem__, found.counts))
        for term, place in zip(found.counts, mine, strict=True):
            holders[place] += 1
            if term not in surface:
                plain[place] = 1
        self.texts.append((mine, bytes([min(times, 255) for times in found.counts.values()])))
        for term, word in surface.items():
            known = self.surface.get(term)
            if known is None or (len(word), word) < (len(known), known):
                self.surface[term] = word
        if len(ids) > self.room:
            self._forget()

    def _forget(self) -> None:
        """Drop the words that the fewest skills hold until half of the room is free: those met once, as a rule."""
        bar = 1
        while 2 * len(self.ids) > self.room:
            self.ids = {term: place for term, place in self.ids.items() if self.holders[place] > bar}
            bar += 1
        self.surface = {term: word for term, word in self.surface.items() if term in self.ids}

    def index(self, ordered: Sequence[SkillText], places: Mapping[str, int]) -> Index:
        rare = _rarities(len(ordered), max(self.holders, default=0))
        rarity = [rare[held] for held in self.holders]
        chosen: dict[int, int] = {}
        bounds, terms, weights = array("Q", [0]), array("I"), array("H")
        for mine, often in self.texts:
            for place, weight in _strongest(mine, often, rarity):
                terms.append(chosen.setdefault(place, len(chosen)))
                weights.append(weight)
            bounds.append(len(terms))
        self.texts.clear()

        words = [""] * len(chosen)
        vocabulary: dict[str, int] = {}
        known: dict[str, int] = {}
        for term, place in self.ids.items():
            if place in chosen:
                vocabulary[term] = chosen[place]
                words[chosen[place]] = term if self.plain[place] else self.surface.get(term, term)
            if self.holders[place] > 1:
                known[term] = rarity[place]
        known[""] = rare[1] if ordered else rare[0]

        starts, holders, held = _postings(len(chosen), bounds, terms, weights)
        return Index(
            keys=tuple(skill.key for skill in ordered),
            names=tuple(skill.name[:NAME_CHARS] for skill in ordered),
            descriptions=tuple(skill.description[:DESCRIPTION_CHARS] for skill in ordered),
            places=places,
            vocabulary=vocabulary,
            rarity=known,
            words=words,
            bounds=bounds,
            terms=terms,
            weights=weights,
            starts=starts,
            holders=holders,
            held=held,
        )


def _rarities(skills: int, most: int) -> list[int]:
    """Return what a term is worth, by the number of skills that hold it: 0 to *most*."""
    return [round(256 * max(COMMON, log((skills + PRIOR) / (held + 0.5)))) for held in range(max(most, 1) + 1)]


def _strongest(places: Sequence[int], often: bytes, rarity: Sequence[int]) -> list[tuple[int, int]]:
    """Return the strongest terms of a text with their weights, the whole of length UNIT, strongest first."""
    # One integer holds weight and place: sorting integers is several times as fast as sorting pairs.
    ranked = sorted(
        [_OFTEN[times] * rarity[place] << 32 | place for place, times in zip(places, often, strict=True)], reverse=True
    )
    del ranked[TOP_TERMS:]
    strong = [both >> 32 for both in ranked]
    length = isqrt(sum(map(mul, strong, strong))) or 1
    # Rounded down, so that no product exceeds ONE by more than what `share` cuts off.
    return [(both & 0xFFFFFFFF, weight * UNIT // length) for both, weight in zip(ranked, strong, strict=True)]


def _postings(
    size: int, bounds: Sequence[int], terms: Sequence[int], weights: Sequence[int]
) -> tuple[array[int], array[int], array[int]]:
    """Return where each term's postings start, who holds the term, and with what weight."""
    starts = array("Q", [0]) * (size + 1)
    for term in terms:
        starts[term + 1] += 1
    for term in range(size):
        starts[term + 1] += starts[term]
    fill = array("Q", starts)
    holders, held = array("I", [0]) * len(terms), array("H", [0]) * len(terms)
    for place in range(len(bounds) - 1):
        for at in range(bounds[place], bounds[place + 1]):
            term = terms[at]
            holders[fill[term]] = place
            held[fill[term]] = weights[at]
            fill[term] += 1
    return starts, holders, held


def share(product: int) -> float:
    """Return a product of two vectors as a part of one; three digits are what rounded weights carry."""
    return min(1.0, round(product / ONE, 3))


def link(index: Index) -> list[dict[int, int]]:
    """
    Return who is like whom: for each place, the similarity (out of ONE) to each like skill, both ways.

    A pair below FLOOR is left out, and one that is among the LINKS strongest of neither.
    """
    floor = int(FLOOR * ONE)
    likes: list[dict[int, int]] = [{} for _ in index.keys]
    bounds, terms, weights = index.bounds, index.terms, index.weights
    starts, holders, held = index.starts, index.holders, index.held
    filled = array("Q", starts)
    for place in range(len(index)):
        score: defaultdict[int, int] = defaultdict(int)
        crowded = False
        for at in range(bounds[place], bounds[place + 1]):
            term, weight = terms[at], weights[at]
            begin, end = starts[term], filled[term]
            filled[term] = end + 1
            if begin == end:
                continue
            if end - begin > CROWD:
                begin, crowded = end - WINDOW, True
            for other, its in zip(holders[begin:end], held[begin:end], strict=True):
                score[other] += weight * its
        found = [(product, other) for other, product in score.items() if product >= floor or crowded]
        if len(found) > LINKS:
            found = nlargest(LINKS, found)
        if crowded:
            found = _measured(index, place, [other for _, other in found])
        mine = likes[place]
        for product, other in found:
            if product >= floor:
                mine[other] = likes[other][place] = product
    return likes


def _measured(index: Index, place: int, others: Iterable[int]) -> list[tuple[int, int]]:
    weight_of = index.vector(place).get
    bounds, terms, weights = index.bounds, index.terms, index.weights
    found = []
    for other in others:
        begin, end = bounds[other], bounds[other + 1]
        asked = [weight_of(term, 0) for term in terms[begin:end]]
        product = sum(map(mul, asked, weights[begin:end]))
        found.append((product, other))
    return found


def weigh(index: Index, counts: Mapping[str, int]) -> dict[str, int]:
    """Return the vector of a text that need not be in *index*."""
    unseen = index.rarity[""]
    ordered = sorted(counts)
    rarity = [index.rarity.get(term, unseen) for term in ordered]
    often = bytes([min(counts[term], 255) for term in ordered])
    return {ordered[at]: weight for at, weight in _strongest(range(len(ordered)), often, rarity)}


def product(one: Mapping[_Term, int], two: Mapping[_Term, int]) -> float:
    """Return how alike two vectors are, 0 to 1."""
    return share(sum(weight * two.get(term, 0) for term, weight in one.items()))

"""
Which skills may share an umbrella: groups of candidates, found without a model.

Wanted: of a library of 2 to 50,000 skills, the groups that a maintainer might write as one skill with sections, each
with the reason in words, and beside each group the skills nearest to it that stayed outside. Two readers need two
cuts of the same thing. `TIGHT` is for merging by rule, with no model to ask: few, sure groups. `SHORTLIST` is for a
model that cuts by itself: rather too large than too small, since what is missing from the question cannot be in the
answer. No threshold separates themes in a real library, so the five nearest outsiders are part of the answer too.

The plan: `cluster_index` measures the pairs worth measuring. Here the closest two groups are joined again and again,
where how close two groups are is the mean over all pairs across (average link): single link makes chains of
everything, complete link breaks large themes on one odd pair. A pair that was not measured counts as zero. Joining
stops below the cut's threshold, and no group outgrows what fits into one question to a model (`most`). As the two
cuts differ only in where they stop, each tight group lies within one group of the shortlist (for the same `most`).

What can go wrong: a theme with more members than `most` is cut into several groups, which know each other only as
nearest outsiders. Skills made from one template look alike if they say little of their own; names and descriptions
weigh more than bodies for that reason.

Thresholds were set on generated libraries of 346 and 5,000 skills, which are easy, and read against three public ones
of 18 to 559 skills, where there is no truth to count against; they are not sharp.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, nsmallest

from curatord.core.cheap import dataclass
from curatord.core.cluster_index import FLOOR, ONE, PRIOR, Index, Near, build_index, link, share
from curatord.core.cluster_likeness import RELATED, Likeness, likeness, most_similar, overlap, similarity, twins
from curatord.core.cluster_terms import SkillText

__all__ = [
    "FLOOR",
    "RELATED",
    "SHORTLIST",
    "TIGHT",
    "Clustering",
    "Cut",
    "Group",
    "Index",
    "Likeness",
    "Links",
    "Near",
    "SkillText",
    "build_index",
    "cluster",
    "cut",
    "likeness",
    "links",
    "most_similar",
    "overlap",
    "similarity",
    "twins",
]

OUTSIDE = 5
WHY_TERMS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """
    Where joining stops.

    *threshold* is the mean similarity below which two groups stay apart, FLOOR to 1; *most* is the size of the largest
    group, 2 or more.
    """

    threshold: float
    most: int = 24

    def __post_init__(self) -> None:
        if not FLOOR <= self.threshold <= 1:
            raise ValueError(f"threshold must be {FLOOR} to 1, not {self.threshold}")
        if self.most < 2:
            raise ValueError(f"a group has at least two members, most={self.most} allows none")


TIGHT = Cut(threshold=0.25)
SHORTLIST = Cut(threshold=0.12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The measured pairs of a library, from which any number of cuts is made."""

    index: Index
    likes: Sequence[dict[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """
    Skills that may share an umbrella.

    Attributes:
        members: Keys, two or more, by name.
        terms: What they share, most telling first; may be empty.
        why: The same in words, for people and for a model.
        cohesion: Mean similarity of its pairs, 0 to 1.
        outside: The skills nearest to any member that are not in the group, nearest first, five at most.
    """

    members: tuple[str, ...]
    terms: tuple[str, ...]
    why: str
    cohesion: float
    outside: tuple[Near, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustering:
    """
    A library in groups.

    Attributes:
        groups: By the name of their first member.
        alone: Keys of the skills in no group, by name.
        nearest: Per key, the most similar skills outside its group, nearest first, five at most.
    """

    groups: tuple[Group, ...]
    alone: tuple[str, ...]
    nearest: dict[str, tuple[Near, ...]]


def cluster(index: Index, how: Cut = SHORTLIST) -> Clustering:
    """Return the groups of *index* by one cut; for several, keep `links` and use `cut`."""
    return cut(links(index), how)


def links(index: Index) -> Links:
    """Return the measured pairs of *index*: the costly half of clustering."""
    return Links(index=index, likes=link(index))


def cut(measured: Links, how: Cut) -> Clustering:
    """Return the groups that joining the closest gives, as long as *how* allows; the same for the same library."""
    index, likes = measured.index, measured.likes
    together = _joined(likes, int(how.threshold * ONE), how.most)
    group_of = {place: number for number, members in enumerate(together) for place in members}
    nearest = {key: _outside(index, likes, (place,), together[group_of[place]]) for place, key in enumerate(index.keys)}
    return Clustering(
        groups=tuple(_group(index, likes, members) for members in together if len(members) > 1),
        alone=tuple(index.keys[members[0]] for members in together if len(members) == 1),
        nearest=nearest,
    )


def _joined(likes: Sequence[dict[int, int]], threshold: int, most: int) -> list[list[int]]:
    """Return all places in groups, each group and the list of groups ascending."""
    # A group goes by its smallest place. `across` is the sum of similarities between two groups.
    members: list[list[int]] = [[place] for place in range(len(likes))]
    across = [dict(row) for row in likes]
    queue = [
        (-product, place, other)
        for place, row in enumerate(likes)
        for other, product in row.items()
        if place < other and product >= threshold
    ]
    heapify(queue)
    while queue:
        closeness, one, two = heappop(queue)
        total = across[one].get(two)
        # Entries of groups that have changed since are stale: a newer entry stands for the pair.
        if total is None or total // (len(members[one]) * len(members[two])) != -closeness:
            continue
        if len(members[one]) + len(members[two]) > most:
            continue
        members[one] += members[two]
        members[two] = []
        mine = across[one]
        del mine[two]
        del across[two][one]
        for other, product in across[two].items():
            mine[other] = across[other][one] = mine.get(other, 0) + product
            del across[other][two]
        across[two] = {}
        for other, product in mine.items():
            mean = product // (len(members[one]) * len(members[other]))
            if mean >= threshold and len(members[one]) + len(members[other]) <= most:
                heappush(queue, (-mean, min(one, other), max(one, other)))
    return [sorted(group) for group in members if group]


def _outside(
    index: Index, likes: Sequence[dict[int, int]], of: Sequence[int], group: Sequence[int]
) -> tuple[Near, ...]:
    """Return the nearest to any of the places *of* that are not in *group*."""
    inside = set(group)
    best: dict[int, int] = {}
    for place in of:
        for other, product in likes[place].items():
            if product > best.get(other, 0) and other not in inside:
                best[other] = product
    nearest = nsmallest(OUTSIDE, ((-product, other) for other, product in best.items()))
    return tuple(Near(key=index.keys[other], similarity=share(-product)) for product, other in nearest)


def _group(index: Index, likes: Sequence[dict[int, int]], members: Sequence[int]) -> Group:
    inside = set(members)
    total = sum(product for place in members for other, product in likes[place].items() if other in inside)
    cohesion = share(total // (len(members) * (len(members) - 1)))
    shared = _shared(index, members)
    return Group(
        members=tuple(index.keys[place] for place in members),
        terms=tuple(word for word, _ in shared),
        why=_why(shared, len(members), cohesion),
        cohesion=cohesion,
        outside=_outside(index, likes, members, members),
    )


def _shared(index: Index, members: Sequence[int]) -> list[tuple[str, int]]:
    """Return the words that make the members alike, with how many of them hold each."""
    weight: dict[int, int] = {}
    held: dict[int, int] = {}
    for place in members:
        for term, its in index.vector(place).items():
            weight[term] = weight.get(term, 0) + its
            held[term] = held.get(term, 0) + 1

    # Of what at least half of them hold: by weight and by how many hold it; what the whole library says, later.
    def telling(term: int) -> int:
        return weight[term] * held[term] * (len(index) + PRIOR - index.spread(term))

    shared = [term for term, count in held.items() if count > 1 and 2 * count >= len(members)]
    best = sorted(shared, key=lambda term: (-telling(term), index.words[term]))
    return [(index.words[term], held[term]) for term in best[:WHY_TERMS]]


def _why(shared: Sequence[tuple[str, int]], size: int, cohesion: float) -> str:
    """Return the reason in words: what all share, what most share, and whether they are near copies."""
    everyone = [word for word, count in shared if count == size]
    most = [word for word, count in shared if count < size]
    parts = []
    if cohesion >= 0.85:
        parts.append("near copies")
    if everyone:
        parts.append(("both" if size == 2 else f"all {size}") + f" speak of {', '.join(everyone)}")
    if most:
        parts.append(f"most speak of {', '.join(most)}")
    return "; ".join(parts) or "alike in many words, none of them in most"

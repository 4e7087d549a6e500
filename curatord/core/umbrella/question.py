"""
The question about one cluster: what is shown of its members, and in how many pieces where it is too large.

The pieces of one cluster are asked one after another, since the second must see what the first made of the umbrella;
clusters are asked beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from json import dumps
from typing import Any

from curatord.core.cheap import dataclass
from curatord.core.umbrella.cards import Card
from curatord.core.umbrella.packed import Packed
from curatord.core.values import LibraryName, SkillKey

__all__ = ["MOST", "MergeQuestion", "merge_data", "question_key", "split"]

MOST = 24  # of one question: more members than that are decided badly, by people too
FILES_SHOWN = 30
OUTSIDE_CHARS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeQuestion:
    """
    One cluster, or a piece of one.

    Attributes:
        umbrella: Key of the umbrella, there or not; *existing* says which; *card* is its own where it is there.
        members: Cards with their packages.
        outside: Skills near to it, which are not offered.
        bodies: Whole texts are shown.
    """

    umbrella: SkillKey
    label: str
    existing: bool
    card: Card | None
    members: tuple[tuple[Card, Packed], ...]
    outside: tuple[Card, ...] = ()
    bodies: bool = False
    why: str = ""


def merge_data(library: LibraryName, question: MergeQuestion) -> dict[str, Any]:
    """Return the data part of the question."""
    return {
        "library": library,
        "umbrella": {
            "name": question.label,
            "existing": question.existing,
            "card": None
            if question.card is None
            else {"description": question.card.description, **question.card.card()},
        },
        "members": [_member(card, package, bodies=question.bodies) for card, package in question.members],
        "outside": [{"name": card.label, "description": card.description[:OUTSIDE_CHARS]} for card in question.outside],
    }


def _member(card: Card, package: Packed, *, bodies: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": card.label,
        "description": card.description,
        "card": card.card(),
        "files": {
            file.path: {"bytes": len(file.data), "sha256": file.sha256} for file in package.support[:FILES_SHOWN]
        },
    }
    if bodies:
        text = package.text
        row["body"] = getattr(text, "body", "")
    return row


def question_key(scope: str, data: Mapping[str, Any]) -> str:
    """Return what an answer is remembered under: what was shown, but for the skills outside."""
    told = {name: value for name, value in data.items() if name != "outside"}
    text = dumps(told, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return sha256(f"{scope}\0{text}".encode()).hexdigest()


def split(
    members: Sequence[tuple[Card, Packed]], *, fits: Callable[[Sequence[tuple[Card, Packed]]], bool], most: int = MOST
) -> tuple[tuple[tuple[tuple[Card, Packed], ...], ...], tuple[Card, ...]]:
    """Return *members* in as few even pieces as fit, and those too large to be shown even alone."""
    alone = tuple(card for card, package in members if not fits([(card, package)]))
    gone = {card.key for card in alone}
    left = [pair for pair in members if pair[0].key not in gone]
    for count in range(max(1, -(-len(left) // most)), len(left) + 1):
        size, more = divmod(len(left), count)
        pieces = []
        at = 0
        for number in range(count):
            end = at + size + (number < more)
            pieces.append(tuple(left[at:end]))
            at = end
        if all(fits(piece) for piece in pieces):
            return tuple(pieces), alone
    return (), alone

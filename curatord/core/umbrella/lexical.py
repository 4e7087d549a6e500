"""
The planner without a model: few, sure groups by the tight cut; an index page as the umbrella, every member a reference.

It knows nothing but words, so it writes none of its own but a plain sentence made of the members' names and of the
terms they share. Offline use and the demonstration run on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from curatord.core.agent_skills import MAX_DESCRIPTION, Layout
from curatord.core.cluster import Group
from curatord.core.umbrella.cards import Card
from curatord.core.umbrella.decision import Decision, Taken
from curatord.core.umbrella.naming import free_name, valid_name
from curatord.core.values import LibraryName, RelPath, SkillKey

__all__ = ["lexical_decision"]


def lexical_decision(
    group: Group,
    cards: Mapping[str, Card],
    *,
    library: LibraryName,
    layout: Layout,
    taken: Sequence[str],
) -> Decision | None:
    """
    Return what becomes of *group* (keys as text), or None where fewer than two of its members may be asked about.

    An umbrella among them takes the others in; two of curatord's umbrellas are never put into each other.
    """
    members = [cards[key] for key in group.members if key in cards]
    heads = [card for card in members if card.umbrella]
    head = heads[0] if heads else None
    rest = [card for card in members if not card.umbrella]
    if len(rest) + (head is not None) < 2 or not rest:
        return None
    taken_in = tuple(Taken(key=card.key, how="reference", reason=group.why) for card in rest)
    if head is not None:
        return Decision(umbrella=head.key, existing=True, members=taken_in, reason=group.why)
    name = free_name(_name(group, rest, layout), taken)
    folder = _common_folder(rest)
    rel = RelPath(f"{folder}/{name}" if folder else name)
    return Decision(
        umbrella=SkillKey(library=library, rel=rel),
        existing=False,
        members=taken_in,
        description=_description(group, rest),
        overview=f"{len(rest)} skills: {group.why}. Read the one that fits the task.",
        reason=group.why,
    )


def _name(group: Group, cards: Sequence[Card], layout: Layout) -> str:
    """Return a name of the words that begin all names, else of the terms that all share."""
    words = [card.key.name.split("-") for card in cards]
    shared = []
    for column in zip(*words, strict=False):
        if len(set(column)) > 1:
            break
        shared.append(column[0])
    told = "-".join(shared) or "-".join(group.terms[:2]) or cards[0].key.name
    name = valid_name(told, layout) or "skills"
    return f"{name}-skills" if len(name) < 4 else name


def _common_folder(cards: Sequence[Card]) -> str:
    folders = {card.key.rel.rpartition("/")[0] for card in cards}
    return folders.pop() if len(folders) == 1 else ""


def _description(group: Group, cards: Sequence[Card]) -> str:
    names = ", ".join(card.key.name for card in cards)
    topic = ", ".join(group.terms[:4])
    told = f"Use for {topic or 'any of these'}. Holds {names}."
    return told if len(told) <= MAX_DESCRIPTION else told[: MAX_DESCRIPTION - 2].rsplit(",", 1)[0] + " …"

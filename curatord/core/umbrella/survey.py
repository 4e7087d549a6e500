"""
The survey: one look over the index, answered by clusters; split where it does not fit, remembered by what was shown.

A library below some 1,500 skills is shown whole, names and descriptions, if the context allows. A larger one is shown
in parts: groups of candidates that clustering found, each with its nearest outsiders, packed to fill the room.

What is remembered is an answer together with the digests of the rows it was about. An unchanged library meets its own
answer again. After a change the old answers still hold for the rows that they were about (`carried`), and only the new
rows are asked about, among their neighbours (`focus`): a change costs what it touches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from curatord.core.agent_skills import Layout
from curatord.core.cheap import dataclass
from curatord.core.cluster import Clustering
from curatord.core.replies import SurveyReply
from curatord.core.umbrella.cards import Card
from curatord.core.umbrella.naming import free_name, screened, valid_name
from curatord.core.values import LibraryName, SkillKey

__all__ = [
    "WHOLE_BELOW",
    "Cluster",
    "Part",
    "Surveyed",
    "carried",
    "combined",
    "neighbours",
    "part_key",
    "parts",
    "read_survey",
    "rows_key",
    "survey_data",
]

WHOLE_BELOW = 1_500
HEADINGS_BELOW = 40  # rows of a larger survey go without headings: names and descriptions tell enough for a first cut
MAX_MEMBERS = 400


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """
    Skills that one umbrella should hold.

    *existing*: the umbrella is the skill *umbrella*, by its path within the library; else that is a new one's name.
    *members* are paths within the library.
    """

    umbrella: str
    existing: bool
    members: tuple[str, ...]
    why: str = ""


class Surveyed(msgspec.Struct, frozen=True, kw_only=True):
    """
    An answered survey, as it is remembered.

    *rows* are the digests of what was shown, by path within the library; *leave* holds what was said of skills that
    should stay, *violations* why clusters fell, *notes* what was mended or left out of those that did not.
    """

    rows: dict[str, str]
    clusters: tuple[Cluster, ...]
    leave: dict[str, str] = {}  # msgspec copies it
    violations: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one survey question shows: cards, and which of them code thinks alike."""

    cards: tuple[Card, ...]
    candidates: tuple[tuple[tuple[str, ...], str], ...]


def rows_key(cards: Sequence[Card]) -> dict[str, str]:
    """Return the digests of *cards* by path within the library."""
    return {card.key.rel: card.digest for card in cards}


def survey_data(library: LibraryName, part: Part) -> dict[str, Any]:
    """Return the data part of one survey question."""
    headings = len(part.cards) <= HEADINGS_BELOW
    return {
        "library": library,
        "skills": [card.row(headings=headings) for card in part.cards],
        "candidates": [{"members": list(members), "why": why} for members, why in part.candidates],
    }


def parts(
    cards: Sequence[Card], clusters: Clustering, *, fits: Callable[[Part], bool], whole_below: int = WHOLE_BELOW
) -> tuple[Part, ...]:
    """
    Return the questions that show *cards*: one with all of them, or as many as it takes.

    Args:
        cards: All that may be asked about, by key.
        clusters: Their groups.
        fits: Whether a part's question fits the model's context.
    """
    whole = _part(cards, clusters)
    if len(cards) < 2:
        return ()
    if len(cards) <= whole_below and fits(whole):
        return (whole,)
    by_key = {str(card.key): card for card in cards}
    found: list[Part] = []
    current: list[str] = []
    for members in _bundles(clusters, by_key):
        trial = list(dict.fromkeys([*current, *members]))
        if current and not fits(_part([by_key[key] for key in trial], clusters)):
            found.append(_part([by_key[key] for key in current], clusters))
            trial = list(members)
        while len(trial) > 2 and not fits(_part([by_key[key] for key in trial], clusters)):
            trial.pop()  # one group alone is too large: its last outsiders go first, then its last members
        current = trial
    if len(current) > 1 and fits(_part([by_key[key] for key in current], clusters)):
        found.append(_part([by_key[key] for key in current], clusters))
    return tuple(found)


def _bundles(clusters: Clustering, by_key: Mapping[str, Card]) -> list[list[str]]:
    bundles = []
    for group in clusters.groups:
        members = [key for key in group.members if key in by_key]
        outside = [near.key for near in group.outside if near.key in by_key]
        if len(members) + len(outside) > 1:
            bundles.append([*members, *outside])
    return bundles


def _part(cards: Sequence[Card], clusters: Clustering) -> Part:
    shown = {str(card.key): card for card in cards}
    candidates = []
    for group in clusters.groups:
        members = tuple(shown[key].label for key in group.members if key in shown)
        if len(members) > 1:
            candidates.append((members, group.why))
    return Part(cards=tuple(sorted(cards, key=lambda card: card.key)), candidates=tuple(candidates))


def neighbours(asked: Sequence[SkillKey], cards: Sequence[Card], clusters: Clustering) -> tuple[Card, ...]:
    """Return the cards of *asked* and of all that may belong with them: their groups, the nearest outside."""
    wanted = {str(key) for key in asked}
    near = set(wanted)
    for group in clusters.groups:
        if wanted & set(group.members):
            near.update(group.members)
            near.update(other.key for other in group.outside)
    for key in wanted:
        near.update(other.key for other in clusters.nearest.get(key, ()))
    return tuple(card for card in cards if str(card.key) in near)


# --- Reading ----------------------------------------------------------------------------------------------------------


def read_survey(
    reply: SurveyReply,
    part: Part,
    *,
    layout: Layout,
    taken: Mapping[str, str],
) -> Surveyed:
    """
    Return what *reply* says of the cards it was shown, without what cannot be.

    A survey only proposes what to ask about, so a name that is not there costs that name and not the cluster; a
    cluster falls that has nothing left to merge, or that names an umbrella which is none.

    Args:
        taken: Names of all skills of the library, live or planned, with why each may not be an umbrella, or with the
            empty text.
    """
    by_label = {card.label: card for card in part.cards}
    bad: list[str] = []
    notes: list[str] = []
    heads = {cluster.umbrella for cluster in reply.clusters if cluster.umbrella in by_label}
    used: dict[SkillKey, str] = {}
    found: list[Cluster] = []
    for number, cluster in enumerate(reply.clusters, start=1):
        where = f"cluster {number} (`{cluster.umbrella[:80]}`)"
        head = by_label.get(cluster.umbrella)
        if head is None and cluster.existing:
            why = taken.get(cluster.umbrella)
            bad.append(f"{where}: its umbrella {_why_no_umbrella(why)}")
            continue
        name = cluster.umbrella
        if head is None:
            mended = valid_name(cluster.umbrella, layout)
            if mended is None or screened(mended.replace("-", " "), "description"):
                bad.append(f"{where}: no skill may be called that")
                continue
            name = free_name(mended, taken)
            if name != cluster.umbrella:
                notes.append(f"{where}: called `{name}`, since that name is taken or not valid")
        if head is not None and head.key in used:
            bad.append(f"{where}: {head.label} is in {used[head.key]} already")
            continue
        if head is not None:
            used[head.key] = where
        members: list[str] = []
        for label in cluster.members:
            card = by_label.get(label)
            if card is None:
                notes.append(f"{where}: {label[:80]!r} was not shown")
            elif card is head:
                notes.append(f"{where}: {label} would go into itself")
            elif label in heads:
                notes.append(f"{where}: {label} is an umbrella of another cluster")
            elif card.made_now:
                notes.append(f"{where}: {label} is an umbrella of this run, which may only gain members")
            elif card.key in used:
                notes.append(f"{where}: {label} is in {used[card.key]} already")
            else:
                used[card.key] = where
                members.append(card.key.rel)
        if len(members) + (head is not None) < 2:
            if cluster.members:
                bad.append(f"{where}: fewer than two skills are left of it")
            continue
        if len(members) > MAX_MEMBERS:
            bad.append(f"{where}: it has {len(members)} members, and at most {MAX_MEMBERS} are taken")
            continue
        found.append(
            Cluster(
                umbrella=head.key.rel if head is not None else name,
                existing=head is not None,
                members=tuple(members),
                why=" ".join(cluster.why.split())[:500],
            )
        )
    leave: dict[str, str] = {
        by_label[row.name].key.rel: " ".join(row.why.split())[:300]
        for row in reply.leave
        if row.name in by_label and by_label[row.name].key not in used
    }
    return Surveyed(
        rows=rows_key(part.cards), clusters=tuple(found), leave=leave, violations=tuple(bad), notes=tuple(notes)
    )


def _why_no_umbrella(why: str | None) -> str:
    if why is None:
        return "is no skill of this library"
    return f"may not be one: {why}" if why else "was not shown"


# --- Remembering ------------------------------------------------------------------------------------------------------


def carried(rows: Mapping[str, str], remembered: Sequence[Surveyed]) -> tuple[Surveyed, tuple[str, ...]]:
    """
    Return what old surveys still say of *rows*, and which rows none of them was about.

    Of several, the one that knows most of the rows is heard first, and each of the others for what is left.
    """
    left = dict(rows)
    clusters: list[Cluster] = []
    leave: dict[str, str] = {}

    def known(survey: Surveyed) -> set[str]:
        return {rel for rel, digest in left.items() if survey.rows.get(rel) == digest}

    waiting = list(remembered)
    while waiting and left:
        best = max(range(len(waiting)), key=lambda place: len(known(waiting[place])))
        survey = waiting.pop(best)
        its = known(survey)
        if not its:
            break
        for cluster in survey.clusters:
            members = tuple(rel for rel in cluster.members if rel in its)
            if cluster.existing and cluster.umbrella not in its:
                continue
            if not cluster.existing and cluster.umbrella in {rel.rpartition("/")[2] for rel in rows}:
                continue  # it was made since, and is asked about by itself
            if len(members) + cluster.existing > 1 and members:
                clusters.append(msgspec.structs.replace(cluster, members=members))
        leave |= {rel: why for rel, why in survey.leave.items() if rel in its}
        for rel in its:
            del left[rel]
    known_rows = {rel: digest for rel, digest in rows.items() if rel not in left}
    return Surveyed(rows=known_rows, clusters=tuple(clusters), leave=leave), tuple(sorted(left))


def combined(rows: Mapping[str, str], old: Surveyed, answers: Sequence[Surveyed], new: Sequence[str]) -> Surveyed:
    """
    Return one answer for all *rows*, of what old surveys say and what was answered about the rows *new*.

    An answer counts for what it says of new rows. A cluster of it that reaches into an old one joins that one; the old
    rows that it names besides stay where the old answer had them.
    """
    fresh = set(new)
    clusters = list(old.clusters)
    leave = dict(old.leave)
    used = {
        rel for cluster in clusters for rel in (*cluster.members, *([cluster.umbrella] if cluster.existing else []))
    }
    violations: list[str] = []
    notes: list[str] = []
    for answer in answers:
        violations += answer.violations
        notes += answer.notes
        leave |= {rel: why for rel, why in answer.leave.items() if rel in fresh}
        for cluster in answer.clusters:
            everyone = [*cluster.members, *([cluster.umbrella] if cluster.existing else [])]
            if old.rows and not fresh & set(everyone):
                continue
            homes = [
                place
                for place, other in enumerate(clusters)
                if set(everyone) & {*other.members, *([other.umbrella] if other.existing else [])}
            ]
            mine = tuple(rel for rel in cluster.members if rel not in used)
            if homes:
                home = clusters[homes[0]]
                extra = [rel for rel in everyone if rel in fresh and rel not in used]
                clusters[homes[0]] = msgspec.structs.replace(home, members=(*home.members, *extra))
                used.update(extra)
            elif mine and len(mine) + cluster.existing > 1 and (not cluster.existing or cluster.umbrella not in used):
                clusters.append(msgspec.structs.replace(cluster, members=mine))
                used.update(mine)
                used.update([cluster.umbrella] if cluster.existing else [])
    distinct: list[Cluster] = []
    for cluster in clusters:
        # Two parts of a split survey may have had the same idea of a new umbrella: it is one.
        same = next(
            (p for p, c in enumerate(distinct) if (c.umbrella, c.existing) == (cluster.umbrella, cluster.existing)),
            None,
        )
        if same is not None:
            members = tuple(dict.fromkeys((*distinct[same].members, *cluster.members)))
            distinct[same] = msgspec.structs.replace(distinct[same], members=members)
        else:
            distinct.append(cluster)
    taken_up = {rel for cluster in distinct for rel in cluster.members}
    return Surveyed(
        rows=dict(rows),
        clusters=tuple(distinct),
        leave={rel: why for rel, why in leave.items() if rel not in taken_up},
        violations=tuple(violations),
        notes=tuple(notes),
    )


def part_key(scope: str, rows: Mapping[str, str]) -> str:
    """Return what an answer about *rows* is remembered under; order and states do not matter."""
    told = "\0".join((scope, *(f"{rel}\1{digest}" for rel, digest in sorted(rows.items()))))
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()

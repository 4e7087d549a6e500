"""Surveys: how they are split, read, remembered and put together."""

from __future__ import annotations

import pytest

from curatord.core.cluster import Clustering, build_index, cluster
from curatord.core.replies import Cluster as SaidCluster
from curatord.core.replies import Leave, SurveyReply
from curatord.core.umbrella.cards import Card, card_of
from curatord.core.umbrella.survey import (
    Cluster,
    Part,
    Surveyed,
    carried,
    combined,
    part_key,
    parts,
    read_survey,
    rows_key,
)
from curatord.core.values import State
from tests.core.umbrella.packages import a_package


def a_card(name: str, *, made_now: bool = False) -> Card:
    """Return the card of a skill."""
    package = a_package(name, description=f"Use for {name.split('-')[0]} work, {name}")
    card = card_of(package.key, name, package.files[0].data, State.ACTIVE, made_now=made_now)
    assert card is not None
    return card


def grouped(cards: list[Card]) -> Clustering:
    """Return the groups of *cards*."""
    return cluster(build_index([card.for_clustering() for card in cards]))


def read(reply: SurveyReply, *cards: Card, taken: dict[str, str] | None = None) -> Surveyed:
    """Return what *reply* says of *cards*."""
    known = {card.label: "" for card in cards} | (taken or {})
    return read_survey(reply, Part(cards=cards, candidates=()), layout="agent-skills", taken=known)


def said(umbrella: str, *members: str, existing: bool = False) -> SaidCluster:
    """Return a cluster as a model says it."""
    return SaidCluster(umbrella=umbrella, existing=existing, members=members)


A, B, C, D = (a_card(name) for name in ("dns-a", "dns-b", "git-c", "git-d"))


def test_names_that_were_not_shown_cost_themselves() -> None:
    """The others of the cluster stay."""
    found = read(SurveyReply(clusters=(said("kit", "dns-a", "never-heard-of", "dns-b"),)), A, B)

    assert (Cluster(umbrella="kit", existing=False, members=("dns-a", "dns-b")),) == found.clusters
    assert "'never-heard-of' was not shown" in found.notes[0]


@pytest.mark.parametrize(
    "bad",
    [
        said("no-such", "dns-a", "dns-b", existing=True),
        said("pinned-one", "dns-a", "dns-b", existing=True),
        said("../escape", "dns-a", "dns-b"),
        said("kit", "dns-a"),
        said("dns-a", "dns-a", existing=True),
    ],
    ids=["unknown", "pinned", "escape", "alone", "itself"],
)
def test_a_bad_cluster_falls_and_the_good_ones_stay(bad: SaidCluster) -> None:
    """Each with a reason."""
    found = read(SurveyReply(clusters=(bad, said("vcs", "git-c", "git-d"))), A, B, C, D, taken={"pinned-one": "pinned"})

    assert ["vcs"] == [one.umbrella for one in found.clusters]
    assert 1 == len(found.violations)


def test_no_chains_and_no_cycles() -> None:
    """Who is an umbrella is no member, not even when both say so of each other."""
    reply = SurveyReply(
        clusters=(said("dns-a", "dns-b", "git-c", existing=True), said("git-c", "git-d", "dns-a", existing=True))
    )

    found = read(reply, A, B, C, D)

    assert [("dns-a", ("dns-b",)), ("git-c", ("git-d",))] == [(one.umbrella, one.members) for one in found.clusters]


def test_nobody_is_in_two_clusters() -> None:
    """The first one counts."""
    found = read(
        SurveyReply(clusters=(said("kit", "dns-a", "dns-b"), said("vcs", "dns-a", "git-c", "git-d"))), A, B, C, D
    )

    assert [("dns-a", "dns-b"), ("git-c", "git-d")] == [one.members for one in found.clusters]


def test_a_taken_name_is_made_another() -> None:
    """A new umbrella cannot take the place of a skill that may not be one."""
    found = read(SurveyReply(clusters=(said("bundled", "dns-a", "dns-b"),)), A, B, taken={"bundled": "bundled"})

    assert "bundled-guide" == found.clusters[0].umbrella


def test_a_large_library_is_shown_in_parts_that_fit() -> None:
    """Whole groups, each part within the room, and nobody of a group left out."""
    cards = [a_card(f"{word}-{number}") for word in ("dns", "git", "csv", "aws") for number in range(6)]
    groups = grouped(cards)

    found = parts(cards, groups, fits=lambda part: len(part.cards) <= 8)

    assert len(found) > 1
    assert all(len(part.cards) <= 8 for part in found)
    for group in groups.groups:
        assert any(set(group.members) <= {str(card.key) for card in part.cards} for part in found)


def test_a_library_that_fits_is_shown_whole() -> None:
    """Loners too."""
    cards = [A, B, a_card("solo")]

    (part,) = parts(cards, grouped(cards), fits=lambda _: True)

    assert 3 == len(part.cards)


def test_the_key_knows_content_and_not_order() -> None:
    """And a prompt or model of another name is another key."""
    rows = rows_key([A, B])

    assert part_key("s", rows) == part_key("s", rows_key([B, A]))
    assert part_key("s", rows) != part_key("t", rows)
    assert part_key("s", rows) != part_key("s", rows | {"dns-b": "other"})


def test_old_answers_hold_for_what_did_not_change() -> None:
    """A member that changed is asked about anew, the rest of its cluster stays one."""
    rows = rows_key([A, B, C, D])
    old = Surveyed(
        rows=rows,
        clusters=(Cluster(umbrella="kit", existing=False, members=("dns-a", "dns-b", "git-c")),),
        leave={"git-d": "x"},
    )

    found, new = carried(rows | {"git-c": "changed"}, [old])

    assert ("git-c",) == new
    assert [("dns-a", "dns-b")] == [one.members for one in found.clusters]
    assert {"git-d": "x"} == found.leave


def test_a_new_skill_joins_the_cluster_of_its_neighbours() -> None:
    """What is said of old rows besides does not count."""
    rows = rows_key([A, B, C, D])
    old = Surveyed(
        rows={rel: rows[rel] for rel in ("dns-a", "dns-b", "git-d")},
        clusters=(Cluster(umbrella="kit", existing=False, members=("dns-a", "dns-b")),),
        leave={"git-d": "alone"},
    )
    answer = Surveyed(
        rows=rows,
        clusters=(
            Cluster(umbrella="other", existing=False, members=("dns-a", "git-c")),
            Cluster(umbrella="vcs", existing=False, members=("dns-b", "git-d")),
        ),
    )

    found = combined(rows, old, [answer], ["git-c"])

    assert [("kit", ("dns-a", "dns-b", "git-c"))] == [(one.umbrella, one.members) for one in found.clusters]


def test_two_parts_with_one_idea_make_one_cluster() -> None:
    """The same new umbrella, named in two answers."""
    rows = rows_key([A, B, C, D])
    answers = [
        Surveyed(rows={}, clusters=(Cluster(umbrella="kit", existing=False, members=("dns-a", "dns-b")),)),
        Surveyed(rows={}, clusters=(Cluster(umbrella="kit", existing=False, members=("git-c", "git-d")),)),
    ]

    found = combined(rows, Surveyed(rows={}, clusters=()), answers, list(rows))

    assert [("dns-a", "dns-b", "git-c", "git-d")] == [one.members for one in found.clusters]


def test_reasons_to_leave_are_kept_for_the_record() -> None:
    """Of those that no cluster holds."""
    reply = SurveyReply(
        clusters=(said("kit", "dns-a", "dns-b"),), leave=(Leave(name="git-c", why="alone"), Leave(name="dns-a"))
    )

    found = read(reply, A, B, C)

    assert {"git-c": "alone"} == found.leave

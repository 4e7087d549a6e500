"""Lessons seen once: confirmed by another conversation within 90 days, forgotten after."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from curatord.core.distil.candidates import KeptCandidate, candidate_id, confirmed_by, remembered, seen_again
from curatord.core.distil.names import mixed_scripts, skeleton
from curatord.core.values import LibraryName

LIB = LibraryName("claude")
NOW = datetime(2026, 9, 1, tzinfo=UTC)


def seen(lineage: str, at: datetime, before: KeptCandidate | None = None, *, cited: bool = True) -> KeptCandidate:
    return seen_again(
        before,
        library=LIB,
        name="probe-kit",
        description="d",
        content_sha256="0" * 64,
        lineage=lineage,
        now=at,
        cited=cited,
    )


@pytest.mark.parametrize(
    "other", ["Probe-Kit", "probe_kit", "probe kit", "\uff50robe-kit", "pr\u043ebe-kit", "probe\u200b-kit"]
)
def test_every_spelling_of_a_name_is_one_lesson(other: str) -> None:
    """Case, separators, width, look-alike letters, what is not seen."""
    assert candidate_id(LIB, "probe-kit") == candidate_id(LIB, other)


def test_another_name_or_library_is_another_lesson() -> None:
    """Ten letters, stable from run to run."""
    ids = {
        candidate_id(LIB, "probe-kit"),
        candidate_id(LIB, "probe-kits"),
        candidate_id(LibraryName("pi"), "probe-kit"),
    }

    assert 3 == len(ids)
    assert candidate_id(LIB, "probe-kit") == candidate_id(LIB, "probe-kit")


def test_the_same_conversation_confirms_nothing() -> None:
    """A resume, a fork or a second look tells the same story."""
    once = seen("a", NOW)
    twice = seen("a", NOW + timedelta(days=1), once)

    assert 1 == confirmed_by(twice, "a", NOW + timedelta(days=2))
    assert 1 == len(twice.sightings)
    assert 1 == confirmed_by(None, "a", NOW)


def test_another_conversation_confirms() -> None:
    """Two of different lineages are two."""
    assert 2 == confirmed_by(seen("a", NOW), "b", NOW + timedelta(days=89))
    assert 3 == confirmed_by(seen("b", NOW, seen("a", NOW)), "c", NOW)


def test_a_word_that_cites_nothing_does_not_count() -> None:
    """It keeps the name in sight for 90 days, and takes nothing from the words that count."""
    noted = seen("a", NOW, cited=False)
    again = seen("b", NOW, noted, cited=False)
    counted = seen("c", NOW, again)
    after = seen("d", NOW, counted, cited=False)

    assert [(), ()] == [noted.sightings, again.sightings]
    assert 1 == confirmed_by(again, "c", NOW)
    assert 1 == confirmed_by(counted, "d", NOW, cited=False)
    assert ("c",) == tuple(lineage for lineage, _ in after.sightings)
    assert (noted,) == remembered([noted], NOW + timedelta(days=90))
    assert () == remembered([noted], NOW + timedelta(days=91))


def test_after_90_days_a_word_is_forgotten() -> None:
    """Both for confirming and for being shown; the last day still counts."""
    candidate = seen("a", NOW)

    assert 2 == confirmed_by(candidate, "b", NOW + timedelta(days=90))
    assert 1 == confirmed_by(candidate, "b", NOW + timedelta(days=90, seconds=1))
    assert (candidate,) == remembered([candidate], NOW + timedelta(days=90))
    assert () == remembered([candidate], NOW + timedelta(days=90, seconds=1))


def test_an_old_word_goes_and_a_new_one_stays() -> None:
    """Each sighting is forgotten by itself."""
    candidate = seen("b", NOW + timedelta(days=60), seen("a", NOW))

    (kept,) = remembered([candidate], NOW + timedelta(days=100))
    assert ("b",) == tuple(lineage for lineage, _ in kept.sightings)


def test_sightings_are_bounded() -> None:
    """A lesson that a hundred sessions speak for is no longer than one of sixteen."""
    candidate = None
    for number in range(100):
        candidate = seen(str(number), NOW + timedelta(minutes=number), candidate)

    assert candidate is not None
    assert 16 == len(candidate.sightings)
    assert NOW + timedelta(minutes=99) == candidate.last_at


@pytest.mark.parametrize(
    ("name", "mixed"), [("probe-kit", False), ("pr\u043ebe-kit", True), ("проба", False), ("部署-kit", False)]
)
def test_alphabets_that_no_honest_name_mixes(name: str, mixed: bool) -> None:
    """Latin with Cyrillic or Greek; ideographs stand beside Latin letters in many honest names."""
    assert mixed is mixed_scripts(name)


def test_skeletons_keep_different_names_apart() -> None:
    """What a reader can tell apart stays apart."""
    assert len({skeleton(n) for n in ("deploy", "deploy-kit", "deployer", "d3ploy", "部署", "部属")}) == 6

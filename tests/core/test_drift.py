"""What of a host's transcripts is unusual of late: new formats are seen, new kinds of records now and then are not."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from curatord.core.drift import Drift, Stretch, drift_of, newest_version, percent

EARLIER, TODAY = date(2026, 9, 1), date(2026, 9, 2)


def a_stretch(**changes: Any) -> Stretch:
    """Return an ordinary stretch: everything known, turns understood."""
    given: dict[str, Any] = {"day": EARLIER, "version": "2.1.9", "records": 1000, "unreadable": 0, "turns": 100}
    return Stretch(**{**given, "unknown": {}, **changes})


def whats(*stretches: Stretch) -> list[str]:
    """Return the kinds of drift that are found."""
    return [drift.what for drift in drift_of(stretches)]


def test_nothing_read_is_nothing_unusual() -> None:
    """A source that was never scanned has no format to drift."""
    assert [] == drift_of([])


def test_an_invented_record_type_is_seen() -> None:
    """Two hundred lines of a type that nobody knows, and nothing else: bugs B098."""
    (unknown, silent) = drift_of([a_stretch(records=200, turns=0, unknown={"chunk_v2": 200})])

    assert ("unknown", "silent") == (unknown.what, silent.what)
    assert (("chunk_v2", 200),) == unknown.types
    assert "100 % of the records are of types that are not known here: chunk_v2 (200)" in unknown.sentence


def test_a_new_version_is_held_against_the_ones_before() -> None:
    """Over all that was ever read it would be two in a thousand; the sentence names the version and both shares."""
    usual = a_stretch(records=100_000, unknown={"progress": 10})
    changed = a_stretch(day=TODAY, version="2.1.10", records=200, turns=20, unknown={"turn_v2": 60})

    (drift,) = drift_of([usual, changed])

    assert "since version 2.1.10" == drift.since
    assert (
        "since version 2.1.10, 30 % of the records are of types that are not known here (before: under 0.1 %): "
        "turn_v2 (60)" == drift.sentence
    )


def test_versions_of_one_scan_are_told_apart() -> None:
    """A first scan reads all history on one day; the highest version is the newest then, by numbers and not by text."""
    stretches = [a_stretch(version="2.1.9"), a_stretch(version="2.1.10", records=100, unknown={"x": 40})]

    assert ["since version 2.1.10"] == [drift.since for drift in drift_of(stretches)]


def test_a_host_without_versions_is_held_against_its_own_days() -> None:
    """Cursor and Gemini CLI name none in their records."""
    stretches = [a_stretch(version=""), a_stretch(version="", day=TODAY, records=100, unknown={"x": 40})]

    assert ["since 2026-09-02"] == [drift.since for drift in drift_of(stretches)]


def test_a_version_with_few_records_waits_for_more() -> None:
    """Ten records of the first session after an update say nothing yet."""
    few = a_stretch(day=TODAY, version="3.0.0", records=10, turns=1, unknown={"x": 9})

    assert [] == whats(a_stretch(), few)
    assert ["unknown"] == whats(a_stretch(), few, a_stretch(day=TODAY, version="3.0.0", records=60, unknown={"x": 30}))


@pytest.mark.parametrize(
    ("usual", "late", "expected"),
    [
        ({}, {"x": 99}, []),  # under a tenth
        ({}, {"x": 100}, ["unknown"]),
        ({"x": 100}, {"x": 299}, []),  # it was always much; not three times that
        ({"x": 100}, {"x": 301}, ["unknown"]),
        ({"x": 500}, {"x": 740}, []),
        ({"x": 500}, {"x": 990}, ["unknown"]),  # three times a half cannot be
    ],
)
def test_ordinary_shares_are_no_drift(usual: dict[str, int], late: dict[str, int], expected: list[str]) -> None:
    """Hosts bring a new kind of record every few weeks; only what is much, and more than usual, is told."""
    assert expected == whats(a_stretch(unknown=usual), a_stretch(day=TODAY, version="2.2.0", unknown=late))


def test_few_unknown_records_are_none() -> None:
    """Nineteen in sixty is a large share and a small number."""
    late = a_stretch(day=TODAY, version="2.2.0", records=60, turns=5, unknown={"x": 19})

    assert [] == whats(a_stretch(), late)


@pytest.mark.parametrize(("unreadable", "expected"), [(9, []), (10, ["unreadable"]), (100, ["unreadable"])])
def test_records_that_cannot_be_read_are_drift_from_ten_on(unreadable: int, expected: list[str]) -> None:
    """A killed host leaves half a line; ten of them in a hundred records are something else."""
    late = a_stretch(day=TODAY, version="2.2.0", records=100, unreadable=unreadable)

    assert expected == whats(a_stretch(), late)


def test_a_version_that_cannot_be_read_at_all_is_seen() -> None:
    """No record of it was understood, so it has none; the unreadable ones are enough to speak of it."""
    assert ["unreadable"] == whats(
        a_stretch(), a_stretch(day=TODAY, version="2.2.0", records=0, turns=0, unreadable=80)
    )


@pytest.mark.parametrize(("records", "turns", "expected"), [(199, 0, []), (200, 1, []), (200, 0, ["silent"])])
def test_records_without_a_turn_are_a_reader_that_understands_nothing(
    records: int, turns: int, expected: list[str]
) -> None:
    """Types may keep their names while what is in them moves."""
    late = a_stretch(day=TODAY, version="2.2.0", records=records, turns=turns)

    assert expected == whats(a_stretch(), late)


def test_the_order_of_stretches_does_not_matter() -> None:
    """They come from a table."""
    stretches = [a_stretch(), a_stretch(day=TODAY, version="2.2.0", records=100, unknown={"b": 20, "a": 20})]

    assert drift_of(stretches) == drift_of(stretches[::-1])
    assert (
        Drift(
            what="unknown",
            since="since version 2.2.0",
            sentence=drift_of(stretches)[0].sentence,
            types=(("a", 20), ("b", 20)),
        )
        == drift_of(stretches)[0]
    )


def test_versions_are_ordered_by_their_numbers() -> None:
    """As programs count them; a text without a number is the lowest, and no version is the empty text."""
    assert "2.1.10" == newest_version({"2.1.9", "2.1.10", "[trimmed]"})
    assert "" == newest_version(set())


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, "0 %"), (0.0004, "under 0.1 %"), (0.025, "2.5 %"), (0.314, "31 %"), (1.0, "100 %")]
)
def test_shares_read_well(share: float, expected: str) -> None:
    """What is there is never rounded to nothing."""
    assert expected == percent(share)

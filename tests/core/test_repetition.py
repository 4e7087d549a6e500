"""Repeated trouble: said first, at powers of two, and at its end with the count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from curatord.core.repetition import MOST, Recovered, Repeats

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def met(times: int, *, text: str = "gone") -> tuple[Repeats, list[int]]:
    """Return what is kept after *times* equal troubles a minute apart, and which of them were worth saying."""
    repeats, said = Repeats(), []
    for number in range(times):
        repeats, worth = repeats.met("k", text, NOW + timedelta(minutes=number))
        said += [worth] if worth is not None else []
    return repeats, said


def test_it_is_said_at_powers_of_two() -> None:
    """A week of minutes is said fourteen times."""
    assert [1, 2, 4, 8, 16] == met(20)[1]
    assert 14 == len(met(7 * 24 * 60)[1])


def test_its_end_is_told_with_the_count() -> None:
    """And for how long it went on."""
    repeats, _ = met(5)

    rest, over = repeats.gone("k", NOW + timedelta(minutes=10))

    assert Recovered(text="gone", times=5, duration_s=600.0) == over
    assert Repeats() == rest
    assert (rest, None) == rest.gone("k", NOW)


def test_another_text_is_news() -> None:
    """The row goes on all the same: it is the same thing that is in trouble."""
    repeats, _ = met(6)

    repeats, worth = repeats.met("k", "full", NOW)

    assert 7 == worth
    assert 7 == repeats.troubles["k"].times


def test_things_are_counted_apart() -> None:
    """One that ends says nothing of the other."""
    repeats, _ = met(2)
    repeats, worth = repeats.met("other", "gone", NOW)
    repeats, over = repeats.gone("k", NOW)

    assert 1 == worth
    assert over is not None
    assert ["other"] == repeats.others([])
    assert [] == repeats.others(["other"])


def test_a_clock_that_was_set_back_gives_no_negative_time() -> None:
    """It is nought then."""
    repeats, _ = met(1)

    _, over = repeats.gone("k", NOW - timedelta(days=1))

    assert over is not None
    assert 0.0 == over.duration_s


@given(st.lists(st.tuples(st.integers(0, 3 * MOST), st.booleans()), max_size=200))
def test_it_never_holds_more_than_its_bound(steps: list[tuple[int, bool]]) -> None:
    """Whatever comes and goes; and a value that was handed out does not change."""
    repeats = Repeats()
    for number in range(MOST):
        repeats, _ = repeats.met(str(-number - 1), "x", NOW)
    before, held = repeats, dict(repeats.troubles)
    for key, goes in steps:
        repeats, _ = repeats.gone(str(key), NOW) if goes else repeats.met(str(key), "x", NOW)

        assert len(repeats.troubles) <= MOST
    assert held == before.troubles

"""Durations and sizes are read and written without loss."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90d", 7_776_000),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("1.5h", 5400),
        ("0", 0),
        ("250ms", 0.25),
        ("1w", 604_800),
        (" 10m ", 600),
        ("-2h", -7200),
        ("+2h", 7200),
    ],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    """Units from weeks to milliseconds, combined, with fractions."""
    assert seconds == parse_duration(text).total_seconds()


@pytest.mark.parametrize("text", ["", "30", "1 month", "d", "1y", "P1D", "1h-30m", "1,5h", "∞", "1e3s", "9" * 50 + "d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """A number needs its unit, and a unit its number."""
    with pytest.raises(ValueError, match=r"unit|longer"):
        parse_duration(text)


@given(st.integers(min_value=-(10**12), max_value=10**12))
def test_durations_are_written_as_they_are_read(millis: int) -> None:
    """To the millisecond, whatever the length."""
    value = timedelta(milliseconds=millis)

    assert value == parse_duration(format_duration(value))


@pytest.mark.parametrize(
    ("text", "size"), [("8KiB", 8192), ("1.5MiB", 1_572_864), ("10 kB", 10_000), ("0", 0), ("7B", 7)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    """Binary and decimal units."""
    assert size == parse_size(text)


@given(st.integers(min_value=0, max_value=2**50))
def test_sizes_are_written_as_they_are_read(size: int) -> None:
    """In the largest unit that is exact."""
    assert size == parse_size(format_size(size))

"""Times and spans as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from curatord.core.words import day, days, exact, span, stamp


@pytest.mark.parametrize(
    ("length", "rough", "whole"),
    [
        (timedelta(days=30), "30 days", "30 days"),
        (timedelta(days=29, hours=23), "29 days", "29 days 23 hours"),
        (timedelta(hours=36), "1 day", "1 day 12 hours"),
        (timedelta(hours=2), "2 hours", "2 hours"),
        (timedelta(minutes=90, seconds=1), "1 hour", "1 hour 30 minutes 1 second"),
        (timedelta(seconds=59), "0 minutes", "59 seconds"),
        (timedelta(0), "0 minutes", "0 seconds"),
    ],
)
def test_spans_are_rounded_down_and_settings_are_exact(length: timedelta, rough: str, whole: str) -> None:
    """An idle time never reads as more than it is; a period reads as what was set."""
    assert (rough, whole) == (span(length), exact(length))


def test_days_are_never_rounded_up_over_a_limit() -> None:
    """29.999 days are not the 30 that make a skill stale."""
    assert (29.99, 30.0) == (days(timedelta(days=30) - timedelta(seconds=1)), days(timedelta(days=30)))


def test_times_are_utc() -> None:
    """Whatever zone a time comes in."""
    there = datetime(2026, 6, 1, 1, 30, tzinfo=timezone(timedelta(hours=3)))

    assert ("2026-05-31", "2026-05-31T22:30:00Z") == (day(there), stamp(there))
    assert stamp(there) == stamp(there.astimezone(UTC))

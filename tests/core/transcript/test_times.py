"""Times as hosts write them."""

from __future__ import annotations

import pytest

from curatord.core.transcript.times import ms_of_number


@pytest.mark.parametrize("number", [10**30, 1e300, 253_402_300_800_000])
def test_a_number_behind_the_last_year_is_no_time(number: float) -> None:
    """It would not fit where times are kept; also where no future is too far."""
    assert ms_of_number(number, now_ms=0).ms is None

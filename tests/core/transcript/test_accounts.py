"""Times are kept as text while records are read, and become numbers when findings are taken."""

from __future__ import annotations

import pytest

from curatord.core.transcript.accounts import Account, common_ms, tell_times
from curatord.core.transcript.events import DAY_MS, HOUR_MS, HourTally, SessionTally

TEN = "2026-03-01T10:00:00.000Z"
TEN_MS = 1_772_359_200_000


@pytest.mark.parametrize(
    ("time", "ms"),
    [(TEN, TEN_MS), ("2026-03-01T10:00:00.001Z", TEN_MS + 1), ("2026-02-30T10:00:00.000Z", None), ("", None)],
)
def test_a_time_in_the_common_form(time: str, ms: int | None) -> None:
    """One that only looks like it is none."""
    assert ms == common_ms(time)


def test_hours_of_work_and_of_the_rest() -> None:
    """Both tell when the session was, and on which day turns were paid; only work tells when somebody worked."""
    account = Account(SessionTally(session_id="s"))
    account.work["2026-03-01T10"] = [TEN, "2026-03-01T10:30:00.000Z", 2]
    account.rest["2026-03-01T09"] = ["2026-03-01T09:59:00.000Z", "2026-03-01T09:59:00.000Z", 1]
    account.rest["2026-03-01T11"] = ["~", "", 0]  # made ready, and nothing came

    tell_times(account)

    tally = account.tally
    assert (TEN_MS - 60_000, TEN_MS + 1_800_000) == (tally.first_ms, tally.last_ms)
    assert {TEN_MS // HOUR_MS: HourTally(TEN_MS, TEN_MS + 1_800_000)} == tally.hours
    assert {TEN_MS // DAY_MS: 3} == tally.turns_by_day


def test_half_a_time_stands_for_both() -> None:
    """Where one end of an hour only looks like a time, the other is all that is known; two such say nothing."""
    account = Account(SessionTally(session_id="s"))
    account.work["2026-03-01T10"] = [TEN, "2026-03-01T10:99:00.000Z", 0]
    account.work["2026-02-30T10"] = ["2026-02-30T10:00:00.000Z", "2026-02-30T10:00:00.000Z", 0]

    tell_times(account)

    assert {TEN_MS // HOUR_MS: HourTally(TEN_MS, TEN_MS)} == account.tally.hours

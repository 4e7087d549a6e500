"""What a person is told of a run: changes and new questions, nothing else, on one inert line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from curatord.core.cheap import replace
from curatord.core.notice import notice_of
from curatord.core.run_record import Counts, PendingRow, RunRecord, TransitionRow
from curatord.core.values import Mode, Outcome, RunId, Trigger

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def a_run(**facts: Any) -> RunRecord:
    """Return a run that is over."""
    plain = RunRecord(
        run_id=RunId("20261130-120000"),
        trigger=Trigger.SCHEDULE,
        dry_run=False,
        mode=Mode.GUARDED,
        outcome=Outcome.OK,
        started_at=NOW,
        version="1",
        config_fingerprint="ab",
        after=Counts(total=9, managed=5),
    )
    return replace(plain, **facts)


def transition() -> TransitionRow:
    return TransitionRow(
        library="claude", skill="x", from_state="active", to_state="stale", idle=timedelta(days=40), reason="idle"
    )


def pending(name: str) -> PendingRow:
    return PendingRow(id=name, summary="archive x", reason="idle")


@pytest.mark.parametrize(
    "run",
    [
        a_run(outcome=Outcome.NOTHING_TO_DO),
        a_run(outcome=Outcome.FAILED, error="no model"),
        a_run(pending=(pending("old"),)),
        a_run(dry_run=True, transitions=(transition(),)),
    ],
    ids=["nothing", "failed", "asked before", "dry"],
)
def test_a_run_that_changed_nothing_gives_none(run: RunRecord) -> None:
    """Nobody is called for it."""
    assert notice_of(run, waited=["old"]) is None


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (a_run(transitions=(transition(),)), "curatord: marked 1 stale (5 managed of 9 skills)"),
        (
            a_run(pending=(pending("old"), pending("new"))),
            "curatord: 2 waiting for your decision (5 managed of 9 skills)",
        ),
        (
            a_run(transitions=(transition(),), outcome=Outcome.FAILED, error="full\n\x1b[31mdisk"),
            "curatord: failed: full \\x1b[31mdisk (5 managed of 9 skills)",
        ),
    ],
    ids=["changed", "asks", "hostile"],
)
def test_a_change_or_a_new_question_is_told(run: RunRecord, text: str) -> None:
    """In one line whose beginning stands alone."""
    notice = notice_of(run, waited=["old"])

    assert notice is not None
    assert text == notice.text
    assert "20261130-120000" == notice.run_id


def test_a_secret_in_an_error_stays_here() -> None:
    """Whoever is called may be a chat room."""
    secret = "sk-ant-" + "api03-Ab1Cd2Ef3Gh4Ij5Kl6Mn7"
    run = a_run(transitions=(transition(),), outcome=Outcome.FAILED, error=f"refused {secret}")

    notice = notice_of(run, waited=[])

    assert notice is not None
    assert secret not in notice.text
    assert "[redacted:" in notice.text

"""`run.json` has the contract's keys, and the report says the same in words, inert."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

from curatord.core.run_record import Counts, RunRecord, SkippedRow, TransitionRow, summary_of, to_json, to_report
from curatord.core.values import Mode, Outcome, RunId, Trigger

AT = datetime(2026, 11, 30, 12, 0, 5, 123_000, tzinfo=UTC)

CONTRACT_KEYS = {
    "schema", "run_id", "trigger", "dry_run", "mode", "outcome", "started_at", "finished_at", "duration_s", "version",
    "config_fingerprint", "gates", "scan", "library", "transitions", "auto_transitions", "consolidated", "pruned",
    "added", "patched", "pending", "skipped", "failed", "references", "llm", "library_cost", "warnings",
}  # fmt: skip


def a_run() -> RunRecord:
    """Return a run that archived one skill."""
    return RunRecord(
        run_id=RunId("20261130-120005"),
        trigger=Trigger.MANUAL,
        dry_run=False,
        mode=Mode.GUARDED,
        outcome=Outcome.OK,
        started_at=AT,
        finished_at=AT + timedelta(seconds=2),
        duration_s=2.0,
        version="0",
        config_fingerprint="f",
        before=Counts(total=3, managed=2, active=1, stale=1),
        after=Counts(total=3, managed=2, active=1, archived=1),
        transitions=(
            TransitionRow(
                library="main",
                skill="old-way",
                from_state="stale",
                to_state="archived",
                idle=timedelta(days=91.5),
                reason="idle for 91 days",
            ),
        ),
    )


def test_every_key_of_the_contract_is_there() -> None:
    """Scripts may rely on each key, whatever happened."""
    assert set() == CONTRACT_KEYS - to_json(a_run()).keys()


def test_values_are_rendered_as_the_contract_says() -> None:
    """Times end in Z with milliseconds, idle is in days, the difference is after minus before."""
    value = to_json(a_run())

    assert "2026-11-30T12:00:05.123Z" == value["started_at"]
    assert [91.5] == [row["idle_days"] for row in value["transitions"]]
    assert {"total": 0, "managed": 0, "active": 0, "stale": -1, "archived": 1} == value["library"]["delta"]


def test_the_summary_stands_alone() -> None:
    """The first 60 characters are what people see."""
    assert "archived 1 (2 managed of 3 skills)" == summary_of(a_run())


def test_one_skill_is_one() -> None:
    """As a newcomer's first library has."""
    record = a_run()
    alone = dataclasses.replace(record, after=dataclasses.replace(record.after, total=1, managed=0))

    assert "archived 1 (0 managed of 1 skill)" == summary_of(alone)


def test_a_dry_run_says_would() -> None:
    """Nothing in a dry run reads as if it had happened."""
    record = dataclasses.replace(a_run(), dry_run=True)

    assert "dry run: would archive 1 (2 managed of 3 skills)" == summary_of(record)
    assert "nothing was changed" in to_report(record, undoable=False)


def test_the_report_names_the_undo_only_where_there_is_one() -> None:
    """A command that would answer 'nothing to undo' is not offered."""
    assert "curatord undo 20261130-120005" in to_report(a_run(), undoable=True)
    assert "curatord undo" not in to_report(a_run(), undoable=False)


def test_hostile_names_stay_inert_in_the_report() -> None:
    """A skill's name can neither end its code span nor open a heading, a link or an escape."""
    record = dataclasses.replace(
        a_run(),
        skipped=(SkippedRow(action="patch `x`\n# Forged\x1b[2J", reason="[click](http://example.invalid)<b>"),),
    )

    report = to_report(record, undoable=False)

    assert "\x1b" not in report
    assert "\n# Forged" not in report
    assert "[click](" not in report
    assert "<b>" not in report.replace("\\<b\\>", "")

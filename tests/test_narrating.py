"""What the daemon's log makes of scans: news once, trouble seldom, recovery with its count."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from structlog.testing import capture_logs

from curatord.application.metering import Meter
from curatord.application.narrating import SHOWN, Narrator, QuietObserver
from curatord.logs import Repeating, set_up
from curatord.passes.ingest import Note, ScanReport, SourceReport

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def a_scan(*notes: tuple[str, str], changed: tuple[str, ...] = ()) -> ScanReport:
    """Return the report of a scan that met *notes* (kind and path) and read *changed*."""
    source = SourceReport(host="pi", path="/s", files=9, changed=len(changed), bytes=10 * len(changed))
    return ScanReport(
        sources=[source],
        notes=[Note(kind=kind, path=path, text=f"{kind} it is") for kind, path in notes],
        changed_paths=list(changed),
    )


def told(work: Callable[[Narrator], None]) -> list[dict[str, Any]]:
    """Return the events from info upwards that *work* leads to."""
    log = set_up(form="json", verbose=False)
    with capture_logs() as found:
        work(Narrator(log, Repeating(log, lambda: NOW), Meter(version="1", now=lambda: NOW)))
    return [dict(event) for event in found if event["log_level"] != "debug"]


def test_a_scan_that_found_nothing_is_not_told() -> None:
    """An idle daemon's log stays as it is."""
    assert [] == told(lambda narrator: narrator.scanned(a_scan(), whole=True))


def test_a_scan_that_found_something_is_one_event() -> None:
    """With its sizes."""
    (event,) = told(lambda narrator: narrator.scanned(a_scan(changed=("/s/a", "/s/b")), whole=True))

    assert ("scan.finished", 2, 20) == (event["event"], event["files"], event["size_bytes"])


def test_a_file_recovers_when_it_is_read() -> None:
    """Not when a scan passed it over: it is tried again after ever longer pauses."""

    def work(narrator: Narrator) -> None:
        for _ in range(3):
            narrator.scanned(a_scan(("failed", "/s/a")), whole=True)
            narrator.scanned(a_scan(changed=("/s/b",)), whole=False)
        narrator.scanned(a_scan(changed=("/s/a",)), whole=False)

    events = [(event["event"], event.get("times") or event.get("after")) for event in told(work)]

    assert [("transcript.failed", 1), ("transcript.failed", 2), ("transcript.recovered", 3)] == events


def test_a_source_recovers_at_the_next_whole_scan() -> None:
    """A look at single files says nothing of it."""

    def work(narrator: Narrator) -> None:
        narrator.scanned(a_scan(("problem", "/s")), whole=True)
        narrator.scanned(a_scan(), whole=False)
        narrator.scanned(a_scan(), whole=True)
        narrator.scanned(a_scan(), whole=True)

    assert ["source.failed", "source.recovered"] == [event["event"] for event in told(work)]


def test_a_source_with_two_problems_tells_each_once() -> None:
    """Neither is news because the other was met meanwhile, and each ends by itself."""

    def work(narrator: Narrator) -> None:
        for whats in (("a", "b"), ("a", "b"), ("b",), ("b",)):
            report = a_scan()
            report.notes = [Note(kind="problem", path="/s", text=what) for what in whats]
            narrator.scanned(report, whole=True)

    events = [(e["event"], e.get("text") or e["what"], e.get("times") or e["after"]) for e in told(work)]

    assert [
        ("source.failed", "a", 1),
        ("source.failed", "b", 1),
        ("source.failed", "a", 2),
        ("source.failed", "b", 2),
        ("source.recovered", "/s: a", 2),
        ("source.failed", "b", 4),
    ] == events


def test_a_source_with_no_end_of_problems_fills_no_log() -> None:
    """A mount whose server is gone may have one for each folder: some are told, and that there are more."""

    def work(narrator: Narrator) -> None:
        for _ in range(4):
            report = a_scan(("problem", "/t"))
            report.notes += [Note(kind="problem", path="/s", text=f"cannot list /s/{n}") for n in range(900)]
            narrator.scanned(report, whole=True)
        narrator.scanned(a_scan(("problem", "/t")), whole=True)

    events = [(event["event"], event.get("path") or event["what"]) for event in told(work)]

    assert 3 * (SHOWN + 1) == events.count(("source.failed", "/s"))
    assert 3 == events.count(("source.failed", "/t"))
    assert SHOWN + 1 == sum(event == "source.recovered" for event, _ in events)
    assert any(event == "source.recovered" and "more problems" in what for event, what in events)


def test_a_restart_is_told_with_its_reason() -> None:
    """Truncated, replaced, rewritten: nothing is counted twice, and somebody may want to know."""
    (event,) = told(lambda narrator: narrator.scanned(a_scan(("restart", "/s/a")), whole=True))

    assert ("transcript.restarted", "restart it is") == (event["event"], event["reason"])


def test_a_command_only_warns() -> None:
    """Its answer says the rest."""
    log = set_up(form="json", verbose=False)
    with capture_logs() as found:
        observer = QuietObserver(lambda: log)
        observer.scanned(a_scan(("failed", "/s/a"), ("restart", "/s/b"), changed=("/s/c",)), whole=True)

    assert ["transcript.failed"] == [event["event"] for event in found if event["log_level"] != "debug"]

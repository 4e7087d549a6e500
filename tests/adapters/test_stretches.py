"""What was read is kept by version and day, so that a changed format shows against what was usual."""

from __future__ import annotations

import json
from pathlib import Path

from curatord.adapters.store.overview import Overview
from curatord.core.drift import drift_of
from tests.scanned import Scanner


def append(path: Path, kind: str, version: str, numbers: range) -> None:
    """Append records of a Claude Code session; those of the kind `user` are turns, others nobody knows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for number in numbers:
            record = {
                "type": kind,
                "sessionId": path.stem,
                "uuid": f"{path.stem}-{number}",
                "version": version,
                "timestamp": "2026-09-01T10:00:00.000Z",
                "message": {"role": "user", "content": f"do {number}"},
            }
            file.write(json.dumps(record) + "\n")


def scanned(folder: Path) -> Scanner:
    """Return a store over a Claude Code tree."""
    return Scanner(folder / "state", ("claude-code", folder / "projects"))


def test_each_scan_adds_to_the_row_of_its_version_and_day(tmp_path: Path) -> None:
    """Records, turns and unknown types of two scans of one file are in one row; another version has its own."""
    file = tmp_path / "projects/p/one.jsonl"
    store = scanned(tmp_path)
    append(file, "user", "2.1.0", range(3))
    append(file, "odd", "2.1.0", range(3, 5))
    store.scan()
    append(file, "odd", "2.1.0", range(5, 6))
    append(file, "other", "2.1.0", range(6, 7))
    store.scan()
    append(tmp_path / "projects/p/two.jsonl", "user", "2.2.0", range(2))
    store.scan()
    first, second = store.source().stretches
    store.close()

    assert ("2.1.0", 7, 0, 3, {"odd": 3, "other": 1}) == first[1:]
    assert ("2.2.0", 2, 0, 2, {}) == second[1:]


def test_a_slice_with_two_versions_belongs_to_the_newer(tmp_path: Path) -> None:
    """A session that goes on after an update: most of what is new in it is the new version's."""
    file = tmp_path / "projects/p/one.jsonl"
    append(file, "user", "2.1.9", range(2))
    append(file, "user", "2.1.10", range(2, 5))
    store = scanned(tmp_path).scan()
    (row,) = store.source().stretches
    store.close()

    assert ("2.1.10", 5) == (row.version, row.records)


def test_a_version_is_other_peoples_text(tmp_path: Path) -> None:
    """A kilobyte of digits is cut, and ordered in bounded time."""
    file = tmp_path / "projects/p/one.jsonl"
    append(file, "user", "9" * 1000, range(1))
    append(file, "user", "1." * 500, range(1, 2))
    store = scanned(tmp_path).scan()
    (row,) = store.source().stretches
    store.close()

    assert "9" * 80 == row.version


def test_unreadable_lines_are_in_it(tmp_path: Path) -> None:
    """They are no records, and count for the share of what could not be read."""
    file = tmp_path / "projects/p/one.jsonl"
    append(file, "user", "2.1.0", range(2))
    with file.open("a", encoding="utf-8") as handle:
        handle.write("{nonsense}\n" * 3)
    store = scanned(tmp_path).scan()
    (row,) = store.source().stretches
    store.close()

    assert (2, 3) == (row.records, row.unreadable)


def test_a_scan_that_finds_nothing_adds_nothing(tmp_path: Path) -> None:
    """An idle daemon does not write."""
    append(tmp_path / "projects/p/one.jsonl", "user", "2.1.0", range(2))
    store = scanned(tmp_path).scan()
    before = store.source().stretches
    store.scan()
    after = store.source().stretches
    store.close()

    assert before == after


def test_status_tells_of_a_format_that_nobody_knows(tmp_path: Path) -> None:
    """Health is what was understood, not that a process lives (bugs B098)."""
    store = scanned(tmp_path)
    append(tmp_path / "projects/p/one.jsonl", "user", "2.1.0", range(100))
    store.scan()
    before = Overview(store.database).sources()["claude-code", str(tmp_path / "projects")].problems
    append(tmp_path / "projects/p/two.jsonl", "turn_v3", "3.0.0", range(200))
    store.scan()
    drifts = drift_of(store.source().stretches)
    after = Overview(store.database).sources()["claude-code", str(tmp_path / "projects")].problems
    store.close()

    assert () == before
    assert ["unknown", "silent"] == [drift.what for drift in drifts]
    assert tuple(f"{drift.sentence} (curatord doctor)" for drift in drifts) == after

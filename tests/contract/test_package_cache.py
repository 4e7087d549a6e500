"""What every keeper of readings must do: the one in memory and the one in the database."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from curatord.adapters import package as package_module
from curatord.adapters.library import DiskLibrary
from curatord.adapters.store.database import open_database
from curatord.adapters.store.package_readings import StoredReadings
from curatord.core.settings import LibrarySettings
from curatord.ports.library import PackageCache
from tests.fakes.package_cache import MemoryCache

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["memory", "database"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], PackageCache]:
    """Return a maker of caches that share what they keep, as two processes would."""
    if request.param == "memory":
        cache = MemoryCache()
        return lambda: cache
    return lambda: StoredReadings(open_database(tmp_path, now=NOW))


def test_keeps_per_library(make: Callable[[], PackageCache]) -> None:
    """What is kept is there for the next one, by library; what is gone is forgotten; new replaces old."""
    make().keep("a", {"x": (b"1", b"2"), "y/z": (b"3", b"4")}, [])
    make().keep("b", {"x": (b"5", b"6")}, [])
    make().keep("a", {"x": (b"7", b"8")}, ["y/z", "never"])

    assert {"x": (b"7", b"8")} == make().load("a")
    assert {"x": (b"5", b"6")} == make().load("b")
    assert {} == make().load("c")


def test_a_library_is_read_once(
    make: Callable[[], PackageCache], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next process reads nothing of what did not change, and sees what did."""
    monkeypatch.setattr(package_module, "RACY_NS", -(10**12))
    settings = LibrarySettings(name="l", path=str(tmp_path / "skills"))
    for name in ("a", "b", "日本", os.fsdecode(b"\xff")):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("---\ndescription: d\n---\n")
    first = DiskLibrary(settings, make()).read()
    time.sleep(0.02)
    (tmp_path / "skills/a/SKILL.md").write_text("---\ndescription: e\n---\n")
    second = DiskLibrary(settings, make()).read()

    assert (4, 2) == (first.reread, second.reread)  # one was edited, one has a name that cannot be kept
    assert ["e", "d", "d", "d"] == [
        skill.description for skill in sorted(second.skills, key=lambda s: s.key.rel != "a")
    ]


def test_a_reading_that_was_damaged_is_made_anew(
    make: Callable[[], PackageCache], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flipped bit in what was kept costs reading the library once more."""
    monkeypatch.setattr(package_module, "RACY_NS", -(10**12))
    settings = LibrarySettings(name="l", path=str(tmp_path / "skills"))
    for name in ("a", "b", "c"):
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text("---\ndescription: d\n---\n")
    DiskLibrary(settings, make()).read()
    place, (signature, content) = min(make().load("l").items())
    make().keep("l", {place: (signature, b"\xc1" + content[1:])}, [])
    found, again = DiskLibrary(settings, make()).read(), DiskLibrary(settings, make()).read()

    assert (3, 0) == (found.reread, again.reread)
    assert ["d", "d", "d"] == [skill.description for skill in found.skills]


def test_a_busy_database_costs_time_only(tmp_path: Path) -> None:
    """Another writer or a read-only opening keeps nothing and breaks nothing."""
    database = open_database(tmp_path, now=NOW)
    database.connection.execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    StoredReadings(database).keep("a", {"x": (b"1", b"2")}, [])
    other.rollback()
    other.close()
    StoredReadings(open_database(tmp_path, now=NOW, read_only=True)).keep("a", {"x": (b"1", b"2")}, [])

    assert {} == StoredReadings(database).load("a")

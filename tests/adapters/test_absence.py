"""Packages that are not in their libraries, told within a time whatever the disks do."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from curatord.adapters import in_time
from curatord.adapters.absence import absent
from tests.fakes.dead_disk import dead_disk


def a_library(folder: Path, *names: str) -> str:
    """Make a library with a package of each name."""
    for name in names:
        (folder / name).mkdir(parents=True)
    return str(folder)


def test_what_is_not_there_is_absent(tmp_path: Path) -> None:
    """A package may be a folder or a file; an empty library may be one that is not mounted just now."""
    full = a_library(tmp_path / "full", "here")
    (tmp_path / "full" / "note.md").write_text("x")
    empty = a_library(tmp_path / "empty", ".git")

    found = absent({full: ["here", "note", "gone"], empty: ["gone"], f"{tmp_path}/nowhere": ["gone"]})

    assert {(full, "gone")} == found


def test_a_disk_that_hangs_keeps_nobody_waiting(tmp_path: Path) -> None:
    """What it holds may be there; the other libraries are looked at all the same."""
    well, dead = a_library(tmp_path / "well", "here"), a_library(tmp_path / "dead", "here")
    began = time.monotonic()
    with dead_disk(tmp_path / "dead"):
        found = absent({dead: ["gone"], well: ["gone"]}, within_s=0.2)
        took = time.monotonic() - began

    assert {(well, "gone")} == found
    assert 10 > took


def test_a_library_that_hangs_is_not_asked_again_until_it_answered(tmp_path: Path) -> None:
    """Else a daemon would have one more thread with each round."""
    dead = a_library(tmp_path / "dead", "here")
    with dead_disk(tmp_path / "dead") as alive:
        absent({dead: ["gone"]}, within_s=0.05)
        threads = threading.active_count()

        assert set() == absent({dead: ["gone"]}, within_s=0.05)
        assert threads == threading.active_count()

        alive.set()
        in_time._asked[dead].join()
        assert {(dead, "gone")} == absent({dead: ["gone"]})

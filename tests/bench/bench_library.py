"""Goal: what a look at 5,000 unchanged skills costs, against a bare walk and stat of the same tree, in one process."""

from __future__ import annotations

import os
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from curatord.adapters.library import DiskLibrary
from curatord.adapters.store.database import open_database
from curatord.adapters.store.package_readings import StoredReadings
from curatord.core.ownership import decide
from curatord.core.references import SkillIndex, references_by_skill
from curatord.core.settings import LibrarySettings

SKILLS = 5000
PAIRS = 7


def bare_walk(root: str) -> int:
    """List and stat everything below *root*, and do nothing with it."""
    count = 0
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as scan:
            for entry in scan:
                entry.stat(follow_symlinks=False)
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return count


def make_library(root: Path) -> None:
    """Write 5,000 skills, every second with a reference, every fourth with a script."""
    body = "\n".join(f"- Step {number}: do `thing_{number}` before the other." for number in range(120))
    for number in range(SKILLS):
        folder = root / f"skill-{number:05}"
        folder.mkdir(parents=True)
        header = f"name: {folder.name}\ndescription: Does thing {number} when asked\nversion: 1.0.{number}"
        (folder / "SKILL.md").write_text(f"---\n{header}\n---\n# Skill {number}\n{body}\n")
        if number % 2:
            (folder / "references").mkdir()
            (folder / "references/more.md").write_text(
                f"# More\n[other](../../skill-{(number + 7) % SKILLS:05}/SKILL.md)\n"
            )
        if number % 4 == 0:
            (folder / "scripts").mkdir()
            (folder / "scripts/run.sh").write_text("#!/bin/sh\n")


@pytest.mark.bench
def test_an_unchanged_library_costs_little_more_than_walking_it(tmp_path: Path) -> None:
    """Scan, kept readings from the database, ownership and references: at most 2 x a bare walk + stat."""
    root = tmp_path / "skills"
    make_library(root)
    settings = LibrarySettings(name="l", path=str(root))
    database = open_database(tmp_path, now=datetime.now(UTC))
    begun = time.process_time()
    first = DiskLibrary(settings, StoredReadings(database)).read()
    cold = time.process_time() - begun
    time.sleep(2.5)  # what was read while its files were young is not kept
    DiskLibrary(settings, StoredReadings(database)).read()
    rows: list[tuple[float, float, float]] = []
    for _ in range(PAIRS):
        start = time.process_time()
        bare_walk(str(root))
        walked = time.process_time()
        view = DiskLibrary(settings, StoredReadings(database)).look()
        looked = time.process_time()
        for skill in view.snapshot.skills:
            decide(skill, view.facts, None, settings)
        index = SkillIndex([view.snapshot], {"l": settings}, home="/home/u")
        found, _ = references_by_skill([view.snapshot], [], index)
        decided = time.process_time()
        rows.append((walked - start, looked - walked, decided - looked))
    walk, look, rest = (statistics.median(column) for column in zip(*rows, strict=True))
    print(
        f"\ncold {cold:.2f} s; bare walk {walk * 1e3:.0f} ms, look {look * 1e3:.0f} ms ({look / walk:.2f} x), "
        f"ownership and references {rest * 1e3:.0f} ms ({rest / walk:.2f} x)"
    )

    assert (SKILLS, 0) == (len(first.skills), view.snapshot.reread)
    assert len(found) == SKILLS // 2
    assert look <= 2.0 * walk

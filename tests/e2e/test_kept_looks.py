"""
What is kept between two runs never decides: a run that has it says and plans what one says that has lost it.

Kept are the readings of packages, under the times, sizes and numbers of their files, and which skills cannot be told
apart, under a digest of their descriptions.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curatord.adapters import package as package_module
from curatord.core.small_facts import TWINS
from tests.e2e.world import World

SKILLS = st.sampled_from(
    [
        ".claude/skills/commit-style",
        ".claude/skills/pdf-forms",
        ".claude/skills/new-one",
        ".hermes/skills/data/csv-cleaning",
        ".hermes/skills/data/csv-quoting",
        ".hermes/skills/devops/k8s-rollback",
        ".hermes/skills/data/new-one",
    ]
)
FILES = st.sampled_from(["SKILL.md", "references/x.md", "notes.md"])
DESCRIPTIONS = st.sampled_from(
    [
        "Use when a table of figures has to be cleaned before anybody may look at it and somebody asks",
        "Use when a table of figures has to be cleaned before anybody may look at it and someone asks",
        "Say how commits are written",
        "",
    ]
)
EDITS = st.one_of(
    st.tuples(st.just("describe"), SKILLS, DESCRIPTIONS),
    st.tuples(st.just("write"), SKILLS, FILES),
    st.tuples(st.just("write-at-its-old-time"), SKILLS, FILES),
    st.tuples(st.just("swap"), SKILLS, SKILLS),
    st.tuples(st.just("move"), SKILLS, SKILLS),
    st.tuples(st.just("remove"), SKILLS, FILES),
    st.tuples(st.just("remove-all"), SKILLS, FILES),
    st.tuples(st.just("link"), SKILLS, SKILLS),
)


def edit(home: Path, what: tuple[str, str, str]) -> None:
    """Do one thing to a library as its user or an agent would, or nothing where it cannot be done."""
    skill = home / what[1]
    try:
        match what:
            case ("describe", _, text):
                skill.mkdir(parents=True, exist_ok=True)
                (skill / "SKILL.md").write_text(f"---\nname: {skill.name}\ndescription: {text}\n---\n# It\n")
            case ("write", _, file):
                (skill / file).parent.mkdir(parents=True, exist_ok=True)
                (skill / file).write_text(f"---\nname: {skill.name}\n---\nlead to ../csv-quoting/SKILL.md\n")
            case ("write-at-its-old-time", _, file):
                path = skill / file
                before, data = path.stat(), path.read_bytes()
                path.write_bytes(data[::-1])  # of the same size, and by its time it was never touched
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            case ("swap", _, other):
                aside = skill.with_name("aside")
                skill.rename(aside)
                (home / other).rename(skill)
                aside.rename(home / other)
            case ("move", _, other):
                skill.rename(home / other)
            case ("remove", _, file):
                (skill / file).unlink()
            case ("remove-all", _, _):
                shutil.rmtree(skill)
            case ("link", _, other):
                skill.symlink_to(home / other)
    except OSError:
        return


def dry_run(world: World, state: Path) -> dict[str, Any]:
    """Return all that a dry run with the state folder *state* says and plans, but what names that run itself."""
    world.settings = {**world.settings, "CURATORD_STATE_DIR": str(state)}
    world.reopen()
    value = world.run(dry_run=True)
    plan = (state / "runs" / value["run_id"] / "plan.json").read_text()
    report = (state / "runs" / value["run_id"] / "REPORT.md").read_text().replace(value["run_id"], "RUN")
    its_own = ("run_id", "started_at", "finished_at", "duration_s", "config_fingerprint")
    world.parts.close()
    return {name: told for name, told in value.items() if name not in its_own} | {"plan": plan, "report": report}


def forget(state: Path) -> None:
    """Empty what *state* keeps of looks."""
    with sqlite3.connect(state / "curatord.db") as database:
        database.execute("DELETE FROM package_readings")
        database.execute("DELETE FROM meta WHERE key = ?", (TWINS,))
    database.close()


def kept(state: Path) -> tuple[int, int]:
    """Return how many readings *state* keeps, and how many findings of twins."""
    with sqlite3.connect(state / "curatord.db") as database:
        (readings,) = database.execute("SELECT count(*) FROM package_readings").fetchone()
        (twins,) = database.execute("SELECT count(*) FROM meta WHERE key = ?", (TWINS,)).fetchone()
    database.close()
    return readings, twins


@given(edits=st.lists(st.lists(EDITS, min_size=1, max_size=4), min_size=1, max_size=3))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_run_that_remembers_says_what_one_says_that_has_forgotten(
    edits: list[list[tuple[str, str, str]]],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is edited between two runs, with times set back too: the same plan, problems, report."""
    monkeypatch.setattr(package_module, "RACY_NS", 15_000_000)  # some ticks, so that a test may wait them out
    world = World(tmp_path_factory.mktemp("home") / "demo")
    world.days(50)
    state, forgetful = world.state, world.folder / "forgetful"
    time.sleep(0.02)
    dry_run(world, state)
    assert all(kept(state))
    for step in edits:
        for what in step:
            edit(world.folder / "home", what)
        time.sleep(0.02)
        shutil.rmtree(forgetful, ignore_errors=True)
        shutil.copytree(state, forgetful)
        forget(forgetful)

        assert dry_run(world, forgetful) == dry_run(world, state)


def test_a_wrong_reading_changes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept reading that lies about skills leads to no change of them; what is forgotten is read again, and goes."""
    monkeypatch.setattr(package_module, "RACY_NS", 15_000_000)
    world = World(tmp_path / "demo", {"CURATORD_LIFECYCLE__MAX_ARCHIVE__SHARE": "1.0"})
    world.days(50)
    world.run()
    world.days(60)
    world.parts.close()
    with sqlite3.connect(world.state / "curatord.db") as database:
        rows = database.execute("SELECT library, place, content FROM package_readings").fetchall()
        for library, place, content in rows:
            begin = content.index(b"fingerprint") + len(b"fingerprint\xd9\x40")
            wrong = content[:begin] + b"0" * 64 + content[begin + 64 :]
            database.execute(
                "UPDATE package_readings SET content = ? WHERE library = ? AND place = ?", (wrong, library, place)
            )
    database.close()
    world.open()
    before = {name: set(files) for name, files in world.libraries().items()}
    lied_to = world.run()
    after = {name: set(files) for name, files in world.libraries().items()}
    world.parts.close()
    forget(world.state)
    world.open()
    honest = world.run()

    assert rows
    assert [] == [row["skill"] for row in lied_to["transitions"] if row["to"] == "archived"]
    assert before == after
    assert [] != [row["skill"] for row in honest["transitions"] if row["to"] == "archived"]

"""A Hermes home on disk: what its files say together, and what happens when one cannot be read."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from curatord.adapters.hermes_home import HermesHome
from curatord.adapters.installers import read_installed
from curatord.adapters.library import DiskLibrary
from curatord.adapters.places import look_for_conflicts
from curatord.core.ownership import decide
from curatord.core.settings import Config, LibrarySettings, SourceSettings
from curatord.ports.library import LibraryReader
from tests.fakes.package_cache import MemoryCache

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """Return the library of a made-up Hermes home with six skills, one a kind."""
    skills = tmp_path / ".hermes/skills"
    for rel in ("ops/mine", "ops/agents", "shipped", "hubbed", "mounted/team", "close"):
        folder = skills / rel
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: Does {folder.name}\n---\n# X\n")
    (skills / ".usage.json").write_text(
        json.dumps(
            {
                "agents": {"created_by": "agent", "use_count": 2},
                "mine": {"created_by": None},
                "team": {"created_by": "agent"},
            }
        )
    )
    (skills / ".bundled_manifest").write_text("shipped:" + "0" * 32 + "\n")
    (skills / ".hub").mkdir()
    (skills / ".hub/lock.json").write_text(json.dumps({"version": 1, "installed": {"h": {"install_path": "hubbed"}}}))
    (skills / ".curator_suppressed").write_text("gone\n")
    (skills / ".curator_state").write_text(json.dumps({"paused": True, "run_count": 2}))
    (skills.parent / "cron").mkdir()
    (skills.parent / "cron/jobs.json").write_text(
        json.dumps({"jobs": [{"id": "1", "skills": ["close"], "enabled": False}]})
    )
    (skills.parent / "config.yaml").write_text("skills:\n  external_dirs:\n    - skills/mounted\n")
    return skills


def library(skills: Path) -> LibraryReader:
    """Return the library of *skills*."""
    return DiskLibrary(LibrarySettings(name="h", path=str(skills)), MemoryCache())


def managed(skills: Path) -> dict[str, str | None]:
    """Return the licence or protection of each skill, under `manage: owned`."""
    view = library(skills).look()
    settings = LibrarySettings(name="h", path=str(skills))
    found = {skill.key.rel: decide(skill, view.facts, None, settings) for skill in view.snapshot.skills}
    return {rel: ownership.licence or ownership.protection for rel, ownership in found.items()}


def test_a_home(skills: Path) -> None:
    """Every file is read, and each skill is whose it is."""
    view = library(skills).look()

    assert view.hermes is not None
    assert ((), None, ()) == (view.hermes.protected, view.hermes.schedule_unreadable, view.hermes.warnings)
    assert (True, 2, frozenset({"gone"}), None) == (
        view.hermes.curator.paused,
        view.hermes.curator.run_count,
        view.hermes.suppressed,
        view.hermes.claim,
    )
    assert [("close", False)] == [(reference.target, reference.enabled) for reference in view.hermes.schedule]
    assert {
        "close": None, "hubbed": "hub", "mounted/team": "external", "ops/agents": "host", "ops/mine": None,
        "shipped": "bundled",
    } == managed(skills)  # fmt: skip


@pytest.mark.parametrize("name", [".usage.json", ".bundled_manifest", ".hub/lock.json", "../config.yaml"])
@pytest.mark.parametrize("damage", ["cut", "folder", "pipe", "dead-link"])
def test_an_unreadable_ownership_file_protects_all(skills: Path, name: str, damage: str) -> None:
    """A damaged file that says what must not be touched protects the whole library; nothing hangs."""
    path = skills / name
    path.unlink()
    if damage == "cut":
        path.write_bytes(b'{"a: [\xff')
    elif damage == "folder":
        path.mkdir()
    elif damage == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere")

    assert {"unjudged"} == set(managed(skills).values()) - {"external"}


def test_missing_files_say_nothing(skills: Path) -> None:
    """A home without any of the files has no owners and no protections."""
    bare = HermesHome(str(skills.parent / "other/skills")).read()

    assert ({}, frozenset(), (), ()) == (bare.usage, bare.bundled, bare.hub, bare.protected)


def test_a_damaged_schedule_is_told(skills: Path) -> None:
    """Who is scheduled is unknown then; the ownership of skills is not."""
    (skills.parent / "cron/jobs.json").write_text("{")
    facts = HermesHome(str(skills)).read()

    assert facts.schedule_unreadable is not None
    assert () == facts.protected


def test_the_curators_claim(skills: Path) -> None:
    """A claim is seen with its process and age."""
    (skills / ".locks").mkdir()
    claim = skills / ".locks/curator-run"
    claim.write_text("4242")
    os.utime(claim, (AT.timestamp(), AT.timestamp()))
    found = HermesHome(str(skills)).read().claim

    assert found is not None
    assert (4242, True, False) == (
        found.pid,
        found.holds(AT + timedelta(minutes=5)),
        found.holds(AT + timedelta(hours=2)),
    )


def test_the_ledger(skills: Path) -> None:
    """Entries since a time, oldest first; broken lines are passed over; no ledger is an empty one."""
    home = HermesHome(str(skills))
    before = list(home.ledger(AT))
    lines = [
        json.dumps(
            {
                "id": str(n),
                "ts": (AT + timedelta(days=n)).isoformat(),
                "actor": "agent",
                "action": "patch",
                "skill": "a",
            }
        )
        for n in (-1, 0, 1)
    ]
    (skills / ".curator_ledger.jsonl").write_text("\n".join([lines[0], "{", lines[1], "", lines[2][:20], lines[2]]))

    assert [] == before
    assert ["0", "1"] == [entry.id for entry in home.ledger(AT)]


def test_reading_a_home_touches_nothing(skills: Path) -> None:
    """No lock is taken, no file is written, no time but access times moves."""
    home = skills.parent

    def state() -> list[tuple[str, int, int]]:
        return sorted(
            (str(path), path.lstat().st_mtime_ns, path.lstat().st_ctime_ns) for path in [home, *home.rglob("*")]
        )

    before = state()
    library(skills).look()
    list(HermesHome(str(skills)).ledger(AT))

    assert before == state()


def test_locks_of_other_installers(tmp_path: Path) -> None:
    """What `skills` or ClawHub installed beside a library is theirs; a damaged lock protects all."""
    skills = tmp_path / ".agents/skills"
    for name in ("own", "fetched", "clawed", "packed"):
        (skills / name).mkdir(parents=True)
        (skills / name / "SKILL.md").write_text("---\ndescription: d\n---\n")
    (skills / "packed/.clawhub").mkdir()
    (skills / "packed/.clawhub/origin.json").write_text("{}")
    (tmp_path / ".agents/.skill-lock.json").write_text(
        json.dumps({"version": 3, "skills": {"fetched": {"source": "o/r"}}})
    )
    (tmp_path / ".agents/.clawhub").mkdir()
    (tmp_path / ".agents/.clawhub/lock.json").write_text(json.dumps({"version": 1, "skills": {"clawed": {}}}))

    def protections() -> dict[str, str | None]:
        settings = LibrarySettings(name="a", path=str(skills), manage="all")
        view = DiskLibrary(settings, MemoryCache()).look()
        return {skill.name: decide(skill, view.facts, None, settings).protection for skill in view.snapshot.skills}

    assert {"own": None, "fetched": "hub", "clawed": "hub", "packed": "plugin"} == protections()
    (tmp_path / ".agents/.skill-lock.json").write_text("{")
    assert {"unjudged"} == set(protections().values())
    assert 1 == len(read_installed(str(skills)).unjudged)


def test_conflicts_on_disk(tmp_path: Path) -> None:
    """Two libraries at one place through a link, and a source within one, are found."""
    (tmp_path / "skills/sessions").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(tmp_path / "skills")
    config = Config(
        state_dir=str(tmp_path / "state"),
        libraries=(
            LibrarySettings(name="a", path=str(tmp_path / "skills")),
            LibrarySettings(name="b", path=str(tmp_path / "alias")),
        ),
        sources=(SourceSettings(host="codex", path=str(tmp_path / "alias/sessions")), SourceSettings(host="pi")),
    )

    assert ["a:same-path", "a:source-inside", "b:same-path", "b:source-inside"] == sorted(
        f"{found.library}:{found.code}" for found in look_for_conflicts(config)
    )

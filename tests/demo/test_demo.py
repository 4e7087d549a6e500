"""The demonstration home: the same each time, of the shapes that the hosts write, and what its story says."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from curatord.config import parse
from curatord.demo import make_demo
from curatord.demo.story import CLAUDE_SKILLS, FIRST_DAY, HERMES_SKILLS, HOLIDAY, every
from curatord.errors import UsageError

NOW = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demonstration home, made once."""
    folder = tmp_path_factory.mktemp("demo") / "home-of-demo"
    make_demo(folder, NOW)
    return folder


def records(demo: Path) -> list[dict[str, Any]]:
    """Return all whole records of the Claude Code sessions."""
    lines: list[str] = []
    for path in sorted((demo / "home/.claude/projects").rglob("*.jsonl")):
        lines += path.read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines]


def test_it_is_the_same_for_the_same_moment(demo: Path, tmp_path: Path) -> None:
    """Same names, bytes (the folder's own path aside) and times."""
    again = tmp_path / "again"
    make_demo(again, NOW)

    def told(folder: Path) -> dict[str, Any]:
        return {
            str(path.relative_to(folder)): (
                hashlib.sha256(path.read_bytes().replace(str(folder).encode(), b"")).hexdigest(),
                int(path.stat().st_mtime) if "skills/" in str(path) and not path.name.startswith(".") else 0,
            )
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in ("state.db", "lock.json")
        }

    assert told(demo) == told(again)


def test_its_configuration_is_right_and_moves_with_it(demo: Path) -> None:
    """Paths are relative to the file; everything named is there; state goes beside the home."""
    file = demo / "curatord.yaml"
    loaded = parse(file.read_bytes(), {}, file=str(file))
    config = loaded.config

    assert () == loaded.notices
    assert str(demo / "state") == config.state_dir
    assert all(Path(library.path).is_dir() for library in config.libraries)
    assert all(source.path and Path(source.path).is_dir() for source in config.sources)


@pytest.mark.parametrize("there", ["file", ".hidden"])
def test_a_folder_with_something_in_it_is_refused(there: str, tmp_path: Path) -> None:
    """Even a hidden file is somebody's."""
    (tmp_path / there).write_text("", encoding="utf-8")

    with pytest.raises(UsageError, match="not empty"):
        make_demo(tmp_path, NOW)
    assert [there] == [path.name for path in tmp_path.iterdir()]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A file in the way is a clear error."""
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(UsageError, match="file"):
        make_demo(tmp_path / "file" / "demo", NOW)


def test_the_sessions_say_what_the_story_says(demo: Path) -> None:
    """Every use, view, change and making of a skill is in a record of its day, in the host's own form."""
    seen: Counter[tuple[str, str]] = Counter()
    for record in records(demo):
        content = record["message"]["content"]
        if isinstance(content, str) and "<command-name>" in content:
            seen["use", content.split("<command-name>/")[1].split("<")[0]] += 1
        for block in content if isinstance(content, list) else []:
            if block["type"] == "tool_use":
                name = block["input"].get("skill") or Path(block["input"]["file_path"]).parent.name
                kind = {"Skill": "use", "Read": "view", "Edit": "patch", "Write": "create"}[block["name"]]
                seen[kind, name] += 1
    told: Counter[tuple[str, str]] = Counter()
    for skill in CLAUDE_SKILLS:
        told["use", skill.name] += len(skill.uses)
        told["view", skill.name] += len(skill.views)
        told["patch", skill.name] += len(skill.patches)
        told["create", skill.name] += skill.created_in_session

    assert +told == seen


def test_records_are_linked_and_in_order(demo: Path) -> None:
    """Each has its own id, follows the one before it in its session, a year back to today."""
    ids = [record["uuid"] for record in records(demo)]
    times = [datetime.fromisoformat(record["timestamp"]) for record in records(demo)]
    before: dict[str, str] = {}
    for record in records(demo):
        assert before.get(record["sessionId"]) == record["parentUuid"]
        before[record["sessionId"]] = record["uuid"]

    assert len(set(ids)) == len(ids)
    assert NOW - timedelta(days=FIRST_DAY, hours=3) <= min(times) < NOW - timedelta(days=FIRST_DAY - 7)
    assert NOW - timedelta(hours=3) <= max(times) < NOW


def test_one_line_is_half_written(demo: Path) -> None:
    """The newest session is being written; all others end with their line's end."""
    halves = [
        path.name for path in (demo / "home/.claude/projects").rglob("*.jsonl") if not path.read_bytes().endswith(b"\n")
    ]

    assert 1 == len(halves)


def test_nobody_works_in_the_holiday(demo: Path) -> None:
    """Neither host has a record then, so the clock can be seen to stand still."""
    with sqlite3.connect(f"file:{demo}/home/.hermes/state.db?mode=ro", uri=True) as connection:
        times = [datetime.fromtimestamp(at, UTC) for (at,) in connection.execute("SELECT timestamp FROM messages")]
    connection.close()
    times += [datetime.fromisoformat(record["timestamp"]) for record in records(demo)]
    gone, back = NOW - timedelta(days=HOLIDAY[-1]), NOW - timedelta(days=HOLIDAY[0], hours=3)

    assert [] == [at for at in times if gone - timedelta(hours=3) <= at < back + timedelta(hours=3)]


def test_hermes_own_counters_fit_its_sessions(demo: Path) -> None:
    """`.usage.json` counts what the database shows, as that host would."""
    usage = json.loads((demo / "home/.hermes/skills/.usage.json").read_text(encoding="utf-8"))
    with sqlite3.connect(f"file:{demo}/home/.hermes/state.db?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT tool_calls FROM messages WHERE tool_calls IS NOT NULL").fetchall()
        tools = connection.execute("SELECT count(*) FROM messages WHERE role = 'tool'").fetchone()[0]
    connection.close()
    calls = [call["function"] for (text,) in rows for call in json.loads(text)]
    uses = Counter(json.loads(c["arguments"])["name"] for c in calls if c["name"] == "skill_view")
    patches = Counter(json.loads(c["arguments"])["name"] for c in calls if c["name"] == "skill_manage")

    assert len(calls) == tools
    assert {name: uses[name] for name in usage} == {name: record["use_count"] for name, record in usage.items()}
    assert {name: patches[name] for name in usage} == {name: record["patch_count"] for name, record in usage.items()}
    assert [skill.name for skill in HERMES_SKILLS if skill.owner == "agent"] == [
        skill.name for skill in HERMES_SKILLS if not skill.broken and usage[skill.name]["created_by"] == "agent"
    ]


def test_hermes_files_are_of_its_shapes(demo: Path) -> None:
    """Manifest, hub lock, schedule, archive: what that host expects to find."""
    skills = demo / "home/.hermes/skills"
    manifest = (skills / ".bundled_manifest").read_text(encoding="utf-8").splitlines()
    hub = json.loads((skills / ".hub/lock.json").read_text(encoding="utf-8"))
    jobs = json.loads((demo / "home/.hermes/cron/jobs.json").read_text(encoding="utf-8"))["jobs"]

    assert ["release-notes"] == [line.split(":")[0] for line in manifest]
    assert all((skills / entry["install_path"] / "SKILL.md").is_file() for entry in hub["installed"].values())
    assert [["weekly-figures"]] == [job["skills"] for job in jobs]
    assert (skills / ".archive/old-vpn-setup/SKILL.md").is_file()


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("deploy-checklist", 0, 29),
        ("docker-cleanup", 30, 60),
        ("nginx-reload", 98, 171),
        ("k8s-rollback", 98, 365),
        ("weekly-figures", 98, 365),
        ("arxiv-watch", 0, 29),
        ("react-tables", 90, 171),
        ("terraform-plan", 30, 89),
        ("sql-explain", 30, 60),
    ],
)
def test_each_rule_has_a_skill_that_shows_it(name: str, least: int, most: int) -> None:
    """With the default periods: in use, stale, due for the archive, pinned, scheduled, in its grace."""
    skill = next(skill for skill in (*HERMES_SKILLS, *CLAUDE_SKILLS) if skill.name == name)

    assert least <= min((*skill.uses, *skill.views, *skill.patches, skill.born)) <= most


def test_days_step_down_and_skip_the_holiday() -> None:
    """`every` is what the story is told with."""
    assert (10, 7, 4) == every(3, 10, 3)
    assert not set(HOLIDAY) & set(every(1, 365, 0))


def test_it_is_small_and_quick(demo: Path) -> None:
    """It must not be felt: some hundred small files."""
    sizes = [path.stat().st_size for path in demo.rglob("*") if path.is_file()]

    assert len(sizes) < 500
    assert sum(sizes) < 3_000_000

"""Living beside Hermes: its files stay its own, its locks are taken, its claim is honoured, and both can undo."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from curatord.core.plan import (
    Action,
    Applied,
    Archive,
    FileChange,
    MarkStale,
    Member,
    Merge,
    PackageWrite,
    Pin,
    Reactivate,
    Skipped,
    Unpin,
)
from curatord.core.values import RelPath, State
from curatord.errors import BusyError
from curatord.passes.undo import archived_packages, restore, undo
from tests.curation_home import LIB, NOW, Home, key

USAGE: dict[str, dict[str, Any]] = {
    "old": {
        "archived_at": None,
        "created_by": "agent",
        "note_of_a_later_version": {"ä": [1, 2.5]},
        "pinned": False,
        "state": "active",
        "use_count": 3,
    },
    "other": {"state": "stale", "pinned": False},
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(base=tmp_path, layout="hermes")
    home.skill("cat/old")
    home.skill("other")
    home.usage(USAGE)
    applier = home.applier()
    home.know(applier, "cat/old", "other")
    return home


def archive(home: Home, rel: str = "cat/old", **more: Any) -> Archive:
    return Archive(key=key(rel), reason="r", expected=home.fingerprint(rel), **more)


def test_archiving_is_recorded_as_hermes_records_it(home: Home) -> None:
    """State and archive time are set in its record; every other field, key and character stays."""
    outcome = home.applier().apply(archive(home), now=NOW)

    assert isinstance(outcome, Applied), outcome
    want = {**USAGE, "old": {**USAGE["old"], "state": "archived", "archived_at": NOW.isoformat()}}
    text = (home.root / ".usage.json").read_text(encoding="utf-8")
    assert json.dumps(want, indent=2, sort_keys=True, ensure_ascii=False) == text
    assert (home.root / ".archive/old/SKILL.md").exists()


def test_stale_leaves_the_archive_time_alone_and_active_clears_it(home: Home) -> None:
    """As in Hermes: `archived_at` is set on archived, cleared on active, left alone on stale."""
    home.usage({"old": {"state": "active", "archived_at": "2026-01-01T00:00:00+00:00"}})
    applier = home.applier()
    fingerprint = home.fingerprint("cat/old")

    applier.apply(MarkStale(key=key("cat/old"), reason="", expected=fingerprint), now=NOW)
    stale = home.usage_of("old")
    applier.apply(Reactivate(key=key("cat/old"), reason="", expected=fingerprint), now=NOW)

    assert {"state": "stale", "archived_at": "2026-01-01T00:00:00+00:00"} == stale
    assert {"state": "active", "archived_at": None} == home.usage_of("old")


def test_pins_are_hermes_pins(home: Home) -> None:
    """A pin is set in its record, taken out again, and stored for skills that it knows nothing of."""
    home.usage({})
    applier = home.applier()

    applier.apply(Pin(key=key("cat/old"), reason="", by="user"), now=NOW)
    pinned = home.usage_of("old")["pinned"]
    applier.apply(Unpin(key=key("cat/old"), reason="", by="user"), now=NOW)

    assert pinned is True
    assert home.usage_of("old")["pinned"] is False


def test_nothing_of_ours_reaches_the_record_of_a_protected_skill(home: Home) -> None:
    """A pin of a bundled skill is our own; Hermes' file does not change."""
    home.protected = {"old"}
    before = (home.root / ".usage.json").read_bytes()

    assert isinstance(home.applier().apply(Pin(key=key("cat/old"), reason="", by="user"), now=NOW), Applied)
    assert before == (home.root / ".usage.json").read_bytes()


def test_a_pin_set_in_hermes_meanwhile_wins(home: Home) -> None:
    """Between plan and apply somebody says `hermes curator pin`: the skill stays, and the reason says so."""
    action = archive(home)
    home.usage({"old": {**USAGE["old"], "pinned": True}})
    before = home.files()

    outcome = home.applier().apply(action, now=NOW)

    assert isinstance(outcome, Skipped)
    assert "pinned" == outcome.code
    assert before == home.files()


def test_a_pin_that_the_reader_missed_is_read_under_the_lock(home: Home) -> None:
    """The record is read once more under Hermes' own lock, whatever the library reader said before."""
    action = archive(home)
    applier = home.applier()
    home.usage({"old": {**USAGE["old"], "pinned": True}})
    home.reads_usage = False
    outcome = applier.apply(action, now=NOW)

    assert isinstance(outcome, Skipped)
    assert "pinned" == outcome.code


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"old": []}', id="odd record"),
        pytest.param(b"\xff\xfe", id="bytes"),
        pytest.param(b'{"old": {"x": 1e999}}', id="infinite"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"old": {"s": "\\ud800"}}', id="surrogate"),
    ],
)
def test_a_corrupt_usage_file_stops_the_action_and_is_left_alone(home: Home, text: bytes) -> None:
    """Hermes reads a corrupt file as empty and wipes it; we refuse, and leave every byte."""
    action = archive(home)
    (home.root / ".usage.json").write_bytes(text)
    home.reads_usage = False
    before = home.files()

    outcome = home.applier().apply(action, now=NOW)

    assert isinstance(outcome, Skipped)
    assert "unreadable" == outcome.code
    assert before == home.files()


def merge(home: Home) -> Merge:
    return Merge(
        umbrella=key("kit"),
        reason="r",
        writes=(
            PackageWrite(
                key=key("kit"),
                expected=None,
                files=(FileChange(path=RelPath("SKILL.md"), content=b"---\nname: kit\n"),),
            ),
        ),
        members=(
            Member(key=key("cat/old"), expected=home.fingerprint("cat/old"), reason="r"),
            Member(key=key("other"), expected=home.fingerprint("other"), reason="r", absorbed=False),
        ),
    )


def test_schedules_follow_a_merge_and_its_undo(home: Home) -> None:
    """Names and absolute paths point to the umbrella, pruned ones go, all else in the schedule stays; undo restores."""
    skills = home.root
    path = home.jobs(
        [
            {"id": "a", "skills": ["x", "old", "other"], "skill": "x", "next_run": 1.5, "enabled": False},
            {"id": "b", "skill": "old", "skills": ["old", "kit", "cat/old"]},
            {"id": "c", "skills": [f"{skills}/cat/old", f"{skills}/cat/old/SKILL.md", "older"], "prompt": "old"},
            {"id": "d", "skill": "other"},
            {"id": "e", "skills": ["quite", "different"]},
        ]
    )
    before = path.read_bytes()
    applier = home.applier()

    done = applier.apply(merge(home), now=NOW)

    assert isinstance(done, Applied), done
    jobs = {job["id"]: job for job in json.loads(path.read_bytes())["jobs"]}
    assert {"id": "a", "skills": ["x", "kit"], "skill": "x", "next_run": 1.5, "enabled": False} == jobs["a"]
    assert {"id": "b", "skill": "kit", "skills": ["kit"]} == jobs["b"]
    assert [f"{skills}/kit", f"{skills}/kit/SKILL.md", "older"] == jobs["c"]["skills"]
    assert {"id": "d", "skill": None} == jobs["d"]
    undone = undo(applier, done.entry.action_id, now=NOW)
    assert [Applied] == [type(outcome) for outcome in undone], undone
    assert before == path.read_bytes()


def test_a_plain_archive_leaves_schedules_alone(home: Home) -> None:
    """A person's archiving is taken back by `restore` alone, so no reference is rewritten."""
    path = home.jobs([{"id": "a", "skills": ["old"]}])
    before = path.read_bytes()

    assert isinstance(home.applier().apply(archive(home, by="user"), now=NOW), Applied)
    assert before == path.read_bytes()


@pytest.mark.parametrize("text", [b"{", b'{"jobs": 5}', b'{"jobs": [{"skills": ["old"]}]}'])
def test_an_unreadable_schedule_stops_a_merge(home: Home, text: bytes) -> None:
    """References that cannot be followed are a reason not to begin."""
    home.jobs([]).write_bytes(text)
    before = home.files()

    outcome = home.applier().apply(merge(home), now=NOW)

    assert isinstance(outcome, Skipped)
    assert "unreadable" == outcome.code
    assert before == home.files()


def test_undo_is_byte_for_byte_in_hermes_files_too(home: Home) -> None:
    """After archive and undo its records and schedules are what they were, also in another style of JSON."""
    (home.root / ".usage.json").write_bytes(
        b'\xef\xbb\xbf{"z": {"a": 1}, "old": {"state": "active", "b": "\\u00e4"}}\r\n'
    )
    home.jobs([{"id": "a", "skills": ["old"]}])
    before = home.files()
    applier = home.applier()
    home.reads_usage = False
    done = applier.apply(archive(home, drop_references=True), now=NOW)
    assert isinstance(done, Applied), done
    assert before != home.files()

    undo(applier, done.entry.action_id, now=NOW)

    assert before == home.files()


def test_undo_makes_no_file_that_was_not_there(home: Home) -> None:
    """Where Hermes had no `.usage.json` yet, none is left after the undo."""
    (home.root / ".usage.json").unlink()
    before = home.files()
    applier = home.applier()
    done = applier.apply(archive(home), now=NOW)
    assert isinstance(done, Applied)
    assert (home.root / ".usage.json").exists()

    undo(applier, done.entry.action_id, now=NOW)

    assert before == home.files()


def test_hermes_restores_what_we_archived(home: Home) -> None:
    """Its restore looks for the folder's name, or the newest with a stamp of 14 digits; both are what we leave."""
    applier = home.applier()
    applier.apply(archive(home), now=NOW)
    home.skill("cat/old", "second")
    home.know(applier, "cat/old", seen_fingerprint=home.fingerprint("cat/old"))
    applier.apply(archive(home, by="user"), now=NOW + timedelta(hours=1))

    names = sorted(path.name for path in (home.root / ".archive").iterdir())

    assert ["old", "old-20260301130000"] == names


def test_we_restore_what_hermes_archived(home: Home) -> None:
    """A package in `.archive` that we know nothing of comes back, its record says active, the suppression goes."""
    target = home.root / ".archive/cat/old"
    target.parent.mkdir(parents=True)
    (home.root / "cat/old").rename(target)
    home.usage({"old": {"state": "archived", "archived_at": "2026-01-01T00:00:00+00:00", "use_count": 1}})
    (home.root / ".curator_suppressed").write_text("# ours\nzzz\nold\n")
    applier = home.applier()

    assert [("old", "cat/old")] == [(str(p.key.name), p.path) for p in archived_packages(applier, LIB)]
    outcome = restore(applier, "old", now=NOW)

    assert isinstance(outcome, Applied), outcome
    assert (home.root / "old/SKILL.md").exists()
    assert {"state": "active", "archived_at": None, "use_count": 1} == home.usage_of("old")
    assert "# ours\nzzz\n" == (home.root / ".curator_suppressed").read_text()


def test_restore_refuses_a_name_that_lives_elsewhere(home: Home) -> None:
    """Hermes knows names only: two live skills of one name would shadow each other."""
    stray = home.root / ".archive/other"
    stray.mkdir(parents=True)
    (stray / "SKILL.md").write_text("---\nname: other\n---\n")
    (home.root / "cat/other").mkdir()
    (home.root / "other").rename(home.root / "cat/moved")
    applier = home.applier()
    home.know(applier, "cat/moved")
    (home.root / "cat/moved").rename(home.root / "cat/other/x")
    home.skill("sub/other")
    home.know(applier, "sub/other")

    outcome = restore(applier, "other", now=NOW)

    assert isinstance(outcome, Skipped)
    assert "taken" == outcome.code


HOLD = """
import fcntl, os, sys, time
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(30)
"""


@pytest.fixture
def holder() -> Iterator[Any]:
    """Yield what starts another process that holds a lock file."""
    started: list[subprocess.Popen[str]] = []

    def hold(path: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert "held\n" == process.stdout.readline()
        return process

    yield hold
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize("lock", [".usage.json.lock", "../cron/.jobs.lock"])
def test_hermes_locks_are_waited_for(home: Home, holder: Any, lock: str) -> None:
    """While Hermes holds a lock nothing is changed; once it lets go the same action is applied."""
    home.jobs([])
    process = holder(home.root / lock)
    action = archive(home)
    before = home.files()

    with pytest.raises(BusyError, match="held by another program"):
        home.applier().apply(action, now=NOW)
    assert before == home.files()

    process.kill()
    process.wait()
    assert isinstance(home.applier().apply(action, now=NOW), Applied)


def test_the_work_lock_names_its_holder(home: Home, holder: Any) -> None:
    """Another curatord at work is a `BusyError` with its process' id."""
    process = holder(home.state / "work.lock")
    (home.state / "work.lock").write_text(f"{process.pid}\n")

    with pytest.raises(BusyError) as caught:
        home.applier(wait_s=0.1).apply(archive(home), now=NOW)

    assert str(process.pid) == caught.value.holder


def test_hermes_claim_is_honoured_and_a_dead_one_is_not(home: Home) -> None:
    """A claim younger than an hour keeps us out; an older one is taken over, as Hermes does; ours is given back."""
    claim = home.root / ".locks/curator-run"
    claim.parent.mkdir()
    claim.write_text("4242")
    applier = home.applier()
    action = archive(home)

    with pytest.raises(BusyError) as caught:
        applier.apply(action, now=NOW)
    assert "4242" == caught.value.holder
    assert "4242" == claim.read_text()

    old = time.time() - 3700
    os.utime(claim, (old, old))
    assert isinstance(applier.apply(action, now=NOW), Applied)
    assert not claim.exists()


def test_our_claim_is_held_while_we_work(home: Home) -> None:
    """During the action the claim holds our process' id, and both locks are taken."""
    home.jobs([])
    seen: dict[str, object] = {}

    def look(_key: object) -> None:
        claim = home.root / ".locks/curator-run"
        if claim.exists():
            seen["claim"] = claim.read_text()
            for path in (home.root / ".usage.json.lock", home.root.parent / "cron/.jobs.lock"):
                with path.open("r+") as lock:
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        seen[path.name] = "held"

    home.on_look = look
    actions: list[Action] = [archive(home)]
    home.applier().apply(actions[0], now=NOW)

    assert {"claim": str(os.getpid()), ".usage.json.lock": "held", ".jobs.lock": "held"} == seen


def test_a_bundled_skill_that_is_archived_is_suppressed(home: Home) -> None:
    """Else the next update would copy it back. (The gate lets none through; the writer knows.)"""
    (home.root / ".bundled_manifest").write_text("old:0123\n")
    applier = home.applier()
    done = applier.apply(archive(home), now=NOW)
    assert isinstance(done, Applied)

    assert "old\n" == (home.root / ".curator_suppressed").read_text()
    undo(applier, done.entry.action_id, now=NOW)
    assert not (home.root / ".curator_suppressed").exists()


def test_a_state_that_hermes_took_back_itself_is_no_obstacle(home: Home) -> None:
    """Where Hermes set its record back meanwhile, the undo of a stale mark goes through."""
    applier = home.applier()
    done = applier.apply(MarkStale(key=key("cat/old"), reason="", expected=home.fingerprint("cat/old")), now=NOW)
    assert isinstance(done, Applied)
    home.usage(USAGE)

    outcome = undo(applier, done.entry.action_id, now=NOW)[0]

    assert isinstance(outcome, Applied), outcome
    record = applier.store.skill(key("cat/old"))
    assert record is not None
    assert State.ACTIVE is record.state

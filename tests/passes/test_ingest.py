"""What a scan makes of files that grow, tear, move, are copied, truncated, replaced, pruned or unreadable."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from curatord.adapters.sources import json_lines
from curatord.adapters.sources.walk import walk
from curatord.adapters.store.ingest import IngestStore
from curatord.core.cheap import replace
from curatord.core.transcript.ids import id_key
from curatord.errors import BusyError, StateError
from curatord.passes import ingest
from curatord.ports.ingest_store import Reading
from curatord.ports.source import Item
from tests.claude_log import BODY, START, Log, iso, touch
from tests.ingest_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An empty home."""
    made = World(tmp_path)
    yield made
    made.database.close()


def a_log(session: str = "s-1", **more: Any) -> Log:
    """A session with one prompt, one skill use and an answer: 5 records, 1 turn, 2 messages, 1 call, 1 event."""
    log = Log(session, **more)
    log.said("hello")
    log.skill("pdf-forms")
    log.model()
    return log


A_LOG = (5, 0, 1, 2, {"Skill": 1}, 1)


def test_grown_file_is_read_from_its_watermark(world: World) -> None:
    """Only the appended bytes are read, and added to the session."""
    log = a_log()
    path = log.write(world.projects)
    size = path.stat().st_size
    world.scan()
    log.said("more")
    log.write(world.projects)

    report = world.scan()

    assert path.stat().st_size - size == report.sources[0].bytes
    assert world.rows() == {"s-1": (6, 0, 2, 2, {"Skill": 1}, 1)}


def test_unchanged_files_are_not_read_and_nothing_is_written(world: World) -> None:
    """A second scan without change reads no byte and leaves every table as it was but the source's scan time."""
    a_log().write(world.projects)
    a_log("s-2").write(world.projects)
    world.scan()
    before = [line for line in world.database.connection.iterdump() if 'INTO "sources"' not in line]

    report = world.scan()

    after = [line for line in world.database.connection.iterdump() if 'INTO "sources"' not in line]
    assert (report.sources[0].files, report.sources[0].changed, report.sources[0].bytes) == (2, 0, 0)
    assert before == after


def test_half_line_waits_for_its_rest(world: World) -> None:
    """A line caught half-written is counted once, when it is whole, also over a restart."""
    log = a_log()
    log.said("late")
    path = log.write(world.projects)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    world.scan()
    assert world.rows() == {"s-1": A_LOG}
    path.write_bytes(whole)

    world = world.reopened()
    world.scan()

    assert world.rows() == {"s-1": (6, 0, 2, 2, {"Skill": 1}, 1)}


def test_last_line_without_newline_counts_once_the_file_is_settled(world: World) -> None:
    """A whole last record without LF is taken when the file was left alone, and not again when the LF comes."""
    log = a_log()
    path = log.write(world.projects)
    path.write_bytes(log.text()[:-1])
    touch(path, log.at)
    world.clock.at = log.at + timedelta(minutes=29)
    world.scan()
    assert world.rows()["s-1"][0] == 4
    world.later(minutes=1)
    world.scan()
    assert world.rows() == {"s-1": A_LOG}
    log.said("after")
    log.write(world.projects)

    world.scan()

    assert world.rows() == {"s-1": (6, 0, 2, 2, {"Skill": 1}, 1)}
    assert not world.queries.sessions()[0].restarts


def test_line_end_that_comes_late_makes_no_other_record(world: World) -> None:
    """A last record without id is the same with and without its LF, also in a copy and when all is read anew."""
    log = a_log()
    log.raw({"type": "mode", "mode": "plan", "sessionId": "s-1"})
    path = log.write(world.projects)
    path.write_bytes(log.text()[:-1])
    touch(path, log.at)
    world.clock.at = log.at + timedelta(hours=1)
    world.scan()
    path.write_bytes(log.text())
    shutil.copy(path, path.with_name("copy.jsonl"))
    new = path.with_name("new")
    new.write_bytes(log.text().replace(b"hello", b"HELLO"))
    new.rename(path)

    world.scan()

    assert world.rows() == {"s-1": (6, *A_LOG[1:])}


def test_call_without_result_becomes_an_event_when_settled(world: World) -> None:
    """A skill call whose result never came counts once the session is quiet, and is looked at without being changed."""
    log = Log()
    log.said("hello")
    log.call("Skill", skill="pdf-forms")
    log.write(world.projects)
    world.clock.at = log.at
    world.scan()
    assert world.events() == []
    world.later(minutes=31)

    world.scan()

    assert world.events() == [("s-1", "pdf-forms", "use")]


@pytest.mark.parametrize("back", ["same", "answered", "failed"])
def test_call_without_result_counts_once_its_file_is_gone_and_quiet(world: World, back: str) -> None:
    """What a host prunes stays counted, as if the file had stayed; and once, whatever comes back of it."""
    log = Log()
    log.said("hello")
    call = log.call("Skill", skill="pdf-forms")
    path = log.write(world.projects)
    world.clock.at = log.at
    world.scan()
    path.unlink()
    world.scan()
    assert world.events() == []
    world = world.reopened()
    world.later(minutes=31)

    assert 1 == world.scan().events
    assert world.events() == [("s-1", "pdf-forms", "use")]
    assert [False] == [row.present for row in world.queries.sessions()]
    assert 0 == world.scan().events
    assert world.rows()["s-1"][0] == 2

    if back != "same":
        log.result(call, "no such skill", error=back == "failed")
    log.write(world.projects, settled_at=world.clock.at)
    world.scan()
    world.later(minutes=31)
    world.scan()
    assert world.events() == ([] if back == "failed" else [("s-1", "pdf-forms", "use")])
    assert world.rows()["s-1"][0] == (2 if back == "same" else 3)


@pytest.mark.parametrize("time", ["none", "in the future"])
def test_call_of_a_file_that_is_gone_and_had_no_good_time(world: World, time: str) -> None:
    """Read by halves it has none, and one of a wrong clock says nothing: how long it is gone does."""
    log = Log()
    log.said("hello")
    log.call("Skill", skill="pdf-forms")
    path = log.write(world.projects, settled_at=world.clock.at + timedelta(days=9))
    path.write_bytes(b"".join(line.replace(b'"timestamp"', b'"_"') + b"\n" for line in log.text().splitlines()))
    touch(path, world.clock.at + timedelta(days=9))
    world.scan()
    path.unlink()
    world.scan()
    if time == "none":
        world.database.connection.execute("UPDATE files SET mtime_ns = 0")
    world.later(minutes=31)

    assert 1 == world.scan().events
    (at,) = world.database.connection.execute("SELECT at FROM events").fetchone()
    assert at >= round(world.clock.at.timestamp() * 1000)
    assert 0 == world.scan().events


def test_call_whose_file_is_away_for_a_while_waits_on(world: World) -> None:
    """A file that is back before the session counts as settled has lost nothing of what waited in it."""
    log = Log()
    log.said("hello")
    call = log.call("Skill", skill="pdf-forms")
    path = log.write(world.projects)
    world.clock.at = log.at
    world.scan()
    away = path.rename(world.projects.parent / "away.jsonl")
    world.scan()
    away.rename(path)
    log.result(call, "no such skill", error=True)
    log.write(world.projects, settled_at=world.clock.at)
    world.scan()
    world.later(minutes=31)

    world.scan()

    assert world.events() == []


def test_failure_that_shows_after_settling_takes_the_event_back(world: World) -> None:
    """An event that was let go without its result is withdrawn when the result says that the call failed."""
    log = Log()
    log.said("hello")
    call = log.call("Skill", skill="pdf-forms")
    log.write(world.projects)
    world.clock.at = log.at + timedelta(hours=1)
    world.scan()
    assert len(world.events()) == 1
    log.result(call, "no such skill", error=True)
    log.write(world.projects, settled_at=world.clock.at)

    world.scan()

    assert world.events() == []


def test_result_of_a_later_scan_lets_the_event_happen(world: World) -> None:
    """Call and result may be met in two scans; the event has the call's time and, in the end, the skill's folder."""
    log = Log()
    log.said("hello")
    call = log.call("Skill", skill="pdf-forms")
    at = log.at
    log.write(world.projects)
    world.scan()
    log.result(call, outcome={"success": True, "commandName": "pdf-forms"})
    log.write(world.projects)
    world.scan()
    log.meta(f"{BODY}pdf-forms\n\n# x", sourceToolUseID=call)
    log.write(world.projects)

    world.scan()

    (event,) = world.queries.events(resolve=lambda **_: None)
    assert (at, "/home/dev/.claude/skills/pdf-forms") == (event.at, event.path)


def test_truncated_and_written_anew_counts_both_once(world: World) -> None:
    """What was counted before a truncation did happen; what is written after it is new; nothing counts twice."""
    log = a_log()
    path = log.write(world.projects)
    world.scan()
    fresh = Log("s-1", name="later", start=log.at)
    fresh.said("one")
    fresh.said("two")
    path.write_bytes(fresh.text())

    world.scan()
    world.scan()

    assert world.rows() == {"s-1": (7, 0, 3, 2, {"Skill": 1}, 1)}
    (restart,) = world.queries.sessions()[0].restarts
    assert restart[1].startswith("replaced")


@pytest.mark.parametrize("kept", [0, 1, 6])
@pytest.mark.parametrize("with_ids", [True, False])
def test_truncated_and_grown_again_counts_each_record_once(world: World, kept: int, with_ids: bool) -> None:
    """A file that is cut and brings its records again, one a scan, ends as if it had never been cut; new ones count."""
    log = Log()
    for number in range(10):
        if with_ids:
            log.said(f"prompt {number}")
        else:
            message = {"role": "user", "content": f"prompt {number}"}
            log.raw({"type": "user", "message": message, "sessionId": "s-1", "timestamp": iso(log.at)})
    path = log.write(world.projects)
    world.scan()
    before = world.rows()
    lines = path.read_bytes().splitlines(keepends=True)
    for count in range(kept, 11):
        path.write_bytes(b"".join(lines[:count]))
        world.later(hours=1)
        world.scan()

    assert before == world.rows()
    log.said("something new")
    log.write(world.projects)
    world.scan()
    assert (11, 11) == (world.rows()["s-1"][0], world.rows()["s-1"][2])


def test_truncated_to_nothing_and_back(world: World) -> None:
    """A file that is emptied and gets its old content again comes to the same."""
    log = a_log()
    path = log.write(world.projects)
    world.scan()
    path.write_bytes(b"")
    world.scan()
    path.write_bytes(log.text())

    world.scan()

    assert world.rows() == {"s-1": A_LOG}


def test_cut_short_and_written_whole_again(world: World) -> None:
    """A file that lost its end, was seen so, and got it back comes to the same, also in its number of records."""
    log = a_log()
    log.raw({"type": "mode", "mode": "plan"})
    path = log.write(world.projects)
    world.scan()
    path.write_bytes(b"".join(log.text().splitlines(keepends=True)[:2]))
    world.scan()
    path.write_bytes(log.text())
    world.scan()
    log.said("more")
    log.write(world.projects)

    world.scan()

    assert world.rows() == {"s-1": (7, 0, 2, 2, {"Skill": 1}, 1)}


def test_cut_short_and_grown_past_the_watermark(world: World) -> None:
    """Truncated and grown beyond the old size between two scans, it is noticed by the bytes before the watermark."""
    log = a_log()
    log.write(world.projects)
    world.scan()
    other = Log("s-1", name="other", start=log.at)
    for _ in range(9):
        other.said("something else")
    log.lines = log.lines[:1] + other.lines
    log.write(world.projects)

    world.scan()

    assert world.rows() == {"s-1": (14, 0, 10, 2, {"Skill": 1}, 1)}
    assert world.queries.sessions()[0].restarts[0][1].startswith("rewritten")


def test_saved_by_rename_keeps_counts(world: World) -> None:
    """An editor that writes a new file over the old name gives it another inode; the records are the same."""
    log = a_log()
    path = log.write(world.projects)
    world.scan()
    log.said("edited in")
    new = path.with_name("tmp")
    new.write_bytes(log.text())
    new.rename(path)

    world.scan()

    assert world.rows() == {"s-1": (6, 0, 2, 2, {"Skill": 1}, 1)}


def test_another_file_under_the_same_name(world: World) -> None:
    """A file replaced by one with another first record is another file; the old one's counts stay."""
    path = a_log().write(world.projects)
    world.scan()
    other = a_log("s-2")
    new = path.with_name("tmp")
    new.write_bytes(other.text())
    new.rename(path)

    world.scan()

    assert world.rows() == {"s-1": A_LOG, "s-2": A_LOG}


@pytest.mark.parametrize("single", [False, True])
def test_files_that_swap_their_names_keep_what_waits(world: World, *, single: bool) -> None:
    """A call that waits for its result moves with its file, also where the file's new name was another's."""
    logs = [Log("s-1"), Log("s-2", start=START + timedelta(seconds=5))]
    calls = []
    for log in logs:
        log.said("hello")
        calls.append(log.call("Skill", skill=log.session))
    paths = [log.write(world.projects) for log in logs]
    world.scan()
    spare = paths[0].with_suffix(".spare")
    paths[0].rename(spare)
    paths[1].rename(paths[0])
    spare.rename(paths[1])

    report = world.touch(*paths) if single else world.scan()

    assert [] == report.notes
    for log, call, path in zip(logs, calls, reversed(paths), strict=True):
        log.result(call)
        path.write_bytes(log.text())
    world.scan()

    assert [("s-1", "s-1", "use"), ("s-2", "s-2", "use")] == world.events()
    assert (6, 2, 2, 2, 2) == world.totals()


def test_file_that_took_anothers_name_and_was_written_anew_is_one_file(world: World) -> None:
    """Saved by rename, the old text put away under the name of another session: neither is counted twice or lost."""
    first, second = a_log("s-1"), a_log("s-2", start=START + timedelta(seconds=5))
    path, other = first.write(world.projects), second.write(world.projects)
    world.scan()
    path.rename(other)
    first.said("more")
    first.write(world.projects)

    report = world.scan()

    assert {"s-1": (6, 0, 2, *A_LOG[3:]), "s-2": A_LOG} == world.rows()
    assert "failed" not in {note.kind for note in report.notes}
    assert not world.scan().sources[0].changed
    assert {str(path)} == {row.path for row in world.queries.sessions() if row.session_id == "s-1"}


@pytest.mark.parametrize("how", ["renamed", "moved over file systems"])
def test_moved_file_is_the_same_file(world: World, how: str) -> None:
    """A file under another name is known by its inode or its content, and only what it grew by is read."""
    log = a_log()
    path = log.write(world.projects)
    world.scan()
    target = world.projects / "-archive" / "renamed.jsonl"
    target.parent.mkdir()
    if how == "renamed":
        path.rename(target)
    else:
        target.write_bytes(path.read_bytes())
        path.unlink()
    with target.open("ab") as file:
        file.write(b'{"type":"mode","sessionId":"s-1"}\n')

    report = world.scan()

    assert report.sources[0].bytes == len(b'{"type":"mode","sessionId":"s-1"}\n')
    assert {"s-1": (6, *A_LOG[1:])} == world.rows()
    assert str(target) == world.queries.sessions()[0].path


def test_copy_of_a_file_counts_for_nothing(world: World) -> None:
    """A second file with the same records, without an id or with one, adds none."""
    log = a_log()
    log.queue("enqueue", "x")
    log.raw({"type": "mode", "mode": "x"})
    path = log.write(world.projects)
    world.scan()
    rows = world.rows()
    shutil.copy(path, path.with_name("copy.jsonl"))

    world.scan()

    assert rows == world.rows()


@pytest.mark.parametrize("mirror_first", [False, True])
def test_mirror_that_is_kept_in_step(world: World, *, mirror_first: bool) -> None:
    """A second place that gets each later record too counts for nothing, whichever of the two is read first."""
    log = a_log()
    for number in range(5):
        log.said(f"more {number}")
        path = log.write(world.projects)
        mirror = path.with_name("0-mirror.jsonl" if mirror_first else "z-mirror.jsonl")
        shutil.copy2(path, mirror)
        world.scan()

    assert world.rows() == {"s-1": (10, 0, 6, 2, {"Skill": 1}, 1)}


def test_copy_met_in_the_same_scan(world: World) -> None:
    """Original and copy found together count once."""
    path = a_log().write(world.projects)
    for number in range(3):
        shutil.copy2(path, path.with_name(f"copy-{number}.jsonl"))

    world.scan()

    assert world.rows() == {"s-1": A_LOG}


def test_fork_counts_only_what_is_its_own(world: World) -> None:
    """A fork copies the records under a new session id; they stay with the session that wrote them."""
    log = a_log()
    log.write(world.projects)
    fork = log.forked("s-2")
    fork.said("on another way")
    fork.skill("other-skill")
    fork.write(world.projects)

    world.scan()

    assert world.rows() == {"s-1": A_LOG, "s-2": (4, 0, 1, 1, {"Skill": 1}, 1)}
    assert world.events() == [("s-1", "pdf-forms", "use"), ("s-2", "other-skill", "use")]


@pytest.mark.parametrize("grows", ["original", "fork"])
@pytest.mark.parametrize("scans", [1, 2])
def test_message_that_was_forked_between_two_of_its_records_counts_once(world: World, grows: str, scans: int) -> None:
    """Whichever file has the rest of a message, its first record may have been counted in the other one."""
    log = a_log()
    log.model({"type": "text", "text": "I look"}, message="msg_half")
    fork = log.forked("s-2")
    if scans == 2:
        log.write(world.projects)
        fork.write(world.projects)
        world.scan()
    grown, other = (log, fork) if grows == "original" else (fork, log)
    grown.model({"type": "tool_use", "id": "toolu_half", "name": "Bash", "input": {}}, message="msg_half")
    other.write(world.projects, settled_at=START)  # the older one is read first
    grown.write(world.projects)

    world.scan()

    _, user, model, calls, _ = world.totals()
    assert (1, 3, 2) == (user, model, calls)


def test_original_that_grows_after_its_fork(world: World) -> None:
    """After a fork, both files grow on their own."""
    log = a_log()
    log.write(world.projects)
    fork = log.forked("s-2")
    fork.said("there")
    fork.write(world.projects)
    world.scan()
    log.said("here")
    log.write(world.projects)
    fork.said("there again")
    fork.write(world.projects)

    world.scan()

    assert world.rows() == {"s-1": (6, 0, 2, 2, {"Skill": 1}, 1), "s-2": (2, 0, 2, 0, {}, 0)}


def test_forks_that_grow_are_committed_together(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is read under the guard of its original; only where that waits to be committed itself, it goes first."""
    logs = [a_log(f"s-{number}", name=f"a-{number}") for number in range(5)]
    forks = [log.forked(f"fork-{number}") for number, log in enumerate(logs)]
    for log, fork in zip(logs, forks, strict=True):
        fork.said("another way")
        log.write(world.projects)
        fork.write(world.projects)
    world.scan()
    logs[0].said("here too")
    logs[0].write(world.projects)
    for fork in forks:
        fork.said("and on")
        fork.write(world.projects)
    sizes: list[int] = []
    write = IngestStore.write

    def noting(self: IngestStore, readings: Sequence[Reading], *, now_ms: int) -> Any:
        sizes.append(len(readings))
        return write(self, readings, now_ms=now_ms)

    monkeypatch.setattr(IngestStore, "write", noting)

    report = world.scan()

    assert 6 == report.sources[0].records
    assert 6 == sum(sizes)
    assert 2 == len(sizes)


def test_fork_of_a_fork_meets_both(world: World) -> None:
    """A third file with history of two others passes over both."""
    log = a_log()
    fork = log.forked("s-2")
    fork.said("second")
    third = fork.forked("s-3")
    third.said("third")
    for one in (log, fork, third):
        one.write(world.projects)

    world.scan()

    assert world.rows() == {"s-1": A_LOG, "s-2": (1, 0, 1, 0, {}, 0), "s-3": (1, 0, 1, 0, {}, 0)}


def test_copy_whose_original_is_gone(world: World) -> None:
    """The keys of a pruned file still tell its copies."""
    path = a_log().write(world.projects)
    world.scan()
    data = path.read_bytes()
    path.unlink()
    world.scan()
    fork = a_log().forked("s-9")
    fork.said("new")
    fork.write(world.projects)
    (path.parent / "again.jsonl").write_bytes(data)

    world.scan()

    assert world.rows() == {"s-1": A_LOG, "s-9": (1, 0, 1, 0, {}, 0)}


def test_same_tree_under_two_roots_and_through_links(world: World) -> None:
    """Overlapping places, hard links and links to folders lead to each file once."""
    path = a_log().write(world.projects)
    sub = a_log("s-2").write(world.projects, folder="-other")
    os.link(path, path.with_name("linked.jsonl"))
    (world.projects / "-link").symlink_to(path.parent, target_is_directory=True)
    outside = world.root / "second"
    outside.mkdir()
    (outside / "loop").symlink_to(outside, target_is_directory=True)
    (outside / "to-first").symlink_to(world.projects, target_is_directory=True)

    world.scan(world.projects, outside, sub.parent)
    world.scan(sub.parent, outside, world.projects)

    assert world.rows() == {"s-1": A_LOG, "s-2": A_LOG}


def test_sub_agents_count_for_their_parent(world: World) -> None:
    """Files of sub-agents, at any depth and of the old kind, give no session of their own and no user turns."""
    log = a_log()
    path = log.write(world.projects)
    deep = path.with_suffix("") / "subagents" / "workflows" / "w"
    deep.mkdir(parents=True)
    (path.with_suffix("") / "tool-results").mkdir()
    (path.with_suffix("") / "tool-results" / "x.jsonl").write_bytes(b'{"type":"user"}\n')
    for name, place in (("agent-1", deep), ("agent-2", path.parent)):
        agent = a_log("s-1", name=name, isSidechain=name == "agent-1")
        (place / f"{name}.jsonl").write_bytes(agent.text())

    world.scan()

    assert world.rows() == {"s-1": (15, 0, 1, 6, {"Skill": 3}, 3)}
    assert str(path) == world.queries.sessions()[0].path


def test_pruned_session_keeps_its_counts(world: World) -> None:
    """A host that deletes old files takes nothing from what was counted."""
    path = a_log().write(world.projects)
    world.scan()
    path.unlink()

    world.scan()

    assert world.rows() == {"s-1": A_LOG}
    assert not world.queries.sessions()[0].present


def test_unreadable_lines_are_counted_with_their_offset(world: World) -> None:
    """Broken lines are counted where they stand, and the rest of the file is read."""
    log = a_log()
    log.lines.insert(1, "{broken")
    path = log.write(world.projects)

    report = world.scan()

    (source,) = world.queries.sources()
    offset = len(log.lines[0]) + 1
    assert {"s-1": (5, 1, *A_LOG[2:])} == world.rows()
    assert [(str(path), offset)] == [bad[:2] for bad in source.bad]
    assert report.sources[0].unreadable == 1


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root reads everything")
def test_one_bad_file_stops_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be read is noted, tried again after a growing pause, and parked after many tries."""
    bad = a_log().write(world.projects)
    a_log("s-2").write(world.projects)
    real = os.open
    tries = []

    def refuse(path: Any, *rest: Any, **more: Any) -> int:
        if path == str(bad):
            tries.append(world.clock.at)
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    report = world.scan()
    assert world.rows() == {"s-2": A_LOG}
    assert [("failed", str(bad))] == [(note.kind, note.path) for note in report.notes]
    for _ in range(60 * 24 * 3):
        world.later(minutes=1)
        world.scan()
    assert 8 <= len(set(tries)) <= 12
    monkeypatch.undo()
    world.later(days=30)
    world.scan()
    assert "s-1" not in world.rows()
    touch(bad, world.clock.at)

    world.scan()

    assert world.rows() == {"s-1": A_LOG, "s-2": A_LOG}


def test_file_that_vanishes_between_listing_and_reading(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives one note and no error."""
    path = a_log().write(world.projects)
    source = world.source()
    items = list(source.items())
    monkeypatch.setattr(type(source), "items", lambda _: iter(items))
    path.unlink()

    report = world.scan()

    assert [("vanished", str(path))] == [(note.kind, note.path) for note in report.notes]
    assert not report.failed


@pytest.mark.parametrize("big", [False, True])
def test_file_that_is_another_one_between_listing_and_reading(
    world: World, monkeypatch: pytest.MonkeyPatch, *, big: bool
) -> None:
    """It is not read under the size, time and inode of the one that was listed, or that one would look read."""
    log, other = a_log(), a_log("s-2")
    path = log.write(world.projects)
    spare = path.with_suffix(".spare")
    spare.write_bytes(other.text())
    world.scan()
    log.said("more" * (json_lines.WHOLE if big else 1))
    with path.open("wb") as stream:
        stream.write(log.text())

    def walk_and_move(*args: Any, **more: Any) -> Iterator[Item]:
        yield from walk(*args, **more)
        path.rename(path.with_suffix(".kept"))
        spare.rename(path)

    with monkeypatch.context() as patched:
        patched.setattr(json_lines, "walk", walk_and_move)
        report = world.scan()
    path.rename(spare)
    path.with_suffix(".kept").rename(path)
    world.scan()

    assert [("waiting", "another file has taken its place meanwhile; the next scan reads it")] == [
        (note.kind, note.text) for note in report.notes
    ]
    assert {"s-1": (6, 0, 2, 2, {"Skill": 1}, 1)} == world.rows()


def test_missing_place_waits(world: World) -> None:
    """A place that does not exist is no error, and what was read of it before is not taken for pruned."""
    a_log().write(world.projects)
    world.scan()
    world.projects.rename(world.projects.with_name("away"))

    report = world.scan()

    assert report.sources[0].waiting
    assert world.queries.sources()[0].gone == 0
    assert world.queries.sessions()[0].present


def test_oversize_line_keeps_its_ends(world: World) -> None:
    """A line of 18 MB is passed over; its record counts by what stands at its ends, and its result ends the wait."""
    log = Log()
    log.said("hello")
    call = log.call("Skill", skill="pdf-forms")
    log.result(call, "x" * 9_000_000)
    log.said("on")
    log.write(world.projects)

    report = world.scan()

    assert world.rows() == {"s-1": (4, 0, 2, 1, {"Skill": 1}, 1)}
    assert world.queries.sources()[0].oversize == 1
    assert any("18000" in note.text for note in report.notes)


def test_oversize_line_is_taken_in_its_place(world: World, tmp_path: Path) -> None:
    """Records behind it are known by what stands before them, whether they are read with it or later."""
    log = Log()
    log.said("hello")
    call = log.call("Bash", command="cat huge")
    log.write(world.projects)
    world.scan()
    log.result(call, "x" * 9_000_000)
    log.write(world.projects)
    world.scan()
    log.raw({"type": "summary", "summary": "Reading it", "leafUuid": "1"})
    log.said("on")
    log.write(world.projects)
    world.scan()
    log.raw({"type": "summary", "summary": "Going on", "leafUuid": "2"})
    log.write(world.projects)
    world.scan()
    at_once = World(tmp_path / "at-once")
    log.write(at_once.projects)
    at_once.scan()

    def known(one: World) -> bytes:
        rows = one.database.connection.execute("SELECT keys FROM keys ORDER BY file, seq").fetchall()
        return b"".join(row[0] for row in rows)

    assert at_once.rows() == world.rows()
    assert 6 * 8 == len(known(world))
    assert known(at_once) == known(world)


def test_own_sessions_count_for_nothing(world: World) -> None:
    """A session whose first prompt is curatord's own is read once and left out of every answer."""
    log = Log("s-own")
    log.said("Look at this.\n<curatord-data>\n{}\n</curatord-data>")
    log.skill("pdf-forms")
    log.write(world.projects)

    world.scan()

    assert world.rows() == {}
    assert world.events() == []
    assert world.queries.newest_work_at([1]) is None


def test_settled_is_counted_from_growth_that_was_seen(world: World) -> None:
    """Old records that are appended now make a session unsettled; a first sight of an old one does not."""
    log = a_log()
    log.write(world.projects)
    world.clock.at = START + timedelta(days=10)
    world.scan()
    (row,) = world.queries.sessions()
    assert row.is_settled(now=world.clock.at, quiet=timedelta(minutes=30))
    log.said("with an old time")
    log.write(world.projects, settled_at=world.clock.at)

    world.scan()

    (row,) = world.queries.sessions()
    assert not row.is_settled(now=world.clock.at, quiet=timedelta(minutes=30))


def test_stopped_scan_goes_on_where_it_was(world: World) -> None:
    """A first scan that is stopped between files keeps what it read, and the next one reads the rest."""
    for number in range(10):
        a_log(f"s-{number}", start=START + timedelta(hours=number)).write(world.projects)
    asked = iter([False] * 4 + [True] * 100)
    report = world.scan(stop=lambda: next(asked))
    assert report.stopped
    assert set(world.rows()) == {f"s-{number}" for number in range(4)}
    assert world.queries.sources()[0].complete_at is None

    again = world.scan()

    assert again.sources[0].changed == 6
    assert len(world.rows()) == 10


def test_large_file_is_committed_in_slices(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file larger than a slice can be stopped in its middle, and copies met in a later slice are passed over."""
    monkeypatch.setattr("curatord.adapters.sources.json_lines.SLICE", 16384)
    log = Log()
    for _ in range(100):
        log.said("x" * 500)
        log.skill("pdf-forms")
    log.lines += log.lines[:50]
    log.write(world.projects)
    asked = iter([False] * 4 + [True] * 100)
    report = world.scan(stop=lambda: next(asked))
    assert report.stopped
    assert 0 < world.totals()[0] < 400

    world.scan()

    assert world.totals() == (450, 100, 100, 100, 100)


class CutError(Exception):
    """Stands for a kill."""


class CutStore:
    """The store of *world*, killed at the *nth* write, before or after its commit."""

    def __init__(self, world: World, nth: int, *, after: bool) -> None:
        self._store = world.store
        self._left = nth
        self._after = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, readings: Sequence[Reading], *, now_ms: int) -> Any:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise CutError
        done = self._store.write(readings, now_ms=now_ms)
        if self._left == 0:
            raise CutError
        return done


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", range(1, 7))
def test_killed_between_two_writes(world: World, monkeypatch: pytest.MonkeyPatch, nth: int, *, after: bool) -> None:
    """Killed before or after any commit, the next scan ends with the rows of one clean scan."""
    monkeypatch.setattr(ingest, "BATCH_FILES", 2)
    log = a_log()
    for one in (log, log.forked("s-f"), *(a_log(f"s-{n}", start=START + timedelta(hours=n)) for n in range(2, 9))):
        one.said("own")
        one.write(world.projects)
    with pytest.raises(CutError):
        world.scan(store=CutStore(world, nth, after=after))

    world = world.reopened()
    world.scan()

    clean = World(world.root / "clean")
    clean.scan(world.projects)
    expected = clean.rows(), clean.events()
    clean.database.close()
    assert expected == (world.rows(), world.events())


def test_full_disk_keeps_what_was_committed(world: World) -> None:
    """A database that cannot grow ends the scan with an error that says so; later everything is taken in."""
    for number in range(20):
        a_log(f"s-{number}", start=START + timedelta(hours=number)).write(world.projects)
    world.scan(world.root / "nowhere")
    (pages,) = world.database.connection.execute("PRAGMA page_count").fetchone()
    world.database.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StateError, match="cannot write"):
        world.scan()
    world.database.connection.execute("PRAGMA max_page_count = 100000")

    world.scan()

    assert len(world.rows()) == 20


def test_sources_are_not_changed(world: World) -> None:
    """Not a byte, mode or time of a transcript or its folder changes, access times included where the owner reads."""
    log = a_log()
    path = log.write(world.projects)
    os.utime(path, (1, 1))
    stat = path.stat()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    before = path.stat()

    world.scan()

    after = path.stat()
    assert before == after
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_single_paths_are_read_without_a_scan(world: World) -> None:
    """A change event's path is read by itself; paths that are no transcripts, or gone, are passed over."""
    log = a_log()
    path = log.write(world.projects)
    a_log("s-2").write(world.projects)
    world.touch(path, path.with_suffix(".txt"), path.with_name("gone.jsonl"), world.root / "elsewhere.jsonl")
    log.said("more")
    log.write(world.projects)

    report = world.touch(path)

    assert world.rows() == {"s-1": (6, 0, 2, 2, {"Skill": 1}, 1)}
    assert report.sources[0].records == 1


def test_a_path_that_is_named_twice_is_read_once(world: World) -> None:
    """Events name a file as often as it changed; one portion counts its new records once."""
    log = a_log()
    path = log.write(world.projects)
    world.touch(path)
    log.said("more")
    log.write(world.projects)

    report = world.touch(path, path)

    assert {"s-1": (6, 0, 2, 2, {"Skill": 1}, 1)} == world.rows()
    assert 1 == report.sources[0].records


def test_a_file_that_moved_within_one_portion_counts_once(world: World) -> None:
    """Old and new place are named together, the file has grown, and another one grew too."""
    log, other = a_log(), a_log("s-2")
    path = log.write(world.projects)
    beside = other.write(world.projects)
    world.touch(path, beside)
    log.said("more")
    other.said("more")
    log.write(world.projects)
    other.write(world.projects)
    moved = path.with_name("renamed.jsonl")
    path.rename(moved)

    world.touch(beside, path, moved)
    again = world.touch(beside, path, moved)

    assert {name: (6, 0, 2, 2, {"Skill": 1}, 1) for name in ("s-1", "s-2")} == world.rows()
    assert 0 == again.sources[0].records


def test_two_readings_of_one_file_in_one_batch_do_not_count_twice(world: World) -> None:
    """The second began where the file no longer stands; all of the batch is refused, and the next scan reads it."""
    log = a_log()
    path = log.write(world.projects)
    world.touch(path)
    log.said("more")
    log.write(world.projects)

    class Twice(IngestStore):
        def write(self, readings: Sequence[Reading], *, now_ms: int) -> Any:
            return super().write([*readings, *readings], now_ms=now_ms)

    with pytest.raises(BusyError):
        world.scan(store=Twice(world.database))
    world.scan()

    assert {"s-1": (6, 0, 2, 2, {"Skill": 1}, 1)} == world.rows()


@pytest.mark.parametrize(("row", "merged"), [(2048, 64), (24, 5), (8, 64)])
def test_keys_of_a_file_that_grows_line_by_line(
    world: World, monkeypatch: pytest.MonkeyPatch, row: int, merged: int
) -> None:
    """They stay in few rows, in the order of their records, whether rows are filled up or put together."""
    monkeypatch.setattr("curatord.adapters.store.ingest.KEYS_ROW", row)
    monkeypatch.setattr("curatord.adapters.store.ingest.MERGE_KEYS_AT", merged)
    log = Log()
    path = world.projects / "-home-dev-app" / "s-1.jsonl"
    for number in range(80):
        log.said(f"line {number}")
        log.write(world.projects)
        world.touch(path)
        ((pieces,),) = world.database.connection.execute("SELECT count(*) FROM keys").fetchall()
        assert pieces <= merged

    rows = [keys for (keys,) in world.database.connection.execute("SELECT keys FROM keys ORDER BY seq")]

    uuids = [json.loads(line)["uuid"] for line in log.lines]
    assert b"".join(map(id_key, uuids)) == b"".join(rows)
    assert world.totals()[0] == 80


class Looking:
    """The store of *world*, and how often all rows of the files were read."""

    def __init__(self, world: World) -> None:
        self.store = world.store
        self.read = 0

    def known(self, source_id: int) -> Any:
        """Note it, and do it."""
        self.read += 1
        return self.store.known(source_id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def lazily(world: World, looking: Looking) -> ingest.ScanReport:
    """Scan as who scans again soon."""
    return world.scan(store=looking, lazily=True)


def some_logs(world: World) -> list[Path]:
    """Three sessions, scanned lazily until there is nothing new."""
    paths = [a_log(f"s-{number}").write(world.projects) for number in range(3)]
    world.later(hours=1)
    world.scan()
    lazily(world, Looking(world))
    return paths


def test_a_scan_that_comes_soon_needs_no_rows(world: World) -> None:
    """Nothing was new at the last one, nothing was written since, nothing is new now."""
    some_logs(world)
    looking = Looking(world)

    report = lazily(world, looking)

    assert (0, 3, 0) == (looking.read, report.sources[0].files, report.sources[0].changed)


@pytest.mark.parametrize("change", ["grown", "new", "gone", "moved", "replaced", "copied"])
def test_a_scan_that_comes_soon_sees_what_changed(world: World, change: str) -> None:
    """Whatever happened since, rows and files end as those of a scan that was in no hurry."""
    paths = some_logs(world)
    more = a_log("s-1")
    more.said("more")
    if change == "grown":
        more.write(world.projects)
    elif change == "new":
        a_log("s-9").write(world.projects)
    elif change == "gone":
        paths[1].unlink()
    elif change == "moved":
        paths[1].rename(paths[1].with_name("elsewhere.jsonl"))
    elif change == "replaced":
        found = paths[1].stat()
        paths[1].unlink()
        more.write(world.projects)
        os.utime(paths[1], ns=(found.st_atime_ns, found.st_mtime_ns))
    else:
        shutil.copy2(paths[1], paths[1].with_name("copy.jsonl"))

    report = lazily(world, Looking(world))

    there = {str(path): path.stat().st_size for path in world.projects.rglob("*.jsonl")}
    stored = world.database.connection.execute("SELECT path, size FROM files WHERE gone_at IS NULL").fetchall()
    assert there == dict(stored)
    assert len(there) == report.sources[0].files
    records = {"grown": 16, "new": 20, "replaced": 16}.get(change, 15)
    assert records == world.totals()[0]


def test_a_scan_that_comes_soon_looks_at_what_waits(world: World) -> None:
    """A half line waits for its rest: no other row is read for it, and it counts when its file is settled."""
    some_logs(world)
    log = a_log("s-4")
    path = log.write(world.projects)
    half = json.dumps({"type": "user", "uuid": "u-9", "sessionId": "s-4", "message": {"content": "whole"}})
    with path.open("a") as file:
        file.write(half)
    touch(path, world.clock.at)
    for _ in range(2):
        lazily(world, Looking(world))
    looking = Looking(world)
    lazily(world, looking)
    before = world.totals()[0]
    world.later(hours=1)

    lazily(world, looking)

    assert (0, 20, 21) == (looking.read, before, world.totals()[0])


def test_a_scan_that_comes_soon_knows_what_another_process_wrote(world: World) -> None:
    """What is remembered is worth nothing once somebody else has written."""
    paths = some_logs(world)
    other = sqlite3.connect(world.database.path)
    with other:
        other.execute("UPDATE files SET size = size - 1 WHERE path = ?", (str(paths[0]),))
    other.close()
    looking = Looking(world)

    report = lazily(world, looking)

    assert (1, 1) == (looking.read, report.sources[0].changed)


def test_a_scan_that_comes_soon_knows_what_was_written_meanwhile(world: World) -> None:
    """A file grew, was read by itself, and was put back just as it was: its row is no longer what was remembered."""
    path = some_logs(world)[0]
    data, found = path.read_bytes(), path.stat()
    with path.open("ab") as file:
        file.write(data.splitlines(keepends=True)[0].replace(b'"uuid": "', b'"uuid": "f'))
    world.touch(path)
    path.write_bytes(data)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))

    report = world.scan(lazily=True)

    assert 1 == report.sources[0].changed
    assert 16 == world.totals()[0]


def test_files_with_several_names_are_never_remembered(world: World) -> None:
    """Which of the names counts is found out anew each time, and by one listing."""
    paths = some_logs(world)
    os.link(paths[0], paths[0].with_name("second-name.jsonl"))
    for _ in range(2):
        lazily(world, Looking(world))
    looking = Looking(world)

    report = lazily(world, looking)

    assert (1, 3) == (looking.read, report.sources[0].files)


def test_work_gaps_and_newest_work(world: World) -> None:
    """Work is what people's sessions record; sub-agents and schedules neither end a gap nor are the newest."""
    first = a_log("s-1")
    first.write(world.projects)
    later = Log("s-2", start=START + timedelta(days=20))
    later.said("back again")
    end = later.at
    later.add(type="system", subtype="scheduled_task_fire")
    later.at += timedelta(days=3)
    later.said("nightly")
    later.model()
    later.model(isSidechain=True)
    later.write(world.projects)
    world.clock.at = START + timedelta(days=30)
    world.scan()

    gaps = world.queries.work_gaps([1], longer_than=timedelta(days=7))

    assert [(first.at, START + timedelta(days=20, seconds=1))] == gaps
    assert end == world.queries.newest_work_at([1])


def test_testimony_begins_with_the_oldest_session_present(world: World) -> None:
    """At the first complete scan a source testifies from the oldest last record of the sessions that are there."""
    old = a_log("s-1")
    old.write(world.projects)
    a_log("s-2", start=START + timedelta(days=5)).write(world.projects)
    world.clock.at = START + timedelta(days=6)

    world.scan()

    assert old.at == world.queries.testifies_from([1])


def test_testimony_begins_anew_when_all_older_is_gone(world: World) -> None:
    """Pruned while nobody looked, the source testifies from the oldest session that is there now."""
    path = a_log("s-1").write(world.projects)
    world.clock.at = START + timedelta(days=1)
    world.scan()
    path.unlink()
    new = a_log("s-2", start=START + timedelta(days=60))
    new.write(world.projects)
    world.clock.at = START + timedelta(days=61)

    world.scan()

    assert new.at == world.queries.testifies_from([1])


def test_testimony_stays_while_older_sessions_go_one_by_one(world: World) -> None:
    """A host that prunes what was seen takes nothing from the testimony."""
    first = a_log("s-1")
    path = first.write(world.projects)
    a_log("s-2", start=START + timedelta(hours=20)).write(world.projects)
    world.clock.at = START + timedelta(days=1)
    world.scan()
    path.unlink()
    a_log("s-3", start=START + timedelta(days=2)).write(world.projects)
    world.clock.at = START + timedelta(days=3)

    world.scan()

    assert first.at == world.queries.testifies_from([1])


def test_empty_source_testifies_to_nothing(world: World) -> None:
    """An empty place is asked nothing; one that was empty when first seen testifies from then on."""
    world.scan()
    seen = world.clock.at
    assert world.queries.testifies_from([1]) is None
    a_log("s-1", start=START + timedelta(days=2)).write(world.projects)
    world.clock.at = START + timedelta(days=3)

    world.scan()

    assert seen == world.queries.testifies_from([1])


def test_place_that_was_empty_for_a_while(world: World) -> None:
    """A mount that comes back brings its testimony with it."""
    log = a_log("s-1")
    log.write(world.projects)
    world.clock.at = START + timedelta(days=1)
    world.scan()
    away = world.root / "away"
    world.projects.rename(away)
    world.projects.mkdir()
    world.later(days=40)
    world.scan()
    assert world.queries.testifies_from([1]) is None
    world.projects.rmdir()
    away.rename(world.projects)

    world.scan()

    assert log.at == world.queries.testifies_from([1])
    assert world.rows() == {"s-1": A_LOG}


def test_usage_per_skill(world: World) -> None:
    """Uses, views, patches and creations are told apart per skill and library, with their newest and their maker."""
    log = a_log("s-1")
    made = log.call("Write", file_path="/home/dev/.claude/skills/new-one/SKILL.md", content="x")
    at = log.at
    log.result(made, outcome={"type": "create"})
    log.write(world.projects)
    a_log("s-2", start=START + timedelta(hours=1)).write(world.projects)
    world.scan()

    usage = world.queries.skill_usage(resolve=lambda *, skill, **_: "lib" if skill == "pdf-forms" else None)

    new, pdf = usage
    assert (None, "new-one", {"create": 1}, "s-1", at) == (
        new.library, new.skill, new.counts, new.created and new.created.session_id, new.created and new.created.at,
    )  # fmt: skip
    assert (
        pdf.library, pdf.skill, pdf.counts, pdf.sessions, pdf.hosts,
    ) == ("lib", "pdf-forms", {"use": 2}, 2, ("claude-code",))  # fmt: skip


def test_turns_per_day(world: World) -> None:
    """Turns of the model are counted per day, those of sub-agents too."""
    log = a_log("s-1")
    log.model(isSidechain=True)
    log.write(world.projects)
    world.scan()

    per_day = world.queries.calls_per_day([1], since=START - timedelta(days=2), until=START + timedelta(days=1))

    assert per_day == 1.0


def test_rows_survive_a_reader_while_writing(world: World) -> None:
    """Another connection reads the rows of the last commit while a scan writes."""
    a_log("s-1").write(world.projects)
    world.scan()
    other = sqlite3.connect(world.state / "curatord.db")
    other.execute("BEGIN")
    assert other.execute("SELECT count(*) FROM sessions").fetchone() == (1,)
    a_log("s-2").write(world.projects)

    world.scan()

    assert other.execute("SELECT count(*) FROM sessions").fetchone() == (1,)
    other.close()
    assert len(world.rows()) == 2


def test_a_scan_that_was_overtaken_adds_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even without the scans' lock, a stretch that another process counted meanwhile is not counted again."""
    log = a_log()
    log.write(world.projects)
    world.scan()
    log.said("more")
    path = log.write(world.projects)
    other = World(world.root)
    write = world.store.write

    def overtaken(readings: Sequence[Reading], *, now_ms: int) -> Any:
        other.scan()
        return write(readings, now_ms=now_ms)

    monkeypatch.setattr(world.store, "write", overtaken)
    with pytest.raises(BusyError, match=path.name):
        world.scan()
    monkeypatch.undo()
    world.scan()
    other.database.close()

    assert world.rows() == {"s-1": (6, 0, 2, 2, {"Skill": 1}, 1)}


def test_a_new_file_counted_by_another_scan_is_not_counted_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that neither knew has one row, from whoever was quicker; also where its records have no anchors."""
    a_log().write(world.projects)
    other = World(world.root)
    write = world.store.write

    def overtaken(readings: Sequence[Reading], *, now_ms: int) -> Any:
        other.scan()
        return write([replace(reading, anchors=()) for reading in readings], now_ms=now_ms)

    monkeypatch.setattr(world.store, "write", overtaken)
    with pytest.raises(BusyError):
        world.scan()
    other.database.close()

    assert world.rows() == {"s-1": A_LOG}


def test_a_link_that_cannot_be_followed_and_named_ends_no_scan(world: World) -> None:
    """A link to itself whose name is no UTF-8 is a problem with a printable name, and what was found is kept."""
    a_log().write(world.projects)
    odd = Path(os.fsdecode(os.fsencode(world.projects) + b"/\xff.jsonl"))
    odd.symlink_to(odd)

    report = world.scan()

    assert world.rows() == {"s-1": A_LOG}
    (told,) = [note.text for note in report.notes if note.kind == "problem"]
    assert "\\xff.jsonl" in told
    told.encode()


def test_a_name_that_is_not_utf_8_stops_no_other(world: World) -> None:
    """Such a file is noted as a problem, by a printable name, in a scan and when an event names it."""
    a_log().write(world.projects)
    odd = os.fsencode(world.projects / "-home-dev-app") + b"/caf\xe9.jsonl"
    Path(os.fsdecode(odd)).parent.mkdir(exist_ok=True)
    Path(os.fsdecode(odd)).write_bytes(b'{"type":"user"}\n')

    scanned = world.scan()
    touched = world.touch(Path(os.fsdecode(odd)))

    assert world.rows() == {"s-1": A_LOG}
    for report in (scanned, touched):
        (told,) = [note for note in report.notes if note.kind == "problem"]
        assert "caf\\xe9.jsonl" in told.path + told.text
        (told.path + told.text).encode()
    assert scanned.notes == touched.notes  # one trouble, which the log says once

"""OpenCode: rows that change in place, reverts, forks, sub-agents, the older tree, skills, a database in trouble."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curatord.core.settings import SourceSettings
from tests.opencode_home import OpenCodeHome, OpenCodeTree
from tests.scanned import Scanner, traces

SKILL = "/home/dev/app/.opencode/skill/probe/SKILL.md"
BODY = (
    "# probe\n\nDo it.\n\nBase directory for this skill: /home/dev/app/.opencode/skill/probe\nRelative paths …\n\nargs"
)
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[OpenCodeHome]:
    """Return a data folder whose database is open, as beside a live host."""
    made = OpenCodeHome(tmp_path / "opencode")
    yield made
    made.close()


@pytest.fixture
def scanner(tmp_path: Path, home: OpenCodeHome) -> Iterator[Scanner]:
    """Return a scanner of that folder."""
    made = Scanner(tmp_path / "state", ("opencode", home.path))
    yield made
    made.close()


def kinds(scanner: Scanner) -> list[tuple[str, str, str]]:
    """Return skill, kind and way of all events."""
    return [event[1:] for event in scanner.events()]


def test_turns(home: OpenCodeHome, scanner: Scanner) -> None:
    """A person's turn has a text of its own; synthetic texts, compactions and sub-tasks make none."""
    s = home.session()
    home.said(s)
    home.said(s, "Called the Read tool with …", synthetic=True)
    home.said(s, "not for the model", ignored=True)
    home.part(s, home.message(s, "user"), type="compaction", auto=True)
    home.part(s, home.message(s, "user"), type="subtask", prompt="p")
    two = home.message(s, "user")
    home.part(s, two, type="text", text="one")
    home.part(s, two, type="text", text="two")
    home.model(s)
    home.message(s, "assistant", error={"name": "x"})

    assert {s: (2, 2)} == scanner.scan().turns()
    assert 16 == scanner.counts()[s][0]
    assert {} == scanner.source().unknown


def test_sub_agents_prompts_are_no_turns(home: OpenCodeHome, scanner: Scanner) -> None:
    """A session with a parent is a sub-agent's: its calls and answers count, its prompts do not."""
    home.session("ses_top")
    home.session("ses_below", parent="ses_top")
    home.said("ses_below")
    home.tool("ses_below", home.model("ses_below"), "skill", name="probe")

    scanner.scan()

    assert {"ses_below": (0, 1)} == scanner.turns()
    assert "ses_top" == scanner.sessions()["ses_below"].parent
    assert "subagent" == scanner.sessions()["ses_below"].kind
    assert [("ses_below", "probe", "use", "skill")] == scanner.events()
    assert scanner.newest_work() is None


@pytest.mark.parametrize(
    ("tool", "given", "metadata", "expected"),
    [
        ("skill", {"name": "probe"}, {"dir": "/x/probe"}, ("probe", "use", "skill")),
        ("read", {"filePath": SKILL}, {}, ("probe", "view", "read")),
        ("read", {"filePath": ".claude/skills/probe/references/a.md"}, {}, ("probe", "view", "read")),
        ("edit", {"filePath": SKILL}, {}, ("probe", "patch", "edit")),
        ("write", {"filePath": SKILL}, {"exists": True}, ("probe", "patch", "write")),
        ("write", {"filePath": SKILL}, {"exists": False}, ("probe", "create", "write")),
        ("write", {"filePath": SKILL}, {}, ("probe", "patch", "write")),
        ("bash", {"command": f"cat {SKILL}"}, {"exit": 0}, ("probe", "view", "shell")),
        ("bash", {"command": f"sed -i s/a/b/ {SKILL}"}, {"exit": 0}, ("probe", "patch", "shell")),
        ("bash", {"command": "cat SKILL.md", "workdir": "/x/.claude/skills/probe"}, {}, ("probe", "view", "shell")),
        ("bash", {"command": f"cat {SKILL}"}, {"exit": 1}, None),
        ("apply_patch", {"patchText": f"*** Begin Patch\n*** Update File: {SKILL}\n"}, {},
         ("probe", "patch", "apply_patch")),
        ("patch", {"patchText": f"*** Begin Patch\n*** Add File: {SKILL}\n"}, {}, ("probe", "create", "patch")),
        ("read", {"filePath": "/home/dev/app/README.md"}, {}, None),
        ("bash", {"command": "ls .opencode/skill/*/SKILL.md"}, {}, None),
        ("glob", {"pattern": "**/SKILL.md"}, {}, None),
    ],
)  # fmt: skip
def test_forms_of_use(
    home: OpenCodeHome,
    scanner: Scanner,
    tool: str,
    given: dict[str, Any],
    metadata: dict[str, Any],
    expected: tuple[str, str, str] | None,
) -> None:
    """Each tool shows a skill in its own way, and a call that failed shows none."""
    s = home.session()
    home.said(s)
    message = home.model(s)
    home.tool(s, message, tool, metadata=metadata, **given)
    home.tool(s, message, tool, status="error", metadata=metadata, **given)

    assert [expected] * (expected is not None) == kinds(scanner.scan())
    assert {tool: 2} == scanner.counts()[s][3]


def test_a_slash_command_leaves_the_body(home: OpenCodeHome, scanner: Scanner) -> None:
    """The name is the folder's; the same line in a tool's output is no second use."""
    s = home.session()
    home.said(s, BODY)
    home.tool(s, home.model(s, BODY), "skill", name="other", metadata={"dir": "/x/other"})

    assert [("probe", "use", "slash"), ("other", "use", "skill")] == kinds(scanner.scan())
    assert ["/home/dev/app/.opencode/skill/probe", "/x/other"] == scanner.paths()
    assert {s: (1, 1)} == scanner.turns()


def test_a_part_that_changes_in_place(home: OpenCodeHome, scanner: Scanner) -> None:
    """A call is a call when it is made, and an event when it is completed, however many scans come between."""
    s = home.session()
    message = home.message(s, "assistant")
    call = home.tool(s, message, "skill", status="pending")
    failing = home.tool(s, message, "skill", status="running", name="no")
    scanner.scan(settled=False)
    assert [] == scanner.events()
    home.tool(s, message, "skill", ident=call, status="running", name="probe")
    scanner.scan(settled=False)
    assert [] == scanner.events()
    home.tool(s, message, "skill", ident=call, name="probe")
    home.tool(s, message, "skill", ident=failing, status="error", name="no")
    scanner.scan(settled=False)

    assert [("probe", "use", "skill")] == kinds(scanner)
    assert (3, 0, 1, {"skill": 2}) == scanner.counts()[s]
    assert kinds(scanner) == kinds(scanner.scan())


def test_a_call_that_never_ends(home: OpenCodeHome, scanner: Scanner) -> None:
    """Once settled it is taken as done, and taken back when it shows to have failed after all."""
    s = home.session()
    message = home.message(s, "assistant")
    call = home.tool(s, message, "skill", status="running", name="probe")
    lost = home.tool(s, message, "skill", status="running", name="lost")
    assert [("probe", "use", "skill"), ("lost", "use", "skill")] == kinds(scanner.scan())
    home.tool(s, message, "skill", ident=call, status="error", name="probe")
    home.execute("DELETE FROM part WHERE id = ?", lost)

    assert [("lost", "use", "skill")] == kinds(scanner.scan())


def test_a_revert_and_what_takes_its_numbers(home: OpenCodeHome, scanner: Scanner) -> None:
    """What was reverted did happen; what comes after it in the same row numbers is not missed."""
    s = home.session()
    for n in range(5):
        home.said(s, f"prompt {n}")
        home.tool(s, home.model(s), "skill", name=f"skill-{n}")
        scanner.scan()
    home.execute("DELETE FROM part WHERE rowid > 9")
    home.execute("DELETE FROM message WHERE rowid > 6")
    for n in range(5, 9):
        home.said(s, f"prompt {n}")
        home.tool(s, home.model(s), "skill", name=f"skill-{n}")

    scanner.scan()

    assert (9, 9) == scanner.turns()[s]
    assert [f"skill-{n}" for n in range(9)] == [event[0] for event in kinds(scanner)]
    assert any("read again behind" in note for note in scanner.notes)
    assert (9, 9) == scanner.scan().turns()[s]


def test_a_database_that_was_rebuilt(home: OpenCodeHome, scanner: Scanner) -> None:
    """Other row numbers for the same rows count nothing twice."""
    s = home.session()
    for _ in range(4):
        home.said(s)
        home.model(s)
    before = scanner.scan().counts()
    home.execute("CREATE TABLE other AS SELECT * FROM part ORDER BY id DESC")
    home.execute("DELETE FROM part")
    columns = "id, message_id, session_id, time_created, time_updated, data"
    home.execute(f"INSERT INTO part (rowid, {columns}) SELECT rowid + 50, {columns} FROM other")

    assert before == scanner.scan().counts()


def copied(home: OpenCodeHome, session: str, fork: str) -> None:
    """Copy all messages and parts of *session* under new ids, as the host's fork does."""
    rows = home.connection.execute(
        "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY id", (session,)
    )
    for ident, created, data in rows.fetchall():
        value = json.loads(data)
        message = home.message(fork, value["role"], created=created)
        parts = home.connection.execute("SELECT data FROM part WHERE message_id = ? ORDER BY id", (ident,))
        for (part,) in parts.fetchall():
            home.part(fork, message, **json.loads(part))


@pytest.mark.parametrize("between", [True, False])
def test_a_fork_repeats_nothing(home: OpenCodeHome, scanner: Scanner, between: bool) -> None:
    """Copies under new ids are rows and nothing else; what the fork says itself counts."""
    s = home.session()
    home.said(s, BODY)
    home.tool(s, home.model(s), "skill", name="probe")
    if between:
        scanner.scan()
    home.ms += 60_000
    home.session("ses_fork")
    copied(home, s, "ses_fork")
    home.said("ses_fork", "another way")
    home.model("ses_fork")

    scanner.scan()

    assert {s: (1, 1), "ses_fork": (1, 1)} == scanner.turns()
    assert [("probe", "use", "slash"), ("probe", "use", "skill")] == kinds(scanner)


def test_parallel_sessions_in_the_same_millisecond(home: OpenCodeHome, scanner: Scanner) -> None:
    """Messages of two sessions made at the same time are no copies of each other."""
    for name in ("ses_a", "ses_b"):
        home.ms = 1_772_366_500_000
        home.session(name)
        home.said(name)
        home.model(name)

    assert {"ses_a": (1, 1), "ses_b": (1, 1)} == scanner.scan().turns()


@pytest.mark.parametrize("old", [False, True])
def test_the_tree_of_before(tmp_path: Path, old: bool) -> None:
    """The tree's files say the same as rows, and its settled sessions are read once more."""
    tree = OpenCodeTree(tmp_path / "opencode", old=old)
    s = tree.session()
    tree.said(s)
    message = tree.model(s)
    call = tree.tool(s, message, "skill", status="running", name="probe")
    scanner = Scanner(tmp_path / "state", ("opencode", tree.path))
    scanner.scan(settled=False)
    assert [] == scanner.events()
    tree.tool(s, message, "skill", ident=call, name="probe")

    assert [("probe", "use", "skill")] == kinds(scanner.scan())
    assert {s: (5, 1, 1, {"skill": 1})} == scanner.counts()
    assert [0] == [source.changed for source in scanner.scan().report.sources]
    scanner.close()


@pytest.mark.parametrize("scanned_before", [True, False])
def test_the_database_wins(tmp_path: Path, scanned_before: bool) -> None:
    """A session that was imported counts once, whether the tree was read before there was a database or not."""
    tree = OpenCodeTree(tmp_path / "opencode")
    scanner = Scanner(tmp_path / "state", ("opencode", tree.path))
    makers: list[OpenCodeTree | OpenCodeHome] = [tree]
    for nth in range(2):
        for maker in makers[nth:]:
            for name in ("ses_1", "ses_2", "ses_3"):
                maker.session(name)
                maker.said(name)
                maker.tool(name, maker.model(name), "skill", name="probe")
        if nth == 0:
            if scanned_before:
                scanner.scan()
            makers.append(OpenCodeHome(tree.path))

    scanner.scan()

    assert {name: (5, 1, 1, {"skill": 1}) for name in ("ses_1", "ses_2", "ses_3")} == scanner.counts()
    assert 3 == len(scanner.events())
    makers[1].close()
    scanner.close()


def test_unknown_and_unreadable(home: OpenCodeHome, scanner: Scanner) -> None:
    """New types are counted as such, broken rows once and alone, values of other types do no harm."""
    s = home.session()
    message = home.said(s)
    home.part(s, message, type="hologram")
    home.message(s, "narrator")
    insert = "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)"
    home.execute(insert, "prt_bad", message, s, 1, 1, '{"type": "tool", "tool')
    home.execute(insert, "prt_deep", message, s, 1, 1, "[" * 100_000)
    home.execute(insert, "prt_list", message, s, 1, 1, "[1, 2]")
    home.execute(insert, "prt_blob", message, s, "soon", 1, b"\xff\xfe{")
    home.execute(insert, "prt_types", message, s, 1, 1, '{"type": 7, "state": "x", "text": {"a": 1}}')
    home.execute(insert, "prt_cut", message, s, 1, 1, b'{"type":"text","text":"half an emoji \\ud83d \xc3"}')
    home.said(s)

    scanner.scan()

    assert (2, 0) == scanner.turns()[s]
    assert {"part hologram": 1, "role narrator": 1, "part (none)": 1} == scanner.source().unknown
    assert 4 == scanner.sessions()[s].unreadable
    assert 4 == scanner.scan().sessions()[s].unreadable


def test_a_part_too_long_to_hold(home: OpenCodeHome, scanner: Scanner) -> None:
    """Of a row of many megabytes only the beginning is looked at."""
    s = home.session()
    home.tool(s, home.model(s), "skill", name="probe")
    home.part(s, home.message(s, "user"), type="text", text="x" * 9_000_000)

    assert [("probe", "use", "skill")] == kinds(scanner.scan())
    assert 1 == scanner.source().oversize


def test_own_sessions_do_not_count(home: OpenCodeHome, scanner: Scanner) -> None:
    """What curatord itself asked through this host is left out."""
    s = home.session()
    home.said(s, "Look at this.\n<curatord-data>\n{}\n</curatord-data>")
    home.tool(s, home.model(s), "skill", name="probe")

    assert {} == scanner.scan().counts()
    assert [] == scanner.events()


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """Neither a database at rest nor one whose companions are there is changed by being read."""
    home = OpenCodeHome(tmp_path / "opencode")
    home.said(home.session())
    before = traces(home.path, but=("opencode.db-shm",), touched_by_root=True)
    scanner = Scanner(tmp_path / "state", ("opencode", home.path))
    assert {"ses_1": (1, 0)} == scanner.scan().turns()
    assert before == traces(home.path, but=("opencode.db-shm",), touched_by_root=True)

    home.close()
    before = traces(home.path)
    assert ["opencode.db"] == [path.name for path in home.path.iterdir()]
    scanner.scan()
    assert before == traces(home.path)
    scanner.close()


def test_a_locked_database_is_tried_again(home: OpenCodeHome, scanner: Scanner) -> None:
    """An exclusive lock is a note and no failure; the next scan reads what is there."""
    home.said(home.session())
    home.execute("PRAGMA journal_mode = DELETE")
    home.execute("BEGIN EXCLUSIVE")
    scanner.scan()
    locked = scanner.notes
    home.execute("COMMIT")

    assert {"ses_1": (1, 0)} == scanner.scan().turns()
    assert not [note for note in locked if note.startswith("failed")]


def test_damage_stops_nothing_else(tmp_path: Path) -> None:
    """A broken and an alien database are told of; another one of the same place is read, and what was read stays."""
    home = OpenCodeHome(tmp_path / "opencode")
    for n in range(300):
        home.said(f"ses_{n % 3}", "z" * 2000)
    home.close()
    good = OpenCodeHome(tmp_path / "opencode", "opencode-beta.db")
    good.ms += 1_000_000  # other ids than those of the first
    good.said(good.session("ses_good"))
    good.close()
    (tmp_path / "opencode" / "opencode-junk.db").write_bytes(b"no database at all" * 100)
    with contextlib.closing(sqlite3.connect(tmp_path / "opencode" / "opencode-alien.db")) as alien:
        alien.execute("CREATE TABLE t (x)")
    scanner = Scanner(tmp_path / "state", ("opencode", home.path))
    whole = scanner.scan().turns()
    assert 2 == len([note for note in scanner.notes if note.startswith("failed")])
    data = bytearray(home.file.read_bytes())
    data[len(data) // 2 :] = os.urandom(len(data) - len(data) // 2)
    home.file.write_bytes(data)

    assert whole == scanner.scan().turns()
    assert (1, 0) == whole["ses_good"]
    assert [note for note in scanner.notes if note.startswith("failed") and "malformed" in note]
    home.file.write_bytes(bytes(data)[:5000])
    assert whole == scanner.scan().turns()
    scanner.close()


def test_a_new_database_is_empty_at_first(tmp_path: Path) -> None:
    """A file of no bytes is a database to come."""
    folder = tmp_path / "opencode"
    folder.mkdir()
    (folder / "opencode.db").touch()
    scanner = Scanner(tmp_path / "state", ("opencode", folder))
    assert [] == scanner.scan().notes
    (folder / "opencode.db").unlink()
    home = OpenCodeHome(folder)
    home.said(home.session())
    assert {"ses_1": (1, 0)} == scanner.scan().turns()
    home.close()
    scanner.close()


def test_a_change_event_finds_its_database(home: OpenCodeHome, scanner: Scanner) -> None:
    """A companion's path leads to the database, other files to nothing."""
    source = scanner.sources[0]
    item = source.item_at(str(home.file) + "-wal")
    assert item is not None
    assert str(home.file) == item.path
    assert source.item_at(str(home.path / "auth.json")) is None


@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_changes_comes_to_the_same(tmp_path: Path, seed: int) -> None:
    """Scanned at any moments, the counts are those of one scan of all that ever was."""
    rng = random.Random(seed)
    home = OpenCodeHome(tmp_path / "opencode")
    scanner = Scanner(tmp_path / "state", ("opencode", home.path))
    sessions = [home.session(f"ses_{n}") for n in range(3)]
    turns = {s: [0, 0] for s in sessions}
    running: list[tuple[str, str, str, str]] = []
    events: set[str] = set()
    number = 0
    for _ in range(120):
        s = rng.choice(sessions)
        act = rng.random()
        if act < 0.3:
            home.said(s)
            turns[s][0] += 1
        elif act < 0.6:
            number += 1
            message = home.model(s)
            turns[s][1] += 1
            call = home.tool(s, message, "skill", status="running", name=f"k{number}")
            running.append((s, message, call, f"k{number}"))
        elif act < 0.8 and running:
            s, message, call, name = running.pop(rng.randrange(len(running)))
            good = rng.random() < 0.6
            home.tool(s, message, "skill", ident=call, status="completed" if good else "error", name=name)
            if good:
                events.add(name)
        elif act < 0.85:
            scanner.scan(settled=False)  # what is deleted next was seen
            waiting = [call for _, _, call, _ in running]
            marks = ", ".join("?" * len(waiting))
            home.execute(
                f"DELETE FROM part WHERE rowid > (SELECT max(rowid) - 3 FROM part) AND id NOT IN ({marks})", *waiting
            )
        else:
            scanner.scan(settled=False)
    for s, message, call, name in running:
        home.tool(s, message, "skill", ident=call, name=name)
        events.add(name)
    home.close()

    scanner.scan()

    assert {s: tuple(t) for s, t in turns.items() if any(t)} == scanner.turns()
    assert sorted(events) == sorted(event[0] for event in kinds(scanner))
    scanner.close()


def write_all(home: str, total: int) -> None:
    """Write as a live host does: prompts, calls that run and end, now and then a checkpoint or a new start."""
    made = OpenCodeHome(Path(home))
    for n in range(total):
        made.said("ses_1", f"{n} " + "z" * (n % 3000))
        message = made.model("ses_1")
        call = made.tool("ses_1", message, "skill", status="running", name="probe")
        made.tool("ses_1", message, "skill", ident=call, name="probe")
        if n % 40 == 39:
            made.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if n % 90 == 89:
            made.connection.close()
            time.sleep(0.01)
            made.connection = sqlite3.connect(made.file, isolation_level=None, timeout=30)
    made.close()


def test_a_live_writer_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scanned all the while, every row counts once, and the writer is never kept from writing."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).resolve().parents[3]), *sys.path]))
    home = OpenCodeHome(tmp_path / "opencode")
    home.session()
    home.close()
    scanner = Scanner(tmp_path / "state", ("opencode", home.path))
    process = SPAWN.Process(target=write_all, args=(str(home.path), 250))
    process.start()
    scans = 0
    until = time.monotonic() + 60
    while process.is_alive() and time.monotonic() < until:
        scanner.scan(settled=False)
        scans += 1
        assert [] == [note for note in scanner.notes if note.startswith("failed")]
    process.join(10)

    assert 0 == process.exitcode
    assert scans > 1
    assert {"ses_1": (1250, 250, 250, {"skill": 250})} == scanner.scan().counts()
    assert 250 == len(scanner.events())
    scanner.close()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    """A database in a read-only folder is read, in place where that goes, else from a private copy."""
    home = OpenCodeHome(tmp_path / "opencode")
    home.said(home.session())
    home.path.chmod(0o555)
    scanner = Scanner(tmp_path / "state", ("opencode", home.path))
    assert {"ses_1": (1, 0)} == scanner.scan().turns()
    home.path.chmod(0o755)
    home.close()
    scanner.close()


def test_default_places(tmp_path: Path) -> None:
    """The variables of the host say where its data are; blank ones do not."""
    from curatord.adapters.sources.places import places

    def found(**env: str) -> list[str]:
        return [place.path for place in places(SourceSettings(host="opencode"), env, home=tmp_path)]

    default = str(tmp_path / ".local" / "share" / "opencode")
    assert [default] == found() == found(XDG_DATA_HOME=" ", OPENCODE_DB="")
    assert ["/data/opencode"] == found(XDG_DATA_HOME="/data")
    assert ["/x/other.db"] == found(OPENCODE_DB="/x/other.db")
    assert [f"{default}/other.db"] == found(OPENCODE_DB="other.db")

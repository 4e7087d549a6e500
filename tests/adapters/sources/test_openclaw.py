"""OpenClaw: files and databases, who speaks, forks and rewrites, the upgrade from one to the other, skills, trouble."""

from __future__ import annotations

import contextlib
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
from backports import zstd

from curatord.core.settings import SourceSettings
from tests.openclaw_home import Entries, OpenClawDatabase, OpenClawHome
from tests.scanned import Scanner, traces

SPAWN = multiprocessing.get_context("spawn")
A = "aaaaaaaa-0000-4000-8000-000000000001"
B = "bbbbbbbb-0000-4000-8000-000000000002"
SKILL = "/home/dev/claw/skills/probe/SKILL.md"


@pytest.fixture
def home(tmp_path: Path) -> OpenClawHome:
    """Return a home."""
    return OpenClawHome(tmp_path / "openclaw")


@pytest.fixture
def database(home: OpenClawHome) -> Iterator[OpenClawDatabase]:
    """Return its agent's database, open as beside a live host."""
    made = OpenClawDatabase(home)
    yield made
    made.close()


@pytest.fixture
def scanner(tmp_path: Path, home: OpenClawHome) -> Iterator[Scanner]:
    """Return a scanner of that home."""
    made = Scanner(tmp_path / "state", ("openclaw", home.path))
    yield made
    made.close()


@pytest.fixture(params=["file", "database"])
def put(request: pytest.FixtureRequest, home: OpenClawHome) -> Iterator[Any]:
    """Return what writes a session into a file or into a database."""
    if request.param == "file":
        yield home.write
        return
    made = OpenClawDatabase(home)

    def insert(entries: Entries) -> None:
        made.window(entries.session, f"agent:main:{entries.session}")
        made.put(entries)

    yield insert
    made.close()


def kinds(scanner: Scanner) -> list[tuple[str, str, str]]:
    """Return skill, kind and way of all events."""
    return [event[1:] for event in scanner.events()]


@pytest.mark.parametrize(
    ("message", "turns"),
    [
        ({"text": "please go on"}, 1),
        ({"text": [{"type": "text", "text": "please"}, {"type": "image", "data": "…"}]}, 1),
        ({"text": [{"type": "image", "data": "…"}]}, 1),
        ({"text": "[Sun 2026-03-01 12:00 GMT+1] please"}, 1),
        ({"text": "System: [2026-03-01 12:00:00] Node connected\n\nplease"}, 1),
        ({"text": "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nx\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>\nplease"}, 1),
        ({"text": "please", "provenance": {"kind": "external_user"}}, 1),
        ({"text": "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nx\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"}, 0),
        ({"text": "System (untrusted): [2026-03-01 12:00:00] Exec completed"}, 0),
        ({"text": "Read HEARTBEAT.md if it exists. If nothing needs attention, reply HEARTBEAT_OK."}, 0),
        ({"text": "[cron:7 morning] Write the report"}, 0),
        ({"text": "[Sun 2026-03-01 12:00 UTC] [cron:7 morning] Write the report"}, 0),
        ({"text": "[Inter-session message] sourceSession=x\nhello"}, 0),
        ({"text": "hello", "provenance": {"kind": "inter_session"}}, 0),
        ({"text": "  "}, 0),
    ],
)
def test_who_speaks(put: Any, scanner: Scanner, message: dict[str, Any], turns: int) -> None:
    """What the program puts in the mouth of the user is no turn, and no sign that somebody works."""
    entries = Entries(A)
    entries.said(message["text"], **{key: value for key, value in message.items() if key != "text"})
    entries.model()
    entries.add("custom_message", customType="openclaw.runtime-context", content="…", display=False)
    entries.add("custom", customType="model-snapshot", data={})
    entries.add("reset")
    put(entries)

    assert {A: (turns, 1)} == scanner.scan().turns()
    assert (scanner.newest_work() is not None) is (turns == 1)
    assert {} == scanner.source().unknown
    assert 6 == scanner.counts()[A][0]


def test_a_person_after_a_heartbeat(put: Any, scanner: Scanner) -> None:
    """Heartbeats do not hold the idle gate open; a person's prompt among them does."""
    entries = Entries(A)
    entries.said("please")
    entries.model()
    worked = entries.ms
    for _ in range(3):
        entries.ms += 1_800_000
        entries.said("HEARTBEAT.md says what; else HEARTBEAT_OK")
        entries.model(text="HEARTBEAT_OK")
    put(entries)

    assert {A: (1, 4)} == scanner.scan().turns()
    newest = scanner.newest_work()
    assert newest is not None
    assert worked == round(newest.timestamp() * 1000)


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("read", {"path": SKILL}, ("probe", "use", "read")),
        ("read", {"path": "skills/probe/SKILL.md"}, ("probe", "use", "read")),
        ("read", {"path": "/h/.openclaw/skills/probe/references/a.md"}, ("probe", "view", "read")),
        ("edit", {"path": SKILL, "edits": []}, ("probe", "patch", "edit")),
        ("write", {"path": SKILL, "content": "x"}, ("probe", "patch", "write")),
        ("bash", {"command": f"cat {SKILL}"}, ("probe", "use", "shell")),
        ("bash", {"command": f"sed -i s/a/b/ {SKILL}"}, ("probe", "patch", "shell")),
        ("read", {"path": "/home/dev/claw/README.md"}, None),
    ],
)
def test_forms_of_use(
    put: Any, scanner: Scanner, tool: str, arguments: dict[str, Any], expected: tuple[str, str, str] | None
) -> None:
    """The read of a SKILL.md is this host's way to use it; a failed call is nothing."""
    entries = Entries(A)
    entries.said()
    entries.result(entries.call(tool, **arguments))
    entries.result(entries.call(tool, **arguments), error=True)
    put(entries)

    assert [expected] * (expected is not None) == kinds(scanner.scan())
    assert {tool: 2} == scanner.counts()[A][3]


def test_skills_called_by_name(put: Any, scanner: Scanner) -> None:
    """The prompt is the use, and the read that it causes no second one; a mention in the raw text is none."""
    entries = Entries(A)
    entries.said('Use the "probe" skill for this request.\n\nUser input:\ndata.csv')
    entries.read("probe")
    entries.said("/csv_clean data.csv and $release-notes")
    entries.read("probe")
    entries.said(
        "Use the following explicitly referenced skills for this request. Read each.\n"
        "- one (SKILL.md: /x/one/SKILL.md)\n- two_b\n\nUser request:\ngo"
    )
    entries.read("two-b")
    put(entries)

    expected = [
        ("probe", "use", "slash"),
        ("probe", "use", "read"),
        ("one", "use", "slash"),
        ("two_b", "use", "slash"),
    ]
    assert expected == kinds(scanner.scan())
    assert ["/home/dev/claw/skills/probe/SKILL.md"] * 2 == scanner.paths()[:2]
    assert ["/x/one/SKILL.md", "/home/dev/claw/skills/two-b/SKILL.md"] == scanner.paths()[2:]
    assert {A: (3, 3)} == scanner.turns()


def test_a_read_of_a_later_scan_tells_the_path(home: OpenClawHome, scanner: Scanner) -> None:
    """Between a prompt and the read that it causes a scan may come: it is one use all the same."""
    entries = Entries(A)
    entries.said('Use the "probe" skill for this request.\n\nUser input:\n')
    home.write(entries)
    scanner.scan(settled=False)
    assert [None] == scanner.paths()
    entries.read("probe")
    home.write(entries)

    assert [("probe", "use", "slash")] == kinds(scanner.scan())
    assert [SKILL] == scanner.paths()


@pytest.mark.parametrize("name", [
    f"{A}.jsonl", f"{A}-topic-7.jsonl", f"{A}.jsonl.reset.2026-03-01T12-00-00.000Z", f"{A}.jsonl.deleted.1772366400",
    f"{A}.jsonl.bak.5",
])  # fmt: skip
def test_names_of_files(home: OpenClawHome, scanner: Scanner, name: str) -> None:
    """A file that was put away is the session that it was."""
    entries = Entries(A)
    entries.said()
    home.write(entries, name=name)
    home.write(entries, name=f"{A}.trajectory.jsonl")
    home.write(entries, name="sessions.json.tmp")

    assert {A: (1, 0)} == scanner.scan().turns()
    assert [1] == [source.files for source in scanner.report.sources]


def test_put_away_and_compressed(home: OpenClawHome, scanner: Scanner) -> None:
    """Renamed and packed, a session counts as before."""
    entries = Entries(A)
    for _ in range(5):
        entries.said()
        entries.read("probe")
    path = home.write(entries)
    before = scanner.scan().counts()
    data = path.read_bytes()
    path.rename(path.with_name(f"{A}.jsonl.reset.2026-03-01T12-00-00.000Z"))
    assert before == scanner.scan().counts()
    path.with_name(f"{A}.jsonl.reset.2026-03-01T12-00-00.000Z").unlink()
    path.with_name(f"{A}.jsonl.reset.2026-03-01T12-00-00.000Z.zst").write_bytes(zstd.compress(data))

    assert before == scanner.scan().counts()
    assert 5 == len(scanner.events())


def test_the_index_knows_sub_agents(home: OpenClawHome, scanner: Scanner) -> None:
    """The key of a session says who drives it; where the index has lost it, the first prompt does."""
    parent, child, run, lost = (Entries(f"{n}{A[1:]}", start_ms=1_772_366_400_000 + n * 5000) for n in range(4))
    for entries in (parent, child, run):
        entries.said("do it")
        entries.model()
        home.write(entries)
    lost.said("[Sun 2026-03-01 12:00 UTC] [Subagent Context] You are running as a subagent (depth 1/1).")
    lost.model()
    home.write(lost)
    home.index("agent:main:main", parent.session)
    home.index("agent:main:subagent:x", child.session, spawnedBy="agent:main:main")
    home.index("agent:main:cron:7:run:1", run.session)

    scanner.scan()

    turns = {entries.session: (said, 1) for entries, said in ((parent, 1), (child, 0), (run, 1), (lost, 0))}
    assert turns == scanner.turns()
    rows = scanner.sessions()
    assert ["person", "subagent", "scheduled", "subagent"] == [rows[e.session].kind for e in (parent, child, run, lost)]
    assert parent.session == rows[child.session].parent


def test_the_tables_know_sub_agents(database: OpenClawDatabase, scanner: Scanner) -> None:
    """The same from the tables of sessions; a session that goes on has the one before as its parent."""
    names = [f"{n}{A[1:]}" for n in range(4)]
    database.window(names[0])
    database.window(names[1], "agent:main:x", node={"created_via": "spawn", "parent_session_key": "agent:main:main"})
    database.window(names[2], "agent:main:y", node={"created_via": "cron"})
    database.window(names[3], "agent:main:z", previous_session_id=names[0], reason="reset")
    for n, name in enumerate(names):
        entries = Entries(name, start_ms=1_772_366_400_000 + n * 5000)
        entries.said("do it")
        entries.model()
        database.put(entries)

    rows = scanner.scan().sessions()

    assert ["person", "subagent", "scheduled", "person"] == [rows[name].kind for name in names]
    assert [None, names[0], None, names[0]] == [rows[name].parent for name in names]
    assert [1, 0, 1, 1] == [rows[name].user_turns for name in names]


@pytest.mark.parametrize("scanned_before", [True, False])
def test_the_upgrade_counts_nothing_twice(home: OpenClawHome, scanner: Scanner, scanned_before: bool) -> None:
    """Imported, a session stands in the database and in the archive; it counts once, and goes on in the database."""
    all_entries = [Entries(f"{n:08x}{A[8:]}", start_ms=1_772_366_400_000 + n * 50_000) for n in range(12)]
    for entries in all_entries:
        entries.said(f"prompt of {entries.session}")
        entries.read("probe")
        home.write(entries)
    if scanned_before:
        scanner.scan()
    for path in home.sessions.iterdir():
        archive = home.folder / "session-sqlite-import-archive"
        archive.mkdir(exist_ok=True)
        path.rename(archive / path.name)
    database = OpenClawDatabase(home)
    for entries in all_entries:
        database.window(entries.session, f"agent:main:{entries.session}")
        database.put(entries, packed=zstd.compress)
    begin = len(all_entries[0].entries)
    all_entries[0].said("and on")
    database.put(all_entries[0], begin=begin)

    scanner.scan()

    expected = {entries.session: (1, 1) for entries in all_entries} | {all_entries[0].session: (2, 1)}
    assert expected == scanner.turns()
    assert 12 == len(scanner.events())
    database.close()


@pytest.mark.parametrize("between", [True, False])
@pytest.mark.parametrize("form", ["file", "database"])
def test_a_fork_repeats_nothing(home: OpenClawHome, scanner: Scanner, form: str, between: bool) -> None:
    """A fork has its origin's entries with their ids; only what it says itself counts."""
    origin = Entries(A)
    origin.said()
    origin.read("probe")
    fork = Entries(B, start_ms=origin.ms + 60_000, parentSession=f"/x/{A}.jsonl")
    fork.entries += origin.entries[1:]
    fork.said("another way")
    fork.model()
    database = OpenClawDatabase(home)
    for entries in (origin, fork):
        if form == "file":
            home.write(entries)
        else:
            database.window(entries.session, f"agent:main:{entries.session}")
            database.put(entries)
        if between:
            scanner.scan()

    assert {A: (1, 1), B: (1, 1)} == scanner.scan().turns()
    assert [(A, "probe", "use", "read")] == scanner.events()
    database.close()


def test_a_rewritten_transcript(database: OpenClawDatabase, scanner: Scanner) -> None:
    """Pruned and written anew, with a row slipped in among the old numbers, it gives what is new and no more."""
    entries, other = Entries(A), Entries(B, start_ms=1_772_370_000_000)
    for _ in range(4):
        entries.said()
        entries.read("probe")
    other.said()
    for one in (entries, other):
        database.window(one.session, f"agent:main:{one.session}")
        database.put(one)
    scanner.scan()
    entries.ms += 100_000
    entries.said("slipped in")
    new = entries.entries.pop()
    entries.entries.insert(4, new)
    entries.entries[3]["message"]["content"] = [{"type": "text", "text": "[pruned]"}]
    numbers = [row[0] for row in database.connection.execute("SELECT rowid FROM transcript_events WHERE session_id = ?",
                                                             (A,))]  # fmt: skip
    database.execute("DELETE FROM transcript_events WHERE session_id = ?", A)
    database.put(entries)
    # As if freed numbers had been given again: all but the last stand below the watermark.
    taken = database.connection.execute("SELECT rowid FROM transcript_events WHERE session_id = ? ORDER BY seq", (A,))
    for (row,), free in zip(taken.fetchall(), [*numbers], strict=False):
        database.execute("UPDATE transcript_events SET rowid = ? WHERE rowid = ?", free, row)
    database.rewritten(A, "g1", 2)

    assert {A: (5, 4), B: (1, 0)} == scanner.scan().turns()
    assert 4 == len(scanner.events())
    before = scanner.counts()
    assert before == scanner.scan().counts()


def test_calls_wait_for_results_across_scans(database: OpenClawDatabase, scanner: Scanner) -> None:
    """Results come in later scans, under call numbers that other sessions use as well."""
    entries = [Entries(f"{n:08x}{A[8:]}", start_ms=1_772_366_400_000 + n * 5000) for n in range(3)]
    entries[2].call_prefix = "call_of_no_other_session_"  # a short one might be another call once it is settled
    calls = []
    for one in entries:
        database.window(one.session, f"agent:main:{one.session}")
        one.said()
        calls.append(one.call("read", path=SKILL))
        database.put(one)
    scanner.scan(settled=False)
    assert [] == scanner.events()
    for n, one in enumerate(entries[:2]):
        begin = len(one.entries)
        one.result(calls[n], error=n == 0)
        database.put(one, begin=begin)
    scanner.scan(settled=False)
    assert [entries[1].session] == [event[0] for event in scanner.events()]
    scanner.scan()
    assert [entries[1].session, entries[2].session] == [event[0] for event in scanner.events()]
    begin = len(entries[2].entries)
    entries[2].result(calls[2], error=True)
    database.put(entries[2], begin=begin)

    assert [entries[1].session] == [event[0] for event in scanner.scan().events()]


def test_a_call_that_waits_in_a_file_that_is_gone(home: OpenClawHome, scanner: Scanner) -> None:
    """It is taken as done once the session is settled."""
    entries = Entries(A)
    entries.said()
    entries.call("read", path=SKILL)
    path = home.write(entries)
    scanner.scan(settled=False)
    path.unlink()

    assert [] == scanner.scan(settled=False).events()
    assert [A] == [event[0] for event in scanner.scan().events()]
    assert [A] == [event[0] for event in scanner.scan().events()]


def test_a_database_that_is_away_keeps_what_waits(database: OpenClawDatabase, scanner: Scanner) -> None:
    """All its sessions go at once, so it is taken for one that comes back: results find their calls then."""
    entries = Entries(A)
    database.window(A, f"agent:main:{A}")
    entries.said()
    call = entries.call("read", path=SKILL)
    database.put(entries)
    scanner.scan(settled=False)
    path = Path(scanner.source().path) / "agents"
    away = path.rename(path.with_name("away"))
    (path / "other").mkdir(parents=True)
    assert [] == scanner.scan().events()
    (path / "other").rmdir()
    path.rmdir()
    away.rename(path)
    begin = len(entries.entries)
    entries.result(call)
    database.put(entries, begin=begin)

    assert [A] == [event[0] for event in scanner.scan(settled=False).events()]


def test_unknown_and_unreadable(database: OpenClawDatabase, scanner: Scanner) -> None:
    """Broken rows are counted alone and once, new types as such."""
    entries = Entries(A)
    entries.said()
    entries.add("hologram")
    entries.add("message", message={"role": "narrator", "content": "x"})
    database.window(A)
    database.put(entries)
    for seq, data in enumerate([b'{"type":"mess', b"[" * 50_000, b"", b"\x00\x00", b'{"type":7,"timestamp":[1]}'], 100):
        database.event(A, seq, data)
    database.event(A, 200, b'{"type":"message"}', packed=lambda data: b"no zstd")
    database.event(A, 201, b"{" + b"x" * 9_000_000)
    entries.said("after it all")
    database.event(A, 202, entries.lines().splitlines()[-1])

    scanner.scan()

    assert {A: (2, 0)} == scanner.turns()
    assert {"hologram": 1, "message/narrator": 1, "(none)": 2} == scanner.source().unknown
    assert 3 == scanner.sessions()[A].unreadable
    assert 1 == scanner.source().oversize
    before = scanner.counts()
    database.rewritten(A, "g1", 2)
    assert before == scanner.scan().counts()
    assert 3 == scanner.sessions()[A].unreadable


def test_a_database_without_sessions_yet(home: OpenClawHome, scanner: Scanner, database: OpenClawDatabase) -> None:
    """A database of the time when sessions were files is no problem; nor is an agent without anything."""
    for table in ("transcript_events", "session_windows", "session_nodes", "transcript_rewrite_watermarks"):
        database.execute(f"DROP TABLE {table}")
    entries = Entries(A)
    entries.said()
    home.write(entries)

    assert {A: (1, 0)} == scanner.scan().turns()
    assert [] == scanner.notes


def test_no_credential_is_read(database: OpenClawDatabase, scanner: Scanner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all tables of the database only those of sessions are asked."""
    database.execute("INSERT INTO auth_profile_store VALUES ('main', 'the secret')")
    entries = Entries(A)
    entries.said()
    database.window(A)
    database.put(entries)
    asked: list[str] = []
    real = sqlite3.connect

    def spied(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = real(*args, **kwargs)
        connection.set_trace_callback(asked.append)
        return connection

    monkeypatch.setattr("curatord.adapters.sources.sqlite_read.sqlite3.connect", spied)
    assert {A: (1, 0)} == scanner.scan().turns()
    assert [query for query in asked if "transcript_events" in query]
    assert [] == [query for query in asked if "auth" in query and "table_info" not in query]


def test_nothing_is_left_behind(home: OpenClawHome, scanner: Scanner) -> None:
    """Neither a database at rest nor a live one is changed by being read, nor any file."""
    database = OpenClawDatabase(home)
    entries = Entries(A)
    entries.said()
    home.write(entries, name=f"{B}.jsonl")
    database.window(A)
    database.put(entries)
    shm = "openclaw-agent.sqlite-shm"
    before = traces(home.path, but=(shm,), touched_by_root=True)
    scanner.scan()
    assert before == traces(home.path, but=(shm,), touched_by_root=True)
    database.close()
    before = traces(home.path)
    scanner.scan()
    assert before == traces(home.path)
    assert ["openclaw-agent.sqlite"] == [path.name for path in database.folder.iterdir()]


def test_damage_stops_nothing_else(home: OpenClawHome, scanner: Scanner) -> None:
    """A broken database is told of, what was read of it stays, and the files are read."""
    database = OpenClawDatabase(home)
    for n in range(20):
        entries = Entries(f"{n:08x}{A[8:]}", start_ms=1_772_366_400_000 + n * 500_000)
        for _ in range(20):
            entries.said("z" * 2000)
        database.window(entries.session, f"agent:main:{n}")
        database.put(entries)
    database.close()
    whole = scanner.scan().turns()
    data = bytearray(database.file.read_bytes())
    data[len(data) // 2 :] = os.urandom(len(data) - len(data) // 2)
    database.file.write_bytes(data)
    entries = Entries(B, start_ms=1_772_000_000_000)
    entries.said()
    home.write(entries)
    expected = whole | {B: (1, 0)}

    assert expected == scanner.scan().turns()
    assert [note for note in scanner.notes if "malformed" in note]
    database.file.write_bytes(b"junk" * 100)
    assert expected == scanner.scan().turns()
    with contextlib.suppress(FileNotFoundError):
        database.file.unlink()
    assert expected == scanner.scan().turns()


@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_changes_comes_to_the_same(tmp_path: Path, seed: int) -> None:
    """Scanned at any moments, rewritten and deleted from, a database gives each entry once."""
    rng = random.Random(seed)
    home = OpenClawHome(tmp_path / "openclaw")
    database = OpenClawDatabase(home)
    scanner = Scanner(tmp_path / "state", ("openclaw", home.path))
    all_entries = [Entries(f"{n:08x}{A[8:]}", start_ms=1_772_366_400_000 + n * 7) for n in range(4)]
    stored = dict.fromkeys(range(4), 0)
    turns = {entries.session: [0, 0] for entries in all_entries}
    events = 0
    generation = 1
    for n, entries in enumerate(all_entries):
        database.window(entries.session, f"agent:main:{n}")
    for _ in range(100):
        n = rng.randrange(4)
        entries = all_entries[n]
        act = rng.random()
        if act < 0.35:
            entries.said(f"say {rng.random()}")
            turns[entries.session][0] += 1
        elif act < 0.6:
            failed = rng.random() < 0.3
            entries.read("probe", error=failed)
            turns[entries.session][1] += 1
            events += not failed
        elif act < 0.7:
            scanner.scan(settled=False)
            generation += 1
            database.execute("DELETE FROM transcript_events WHERE session_id = ?", entries.session)
            if rng.random() < 0.8:
                stored[n] = 0  # inserted anew below
            database.rewritten(entries.session, f"g{generation}", rng.choice([generation, 2]))
        else:
            scanner.scan(settled=False)
        database.put(entries, begin=stored[n])
        stored[n] = len(entries.entries)
    database.close()

    scanner.scan()

    assert {session: tuple(t) for session, t in turns.items()} == dict.fromkeys(turns, (0, 0)) | scanner.turns()
    assert events == len(scanner.events())
    scanner.close()


def write_all(home: str, total: int) -> None:
    """Insert as a live host does, with now and then a checkpoint."""
    database = OpenClawDatabase(OpenClawHome(Path(home)))
    all_entries = [Entries(f"{n:08x}{A[8:]}", start_ms=1_772_366_400_000 + n * 7) for n in range(3)]
    for n in range(total):
        entries = all_entries[n % 3]
        begin = len(entries.entries) if n >= 3 else 0
        entries.said(f"{n} " + "z" * (n % 3000))
        entries.read("probe")
        database.put(entries, begin=begin)
        if n % 50 == 49:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def test_a_live_writer_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scanned all the while, every entry counts once, and the writer is never kept from writing."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).resolve().parents[3]), *sys.path]))
    home = OpenClawHome(tmp_path / "openclaw")
    OpenClawDatabase(home).close()
    scanner = Scanner(tmp_path / "state", ("openclaw", home.path))
    process = SPAWN.Process(target=write_all, args=(str(home.path), 240))
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
    assert [(241, 80, 80, {"read": 80})] * 3 == list(scanner.scan().counts().values())
    assert 240 == len(scanner.events())
    scanner.close()


def test_default_places(tmp_path: Path) -> None:
    """The host's variable, or its present name and all its former ones."""
    from curatord.adapters.sources.places import places

    def found(**env: str) -> list[str]:
        return [place.path for place in places(SourceSettings(host="openclaw"), env, home=tmp_path)]

    names = [str(tmp_path / name) for name in (".openclaw", ".clawdbot", ".moltbot", ".moldbot")]
    assert names == found() == found(OPENCLAW_STATE_DIR=" ")
    assert ["/data/claw"] == found(OPENCLAW_STATE_DIR="/data/claw")

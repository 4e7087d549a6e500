"""What is told of databases, of DSH's frames and of OpenCode's tree, and what is left out by their structure."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from curatord.adapters.sources.conversations import open_conversations
from curatord.adapters.sources.told_hermes import HermesConversations
from curatord.core.distil.said import Said
from curatord.core.settings import HostName, SourceSettings
from curatord.core.transcript.events import OWN_MARK
from curatord.ports.conversation import Since
from tests.dsh_log import START_MS, DshLog
from tests.hermes_home import HermesHome, call, slash
from tests.openclaw_home import Entries, OpenClawDatabase, OpenClawHome
from tests.opencode_home import OpenCodeHome, OpenCodeTree

Texts = list[tuple[str, str]]


def said(host: HostName, root: Path, path: Path, session: str, since: Since | None = None) -> list[Said]:
    """Return what is told of *session* in the item at *path*."""
    conversations = open_conversations(SourceSettings(host=host), str(root))
    return list(conversations.said(str(path), session, since or Since(), until=None, stop=lambda: False))


def texts(told: list[Said]) -> Texts:
    """Return role and text of each."""
    return [(each.role, each.text) for each in told]


# -- Hermes


@pytest.fixture
def home(tmp_path: Path) -> Iterator[HermesHome]:
    """Return a home with a live writer."""
    made = HermesHome(tmp_path / "home")
    yield made
    made.close()


def of(home: HermesHome, session: str = "s", since: Since | None = None) -> Texts:
    """Return what is told of a session."""
    return texts(said("hermes", home.path, home.file, session, since))


AUTO = (
    '[IMPORTANT: The "foo" skill is auto-loaded for this channel.]\n\n# foo\n\n[Skill directory: /s/foo]\n'
    "Resolve any relative paths.\n\nhello\n\nyou"
)
BUNDLE = (
    '[IMPORTANT: The user has invoked the "/a /b" stacked skill bundle, loading 2 skills together.]\n\n'
    "Skills loaded: a, b\nUser instruction: go on\n\n[Loaded skill: a]\n# a"
)


@pytest.mark.parametrize(
    ("row", "typed"),
    [
        (slash("notes", "for 1.2, short"), "/notes for 1.2, short"),
        (slash("notes", word="SYSTEM"), "/notes"),
        (BUNDLE, "/a /b go on"),
        (AUTO, "hello\n\nyou"),
        (AUTO.replace("[Skill directory: /s/foo]\nResolve any relative paths.\n\nhello\n\n", ""), "you"),
        ("[IMPORTANT: read this first] and then go", "[IMPORTANT: read this first] and then go"),
        ("<memory-context>\n[System note: recalled]\nlikes tea\n</memory-context>\n\ngo", "go"),
    ],
)
def test_hermes_commands_are_told_as_typed(home: HermesHome, row: str, typed: str) -> None:
    """Of what Hermes makes of a command, only what the person typed is told."""
    home.session("s")
    home.user("s", row)

    assert [("user", typed)] == of(home)


def test_hermes_compaction_tells_nothing_again(home: HermesHome) -> None:
    """Summaries and the copies of the kept tail are not told, whatever their ids and times; rewound rows are."""
    home.session("s")
    home.user("s", "one")
    home.says("s", "First.")
    home.user("s", "two")
    home.says("s", "Second.")
    home.compact("s", keep=2)
    home.user("s", "three")
    home.rewind("s", 1)
    home.user("s", "four")
    expected = ["one", "First.", "two", "Second.", "three", "four"]

    assert expected == [text for _, text in of(home)]


def test_hermes_branches_tell_only_their_own(home: HermesHome) -> None:
    """A branch begins with copies of its origin's rows, which are not told again."""
    home.session("s")
    home.user("s", "one")
    home.says("s", "First.")
    home.branch("s", "b")
    home.user("b", "two")

    assert [("user", "two")] == of(home, "b")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("cron", [("assistant", "Done.")]),
        ("subagent", []),
        ("curator", []),
        ("background_review", []),
        ("api_server", [("user", "go"), ("assistant", "Done.")]),
    ],
)
def test_hermes_sessions_of_others(home: HermesHome, source: str, expected: Texts) -> None:
    """A schedule's prompt, a sub-agent's session and the reviewer's are not told; what a program asked is."""
    home.session("s", source=source)
    home.user("s", "go")
    home.says("s", "Done.")

    assert expected == of(home)


def test_hermes_reviews_and_other_peoples_talk(home: HermesHome) -> None:
    """The reviewer's prompt of older builds with its answer, and observed talk in a group, are not told."""
    home.session("s")
    home.user("s", "go")
    home.user("s", "Review the conversation above and update the skill library as needed.")
    home.says("s", "Nothing to save.")
    home.user("s", "what others say", observed=1)
    home.says("s", "Gone.")

    assert [("user", "go"), ("assistant", "Gone.")] == of(home)


def test_hermes_own_session(home: HermesHome) -> None:
    """A session that curatord itself began tells nothing."""
    home.session("s")
    home.user("s", f"{OWN_MARK} merge")
    home.says("s", "{}")
    home.user("s", "and more")

    assert [] == of(home)


def test_hermes_other_sessions_rows(home: HermesHome) -> None:
    """Of mixed rows each session tells its own, many rows and all."""
    home.session("s")
    home.session("t")
    for number in range(450):
        home.user("s", f"prompt {number}")
        home.user("t", f"other {number}")

    assert [("user", f"prompt {number}") for number in range(450)] == of(home)


def test_hermes_rows_of_many_megabytes(home: HermesHome) -> None:
    """A huge row is told by its ends, and what stands around it whole."""
    home.session("s")
    home.user("s", "one")
    home.row("s", "assistant", "x" * 5_000_000, tool_calls=[call("look", "c-1", at="y" * 3_000_000)])
    home.row("s", "tool", "Error: " + "z" * 3_000_000, tool_call_id="c-1")
    home.user("s", "two")

    told = said("hermes", home.path, home.file, "s")

    assert ["user", "assistant", "error", "user"] == [each.role for each in told]
    assert max(len(each.text) for each in told) < 250_000


def test_hermes_while_it_is_written(home: HermesHome) -> None:
    """Rows that come while it is read are told or not, and the writer never waits."""
    home.session("s")
    for number in range(300):
        home.user("s", f"{number} " + "x" * 20_000)
    conversations = open_conversations(SourceSettings(host="hermes"), str(home.path))
    told = []

    for each in conversations.said(str(home.file), "s", Since(), until=None, stop=lambda: False):
        told.append(each.text.partition(" ")[0])
        if len(told) % 50 == 0 and len(told) <= 300:
            home.db.execute("PRAGMA busy_timeout = 100")
            home.user("s", f"{300 + len(told) // 50 - 1} late")

    assert [str(number) for number in range(len(told))] == told
    assert len(told) >= 300


# -- OpenClaw


def test_openclaw_prompts(tmp_path: Path) -> None:
    """Heartbeats, schedules, notices and other sessions' messages are not told; a request is told as it was made."""
    entries = Entries("s")
    entries.said("Read HEARTBEAT.md if it exists. If nothing needs attention, reply HEARTBEAT_OK.")
    entries.said("[cron:1 nightly] clean up")
    entries.said("[Inter-session message] hello")
    entries.said('Use the "notes" skill for this request.\n\nUser input:\nfor 1.2')
    entries.said(
        "Use the following explicitly referenced skills for this request. Read them.\n- a\n- b (SKILL.md: /x/S)\n\n"
        "User request:\nplease do"
    )
    entries.said("System: node connected\n\nhello")
    home = OpenClawHome(tmp_path)
    path = home.write(entries)

    expected = ["/notes for 1.2", "/a /b please do", "hello"]
    assert [("user", text) for text in expected] == texts(said("openclaw", tmp_path, path, "s"))


@pytest.fixture
def claw(tmp_path: Path) -> Iterator[OpenClawDatabase]:
    """Return a database with a live writer."""
    made = OpenClawDatabase(OpenClawHome(tmp_path / "claw"))
    yield made
    made.close()


def test_openclaw_forks_and_rewritten_sessions(claw: OpenClawDatabase, tmp_path: Path) -> None:
    """A fork's copies are its origin's; of a session that was rewritten only what is newer is told."""
    origin = Entries("s")
    origin.said("in the origin")
    origin.model(text="There.")
    claw.window("s")
    claw.put(origin)
    fork = Entries("f")
    fork.entries = list(origin.entries)
    fork.ms = origin.ms + 5000
    claw.window("f", "agent:main:fork", reason="fork", created_at=fork.ms)
    fork.said("in the fork")
    claw.put(fork)
    root = tmp_path / "claw"

    assert [("user", "in the fork")] == texts(said("openclaw", root, claw.file, "f"))

    told = said("openclaw", root, claw.file, "s")
    seen = Since(offset=claw.connection.execute("SELECT max(rowid) FROM transcript_events").fetchone()[0],
                 at_ms=told[-1].at_ms)  # fmt: skip
    claw.execute("DELETE FROM transcript_events WHERE session_id = 's'")
    origin.said("and more")
    claw.put(origin)
    claw.rewritten("s", "g1", origin.ms)

    assert [("user", "and more")] == texts(said("openclaw", root, claw.file, "s", seen))


def test_openclaw_files_that_the_database_took_over(claw: OpenClawDatabase, tmp_path: Path) -> None:
    """A file is not told where the database has its session, nor a copy beside its live file."""
    home = OpenClawHome(tmp_path / "claw")
    entries, other = Entries("s"), Entries("t")
    entries.said("go")
    other.said("on")
    claw.window("s")
    claw.put(entries)
    root = tmp_path / "claw"
    archived = home.write(entries, below="session-sqlite-import-archive")
    live, copy = home.write(other), home.write(other, name="t.jsonl.bak.2026-03-01")

    assert [] == said("openclaw", root, archived, "s")
    assert [("user", "on")] == texts(said("openclaw", root, live, "t"))
    assert [] == said("openclaw", root, copy, "t")


def test_openclaw_sub_agents(claw: OpenClawDatabase, tmp_path: Path) -> None:
    """A session that another one spawned tells nothing."""
    entries = Entries("s")
    entries.said("look at it")
    entries.model(text="Looked.")
    claw.window("s", "agent:main:subagent:1", spawned_by="agent:main:main")
    claw.put(entries)

    assert [] == said("openclaw", tmp_path / "claw", claw.file, "s")


# -- OpenCode


def test_opencode_what_no_person_said(tmp_path: Path) -> None:
    """Synthetic and ignored parts, a compaction's prompt and answer, and a sub-agent's session are not told."""
    made = OpenCodeHome(tmp_path)
    made.session()
    message = made.message("ses_1", "user")
    made.part("ses_1", message, type="text", text="Called the Read tool", synthetic=True)
    made.part("ses_1", message, type="text", text="go")
    message = made.message("ses_1", "user")
    made.part("ses_1", message, type="compaction", auto=True)
    message = made.message("ses_1", "assistant", summary=True)
    made.part("ses_1", message, type="text", text="So far: …")
    made.session("ses_2", parent="ses_1")
    made.said("ses_2", "look at it")
    made.close()

    assert [("user", "go")] == texts(said("opencode", tmp_path, tmp_path / "opencode.db", "ses_1"))
    assert [] == said("opencode", tmp_path, tmp_path / "opencode.db", "ses_2")


def test_opencode_slash_commands(tmp_path: Path) -> None:
    """Of a skill's body in a prompt only what was typed for it is told."""
    made = OpenCodeHome(tmp_path)
    made.session()
    tail = "Base directory for this skill: /s/notes\nRelative paths are relative to it."
    made.said("ses_1", f"# notes\n\ndo this\n\n{tail}\n\nfor 1.2\n\nshort")
    made.said("ses_1", f"# notes for $X\n\n{tail}")
    made.close()

    told = texts(said("opencode", tmp_path, tmp_path / "opencode.db", "ses_1"))

    assert [("user", "/notes for 1.2\n\nshort"), ("user", "/notes")] == told


def test_opencode_forks_tell_only_their_own(tmp_path: Path) -> None:
    """Copies that a fork made are not told again."""
    made = OpenCodeHome(tmp_path)
    made.session()
    made.said("ses_1", "one")
    at = made.ms - 10
    made.ms += 60_000
    made.session("ses_2")
    message = made.message("ses_2", "user", created=at)
    made.part("ses_2", message, type="text", text="one")
    made.said("ses_2", "two")
    made.close()

    assert [("user", "two")] == texts(said("opencode", tmp_path, tmp_path / "opencode.db", "ses_2"))


def test_opencode_database_wins_over_the_tree(tmp_path: Path) -> None:
    """A session that was imported is not told from the files that were left."""
    tree = OpenCodeTree(tmp_path)
    tree.session()
    tree.said("ses_1", "go")
    made = OpenCodeHome(tmp_path)
    made.session()
    made.said("ses_1", "go")
    made.close()
    file = next((tmp_path / "storage" / "session").glob("*/ses_1.json"))

    assert [] == said("opencode", tmp_path, file, "ses_1")
    assert [("user", "go")] == texts(said("opencode", tmp_path, tmp_path / "opencode.db", "ses_1"))


# -- DSH


def test_dsh_seeds_compactions_and_catalogues(tmp_path: Path) -> None:
    """A fork's seed, catalogues, skills' bodies and what a compaction wrote again are not told."""
    seed = DshLog("f")
    seed.said("in the origin")
    seed.model("There.")
    log = DshLog("f", seedLength=seed.seq)
    log.said("in the origin")
    log.model("There.")
    log.said("/notes go", kind="user")
    log.said("# notes", kind="skill-invocation", name="notes", form="instructions")
    log.said("skills: …", kind="skill-catalog")
    log.said("the summary", surfaceOp={"op": "replace", "start": 0, "end": 3})
    path = log.write(tmp_path)

    assert [("user", "/notes go")] == texts(said("dsh", tmp_path, path, "f"))


def test_dsh_inherited_marks(tmp_path: Path) -> None:
    """In newer formats all rows up to the last inherited mark are the origin's."""
    log = DshLog("f", version=4, isSeeded=True)
    log.said("in the origin")
    log.batch(("session/end-seed", {"inherited": True}))
    log.said("in another origin")
    log.batch(("session/end-seed", {"inherited": True}))
    log.said("in the fork")
    path = log.write(tmp_path)

    assert [("user", "in the fork")] == texts(said("dsh", tmp_path, path, "f"))


def test_dsh_sub_agents_and_replaced_logs(tmp_path: Path) -> None:
    """A sub-agent's log, and one that a newer format replaced, tell nothing."""
    agent = DshLog("a", origin="subagent", delegationDepth=1)
    agent.said("look at it")
    agent.model("Looked.")
    old = DshLog("s")
    old.said("go")
    new = DshLog("s", version=4)
    new.said("go")
    path, newer = old.write(tmp_path), new.write(tmp_path)

    assert [] == said("dsh", tmp_path, agent.write(tmp_path), "a")
    assert [] == said("dsh", tmp_path, path, "s")
    assert [("user", "go")] == texts(said("dsh", tmp_path, newer, "s"))


def test_dsh_damage_costs_only_its_frame(tmp_path: Path) -> None:
    """Behind a damaged frame all others are told, with the watermark that ingest has."""
    log = DshLog("s")
    for text in ("one", "two", "three"):
        log.said(text)
    frames = log.frames()
    broken = bytes([frames[2][0], frames[2][1], frames[2][2], frames[2][3]]) + b"\xff" * (len(frames[2]) - 4)
    path = log.write(tmp_path, data=b"".join([frames[0], frames[1], broken, frames[3]]))
    conversations = open_conversations(SourceSettings(host="dsh"), str(tmp_path))

    told = list(conversations.said(str(path), "s", Since(), until=path.stat().st_size, stop=lambda: False))

    assert [("user", "one"), ("user", "three")] == texts(told)
    assert path.stat().st_size == told[-1].offset
    assert START_MS < (told[0].at_ms or 0)


# -- Hermes' files


def test_hermes_files_that_the_database_has(home: HermesHome) -> None:
    """A session file is not told where the database has its session; one that became shorter is told whole."""
    home.session("s")
    home.user("s", "go")
    folder = home.path / "sessions"
    folder.mkdir()
    for name in ("s", "t"):
        messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "Gone."}]
        (folder / f"session_{name}.json").write_text(json.dumps({"session_id": name, "messages": messages}))

    assert [] == said("hermes", home.path, folder / "session_s.json", "s")
    known = Since(offset=1_000_000)
    assert ["go", "Gone."] == [each.text for each in said("hermes", home.path, folder / "session_t.json", "t", known)]


# -- values of any type in any column


def test_columns_of_other_types(tmp_path: Path) -> None:
    """What SQLite lets stand in a column is taken as it is, or passed over."""
    home = HermesHome(tmp_path / "h")
    home.session("s")
    home.user("s", "go")
    for content, time in ((7, "soon"), (b"\xff\x00", 1e300), (None, -1), ("\x00json:[1", 0)):
        home.row("s", "user", content, at=time)  # type: ignore[arg-type]
        home.row("s", "assistant", content, at=time, tool_calls=content)  # type: ignore[arg-type]
        home.row("s", "tool", content, at=time, tool_call_id=content)  # type: ignore[arg-type]
    home.user("s", "on")
    told = of(home)
    home.close()
    assert [("user", "go"), ("user", "on")] == [told[0], told[-1]]

    claw = OpenClawDatabase(OpenClawHome(tmp_path / "claw"))
    claw.window("s")
    for seq, event in enumerate((b"7", b"{", b"[]", b"null", b'{"type":"message","message":7}', b"{}" * 3)):
        claw.event("s", seq, event)
    assert [] == said("openclaw", tmp_path / "claw", claw.file, "s")
    claw.close()

    made = OpenCodeHome(tmp_path / "o")
    made.session()
    for data in (b"\xff", "7", "{", "[]", '{"role":{},"time":7}', '{"type":"tool","state":7}'):
        made.execute("INSERT INTO message VALUES (?, 'ses_1', 'x', 'y', ?)", f"msg_{data!r}", data)
        made.execute("INSERT INTO part VALUES (?, ?, 'ses_1', 'x', 'y', ?)", f"prt_{data!r}", f"msg_{data!r}", data)
    made.said("ses_1", "go")
    made.close()
    assert [("user", "go")] == texts(said("opencode", tmp_path / "o", tmp_path / "o" / "opencode.db", "ses_1"))


# -- databases that change under the reader


def test_an_idle_database_that_changes_while_it_is_read(tmp_path: Path) -> None:
    """Opened as nobody's, it is opened anew when somebody writes, and read on behind the last row."""
    home = HermesHome(tmp_path)
    home.session("s")
    for number in range(60):
        home.user("s", f"{number} " + "x" * 100_000)
    home.close()
    conversations = open_conversations(SourceSettings(host="hermes"), str(tmp_path))
    told = []

    for each in conversations.said(str(home.file), "s", Since(), until=None, stop=lambda: False):
        told.append(each.text.partition(" ")[0])
        if len(told) in (1, 20):
            database = sqlite3.connect(home.file)
            query = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', ?, 1)"
            database.execute(query, (f"late{len(told)}",))
            database.commit()
            database.close()

    assert [*map(str, range(60)), "late1", "late20"] == told
    assert ["state.db"] == sorted(path.name for path in tmp_path.iterdir())


def test_a_crashed_writers_database_is_read_from_a_copy(tmp_path: Path) -> None:
    """With a journal and no index beside it, a private copy is read, once for all its sessions, and removed."""
    home = HermesHome(tmp_path / "home")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for session in ("s", "t"):
        home.session(session)
        home.user(session, f"in {session}")
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("state.db", "state.db-wal"):
        (crashed / name).write_bytes((home.path / name).read_bytes())
    home.close()
    conversations = HermesConversations(str(crashed), scratch=str(scratch))

    told = [
        each.text
        for session in ("s", "t")
        for each in conversations.said(str(crashed / "state.db"), session, Since(), until=None, stop=lambda: False)
    ]

    assert ["in s", "in t"] == told
    assert 1 == len(list(scratch.iterdir()))
    del conversations
    assert [] == list(scratch.iterdir())
    assert ["state.db", "state.db-wal"] == sorted(path.name for path in crashed.iterdir())

"""The tables of distilling: the queue that a trigger keeps, and outcomes that are one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from curatord.adapters.store.database import Database, open_database
from curatord.adapters.store.distil import SqliteDistilStore
from curatord.ports.distil_store import UNREAD, Judged, LookedTo, Settled, StoredCandidate

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MS = round(NOW.timestamp() * 1000)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Yield a database with two sessions of one file each, and a third that lies in both files."""
    database = open_database(tmp_path, now=NOW)
    connection = database.connection
    connection.execute("INSERT INTO sources (id, host, path, first_seen_at) VALUES (1, 'pi', '/p', 5)")
    for number in (1, 2):
        connection.execute(
            "INSERT INTO files (id, source, path, dev, ino, size, mtime_ns, offset, head, tail, state)"
            " VALUES (?, 1, ?, 0, ?, 10, 1, 10, x'aabbccddeeff0011', x'', x'')",
            (number, f"/p/{number}.jsonl", number),
        )
    for number, name in enumerate(("one", "two", "both"), start=1):
        connection.execute(
            "INSERT INTO sessions (id, host, session_id, parent, kind) VALUES (?, 'pi', ?, ?, 'person')",
            (number, name, "one" if name == "two" else None),
        )
    part(connection, 1, 1, turns=3, last=MS - 9000)
    part(connection, 2, 2, turns=1, last=MS - 8000)
    part(connection, 1, 3, turns=2, last=MS - 7000)
    part(connection, 2, 3, turns=5, last=MS - 6000)
    yield database
    database.close()


def part(connection: sqlite3.Connection, file: int, session: int, *, turns: int, last: int) -> None:
    """Write what a file says of a session, the way ingest does."""
    connection.execute(
        "INSERT OR REPLACE INTO parts VALUES (?, ?, 0, ?, 0, ?, 4, ?, ?, '{\"Bash\": 4}')",
        (file, session, turns * 3, turns, last - 1000, last),
    )


def test_whatever_was_read_is_in_the_queue(database: Database) -> None:
    """Each session once, with sums over its files and the oldest record as its beginning."""
    queued = SqliteDistilStore(database).queued(NOW)

    assert ["one", "two", "both"] == [session.session_id for session in queued]
    assert (7, 8, 2) == (queued[2].user_turns, queued[2].tool_calls, len(queued[2].files))
    assert [MS - 10000, MS - 9000, MS - 8000] == [session.since_ms for session in queued]
    assert 5 == queued[0].first_seen_ms


def test_a_judged_session_comes_back_when_it_grows_or_its_time_has_come(database: Database) -> None:
    """An answer about an older state of it is passed over."""
    store = SqliteDistilStore(database)
    one, two, both = store.queued(NOW)
    part(database.connection, 1, 1, turns=4, last=MS)
    store.judge(
        [
            Judged(one.row, one.touches, "waiting", "too little"),
            Judged(two.row, two.touches, "waiting", "too early", MS + 60_000),
            Judged(both.row, both.touches, "due", "quiet", None, MS),
        ]
    )

    assert ["one"] == [session.session_id for session in store.queued(NOW)]
    assert [both.row] == store.due()
    assert {("pi", "/p"): 1} == store.due_by_source()
    assert ["one", "two"] == [session.session_id for session in store.queued(NOW + timedelta(minutes=1))]
    assert 0 == store.next_look_at()


def test_a_settled_session_begins_anew(database: Database) -> None:
    """Counts and watermark are those of what was read; growth since then is the beginning of the next stretch."""
    store = SqliteDistilStore(database)
    one = store.queued(NOW)[0]
    settled = Settled(
        session=one,
        state="updated",
        reason="patched",
        at=NOW,
        through_ms=MS - 9000,
        offsets={1: LookedTo(10, "aabbccddeeff0011")},
        told={"new_skills": 0},
    )
    candidate = StoredCandidate("c1", "lib", "deploy", NOW, {"description": "d"})
    store.keep_answer(one.row, b"{}")
    store.settle(settled, [candidate])
    after = store.session(one.row)
    part(database.connection, 1, 1, turns=5, last=MS + 5000)
    grown = store.session(one.row)

    assert (None, 0, "updated") == (after.answer, after.new_turns, after.look.state)
    assert {1: LookedTo(10, "aabbccddeeff0011")} == after.look.offsets
    assert (2, MS + 5000) == (grown.new_turns, grown.since_ms)
    assert ["updated"] == [row.state for row in store.log()]
    assert [candidate] == store.candidates("lib")
    store.forget_candidates(["c1"])
    assert [] == store.candidates("lib")


def settled_at(store: SqliteDistilStore, row: int, offsets: dict[int, LookedTo]) -> None:
    store.settle(
        Settled(session=store.session(row), state="skipped", reason="", at=NOW, through_ms=MS - 9000, offsets=offsets)
    )


def test_of_a_file_that_is_gone_what_was_looked_at_counts(database: Database) -> None:
    """Growth that nobody looked at is new when the file is back, whatever was looked at meanwhile, and never before."""
    store = SqliteDistilStore(database)
    looked = {1: LookedTo(10, "aabbccddeeff0011"), 2: LookedTo(10, "aabbccddeeff0011")}
    settled_at(store, 3, looked)
    part(database.connection, 1, 3, turns=6, last=MS)  # 4 more, unseen
    database.connection.execute("UPDATE files SET offset = 20, gone_at = ? WHERE id = 1", (MS,))
    gone = store.session(3)
    part(database.connection, 2, 3, turns=8, last=MS)  # 3 more
    database.connection.execute("UPDATE files SET offset = 16 WHERE id = 2")
    grown = store.session(3)
    settled_at(store, 3, {**looked, 2: LookedTo(16, "aabbccddeeff0011")})
    again = store.session(3)
    database.connection.execute("UPDATE files SET gone_at = NULL WHERE id = 1")
    back = store.session(3)

    assert [0, 3, 0, 4] == [session.new_turns for session in (gone, grown, again, back)]


def test_a_gone_file_whose_look_kept_no_counts_counts_whole(database: Database) -> None:
    """A look of an older version kept only how far it went."""
    store = SqliteDistilStore(database)
    settled_at(store, 3, {1: LookedTo(10, "aabbccddeeff0011")})
    database.connection.execute(
        'UPDATE distil_sessions SET offsets = \'{"1": [10, "aabbccddeeff0011"]}\' WHERE session = 3'
    )
    database.connection.execute("UPDATE files SET offset = 20, gone_at = ? WHERE id = 1", (MS,))

    assert (7, 7) == (store.session(3).user_turns, store.session(3).look.user_turns)


def test_a_file_that_went_unseen_does_not_count(database: Database) -> None:
    """Nobody looked at it, so no look's counts hold it."""
    store = SqliteDistilStore(database)
    database.connection.execute("UPDATE files SET gone_at = ? WHERE id = 1", (MS,))
    settled_at(store, 3, {1: UNREAD, 2: LookedTo(10, "aabbccddeeff0011")})

    assert (5, 5) == (store.session(3).user_turns, store.session(3).look.user_turns)


def test_sub_agents_count_as_long_as_the_session_itself_is_there(database: Database) -> None:
    """No look reads their files, so a look's counts hold them whether they are there or pruned."""
    store = SqliteDistilStore(database)
    database.connection.execute("UPDATE parts SET side = 1 WHERE file = 1 AND session = 3")
    settled_at(store, 3, {2: LookedTo(10, "aabbccddeeff0011")})
    database.connection.execute("UPDATE files SET gone_at = ? WHERE id = 1", (MS,))
    database.connection.execute("UPDATE parts SET tool_calls = '{\"Bash\": 6}' WHERE file = 2 AND session = 3")
    grown = store.session(3)
    settled_at(store, 3, {2: LookedTo(10, "aabbccddeeff0011")})
    again = store.session(3)
    database.connection.execute("UPDATE files SET gone_at = NULL WHERE id = 1")
    back = store.session(3)
    database.connection.execute("UPDATE files SET gone_at = ?", (MS,))

    assert [2, 0, 0] == [session.new_calls for session in (grown, again, back)]
    assert 6 == store.session(3).tool_calls  # of its own file what was looked at, and nobody can look at more


def test_an_outcome_that_cannot_be_kept_whole_is_not_kept_at_all(database: Database) -> None:
    """The session stays due, its answer stays kept, and the log has no line."""
    store = SqliteDistilStore(database)
    one = store.queued(NOW)[0]
    store.keep_answer(one.row, b"{}")
    settled = Settled(session=one, state="updated", reason="", at=NOW, through_ms=1, offsets={}, told={"bad": {1, 2}})

    with pytest.raises(TypeError):
        store.settle(settled)

    assert (b"{}", None) == (store.session(one.row).answer, store.session(one.row).look.state)
    assert [] == store.log()


def test_failures_are_counted_and_taken_back(database: Database) -> None:
    """What is no fault of the session leaves it as due as it was; five of its own put it aside until somebody asks."""
    store = SqliteDistilStore(database)
    one, two, _ = store.queued(NOW)
    store.judge([Judged(one.row, one.touches, "due", "", None, 1), Judged(two.row, two.touches, "due", "", None, 2)])
    store.failed(one, state="error", reason="down", at=NOW, counts=False, retry_at=None)
    store.failed(two, state="invalid", reason="bad", at=NOW, counts=True, retry_at=NOW, aside=True)

    assert [one.row] == store.due()
    assert (1, 1) == store.totals()
    assert ["two"] == [session.session_id for session in store.aside()]
    assert [("pi", "two")] == store.retry(None)
    assert [] == store.aside()
    assert 0 == store.session(two.row).look.failures


def test_sessions_are_found_by_what_a_person_says(database: Database) -> None:
    """By id, by host and id, by a beginning; several are all returned, and lineage goes back to the first."""
    store = SqliteDistilStore(database)

    assert ["one"] == [session.session_id for session in store.find("one")]
    assert ["two"] == [session.session_id for session in store.find("pi:two")]
    assert ["both"] == [session.session_id for session in store.find("b")]
    assert [] == store.find("%")
    assert "one" == store.lineage("pi", "two")
    assert "both" == store.lineage("pi", "both")


def test_the_migration_takes_up_what_was_read_before(tmp_path: Path) -> None:
    """A database from before has its sessions in the queue, each once."""
    from curatord.adapters.store.schema import MIGRATIONS

    connection = sqlite3.connect(tmp_path / "old.db", isolation_level=None)
    for migration in MIGRATIONS[:4]:
        for statement in migration.statements:
            connection.execute(statement)
    connection.execute("INSERT INTO sources (id, host, path, first_seen_at) VALUES (1, 'pi', '/p', 5)")
    connection.execute(
        "INSERT INTO files (id, source, path, dev, ino, size, mtime_ns, offset, head, tail, state)"
        " VALUES (1, 1, '/p/1', 0, 1, 10, 1, 10, x'aa', x'', x'')"
    )
    connection.execute("INSERT INTO sessions (id, host, session_id, kind) VALUES (1, 'pi', 'one', 'person')")
    part(connection, 1, 1, turns=3, last=MS)
    for migration in MIGRATIONS[4:]:
        for statement in migration.statements:
            connection.execute(statement)

    assert [(1, 0, MS - 1000)] == connection.execute("SELECT session, look_at, since FROM distil_sessions").fetchall()
    connection.close()

"""Another program's database is read without a trace, beside a live writer, and from where nothing may be written."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sqlite3
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from curatord.adapters.sources.sqlite_read import DatabaseFile, InUseError, way_to_open
from curatord.errors import TranscriptError
from tests.hermes_home import HermesHome
from tests.scanned import Scanner, traces

SPAWN = multiprocessing.get_context("spawn")


def a_database(folder: Path, *, rows: int = 10, wal: bool = True) -> Path:
    """Make a database in *folder* that nobody has open, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "state.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if wal:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(rows)])
    return path


def count(file: DatabaseFile) -> tuple[str, int]:
    """Return how the database was opened and how many rows were seen."""
    with file.open() as reading:
        rows = reading.connection.execute("SELECT count(*) FROM t").fetchone()[0]
        reading.check()
        return reading.way, rows


@pytest.mark.parametrize(
    ("companions", "expected"),
    [
        ({}, "immutable"),
        ({"-wal": 0}, "immutable"),
        ({"-wal": 100}, "copy"),
        ({"-wal": 100, "-shm": 32768}, "shared"),
        ({"-wal": 0, "-shm": 32768}, "shared"),
        ({"-shm": 32768}, "immutable"),
        ({"-journal": 0}, "immutable"),
        ({"-journal": 512}, "shared"),
    ],
)
def test_how_a_database_is_opened(companions: dict[str, int], expected: str) -> None:
    """What stands beside it says how."""
    assert expected == way_to_open(companions)


@pytest.mark.parametrize("wal", [True, False])
def test_an_idle_database_is_read_without_a_trace(tmp_path: Path, wal: bool) -> None:
    """Not a byte, mode or time changes, and no file appears."""
    path = a_database(tmp_path / "db", wal=wal)
    before = traces(path.parent)

    assert ("immutable", 10) == count(DatabaseFile(str(path)))
    assert before == traces(path.parent)


def test_beside_a_live_writer_only_the_shm_may_be_touched(tmp_path: Path) -> None:
    """Rows that are still in the WAL are seen; the database, the WAL and the folder stay as they are."""
    path = a_database(tmp_path / "db")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("INSERT INTO t VALUES (11)")
        before = traces(path.parent, but=("state.db-shm",))

        assert ("shared", 11) == count(DatabaseFile(str(path)))
        assert before == traces(path.parent, but=("state.db-shm",))
        writer.execute("INSERT INTO t VALUES (12)")
        assert ("shared", 12) == count(DatabaseFile(str(path)))


def crashed(tmp_path: Path, *, shm: bool) -> Path:
    """Return a database whose writer crashed: with a full WAL, with or without its index."""
    path = a_database(tmp_path / "live")
    target = tmp_path / "db"
    target.mkdir()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("INSERT INTO t VALUES (11)")
        for suffix in ("", "-wal", *(("-shm",) if shm else ())):
            (target / f"state.db{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    return target / "state.db"


def test_what_a_crash_left_is_read_from_a_private_copy(tmp_path: Path) -> None:
    """A WAL without its index would be recovered in place: a copy of mode 0600 is, and it is gone afterwards."""
    path = crashed(tmp_path, shm=False)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = traces(path.parent)
    file = DatabaseFile(str(path), scratch=str(scratch))

    assert ("copy", 11) == count(file)
    copies = [copy for copy in scratch.rglob("*") if copy.is_file()]
    assert {0o600} == {stat.S_IMODE(copy.stat().st_mode) for copy in copies if not copy.name.endswith("-shm")}
    assert {0o700} == {stat.S_IMODE(folder.stat().st_mode) for folder in scratch.iterdir()}
    inodes = {copy.name: copy.stat().st_ino for copy in copies}
    assert ("copy", 11) == count(file)
    assert inodes["copy.db"] == next(scratch.rglob("copy.db")).stat().st_ino  # not changed: not copied again
    file.release()
    assert [] == list(scratch.iterdir())
    assert before == traces(path.parent)


def test_a_crash_with_its_index_loses_nothing(tmp_path: Path) -> None:
    """Database and WAL stay as they are, and all rows are seen."""
    path = crashed(tmp_path, shm=True)
    before = traces(path.parent, but=("state.db-shm",))

    assert 11 == count(DatabaseFile(str(path)))[1]
    assert before == traces(path.parent, but=("state.db-shm",))


def test_a_hot_journal_is_rolled_back_in_a_copy(tmp_path: Path) -> None:
    """A writer of the older kind that died in a transaction: its half-written pages are not believed, nor mended."""
    path = a_database(tmp_path / "live", rows=2000, wal=False)
    target = tmp_path / "db"
    target.mkdir()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 2")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE t SET x = x + 1000000")
        for suffix in ("", "-journal"):
            (target / f"state.db{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
        writer.execute("ROLLBACK")
    # SQLite marks a journal as complete only when it is synced; a copy of an unsynced one counts as none.
    before = traces(target)
    file = DatabaseFile(str(target / "state.db"))
    with file.open() as reading:
        total = reading.connection.execute("SELECT count(*) FROM t").fetchone()[0]
    file.release()

    assert 2000 == total
    assert before == traces(target)


def test_a_locked_database_is_tried_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody holds it exclusively: that is "later", within the timeout, not "broken"."""
    monkeypatch.setattr("curatord.adapters.sources.sqlite_read.BUSY_TIMEOUT_S", 0.2)
    home = HermesHome(tmp_path / "home", wal=False)
    home.session("s")
    home.user("s", "hello")
    scanner = Scanner(tmp_path / "state", ("hermes", home.path))
    home.db.execute("PRAGMA cache_size = 1")
    home.db.execute("BEGIN EXCLUSIVE")
    home.db.execute("CREATE TABLE filler AS SELECT * FROM messages")
    file = DatabaseFile(str(home.file))

    scanner.scan()
    if file_is_hot := Path(f"{home.file}-journal").exists():
        with pytest.raises(InUseError), file.open() as reading:
            reading.connection.execute("SELECT count(*) FROM messages").fetchone()
        assert ["waiting"] == [note.split(":")[0] for note in scanner.notes]
        assert {} == scanner.counts()
    home.db.execute("ROLLBACK")

    assert file_is_hot
    assert {"s": (1, 0)} == scanner.scan().turns()
    assert [] == scanner.notes
    home.close()
    scanner.close()


def test_a_file_that_changes_under_an_immutable_reading_is_noticed(tmp_path: Path) -> None:
    """The check behind the reading tells that what was read is void."""
    path = a_database(tmp_path / "db")
    with pytest.raises(Exception, match="changed while it was read"), DatabaseFile(str(path)).open() as reading:
        reading.connection.execute("SELECT count(*) FROM t").fetchone()
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
            writer.execute("INSERT INTO t VALUES (12)")
        reading.check()


def test_no_database_is_said_so(tmp_path: Path) -> None:
    """Something else under its name is a transcript's error with SQLite's reason, nothing is not found."""
    (tmp_path / "text").write_text("x" * 5000)
    with pytest.raises(TranscriptError, match="not a database"):
        count(DatabaseFile(str(tmp_path / "text")))
    with pytest.raises(FileNotFoundError):
        count(DatabaseFile(str(tmp_path / "nothing")))


def as_nobody(path: str, scratch: str, answer: str) -> None:
    """Read the database as a user who may not write its folder, and leave what was seen in *answer*."""
    os.setuid(65534)
    file = DatabaseFile(path, scratch=scratch)
    told = count(file)
    file.release()
    with open(answer, "w") as out:
        out.write(repr(told))


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("shm", [True, False])
def test_a_folder_that_may_not_be_written(tmp_path: Path, shm: bool) -> None:
    """Another user's live or crashed database is read all the same, from a private copy where it must be."""
    path = crashed(tmp_path, shm=shm)
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o777)
    scratch.chmod(0o777)
    answer = scratch / "answer"
    for folder in [path.parent, *list(path.parent.parents)[:-1]]:
        # The reader must get through to it; pytest makes its folders private.
        if not folder.stat().st_mode & 0o005 and str(folder).startswith(str(tmp_path.parent.parent.parent)):
            folder.chmod(folder.stat().st_mode | 0o055)
    before = traces(path.parent)
    process = SPAWN.Process(target=as_nobody, args=(str(path), str(scratch), str(answer)))
    process.start()
    process.join(60)

    assert 0 == process.exitcode
    assert "11)" in answer.read_text()
    assert before == traces(path.parent)
    assert [answer] == list(scratch.iterdir())


def write_rows(home: str, total: int) -> None:
    """Write messages one by one as a live host does, with now and then a compaction or a checkpoint."""
    file = Path(home) / "state.db"
    connection = sqlite3.connect(file, isolation_level=None, timeout=30)
    for n in range(total):
        connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', ?, ?)",
            (f"{n} " + "z" * (n % 4000), 1_740_830_400.0 + n),
        )
        if n % 50 == 49:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if n % 120 == 119:
            # As if the host had ended and begun again: the WAL goes and comes.
            connection.close()
            time.sleep(0.01)
            connection = sqlite3.connect(file, isolation_level=None, timeout=30)
    connection.close()


def test_a_live_writer_in_another_process(tmp_path: Path) -> None:
    """Scanned all the while, every row counts once, and the writer is never kept from writing."""
    home = HermesHome(tmp_path / "home")
    home.session("s")
    home.close()
    total = 600
    scanner = Scanner(tmp_path / "state", ("hermes", home.path))
    process = SPAWN.Process(target=write_rows, args=(str(home.path), total))
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
    assert {"s": (total, 0)} == scanner.scan().turns()
    scanner.close()


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let spawned processes find the tests."""
    root = str(Path(__file__).resolve().parents[3])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])]))
    if root not in sys.path:
        monkeypatch.syspath_prepend(root)
    yield

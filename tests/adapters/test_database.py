"""Opening the state database: made once, damaged ones set aside, whoever had the old one open finds out."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from curatord.adapters.lock import work_lock
from curatord.adapters.store import damage
from curatord.adapters.store.curation import SqliteCurationStore
from curatord.adapters.store.database import FILE_NAME, Database, open_database
from curatord.adapters.store.ingest import IngestStore
from curatord.errors import StateCorruptError, StateError

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def opened(state: Path) -> Database:
    return open_database(state, now=NOW)


def filled(state: Path) -> Path:
    """Make a database with a small fact in it, close it, and return its path."""
    database = opened(state)
    SqliteCurationStore(database=database).set_meta("who", "first")
    database.close()
    return state / FILE_NAME


def overwrite_root(path: Path, table: str) -> None:
    """Overwrite the first page of *table*, as a failing disk does."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xa5" * size)


def aside(state: Path) -> list[Path]:
    return [path for path in state.glob(f"{FILE_NAME}.damaged-*") if not path.name.endswith(("-wal", "-shm"))]


@pytest.mark.parametrize("table", ["skills", "runs"])
def test_damage_met_while_asking_is_mended_by_the_next_opening(tmp_path: Path, table: str) -> None:
    """The one who meets a broken page gets an error, the next who opens it for writing a fresh database."""
    path = filled(tmp_path)
    overwrite_root(path, table)
    store = SqliteCurationStore(database=opened(tmp_path))
    with pytest.raises(StateCorruptError):
        store.skills() if table == "skills" else store.runs()
    store.database.close()

    database = opened(tmp_path)

    assert database.rebuilt_from == aside(tmp_path)[0]
    assert SqliteCurationStore(database=database).meta("who") is None
    assert {} == SqliteCurationStore(database=database).skills()


def test_damage_met_by_the_ingest_is_mended_too(tmp_path: Path) -> None:
    """Writing what was read into a broken table leaves the same mark."""
    path = filled(tmp_path)
    overwrite_root(path, "files")
    database = opened(tmp_path)
    with pytest.raises(StateCorruptError):
        IngestStore(database).gone([1], now_ms=0)
    database.close()

    assert opened(tmp_path).rebuilt_from is not None


def test_looking_at_a_marked_database_mends_nothing(tmp_path: Path) -> None:
    """A command that only looks says what is wrong and leaves the file where it is."""
    path = filled(tmp_path)
    overwrite_root(path, "skills")
    looking = open_database(tmp_path, now=NOW, read_only=True)
    with pytest.raises(StateCorruptError):
        SqliteCurationStore(database=looking).skills()

    with pytest.raises(StateCorruptError):
        open_database(tmp_path, now=NOW, read_only=True)

    assert path.exists()
    assert [] == aside(tmp_path)


def test_a_mark_on_a_sound_database_is_taken_away(tmp_path: Path) -> None:
    """What one process thought damaged is read whole before anything is set aside."""
    path = filled(tmp_path)
    database = opened(tmp_path)
    error = sqlite3.DatabaseError("malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    assert isinstance(database.failure(error), StateCorruptError)
    database.close()

    again = opened(tmp_path)

    assert "first" == SqliteCurationStore(database=again).meta("who")
    assert damage.marked(path) is None


def test_setting_aside_waits_for_the_work_lock(tmp_path: Path) -> None:
    """While somebody does an action, nobody takes the database away from under it."""
    path = filled(tmp_path)
    path.write_bytes(b"no database" * 1000)
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.read(told, 1)  # until the lock is held
            opened(tmp_path)
        os._exit(0)
    with work_lock(tmp_path):
        os.write(tell, b"1")
        time.sleep(0.3)
        assert [] == aside(tmp_path)
    os.waitpid(pid, 0)
    os.close(told)
    os.close(tell)

    assert 1 == len(aside(tmp_path))


@pytest.mark.parametrize("cut", range(3))
def test_a_cut_while_setting_aside_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    """Wherever a kill falls between the renames, the next opening begins anew and knows where the old file is."""
    path = filled(tmp_path)
    path.write_bytes(b"no database" * 1000)
    path.with_name(path.name + "-wal").write_bytes(b"left")
    real = Path.rename
    done: list[Path] = []

    def rename(self: Path, target: Path) -> Path:
        if len(done) == cut:
            raise SystemExit(137)
        done.append(self)
        return real(self, target)

    with monkeypatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr(Path, "rename", rename)
        opened(tmp_path)

    database = opened(tmp_path)

    assert [database.rebuilt_from] == aside(tmp_path)
    assert b"no database" == aside(tmp_path)[0].read_bytes()[:11]
    database.mended()
    database.close()
    assert opened(tmp_path).rebuilt_from is None


def test_a_database_replaced_by_another_process_is_not_written_any_more(tmp_path: Path) -> None:
    """Who had it open finds out before a commit would go into the file that was set aside."""
    path = filled(tmp_path)
    old = opened(tmp_path)
    assert old.is_current()
    path.rename(path.with_name("elsewhere"))
    opened(tmp_path).close()

    assert not old.is_current()
    with pytest.raises(StateError, match="replaced"):
        SqliteCurationStore(database=old).set_meta("who", "second")


def test_a_database_known_to_be_damaged_is_not_current(tmp_path: Path) -> None:
    """A process that lives long opens it anew, which is what mends it."""
    path = filled(tmp_path)
    database = opened(tmp_path)
    error = sqlite3.DatabaseError("malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    damage.mark(path, error)

    assert not database.is_current()

"""Decisions survive a database that is lost, at whatever moment the one that brings them back is killed."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from curatord.adapters.store.curation import SqliteCurationStore
from curatord.adapters.store.database import FILE_NAME
from curatord.errors import StateCorruptError
from tests.adapters.test_database import overwrite_root
from tests.e2e.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "demo")


def lose_database(world: World) -> None:
    world.parts.close()
    for path in world.state.glob(f"{FILE_NAME}*"):
        path.unlink()
    world.open()


def test_a_kill_between_new_database_and_refill(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next start brings the decisions back, since nothing says that it was done."""
    world.app.pin(["nginx-reload"])
    world.app.importance("docker-cleanup", "critical")
    lose_database(world)

    def killed(*_: object, **__: object) -> int:
        raise SystemExit(137)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteCurationStore, "refill", killed)
        with pytest.raises(SystemExit):
            world.app.pause()
    assert (world.state / FILE_NAME).exists()
    world.reopen()
    world.run()

    assert world.skill("nginx-reload")["pinned"]
    assert "critical" == world.skill("docker-cleanup")["importance"]


def test_unreadable_decisions_stop_everything_until_they_are_mended(world: World) -> None:
    """Nothing goes on with a database that lacks them, in the same process or the next; then they are all there."""
    world.app.pin(["nginx-reload"])
    lose_database(world)
    file = world.state / "decisions.json"
    good = file.read_bytes()
    file.write_bytes(b"{ cut")
    for _ in range(2):
        with pytest.raises(StateCorruptError):
            world.run()
    world.reopen()
    with pytest.raises(StateCorruptError):
        world.run()
    file.write_bytes(good)
    world.run()

    assert world.skill("nginx-reload")["pinned"]


def test_many_processes_at_the_first_start_share_one_database(world: World) -> None:
    """Each of them finds the decisions, in the same file."""
    world.app.pin(["nginx-reload"])
    lose_database(world)
    children = []
    for _ in range(6):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                pinned = [key for key, record in _store(world).skills().items() if record.pinned]
                code = 0 if len(pinned) == 1 and world.parts.database.is_current() else 2
            finally:
                os._exit(code)
        children.append(pid)

    assert [0] * 6 == [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    assert [] == list(world.state.glob("*.damaged-*"))


def _store(world: World) -> SqliteCurationStore:
    world.parts.database  # noqa: B018 - opened for writing first
    return world.parts.store


@pytest.mark.parametrize("table", ["skills", "runs", "files", "package_readings"])
def test_damage_anywhere_is_mended_by_the_second_command(world: World, table: str) -> None:
    """Also where no command reads the page at its start: one fails and says so, the next sets it aside and goes on."""
    world.app.pin(["nginx-reload"])
    world.run()
    world.parts.close()
    overwrite_root(world.state / FILE_NAME, table)
    for _ in range(3):
        world.open()
        try:
            with world.parts.own_errors():
                record = world.app.run(dry_run=False, respect_gates=False, llm=True, library=None)
        except StateCorruptError:
            continue
        finally:
            world.parts.close()
        if record["outcome"] != "failed":
            break
    else:
        pytest.fail("it was never mended")
    world.open()

    assert 1 == len([p for p in world.state.glob("*.damaged-*") if not p.name.endswith(("-wal", "-shm"))])
    assert world.skill("nginx-reload")["pinned"]
    assert any("damaged" in warning for warning in record["warnings"])


FLIPPED = {
    "a word that is none": "UPDATE skills SET importance = 'normad'",
    "a run's outcome": "UPDATE runs SET outcome = 'oj'",
    "a time of another type": "UPDATE skills SET state_since = 'soon'",
    "no JSON": "UPDATE sessions SET cwds = '[\"/a'",
    "no UTF-8": "UPDATE skills SET archive_reason = CAST(x'ff61' AS TEXT)",
    "an event's kind": "UPDATE events SET kind = 'usd'",
}


@pytest.mark.parametrize("damage", FLIPPED.values(), ids=FLIPPED)
def test_a_bit_that_flipped_inside_a_value_is_mended_too(world: World, damage: str) -> None:
    """SQLite finds no fault in such a file; what reads the value fails and says so, and the next begins anew."""
    world.app.pin(["nginx-reload"])
    world.run()
    world.parts.close()
    with contextlib.closing(sqlite3.connect(world.state / FILE_NAME)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute(damage)
        db.commit()
    failed = []
    for _ in range(3):
        world.open()
        try:
            with world.parts.own_errors():
                record = world.app.run(dry_run=False, respect_gates=False, llm=True, library=None)
                world.app.events(host=None, skill=None, since=None)
                world.app.sessions(host=None, since=None)
        except StateCorruptError as error:
            failed.append(str(error))
            continue
        finally:
            world.parts.close()
        if record["outcome"] != "failed":
            break
    else:
        pytest.fail(f"it was never mended: {failed}")
    world.open()

    assert 1 >= len(failed)
    assert all("is damaged" in words for words in failed)
    assert 1 == len([p for p in world.state.glob("*.damaged-*") if not p.name.endswith(("-wal", "-shm"))])
    assert world.skill("nginx-reload")["pinned"]


def test_an_error_of_our_own_sets_nothing_aside(world: World) -> None:
    """A database whose values are all in order is not blamed for it."""
    world.run()
    with pytest.raises(KeyError, match="ours"), world.parts.own_errors():
        raise KeyError("ours")
    world.run()

    assert [] == list(world.state.glob("*.damage*"))


def test_a_daemon_opens_the_database_that_replaced_its_own(world: World) -> None:
    """It does not go on with the file that another process set aside."""
    world.tick()
    lose = world.state / FILE_NAME
    lose.rename(lose.with_name("elsewhere"))

    world.tick()

    assert lose.exists()
    assert world.parts.database.is_current()

"""Events are hints: they come soon where they can, and every doubt asks for a rescan (bugs G, real inotify)."""

from __future__ import annotations

import errno
import logging
import queue
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from watchdog.observers.api import BaseObserver

from curatord.adapters.sources.sqlite_read import DatabaseFile
from curatord.adapters.watch import RESCAN, SETTLED_S, Hint, RootState, Watcher

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux' own")
WAIT_S = 10.0


class Inbox:
    """Collects hints and waits for one."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[Hint] = queue.SimpleQueue()

    def wait_for(self, wanted: Hint) -> bool:
        """Return whether *wanted* comes within the time that a busy machine may need."""
        while True:
            try:
                hint = self.queue.get(timeout=WAIT_S)
            except queue.Empty:
                return False
            if hint == wanted:
                return True

    def drain(self, quiet_s: float = 0.3) -> list[Hint]:
        """Return what comes until it has been quiet for *quiet_s* seconds."""
        hints: list[Hint] = []
        while True:
            try:
                hints.append(self.queue.get(timeout=quiet_s))
            except queue.Empty:
                return hints


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def watch(inbox: Inbox) -> Iterator[Callable[..., Watcher]]:
    """Return a maker of started watchers that are stopped at the end."""
    made: list[Watcher] = []

    def make(*roots: Path, mode: Literal["auto", "events", "poll"] = "auto", retry_after_s: float = 600) -> Watcher:
        watcher = Watcher(roots, inbox.queue.put, mode=mode, retry_after_s=retry_after_s)
        watcher.start()
        made.append(watcher)
        return watcher

    yield make
    for watcher in made:
        watcher.stop()


def test_an_append_is_announced(tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """The path that grew is named."""
    file = tmp_path / "deep" / "er" / "s.jsonl"
    file.parent.mkdir(parents=True)
    file.touch()
    watch(tmp_path)

    with file.open("a") as handle:
        handle.write("{}\n")

    assert inbox.wait_for(str(file))


def test_a_rename_names_where_the_file_is_now(tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """Editors save by temporary file and rename: the destination counts (B122)."""
    (tmp_path / "s.tmp").write_text("{}\n")
    watch(tmp_path)

    (tmp_path / "s.tmp").rename(tmp_path / "s.jsonl")

    assert inbox.wait_for(str(tmp_path / "s.jsonl"))


def test_reading_wakes_nobody(tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """A scan that reads must not cause the next one (B121)."""
    file = tmp_path / "s.jsonl"
    file.write_text("{}\n")
    watch(tmp_path)
    inbox.drain()

    for _ in range(20):
        file.read_text()
        list(tmp_path.iterdir())

    assert [] == inbox.drain()


def test_reading_a_live_database_wakes_nobody(tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """SQLite opens the write-ahead log for writing even to read it; closing it again is no change (B121)."""
    path = tmp_path / "state.db"
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "c.execute('PRAGMA journal_mode = wal'); c.execute('CREATE TABLE t (x)'); "
        "c.execute('INSERT INTO t VALUES (1)'); "
        "print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert b"ready\n" == writer.stdout.readline()
        watch(tmp_path)
        inbox.drain()

        ways = []
        for _ in range(10):
            with DatabaseFile(str(path)).open() as reading:
                ways.append(reading.way)
                reading.connection.execute("SELECT * FROM t").fetchall()
        hints = inbox.drain(quiet_s=1.2)

    assert {"shared"} == set(ways)
    assert [] == hints


def test_a_missing_root_is_waited_for(tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """Start succeeds without it, and it is watched once it is there (B124)."""
    root = tmp_path / "later"
    watcher = watch(root)
    before = watcher.states()
    root.mkdir()

    after = watcher.check()

    assert [RootState(path=str(root), how="waiting", reason="it does not exist yet")] == before
    assert [RootState(path=str(root), how="events")] == after
    assert inbox.wait_for(RESCAN)


def test_a_root_made_anew_is_attached_anew(tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """A quick delete and create does not leave the daemon deaf (B117)."""
    root = tmp_path / "root"
    root.mkdir()
    watcher = watch(root)
    root.rename(tmp_path / "aside")  # keeps the inode in use, so that the new folder cannot get the same one
    root.mkdir()

    watcher.check()
    inbox.drain()
    (root / "s.jsonl").write_text("{}\n")

    assert inbox.wait_for(str(root / "s.jsonl"))


def test_a_linked_root_is_watched(tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """Roots are resolved first (B125)."""
    real = tmp_path / "data"
    real.mkdir()
    (tmp_path / "sessions").symlink_to(real)
    watch(tmp_path / "sessions")

    (real / "s.jsonl").write_text("{}\n")

    assert inbox.wait_for(str(real / "s.jsonl"))


def test_a_lost_queue_asks_for_a_rescan(tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """The library only logs an overflow; that log is heard (B116), once until the next check."""
    watcher = watch(tmp_path)
    inbox.drain()

    for _ in range(3):
        logging.getLogger("watchdog.observers.inotify_c").warning("Inotify queue overflowed; events were lost")
    hints = inbox.drain()
    watcher.check()

    assert [RESCAN] == hints
    assert 1 == watcher.overflows


def test_a_dead_observer_is_replaced(tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """A thread that died is started anew, with a rescan, and hears again (B118)."""
    watcher = watch(tmp_path)
    assert watcher._observer is not None
    watcher._observer.stop()
    watcher._observer.join(timeout=WAIT_S)

    watcher.check()
    inbox.drain()
    (tmp_path / "s.jsonl").write_text("{}\n")

    assert 1 == watcher.restarts
    assert inbox.wait_for(str(tmp_path / "s.jsonl"))


def old_change(watcher: Watcher, file: Path) -> str:
    """Return the path of a file that changed well after its root was attached, and well before now."""
    file.touch()
    for root in watcher._roots:
        root.announced = False
        root.attached_at -= 2 * SETTLED_S
    return str(file)


def deafen(watcher: Watcher, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two rescans find changes that are old enough and that no event named."""
    path = old_change(watcher, file)
    at = file.stat().st_ctime
    monkeypatch.setattr("curatord.adapters.watch._changed_at", lambda _: at - SETTLED_S - 0.1)
    for _ in range(2):
        watcher._roots[0].announced = False
        watcher.unannounced([path])


def test_a_deaf_root_counts_as_polled(
    tmp_path: Path, watch: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settled changes that only the rescan finds, twice, mean that no events arrive (B119)."""
    watcher = watch(tmp_path)

    deafen(watcher, tmp_path / "s.jsonl", monkeypatch)

    assert ["poll"] == [state.how for state in watcher.check()]


def test_a_rescan_that_wins_the_race_is_no_deafness(tmp_path: Path, watch: Callable[..., Watcher]) -> None:
    """Events come half a second late, so a change of just now that has none yet says nothing."""
    watcher = watch(tmp_path)
    for number in range(4):
        file = tmp_path / f"{number}.jsonl"
        file.touch()
        watcher._roots[0].announced = False  # the event is still held back
        watcher.unannounced([str(file)])

    assert ["events"] == [state.how for state in watcher.check()]


def test_what_changed_before_the_watch_is_no_deafness(tmp_path: Path, watch: Callable[..., Watcher]) -> None:
    """The first rescans find what happened while no daemon ran; no event of that was ever due."""
    file = tmp_path / "s.jsonl"
    file.touch()
    time.sleep(0.05)
    watcher = watch(tmp_path)
    for _ in range(3):
        watcher.unannounced([str(file)])

    assert ["events"] == [state.how for state in watcher.check()]


def test_a_polled_root_is_tried_again(
    tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A doubt that was none, or descriptors that were used up for a moment, do not last until the next start."""
    watcher = watch(tmp_path, retry_after_s=0.2)
    deafen(watcher, tmp_path / "s.jsonl", monkeypatch)
    before = watcher.check()
    time.sleep(0.25)

    after = watcher.check()
    inbox.drain()
    (tmp_path / "t.jsonl").touch()

    assert ["poll"] == [state.how for state in before]
    assert ["events"] == [state.how for state in after]
    assert inbox.wait_for(str(tmp_path / "t.jsonl"))


def test_an_observer_that_could_not_start_is_tried_again(
    tmp_path: Path, watch: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of inotify instances is said, polled meanwhile, and overcome when it passes."""
    real = BaseObserver.schedule

    def no_more(*_args: object, **_options: object) -> None:
        raise OSError(errno.EMFILE, "too many")

    monkeypatch.setattr(BaseObserver, "schedule", no_more)
    watcher = watch(tmp_path, retry_after_s=0.0)
    before = watcher.states()
    monkeypatch.setattr(BaseObserver, "schedule", real)

    assert "max_user_instances" in before[0].reason
    assert ["events"] == [state.how for state in watcher.check()]


def test_roots_follow_without_a_gap(tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """A place that is new is watched, one that is no longer named is let go, one that stays is not touched."""
    for name in ("stays", "goes", "comes"):
        (tmp_path / name).mkdir()
    watcher = watch(tmp_path / "stays", tmp_path / "goes")
    kept = watcher._roots[0].watch

    watcher.watch([tmp_path / "stays", tmp_path / "comes"])
    states = watcher.check()
    inbox.drain()
    for name in ("goes", "stays", "comes"):
        (tmp_path / name / "s.jsonl").touch()
    hints = inbox.drain(quiet_s=1.2)

    assert [str(tmp_path / "stays"), str(tmp_path / "comes")] == [state.path for state in states]
    assert kept is watcher._roots[0].watch
    assert {str(tmp_path / "stays" / "s.jsonl"), str(tmp_path / "comes" / "s.jsonl")} <= set(hints)
    assert str(tmp_path / "goes" / "s.jsonl") not in hints


def test_polling_sets_no_watch(tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """`watch: poll` leaves everything to the rescan."""
    watcher = watch(tmp_path, mode="poll")

    (tmp_path / "s.jsonl").write_text("{}\n")

    assert [] == inbox.drain()
    assert [RootState(path=str(tmp_path), how="poll", reason="configured")] == watcher.check()


def test_a_removed_tree_is_survived(tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """A root that goes away is waited for; the watcher lives."""
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    watcher = watch(root)

    shutil.rmtree(root)

    assert ["waiting"] == [state.how for state in watcher.check()]


def test_a_mount_without_events_is_polled_from_the_start(tmp_path: Path, inbox: Inbox) -> None:
    """Before a change was missed on it; the others are watched, and the reason is told."""
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.mkdir()
    own.mkdir()
    file_system = lambda path: "virtiofs" if path == str(shared) else "ext4"  # noqa: E731
    watcher = Watcher([shared, own], inbox.queue.put, mode="auto", file_system=file_system)
    watcher.start()
    try:
        (first, second) = watcher.check()
    finally:
        watcher.stop()

    assert ("poll", "events") == (first.how, second.how)
    assert "virtiofs" in first.reason


def test_who_asks_for_events_gets_them_there_too(tmp_path: Path, inbox: Inbox) -> None:
    """The agent may run on this side of the mount, and its user knows."""
    watcher = Watcher([tmp_path], inbox.queue.put, mode="events", file_system=lambda _: "nfs")
    watcher.start()
    try:
        states = watcher.check()
    finally:
        watcher.stop()

    assert ["events"] == [state.how for state in states]

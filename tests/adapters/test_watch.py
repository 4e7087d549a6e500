"""Events are hints: they come soon where they can, and every doubt asks for a rescan (bugs G, real inotify)."""

from __future__ import annotations

import logging
import queue
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from curatord.adapters.watch import RESCAN, Hint, RootState, Watcher

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

    def make(*roots: Path, mode: str = "auto") -> Watcher:
        watcher = Watcher(roots, inbox.queue.put, mode=mode)  # type: ignore[arg-type]  # the tests name good modes
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


def test_a_deaf_root_counts_as_polled(tmp_path: Path, watch: Callable[..., Watcher]) -> None:
    """Changes that only the rescan finds, twice in a row, mean that no events arrive (B119)."""
    watcher = watch(tmp_path)
    for _ in range(2):
        watcher._roots[0].announced = False
        watcher.unannounced([str(tmp_path / "s.jsonl")])

    assert ["poll"] == [state.how for state in watcher.check()]


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

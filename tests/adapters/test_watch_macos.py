"""What a Mac does to change events, simulated: watchdog's own code for it, and under it a stream that we feed."""

from __future__ import annotations

import importlib
import queue
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from curatord.adapters.true_path import true_path
from curatord.adapters.watch import RESCAN, Hint, Watcher

WAIT_S = 10.0
# FSEvents.h: kFSEventStreamEventFlag…
MUST_SCAN, USER_DROPPED, KERNEL_DROPPED, ROOT_CHANGED = 0x1, 0x2, 0x4, 0x20
CREATED, REMOVED, RENAMED, MODIFIED, IS_FILE, IS_DIR = 0x100, 0x200, 0x800, 0x1000, 0x10000, 0x20000

Feed = Callable[..., None]


def _flag(mask: int) -> property:
    return property(lambda event: bool(event.flags & mask))


class NativeEvent:
    """An event as watchdog's C module shows it."""

    def __init__(self, path: str, inode: int, flags: int, event_id: int) -> None:
        self.path, self.inode, self.flags, self.event_id = path, inode, flags, event_id

    must_scan_subdirs, is_user_dropped, is_kernel_dropped = _flag(MUST_SCAN), _flag(USER_DROPPED), _flag(KERNEL_DROPPED)
    is_root_changed = _flag(ROOT_CHANGED)
    is_created, is_removed, is_renamed, is_modified = _flag(CREATED), _flag(REMOVED), _flag(RENAMED), _flag(MODIFIED)
    is_directory = _flag(IS_DIR)
    is_inode_meta_mod, is_xattr_mod, is_owner_change = _flag(0x400), _flag(0x8000), _flag(0x4000)


class Stream:
    """A stream that says what it is fed."""

    made: ClassVar[list[Stream]] = []

    def __init__(self, paths: list[str], **_options: Any) -> None:
        self.paths = paths
        self.queue: queue.SimpleQueue[list[tuple[str, int, int]] | None] = queue.SimpleQueue()
        Stream.made.append(self)

    def run(self, callback: Callable[..., None], started: Callable[[], None]) -> None:
        started()
        while (batch := self.queue.get()) is not None:
            paths, inodes, flags = ([one[n] for one in batch] for n in range(3))
            callback(paths, inodes, flags, list(range(len(batch))))

    def stop(self) -> None:
        self.queue.put(None)


@pytest.fixture
def hints() -> queue.SimpleQueue[Hint]:
    return queue.SimpleQueue()


@pytest.fixture
def watcher(tmp_path: Path, hints: queue.SimpleQueue[Hint], monkeypatch: pytest.MonkeyPatch) -> Iterator[Watcher]:
    """Return a watcher over *tmp_path* as it is on a Mac."""
    fake = types.ModuleType("_watchdog_fsevents")
    vars(fake).update(NativeEvent=NativeEvent, Stream=Stream)
    monkeypatch.setitem(sys.modules, "_watchdog_fsevents", fake)
    monkeypatch.delitem(sys.modules, "watchdog.observers.fsevents", raising=False)
    Stream.made.clear()
    made = importlib.import_module("curatord.adapters.watch_macos").observer
    watcher = Watcher([tmp_path], hints.put, mode="auto", make_observer=made)
    watcher.start()
    yield watcher
    watcher.stop()
    sys.modules.pop("watchdog.observers.fsevents", None)


@pytest.fixture
def feed(watcher: Watcher) -> Feed:
    """Return what feeds its newest stream: paths with their flags, as one delivery."""

    def feed(*events: tuple[Path, int]) -> None:
        batch = [(str(path), path.stat().st_ino if path.exists() else 0, flags) for path, flags in events]
        Stream.made[-1].queue.put(batch)

    return feed


def told(hints: queue.SimpleQueue[Hint], wanted: Hint) -> bool:
    """Return whether *wanted* comes in the time that a busy machine may need."""
    while True:
        try:
            if hints.get(timeout=WAIT_S) == wanted:
                return True
        except queue.Empty:
            return False


@pytest.mark.parametrize("lost", [MUST_SCAN, MUST_SCAN | USER_DROPPED, MUST_SCAN | KERNEL_DROPPED])
def test_many_changes_in_one_word_ask_for_a_rescan(
    tmp_path: Path, feed: Feed, hints: queue.SimpleQueue[Hint], lost: int
) -> None:
    """The library raises nothing for it, though a whole folder of sessions may have been written."""
    feed((tmp_path, lost | IS_DIR))

    assert told(hints, RESCAN)


def test_created_changed_and_removed_in_one_is_a_hint_for_its_path(
    tmp_path: Path, feed: Feed, hints: queue.SimpleQueue[Hint]
) -> None:
    """Quick changes come as one event with all flags (bugs B123); what is there is looked at, whatever they say."""
    path = tmp_path / "s.jsonl"
    path.write_text("{}\n")
    feed((path, CREATED | MODIFIED | REMOVED | IS_FILE))

    assert told(hints, str(path))


def test_both_halves_of_a_rename_are_named(tmp_path: Path, feed: Feed, hints: queue.SimpleQueue[Hint]) -> None:
    """Also when the file came from outside, which is half a rename."""
    old, new, come = tmp_path / "s.tmp", tmp_path / "s.jsonl", tmp_path / "come.jsonl"
    new.write_text("{}\n")
    come.write_text("{}\n")
    inode = new.stat().st_ino
    Stream.made[-1].queue.put([(str(old), inode, RENAMED | IS_FILE), (str(new), inode, RENAMED | IS_FILE)])
    assert told(hints, str(new))

    feed((come, RENAMED | IS_FILE))
    assert told(hints, str(come))


def test_a_folder_that_came_in_whole_asks_for_a_rescan(
    tmp_path: Path, feed: Feed, hints: queue.SimpleQueue[Hint]
) -> None:
    """The kernel names the folder alone, and not what is in it."""
    folder = tmp_path / "project"
    folder.mkdir()
    feed((folder, RENAMED | IS_DIR))

    assert told(hints, RESCAN)


def test_a_stream_that_ended_is_begun_anew(
    tmp_path: Path, watcher: Watcher, feed: Feed, hints: queue.SimpleQueue[Hint]
) -> None:
    """A folder above was renamed and back: watchdog ends its stream, and the next look makes another."""
    feed((tmp_path, ROOT_CHANGED | IS_DIR))
    assert told(hints, RESCAN)
    for thread in threading.enumerate():
        if type(thread).__name__ == "Emitter":
            thread.join(WAIT_S)

    assert ["events"] == [state.how for state in watcher.check()]
    assert (1, 2) == (watcher.restarts, len(Stream.made))
    feed((tmp_path, MUST_SCAN | IS_DIR))
    assert told(hints, RESCAN)


def test_a_path_that_differs_in_case_is_the_kernels(tmp_path: Path) -> None:
    """On a volume that does not tell case, what is there has one name; what is not there yet keeps its own rest."""
    folder = tmp_path / "Projects"
    folder.mkdir()
    by_case = {str(folder).casefold(): str(folder), str(tmp_path).casefold(): str(tmp_path)}

    def kernel(path: str) -> str | None:
        return by_case.get(path.casefold())

    assert str(folder) == true_path(str(tmp_path / "pROJECTS"), kernels_name=kernel)
    assert str(folder / "New/x") == true_path(str(tmp_path / "projects/New/x"), kernels_name=kernel)
    assert str(tmp_path / "other") == true_path(str(tmp_path / "other"), kernels_name=kernel)


def test_elsewhere_only_links_are_followed(tmp_path: Path) -> None:
    """Where the kernel has no such question, case is part of a name."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert str(tmp_path / "real/X") == true_path(str(tmp_path / "link/X"), kernels_name=lambda _: None)

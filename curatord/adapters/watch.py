"""
Change events of the file system, as hints and nothing more.

The periodic rescan is the truth; an event only makes it come sooner. So everything here may fail, and the answer to
every doubt is the same: ask for a full rescan. What can go wrong, from bug reports of others (bugs G):

- A handler that raises kills the observer thread, and nothing says so: handlers here only put a hint into an inbox,
  and `check` looks whether the threads live, starts them anew and asks for a rescan.
- The kernel's queue overflows in a burst and the library only logs it: its log is listened to.
- macOS puts changes together into one word about a folder, which the library passes over: `watch_macos` hears it.
- Limits on watches and instances: the root is polled by the rescan instead, and the state says which limit.
- A root is missing, vanishes or is made anew: it is looked for at each `check`, known by device and inode.
- No events arrive at all (bind mounts of other systems, network shares): known kinds of mounts are polled from the
  start (`core.silent_mounts`), unless `events` is configured. Of others the rescan tells `unannounced` what it found
  changed that no event had named, and a root that keeps doing so counts as polled.
- Reading raises open and close events, and closing what was open for writing raises one more, changed or not: SQLite
  opens a `-wal` for writing to read it. Only changes are asked for, else a scan would wake itself for ever.
- Whatever made a root unwatchable may pass (descriptors used up for a moment, a doubt that was none): it is tried
  again after `RETRY_AFTER_S`.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from curatord.adapters.true_path import true_path
from curatord.adapters.vitals.mounts import file_system_of
from curatord.core.cheap import dataclass
from curatord.core.silent_mounts import is_silent

__all__ = ["RESCAN", "Hint", "RootState", "Watcher"]

# None of these is raised by reading; what is written raises a modification, so that closing it says nothing new.
# Directory modifications are left out: each file event brings one along.
_WANTED: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]
_MISSES_UNTIL_DEAF = 2
RETRY_AFTER_S = 600.0
# The library holds events back for half a second to pair renames, so a rescan may well see a fresh change first.
SETTLED_S = 2.0

Hint = str | None  # a path that may have changed, or RESCAN
RESCAN: Hint = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RootState:
    """How one root is watched: *how* is `events`, `poll` or `waiting` (it does not exist), with the reason in words."""

    path: str
    how: Literal["events", "poll", "waiting"]
    reason: str = ""


@dataclass(slots=True)
class _Root:
    path: Path
    watch: ObservedWatch | None = None
    identity: tuple[int, int] | None = None
    attached_at: float = 0.0  # seconds since the epoch, for comparing with file times and nothing else
    polled_because: str = ""
    polled_since: float = 0.0  # monotonic
    misses: int = 0
    announced: bool = False

    def poll(self, why: str) -> None:
        """Leave the root to the rescan for a while."""
        self.polled_because, self.polled_since, self.misses = why, time.monotonic(), 0


class _Handler(FileSystemEventHandler):
    """Puts what the event names into the inbox; it does nothing else, since an exception here would be fatal."""

    def __init__(self, root: _Root, notify: Callable[[Hint], None]) -> None:
        self._root = root
        self._notify = notify

    def dispatch(self, event: FileSystemEvent) -> None:
        self._root.announced = True
        if event.is_directory:
            self._notify(RESCAN)  # a folder that moves or goes says nothing of the files in it
            return
        for path in (event.src_path, event.dest_path):
            if path:
                self._notify(os.fsdecode(path))


class _LossListener(logging.Handler):
    """Hears the library say that it lost events or could not set a watch."""

    def __init__(self, notify: Callable[[Hint], None], lost: threading.Event) -> None:
        super().__init__(level=logging.WARNING)
        self._notify = notify
        self._lost = lost

    def emit(self, record: logging.LogRecord) -> None:
        self.lose()

    def lose(self) -> None:
        """Ask for a rescan, since something was not told."""
        if not self._lost.is_set():  # one rescan answers any number of losses before it
            self._lost.set()
            self._notify(RESCAN)


def _platforms_observer(lost: Callable[[], None]) -> BaseObserver:
    if sys.platform == "darwin":
        from curatord.adapters.watch_macos import observer

        return observer(lost)
    return Observer()


class Watcher:
    """
    Watches *roots* and calls *notify* with hints, from threads of its own.

    Args:
        roots: Folders or files, existing or not; links are resolved when they are attached.
        notify: Takes a hint; it must be quick and must not raise.
        mode: `auto` and `events` set watches, `poll` sets none. With `events` a root that cannot be watched is still
            scanned at each rescan; the mode only says what the user wants to hear about.
        retry_after_s: How long a root that could not be watched is left to the rescan.
        make_observer: Makes what watches, given what to call where events were lost; by default the platform's.
        file_system: Tells the type of the file system that a path lies on.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        notify: Callable[[Hint], None],
        *,
        mode: Literal["auto", "events", "poll"],
        retry_after_s: float = RETRY_AFTER_S,
        make_observer: Callable[[Callable[[], None]], BaseObserver] = _platforms_observer,
        file_system: Callable[[str], str] = file_system_of,
    ) -> None:
        self._file_system = file_system
        self._make_observer = make_observer
        self._roots = [_Root(path) for path in roots]
        self._notify = notify
        self._mode = mode
        self._retry_after_s = retry_after_s
        self._observer: BaseObserver | None = None
        self._lost = threading.Event()
        self._listener = _LossListener(notify, self._lost)
        self.restarts = 0
        self.overflows = 0

    def start(self) -> None:
        """Attach what can be attached; what cannot is said by `states`."""
        logging.getLogger("watchdog").addHandler(self._listener)
        logging.getLogger("watchdog").propagate = False  # what it has to say comes out as our own events
        if self._mode != "poll":
            self._new_observer()
            for root in self._roots:
                self._attach(root)

    def stop(self) -> None:
        """Detach everything and wait for the threads, for at most five seconds."""
        observer, self._observer = self._observer, None
        if observer is not None and observer.is_alive():
            observer.stop()
            observer.join(timeout=5)
        # Last, since the threads warn of events that come while they end, and nobody else listens.
        logging.getLogger("watchdog").removeHandler(self._listener)

    def watch(self, roots: Sequence[Path]) -> None:
        """Watch *roots* from now on; what is watched already goes on without a gap, the rest at the next `check`."""
        known = {root.path: root for root in self._roots}
        self._roots = [known.pop(path) if path in known else _Root(path) for path in dict.fromkeys(roots)]
        for root in known.values():
            self._detach(root)

    def check(self) -> list[RootState]:
        """Mend what broke since the last look, ask for a rescan where it did, and return how each root is watched."""
        if self._lost.is_set():
            self._lost.clear()
            self.overflows += 1
        if self._mode != "poll":
            for root in self._roots:
                if root.polled_because and time.monotonic() - root.polled_since >= self._retry_after_s:
                    root.polled_because = ""
            wanted = not self._roots or any(not root.polled_because for root in self._roots)
            if (self._observer is None and wanted) or (
                self._observer is not None and not self._healthy(self._observer)
            ):
                self.restarts += 1
                self._new_observer()
                self._notify(RESCAN)
            for root in self._roots:
                identity = _identity(root.path)
                if root.watch is not None and identity != root.identity:
                    self._detach(root)
                    self._notify(RESCAN)
                unwatched = root.watch is None and identity is not None and not root.polled_because
                if unwatched and self._attach(root):
                    self._notify(RESCAN)
        return self.states()

    def states(self) -> list[RootState]:
        """Return how each root is watched now."""
        result = []
        for root in self._roots:
            path = str(root.path)
            if self._mode == "poll":
                result.append(RootState(path=path, how="poll", reason="configured"))
            elif root.polled_because:
                result.append(RootState(path=path, how="poll", reason=root.polled_because))
            elif root.watch is None:
                result.append(RootState(path=path, how="waiting", reason="it does not exist yet"))
            else:
                result.append(RootState(path=path, how="events"))
        return result

    def unannounced(self, changed: Iterable[str]) -> None:
        """
        Learn from a rescan which paths it found *changed* although no event had come since the rescan before.

        Two such rescans, without a single event of the root between them, and the root counts as deaf. A change only
        speaks against the events where its own was due: it was made since the root is watched, and not just now.
        """
        paths = [str(path) for path in changed]
        settled = time.time() - SETTLED_S  # file times are of this clock
        for root in self._roots:
            if root.watch is None:
                continue
            if root.announced:
                root.announced = False
                root.misses = 0
                continue
            prefix = true_path(str(root.path))
            ours = [path for path in paths if path == prefix or path.startswith(prefix + os.sep)]
            if any(root.attached_at < _changed_at(path) < settled for path in ours):
                root.misses += 1
            if root.misses >= _MISSES_UNTIL_DEAF:
                self._detach(root)
                root.poll("its changes arrive without events (a bind mount or a network share?)")

    def _healthy(self, observer: BaseObserver) -> bool:
        return observer.is_alive() and all(emitter.is_alive() for emitter in observer.emitters)

    def _new_observer(self) -> None:
        previous, self._observer = self._observer, None
        if previous is not None:
            for root in self._roots:
                root.watch = None
            # Joining a dead observer's remaining threads may raise whatever killed it; it is replaced either way.
            with contextlib.suppress(RuntimeError, OSError):
                previous.stop()
        observer = self._make_observer(self._listener.lose)
        try:
            observer.start()
        except OSError as error:
            for root in self._roots:
                root.poll(_why(error))
            return
        self._observer = observer

    def _attach(self, root: _Root) -> bool:
        """Return whether *root* is watched now."""
        identity = _identity(root.path)
        if self._observer is None or identity is None:
            return False
        kind = self._file_system(str(root.path)) if self._mode == "auto" else ""
        if is_silent(kind):
            root.poll(f"it lies on a mount ({kind}) that brings no events of what others change there")
            return False
        try:
            root.watch = self._observer.schedule(
                _Handler(root, self._notify), true_path(str(root.path)), recursive=True, event_filter=_WANTED
            )
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return False  # it went between the look and the watch; the next check looks again
            root.poll(_why(error))
            return False
        root.identity = identity
        root.attached_at = time.time()
        root.announced = False
        return True

    def _detach(self, root: _Root) -> None:
        watch, root.watch, root.identity = root.watch, None, None
        if watch is not None and self._observer is not None:
            # The watch of a vanished folder may be gone already, as a missing key or a bad descriptor.
            with contextlib.suppress(KeyError, OSError, RuntimeError):
                self._observer.unschedule(watch)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _changed_at(path: str) -> float:
    """Return when *path* was last changed, in seconds since the epoch; infinitely late where nobody can tell."""
    try:
        return os.stat(path).st_ctime  # noqa: PTH116 - text in, a number out
    except OSError:
        return float("inf")


def _why(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the limit of inotify watches is reached; raise fs.inotify.max_user_watches"
    if error.errno == errno.EMFILE:
        return "the limit of inotify instances is reached; raise fs.inotify.max_user_instances"
    return f"it cannot be watched: {error}"

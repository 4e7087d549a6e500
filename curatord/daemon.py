"""
The daemon: an inbox and one worker.

Whatever happens outside becomes a message: a path that may have changed, a tick of the scheduler, a signal. One worker
takes them in turn and calls the application, which does one round and returns. So there is one place where things are
done, and one where an exception is caught: it is logged with its traceback, shown in `status`, and the next round
goes on. Stop is looked at between actions, never inside one.

The rescan is the truth: at a tick, every source is listed and compared. Watch events only bring a single path forward.
Where all places are watched by events, and rescans have found nothing that no event had told, they come so seldom that
they take a `RESCAN_SHARE` of one processor, at most `MAX_RESCAN_S` apart: over twenty thousand transcripts one costs
half a second, and a daemon that did so every minute would be the busiest idle program of its machine.

At each tick the gates are asked whether a run is due. APScheduler does nothing but tick; whether something is due is
the gates' answer, from stored times, so a machine that slept for a month has exactly one run to catch up with (bugs
B126). Ticks are at most a minute apart, and the clock is read anew at each, so a step of the clock or a suspend costs
at most one of them (B127).

What is told to the service manager's watchdog comes from the worker after each message, and from inside long work
through the application's progress callback: a worker that hangs is not alive (B118, B129).
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Protocol

from apscheduler.schedulers.background import BackgroundScheduler

from curatord.adapters.instance import DaemonInstance
from curatord.adapters.service_manager import ServiceManager
from curatord.adapters.watch import Hint, RootState, Watcher
from curatord.core.cheap import dataclass
from curatord.core.words import iso
from curatord.errors import ConfigError, CuratorError
from curatord.logs import Log
from curatord.ports.clock import Clock

__all__ = ["Daemon", "DaemonApp", "rescan_pause"]

MAX_TICK_S = 60.0
RESCAN_SHARE = 0.0003
MAX_RESCAN_S = 1800.0
PROVEN_AFTER = 3  # rescans in a row that found nothing untold, before they are trusted to come more seldom
# All that waits is taken at once, so that a file which changed ten times meanwhile is read once; a single event is not
# made to wait. Between two portions the watchdog is told, and a stop is looked at.
MAX_WAITING = 100_000
PORTION = 2000


class DaemonApp(Protocol):
    """What the daemon needs of the application; every method does one bounded round and returns."""

    @property
    def state_dir(self) -> Path:
        """Where the state lives."""
        ...

    @property
    def rescan_every_s(self) -> float:
        """Seconds between two full rescans."""
        ...

    @property
    def watch_mode(self) -> Literal["auto", "events", "poll"]:
        """The configured way of watching."""
        ...

    def watch_roots(self) -> Sequence[Path]:
        """Return the folders and files whose changes matter, existing or not."""
        ...

    def recover(self) -> None:
        """Bring every unfinished action and run to an end; called once before anything else."""
        ...

    def rescan(self, *, stop: Callable[[], bool], alive: Callable[[], None]) -> Sequence[str]:
        """Scan all sources and return the paths that had changed since they were last read."""
        ...

    def scan_paths(self, paths: Sequence[str], *, stop: Callable[[], bool]) -> None:
        """Scan the sessions in *paths* alone; paths that are no transcripts are nobody's business."""
        ...

    def work_if_due(self, *, stop: Callable[[], bool], alive: Callable[[], None]) -> str | None:
        """Ask the gates, do what is due (a run or a distil batch) and return its summary; None where nothing was."""
        ...

    def reload(self) -> None:
        """Read the configuration again and take it over as a whole, or raise `ConfigError` and keep the old one."""
        ...


@dataclass(frozen=True, slots=True)
class _Stop:
    signal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scanned:
    """The last whole rescan: when it began, by both clocks, and the processor time it took."""

    at: datetime
    monotonic: float
    cost_s: float


@dataclass(frozen=True, slots=True)
class _Trouble:
    """What went wrong last at one kind of message, and how often in a row."""

    text: str
    times: int


class _Tick:
    pass


class _Reload:
    pass


_Message = Hint | _Stop | _Tick | _Reload


def rescan_pause(cost_s: float, *, every_s: float, watched: bool, proven: int) -> float:
    """
    Return the seconds from one whole rescan to the next.

    Args:
        cost_s: Processor time that the last one took.
        every_s: As configured; it never comes more often by itself.
        watched: All places are watched by events.
        proven: How many rescans in a row have found nothing that no event had told.
    """
    if not watched or proven < PROVEN_AFTER:
        return every_s
    return max(min(cost_s / RESCAN_SHARE, MAX_RESCAN_S), every_s)


class Daemon:
    """
    The long-running process.

    Args:
        app: Does the work.
        clock: For the times shown in `status`.
        log: Where events go.
        manager: The service manager to report to.
    """

    def __init__(self, *, app: DaemonApp, clock: Clock, log: Log, manager: ServiceManager) -> None:
        self._app = app
        self._clock = clock
        self._log = log
        self._manager = manager
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._signal = 0
        self._tick_pending = threading.Event()
        self._since: datetime | None = None
        self._watcher: Watcher | None = None
        self._states: list[RootState] = []
        self._trouble: dict[str, _Trouble] = {}
        self._instance: DaemonInstance | None = None
        self._announced: set[str] = set()
        self._scanned: _Scanned | None = None
        self._proven = 0
        self._published: dict[str, Any] = {}

    def run(self) -> int:
        """Work until a signal says stop, and return the exit code: 130 or 143."""
        with DaemonInstance(self._app.state_dir) as instance:
            self._instance = instance
            self._since = self._clock.now()
            self._take_signals()
            self._publish("starting")
            self._app.recover()
            scheduler = self._start_scheduler()
            self._start_watcher()
            self._publish("idle")
            self._manager.ready(f"watching {len(self._states)} places")
            self._log.info("daemon.started", pid=os.getpid(), roots=len(self._states), watching=self._watching())
            try:
                self._tick()
                self._work()
            finally:
                self._manager.stopping("stopping")
                scheduler.shutdown(wait=False)
                if self._watcher is not None:
                    self._watcher.stop()
            self._log.info("daemon.stopped", signal=signal.Signals(self._signal).name if self._signal else None)
        return 128 + self._signal if self._signal else 0

    def stop(self, number: int = 0) -> None:
        """Ask the worker to stop after its current action; safe from any thread and from a signal handler."""
        self._signal = self._signal or number
        self._stopping.set()
        self._inbox.put(_Stop(number))

    # The worker.

    def _work(self) -> None:
        while not self._stopping.is_set():
            message = self._inbox.get()
            kind = "hint" if isinstance(message, str | None) else type(message).__name__.strip("_").lower()
            try:
                self._handle(message)
            except CuratorError as error:
                self._failed(kind, error, hint=error.hint)
            except Exception as error:  # noqa: BLE001 - the one place: a bug ends this round, not the daemon
                self._failed(kind, error, traceback=True)
            else:
                self._recovered(kind)
            self._manager.alive()

    def _handle(self, message: _Message) -> None:
        match message:
            case _Stop():
                return
            case _Tick():
                self._tick_pending.clear()
                self._round()
            case _Reload():
                self._reload()
            case str() | None:
                self._hints(message)

    def _hints(self, first: Hint) -> None:
        """Take *first* and whatever else has come by now, so that a burst costs one transaction."""
        paths: set[str] = set()
        rescan = False
        others: list[_Message] = []
        message: _Message = first
        while True:
            if isinstance(message, str):
                paths.add(message)
            elif message is None:
                rescan = True  # RESCAN, or a watch event on a folder
            else:
                others.append(message)
            if len(paths) >= MAX_WAITING:
                break
            try:
                message = self._inbox.get_nowait()
            except queue.Empty:
                break
        for other in others:
            self._inbox.put(other)
        if rescan:
            self._rescan()
        elif paths:
            self._announced |= paths
            ordered = sorted(paths)
            for begin in range(0, len(ordered), PORTION):
                self._app.scan_paths(ordered[begin : begin + PORTION], stop=self._stopping.is_set)
                self._manager.alive()
                if self._stopping.is_set():
                    return

    def _round(self) -> None:
        if self._watcher is not None:
            before, self._states = self._states, self._watcher.check()
            for state in self._states:
                if state not in before:
                    self._log.info("watch.changed", path=state.path, how=state.how, reason=state.reason)
        if self._rescan_is_due():
            self._rescan()
        if self._stopping.is_set():
            return
        summary = self._app.work_if_due(stop=self._stopping.is_set, alive=self._manager.alive)
        if summary is not None:
            self._log.info("run.finished", summary=summary)
        self._publish("idle")

    def _rescan(self) -> None:
        began_at, began, spent = self._clock.now(), self._clock.monotonic(), time.thread_time()
        changed = self._app.rescan(stop=self._stopping.is_set, alive=self._manager.alive)
        untold = [path for path in changed if path not in self._announced]
        if self._watcher is not None:
            self._watcher.unannounced(untold)
        self._announced.clear()
        self._proven = 0 if untold else self._proven + 1
        self._scanned = _Scanned(at=began_at, monotonic=began, cost_s=time.thread_time() - spent)
        self._publish("idle")

    def _rescan_is_due(self) -> bool:
        """Return whether all sources are to be listed at this tick."""
        last = self._scanned
        if last is None:
            return True
        watched = bool(self._states) and all(state.how == "events" for state in self._states)
        every_s = self._app.rescan_every_s
        pause = rescan_pause(last.cost_s, every_s=every_s, watched=watched, proven=self._proven)
        if pause <= every_s:
            return True
        passed = max(self._clock.monotonic() - last.monotonic, (self._clock.now() - last.at).total_seconds())
        # A tick comes a little early or late; a clock that was set back must not hold the rescan up.
        return passed >= pause - 1.0 or self._clock.now() < last.at

    def _reload(self) -> None:
        self._manager.reloading()
        try:
            self._app.reload()
        except ConfigError as error:
            self._log.error("config.refused", error=str(error), hint=error.hint, kept="the configuration in force")
        else:
            self._log.info("config.reloaded")
            if self._watcher is not None:
                self._watcher.stop()
            self._start_watcher()
            self._tick()
        finally:
            self._manager.ready("configuration read")

    def _failed(self, kind: str, error: Exception, *, hint: str = "", traceback: bool = False) -> None:
        text = f"{type(error).__name__}: {error}"
        before = self._trouble.get(kind)
        times = before.times + 1 if before else 1
        # The same trouble every minute for a week should not fill a disk: say it first, then at powers of two.
        if before is None or before.text != text or times & (times - 1) == 0:
            self._log.error("worker.failed", at_work_on=kind, error=text, hint=hint, times=times, exc_info=traceback)
        self._trouble[kind] = _Trouble(text, times)
        self._publish("idle")

    def _recovered(self, kind: str) -> None:
        trouble = self._trouble.pop(kind, None)
        if trouble is not None:
            self._log.info("worker.recovered", at_work_on=kind, after=trouble.times)
            self._publish("idle")

    # The outside.

    def _tick(self) -> None:
        """Put one tick into the inbox, unless the last one still waits there."""
        if not self._tick_pending.is_set():
            self._tick_pending.set()
            self._inbox.put(_Tick())

    def _start_scheduler(self) -> BackgroundScheduler:
        scheduler = BackgroundScheduler(timezone="UTC")
        scheduler.add_job(
            self._tick,
            "interval",
            seconds=min(self._app.rescan_every_s, MAX_TICK_S),
            id="tick",
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,  # the default of one second would drop every tick after a suspend
        )
        scheduler.start()
        return scheduler

    def _start_watcher(self) -> None:
        self._watcher = Watcher(self._app.watch_roots(), self._inbox.put, mode=self._app.watch_mode)
        self._watcher.start()
        self._states = self._watcher.states()

    def _watching(self) -> Literal["events", "poll"]:
        return "events" if any(state.how == "events" for state in self._states) else "poll"

    def _take_signals(self) -> None:
        def stop(number: int, _frame: FrameType | None) -> None:
            self.stop(number)

        def reload(_number: int, _frame: FrameType | None) -> None:
            self._inbox.put(_Reload())

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGHUP, reload)

    def _publish(self, activity: str) -> None:
        if self._instance is None or self._since is None:
            return
        state: dict[str, Any] = {
            "pid": os.getpid(),
            "since": iso(self._since),
            "watching": self._watching(),
            "activity": activity,
            "scanned_at": iso(self._scanned.at) if self._scanned is not None else None,
            "watches": [{"path": s.path, "how": s.how, "reason": s.reason} for s in self._states],
            "last_error": next((trouble.text for trouble in self._trouble.values()), None),
            "observer_restarts": self._watcher.restarts if self._watcher else 0,
            "overflows": self._watcher.overflows if self._watcher else 0,
        }
        if state == self._published:
            return  # an idle daemon should not write a file a minute
        try:
            self._instance.publish(state)
            self._published = state
        except OSError as error:
            # A full disk must not stop the watching; the next message tries again, and the error is in the log.
            self._log.warning("status.unwritten", error=str(error))
        self._manager.status(activity)

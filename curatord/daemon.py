"""
The daemon: an inbox and one worker.

Whatever happens outside becomes a message: a path that may have changed, a tick of the scheduler, a signal. One worker
takes them in turn and calls the application, which does one round and returns. So there is one place where things are
done, and one where an exception is caught: it is logged with its traceback, shown in `status`, and the next round
goes on. Stop is looked at between actions, never inside one.

The tick is the truth: it rescans every source where that is due, and asks the gates whether a run is. Watch events only
bring a single path forward. Where all places are watched by events, and rescans have found nothing that no event had
told, they come so seldom that they take a `RESCAN_SHARE` of one processor, at most `MAX_RESCAN_S` apart: over twenty
thousand transcripts one costs half a second, and a daemon that did so every minute would be the busiest idle program of
its machine.

APScheduler does nothing but tick; whether something is due is the gates' answer, from stored times, so a machine that
slept for a month has exactly one run to catch up with (bugs B126). Ticks are a minute apart at most, and the clocks are
read anew at each, so a step of the clock or a suspend costs at most one (B127). What was known of the disk's places is
forgotten at each tick: a library that was away may be back.

To a service manager the start is over after the first scan: whatever happened while it was not running is counted then.
A sign of life comes from the worker alone: after each message, and whenever work asks whether to stop, which it does
between actions, stretches of transcripts and model calls. It goes to the service manager's watchdog, and as `at` into
what `status` reads: a worker that hangs is not alive (B118, B129).

Signal handlers set plain attributes and put into a `SimpleQueue`, whose `put` may interrupt itself; a lock taken in a
handler that interrupts its own holder would never be had.

A state folder that is removed under it is made anew, with its lock, before the next thing is done (`_hold`); where
another daemon was quicker, this one stops.

Somebody else at work by hand is no trouble: what found a lock taken is done at the next tick, recovery included.

Orders of the command line come through the control socket (`curatord.desk`) as messages like all others; what their
client says while they are at work, to stop, is heard where a signal is.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Protocol

from apscheduler.schedulers.background import BackgroundScheduler

from curatord import __version__
from curatord.adapters.control_server import Order, Refused
from curatord.adapters.instance import DaemonInstance
from curatord.adapters.service_manager import ServiceManager
from curatord.adapters.watch import Hint, RootState, Watcher
from curatord.core.cheap import dataclass
from curatord.core.repetition import Repeats
from curatord.core.words import iso
from curatord.errors import BusyError, ConfigError, CuratorError, StateError
from curatord.logs import Log, Repeating
from curatord.ports.clock import Clock

__all__ = ["Daemon", "DaemonApp", "rescan_pause"]

MAX_TICK_S = 60.0
RESCAN_SHARE = 0.0003
MAX_RESCAN_S = 1800.0
PROVEN_AFTER = 3  # rescans in a row that found nothing untold, before they are trusted to come more seldom
MIN_TICK_S = 0.05
SPEAK_EVERY_S = 1.0  # to the service manager, from inside work that asks often
PUBLISH_EVERY_S = 10.0  # the same for `status`
RENEW_EVERY = timedelta(minutes=5)  # what `status` reads, where nothing but the time is new in it
UNWRITTEN = "status"  # among the kinds of trouble: `daemon.json` could not be written
# Folders that come and go ask for a rescan each; beyond one in so many seconds they wait for the next tick.
HINTED_RESCAN_EVERY_S = 5.0
# All that waits is taken at once, so that a file which changed ten times meanwhile is read once; a single event is not
# made to wait. Between two portions a stop is looked at.
MAX_WAITING = 100_000
PORTION = 20_000


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

    @property
    def curated(self) -> Sequence[str]:
        """The paths of the libraries that it may change, for other daemons' `doctor`."""
        ...

    @property
    def figures_at(self) -> str | None:
        """Where figures may be asked for just now, as `metrics.listen` says it; None: nowhere."""
        ...

    def begin_round(self) -> None:
        """Forget what was learnt of where things lie: places, libraries and their hosts are looked for anew."""
        ...

    def recover(self) -> None:
        """Bring every unfinished action and run to an end; called before anything else, until it succeeds once."""
        ...

    def rescan(self, *, stop: Callable[[], bool], alive: Callable[[], None]) -> Sequence[str]:
        """Scan all sources and return the paths that had changed since they were last read."""
        ...

    def scan_paths(self, paths: Sequence[str], *, stop: Callable[[], bool]) -> None:
        """Scan the sessions in *paths* alone; paths that are no transcripts are nobody's business."""
        ...

    def work_if_due(self, *, stop: Callable[[], bool], alive: Callable[[], None]) -> str | None:
        """Ask the gates, do what is due (a run or a distil batch), and return its summary; None where nothing was."""
        ...

    def reload(self) -> Sequence[str]:
        """
        Read the configuration again and take it over as a whole, and return what is different, a line each.

        Raises:
            ConfigError: It is wrong; the old one stays in force as a whole.
        """
        ...

    def obey(
        self,
        command: str,
        arguments: Mapping[str, Any],
        *,
        stop: Callable[[], bool],
        alive: Callable[[], None],
        progress: Callable[[int, int | None, str], None],
    ) -> Any:
        """Do what somebody ordered, `scan` or `run`, and return the order's result."""
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


class _Recover:
    """The first message of all."""


class _Tick:
    pass


class _Reload:
    pass


class _Beat:
    """Asks the worker to say that it is alive; only made where a service manager wants to hear it."""


_Message = Hint | _Stop | _Recover | _Tick | _Reload | _Beat | Order


class Control(Protocol):
    """The control socket, as far as the daemon opens and closes it."""

    def start(self) -> None:
        """Listen."""
        ...

    def check(self) -> None:
        """Mend what was broken since the last look."""
        ...

    def stop(self) -> None:
        """Close it."""
        ...


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
        control: Makes the control socket of this daemon; None: it has none.
    """

    def __init__(
        self,
        *,
        app: DaemonApp,
        clock: Clock,
        log: Log,
        manager: ServiceManager,
        control: Callable[[Daemon], Control] | None = None,
    ) -> None:
        self._app = app
        self._clock = clock
        self._log = log
        self._manager = manager
        self._control = control(self) if control is not None else None
        self._order: Order | None = None  # at work just now
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._stopping = False  # set by signal handlers, so nothing with a lock
        self._signal = 0
        self._tick_pending = False
        self._tick_s = 0.0
        self._scheduler: BackgroundScheduler | None = None
        self._unrecovered = True
        self._rescan_wanted = False
        self._spoke = self._published = float("-inf")  # monotonic
        self._alive_at = clock.monotonic()
        self._told: dict[str, Any] = {
            "pid": os.getpid(),
            "activity": "starting",
        }  # replaced as a whole, for all threads
        self._activity = "starting"
        self._ready = self._told_stopping = False
        self._worker = 0
        self._since: datetime | None = None
        self._watcher: Watcher | None = None
        self._states: list[RootState] = []
        self._repeating = Repeating(log, clock.now)
        self._trouble = Repeats()  # by kind of message
        self._instance: DaemonInstance | None = None
        self._ousted: BusyError | None = None  # another daemon has our place
        self._announced: set[str] = set()
        self._scanned: _Scanned | None = None
        self._proven = 0
        self._shown: dict[str, Any] = {}  # the last that was published, without its time
        self._shown_at: datetime | None = None

    def run(self) -> int:
        """
        Work until a signal says stop, and return the exit code: 130 or 143.

        Raises:
            BusyError: There is a daemon already, or another one has taken this one's place.
            StateError: What a former one left unfinished cannot be brought to an end.
        """
        with DaemonInstance(self._app.state_dir) as instance:
            self._instance = instance
            self._worker = threading.get_ident()
            self._since = self._clock.now()
            self._take_signals()
            self._publish("starting")
            self._inbox.put(_Recover())
            scheduler = self._start_scheduler()
            self._start_watcher()
            if self._control is not None:
                self._control.start()
            self._publish("starting")
            self._manager.starting("reading transcripts for the first time since the start")
            self._log.info("daemon.started", pid=os.getpid(), roots=len(self._states), watching=self._watching())
            try:
                self._tick()
                self._work()
            finally:
                self._tell_stopping()
                scheduler.shutdown(wait=False)
                self._turn_away()
                if self._control is not None:
                    self._control.stop()
                if self._watcher is not None:
                    self._watcher.stop()
            self._log.info("daemon.stopped", signal=signal.Signals(self._signal).name if self._signal else None)
        if self._ousted is not None and not self._signal:
            raise self._ousted
        return 128 + self._signal if self._signal else 0

    def stop(self, number: int = 0) -> None:
        """Ask the worker to stop after its current action; safe from any thread and from a signal handler."""
        self._signal = self._signal or number
        self._stopping = True
        self._inbox.put(_Stop(number))

    # What the control socket's threads ask (`curatord.desk`).

    @property
    def is_stopping(self) -> bool:
        """Whether it is on its way out."""
        return self._stopping

    def put(self, order: Order) -> None:
        """Have *order* done after what waits already."""
        self._inbox.put(order)

    def wake(self) -> None:
        """Have a round now: something is different that the gates should hear of."""
        self._tick()

    def silent_s(self) -> float:
        """Return the seconds since the worker's last sign of life."""
        return max(self._clock.monotonic() - self._alive_at, 0.0)

    def told(self) -> dict[str, Any]:
        """Return how it is right now: what `status` reads, the age of its worker's last sign of life, what waits."""
        return {**self._told, "silent_s": round(self.silent_s(), 1), "queue": self._inbox.qsize()}

    # The worker.

    def _work(self) -> None:
        while not self._stopping:
            message = self._inbox.get()
            kind = "hint" if isinstance(message, str | None) else type(message).__name__.strip("_").lower()
            self._alive_at = self._clock.monotonic()
            try:
                self._handle(message)
            except BusyError as error:
                self._log.debug("worker.busy", at_work_on=kind, reason=str(error))
            except CuratorError as error:
                if isinstance(message, _Recover) and isinstance(error, StateError):
                    raise  # it is not up: whoever started it decides by the exit code whether to try again
                self._failed(kind, error, hint=error.hint)
            except Exception as error:  # noqa: BLE001 - the one place: a bug ends this round, not the daemon
                self._failed(kind, error, traceback=True)
            else:
                self._recovered(kind)
                if isinstance(message, _Tick):
                    # What somebody asked for once may never be asked for again; a good round says that we are well.
                    self._recovered("order")
                    self._recovered("reload")
            if isinstance(message, _Tick):
                self._tell_ready()  # also where the first scan failed: it is up, and `status` tells its trouble
            self._spoke = float("-inf")
            self._alive()

    def _asked(self) -> bool:
        """Return whether to stop; the worker who asks is at work, and so alive. Its helping threads prove nothing."""
        if threading.get_ident() == self._worker:
            self._alive()
            if self._stopping:
                self._tell_stopping()  # what is at work ends its action first, and the manager should know why it waits
        return self._stopping or (self._order is not None and self._order.stop_asked)

    def _tell_ready(self) -> None:
        """Say once that start-up is over: everything was read up to now, and changes are noticed."""
        if not self._ready and not self._stopping:
            self._ready = True
            self._manager.ready(self._words())

    def _tell_stopping(self) -> None:
        if not self._told_stopping:
            self._told_stopping = True
            self._manager.stopping(f"stopping, was {self._activity}")

    def _curating(self) -> None:
        """Say that a run is at work; only a run that the gates let through asks."""
        if threading.get_ident() != self._worker:
            return
        if self._activity != "curating":
            self._publish("curating")
        self._alive()

    def _alive(self) -> None:
        """Say that the worker gets something done; only the worker calls it."""
        now = self._alive_at = self._clock.monotonic()
        if now - self._spoke >= SPEAK_EVERY_S:
            self._spoke = now
            if self._ready:
                self._manager.alive()
            else:
                self._manager.starting(self._words())
        if now - self._published >= PUBLISH_EVERY_S:
            self._publish(self._activity)

    def _handle(self, message: _Message) -> None:
        match message:
            case _Stop() | _Beat():
                return  # the beat is the answer that follows every message
            case _Recover():
                self._recover()
            case _Tick():
                self._tick_pending = False
                self._round()
            case _Reload():
                self._reload_by_signal()
            case Order():
                self._obey(message)
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
            last = self._scanned
            self._rescan_wanted = last is not None and self._clock.monotonic() - last.monotonic < HINTED_RESCAN_EVERY_S
            if not self._rescan_wanted:
                self._rescan()
                return
        if paths:
            self._hold()
            self._announced |= paths
            ordered = sorted(paths)
            for begin in range(0, len(ordered), PORTION):
                self._app.scan_paths(ordered[begin : begin + PORTION], stop=self._asked)
                if self._asked():
                    return

    def _hold(self) -> None:
        """
        See that the state folder is still ours before anything is done with it; what was removed is made anew.

        Raises:
            BusyError: Another daemon has it; this one stops.
            StateError: It cannot be used just now.
        """
        if self._instance is None:
            return
        try:
            renewed = self._instance.renew()
        except BusyError as error:
            self._log.error("daemon.ousted", state_dir=str(self._app.state_dir), error=str(error))
            self._ousted = error
            self.stop()
            raise
        if renewed:
            self._log.warning("daemon.renewed", state_dir=str(self._app.state_dir), reason="its lock was gone")
            # Whatever else was in the folder may be gone with it, or be another's.
            self._shown_at = None
            self._rescan_wanted = self._unrecovered = True

    def _recover(self) -> None:
        """Recover where that was not done yet; with somebody else at work, the next tick tries again."""
        if self._unrecovered:
            self._app.recover()
            self._unrecovered = False

    def _round(self) -> None:
        self._hold()
        self._app.begin_round()
        self._keep_pace()
        if self._control is not None:
            self._control.check()
        if self._watcher is not None:
            self._watcher.watch(self._app.watch_roots())
            before, self._states = self._states, self._watcher.check()
            self._tell_watches(before)
        if self._rescan_due():
            self._rescan()
        if self._stopping:
            return
        self._tell_ready()
        self._recover()
        self._app.work_if_due(stop=self._asked, alive=self._curating)
        self._publish("idle")

    def _tell_watches(self, before: Sequence[RootState]) -> None:
        """Say how places are watched where that is another way now: losing events is trouble that may come again."""
        for state in self._states:
            if state in before:
                continue
            if state.how == "poll" and state.reason != "configured":
                self._repeating.met("watch.lost", state.path, state.reason, path=state.path)
            else:
                self._log.info("watch.changed", path=state.path, how=state.how, reason=state.reason)
            if state.how == "events":
                self._repeating.gone("watch.lost", state.path, path=state.path)

    def _rescan_due(self) -> bool:
        """Return whether all sources are to be listed at this tick, which comes up to half a tick early or late."""
        last = self._scanned
        if self._rescan_wanted or last is None:
            return True
        passed = self._clock.monotonic() - last.monotonic
        # The monotonic clock stands still while the machine sleeps; what happened meanwhile should not wait.
        slept = (self._clock.now() - last.at).total_seconds() - passed > MAX_TICK_S
        watched = bool(self._states) and all(state.how == "events" for state in self._states)
        pause = rescan_pause(last.cost_s, every_s=self._app.rescan_every_s, watched=watched, proven=self._proven)
        return slept or passed >= pause - self._tick_s / 2

    def _rescan(self) -> None:
        self._hold()
        self._publish("scanning")
        self._rescan_wanted = False
        began_at, began, spent = self._clock.now(), self._clock.monotonic(), time.thread_time()
        self._scanned = _Scanned(at=began_at, monotonic=began, cost_s=0.0)
        changed = self._app.rescan(stop=self._asked, alive=self._alive)
        untold = [path for path in changed if path not in self._announced]
        if self._watcher is not None:
            self._watcher.unannounced(untold)
        self._announced.clear()
        self._proven = 0 if untold else self._proven + 1
        self._scanned = _Scanned(at=began_at, monotonic=began, cost_s=time.thread_time() - spent)
        self._publish("idle")

    def _obey(self, order: Order) -> None:
        """Do what somebody ordered, and answer it whatever comes of it."""
        if not order.begin():
            self._log.info("order.withdrawn", command=order.command)
            return
        self._order = order
        self._publish(f"{order.command}, as ordered")
        began = self._clock.monotonic()
        try:
            self._hold()
            if order.command == "reload":
                order.finish({"changed": list(self._reload())})
            else:
                value = self._app.obey(
                    order.command,
                    order.arguments,
                    stop=self._asked,
                    alive=self._alive,
                    progress=order.progress,
                )
                order.finish(value)
        except CuratorError as error:
            # Its client is told, and it is no trouble of ours.
            order.fail(error)
            self._log.warning("order.failed", command=order.command, error=str(error), hint=error.hint)
        except BaseException as error:
            order.fail_by_bug(error)
            raise
        else:
            took_s = round(self._clock.monotonic() - began, 3)
            self._log.info("order.done", command=order.command, duration_s=took_s)
        finally:
            self._order = None
            self._publish("idle")

    def _turn_away(self) -> None:
        """Answer the orders that nobody begins any more."""
        while True:
            try:
                message = self._inbox.get_nowait()
            except queue.Empty:
                return
            if isinstance(message, Order) and message.withdraw():
                message.refuse(Refused("it is stopping"))

    def _reload_by_signal(self) -> None:
        """Take the configuration over; nobody but the log hears what came of it."""
        try:
            self._reload()
        except ConfigError:
            return  # it is in the log

    def _reload(self) -> Sequence[str]:
        if self._ready:
            self._manager.reloading()
        status = "configuration read"
        try:
            changed = self._app.reload()
        except ConfigError as error:
            self._log.error("config.refused", error=str(error), hint=error.hint, kept="the configuration in force")
            status = f"configuration refused, the old one stays: {error}"
            raise
        else:
            self._log.info("config.reloaded", changed=list(changed))
            if self._watcher is not None:
                self._watcher.stop()
            self._start_watcher()
            self._tick()
            return changed
        finally:
            if self._ready:
                self._manager.ready(status)

    def _failed(self, kind: str, error: Exception, *, hint: str = "", traceback: bool = False) -> None:
        text = f"{type(error).__name__}: {error}"
        self._trouble, times = self._trouble.met(kind, text, self._clock.now())
        if times is not None:
            self._log.error("worker.failed", at_work_on=kind, error=text, hint=hint, times=times, exc_info=traceback)
        self._publish("idle")

    def _recovered(self, kind: str) -> None:
        self._trouble, over = self._trouble.gone(kind, self._clock.now())
        if over is not None:
            took_s = round(over.duration_s, 1)
            self._log.info("worker.recovered", at_work_on=kind, after=over.times, duration_s=took_s)
            self._publish("idle")

    # The outside.

    def _tick(self) -> None:
        """Put one tick into the inbox, unless the last one still waits there."""
        if not self._tick_pending:
            self._tick_pending = True
            self._inbox.put(_Tick())

    def _pace(self) -> float:
        """Return how many seconds ticks are apart."""
        return min(max(self._app.rescan_every_s, MIN_TICK_S), MAX_TICK_S)

    def _keep_pace(self) -> None:
        """Tick as often as the configuration in force asks for."""
        if self._scheduler is not None and self._pace() != self._tick_s:
            self._tick_s = self._pace()
            self._scheduler.reschedule_job("tick", trigger="interval", seconds=self._tick_s)

    def _start_scheduler(self) -> BackgroundScheduler:
        scheduler = self._scheduler = BackgroundScheduler(timezone="UTC")
        self._tick_s = self._pace()
        scheduler.add_job(
            self._tick,
            "interval",
            seconds=self._tick_s,
            id="tick",
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,  # the default of one second would drop every tick after a suspend
        )
        if self._manager.watchdog_s is not None:
            scheduler.add_job(
                lambda: self._inbox.put(_Beat()),
                "interval",
                seconds=max(self._manager.watchdog_s / 3, 0.1),
                id="beat",
                coalesce=True,
                max_instances=1,
                misfire_grace_time=None,
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
            self.stop(number)  # plain attributes and a queue that may be interrupted in its own `put`

        def reload(_number: int, _frame: FrameType | None) -> None:
            self._inbox.put(_Reload())

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGHUP, reload)

    def _publish(self, activity: str) -> None:
        self._activity = activity
        if self._instance is None or self._since is None:
            return
        self._published = self._clock.monotonic()
        state: dict[str, Any] = {
            "pid": os.getpid(),
            "since": iso(self._since),
            "watching": self._watching(),
            "activity": activity,
            "scanned_at": iso(self._scanned.at) if self._scanned is not None else None,
            "watches": [{"path": s.path, "how": s.how, "reason": s.reason} for s in self._states],
            "libraries": list(self._app.curated),
            "figures_at": self._app.figures_at,
            "version": __version__,
            "last_error": self._first_trouble(but=UNWRITTEN),  # which is over once this is written
            "observer_restarts": self._watcher.restarts if self._watcher else 0,
            "overflows": self._watcher.overflows if self._watcher else 0,
        }
        now = self._clock.now()
        self._told = {**state, "at": iso(now), "last_error": self._first_trouble()}
        if state == self._shown and self._shown_at is not None and timedelta() <= now - self._shown_at < RENEW_EVERY:
            return  # an idle daemon should not write a file a minute
        try:
            # Only the worker publishes, so that this is its last sign of life.
            self._instance.publish({**state, "at": iso(now)})
        except OSError as error:
            # A full disk must not stop the watching. The next message tries again; who asks meanwhile hears of it.
            self._trouble, times = self._trouble.met(UNWRITTEN, f"its state cannot be written: {error}", now)
            self._shown, self._shown_at = {}, None
            if times is not None:
                self._log.warning("status.unwritten", error=str(error), times=times)
        else:
            self._trouble, over = self._trouble.gone(UNWRITTEN, now)
            self._shown, self._shown_at = state, now
            if over is not None:
                self._log.info(
                    "status.recovered", after=over.times, duration_s=round(over.duration_s, 1), was=over.text
                )
        self._told = {**self._told, "last_error": self._first_trouble()}
        if self._ready:
            self._manager.status(self._words())

    def _first_trouble(self, *, but: str = "") -> str | None:
        return next((trouble.text for kind, trouble in self._trouble.troubles.items() if kind != but), None)

    def _words(self) -> str:
        """Return what we are doing, for a person who asks the service manager."""
        trouble = self._first_trouble()
        places = f"{len(self._states)} place{'' if len(self._states) == 1 else 's'}"
        watched = f"watching {places} by {'events' if self._watching() == 'events' else 'listing them'}"
        return f"{self._activity}; {watched}" + (f"; trouble: {trouble}" if trouble else "")

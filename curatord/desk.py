"""
Where the control socket's threads and the daemon's worker meet: who may have what done, and who is told to wait.

An order is refused, and left to the client's own process, where the client meant it otherwise than the daemon would do
it: with another version of curatord, or another configuration. A run is not begun while another is at work, nor while
one already waits; a scan is left to the client then, since the two do not disturb each other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from curatord.adapters.control_server import Order, Refused
from curatord.core.control import Ask
from curatord.errors import BusyError

__all__ = ["DeskApp", "DeskDaemon", "FrontDesk"]

SURE_AFTER_S = 0.5  # the gates' question holds the runs' lock for a moment, which is no run


class DeskApp(Protocol):
    """What the desk asks of the application, from the control socket's threads."""

    @property
    def version(self) -> str:
        """Which curatord this is."""
        ...

    @property
    def config_fingerprint(self) -> str:
        """Which configuration is in force."""
        ...

    def is_run_at_work(self) -> bool:
        """Return whether a run holds the lock of all runs, ours or somebody else's."""
        ...

    def aside(self, command: str) -> Any:
        """Do `pause` or `resume` with means of its own, beside whatever the worker does, and return the changes."""
        ...


class DeskDaemon(Protocol):
    """What the desk asks of the daemon (`curatord.daemon.Daemon`), from the control socket's threads."""

    @property
    def is_stopping(self) -> bool:
        """Whether it is on its way out."""
        ...

    def put(self, order: Order) -> None:
        """Have *order* done after what waits already."""
        ...

    def wake(self) -> None:
        """Have a round now."""
        ...

    def told(self) -> dict[str, Any]:
        """Return how it is right now."""
        ...

    def silent_s(self) -> float:
        """Return the seconds since the worker's last sign of life."""
        ...


class FrontDesk:
    """Fills the protocol `curatord.adapters.control_server.Desk` for *daemon*."""

    def __init__(self, daemon: DeskDaemon, app: DeskApp, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._daemon = daemon
        self._app = app
        self._sleep = sleep
        self._run: Order | None = None
        self._lock = threading.Lock()

    def told(self) -> dict[str, Any]:
        """Return how the daemon is."""
        return {**self._daemon.told(), "version": self._app.version}

    def silent_s(self) -> float:
        """Return the seconds since the worker's last sign of life."""
        return self._daemon.silent_s()

    def aside(self, command: str) -> Any:
        """Do a short command beside the worker, and have the worker look at what it changed."""
        value = self._app.aside(command)
        self._daemon.wake()
        return value

    def take(self, order: Order, ask: Ask) -> None:
        """
        Hand *order* to the worker.

        Raises:
            Refused: Nothing is done; the client may do it by itself.
            BusyError: A run is at work, and this is one.
        """
        if self._daemon.is_stopping:
            raise Refused("it is stopping")
        if ask.version not in (None, self._app.version):
            raise Refused(f"it is of version {self._app.version}, this is {ask.version}; restart it")
        if ask.config not in (None, self._app.config_fingerprint):
            raise Refused("it works with another configuration (curatord reload makes it read the file again)")
        if order.command == "reload":
            self._daemon.put(order)
            return
        with self._lock:
            if self._at_work():
                if order.command == "scan":
                    raise Refused("a run is at work", quiet=True)
                raise BusyError("a run is at work already", hint="curatord status shows it; try again when it is done")
            if order.command == "run":
                self._run = order
            self._daemon.put(order)

    def _at_work(self) -> bool:
        if self._run is not None and self._run.open:
            return True
        until = time.monotonic() + SURE_AFTER_S
        while self._app.is_run_at_work():
            if time.monotonic() >= until:
                return True
            self._sleep(0.05)
        return False

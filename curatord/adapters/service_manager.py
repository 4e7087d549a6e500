"""
Telling systemd how we are: the notify protocol, one datagram a message (sd_notify(3), public documentation).

What comes again anyway is dropped where the manager does not read. What is said once (ready, reloading, stopping)
waits a moment for it, and is then owed: it goes before whatever is said next, since a manager that never hears `READY`
ends a service that is well. Of what is owed only the last counts.

Without `NOTIFY_SOCKET` every call does nothing, so that the daemon runs the same in a terminal.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

__all__ = ["ServiceManager"]

START_S = 300  # as TimeoutStartSec in the units: a start that says nothing for so long hangs
SEND_S = 1.0  # what is said once may wait so long for a manager that does not read; what comes again does not wait


class ServiceManager:
    """The service manager that *environment* names, if any."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the NUL of Linux' abstract sockets; anything else but a path is not for us.
        self._address = "\0" + address[1:] if address.startswith("@") else address if address.startswith("/") else ""
        self._owed: str | None = None
        ours = environment.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        usec = environment.get("WATCHDOG_USEC", "")
        self.watchdog_s: float | None = int(usec) / 1e6 if ours and usec.isascii() and usec.isdigit() else None

    @property
    def present(self) -> bool:
        """Whether somebody listens."""
        return bool(self._address)

    def starting(self, status: str) -> None:
        """Say that start-up goes on, and that it may take `START_S` more from now; the worker says so at its work."""
        self._send(f"EXTEND_TIMEOUT_USEC={START_S * 1_000_000}\nSTATUS={_line(status)}", wait_s=0.0)

    def ready(self, status: str) -> None:
        """Say that start-up is over."""
        self._send(f"READY=1\nSTATUS={_line(status)}")

    def status(self, status: str) -> None:
        """Say what we are doing, in one line."""
        self._send(f"STATUS={_line(status)}", wait_s=0.0)

    def alive(self) -> None:
        """Say that the worker got something done; call it from the worker only."""
        self._send("WATCHDOG=1", wait_s=0.0)

    def reloading(self) -> None:
        """Say that the configuration is being read again; `ready` ends it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str) -> None:
        """Say that we are on our way out."""
        self._send(f"STOPPING=1\nSTATUS={_line(status)}")

    def _send(self, message: str, *, wait_s: float | None = None) -> None:
        """Say *message*, with *wait_s* one that comes again; without, it is said once, and owed until it is heard."""
        if not self._address:
            return
        if wait_s is None:
            self._owed = message
        if self._owed is not None:
            if not self._is_heard(self._owed, SEND_S if wait_s is None else wait_s):
                return
            self._owed = None
        if wait_s is not None:
            self._is_heard(message, wait_s)

    def _is_heard(self, message: str, wait_s: float) -> bool:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
                connection.settimeout(wait_s)
                connection.sendto(message.encode("utf-8", "replace"), self._address)
        except OSError:
            # The manager may be restarting or its socket full; telling it is a courtesy that must never stop us.
            return False
        return True


def _line(text: str) -> str:
    return " ".join(text.split())

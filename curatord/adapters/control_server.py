"""
The daemon's end of the control socket (`core.control` has the protocol).

Each connection is a thread that may wait; the worker never does. An order is where the two meet: the worker puts lines
into it and asks it whether to stop, the thread takes them out and looks whether the client is still there.

Whoever connects gets `ASK_WITHIN_S` for one line of at most `MAX_QUESTION` bytes, however slowly it comes, and has to
take each line of the answer within `TAKE_WITHIN_S`; then it is cut off. A client that goes away before its order was
begun takes it back. One that goes away later does not: what was begun is finished.
"""

from __future__ import annotations

import os
import queue
import select
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from curatord.adapters.local_socket import Listener, bind, is_at, peer_uid, unbind
from curatord.core.control import MAX_ANSWER, MAX_QUESTION, Ask, BadAskError, answer_line, read_ask
from curatord.errors import CuratorError
from curatord.logs import Log

__all__ = ["NAME", "ControlServer", "Desk", "Order", "Refused"]

NAME = "control.sock"
ASK_WITHIN_S = 5.0
TAKE_WITHIN_S = 10.0
SLOTS = 12
LOOK_EVERY_S = 0.25  # while an order waits or is at work, and only then: whether the client is still there
TELL_EVERY_S = 1.0
PROGRESS_EVERY_S = 0.2


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """Nothing was done; *quiet* tells the client that it may do it by itself without a word."""

    def __init__(self, reason: str, *, quiet: bool = False) -> None:
        super().__init__(reason)
        self.quiet = quiet


class Order:
    """Something a client wants done by the worker; made by the client's thread, carried out by the worker."""

    def __init__(self, ask: Ask) -> None:
        self.command = ask.command
        self.arguments: Mapping[str, Any] = ask.arguments
        self.lines: queue.SimpleQueue[tuple[bytes, bool]] = queue.SimpleQueue()  # and whether it is the last
        self.stop_asked = False
        self._lock = threading.Lock()
        self._state = "waiting"  # waiting | withdrawn | begun
        self._told_at = float("-inf")
        self._ended = False

    @property
    def open(self) -> bool:
        """Whether it waits or is at work."""
        return not self._ended and self._state != "withdrawn"

    @property
    def begun(self) -> bool:
        """Whether the worker is at it, or was."""
        return self._state == "begun"

    def begin(self) -> bool:
        """Return whether it is still wanted; from then on it is not taken back any more."""
        with self._lock:
            if self._state != "waiting":
                return False
            self._state = "begun"
        self.lines.put((answer_line("begun", True), False))
        return True

    def withdraw(self) -> bool:
        """Take it back, and return whether that was in time."""
        with self._lock:
            if self._state == "begun":
                return False
            self._state = "withdrawn"
            return True

    def progress(self, done: int, total: int | None, what: str) -> None:
        """Tell the client how far it is, now and then."""
        now = time.monotonic()
        if now - self._told_at >= PROGRESS_EVERY_S or done == total:
            self._told_at = now
            self.lines.put((answer_line("progress", {"done": done, "total": total, "what": what}), False))

    def finish(self, value: Any) -> None:
        """End it with its result."""
        line = answer_line("result", value)
        if len(line) > MAX_ANSWER:
            line = answer_line("error", _told(CuratorError("it is done, but its answer is too long to be told")))
        self._end(line)

    def fail(self, error: CuratorError) -> None:
        """End it with an error that was raised on purpose."""
        self._end(answer_line("error", _told(error)))

    def fail_by_bug(self, error: BaseException) -> None:
        """End it with one that was not."""
        words = f"a bug in the daemon ended it: {type(error).__name__}: {error}"
        told = {"kind": "bug", "message": words, "hint": "the daemon's log has the traceback", "exit_code": 1}
        self._end(answer_line("error", told))

    def refuse(self, refused: Refused) -> None:
        """End it before it was begun."""
        self._end(_refusal(refused))

    def _end(self, line: bytes) -> None:
        self._ended = True
        self.lines.put((line, True))


class Desk(Protocol):
    """What the server asks of the daemon, from its own threads."""

    def told(self) -> dict[str, Any]:
        """Return how the daemon is, at once."""
        ...

    def silent_s(self) -> float:
        """Return the seconds since the worker's last sign of life."""
        ...

    def take(self, order: Order, ask: Ask) -> None:
        """Hand *order* to the worker; raises `Refused`, or a `CuratorError` where it may not be now."""
        ...

    def aside(self, command: str) -> Any:
        """Do *command*, a short one, beside whatever the worker is doing."""
        ...


class ControlServer:
    """The control socket of *folder*, answered by *desk*."""

    def __init__(self, folder: Path, desk: Desk, log: Log) -> None:
        self._folder = folder
        self._desk = desk
        self._log = log
        self._listener: Listener | None = None
        self._inode = 0
        self._unavailable: str | None = None  # why it could not listen, as it was said

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._folder / NAME

    def start(self) -> None:
        """Listen; where that cannot be it is said once, and the daemon does without until `check` finds that it can."""
        try:
            listening = bind(self._folder, NAME)
            self._inode = self.path.lstat().st_ino
        except OSError as error:
            if str(error) != self._unavailable:
                self._unavailable = str(error)
                self._log.warning(
                    "control.unavailable",
                    path=str(self.path),
                    error=str(error),
                    hint="commands work all the same, each in its own process; it is tried again at each tick",
                )
            return
        if self._unavailable is not None:
            self._log.info("control.recovered", path=str(self.path), was=self._unavailable)
            self._unavailable = None
        self._listener = Listener(
            listening, self._serve, name="control", slots=SLOTS, full=self._full, failed=self._failed
        )
        self._listener.start()

    def check(self) -> None:
        """Listen anew where somebody removed or replaced the socket, as cleaners of old files do, or where none was."""
        if self._listener is not None:
            if is_at(self.path, self._inode):  # whoever asks holds the daemon's lock, so the place is ours
                return
            self._log.warning("control.renewed", path=str(self.path), reason="the socket was gone")
            self._listener.stop(0.0)
            self._listener = None
        self.start()

    def stop(self, within_s: float = 2.0) -> None:
        """Take no more questions, let the last answers out for a moment, and remove the socket."""
        listener, self._listener = self._listener, None
        if listener is not None:
            unbind(self.path, self._inode)
            listener.stop(within_s)

    def _failed(self, error: Exception) -> None:
        self._log.error("control.failed", error=f"{type(error).__name__}: {error}", exc_info=error)

    def _full(self, connection: socket.socket) -> None:
        connection.sendall(_refusal(Refused("too many ask it at once")))

    def _serve(self, connection: socket.socket) -> None:
        if peer_uid(connection) != os.geteuid():
            self._log.warning("control.stranger", uid=peer_uid(connection))
            return
        line = _first_line(connection)
        if line is None:
            return
        connection.settimeout(TAKE_WITHIN_S)
        try:
            ask = read_ask(line)
        except BadAskError as error:
            connection.sendall(_refusal(Refused(str(error))))
            return
        if ask.command == "status":
            connection.sendall(answer_line("result", self._desk.told()))
        elif ask.command in ("pause", "resume"):
            self._aside(connection, ask)
        else:
            self._order(connection, ask)

    def _aside(self, connection: socket.socket, ask: Ask) -> None:
        try:
            value = self._desk.aside(ask.command)
        except CuratorError as error:
            connection.sendall(answer_line("error", _told(error)))
        else:
            self._log.info("order.done", command=ask.command)
            connection.sendall(answer_line("result", value))

    def _order(self, connection: socket.socket, ask: Ask) -> None:
        order = Order(ask)
        # Heard, before it can become anything: who has given up meanwhile is found to be gone before it is begun.
        connection.sendall(self._waiting())
        try:
            self._desk.take(order, ask)
        except Refused as refused:
            connection.sendall(_refusal(refused))
            return
        except CuratorError as error:
            connection.sendall(answer_line("error", _told(error)))
            return
        try:
            self._relay(connection, order)
        except OSError:
            self._left(order)

    def _relay(self, connection: socket.socket, order: Order) -> None:
        said_at = time.monotonic()
        while True:
            try:
                line, last = order.lines.get(timeout=LOOK_EVERY_S)
            except queue.Empty:
                if not _still_there(connection, order):
                    self._left(order)
                    return
                if not order.begun and time.monotonic() - said_at >= TELL_EVERY_S:
                    said_at = time.monotonic()
                    connection.sendall(self._waiting())
                continue
            if not order.stop_asked and not _still_there(connection, order):
                self._left(order)
                return
            connection.sendall(line)
            if last:
                return

    def _left(self, order: Order) -> None:
        withdrawn = order.withdraw()
        what = "taken back" if withdrawn else "its client went away; it goes on"
        self._log.info("order.left", command=order.command, what=what)

    def _waiting(self) -> bytes:
        activity = str(self._desk.told().get("activity"))
        return answer_line("waiting", {"for": activity, "silent_s": round(self._desk.silent_s(), 1)})


def _first_line(connection: socket.socket) -> bytes | None:
    """Return the first line, without its end; None where none came in time, or it was too long."""
    until = time.monotonic() + ASK_WITHIN_S
    found = bytearray()
    while b"\n" not in found:
        left = until - time.monotonic()
        if left <= 0 or len(found) > MAX_QUESTION:
            return None
        connection.settimeout(left)
        part = connection.recv(4096)
        if not part:
            return None
        found += part
    line = bytes(found).partition(b"\n")[0]
    return line if len(line) <= MAX_QUESTION else None


def _still_there(connection: socket.socket, order: Order) -> bool:
    """Return whether the client still listens; a line of it asks to stop."""
    for _ in range(16):  # who never ceases to talk is not listened to for ever
        if not select.select([connection], [], [], 0)[0]:
            break
        part = connection.recv(4096)
        if not part:
            return False
        order.stop_asked = True  # there is only one thing that can be said
    return True


def _told(error: CuratorError) -> dict[str, Any]:
    return {
        "kind": type(error).__name__,
        "message": str(error),
        "hint": error.hint,
        "exit_code": error.exit_code,
    }


def _refusal(refused: Refused) -> bytes:
    return answer_line("refused", {"reason": str(refused), "quiet": refused.quiet})

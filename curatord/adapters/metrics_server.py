"""
A page for Prometheus, on a loopback address or a Unix socket: `GET /metrics`, and nothing else.

Other users of the machine may reach a loopback port, and pages in a browser too: so there are figures and no names or
paths in it, and a request that was meant for another host's name (a rebound one) is refused. A request has
`WITHIN_S` seconds and `MAX_HEAD` bytes; the page is made from memory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

from curatord.adapters.local_socket import Listener, bind, is_at, is_listened_at, unbind
from curatord.core.listen import TcpPlace, UnixPlace, is_loopback, place_of
from curatord.core.metrics import CONTENT_TYPE
from curatord.errors import ConfigError
from curatord.logs import Log

__all__ = ["MetricsServer", "why_not_there"]

WITHIN_S = 5.0
MAX_HEAD = 8 * 1024
SLOTS = 4
TAKEN = "another program listens there"


class MetricsServer:
    """Serves *page* at *listen*, which must be a good place (`core.listen`)."""

    def __init__(self, listen: str, page: Callable[[], str], log: Log) -> None:
        self.listen = listen
        self._place = place_of(listen)
        self._page = page
        self._log = log
        self._listener: Listener | None = None
        self._inode = 0
        self._unavailable: str | None = None  # why it could not be renewed, as it was said

    def start(self) -> None:
        """
        Begin to listen.

        Raises:
            ConfigError: That is not possible there.
        """
        try:
            listening = self._bound(self._place)
        except OSError as error:
            refused = ConfigError(
                f"metrics.listen: {self.listen} cannot be listened at: {error.strerror or error}",
                key="metrics.listen",
                hint="name a free port or a path in a folder of this user",
            )
            if error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
                refused.exit_code = 3  # whoever has the place may leave it, so a service manager should try again
            raise refused from error
        self._listener = Listener(listening, self._serve, name="metrics", slots=SLOTS, failed=self._failed)
        self._listener.start()

    @property
    def listening(self) -> bool:
        """Whether it can be asked, as far as it knows."""
        return self._listener is not None

    def check(self) -> None:
        """
        Listen anew where somebody removed the socket, as cleaners of old files do; it is tried again at each call.

        What another program put in its place is left, and said once.
        """
        if isinstance(self._place, TcpPlace):
            return
        if self._listener is not None:
            if is_at(Path(self._place.path), self._inode):
                return
            self._log.warning("metrics.lost", listen=self.listen, reason="the socket was gone")
            self._listener.stop(0.0)
            self._listener = None
        try:
            self.start()
        except ConfigError as error:
            if str(error) != self._unavailable:
                self._unavailable = str(error)
                self._log.warning("metrics.unavailable", error=str(error), hint="it is tried again at each tick")
            return
        self._unavailable = None
        self._log.info("metrics.listening", listen=self.listen)

    def stop(self) -> None:
        """Close it."""
        listener, self._listener = self._listener, None
        if listener is None:
            return
        if isinstance(self._place, UnixPlace):
            unbind(Path(self._place.path), self._inode)
        listener.stop(0.5)

    def _bound(self, place: TcpPlace | UnixPlace) -> socket.socket:
        if isinstance(place, TcpPlace):
            return _bound_tcp(place)
        path = Path(place.path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _leave_alone(path)
        made = bind(path.parent, path.name)
        self._inode = path.lstat().st_ino
        return made

    def _failed(self, error: Exception) -> None:
        self._log.error("metrics.failed", error=f"{type(error).__name__}: {error}", exc_info=error)

    def _serve(self, connection: socket.socket) -> None:
        head = _head(connection)
        if head is None:
            return
        status, body = self._answer(head)
        kind = CONTENT_TYPE if status.startswith("200") else "text/plain; charset=utf-8"
        only_head = head.startswith(b"HEAD ")
        data = body.encode()
        lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(data)}", "Connection: close"]
        connection.settimeout(WITHIN_S)
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + (b"" if only_head else data))
        with contextlib.suppress(OSError):  # else what was sent behind the head would make the kernel reset the answer
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(0.5)
            connection.recv(4096)

    def _answer(self, head: bytes) -> tuple[str, str]:
        first, *rest = head.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return "400 Bad Request", "that is no HTTP request\n"
        if words[0] not in ("GET", "HEAD"):
            return "405 Method Not Allowed", "only GET\n"
        hosts = [line.partition(":")[2].strip() for line in rest if line.lower().startswith("host:")]
        if isinstance(self._place, TcpPlace) and not all(_is_ours(host) for host in hosts):
            return "403 Forbidden", "ask by the address of this machine's loopback\n"
        if words[1].partition("?")[0] not in ("/metrics", "/metrics/"):
            return "404 Not Found", "the page is /metrics\n"
        return "200 OK", self._page()


def why_not_there(listen: str) -> str | None:
    """Return in words why no daemon could begin to listen at *listen* now, or None; nothing is left of the try."""
    from curatord.adapters.vitals.outlets import why_unwritable

    place = place_of(listen)
    if isinstance(place, UnixPlace) and (wrong := why_unwritable(place.path)) is not None:
        return wrong
    try:
        if isinstance(place, TcpPlace):
            _bound_tcp(place).close()
        else:
            _leave_alone(Path(place.path))
    except OSError as error:
        return error.strerror or str(error)
    return None


def _bound_tcp(place: TcpPlace) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    try:
        return socket.create_server((place.host, place.port), family=family, backlog=8)
    except OSError as error:
        if error.errno is None:
            raise
        words = os.strerror(error.errno)  # without what Python adds to them, which names the address a second time
        if error.errno == errno.EADDRINUSE:
            words = TAKEN
        elif error.errno == errno.EACCES and place.port < 1024:
            words = "ports below 1024 are root's"
        raise OSError(error.errno, words) from error


def _leave_alone(path: Path) -> None:
    """Raise OSError where what stands at *path* is not ours to replace."""
    if path.exists() and not path.is_socket():
        raise FileExistsError(f"{path} is there, and is no socket")
    if is_listened_at(path.parent, path.name):
        raise OSError(errno.EADDRINUSE, TAKEN)


def _is_ours(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    return name.lower() == "localhost" or is_loopback(name.strip("[]"))


def _head(connection: socket.socket) -> bytes | None:
    """Return the request's head; None where none came in time, or it was too long."""
    until = time.monotonic() + WITHIN_S
    found = b""
    while b"\r\n\r\n" not in found:
        left = until - time.monotonic()
        if left <= 0 or len(found) > MAX_HEAD:
            return None
        connection.settimeout(left)
        part = connection.recv(4096)
        if not part:
            return None
        found += part
    return found.partition(b"\r\n\r\n")[0]

"""
Unix sockets below a folder of ours: names that are too long for the kernel, who is at the other end, and listening.

A socket's address holds some hundred bytes (108 on Linux, 104 elsewhere), and state folders can lie deeper. The
socket is in the folder all the same: it is only *reached* by a shorter way, through the process's own descriptor of
the folder where the kernel offers that (`/proc/self/fd`), else through a link in a private temporary folder that is
there for the moment of the call.

The mode (0600) keeps others out on most systems and not on all, and a folder may be laxer than ours; so who connects
is asked of the kernel (`peer_uid`), on either side.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import socket
import stat
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["Listener", "bind", "connect", "is_at", "is_listened_at", "peer_uid", "unbind"]

ADDRESS_BYTES = 103  # of any of our systems, the closing NUL left out
BACKLOG = 16


@contextlib.contextmanager
def _reached(folder: Path, name: str) -> Iterator[str]:
    """Give an address of *name* in *folder* that is short enough, good for the moment."""
    plain = str(folder / name)
    if len(os.fsencode(plain)) <= ADDRESS_BYTES:
        yield plain
        return
    if sys.platform == "linux" and Path("/proc/self/fd").is_dir():
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{descriptor}/{name}"
        finally:
            os.close(descriptor)
        return
    base = tempfile.gettempdir()
    made = Path(tempfile.mkdtemp(prefix="c", dir=base if len(os.fsencode(base)) < 64 else "/tmp"))  # noqa: S108 - private
    try:
        (made / "s").symlink_to(folder.absolute())
        yield str(made / "s" / name)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def bind(folder: Path, name: str) -> socket.socket:
    """
    Return a socket that listens at *name* in *folder*, for its user only; whatever stale one stood there is replaced.

    Raises:
        OSError: It cannot be: a folder is in its place, or the file system knows no sockets.
    """
    fresh = f".{name}.new"
    (folder / fresh).unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux makes the file with the socket's own mode, so that nobody else's moment is in between.
        with contextlib.suppress(OSError):
            os.fchmod(made.fileno(), 0o600)
        with _reached(folder, fresh) as address:
            made.bind(address)
        (folder / fresh).chmod(0o600)
        made.listen(BACKLOG)
        (folder / fresh).replace(folder / name)
    except OSError:
        made.close()
        (folder / fresh).unlink(missing_ok=True)
        raise
    return made


def is_listened_at(folder: Path, name: str) -> bool:
    """Return whether a process, anybody's, listens at the socket *name* in *folder*; a stale one is nobody's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.setblocking(False)
        try:
            with _reached(folder, name) as address:
                made.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            return True  # it is busy, or not ours to ask: in either case not ours to replace
        return True


def is_at(path: Path, inode: int) -> bool:
    """Return whether the socket with *inode* is the one that others find at *path*."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_ino == inode


def unbind(path: Path, inode: int) -> None:
    """Remove the socket at *path* if it is the one with *inode*: another may have taken its place."""
    if is_at(path, inode):
        with contextlib.suppress(OSError):
            path.unlink()


def connect(folder: Path, name: str, timeout_s: float) -> socket.socket:
    """
    Return a connection to the socket *name* in *folder*, to a process of the same user.

    Raises:
        OSError: Nobody listens there, nobody takes it within *timeout_s*, or it is somebody else's.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(timeout_s)
        with _reached(folder, name) as address:
            made.connect(address)
        if peer_uid(made) != os.geteuid():
            raise PermissionError(f"{folder / name} belongs to another user's process")
    except OSError:
        made.close()
        raise
    return made


def peer_uid(connection: socket.socket) -> int | None:
    """Return the id of the user at the other end as the kernel knows it, None where it does not tell."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", told)[1])
        # `struct xucred` of macOS and FreeBSD: version, user, number of groups, groups. SOL_LOCAL is 0, the option 1.
        told = connection.getsockopt(0, getattr(socket, "LOCAL_PEERCRED", 1), 76)
        return int(struct.unpack_from("=II", told)[1])
    except (OSError, struct.error):
        return None


class Listener:
    """
    Takes connections of *listening* in a thread, each into a thread of its own, at most *slots* at a time.

    *serve* does one connection and is expected to bound its own time; *full* tells one that there is no room. Nothing
    wakes up while nobody connects.
    """

    def __init__(
        self,
        listening: socket.socket,
        serve: Callable[[socket.socket], None],
        *,
        name: str,
        slots: int,
        full: Callable[[socket.socket], None] = lambda _connection: None,
        failed: Callable[[Exception], None],
    ) -> None:
        self._listening = listening
        self._serve = serve
        self._full = full
        self._failed = failed
        self._name = name
        self._slots = slots
        self._at_work: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._accept, name=name, daemon=True)

    def start(self) -> None:
        """Begin to take connections."""
        self._listening.setblocking(False)
        self._thread.start()

    def stop(self, within_s: float) -> None:
        """Take no more; those at work may end within that time, then they are left behind."""
        self._wake.close()
        until = time.monotonic() + within_s
        if self._thread.ident is not None:
            self._thread.join(within_s)
        else:
            self._listening.close()  # else the thread does: it may be about to ask for it
        with self._lock:
            left = list(self._at_work)
        for thread in left:
            if thread.ident is not None:  # else it was just being made
                thread.join(max(until - time.monotonic(), 0))

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector, self._woken, self._listening:
            selector.register(self._listening, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not any(key.fileobj is self._woken for key, _ in selector.select()):
                try:
                    connection, _ = self._listening.accept()
                except BlockingIOError:
                    continue  # it went away again
                except OSError:
                    time.sleep(0.5)  # no descriptor is left just now; without the pause this would spin
                    continue
                self._begin(connection)

    def _begin(self, connection: socket.socket) -> None:
        thread = threading.Thread(target=self._one, args=(connection,), name=f"{self._name}-client", daemon=True)
        with self._lock:
            room = len(self._at_work) < self._slots
            if room:
                self._at_work.add(thread)
        try:
            if room:
                thread.start()
                return
            connection.settimeout(0.1)
            self._full(connection)
        except OSError:
            pass  # whoever it was has gone
        except RuntimeError:  # no thread can be made just now
            with self._lock:
                self._at_work.discard(thread)
        connection.close()

    def _one(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._serve(connection)
        except OSError:
            pass  # the other end went away, or was too slow; it is its own business
        except Exception as error:  # noqa: BLE001 - a thread's own end: a bug met by one client is told, and harms no other
            self._failed(error)
        finally:
            with self._lock:
                self._at_work.discard(threading.current_thread())

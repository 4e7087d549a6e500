"""
One daemon per state folder, and what others may know of it.

`daemon.lock` is held by the kernel for as long as the daemon lives, so there is no stale pid file to believe in:
whoever can lock it knows that no daemon runs. `daemon.json` says who holds it and what it is doing; it is only
believed while the lock is held.

A lock is that of a file and not of its name: where the state folder is removed under a running daemon, the next one
makes and locks another file of that name. So whoever has the lock looks whether its file is still the one that
others would find (`renew`), and each taking looks once more after it was locked.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from curatord.errors import BusyError, StateError

__all__ = ["DaemonInstance", "running_daemon", "silence_of"]

# The worker renews its word each five minutes; one call of a slow model may be longer than that.
SILENT_AFTER = timedelta(minutes=15)

TRIES = 5  # a lock whose file goes away so often while it is taken is none of a file system that we know
LOCK_NAME, STATE_NAME = "daemon.lock", "daemon.json"


class DaemonInstance:
    """The lock of the one daemon of *state_dir*, as a context manager; `BusyError` where there is one already."""

    def __init__(self, state_dir: Path) -> None:
        self._dir = state_dir
        self._descriptor = -1
        self._told_apart = True  # whether this file system says by its numbers which file is which

    def __enter__(self) -> Self:
        self._descriptor = self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_ours():
            (self._dir / STATE_NAME).unlink(missing_ok=True)
        self._release()

    def is_ours(self) -> bool:
        """Return whether the lock that we hold is the one that others find in the state folder."""
        path = self._dir / LOCK_NAME
        return self._descriptor >= 0 and (
            _is_file_at(self._descriptor, path) if self._told_apart else os.path.lexists(path)
        )

    def renew(self) -> bool:
        """
        Take the lock anew where its file was removed or replaced, and return whether that was needed.

        Raises:
            BusyError: Another daemon has taken it meanwhile.
            StateError: The state folder cannot be used just now.
        """
        if self.is_ours():
            return False
        self._release()
        try:
            self._dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StateError(f"cannot make {self._dir}: {error}", hint="look at the rights of its parents") from error
        self._descriptor = self._take()
        return True

    def _release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _take(self) -> int:
        """
        Return the locked file; one that was removed between its opening and its locking is nobody's lock.

        File systems that number a file anew at each look exist below containers and over networks; there, as before
        any of this, a name has to do.
        """
        path = self._dir / LOCK_NAME
        for _ in range(TRIES):
            descriptor = self._open_locked(path)
            if _is_file_at(descriptor, path):
                return descriptor
            os.close(descriptor)
        self._told_apart = False
        return self._open_locked(path)

    def _open_locked(self, path: Path) -> int:
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StateError(f"cannot open {path}: {error}", hint="look at the rights of the state folder") from error
        if not _lock(descriptor):
            os.close(descriptor)
            pid = running_daemon(self._dir).get("pid")
            raise BusyError(
                f"a daemon is at work on {self._dir} already" + (f" (process {pid})" if pid else ""),
                holder=str(pid or ""),
                hint="stop that one first, or give this one a `state_dir` of its own",
            )
        return descriptor

    def publish(self, state: Mapping[str, Any]) -> None:
        """
        Write what `status` shows of this daemon: a JSON object with `pid`, `since`, `at`, `watching`, `activity`.

        Raises:
            OSError: It cannot be written, or the state folder is another's by now (`renew`).
        """
        if not self.is_ours():
            raise FileNotFoundError(f"{self._dir / LOCK_NAME} was removed or replaced")
        temporary = self._dir / f".{STATE_NAME}.tmp"
        try:
            with os.fdopen(os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
                file.write(json.dumps(state))
            temporary.replace(self._dir / STATE_NAME)
        except OSError:
            temporary.unlink(missing_ok=True)  # nothing half-written is left on a full disk
            raise


def _lock(descriptor: int) -> bool:
    """Take the lock; a `status` that looks at it in this very moment holds it for an instant, so try for a while."""
    for attempt in range(20):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02 if attempt else 0)
        else:
            return True
    return False


def _is_file_at(descriptor: int, path: Path) -> bool:
    """Return whether *path* names the very file that is open as *descriptor*."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except OSError:
        return False


def running_daemon(state_dir: Path) -> dict[str, Any]:
    """
    Return what the running daemon of *state_dir* last published, with `alive` true, or `{"alive": False}`.

    Between taking the lock and the first publishing there is a moment in which only `alive` is known.
    """
    try:
        descriptor = os.open(state_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return {"alive": False}
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return {"alive": True, **_published(state_dir)}
    finally:
        os.close(descriptor)
    return {"alive": False}


def silence_of(daemon: Mapping[str, Any], now: datetime) -> str | None:
    """
    Return in words that the worker of *daemon* (of `running_daemon`) gave no sign of life for `SILENT_AFTER`, or None.

    One that has only just taken its lock, or is of a version that said nothing of this, is not accused.
    """
    at = daemon.get("at")
    if not daemon.get("alive") or not isinstance(at, str):
        return None
    try:
        last = datetime.fromisoformat(at)
    except ValueError:
        return f"its sign of life cannot be read: {at!r}"
    if last.tzinfo is None or now - last <= SILENT_AFTER:
        return None
    return f"no sign of life since {at}: it hangs, or the machine was asleep until just now"


def _published(state_dir: Path) -> dict[str, Any]:
    try:
        state = json.loads((state_dir / STATE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}

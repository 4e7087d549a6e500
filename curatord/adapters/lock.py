"""
The work lock: whatever writes holds it, one action long; and the waiting for any other `flock`.

The kernel holds it, so it dies with its process and cannot be stale. The file's text (the holder's pid) is only for
the message; a holder that was killed leaves its pid there, which is harmless, since nobody reads it without having
found the lock taken.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from curatord.errors import BusyError, StateError

__all__ = ["backup_lock", "is_run_at_work", "locked_file", "run_lock", "scan_lock", "work_lock"]

FILE_NAME = "work.lock"
RUN_FILE_NAME = "run.lock"
SCAN_FILE_NAME = "scan.lock"
BACKUP_FILE_NAME = "backup.lock"
POLL_S = 0.02


@contextmanager
def work_lock(state_dir: Path, wait_s: float = 10.0) -> Iterator[None]:
    """
    Hold the work lock of *state_dir*.

    Args:
        state_dir: The state folder; it must exist.
        wait_s: For how many seconds another holder is waited for.

    Raises:
        BusyError: It is still held; *holder* is that process' id where it could be read.
        StateError: The file cannot be opened, or its file system knows no locks.
    """
    with _held(state_dir, FILE_NAME, wait_s, "another curatord is at work on"):
        yield


@contextmanager
def run_lock(state_dir: Path) -> Iterator[None]:
    """
    Hold the lock of all runs of *state_dir*: one run at a time, and nobody waits for another's end.

    Raises:
        BusyError: A run is at work.
        StateError: The file cannot be opened, or its file system knows no locks.
    """
    with _held(state_dir, RUN_FILE_NAME, 0.0, "a run is at work on"):
        yield


def is_run_at_work(state_dir: Path) -> bool:
    """Return whether somebody holds the lock of all runs now; looking takes nothing and makes nothing."""
    try:
        descriptor = os.open(state_dir / RUN_FILE_NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def scan_lock(state_dir: Path, wait_s: float = 10.0) -> Iterator[None]:
    """
    Hold the lock of all scans of *state_dir*: findings are added to counts, so two must not read the same stretch.

    Raises:
        BusyError: Another scan is at work, and was still after *wait_s* seconds.
        StateError: The file cannot be opened, or its file system knows no locks.
    """
    with _held(state_dir, SCAN_FILE_NAME, wait_s, "a scan is at work on"):
        yield


@contextmanager
def backup_lock(state_dir: Path, wait_s: float = 10.0) -> Iterator[None]:
    """
    Hold the lock of all backups of *state_dir*: nobody collects bytes while another makes or takes out a backup.

    Raises:
        BusyError: A backup is at work, and was still after *wait_s* seconds.
        StateError: The file cannot be opened, or its file system knows no locks.
    """
    with _held(state_dir, BACKUP_FILE_NAME, wait_s, "a backup is at work in"):
        yield


@contextmanager
def _held(state_dir: Path, name: str, wait_s: float, words: str) -> Iterator[None]:
    path = state_dir / name
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StateError(f"cannot open {path}: {error}", hint="look at the state folder's permissions") from error
    try:
        if not _lock(descriptor, path, wait_s):
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise BusyError(
                f"{words} {state_dir}" + (f" (process {holder})" if holder else ""),
                holder=holder,
                hint="try again when it is done",
            )
        with suppress(OSError):  # a full disk: the lock holds all the same, and only a message lacks the holder
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def locked_file(folder: int, name: str, shown: str, wait_s: float = 10.0) -> Iterator[None]:
    """
    Hold an exclusive `flock` on another program's lock file *name* in an open folder, made where it is missing.

    Raises:
        BusyError: It is still held after *wait_s* seconds; *shown* is the path in the message.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(name, flags, 0o644, dir_fd=folder)
    try:
        if not _lock(descriptor, Path(shown), wait_s):
            raise BusyError(f"{shown} is held by another program", hint="try again when it is done")
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path, wait_s: float) -> bool:
    """Take the lock within *wait_s* seconds; return whether it was had."""
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                raise StateError(
                    f"{path} cannot be locked: {error}", hint="the folder must be on a file system with locks (flock)"
                ) from error
        else:
            return True
        left = until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(POLL_S, left))

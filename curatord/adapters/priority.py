"""
Standing back for others: the processor's and the disk's priority of this process.

Both are only ever lowered to what is asked for; where a service manager has lowered them further, or its filter of
system calls forbids to ask, nothing is done. On Linux they belong to a thread and are inherited by the threads and
processes it makes later, so the daemon lowers them before it makes any. Raising the disk's class again after a first
scan needs no rights; raising the processor's would, and is never tried.

The disk's priority has no function in Python: on Linux it is a system call by its number (ioprio_set(2)), on macOS a
function of the C library (setiopolicy_np(3)). Elsewhere there is none, which costs nothing but the courtesy.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Iterator
from typing import Any, Literal

__all__ = ["gently", "stand_back"]

Io = Literal["idle", "low", "normal"]

# (get, set) by machine, from the kernel's tables.
_LINUX_CALLS = {
    "x86_64": (252, 251),
    "aarch64": (31, 30),
    "riscv64": (31, 30),
    "armv7l": (315, 314),
    "ppc64le": (274, 273),
    "s390x": (283, 282),
}
_CLASS_SHIFT = 13
_LINUX = {"idle": (3 << _CLASS_SHIFT), "low": (2 << _CLASS_SHIFT) | 7}
_MAC = {"idle": 3, "low": 5}  # IOPOL_THROTTLE, IOPOL_UTILITY


def stand_back(*, nice: int, io: Io) -> None:
    """Lower this thread's priorities to *nice* and *io*, where they are higher."""
    now = os.getpriority(os.PRIO_PROCESS, 0)
    if now < nice:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, nice)
    if io != "normal":
        _lower_io(io)


@contextlib.contextmanager
def gently() -> Iterator[None]:
    """Leave the disk to everybody else for as long as this lasts."""
    before = _lower_io("idle")
    try:
        yield
    finally:
        if before is not None:
            _set_io(before)


def _lower_io(io: Io) -> int | None:
    """Lower the disk's priority to *io*; return what it was, None where nothing was changed."""
    wanted = _wanted(io)
    now = _get_io()
    if wanted is None or now is None or _rank(now) >= _rank(wanted):
        return None
    return now if _set_io(wanted) else None


def _wanted(io: Io) -> int | None:
    return _LINUX.get(io) if sys.platform == "linux" else _MAC.get(io) if sys.platform == "darwin" else None


def _rank(value: int) -> int:
    """Return how far *value* stands back."""
    if sys.platform == "darwin":
        return {3: 3, 5: 2}.get(value, 0)
    # Class 0 is "by niceness", which is best effort of some level; the real-time class stands before all.
    kind, level = value >> _CLASS_SHIFT, value & 7
    return {1: -8 + level, 0: 0, 2: level, 3: 100}.get(kind, 0)


def _get_io() -> int | None:
    library = _library()
    if library is None:
        return None
    if sys.platform == "darwin":
        value = library.getiopolicy_np(0, 0)
    else:
        calls = _LINUX_CALLS.get(platform.machine())
        value = library.syscall(calls[0], 1, 0) if calls is not None else -1
    return None if value < 0 else int(value)


def _set_io(value: int) -> bool:
    library = _library()
    if library is None:
        return False
    if sys.platform == "darwin":
        return bool(library.setiopolicy_np(0, 0, value) == 0)
    calls = _LINUX_CALLS.get(platform.machine())
    return calls is not None and bool(library.syscall(calls[1], 1, 0, value) == 0)


def _library() -> Any:
    if sys.platform not in ("linux", "darwin"):
        return None
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True)
    except (ImportError, OSError):
        return None

"""
Questions to a disk that may never answer: on a network mount whose server is gone a look at a path does not return.

Each is asked in a thread of its own, all of them within one time. A thread that hangs is left to hang, since nothing
can end it but its disk or the process; until then the same is not asked again, so that there is never more than one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

__all__ = ["in_time"]

T = TypeVar("T")

_asked: dict[str, threading.Thread] = {}  # by key; those that have not come back


def in_time(asks: Mapping[str, Callable[[], T]], *, within_s: float) -> dict[str, T]:
    """
    Return what those of *asks* said that answered *within_s*, all together; each by the key that names its disk.

    Raises:
        Exception: What one of them raised.
    """
    answers: dict[str, T] = {}
    faults: dict[str, Exception] = {}

    def answer(key: str) -> None:
        try:
            answers[key] = asks[key]()
        except Exception as fault:  # noqa: BLE001 - it is raised by who asked
            faults[key] = fault

    until = time.monotonic() + within_s
    keys = [key for key in asks if not _hangs(key)]
    for key in keys:
        _asked[key] = threading.Thread(target=answer, args=(key,), name="in-time", daemon=True)
        _asked[key].start()
    for key in keys:
        _asked[key].join(max(0.0, until - time.monotonic()))
    came = [key for key in keys if not _hangs(key)]
    for key in came:
        if key in faults:
            raise faults[key]
    return {key: answers[key] for key in came}


def _hangs(key: str) -> bool:
    """Return whether it was asked and has not come back."""
    thread = _asked.get(key)
    if thread is not None and not thread.is_alive():
        _asked.pop(key, None)
        return False
    return thread is not None

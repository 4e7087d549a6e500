"""A trial of watching: real watches on the real places, and one file made where we may make one."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from curatord.adapters.watch import Hint, RootState, Watcher

__all__ = ["WAIT_S", "try_watching"]

WAIT_S = 3.0  # an event takes half a second: the library holds it back for so long, to pair renames


def try_watching(
    roots: Sequence[Path], probe_in: Path | None, wait_s: float = WAIT_S
) -> tuple[list[RootState], float | None]:
    """
    Return how each of *roots* can be watched, and after how many seconds a file made in *probe_in* was told of.

    The file is removed again. None: it was not told of within *wait_s*, or *probe_in* is None.

    Raises:
        OSError: The probe cannot be made.
    """
    told = threading.Event()
    name = f".doctor-probe-{os.getpid()}"

    def hear(hint: Hint) -> None:
        if hint is not None and hint.endswith(name):
            told.set()

    watcher = Watcher([*roots, *([probe_in] if probe_in is not None else [])], hear, mode="auto")
    watcher.start()
    try:
        took = None if probe_in is None else _probe(probe_in / name, told, wait_s)
        states = watcher.states()
    finally:
        watcher.stop()
    return states[: len(roots)], took


def _probe(path: Path, told: threading.Event, wait_s: float) -> float | None:
    began = time.monotonic()
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, b"a probe of curatord doctor\n")
        return time.monotonic() - began if told.wait(wait_s) else None
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)

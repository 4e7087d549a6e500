"""A disk that does not answer, as a network mount whose server is gone."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from curatord.adapters import in_time

__all__ = ["dead_disk"]


@contextmanager
def dead_disk(folder: Path) -> Iterator[threading.Event]:
    """Make a look at what is in or at *folder* hang until the event is set, at the end of this at the latest."""
    real, alive = os.lstat, threading.Event()

    def lstat(path: str, **said: int) -> os.stat_result:
        if str(path).startswith(str(folder)):
            alive.wait(30)
        return real(path, **said)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "lstat", lstat)
        try:
            yield alive
        finally:
            alive.set()
            for thread in list(in_time._asked.values()):
                thread.join()
            in_time._asked.clear()

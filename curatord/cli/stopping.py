"""Ctrl-C and SIGTERM as a question that work asks between two actions; the second one does not wait."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stopping"]


class Stopping:
    """Remembers whether a signal asked to stop. *number* is that signal's, 0 while none came."""

    def __init__(self) -> None:
        self.number = 0

    def asked(self) -> bool:
        """Whether work should end after its current action."""
        return self.number != 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM for the time of a work: the first asks, the second raises `KeyboardInterrupt`."""

        def take(number: int, _frame: FrameType | None) -> None:
            if self.number:
                raise KeyboardInterrupt
            self.number = number

        before = {number: signal.signal(number, take) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

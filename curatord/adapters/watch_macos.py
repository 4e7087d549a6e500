"""
The observer for macOS: watchdog's own, which also tells when the system has lost count.

FSEvents may put many changes together into one word about a folder: "something below it changed, look yourself"
(`MustScanSubDirs`), when its queue overflowed or a client was too slow. watchdog 7.1 knows that flag and raises nothing
for it, so that whatever happened there would stay unseen until the next rescan. Here it asks for one.

Source: Apple, "File System Events Programming Guide" (handling events, kFSEventStreamEventFlagMustScanSubDirs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from watchdog.observers.api import BaseObserver

__all__ = ["observer"]


def observer(lost: Callable[[], None]) -> BaseObserver:
    """Return an observer that calls *lost*, from a thread of its own, where single changes are not told any more."""
    from watchdog.observers.fsevents import FSEventsEmitter, FSEventsObserver

    class Emitter(FSEventsEmitter):
        def queue_events(self, timeout: float, events: list[Any]) -> None:  # type: ignore[override]  # as it is there
            # The list is emptied there.
            doubtful = any(one.must_scan_subdirs or one.is_user_dropped or one.is_kernel_dropped for one in events)
            super().queue_events(timeout, events)
            if doubtful:
                lost()

    made = FSEventsObserver()
    made._emitter_class = Emitter  # there is no other way in: its own class is written into its constructor
    return made

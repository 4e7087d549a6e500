"""Examinations of events: do they arrive, and does the kernel allow as many watches as are needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from curatord.adapters.vitals.inotify import Used, count_folders, limits, used_by
from curatord.adapters.vitals.mounts import file_system_of
from curatord.application.doctor.ward import Ward
from curatord.application.working import Service
from curatord.core.doctor import Check
from curatord.core.doctor.watching import EventFacts, InotifyFacts, WatchedPlace, check_events, check_inotify

__all__ = ["events", "inotify"]

TOO_MANY = 200_000  # folders that a trial does not set watches on; the check of the limits speaks of them


def events(ward: Ward) -> Sequence[Check]:
    """Return whether events arrive: by the word of the running daemon, else by a trial, and by a file of our own."""
    from curatord.adapters.vitals.watch_trial import WAIT_S, try_watching

    mode = ward.parts.config.daemon.watch
    published = ward.daemon.get("watches")
    by_daemon = ward.daemon["alive"] and isinstance(published, list) and bool(published)
    folders = count_folders(_roots(ward))
    roots = [] if by_daemon or mode == "poll" or folders.number > TOO_MANY else _roots(ward)
    probe_in, unprobed = _probe_place(ward)
    states, took = ([], None) if mode == "poll" else try_watching(roots, probe_in)
    places = [(state.path, state.how, state.reason) for state in states]
    if by_daemon and isinstance(published, list):
        places = [(row["path"], row["how"], row.get("reason", "")) for row in published]
    facts = EventFacts(
        probe_s=took,
        unprobed=unprobed,
        waited_s=WAIT_S,
        places=[WatchedPlace(path, how, reason, file_system_of(path)) for path, how, reason in places],
        by_daemon=by_daemon,
        mode=mode,
        links=folders.links,
    )
    return [check_events(facts)]


def _roots(ward: Ward) -> list[Path]:
    """Return the folders and files that a daemon would watch."""
    return list(Service(ward.parts).watch_roots())


def _probe_place(ward: Ward) -> tuple[Path | None, str | None]:
    """Return where a file may be made for a moment, or why nowhere."""
    folder = ward.parts.state_dir
    if not folder.is_dir():
        return None, "there is no state folder yet to try events in"
    if not os.access(folder, os.W_OK | os.X_OK):
        return None, "events were not tried: the state folder cannot be written"
    return folder, None


def inotify(ward: Ward) -> Sequence[Check]:
    """Return whether the kernel's limits are high enough."""
    watches, instances = limits()
    if watches is None or instances is None:
        return [check_inotify(InotifyFacts(max_watches=None, max_instances=None, folders=0))]
    folders = count_folders(_roots(ward))
    of = partial(used_by, os.getuid())
    used, pid = of(), ward.daemon.get("pid")
    ours = of(only=pid) if isinstance(pid, int) else Used(0, 0)
    facts = InotifyFacts(
        max_watches=watches,
        max_instances=instances,
        folders=folders.number,
        counted_whole=folders.whole,
        used_watches=used.watches,
        used_instances=used.instances,
        ours=ours.watches,
    )
    return [check_inotify(facts)]

"""Other curatord daemons of this user, found by the lock that each holds open; no process is asked for anything."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from curatord.adapters.instance import LOCK_NAME, running_daemon
from curatord.core.doctor.running import OtherDaemon

__all__ = ["other_daemons"]

PROC = Path("/proc")


def other_daemons(
    ours: Path, libraries: Collection[tuple[str, str]], proc: Path = PROC
) -> tuple[list[OtherDaemon], bool]:
    """
    Return the daemons with other state folders than *ours*, and whether this system lets us look.

    *libraries* are (name, path) of ours; those that another daemon says to curate too are named.
    """
    try:
        numbers = sorted(int(path.name) for path in proc.iterdir() if path.name.isdigit())
    except OSError:
        return [], False
    own = os.path.realpath(ours)
    found = []
    for number in numbers:
        for folder in _locked_by(proc / str(number)):
            if folder != own and (state := running_daemon(Path(folder)))["alive"]:
                found.append(OtherDaemon(pid=number, state_dir=folder, shared=_shared(state, libraries)))
    return found, bool(numbers)


def _locked_by(process: Path) -> set[str]:
    """Return the state folders whose daemon lock *process* has open."""
    folders: set[str] = set()
    try:
        if b"curatord" not in (process / "cmdline").read_bytes():
            return folders
        for descriptor in (process / "fd").iterdir():
            target = descriptor.readlink()
            if target.name == LOCK_NAME:
                folders.add(str(target.parent))
    except OSError:
        pass  # it has ended, or is another user's
    return folders


def _shared(state: dict[str, Any], libraries: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names of ours that lie at a path which the other daemon published."""
    theirs = state.get("libraries")
    if not isinstance(theirs, list):
        return ()
    places = {os.path.realpath(path) for path in theirs if isinstance(path, str)}
    return tuple(name for name, path in libraries if os.path.realpath(path) in places)

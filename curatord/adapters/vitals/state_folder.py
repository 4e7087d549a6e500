"""The state folder as it is on disk, and the room on the file systems that we write to."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from curatord.adapters.decisions import DecisionsFile
from curatord.adapters.vitals.mounts import existing, file_system_of
from curatord.core.doctor.setup import DiskFacts, StateFacts
from curatord.errors import StateError

__all__ = ["look_at_disks", "look_at_state"]

INTENTS = "journal"


def look_at_state(path: Path) -> StateFacts:
    """Return what the folder at *path* is like; nothing is made."""
    user = os.geteuid()
    if not os.path.lexists(path):
        return StateFacts(path=str(path), exists=False, makeable=_unmakeable(path), user=user)
    try:
        found = path.stat()
    except OSError as error:
        return StateFacts(path=str(path), exists=True, error=error.strerror or str(error), user=user)
    if not stat.S_ISDIR(found.st_mode):
        return StateFacts(path=str(path), exists=True, error="it is no folder", user=user)
    return StateFacts(
        path=str(path),
        exists=True,
        mode=stat.S_IMODE(found.st_mode),
        owner=found.st_uid,
        user=user,
        writable=_may_write(path),
        file_system=file_system_of(str(path)),
        unfinished=_unfinished(path),
        decisions=_decisions(path),
    )


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)


def _unmakeable(path: Path) -> str | None:
    above = existing(str(path))
    if not above.is_dir():
        return f"{above} is no folder"
    return None if _may_write(above) else f"{above} cannot be written by this user"


def _unfinished(path: Path) -> int:
    try:
        return sum(found.suffix == ".json" for found in (path / INTENTS).iterdir())
    except OSError:
        return 0


def _decisions(path: Path) -> tuple[str, str] | None:
    if not os.access(path, os.R_OK | os.X_OK):
        return None  # the folder's own rights are told
    try:
        DecisionsFile(state_dir=path).load()
    except StateError as error:
        return str(error), error.hint
    return None


def look_at_disks(places: Iterable[tuple[str, str]]) -> list[DiskFacts]:
    """
    Return the file systems of *places*, pairs of a path (there or not) and what it holds in words, each once.

    Raises:
        OSError: One cannot be asked.
    """
    holds: dict[int, list[str]] = {}
    asked: dict[int, os.statvfs_result] = {}
    for path, what in places:
        there = existing(path)
        device = there.stat().st_dev
        asked.setdefault(device, os.statvfs(there))
        held = holds.setdefault(device, [])
        if what not in held:
            held.append(what)
    return [
        DiskFacts(
            holds=tuple(holds[device]),
            free=found.f_bavail * found.f_frsize,
            size=found.f_blocks * found.f_frsize,
            inodes_free=found.f_favail if found.f_files else None,
        )
        for device, found in asked.items()
    ]

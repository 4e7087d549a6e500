"""
Which layout a library has and which host it belongs to, from its path and from what stands at its root.

A library is one of three kinds: `agent-skills` (`<name>/SKILL.md`, perhaps grouped in folders), `hermes` (the same
with Hermes' own files beside it), `flat` (also `<name>.md` at the root). They differ in what else is a skill, where
archived packages go and whose ownership files are read; one scanner reads all three.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection
from datetime import UTC, datetime

from curatord.core.hosts import HOST_FOLDERS
from curatord.core.names import Layout
from curatord.core.settings import HostName, LibrarySettings

__all__ = ["HERMES_MARKERS", "archive_of", "archived_name", "detect_layout", "host_of_path"]

HERMES_MARKERS = frozenset(
    {
        ".usage.json", ".bundled_manifest", ".hub", ".curator_state", ".curator_suppressed", ".curator_ledger.jsonl",
        ".archive", ".curator_backups",
    }
)  # fmt: skip

_STAMP = re.compile(r"(?P<name>.+)-(?P<stamp>\d{14})\Z")


def host_of_path(path: str) -> HostName | None:
    """Return the host whose library lies at *path* (absolute, POSIX), or None where the path does not tell."""
    parents = path.rstrip("/").split("/")[:-1]
    for folder, host in HOST_FOLDERS:
        if folder in parents:
            return host
    return None


def detect_layout(
    settings: LibrarySettings,
    names: Collection[str],
    *,
    categories: Callable[[], bool],
    flat: Callable[[], bool],
) -> Layout:
    """
    Return the layout of a library; the configuration's word goes first, then the host's habit, then what is there.

    Args:
        settings: Only *layout*, *host* and *path* are used.
        names: Names at the library's root, hidden ones too.
        categories: Asked last of all whether some folder at the root has a `DESCRIPTION.md` and no `SKILL.md`.
        flat: Asked likewise whether some `<name>.md` at the root has a description in its header.
    """
    if settings.layout != "auto":
        return settings.layout
    host = settings.host or host_of_path(settings.path)
    if host == "hermes":
        return "hermes"
    if host == "dsh":
        return "flat"
    if not HERMES_MARKERS.isdisjoint(names) or (host is None and categories()):
        return "hermes"
    # Other hosts do not load a loose file, so a README with a header must not turn their library into a flat one.
    return "flat" if host is None and flat() else "agent-skills"


def archive_of(settings: LibrarySettings, layout: Layout) -> str:
    """Return the absolute path of a library's archive (contract, section 4)."""
    if settings.archive is not None:
        return settings.archive
    parent, name = posixpath.split(settings.path.rstrip("/"))
    return (
        posixpath.join(parent, name, ".archive") if layout == "hermes" else posixpath.join(parent, f".{name}-archive")
    )


def archived_name(folder: str) -> tuple[str, datetime | None]:
    """
    Return the skill's name and the time in the name of an archived package's *folder*.

    Fourteen digits that are no time of day are part of the name.
    """
    found = _STAMP.match(folder)
    if found is None:
        return folder, None
    try:
        at = datetime.strptime(found["stamp"], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return folder, None
    return found["name"], at

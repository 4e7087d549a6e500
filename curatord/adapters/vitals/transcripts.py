"""A place with transcripts as it is on disk: is it there, can it be listed, how much of it was not read yet."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from curatord.adapters.small_files import read_small
from curatord.core.doctor.sources import Retention
from curatord.core.path_text import printable_path
from curatord.core.settings import HostName
from curatord.errors import OwnershipError
from curatord.ports.ingest_store import Known, signed_inode
from curatord.ports.source import Source

__all__ = ["Listing", "list_transcripts", "retention_of"]

LIST_S = 20.0
LOOKING_LIKE = (".jsonl", ".jsonl.zst", ".jsonl.gz", ".db", ".sqlite", ".vscdb")
MAX_NEAR = 20
MAX_LOOKED_AT = 20_000
CLAUDE_KEEPS_DAYS = 30  # by default, when its settings do not say (bugs B095)
RISKY_DAYS = 3


class Listing(NamedTuple):
    """What is there. *unread* are times of files, in seconds; it and *files* are None where listing took too long."""

    exists: bool
    error: str | None = None
    files: int | None = None
    unread: tuple[float, ...] | None = None
    unseen: tuple[str, ...] = ()
    near: tuple[str, ...] = ()


def list_transcripts(source: Source, known: Mapping[str, Known], *, seconds: float = LIST_S) -> Listing:
    """Return what *source* lists now, one stat a file; *known* is what was read of it."""
    until = time.monotonic() + seconds
    sizes = {path: size for path, _, _, _, size, _, _ in known.values()}
    inodes = {(dev, ino): size for _, _, dev, ino, size, _, _ in known.values()}
    files, unread = 0, []
    try:
        for item in source.items():
            files += 1
            read = sizes.get(item.path)
            if read is None:
                read = inodes.get((signed_inode(item.dev), signed_inode(item.ino)))
            if read != item.size:
                unread.append(item.mtime_ns / 1e9)
            if files % 1000 == 0 and time.monotonic() > until:
                return Listing(exists=True, unseen=tuple(map(printable_path, source.problems)))
    except FileNotFoundError:
        return Listing(exists=False)
    except OSError as error:
        return Listing(exists=True, error=error.strerror or str(error))
    near = _near(source.path) if not files else ()
    return Listing(
        exists=True, files=files, unread=tuple(unread), unseen=tuple(map(printable_path, source.problems)), near=near
    )


def _near(root: str) -> tuple[str, ...]:
    """Return some files below *root* that look like transcripts of some host."""
    found: list[str] = []
    looked_at = 0
    for folder, _, names in os.walk(root):
        looked_at += len(names) + 1
        found += [f"{folder}/{name}" for name in sorted(names) if name.endswith(LOOKING_LIKE)]
        if len(found) >= MAX_NEAR or looked_at >= MAX_LOOKED_AT:
            break
    return tuple(found[:MAX_NEAR])


def retention_of(host: HostName, path: str, unread: tuple[float, ...] | None, now: datetime) -> Retention | None:
    """Return how long the host keeps its transcripts, for hosts that are known to delete them."""
    if host != "claude-code":
        return None
    settings = path.rstrip("/").rpartition("/")[0] + "/settings.json"
    try:
        data = read_small(settings)
        told = json.loads(data) if data is not None else {}
    except (OwnershipError, ValueError, RecursionError):
        told = {}
    days = told.get("cleanupPeriodDays") if isinstance(told, dict) else None
    configured = isinstance(days, int) and not isinstance(days, bool) and days > 0
    keeps = days if configured and isinstance(days, int) else CLAUDE_KEEPS_DAYS
    where = (
        f"cleanupPeriodDays in {settings}" if configured else f"its default; cleanupPeriodDays in {settings} sets it"
    )
    oldest = now.timestamp() - (keeps - RISKY_DAYS) * 86400
    return Retention(days=keeps, where=where, at_risk=sum(at < oldest for at in unread or ()))

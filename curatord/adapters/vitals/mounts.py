"""On which file system a path lies, by the kernel's own table."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["existing", "file_system_of"]

TABLE = Path("/proc/self/mountinfo")


def existing(path: str) -> Path:
    """Return *path*, or the nearest folder above it that exists."""
    found = Path(path).absolute()
    while not os.path.lexists(found) and found != found.parent:
        found = found.parent
    return found


def file_system_of(path: str, table: str | None = None) -> str:
    """
    Return the type of the file system that *path* lies on or would lie on (`ext4`, `nfs4`, `9p`).

    *table* is the text of `mountinfo` (proc(5)), by default the kernel's. Empty where there is no such table.
    """
    if table is None:
        try:
            table = TABLE.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return ""
    real = os.path.realpath(existing(path))
    best, kind = "", ""
    for line in table.splitlines():
        fields, _, rest = line.partition(" - ")
        parts, types = fields.split(" "), rest.split(" ")
        if len(parts) < 5 or not types[0]:
            continue
        mount = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), parts[4])
        # A later mount at one place hides the earlier one.
        if len(mount) >= len(best) and (real == mount or real.startswith(mount.rstrip("/") + "/")):
            best, kind = mount, types[0]
    return kind

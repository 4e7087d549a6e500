"""
The one name of a path: links followed, and on a volume that does not tell case, as the folder itself is written.

On a Mac `~/.Claude/Projects` opens `~/.claude/projects`. The kernel's change events name the true one, so a path from
the configuration must be turned into it before the two can be compared; and two libraries that differ in case only are
one.
"""

from __future__ import annotations

import os
from collections.abc import Callable

__all__ = ["true_path"]

_MAX_PATH = 1024


def _kernels_name(path: str) -> str | None:
    """Return the kernel's own name of what is there, where it can be asked (macOS, `F_GETPATH`); else None."""
    import fcntl

    command = getattr(fcntl, "F_GETPATH", None)
    if command is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.fsdecode(fcntl.fcntl(descriptor, command, bytes(_MAX_PATH)).rstrip(b"\0"))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def true_path(path: str, *, kernels_name: Callable[[str], str | None] = _kernels_name) -> str:
    """
    Return the absolute true name of *path*; of what is not there yet, that of the part that is, with the rest as said.

    Args:
        path: As configured.
        kernels_name: Asks the kernel; tests put another volume in its place.
    """
    real = os.path.realpath(path)
    rest: list[str] = []
    here = real
    while here not in ("/", ""):
        name = kernels_name(here)
        if name is not None:
            return os.path.join(name, *reversed(rest))  # noqa: PTH118 - text
        rest.append(os.path.basename(here))  # noqa: PTH119 - text
        here = os.path.dirname(here)  # noqa: PTH120 - text
    return real

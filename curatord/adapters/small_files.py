"""Reading the small files of other programs: whole, bounded, and never anything but an ordinary file."""

from __future__ import annotations

import os
import stat

from curatord.errors import OwnershipError

__all__ = ["MAX_BYTES", "read_small"]

MAX_BYTES = 64 * 1024 * 1024


def read_small(path: str, *, tail: int | None = None) -> bytes | None:
    """
    Return the bytes of *path* (with *tail*, at most so many of its newest whole lines), or None where there is nothing.

    A link is followed, since people keep such files in other places. Opening never waits for a pipe's other end.

    Raises:
        OwnershipError: It is there and cannot be read: permissions, no ordinary file, a dead link, too large.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError) as error:
        if os.path.islink(path):  # noqa: PTH114 - text
            raise OwnershipError(f"{path} is a link that leads nowhere") from error
        return None
    except OSError as error:
        raise OwnershipError(f"{path} cannot be read: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise OwnershipError(f"{path} is no ordinary file")
            if tail is not None and status.st_size > tail:
                file.seek(status.st_size - tail)
                file.readline()
                return file.read(tail)
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise OwnershipError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise OwnershipError(f"{path} is larger than {MAX_BYTES} bytes")
    return data

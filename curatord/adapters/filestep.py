"""
Bringing one file from what was seen to what it shall be, raced by an editor and killed at any instant.

New content is written under a hidden name ending in `w`, synced, and renamed to one ending in `x`: a file at `x` is
always whole. Then the two files are exchanged in one step, and what came out, now at `x`, is compared with what was to
be replaced; whoever saved in between gets their version back. A kill leaves at most a torn `w`, which is nothing, and a
whole `x`, which is either of the two known contents or somebody's edit of the last instant (`settle`).
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TypeAlias

from curatord.adapters.disk import Disk, exists_at
from curatord.adapters.journal_dir import blob_id
from curatord.core.hermes_edits import edit_item, see_item, see_line, set_line
from curatord.core.journal import EditItem, FileImage, SetLine, Sighting, WriteFile, inverse
from curatord.errors import InputError
from curatord.ports.mutator import EditedError, LinkError

__all__ = ["FileStep", "Found", "image_of", "read_file", "see", "settle", "swap"]

FileStep: TypeAlias = WriteFile | EditItem | SetLine
Found: TypeAlias = tuple[bytes, os.stat_result] | None

MAX_FILE_BYTES = 64 << 20  # more is no text that anybody edits; a bound for what is read whole


def read_file(folder: int, name: str) -> Found:
    """
    Return content and facts of the file *name*, or None where there is none.

    Raises:
        LinkError: It is a link, or no regular file.
        InputError: It is larger than anything we edit.
    """
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise LinkError(f"{name!r} is a link or no file", hint="put the file itself there") from error
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise LinkError(f"{name!r} is no regular file")
        if found.st_size > MAX_FILE_BYTES:
            raise InputError(f"{name!r} has {found.st_size} bytes, more than the {MAX_FILE_BYTES} that are ever edited")
        chunks = []
        while chunk := os.read(descriptor, 1 << 20):
            chunks.append(chunk)
        return b"".join(chunks), found
    finally:
        os.close(descriptor)


def image_of(found: Found) -> FileImage | None:
    """Return what was found as an image, or None for no file."""
    return None if found is None else FileImage(blob=blob_id(found[0]), mode=stat.S_IMODE(found[1].st_mode))


def see(step: FileStep, found: Found) -> Sighting:
    """Return whether *found*, the step's file, is before or after it."""
    data = None if found is None else found[0]
    if isinstance(step, EditItem):
        return see_item(data, step)
    if isinstance(step, SetLine):
        return see_line(data, step)
    have = image_of(found)
    if have == step.after:
        return Sighting(what="after")
    if have == step.before:
        return Sighting(what="before")
    return Sighting(what="other", found="it is gone" if have is None else "it was changed since")


def swap(
    disk: Disk, folder: int, name: str, found: Found, data: bytes | None, mode: int, temporary: str, *, shown: str
) -> None:
    """
    Bring the file *name* from *found* to *data* with *mode*, synced; None: to no file.

    Raises:
        EditedError: Somebody wrote it just now; their version stands.
    """
    torn, whole = f"{temporary}w", f"{temporary}x"
    if data is None:
        # Taken out under a hidden name first, so that what is removed is what was looked at.
        disk.rename_new(folder, name, folder, whole)
        if image_of(read_file(folder, whole)) != image_of(found):
            disk.rename_new(folder, whole, folder, name)
            raise EditedError(f"{shown} was edited just now")
        disk.unlink(folder, whole)
        disk.sync_dir(folder)
        return
    if exists_at(folder, torn) is not None:
        disk.unlink(folder, torn)
    disk.write_new(folder, torn, data, mode=mode, like=None if found is None else found[1])
    try:
        disk.rename_new(folder, torn, folder, whole)
        if found is None:
            disk.rename_new(folder, whole, folder, name)
        elif disk.replace(folder, name, whole):
            if image_of(read_file(folder, whole)) != image_of(found):
                disk.replace(folder, name, whole)
                raise EditedError(f"{shown} was edited just now")
            disk.unlink(folder, whole)
    except (OSError, InputError):
        for left in (torn, whole):
            there = read_file(folder, left)
            if there is not None and there[0] == data:
                disk.unlink(folder, left)
        raise
    disk.sync_dir(folder)


def settle(disk: Disk, folder: int, name: str, temporary: str, step: FileStep) -> None:
    """Clear away what a kill left of a swap, so that the file *name* alone tells whether *step* was done."""
    torn, whole = f"{temporary}w", f"{temporary}x"
    if exists_at(folder, torn) is not None:
        disk.unlink(folder, torn)
    left = read_file(folder, whole)
    if left is None:
        return
    here = read_file(folder, name)
    if here is None:
        if _is_new(step, left):
            disk.unlink(folder, whole)
        else:
            disk.rename_new(folder, whole, folder, name)  # taken out to be removed, and not removed yet
    elif _is_known(step, left, here):
        disk.unlink(folder, whole)
    else:
        # Exchanged, and what came out is somebody's edit of the last instant: theirs is what counts.
        disk.replace(folder, name, whole)
        if exists_at(folder, whole) is not None:
            disk.unlink(folder, whole)
    disk.sync_dir(folder)


def _is_new(step: FileStep, left: Found) -> bool:
    return see(step, left).what == "after"


def _is_known(step: FileStep, left: Found, here: Found) -> bool:
    """Return whether one of *left* and *here* is what the step, or its inverse, makes of the other."""
    assert left is not None
    assert here is not None
    if isinstance(step, WriteFile):
        return image_of(left) in (step.before, step.after)
    (back,) = inverse((step,))
    return any(_makes(one, a[0]) == b[0] for one in (step, back) for a, b in ((left, here), (here, left)))


def _makes(step: object, data: bytes) -> bytes | None:
    try:
        if isinstance(step, EditItem):
            return edit_item(data, step)
        return set_line(data, step) if isinstance(step, SetLine) else None
    except InputError:
        return None

"""
Moving a whole package to where nothing stands, on one file system or across two, raced and killed at any instant.

On one file system it is one rename that replaces nothing (but for a folder that its own user may not write: such a one
cannot change its parent, and goes the other way). The package is sealed before and looked at again after; what
somebody edited in between goes back. Across two it is copied under a hidden name, synced, verified by its seal,
renamed, and only then does the original go: first by a rename under a hidden name, so that no half of it is ever seen
as a skill, verified once more, then file by file. At every instant at least one whole copy stands.

The hidden names are made of the action, the package and the place, the same for a move and its inverse, so that
`settle` finds what a kill left of either.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress

from curatord.adapters.disk import Disk, exists_at, parent_of
from curatord.adapters.trees import SealedTree, copy_tree, remove_tree, seal_at, trace_at
from curatord.core.journal import MovePackage, Place, Seal, Sighting
from curatord.errors import InputError
from curatord.ports.mutator import EditedError, TakenError

__all__ = ["Namer", "move", "seal_of", "see_move", "settle_move"]

Namer = Callable[[Place], str]  # gives the hidden name beside a place


def seal_of(place: Place) -> Seal | None:
    """Return the seal of what stands at *place*, or None for nothing."""
    try:
        with parent_of(place) as (folder, name):
            return None if exists_at(folder, name) is None else seal_at(folder, name).seal
    except FileNotFoundError:
        return None


def see_move(
    step: MovePackage, *, strict: bool = False, comes_after: Seal | None = None, leaves_before: Seal | None = None
) -> Sighting:
    """
    Return whether *step* was done; *strict* asks for the very content that was moved.

    Where one action takes a package away and puts another in its place, that place belongs to two of its steps:
    *comes_after* is what a later one puts where this one takes from, *leaves_before* what an earlier one takes from
    where this one puts. Neither is this step's, so for it nothing stands there.
    """
    source, target = seal_of(step.source), seal_of(step.target)
    source = None if source is not None and source == comes_after else source
    target = None if target is not None and target == leaves_before else target
    if source is None and target is None:
        return Sighting(what="other", found=f"neither {step.source} nor {step.target} is there")
    if source is None:
        if strict and target != step.seal:
            return Sighting(what="other", found="it was changed since")
        return Sighting(what="after")
    if target is None:
        if source == step.seal:
            return Sighting(what="before", found=f"it stands at {step.source} again")
        return Sighting(what="edited", found=f"{step.source} was edited meanwhile")
    if target == step.seal and not strict:
        if source == step.seal:
            return Sighting(what="half")
        return Sighting(what="other", found=f"{step.source} was edited, and a copy stands at {step.target}")
    return Sighting(what="other", found=f"something stands at both {step.source} and {step.target}")


def move(disk: Disk, step: MovePackage, hidden: Namer) -> None:
    """
    Do *step*, synced; nothing happens where it was done.

    Raises:
        EditedError: The package is not what it was; it stands where it stood.
        TakenError: Something else stands at the target.
        InputError: It holds what cannot go to another file system.
    """
    with parent_of(step.source) as (source, name), parent_of(step.target) as (target, new_name):
        if exists_at(source, name) is None:
            if exists_at(target, new_name) is not None:
                return
            raise EditedError(f"{step.source} is gone")
        sealed = seal_at(source, name)
        if sealed.seal != step.seal:
            raise EditedError(f"{step.source} is not what it was when this was worked out")
        if exists_at(target, new_name) is not None:
            # The very same there already: an earlier start copied it to another file system and was cut.
            if seal_at(target, new_name).seal != step.seal:
                raise TakenError(f"something stands at {step.target} already")
        else:
            try:
                disk.rename_new(source, name, target, new_name)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.EACCES):
                    raise  # EACCES: a folder kept read-only, or a place where the copy is refused just so
                _copy(disk, step, source, name, target, new_name, hidden(step.target))
            else:
                _check(disk, step, sealed, source, name, target, new_name)
                disk.sync_dir(target)
                disk.sync_dir(source)
                return
        _drop_original(disk, step, source, name, hidden(step.source))


def _check(
    disk: Disk, step: MovePackage, sealed: SealedTree, source: int, name: str, target: int, new_name: str
) -> None:
    """Move back what somebody edited between the look and the rename."""
    if trace_at(target, new_name) == sealed.trace or seal_at(target, new_name).seal == sealed.seal:
        return
    disk.rename_new(target, new_name, source, name)
    raise EditedError(f"{step.source} was edited just now")


def _copy(disk: Disk, step: MovePackage, source: int, name: str, target: int, new_name: str, temporary: str) -> None:
    if exists_at(target, temporary) is not None:
        remove_tree(disk, target, temporary)
    try:
        copy_tree(disk, source, name, target, temporary)
        if seal_at(target, temporary).seal != step.seal:
            raise EditedError(f"{step.source} was edited while it was copied")
        disk.rename_new(target, temporary, target, new_name)
    except (OSError, InputError):
        with suppress(FileNotFoundError):
            remove_tree(disk, target, temporary)
        raise
    disk.sync_dir(target)


def _drop_original(disk: Disk, step: MovePackage, source: int, name: str, temporary: str) -> None:
    """Remove the original of a package that stands, verified and synced, on another file system."""
    disk.rename_new(source, name, source, temporary)
    disk.sync_dir(source)
    if seal_at(source, temporary).seal != step.seal:
        disk.rename_new(source, temporary, source, name)
        raise EditedError(f"{step.source} was edited just now")
    remove_tree(disk, source, temporary)
    disk.sync_dir(source)


def settle_move(disk: Disk, step: MovePackage, hidden: Namer) -> None:
    """Clear away what a kill left of *step* or of its inverse, so that its two places tell whether it was done."""
    _settle(disk, step.source, step.target, step.seal, hidden)
    _settle(disk, step.target, step.source, step.seal, hidden)


def _settle(disk: Disk, from_: Place, to: Place, seal: Seal, hidden: Namer) -> None:
    with suppress(FileNotFoundError), parent_of(from_) as (source, name):
        parked = hidden(from_)
        if exists_at(source, parked) is not None:
            if seal_of(to) == seal:
                remove_tree(disk, source, parked)
            elif exists_at(source, name) is None and seal_at(source, parked).seal == seal:
                disk.rename_new(source, parked, source, name)
            disk.sync_dir(source)
    with suppress(FileNotFoundError), parent_of(to) as (target, _):
        copy = hidden(to)
        if exists_at(target, copy) is not None and seal_of(from_) is not None:
            remove_tree(disk, target, copy)
            disk.sync_dir(target)

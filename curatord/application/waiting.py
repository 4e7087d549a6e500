"""What waits for a yes: one answer for `pending`, `approve --all`, `status` and the figures, so that they agree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curatord.core.curation import Proposal
    from curatord.core.values import SkillKey
    from curatord.wiring import Parts

__all__ = ["count_waiting", "waiting_proposals"]


def count_waiting(parts: Parts) -> int:
    """Return how many proposals `pending` lists; quick where none waits, since they are not read then."""
    return len(waiting_proposals(parts)) if parts.overview.pending() else 0


def waiting_proposals(parts: Parts) -> list[Proposal]:
    """
    Return the proposals that wait for a yes and whose skills are there, as far as a look at their paths tells.

    Nothing is written, and a skill or library that cannot be looked at may be there: its proposals are listed.
    """
    from curatord.passes.withdrawing import is_moot, why_gone

    waiting = parts.store.proposals("pending")
    if not waiting:
        return []
    roots = {settings.name: settings.path for settings in parts.config.libraries}
    holding: dict[str, bool] = {}  # of each root that was asked, whether anything is in it

    def is_gone(key: SkillKey) -> bool:
        root = roots.get(key.library)
        if why_gone(parts.store.skill(key)) is not None:
            return True
        if root is None or any(_may_be_there(f"{root}/{key.rel}{end}") for end in ("", ".md")):
            return False
        if root not in holding:
            holding[root] = _holds_anything(root)
        return holding[root]

    return [proposal for proposal in waiting if not is_moot(proposal, is_gone)]


def _may_be_there(path: str) -> bool:
    """Return whether something is at *path*, or nobody can tell: a folder above it may be closed to this user."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _holds_anything(root: str) -> bool:
    """Return whether a skill could be in the library: an empty folder may be one that is not mounted just now."""
    try:
        with os.scandir(root) as entries:
            return any(not entry.name.startswith(".") for entry in entries)
    except OSError:
        return False

"""What waits for a yes: one answer for `pending`, `approve --all`, `status` and the figures, so that they agree."""

from __future__ import annotations

import os
from pathlib import Path
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
    """Return the proposals that wait for a yes and are about skills that are there; nothing is written."""
    from curatord.passes.withdrawing import is_moot, why_gone

    waiting = parts.store.proposals("pending")
    if not waiting:
        return []
    roots = {settings.name: settings.path for settings in parts.config.libraries}

    def is_gone(key: SkillKey) -> bool:
        root = roots.get(key.library)
        if why_gone(parts.store.skill(key)) is not None:
            return True
        if root is None or any(os.path.lexists(f"{root}/{key.rel}{end}") for end in ("", ".md")):
            return False
        try:  # an empty folder may be one that is not mounted just now
            return any(not path.name.startswith(".") for path in Path(root).iterdir())
        except OSError:
            return False

    return [proposal for proposal in waiting if not is_moot(proposal, is_gone)]

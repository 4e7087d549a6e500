"""
Two records of what people decided, the plain file and the database, brought to agree after a kill.

A no to a proposal and a pause change no package, so no intent in the journal stands for them. They are written into the
plain file first, whole, and then into the database. A kill, or a full disk, between the two leaves a decision that only
the file knows; each start brings it into the database, so it holds. The other way round, a `resume` is written into the
database first: cut there, the pause holds, which is before. Nothing is ever taken out of the database because the file
lacks it: a person may have moved a damaged file away.
"""

from __future__ import annotations

from curatord.core.small_facts import PAUSED_SINCE
from curatord.ports.curation_store import CurationStore
from curatord.ports.decisions import Decisions
from curatord.ports.mutator import Mutator

__all__ = ["agree"]


def agree(decisions: Decisions, store: CurationStore, mutator: Mutator) -> int:
    """
    Bring into the database what only the plain file knows; return how many decisions that were.

    Raises:
        BusyError: There are some, and the work lock is held.
        StateError: The file cannot be read, or the database not be used.
    """
    if not _missing(decisions, store):
        return 0
    with mutator.hold(None):  # somebody may be writing the second half just now: asked again under the lock
        missing = _missing(decisions, store)
        for word in missing:
            if word == PAUSED_SINCE:
                store.set_meta(PAUSED_SINCE, decisions.load().paused_since)
                continue
            rejection = decisions.load().rejected[word]
            store.decide(word, "rejected", now=rejection.at, reason=rejection.reason)
            store.reject_id(rejection)
        return len(missing)


def _missing(decisions: Decisions, store: CurationStore) -> list[str]:
    """Return what the file knows and the database does not: ids of rejections, and the pause."""
    known = decisions.load()
    missing = sorted(set(known.rejected) - set(store.rejections()))
    if known.paused_since is not None and store.meta(PAUSED_SINCE) is None:
        missing.append(PAUSED_SINCE)
    return missing

"""The examination of distilling."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from curatord.application.distilling import why_off
from curatord.application.doctor.ward import Ward
from curatord.core.doctor import Check
from curatord.core.doctor.distil import DistilFacts, check_distil
from curatord.core.small_facts import DISTIL_SINCE

__all__ = ["distil"]


def distil(ward: Ward) -> Sequence[Check]:
    """Return whether sessions are distilled, and which were put aside."""
    parts = ward.parts
    off = why_off(parts)
    if off is not None:
        return [check_distil(DistilFacts(off=off), parts.clock.now())]
    store = parts.distil_store
    since = parts.store.meta(DISTIL_SINCE)
    facts = DistilFacts(
        due=store.totals()[0],
        aside=[f"{one.host}:{one.session_id}: {one.look.reason}" for one in store.aside()],
        waiting=[f"{one.host}:{one.session_id}: {one.look.reason}" for one in map(store.session, store.waiting())],
        last_at=store.last_at(),
        since=datetime.fromisoformat(since) if since is not None else None,
    )
    return [check_distil(facts, parts.clock.now())]

"""
What curatord remembers of a skill between runs: one row of its database, partly kept twice in a plain file.

`SkillRecord` is facts only; whether the skill may be changed is `core.ownership`'s answer, what becomes of it
`core.lifecycle`'s. Fields marked (decision) are a person's word and survive a lost database.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from curatord.core.cheap import dataclass
from curatord.core.values import Fingerprint, Importance, SkillKey, State, require_aware

__all__ = ["Owner", "SkillRecord"]

Owner = Literal["curatord", "adopted", "disowned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillRecord:
    """
    One skill as the database has it.

    Attributes:
        state, state_since: Where it stands and since when; *stale_since* is set while it is stale.
        first_seen_at: When a scan first met it. It is never moved.
        born_at, born_from: Birth and its evidence, frozen at first sight unless an event or ledger tells better.
        restored_at: Newest of restore and undone archiving; the idle clock starts again there.
        pinned, importance: (decision)
        owner, owner_at: (decision) `curatord` made it, `adopted` by the user, `disowned` by the user, or None.
        managed_since: First time it was seen under management, from any licence; None while it is not.
        trusted_fingerprint: Its content when curatord last had the licence to change it: first sight under
            management, adoption, or curatord's own write, whichever is newest. Content that differs and that no event
            explains was edited by hand (promise 10).
        seen_fingerprint, seen_at: Its content at the newest scan.
        missing_since: Not found by the newest scan; never a reason to call it archived.
        archive_path: Absolute path of the archived package; *archived_at* and *archive_reason* go with it.
        absorbed_into: Name of the umbrella that took it in, with which it was archived.
    """

    key: SkillKey
    state: State = State.ACTIVE
    state_since: datetime
    stale_since: datetime | None = None
    first_seen_at: datetime
    born_at: datetime
    born_from: Literal["ledger", "event", "file", "seen"] = "seen"
    restored_at: datetime | None = None
    pinned: bool = False
    importance: Importance = Importance.NORMAL
    owner: Owner | None = None
    owner_at: datetime | None = None
    managed_since: datetime | None = None
    trusted_fingerprint: Fingerprint | None = None
    seen_fingerprint: Fingerprint | None = None
    seen_at: datetime | None = None
    missing_since: datetime | None = None
    archived_at: datetime | None = None
    archive_path: str | None = None
    archive_reason: str | None = None
    absorbed_into: str | None = None

    def __post_init__(self) -> None:
        for at in (
            self.state_since,
            self.stale_since,
            self.first_seen_at,
            self.born_at,
            self.restored_at,
            self.owner_at,
            self.managed_since,
            self.seen_at,
            self.missing_since,
            self.archived_at,
        ):
            # In line, since a run reads thousands of these; nearly all times are of this one zone.
            if at is not None and at.tzinfo is not UTC:
                require_aware(f"a time of {self.key}", at)

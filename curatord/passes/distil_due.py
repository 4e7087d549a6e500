"""
Which sessions are due, asked of the store and answered into it, so that a tick with nothing new costs one step in an
index.

A session is judged when it grew and when an earlier answer said to look again; the answers are kept with the session
and shown by `sessions`. What an answer hangs on besides the session (settings, which sources may be distilled) is
hashed: where that hash changes, all sessions are judged anew.

The backlog of a first start is counted from when sessions of a place were first read, or from when distilling could
first be done at all, whichever came later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256

from curatord.core.cheap import dataclass, fields
from curatord.core.distil.due import Due, NotDue, SessionFacts, due, excluded_by
from curatord.core.settings import DistilSettings, GateSettings
from curatord.core.transcript.events import MAX_CWDS
from curatord.ports.distil_store import DistilStore, Judged, SessionToDistil

__all__ = ["JUDGED_BY", "Judge", "SourceRule"]

JUDGED_BY = "distil.judged_by"  # hash of what the kept answers hang on
AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRule:
    """
    What the configuration says of a place: why its sessions are *off*, or None; *exclude* are its globs.

    *auto*: it is off by `distil: auto`, which a person's order for one session passes over.
    """

    off: str | None = None
    auto: bool = False
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """
    Answers whether sessions are due.

    Attributes:
        store: Where they are.
        settings, gates: The configuration's.
        rules: By host and path of each configured place.
        since: When distilling could first be done here.
        keep_hash, kept_hash: Write and read the hash of what the answers hang on.
    """

    store: DistilStore
    settings: DistilSettings
    gates: GateSettings
    rules: Mapping[tuple[str, str], SourceRule]
    since: datetime
    kept_hash: Callable[[], str | None]
    keep_hash: Callable[[str], None]

    def judge(self, now: datetime, *, stop: Callable[[], bool] = lambda: False) -> int:
        """Judge all sessions that are to be judged now; return how many were."""
        mine = self.hash()
        if self.kept_hash() != mine:
            self.store.ask_all_again()
            self.keep_hash(mine)
        count = 0
        last: Sequence[int] = ()
        while queued := self.store.queued(now, limit=AT_ONCE):
            rows = [session.row for session in queued]
            if rows == last or stop():
                break  # they grow faster than they are judged; the next tick goes on
            last = rows
            self.store.judge([self.judged(session, now) for session in queued])
            count += len(queued)
        return count

    def judged(self, session: SessionToDistil, now: datetime) -> Judged:
        """Return the answer about one session, as it is kept."""
        answer = self.answer(session, now)
        if isinstance(answer, Due):
            order = round(answer.order_key[0].timestamp() * 1000)
            return Judged(session.row, session.touches, "due", answer.reason, None, order)
        again = answer.look_again_at
        look_at = None if again is None else max(round(again.timestamp() * 1000), 1)
        return Judged(session.row, session.touches, answer.code, answer.reason, look_at)

    def answer(
        self, session: SessionToDistil, now: datetime, *, backfill: bool = False, at_once: bool = False
    ) -> Due | NotDue:
        """
        Return whether *session* is due at *now*; *backfill*: also where it is of the backlog; *at_once*: also where it
        would wait for the end of something that is not its own fault.
        """
        off = self.never(session)
        if off is not None:
            return NotDue(code="skipped", reason=off)
        if session.files and all(file.gone for file in session.files):
            return NotDue(code="skipped", reason="its transcript is gone; it is looked at if that comes back")
        look = session.look
        seen_at = max(_at(session.first_seen_ms) or self.since, self.since)
        looked = look.looked_ms is not None
        facts = SessionFacts(
            host=session.host,
            session_id=session.session_id,
            kind=session.kind,
            last_at=_at(session.last_ms),
            grew_at=_at(session.alive_ms),
            oldest_unreviewed_at=_at(session.since_ms if looked else session.first_ms),
            user_turns=session.new_turns,
            tool_calls=session.new_calls,
            looked_at=_at(look.looked_ms),
            failures=look.failures,
            put_aside=look.aside,
            retry_at=None if at_once and look.waits else _at(look.retry_ms),
            first_seen_backlog=not looked,
            first_seen_at=seen_at,
            cwds=session.cwds,
        )
        return due(facts, self.settings, self.gates, now, backfill=backfill)

    def never(self, session: SessionToDistil, *, by_name: bool = False) -> str | None:
        """
        Return why nothing of *session* may be sent anywhere, or None.

        *by_name*: a person named this very session, which says more than `distil: auto` and no more than the rest.
        """
        reasons = []
        for file in session.files:
            rule = self.rules.get((file.host, file.source))
            if rule is None:
                reasons.append("its place is not configured")
                continue
            # One file of an excluded place keeps the whole session in.
            if (why := self._excluded(session, rule)) is not None:
                return why
            if rule.off is None or (by_name and rule.auto):
                return None if self._none_excludes(session) else "another place of it excludes it"
            reasons.append(rule.off)
        return reasons[0] if reasons else "no file of its own is known"

    def backlog(self, now: datetime) -> list[int]:
        """Return the rows of sessions that are due or would be but for the backlog's limit, oldest waiting first."""
        found: list[tuple[tuple[datetime, str, str], int]] = []
        after = 0
        while sessions := self.store.unlooked(after=after, limit=AT_ONCE):
            after = sessions[-1].row
            for session in sessions:
                answer = self.answer(session, now, backfill=True)
                if isinstance(answer, Due):
                    found.append((answer.order_key, session.row))
        rows = [row for _, row in sorted(found)]
        known = set(rows)
        return [*rows, *(row for row in self.store.due() if row not in known)]

    def hash(self) -> str:
        """Return a hash over everything but the sessions that answers hang on."""
        told = {
            "settings": {f.name: str(getattr(self.settings, f.name)) for f in fields(self.settings)},
            "gates": [str(self.gates.session_quiet), str(self.gates.session_force)],
            "rules": [[*key, rule.off, rule.auto, list(rule.exclude)] for key, rule in sorted(self.rules.items())],
            "since": self.since.isoformat(),
        }
        return sha256(json.dumps(told, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()

    def _none_excludes(self, session: SessionToDistil) -> bool:
        rules = [self.rules.get((file.host, file.source)) for file in session.files]
        return all(rule is None or self._excluded(session, rule) is None for rule in rules)

    @staticmethod
    def _excluded(session: SessionToDistil, rule: SourceRule) -> str | None:
        if rule.exclude and len(session.cwds) >= MAX_CWDS:
            return f"its source has `exclude`, and of its working folders only {MAX_CWDS} are known"
        return excluded_by(session.cwds, rule.exclude)


def _at(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)

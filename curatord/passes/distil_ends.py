"""
How the look at a session ends: with an outcome that is settled, with a failure that is counted, or with a wait.

Three things stand in the way of an outcome, and they are told apart here, since what is none of a session's doing must
not put it aside:

* *Its own fault* (a reply that cannot be used, an error of ours while it was read) is counted, tried again after
  growing waits, and after five times put aside until a person asks.
* *Something that passes by itself* (a library or a disk that cannot be written, a lock, a server that takes no
  request) is a wait: each is longer than the one before, up to six hours, and it is said when it begins. A run that a
  person starts does not wait for its end.
* *What ends the pass for all* (no endpoint, no budget) leaves it as due as it was. Whoever was asked meanwhile goes
  behind the others, so that a question that no server can answer does not keep the rest from being asked.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from curatord.core.cheap import dataclass, field
from curatord.core.distil.digest import Digest
from curatord.core.distil.due import PUT_ASIDE_AFTER, next_try, pause
from curatord.core.inert import shorten
from curatord.core.redact import redact
from curatord.core.run_record import FailedRow, SkippedRow
from curatord.core.values import LibraryName, RunId
from curatord.core.wire import Question
from curatord.core.words import plural
from curatord.passes.distil_answer import KeptAnswer
from curatord.passes.distil_order import DistilResult
from curatord.passes.distil_read import Reading
from curatord.passes.distil_rows import SessionOutcome, session_words
from curatord.ports.distil_store import DistilStore, SessionToDistil, Settled

__all__ = ["RETRY_SOON", "Case", "Ends", "passes_by_itself", "through_of"]

RETRY_SOON = timedelta(minutes=5)  # where something that passes by itself stood in the way
_PASSING = frozenset(
    {
        errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE,
        errno.ENOMEM, errno.ESTALE, errno.ENODEV, errno.ENXIO, errno.ETIMEDOUT, errno.EBUSY, errno.EAGAIN,
    }
)  # fmt: skip


def passes_by_itself(number: int | None) -> bool:
    """Return whether the error *number* (`errno`) is the disk's or the machine's trouble, whoever met it."""
    return number in _PASSING


@dataclass(slots=True, kw_only=True)
class Case:
    """One session at work: what was read of it, and what was asked or kept."""

    session: SessionToDistil
    reading: Reading
    libraries: tuple[LibraryName, ...]
    question: Question | None = None
    kept: KeptAnswer | None = None

    @property
    def digest(self) -> Digest:
        """What a model is shown of it."""
        return self.reading.digest


def through_of(case: Case) -> int | None:
    """Return the time (ms) of the newest record that was looked at."""
    times = [at for at in (case.digest.last_ms, case.session.look.through_ms) if at is not None]
    return max(times, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """
    Keeps and tells how looks end.

    Attributes:
        store: Where outcomes are kept.
        result: The pass's; takes a row for each session.
        now: The pass's one reading of the clock.
        dry: Nothing may be kept, only told.
        run_id: Asked where an outcome is a run's work.
        warn: Hears what makes sessions wait, once for each reason for which one begins to.
    """

    store: DistilStore
    result: DistilResult
    now: datetime
    dry: bool
    run_id: Callable[[], RunId]
    warn: Callable[[str], None]
    _waiting: dict[str, list[SessionToDistil]] = field(default_factory=dict)
    _announced: set[str] = field(default_factory=set)

    def settle(self, case: Case, outcome: SessionOutcome, *, asked: bool) -> bool:
        """Keep the outcome of a session, in one transaction with its watermark; in a dry run only tell it."""
        session, digest = case.session, case.digest
        told = {
            "operations": outcome.operations,
            "new_skills": outcome.new_skills,
            "digest": {
                "entries": len(digest.entries),
                "cut_messages": digest.cut_messages,
                "cut_chars": digest.cut_chars,
                "redacted": dict(digest.redacted),
            },
            "request_sha256": case.kept.request_sha256 if case.kept is not None else None,
            "tokens": case.kept.tokens if case.kept is not None else 0,
        }
        self.tell(session, outcome.state, outcome.reason, asked=asked, **told)
        self.result.sessions[-1]["digest_sha256"] = digest.sha256 if asked else None
        if self.dry:
            return True
        shown = any(row["state"] in ("applied", "pending") for row in outcome.operations)
        self.store.settle(
            Settled(
                session=session,
                state=outcome.state,
                reason=outcome.reason,
                at=self.now,
                through_ms=through_of(case),
                offsets=case.reading.offsets,
                run_id=self.run_id() if shown else None,
                asked=asked,
                digest=digest.sha256 if asked else None,
                told=told,
            ),
            outcome.candidates,
        )
        if outcome.confirmed:
            self.store.forget_candidates(outcome.confirmed)
        return True

    def failed(self, session: SessionToDistil, reason: str, *, state: str = "error", asked: bool = False) -> None:
        """Count a failure of a session's own; it is tried again later, or put aside."""
        reason = redact(reason)
        failures = session.look.failures + 1
        aside = failures >= PUT_ASIDE_AFTER
        more = "; it was put aside, `curatord refine --retry` tries it again" if aside else ""
        self.tell(session, state, f"{reason}{more}", asked=asked, failures=failures)
        self.result.failed.append(FailedRow(action=f"review {session_words(session)}", error=f"{reason}{more}"))
        if not self.dry:
            self.store.failed(
                session,
                state=state,
                reason=shorten(reason, 600),
                at=self.now,
                counts=True,
                retry_at=next_try(failures, self.now),
                aside=aside,
                asked=asked,
            )

    def waits(self, session: SessionToDistil, reason: str, *, first: timedelta = RETRY_SOON) -> None:
        """Let a session wait, at *first* that long, since something stands in the way that passes by itself."""
        reason = redact(reason)
        self.tell(session, "error", reason)
        self._waiting.setdefault(reason, []).append(session)
        if session.look.waits == 0 and reason not in self._announced:  # whoever waited for the same before it
            self._announced.add(reason)
            self.warn(f"a session is looked at later: {reason}")
        if not self.dry:
            self._keep(session, "error", reason, retry_at=self.now + pause(session.look.waits + 1, first), waits=True)

    def close(self) -> None:
        """Put what waits into the run's rows, once for each reason: a run that left something out is not done."""
        for reason, sessions in self._waiting.items():
            what = session_words(sessions[0]) if len(sessions) == 1 else plural(len(sessions), "session")
            self.result.skipped.append(SkippedRow(action=f"look at {what}", reason=reason))

    def stays_due(self, session: SessionToDistil, state: str, reason: str, *, behind: bool = False) -> None:
        """Keep that nothing came of it through no fault of the session; *behind*: the others have their turn first."""
        reason = redact(reason)
        self.tell(session, state, reason)
        if not self.dry:
            self._keep(session, state, reason, retry_at=self.now if behind else None)

    def _keep(
        self, session: SessionToDistil, state: str, reason: str, *, retry_at: datetime | None, waits: bool = False
    ) -> None:
        self.store.failed(
            session,
            state=state,
            reason=shorten(reason, 600),
            at=self.now,
            counts=False,
            retry_at=retry_at,
            waits=waits,
        )

    def tell(self, session: SessionToDistil, state: str, reason: str, **more: Any) -> None:
        """Put a row about *session* into the pass's result."""
        self.result.sessions.append(
            {
                "host": session.host,
                "session_id": session.session_id,
                "state": state,
                "reason": reason,
                "asked": False,
                "operations": [],
                **more,
            }
        )

"""
What becomes of a skill, and why: facts in, one `Verdict` with its reason in words out.

The rules are those of the contract, section 7; the first that matches wins:

1. broken, unmanaged, protected, not found -> unchanged. 2. pinned or critical -> stays. 3. named by a schedule or by
another skill -> stays active. 4. idle cannot be told -> stays. 5. never used and young -> active. 6. stale for
`notice`, and idle for `archive_after` -> archived (important: only warned about). 7. active, and idle for
`stale_after` -> stale. 8. stale, and used again -> active.

What can go wrong, and what keeps it from going wrong:

- *Missing evidence read as leave to act* (bugs, kind K01). Idle is a union: `Idle` or `IdleUnknown`, and there is no
  path from the second to a change. A skill without a date for its stale mark is not archived either.
- *Archived unseen.* Nothing goes from active to archived by rule: `core.states` has no such row, and a stale mark must
  have stood in a report for `notice` first. That time is wall time, since reports are read by the calendar.
- *A person's word lost among rules.* Pins, importance, hand edits and earlier rejections are facts that are asked, and
  the verdict says which of them decided.
- *Reasons that drift from decisions.* The reason stands where the decision is made, as a function of the numbers that
  decided. It is called where somebody asks: of thousands of skills that stay, a run tells a handful.

Rules 2 and 3 are asked before the clock, but nothing moves while the clock is in doubt: a stale skill that a schedule
names becomes active only in a run that can trust its time (promise 9).

`Judge` looks at the skills of one library, each by itself; how many may go in one run is `core.selection`'s question.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never

import msgspec

from curatord.core.cheap import dataclass
from curatord.core.idle import Aging, Anchor, Idle, IdleUnknown, LibraryClock, forecast
from curatord.core.settings import LifecycleSettings
from curatord.core.skill_record import SkillRecord
from curatord.core.states import Signal, after
from curatord.core.usage import NO_USAGE, SkillUsage
from curatord.core.values import Fingerprint, Importance, SkillKey, State
from curatord.core.words import day, exact, span

__all__ = ["Judge", "Next", "Periods", "SkillFacts", "Verdict", "birth_of", "judge", "newest_evidence"]


class SkillFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    All that is known of one skill when a run decides.

    Attributes:
        record: Our row of it: state, birth, pin, importance.
        managed, why: Whether it was handed over, and by what licence or for what lack of one, in words.
        protected: Why it can never be handed over (bundled, from the hub, external, unreadable ownership), or None.
        broken: What is wrong with the package, or None.
        referenced: What names it: a host's schedule or another live skill, in words; None where nothing does.
        host_pinned: The host's own records say that it is pinned.
        edited: How its content differs from what curatord last had the licence to change, in words; None if it does
            not, or if an event explains it (promise 10).
        archive_rejected: A person's no to archiving this content, in words, or None.
        usage: Its use, from all witnesses.
    """

    record: SkillRecord
    managed: bool
    why: str
    protected: str | None = None
    broken: str | None = None
    referenced: str | None = None
    host_pinned: bool = False
    edited: str | None = None
    archive_rejected: str | None = None
    usage: SkillUsage = NO_USAGE

    @property
    def key(self) -> SkillKey:
        """Its identity."""
        return self.record.key

    @property
    def kept_by(self) -> str | None:
        """The person's word that keeps it from any change (rule 2), or None."""
        if self.record.importance is Importance.CRITICAL:
            return "its importance is critical"
        if self.record.pinned:
            return "it is pinned"
        return "its host has it pinned" if self.host_pinned else None

    @property
    def exempt_by(self) -> str | None:
        """Why it is not curatord's to change (rule 1), or None."""
        if self.record.missing_since is not None:
            return f"its files have not been found since {day(self.record.missing_since)}"
        if self.broken is not None:
            return f"it is broken: {self.broken}"
        if self.protected is not None:
            return f"it is protected: {self.protected}"
        return None if self.managed else f"it is not managed: {self.why}"


class Periods(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The periods that hold for one skill."""

    stale_after: timedelta
    archive_after: timedelta
    never_used_grace: timedelta

    @classmethod
    def of(cls, policy: LifecycleSettings, importance: Importance) -> Periods:
        """
        Return *policy*'s periods; `low` importance halves them.

        `notice` and `away_after` are about people, not about what a skill is worth, and stay whole.
        """
        divisor = 2 if importance is Importance.LOW else 1
        return cls(
            stale_after=policy.stale_after / divisor,
            archive_after=policy.archive_after / divisor,
            never_used_grace=policy.never_used_grace / divisor,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """
    What becomes of a skill next.

    *state* and *at* are None while nothing is to come; *condition* says on what it hangs. *at* holds if somebody works
    on without an absence; *at_if_away* if nobody works any more, None where the clock would stop before. *due*: nothing
    has to pass any more, the next run does it.
    """

    state: State | None
    at: datetime | None
    condition: str
    at_if_away: datetime | None = None
    due: bool = False


class Verdict(msgspec.Struct, frozen=True, kw_only=True, gc=False, eq=False):
    """
    What the rules say of one skill at one time.

    Attributes:
        state, to: Where it is and where it goes; equal where it stays.
        rule: Number of the rule that matched (1 to 8), None where none did: then nothing was due.
        warning: Something a person should hear of though nothing happens.
        needs_yes: Why this change may only be proposed, whatever the mode; None else.
        fingerprint: Its content when it was decided.
        if_managed: What they would say of a skill that could be handed over but was not, if it were. None else.
        words, coming: Make *reason* and *next*; equal verdicts are so without them.
    """

    key: SkillKey
    state: State
    to: State
    signal: Signal
    rule: int | None
    idle: Idle | IdleUnknown
    managed: bool
    warning: str | None = None
    needs_yes: str | None = None
    fingerprint: Fingerprint | None = None
    if_managed: Verdict | None = None
    words: Callable[[], str]
    coming: Callable[[], Next]

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not Verdict:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _COMPARED)

    @property
    def reason(self) -> str:
        """Why, in words that a person can act on."""
        return self.words()

    @property
    def next(self) -> Next:
        """What comes next, and when."""
        return self.coming()

    @property
    def would(self) -> Next | None:
        """What would come next if it were managed; None where it is, or never can be."""
        return self.if_managed.next if self.if_managed is not None else None

    @property
    def would_be(self) -> State | None:
        """The same in one word: the state that the next run would leave it in."""
        return self.if_managed.to if self.if_managed is not None else None

    @property
    def moves(self) -> bool:
        """Whether it changes state."""
        return self.to is not self.state

    @property
    def checked(self) -> bool:
        """Whether the rules had a say at all: it is live and curatord's to change."""
        return self.managed and self.rule != 1 and self.state is not State.ARCHIVED


_COMPARED = tuple(name for name in Verdict.__struct_fields__ if name not in ("words", "coming"))


class _Finding(msgspec.Struct, frozen=True, gc=False):
    """Which rule matched, and what says why."""

    signal: Signal
    rule: int | None
    words: Callable[[], str]
    warning: str | None = None


_SAME_SCAN = timedelta(seconds=1)  # both are the first scan's time, but may have been stored with other precision

_BORN_FROM = {
    "ledger": "the host's ledger",
    "event": "the session that made it",
    "file": "its newest file at first sight",
    "seen": "first sight",
}


def birth_of(facts: SkillFacts, clock: LibraryClock) -> Anchor:
    """
    Return when a skill was born, and by what evidence.

    A skill that appeared after the library's first scan is never older than its first sight, and file times make none
    younger than that: they are copied, touched and set (bugs B021, B022). A ledger or an event may know of a later
    birth, where a name was used again.
    """
    record = facts.record
    came_later = clock.first_scan_at is not None and record.first_seen_at - clock.first_scan_at > _SAME_SCAN
    later = record.born_at > record.first_seen_at
    if (came_later and not later) or (later and record.born_from in ("file", "seen")):
        return Anchor(at=record.first_seen_at, what="its first sight")
    return Anchor(at=record.born_at, what=f"its birth ({_BORN_FROM[record.born_from]})")


def newest_evidence(facts: SkillFacts, clock: LibraryClock) -> Anchor:
    """Return what idle is counted from: the newest of last event, restore and birth, in that order for equal times."""
    record, last = facts.record, facts.usage.last
    newest = birth_of(facts, clock)
    if record.restored_at is not None and record.restored_at >= newest.at:
        newest = Anchor(at=record.restored_at, what="its last restore or undo")
    if last is not None and last.at >= newest.at:
        newest = Anchor(at=last.at, what=f"its last {last.kind} ({last.witness})")
    return newest


class Judge:
    """
    Says what becomes of the skills of one library at one time, and why.

    Args:
        clock: The library's clock.
        policy: The periods; the cap is `core.selection`'s.
        now: The run's one reading of the clock.

    Source: contract, section 7; hermes.md, section 3, cases 13 to 34.
    """

    def __init__(self, clock: LibraryClock, policy: LifecycleSettings, now: datetime) -> None:
        self._clock = clock
        self._policy = policy
        self._now = now
        self._aging = Aging(clock, policy.away_after, now)
        self._periods = {importance: Periods.of(policy, importance) for importance in Importance}

    def judge(self, facts: SkillFacts) -> Verdict:
        """Return what becomes of one skill; `ValueError` where it is another library's."""
        record = facts.record
        if self._clock.library != record.key.library:
            raise ValueError(f"the clock of {self._clock.library!r} cannot time {facts.key}")
        idle = self._aging.idle_since(newest_evidence(facts, self._clock))
        if_managed: Verdict | None = None
        coming: Callable[[], Next]
        if record.state is State.ARCHIVED:
            finding = _archived(facts)
            coming = partial(_stays, f"it stays archived until somebody says `restore {facts.key}`")
        elif exempt_by := facts.exempt_by:
            finding = _Finding(Signal.EXEMPT, 1, lambda: f"unchanged: {exempt_by}")
            coming = partial(_stays, f"nothing changes while {exempt_by.partition(':')[0]}")
            if facts.broken is None and facts.protected is None and record.missing_since is None:
                if_managed = self.judge(msgspec.structs.replace(facts, managed=True))
        else:
            periods = self._periods[record.importance]
            finding = _find(facts, idle, periods, self._policy.notice, self._now)
            coming = partial(_next, facts, finding.signal, idle, periods, self._clock, self._policy, self._now)
        to = after(record.state, finding.signal)
        return Verdict(
            key=record.key,
            state=record.state,
            to=to,
            signal=finding.signal,
            rule=finding.rule,
            idle=idle,
            managed=facts.managed,
            warning=finding.warning,
            needs_yes=facts.edited if to is State.ARCHIVED and record.state is not State.ARCHIVED else None,
            fingerprint=record.seen_fingerprint,
            if_managed=if_managed,
            words=finding.words,
            coming=coming,
        )


def judge(facts: SkillFacts, clock: LibraryClock, policy: LifecycleSettings, now: datetime) -> Verdict:
    """Return what becomes of one skill at *now*, and why; see `Judge`."""
    return Judge(clock, policy, now).judge(facts)


def _stays(condition: str) -> Next:
    return Next(state=None, at=None, condition=condition)


def _archived(facts: SkillFacts) -> _Finding:
    """Say why an archived skill is archived, and whether somebody wants it back."""
    record, last = facts.record, facts.usage.last
    warning = None
    if record.archived_at is not None and last is not None and last.at > record.archived_at:
        warning = (
            f"{facts.key} is archived but was asked for again on {day(last.at)}: `restore {facts.key}` brings it back"
        )

    def words() -> str:
        since = f"archived since {day(record.archived_at or record.state_since)}"
        into = f" (absorbed into {record.absorbed_into})" if record.absorbed_into else ""
        why = f": {record.archive_reason}" if record.archive_reason else ""
        return f"{since}{into}{why}"

    return _Finding(Signal.EXEMPT, None, words, warning)


def _find(facts: SkillFacts, idle: Idle | IdleUnknown, periods: Periods, notice: timedelta, now: datetime) -> _Finding:
    """Return what rules 2 to 8 find of a live skill that is curatord's to change."""
    state = facts.record.state
    if kept_by := facts.kept_by:
        return _Finding(Signal.PINNED, 2, lambda: f"stays {state}: {kept_by}")
    match idle:
        case IdleUnknown():
            # Asked before rule 3 for a stale skill only, which that rule would move: nothing moves under doubt.
            if facts.referenced is None or state is not State.ACTIVE:
                return _Finding(Signal.UNKNOWN, 4, lambda: f"nothing ages: {idle.reason}")
            return _Finding(Signal.REFERENCED, 3, lambda: f"stays active: {facts.referenced} names it")
        case Idle():
            if facts.referenced is not None:
                verb = "stays" if state is State.ACTIVE else "becomes"
                return _Finding(Signal.REFERENCED, 3, lambda: f"{verb} active: {facts.referenced} names it")
            return _find_by_age(facts, idle, periods, notice, now)
        case _:
            assert_never(idle)


def _find_by_age(facts: SkillFacts, idle: Idle, periods: Periods, notice: timedelta, now: datetime) -> _Finding:
    """Return what rules 5 to 8 find."""
    record = facts.record

    def counted() -> str:
        return f"idle for {span(idle.idle)}, counted from {idle.counted_from}"

    if not facts.usage.ever_used and idle.idle < periods.never_used_grace:
        return _Finding(
            Signal.YOUNG,
            5,
            lambda: f"never used yet; {counted()}; never_used_grace is {exact(periods.never_used_grace)}",
        )
    if record.state is State.STALE and idle.idle >= periods.archive_after:
        return _find_long_idle(facts, periods, notice, now, counted)
    if idle.idle >= periods.stale_after:
        if record.state is State.ACTIVE:
            return _Finding(Signal.IDLE, 7, lambda: f"{counted()}; stale_after is {exact(periods.stale_after)}")
        return _Finding(
            Signal.IDLE, None, lambda: f"stays stale: {counted()}; archive_after is {exact(periods.archive_after)}"
        )
    rule, verb = (8, "active again") if record.state is State.STALE else (None, "stays active")
    return _Finding(Signal.RECENT, rule, lambda: f"{verb}: {counted()}; stale_after is {exact(periods.stale_after)}")


def _find_long_idle(
    facts: SkillFacts, periods: Periods, notice: timedelta, now: datetime, counted: Callable[[], str]
) -> _Finding:
    """Return what rule 6 finds of a stale skill that has been idle for `archive_after`."""
    record = facts.record
    stale_since = record.stale_since or record.state_since
    due = f"{counted()}; archive_after is {exact(periods.archive_after)}"
    if now - stale_since < notice:
        seen = f"it has been stale only since {day(stale_since)}, and notice is {exact(notice)}"
        return _Finding(Signal.IDLE, 6, lambda: f"stays stale: {due}, but {seen}")
    due = f"{due}, and it has been stale since {day(stale_since)}"
    spared = _spared(facts)
    if spared is None:
        return _Finding(Signal.LONG_IDLE, 6, lambda: due)
    warning = f"{facts.key} would be archived ({due}); it stays, since {spared}"
    return _Finding(Signal.SPARED, 6, lambda: f"stays stale: {due}, but {spared}", warning)


def _spared(facts: SkillFacts) -> str | None:
    """Return why a skill that is due for the archive is spared, in words, or None."""
    if facts.record.importance is Importance.IMPORTANT:
        return "its importance is important"
    return facts.archive_rejected


def _next(
    facts: SkillFacts,
    signal: Signal,
    idle: Idle | IdleUnknown,
    periods: Periods,
    clock: LibraryClock,
    policy: LifecycleSettings,
    now: datetime,
) -> Next:
    """Return what comes after a finding of *signal*."""
    record = facts.record
    to = after(record.state, signal)
    if to is not record.state:
        return Next(
            state=to, at=now, at_if_away=now, due=True, condition="with the next run, unless something changes before"
        )
    match signal:
        case Signal.PINNED:
            return _stays(f"nothing changes while {facts.kept_by}")
        case Signal.REFERENCED:
            return Next(state=None, at=None, condition=f"it does not age while {facts.referenced} names it")
        case Signal.SPARED:
            return Next(
                state=None, at=None, condition=f"it stays stale, since {_spared(facts)}, until it is used again"
            )
        case _:
            pass
    if isinstance(idle, IdleUnknown):
        return Next(state=None, at=None, condition="nothing ages until it can be told again how long it has been idle")
    if record.state is State.ACTIVE:
        target = periods.stale_after
        if not facts.usage.ever_used:
            target = max(target, periods.never_used_grace)
        told = forecast(idle, target, clock, policy.away_after, now)
        return Next(
            state=State.STALE,
            at=told.if_worked,
            at_if_away=told.if_away,
            condition="unless it is used, viewed or changed before; the clock stands still while nobody works",
        )
    if spared := _spared(facts):
        return Next(state=None, at=None, condition=f"it stays stale, since {spared}, until it is used again")
    told = forecast(idle, periods.archive_after, clock, policy.away_after, now)
    noticed = (record.stale_since or record.state_since) + policy.notice
    return Next(
        state=State.ARCHIVED,
        at=max(told.if_worked, noticed),
        at_if_away=None if told.if_away is None else max(told.if_away, noticed),
        condition="unless it is used, viewed or changed before; the clock stands still while nobody works",
    )

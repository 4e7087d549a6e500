"""
Whether a session is looked at now, and in which order; asked of facts, before anything is read or spent.

A session is due when it is settled (quiet, or endless for `session_force`), enough was said since the last look,
nobody said that it must not be sent anywhere, and no cooldown runs. What is not due stays as it is: only a look that
was made moves a session's watermark. Of all that are due the one that has waited longest comes first, so none starves.

On a first start everything on the disk is new. Of that backlog only what was alive within 72 hours before curatord
first saw it is looked at by itself; the rest waits to be asked for (`refine`, `scan --backfill`), and becomes an
ordinary session when it goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from curatord.core.cheap import dataclass
from curatord.core.distil.digest import Digest
from curatord.core.gates import SessionTimes, Unsettled
from curatord.core.gates import settled as settled_at
from curatord.core.settings import DistilSettings, GateSettings
from curatord.core.values import require_aware
from curatord.core.words import exact, plural, stamp

__all__ = [
    "BACKLOG",
    "PUT_ASIDE_AFTER",
    "Due",
    "NotDue",
    "NotDueCode",
    "SessionFacts",
    "due",
    "excluded_by",
    "next_try",
    "nothing_to_learn",
    "pause",
    "source_off",
]

BACKLOG = timedelta(hours=72)
PUT_ASIDE_AFTER = 5
FIRST_TIME = datetime.fromisoformat("0001-01-02T00:00:00+00:00")
_WAITS = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=1))
_LONGEST_WAIT = timedelta(hours=6)

# Who drives a session that can teach something (`SessionKind`): not schedules, sub-agents, reviewers or curatord.
_TEACHES = frozenset({"person", "program", "unknown"})

# A session with less than this teaches nothing, whatever a model would make of it. Peers ask for more (8 tool calls, an
# answer of 120 characters); here the settings have already said how much is enough, and a lesson told in three short
# sentences is one.
MIN_MESSAGES = 4
MIN_CHARS = 200

NotDueCode: TypeAlias = Literal["waiting", "cooldown", "skipped", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """
    What is known of a session before it is read.

    Attributes:
        kind: Its `SessionKind`, in words.
        settled: Whether it is quiet, where the caller knows; None: told from the three times.
        last_at: Newest time that a record bears; *grew_at*: when curatord last saw it grow;
            *oldest_unreviewed_at*: time of its oldest record that no look has reached. None where nothing tells.
        user_turns, tool_calls: Since the last look.
        looked_at: When it was last looked at, with whatever outcome.
        failures: Looks in a row that failed; *retry_at* when the next may be tried; *put_aside*: not any more by
            itself.
        first_seen_backlog: It was there already when its source was first read, at *first_seen_at*.
        cwds: All working folders that its records name; *excluded*: why it is never sent anywhere, or None.
    """

    host: str
    session_id: str
    kind: str = "person"
    settled: bool | None = None
    last_at: datetime | None = None
    grew_at: datetime | None = None
    oldest_unreviewed_at: datetime | None = None
    user_turns: int = 0
    tool_calls: int = 0
    looked_at: datetime | None = None
    failures: int = 0
    put_aside: bool = False
    retry_at: datetime | None = None
    first_seen_backlog: bool = False
    first_seen_at: datetime | None = None
    cwds: tuple[str, ...] = ()
    excluded: str | None = None

    def __post_init__(self) -> None:
        for name in ("last_at", "grew_at", "oldest_unreviewed_at", "looked_at", "retry_at", "first_seen_at"):
            require_aware(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """It may be looked at; the smallest *order_key* has waited longest."""

    order_key: tuple[datetime, str, str]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotDue:
    """
    It is left alone for now; None in *look_again_at* where only a change of the session or a person's word helps.

    *code*: `waiting` for more or for quiet, `cooldown`, `skipped` for good as it is, `error` where it was put aside or
    waits for its next try.
    """

    code: NotDueCode
    reason: str
    look_again_at: datetime | None = None


def due(
    facts: SessionFacts, settings: DistilSettings, gates: GateSettings, now: datetime, *, backfill: bool = False
) -> Due | NotDue:
    """
    Return whether a session is looked at now.

    Args:
        facts: The session.
        settings: How much must have been said, and the cooldown.
        gates: What counts as settled.
        now: The tick's one reading of the clock.
        backfill: A person asked for the backlog.

    Source: contract, section 8.
    """
    if facts.kind not in _TEACHES:
        return NotDue(code="skipped", reason=f"it is no work of a person or a program: {facts.kind}")
    if facts.excluded is not None:
        return NotDue(code="skipped", reason=facts.excluded)
    if facts.put_aside or facts.failures >= PUT_ASIDE_AFTER:
        reason = f"put aside after {plural(facts.failures, 'failure')} in a row"
        return NotDue(code="error", reason=reason)
    if not backfill and (backlog := _backlog(facts)):
        return NotDue(code="skipped", reason=backlog)
    if facts.user_turns < settings.min_turns and facts.tool_calls < settings.min_tool_calls:
        reason = (
            f"{plural(facts.user_turns, 'user turn')} and {plural(facts.tool_calls, 'tool call')} since the last look; "
            f"{settings.min_turns} or {settings.min_tool_calls} are asked for"
        )
        return NotDue(code="waiting", reason=reason)
    quiet = _settled(facts, gates, now)
    if isinstance(quiet, Unsettled):
        return NotDue(code="waiting", reason=quiet.reason, look_again_at=quiet.look_again_at)
    if facts.retry_at is not None and now < facts.retry_at:
        reason = f"the last look failed; the next try is at {stamp(facts.retry_at)}"
        return NotDue(code="error", reason=reason, look_again_at=facts.retry_at)
    if facts.looked_at is not None and now < facts.looked_at + settings.cooldown:
        reason = f"looked at {stamp(facts.looked_at)}, cooldown is {exact(settings.cooldown)}"
        return NotDue(code="cooldown", reason=reason, look_again_at=facts.looked_at + settings.cooldown)
    waited = facts.oldest_unreviewed_at or facts.last_at or facts.first_seen_at or FIRST_TIME
    if facts.retry_at is not None:  # it had its turn: whoever waits since before its next try comes first
        waited = max(waited, facts.retry_at)
    return Due(order_key=(waited, facts.host, facts.session_id), reason=quiet)


def _settled(facts: SessionFacts, gates: GateSettings, now: datetime) -> str | Unsettled:
    """Return why it counts as settled, or that it does not."""
    times = SessionTimes(
        newest_record_at=facts.last_at, growth_seen_at=facts.grew_at, oldest_unreviewed_at=facts.oldest_unreviewed_at
    )
    found = settled_at(times, gates, now)
    if facts.settled is True:
        return "quiet" if isinstance(found, Unsettled) else found.reason
    if isinstance(found, Unsettled):
        return found
    if facts.settled is False and not found.forced:
        again = None if facts.last_at is None else max(facts.last_at, now) + gates.session_quiet
        return Unsettled(reason="it is still going on", look_again_at=again)
    return found.reason


def _backlog(facts: SessionFacts) -> str | None:
    if not facts.first_seen_backlog or facts.looked_at is not None:
        return None
    if facts.first_seen_at is None or facts.last_at is None:
        return "it was there before curatord was, and nothing tells when; `curatord refine` looks at it"
    if facts.last_at >= facts.first_seen_at - BACKLOG:
        return None
    return (
        f"it ended more than {exact(BACKLOG)} before curatord first saw it; `curatord refine` or "
        "`curatord scan --backfill` looks at it"
    )


def excluded_by(cwds: Iterable[str], globs: Sequence[str]) -> str | None:
    """
    Return why a session with the working folders *cwds* is never sent anywhere, in words, or None.

    A glob matches a folder itself or one above it. Where any is set, a session without a folder is excluded too: it
    cannot be told from those that are meant (contract, section 4).
    """
    if not globs:
        return None
    folders = list(cwds)
    if not folders:
        return "its source has `exclude`, and nothing tells the session's working folder"
    for folder in folders:
        parts = folder.replace("\\", "/").rstrip("/").split("/")
        for end in range(len(parts), 0, -1):
            above = "/".join(parts[:end]) or "/"
            for glob in globs:
                if fnmatchcase(above, glob.rstrip("/") or "/"):
                    return f"its working folder {folder} matches `exclude: {glob}`"
    return None


def source_off(
    distil: Literal["on", "off", "auto"], *, enabled: bool, local_model: bool, host_reviewer: bool
) -> str | None:
    """
    Return why a source's sessions are not distilled, in words, or None where they are.

    Args:
        distil: The source's own setting.
        enabled: `distill.enabled`.
        local_model: The model runs on this machine.
        host_reviewer: The host has a reviewer of its own at work.
    """
    if not enabled:
        return "`distill.enabled` is false"
    if distil == "off":
        return "`distil: off`"
    if distil == "auto" and host_reviewer:
        return "`distil: auto`, and the host reviews its sessions itself"
    if distil == "auto" and not local_model:
        return "`distil: auto`, and the model does not run on this machine; `distil: on` sends digests to it"
    return None


def next_try(failures: int, now: datetime) -> datetime:
    """Return when a session may be tried again after *failures* (1 or more) in a row: 1 m, 5 m, 30 m, 1 h, then 6 h."""
    return now + (_WAITS[failures - 1] if 1 <= failures <= len(_WAITS) else _LONGEST_WAIT)


def pause(waits: int, first: timedelta) -> timedelta:
    """Return the pause before a look that *waits* (1 or more) times in a row was not to be had: doubled, up to 6 h."""
    return min(first * (1 << min(waits - 1, 20)), _LONGEST_WAIT)


def nothing_to_learn(digest: Digest) -> str | None:
    """
    Return why a session is not worth a call, in words, or None: the filter that costs nothing.

    Small talk without a sign of a lesson (a tool that was called, a correction, a failure that was mended, a wish) ends
    here. Source: peers, "Free filter before any LLM call", and the note on the numbers above.
    """
    said = [entry for entry in digest.entries if entry.evidence]
    if not said:
        return "nobody said anything in it"
    if digest.asked or digest.corrected or digest.fixed:
        return None
    messages = digest.user_messages + digest.assistant_messages
    if messages < MIN_MESSAGES:
        return f"{plural(messages, 'message')} since the last look; fewer than {MIN_MESSAGES} teach nothing"
    if not digest.tool_calls and sum(len(entry.text) for entry in said) < MIN_CHARS:
        return "no sign of a lesson: a few words, no tool call, no correction, no wish to keep anything"
    return None

"""
Why a skill is in its state, and what happens next and when: for scripts as JSON, for people in a few lines.

Both say what the verdict found and nothing more. The text answers four questions in this order: where does it stand,
why, what comes next and when, and what can I do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from shlex import quote
from typing import Any, assert_never

from curatord.core.cheap import dataclass
from curatord.core.idle import Idle, IdleUnknown
from curatord.core.inert import one_line
from curatord.core.lifecycle import Next, SkillFacts, Verdict
from curatord.core.usage import SkillUsage
from curatord.core.values import EventKind, Importance, Mode, RunId, State, require_aware
from curatord.core.words import day, days, iso, plural, span

__all__ = ["StateChange", "explain_json", "explain_text", "next_json"]

_HISTORY_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """One line of a skill's history; *from_state* is None for its first sight."""

    at: datetime
    from_state: State | None
    to_state: State
    reason: str
    run_id: RunId | None = None

    def __post_init__(self) -> None:
        require_aware("at", self.at)


def next_json(coming: Next | None) -> dict[str, Any] | None:
    """Return *coming* as `{state, at, condition}`, as `explain` and `skills` show it; None for None."""
    if coming is None:
        return None
    return {
        "state": None if coming.state is None else coming.state.value,
        "at": iso(coming.at),
        "condition": coming.condition,
    }


def explain_json(facts: SkillFacts, verdict: Verdict, history: Sequence[StateChange]) -> dict[str, Any]:
    """
    Return the value of `explain --json` (contract, section 7).

    *idle_days* and *counted_from* are null where idle cannot be told; *reason* then says why. *rule* is null where no
    rule was due. *history* is given oldest first and stays so.
    """
    idle = verdict.idle
    return {
        "skill": str(facts.key),
        "state": facts.record.state.value,
        "since": iso(facts.record.state_since),
        "idle_days": days(idle.idle) if isinstance(idle, Idle) else None,
        "counted_from": idle.counted_from if isinstance(idle, Idle) else None,
        "observed_since": iso(idle.observed_since),
        "stopped_days": days(idle.stopped) if isinstance(idle, Idle) else None,
        "clock": _clock_word(idle),
        "rule": verdict.rule,
        "reason": verdict.reason,
        "warning": verdict.warning,
        "managed": facts.managed,
        "edited": facts.edited,
        "next": next_json(verdict.next),
        "would": next_json(verdict.would),
        "history": [
            {
                "at": iso(change.at),
                "from": None if change.from_state is None else change.from_state.value,
                "to": change.to_state.value,
                "reason": change.reason,
                "run_id": change.run_id,
            }
            for change in history
        ],
    }


def _clock_word(idle: Idle | IdleUnknown) -> str:
    match idle:
        case Idle():
            return "stands still" if idle.stands_still else "runs"
        case IdleUnknown():
            return "unknown"
        case _:
            assert_never(idle)


def explain_text(facts: SkillFacts, verdict: Verdict, history: Sequence[StateChange], mode: Mode) -> str:
    """
    Return what `explain` prints: some lines of plain words, without a final line end.

    Args:
        facts, verdict: Of one skill and one time.
        history: Oldest first; the newest few are shown.
        mode: Whether an archiving is done or proposed.
    """
    lines = [f"{facts.key} is {facts.record.state} since {day(facts.record.state_since)}."]
    lines.append(f"  Why: {_stop(verdict.reason)}")
    lines.append(f"  Used: {_used(facts.usage)}")
    if isinstance(verdict.idle, Idle):
        lines.append(f"  Clock: {_clock(verdict.idle)}")
    if facts.managed and facts.edited is not None:
        lines.append(f"  Edited: {facts.edited}; changes of it are only proposed until you adopt it again")
    if verdict.warning is not None:
        lines.append(f"  Note: {verdict.warning}")
    lines.append(f"  Next: {_coming(verdict.next, verdict, mode)}")
    if verdict.would is not None:
        lines.append(f"  If it were adopted: {_coming(verdict.would, verdict, mode)}")
    lines.extend(f"  {line}" for line in _ways(facts, verdict))
    if history:
        lines.append("  History:")
        if len(history) > _HISTORY_SHOWN:
            lines.append(f"    ({plural(len(history) - _HISTORY_SHOWN, 'older change')} not shown; --json has all)")
        lines.extend(_history_line(change) for change in history[-_HISTORY_SHOWN:])
    return "\n".join(_inert(line) for line in lines)


def _inert(line: str) -> str:
    """Return *line* without anything a terminal would act on, its indent kept: names and reasons are others' text."""
    text = line.lstrip(" ")
    return " " * (len(line) - len(text)) + one_line(text)


def _stop(text: str) -> str:
    return text if text.endswith((".", "`")) else text + "."


def _used(usage: SkillUsage) -> str:
    counts = ", ".join(plural(count, noun) for count, noun in ((usage.use, "use"), (usage.view, "view")) if count)
    if usage.patch:
        counts = ", ".join(part for part in (counts, f"{plural(usage.patch, 'change')} to it") if part)
    if not counts:
        return "never, as far as anybody saw."
    where = f" in {plural(usage.sessions, 'session')} of {', '.join(usage.hosts)}" if usage.sessions else ""
    last_use = usage.newest_at(EventKind.USE)
    last = f"; last use {day(last_use)}" if last_use else ""
    whose = " (the host's own counters saw more than the transcripts)" if usage.counted_by == "host" else ""
    return f"{counts}{where}{last}{whose}."


def _clock(idle: Idle) -> str:
    parts = [f"idle for {span(idle.idle)}"]
    if idle.stopped:
        parts.append(f"not counting {span(idle.stopped)} in which nobody worked")
    parts.append(f"the transcripts can tell since {day(idle.observed_since)}")
    if idle.stands_still:
        parts.append("it stands still now, until somebody works again")
    return _stop("; ".join(parts))


def _coming(coming: Next, verdict: Verdict, mode: Mode) -> str:
    if coming.state is None or coming.at is None:
        return _stop(coming.condition)
    asks = coming.state is State.ARCHIVED and (mode is Mode.REVIEW or verdict.needs_yes is not None)
    what = f"{'proposed to be ' if asks else ''}{coming.state}"
    if coming.due:
        return f"{what} {coming.condition}."
    away = ""
    if coming.at_if_away is None:
        away = " (if nobody works from now on: not before somebody does)"
    return f"{what} in the first run after {day(coming.at)}{away}, {coming.condition}."


def _ways(facts: SkillFacts, verdict: Verdict) -> list[str]:
    """Return what a person can do, one command a line."""
    key, record = quote(one_line(str(facts.key))), facts.record
    if record.state is State.ARCHIVED:
        return [f"To have it back: curatord restore {key}"]
    if facts.broken is not None or facts.protected is not None or record.missing_since is not None:
        return []
    if not facts.managed:
        return [f"To hand it over: curatord adopt {key}"]
    if record.importance is Importance.CRITICAL:
        return [f"To let it age: curatord importance {key} normal"]
    if record.pinned:
        return [f"To let it age: curatord unpin {key}"]
    if facts.host_pinned:
        return ["To let it age: take the pin away in the host"]
    ways = [f"To keep it as it is: curatord pin {key}"]
    if facts.edited is not None:
        ways.append(f"To let it be changed again: curatord adopt {key}")
    if verdict.next.state is State.ARCHIVED or verdict.to is State.ARCHIVED:
        ways.append(f"To be warned instead: curatord importance {key} important")
    return ways


def _history_line(change: StateChange) -> str:
    before = "" if change.from_state is None else f"{change.from_state} → "
    run = f" (run {change.run_id})" if change.run_id else ""
    return f"    {day(change.at)} {before}{change.to_state}: {change.reason}{run}"

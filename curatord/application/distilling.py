"""
What the command line and the daemon ask about distilling: one session by name, the backlog, those that were put aside,
the log, and the daemon's batches.

The daemon asks once a tick, and most ticks must cost nothing: whether a session wants to be judged, and whether one is
due, is a step in an index each. Where a batch could not go on (no endpoint, no budget) the time of the next try is
kept, so that a daemon which is restarted every hour does not ask every hour.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from curatord.core.run_record import summary_of
from curatord.core.small_facts import BASELINE_RUN, PAUSED_SINCE
from curatord.core.words import iso
from curatord.errors import BusyError, ConfigError, UsageError

if TYPE_CHECKING:
    from curatord.core.run_record import RunRecord
    from curatord.passes.distil_order import DistilOrder, DistilResult
    from curatord.ports.distil_store import SessionToDistil
    from curatord.wiring import Parts

__all__ = ["backfill", "batch", "distil_rows", "refine", "retry_distil"]

WAIT = "distil.wait"  # until when the daemon leaves it, and after how many batches in a row that failed
BUDGET_WAIT = timedelta(hours=1)


def refine(parts: Parts, said: str, *, focus: str | None) -> dict[str, Any]:
    """Distil one session now, whatever counters and gates say, and return what came of it."""
    from curatord.application.working import recover
    from curatord.passes.distil_order import DistilOrder

    if parts.config.llm is None:
        raise ConfigError("no model is configured", key="llm", hint="set `llm.primary` (curatord config show)")
    recover(parts)
    _read_up_to_now(parts)
    judge(parts)
    session = _chosen(parts, said)
    order = DistilOrder(by_hand=True, sessions=(session.row,), focus=focus)
    record, result = _announced(parts, order, stop=parts.surroundings.stop)
    row = next(iter(result.sessions), None)
    return {
        "host": session.host,
        "session_id": session.session_id,
        "state": row["state"] if row is not None else "error",
        "reason": row["reason"] if row is not None else result.reason,
        "asked": bool(row and row["asked"]),
        "operations": row["operations"] if row is not None else [],
        "lines": result.lines,
        "run_id": record.run_id or None,
        "focus": focus,
        "digest": {"sha256": row.get("digest_sha256"), **row.get("digest", {})} if row is not None else None,
        "llm": {key: value for key, value in (record.llm or {}).items() if key != "exchanges"} or None,
    }


def backfill(parts: Parts) -> dict[str, Any]:
    """Look at the backlog of the first start too, as far as the budget goes, and return what came of it."""
    from curatord.passes.distil_order import DistilOrder

    if parts.config.llm is None:
        raise ConfigError("no model is configured", key="llm", hint="set `llm.primary` (curatord config show)")
    order = DistilOrder(by_hand=True, backfill=True)
    record, result = _announced(parts, order, stop=parts.surroundings.stop)
    return {
        "state": result.state,
        "reason": result.reason,
        "outcomes": result.tally(),
        "asked": result.asked,
        "left": result.left,
        "lines": result.lines,
        "run_id": record.run_id or None,
    }


def retry_distil(parts: Parts, said: Sequence[str] | None) -> dict[str, Any]:
    """
    Take sessions that were put aside, or that wait after failures, back to be looked at; None: all of them.

    Returns:
        Changes, as in `cli.app`.
    """
    parts.database  # noqa: B018 - opened for writing before anything is made from it
    changes: dict[str, Any] = {"done": [], "unchanged": [], "skipped": [], "failed": []}
    chosen = None if said is None else [_chosen(parts, one) for one in said]
    back = parts.distil_store.retry(None if chosen is None else [session.row for session in chosen])
    taken = set(back)
    changes["done"] = [
        {"skill": f"{host}:{session_id}", "what": "is looked at again", "action": None} for host, session_id in back
    ]
    for session in chosen or ():
        if (session.host, session.session_id) not in taken:
            name = f"{session.host}:{session.session_id}"
            changes["unchanged"].append({"skill": name, "reason": "it was not put aside"})
    if chosen is None and not back:
        changes["unchanged"].append({"skill": "sessions", "reason": "none was put aside"})
    return changes


def distil_rows(
    parts: Parts, *, host: str | None, since: datetime | None, session_id: str | None = None
) -> list[dict[str, Any]]:
    """Return the log of distilling, oldest first."""
    return [
        {
            "host": row.host,
            "session_id": row.session_id,
            "at": iso(row.at),
            "state": row.state,
            "reason": row.reason,
            "run_id": row.run_id,
            "asked": row.asked,
            "digest": row.digest,
            "operations": row.told.get("operations", []),
            "tokens": row.told.get("tokens", 0),
        }
        for row in parts.distil_store.log(since=since, host=host, session_id=session_id)
    ]


def distil_states(parts: Parts) -> dict[tuple[str, str], dict[str, Any]]:
    """Return for each session what `sessions` shows of distilling."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    off = why_off(parts)
    for key, row in parts.distil_store.states().items():
        state, reason = row["state"], row["reason"]
        if row["aside"]:
            reason = f"put aside after {row['failures']} failures, the last: {reason}; `curatord refine --retry`"
        elif off is None and row["due"]:
            state, reason = "due", row["why"]
        elif state is None:
            state, reason = ("off", off) if off is not None else (row["verdict"] or "waiting", row["why"])
        found[key] = {
            "state": state,
            "reason": reason,
            "at": iso(row["at"]),
            "through": iso(row["through"]),
            "aside": row["aside"],
            "failures": row["failures"],
            "retry_at": iso(row["retry_at"]),
            "now": row["why"],
        }
    return found


def why_off(parts: Parts) -> str | None:
    """Return why nothing is distilled at all, in words, or None."""
    if not parts.config.distill.enabled:
        return "`distill.enabled` is false"
    return "no model is configured (`llm`)" if parts.config.llm is None else None


def judge(parts: Parts) -> None:
    """Judge sessions that have grown, so that `status` and `sessions` say which are due."""
    if why_off(parts) is None:
        parts.distil_judge.judge(parts.clock.now(), stop=parts.surroundings.stop)


def batch(parts: Parts, *, stop: Callable[[], bool], alive: Callable[[], None]) -> str | None:
    """Distil what is due between runs, for the daemon; return a summary, None where there was nothing to do."""
    from curatord.passes.distil_order import DistilOrder

    now = parts.clock.now()
    if why_off(parts) is not None or parts.store.meta(PAUSED_SINCE) is not None:
        return None
    store = parts.distil_store
    wait = _wait(parts)
    if wait is not None and now < wait[0]:
        return None
    look_at = store.next_look_at()
    if look_at is not None and look_at <= now.timestamp() * 1000:
        parts.distil_judge.judge(now, stop=stop)
    if not store.due() or (_alone(parts) and parts.open_breaker(now) is not None):
        return None
    try:
        record, result = _announced(parts, DistilOrder(only_propose=_only_propose(parts)), stop=stop, alive=alive)
    except BusyError:
        return None  # somebody runs one by hand; the next tick asks again
    _keep_wait(parts, result, 0 if wait is None else wait[1], parts.clock.now())
    return _summary(record, result)


def _announced(
    parts: Parts, order: DistilOrder, *, stop: Callable[[], bool], alive: Callable[[], None] = lambda: None
) -> tuple[RunRecord, DistilResult]:
    """Do a batch and tell of it as of a run, where it is one."""
    from curatord.application.announcing import announce
    from curatord.passes.distil_batch import DistilBatch

    waited = frozenset(proposal.id for proposal in parts.store.proposals())
    record, result = DistilBatch(curation=parts.curation).run(order, stop=stop, alive=alive)
    announce(parts, record, waited, stop=stop, alive=alive)
    return record, result


def _alone(parts: Parts) -> bool:
    """Return whether nobody can be asked in the primary's place."""
    return parts.config.llm is None or parts.config.llm.fallback is None


def _summary(record: RunRecord, result: DistilResult) -> str | None:
    if record.run_id:
        return summary_of(record)
    if result.state in ("failed", "budget"):
        return f"sessions stay due: {result.reason}"
    return None


def _wait(parts: Parts) -> tuple[datetime, int] | None:
    """Return until when batches wait, and after how many failures; a change of the configuration ends it."""
    text = parts.store.meta(WAIT)
    if text is None:
        return None
    try:
        row = json.loads(text)
        until = datetime.fromisoformat(row["until"])
        if row["config"] != parts.config.fingerprint or until.tzinfo is None:
            return None
        return until, int(row["failures"])
    except (ValueError, KeyError, TypeError):
        return None


def _keep_wait(parts: Parts, result: DistilResult, failures: int, now: datetime) -> None:
    from curatord.core.distil.due import next_try

    if result.state == "failed":
        failures, until = failures + 1, next_try(failures + 1, now)
    elif result.state == "budget":
        day = "per_day" in result.reason
        tomorrow = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        failures, until = 0, tomorrow if day else now + BUDGET_WAIT
    else:
        if parts.store.meta(WAIT) is not None:
            parts.store.set_meta(WAIT, None)
        return
    told = {"until": until.isoformat(), "failures": failures, "config": parts.config.fingerprint}
    parts.store.set_meta(WAIT, json.dumps(told))


def _only_propose(parts: Parts) -> str | None:
    """Return why a batch must change nothing yet: the first change comes one interval after the first run."""
    if parts.config.gates.first_run != "baseline":
        return None
    last = parts.store.last_finished()
    if last is None or last.run_id == parts.store.meta(BASELINE_RUN):
        return "the first change comes one interval after the first run (`gates.first_run`)"
    return None


def _chosen(parts: Parts, said: str) -> SessionToDistil:
    found = parts.distil_store.find(said)
    if not found:
        raise UsageError(f"there is no session {said!r}", hint="`curatord sessions` lists them; `curatord scan` reads")
    if len(found) > 1:
        names = ", ".join(f"{session.host}:{session.session_id}" for session in found[:8])
        raise UsageError(f"several sessions are called {said!r}: {names}", hint="say one of these")
    return found[0]


def _read_up_to_now(parts: Parts) -> None:
    try:
        parts.scan(parts.surroundings.stop, parts.byte_progress())
    except BusyError:
        parts.log.info("scan.elsewhere", note="somebody else reads transcripts now; what is known counts")

"""The text of `status`, after the fashion of Hermes' own curator, so that its users find their way."""

from __future__ import annotations

from typing import Any

from curatord.cli.output import Cell, Output
from curatord.cli.views.words import as_period, count, joined, when

__all__ = ["show_status"]


def show_status(out: Output, value: Any) -> None:
    """Print *value*, the contract's `status`."""
    if value["paused"]:
        head: Cell = ("PAUSED", "bold yellow")
    else:
        head = ("ENABLED", "bold green") if value["enabled"] else ("DISABLED", "bold yellow")
    out.line("curator: ", head, " (curatord resume)" if value["paused"] else "")

    last, following = value["last_run"], value["next_run"]
    _row(out, "runs", str(value["runs"]))
    if last:
        _row(out, "last run", f"{last['run_id']}, {when(last['at'])}, {last['outcome']}")
        _row(out, "last summary", last["summary"] or "none")
        _row(out, "last report", last["report"] or "none")
    else:
        _row(out, "last run", "never")
    if following:
        waiting = joined([str(item) for item in following["waiting_for"]])
        _row(
            out, "next run", when(following["at"], missing="when due") + (f"; waiting for {waiting}" if waiting else "")
        )
    _row(out, "interval", as_period(value["interval"]))
    _row(out, "stale after", as_period(value["stale_after"]))
    _row(out, "archive after", as_period(value["archive_after"]))
    _row(out, "daemon", _daemon(value["daemon"]))
    _row(out, "skills", _counts(value["counts"]))
    if value["pending"]:
        _row(out, "pending", f"{value['pending']} waiting for your decision: curatord pending")
    _row(out, "model", _model(value["llm"]))
    distil = value.get("distil") or {}
    if distil and not distil["off"]:
        aside = f", {count(distil['aside'], 'session')} put aside (curatord refine --retry)" if distil["aside"] else ""
        _row(out, "distilling", f"{count(distil['due'], 'session')} due{aside}")
    _sources(out, value["sources"])
    _libraries(out, value.get("libraries", ()))
    _ranking(out, "most used", value["most_used"])
    _ranking(out, "least used", value["least_used"])


def _row(out: Output, name: str, text: str) -> None:
    out.line(f"  {name + ':':<15}", text)


def _daemon(daemon: Any) -> str:
    if not daemon or not daemon["alive"]:
        return "not running (curatord daemon; what you run by hand works without it)"
    parts = [f"running since {when(daemon['since'])}", f"pid {daemon['pid']}", str(daemon["activity"] or "")]
    if daemon["watching"]:
        parts.append("watching by " + ("events" if daemon["watching"] == "events" else "polling"))
    if daemon.get("control") == "absent":
        parts.append("it has no socket to be asked at")
    if daemon.get("last_error"):
        parts.append(f"in trouble: {daemon['last_error']}")
    return joined(parts)


def _counts(counts: Any) -> str:
    states = joined([f"{counts[state]} {state}" for state in ("active", "stale", "archived")])
    more = joined([f"{counts['unmanaged']} unmanaged", f"{counts['pinned']} pinned" if counts["pinned"] else ""])
    return f"{counts['managed']} managed ({states}), {more}"


def _model(llm: Any) -> str:
    if not llm or not llm["configured"]:
        return "not configured; distilling and merging are left out"
    spent = llm["spent_today"] or {}
    parts = [f"{spent.get('tokens') or 0} tokens today"]
    if spent.get("usd") is not None:
        parts.append(f"{spent['usd']:.2f} USD")
    if llm["fallback_used"]:
        parts.append("fallback in use")
    if llm["breaker"] not in (None, "closed"):
        parts.append(f"breaker {llm['breaker']}")
    if llm["last_error"]:
        error = llm["last_error"]
        told = f"{when(error.get('at'))}, {error['message']}" if isinstance(error, dict) else error
        parts.append(f"last error: {told}")
    return joined(parts)


def _sources(out: Output, sources: Any) -> None:
    if not sources:
        out.line("sources: none; no usage is seen")
        return
    out.line("sources:")
    for source in sources:
        lag = "" if source["lag_s"] is None else f"{as_period(round(source['lag_s']))} behind"
        parts = joined([count(source["sessions"], "session"), f"{source['due']} due" if source["due"] else "", lag])
        out.line(f"  {source['host']}: ", source["path"] or "default places", f" ({parts})")
        for problem in source["problems"]:
            out.line("    ", (_text_of(problem), "yellow"))


def _libraries(out: Output, libraries: Any) -> None:
    for library in libraries:
        for problem in library["problems"]:
            out.line(f"  library {library['name']}: ", (problem, "yellow"))


def _text_of(problem: Any) -> str:
    return problem if isinstance(problem, str) else str(problem.get("reason") or problem.get("what") or problem)


def _ranking(out: Output, title: str, skills: Any) -> None:
    if not skills:
        return
    out.line(f"{title}:")
    for skill in skills:
        name = f"{skill['library']}/{skill['name']}" if skill.get("library") else str(skill["name"])
        tally = joined(
            [f"{kind} {skill[kind]}" for kind in ("use", "view", "patch") if skill.get(kind)], missing="never"
        )
        out.line("  ", name, f": {tally}, last {when(skill.get('last_activity_at'))}")

"""Views of skills, sessions, events, runs and reasons."""

from __future__ import annotations

from typing import Any

from curatord.cli.output import Cell, Output
from curatord.cli.views.words import count, days, joined, state_cell, when

__all__ = ["show_events", "show_explain", "show_report", "show_runs", "show_sessions", "show_skill", "show_skills"]


def show_skills(out: Output, value: Any, *, problems: bool = False) -> None:
    """Print the contract's list of `skills`."""
    if not value:
        out.line("no skill has a problem" if problems else "no skills: no library is configured or none holds any")
        return
    if problems:
        for skill in value:
            for problem in skill["problems"]:
                out.line(f"{skill['library']}/{_label(skill)}: ", (_text_of(problem), "yellow"))
        return
    rows = [
        (
            skill["library"],
            (_label(skill), "bold"),
            state_cell(skill["state"]),
            _mark(skill),
            str(skill["use"]),
            str(skill["view"]),
            str(skill["patch"]),
            days(skill["idle_days"]),
            _next(skill["next"]) or str(skill.get("would") or ""),
        )
        for skill in value
    ]
    headers = ("library", "skill", "state", "marks", "use", "view", "patch", "idle days", "next")
    out.table(headers, rows, right=(4, 5, 6, 7))
    unmanaged = sum(not skill["managed"] for skill in value)
    if unmanaged:
        out.note(f"{count(unmanaged, 'skill')} not managed: curatord adopt NAME hands one over")


def _label(skill: Any) -> str:
    """Return what the skill is called within its library: its path there where that says more than the name."""
    path = str(skill.get("path") or "")
    return path if path and not path.startswith("/") else str(skill["name"])


def _mark(skill: Any) -> str:
    importance = skill["importance"] if skill["importance"] != "normal" else ""
    return joined(
        [
            "managed" if skill["managed"] else "yours",
            "pinned" if skill["pinned"] else "",
            importance or "",
            "broken" if skill["problems"] else "",
        ]
    )


def _next(following: Any) -> str:
    if not following or not following.get("state"):
        return ""
    return f"{following['state']} {when(following.get('at'), missing='')[:10]}".strip()


def _text_of(problem: Any) -> str:
    return problem if isinstance(problem, str) else str(problem.get("reason") or problem.get("what") or problem)


def show_skill(out: Output, value: Any) -> None:
    """Print `show`: one skill's facts, in the order in which one asks for them."""
    out.line((f"{value['library']}/{_label(value)}", "bold"), " ", state_cell(value["state"]))
    if value["description"]:
        out.line("  ", value["description"])
    facts: list[tuple[str, str]] = [
        ("managed", f"{'yes' if value['managed'] else 'no'}: {value['why']}"),
        ("marks", joined(["pinned" if value["pinned"] else "", f"importance {value['importance']}"])),
        (
            "used",
            f"{value['use']} uses, {value['view']} views, {value['patch']} patches in {value['sessions']} sessions",
        ),
        ("by", joined([str(host) for host in value["hosts"]], missing="nobody yet")),
        ("last", when(value["last_activity_at"])),
        ("idle", f"{days(value['idle_days'])} days" if value["idle_days"] is not None else "unknown"),
        ("born", when(value["created_at"], missing="unknown") + f", first seen {when(value['first_seen_at'])}"),
        ("next", _next(value["next"]) or "nothing"),
        ("would", str(value.get("would") or "")),
        ("size", f"{count(value['files'], 'file')}, {value['bytes']} bytes"),
        ("cost", f"{value['description_tokens']} tokens in every call"),
        ("content", str(value["fingerprint"])[:16]),
    ]
    for name, text in facts:
        if text:
            out.line(f"  {name + ':':<10}", text)
    for problem in value["problems"]:
        out.line("  problem:  ", (_text_of(problem), "yellow"))
    for row in value.get("history") or []:
        out.line(f"  {when(row['at'])}  ", f"{row.get('from') or 'new'} → {row['to']}: {row['reason']}")


def show_sessions(out: Output, value: Any) -> None:
    """Print the contract's list of `sessions`."""
    if not value:
        out.line("no sessions: nothing was scanned yet, or the sources are empty (curatord scan)")
        return
    rows = [
        (
            session["host"],
            session["session_id"],
            when(session["last_at"], missing="unknown"),
            str(session["user_turns"]),
            str(session["assistant_turns"]),
            str(sum(session["tool_calls"].values())),
            str(_number(session["skill_events"])),
            str(session["unreadable"] or ""),
            "settled" if session["settled"] else "open",
        )
        for session in value
    ]
    headers = ("host", "session", "last record", "user", "model", "tools", "events", "unreadable", "")
    out.table(headers, rows, right=(3, 4, 5, 6, 7))


def _number(events: Any) -> int:
    return len(events) if isinstance(events, list) else int(events or 0)


def show_events(out: Output, value: Any) -> None:
    """Print the contract's list of `events`."""
    if not value:
        out.line("no events")
        return
    rows = [
        (
            when(event["at"], missing="unknown"),
            event["host"],
            event["kind"],
            (f"{event['library']}/{event['skill']}" if event["library"] else f"?/{event['skill']}", "bold"),
            event["via"],
            event["session_id"],
        )
        for event in value
    ]
    out.table(("at", "host", "kind", "skill", "via", "session"), rows)


_OUTCOME_STYLES = {"ok": "green", "nothing_to_do": "", "partial": "yellow", "held": "yellow", "budget": "yellow"}


def show_runs(out: Output, value: Any) -> None:
    """Print the contract's list of `runs`."""
    if not value:
        out.line("no runs yet: curatord run --dry-run shows what one would do")
        return
    rows: list[tuple[Cell, ...]] = [
        (
            run["run_id"],
            run["trigger"],
            (run["outcome"], _OUTCOME_STYLES.get(run["outcome"], "red")),
            "" if run["duration_s"] is None else f"{run['duration_s']:.1f} s",
            run["summary"] or "",
        )
        for run in value
    ]
    out.table(("run", "trigger", "outcome", "took", "summary"), rows, right=(3,))


def show_report(out: Output, value: Any) -> None:
    """Print REPORT.md of a run."""
    out.text(value["text"])


def show_explain(out: Output, value: Any) -> None:
    """Print the contract's `explain`."""
    out.line(
        (str(value["skill"]), "bold"),
        " is ",
        state_cell(value["state"]),
        f" since {when(value['since'], missing='first sight')}",
    )
    out.line("  because ", value["reason"], f" (rule: {value['rule']})" if value["rule"] else "")
    if value["idle_days"] is not None:
        out.line(f"  idle for {days(value['idle_days'])} days, counted from {_counted(value['counted_from'])}")
    if value["observed_since"]:
        out.line(f"  its sources can testify since {when(value['observed_since'])}")
    if value["stopped_days"]:
        out.line(f"  the clock stood still for {days(value['stopped_days'])} days without any work")
    following = value["next"]
    if following and following.get("state"):
        at = f" at {when(following['at'])}" if following.get("at") else ""
        condition = f", if {following['condition']}" if following.get("condition") else ""
        out.line("  next: ", state_cell(following["state"]), f"{at}{condition}")
    else:
        out.line("  next: ", str((following or {}).get("condition") or "nothing will change by itself"))
    for row in value["history"]:
        out.line(f"  {when(row['at'])}  ", f"{row['from'] or 'new'} → {row['to']}: {row['reason']}")


def _counted(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value.get('what') or 'its last activity'} ({when(value.get('at'), missing='unknown')})"
    return when(value, missing="unknown") if value is None or str(value)[:4].isdigit() else str(value)

"""Views of skills, sessions, events, runs and reasons."""

from __future__ import annotations

from typing import Any

from curatord.cli.output import Cell, Output
from curatord.cli.views.words import count, days, joined, state_cell, when

__all__ = [
    "show_cost",
    "show_distil_log",
    "show_events",
    "show_explain",
    "show_report",
    "show_runs",
    "show_sessions",
    "show_skill",
    "show_skills",
]


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
    archived = [_label(skill) for skill in value if skill["state"] == "archived"]
    rows = [
        (
            skill["library"],
            (_archived_label(skill) if archived.count(_label(skill)) > 1 else _label(skill), "bold"),
            state_cell(skill["state"]),
            _mark(skill),
            str(skill["use"]),
            str(skill["view"]),
            str(skill["patch"]),
            days(skill["idle_days"]),
            _next(skill["next"]) or _would(skill),
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


def _archived_label(skill: Any) -> str:
    """Return what tells archived packages of one path apart, as `restore` takes it."""
    told = str(skill.get("archived_as") or "")
    return told.partition("/")[2] if told and skill["state"] == "archived" else _label(skill)


def _mark(skill: Any) -> str:
    importance = skill["importance"] if skill["importance"] != "normal" else ""
    return joined(
        [
            "managed" if skill["managed"] else "yours",
            "pinned" if skill["pinned"] else "",
            importance or "",
            _trouble(skill["problems"]),
        ]
    )


def _next(following: Any) -> str:
    if not following or not following.get("state"):
        return ""
    return f"{following['state']} {when(following.get('at'), missing='')[:10]}".strip()


def _would(skill: Any) -> str:
    """Return what would become of a skill that is not managed, where that is a change."""
    would = str(skill.get("would") or "")
    return "" if would in ("", skill["state"]) else f"{would}, if it were managed"


def _trouble(problems: Any) -> str:
    texts = [_text_of(problem) for problem in problems]
    return "broken" if any(text.startswith("broken") for text in texts) else "noted" if texts else ""


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
        ("would", _would(value)),
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
            _distilled(session["distil"]),
        )
        for session in value
    ]
    headers = ("host", "session", "last record", "user", "model", "tools", "events", "unreadable", "", "distil")
    out.table(headers, rows, right=(3, 4, 5, 6, 7))


def _distilled(distil: Any) -> str:
    """Return what came of distilling a session, and that it was put aside where it was."""
    return f"{distil['state']} (aside)" if distil.get("aside") else str(distil["state"])


def show_distil_log(out: Output, value: Any) -> None:
    """Print what came of sessions that were distilled."""
    if not value:
        out.line("no session was distilled yet")
        return
    rows = [
        (
            when(row["at"], missing="unknown"),
            row["host"],
            row["session_id"],
            (row["state"], "bold" if row["state"] in ("created", "updated", "pending") else ""),
            row["run_id"] or "",
            row["reason"] or "",
        )
        for row in value
    ]
    out.table(("at", "host", "session", "outcome", "run", "why"), rows)


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
    """Print `explain` in words, as the rules themselves put it."""
    for line in str(value["text"]).split("\n"):
        out.line(line)


def show_cost(out: Output, value: Any) -> None:
    """Print the contract's `cost`; all token figures are estimates."""
    rows = [
        (
            library["name"],
            str(library["skills"]),
            str(library["per_call_tokens"]),
            str(library["body_tokens"]),
            "unknown" if library["calls_per_day"] is None else f"{library['calls_per_day']:.1f}",
            "unknown" if library["tokens_per_year"] is None else str(library["tokens_per_year"]),
            "unknown" if library["usd_per_year"] is None else f"{library['usd_per_year']:.2f}",
        )
        for library in value["libraries"]
    ]
    headers = ("library", "skills", "tokens a call", "of all bodies", "calls a day", "tokens a year", "USD a year")
    out.table(headers, rows, right=(1, 2, 3, 4, 5, 6))
    for library in value["libraries"]:
        dearest = ", ".join(f"{row['skill']} {row['description_tokens']}" for row in library["top"][:5])
        if dearest:
            out.line(f"dearest of {library['name']}: ", dearest)
    index = value["index"]
    out.line(f"largest index: {index['bytes']} bytes (hosts cut descriptions above {index['error_at']})")
    if index["warning"]:
        out.line(("warning: ", "yellow"), index["warning"])
    curation = value["curation"]
    money = "at a price that is not known" if curation["usd"] is None else f"{curation['usd']:.4f} USD"
    out.line(
        f"curation itself: {count(curation['runs'], 'run')}, {count(curation['calls'], 'model call')}, "
        f"{curation['tokens']} tokens, {money}"
    )

"""Views of what was done, of what waits, and of changes."""

from __future__ import annotations

from typing import Any

from curatord.cli.output import Output
from curatord.cli.views.words import count, state_cell, when

__all__ = ["show_changes", "show_diff", "show_lesson", "show_pending", "show_refined", "show_run", "show_scan"]

ROWS_SHOWN = 20


def show_scan(out: Output, value: Any) -> None:
    """Print the contract's `scan`."""
    if not value["sources"]:
        out.line("no sources: name them in the configuration (curatord init)")
        return
    rows = [
        (
            source["host"],
            source["path"] or "",
            str(source["files"]),
            str(source["changed"]),
            str(source["records"]),
            str(source["unreadable"] or ""),
        )
        for source in value["sources"]
    ]
    out.table(("host", "path", "files", "changed", "records", "unreadable"), rows, right=(2, 3, 4, 5))
    places = {source["path"] for source in value["sources"]}  # one that is not there yet shows by having no files
    for note in value.get("notes", ()):
        if note["kind"] in ("failed", "problem") or (note["kind"] == "waiting" and note["path"] not in places):
            word = "waiting" if note["kind"] == "waiting" else "trouble"
            out.line("  ", (f"{word}: ", "yellow"), f"{note['path']}: {note['text']}")
    sessions, events = count(value["sessions"], "session"), count(value["events"], "skill event")
    out.line(f"{sessions}, {events}, {value['elapsed_s']:.2f} s")
    distil = value.get("distil")
    if distil:
        for line in distil["lines"]:
            out.line(line)
        tally = ", ".join(f"{number} {state}" for state, number in distil["outcomes"].items())
        left = f", {distil['left']} left" if distil["left"] else ""
        why = f" ({distil['reason']})" if distil["reason"] else ""
        out.line(f"backlog: {tally or distil['state']}{left}{why}")


def show_refined(out: Output, value: Any) -> None:
    """Print what came of one session."""
    style = "green" if value["state"] in ("created", "updated") else "yellow" if value["state"] != "skipped" else ""
    out.line(f"{value['host']} session {value['session_id']}: ", (value["state"], style))
    if value["reason"]:
        out.line("  ", value["reason"])
    for line in value["lines"]:
        out.line("  ", line)
    for row in value["operations"]:
        if row["state"] in ("candidate", "refused"):
            show_lesson(out, row)
        elif row["state"] == "pending":
            out.line("  ", f"waits for your yes: curatord diff {row['id']}")
    if value["run_id"]:
        out.line(f"  the whole report: curatord report {value['run_id']}")


def show_lesson(out: Output, row: Any, where: str = "") -> None:
    """Print one operation of a model that was only noted, or refused."""
    if row["state"] == "candidate":
        out.line("  ", ("noted: ", "yellow"), f"{row['skill']} (candidate {row['id']}){where}: {row['reason']}")
    else:
        out.line("  ", ("refused: ", "yellow"), f"{row['op']} of {row['skill']}{where}: {row['reason']}")


def show_run(out: Output, value: Any) -> None:
    """Print a run's record in short; the whole stands in its report."""
    if not value["run_id"]:
        closed = [f"{gate['gate']}: {gate['reason']}" for gate in value["gates"] if not gate["open"]]
        out.line("nothing begun, the gates are closed: curatord run alone does not ask them")
        for text in closed:
            out.line("  ", text)
        return
    style = "green" if value["outcome"] in ("ok", "nothing_to_do") else "yellow"
    out.line(f"run {value['run_id']}: ", (value["outcome"], style))
    if value.get("summary"):
        out.line("  ", value["summary"])
    would = "would become " if value["dry_run"] else ""
    for row in value["transitions"][:ROWS_SHOWN]:
        out.line(f"  {row['library']}/{row['skill']}: {would}", state_cell(row["to"]), ", ", row["reason"])
    if len(value["transitions"]) > ROWS_SHOWN:
        out.line(f"  … and {len(value['transitions']) - ROWS_SHOWN} more")
    for line in ((value.get("distil") or {}).get("lines") or [])[:ROWS_SHOWN]:
        out.line("  ", line)
    lessons = [
        (row, session)
        for session in (value.get("distil") or {}).get("sessions") or []
        for row in session.get("operations") or []
        if row["state"] in ("candidate", "refused")
    ]
    for row, session in lessons[:ROWS_SHOWN]:
        show_lesson(out, row, f" ({session['host']} session {session['session_id']})")
    if len(lessons) > ROWS_SHOWN:
        out.line(f"  … and {len(lessons) - ROWS_SHOWN} more lessons noted or refused")
    for row in value["consolidated"][:ROWS_SHOWN]:
        out.line(
            f"  {row['name']}: merged into {row['into']}"
            if not value["dry_run"]
            else f"  {row['name']} → {row['into']}"
        )
    advice = value.get("advice") or []
    if advice:
        out.line(f"  not managed, only told: {count(len(advice), 'skill')} (curatord report {value['run_id']})")
    for row in value["skipped"]:
        out.line("  ", ("skipped: ", "yellow"), f"{row['action']}: {row['reason']}")
    for row in value["failed"]:
        out.line("  ", ("failed: ", "red"), f"{row['action']}: {row['error']}")
    for text in value["warnings"]:
        out.line("  ", ("warning: ", "yellow"), text)
    if value.get("error"):
        out.line("  ", ("error: ", "red"), value["error"])
    if value["pending"] and not value["dry_run"]:
        out.line(f"  {count(len(value['pending']), 'change')} waiting for your decision: curatord pending")
    out.line(f"  the whole report: curatord report {value['run_id']}")
    if value["dry_run"]:
        out.line("  nothing was changed; curatord run does it")


def show_pending(out: Output, value: Any) -> None:
    """Print the contract's list of `pending`."""
    if not value:
        out.line("nothing waits for a decision")
        return
    rows = [
        (
            (entry["id"], "bold"),
            entry["kind"],
            entry["library"] or "",
            entry["summary"] or "",
            entry["reason"] or "",
            when(entry["created_at"]),
        )
        for entry in value
    ]
    out.table(("id", "kind", "library", "what", "why", "since"), rows)
    out.note("curatord diff ID shows one; curatord approve ID applies it; curatord reject ID refuses it")


def show_diff(out: Output, value: Any) -> None:
    """Print one proposal and its diff, the lines that come and go in colour."""
    out.line((value["id"], "bold"), f" {value['kind']}: ", value["summary"] or "")
    out.line("  ", value["reason"] or "")
    if value.get("status", "pending") != "pending":
        why = f": {value['decided_reason']}" if value.get("decided_reason") else ""
        out.line("  ", (f"it is {value['status']}", "yellow"), why)
    for line in (value["diff"] or "").splitlines():
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        out.line((line, style) if style else line)


def show_changes(out: Output, value: Any) -> None:
    """Print changes (`cli.app`): what was done on the answer's stream, what was not beside it."""
    for row in value.get("done") or []:
        action = f" (undo {row['action']})" if row.get("action") else ""
        out.line((_named(row), "bold"), f": {row['what']}{action}")
    for row in value.get("unchanged") or []:
        out.line(_named(row), f": unchanged, {row['reason']}")
    for row in value.get("skipped") or []:
        out.note(_named(row), ": ", ("skipped", "yellow"), f", {row['reason']}")
    for row in value.get("failed") or []:
        out.note(_named(row), ": ", ("failed", "red"), f", {row['error']}")
    if value.get("hint"):
        out.note(str(value["hint"]))


def _named(row: Any) -> str:
    return str(row["skill"] or "")

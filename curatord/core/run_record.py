"""
What a run writes about itself: `run.json` and `REPORT.md`, from one value.

`RunRecord` holds facts that others found: what was on disk before and after, which actions were applied, skipped or
failed and why, what waits. Nothing here decides or guesses; a list is empty because nothing happened, not because
nobody looked. `to_json` is the file for scripts, `to_report` says the same to a person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from curatord.core.cheap import dataclass, field
from curatord.core.files_changed import FileRow
from curatord.core.inert import in_markdown, one_line, visible
from curatord.core.values import Mode, Outcome, RunId, Trigger, require_aware
from curatord.core.words import iso, plural

__all__ = [
    "SCHEMA",
    "AutoTransitions",
    "Counts",
    "FailedRow",
    "GateRow",
    "PassRow",
    "PendingRow",
    "ReferenceRow",
    "RunRecord",
    "SkippedRow",
    "TransitionRow",
    "days",
    "operations_of",
    "summary_of",
    "to_json",
    "to_report",
]

SCHEMA = 1
ROWS_SHOWN = 50  # of each list in REPORT.md; run.json always has all


def days(period: timedelta) -> float:
    """Return *period* in days with two decimals."""
    return round(period.total_seconds() / 86_400, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """One gate's answer at the start of the run."""

    gate: str
    open: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRow:
    """One pass of the run: *state* is `done`, `skipped` or `failed`, with the reason in words."""

    name: str
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """A library by numbers, as found on disk. *total* has live and archived, managed or not."""

    total: int = 0
    managed: int = 0
    active: int = 0
    stale: int = 0
    archived: int = 0

    def minus(self, other: Counts) -> dict[str, int]:
        """Return the difference to *other*, number by number."""
        return {name: getattr(self, name) - getattr(other, name) for name in ("total", "managed", *_STATES)}

    def as_json(self) -> dict[str, int]:
        """Return the numbers by name."""
        return {name: getattr(self, name) for name in ("total", "managed", *_STATES)}


_STATES = ("active", "stale", "archived")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionRow:
    """A state that changed (in a dry run: would change)."""

    library: str
    skill: str
    from_state: str
    to_state: str
    idle: timedelta
    reason: str
    action_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoTransitions:
    """The rules' own tally."""

    checked: int = 0
    marked_stale: int = 0
    archived: int = 0
    reactivated: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow:
    """A proposal that this run made or renewed."""

    id: str
    summary: str
    reason: str
    diff: str = ""  # only of a dry run, whose proposals are not stored and so cannot be looked at later


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRow:
    """Something that was due and was left alone; *declined*: since somebody has said no to it."""

    action: str
    reason: str
    declined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRow:
    """Something that was tried and did not succeed; nothing is half done."""

    action: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRow:
    """A reference that was rewritten in a host's file or another skill."""

    file: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """All that is known of one run; while it goes on *outcome* is `running` and *finished_at* None."""

    run_id: RunId
    trigger: Trigger
    dry_run: bool
    mode: Mode
    outcome: Outcome
    started_at: datetime
    version: str
    config_fingerprint: str
    finished_at: datetime | None = None
    duration_s: float | None = None
    gates: tuple[GateRow, ...] = ()
    passes: tuple[PassRow, ...] = ()
    scan: Mapping[str, Any] | None = None
    before: Counts = field(default_factory=Counts)
    after: Counts = field(default_factory=Counts)
    transitions: tuple[TransitionRow, ...] = ()
    auto_transitions: AutoTransitions = field(default_factory=AutoTransitions)
    consolidated: tuple[Mapping[str, Any], ...] = ()
    pruned: tuple[Mapping[str, Any], ...] = ()
    added: tuple[Mapping[str, Any], ...] = ()
    patched: tuple[Mapping[str, Any], ...] = ()
    pending: tuple[PendingRow, ...] = ()
    due: tuple[TransitionRow, ...] = ()  # of a run that only records: what a later one would do
    skipped: tuple[SkippedRow, ...] = ()
    failed: tuple[FailedRow, ...] = ()
    references: tuple[ReferenceRow, ...] = ()
    files: tuple[FileRow, ...] = ()
    advice: tuple[Mapping[str, Any], ...] = ()
    merges: tuple[Mapping[str, Any], ...] = ()
    left: tuple[Mapping[str, Any], ...] = ()
    problems: tuple[Mapping[str, Any], ...] = ()
    distil: Mapping[str, Any] | None = None  # sessions that were looked at, and what came of each
    llm: Mapping[str, Any] | None = None
    library_cost: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    error: str | None = None

    def __post_init__(self) -> None:
        require_aware("started_at", self.started_at)
        require_aware("finished_at", self.finished_at)


_NO_LLM: Mapping[str, Any] = {
    "model": None,
    "provider": None,
    "api": None,
    "fallback_used": False,
    "calls": 0,
    "tokens": {"input": 0, "cached": 0, "output": 0},
    "usd": 0.0,
    "budget_left": None,
    "errors": [],
    "prompts": {},
    "exchanges": [],
}


def to_json(record: RunRecord) -> dict[str, Any]:
    """Return the value of `run.json` (contract, section 7): plain dicts, lists, text and numbers."""
    return {
        "schema": SCHEMA,
        "run_id": record.run_id,
        "trigger": record.trigger.value,
        "dry_run": record.dry_run,
        "mode": record.mode.value,
        "outcome": record.outcome.value,
        "started_at": iso(record.started_at),
        "finished_at": iso(record.finished_at),
        "duration_s": record.duration_s,
        "version": record.version,
        "config_fingerprint": record.config_fingerprint,
        "summary": summary_of(record),
        "gates": [{"gate": row.gate, "open": row.open, "reason": row.reason} for row in record.gates],
        "passes": [{"pass": row.name, "state": row.state, "reason": row.reason} for row in record.passes],
        "scan": record.scan,
        "library": {
            "before": record.before.as_json(),
            "after": record.after.as_json(),
            "delta": record.after.minus(record.before),
        },
        "transitions": [_transition(row) for row in record.transitions],
        "due": [_transition(row) for row in record.due],
        "auto_transitions": {
            name: getattr(record.auto_transitions, name)
            for name in ("checked", "marked_stale", "archived", "reactivated", "skipped")
        },
        "consolidated": [dict(row) for row in record.consolidated],
        "pruned": [dict(row) for row in record.pruned],
        "added": [dict(row) for row in record.added],
        "patched": [dict(row) for row in record.patched],
        "pending": [row.id for row in record.pending],
        "proposals": [
            {"id": row.id, "summary": row.summary, "reason": row.reason, "diff": row.diff}
            for row in record.pending
            if row.diff
        ],
        "skipped": [{"action": row.action, "reason": row.reason} for row in record.skipped],
        "failed": [{"action": row.action, "error": row.error} for row in record.failed],
        "references": [{"file": row.file, "before": row.before, "after": row.after} for row in record.references],
        "files": [{"library": row.library, "what": row.what, "path": row.path, "to": row.to} for row in record.files],
        "advice": [dict(row) for row in record.advice],
        "merges": [dict(row) for row in record.merges],
        "left": [dict(row) for row in record.left],
        "problems": [dict(row) for row in record.problems],
        "distil": dict(record.distil) if record.distil is not None else None,
        "llm": dict(record.llm) if record.llm is not None else dict(_NO_LLM),
        "library_cost": dict(record.library_cost) if record.library_cost is not None else None,
        "warnings": list(record.warnings),
        "error": record.error,
    }


def _transition(row: TransitionRow) -> dict[str, Any]:
    return {
        "library": row.library,
        "skill": row.skill,
        "from": row.from_state,
        "to": row.to_state,
        "idle_days": days(row.idle),
        "reason": row.reason,
        "action": row.action_id,
    }


def summary_of(record: RunRecord) -> str:
    """Return one line that stands alone: hosts and people see it first, often cut after 60 characters."""
    verb = "would " if record.dry_run else ""
    tally = dict.fromkeys(_STATES, 0)
    for row in record.transitions:
        tally[row.to_state] = tally.get(row.to_state, 0) + 1
    parts: list[str] = []
    if tally["archived"]:
        parts.append(f"{verb}archive {tally['archived']}" if record.dry_run else f"archived {tally['archived']}")
    if tally["stale"]:
        parts.append(f"{verb}mark {tally['stale']} stale" if record.dry_run else f"marked {tally['stale']} stale")
    if tally["active"]:
        parts.append(f"{verb}reactivate {tally['active']}" if record.dry_run else f"reactivated {tally['active']}")
    for rows, word in (
        (record.consolidated, "merged"),
        (record.pruned, "pruned"),
        (record.added, "added"),
        (record.patched, "patched"),
    ):
        if rows:
            parts.append(f"{verb}{word} {len(rows)}" if not record.dry_run else f"{word} {len(rows)} (dry run)")
    if record.pending:
        parts.append(f"{len(record.pending)} waiting for your decision")
    parts += [
        f"{verb if record.dry_run else ''}{word} {plural(count, 'lesson')}"
        for word, count in (
            ("note" if record.dry_run else "noted", len(operations_of(record.distil, "candidate"))),
            ("refuse" if record.dry_run else "refused", len(operations_of(record.distil, "refused"))),
        )
        if count
    ]
    if record.skipped:
        parts.append(f"{len(record.skipped)} skipped")
    if record.failed:
        parts.append(f"{len(record.failed)} failed")
    text = ", ".join(parts) if parts else "nothing to do"
    if record.outcome is Outcome.RUNNING:
        text = "still running"
    elif record.outcome is Outcome.INTERRUPTED:
        text = f"interrupted; {text} before that"
    elif record.outcome is Outcome.FAILED:
        text = f"failed: {one_line(record.error or 'see the report')}"
    prefix = "dry run: " if record.dry_run else ""
    return f"{prefix}{text} ({record.after.managed} managed of {plural(record.after.total, 'skill')})"


def operations_of(distil: Mapping[str, Any] | None, state: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return what sessions taught that came to *state* (`applied`, `pending`, `candidate`, `refused`): session, row."""
    return [
        (session, row)
        for session in (distil or {}).get("sessions", ())
        for row in session.get("operations", ())
        if row.get("state") == state
    ]


def to_report(record: RunRecord, *, undoable: bool) -> str:
    """
    Return the text of `REPORT.md`.

    Args:
        record: The run.
        undoable: Whether anything of it can be undone; only then the command for it is shown.
    """
    would = "Would be " if record.dry_run else ""
    lines = [
        f"# curatord run {record.run_id}",
        "",
        f"**{in_markdown(summary_of(record))}**",
        "",
        f"- outcome: `{record.outcome.value}`" + (" (dry run: nothing was changed)" if record.dry_run else ""),
        f"- started: {iso(record.started_at)}, took {_seconds(record.duration_s)}",
        f"- trigger: {record.trigger.value}, mode: {record.mode.value}, curatord {record.version}",
    ]
    if record.error:
        lines += ["", f"Error: {in_markdown(record.error)}"]
    lines += _section("Warnings", [in_markdown(text) for text in record.warnings])
    lines += _section(
        f"{would}Changed by rule" if not would else "Would be changed by rule",
        [
            f"`{_code(row.library)}/{_code(row.skill)}`: {row.from_state} → {row.to_state}. {in_markdown(row.reason)}"
            for row in record.transitions[:ROWS_SHOWN]
        ],
        of=len(record.transitions),
    )
    lines += _section(
        f"{would}Merged into an umbrella",
        [
            f"`{_code(row.get('name'))}` → `{_code(row.get('into'))}` ({in_markdown(str(row.get('how') or 'whole'))}): "
            f"{in_markdown(str(row.get('reason', '')))}"
            for row in record.consolidated
        ],
    )
    lines += _section(
        f"{would}Pruned",
        [f"`{_code(row.get('name'))}`: {in_markdown(str(row.get('reason', '')))}" for row in record.pruned],
    )
    lines += _section(
        f"{would}Added",
        [f"`{_code(row.get('name'))}`: {in_markdown(str(row.get('reason', '')))}" for row in record.added],
    )
    lines += _section(
        f"{would}Patched",
        [f"`{_code(row.get('name'))}`: {in_markdown(str(row.get('reason', '')))}" for row in record.patched],
    )
    lines += _distil_lines(record.distil)
    lines += _section(
        "References rewritten" if not record.dry_run else "References that would be rewritten",
        [f"`{_code(row.file)}`: {in_markdown(row.before)} → {in_markdown(row.after)}" for row in record.references],
    )
    lines += _section(
        "Files, relative to their library",
        [
            f"{in_markdown(row.library)}: `{_code(row.path)}` {row.what}" + (f" to `{_code(row.to)}`" if row.to else "")
            for row in record.files
        ],
    )
    pending = [f"`{_code(row.id)}` {in_markdown(row.summary)}. {in_markdown(row.reason)}" for row in record.pending]
    lines += _section("Waiting for your decision", pending)
    if pending and not record.dry_run:
        lines += ["", "See one with `curatord diff ID`, then `curatord approve ID` or `curatord reject ID`."]
    for row in record.pending:
        if row.diff:
            lines += _diff(row.summary, row.diff)
    for change in (*record.added, *record.patched):
        if change.get("diff"):
            lines += _diff(f"{change.get('library')}/{change.get('name')}", str(change["diff"]))
    lines += _section(
        "Would be due (this run only records)",
        [
            f"`{_code(row.library)}/{_code(row.skill)}`: {row.from_state} → {row.to_state}. {in_markdown(row.reason)}"
            for row in record.due
        ],
    )
    lines += _section("Skipped", [f"{in_markdown(row.action)}: {in_markdown(row.reason)}" for row in record.skipped])
    lines += _section("Failed", [f"{in_markdown(row.action)}: {in_markdown(row.error)}" for row in record.failed])
    lines += _section(
        "Not managed, what would become of it",
        [
            f"`{_code(row.get('library'))}/{_code(row.get('skill'))}`: {in_markdown(str(row.get('would', '')))}"
            for row in record.advice[:ROWS_SHOWN]
        ],
        of=len(record.advice),
    )
    if record.advice:
        lines += ["", "Hand a skill over with `curatord adopt SKILL`; until then it is never changed."]
    lines += _section(
        "Problems of skills",
        [
            f"`{_code(row.get('library'))}/{_code(row.get('skill'))}`: {in_markdown(str(row.get('problem', '')))}"
            for row in record.problems
        ],
    )
    lines += ["", "## Library", "", *_count_table(record)]
    lines += _cost_lines(record)
    lines += _section(
        "Gates at the start",
        [f"{row.gate}: {'open' if row.open else 'closed'}. {in_markdown(row.reason)}" for row in record.gates],
    )
    lines += _section(
        "Passes",
        [f"{row.name}: {row.state}{'. ' + in_markdown(row.reason) if row.reason else ''}" for row in record.passes],
    )
    if record.scan:
        lines += ["", "## Transcripts", "", *_scan_lines(record.scan)]
    if undoable:
        lines += [
            "",
            "## Undo",
            "",
            f"`curatord undo {record.run_id}` puts back what this run did, newest first;",
            "`curatord restore SKILL` brings back one archived skill.",
        ]
    return "\n".join(lines) + "\n"


def _diff(title: str, diff: str) -> list[str]:
    return ["", f"### {in_markdown(title)}", "", *(f"    {line}" for line in visible(diff).splitlines())]


def _distil_lines(distil: Mapping[str, Any] | None) -> list[str]:
    """Return what sessions taught, line by line, then what was refused and why, and the tally."""
    if not distil:
        return []
    changes = [in_markdown(str(line)) for line in distil["lines"]]
    noted = [
        f"`{_code(row.get('skill'))}` in {in_markdown(str(row.get('library')))} (`{_code(row.get('id'))}`, "
        f"{_told_in(session)}): {in_markdown(str(row.get('reason', '')))}"
        for session, row in operations_of(distil, "candidate")
    ]
    refused = [
        f"`{_code(row.get('op'))}` of `{_code(row.get('skill'))}` ({_told_in(session)}): "
        f"{in_markdown(str(row.get('reason', '')))}"
        for session, row in operations_of(distil, "refused")
    ]
    tally = ", ".join(f"{count} {state}" for state, count in distil["outcomes"].items())
    left = f"; {distil['left']} stay due" if distil["left"] else ""
    return [
        *_section("What sessions taught", changes),
        *_section("Lessons noted, which another session has to confirm", noted),
        *_section("Refused lessons", refused),
        "",
        f"Sessions looked at: {tally or 'none'}; model questions: {distil['asked']}{left}.",
    ]


def _told_in(session: Mapping[str, Any]) -> str:
    return f"{in_markdown(str(session.get('host')))} session {in_markdown(str(session.get('session_id')))}"


def _section(title: str, rows: Sequence[str], *, of: int | None = None) -> list[str]:
    """Return a list with its title; *of* is how many there are where *rows* are only those that are shown."""
    if not rows:
        return []
    count = len(rows) if of is None else of
    shown = [f"- {row}" for row in rows[:ROWS_SHOWN]]
    if count > ROWS_SHOWN:
        shown.append(f"- … and {count - ROWS_SHOWN} more, all in `run.json`")
    return ["", f"## {title} ({count})", "", *shown]


def _code(text: object) -> str:
    """Return *text* for the inside of a code span, which knows no escapes: back-ticks are replaced."""
    return one_line(str(text)).replace("`", "'")


def _seconds(duration_s: float | None) -> str:
    return "an unknown time" if duration_s is None else f"{duration_s:.1f} s"


def _count_table(record: RunRecord) -> list[str]:
    names = ("total", "managed", *_STATES)
    rows = ["| | before | after | change |", "|---|---:|---:|---:|"]
    for name in names:
        before, after = getattr(record.before, name), getattr(record.after, name)
        rows.append(f"| {name} | {before} | {after} | {after - before:+d} |")
    return rows


def _cost_lines(record: RunRecord) -> list[str]:
    cost, llm = record.library_cost, record.llm
    lines: list[str] = []
    if cost:
        lines += [
            "",
            "## Cost",
            "",
            f"- names and descriptions: {cost.get('description_tokens', 0)} tokens in every call (estimated)",
        ]
        if cost.get("calls_per_day"):
            lines.append(
                f"- at {cost['calls_per_day']} calls a day: {cost.get('tokens_per_year', 0)} tokens a year (estimated)"
            )
    if llm:
        tokens = llm.get("tokens", {})
        usd = llm.get("usd")
        lines += [
            *([] if lines else ["", "## Cost", ""]),
            f"- this run: {llm.get('calls', 0)} model calls, {tokens.get('input', 0)} tokens in "
            f"({tokens.get('cached', 0)} cached), {tokens.get('output', 0)} out, "
            + (f"${usd:.4f}" if isinstance(usd, (int, float)) else "price unknown"),
        ]
    return lines


def _scan_lines(scan: Mapping[str, Any]) -> list[str]:
    rows = ["| host | path | files | changed | records | unreadable |", "|---|---|---:|---:|---:|---:|"]
    for source in scan.get("sources", ()):
        rows.append(
            f"| {in_markdown(str(source.get('host', '')))} | {in_markdown(str(source.get('path', '')))} "
            f"| {source.get('files', 0)} | {source.get('changed', 0)} | {source.get('records', 0)} "
            f"| {source.get('unreadable', 0)} |"
        )
    return rows

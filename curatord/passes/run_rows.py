"""Lines of a run's record, made of what was found, decided and done; nothing here reads or changes anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from curatord.core.idle import Idle, IdleUnknown
from curatord.core.journal import ArchiveItem, EditItem, JournalEntry
from curatord.core.library_cost import LibraryCost
from curatord.core.lifecycle import Verdict
from curatord.core.plan import Action, Applied, Archive, MarkStale, Reactivate
from curatord.core.run_record import ReferenceRow, TransitionRow
from curatord.core.values import LibraryName, SkillKey, State
from curatord.passes.look import Look
from curatord.passes.proposals import archive_of

__all__ = [
    "absorbed",
    "action_json",
    "action_of",
    "advice_rows",
    "cost_json",
    "place_of",
    "problem_rows",
    "rebuilt_words",
    "reference_rows",
    "scan_warnings",
    "transition_row",
    "unknown_ages",
    "verb_of",
    "written_row",
]

MAX_PROBLEMS = 200  # of skills, in run.json; `skills --problems` lists all


def written_row(entry: JournalEntry, key: SkillKey) -> dict[str, Any]:
    """Return the line of a skill that *entry* made or changed."""
    return {"library": key.library, "name": key.name, "reason": entry.reason, "action": entry.action_id}


def absorbed(entry: JournalEntry) -> dict[SkillKey, ArchiveItem]:
    """Return what *entry* put into the archive because a merge took it in."""
    items = [change.after for change in entry.archive if change.after is not None]
    return {item.key: item for item in items if item.absorbed_into is not None}


def action_of(verdict: Verdict) -> MarkStale | Reactivate | Archive:
    """Return the action that *verdict* asks for."""
    if verdict.to is State.ARCHIVED:
        return archive_of(verdict)
    kind = MarkStale if verdict.to is State.STALE else Reactivate
    return kind(key=verdict.key, reason=verdict.reason, by="rules", expected=verdict.fingerprint)


def action_json(action: Action) -> dict[str, Any]:
    """Return *action* as `plan.json` has it."""
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(action)
    return told


def verb_of(to: State) -> str:
    """Return what a move to the state *to* is called."""
    return {State.ARCHIVED: "archive", State.STALE: "mark stale", State.ACTIVE: "reactivate"}[to]


def transition_row(verdict: Verdict, action_id: str | None = None, *, reason: str | None = None) -> TransitionRow:
    """Return the line of a change; *reason* is the verdict's where it was made already."""
    idle = verdict.idle.idle if isinstance(verdict.idle, Idle) else timedelta(0)
    return TransitionRow(
        library=verdict.key.library,
        skill=verdict.key.rel,
        from_state=verdict.state.value,
        to_state=verdict.to.value,
        idle=idle,
        reason=verdict.reason if reason is None else reason,
        action_id=action_id,
    )


def reference_rows(applied: Applied) -> list[ReferenceRow]:
    """Return the lines of a host's own references that an action changed."""
    rows = []
    for step in applied.entry.steps:
        if isinstance(step, EditItem) and step.format == "jobs":
            for edit in step.edits:
                rows.append(
                    ReferenceRow(
                        file=f"{step.file} (job {step.item}, {edit.name})",
                        before=edit.before or "absent",
                        after=edit.after or "absent",
                    )
                )
    return rows


def scan_warnings(scan: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what of a scan a person should hear of; restarts and vanished files are ordinary and only in the log."""
    return tuple(
        f"{note['path']}: {note['text']}" for note in scan.get("notes", ()) if note["kind"] in ("failed", "problem")
    )


def rebuilt_words(aside: str) -> str:
    """Return what a run says after a damaged database was begun anew; the old one is at *aside*."""
    return (
        f"the database was damaged and was begun anew (the old one is {aside}); decisions were kept, what earlier runs "
        "did can no longer be undone, and this run only records"
    )


def unknown_ages(look: Look) -> list[str]:
    """Return, once a library, why nothing in it ages, where something could."""
    found: dict[LibraryName, str] = {}
    unknown = [v for v in look.verdicts.values() if isinstance(v.idle, IdleUnknown) and v.checked]
    for verdict in sorted(unknown, key=place_of):
        if isinstance(verdict.idle, IdleUnknown):
            library = verdict.key.library
            found.setdefault(library, f"library {library}: nothing ages: {verdict.idle.reason}")
    return list(found.values())


def advice_rows(look: Look) -> tuple[Mapping[str, Any], ...]:
    """Return what would become of skills that were not handed over, where that is anything but staying."""
    moving = [verdict for verdict in look.verdicts.values() if verdict.would_be not in (None, verdict.state)]
    return tuple(
        {"library": verdict.key.library, "skill": verdict.key.rel, "would": verdict.would_be}
        for verdict in sorted(moving, key=place_of)
    )


def place_of(verdict: Verdict) -> tuple[str, str]:
    """Return what verdicts are listed by."""
    return verdict.key.place


def problem_rows(look: Look) -> tuple[Mapping[str, Any], ...]:
    """Return what is wrong with skills, the first of it."""
    rows = [
        {"library": key.library, "skill": key.rel, "problem": words}
        for key, problems in look.problems().items()
        for words in problems
    ]
    return tuple(rows[:MAX_PROBLEMS])


def cost_json(costs: Sequence[LibraryCost]) -> dict[str, Any]:
    """Return what the libraries cost in every call as `run.json` has it."""
    known = [cost.tokens_per_year for cost in costs if cost.tokens_per_year is not None]
    rates = [cost.calls_per_day for cost in costs if cost.calls_per_day is not None]
    tokens = sum(cost.description_tokens for cost in costs)
    return {
        "description_tokens": tokens,
        "per_call": tokens,
        "calls_per_day": round(sum(rates), 1) if rates else None,
        "tokens_per_year": sum(known) if known else None,
        "libraries": [cost.as_json() for cost in costs],
    }

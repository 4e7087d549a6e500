"""Runs that a kill left behind: their records, which still say `running`, are made to tell the truth."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from curatord.core.cheap import replace
from curatord.core.inert import in_markdown
from curatord.core.small_facts import KILLED
from curatord.core.values import Outcome, RunId
from curatord.core.words import iso, plural
from curatord.passes.run_parts import Folders
from curatord.passes.run_rows import absorbed, written_row
from curatord.ports.curation_store import CurationStore

__all__ = ["finish_interrupted"]

RECENT = 5  # newest folders that are looked at for a killed run
_WRITES = ("create", "patch", "write_file")


def finish_interrupted(store: CurationStore, folders: Folders, now: datetime) -> tuple[RunId, ...]:
    """
    Tell the truth about runs that a kill left behind, and return their ids; only for who holds the runs' lock.

    What they had done by then is in the journal and was finished or dropped by the applier's recovery.
    """
    found = set(store.interrupt_runs(now))
    # One that was killed is among the newest by name or by order of storing; older ones were looked at before.
    for run_id in {*folders.ids()[-RECENT:], *found}:
        # A folder whose first write was cut has no run.json, and so claims nothing.
        outcome = folders.outcome(run_id)
        if outcome in (None, Outcome.RUNNING.value):
            folders.tidy(run_id)
        if outcome == Outcome.RUNNING.value:
            found.add(run_id)
            _rewrite(store, folders, run_id, folders.read(run_id), now)
    return tuple(sorted(found))


def _rewrite(store: CurationStore, folders: Folders, run_id: RunId, run: dict[str, Any], now: datetime) -> None:
    done = [row.entry for row in reversed(store.actions(run_id=run_id)) if row.entry.undoes is None]
    summary = f"{KILLED}; {plural(len(done), 'action')} had been done by then, each of them whole"
    run["outcome"] = Outcome.INTERRUPTED.value
    run["finished_at"] = iso(now)
    run["warnings"] = [*run.get("warnings", ()), summary]
    run["summary"] = summary
    # What it did is known from the journal, whatever it had written of itself by then.
    run["transitions"] = [
        {
            "library": line.key.library,
            "skill": line.key.rel,
            "from": line.from_state.value if line.from_state is not None else None,
            "to": line.to_state.value,
            "idle_days": None,
            "reason": line.reason,
            "action": entry.action_id,
        }
        for entry in done
        for line in entry.history
        if line.key not in absorbed(entry) and entry.kind != "create"
    ]
    run["consolidated"] = [
        {
            "library": item.key.library,
            "name": item.key.name,
            "into": item.absorbed_into,
            "how": None,  # the journal knows where the whole went, not how the text was placed
            "reason": item.reason,
            "evidence": {"action": entry.action_id, "archive": item.path},
            "action": entry.action_id,
        }
        for entry in done
        for item in absorbed(entry).values()
    ]
    written = [(entry, key) for entry in done for key in entry.targets if entry.kind in _WRITES]
    run["added"] = [written_row(entry, key) for entry, key in written if entry.kind == "create"]
    run["patched"] = [written_row(entry, key) for entry, key in written if entry.kind != "create"]
    run["pending"] = [proposal.id for proposal in store.proposals(None) if proposal.run_id == run_id]
    lines = [f"# curatord run {run_id}", "", f"**{summary}**"]
    lines += ["", *(f"- {in_markdown(entry.summary)}" for entry in done)] if done else []
    lines += ["", f"`curatord undo {run_id}` takes back what it did."] if done else []
    folders.write(run_id, run, "\n".join(lines) + "\n")
    row = store.run(run_id)
    if row is not None:
        store.put_run(replace(row, outcome=Outcome.INTERRUPTED, finished_at=now, summary=summary))

"""Commands that only look: what is known of skills, sessions, events and runs, as the contract's JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from curatord.core.cheap import replace
from curatord.core.curation import RunRow
from curatord.core.explain import StateChange, explain_json, explain_text
from curatord.core.idle import Idle
from curatord.core.library import Skill
from curatord.core.selection import select
from curatord.core.skill_choice import choose_run, choose_skill
from curatord.core.values import Outcome, SkillKey, State
from curatord.core.words import days, iso

if TYPE_CHECKING:
    from curatord.passes.look import Look
    from curatord.wiring import Parts

__all__ = ["event_rows", "explain", "report", "run_rows", "session_rows", "show", "skill_rows"]


def skill_rows(parts: Parts, *, problems: bool, library: str | None) -> list[dict[str, Any]]:
    """Return the contract's list of `skills`; *problems*: only those that have some."""
    look = parts.look()
    waits, troubles = _waiting(parts, look), look.problems()
    keys = [key for key in sorted(look.facts) if library in (None, key.library)]
    rows = [
        _skill_row(look, key, waits, troubles.get(key, ()))
        for key in keys
        if look.facts[key].record.missing_since is None
    ]
    rows += [row for row in _further_archived(parts, look) if library in (None, row["library"])]
    return [row for row in rows if row["problems"]] if problems else rows


def show(parts: Parts, said: str) -> dict[str, Any]:
    """Return one skill's entry of `skills` with its provenance, history and newest events."""
    look = parts.look()
    key = choose_skill(said, look.facts)
    testimony = parts.testimony({name: library.snapshot for name, library in look.libraries.items()})
    created = testimony.created_by(key)
    row = _skill_row(look, key, _waiting(parts, look), look.problems().get(key, ()))
    row["provenance"] = (
        None
        if created is None
        else {
            "host": created.host,
            "session_id": created.session_id,
            "at": iso(created.at),
            "via": created.via,
            "path": created.path,
        }
    )
    row["referenced"] = look.facts[key].referenced
    row["edited"] = look.facts[key].edited
    row["archive_path"] = look.facts[key].record.archive_path
    row["absorbed_into"] = look.facts[key].record.absorbed_into
    row["history"] = _history(parts, key)
    return row


def explain(parts: Parts, said: str) -> dict[str, Any]:
    """Return the contract's `explain`, with the same in words under `text`."""
    look = parts.look()
    key = choose_skill(said, look.facts)
    facts, verdict = look.facts[key], look.verdicts[key]
    if (why := _waiting(parts, look).get(key)) is not None:
        coming = replace(verdict.next, at=None, at_if_away=None, due=False, condition=why)
        verdict = replace(verdict, coming=lambda: coming)
    history = [
        StateChange(at=row.at, from_state=row.from_state, to_state=row.to_state, reason=row.reason, run_id=row.run_id)
        for row in parts.store.history(key)
    ]
    value = explain_json(facts, verdict, history)
    value["text"] = explain_text(facts, verdict, history, parts.config.mode)
    return value


def session_rows(parts: Parts, *, host: str | None, since: datetime | None) -> list[dict[str, Any]]:
    """Return the contract's list of `sessions`."""
    from curatord.application.distilling import distil_states

    now, quiet = parts.clock.now(), parts.config.gates.session_quiet
    distil = distil_states(parts)
    rows = []
    for session in parts.ingest_reader.sessions(host=host, since=since):
        row = session.as_json(now=now, quiet=quiet)
        row["kind"] = session.kind
        row["distil"] = distil.get((session.host, session.session_id)) or {
            "state": "waiting",
            "reason": "",
            "at": None,
            "through": None,
        }
        rows.append(row)
    return rows


def event_rows(parts: Parts, *, skill: str | None, host: str | None, since: datetime | None) -> list[dict[str, Any]]:
    """Return the contract's list of `events`, oldest first; *skill* is a name, or `library/name`."""
    snapshots = {library.read().library: library.read() for _, library in parts.libraries}
    resolver = parts.resolver(snapshots)
    library: str | None = None
    if skill is not None and "/" in skill:
        first, _, rest = skill.partition("/")
        if any(settings.name == first for settings, _ in parts.libraries):
            library, skill = first, rest.rpartition("/")[2]
    events = parts.ingest_reader.events(resolve=resolver, skill=skill, since=since, host=host, library=library)
    return [
        {
            "host": event.host,
            "session_id": event.session_id,
            "at": iso(event.at),
            "library": event.library,
            "skill": event.skill,
            "kind": event.kind.value,
            "via": event.via,
            "path": event.path,
        }
        for event in events
    ]


def run_rows(parts: Parts) -> list[dict[str, Any]]:
    """Return the contract's list of `runs`, newest first."""
    live = run_is_live(parts)
    return [_run_row(row, live=live) for row in parts.store.runs()]


def report(parts: Parts, said: str) -> dict[str, Any]:
    """Return `{run_id, path, text, run}` of a run."""
    newest = parts.store.runs(limit=1) if said == "last" else ()
    run_id = choose_run(newest[0].run_id if newest else said, parts.folders.ids())
    return {
        "run_id": run_id,
        "path": str(parts.folders.report_path(run_id)),
        "text": parts.folders.read_report(run_id),
        "run": parts.folders.read(run_id),
    }


def run_is_live(parts: Parts) -> bool:
    """Return whether a run is at work now; one that says so while nobody holds the lock was killed."""
    from curatord.adapters.lock import is_run_at_work

    return is_run_at_work(parts.state_dir)


def _run_row(row: RunRow, *, live: bool) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "trigger": row.trigger.value,
        "dry_run": row.dry_run,
        "outcome": row.outcome.value if live or row.outcome is not Outcome.RUNNING else Outcome.INTERRUPTED.value,
        "started_at": iso(row.started_at),
        "duration_s": row.duration_s,
        "summary": row.summary,
    }


def _waiting(parts: Parts, look: Look) -> dict[SkillKey, str]:
    """Return which skills' due change a run would not simply carry out, with what it waits for in words."""
    config = parts.config
    selection = select(look.verdicts.values(), config.lifecycle.max_archive, config.mode)
    waits = {verdict.key: f"the next run asks you, since {why}" for verdict, why in selection.propose}
    for held in selection.held:
        waits.update((verdict.key, f"the next run asks you: {held.reason}") for verdict in held.due)
    for proposal in parts.store.proposals("pending"):
        for key in proposal.targets:
            if key in waits:
                waits[key] = f"it waits for your yes: `curatord diff {proposal.id}`, then approve or reject it"
    return waits


def _skill_row(look: Look, key: SkillKey, waits: Mapping[SkillKey, str], problems: Sequence[str]) -> dict[str, Any]:
    facts, verdict, skill = look.facts[key], look.verdicts[key], look.live.get(key)
    record, usage, idle = facts.record, facts.usage, verdict.idle
    return {
        "library": key.library,
        "name": key.name,
        "path": key.rel,
        "state": record.state.value,
        "managed": facts.managed,
        "why": facts.why if skill is not None or record.state is not State.ARCHIVED else "it is in the archive",
        "pinned": record.pinned or facts.host_pinned,
        "importance": record.importance.value,
        "created_at": iso(record.born_at),
        "first_seen_at": iso(record.first_seen_at),
        "last_activity_at": iso(usage.last_at),
        "use": usage.use,
        "view": usage.view,
        "patch": usage.patch,
        "sessions": usage.sessions,
        "hosts": list(usage.hosts),
        "idle_days": days(idle.idle) if isinstance(idle, Idle) else None,
        "observed_since": iso(idle.observed_since),
        "stopped_days": days(idle.stopped) if isinstance(idle, Idle) else None,
        "next": {
            "state": verdict.next.state.value if verdict.next.state is not None else None,
            "at": iso(verdict.next.at) if key not in waits else None,
            "condition": waits.get(key, verdict.next.condition),
        },
        "would": verdict.would_be,
        "archived_as": _archived_as(look, key),
        **_content(skill),
        "problems": list(problems),
    }


def _archived_as(look: Look, key: SkillKey) -> str | None:
    """Return what `restore` takes for this archived package and no other; None for one that is live."""
    record, library = look.facts[key].record, look.libraries.get(key.library)
    if record.state is not State.ARCHIVED or record.archive_path is None or library is None:
        return None
    entry = _below(record.archive_path, library.snapshot.archive)
    return None if entry is None else f"{key.library}/{entry}/"


def _below(path: str, folder: str | None) -> str | None:
    return path[len(folder) + 1 :] if folder and path.startswith(f"{folder}/") else None


def _further_archived(parts: Parts, look: Look) -> list[dict[str, Any]]:
    """
    Return rows of archived packages that no row of a skill speaks of: older ones of a name that was archived again, or
    whose name a live skill has now. There is little to say of them but where they are.
    """
    spoken_of = {facts.record.archive_path for facts in look.facts.values() if facts.record.state is State.ARCHIVED}
    rows = []
    for name, library in sorted(look.libraries.items()):
        items = {str(item.path): item for item in parts.store.archive(name)}
        for package in sorted(library.snapshot.archived, key=lambda package: package.path):
            entry = _below(package.path, library.snapshot.archive)
            if package.path in spoken_of or entry is None:
                continue
            item = items.get(entry)
            at = item.at if item is not None else package.archived_at
            rows.append(
                {
                    "library": name,
                    "name": package.name,
                    "path": item.key.rel if item is not None else package.name,
                    "state": State.ARCHIVED.value,
                    "managed": False,
                    "why": "it is in the archive",
                    "pinned": False,
                    "importance": "normal",
                    "created_at": iso(at),
                    "first_seen_at": iso(at),
                    "last_activity_at": None,
                    **dict.fromkeys(("use", "view", "patch", "sessions"), 0),
                    "hosts": [],
                    **dict.fromkeys(("idle_days", "observed_since", "stopped_days")),
                    "next": {"state": None, "at": None, "condition": None},
                    "would": State.ARCHIVED.value,
                    "archived_as": f"{name}/{entry}/",
                    **_content(None),
                    "problems": [],
                }
            )
    return rows


def _content(skill: Skill | None) -> Mapping[str, Any]:
    if skill is None:
        return {
            "description": None,
            "description_tokens": 0,
            "body_tokens": 0,
            "files": 0,
            "bytes": 0,
            "fingerprint": None,
        }
    content = skill.content
    return {
        "description": content.description,
        "description_tokens": content.description_tokens,
        "body_tokens": content.body_tokens,
        "files": content.files,
        "bytes": content.bytes,
        "fingerprint": content.fingerprint,
    }


def _history(parts: Parts, key: SkillKey) -> list[dict[str, Any]]:
    return [
        {
            "at": iso(row.at),
            "from": row.from_state.value if row.from_state is not None else None,
            "to": row.to_state.value,
            "reason": row.reason,
            "run_id": row.run_id,
        }
        for row in parts.store.history(key)
    ]

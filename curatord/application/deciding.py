"""Commands by which a person decides: proposals, undo, and what is said of single skills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from curatord.application.waiting import waiting_proposals
from curatord.application.working import recover
from curatord.core.curation import WITHDRAWN, Proposal
from curatord.core.plan import (
    Action,
    Adopt,
    Applied,
    Archive,
    Disown,
    Failed,
    Pin,
    SetImportance,
    Skipped,
    Unpin,
    targets,
)
from curatord.core.plan import Outcome as ActionOutcome
from curatord.core.skill_choice import choose_skill
from curatord.core.small_facts import PAUSED_SINCE
from curatord.core.values import Importance, SkillKey, State
from curatord.core.words import iso
from curatord.errors import BusyError, CuratorError, StateError, UsageError

if TYPE_CHECKING:
    from curatord.passes.look import Look
    from curatord.wiring import Parts

__all__ = [
    "adopt",
    "approve",
    "archive",
    "diff",
    "disown",
    "importance",
    "pause",
    "pending",
    "pin",
    "reject",
    "restore",
    "resume",
    "undo",
    "unpin",
]

Changes = dict[str, Any]
Item = TypeVar("Item")

_STOPPED = "it was stopped before this"

_VERBS = {
    "archive": "archived",
    "bring_back": "restored from a backup",
    "restore": "restored",
    "pin": "pinned",
    "unpin": "unpinned",
    "importance": "its importance was set",
    "adopt": "adopted",
    "disown": "taken back",
    "mark_stale": "marked stale",
    "reactivate": "reactivated",
}


def pending(parts: Parts) -> list[dict[str, Any]]:
    """Return the contract's list of `pending`, oldest first, without what nobody can say yes to any more."""
    return [_proposal_row(proposal) for proposal in waiting_proposals(parts)]


def diff(parts: Parts, said: str) -> dict[str, Any]:
    """Return one entry of `pending` with its diff."""
    proposal = _chosen(parts, said)
    decided = {"status": proposal.status, "decided_reason": proposal.decided_reason}
    return {**_proposal_row(proposal), **decided, "diff": proposal.diff}


def approve(parts: Parts, said: Sequence[str] | None) -> Changes:
    """Apply proposals (None: all that wait) through the same gate as everything else."""
    applier, now, stop = parts.applier, parts.clock.now(), parts.surroundings.stop
    chosen = waiting_proposals(parts) if said is None else _all_chosen(parts, said)
    changes = _no_changes()
    refused: list[str] = []

    def approve_one(proposal: Proposal) -> None:
        outcomes = applier.approve(proposal, now=now, stop=stop)
        _add_outcomes(changes, outcomes)
        codes = {outcome.code for outcome in outcomes if isinstance(outcome, Skipped)}
        if codes & {"gone", "taken"} and all(isinstance(outcome, Skipped) for outcome in outcomes):
            reason = "; ".join(outcome.reason for outcome in outcomes if isinstance(outcome, Skipped))
            parts.store.decide(proposal.id, "superseded", now=now, reason=WITHDRAWN + reason)
        elif "edited" in codes:
            refused.append(proposal.id)
        _add_left(changes, [action for action in proposal.actions[len(outcomes) :] if stop()])
        if (
            outcomes
            and all(isinstance(outcome, Applied) for outcome in outcomes)
            and len(outcomes) == len(proposal.actions)
        ):
            parts.store.decide(proposal.id, "approved", now=now)
        elif any(isinstance(outcome, Applied) for outcome in outcomes):
            # A part of it is done: asking for the whole again would be asking for something else.
            parts.store.decide(proposal.id, "approved", now=now, reason="in part; see what was skipped")

    _each(changes, chosen, approve_one, shown=lambda proposal: proposal.summary, stop=stop)
    if not chosen:
        changes["hint"] = "nothing waits for a decision"
    elif refused:
        one = refused[0] if len(refused) == 1 else "ID"
        changes["hint"] = (
            f"{', '.join(refused[:5])}: decided on a text that is another one now, and that edit wins. `curatord diff "
            f"{one}` shows the change, to be made by hand where you want it; `curatord reject {one}` then takes it off "
            "the list"
        )
    return changes


def reject(parts: Parts, said: Sequence[str], *, reason: str | None) -> Changes:
    """Refuse proposals; they are not asked again until their content changes."""
    applier, now = parts.applier, parts.clock.now()
    changes = _no_changes()

    def reject_one(proposal: Proposal) -> None:
        # A no to many at once is a no to each, so that the next run does not ask for them one by one.
        applier.reject(proposal, now=now, reason=reason or "", also=_single_ids(parts, proposal))
        changes["done"].append({"skill": proposal.summary, "what": "rejected", "action": None})

    shown: Callable[[Proposal], str] = lambda proposal: proposal.summary  # noqa: E731 - said twice else
    _each(changes, _all_chosen(parts, said), reject_one, shown=shown, stop=parts.surroundings.stop)
    return changes


def undo(parts: Parts, said: str) -> Changes:
    """Take back a run, a proposal or one action, newest first."""
    from curatord.passes.undo import undo as take_back

    recover(parts)
    changes = _no_changes()
    if said == "last" and parts.store.last_run_to_undo() is None:
        changes["hint"] = "no run has anything to undo"
        return changes
    outcomes = take_back(parts.applier, said, now=parts.clock.now())
    for outcome in outcomes:
        if isinstance(outcome, Applied):
            changes["done"].append(
                {
                    "skill": ", ".join(str(key) for key in outcome.entry.targets[:5]),
                    "what": outcome.entry.summary,
                    "action": outcome.entry.action_id,
                }
            )
        else:
            _add_outcomes(changes, [outcome])
    return changes


def pause(parts: Parts) -> Changes:
    """Hold automatic runs until `resume`."""
    parts.database  # noqa: B018 - opened for writing before the store is asked
    return _switch(parts, to_paused=True)


def resume(parts: Parts) -> Changes:
    """Let automatic runs begin again."""
    parts.database  # noqa: B018 - opened for writing before the store is asked
    return _switch(parts, to_paused=False)


def pin(parts: Parts, said: Sequence[str]) -> Changes:
    """Pin skills: nothing of them changes any more, not their state and not a byte."""

    def order(look: Look, key: SkillKey) -> Action | str:
        if look.facts[key].record.pinned:
            return "it is pinned already"
        return Pin(key=key, reason="pinned by its user", by="user")

    changes = _order(parts, said, order)
    unmanaged = [row["skill"] for row in changes["done"] if not _is_managed(parts, row["skill"])]
    if unmanaged:
        changes["hint"] = (
            f"{', '.join(unmanaged[:3])} is not managed, so nothing would have changed it anyway; the pin is kept and "
            f"holds once you adopt it"
        )
    return changes


def unpin(parts: Parts, said: Sequence[str]) -> Changes:
    """Unpin skills."""

    def order(look: Look, key: SkillKey) -> Action | str:
        facts = look.facts[key]
        if not facts.record.pinned and not facts.host_pinned:
            return "it is not pinned"
        return Unpin(key=key, reason="unpinned by its user", by="user")

    return _order(parts, said, order)


def importance(parts: Parts, said: str, level: str) -> Changes:
    """Say what a skill is worth."""
    wanted = Importance(level)

    def order(look: Look, key: SkillKey) -> Action | str:
        if look.facts[key].record.importance is wanted:
            return f"its importance is {wanted} already"
        return SetImportance(key=key, reason=f"its user said {wanted}", by="user", importance=wanted)

    return _order(parts, [said], order)


def adopt(parts: Parts, said: Sequence[str], *, everything: bool, agent_made: bool, dry_run: bool) -> Changes:
    """Hand skills over, as they are now; the idle clock is left alone."""
    look = _look_and_remember(parts)
    if everything or agent_made:
        keys = [key for key in sorted(look.live) if _could_adopt(look, key)]
        if agent_made:
            testimony = parts.testimony({name: library.snapshot for name, library in look.libraries.items()})
            keys = [key for key in keys if testimony.created_by(key) is not None]
    else:
        keys = [choose_skill(one, look.facts) for one in said]
    changes = _no_changes()
    actions: list[Action] = []
    for key in keys:
        facts, skill = look.facts[key], look.live.get(key)
        if facts.managed and facts.edited is None and facts.record.owner in ("adopted", "curatord"):
            changes["unchanged"].append({"skill": str(key), "reason": "it is adopted already"})
        elif skill is None:
            changes["skipped"].append({"skill": str(key), "reason": "it is not in the library"})
        elif dry_run:
            row = {"skill": str(key), "what": "would be adopted", "action": None}
            if facts.protected is not None or facts.broken is not None:
                changes["skipped"].append({"skill": str(key), "reason": facts.broken or facts.protected})
            else:
                changes["done"].append(row)
        else:
            actions.append(Adopt(key=key, reason="adopted by its user", by="user", expected=skill.fingerprint))
    _apply_all(parts, changes, actions)
    if not keys and agent_made and not parts.ingest_reader.sessions():
        changes["hint"] = "no session was read yet, so nobody was seen to make a skill: curatord scan"
    elif not keys:
        changes["hint"] = "there is no skill that could be adopted"
    return changes


def disown(parts: Parts, said: Sequence[str]) -> Changes:
    """Take skills back: they are yours again and are not changed any more."""

    def order(look: Look, key: SkillKey) -> Action | str:
        facts = look.facts[key]
        if not facts.managed and facts.record.owner in (None, "disowned"):
            return "it is not managed"
        return Disown(key=key, reason="taken back by its user", by="user")

    return _order(parts, said, order)


def archive(parts: Parts, said: Sequence[str]) -> Changes:
    """Archive skills now, whole; `restore` or `undo` brings them back."""

    def order(look: Look, key: SkillKey) -> Action | str:
        facts, skill = look.facts[key], look.live.get(key)
        if facts.record.state is State.ARCHIVED:
            return "it is archived already"
        fingerprint = skill.fingerprint if skill is not None else None
        return Archive(key=key, reason="archived by its user", by="user", expected=fingerprint)

    changes = _order(parts, said, order)
    if any("not managed" in row["reason"] or "handed" in row["reason"] for row in changes["skipped"]):
        changes["hint"] = "curatord adopt SKILL hands it over first"
    elif any("pinned" in row["reason"] for row in changes["skipped"]):
        changes["hint"] = "curatord unpin SKILL lets it go"
    return changes


def restore(parts: Parts, said: Sequence[str], *, anyway: bool) -> Changes:
    """Bring archived skills back to where they stood; their idle clock starts again."""
    from curatord.passes.undo import choose_archived
    from curatord.passes.undo import restore as bring_back

    look = _look_and_remember(parts)
    changes = _no_changes()
    labels: list[str] = []  # all are found before the first is brought back
    for one in said:
        try:
            labels.append(choose_archived(parts.applier, one).label)
        except UsageError:
            live = [key for key in look.live if one in (str(key), key.rel, key.name)]
            if not live:
                raise
            changes["unchanged"].append({"skill": str(live[0]), "reason": "it is in the library"})

    def restore_one(label: str) -> None:
        _add_outcomes(changes, [bring_back(parts.applier, label, now=parts.clock.now(), anyway=anyway)])

    _each(changes, list(dict.fromkeys(labels)), restore_one, shown=lambda label: label, stop=parts.surroundings.stop)
    return changes


# -- what they share


def _look_and_remember(parts: Parts) -> Look:
    """Look at everything, with what is there in the store, so that an action finds its record."""
    recover(parts)
    return parts.look(remember=True)


def _order(parts: Parts, said: Sequence[str], order: Any) -> Changes:
    """Apply to each skill that was *said* the action that *order* gives for it, or say why there is nothing to do."""
    look = _look_and_remember(parts)
    keys = [choose_skill(one, look.facts) for one in said]  # all are found before the first is changed
    changes = _no_changes()
    actions: list[Action] = []
    for key in dict.fromkeys(keys):
        given = order(look, key)
        if isinstance(given, str):
            changes["unchanged"].append({"skill": str(key), "reason": given})
        else:
            actions.append(given)
    _apply_all(parts, changes, actions)
    return changes


def _apply_all(parts: Parts, changes: Changes, actions: Sequence[Action]) -> None:
    outcomes = parts.applier.apply_all(actions, now=parts.clock.now(), stop=parts.surroundings.stop)
    _add_outcomes(changes, outcomes)
    _add_left(changes, actions[len(outcomes) :])


def _add_left(changes: Changes, actions: Iterable[Action]) -> None:
    """Name what a stop left undone, so that nobody takes it for done."""
    for action in actions:
        skill = ", ".join(str(key) for key in targets(action)[:5])
        changes["skipped"].append({"skill": skill, "reason": _STOPPED, "code": "stopped"})


def _each(
    changes: Changes,
    items: Sequence[Item],
    do: Callable[[Item], None],
    *,
    shown: Callable[[Item], str],
    stop: Callable[[], bool],
) -> None:
    """
    Do every item, and lose nothing of what was done: an error of one becomes its row, the others go on.

    Raises:
        CuratorError: The first, where nothing at all came of the command.
    """
    errors: list[tuple[Item, CuratorError]] = []
    for place, item in enumerate(items):
        if stop():
            changes["skipped"] += [{"skill": shown(i), "reason": _STOPPED, "code": "stopped"} for i in items[place:]]
            break
        try:
            do(item)
        except CuratorError as error:
            errors.append((item, error))
            if isinstance(error, StateError):
                left = items[place + 1 :]
                reason = "not tried, since our own state cannot be used"
                changes["skipped"] += [{"skill": shown(i), "reason": reason, "code": "state"} for i in left]
                break
    if errors and not (changes["done"] or changes["unchanged"] or changes["failed"]):
        others = [row for row in changes["skipped"] if row.get("code") not in ("stopped", "state")]
        if not others:
            raise errors[0][1]
    for item, met in errors:
        if isinstance(met, StateError):
            changes["failed"].append({"skill": shown(item), "error": str(met)})
        else:
            code = "busy" if isinstance(met, BusyError) else "usage"
            changes["skipped"].append({"skill": shown(item), "reason": str(met), "code": code})


def _switch(parts: Parts, *, to_paused: bool) -> Changes:
    changes = _no_changes()
    paused = parts.store.meta(PAUSED_SINCE)
    if (paused is not None) == to_paused:
        reason = f"paused since {paused}" if to_paused else "it is not paused"
        changes["unchanged"].append({"skill": "curatord", "reason": reason})
        return changes
    since = parts.clock.now().isoformat() if to_paused else None
    with parts.applier.mutator.hold(None):
        # Cut between the two, the pause holds in either direction (`passes.agreement`).
        if to_paused:
            parts.decisions.pause(since)
        parts.store.set_meta(PAUSED_SINCE, since)
        if not to_paused:
            parts.decisions.pause(None)
    what = "paused: nothing begins by itself until `curatord resume`" if to_paused else "resumed"
    changes["done"].append({"skill": "curatord", "what": what, "action": None})
    return changes


def _no_changes() -> Changes:
    return {"done": [], "unchanged": [], "skipped": [], "failed": []}


def _add_outcomes(changes: Changes, outcomes: Iterable[ActionOutcome]) -> None:
    for outcome in outcomes:
        match outcome:
            case Applied():
                keys = outcome.entry.targets
                row = {
                    "skill": ", ".join(str(key) for key in keys[:5]),
                    "what": _VERBS.get(outcome.entry.kind, outcome.entry.summary),
                    "action": outcome.entry.action_id,
                }
                changes["done"].append(row)
            case Skipped():
                keys = outcome.keys or (targets(outcome.action) if outcome.action is not None else ())
                skill = ", ".join(str(key) for key in keys[:5])
                row = {"skill": skill, "reason": outcome.reason.removeprefix(f"{skill}: "), "code": outcome.code}
                # Somebody else asked for the same a moment ago: it is so now, which is all that was wanted.
                changes["unchanged" if outcome.code == "nothing" else "skipped"].append(row)
            case Failed():
                keys = targets(outcome.action) if outcome.action is not None else ()
                changes["failed"].append({"skill": ", ".join(str(key) for key in keys[:5]), "error": outcome.error})


def _chosen(parts: Parts, said: str) -> Proposal:
    proposal = parts.store.proposal(said)
    if proposal is None:
        raise UsageError(f"there is no proposal {said!r}", hint="curatord pending lists those that wait")
    return proposal


def _all_chosen(parts: Parts, said: Sequence[str]) -> list[Proposal]:
    """Return the proposals that are meant, each once; an id that is none stops the command before anything is done."""
    chosen = {proposal.id: proposal for proposal in [_chosen(parts, one) for one in said]}
    return list(chosen.values())


def _proposal_row(proposal: Proposal) -> dict[str, Any]:
    return {
        "id": proposal.id,
        "kind": proposal.kind,
        "library": proposal.library,
        "targets": [str(key) for key in proposal.targets],
        "summary": proposal.summary,
        "reason": proposal.reason,
        "created_at": iso(proposal.created_at),
        "run_id": proposal.run_id,
        "diff_lines": len(proposal.diff.splitlines()),
    }


def _single_ids(parts: Parts, proposal: Proposal) -> list[str]:
    from curatord.core.curation import content_of
    from curatord.core.proposal_id import proposal_id
    from curatord.passes.proposals import KIND_ARCHIVE

    return [
        proposal_id(action.key.library, KIND_ARCHIVE, [action.key], content_of([action]))
        for action in proposal.actions
        if isinstance(action, Archive)
    ]


def _could_adopt(look: Look, key: SkillKey) -> bool:
    facts = look.facts[key]
    return facts.protected is None and facts.broken is None and facts.record.owner != "disowned"


def _is_managed(parts: Parts, said: str) -> bool:
    keys = [key for key in parts.store.skills() if str(key) == said]
    return any(standing.managed for standing in parts.standings(keys).values())

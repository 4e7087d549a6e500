"""
The umbrella merge of a run: plan each library, then propose or apply, and say what is on disk afterwards.

Modes (contract, section 7): in `auto` a merge is applied, unless something asks for a person's yes: members that have
nothing measurable in common (bugs B008), a text that somebody edited by hand (promise 10). Elsewhere, and for those, it
becomes a proposal with a diff. Whatever was rejected is not proposed again while its content is the same.

An endpoint that cannot work ends the pass with nothing changed; a budget that ran out ends it with what was decided so
far (promise 9). After an apply the umbrella is read back from disk and every line, code block and file of each member
is looked for there; what is reported as consolidated was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from json import loads
from typing import Any

import msgspec

from curatord.core.cheap import dataclass, field
from curatord.core.cluster import RELATED
from curatord.core.curation import Proposal
from curatord.core.inert import one_line
from curatord.core.journal import EditItem, JournalEntry
from curatord.core.lifecycle import SkillFacts
from curatord.core.model import EndpointError
from curatord.core.plan import (
    Applied,
    Archive,
    Failed,
    Patch,
    Skipped,
    actions_to_json,
    targets,
)
from curatord.core.proposal_id import proposal_id
from curatord.core.run_record import FailedRow, PendingRow, ReferenceRow, SkippedRow
from curatord.core.settings import UmbrellaSettings
from curatord.core.umbrella.build import KIND_MERGE, Built, Fallen, changes
from curatord.core.umbrella.candidates import offered
from curatord.core.umbrella.coverage import Coverage, coverage
from curatord.core.umbrella.decision import Decision, Pruned
from curatord.core.umbrella.diff import merge_diff
from curatord.core.umbrella.links import Edit
from curatord.core.umbrella.naming import Screen, screened
from curatord.core.values import Mode, RunId, SkillKey
from curatord.core.words import plural
from curatord.errors import BudgetExhaustedError, InputError, StoppedError
from curatord.passes.apply import Applier
from curatord.passes.consult import Consultation
from curatord.passes.umbrella_ask import Asker, StoppedHere
from curatord.passes.umbrella_case import LibraryCase, UmbrellaResult
from curatord.passes.umbrella_plan import Planner
from curatord.passes.umbrella_shelf import Shelf
from curatord.ports.answers import AnswerMemory
from curatord.ports.curation_store import CurationStore
from curatord.ports.packages import PackageReader
from curatord.ports.prompts import Prompts

__all__ = ["KIND_PRUNE", "KIND_PRUNES_HELD", "LibraryCase", "UmbrellaPass", "UmbrellaResult"]

KIND_PRUNE = "prune"
KIND_PRUNES_HELD = "prune-held"
KINDS = (KIND_MERGE, KIND_PRUNE, KIND_PRUNES_HELD)
ANSWERS_KEPT = timedelta(days=400)


@dataclass(frozen=True, slots=True, kw_only=True)
class UmbrellaPass:
    """
    The pass with all it needs.

    Attributes:
        settings, mode: The configuration's.
        packages: Reads packages whole.
        prompts: The words a model is asked with.
        memory: What was answered before.
        store: Proposals and rejections.
        consultation: This run's dealings with models; None where no model is configured.
        applier: The gate; None in a dry run, which then cannot change anything.
        stop: Asked before each call and each action.
        screen: Why a model's text may not be written into a skill, or None.
    """

    settings: UmbrellaSettings
    mode: Mode
    packages: PackageReader
    prompts: Prompts
    memory: AnswerMemory
    store: CurationStore
    consultation: Consultation | None
    applier: Applier | None
    stop: Callable[[], bool] = lambda: False
    screen: Screen = screened

    def run(self, cases: Sequence[LibraryCase], *, now: datetime, run_id: RunId | None) -> UmbrellaResult:
        """
        Merge what belongs together, library by library.

        Raises:
            ConfigError: A prompt file of the user cannot be used; nothing was asked or changed.
        """
        result = UmbrellaResult()
        why = self._why_not(cases)
        if why is not None:
            result.state, result.reason = "skipped", why
            return result
        plans: list[_Plan] = []
        for case in cases:
            if (reason := _not_this(case)) is not None:
                result.warnings.append(f"library {case.name}: nothing is merged there: {reason}")
                continue
            plan = self._plan(case, now, result)
            plans.append(plan)
            if result.state != "done":
                break
        if result.state == "failed":
            for plan in plans:
                plan.report(result)
            return result
        for plan in plans:
            if result.state != "stopped":
                self._carry_out(plan, result, now, run_id)
            plan.report(result)
        if self.applier is not None:
            self.memory.forget(before=now - ANSWERS_KEPT)
        return result

    def _why_not(self, cases: Sequence[LibraryCase]) -> str | None:
        if not self.settings.enabled:
            return "umbrella.enabled is false"
        if not cases:
            return "there is no library"
        if self.settings.planner == "llm" and self.consultation is None:
            return "no model is configured (`llm`); `umbrella.planner: lexical` works without one"
        return None

    # -- planning

    def _plan(self, case: LibraryCase, now: datetime, result: UmbrellaResult) -> _Plan:
        who = offered(case.snapshot, case.facts, case.clock, now, min_age=self.settings.min_age)
        base = Shelf(case=case, offered=who, packages=self.packages)
        planner = Planner(
            case=case,
            now=now,
            offered=who,
            base=base,
            asker=None,
            max_rounds=self.settings.max_rounds,
            bodies=self.settings.detail == "bodies",
            screen=self.screen,
        )
        plan = _Plan(planner=planner)
        try:
            if self.settings.planner == "llm" and len(who.skills) > 1:
                planner.asker = self._asker(case, now, result)
            planner.run()
        except EndpointError as error:
            result.state, result.reason = "failed", f"no model could be asked, so nothing was changed: {error}"
        except BudgetExhaustedError as error:
            result.state, result.reason = "budget", str(error)
        except (StoppedHere, StoppedError):
            result.state, result.reason = "stopped", "we were asked to stop"
        planner.finish()
        return plan

    def _asker(self, case: LibraryCase, now: datetime, result: UmbrellaResult) -> Asker:
        assert self.consultation is not None, "it was asked about before"
        survey, merge = self.prompts.read("survey"), self.prompts.read("merge")
        result.prompts |= {f"{prompt.name}.md": prompt.sha256 for prompt in (survey, merge)}
        return Asker(
            library=case.name,
            consultation=self.consultation,
            memory=self.memory,
            survey_prompt=survey,
            merge_prompt=merge,
            now=now,
            bodies=self.settings.detail == "bodies",
            stop=self.stop,
        )

    # -- carrying out

    def _carry_out(self, plan: _Plan, result: UmbrellaResult, now: datetime, run_id: RunId | None) -> None:
        planner = plan.planner
        rejected = self.store.rejections()
        apply_now: list[Decision] = []
        propose: list[tuple[Decision, list[str]]] = []
        for decision in planner.decisions:
            reasons = self._needs_yes(planner, decision)
            if self.mode is Mode.AUTO and not reasons:
                apply_now.append(decision)
            else:
                propose.append((decision, reasons))
        shelf = Shelf(case=planner.case, offered=planner.offered, packages=self.packages)
        for place, decision in enumerate(apply_now):
            if self.stop():
                result.state, result.reason = "stopped", "we were asked to stop"
                return
            later = {
                key
                for other in apply_now[place + 1 :]
                for key in (other.umbrella, *(member.key for member in other.members))
            }
            built = shelf.build(decision, later=later)
            if isinstance(built, Fallen):
                self._fallen(built, result)
                self._follow(shelf, decision, result, now, run_id)
            elif built.proposal in rejected:
                result.skipped.append(_rejected(built))
                self._follow(shelf, decision, result, now, run_id)
            elif self._apply(planner, built, result, now, run_id):
                shelf.take(built)
                plan.coverages.append(built.coverage)
            else:
                self._follow(shelf, decision, result, now, run_id)
        for decision, reasons in propose:
            # A proposal stands for itself: it is built on what is on disk, whatever becomes of the others.
            alone = (
                Shelf(case=planner.case, offered=planner.offered, packages=self.packages) if not apply_now else shelf
            )
            built = alone.build(decision)
            if isinstance(built, Fallen):
                self._fallen(built, result)
            elif built.proposal in rejected:
                result.skipped.append(_rejected(built))
            else:
                plan.coverages.append(built.coverage)
                self._propose(_merge_proposal(planner, built, reasons, now, run_id), result)
        self._prunes(planner, rejected, result, now, run_id)
        self._withdraw(planner, result, now)

    def _needs_yes(self, planner: Planner, decision: Decision) -> list[str]:
        """Return why a person is asked about a merge even in `auto`."""
        reasons = []
        similar = planner.similar.get(decision.umbrella, {})
        apart = [f"{key.name} ({similar[key]:.2f})" for key in sorted(similar) if similar[key] < RELATED]
        if apart:
            reasons.append(
                f"hardly a word in common with the others: {', '.join(apart)}; {RELATED} is what unrelated skills reach"
            )
        facts: Mapping[SkillKey, SkillFacts] = planner.case.facts
        pointing = {
            whom for member in decision.members for whom in planner.offered.pointing.get(member.key, frozenset())
        }
        for key in sorted({decision.umbrella, *(member.key for member in decision.members), *pointing}):
            its = facts.get(key)
            if its is not None and its.edited is not None:
                reasons.append(f"{key}: {its.edited}")
        return reasons

    def _apply(
        self, planner: Planner, built: Built, result: UmbrellaResult, now: datetime, run_id: RunId | None
    ) -> bool:
        """Apply one merge and report what is on disk; return whether it was done."""
        result.actions.append(built.action)
        if self.applier is None:
            result.consolidated += _rows(planner, built, None, built.coverage)
            result.added += _added(built)
            return True
        (outcome,) = self.applier.apply_all([built.action], now=now, run_id=run_id) or (None,)
        if outcome is None:
            return False
        result.outcomes.append(outcome)
        match outcome:
            case Applied():
                self._applied(planner, built, outcome, result)
                return True
            case Skipped():
                result.skipped.append(SkippedRow(action=_words(built), reason=outcome.reason))
            case Failed():
                result.failed.append(FailedRow(action=_words(built), error=outcome.error))
        return False

    def _applied(self, planner: Planner, built: Built, outcome: Applied, result: UmbrellaResult) -> None:
        if outcome.note:
            result.warnings.append(outcome.note)
        umbrella = built.decision.umbrella
        root = planner.case.snapshot.root
        path = f"{root}/{built.folded.after.place('SKILL.md') if built.folded.after.flat else umbrella.rel}"
        found: Coverage | None
        try:
            there = self.packages.read_at(umbrella, path)
            found = coverage(built.before, there, (*built.folded.edits, *built.other_edits))
            problem = "" if found.whole else "; ".join(what for member in found.members for what in member.missing)
        except InputError as error:
            found, problem = None, str(error)
        if problem:
            result.failed.append(
                FailedRow(
                    action=_words(built),
                    error=f"applied, but not all of it is found on disk now ({one_line(problem)[:300]}); the originals "
                    f"are in the archive, `curatord undo {outcome.entry.action_id}` takes it back",
                )
            )
        result.consolidated += _rows(planner, built, outcome.entry, found)
        result.added += _added(built)
        result.references += _references(built.other_edits, root)
        result.references += _schedules(outcome.entry)

    def _follow(
        self, shelf: Shelf, decision: Decision, result: UmbrellaResult, now: datetime, run_id: RunId | None
    ) -> None:
        """
        Let the texts of a merge that was not done follow those that were: they were left for its own writing.
        """
        if self.applier is None or not shelf.homes:
            return
        for key in (decision.umbrella, *(member.key for member in decision.members)):
            try:
                before, after, edits = shelf.follow(key)
            except InputError:
                continue
            if not edits:
                continue
            patch = Patch(
                key=key,
                reason="what it points at was absorbed in this run",
                by="model",
                expected=before.fingerprint,
                files=changes(before, after),
            )
            result.actions.append(patch)
            (outcome,) = self.applier.apply_all([patch], now=now, run_id=run_id)
            result.outcomes.append(outcome)
            if isinstance(outcome, Applied):
                shelf.changed[key] = after
                result.references += _references(edits, shelf.case.snapshot.root)
            else:
                told = outcome.reason if isinstance(outcome, Skipped) else outcome.error
                result.warnings.append(f"{key} points at what was absorbed in this run and could not follow: {told}")

    def _fallen(self, fallen: Fallen, result: UmbrellaResult) -> None:
        result.skipped.append(
            SkippedRow(
                action=f"merge {plural(len(fallen.members), 'skill')} into {fallen.umbrella}",
                reason="; ".join(fallen.reasons[:5]),
            )
        )

    def _propose(self, proposal: Proposal, result: UmbrellaResult) -> None:
        result.actions += proposal.actions
        status = "new" if self.applier is None else self.store.propose(proposal)
        if status in ("new", "pending"):
            result.proposals.append(proposal)
            result.pending.append(PendingRow(id=proposal.id, summary=proposal.summary, reason=proposal.reason))
        else:
            result.skipped.append(SkippedRow(action=proposal.summary, reason=f"it was {status} before"))

    def _withdraw(self, planner: Planner, result: UmbrellaResult, now: datetime) -> None:
        """Take back this pass's older proposals whose skills it now wants otherwise, or not at all."""
        if self.applier is None or result.state != "done" or planner.doubtful:
            return
        wanted = {proposal.id for proposal in result.proposals}
        for waiting in self.store.proposals("pending"):
            if waiting.library == planner.case.name and waiting.kind in KINDS and waiting.id not in wanted:
                self.store.decide(waiting.id, "superseded", now=now, reason="a later run came to another plan")

    # -- prunes

    def _prunes(
        self, planner: Planner, rejected: Mapping[str, Any], result: UmbrellaResult, now: datetime, run_id: RunId | None
    ) -> None:
        wanted: list[Archive] = []
        for pruned in planner.prunes.values():
            action = _prune(planner, pruned)
            if action.proposal in rejected:
                result.skipped.append(
                    SkippedRow(
                        action=f"prune {pruned.key}",
                        reason="you rejected that, and nothing changed since",
                        declined=True,
                    )
                )
            else:
                wanted.append(action)
        edited = {a.key for a in wanted if (f := planner.case.facts.get(a.key)) is not None and f.edited is not None}
        applied = [action for action in wanted if self.mode is Mode.AUTO and action.key not in edited]
        if len(applied) > planner.case.prune_room:
            result.held = True
            self._propose(_held(planner, applied, now, run_id), result)
            applied, wanted = [], [action for action in wanted if action.key in edited]
        for action in wanted:
            if action not in applied:
                self._propose(_prune_proposal(planner, action, now, run_id), result)
        for action in applied:
            result.actions.append(action)
            row = {"library": action.key.library, "name": action.key.name, "reason": action.reason}
            if self.applier is None:
                result.pruned.append(row)
                continue
            for outcome in self.applier.apply_all([action], now=now, run_id=run_id, stop=self.stop):
                result.outcomes.append(outcome)
                if isinstance(outcome, Applied):
                    result.pruned.append({**row, "action": outcome.entry.action_id})
                    result.references += _schedules(outcome.entry)
                elif isinstance(outcome, Skipped):
                    result.skipped.append(SkippedRow(action=f"prune {action.key}", reason=outcome.reason))
                else:
                    result.failed.append(FailedRow(action=f"prune {action.key}", error=outcome.error))


@dataclass(slots=True, kw_only=True)
class _Plan:
    """One library's plan, and the proofs of what was made of it."""

    planner: Planner
    coverages: list[Coverage] = field(default_factory=list)

    def report(self, result: UmbrellaResult) -> None:
        """Say what was looked at, and what stays and why."""
        planner, library = self.planner, self.planner.case.name
        result.left += [
            {"library": library, "name": key.rel, "reason": why} for key, why in sorted(planner.left.items())
        ]
        asker = planner.asker
        whole = Coverage(members=tuple(member for one in self.coverages for member in one.members))
        result.libraries.append(
            {
                "library": library,
                "offered": len(planner.offered.skills),
                "rounds": [one.as_dict() for one in planner.rounds],
                "asked": asker.asked if asker is not None else 0,
                "remembered": asker.remembered if asker is not None else 0,
                "umbrellas": len(planner.decisions),
                "members": sum(len(decision.members) for decision in planner.decisions),
                "coverage": whole.as_dict(),
            }
        )
        for one in planner.rounds:
            result.skipped += [SkippedRow(action=f"merge in {library}", reason=told) for told in one.violations]


# --- Rows -------------------------------------------------------------------------------------------------------------


def _not_this(case: LibraryCase) -> str | None:
    if case.snapshot.observe_only:
        return next(problem.words for problem in case.snapshot.problems if problem.severity != "note")
    return None if case.snapshot.complete else "not all of it could be listed"


def _words(built: Built) -> str:
    return f"merge {plural(len(built.before), 'skill')} into {built.decision.umbrella}"


def _rejected(built: Built) -> SkippedRow:
    return SkippedRow(action=_words(built), reason="you rejected that, and nothing changed since", declined=True)


def _rows(
    planner: Planner, built: Built, entry: JournalEntry | None, found: Coverage | None
) -> list[Mapping[str, Any]]:
    """Return the rows of `consolidated`, one a member."""
    similar = planner.similar.get(built.decision.umbrella, {})
    by_key = {member.key: member for member in found.members} if found is not None else {}
    archived = {change.after.key: change.after.path for change in entry.archive if change.after} if entry else {}
    rows: list[Mapping[str, Any]] = []
    for placed, member in zip(built.folded.placed, built.decision.members, strict=True):
        its = by_key.get(placed.key)
        rows.append(
            {
                "library": placed.key.library,
                "name": placed.key.name,
                "into": built.decision.umbrella.name,
                "how": placed.how,
                "reason": member.reason or built.decision.reason,
                "evidence": {
                    "path": f"{built.decision.umbrella.rel}/{placed.path}"
                    + (f"#{placed.anchor}" if placed.anchor else ""),
                    "files": placed.folder if _has_support(built, placed.key) else None,
                    "archived_as": archived.get(placed.key),
                    "lines": list(its.lines) if its is not None else None,
                    "code_blocks": list(its.blocks) if its is not None else None,
                    "support_files": list(its.files) if its is not None else None,
                    "similarity": round(similar[placed.key], 3) if placed.key in similar else None,
                    "note": placed.note or None,
                },
                "action": entry.action_id if entry is not None else None,
            }
        )
    return rows


def _has_support(built: Built, key: SkillKey) -> bool:
    """Return whether a member had files beside its text."""
    return any(package.support for package in built.before if package.key == key)


def _added(built: Built) -> list[Mapping[str, Any]]:
    if built.folded.before is not None:
        return []
    umbrella = built.decision.umbrella
    return [{"library": umbrella.library, "name": umbrella.name, "reason": built.action.reason, "kind": "umbrella"}]


def _references(edits: Sequence[Edit], root: str) -> list[ReferenceRow]:
    return [
        ReferenceRow(file=f"{root}/{edit.where}:{edit.line}", before=edit.before, after=edit.after) for edit in edits
    ]


def _schedules(entry: JournalEntry) -> list[ReferenceRow]:
    """Return the references in the host's schedules that followed."""
    rows = []
    for step in entry.steps:
        if isinstance(step, EditItem) and step.format == "jobs":
            for edit in step.edits:
                rows.append(
                    ReferenceRow(
                        file=f"{step.file} (job {step.item}, {edit.name})",
                        before=_plain(edit.before),
                        after=_plain(edit.after),
                    )
                )
    return rows


def _plain(text: str | None) -> str:
    if text is None:
        return ""
    value = loads(text)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _merge_proposal(
    planner: Planner, built: Built, reasons: Sequence[str], now: datetime, run_id: RunId | None
) -> Proposal:
    umbrella = built.decision.umbrella
    verb = "grow" if built.folded.before is not None else "make"
    similar = planner.similar.get(umbrella, {})
    least = f"; least likeness measured {min(similar.values()):.2f}" if similar else ""
    told = f" ({'; '.join(reasons)})" if reasons else ""
    return Proposal(
        id=built.proposal,
        kind=KIND_MERGE,
        library=umbrella.library,
        targets=targets(built.action),
        summary=f"{verb} {umbrella} of {plural(len(built.before), 'skill')}",
        reason=f"{built.action.reason}{least}{told}",
        created_at=now,
        actions=(built.action,),
        run_id=run_id,
        diff=merge_diff(built, archive=planner.case.snapshot.archive, needs_yes=reasons),
    )


def _prune(planner: Planner, pruned: Pruned) -> Archive:
    skill = planner.case.snapshot.by_key[pruned.key]
    action = Archive(key=pruned.key, reason=pruned.reason, by="model", expected=skill.fingerprint, drop_references=True)
    identity = proposal_id(pruned.key.library, KIND_PRUNE, [pruned.key], {"expected": str(skill.fingerprint)})
    return msgspec.structs.replace(action, proposal=identity)


def _prune_proposal(planner: Planner, action: Archive, now: datetime, run_id: RunId | None) -> Proposal:
    assert action.proposal is not None, "it was given one"
    archive = planner.case.snapshot.archive
    return Proposal(
        id=action.proposal,
        kind=KIND_PRUNE,
        library=action.key.library,
        targets=(action.key,),
        summary=f"archive {action.key}, which a model finds worth nothing",
        reason=action.reason,
        created_at=now,
        actions=(action,),
        run_id=run_id,
        diff=f"- {one_line(str(action.key))}\n+ {one_line(archive)}/{one_line(action.key.name)}\n"
        f"  {one_line(action.reason)}\n",
    )


def _held(planner: Planner, actions: Sequence[Archive], now: datetime, run_id: RunId | None) -> Proposal:
    keys = [action.key for action in actions]
    archive = planner.case.snapshot.archive
    return Proposal(
        id=proposal_id(planner.case.name, KIND_PRUNES_HELD, keys, actions_to_json(actions).decode()),
        kind=KIND_PRUNES_HELD,
        library=planner.case.name,
        targets=tuple(keys),
        summary=f"archive {plural(len(keys), 'skill')} of {planner.case.name} that a model finds worth nothing",
        reason=f"{len(keys)} are more than the {planner.case.prune_room} that lifecycle.max_archive leaves this run",
        created_at=now,
        actions=tuple(actions),
        run_id=run_id,
        diff="".join(
            f"- {one_line(str(a.key))}\n+ {one_line(archive)}/{one_line(a.key.name)}\n  {one_line(a.reason)}\n"
            for a in actions
        ),
    )

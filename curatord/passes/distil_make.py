"""
One change that a session taught, carried out: applied through the gate and looked for on disk, or proposed.

A proposal on a skill that another proposal of ours waits for would replace it (one target, one proposal), and the first
lesson would be lost. So the new one is decided once more on top of the waiting text, and holds both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from curatord.core.cheap import dataclass, replace
from curatord.core.curation import Proposal, content_of
from curatord.core.distil.decide import Change
from curatord.core.distil.view import LibraryView, SkillView
from curatord.core.plan import Applied, CreateSkill, Failed, FileChange, Patch, Skipped, WriteSupportFile
from curatord.core.proposal_id import proposal_id
from curatord.core.run_record import FailedRow, PendingRow
from curatord.core.values import RelPath, RunId, SkillKey
from curatord.errors import CuratorError
from curatord.passes.distil_answer import Begun
from curatord.passes.distil_diff import change_diff
from curatord.passes.distil_ends import passes_by_itself
from curatord.passes.distil_order import DistilOrder, DistilResult
from curatord.passes.distil_shelf import Shelf

if TYPE_CHECKING:
    from curatord.passes.apply import Applier
    from curatord.ports.curation_store import CurationStore

__all__ = ["KINDS", "Cause", "FailedChangeError", "LaterError", "Maker"]

KIND_PATCH = "patch"
KIND_FILE = "write_file"
KIND_CREATE = "create"
KINDS = (KIND_PATCH, KIND_FILE, KIND_CREATE)
SAYING = "💾 skill review: "

DistilAction = Patch | CreateSkill | WriteSupportFile
Op = Literal["patch", "create", "write_file"]


WAITS = "; it waits, since "
ONE_QUESTION = "another change of it waits already, and the two are one question now"
REASON_CHARS = 1_200  # of the reasons that one question holds together
QUOTES = 12


class LaterError(Exception):
    """It cannot be done now, through no fault of the session; it stays due, and its reply is kept."""


class FailedChangeError(CuratorError):
    """A change broke; what had been done of it was taken back, or waits in the journal for the next start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Where a change comes from: the session in words, what was said there, the records' own names of that."""

    session: str
    host: str
    session_id: str
    quotes: Sequence[str] = ()
    evidence: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """
    Carries changes out, and puts what came of them into *result*.

    Attributes:
        applier: The gate; None in a dry run.
        begun: Notes under which id a change is begun, before it is.
        stacked: Decides a change once more on top of a waiting text; None: the two cannot both be.
    """

    order: DistilOrder
    now: datetime
    run_id: Callable[[], RunId]
    store: CurationStore
    applier: Applier | None
    shelf: Shelf
    result: DistilResult
    say: Callable[[str], None]

    def make(
        self,
        view: LibraryView,
        change: Change,
        cause: Cause,
        *,
        begun: Callable[[Begun], None],
        stacked: Callable[[SkillView], Change | None],
    ) -> dict[str, Any] | None:
        """
        Apply or propose *change*; return its row, or None where somebody was at the skill meanwhile.

        Raises:
            LaterError: A lock is held, an unfinished action waits, or nothing can be written just now.
            FailedChangeError: It broke.
        """
        wait = change.wait
        if self.order.only_propose is not None:
            wait = f"{wait}; {self.order.only_propose}" if wait else self.order.only_propose
        earlier = self._waiting(change.action)
        if earlier is not None:
            # Applied by itself it would make the waiting one void: that was decided on the text of before.
            whys = [*([wait] if wait else []), ONE_QUESTION, *_wait_of(earlier).split("; ")]
            wait = "; ".join(dict.fromkeys(whys))
        if wait is None:
            return self._apply(change, cause, view, begun)
        if earlier is not None:
            (waiting,) = earlier.actions
            assert isinstance(waiting, Patch | WriteSupportFile), "no other waits on a skill that is there"
            before = next(skill for skill in view.skills if skill.key == change.action.key)
            both = stacked(_with_pending(before, waiting))
            if both is None:
                return self._refused(
                    change, cause, f"proposal {waiting.proposal} on it waits, and the two do not go together"
                )
            files = {file.path: file for file in (*waiting.files, *both.action.files)}
            kind = type(change.action) if isinstance(change.action, CreateSkill) else _kind_of(files, both.action)
            action = kind(
                key=both.action.key,
                reason=_joined(waiting.reason, both.action.reason),
                by="model",
                expected=both.action.expected,
                files=tuple(files[path] for path in sorted(files, key=lambda path: (path == "SKILL.md", path))),
            )
            said = earlier.reason.partition(WAITS)[0]
            change = replace(both, action=action, reason=_joined(said, both.reason or both.action.reason))
            quotes = tuple(dict.fromkeys((*_quotes_of(earlier), *cause.quotes)))
            cause = replace(cause, quotes=quotes if len(quotes) <= QUOTES else (*quotes[:QUOTES], "… and more"))
        return self._propose(change, wait, cause, view, earlier=earlier)

    # -- applying

    def _apply(
        self, change: Change, cause: Cause, view: LibraryView, begun: Callable[[Begun], None]
    ) -> dict[str, Any] | None:
        kind, op = _kind(change.action)
        identity = proposal_id(change.action.key.library, kind, [change.action.key], content_of([change.action]))
        if identity in self.store.rejections():
            return self._refused(change, cause, "you rejected that, or took it back, and nothing changed since")
        action: DistilAction = msgspec.structs.replace(change.action, proposal=identity)
        self.result.actions.append(action)
        row = self._row(change, cause, op, "applied", f"{change.summary}")
        if self.applier is None:
            diff = change_diff(action, _before(view, action.key), waits=(), session=cause.session, quotes=cause.quotes)
            self._tell_applied(change, cause, None, diff=diff)
            return {**row, "dry_run": True}
        begun(Begun(skill=str(action.key), proposal=identity))
        (outcome,) = self.applier.apply_all([action], now=self.now, run_id=self.run_id())
        self.result.outcomes.append(outcome)
        match outcome:
            case Applied():
                self.result.changed = True
                self._look_for(action, outcome)
                self._tell_applied(change, cause, outcome.entry.action_id)
                return {**row, "id": outcome.entry.action_id}
            case Skipped(code="edited"):
                return None
            case Skipped(code="busy" | "conflict"):
                raise LaterError(outcome.reason)
            case Skipped():
                return self._refused(change, cause, outcome.reason)
            case Failed():
                self.result.failed.append(FailedRow(action=change.summary, error=outcome.error))
                if outcome.errno is None or passes_by_itself(outcome.errno):
                    # A disk that is full, read-only or broken, or a state of ours: none of it is the session's doing.
                    raise LaterError(f"{change.summary}: {outcome.error}")
                raise FailedChangeError(f"{change.summary}: {outcome.error}")

    def _look_for(self, action: DistilAction, outcome: Applied) -> None:
        """Hold what was written against the disk (bugs K03)."""
        fingerprint = next((after for key, after in outcome.after if key == action.key), None)
        package = self.shelf.changed(action.key, fingerprint)
        for file in action.files:
            found = package.file(file.path) if package is not None else None
            if found is None or found.data != file.content:
                self.result.failed.append(
                    FailedRow(
                        action=f"write {action.key}/{file.path}",
                        error=f"it was written, and is not found so on disk now; `curatord undo "
                        f"{outcome.entry.action_id}` takes it back",
                    )
                )
        if outcome.note:
            self.result.warnings.append(outcome.note)

    def _tell_applied(self, change: Change, cause: Cause, action_id: str | None, *, diff: str = "") -> None:
        """Put an applied change (in a dry run: one that would be) into the run's rows, and say it."""
        key = change.action.key
        row: dict[str, Any] = {
            "library": key.library,
            "name": key.name,
            "reason": change.reason or change.action.reason,
            "action": action_id,
            "files": [file.path for file in change.action.files],
            "session": {"host": cause.host, "session_id": cause.session_id},
            "evidence": list(cause.evidence),
        }
        if diff:
            row["diff"] = diff
        if isinstance(change.action, CreateSkill):
            self.result.added.append({**row, "kind": "skill"})
        else:
            self.result.patched.append({**row, "kind": "distil"})
        self._say(change.summary if action_id is not None else f"would have {change.summary}")

    # -- proposing

    def _propose(
        self, change: Change, wait: str, cause: Cause, view: LibraryView, *, earlier: Proposal | None = None
    ) -> dict[str, Any]:
        """Ask for a yes; *earlier* is the proposal that this one holds too, and which is not asked any more."""
        action = change.action
        kind, op = _kind(action)
        identity = proposal_id(action.key.library, kind, [action.key], content_of([action]))
        row = self._row(change, cause, op, "pending", f"proposed: {change.summary}") | {"id": identity, "wait": wait}
        proposal = Proposal(
            id=identity,
            kind=kind,
            library=action.key.library,
            targets=(action.key,),
            summary=_proposed_words(change),
            reason=f"{change.reason or action.reason} ({cause.session}){WAITS}{wait}",
            created_at=self.now,
            actions=(msgspec.structs.replace(action, proposal=identity),),
            run_id=None if self.applier is None else self.run_id(),
            diff=change_diff(
                action, _before(view, action.key), waits=[wait], session=cause.session, quotes=cause.quotes
            ),
        )
        status = "new" if self.applier is None else self.store.propose(proposal)
        if status == "rejected":
            return self._refused(change, cause, "you rejected that, and nothing changed since")
        if earlier is not None and earlier.id != identity:
            self.store.decide(earlier.id, "superseded", now=self.now, reason=f"it is part of {identity}")
            self.result.proposals[:] = [one for one in self.result.proposals if one.id != earlier.id]
            self.result.pending[:] = [row for row in self.result.pending if row.id != earlier.id]
        self.result.proposals.append(proposal)
        shown = proposal.diff if self.applier is None else ""
        self.result.pending.append(
            PendingRow(id=identity, summary=proposal.summary, reason=proposal.reason, diff=shown)
        )
        if status == "new":
            self._say(f"{proposal.summary} waits for your yes ({identity}): {change.reason or action.reason}")
        return row

    def _waiting(self, action: DistilAction) -> Proposal | None:
        """Return the proposal on the same skill that waits for a yes and could still be applied, or None."""
        if isinstance(action, CreateSkill) or self.applier is None:
            return None
        for proposal in self.store.proposals("pending"):
            if proposal.kind in KINDS and proposal.targets == (action.key,):
                (waiting,) = proposal.actions
                if isinstance(waiting, Patch | WriteSupportFile) and waiting.expected == action.expected:
                    return proposal
        return None

    # -- rows

    def _refused(self, change: Change, cause: Cause, reason: str) -> dict[str, Any]:
        row = self._row(change, cause, _kind(change.action)[1], "refused", "")
        return {**row, "code": "declined", "counts_as": "skipped", "reason": reason}

    def _row(self, change: Change, cause: Cause, op: Op, state: str, summary: str) -> dict[str, Any]:
        key = change.action.key
        return {
            "op": op,
            "library": key.library,
            "skill": key.name,
            "state": state,
            "reason": change.reason or change.action.reason,
            "summary": summary,
            "evidence": list(cause.evidence),
            "candidate": change.candidate,
        }

    def _say(self, words: str) -> None:
        line = f"{SAYING}{words}"
        self.result.lines.append(line)
        self.say(line)


def _kind(action: DistilAction) -> tuple[str, Op]:
    match action:
        case CreateSkill():
            return KIND_CREATE, "create"
        case Patch():
            return KIND_PATCH, "patch"
        case WriteSupportFile():
            return KIND_FILE, "write_file"


def _kind_of(files: Mapping[RelPath, FileChange], action: DistilAction) -> type[Patch | WriteSupportFile]:
    return Patch if isinstance(action, Patch) or "SKILL.md" in files else WriteSupportFile


def _with_pending(skill: SkillView, waiting: DistilAction) -> SkillView:
    """Return *skill* as it would be were the waiting change applied; its fingerprint stays that of the disk."""
    files: dict[str, bytes | None] = dict(skill.files)
    text = skill.text
    for file in waiting.files:
        if file.path == skill.entry_file:
            text = file.content
        else:
            files[file.path] = file.content
    return replace(skill, text=text, files=files)


def _before(view: LibraryView, key: SkillKey) -> dict[str, bytes]:
    """Return the files of a skill as they stand."""
    skill = next((skill for skill in view.skills if skill.key == key), None)
    if skill is None:
        return {}
    found = {path: data for path, data in skill.files.items() if data is not None}
    return found | ({skill.entry_file: skill.text} if skill.text is not None else {})


def _joined(said: str, more: str) -> str:
    """Return both reasons, the second where it says something new; of very many the middle goes."""
    text = said if not more or more in said else f"{said}; {more}" if said else more
    return text if len(text) <= REASON_CHARS else f"{text[: REASON_CHARS // 2]} … {text[-REASON_CHARS // 2 :]}"


def _wait_of(proposal: Proposal) -> str:
    """Return why *proposal* waits, which must be seen in whatever takes its place (bugs B108)."""
    return proposal.reason.partition(WAITS)[2]


def _quotes_of(proposal: Proposal) -> tuple[str, ...]:
    """Return what was quoted for *proposal*; its diff keeps it."""
    head = proposal.diff.partition("\n\n")[0].splitlines()
    return tuple(line.removeprefix("> ") for line in head if line.startswith("> "))


def _proposed_words(change: Change) -> str:
    match change.action:
        case CreateSkill():
            return f"new skill {change.action.key}"
        case Patch():
            return f"patch of {change.action.key}"
        case WriteSupportFile():
            return f"{', '.join(file.path for file in change.action.files)} for {change.action.key}"

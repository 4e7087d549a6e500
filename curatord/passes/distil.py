"""
Distilling: what sessions taught becomes small changes of the library, proposals, lessons that wait, or nothing.

Per session, in this order, so that a kill anywhere loses nothing and does nothing twice:

1. It is read up to the watermark that ingest has counted, and a digest is made. (Nothing has changed.)
2. The free filter: most sessions end here, settled, without a call.
3. One question. The reply is kept with the session before anything is decided on it (`distil_answer`).
4. Decisions are made on the disk as it is now; each change is noted, then goes through the gate of `passes.apply`,
   whole or absent. Proposals, by the hash of what they would do, can be made twice without harm.
5. Outcome, watermark, line of the log and lessons that wait are one transaction; the kept reply goes with it.

Cut between 3 and 5 the session is still due, and the next look goes on from the kept reply. Where no outcome can be
settled (endpoint away, budget out, a reply that cannot be used) the session stays due; what is its own fault is
counted, tried again after growing waits, and put aside after five times, where people see it.

One session's trouble is its own: whatever goes wrong while it is read or decided is its failure, and the next has its
turn. What concerns all ends the pass: no endpoint, no budget, a stop, our own state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from signal import SIGTERM
from typing import TYPE_CHECKING, Any

import msgspec

from curatord.core.cheap import dataclass, field, replace
from curatord.core.distil.candidates import KeptCandidate, remembered, seen_again
from curatord.core.distil.decide import Candidate, Caps, Change, Decision, Refused, decide
from curatord.core.distil.digest import DigestBuilder
from curatord.core.distil.due import NotDue, nothing_to_learn
from curatord.core.distil.question import IndexRow, SessionCard, SimilarText, TooBig, distil_question
from curatord.core.distil.similar import nearest
from curatord.core.distil.view import LibraryView, SkillView
from curatord.core.distil.wishes import Wishes, parse_wishes
from curatord.core.inert import shorten
from curatord.core.model import EndpointError, FaultKind, ReplyError
from curatord.core.plan import CreateSkill
from curatord.core.redact import redact
from curatord.core.replies import Create, DistilReply, Operation, SimpleReply
from curatord.core.settings import Config
from curatord.core.values import LibraryName, RunId, SkillKey
from curatord.core.words import plural
from curatord.errors import BudgetExhaustedError, CuratorError, ModelError, StateError, StoppedError
from curatord.passes.distil_answer import Begun, KeptAnswer
from curatord.passes.distil_due import Judge
from curatord.passes.distil_ends import Case, Ends, passes_by_itself, through_of
from curatord.passes.distil_make import Cause, LaterError, Maker
from curatord.passes.distil_order import DistilOrder, DistilResult
from curatord.passes.distil_read import Reading, read_session
from curatord.passes.distil_rows import (
    SessionOutcome,
    kept_candidate,
    quotes_of,
    refs_of,
    refused_row,
    row_of_refusal,
    session_words,
    state_of,
    stored_candidate,
)
from curatord.passes.distil_shelf import Shelf
from curatord.ports.conversation import Conversations
from curatord.ports.curation_store import CurationStore
from curatord.ports.distil_store import DistilStore, FilePart, SessionToDistil
from curatord.ports.packages import PackageReader
from curatord.ports.prompts import Prompts

if TYPE_CHECKING:
    from curatord.core.wire import Question
    from curatord.passes.apply import Applier
    from curatord.passes.consult import Answer, Consultation
    from curatord.passes.look import Look

__all__ = ["DistilPass"]

USED_SHOWN = 12
RETRY_REFUSED = timedelta(hours=1)
RETRY_STUMBLED = timedelta(minutes=1)
RETRY_TOO_DEAR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilPass:
    """
    The pass with all it needs.

    Attributes:
        config: The configuration in force.
        store: Proposals, rejections, actions.
        distil: What is remembered of sessions.
        judge: Says which sessions are due.
        packages: Reads packages.
        prompts: The words a model is asked with, and the wishes.
        opened: Gives the conversations of a file's place; None where it is not configured.
        libraries_of: The libraries whose skills the sessions of a place use, the first of them its own.
        host_names: What the host of a library finds by other names than its libraries' skills, given the folders that a
            session worked in: the name, and words for the place.
        keep_digest: Keeps a digest under its hash.
        applier: The gate; None in a dry run, which then cannot change anything.
        relook: Looks at everything anew.
        say: Told of each line about a change as it is made.
        warn: Told once of what makes sessions wait.
        bug: Told of an error that nobody foresaw, with its session.
    """

    config: Config
    store: CurationStore
    distil: DistilStore
    judge: Judge
    packages: PackageReader
    prompts: Prompts
    opened: Callable[[FilePart], Conversations | None]
    libraries_of: Callable[[FilePart], Sequence[LibraryName]]
    keep_digest: Callable[[str, str], None]
    applier: Applier | None
    relook: Callable[[], Look]
    host_names: Callable[[LibraryName, Sequence[str]], Mapping[str, str]] = lambda _library, _folders: {}
    say: Callable[[str], None] = lambda _: None
    warn: Callable[[str], None] = lambda _: None
    bug: Callable[[SessionToDistil, Exception], None] = lambda _session, _error: None

    def run(
        self,
        order: DistilOrder,
        *,
        look: Look,
        now: datetime,
        run_id: Callable[[], RunId],
        consultation: Callable[[], Consultation | None],
        stop: Callable[[], bool],
    ) -> DistilResult:
        """
        Look at the sessions that are meant, one after the other.

        Raises:
            ConfigError: A prompt file of the user, or `llm`, cannot be used; nothing was asked.
            StateError: Our own state cannot be used.
        """
        result = DistilResult()
        rows = self._rows(order, now, stop)
        if not rows:
            result.reason = "no session is due"
            return result
        consult = consultation()
        if consult is None:
            result.state, result.reason, result.left = "skipped", "not configured", len(rows)
            return result
        prompt, wishes = self.prompts.read("distil"), self.prompts.read("wishes.txt")
        parsed = parse_wishes(wishes.text)
        result.prompts |= {"distil.md": prompt.sha256, "wishes.txt": wishes.sha256}
        result.warnings += [f"wishes.txt: {fault}" for fault in parsed.faults[:5]]
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        shelf = Shelf(look=look, packages=self.packages, made_today=self.distil.new_skills_since(midnight))
        batch = _Batch(
            its=self,
            order=order,
            now=now,
            consult=consult,
            prompt=prompt.text,
            wishes=parsed,
            stop=stop,
            result=result,
            shelf=shelf,
            run_id=run_id,
            ends=Ends(
                store=self.distil, result=result, now=now, dry=self.applier is None, run_id=run_id, warn=self.warn
            ),
            maker=Maker(
                order=order,
                now=now,
                run_id=run_id,
                store=self.store,
                applier=self.applier,
                shelf=shelf,
                result=result,
                say=self.say,
            ),
        )
        batch.run(rows)
        return result

    def _rows(self, order: DistilOrder, now: datetime, stop: Callable[[], bool]) -> list[int]:
        """Return the sessions that are meant, in their order."""
        if order.sessions is not None:
            return list(order.sessions)
        self.judge.judge(now, stop=stop)
        rows = self.judge.backlog(now) if order.backfill else self.distil.due()
        if not order.by_hand:
            return rows
        known = set(rows)  # a person may have mended what the others wait for
        return [*rows, *(row for row in self.distil.waiting() if row not in known)]


@dataclass(slots=True, kw_only=True)
class _Batch:
    """One call of the pass."""

    its: DistilPass
    order: DistilOrder
    now: datetime
    consult: Consultation
    prompt: str
    wishes: Wishes
    stop: Callable[[], bool]
    result: DistilResult
    shelf: Shelf
    ends: Ends
    maker: Maker
    run_id: Callable[[], RunId]
    answered: int = 0
    turned_down: list[tuple[SessionToDistil, str]] = field(default_factory=list)
    stumbled: list[tuple[SessionToDistil, str]] = field(default_factory=list)

    @property
    def dry(self) -> bool:
        """Whether nothing may be changed or settled."""
        return self.its.applier is None

    def run(self, rows: Sequence[int]) -> None:
        """Work through *rows*: prepare until the endpoint's seats are filled, ask, carry out, and go on."""
        ended = 0
        cases: list[Case] = []
        for row in rows:
            if self.stop():
                self._end("stopped", "we were asked to stop")
            if self.result.state != "done":
                break
            session = self.its.distil.session(row)
            got = self._guarded(session, partial(self._prepared, session))
            ended += got is True
            if isinstance(got, Case):
                cases.append(got)
            if len(cases) >= self.consult.workers:
                ended += self._finish(cases)
                cases = []
        if self.result.state == "done":
            ended += self._finish(cases)
        self._settle_turned_down()
        for session, reason in self.stumbled:
            if self.result.state == "failed":
                self.ends.stays_due(session, "error", reason, behind=True)
            else:
                self.ends.waits(session, reason, first=RETRY_STUMBLED)
        self.ends.close()
        self.result.left = len(rows) - ended

    def _settle_turned_down(self) -> None:
        """
        Say whose fault refused requests were: a session's own where others were answered, else the server's.

        A server that takes no request at all (a field it does not know, a model that cannot do this) would else put
        every session aside in a few hours.
        """
        for session, reason in self.turned_down:
            if self.answered:
                self.ends.failed(session, reason, asked=True)
            else:
                self.ends.waits(session, reason, first=RETRY_REFUSED)

    def _end(self, state: str, reason: str) -> None:
        """End the pass; what ended it first stands."""
        if self.result.state == "done":
            self.result.state, self.result.reason = state, reason

    def _finish(self, cases: Sequence[Case]) -> int:
        """Ask about prepared sessions and carry out the replies; return how many came to an outcome."""
        ended = 0
        asked = [(case, case.question) for case in cases if case.question is not None]
        answers: dict[int, Answer | ModelError | StoppedError] = {}
        if asked:
            got = self._ask([question for _, question in asked])
            answers = {case.session.row: answer for (case, _), answer in zip(asked, got, strict=True)}
        for case in cases:
            answer = answers.get(case.session.row)
            if isinstance(answer, StoppedError):
                self._end("stopped", "we were asked to stop")
                continue
            if isinstance(answer, ModelError):
                ended += self._unanswered(case, answer)
                continue
            if answer is not None:
                self.result.asked += 1
                self.answered += 1
                self._keep(case, answer)
            if self.stop():
                self._end("stopped", "we were asked to stop")
                continue  # its reply is kept, and taken up by the next look
            ended += self._guarded(case.session, partial(self._carried_out, case)) is True
        return ended

    def _ask(self, questions: Sequence[Question]) -> list[Answer | ModelError | StoppedError]:
        """Return the answer to each of *questions*, or why there is none; what was paid for is never lost to a stop."""

        def one(question: Question) -> Answer | ModelError | StoppedError:
            try:
                return self.consult.ask(question)
            except (ModelError, StoppedError) as error:
                return error

        with ThreadPoolExecutor(max_workers=self.consult.workers, thread_name_prefix="distil") as pool:
            futures = [pool.submit(one, question) for question in questions]
            for _ in self.consult.as_they_come(futures, self.stop):
                pass
            return [future.result() for future in futures]

    def _guarded(self, session: SessionToDistil, work: Callable[[], Any]) -> Any:
        """Return what *work* gives; its trouble is the session's own, and costs no other its turn."""
        try:
            return work()
        except StateError:
            raise
        except StoppedError:
            self._end("stopped", "we were asked to stop")
        except EndpointError as error:
            self._end("failed", f"no model could be asked: {error}")
        except LaterError as error:
            self.ends.waits(session, f"{error}; it is tried again")
        except (CuratorError, OSError) as error:
            if isinstance(error, OSError) and passes_by_itself(error.errno):
                self.ends.waits(session, f"{error}; it is tried again")
            else:
                self.ends.failed(session, str(error))
        except Exception as error:  # noqa: BLE001 - what a hostile session makes go wrong must not stop the others
            self.its.bug(session, error)
            self.ends.failed(session, f"an error of curatord's own: {type(error).__name__}: {shorten(str(error), 200)}")
        return None

    # -- before the question

    def _prepared(self, session: SessionToDistil) -> Case | bool:
        """Return the session with its question or its kept reply, or whether it came to an outcome without."""
        by_name = self.order.sessions is not None
        why = self.its.judge.never(session, by_name=by_name)
        if why is not None:
            if by_name:
                self.ends.tell(session, "skipped", why)
            return True
        if not by_name:
            # It may have gone on since it was found due.
            answer = self.its.judge.answer(session, self.now, backfill=self.order.backfill, at_once=self.order.by_hand)
            if isinstance(answer, NotDue):
                return True
            if self.order.library is not None and self._home(self._libraries(session)) != self.order.library:
                return False  # its lessons are another library's, and wait for a run of that
        kept = KeptAnswer.decoded(session.answer)
        if kept is not None and not self.dry:
            case = self._resumed(session, kept)
            if case is not None:
                return case
        return self._fresh(session, whole=by_name)

    def _fresh(self, session: SessionToDistil, *, whole: bool) -> Case | bool:
        """Return the session with its question, or whether it came to an outcome without."""
        reading = self._read(session, whole=whole)
        case = Case(session=session, reading=reading, libraries=self._libraries(session))
        if reading.problem is not None:
            if reading.lasting:
                return self.ends.settle(case, SessionOutcome(reason=reading.problem), asked=False)
            raise LaterError(reading.problem)
        if whole:
            reason = None if any(e.evidence for e in case.digest.entries) else "nobody said anything in it"
        else:
            reason = nothing_to_learn(case.digest)
        if reason is not None:
            return self.ends.settle(case, SessionOutcome(reason=reason), asked=False)
        if not case.libraries:
            return self.ends.settle(case, SessionOutcome(reason="no library of its host is configured"), asked=False)
        home = self._home(case.libraries)
        not_now = self.shelf.why_not_now(home) if home is not None else None
        if not_now is not None and not self.dry:
            raise LaterError(f"its library cannot be changed now: {not_now}")  # and nothing is paid for until it can
        question = self._question(case)
        if isinstance(question, TooBig):
            return self.ends.settle(case, SessionOutcome(reason=question.reason), asked=False)
        if not self.dry:
            self.its.keep_digest(case.digest.sha256, case.digest.text())
        case.question = question
        return case

    def _read(self, session: SessionToDistil, *, whole: bool) -> Reading:
        builder = DigestBuilder(self.its.config.distill.digest, wishes=self.wishes)
        reading = read_session(session, self.its.opened, builder, whole=whole, stop=self.stop)
        if self.stop():
            raise StoppedError("asked to stop while a session was read", signal=SIGTERM)
        return reading

    def _resumed(self, session: SessionToDistil, kept: KeptAnswer) -> Case | None:
        """Return the session as its kept reply is about it; None: that cannot be told any more, it is asked anew."""
        was = kept.as_it_was(session)
        reading = self._read(was, whole=kept.whole)
        same = reading.problem is None and reading.digest.sha256 == kept.digest
        if not same and not any(self._is_applied(begun) for begun in kept.begun):
            self.its.distil.keep_answer(session.row, None)
            return None
        # Written anew meanwhile: the rest of the reply cannot be judged any more, what was done is told.
        left = kept if same else _without_operations(kept)
        looked = replace(reading, offsets={**session.look.offsets, **kept.looked_to()}, problem=None)
        return Case(session=was, reading=looked, libraries=self._libraries(session), kept=left)

    def _libraries(self, session: SessionToDistil) -> tuple[LibraryName, ...]:
        """Return the libraries that the session's host looks into, its own first, as far as they are there."""
        names = [name for file in session.files for name in self.its.libraries_of(file)]
        return tuple(name for name in dict.fromkeys(names) if name in self.shelf.look.libraries)

    def _home(self, libraries: Sequence[LibraryName]) -> LibraryName | None:
        """Return the library that new skills go to: the first that may be changed."""
        open_ones = [name for name in libraries if self.shelf.why_closed(name) is None]
        meant = [name for name in open_ones if self.order.library in (None, name)]
        return next(iter(meant or open_ones or libraries), None)

    def _question(self, case: Case) -> Question | TooBig:
        """Return the question about a session, with the skills that matter to it."""
        session = case.session
        views = [self.shelf.view(name, case.libraries) for name in case.libraries]
        touched = dict.fromkeys(touch.skill.rpartition("/")[2] for touch in self.its.distil.touched(session.row))
        used = [name for name in touched if any(view.named(name) for view in views)][:USED_SHOWN]
        index: list[IndexRow] = []
        similar: list[SimilarText] = []
        for view in views:
            near = nearest(view, case.digest, used=used, index=self.shelf.index(view.library))
            shown = {skill.key for skill in near}
            index += [
                IndexRow(name=one.name, description=one.description, candidate=True)
                for one in sorted(self._waiting(view.library), key=lambda one: one.last_at, reverse=True)
            ]
            index += [_index_row(skill) for skill in (*near, *(s for s in view.skills if s.key not in shown))]
            similar += [text for skill in near if (text := self._similar(skill, used)) is not None]
        card = SessionCard(
            host=session.host,
            id=session.session_id,
            cwd=session.cwds[0] if session.cwds else None,
            first_ms=case.digest.first_ms,
            last_ms=case.digest.last_ms,
        )
        room = self.consult.room()
        return distil_question(self.prompt, card, case.digest, used, index, similar, self.order.focus, room)

    def _similar(self, skill: SkillView, used: Sequence[str]) -> SimilarText | None:
        """Return the whole text of a skill, also of one that may not be changed: what stands there is known then."""
        text = self.shelf.text(skill)
        if text is None:
            return None
        words = text.decode("utf-8", "replace").removeprefix("\ufeff")
        return SimilarText(name=skill.name, sha256=sha256(text).hexdigest(), text=words, used=skill.name in used)

    def _waiting(self, library: LibraryName) -> tuple[KeptCandidate, ...]:
        """Return the lessons of a library that wait to be seen again."""
        stored = [kept_candidate(one) for one in self.its.distil.candidates(library)]
        return remembered([one for one in stored if one is not None], self.now)

    # -- the reply

    def _keep(self, case: Case, answer: Answer) -> None:
        """Keep a reply that was paid for until it is settled."""
        assert isinstance(answer.value, DistilReply), "the wire has typed it"
        case.kept = KeptAnswer(
            digest=case.digest.sha256,
            reply=answer.value,
            offsets={file_id: (looked.offset, looked.head) for file_id, looked in case.reading.offsets.items()},
            through_ms=through_of(case),
            user_turns=case.session.user_turns,
            tool_calls=case.session.tool_calls,
            whole=self.order.sessions is not None,
            simple=isinstance(answer.value, SimpleReply),
            request_sha256=answer.exchange.request_sha256,
            tokens=answer.exchange.bill.usage.tokens,
        )
        if not self.dry:
            self.its.distil.keep_answer(case.session.row, case.kept.encoded())

    def _unanswered(self, case: Case, error: ModelError) -> bool:
        """Say what became of a session whose question has no answer; return whether that is an outcome."""
        session = case.session
        if isinstance(error, BudgetExhaustedError):
            return self._too_dear(session, error)
        if isinstance(error, EndpointError):
            if self.consult.gave_up:
                self._end("failed", f"no model could be asked: {error}")
            self.stumbled.append((session, str(error)))
            return False
        fault = error.fault if isinstance(error, ReplyError) else None
        if fault is not None and fault.kind is FaultKind.TOO_LONG:
            return self.ends.settle(case, SessionOutcome(reason=str(error)), asked=False)
        self.result.asked += 1
        if fault is not None and fault.kind is FaultKind.BAD_REQUEST:
            self.turned_down.append((session, str(error)))
            if len(self.turned_down) > 1 and not self.answered:
                self._end("failed", f"the model's server takes no request: {error}")
            return False
        self.answered += 1  # with whatever
        invalid = fault is not None and fault.kind in (FaultKind.INVALID, FaultKind.CUT, FaultKind.NO_ANSWER)
        self.ends.failed(session, str(error), state="invalid" if invalid else "error", asked=True)
        return False

    def _too_dear(self, session: SessionToDistil, error: BudgetExhaustedError) -> bool:
        """
        Say what becomes of a session that the budget was too small for; that is no outcome.

        One that had a reply of its own which could not be used has eaten of the budget: that is its failure, or the
        oldest session would take all of it at every run, and no other would ever be asked about.
        """
        if error.alone and not error.replied:
            reason = f"{error}: more than all of that limit for this one question"
            self.ends.waits(session, reason, first=RETRY_TOO_DEAR)
            return False
        self._end("budget", str(error))
        if not error.replied:
            self.ends.stays_due(session, "budget", str(error))
            return False
        self.result.asked += 1
        self.answered += 1
        self.ends.failed(session, f"{error.replied}; and no budget to ask again: {error}", state="invalid", asked=True)
        return False

    def _carried_out(self, case: Case) -> bool:
        """Do what the reply comes to, and settle the session."""
        return self.ends.settle(case, self._outcome(case), asked=True)

    def _outcome(self, case: Case) -> SessionOutcome:
        kept = case.kept
        assert kept is not None, "it was asked, or resumed"
        outcome = SessionOutcome(reason=redact(kept.reply.nothing or "nothing worth keeping"))
        done = [begun for begun in kept.begun if self._is_applied(begun)]
        outcome.operations += [self._done_row(begun, outcome) for begun in done]
        if kept.reply.operations:
            lineage = f"{case.session.host}:{self.its.distil.lineage(case.session.host, case.session.session_id)}"
            settled = {begun.skill for begun in done}
            for name, operations in self._by_library(case, kept.reply.operations):
                if name is None:
                    outcome.operations += [refused_row(op, "unknown", "no library may be changed") for op in operations]
                    continue
                left = tuple(op for op in operations if not self._names_one_of(op, name, settled))
                self._library(case, name, left, lineage, outcome)
        if outcome.operations:
            outcome.state, outcome.reason = state_of(outcome.operations)
        return outcome

    def _by_library(
        self, case: Case, operations: Sequence[Operation]
    ) -> list[tuple[LibraryName | None, tuple[Operation, ...]]]:
        """Return the operations with the library that each is about."""
        home = self._home(case.libraries)
        created = {op.skill for op in operations if isinstance(op, Create)}
        found: dict[LibraryName | None, list[Operation]] = {}
        for operation in operations:
            owner = home
            if not isinstance(operation, Create) and operation.skill not in created:
                named = {name: self.shelf.view(name).named(operation.skill) for name in case.libraries}
                holders = [name for name in case.libraries if named[name]]
                usable = [name for name in holders if any(skill.locked is None for skill in named[name])]
                owner = next(iter(usable or holders), home)
            found.setdefault(owner, []).append(operation)
        return [(name, tuple(ops)) for name, ops in found.items()]

    def _library(
        self,
        case: Case,
        name: LibraryName,
        operations: tuple[Operation, ...],
        lineage: str,
        outcome: SessionOutcome,
        *,
        again: bool = False,
    ) -> None:
        """Decide on the operations about one library, and carry out what they come to."""
        if not operations:
            return
        not_now = self.shelf.why_not_now(name)
        if not_now is not None and not self.dry:
            raise LaterError(f"library {name} cannot be changed now: {not_now}")
        closed = self.shelf.why_closed(name)
        if self.order.library not in (None, name):
            closed = f"this run is about the library {self.order.library} alone"
        if closed is not None:
            outcome.operations += [refused_row(op, "locked", closed, name) for op in operations]
            return
        view = self._view_for(name, case, operations)
        waiting = self._waiting(name)
        for decision in self._decide(case, view, operations, waiting, lineage):
            match decision:
                case Refused():
                    outcome.operations.append(row_of_refusal(decision, name))
                case Candidate():
                    self._candidate(case, name, decision, waiting, lineage, outcome)
                case Change():
                    if self._make(case, view, decision, operations, waiting, lineage, outcome):
                        continue
                    if again:
                        reason = "somebody is changing it just now"
                        outcome.operations += [refused_row(op, "edited", reason, name) for op in operations]
                        return
                    # Somebody was at it since the look: decided once more, on what is there now.
                    self.shelf.renew(self.its.relook())
                    about = tuple(op for op in operations if self._names_one_of(op, name, {str(decision.action.key)}))
                    self._library(case, name, about, lineage, outcome, again=True)

    def _decide(
        self,
        case: Case,
        view: LibraryView,
        operations: tuple[Operation, ...],
        waiting: Sequence[KeptCandidate],
        lineage: str,
    ) -> tuple[Decision, ...]:
        return decide(
            DistilReply(operations=operations),
            digest=case.digest,
            view=view,
            candidates=waiting,
            lineage=lineage,
            mode=self.its.config.mode,
            caps=Caps.of(self.its.config.distill),
            wishes=self.wishes,
            now=self.now,
            index=self.shelf.index(view.library),
            simple=case.kept is not None and case.kept.simple,
        )

    def _view_for(self, name: LibraryName, case: Case, operations: Sequence[Operation]) -> LibraryView:
        """Return the library with the texts of the skills that are to be changed."""
        view = self.shelf.view(name, case.libraries)
        if any(isinstance(op, Create) for op in operations):
            elsewhere = self.its.host_names(name, case.session.cwds)
            view = replace(view, shadowed={**elsewhere, **view.shadowed})
        return self.shelf.with_texts(view, [skill.key for op in operations for skill in view.named(op.skill)])

    def _names_one_of(self, operation: Operation, library: LibraryName, keys: set[str]) -> bool:
        """Return whether *operation* is about one of the skills *keys*, `library/path`."""
        named = self.shelf.view(library).named(operation.skill) if keys else ()
        return any(str(skill.key) in keys for skill in named)

    def _make(
        self,
        case: Case,
        view: LibraryView,
        change: Change,
        operations: tuple[Operation, ...],
        waiting: Sequence[KeptCandidate],
        lineage: str,
        outcome: SessionOutcome,
    ) -> bool:
        """Apply or propose one change; return whether it came to something."""

        def begun(what: Begun) -> None:
            assert case.kept is not None, "its reply was kept"
            case.kept = _with_begun(case.kept, what)
            self.its.distil.keep_answer(case.session.row, case.kept.encoded())

        def stacked(skill: SkillView) -> Change | None:
            skills = tuple(skill if one.key == skill.key else one for one in view.skills)
            about = tuple(op for op in operations if op.skill in (skill.name, skill.key.rel, str(skill.key)))
            both = self._decide(case, replace(view, skills=skills), about, waiting, lineage)
            return next((one for one in both if isinstance(one, Change)), None)

        cause = Cause(
            session=session_words(case.session),
            host=case.session.host,
            session_id=case.session.session_id,
            quotes=quotes_of(case.digest, change.evidence),
            evidence=refs_of(case.digest, change.evidence),
        )
        row = self.maker.make(view, change, cause, begun=begun, stacked=stacked)
        if row is None:
            return False
        outcome.operations.append(row)
        if isinstance(change.action, CreateSkill) and row["state"] in ("applied", "pending"):
            outcome.new_skills += 1
            self.shelf.made_today += 1
            if row["state"] == "applied" and change.candidate is not None:
                outcome.confirmed.append(change.candidate)
        return True

    def _candidate(
        self,
        case: Case,
        name: LibraryName,
        decision: Candidate,
        waiting: Sequence[KeptCandidate],
        lineage: str,
        outcome: SessionOutcome,
    ) -> None:
        """Count a lesson that too few sessions taught."""
        kept = seen_again(
            next((one for one in waiting if one.id == decision.id), None),
            library=name,
            name=decision.name,
            description=redact(decision.description),
            content_sha256=decision.content_sha256,
            lineage=lineage,
            now=self.now,
            cited=bool(decision.evidence),
        )
        outcome.candidates.append(stored_candidate(kept))
        if decision.evidence:
            seen = f"seen in {decision.sessions} of {plural(decision.sessions_needed, 'session')}"
        else:
            seen = "it cites nothing that was said, so it is noted and does not count"
        outcome.operations.append(
            {
                "op": "create",
                "library": name,
                "skill": decision.name,
                "state": "candidate",
                "id": decision.id,
                "reason": f"{seen}; a further one, or a user's own wish, confirms it",
                "summary": decision.summary,
                "evidence": refs_of(case.digest, decision.evidence),
            }
        )

    # -- what was done before a kill

    def _is_applied(self, begun: Begun) -> bool:
        return any(row.status == "done" for row in self.its.store.actions(proposal=begun.proposal))

    def _done_row(self, begun: Begun, outcome: SessionOutcome) -> dict[str, Any]:
        """Return the row of a change that was done before a kill, from the journal."""
        row = next(row for row in self.its.store.actions(proposal=begun.proposal) if row.status == "done")
        key: SkillKey = row.entry.targets[0]
        created = row.entry.kind == "create"
        outcome.new_skills += created
        return {
            "op": "create" if created else "write_file" if row.entry.kind == "write_file" else "patch",
            "library": key.library,
            "skill": key.name,
            "state": "applied",
            "id": row.entry.action_id,
            "reason": row.entry.reason,
            "summary": f"{row.entry.summary}, before a kill",
            "evidence": [],
        }


def _index_row(skill: SkillView) -> IndexRow:
    return IndexRow(name=skill.name, description=f"{skill.description} {skill.when_to_use}".strip())


def _with_begun(kept: KeptAnswer, begun: Begun) -> KeptAnswer:

    return msgspec.structs.replace(kept, begun=(*kept.begun, begun))


def _without_operations(kept: KeptAnswer) -> KeptAnswer:

    return msgspec.structs.replace(kept, reply=DistilReply(nothing="its transcript is another one now"))

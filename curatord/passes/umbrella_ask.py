"""
Asking about a library: questions made of cards and packages, answers remembered, several open at a time.

One `Asker` serves one library in one run. It knows the prompts and the memory; what the answers lead to is decided in
`core.umbrella` and by the pass. Answers are kept as they come, so that a run which ends half-way has not paid for
nothing. The work with memory and packages is done by the calling thread alone; threads only wait for the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from json import dumps
from typing import TypeAlias, TypeVar

import msgspec

from curatord.core.budget import estimate_tokens
from curatord.core.cheap import dataclass, field
from curatord.core.model import EndpointError
from curatord.core.replies import MergeReply, Reply, SurveyReply
from curatord.core.umbrella.cards import Card
from curatord.core.umbrella.question import MergeQuestion, merge_data, question_key
from curatord.core.umbrella.survey import Part, Surveyed, part_key, rows_key, survey_data
from curatord.core.values import LibraryName
from curatord.core.wire import Question
from curatord.errors import BudgetExhaustedError, ModelError, StoppedError
from curatord.passes.consult import Consultation
from curatord.ports.answers import AnswerMemory
from curatord.ports.prompts import Prompt

__all__ = ["Asker", "StoppedHere"]

VERSION = "1"  # raised whenever the same data is asked about in another way, so that old answers are not heard
MARGIN = 0.96  # of the room: estimates are estimates
OUTPUT_MARGIN = 0.85
MERGE_ANSWER = 400  # tokens of an umbrella's own words, and of one member's row
MERGE_ROW = 70
SURVEY_ROW = 5  # beside the name itself

_ReplyT = TypeVar("_ReplyT", SurveyReply, MergeReply)


class StoppedHere(Exception):  # noqa: N818  # it never leaves the pass
    """We were asked to stop between two calls."""


_End: TypeAlias = EndpointError | BudgetExhaustedError | StoppedHere | StoppedError


@dataclass(slots=True, kw_only=True)
class Asker:
    """
    Asks about one library.

    Attributes:
        consultation: This run's dealings with models.
        memory: What was answered before.
        survey_prompt, merge_prompt: The words.
        bodies: Whole texts are shown.
        stop: Asked before each call.
        asked, remembered: How many questions went to the model, and how many were answered from memory.
    """

    library: LibraryName
    consultation: Consultation
    memory: AnswerMemory
    survey_prompt: Prompt
    merge_prompt: Prompt
    now: datetime
    bodies: bool = False
    stop: Callable[[], bool] = lambda: False
    asked: int = 0
    remembered: int = 0
    ended: _End | None = None
    _room: int = field(init=False)
    _output: int = field(init=False)
    _model: str = field(init=False)
    _bases: dict[str, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        identity = self.consultation.identity()
        self._room = int(self.consultation.room() * MARGIN)
        self._output = int(identity.output_limit * OUTPUT_MARGIN)
        self._model = f"{identity.provider}\0{identity.model}"

    # -- surveys

    @property
    def survey_scope(self) -> str:
        """What remembered surveys of this library are grouped by."""
        return "\0".join((VERSION, "survey", self.library, self._model, self.survey_prompt.sha256))

    def survey_fits(self, part: Part) -> bool:
        """Return whether the question about *part*, and its answer, fit the model's context."""
        base = self._base("survey", self._survey_question(Part(cards=(), candidates=())))
        headings = len(part.cards) <= 40
        rows = sum(_tokens(card.row(headings=headings)) for card in part.cards)
        hints = sum(_tokens([list(members), why]) for members, why in part.candidates)
        answer = sum(estimate_tokens(card.label) + SURVEY_ROW for card in part.cards) + 100
        return base + rows + hints <= self._room and answer <= self._output

    def known_survey(self, cards: Sequence[Card]) -> Surveyed | None:
        """Return what was answered about exactly these cards, or None."""
        kept = self.memory.answer(part_key(self.survey_scope, rows_key(cards)), now=self.now)
        return None if kept is None else _decoded(kept, Surveyed)

    def known_surveys(self) -> list[Surveyed]:
        """Return all surveys that were answered about this library."""
        found = (_decoded(kept, Surveyed) for kept in self.memory.answers(self.survey_scope))
        return [survey for survey in found if survey is not None]

    def keep_survey(self, surveyed: Surveyed) -> None:
        """Remember *surveyed* for exactly its rows."""
        key = part_key(self.survey_scope, surveyed.rows)
        self.memory.keep(key, self.survey_scope, msgspec.json.encode(surveyed), now=self.now)

    def surveys(
        self, parts: Sequence[Part], read: Callable[[SurveyReply, Part], Surveyed]
    ) -> list[Surveyed | ModelError]:
        """
        Return for each of *parts* what was answered, or why there is no answer.

        Raises:
            EndpointError, BudgetExhaustedError, StoppedHere: Asking ends here; what came before is remembered.
        """

        def check(part: Part) -> Callable[[Reply], str | None]:
            asked_again: list[bool] = []

            def one(reply: Reply) -> str | None:
                assert isinstance(reply, SurveyReply), "the wire has typed it"
                surveyed = read(reply, part)
                if reply.clusters and not surveyed.clusters and not asked_again:
                    # A second answer of that kind is taken for what it says: nothing that could be done.
                    asked_again.append(True)
                    return "; ".join((*surveyed.violations, *surveyed.notes))
                return None

            return one

        results: list[Surveyed | ModelError | None] = [self.known_survey(part.cards) for part in parts]
        open_ones = [place for place, result in enumerate(results) if result is None]
        self.remembered += len(parts) - len(open_ones)

        def took(number: int, reply: SurveyReply | ModelError) -> None:
            place = open_ones[number]
            if isinstance(reply, ModelError):
                results[place] = reply
                return
            surveyed = read(reply, parts[place])
            results[place] = surveyed
            self.keep_survey(surveyed)

        end = self._ask(
            [(self._survey_question(parts[place]), check(parts[place])) for place in open_ones], SurveyReply, took
        )
        if end is not None:
            raise end
        return [result for result in results if result is not None]

    def _survey_question(self, part: Part) -> Question:
        return Question(
            task="survey",
            prompt=self.survey_prompt.text,
            data=survey_data(self.library, part),
            expect_tokens=sum(estimate_tokens(card.label) + SURVEY_ROW for card in part.cards) + 60,
        )

    # -- merges

    def merge_fits(self, question: MergeQuestion) -> bool:
        """Return whether *question*, and its answer, fit the model's context."""
        bare = _bare(question)
        base = self._base("merge", self._merge_question(bare))
        data = merge_data(self.library, question)
        rows = _tokens([data["umbrella"], data["outside"]]) + sum(_tokens(row) for row in data["members"])
        answer = MERGE_ANSWER + MERGE_ROW * len(question.members)
        if self.bodies and not question.existing:
            answer += sum(card.tokens for card, _ in question.members)
        return base + rows <= self._room and answer <= self._output

    def merges(
        self, questions: Sequence[MergeQuestion], check: Callable[[MergeReply, MergeQuestion], str | None]
    ) -> list[MergeReply | ModelError | None]:
        """
        Return for each of *questions* the answer, or why there is none; None: asking ended before it.

        What ended it is in *ended*, for the caller to raise once it has made use of what came before.
        """
        scope = "\0".join((VERSION, "merge", self.library, self._model, self.merge_prompt.sha256, str(self.bodies)))
        keys = [question_key(scope, merge_data(self.library, question)) for question in questions]
        results: list[MergeReply | ModelError | None] = []
        for key in keys:
            kept = self.memory.answer(key, now=self.now)
            results.append(None if kept is None else _decoded(kept, MergeReply))
        open_ones = [place for place, result in enumerate(results) if result is None]
        self.remembered += len(questions) - len(open_ones)

        def checked(question: MergeQuestion) -> Callable[[Reply], str | None]:
            def one(reply: Reply) -> str | None:
                assert isinstance(reply, MergeReply), "the wire has typed it"
                return check(reply, question)

            return one

        def took(number: int, reply: MergeReply | ModelError) -> None:
            place = open_ones[number]
            results[place] = reply
            if not isinstance(reply, ModelError):
                self.memory.keep(keys[place], scope, msgspec.json.encode(reply), now=self.now)

        self.ended = self._ask(
            [(self._merge_question(questions[place]), checked(questions[place])) for place in open_ones],
            MergeReply,
            took,
        )
        return results

    def _merge_question(self, question: MergeQuestion) -> Question:
        return Question(
            task="merge",
            prompt=self.merge_prompt.text,
            data=merge_data(self.library, question),
            bodies=question.bodies,
            expect_tokens=MERGE_ANSWER + MERGE_ROW * len(question.members),
        )

    # -- both

    def _base(self, task: str, question: Question) -> int:
        """Return the tokens of a question without any skill."""
        if task not in self._bases:
            self._bases[task] = self.consultation.size(question)
        return self._bases[task]

    def _ask(
        self,
        questions: Sequence[tuple[Question, Callable[[Reply], str | None]]],
        kind: type[_ReplyT],
        took: Callable[[int, _ReplyT | ModelError], None],
    ) -> _End | None:
        """
        Put *questions* to the model, several at a time, and hand over each answer as it comes, in this thread.

        Returns what ended it before all were answered, if anything did.
        """
        ends: list[_End] = []

        def one(question: Question, check: Callable[[Reply], str | None]) -> Reply:
            if ends:
                raise ends[0]
            if self.stop():
                raise StoppedHere
            return self.consultation.ask(question, check).value

        if not questions:
            return None
        with ThreadPoolExecutor(max_workers=self.consultation.workers, thread_name_prefix="umbrella") as pool:
            numbers: dict[Future[Reply], int] = {
                pool.submit(one, question, check): number for number, (question, check) in enumerate(questions)
            }
            for future in self.consultation.as_they_come(numbers, self.stop):
                try:
                    reply = future.result()
                except (EndpointError, BudgetExhaustedError, StoppedHere, StoppedError) as error:
                    ends.append(error)
                    continue
                except ModelError as error:
                    self.asked += 1
                    took(numbers[future], error)
                    continue
                self.asked += 1
                assert isinstance(reply, kind), "the wire has typed it"
                took(numbers[future], reply)
        return min(ends, key=_gravest, default=None)


def _gravest(error: _End) -> int:
    return 0 if isinstance(error, StoppedHere | StoppedError) else 1 if isinstance(error, EndpointError) else 2


def _bare(question: MergeQuestion) -> MergeQuestion:
    """Return *question* without members, to measure what it costs before any is shown."""
    return MergeQuestion(
        umbrella=question.umbrella, label="", existing=False, card=None, members=(), bodies=question.bodies
    )


def _tokens(value: object) -> int:
    return estimate_tokens(dumps(value, ensure_ascii=False, separators=(",", ":"))) + 1


_Kept = TypeVar("_Kept")


def _decoded(kept: bytes, kind: type[_Kept]) -> _Kept | None:
    try:
        return msgspec.json.decode(kept, type=kind)
    except msgspec.DecodeError:
        return None  # of an older curatord: it is asked again

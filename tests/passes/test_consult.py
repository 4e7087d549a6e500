"""One run's dealings with models: fallback once, budget, one repair, breakers, the record, many threads."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.budget import Spend
from curatord.core.endpoint_memory import BREAKER_WAIT
from curatord.core.model import ENDPOINT_KINDS, Bill, EndpointError, Fault, FaultKind, Reply, ReplyError, Usage
from curatord.core.replies import SurveyReply
from curatord.core.settings import LlmBudget, LlmPrice
from curatord.core.wire import Question, read_data_part
from curatord.errors import BudgetExhaustedError, ModelError, StoppedError
from curatord.passes.consult import Answer, Consultation, Exchange, breaker_of
from tests.fakes.model import HandClock, Memory, ScriptedModel, an_identity, ask_all

GOOD = {"clusters": [{"umbrella": "git", "members": ["a", "b"], "why": "same"}], "leave": []}
SECOND = an_identity(model="second", url="http://127.0.0.1:8/v1/chat/completions", fingerprint="2" * 16)
TOKEN = "ghp_" + "aB3dE6gH9" * 4


def a_question(number: int = 0, **changes: Any) -> Question:
    """Return a survey's question; *number* makes it another one."""
    data = {"library": "l", "skills": [{"name": f"skill-{number}"}], "candidates": []}
    return Question(**({"task": "survey", "prompt": "Sort.", "data": data} | changes))


def a_fault(kind: FaultKind, **more: Any) -> Fault:
    """Return a fault of *kind*."""
    return Fault(kind=kind, message=f"it was {kind.value}", **more)


def a_consultation(primary: Any, fallback: Any = None, **more: Any) -> Consultation:
    """Return a consultation with defaults."""
    values: dict[str, Any] = {"limits": LlmBudget(), "memory": Memory(), "clock": HandClock()}
    return Consultation(primary, fallback, **(values | more))


def unhurried(_: dict[str, Any]) -> Any:
    """Answer after a moment, so that others get a chance to be there too."""
    time.sleep(0.01)
    return GOOD


def test_an_answer_is_typed_and_recorded_whole() -> None:
    """One question, one exchange, the tokens of the bill."""
    model = ScriptedModel([GOOD], usd=0.01)
    consultation = a_consultation(model)
    answer = consultation.ask(a_question())
    record = consultation.record()

    assert isinstance(answer.value, SurveyReply)
    assert (json.dumps(GOOD), model.asked[0].sha256) == (answer.exchange.reply, answer.exchange.request_sha256)
    assert (*(record[k] for k in ("model", "provider", "api", "fallback_used")),) == (
        "scripted",
        "127.0.0.1",
        "openai-chat",
        False,
    )
    assert (record["calls"], record["usd"], record["errors"]) == (1, 0.01, [])
    assert record["tokens"] == record["exchanges"][0]["tokens"]
    assert {"task", "at", "request_sha256", "reply", "tokens"} <= set(record["exchanges"][0])
    assert json.dumps(record)


@pytest.mark.parametrize(
    "first",
    [
        "no JSON",
        '{"clusters": [',
        json.dumps(GOOD) * 2,
        "x" * 1_000_001,
        {"clusters": "none"},
        a_fault(FaultKind.CUT),
        a_fault(FaultKind.NO_ANSWER),
    ],
    ids=lambda v: str(v)[:30],
)
def test_an_unusable_reply_gets_one_repair(first: Any) -> None:
    """
    The repair holds the whole data again; its answer is used; both exchanges are recorded, the first with its error.
    """
    model = ScriptedModel([first, GOOD])
    consultation = a_consultation(model)
    answer = consultation.ask(a_question())
    asked = [read_data_part(request.messages[-1].text) for request in model.asked]

    assert isinstance(answer.value, SurveyReply)
    assert asked[0] == asked[1]
    assert [e.repair for e in consultation.exchanges] == [False, True]
    assert [e.fault is not None for e in consultation.exchanges] == [True, False]
    assert len(consultation.record()["errors"]) == 1


def test_a_second_unusable_reply_ends_the_question() -> None:
    """There is one repair, and no second one."""
    model = ScriptedModel(["no", "no again", GOOD])
    consultation = a_consultation(model, ScriptedModel([GOOD]))
    with pytest.raises(ReplyError) as caught:
        consultation.ask(a_question())

    assert caught.value.fault.kind == FaultKind.INVALID
    assert len(model.asked) == 2
    assert consultation.fallback_reason is None


def test_a_reply_that_names_what_is_not_there_gets_the_repair_with_the_reason() -> None:
    """The pass's own check speaks in the repair (a refusal, not an exception)."""
    model = ScriptedModel([GOOD, {"clusters": []}])
    answer = a_consultation(model).ask(
        a_question(), lambda r: "there is no skill 'b'" if isinstance(r, SurveyReply) and r.clusters else None
    )

    assert SurveyReply(clusters=()) == answer.value
    assert "there is no skill 'b'" in model.asked[1].messages[-1].text


def test_a_cut_answer_is_asked_again_with_more_room() -> None:
    """It met its limit, so the repair has a larger one, within the context."""
    model = ScriptedModel([a_fault(FaultKind.CUT), GOOD])
    a_consultation(model).ask(a_question())

    assert (model.asked[0].max_output_tokens, model.asked[1].max_output_tokens) == (None, 4096)


@pytest.mark.parametrize("kind", [FaultKind.PROMPT_CUT, FaultKind.TOO_LONG, FaultKind.BAD_REQUEST, FaultKind.REFUSED])
def test_what_a_repair_cannot_mend_is_not_repaired_and_does_not_fall_back(kind: FaultKind) -> None:
    """The same prompt would fare the same; another model would be asked for luck."""
    model, other = ScriptedModel([a_fault(kind)]), ScriptedModel([GOOD])
    with pytest.raises(ReplyError) as caught:
        a_consultation(model, other).ask(a_question())

    assert (kind, 1, 0) == (caught.value.fault.kind, len(model.asked), len(other.asked))


ENDPOINT = sorted(ENDPOINT_KINDS - {FaultKind.BREAKER})


@pytest.mark.parametrize("kind", ENDPOINT)
def test_an_endpoint_that_cannot_work_gives_its_seat_to_the_fallback_for_the_run(kind: FaultKind) -> None:
    """Once: the primary is not asked again, and the record says who answered and why."""
    model, other = ScriptedModel([a_fault(kind)]), ScriptedModel([GOOD, GOOD], identity=SECOND)
    consultation = a_consultation(model, other)
    consultation.ask(a_question(1))
    consultation.ask(a_question(2))
    record = consultation.record()

    assert (len(model.asked), len(other.asked)) == (1, 2)
    assert (record["model"], record["fallback_used"]) == ("second", True)
    assert kind.value in record["fallback_reason"]
    assert [kind.value] == [error["kind"] for error in record["errors"]]


def test_a_fallback_that_fails_too_ends_it() -> None:
    """There is no third."""
    model = ScriptedModel([a_fault(FaultKind.AUTH)])
    other = ScriptedModel([a_fault(FaultKind.AUTH)], identity=SECOND)
    consultation = a_consultation(model, other)
    for _ in range(3):
        with pytest.raises(EndpointError):
            consultation.ask(a_question())

    assert (len(model.asked), len(other.asked)) == (1, 1)


def test_a_hopeless_endpoint_is_asked_once_a_run() -> None:
    """A refused key is refused for every question."""
    model = ScriptedModel([a_fault(FaultKind.AUTH)])
    outcomes = ask_all(a_consultation(model), (a_question(n) for n in range(5)))

    assert sum(isinstance(o, EndpointError) for o in outcomes) == 5
    assert len(model.asked) == 1


def test_an_endpoint_that_stumbles_once_is_asked_on() -> None:
    """One overload loses one question; two in a row end the pass."""
    server = a_fault(FaultKind.SERVER)
    model = ScriptedModel([server, GOOD, server, server, GOOD])
    outcomes = ask_all(a_consultation(model), (a_question(n) for n in range(6)))

    assert [isinstance(o, Answer) for o in outcomes] == [False, True, False, False, False, False]
    assert len(model.asked) == 4


def test_a_stop_ends_what_a_silent_model_is_waited_for() -> None:
    """It is asked in the caller's thread, which is the daemon's worker; what is open is ended once, by us."""
    ended = threading.Event()
    asked_in: set[int] = set()
    ends: list[bool] = []

    def silent(_: dict[str, Any]) -> Any:
        assert ended.wait(30)
        raise StoppedError("asked to stop while a model was waited for", signal=15)

    def stop() -> bool:
        asked_in.add(threading.get_ident())
        return True

    def end() -> None:
        ends.append(True)
        ended.set()

    consultation = a_consultation(ScriptedModel([silent, silent]), workers=2, end=end)
    with pytest.raises(StoppedError):
        ask_all(consultation, [a_question(1), a_question(2)], stop=stop)

    assert {threading.get_ident()} == asked_in
    assert [True] == ends


@pytest.mark.parametrize("kind", [FaultKind.AUTH, FaultKind.PAYMENT, FaultKind.MODEL_UNKNOWN])
def test_a_breaker_stays_open_for_hours_and_over_restarts(kind: FaultKind) -> None:
    """Later runs send nothing (bugs B029), until the wait is over."""
    memory, clock = Memory(), HandClock()
    model = ScriptedModel([a_fault(kind)], rule=lambda _: GOOD)
    for _ in range(60):
        with pytest.raises(EndpointError) as caught:
            a_consultation(model, memory=memory, clock=clock).ask(a_question())
        clock.move(10)

    assert caught.value.fault.kind == FaultKind.BREAKER
    assert kind.value in str(caught.value)
    assert len(model.asked) == 1

    clock.move(BREAKER_WAIT.total_seconds())
    a_consultation(model, memory=memory, clock=clock).ask(a_question())
    assert breaker_of(memory, model.identity()) is None


def test_a_new_key_or_a_person_closes_a_breaker_at_once() -> None:
    """The fingerprint holds endpoint, model and key; `curatord run` is a person."""
    memory, clock = Memory(), HandClock()
    with pytest.raises(EndpointError):
        a_consultation(ScriptedModel([a_fault(FaultKind.AUTH)]), memory=memory, clock=clock).ask(a_question())
    fresh = ScriptedModel([GOOD], identity=an_identity(fingerprint="0" * 16))
    again = ScriptedModel([GOOD])

    assert a_consultation(fresh, memory=Memory(), clock=clock).ask(a_question())
    assert a_consultation(again, memory=memory, clock=clock, bypass_breaker=True).ask(a_question())


def test_a_deferral_is_kept_until_its_date() -> None:
    """The server said when; nobody asks before."""
    memory, clock = Memory(), HandClock()
    fault = a_fault(FaultKind.DEFERRED, until=clock.now() + timedelta(days=14))
    model = ScriptedModel([fault], rule=lambda _: GOOD)
    with pytest.raises(EndpointError):
        a_consultation(model, memory=memory, clock=clock).ask(a_question())
    clock.move(13 * 86_400)
    with pytest.raises(EndpointError, match="2026-03-15"):
        a_consultation(model, memory=memory, clock=clock).ask(a_question())
    clock.move(2 * 86_400)

    assert a_consultation(model, memory=memory, clock=clock).ask(a_question())


def test_a_breaker_of_the_primary_leaves_the_fallback() -> None:
    """Known to be refused, it is not even tried."""
    memory = Memory()
    model, other = ScriptedModel([a_fault(FaultKind.AUTH)]), ScriptedModel(rule=lambda _: GOOD, identity=SECOND)
    for _ in range(2):
        consultation = a_consultation(model, other, memory=memory)
        consultation.ask(a_question())

    assert (len(model.asked), len(other.asked)) == (1, 2)
    assert "breaker open" in str(consultation.fallback_reason)


def test_an_endpoint_that_was_not_even_asked_is_in_the_record() -> None:
    """A run whose model could not be asked does not look like one with nothing to do (bugs B014)."""
    memory = Memory()
    for _ in range(2):
        consultation = a_consultation(ScriptedModel([a_fault(FaultKind.AUTH)]), memory=memory)
        outcomes = ask_all(consultation, [a_question(1), a_question(2)])
    record = consultation.record()

    assert [True, True] == [isinstance(o, EndpointError) for o in outcomes]
    assert (0, ["breaker open"]) == (record["calls"], [error["kind"] for error in record["errors"]])


LIMITS = [
    ("calls_per_run", LlmBudget(calls_per_run=3), {}),
    ("tokens_per_run", LlmBudget(tokens_per_run=4_500), {}),
    ("tokens_per_day", LlmBudget(tokens_per_day=14_500), {"spent_today": Spend(usage=Usage(input_tokens=10_000))}),
    ("usd_per_run", LlmBudget(usd_per_run=0.05), {}),
    ("usd_per_day", LlmBudget(usd_per_day=0.15), {"spent_today": Spend(usd=0.1)}),
]


@pytest.mark.parametrize(("limit", "limits", "more"), LIMITS, ids=[name for name, _, _ in LIMITS])
def test_each_limit_ends_the_pass_before_it_is_passed(limit: str, limits: LlmBudget, more: dict[str, Any]) -> None:
    """The call that would pass it is not made, and the record names it."""
    usage = Usage(input_tokens=1000, output_tokens=200)
    price = LlmPrice(input=10.0, cached_input=1.0, output=20.0)
    reply = Reply(text=json.dumps(GOOD), bill=Bill(usage=usage, usd=0.014, requests=1))
    model = ScriptedModel(rule=lambda _: reply, identity=an_identity(price=price))
    consultation = a_consultation(model, limits=limits, **more)
    outcomes = ask_all(consultation, (a_question(n) for n in range(10)))
    out = [o for o in outcomes if isinstance(o, BudgetExhaustedError)]
    spent = consultation.spent

    assert 0 < len(model.asked) < 10
    assert {limit} == {error.limit for error in out}
    assert [limit] == [error["limit"] for error in consultation.record()["errors"]]
    assert spent.calls <= limits.calls_per_run
    assert spent.usage.tokens <= limits.tokens_per_run
    assert spent.usd <= limits.usd_per_run


def test_a_budget_that_went_into_the_question_itself_is_known() -> None:
    """Its first reply could not be used and took all there was: the repair was not to be had, and says why."""
    reply = Reply(text="no JSON", bill=Bill(usage=Usage(input_tokens=1000, output_tokens=9_000), requests=1))
    consultation = a_consultation(ScriptedModel([reply]), limits=LlmBudget(tokens_per_run=10_000))
    ends = ask_all(consultation, [a_question(1), a_question(2)])

    assert all(isinstance(end, BudgetExhaustedError) for end in ends)
    assert [True, False] == [bool(getattr(end, "replied", "")) for end in ends]
    assert [False, False] == [getattr(end, "alone", None) for end in ends]


def test_a_question_that_is_more_than_all_of_a_limit_is_known() -> None:
    """No other time is a better one for it."""
    consultation = a_consultation(ScriptedModel([GOOD]), limits=LlmBudget(tokens_per_run=10))
    with pytest.raises(BudgetExhaustedError) as caught:
        consultation.ask(a_question())

    assert (True, "tokens_per_run") == (caught.value.alone, caught.value.limit)


def test_wall_time_ends_the_pass_and_is_the_deadline() -> None:
    """Counted from the run's first call."""
    clock = HandClock()

    def slow(_: dict[str, Any]) -> Any:
        clock.move(40)
        return GOOD

    model = ScriptedModel(rule=slow)
    consultation = a_consultation(model, clock=clock, limits=LlmBudget(wall_per_run=timedelta(seconds=60)))
    outcomes = ask_all(consultation, (a_question(n) for n in range(4)))

    assert [isinstance(o, Answer) for o in outcomes] == [True, True, False, False]
    assert {1060.0} == {deadline for deadline, _ in model.limits}


def test_a_new_day_has_its_own_budget() -> None:
    """A run over midnight does not charge the new day with the old one's tokens."""
    clock = HandClock(datetime(2026, 3, 1, 23, 59, tzinfo=UTC))
    limits = LlmBudget(tokens_per_day=10_000)
    consultation = a_consultation(
        ScriptedModel(rule=lambda _: GOOD),
        clock=clock,
        limits=limits,
        spent_today=Spend(usage=Usage(input_tokens=9_900)),
    )
    with pytest.raises(BudgetExhaustedError):
        consultation.ask(a_question())
    clock.move(120)

    assert consultation.ask(a_question())


def test_an_unknown_price_is_said_to_be_unknown() -> None:
    """A cost that nobody told is null, and never counts as nothing."""
    consultation = a_consultation(ScriptedModel([GOOD]))
    consultation.ask(a_question())
    record = consultation.record()

    assert (record["usd"], record["budget_left"]["usd_known"]) == (None, False)


def test_failed_calls_are_booked_too() -> None:
    """Requests that failed count against the calls, tokens of useless replies against the tokens."""
    booked: list[Exchange] = []
    cut = ReplyError(a_fault(FaultKind.CUT), bill=Bill(usage=Usage(input_tokens=50, output_tokens=7), requests=2))

    class Cutting(ScriptedModel):
        def reply(self, *_: Any, **__: Any) -> Reply:
            raise cut

    consultation = a_consultation(Cutting(), book=booked.append)
    with pytest.raises(ReplyError):
        consultation.ask(a_question())

    assert (consultation.spent.calls, consultation.spent.usage.tokens) == (4, 114)
    assert [e.fault.kind for e in booked if e.fault] == [FaultKind.CUT, FaultKind.CUT]


def test_what_does_not_fit_is_not_sent() -> None:
    """The context is known before anything is spent; passes can ask for the room there is."""
    model = ScriptedModel([])
    consultation = a_consultation(model)
    big = a_question(data={"library": "l", "skills": [{"name": "x" * 40_000}], "candidates": []})
    with pytest.raises(ReplyError, match="fit beside the answer") as caught:
        consultation.ask(big)

    assert (caught.value.fault.kind, consultation.spent.calls) == (FaultKind.TOO_LONG, 0)
    assert consultation.size(big) > consultation.room() == 8192 - 2048 - 300


def test_replies_are_recorded_without_secrets() -> None:
    """Promise 12, inward, also for what goes into run.json."""
    consultation = a_consultation(
        ScriptedModel([f"I saw {TOKEN}", {"clusters": [], "leave": [{"name": TOKEN, "why": ""}]}])
    )
    answer = consultation.ask(a_question())

    assert TOKEN not in json.dumps(consultation.record())
    assert TOKEN not in repr(answer.value)


def test_answers_come_in_the_order_of_their_questions_from_bounded_threads() -> None:
    """Parallel, and never more at once than allowed (bugs B028)."""

    def slow(data: dict[str, Any]) -> Any:
        time.sleep(0.02 if data["skills"][0]["name"].endswith("1") else 0.005)
        return {"clusters": [{"umbrella": data["skills"][0]["name"], "members": []}]}

    model = ScriptedModel(rule=slow)
    outcomes = ask_all(a_consultation(model, workers=3), (a_question(n) for n in range(12)))

    names = [
        o.value.clusters[0].umbrella for o in outcomes if isinstance(o, Answer) and isinstance(o.value, SurveyReply)
    ]
    assert [f"skill-{n}" for n in range(12)] == names
    assert model.most_open == 3


def test_threads_of_the_caller_share_the_same_bound() -> None:
    """Also whoever brings threads of his own waits for a seat."""
    model = ScriptedModel(rule=unhurried)
    consultation = a_consultation(model, workers=1)
    threads = [threading.Thread(target=consultation.ask, args=(a_question(n),)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (model.most_open, consultation.spent.calls) == (1, 5)


def test_parallel_calls_do_not_pass_a_limit_together() -> None:
    """Open calls count with their estimates: ten at once cannot all be the last one."""
    model = ScriptedModel(rule=unhurried)
    consultation = a_consultation(model, workers=10, limits=LlmBudget(calls_per_run=4, tokens_per_run=10**9))
    ask_all(consultation, (a_question(n) for n in range(10)))

    assert 4 == consultation.spent.calls == len(model.asked)


steps = st.sampled_from(
    [
        "no",
        "",
        '{"clusters": [',
        GOOD,
        {"clusters": []},
        *(a_fault(kind) for kind in FaultKind if kind is not FaultKind.BREAKER),
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(steps, max_size=12), st.lists(steps, max_size=6), st.integers(1, 3))
def test_whatever_models_do_the_books_agree(first: list[Any], second: list[Any], workers: int) -> None:
    """Every question ends in an answer or an error of ours, every request is recorded, and the sums are right."""
    model, other = (
        ScriptedModel(first, rule=lambda _: GOOD),
        ScriptedModel(second, rule=lambda _: GOOD, identity=SECOND),
    )
    consultation = a_consultation(model, other, workers=workers)
    outcomes = ask_all(consultation, (a_question(n) for n in range(6)))
    record = consultation.record()

    assert all(isinstance(o, Answer | ModelError) for o in outcomes)
    assert len(model.asked) + len(other.asked) == len(record["exchanges"]) == record["calls"]
    assert sum(e["tokens"]["output"] for e in record["exchanges"]) == record["tokens"]["output"]
    assert 0 == consultation._state.budget.open_calls == consultation._state.budget.open_tokens

"""
All that one run asks of models: primary and fallback, one budget, one record.

A `Consultation` lives for one run. `ask` takes a question to a typed answer:

1. The question becomes a redacted request. What does not fit the model's context is refused before it costs anything.
2. Primary or fallback: the fallback takes over once, for the rest of the run, when the primary's *endpoint* cannot
   work (key, account, address, network, load, a breaker that holds). A cut, empty or invalid answer, a prompt that
   is too long and an exhausted budget are no reason: another model would be asked for luck.
3. The budget is checked with an estimate before each request, and takes the bill afterwards.
4. A reply that cannot be used, or that *check* finds to name what is not there, gets one repair; then the question
   failed.
5. Every exchange is recorded whole, failed ones too.

Without a fallback, an endpoint that certainly cannot work (and one that failed twice in a row after all its retries)
is not asked again by this run: the rest fails at once, for the same reason.

May be used from several threads; at most *workers* requests are open at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import datetime
from typing import Any, TypeVar

from curatord.core.budget import Budget, Estimate, Spend, estimate_tokens, price_of
from curatord.core.cheap import dataclass, field, replace
from curatord.core.endpoint import Identity
from curatord.core.endpoint_memory import Breaker
from curatord.core.extract import Extracted
from curatord.core.model import (
    TRANSIENT_KINDS,
    Bill,
    EndpointError,
    Fault,
    FaultKind,
    ReplyError,
    Request,
    Usage,
)
from curatord.core.replies import Reply
from curatord.core.settings import LlmBudget
from curatord.core.wire import Question, first_request, read_reply, redacted_reply, repair_request
from curatord.errors import BudgetExhaustedError
from curatord.ports.clock import Clock
from curatord.ports.model import EndpointMemory, Model

__all__ = ["Answer", "Consultation", "Exchange", "breaker_of"]

MAX_REQUESTS = 12  # what one question may send: three tries, and every step down a server can refuse
GIVE_UP_AFTER = 2
ASK_STOP_EVERY_S = 0.25
REPAIR_TOKENS = 300  # what a repair adds to a request
REPAIRABLE = frozenset({FaultKind.CUT, FaultKind.NO_ANSWER, FaultKind.INVALID, FaultKind.TOO_LARGE})
LONGER = frozenset({FaultKind.CUT, FaultKind.NO_ANSWER})

_T = TypeVar("_T")
Check = Callable[[Reply], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """
    One request to a model and what came of it. *reply* is the whole text, redacted; *fault* None where it was used.
    """

    task: str
    at: datetime
    request_sha256: str
    reply: str
    bill: Bill
    model: str
    provider: str
    role: str
    repair: bool = False
    fault: Fault | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return what `run.json` holds of it."""
        usage = self.bill.usage
        row: dict[str, Any] = {
            "task": self.task,
            "at": self.at.isoformat(),
            "request_sha256": self.request_sha256,
            "reply": self.reply,
            "tokens": _tokens(usage),
            "usd": self.bill.usd,
            "requests": self.bill.requests,
            "model": self.model,
            "role": self.role,
            "repair": self.repair,
        }
        if self.fault is not None:
            row["error"] = self.fault.as_dict()
        if self.notes:
            row["notes"] = list(self.notes)
        return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A usable answer: its typed *value*, and the exchange it came in."""

    question: Question
    value: Reply
    exchange: Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seat:
    """Who is asked: the model, which one it is, and in which role."""

    role: str
    model: Model
    identity: Identity


@dataclass(slots=True, kw_only=True)
class _State:
    """What changes during a run, under one lock."""

    budget: Budget
    day: str
    started: float | None = None
    fallback_reason: str | None = None
    given_up: EndpointError | None = None
    failures_in_a_row: int = 0
    exchanges: list[Exchange] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    seat: Identity | None = None


class Consultation:
    """
    One run's dealings with models.

    Args:
        primary: Asked first.
        fallback: Asked for the rest of the run once the primary's endpoint cannot work; None: nobody.
        limits: The budget.
        spent_today: What this UTC day has spent before the run, from the store.
        memory: Where breakers are kept.
        clock: The time.
        workers: Requests that may be open at a time.
        book: Told of every exchange as it is over, for the store; called from whichever thread had it.
        bypass_breaker: A person asked for this run, so an endpoint that failed before is tried again at once.
        end: Ends all exchanges that are open, now and later; from any thread.
    """

    def __init__(
        self,
        primary: Model,
        fallback: Model | None = None,
        *,
        limits: LlmBudget,
        memory: EndpointMemory,
        clock: Clock,
        spent_today: Spend | None = None,
        workers: int = 1,
        book: Callable[[Exchange], None] | None = None,
        bypass_breaker: bool = False,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self._primary = primary
        self._fallback = fallback
        self._memory = memory
        self._clock = clock
        self._workers = max(1, workers)
        self._slots = threading.BoundedSemaphore(self._workers)
        self._book = book
        self._bypass_breaker = bypass_breaker
        self._end = end
        self._lock = threading.Lock()
        budget = Budget(limits=limits, day=spent_today or Spend())
        self._state = _State(budget=budget, day=_day(clock.now()))

    # Asking.

    def ask(self, question: Question, check: Check | None = None) -> Answer:
        """
        Return the answer to *question*.

        Args:
            question: What is asked.
            check: Finds in a well-formed reply what cannot be (a name that does not exist), as a sentence for the
            repair.

        Raises:
            EndpointError: No endpoint can work now.
            ReplyError: No usable answer, also after the repair; or the question does not fit.
            BudgetExhaustedError: The next request would pass a limit.
            StoppedError: We were asked to stop.
        """
        with self._slots:
            request = first_request(question)
            first = self._exchange(question, request, check, repair=False)
            if isinstance(first, Answer):
                return first
            longer = first.fault.kind in LONGER
            again = repair_request(
                request, first.fault.message, max_output_tokens=self._more_room(request) if longer else None
            )
            try:
                second = self._exchange(question, again, check, repair=True)
            except BudgetExhaustedError as error:
                error.replied = str(first)  # the budget went into this very question
                raise
            if isinstance(second, Answer):
                return second
            raise second

    def as_they_come(self, asked: Iterable[Future[_T]], stop: Callable[[], bool]) -> Iterator[Future[_T]]:
        """
        Yield each of *asked*, which are questions at work in threads, once it has ended.

        A slow model may be silent for minutes: *stop* is asked meanwhile, here, and once it is true all exchanges that
        are open are ended, and none begins any more. Their questions then end with `StoppedError`.
        """
        left = set(asked)
        ended = False
        while left:
            done, left = wait(left, timeout=ASK_STOP_EVERY_S, return_when=FIRST_COMPLETED)
            yield from done
            if not ended and stop():
                ended = True
                self._end()

    def identity(self) -> Identity:
        """
        Return who would be asked now; remembered answers are its own.

        Raises:
            EndpointError: No endpoint can be told.
        """
        return self._seat().identity

    @property
    def gave_up(self) -> bool:
        """Whether nobody is asked any more in this run, since no endpoint can work."""
        return self._state.given_up is not None

    @property
    def workers(self) -> int:
        """How many requests may be open at a time."""
        return self._workers

    def room(self) -> int:
        """
        Return how many tokens a whole request may have, so that the answer fits beside it; passes shrink their data
        to this.

        Raises:
            EndpointError: No endpoint can be told.
        """
        return _room(self._seat().identity)

    def size(self, question: Question) -> int:
        """Return about how many tokens the request for *question* has."""
        return estimate_tokens(first_request(question).text)

    # One exchange.

    def _exchange(
        self, question: Question, request: Request, check: Check | None, *, repair: bool
    ) -> Answer | ReplyError:
        """Return the answer, or the error that a repair may mend; raise the others."""
        while True:
            seat = self._seat()
            self._fits(request, seat.identity, repair=repair)
            estimate = self._estimate(question, request, seat.identity)
            deadline, most = self._reserve(estimate)
            bill = Bill()
            try:
                reply = seat.model.reply(request, deadline=deadline, max_requests=most)
                bill = reply.bill
            except EndpointError as error:
                bill = error.bill
                self._failed(seat, request, error, repair=repair)
                continue  # the fallback's turn, or `_seat` raises
            except ReplyError as error:
                bill = error.bill
                self._note(seat, request, error.text, bill, repair=repair, fault=error.fault)
                if error.fault.kind in REPAIRABLE:
                    return error
                raise
            finally:
                self._settle(estimate, bill)
            self._works(seat)
            return self._read(question, request, check, seat, reply.text, bill, repair=repair, notes=reply.notes)

    def _read(
        self,
        question: Question,
        request: Request,
        check: Check | None,
        seat: _Seat,
        text: str,
        bill: Bill,
        *,
        repair: bool,
        notes: tuple[str, ...],
    ) -> Answer | ReplyError:
        """Return what *text* answers, or the error that says why it answers nothing."""
        read = read_reply(question, text)
        if isinstance(read, Extracted):
            reason = check(read.value) if check is not None else None
            if reason is None:
                exchange = self._note(seat, request, text, bill, repair=repair, notes=notes)
                return Answer(question=question, value=read.value, exchange=exchange)
            fault = Fault(kind=FaultKind.INVALID, message=reason)
        else:
            kind = FaultKind.CUT if read.cut else FaultKind.TOO_LARGE if read.too_large else FaultKind.INVALID
            fault = Fault(kind=kind, message=read.reason)
        self._note(seat, request, text, bill, repair=repair, fault=fault, notes=notes)
        return ReplyError(fault, text=redacted_reply(text), bill=bill)

    def _seat(self) -> _Seat:
        """Return who is to be asked now, the fallback where the primary cannot be; raise where nobody can."""
        with self._lock:
            if self._state.given_up is not None:
                raise self._state.given_up
            on_fallback = self._state.fallback_reason is not None
        if not on_fallback:
            try:
                return self._take("primary", self._primary)
            except EndpointError as error:
                if not self._switch(error):
                    raise
        assert self._fallback is not None
        try:
            return self._take("fallback", self._fallback)
        except EndpointError as error:
            self._give_up("fallback", error)
            raise

    def _take(self, role: str, model: Model) -> _Seat:
        identity = model.identity()
        breaker = None if self._bypass_breaker else breaker_of(self._memory, identity)
        now = self._clock.now()
        if breaker is not None and breaker.holds(now, identity.fingerprint):
            since, until = (f"{when:%Y-%m-%d %H:%M} UTC" for when in (breaker.opened_at, breaker.until))
            message = f"{breaker.kind.value} since {since}, not asked before {until} ({breaker.message})"
            raise EndpointError(
                Fault(kind=FaultKind.BREAKER, message=message, until=breaker.until),
                hint="a change of the configuration or key, and a run that a person starts, ask at once",
            )
        with self._lock:
            self._state.seat = identity
        return _Seat(role=role, model=model, identity=identity)

    def _switch(self, error: EndpointError) -> bool:
        """Give the primary's seat to the fallback, if there is one; else give up. Return whether there is one."""
        if self._fallback is None:
            self._give_up("primary", error)
            return False
        with self._lock:
            if self._state.fallback_reason is None:
                self._state.fallback_reason = str(error)
                self._state.failures_in_a_row = 0
                self._state.errors.append({"role": "primary", "task": None, **error.fault.as_dict()})
        return True

    def _give_up(self, role: str, error: EndpointError) -> None:
        """Ask nobody any more, because of what kept *role* from being asked at all."""
        with self._lock:
            if self._state.given_up is None:
                self._state.given_up = error
                self._state.errors.append({"role": role, "task": None, **error.fault.as_dict()})

    def _failed(self, seat: _Seat, request: Request, error: EndpointError, *, repair: bool) -> None:
        """Record that an endpoint failed, and decide who is asked next; raise where the question ends here."""
        self._note(seat, request, "", error.bill, repair=repair, fault=error.fault)
        breaker = Breaker.after(error.fault, seat.identity.fingerprint, self._clock.now())
        if breaker is not None:
            self._memory.keep(_breaker_key(seat.identity), breaker.as_dict())
        if seat.role == "primary" and self._fallback is not None:
            with self._lock:
                if self._state.fallback_reason is None:
                    self._state.fallback_reason = str(error)
            return
        with self._lock:
            self._state.failures_in_a_row += 1
            hopeless = error.fault.kind not in TRANSIENT_KINDS or self._state.failures_in_a_row >= GIVE_UP_AFTER
            if hopeless and self._state.given_up is None:
                self._state.given_up = error
        raise error

    def _works(self, seat: _Seat) -> None:
        """Note that an endpoint answered: what was held against it is over."""
        with self._lock:
            self._state.failures_in_a_row = 0
        if breaker_of(self._memory, seat.identity) is not None:
            self._memory.keep(_breaker_key(seat.identity), None)

    @staticmethod
    def _fits(request: Request, identity: Identity, *, repair: bool) -> None:
        tokens = estimate_tokens(request.text)
        room = _room(identity) + (REPAIR_TOKENS if repair else 0)
        if tokens > room:
            message = f"the request has about {tokens:,} tokens, and {room:,} fit beside the answer"
            raise ReplyError(Fault(kind=FaultKind.TOO_LONG, message=message))

    def _more_room(self, request: Request) -> int | None:
        """Return a larger limit for an answer that met its own, as far as the context has room."""
        identity = self._state.seat
        if identity is None:
            return None
        free = identity.context_tokens - estimate_tokens(request.text) - 256
        return max(identity.output_limit, min(2 * identity.output_limit, free))

    # The budget and the record.

    def _estimate(self, question: Question, request: Request, identity: Identity) -> Estimate:
        output = question.expect_tokens or identity.output_limit // 2
        sent = estimate_tokens(request.text)
        usd = price_of(Usage(input_tokens=sent, output_tokens=output), identity.price)
        return Estimate(tokens=sent + output, usd=usd)

    def _reserve(self, estimate: Estimate) -> tuple[float, int]:
        """Take *estimate* from the budget; return the deadline and the requests that may be sent, or raise."""
        with self._lock:
            state = self._state
            today = _day(self._clock.now())
            if today != state.day:  # the run went over midnight; what it spent until then was yesterday's
                state.day = today
                state.budget = replace(state.budget, day=Spend())
            if state.started is None:
                state.started = self._clock.monotonic()
            elapsed = self._clock.monotonic() - state.started
            out = state.budget.check(estimate, elapsed_s=elapsed)
            if out is not None:
                if not any(error.get("limit") == out.limit for error in state.errors):
                    row = {"role": None, "task": None, "kind": "budget", "limit": out.limit, "message": out.reason}
                    state.errors.append(row)
                raise BudgetExhaustedError(
                    f"{out.limit}: {out.reason}",
                    limit=out.limit,
                    hint=f"raise llm.budget.{out.limit}, or wait: what was done so far stays",
                    alone=out.alone,
                )
            most = min(MAX_REQUESTS, state.budget.requests_left)
            state.budget = state.budget.reserve(estimate)
            return state.started + state.budget.limits.wall_per_run.total_seconds(), most

    def _settle(self, estimate: Estimate, bill: Bill) -> None:
        with self._lock:
            self._state.budget = self._state.budget.settle(estimate, bill)

    def _note(
        self,
        seat: _Seat,
        request: Request,
        text: str,
        bill: Bill,
        *,
        repair: bool,
        fault: Fault | None = None,
        notes: tuple[str, ...] = (),
    ) -> Exchange:
        exchange = Exchange(
            task=request.task,
            at=self._clock.now(),
            request_sha256=request.sha256,
            reply=redacted_reply(text),
            bill=bill,
            model=seat.identity.model,
            provider=seat.identity.provider,
            role=seat.role,
            repair=repair,
            fault=fault,
            notes=notes,
        )
        with self._lock:
            self._state.exchanges.append(exchange)
            if fault is not None:
                self._state.errors.append({"role": seat.role, "task": request.task, **fault.as_dict()})
        if self._book is not None:
            self._book(exchange)
        return exchange

    @property
    def spent(self) -> Spend:
        """What this run has spent so far."""
        return self._state.budget.run

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Every exchange so far, in the order in which they ended."""
        with self._lock:
            return tuple(self._state.exchanges)

    @property
    def fallback_reason(self) -> str | None:
        """Why the fallback has taken over, or None."""
        return self._state.fallback_reason

    def record(self) -> Mapping[str, Any]:
        """Return the `llm` part of `run.json`, but for the hashes of the prompts."""
        with self._lock:
            state = self._state
            seat, spend = state.seat, state.budget.run
            return {
                "model": seat.model if seat else None,
                "provider": seat.provider if seat else None,
                "api": seat.api if seat else None,
                "fallback_used": state.fallback_reason is not None,
                "fallback_reason": state.fallback_reason,
                "calls": spend.calls,
                "tokens": _tokens(spend.usage),
                "usd": None if spend.known_usd is None else round(spend.known_usd, 6),
                "usd_at_least": round(spend.usd, 6),
                "budget_left": state.budget.left(),
                "errors": list(state.errors),
                "exchanges": [exchange.as_dict() for exchange in state.exchanges],
            }


def breaker_of(memory: EndpointMemory, identity: Identity) -> Breaker | None:
    """Return the breaker that is remembered for *identity*'s endpoint and model, open or not; `status` shows it."""
    row = memory.recall(_breaker_key(identity))
    return Breaker.from_dict(row) if row else None


def _room(identity: Identity) -> int:
    return identity.context_tokens - identity.output_limit - REPAIR_TOKENS


def _breaker_key(identity: Identity) -> str:
    return f"breaker {identity.key}"


def _day(now: datetime) -> str:
    return f"{now:%Y-%m-%d}"


def _tokens(usage: Usage) -> dict[str, Any]:
    row: dict[str, Any] = {"input": usage.input_tokens, "cached": usage.cached_tokens, "output": usage.output_tokens}
    return row | ({"estimated": True} if usage.estimated else {})

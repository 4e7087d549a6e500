"""Doubles for whatever asks a model: a scripted model, a memory, a clock that is moved by hand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from curatord.core.budget import estimate_tokens
from curatord.core.endpoint import Identity
from curatord.core.model import Bill, EndpointError, Fault, FaultKind, Reply, ReplyError, Request, Usage
from curatord.core.wire import Question, read_data_part
from curatord.errors import ModelError
from curatord.passes.consult import Answer, Consultation

__all__ = ["HandClock", "Memory", "ScriptedModel", "an_identity"]

Step = str | Mapping[str, Any] | Fault | Reply | Callable[[dict[str, Any]], Any]


class HandClock:
    """A `Clock` that stands until it is moved; `sleep` moves it and notes how far."""

    def __init__(self, now: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)) -> None:
        self._now = now
        self._seconds = 1000.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        """Return the present."""
        return self._now

    def monotonic(self) -> float:
        """Return its seconds."""
        return self._seconds

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)
        self._seconds += seconds

    def sleep(self, seconds: float) -> None:
        """Pass *seconds* at once."""
        self.slept.append(seconds)
        self.move(seconds)


class Memory:
    """An `EndpointMemory` in a dict, kept as JSON text so that what cannot be stored fails here too."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}

    def recall(self, key: str) -> Mapping[str, Any] | None:
        """Return what was kept."""
        row = self.rows.get(key)
        return None if row is None else dict(json.loads(row))

    def keep(self, key: str, value: Mapping[str, Any] | None) -> None:
        """Keep or forget."""
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = json.dumps(value)


def an_identity(**changes: Any) -> Identity:
    """Return an identity with defaults."""
    values: dict[str, Any] = {
        "api": "openai-chat",
        "provider": "127.0.0.1",
        "url": "http://127.0.0.1:9/v1/chat/completions",
        "model": "scripted",
        "fingerprint": "f" * 16,
        "context_tokens": 8192,
        "output_limit": 2048,
        "loopback": True,
    }
    return Identity(**(values | changes))


class ScriptedModel:
    """
    A `Model` that answers from a queue and remembers what it was asked.

    A step is the reply's text, an object that becomes JSON, a `Fault` that is raised, a whole `Reply`, or a function
    of the data part that gives one of these. When the queue is empty, *rule* answers; without one that is a failed
    test.
    """

    def __init__(
        self,
        steps: Iterable[Step] = (),
        *,
        rule: Callable[[dict[str, Any]], Any] | None = None,
        identity: Identity | None = None,
        usd: float | None = None,
    ) -> None:
        self._steps: list[Any] = list(steps)
        self._rule = rule
        self._identity = identity or an_identity()
        self._usd = usd
        self._lock = threading.Lock()
        self.asked: list[Request] = []
        self.limits: list[tuple[float | None, int]] = []
        self.open = 0
        self.most_open = 0

    def identity(self) -> Identity:
        """Return who it is; see the port."""
        return self._identity

    def reply(self, request: Request, *, deadline: float | None = None, max_requests: int = 12) -> Reply:
        """Return the next step; see the port."""
        with self._lock:
            self.asked.append(request)
            self.limits.append((deadline, max_requests))
            self.open += 1
            self.most_open = max(self.most_open, self.open)
            step: Any = self._steps.pop(0) if self._steps else self._rule
        try:
            return self._answer(request, step)
        finally:
            with self._lock:
                self.open -= 1

    def _answer(self, request: Request, step: Any) -> Reply:
        if step is None:
            raise AssertionError(f"the script has no answer left for {request.task}")
        if callable(step):
            step = step(read_data_part(request.messages[-1].text))
        if isinstance(step, Reply):
            return step
        if isinstance(step, Fault):
            bill = Bill(requests=1)
            if step.kind in {FaultKind.CUT, FaultKind.NO_ANSWER, FaultKind.PROMPT_CUT, FaultKind.REFUSED}:
                raise ReplyError(step, bill=bill)
            if step.kind in {FaultKind.TOO_LONG, FaultKind.BAD_REQUEST}:
                raise ReplyError(step, bill=bill)
            raise EndpointError(step, bill=bill)
        text = step if isinstance(step, str) else json.dumps(step)
        usage = Usage(input_tokens=estimate_tokens(request.text), output_tokens=estimate_tokens(text))
        return Reply(text=text, bill=Bill(usage=usage, usd=self._usd, requests=1), model=self._identity.model)


def ask_all(
    consultation: Consultation, questions: Iterable[Question], *, stop: Callable[[], bool] = lambda: False
) -> list[Answer | ModelError]:
    """Return for each of *questions* its answer or why there is none; asked in parallel, as the passes do it."""

    def one(question: Question) -> Answer | ModelError:
        try:
            return consultation.ask(question)
        except ModelError as error:
            return error

    with ThreadPoolExecutor(max_workers=consultation.workers, thread_name_prefix="model") as pool:
        asked = [pool.submit(one, question) for question in questions]
        for _ in consultation.as_they_come(asked, stop):
            pass
        return [future.result() for future in asked]

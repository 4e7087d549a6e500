"""
A model behind HTTP: what all endpoints have in common, whatever dialect they speak.

One `reply` is one question to one endpoint. It may take several HTTP requests: stepping down from a form that the
server refuses (`json_schema`, `max_tokens`, a temperature; remembered per server and model, and no failure of the
endpoint), and tries again after errors that pass:

- Transient faults are tried three times in all (a silence twice, it was long enough), with backoff and jitter, never
  sooner than `Retry-After` says and not at all when that is beyond 15 minutes. Permanent ones are not tried again.
- An answer counts only with its terminal marker. `length` is a cut reply, whatever the text looks like.
- A server that read far fewer tokens than were sent has cut the prompt, and its answer is not used.
- The key is read at each call, lives in a `Secret`, and is taken out of whatever the server says.

Not streamed: one JSON document is either whole or not, and its marker is in it. The price is that a server of this
machine is silent while it thinks; the default silence is longer there. The backoff is our own twenty lines:
`Retry-After` as a lower bound, a deadline and a stop that ends the wait are more than a retry decorator offers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from hashlib import sha256
from json import dumps
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from curatord.adapters.model_dialect import Answer, Dialect
from curatord.adapters.model_transport import KeyHeader, ModelTransport, Response
from curatord.core.budget import estimate_tokens, least_tokens, price_of
from curatord.core.cheap import replace
from curatord.core.endpoint import Api, Endpoint, Identity, Secret, Timeouts
from curatord.core.endpoint_memory import Takes
from curatord.core.faults import classify, retry_after
from curatord.core.model import (
    TRANSIENT_KINDS,
    Bill,
    EndpointError,
    Fault,
    FaultKind,
    Reply,
    ReplyError,
    Request,
    Usage,
)
from curatord.core.redact import redact
from curatord.ports.clock import Clock
from curatord.ports.model import EndpointMemory

if TYPE_CHECKING:
    import httpx

__all__ = ["HttpModel", "Source"]

MAX_TRIES = 3
BACKOFF_FIRST_S = 1.0
BACKOFF_MOST_S = 30.0

# A prompt of fewer tokens is too small to tell a cut from a tokenizer's ways.
CUT_CHECK_FROM_TOKENS = 512

log = structlog.get_logger("curatord.model")

Source = Callable[[], tuple[Endpoint, Secret | None]]


class HttpModel:
    """
    The real `Model`.

    Args:
        source: Gives endpoint and key at each call; raises `EndpointError` of kind CONFIG where there is none to give.
        dialects: By API.
        memory: Where what a server takes is remembered.
        clock: For waits and dates.
        transport: An httpx transport, for tests; None: the network.
        sleep: Waits so many seconds; None: really, and a stop ends it.
        chance: Gives a number from 0 to below 1, for jitter.
    """

    def __init__(
        self,
        source: Source,
        dialects: Mapping[Api, Dialect],
        memory: EndpointMemory,
        clock: Clock,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._source = source
        self._dialects = dialects
        self._memory = memory
        self._chance = chance
        self.clock = clock
        self.wire = ModelTransport(transport)
        self._sleep = sleep or self._really_sleep

    def stop(self) -> None:
        """End what is waited for, now and later: every open and further `reply` raises `StoppedError`."""
        self.wire.stop()

    def identity(self) -> Identity:
        """Return which model at which endpoint is asked next. See the port."""
        return _identity(*self._source())

    def reply(self, request: Request, *, deadline: float | None = None, max_requests: int = 12) -> Reply:
        """Return the whole answer to *request*. See the port."""
        endpoint, key = self._source()
        call = _Call(self, endpoint, key, request, deadline, max_requests)
        return call.run()

    # What a call needs of its model.

    def takes(self, endpoint: Endpoint) -> Takes:
        """Return what the server is known to take, or what is tried first."""
        row = self._memory.recall(f"takes {_server(endpoint)}")
        return (Takes.from_dict(row) if row else None) or self._dialects[endpoint.api].first(endpoint)

    def learn(self, endpoint: Endpoint, takes: Takes) -> None:
        """Remember what the server took."""
        self._memory.keep(f"takes {_server(endpoint)}", takes.as_dict())

    def dialect(self, endpoint: Endpoint) -> Dialect:
        """Return the dialect that *endpoint* speaks."""
        return self._dialects[endpoint.api]

    def pause(self, seconds: float) -> None:
        """Wait; raises `StoppedError` where asked to stop meanwhile."""
        self._sleep(seconds)
        self.wire.stand()

    def _really_sleep(self, seconds: float) -> None:
        self.wire.stopped.wait(seconds)

    def backoff(self, failures: int) -> float:
        """
        Return the seconds before the next try after *failures*: doubling, with jitter so that several do not march.
        """
        most: float = min(BACKOFF_MOST_S, BACKOFF_FIRST_S * 2 ** (failures - 1))
        return most * (0.5 + self._chance() / 2)


def _server(endpoint: Endpoint) -> str:
    return f"{endpoint.api} {endpoint.url} {endpoint.model}"


def _identity(endpoint: Endpoint, key: Secret | None) -> Identity:
    mark = dumps([endpoint.api, endpoint.url, endpoint.model, key.reveal() if key else ""])
    return Identity(
        api=endpoint.api,
        provider=endpoint.provider or urlsplit(endpoint.url).hostname or "",
        url=endpoint.url,
        model=endpoint.model,
        fingerprint=sha256(mark.encode()).hexdigest()[:16],
        context_tokens=endpoint.context,
        output_limit=endpoint.output_limit,
        loopback=endpoint.loopback,
        price=endpoint.price,
    )


class _Call:
    """One `reply` on its way: what was sent and spent so far."""

    def __init__(
        self,
        model: HttpModel,
        endpoint: Endpoint,
        key: Secret | None,
        request: Request,
        deadline: float | None,
        max_requests: int,
    ) -> None:
        self.model = model
        self.endpoint = endpoint
        self.key = key
        self.request = request
        self.deadline = deadline
        self.max_requests = max_requests
        self.dialect = model.dialect(endpoint)
        self.bill = Bill()

    def run(self) -> Reply:
        """Ask until there is an answer or no sense in asking."""
        takes = self.model.takes(self.endpoint)
        stepped = False
        failures = 0
        while True:
            outcome = self._ask(takes)
            if isinstance(outcome, Reply):
                if stepped:
                    self.model.learn(self.endpoint, takes)
                return outcome
            fault, words = outcome
            lower = self.dialect.step_down(takes, words, self.endpoint) if self._may_step(fault) else None
            if lower is not None and self.bill.requests < self.max_requests:
                log.info("model.stepped_down", url=self.endpoint.url, model=self.endpoint.model, takes=lower.as_dict())
                takes, stepped = lower, True
                continue
            failures += 1
            wait = self._wait(fault, failures)
            if wait is None:
                raise EndpointError(fault, bill=self.bill, hint=_hint(fault.kind))
            log.info(
                "model.retrying",
                url=self.endpoint.url,
                fault=fault.kind.value,
                status=fault.status,
                wait_s=round(wait, 1),
            )
            self.model.pause(wait)

    @staticmethod
    def _may_step(fault: Fault) -> bool:
        """Return whether *fault* may be a refused form: some servers answer 500 to one (bugs B159)."""
        return fault.kind is FaultKind.BAD_REQUEST or (fault.kind is FaultKind.SERVER and fault.status in {500, 501})

    def _wait(self, fault: Fault, failures: int) -> float | None:
        """
        Return the seconds before another try, or None where there is to be none. Raises what is no endpoint's fault.
        """
        if fault.kind in {FaultKind.TOO_LONG, FaultKind.BAD_REQUEST}:
            raise ReplyError(fault, bill=self.bill, hint=_hint(fault.kind))
        tries = 2 if fault.kind is FaultKind.TIMEOUT else MAX_TRIES
        if fault.kind not in TRANSIENT_KINDS or failures >= tries or self.bill.requests >= self.max_requests:
            return None
        wait = max(self.model.backoff(failures), fault.retry_after or 0.0)
        if self.deadline is not None and self.model.clock.monotonic() + wait >= self.deadline:
            return None
        return wait

    def _ask(self, takes: Takes) -> Reply | tuple[Fault, str]:
        """Send one request; return the answer, or the fault with the server's words at length."""
        limit = min(self.request.max_output_tokens or self.endpoint.output_limit, self.endpoint.context // 2)
        body = self.dialect.body(self.endpoint, self.request, takes, limit)
        response = self._send(dumps(body, ensure_ascii=False).encode())
        self.bill = replace(self.bill, requests=self.bill.requests + 1)
        if isinstance(response, Fault):
            return response, ""
        now = self.model.clock.now()
        if response.status != 200 or (isinstance(response.body, Mapping) and response.body.get("error")):
            fault = classify(
                response.status,
                response.body,
                url=self.endpoint.url,
                model=self.endpoint.model,
                wait_s=retry_after(response.headers, now),
                now=now,
            )
            if fault.kind is FaultKind.REDIRECT:
                place = urlsplit(response.headers.get("location", "")).hostname or "elsewhere"
                fault = replace(
                    fault, message=f"status {fault.status} from {self.endpoint.url} to {place}, not followed"
                )
            return fault, dumps(response.body)[:8_000]
        answer = self.dialect.read(response.body) if isinstance(response.body, Mapping) else None
        if answer is None:
            told = self.dialect.usage(response.body) if isinstance(response.body, Mapping) else None
            if told is not None:  # it is billed all the same
                usd = price_of(told, self.endpoint.price)
                self._book(told, usd)
            shown = response.body if isinstance(response.body, str) else dumps(response.body)
            what = "a JSON object without an answer" if response.is_json else "no JSON"
            start = redact(" ".join(shown[:200].split()))
            return Fault(kind=FaultKind.BAD_REPLY, status=200, message=f"{what}: {start}"), ""
        return self._judge(answer, limit, response.headers)

    def _judge(self, answer: Answer, limit: int, headers: Mapping[str, str]) -> Reply | tuple[Fault, str]:
        """Return the reply if *answer* is whole and to the whole prompt; raise what another try would not better."""
        usage = answer.usage or Usage(
            input_tokens=estimate_tokens(self.request.text),
            output_tokens=estimate_tokens(answer.text),
            estimated=True,
        )
        told = _dollars(headers.get("x-litellm-response-cost")) if answer.usd is None else answer.usd
        usd = price_of(usage, self.endpoint.price)
        cost = told if usd is None else usd
        self._book(usage, cost)
        text = answer.text
        if answer.finish is None:
            return Fault(
                kind=FaultKind.BAD_REPLY, status=200, message="the answer came without its terminal marker"
            ), ""
        if answer.finish == "filter":
            raise self._unusable(FaultKind.REFUSED, "the model or its filter declined to answer", text)
        if not text.strip():
            why = "only thoughts came" if answer.thought else "the answer is empty"
            why += f"; it stopped at its limit of {limit} tokens" if answer.finish == "length" else ""
            raise self._unusable(FaultKind.NO_ANSWER, why, text)
        if answer.finish != "stop":
            raise self._unusable(
                FaultKind.CUT, f"the answer ended with {answer.finish!r} at {usage.output_tokens} tokens", text
            )
        expected = estimate_tokens(self.request.text)
        if answer.usage and expected >= CUT_CHECK_FROM_TOKENS and usage.input_tokens < least_tokens(self.request.text):
            why = f"the server read {usage.input_tokens} tokens of a prompt of about {expected}"
            raise self._unusable(FaultKind.PROMPT_CUT, why, text)
        notes: tuple[str, ...] = ()
        if usage.output_tokens > limit * 5 // 4:
            notes = (f"the server ignored the limit of {limit} tokens and wrote {usage.output_tokens}",)
        return Reply(text=text, bill=self.bill, model=answer.model, notes=notes)

    def _book(self, usage: Usage, usd: float | None) -> None:
        """Add what one response cost. Once a part is unknown, so is the whole."""
        known = self.bill.usage.tokens == 0 or self.bill.usd is not None
        total = (self.bill.usd or 0.0) + usd if usd is not None and known else None
        self.bill = replace(self.bill, usage=self.bill.usage + usage, usd=total)

    def _unusable(self, kind: FaultKind, why: str, text: str) -> ReplyError:
        return ReplyError(Fault(kind=kind, message=why, status=200), text=text, bill=self.bill, hint=_hint(kind))

    def _send(self, content: bytes) -> Response | Fault:
        """Return the response to one POST, or the fault of the network."""
        bounds = self.endpoint.timeouts
        if self.deadline is not None:
            left = max(0.1, self.deadline - self.model.clock.monotonic())
            bounds = Timeouts(
                connect=min(bounds.connect, left), idle=min(bounds.idle, left), whole=min(bounds.whole, left)
            )
        name, prefix = self.dialect.key_header()
        return self.model.wire.post(
            self.endpoint.url,
            content,
            headers=self.dialect.headers(),
            key=KeyHeader(name=name, prefix=prefix, key=self.key) if self.key else None,
            bounds=bounds,
            proxy=self.endpoint.proxy,
        )


def _dollars(text: str | None) -> float | None:
    """Return a cost that a header tells, if it is one."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1e6 else None


def _hint(kind: FaultKind) -> str:
    """Return what the reader can do now."""
    return {
        FaultKind.AUTH: "check llm.primary.api_key; `curatord doctor` tells where the key is looked for",
        FaultKind.PAYMENT: "top up the account or name another model; until then nothing is asked for hours",
        FaultKind.MODEL_UNKNOWN: "check base_url and model; the URL that was tried stands in the message",
        FaultKind.REDIRECT: "set base_url to the address the server redirects to, if you trust it",
        FaultKind.NETWORK: "is the server running? `curatord doctor` tries it",
        FaultKind.TIMEOUT: "raise llm.primary.timeout if the model is slow",
        FaultKind.TOO_LONG: "lower llm.primary.context_tokens to what the server really has",
        FaultKind.PROMPT_CUT: "lower llm.primary.context_tokens, or give the server a larger context",
    }.get(kind, "")

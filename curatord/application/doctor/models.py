"""
The examination of the models: who would be asked, and one small question.

The question goes the way of every other (redacted, bounded, one repair), and only where the budget of the run and of
the day has room for it. What is learnt is kept nowhere: a doctor changes nothing, so the some 500 tokens it takes are
in no account.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from curatord.application.doctor.ward import Ward
from curatord.core.budget import Spend
from curatord.core.cheap import replace
from curatord.core.doctor import Check
from curatord.core.doctor.model import ModelFacts, check_model, no_model
from curatord.core.endpoint import Endpoint, Identity, endpoint_notes
from curatord.core.model import EndpointError, ReplyError
from curatord.core.settings import KeyRef, LlmBudget, LlmEndpoint, LlmSettings
from curatord.core.wire import Question
from curatord.errors import BudgetExhaustedError
from curatord.passes.consult import Consultation, breaker_of

if TYPE_CHECKING:
    from curatord.ports.model import EndpointMemory, Model

__all__ = ["models"]

WAIT = timedelta(minutes=2)
CALLS = 6  # a question and its repair, and the steps down that a server may ask for

_PROMPT = (
    "This is a test of the connection, and the two skills are made up. They have nothing to do with each other, so "
    "answer with no clusters and nothing to leave."
)
_DATA = {
    "library": "test",
    "skills": [
        {"name": "bake-bread", "description": "Bake a loaf.", "headings": [], "tokens": 5, "state": "active"},
        {"name": "tune-piano", "description": "Tune a piano.", "headings": [], "tokens": 5, "state": "active"},
    ],
    "candidates": [],
}


class _Overlay:
    """An `EndpointMemory` over what is remembered, that keeps what is new for itself."""

    def __init__(self, below: EndpointMemory) -> None:
        self._below = below
        self._new: dict[str, Mapping[str, Any] | None] = {}

    def recall(self, key: str) -> Mapping[str, Any] | None:
        """Return what was kept under *key*."""
        return self._new[key] if key in self._new else self._below.recall(key)

    def keep(self, key: str, value: Mapping[str, Any] | None) -> None:
        """Keep *value* until this process ends."""
        self._new[key] = value


def models(ward: Ward) -> Sequence[Check]:
    """Return whether the primary and the fallback can be asked."""
    from curatord.adapters.models import models_of

    llm = ward.parts.config.llm
    if llm is None:
        return [no_model()]
    memory = _Overlay(ward.parts.books)
    primary, fallback = models_of(
        llm, memory, ward.parts.clock, hermes_home=ward.parts.hermes_home(), environment=ward.parts.environ
    )
    checks = [check_model(_facts(ward, llm, "primary", llm.primary, primary, memory))]
    if fallback is not None:
        checks.append(check_model(_facts(ward, llm, "fallback", llm.fallback, fallback, memory)))
    return checks


def _facts(
    ward: Ward, llm: LlmSettings, role: str, settings: LlmEndpoint | None, model: Model, memory: EndpointMemory
) -> ModelFacts:
    key = "what Hermes is configured with" if settings is None else _where(settings.api_key)
    facts = ModelFacts(role=role, key=key)
    if settings is not None:
        endpoint = Endpoint.of(settings)
        bounds = endpoint.timeouts
        facts = replace(
            facts,
            name=endpoint.model,
            api=endpoint.api,
            url=endpoint.url,
            notes=endpoint_notes(endpoint, ward.parts.environ),
            bounds=f"connect {bounds.connect:g} s, silence {bounds.idle:g} s, whole {bounds.whole:g} s; context "
            f"{endpoint.context:,} tokens, {endpoint.output_limit:,} of them for the answer",
        )
    try:
        identity = model.identity()
    except EndpointError as error:
        return replace(facts, fault=error.fault, hint=error.hint)
    breaker = breaker_of(memory, identity)
    holds = breaker is not None and breaker.holds(ward.now, identity.fingerprint)
    facts = replace(
        facts,
        name=identity.model,
        api=identity.api,
        url=identity.url,
        price_known=identity.price is not None or identity.loopback,
        breaker=f"{breaker.kind.value}: {breaker.message}" if breaker is not None and holds else None,
    )
    if not ward.asks:
        return replace(facts, unasked="--no-llm was given")
    return _asked(ward, llm.budget, facts, model, identity, memory)


def _asked(
    ward: Ward, budget: LlmBudget, facts: ModelFacts, model: Model, identity: Identity, memory: EndpointMemory
) -> ModelFacts:
    spent = ward.parts.books.spent_on(ward.now) if ward.remembers else Spend()
    limits = replace(
        budget, calls_per_run=min(budget.calls_per_run, CALLS), wall_per_run=min(budget.wall_per_run, WAIT)
    )
    consultation = Consultation(
        model,
        None,
        limits=limits,
        memory=memory,
        clock=ward.parts.clock,
        spent_today=spent,
        workers=1,
        bypass_breaker=True,
    )
    question = Question(task="survey", prompt=_PROMPT, data=_DATA, expect_tokens=min(200, identity.output_limit))
    began = time.monotonic()
    try:
        answer = consultation.ask(question)
    except BudgetExhaustedError as error:
        return replace(facts, unasked=str(error))
    except (EndpointError, ReplyError) as error:
        return replace(facts, fault=error.fault, hint=error.hint)
    exchanges = consultation.exchanges
    return replace(
        facts,
        repaired=any(exchange.repair for exchange in exchanges),
        seconds=time.monotonic() - began,
        tokens=consultation.spent.usage.tokens,
        price_known=facts.price_known or answer.exchange.bill.usd is not None,
    )


def _where(key: KeyRef | None) -> str | None:
    """Return where a key is looked for, in words."""
    if key is None:
        return None
    return {
        "env": f"the environment variable {key.name}",
        "file": f"the file {key.name}",
        "credential": f"the systemd credential {key.name}",
    }[key.kind]

"""
A whole consultation against the stub server as a process: what every fault comes to, once repaired and fallen back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from curatord.adapters.model_http import HttpModel
from curatord.adapters.model_keys import configured
from curatord.adapters.models import http_model
from curatord.core.model import FaultKind
from curatord.core.settings import LlmBudget, LlmEndpoint
from curatord.core.wire import Question
from curatord.errors import BudgetExhaustedError
from curatord.passes.consult import Answer, Consultation
from tests.fakes.model import HandClock, Memory, ask_all
from tests.fakes.stub import Stub, needs_stub, stub

pytestmark = needs_stub

SURVEY = Question(
    task="survey",
    prompt="Sort.",
    data={
        "library": "l",
        "skills": [{"name": n} for n in ("git-one", "git-two", "lint-one", "lint-two")],
        "candidates": [],
    },
)
MERGE = Question(
    task="merge",
    prompt="Merge.",
    data={
        "library": "l",
        "umbrella": {"name": "git", "existing": False, "card": None},
        "members": [{"name": "git-one"}, {"name": "git-two"}],
        "outside": [],
    },
)
FINE = [
    "think", "fence", "prose", "slow", "schema-refused", "no-usage", "wrong-umbrella", "unknown-member", "path-escape",
    "protected-name", "dup-member", "cycle",
]  # fmt: skip
MENDED_BY_A_REPAIR = ["cut-json", "cut-finished", "empty", "not-json"]
ENDPOINTS = ["401", "404", "429", "429-retry-after", "500", "503", "529", "drop", "hang", "null-choices"]


def client(server: Stub, memory: Memory, clock: HandClock, model: str = "stub") -> HttpModel:
    """Return a client of *server* that waits for nothing."""
    settings = LlmEndpoint(base_url=server.url, model=model, timeout=timedelta(seconds=5))
    return http_model(configured(settings, {}), memory, clock, sleep=clock.sleep)


def consult(
    folder: Path, faults: list[str], ask: Callable[[Consultation], Any], **limits: Any
) -> tuple[Consultation, Any, int]:
    """Return a consultation after *ask*, its outcome, and the requests that the server logged."""
    with stub(folder, *(part for fault in faults for part in ("--fault", fault)), "--hang-s", "6") as server:
        memory, clock = Memory(), HandClock()
        consultation = Consultation(
            client(server, memory, clock), limits=LlmBudget(**limits), memory=memory, clock=clock, workers=2
        )
        outcome = ask(consultation)
    return consultation, outcome, len(server.calls())


@pytest.mark.parametrize("fault", FINE)
def test_faults_of_wrapping_and_naming_are_answers(tmp_path: Path, fault: str) -> None:
    """Each question is answered; what the answers name is the plan's to judge. Every request is in the count."""
    consultation, outcomes, calls = consult(tmp_path, [fault], lambda c: ask_all(c, [SURVEY, MERGE]))

    assert [isinstance(o, Answer) for o in outcomes] == [True, True]
    assert calls == consultation.spent.calls


@pytest.mark.parametrize("fault", MENDED_BY_A_REPAIR)
def test_faults_of_the_answer_are_repaired_once(tmp_path: Path, fault: str) -> None:
    """Once spoiled it is mended; always spoiled, each question takes two requests and fails."""
    once, outcome, calls = consult(tmp_path, [f"{fault}:1"], lambda c: c.ask(SURVEY))
    always, outcomes, more = consult(tmp_path, [fault], lambda c: ask_all(c, [SURVEY, MERGE]))

    assert isinstance(outcome, Answer)
    assert [e.repair for e in once.exchanges] == [False, True]
    assert [isinstance(o, Answer) for o in outcomes] == [False, False]
    assert (once.spent.calls, always.spent.calls) == (2, 4)
    assert (calls, more) == (2, 6)  # both servers wrote into one log


def test_a_huge_answer_is_repaired_and_a_huge_bill_ends_the_pass(tmp_path: Path) -> None:
    """
    Three megabytes are billed by the server as 750,000 tokens: with room for them the repair mends it, else it is over.
    """
    roomy, outcome, _ = consult(
        tmp_path, ["huge:1"], lambda c: c.ask(MERGE), tokens_per_run=10**8, tokens_per_day=10**8
    )
    tight, outcomes, _ = consult(tmp_path, ["huge"], lambda c: ask_all(c, [MERGE]))

    assert isinstance(outcome, Answer)
    assert (roomy.exchanges[0].fault.kind if roomy.exchanges[0].fault else None) == FaultKind.TOO_LARGE
    assert isinstance(outcomes[0], BudgetExhaustedError)
    assert len(tight.exchanges) == 1
    assert len(tight.exchanges[0].reply) > 3_000_000


@pytest.mark.parametrize("fault", ENDPOINTS)
def test_faults_of_the_endpoint_bring_the_fallback(tmp_path: Path, fault: str) -> None:
    """The primary fails whatever it does, the fallback answers all, and the record shows who and why."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with stub(tmp_path / "a", "--fault", fault, "--hang-s", "0.1") as first, stub(tmp_path / "b") as second:
        memory, clock = Memory(), HandClock()
        consultation = Consultation(
            client(first, memory, clock),
            client(second, memory, clock, "spare"),
            limits=LlmBudget(),
            memory=memory,
            clock=clock,
        )
        outcomes = ask_all(consultation, [SURVEY, MERGE])
        record = consultation.record()

    assert [isinstance(o, Answer) for o in outcomes] == [True, True]
    assert (record["model"], record["fallback_used"]) == ("spare", True)
    assert len(second.calls()) == 2
    assert len(first.calls()) + 2 == record["calls"]
    assert len(record["errors"]) == 1
    assert json.dumps(record)


def test_a_refused_request_does_not_bring_the_fallback(tmp_path: Path) -> None:
    """A 400 is about the question."""
    consultation, outcomes, calls = consult(tmp_path, ["400"], lambda c: ask_all(c, [SURVEY]))

    assert (calls, consultation.fallback_reason) == (1, None)
    assert outcomes[0].fault.kind == FaultKind.BAD_REQUEST

"""
What every `Model` holds to: the real clients against the stub server, and the scripted one that tests use instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from curatord.adapters.model_keys import configured
from curatord.adapters.models import http_model
from curatord.core.endpoint import Api
from curatord.core.extract import Extracted
from curatord.core.model import EndpointError, Fault, FaultKind, Reply, ReplyError
from curatord.core.replies import SurveyReply
from curatord.core.settings import LlmEndpoint
from curatord.core.wire import Question, first_request, read_reply
from curatord.ports.model import Model
from tests.fakes.model import HandClock, Memory, ScriptedModel
from tests.fakes.stub import STUB, stub

QUESTION = Question(
    task="survey",
    prompt="Sort.",
    data={"library": "l", "skills": [{"name": "git-one"}, {"name": "git-two"}], "candidates": []},
)
GOOD = {"clusters": [{"umbrella": "git", "members": ["git-one", "git-two"], "why": "w"}], "leave": []}

# What goes wrong, as the stub's fault and as the scripted model's step.
FAULTS = {
    "401": FaultKind.AUTH,
    "404": FaultKind.MODEL_UNKNOWN,
    "400": FaultKind.BAD_REQUEST,
    "cut-json": FaultKind.CUT,
    "empty": FaultKind.NO_ANSWER,
    "503": FaultKind.SERVER,
}
Maker = Callable[[str | None], Model]


@pytest.fixture(params=["openai-chat", "anthropic-messages", "scripted"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Maker]:
    """Return a maker of models that answer well, or with a fault at every request."""
    with ExitStack() as stack:

        def build(fault: str | None) -> Model:
            if request.param == "scripted":
                step = Fault(kind=FAULTS[fault], message="x") if fault else None
                return ScriptedModel([step] * 3 if step else (), rule=lambda _: GOOD)
            if not STUB.is_file():
                pytest.skip(f"no stub model server at {STUB}")
            server = stack.enter_context(stub(tmp_path, *(("--fault", fault) if fault else ())))
            api: Api = request.param
            settings = LlmEndpoint(base_url=server.url, model="stub", api=api, timeout=timedelta(seconds=10))
            clock = HandClock()
            return http_model(configured(settings, {}), Memory(), clock, sleep=clock.sleep)

        yield build


def test_an_answer_is_whole_and_billed(make: Maker) -> None:
    """A reply holds text that can be read, tokens, and at least one request."""
    reply = make(None).reply(first_request(QUESTION))

    assert isinstance(reply, Reply)
    assert isinstance(read_reply(QUESTION, reply.text), Extracted)
    assert reply.bill.requests >= 1
    assert reply.bill.usage.input_tokens > 0
    assert reply.bill.usage.output_tokens > 0


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_come_as_the_right_error_with_a_bill(make: Maker, fault: str) -> None:
    """The endpoint's faults and the reply's are told apart by type, and by kind within it."""
    kind = FAULTS[fault]
    expected = EndpointError if kind in {FaultKind.AUTH, FaultKind.MODEL_UNKNOWN, FaultKind.SERVER} else ReplyError
    with pytest.raises((EndpointError, ReplyError)) as caught:
        make(fault).reply(first_request(QUESTION))

    assert isinstance(caught.value, expected)
    assert kind == caught.value.fault.kind
    assert caught.value.bill.requests >= 1


def test_an_identity_is_steady_and_names_the_model(make: Maker) -> None:
    """Asked twice it is the same, and small enough for a report."""
    model = make(None)

    assert model.identity() == model.identity()
    assert all(len(str(v)) < 300 for v in (model.identity().model, model.identity().url, model.identity().fingerprint))
    assert model.identity().output_limit < model.identity().context_tokens


def test_several_threads_may_ask_at_once(make: Maker) -> None:
    """Each gets its own answer."""
    model = make(None)
    got: list[Any] = []

    def ask() -> None:
        got.append(read_reply(QUESTION, model.reply(first_request(QUESTION)).text))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(got) == 4
    assert all(isinstance(g, Extracted) and isinstance(g.value, SurveyReply) for g in got)

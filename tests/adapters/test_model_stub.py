"""The real client against the stub server as a process: every fault has its outcome, in both dialects."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from curatord.adapters.model_http import HttpModel
from curatord.adapters.model_keys import configured
from curatord.adapters.models import http_model
from curatord.core.endpoint import Api
from curatord.core.extract import Extracted, Unusable
from curatord.core.model import EndpointError, FaultKind, ReplyError
from curatord.core.replies import MergeReply, SurveyReply
from curatord.core.settings import KeyRef, LlmEndpoint
from curatord.core.wire import Question, first_request, read_reply
from curatord.errors import StoppedError
from tests.fakes.model import HandClock, Memory
from tests.fakes.stub import Stub, needs_stub, stub

pytestmark = needs_stub

APIS: tuple[Api, ...] = ("openai-chat", "anthropic-messages")
KEY = "k" + "-0123456789abcdef"
SKILLS = [{"name": n} for n in ("git-one", "git-two", "lint-one", "lint-two")]
SURVEY = Question(task="survey", prompt="Sort.", data={"library": "l", "skills": SKILLS, "candidates": []})
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


@contextmanager
def a_model(
    folder: Path, *arguments: str, api: Api = "openai-chat", seconds: float = 10, **more: Any
) -> Iterator[tuple[HttpModel, Stub, HandClock, Memory]]:
    """Run the stub and give a client of it, whose waits take no time."""
    with stub(folder, *arguments, **more) as server:
        settings = LlmEndpoint(
            base_url=server.url,
            model="stub",
            api=api,
            api_key=KeyRef(kind="env", name="K"),
            timeout=timedelta(seconds=seconds),
        )
        clock, memory = HandClock(), Memory()
        source = configured(settings, {"K": KEY})
        yield http_model(source, memory, clock, sleep=clock.sleep, chance=lambda: 0.0), server, clock, memory


@pytest.mark.parametrize("api", APIS)
def test_a_plain_answer(tmp_path: Path, api: Api) -> None:
    """One request, one typed reply, the server's own count of tokens, the key sent."""
    with a_model(tmp_path, api=api) as (model, server, _, _):
        reply = model.reply(first_request(SURVEY))
    read = read_reply(SURVEY, reply.text)

    assert isinstance(read, Extracted)
    assert isinstance(read.value, SurveyReply)
    assert [c.umbrella for c in read.value.clusters] == ["git-umbrella", "lint-umbrella"]
    assert (reply.bill.requests, reply.bill.usage.estimated) == (1, False)
    assert [call["authorization"] for call in server.calls()] == [True]
    assert [call["task"] for call in server.calls()] == ["survey"]


PERMANENT = {
    "400": (ReplyError, FaultKind.BAD_REQUEST),
    "401": (EndpointError, FaultKind.AUTH),
    "404": (EndpointError, FaultKind.MODEL_UNKNOWN),
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", PERMANENT)
def test_permanent_faults_take_one_request(tmp_path: Path, fault: str, api: Api) -> None:
    """What will not pass is not tried again, and the class and the server's words are told."""
    error, kind = PERMANENT[fault]
    with a_model(tmp_path, "--fault", fault, api=api) as (model, server, clock, _), pytest.raises(error) as caught:
        model.reply(first_request(SURVEY))

    assert isinstance(caught.value, EndpointError | ReplyError)
    assert kind == caught.value.fault.kind
    assert f"scripted {fault}" == caught.value.fault.words
    assert (len(server.calls()), clock.slept) == (1, [])


PASSING = {
    "429": FaultKind.RATE,
    "500": FaultKind.SERVER,
    "503": FaultKind.SERVER,
    "529": FaultKind.SERVER,
    "drop": FaultKind.NETWORK,
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", PASSING)
def test_passing_faults_are_tried_again(tmp_path: Path, fault: str, api: Api) -> None:
    """Two failures are sat out with growing waits; the third request is answered and counted."""
    with a_model(tmp_path, "--fault", f"{fault}:2", api=api) as (model, server, clock, _):
        reply = model.reply(first_request(SURVEY))

    assert (reply.bill.requests, len(server.calls())) == (3, 3)
    assert clock.slept == [0.5, 1.0]


@pytest.mark.parametrize("fault", [*PASSING, "null-choices"])
def test_lasting_faults_end_after_three_requests(tmp_path: Path, fault: str) -> None:
    """There is an end, and it is the endpoint's failure."""
    with a_model(tmp_path, "--fault", fault) as (model, server, _, _), pytest.raises(EndpointError) as caught:
        model.reply(first_request(SURVEY))

    assert (PASSING | {"null-choices": FaultKind.BAD_REPLY})[fault] == caught.value.fault.kind
    assert (len(server.calls()), caught.value.bill.requests) == (3, 3)


def test_retry_after_is_a_lower_bound(tmp_path: Path) -> None:
    """The server asks for a second where the backoff would take half of one."""
    with a_model(tmp_path, "--fault", "429-retry-after:1") as (model, _, clock, _):
        model.reply(first_request(SURVEY))

    assert clock.slept == [1.0]


@pytest.mark.parametrize("api", APIS)
def test_a_server_that_hangs_is_left_after_its_time(tmp_path: Path, api: Api) -> None:
    """The silence ends at the timeout, twice, and then the question."""
    begin = time.monotonic()
    with a_model(tmp_path, "--fault", "hang", "--hang-s", "30", api=api, seconds=0.5) as (model, _, _, _):
        with pytest.raises(EndpointError) as caught:
            model.reply(first_request(SURVEY))
        took = time.monotonic() - begin

    assert caught.value.fault.kind == FaultKind.TIMEOUT
    assert caught.value.bill.requests == 2
    assert 0.9 < took < 5


def test_a_slow_server_is_waited_for(tmp_path: Path) -> None:
    """Two seconds of thinking are none of ours."""
    with a_model(tmp_path, "--fault", "slow:1") as (model, _, _, _):
        assert model.reply(first_request(SURVEY)).bill.requests == 1


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("fault", "kind"), [("cut-json", FaultKind.CUT), ("empty", FaultKind.NO_ANSWER)])
def test_cut_and_empty_answers_are_no_answers(tmp_path: Path, fault: str, kind: FaultKind, api: Api) -> None:
    """They cost tokens, are kept whole, are no endpoint's failure and not tried again as they are."""
    with a_model(tmp_path, "--fault", fault, api=api) as (model, server, _, _), pytest.raises(ReplyError) as caught:
        model.reply(first_request(SURVEY))

    assert kind == caught.value.fault.kind
    assert caught.value.bill.usage.input_tokens > 0
    assert (1, server.calls()[0]["reply"]) == (len(server.calls()), caught.value.text)


@pytest.mark.parametrize("fault", ["cut-finished", "not-json"])
def test_answers_that_are_no_whole_object_are_unusable(tmp_path: Path, fault: str) -> None:
    """A finish that says `stop` does not make half an object whole."""
    with a_model(tmp_path, "--fault", fault) as (model, _, _, _):
        reply = model.reply(first_request(SURVEY))
    read = read_reply(SURVEY, reply.text)

    assert isinstance(read, Unusable)
    assert (fault == "cut-finished") == read.cut


@pytest.mark.parametrize("fault", ["think", "fence", "prose"])
def test_wrapped_answers_are_read(tmp_path: Path, fault: str) -> None:
    """Thoughts, fences and prose around the object do not matter."""
    with a_model(tmp_path) as (model, _, _, _):
        plain = read_reply(SURVEY, model.reply(first_request(SURVEY)).text)
    with a_model(tmp_path, "--fault", fault) as (model, _, _, _):
        assert plain == read_reply(SURVEY, model.reply(first_request(SURVEY)).text)


def test_a_refused_schema_is_stepped_down_from_and_remembered(tmp_path: Path) -> None:
    """
    Refused with 400 and with 500 (bugs B159): one step each, no failure, no wait, and the next question asks right.
    """
    with a_model(tmp_path, "--fault", "schema-refused") as (model, server, clock, memory):
        first = model.reply(first_request(SURVEY))
        second = model.reply(first_request(MERGE))
        forms = [call["request"].get("response_format", {}).get("type") for call in server.calls()]
        again = http_model(model._source, memory, clock)
        third = again.reply(first_request(MERGE))

    assert (first.bill.requests, second.bill.requests, third.bill.requests) == (2, 1, 1)
    assert forms == ["json_schema", "json_object", "json_object"]
    assert clock.slept == []


@pytest.mark.parametrize("number", [0, 1])
def test_a_refusal_is_understood_with_either_status(tmp_path: Path, number: int) -> None:
    """The stub alternates 400 and 500; both begin a ladder."""
    with a_model(tmp_path, "--fault", "schema-refused") as (model, server, _, _):
        for _ in range(number):
            model.wire.post(
                server.url + "/chat/completions",
                b"{}",
                headers={},
                key=None,
                bounds=model._source()[0].timeouts,
                proxy=None,
            )
        model.reply(first_request(SURVEY))
        statuses = [call["status"] for call in server.calls()][number:]

    assert [[400, 200], [500, 200]][number] == statuses


@pytest.mark.parametrize("api", APIS)
def test_without_usage_the_count_is_ours_and_says_so(tmp_path: Path, api: Api) -> None:
    """An estimate is booked as one."""
    with a_model(tmp_path, "--fault", "no-usage", api=api) as (model, _, _, _):
        usage = model.reply(first_request(SURVEY)).bill.usage

    assert usage.estimated
    assert usage.input_tokens > 50
    assert usage.output_tokens > 10


NAMING: dict[tuple[str, str], Callable[[Any], bool]] = {
    ("wrong-umbrella", "survey"): lambda r: {c.umbrella for c in r.clusters} == {"no-such-umbrella"},
    ("protected-name", "survey"): lambda r: "pinned-one" in r.clusters[-1].members,
    ("cycle", "survey"): lambda r: r.clusters[1].umbrella in r.clusters[0].members,
    ("unknown-member", "merge"): lambda r: r.members[-1].name == "never-heard-of",
    ("path-escape", "merge"): lambda r: r.members[0].path == "../../escaped.md",
    ("dup-member", "merge"): lambda r: r.members[0].name == r.members[-1].name,
}


@pytest.mark.parametrize(("fault", "task"), NAMING)
def test_what_names_the_wrong_things_comes_through_as_it_is(tmp_path: Path, fault: str, task: str) -> None:
    """
    Names and paths are judged against the disk, by the plan; the wire keeps them as they are and mends nothing.
    """
    question = SURVEY if task == "survey" else MERGE
    with a_model(tmp_path, "--fault", fault) as (model, _, _, _):
        read = read_reply(question, model.reply(first_request(question)).text)

    assert isinstance(read, Extracted)
    assert isinstance(read.value, SurveyReply | MergeReply)
    assert NAMING[fault, task](read.value)


def test_a_huge_answer_is_refused_and_noted(tmp_path: Path) -> None:
    """Three megabytes where 2048 tokens were asked for: noted, kept, not used."""
    with a_model(tmp_path, "--fault", "huge") as (model, _, _, _):
        reply = model.reply(first_request(MERGE))
    read = read_reply(MERGE, reply.text)

    assert isinstance(read, Unusable)
    assert read.too_large
    assert "ignored the limit of 2048 tokens" in reply.notes[0]


def test_random_mixtures_end_in_a_value_or_a_named_error(tmp_path: Path) -> None:
    """Faults one after the other at any call: each question ends in a reply or an error of ours."""
    kinds = ["429", "500", "think", "drop", "cut-json", "empty", "null-choices", "fence", "not-json", "503"]
    kinds += ["schema-refused", "529", "cut-finished", "prose"]
    arguments = [part for kind in kinds for part in ("--fault", f"{kind}:1")]
    ends = []
    with a_model(tmp_path, *arguments) as (model, _, _, _):
        for _ in range(12):
            try:
                ends.append(type(read_reply(SURVEY, model.reply(first_request(SURVEY)).text)).__name__)
            except (EndpointError, ReplyError) as error:
                ends.append(error.fault.kind.value)

    assert {"Extracted", "Unusable", "reply cut", "no answer"} == set(ends)
    assert ends[-1] == "Extracted"


def test_base_urls_of_all_spellings_ask_the_same_place(tmp_path: Path) -> None:
    """With and without slash and `/v1`, doubled, or the whole path: one URL in the server's log (bugs B147)."""
    with a_model(tmp_path) as (_, server, clock, memory):
        root = server.url.removesuffix("/v1")
        for base in (root, root + "/", root + "/v1", root + "/v1/", root + "/v1/v1", root + "/v1/chat/completions"):
            source = configured(LlmEndpoint(base_url=base, model="stub"), {})
            http_model(source, memory, clock).reply(first_request(SURVEY))
        paths = {call["path"] for call in server.calls()}

    assert {"/v1/chat/completions"} == paths


def test_a_stop_ends_a_wait_at_once(tmp_path: Path) -> None:
    """SIGTERM must not wait for a model: another thread's `stop` ends the read."""
    with a_model(tmp_path, "--fault", "hang", "--hang-s", "30", seconds=30) as (model, _, _, _):
        threading.Timer(0.3, model.stop).start()
        begin = time.monotonic()
        with pytest.raises(StoppedError):
            model.reply(first_request(SURVEY))
        took = time.monotonic() - begin
        with pytest.raises(StoppedError):
            model.reply(first_request(SURVEY))

    assert took < 3

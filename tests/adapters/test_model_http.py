"""The client against servers of odd shapes: errors in successes, ladders, sizes, redirects, secrets, time."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from pytest_httpserver import HTTPServer
from structlog.testing import capture_logs
from werkzeug import Request as Asked
from werkzeug import Response as Answered

import curatord
from curatord.adapters.model_http import HttpModel
from curatord.adapters.model_keys import configured
from curatord.adapters.model_transport import MAX_RESPONSE_BYTES
from curatord.adapters.models import http_model
from curatord.core.endpoint import Api, Endpoint, Secret
from curatord.core.model import EndpointError, FaultKind, Message, ReplyError, Request
from curatord.core.settings import KeyRef, LlmEndpoint, LlmPrice
from tests.fakes.model import HandClock, Memory

KEY = "made-up-key-" + "0123456789abcdef"
ASK = Request(task="survey", system="Sort.", messages=(Message(role="user", text="data"),), schema={"type": "object"})


def chat(text: str | None = "{}", finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    """Return a chat completion with defaults."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    return {"choices": [{"message": {"content": text}, "finish_reason": finish}], "usage": usage, "model": "m"} | more


def a_model(
    url: str, *, api: Api = "openai-chat", seconds: float = 5, **more: Any
) -> tuple[HttpModel, HandClock, Memory]:
    """Return a client of *url* whose waits take no time."""
    settings = LlmEndpoint(
        base_url=url,
        model="m",
        api=api,
        api_key=KeyRef(kind="env", name="K"),
        timeout=timedelta(seconds=seconds),
        **more,
    )
    clock, memory = HandClock(), Memory()
    model = http_model(configured(settings, {"K": KEY}), memory, clock, sleep=clock.sleep, chance=lambda: 0.0)
    return model, clock, memory


Handler = Callable[[dict[str, Any]], Any]


@pytest.fixture
def serve(httpserver: HTTPServer) -> Iterator[Callable[[Handler], tuple[str, list[dict[str, Any]]]]]:
    """Return a function that answers chat requests by a handler: a dict is a success, a tuple has the status first."""

    def start(handler: Handler) -> tuple[str, list[dict[str, Any]]]:
        asked: list[dict[str, Any]] = []

        def answer(request: Asked) -> Answered:
            asked.append(json.loads(request.get_data()))
            found = handler(asked[-1])
            if isinstance(found, Answered):
                return found
            status, body = found if isinstance(found, tuple) else (200, found)
            text = body if isinstance(body, str) else json.dumps(body)
            return Answered(text, status=status, content_type="application/json")

        httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
        httpserver.expect_request("/v1/messages").respond_with_handler(answer)
        return httpserver.url_for("/v1"), asked

    yield start
    httpserver.clear()


Serve = Callable[[Handler], tuple[str, list[dict[str, Any]]]]

IN_A_SUCCESS = [
    ({"error": {"message": "Rate limit reached", "code": 429}, "choices": None}, FaultKind.RATE, 3),
    ({"error": {"message": "Overloaded", "type": "overloaded_error"}}, FaultKind.SERVER, 3),
    ({"error": {"message": "Invalid API key", "code": "invalid_api_key"}}, FaultKind.AUTH, 1),
    ({"error": "model 'x' not found, try pulling it first"}, FaultKind.MODEL_UNKNOWN, 1),
    ({"object": "chat.completion"}, FaultKind.BAD_REPLY, 3),
    ({"choices": []}, FaultKind.BAD_REPLY, 3),
    ({"choices": [{"message": None}]}, FaultKind.BAD_REPLY, 3),
    ({"choices": ["text"]}, FaultKind.BAD_REPLY, 3),
    ("<html><body>Sign in to the portal</body></html>", FaultKind.BAD_REPLY, 3),
    ('{"choices": [', FaultKind.BAD_REPLY, 3),
    ("[" * 100_000, FaultKind.BAD_REPLY, 3),
    ("null", FaultKind.BAD_REPLY, 3),
    (chat(finish=None), FaultKind.BAD_REPLY, 3),
]


@pytest.mark.parametrize(("body", "kind", "requests"), IN_A_SUCCESS, ids=lambda v: str(v)[:30])
def test_a_success_that_is_none_is_told_from_one(serve: Serve, body: Any, kind: FaultKind, requests: int) -> None:
    """
    Error objects, missing choices, pages and half documents in a 200 are clean errors of the right class (bugs B137).
    """
    url, asked = serve(lambda _: body)
    with pytest.raises(EndpointError) as caught:
        a_model(url)[0].reply(ASK)

    assert (kind, requests) == (caught.value.fault.kind, len(asked))


def test_a_page_is_shown_with_its_beginning(serve: Serve) -> None:
    """Whoever reads the message sees what answered instead of the model."""
    url, _ = serve(lambda _: "<html>Sign in to the portal</html>" + "x" * 5000)
    with pytest.raises(EndpointError, match="Sign in to the portal") as caught:
        a_model(url)[0].reply(ASK)

    assert len(str(caught.value)) < 400


REFUSED = [
    (402, {"error": {"message": "Insufficient credits"}}, FaultKind.PAYMENT),
    (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}, FaultKind.PAYMENT),
    (400, {"error": {"message": "Your credit balance is too low to access the API"}}, FaultKind.PAYMENT),
    (401, {"error": {"message": "Incorrect API key provided"}}, FaultKind.AUTH),
    (403, {"error": {"message": "Forbidden"}}, FaultKind.AUTH),
    (401, {"error": {"message": "The model gpt-9 is not offered to this key"}}, FaultKind.MODEL_UNKNOWN),
    (404, {"error": {"message": "The model `m` does not exist"}}, FaultKind.MODEL_UNKNOWN),
    (404, "404 page not found", FaultKind.MODEL_UNKNOWN),
]
TOO_LONG = [
    (
        400,
        {
            "error": {
                "code": "context_length_exceeded",
                "message": "This model's maximum context length is 8192 tokens.",
            }
        },
    ),
    (
        400,
        {"error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}},
    ),
    (413, "Request Entity Too Large"),
    (400, {"error": {"message": "the request exceeds the available context size. try increasing the context size"}}),
]


@pytest.mark.parametrize(("status", "body", "kind"), REFUSED, ids=lambda v: str(v)[:40])
def test_permanent_refusals_take_one_request(serve: Serve, status: int, body: Any, kind: FaultKind) -> None:
    """Key, account and model are told apart by code and words, not by the status alone (bugs B138)."""
    url, asked = serve(lambda _: (status, body))
    with pytest.raises(EndpointError) as caught:
        a_model(url)[0].reply(ASK)

    assert (kind, 1) == (caught.value.fault.kind, len(asked))


@pytest.mark.parametrize(("status", "body"), TOO_LONG, ids=lambda v: str(v)[:40])
def test_a_prompt_that_is_too_long_is_not_sent_again(serve: Serve, status: int, body: Any) -> None:
    """Each provider words it differently; none of them is the endpoint's failure (bugs B139)."""
    url, asked = serve(lambda _: (status, body))
    with pytest.raises(ReplyError) as caught:
        a_model(url)[0].reply(ASK)

    assert (caught.value.fault.kind, len(asked)) == (FaultKind.TOO_LONG, 1)


def test_what_is_not_found_names_the_url_tried(serve: Serve) -> None:
    """A wrong base URL is seen at the first call (bugs B147)."""
    url, _ = serve(lambda _: (404, "nope"))
    with pytest.raises(EndpointError, match=f"{url}/chat/completions"):
        a_model(url)[0].reply(ASK)


FORMS = ["json_schema", "json_object+schema", "json_object", "none"]


def form_of(body: dict[str, Any]) -> str:
    """Return which step of the ladder *body* asks for."""
    form = body.get("response_format", {})
    return {"json_schema": "json_schema", "json_object": "json_object"}.get(form.get("type"), "none") + (
        "+schema" if "schema" in form else ""
    )


@pytest.mark.parametrize("takes", FORMS)
@pytest.mark.parametrize("status", [400, 422, 500])
def test_structure_is_a_ladder_climbed_once(serve: Serve, takes: str, status: int) -> None:
    """A server that takes only one form is found by one request a step; the second call makes no probe (bugs B144)."""

    def handler(body: dict[str, Any]) -> Any:
        if FORMS.index(form_of(body)) < FORMS.index(takes):
            return status, {"error": {"message": "response_format: input should be something else"}}
        return chat()

    url, asked = serve(handler)
    model, clock, _ = a_model(url)
    first, second = model.reply(ASK), model.reply(ASK)

    assert (FORMS.index(takes) + 1, 1) == (first.bill.requests, second.bill.requests)
    assert [*FORMS[: FORMS.index(takes) + 1], takes] == [form_of(body) for body in asked]
    assert clock.slept == []


def test_limit_names_and_temperature_are_stepped_down(serve: Serve) -> None:
    """`max_tokens`, then `max_completion_tokens`; a temperature where it is taken (bugs B145)."""

    def handler(body: dict[str, Any]) -> Any:
        if "max_tokens" in body:
            return 400, {
                "error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}
            }
        if "temperature" in body:
            return 400, {"error": {"message": "Unsupported value: 'temperature' does not support 0.2 with this model."}}
        return chat()

    url, asked = serve(handler)
    model, _, _ = a_model(url)
    bills = [model.reply(ASK).bill.requests for _ in range(2)]

    assert bills == [3, 1]
    assert (asked[-1]["max_completion_tokens"], form_of(asked[-1])) == (2048, "json_schema")


def test_openai_itself_is_asked_with_its_new_name_at_once() -> None:
    """Its own host needs no probe."""
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(200, stream=httpx.ByteStream(json.dumps(chat()).encode()))

    source = lambda: (Endpoint(api="openai-chat", base_url="https://api.openai.com", model="m"), None)  # noqa: E731
    http_model(source, Memory(), HandClock(), transport=httpx.MockTransport(handler)).reply(ASK)

    assert (asked[0]["max_completion_tokens"], "max_tokens" in asked[0]) == (8192, False)


def test_what_the_user_put_into_extra_body_is_neither_replaced_nor_dropped(serve: Serve) -> None:
    """
    His temperature wins; messages, model and streaming are ours; a refusal of his own is told, not stepped around.
    """
    url, asked = serve(
        lambda b: (400, {"error": {"message": "bad temperature"}}) if b["temperature"] == 1.5 else chat()
    )
    a_model(url, extra_body={"temperature": 1.0, "model": "other", "stream": True, "top_k": 5})[0].reply(ASK)
    with pytest.raises(ReplyError, match="bad temperature"):
        a_model(url, extra_body={"temperature": 1.5})[0].reply(ASK)

    assert tuple(asked[0][k] for k in ("temperature", "model", "stream", "top_k")) == (1.0, "m", False, 5)
    assert len(asked) == 2


def test_a_ladder_that_never_ends_well_is_not_remembered(serve: Serve) -> None:
    """A server that is down and speaks of schemas has not told what it takes."""
    url, _ = serve(lambda _: (500, "internal error in schema registry"))
    model, _, memory = a_model(url)
    with pytest.raises(EndpointError):
        model.reply(ASK)

    assert memory.rows == {}


WAITS = [
    ({"retry-after": "7"}, 7.0),
    ({"retry-after": "Sun, 01 Mar 2026 12:00:20 GMT"}, 20.0),
    ({"retry-after": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.5),
    ({"retry-after": "soon"}, 0.5),
    ({"retry-after": "-5"}, 0.5),
    ({"retry-after": "nan"}, 0.5),
    ({"retry-after-ms": "2500", "retry-after": "7"}, 2.5),
]


@pytest.mark.parametrize(("headers", "wait"), WAITS, ids=str)
def test_the_server_says_how_long_to_wait(serve: Serve, headers: dict[str, str], wait: float) -> None:
    """Seconds, a date, milliseconds; nonsense falls back to the backoff (bugs B133)."""
    answers = [Answered("{}", status=429, headers=headers), Answered(json.dumps(chat()))]
    url, _ = serve(lambda _: answers.pop(0))
    model, clock, _ = a_model(url)
    model.reply(ASK)

    assert [wait] == clock.slept


def test_a_wait_of_weeks_is_not_waited_for(serve: Serve) -> None:
    """Two weeks end the question at once, with the date (bugs B134)."""
    url, asked = serve(lambda _: Answered("{}", status=429, headers={"retry-after": "1209600"}))
    model, clock, _ = a_model(url)
    with pytest.raises(EndpointError, match="2026-03-15 12:00 UTC") as caught:
        model.reply(ASK)

    assert (caught.value.fault.kind, clock.slept) == (FaultKind.DEFERRED, [])
    assert len(asked) == 1
    assert clock.now() + timedelta(days=14) == caught.value.fault.until


def test_a_wait_beyond_the_deadline_is_not_begun(serve: Serve) -> None:
    """The run's time bounds its retries."""
    url, asked = serve(lambda _: Answered("{}", status=429, headers={"retry-after": "60"}))
    model, clock, _ = a_model(url)
    with pytest.raises(EndpointError):
        model.reply(ASK, deadline=clock.monotonic() + 30)

    assert (len(asked), clock.slept) == (1, [])


def test_no_more_requests_are_sent_than_allowed(serve: Serve) -> None:
    """Retries and steps down count against what the budget has left."""
    url, asked = serve(lambda _: (503, "busy"))
    with pytest.raises(EndpointError):
        a_model(url)[0].reply(ASK, max_requests=2)

    assert len(asked) == 2


NO_ANSWER = [
    (chat(None, "length"), FaultKind.NO_ANSWER),
    (chat("  \n", "stop"), FaultKind.NO_ANSWER),
    (chat('{"a": 1}', "length"), FaultKind.CUT),
    (chat('{"a": 1}', "content_filter"), FaultKind.REFUSED),
    (chat('{"a": 1}', "tool_calls"), FaultKind.CUT),
    (chat('{"a": 1}', "something new"), FaultKind.CUT),
]


@pytest.mark.parametrize(("body", "kind"), NO_ANSWER, ids=lambda v: str(v)[:60])
def test_only_a_stop_makes_an_answer(serve: Serve, body: Any, kind: FaultKind) -> None:
    """Whole JSON behind any other marker is not used (bugs B136, B143)."""
    url, asked = serve(lambda _: body)
    with pytest.raises(ReplyError) as caught:
        a_model(url)[0].reply(ASK)

    assert (kind, 1) == (caught.value.fault.kind, len(asked))


def test_reasoning_is_never_the_answer(serve: Serve) -> None:
    """Empty content beside full reasoning is no answer, and says why."""
    body = chat(None, "length")
    body["choices"][0]["message"]["reasoning_content"] = '{"clusters": []}'
    url, _ = serve(lambda _: body)
    with pytest.raises(ReplyError, match="only thoughts came") as caught:
        a_model(url)[0].reply(ASK)

    assert caught.value.text == ""


def test_parts_of_content_are_joined(serve: Serve) -> None:
    """Some servers send a list of parts, thoughts among them."""
    parts = [{"type": "thinking", "text": "hm"}, {"type": "text", "text": '{"a":'}, {"type": "text", "text": "1}"}]
    body = chat()
    body["choices"][0]["message"]["content"] = parts
    url, _ = serve(lambda _: body)

    assert a_model(url)[0].reply(ASK).text == '{"a":1}'


def test_a_cut_prompt_is_noticed(serve: Serve) -> None:
    """A server that read 2050 of some 7900 tokens answered another question (bugs B146)."""
    url, _ = serve(lambda _: chat(usage={"prompt_tokens": 2050, "completion_tokens": 5}))
    long = Request(task="survey", system="x" * 28_000, messages=ASK.messages)
    with pytest.raises(ReplyError, match="2050 tokens of a prompt of about") as caught:
        a_model(url)[0].reply(long)

    assert caught.value.fault.kind == FaultKind.PROMPT_CUT


def test_an_ignored_limit_is_noted(serve: Serve) -> None:
    """A server that takes no limit shows it in its count (bugs B145)."""
    url, _ = serve(lambda _: chat(usage={"prompt_tokens": 10, "completion_tokens": 50_000}))

    assert a_model(url)[0].reply(ASK).notes == ("the server ignored the limit of 2048 tokens and wrote 50000",)


USAGES = [
    ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 80}}, (100, 80, 10)),
    ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_cache_hit_tokens": 60}, (100, 60, 10)),
    ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 900}}, (100, 100, 10)),
    ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": None}, (100, 0, 10)),
]


@pytest.mark.parametrize(("usage", "expected"), USAGES, ids=str)
def test_cached_tokens_are_booked_apart(serve: Serve, usage: dict[str, Any], expected: tuple[int, int, int]) -> None:
    """They are part of the prompt's, and cheaper."""
    url, _ = serve(lambda _: chat(usage=usage))
    bill = a_model(url, price=LlmPrice(input=1.0, cached_input=0.1, output=10.0))[0].reply(ASK).bill
    sent, cached, got = expected

    assert expected == (bill.usage.input_tokens, bill.usage.cached_tokens, bill.usage.output_tokens)
    assert ((sent - cached) * 1.0 + cached * 0.1 + got * 10.0) / 1e6 == pytest.approx(bill.usd)


@pytest.mark.parametrize(
    "usage", [None, "many", {"prompt_tokens": -1, "completion_tokens": 5}, {"prompt_tokens": True}]
)
def test_counts_that_cannot_be_are_not_believed(serve: Serve, usage: Any) -> None:
    """A nonsense count is no count; ours is booked and called an estimate."""
    url, _ = serve(lambda _: chat(usage=usage))

    assert a_model(url)[0].reply(ASK).bill.usage.estimated


def test_costs_are_the_price_or_the_servers_word_or_unknown(serve: Serve) -> None:
    """Unknown is never zero."""
    said = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.25}
    answers: list[Any] = [
        chat(),
        chat(usage=said),
        Answered(json.dumps(chat()), headers={"x-litellm-response-cost": "0.5"}),
        chat(usage=said),
    ]
    url, _ = serve(lambda _: answers.pop(0))
    model, _, _ = a_model(url)
    priced = a_model(url, price=LlmPrice(input=1e5, cached_input=1e5, output=0))[0]

    assert [model.reply(ASK).bill.usd for _ in range(3)] == [None, 0.25, 0.5]
    assert pytest.approx(priced.reply(ASK).bill.usd) == 1.0


def test_anthropic_counts_and_marks(serve: Serve) -> None:
    """Its cache is counted beside the rest; its system block is marked for it; its key has its own header."""
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 20}
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "{}"}]
    url, asked = serve(lambda _: {"content": blocks, "stop_reason": "end_turn", "usage": usage})
    reply = a_model(url, api="anthropic-messages")[0].reply(ASK)

    assert (reply.text, reply.bill.usage.input_tokens, reply.bill.usage.cached_tokens) == ("{}", 110, 80)
    assert asked[0]["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert asked[0]["output_config"]["format"]["type"] == "json_schema"


def test_anthropic_steps_down_from_structure(serve: Serve) -> None:
    """Compatible servers that know no such field name it, and are asked without."""
    done = {"content": [{"type": "text", "text": "{}"}], "stop_reason": "end_turn"}
    refused = (400, {"type": "error", "error": {"message": "output_config: Extra inputs are not permitted"}})
    url, asked = serve(lambda body: refused if "output_config" in body else done)
    a_model(url, api="anthropic-messages")[0].reply(ASK)

    assert ["output_config" in body for body in asked] == [True, False]


def test_a_redirect_is_not_followed(serve: Serve, httpserver: HTTPServer) -> None:
    """It would take key and transcript to a host that nobody configured; the message names it."""
    url, asked = serve(lambda _: Answered("", status=307, headers={"location": "http://other.example.org/v1"}))
    with pytest.raises(EndpointError, match=r"to other\.example\.org, not followed") as caught:
        a_model(url)[0].reply(ASK)

    assert (caught.value.fault.kind, len(asked)) == (FaultKind.REDIRECT, 1)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_response_without_end_is_not_read_to_its_end(serve: Serve, packed: bool) -> None:
    """Sixteen megabytes are enough, also of what a few kilobytes unpack to."""
    body = b" " * (MAX_RESPONSE_BYTES + 10)
    headers = {"content-encoding": "gzip"} if packed else {}
    url, _ = serve(lambda _: Answered(gzip.compress(body) if packed else body, headers=headers))
    with pytest.raises(EndpointError, match="larger than"):
        a_model(url)[0].reply(ASK, max_requests=1)


def test_a_packed_answer_is_read(serve: Serve) -> None:
    """Some proxies pack whatever was asked."""
    url, _ = serve(lambda _: Answered(gzip.compress(json.dumps(chat()).encode()), headers={"content-encoding": "gzip"}))

    assert a_model(url)[0].reply(ASK).text == "{}"


def test_an_unknown_packing_is_refused(serve: Serve) -> None:
    """What cannot be bounded is not unpacked."""
    url, _ = serve(lambda _: Answered(b"x", headers={"content-encoding": "br"}))
    with pytest.raises(EndpointError, match="packed with br"):
        a_model(url)[0].reply(ASK)


@pytest.mark.parametrize("drip", ["headers", "body"])
def test_a_server_that_drips_is_left_when_its_time_is_over(drip: str) -> None:
    """Each byte comes within the silence allowed, and the whole still ends (bugs B132)."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def feed() -> None:
            connection, _ = server.accept()
            with closing(connection):
                start = b"HTTP/1.1 200 OK\r\n" + (b"x-a: " if drip == "headers" else b"content-length: 99999\r\n\r\n")
                try:
                    connection.sendall(start)
                    while True:
                        connection.sendall(b" ")
                        time.sleep(0.05)
                except OSError:
                    return

        threading.Thread(target=feed, daemon=True).start()
        model, _, _ = a_model(f"http://127.0.0.1:{server.getsockname()[1]}", seconds=0.3)
        begin = time.monotonic()
        with pytest.raises(EndpointError, match="did not finish within") as caught:
            model.reply(ASK, max_requests=1)
        took = time.monotonic() - begin

    assert caught.value.fault.kind == FaultKind.TIMEOUT
    assert 0.8 < took < 3


def test_a_proxy_is_used_where_one_is_named() -> None:
    """Not from the environment, but where the endpoint has one."""
    lines: list[bytes] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve_once() -> None:
            connection, _ = server.accept()
            with closing(connection):
                lines.append(connection.recv(65536).split(b"\r\n", 1)[0])
                body = json.dumps(chat()).encode()
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))

        thread = threading.Thread(target=serve_once, daemon=True)
        thread.start()
        proxy = f"http://127.0.0.1:{server.getsockname()[1]}"
        endpoint = Endpoint(api="openai-chat", base_url="http://llm.example.org/v1", model="m", proxy=proxy)
        http_model(lambda: (endpoint, None), Memory(), HandClock()).reply(ASK, max_requests=1)
        thread.join(5)

    assert [b"POST http://llm.example.org/v1/chat/completions HTTP/1.1"] == lines


def test_nobody_there_is_said_plainly() -> None:
    """A server that is not running: three tries, then unreachable."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    model, clock, _ = a_model(f"http://127.0.0.1:{port}")
    with pytest.raises(EndpointError) as caught:
        model.reply(ASK)

    assert (caught.value.fault.kind, caught.value.bill.requests) == (FaultKind.NETWORK, 3)
    assert len(clock.slept) == 2


def test_the_environment_sends_nothing_elsewhere(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies, foreign keys and base URLs of the environment change neither where we ask nor with what (bugs B148)."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    monkeypatch.setenv("OPENAI_API_KEY", "another-key-0123456789")
    seen = []
    url, _ = serve(lambda _: chat())

    model, _, _ = a_model(url)
    post = model.wire.post

    def watch(*args: Any, **kwargs: Any) -> Any:
        seen.append(kwargs["key"].key.reveal())
        return post(*args, **kwargs)

    model.wire.post = watch  # type: ignore[method-assign]
    model.reply(ASK)

    assert seen == [KEY]


def test_the_key_is_in_no_message_log_or_traceback(serve: Serve) -> None:
    """Not when the server echoes it, not in logs, not in a traceback with every local variable."""
    url, _ = serve(lambda b: (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    model, _, _ = a_model(url)
    with capture_logs() as logs, pytest.raises(EndpointError) as caught:
        model.reply(ASK)
    trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    package = str(Path(curatord.__file__).parent)
    ours = [f for f in trace.stack if f.filename.startswith(package)]
    shown = "".join(str(f.locals) for f in ours) + str(caught.value) + repr(caught.value.fault) + str(logs)

    assert ours
    assert KEY not in shown
    assert "[redacted:" in caught.value.fault.words


def test_the_key_does_not_come_back_in_a_reply(serve: Serve) -> None:
    """Whatever a server does with the header."""
    url, _ = serve(lambda _: chat(json.dumps({"said": KEY})))

    assert KEY not in a_model(url)[0].reply(ASK).text


def test_a_secret_shows_itself_nowhere() -> None:
    """Not as text, not pickled."""
    import pickle

    secret = Secret(KEY)
    with pytest.raises(TypeError):
        pickle.dumps(secret)

    assert KEY not in f"{secret} {secret!r} {[secret]}"


def test_parallel_questions_share_what_was_learnt(serve: Serve) -> None:
    """Several threads step down together and none fails."""
    refused = (400, {"error": {"message": "unknown field response_format"}})
    url, _ = serve(lambda body: refused if "response_format" in body else chat())
    model, _, memory = a_model(url)
    replies: list[Any] = []
    threads = [threading.Thread(target=lambda: replies.append(model.reply(ASK))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(replies) == 6
    assert json.loads(next(iter(memory.rows.values())))["structure"] == "none"

"""Endpoints: one URL for every spelling, limits and times worked out, refusals of nonsense, what is remembered."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from curatord.core.endpoint import Api, Endpoint, endpoint_notes, is_loopback, normal_url, workers
from curatord.core.endpoint_memory import BREAKER_WAIT, Breaker, Takes
from curatord.core.model import Fault, FaultKind
from curatord.core.settings import LlmEndpoint, LlmSettings
from curatord.errors import ConfigError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

URLS: list[tuple[Api, str, str]] = [
    ("openai-chat", "http://localhost:11434", "http://localhost:11434/v1/chat/completions"),
    ("openai-chat", "http://localhost:11434/", "http://localhost:11434/v1/chat/completions"),
    ("openai-chat", "http://localhost:11434/v1", "http://localhost:11434/v1/chat/completions"),
    ("openai-chat", " http://localhost:11434/v1/ ", "http://localhost:11434/v1/chat/completions"),
    ("openai-chat", "http://localhost:11434/v1/v1/", "http://localhost:11434/v1/chat/completions"),
    ("openai-chat", "http://localhost:11434//v1//chat/completions", "http://localhost:11434/v1/chat/completions"),
    ("openai-chat", "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
    ("openai-chat", "https://api.z.ai/api/paas/v4", "https://api.z.ai/api/paas/v4/chat/completions"),
    ("openai-chat", "https://x.example.org/d?api-version=1", "https://x.example.org/d/chat/completions?api-version=1"),
    ("openai-chat", "HTTP://[::1]:8080", "http://[::1]:8080/v1/chat/completions"),
    ("anthropic-messages", "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
    ("anthropic-messages", "https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
    ("anthropic-messages", "https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1/messages"),
    ("anthropic-messages", "https://api.minimax.io/anthropic", "https://api.minimax.io/anthropic/v1/messages"),
]


@pytest.mark.parametrize(("api", "base", "url"), URLS)
def test_every_spelling_of_a_base_is_one_url(api: Api, base: str, url: str) -> None:
    """Slashes, a missing or doubled `/v1`, the whole path (bugs B147); and doing it twice changes nothing."""
    assert url == normal_url(api, base) == normal_url(api, normal_url(api, base))


NONSENSE: list[dict[str, Any]] = [
    {"base_url": "localhost:11434"},
    {"base_url": "ftp://host/"},
    {"base_url": "http:///v1"},
    {"base_url": "http://host:port/v1"},
    {"base_url": "https://me:secret@host/v1"},
    {"model": " "},
    {"timeout": timedelta(0)},
    {"context_tokens": 100},
    {"max_output_tokens": 1},
]


@pytest.mark.parametrize("change", NONSENSE, ids=str)
def test_nonsense_is_refused_without_being_quoted(change: dict[str, Any]) -> None:
    """The message names the key and does not repeat a password."""
    with pytest.raises(ConfigError) as caught:
        Endpoint.of(LlmEndpoint(**({"base_url": "http://localhost/v1", "model": "m"} | change)))

    assert next(iter(change)) == caught.value.key
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:1", True),
        ("http://127.0.0.5:1", True),
        ("http://[::1]:1", True),
        ("http://ollama.localhost", True),
        ("http://0.0.0.0:1", False),
        ("http://192.168.1.5:1", False),
        ("http://localhost.example.org", False),
        ("http://127.0.0.1.example.org", False),
    ],
)
def test_loopback_is_what_cannot_be_anything_else(url: str, expected: bool) -> None:
    """A name that only looks like this machine is another one."""
    assert expected == is_loopback(url)


def test_a_server_of_this_machine_has_other_defaults() -> None:
    """A small context, a long silence, one request at a time; the answer's room is a quarter of the context."""
    near = Endpoint.of(LlmEndpoint(base_url="http://localhost/v1", model="m"))
    far = Endpoint.of(LlmEndpoint(base_url="https://api.example.org/v1", model="m"))

    assert (near.context, near.output_limit, near.timeouts.idle) == (8192, 2048, 600.0)
    assert (far.context, far.output_limit, far.timeouts.idle) == (128_000, 8192, 120.0)
    assert (far.timeouts.connect, far.timeouts.whole) == (10.0, 360.0)


def test_what_a_doctor_should_say() -> None:
    """Plain http to another machine, and proxies that are left out; nothing about this machine."""
    plain = Endpoint(api="openai-chat", base_url="http://10.0.0.5/v1", model="m")
    near = Endpoint(api="openai-chat", base_url="http://localhost/v1", model="m")
    proxies = {"HTTPS_PROXY": "http://proxy:3128", "http_proxy": ""}

    assert [True, True] == [word in " ".join(endpoint_notes(plain, proxies)) for word in ("unencrypted", "HTTPS_PROXY")]
    assert () == endpoint_notes(near, proxies)


def test_requests_at_a_time() -> None:
    """What the user says, else one for a server of this machine or a host's own model, else four."""
    near = LlmEndpoint(base_url="http://localhost/v1", model="m")
    far = LlmEndpoint(base_url="https://api.example.org/v1", model="m")

    assert [
        workers(LlmSettings(primary=near)),
        workers(LlmSettings(primary=far)),
        workers(LlmSettings(from_host="hermes")),
        workers(LlmSettings(primary=near, concurrency=3)),
    ] == [1, 4, 1, 3]


def test_what_a_server_takes_survives_the_store() -> None:
    """A row of another version is no row."""
    takes = Takes(structure="json_object", limit="none", temperature=False)

    assert takes == Takes.from_dict(json.loads(json.dumps(takes.as_dict())))
    assert [Takes.from_dict(row) for row in ({}, {"structure": "xml"}, takes.as_dict() | {"limit": 3})] == [None] * 3


def test_a_breaker_survives_the_store_and_ends() -> None:
    """It holds for its fingerprint, from its opening to its end; a clock that was set back opens it."""
    breaker = Breaker.after(Fault(kind=FaultKind.PAYMENT, message="no credit"), "f", NOW)
    assert breaker is not None
    again = Breaker.from_dict(json.loads(json.dumps(breaker.as_dict())))

    assert breaker == again
    assert [
        breaker.holds(NOW, "f"),
        breaker.holds(NOW + BREAKER_WAIT - timedelta(seconds=1), "f"),
        breaker.holds(NOW + BREAKER_WAIT, "f"),
        breaker.holds(NOW, "other"),
        breaker.holds(NOW - timedelta(days=30), "f"),
    ] == [True, True, False, False, False]
    assert [
        Breaker.from_dict(row)
        for row in ({}, breaker.as_dict() | {"until": "soon"}, breaker.as_dict() | {"until": "2026-01-01T00:00:00"})
    ] == [None] * 3


@pytest.mark.parametrize(
    "kind", [FaultKind.RATE, FaultKind.SERVER, FaultKind.NETWORK, FaultKind.CUT, FaultKind.TOO_LONG]
)
def test_what_passes_opens_no_breaker(kind: FaultKind) -> None:
    """Tomorrow it may work."""
    assert Breaker.after(Fault(kind=kind, message="x"), "f", NOW) is None

"""The model that Hermes' own files name: its order, its keys, and what is refused instead of guessed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from curatord.core.hermes_model import HostModel, NotUsable, choose, parse_env

ENV = {
    "OPENROUTER_API_KEY": "or-key-1234",
    "ANTHROPIC_API_KEY": "an-key-1234",
    "MY_KEY": "my-key-1234",
    "OPENAI_API_KEY": "oa-key",
}
MAIN = {"model": {"provider": "openrouter", "default": "main/model"}}


def key_of(found: HostModel | NotUsable) -> str | None:
    """Return the key found."""
    assert isinstance(found, HostModel), found
    return found.key.reveal() if found.key else None


USABLE: list[tuple[dict[str, Any], tuple[str, str, str, str | None]]] = [
    (MAIN, ("openrouter", "main/model", "https://openrouter.ai/api/v1", "or-key-1234")),
    (
        MAIN | {"auxiliary": {"curator": {"provider": "anthropic", "model": "small"}}},
        ("anthropic", "small", "https://api.anthropic.com", "an-key-1234"),
    ),
    (
        MAIN | {"auxiliary": {"curator": {"provider": "anthropic"}}},
        ("openrouter", "main/model", "https://openrouter.ai/api/v1", "or-key-1234"),
    ),
    (
        MAIN | {"auxiliary": {"curator": {"model": "small"}}},
        ("openrouter", "main/model", "https://openrouter.ai/api/v1", "or-key-1234"),
    ),
    (
        MAIN | {"auxiliary": {"curator": {"provider": "auto", "model": "small", "api_key": "slot-key"}}},
        ("openrouter", "main/model", "https://openrouter.ai/api/v1", "or-key-1234"),
    ),
    (
        MAIN | {"auxiliary": {"curator": {"provider": "main", "model": "small"}}},
        ("openrouter", "small", "https://openrouter.ai/api/v1", "or-key-1234"),
    ),
    (
        MAIN | {"curator": {"auxiliary": {"provider": "openrouter", "model": "old"}}},
        ("openrouter", "old", "https://openrouter.ai/api/v1", "or-key-1234"),
    ),
    (
        MAIN
        | {
            "curator": {"auxiliary": {"provider": "openrouter", "model": "old"}},
            "auxiliary": {"curator": {"provider": "openrouter", "model": "new", "api_key": "${MY_KEY}"}},
        },
        ("openrouter", "new", "https://openrouter.ai/api/v1", "my-key-1234"),
    ),
    (
        {"model": {"provider": "custom", "default": "qwen", "base_url": "http://localhost:11434/v1"}},
        ("custom", "qwen", "http://localhost:11434/v1", None),
    ),
    (
        {"model": {"provider": "ollama", "model": "qwen", "base_url": "http://localhost:11434/v1"}},
        ("custom", "qwen", "http://localhost:11434/v1", None),
    ),
    (
        {"model": {"default": "qwen", "base_url": "http://10.0.0.5:8000/v1"}},
        ("custom", "qwen", "http://10.0.0.5:8000/v1", None),
    ),
    (
        {
            "model": {"provider": "custom:work", "default": "m"},
            "custom_providers": [{"name": "Work", "base_url": "https://llm.example.org/v1", "key_env": "MY_KEY"}],
        },
        ("custom:work", "m", "https://llm.example.org/v1", "my-key-1234"),
    ),
    (
        {
            "model": {"provider": "work", "default": "m"},
            "providers": {"work": {"api": "https://llm.example.org/v1", "api_key": "k-1"}},
        },
        ("work", "m", "https://llm.example.org/v1", "k-1"),
    ),
]


@pytest.mark.parametrize(("config", "expected"), USABLE)
def test_the_section_that_wins_gives_all_of_it(config: dict[str, Any], expected: tuple[str, ...]) -> None:
    """Slot before legacy before main; key and URL of a slot count only where the slot wins."""
    found = choose(config, ENV)

    assert isinstance(found, HostModel), found
    assert expected == (found.provider, found.model, found.base_url, key_of(found))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "names no model"),
    ({"model": "some-model"}, "leaves the provider to Hermes"),
    ({"model": {"provider": "auto", "default": "m"}}, "leaves the provider to Hermes"),
    ({"model": {"provider": "openrouter"}}, "names no model"),
    ({"model": {"provider": "nous", "default": "m"}}, "a login and not a key"),
    ({"model": {"provider": "openai-codex", "default": "m"}}, "a login and not a key"),
    ({"model": {"provider": "custom", "default": "m"}}, "without a base_url"),
    ({"model": {"provider": "never-heard-of", "default": "m"}}, "not known here"),
    ({"model": {"provider": "deepseek", "default": "m"}}, "DEEPSEEK_API_KEY"),
    ({"model": {"provider": "openrouter", "default": "m", "api_mode": "codex_responses"}}, "codex_responses"),
    ({"model": {"provider": "anthropic", "default": "m", "api_key": "sk-ant-oat" + "01-x"}}, "that of a login"),
    (
        {"model": {"provider": "openrouter", "default": "m", "base_url": "https://evil.example.org/v1"}},
        "evil.example.org",
    ),
    ({"model": ["odd"]}, "names no model"),
    ({"model": {"provider": 5, "default": {}}}, "leaves the provider"),
    ({"auxiliary": {"curator": {"provider": "main", "model": "m"}}}, "config.yaml names none"),
]


@pytest.mark.parametrize(("config", "words"), REFUSED)
def test_what_cannot_be_used_is_said(config: dict[str, Any], words: str) -> None:
    """Never guessed, and no key in the words."""
    found = choose(config, ENV)

    assert isinstance(found, NotUsable), found
    assert words in found.reason
    assert not any(key in found.reason for key in ENV.values())


def test_a_key_of_env_goes_to_its_own_host_only() -> None:
    """A local server with a provider's name gets no key; another host gets one only where it stands beside it."""
    local = {"model": {"provider": "openrouter", "default": "m", "base_url": "http://localhost:9/v1"}}
    moved = {
        "model": {"provider": "openrouter", "default": "m", "base_url": "https://x.example.org", "api_key": "own-key"}
    }

    assert key_of(choose(local, ENV)) is None
    assert key_of(choose(moved, ENV)) == "own-key"


def test_apis_are_told_apart() -> None:
    """By the provider, by `api_mode`, by the path."""
    rows = [
        {"provider": "anthropic", "default": "m"},
        {"provider": "custom", "default": "m", "base_url": "https://x.example.org/anthropic"},
        {
            "provider": "custom",
            "default": "m",
            "base_url": "https://x.example.org/v1",
            "api_mode": "anthropic_messages",
        },
        {"provider": "custom", "default": "m", "base_url": "https://x.example.org/v1"},
    ]
    found = [choose({"model": row}, ENV) for row in rows]

    assert [f.api for f in found if isinstance(f, HostModel)] == ["anthropic-messages"] * 3 + ["openai-chat"]


def test_settings_of_the_slot_come_along() -> None:
    """Timeout and extra body are used, what is not passed on is noted."""
    slot = {"provider": "openrouter", "model": "m", "timeout": 600, "extra_body": {"a": 1}, "reasoning_effort": "low"}
    found = choose({"auxiliary": {"curator": slot}}, ENV)

    assert isinstance(found, HostModel)
    assert (timedelta(seconds=600), {"a": 1}) == (found.timeout, found.extra_body)
    assert "reasoning_effort" in found.notes[0]


def test_env_files_are_read_as_shells_write_them() -> None:
    """Exports, quotes, comments, Windows line ends, a byte order mark; odd lines are passed over."""
    text = "\ufeffA=1\r\nexport B='two # 2'\n# C=3\nD=\"four\" # note\nE=five # note\nodd line\n  F = six\nA=last\nG=\n"

    assert parse_env(text) == {"A": "last", "B": "two # 2", "D": "four", "E": "five", "F": "six", "G": ""}

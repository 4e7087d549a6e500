"""Keys and hosts' files: read at each call, bounded, and never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from curatord.adapters.model_hermes import from_hermes, hermes_choice
from curatord.adapters.model_keys import configured, read_key
from curatord.adapters.models import models_of
from curatord.core.hermes_model import NotUsable
from curatord.core.model import EndpointError, FaultKind
from curatord.core.settings import KeyRef, LlmEndpoint, LlmSettings
from curatord.errors import ConfigError
from tests.fakes.model import HandClock, Memory

KEY = "made-up-0123456789"


def test_a_key_is_read_from_where_it_is_said_to_be(tmp_path: Path) -> None:
    """Environment, file, systemd credential; a line break at the end is no part of it."""
    (tmp_path / "key").write_text(KEY + "\n", encoding="utf-8")
    environment = {"K": f" {KEY} ", "CREDENTIALS_DIRECTORY": str(tmp_path)}
    refs = [
        KeyRef(kind="env", name="K"),
        KeyRef(kind="file", name=str(tmp_path / "key")),
        KeyRef(kind="credential", name="key"),
    ]

    assert [read_key(ref, environment).reveal() for ref in refs] == [KEY] * 3


def test_a_new_key_is_used_at_the_next_call(tmp_path: Path) -> None:
    """Nobody restarts a daemon for a rotated key; the fingerprint changes, so a breaker closes."""
    file = tmp_path / "key"
    file.write_text("first-key-1234", encoding="utf-8")
    ref = KeyRef(kind="file", name=str(file))
    settings = LlmSettings(primary=LlmEndpoint(base_url="http://localhost/v1", model="m", api_key=ref))
    primary, fallback = models_of(settings, Memory(), HandClock(), environment={})
    before = primary.identity().fingerprint
    file.write_text("second-key-1234", encoding="utf-8")

    assert fallback is None
    assert before != primary.identity().fingerprint


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        (KeyRef(kind="env", name="K"), "K of this process is not set"),
        (KeyRef(kind="file", name="missing"), "does not exist"),
        (KeyRef(kind="file", name="."), "no plain file"),
        (KeyRef(kind="file", name="empty"), "is empty"),
        (KeyRef(kind="file", name="two"), "more than one key"),
        (KeyRef(kind="file", name="umlaut"), "characters that no key has"),
        (KeyRef(kind="file", name="big"), "larger than any key"),
        (KeyRef(kind="credential", name="k"), "CREDENTIALS_DIRECTORY is not set"),
    ],
    ids=str,
)
def test_a_key_that_cannot_be_used_is_a_fault_of_configuration(tmp_path: Path, ref: KeyRef, words: str) -> None:
    """It says where was looked and never what was found; the fallback may be asked."""
    for name, text in {"empty": "\n", "two": f"{KEY}\n{KEY}2", "umlaut": f"{KEY}ü", "big": "x" * 20_000}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    if ref.kind == "file":
        ref = KeyRef(kind="file", name=str(tmp_path / ref.name))
    with pytest.raises(EndpointError, match=words) as caught:
        read_key(ref, {})

    assert caught.value.fault.kind == FaultKind.CONFIG
    assert KEY not in str(caught.value) + caught.value.hint


def test_a_credential_cannot_name_another_file(tmp_path: Path) -> None:
    """It is a name, not a path."""
    (tmp_path / "key").write_text(KEY, encoding="utf-8")
    with pytest.raises(EndpointError, match="no name of a systemd credential"):
        read_key(KeyRef(kind="credential", name="../key"), {"CREDENTIALS_DIRECTORY": str(tmp_path / "c")})


def test_an_endpoint_without_a_key_has_none() -> None:
    """Servers of this machine want none, and none is looked for."""
    endpoint, key = configured(LlmEndpoint(base_url="http://localhost/v1", model="m"), {"OPENAI_API_KEY": KEY})()

    assert (endpoint.model, key) == ("m", None)


def a_home(folder: Path, config: str, env: str = "") -> Path:
    """Make a Hermes home."""
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    (folder / ".env").write_text(env, encoding="utf-8")
    return folder


CONFIG = "model:\n  provider: openrouter\n  default: some/model\n"


def test_hermes_is_read_again_at_each_call(tmp_path: Path) -> None:
    """Its user changes the model, and the next question goes there."""
    home = a_home(tmp_path, CONFIG, f"OPENROUTER_API_KEY={KEY}\n")
    source = from_hermes(home)
    first, key = source()
    a_home(tmp_path, CONFIG.replace("some/model", "other/model"), f"OPENROUTER_API_KEY={KEY}\n")
    second, _ = source()

    assert (first.model, second.model, key.reveal() if key else None) == ("some/model", "other/model", KEY)
    assert (first.url, first.provider) == ("https://openrouter.ai/api/v1/chat/completions", "hermes:openrouter")


def test_hermes_home_is_found_as_hermes_finds_it(tmp_path: Path) -> None:
    """`$HERMES_HOME` first; our own environment gives no keys."""
    a_home(tmp_path, CONFIG)
    found = hermes_choice(environment={"HERMES_HOME": str(tmp_path), "OPENROUTER_API_KEY": KEY})

    assert isinstance(found, NotUsable)
    assert "OPENROUTER_API_KEY" in found.reason


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (f"model: [\n  api_key: {KEY}", "no YAML"),
        ("- a\n- b\n", "no settings"),
        ("", "no settings"),
        (
            "model: {provider: openrouter, default: m, base_url: 'http://me:pw@host/v1', api_key: k-123456}",
            "name or password",
        ),
        ("x: " + "[" * 5000, "YAML"),
    ],
    ids=lambda v: str(v)[:20],
)
def test_a_broken_config_of_hermes_is_a_fault_and_shows_no_line_of_it(tmp_path: Path, config: str, words: str) -> None:
    """A line of it may hold a key."""
    with pytest.raises(EndpointError, match=words) as caught:
        from_hermes(a_home(tmp_path, config))()

    assert caught.value.fault.kind == FaultKind.CONFIG
    assert KEY not in str(caught.value)


def test_no_hermes_is_said(tmp_path: Path) -> None:
    """The path looked at is named."""
    with pytest.raises(EndpointError, match=r"config\.yaml is not there"):
        from_hermes(tmp_path / "none")()


@pytest.mark.parametrize(
    "settings",
    [LlmSettings(), LlmSettings(primary=LlmEndpoint(base_url="http://localhost", model="m"), from_host="hermes")],
    ids=["neither", "both"],
)
def test_either_a_model_or_a_host_is_named(settings: LlmSettings) -> None:
    """Two answers to one question are none."""
    with pytest.raises(ConfigError):
        models_of(settings, Memory(), HandClock())

"""From the `llm` settings to the models that are asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from curatord.adapters.model_anthropic import AnthropicMessages
from curatord.adapters.model_dialect import Dialect
from curatord.adapters.model_hermes import from_hermes
from curatord.adapters.model_http import HttpModel, Source
from curatord.adapters.model_keys import configured
from curatord.adapters.model_openai import OpenAiChat
from curatord.core.endpoint import Api
from curatord.core.settings import LlmSettings
from curatord.errors import ConfigError
from curatord.ports.clock import Clock
from curatord.ports.model import EndpointMemory

__all__ = ["DIALECTS", "http_model", "models_of"]

DIALECTS: Mapping[Api, Dialect] = {"openai-chat": OpenAiChat(), "anthropic-messages": AnthropicMessages()}


def http_model(source: Source, memory: EndpointMemory, clock: Clock, **options: Any) -> HttpModel:
    """Return a model over HTTP that speaks every dialect there is; *options* are `HttpModel`'s."""
    return HttpModel(source, DIALECTS, memory, clock, **options)


def models_of(
    settings: LlmSettings,
    memory: EndpointMemory,
    clock: Clock,
    *,
    hermes_home: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    on_start: Callable[[HttpModel], None] = lambda _: None,
) -> tuple[HttpModel, HttpModel | None]:
    """
    Return primary and fallback. Nothing is read or asked yet.

    Args:
        settings: The `llm` section.
        memory: What is remembered of endpoints.
        clock: The time.
        hermes_home: For `from_host: hermes`; None: its default place.
        environment: Where keys of kind `env` and `credential` are looked for.
        on_start: Told of each model, so that a stop can reach it (`HttpModel.stop`).

    Raises:
        ConfigError: Neither or both of `primary` and `from_host` are set, or a value makes no endpoint.
    """
    if (settings.primary is None) == (settings.from_host is None):
        raise ConfigError(
            "llm needs either primary or from_host", key="llm", hint="name a model, or a host to take it from"
        )
    if settings.primary is not None:
        source = configured(settings.primary, environment)
    else:
        source = from_hermes(hermes_home, environment=environment)
    primary = http_model(source, memory, clock)
    fallback = http_model(configured(settings.fallback, environment), memory, clock) if settings.fallback else None
    for model in (primary, fallback):
        if model is not None:
            on_start(model)
    return primary, fallback

"""`from_host: hermes`: the endpoint and key that Hermes' own files name, read again at each call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from curatord.adapters.model_keys import endpoint_of, unusable
from curatord.core.endpoint import Endpoint, Secret
from curatord.core.hermes_model import HostModel, NotUsable, choose, parse_env
from curatord.core.settings import LlmPrice

__all__ = ["from_hermes", "hermes_choice"]

MAX_BYTES = 4 * 1024 * 1024


def hermes_choice(home: Path | None = None, environment: Mapping[str, str] = os.environ) -> HostModel | NotUsable:
    """
    Return what Hermes' files name now; `doctor` shows it.

    Args:
        home: Hermes' home; None: `$HERMES_HOME`, else `~/.hermes`.
        environment: Only `HERMES_HOME` is looked at.
    """
    place = home or Path(environment.get("HERMES_HOME") or "~/.hermes").expanduser()
    config = _config(place / "config.yaml")
    if isinstance(config, NotUsable):
        return config
    env_text = _read(place / ".env")
    if isinstance(env_text, NotUsable):
        return env_text
    return choose(config, parse_env(env_text or ""))


def from_hermes(
    home: Path | None = None,
    *,
    max_output_tokens: int = 8192,
    price: LlmPrice | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Callable[[], tuple[Endpoint, Secret | None]]:
    """
    Return the source of the endpoint that Hermes uses; it raises `EndpointError` (CONFIG) where there is none for us.
    """

    def source() -> tuple[Endpoint, Secret | None]:
        found = hermes_choice(home, environment)
        if isinstance(found, NotUsable):
            raise unusable(f"from_host: hermes: {found.reason}", found.hint)
        endpoint = endpoint_of(
            lambda: Endpoint(
                api=found.api,
                base_url=found.base_url,
                model=found.model,
                timeout=found.timeout,
                context_tokens=found.context_tokens,
                max_output_tokens=max_output_tokens,
                price=price,
                extra_body=found.extra_body,
                provider=f"hermes:{found.provider}",
            )
        )
        return endpoint, found.key

    return source


def _config(path: Path) -> Mapping[str, Any] | NotUsable:
    import yaml

    text = _read(path)
    if isinstance(text, NotUsable):
        return text
    if text is None:
        return NotUsable(
            reason=f"{path} is not there", hint="is Hermes installed for this user? $HERMES_HOME names its home"
        )
    try:
        row = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe loaders
    except yaml.YAMLError as error:
        # The library's message quotes the line, which may hold a key.
        mark = getattr(error, "problem_mark", None)
        return NotUsable(reason=f"{path} is no YAML" + (f" at line {mark.line + 1}" if mark else ""))
    except (RecursionError, ValueError):
        return NotUsable(reason=f"{path} cannot be read as YAML")
    return row if isinstance(row, Mapping) else NotUsable(reason=f"{path} holds no settings")


def _read(path: Path) -> str | NotUsable | None:
    """Return the text of *path*, None where it is not there, or why it cannot be read."""
    try:
        if not path.exists():
            return None
        if not path.is_file():
            return NotUsable(reason=f"{path} is no plain file")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        return NotUsable(reason=f"{path} cannot be read: {error.strerror}")
    if len(raw) > MAX_BYTES:
        return NotUsable(reason=f"{path} is larger than {MAX_BYTES:,} bytes")
    return raw.decode("utf-8", "replace")

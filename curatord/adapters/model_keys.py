"""A model's key, read at each call from where the configuration says it is, and the endpoint it belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from curatord.core.endpoint import Endpoint, Secret
from curatord.core.model import EndpointError, Fault, FaultKind
from curatord.core.settings import KeyRef, LlmEndpoint
from curatord.errors import ConfigError

__all__ = ["configured", "endpoint_of", "read_key", "unusable"]

MAX_KEY_BYTES = 16_384
CREDENTIAL_NAME = re.compile(r"[A-Za-z0-9_.@-]{1,255}")


def unusable(message: str, hint: str = "") -> EndpointError:
    """Return the error of an endpoint that cannot be asked as it is configured."""
    return EndpointError(Fault(kind=FaultKind.CONFIG, message=message), hint=hint)


def configured(
    settings: LlmEndpoint, environment: Mapping[str, str] = os.environ
) -> Callable[[], tuple[Endpoint, Secret | None]]:
    """
    Return the source of an endpoint that our own configuration names; nothing else is looked at (bugs B013, B148).

    Raises:
        ConfigError: The settings make no endpoint.
    """
    endpoint = Endpoint.of(settings)

    def source() -> tuple[Endpoint, Secret | None]:
        return endpoint, read_key(endpoint.api_key, environment) if endpoint.api_key else None

    return source


def read_key(ref: KeyRef, environment: Mapping[str, str] = os.environ) -> Secret:
    """
    Return the key that *ref* points to. A systemd credential is a file in `$CREDENTIALS_DIRECTORY`.

    Raises:
        EndpointError: Kind CONFIG; says where was looked, never what was found.
    """
    match ref.kind:
        case "env":
            text = environment.get(ref.name, "")
            if not text.strip():
                raise unusable(
                    f"the environment variable {ref.name} of this process is not set",
                    "a service does not see a shell's variables; a file or a systemd credential may suit it better",
                )
            return _checked(text, f"the environment variable {ref.name}")
        case "file":
            return _from_file(Path(ref.name).expanduser(), f"the key file {ref.name}")
        case "credential":
            directory = environment.get("CREDENTIALS_DIRECTORY", "")
            if not directory:
                raise unusable(
                    f"the systemd credential {ref.name} is not there: $CREDENTIALS_DIRECTORY is not set",
                    "it is set by systemd for units with LoadCredential= or LoadCredentialEncrypted=",
                )
            if not CREDENTIAL_NAME.fullmatch(ref.name) or ref.name in {".", ".."}:
                raise unusable(f"{ref.name!r} is no name of a systemd credential")
            return _from_file(Path(directory) / ref.name, f"the systemd credential {ref.name}")


def _from_file(path: Path, what: str) -> Secret:
    try:
        if not path.is_file():  # a pipe or a device would be waited for
            raise unusable(f"{what} does not exist or is no plain file")
        with path.open("rb") as file:
            raw = file.read(MAX_KEY_BYTES + 1)
    except OSError as error:
        raise unusable(f"{what} cannot be read: {error.strerror}") from error
    if len(raw) > MAX_KEY_BYTES:
        raise unusable(f"{what} is larger than any key")
    return _checked(raw.decode("utf-8", "replace"), what)


def _checked(text: str, what: str) -> Secret:
    """Return the key in *text*, which may end with a line break; a header takes printable ASCII only."""
    key = text.strip().lstrip("\ufeff")
    if not key:
        raise unusable(f"{what} is empty")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise unusable(f"{what} holds more than one key, or characters that no key has")
    return Secret(key)


def endpoint_of(build: Callable[[], Endpoint]) -> Endpoint:
    """Return what *build* gives, with a refusal of the values as the error whoever asks a model expects."""
    try:
        return build()
    except ConfigError as error:
        raise unusable(str(error), error.hint) from error

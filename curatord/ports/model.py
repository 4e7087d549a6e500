"""A model behind an endpoint: one request, one reply, no tools; and what is remembered about endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from curatord.core.endpoint import Identity
from curatord.core.model import Reply, Request

__all__ = ["EndpointMemory", "Model"]


class Model(Protocol):
    """One model at one endpoint. Implementations may be called from several threads at once."""

    def identity(self) -> Identity:
        """
        Return which model at which endpoint the next request would go to.

        Raises:
            EndpointError: That cannot be told: a key is missing, the host's own configuration is not usable here.
        """
        ...

    def reply(self, request: Request, *, deadline: float | None = None, max_requests: int = 12) -> Reply:
        """
        Return the whole answer to *request*, after retries of what is worth retrying.

        Args:
            request: Redacted already; nothing in it is logged.
            deadline: When to give up, in seconds of the monotonic clock; None: only the endpoint's own timeouts.
            max_requests: HTTP requests that may be sent at most, stepping down and retries included.

        Raises:
            EndpointError: The endpoint cannot work now.
            ReplyError: It worked, but refused this question or gave no usable answer.
            StoppedError: We were asked to stop while waiting.
        """
        ...


class EndpointMemory(Protocol):
    """
    Small JSON objects by key that outlive the process: what a server takes, and open breakers. Called from threads.
    """

    def recall(self, key: str) -> Mapping[str, Any] | None:
        """Return what was kept under *key*, or None."""
        ...

    def keep(self, key: str, value: Mapping[str, Any] | None) -> None:
        """Keep *value* under *key* instead of what was there; None forgets it."""
        ...

"""One API's words, as `model_http` needs them: what to send, what came back, what to try instead. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from curatord.core.cheap import dataclass
from curatord.core.endpoint import Endpoint
from curatord.core.endpoint_memory import Takes
from curatord.core.model import Request, Usage

__all__ = ["TEMPERATURE", "Answer", "Dialect", "count"]

TEMPERATURE = 0.2  # near the most likely answer; none at all makes some thinking models repeat themselves
MOST_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    What a dialect read in a response: *finish* is one of `stop`, `length`, `filter`, `tools`, or None where no
    marker came.
    """

    text: str
    finish: str | None
    usage: Usage | None
    usd: float | None = None
    model: str = ""
    thought: bool = False


class Dialect(Protocol):
    """One API's words. Pure: values in, values out."""

    def first(self, endpoint: Endpoint) -> Takes:
        """Return what is tried first at *endpoint*."""
        ...

    def headers(self) -> dict[str, str]:
        """Return the headers beside the key's."""
        ...

    def key_header(self) -> tuple[str, str]:
        """Return the name of the header that carries the key, and what stands before the key in it."""
        ...

    def body(self, endpoint: Endpoint, request: Request, takes: Takes, limit: int) -> dict[str, Any]:
        """Return the request's JSON object; *limit* is the most tokens of the answer."""
        ...

    def step_down(self, takes: Takes, words: str, endpoint: Endpoint) -> Takes | None:
        """Return what to try instead when the server's *words* name a form it does not take, or None."""
        ...

    def usage(self, body: Mapping[str, Any]) -> Usage | None:
        """Return the tokens that a success tells, also one without an answer in it."""
        ...

    def read(self, body: Mapping[str, Any]) -> Answer | None:
        """Return the answer in a success, or None where there is none in it."""
        ...


def count(row: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of *names* in *row* that is a believable number of tokens, or None."""
    for name in names:
        value = row.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
            return value
    return None

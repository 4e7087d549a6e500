"""The `anthropic-messages` dialect: POST …/v1/messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curatord.adapters.model_dialect import TEMPERATURE, Answer, count
from curatord.core.cheap import replace
from curatord.core.endpoint import Endpoint
from curatord.core.endpoint_memory import Takes
from curatord.core.model import Request, Usage

__all__ = ["AnthropicMessages"]

VERSION = "2023-06-01"
STRUCTURE_WORDS = ("output_config", "output_format", "json_schema", "schema", "structured output", "extra inputs")

FINISH = {
    "end_turn": "stop", "stop_sequence": "stop", "stop": "stop", "max_tokens": "length",
    "model_context_window_exceeded": "length", "refusal": "filter", "tool_use": "tools",
}  # fmt: skip


class AnthropicMessages:
    """The `Dialect` of messages."""

    def first(self, endpoint: Endpoint) -> Takes:
        """Return what is tried first."""
        return Takes()

    def headers(self) -> dict[str, str]:
        """Return the version header."""
        return {"anthropic-version": VERSION}

    def key_header(self) -> tuple[str, str]:
        """Return the key's own header."""
        return "x-api-key", ""

    def body(self, endpoint: Endpoint, request: Request, takes: Takes, limit: int) -> dict[str, Any]:
        """
        Return the request. The system block, which is the same for all questions of a task, is marked for the cache.
        """
        body: dict[str, Any] = {"max_tokens": limit}
        if takes.temperature:
            body["temperature"] = TEMPERATURE
        if request.schema is not None and takes.structure == "json_schema":
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        system = {"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}
        messages = [{"role": m.role, "content": m.text} for m in request.messages]
        fixed = {"model": endpoint.model, "system": [system], "messages": messages, "stream": False}
        return body | dict(endpoint.extra_body) | fixed

    def step_down(self, takes: Takes, words: str, endpoint: Endpoint) -> Takes | None:
        """Return one step below *takes*, or None. There is one way to ask for structure here, so the next is none."""
        text = words.lower()
        if takes.temperature and "temperature" not in endpoint.extra_body and "temperature" in text:
            return replace(takes, temperature=False)
        refused = any(word in text for word in STRUCTURE_WORDS)
        if takes.structure != "none" and "output_config" not in endpoint.extra_body and refused:
            return replace(takes, structure="none")
        return None

    def usage(self, body: Mapping[str, Any]) -> Usage | None:
        """Return the tokens told."""
        return _usage(body.get("usage"))

    def read(self, body: Mapping[str, Any]) -> Answer | None:
        """Return the text blocks, joined; thinking blocks are never the answer."""
        blocks = body.get("content")
        if not isinstance(blocks, list):
            return None
        texts = [b.get("text") for b in blocks if isinstance(b, Mapping) and b.get("type") == "text"]
        finish = body.get("stop_reason")
        return Answer(
            text="".join(t for t in texts if isinstance(t, str)),
            finish=FINISH.get(finish.lower(), finish) if isinstance(finish, str) else None,
            usage=_usage(body.get("usage")),
            model=str(body.get("model") or "")[:200],
            thought=any(isinstance(b, Mapping) and "thinking" in str(b.get("type")) for b in blocks),
        )


def _usage(row: Any) -> Usage | None:
    """Return the tokens told in *row*. Here those read from and written to the cache are told beside the rest."""
    if not isinstance(row, Mapping):
        return None
    fresh, got = count(row, "input_tokens"), count(row, "output_tokens")
    if fresh is None or got is None:
        return None
    read = count(row, "cache_read_input_tokens") or 0
    written = count(row, "cache_creation_input_tokens") or 0
    return Usage(input_tokens=fresh + read + written, cached_tokens=read, output_tokens=got)

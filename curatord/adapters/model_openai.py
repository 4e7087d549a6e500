"""
The `openai-chat` dialect: POST …/chat/completions, as OpenAI, OpenRouter, Ollama, vLLM, llama.cpp and many others
take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from curatord.adapters.model_dialect import TEMPERATURE, Answer, count
from curatord.core.cheap import replace
from curatord.core.endpoint import Endpoint
from curatord.core.endpoint_memory import STRUCTURES, Takes
from curatord.core.model import Request, Usage

__all__ = ["OpenAiChat"]

STRUCTURE_WORDS = ("response_format", "json_schema", "json_object", "structured output", "grammar", "schema")

FINISH = {
    "stop": "stop", "eos": "stop", "eos_token": "stop", "stop_sequence": "stop", "end_turn": "stop", "complete": "stop",
    "length": "length", "max_tokens": "length", "max_output_tokens": "length", "model_length": "length",
    "content_filter": "filter", "refusal": "filter", "safety": "filter",
    "tool_calls": "tools", "function_call": "tools",
}  # fmt: skip


class OpenAiChat:
    """The `Dialect` of chat completions."""

    def first(self, endpoint: Endpoint) -> Takes:
        """
        Return what is tried first: OpenAI itself refuses `max_tokens` for its newer models, others know nothing else.
        """
        own = (urlsplit(endpoint.url).hostname or "").endswith("api.openai.com")
        return Takes(limit="max_completion_tokens" if own else "max_tokens")

    def headers(self) -> dict[str, str]:
        """Return no headers of its own."""
        return {}

    def key_header(self) -> tuple[str, str]:
        """Return the bearer header."""
        return "authorization", "Bearer "

    def body(self, endpoint: Endpoint, request: Request, takes: Takes, limit: int) -> dict[str, Any]:
        """Return the request. What the user put into `extra_body` wins, but for model, messages and streaming."""
        body: dict[str, Any] = {}
        if takes.temperature:
            body["temperature"] = TEMPERATURE
        if takes.limit != "none":
            body[takes.limit] = limit
        if request.schema is not None:
            match takes.structure:
                case "json_schema":
                    form = {"name": request.task, "strict": True, "schema": request.schema}
                    body["response_format"] = {"type": "json_schema", "json_schema": form}
                case "json_object+schema":
                    body["response_format"] = {"type": "json_object", "schema": request.schema}
                case "json_object":
                    body["response_format"] = {"type": "json_object"}
                case "none":
                    pass
        messages = [{"role": m.role, "content": m.text} for m in request.messages]
        return (
            body
            | dict(endpoint.extra_body)
            | {
                "model": endpoint.model,
                "messages": [{"role": "system", "content": request.system}, *messages],
                "stream": False,
            }
        )

    def step_down(self, takes: Takes, words: str, endpoint: Endpoint) -> Takes | None:
        """Return one step below *takes* where *words* name what was sent and the user did not ask for it himself."""
        text = words.lower()
        own = endpoint.extra_body
        if takes.limit != "none" and takes.limit not in own and takes.limit in text:
            return replace(takes, limit="max_completion_tokens" if takes.limit == "max_tokens" else "none")
        if takes.temperature and "temperature" not in own and "temperature" in text:
            return replace(takes, temperature=False)
        if takes.structure != "none" and "response_format" not in own and any(w in text for w in STRUCTURE_WORDS):
            return replace(takes, structure=STRUCTURES[STRUCTURES.index(takes.structure) + 1])
        return None

    def usage(self, body: Mapping[str, Any]) -> Usage | None:
        """Return the tokens told."""
        return _usage(body.get("usage"))

    def read(self, body: Mapping[str, Any]) -> Answer | None:
        """Return the first choice's text. Reasoning fields are never the answer (bugs B143)."""
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
            return None
        message = choices[0].get("message")
        if not isinstance(message, Mapping):
            return None
        finish = choices[0].get("finish_reason")
        usage = body.get("usage")
        cost = usage.get("cost") if isinstance(usage, Mapping) else None
        refusal = isinstance(message.get("refusal"), str) and bool(message["refusal"])
        return Answer(
            text=_text(message.get("content")),
            finish="filter" if refusal else FINISH.get(finish.lower(), finish) if isinstance(finish, str) else None,
            usage=_usage(usage),
            usd=float(cost)
            if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e6
            else None,
            model=str(body.get("model") or "")[:200],
            thought=any(message.get(name) for name in ("reasoning", "reasoning_content", "thinking")),
        )


def _text(content: Any) -> str:
    """Return a message's text, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [p.get("text") for p in content if isinstance(p, Mapping) and p.get("type", "text") == "text"]
        return "".join(p for p in parts if isinstance(p, str))
    return ""


def _usage(row: Any) -> Usage | None:
    """Return the tokens told in *row*, or None where they are not told. Cached ones are part of the prompt's."""
    if not isinstance(row, Mapping):
        return None
    sent, got = count(row, "prompt_tokens", "input_tokens"), count(row, "completion_tokens", "output_tokens")
    if sent is None or got is None:
        return None
    details = row.get("prompt_tokens_details")
    cached = count(details, "cached_tokens") if isinstance(details, Mapping) else None
    if cached is None:
        cached = count(row, "prompt_cache_hit_tokens", "cached_tokens") or 0
    return Usage(input_tokens=sent, cached_tokens=min(cached, sent), output_tokens=got)

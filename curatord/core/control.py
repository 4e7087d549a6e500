"""
What is said over the daemon's control socket: lines of JSON, one question, and answers up to a last one.

A client sends one line::

    {"curatord": 1, "do": "run", "with": {"dry_run": true}, "version": "0.1.0", "config": FINGERPRINT}

and hears lines of one key each. None or more of the first three come first, exactly one of the others ends it::

    {"waiting":  {"for": "scanning", "silent_s": 0.4}}       not begun yet; what the worker does, its last sign of life
    {"begun":    true}                                       from here on it happens, whoever goes away
    {"progress": {"done": 10, "total": 90, "what": "transcripts"}}
    {"result":   …}
    {"error":    {"kind": "BusyError", "message": …, "hint": …, "exit_code": 5}}     it was tried, or may not be now
    {"refused":  {"reason": …, "quiet": false}}              nothing was done here; the client may do it by itself

While an order is at work the client may send the line `{"stop": true}`: the work ends after its current action.

Everything is bounded: a question by `MAX_QUESTION` bytes, an answer by `MAX_ANSWER`. *version* and *config* let the
daemon refuse an order that the client meant otherwise: with another curatord, or another configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from curatord.core.cheap import dataclass, field
from curatord.core.inert import shorten

__all__ = [
    "MAX_ANSWER",
    "MAX_QUESTION",
    "PROTOCOL",
    "Ask",
    "BadAskError",
    "answer_line",
    "ask_line",
    "final",
    "read_answer",
    "read_ask",
]

PROTOCOL = 1
MAX_QUESTION = 16 * 1024
MAX_ANSWER = 64 * 1024 * 1024  # a scan's answer names up to a thousand files; a run's is only its id

_FLAG, _NAME = (bool,), (str, type(None))
_COMMANDS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "status": {},
    "scan": {},
    "run": {"dry_run": _FLAG, "respect_gates": _FLAG, "llm": _FLAG, "library": _NAME},
    "reload": {},
    "pause": {},
    "resume": {},
}
_FINAL = ("result", "error", "refused")


class BadAskError(ValueError):
    """The line is no question; its text says why, in words that are safe to send back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question. *version* and *config* are the client's own, or None where it does not mind."""

    command: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    version: str | None = None
    config: str | None = None


def ask_line(ask: Ask) -> bytes:
    """Return the line that asks it."""
    told = {"curatord": PROTOCOL, "do": ask.command, "with": dict(ask.arguments)}
    for name, value in (("version", ask.version), ("config", ask.config)):
        if value is not None:
            told[name] = value
    return _line(told)


def read_ask(line: bytes) -> Ask:
    """
    Return the question that *line* asks.

    Raises:
        BadAskError: It is none, or not one of this version.
    """
    told = _read(line)
    if not isinstance(told, dict):
        raise BadAskError("a question is one JSON object on one line")
    if told.get("curatord") != PROTOCOL or isinstance(told.get("curatord"), bool):
        raise BadAskError(f"this daemon speaks version {PROTOCOL} of the control protocol")
    command = told.get("do")
    known = _COMMANDS.get(command) if isinstance(command, str) else None
    if known is None:
        raise BadAskError(f"unknown command {shorten(repr(command), 60)}; known: {', '.join(_COMMANDS)}")
    arguments = told.get("with", {})
    if not isinstance(arguments, dict):
        raise BadAskError("`with` is an object")
    for name, value in arguments.items():
        if name not in known or type(value) not in known[name]:
            raise BadAskError(f"{command} does not take {shorten(f'{name}={value!r}', 80)}")
    said = {}
    for name in ("version", "config"):
        value = told.get(name)
        if value is not None and not isinstance(value, str):
            raise BadAskError(f"`{name}` is a text")
        said[name] = value
    return Ask(command=str(command), arguments=arguments, version=said["version"], config=said["config"])


def answer_line(key: str, value: Any) -> bytes:
    """Return the line that answers *value* under *key*."""
    return _line({key: value})


def read_answer(line: bytes) -> tuple[str, Any]:
    """
    Return key and value of an answer's line.

    Raises:
        BadAskError: It is none.
    """
    told = _read(line)
    if not isinstance(told, dict) or len(told) != 1:
        raise BadAskError("an answer is one JSON object with one key")
    ((key, value),) = told.items()
    return key, value


def final(key: str) -> bool:
    """Return whether an answer of this key is the last one."""
    return key in _FINAL


def _line(value: Any) -> bytes:
    # ASCII, so that no line end of any kind can stand within it.
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"


def _read(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):  # a thousand brackets in a row are deeper than anybody wants to look
        raise BadAskError("that is no JSON") from None

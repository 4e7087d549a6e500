"""
Hermes' session files of its earlier years, into the same rows as its database has.

`session_<id>.json` is one document in the form of a chat API; `<id>.jsonl` of the gateway has a line of role
`session_meta` and then a message a line. Messages mostly have no time and never an id: a row's id here is its place.
"""

from __future__ import annotations

import json
from typing import Any

from curatord.core.cheap import dataclass, field
from curatord.core.transcript.hermes import Row, SessionFacts, text_of_value
from curatord.core.transcript.lines import LineSplitter, Unreadable, objects, printable
from curatord.errors import TranscriptError

__all__ = ["Document", "read_document", "read_lines"]


@dataclass(slots=True, kw_only=True)
class Document:
    """One session file: its session, its messages, and (offset, reason, bytes) of what is unreadable."""

    facts: SessionFacts
    rows: list[Row]
    started_at: str | None = None
    updated_at: str | None = None
    bad: list[tuple[int, str, bytes]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)  # of a file of lines: where each message's line ends


def read_document(data: bytes, session_id: str) -> Document:
    """
    Return what a `session_<id>.json` holds; *session_id* is that of its name, for where it has none inside.

    Raises:
        TranscriptError: It is not whole or no JSON object (perhaps just being written; it is read when it changes).
    """
    try:
        value = json.loads(data.decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError) as error:
        raise TranscriptError(
            f"the session file of {session_id} is no whole JSON document: {str(error)[:200]}",
            hint="it is read when it is next written",
        ) from error
    if not isinstance(value, dict):
        raise TranscriptError(f"the session file of {session_id} holds no object", hint="it is no session of Hermes")
    name = _text(value.get("session_id")) or session_id
    messages = value.get("messages")
    rows = _rows(messages if isinstance(messages, list) else [], name)
    prompt = _text(value.get("system_prompt"))
    started = _text(value.get("session_start"))
    return Document(
        facts=_facts(value, name, prompt, started),
        rows=rows,
        started_at=started,
        updated_at=_text(value.get("last_updated")),
    )


def read_lines(data: bytes, session_id: str) -> Document:
    """Return what a gateway's `<id>.jsonl` holds; a last line that is not whole yet is left out."""
    splitter = LineSplitter()
    lines = list(splitter.feed(data))
    while splitter.held_up:
        lines += splitter.feed(b"")
    last = splitter.last_line()
    if last is not None:
        lines.append(last)
    messages: list[Any] = []
    ends: list[int] = []
    bad = [(line.offset, "too long", line.head) for line in splitter.oversize]
    for line, offset in lines:
        for value in objects(line):
            if isinstance(value, Unreadable):
                bad.append((offset, value.reason, line))
            else:
                messages.append(value)
                ends.append(offset + len(line))
    meta: dict[str, Any] = next((m for m in messages if m.get("role") == "session_meta"), {})
    started = _text(meta.get("timestamp"))
    return Document(
        facts=_facts(meta, session_id, None, started),
        rows=_rows(messages, session_id),
        started_at=started,
        bad=bad,
        ends=ends,
    )


def _facts(value: dict[str, Any], session_id: str, prompt: str | None, started: str | None) -> SessionFacts:
    return SessionFacts(
        id=session_id,
        source=_text(value.get("platform")) or _text(value.get("source")) or "cli",
        parent=_text(value.get("parent_session_id")),
        started_at=started,
        cwd=_text(value.get("cwd")),
        preloads=prompt if prompt and "preloaded" in prompt else None,
    )


def _rows(messages: list[Any], session_id: str) -> list[Row]:
    rows = []
    for place, message in enumerate(messages, start=1):
        if not isinstance(message, dict):
            continue
        content = message.get("content")
        calls = message.get("tool_calls")
        time = message.get("timestamp")
        rows.append(
            Row(
                id=place,
                session_id=session_id,
                role=_text(message.get("role")) or "",
                # Structured content is told by its text: pictures inside would make a row of megabytes.
                content=text_of_value(content).encode("utf-8", "replace") if content is not None else None,
                tool_call_id=_text(message.get("tool_call_id")),
                # The form in which the database keeps it, so that an imported session has the same keys.
                tool_calls=json.dumps(calls).encode("ascii") if isinstance(calls, list) and calls else None,
                tool_name=_text(message.get("tool_name")) or _text(message.get("name")),
                timestamp=time if isinstance(time, (str, int, float)) else None,
                observed=1 if message.get("observed") else 0,
            )
        )
    return rows


def _text(value: object) -> str | None:
    return printable(value) if isinstance(value, str) and value else None

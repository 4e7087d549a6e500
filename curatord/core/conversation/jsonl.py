"""
What was said in the logs of a host that only the configuration describes.

The rules are those of `core/transcript/jsonl.py`, whose parser this one listens to: role, text, calls and results stand
where the source's `fields` say. Records marked as a sub-agent's or as none of the conversation are passed over, and a
session that names a parent tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from curatord.core.conversation.record_teller import ms_of
from curatord.core.conversation.telling import Telling, joined, tool_use
from curatord.core.distil.said import ToolUse
from curatord.core.transcript.events import SessionKind, SessionTally
from curatord.core.transcript.jsonl import MAX_CALLS, JsonlParser, _calls_at, _short, _text
from curatord.core.transcript.jsonl_fields import Fields, first_value, values_at

__all__ = ["JsonlTeller"]


class JsonlTeller(JsonlParser):
    """The teller of one file; see `JsonlParser` for *fields*."""

    def __init__(self, path: str, fields: Fields, *, telling: Telling, **how: Any) -> None:
        super().__init__(path, fields, **how)
        self._telling = telling

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """Take whole lines with the offset at which each begins, one by one."""
        for line, offset in lines:
            self._telling.line(line, offset)
            super().feed([(line, offset)])

    def _talk(self, record: dict[str, Any], session: str, tally: SessionTally) -> int:
        users, assistants = tally.user_turns, tally.assistant_turns
        turns = super()._talk(record, session, tally)
        if session != self._telling.session_id:
            return turns
        if tally.kind in (SessionKind.OWN, SessionKind.SUBAGENT):
            self._telling.silence()
        fields = self._fields
        if self._telling.silent or first_value(record, fields.ignore) or first_value(record, fields.sidechain):
            return turns
        ident = first_value(record, fields.id)
        ref = str(ident) if isinstance(ident, (str, int)) and not isinstance(ident, bool) else None
        at_ms = ms_of(first_value(record, fields.time))
        answered = [call for path in fields.result for value in values_at(record, path) if (call := _short(value))]
        tools = self._tools(record, answered=bool(answered))
        if tally.user_turns > users:
            self._telling.user(ref, _text(first_value(record, fields.text)), at_ms)
        elif tally.assistant_turns > assistants:
            self._telling.assistant(None, ref, _text(first_value(record, fields.text)), tools, at_ms, new=True)
        else:
            for tool in tools:
                self._telling.call(tool, at_ms, ref)
        if answered and self._failed(record):
            text = _text(first_value(record, fields.text)) or _results(record) or _error(record, fields)
            self._telling.error(ref, text, at_ms, call=answered[0])
        return turns

    def _tools(self, record: dict[str, Any], *, answered: bool) -> list[ToolUse]:
        for place in self._fields.calls:
            if answered and not place.base:
                continue
            tools = []
            for name, arguments, call in list(_calls_at(record, place))[:MAX_CALLS]:
                tool = tool_use(name, arguments)
                self._telling.knows(call, tool)
                tools.append(tool)
            if tools:
                return tools
        return []


def _results(record: dict[str, Any]) -> str:
    """Return the text of results that stand as blocks in a message."""
    texts = []
    for path in (("message", "content"), ("content",)):
        for blocks in values_at(record, path):
            for block in blocks if isinstance(blocks, list) else []:
                if isinstance(block, dict):
                    texts.append(joined(block.get("content")))
    return "\n".join(text for text in texts if text)


def _error(record: dict[str, Any], fields: Fields) -> str:
    """Return the failure itself where that is text."""
    failed = first_value(record, fields.failed)
    if isinstance(failed, dict):
        failed = failed.get("message")
    return failed if isinstance(failed, str) else ""

"""
What was said in DSH's sessions.

The rules are those of `core/transcript/dsh.py`, whose parser this one listens to: streamed text, the queue of prompts,
catalogues, skills' bodies and what a compaction wrote again are passed over; a fork's seed is its origin's; the session
of a sub-agent tells nothing.
"""

from __future__ import annotations

from typing import Any

from curatord.core.conversation.record_teller import RecordTeller
from curatord.core.conversation.telling import joined, members, tool_use
from curatord.core.distil.said import ToolUse
from curatord.core.transcript.dsh import DshParser, _Called, _is_replacement, _Row
from curatord.core.transcript.events import SessionTally

__all__ = ["DshTeller"]


class DshTeller(RecordTeller, DshParser):
    """The teller of one session's log."""

    def ref(self) -> str | None:
        """Return a message's id, else the row's number."""
        data = _data(self._line.value)
        message = data.get("message")
        for told in (data, message if isinstance(message, dict) else {}):
            if isinstance(told.get("id"), str):
                return str(told["id"])
        seq = self._line.value.get("seq")
        return f"seq {seq}" if isinstance(seq, int) else None

    def at_ms(self) -> int | None:
        """Return the row's time, or that of the row before it."""
        return self._now()

    def words(self, value: dict[str, Any]) -> tuple[str, list[ToolUse]]:
        """Return the text of a message's blocks; calls have rows of their own."""
        message = _data(value).get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            return content, []
        return "\n".join(joined(block) for block in members(message, "content") if block.get("type") == "text"), []

    def count(self, row: _Row, tally: SessionTally) -> tuple[int, bool]:
        """Tell besides what a failed call gave."""
        counted = super().count(row, tally)
        if row.type == "tool/result" and not self._inherited and not _is_replacement(row) and self.tells(tally):
            call, text, failed = _result(_data(self._line.value))
            if failed:
                self._telling.error(self.ref(), text, self.at_ms(), call=call)
        return counted

    def _call(self, call: _Called, tally: SessionTally) -> None:
        super()._call(call, tally)
        if self.tells(tally):
            tool = tool_use(call.name, call.arguments)
            self._telling.knows(call.callId, tool)
            self._telling.call(tool, self.at_ms(), call.callId)

    def _forget(self) -> None:
        super()._forget()
        self._telling.forget()


def _data(value: dict[str, Any]) -> dict[str, Any]:
    data = value.get("data")
    return data if isinstance(data, dict) else {}


def _result(data: dict[str, Any]) -> tuple[str | None, str, bool]:
    """Return of a result its call, its text and whether it is a failure."""
    message = data.get("message")
    message = message if isinstance(message, dict) else {}
    blocks = members(message, "content")
    source = message.get("source")
    calls = [message.get("toolCallId"), source.get("callId") if isinstance(source, dict) else None]
    calls += [block.get("toolCallId") for block in blocks]
    call = next((each for each in calls if isinstance(each, str) and each), None)
    error = data.get("error")
    meta = data.get("meta")
    code = meta.get("exitCode") if isinstance(meta, dict) else None
    failed = (
        message.get("isError") is True
        or any(block.get("isError") is True for block in blocks)
        or error is not None
        or (isinstance(code, int) and code != 0)
    )
    texts = [joined(block.get("content")) or joined(block) for block in blocks] or [joined(message.get("content"))]
    text = "\n".join(each for each in texts if each)
    if not text and isinstance(error, dict):
        text = ": ".join(str(error[key]) for key in ("name", "code", "message") if isinstance(error.get(key), str))
    return call, text, failed

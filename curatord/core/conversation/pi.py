"""
What was said in Pi's sessions.

The rules are those of `core/transcript/pi.py`, whose parser this one listens to. All branches of the tree did happen,
and are told. Of a prompt that is a skill's body only what the person typed is told.

A fork's file names the one it comes from and begins with copies of its entries, which keep their times: what is older
than the file's own header is passed over.
"""

from __future__ import annotations

import re
from typing import Any

from curatord.core.conversation.record_teller import RecordTeller, ms_of
from curatord.core.conversation.telling import Telling, joined, members, tool_use
from curatord.core.distil.said import ToolUse
from curatord.core.transcript.events import SessionTally
from curatord.core.transcript.pi import PiParser

__all__ = ["PiTeller"]

_SKILL = re.compile(r'\s*<skill name="([^"\n]{1,200})"')
_END = "</skill>"


class PiTeller(RecordTeller, PiParser):
    """The teller of one session's file."""

    def __init__(self, path: str, *, telling: Telling, **how: Any) -> None:
        self._forked_ms: int | None = None  # what is older was said in another session
        super().__init__(path, telling=telling, **how)

    def note(self, record: Any) -> None:
        """Take besides from the header whether this is a fork."""
        super().note(record)
        if record.type == "session" and (record.parentSession or record.branchedFrom):
            self._forked_ms = ms_of(record.timestamp)

    def tells(self, tally: SessionTally) -> bool:
        """Return whether what is counted is told: not what a fork copied."""
        at_ms = self.at_ms()
        copied = self._forked_ms is not None and at_ms is not None and at_ms < self._forked_ms
        return super().tells(tally) and not copied

    def words(self, value: dict[str, Any]) -> tuple[str, list[ToolUse]]:
        """Return the text and the calls of a message's blocks."""
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            return content, []
        texts, tools = [], []
        for block in members(message, "content"):
            if block.get("type") == "text":
                texts.append(joined(block))
            elif block.get("type") == "toolCall":
                tool = tool_use(block.get("name"), block.get("arguments"))
                ident = block.get("id")
                self._telling.knows(ident if isinstance(ident, str) else None, tool)
                tools.append(tool)
        return "\n".join(texts), tools

    def count(self, record: Any, tally: SessionTally) -> tuple[int, bool]:
        """Tell besides what a failed call gave."""
        counted = super().count(record, tally)
        message = record.message
        failed = message is not None and message.role == "toolResult" and message.isError
        if failed and record.type == "message" and self.tells(tally):
            told = self._line.value.get("message")
            content = told.get("content") if isinstance(told, dict) else None
            self._telling.error(self.ref(), joined(content), self.at_ms(), call=message.toolCallId)
        return counted

    def typed(self, text: str) -> str:
        """Return a prompt, of a skill's body what the person typed for it."""
        skill = _SKILL.match(text)
        if skill is None:
            return text
        said = text.rpartition(_END)[2].strip() if _END in text else ""
        return f"/skill:{skill[1]} {said}".strip()

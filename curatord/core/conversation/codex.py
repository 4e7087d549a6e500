"""
What was said in Codex' threads.

The rules are those of `core/transcript/codex.py`, whose parser this one listens to: only response items tell, injected
messages and skills' bodies do not. Of a prompt that an editor put its context in front of, only the prompt is told.

A fork begins with a copy of its origin's lines. The copied turns have ids that were made before the thread's own (both
are version 7 UUIDs, which begin with their time): all lines before the first turn that is younger are passed over.
Unknown: where a fork's own part begins if its turns have no such ids; then all of it is told.
"""

from __future__ import annotations

import re
from typing import Any

from curatord.core.conversation.record_teller import RecordTeller
from curatord.core.conversation.telling import joined, tool_use
from curatord.core.distil.said import ToolUse
from curatord.core.transcript.codex import OUTPUTS, CodexParser
from curatord.core.transcript.codex_records import Item, Record, output_failed
from curatord.core.transcript.events import SessionTally

__all__ = ["CodexTeller"]

_IDE = "# Context from my IDE setup:"
_REQUEST = "## My request for Codex:"
_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-")
BEGINS_TURN = frozenset({"task_started", "turn_started"})


class CodexTeller(RecordTeller, CodexParser):
    """The teller of one rollout."""

    def __init__(self, path: str, **how: Any) -> None:
        self._forked_ms: int | None = None  # when the thread began, while its lines are its origin's
        super().__init__(path, **how)

    def note(self, record: Record) -> None:
        """Find out besides whether a line is the thread's own."""
        owned = self.saved.owned
        super().note(record)
        item = record.payload
        if item is None:
            return
        begins = record.type == "turn_context" or (record.type == "event_msg" and item.type in BEGINS_TURN)
        if not owned and self.saved.owned and item.forked_from_id:
            self._forked_ms = _made_ms(item.id)
        elif self._forked_ms is not None and begins:
            made = _made_ms(item.turn_id)
            if made is None or made >= self._forked_ms:
                self._forked_ms = None

    def tells(self, tally: SessionTally) -> bool:
        """Return whether what is counted is told: not what a fork copied."""
        return super().tells(tally) and self._forked_ms is None

    def ref(self) -> str | None:
        """Return the item's id."""
        value = self._line.value
        item = value.get("payload")
        ident = (item if isinstance(item, dict) else value).get("id")
        return ident if isinstance(ident, str) else None

    def words(self, value: dict[str, Any]) -> tuple[str, list[ToolUse]]:
        """Return the text of a message; calls are items of their own."""
        item = value.get("payload", value)
        return joined(item.get("content")) if isinstance(item, dict) else "", []

    def typed(self, text: str) -> str:
        """Return a prompt without the editor's context."""
        if text.lstrip().startswith(_IDE) and _REQUEST in text:
            return text.partition(_REQUEST)[2].strip()
        return text

    def count(self, record: Record, tally: SessionTally) -> tuple[int, bool]:
        """Tell besides what a failed call gave."""
        counted = super().count(record, tally)
        item = record.payload if record.type == "response_item" else record
        if item is not None and item.type in OUTPUTS and output_failed(item.output) and self.tells(tally):
            told = self._line.value.get("payload", self._line.value)
            output = told.get("output") if isinstance(told, dict) else None
            self._telling.error(self.ref(), _output(output), self.at_ms(), call=item.call_id)
        return counted

    def _call(self, name: str, item: Item, tally: SessionTally) -> None:
        before = tally.tool_calls.get(name[:200], 0)
        super()._call(name, item, tally)
        if tally.tool_calls.get(name[:200], 0) == before or not self.tells(tally):
            return
        told = self._line.value.get("payload", self._line.value)
        told = told if isinstance(told, dict) else {}
        given = next((told[key] for key in ("arguments", "input", "action") if told.get(key) is not None), None)
        tool = tool_use(name, given)
        self._telling.knows(item.call_id or item.id, tool)
        self._telling.call(tool, self.at_ms(), self.ref())


def _output(output: object) -> str:
    if isinstance(output, dict):
        return joined(output.get("content")) or joined(output)
    return joined(output)


def _made_ms(ident: str | None) -> int | None:
    """Return when a version 7 UUID was made, None of any other id."""
    found = _UUID7.match(ident.lower()) if ident else None
    return int(found[1] + found[2], 16) if found is not None else None

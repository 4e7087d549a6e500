"""
What was said in GitHub Copilot CLI's sessions.

The rules are those of `core/transcript/copilot_cli.py`, whose parser this one listens to. Prompts are told as typed;
those that a skill, an agent, a schedule or the program made are not, nor is what a sub-agent said or did.
"""

from __future__ import annotations

from typing import Any

from curatord.core.conversation.record_teller import RecordTeller
from curatord.core.conversation.telling import joined, members, tool_use
from curatord.core.distil.said import ToolUse
from curatord.core.transcript.copilot_cli import CopilotCliParser, _Event
from curatord.core.transcript.events import SessionTally

__all__ = ["CopilotCliTeller"]


class CopilotCliTeller(RecordTeller, CopilotCliParser):
    """The teller of one session's events."""

    def tells(self, tally: SessionTally) -> bool:
        """Return whether what is counted is told: not what a sub-agent said."""
        event: _Event = self._record
        data = event.data
        agent = event.agentId or (data is not None and (data.parentToolCallId or data.parentAgentTaskId))
        return super().tells(tally) and not agent

    def words(self, value: dict[str, Any]) -> tuple[str, list[ToolUse]]:
        """Return the text and the calls of a message."""
        data = value.get("data")
        tools = []
        for request in members(data, "toolRequests"):
            tool = tool_use(request.get("name"), request.get("arguments"))
            ident = request.get("toolCallId")
            self._telling.knows(ident if isinstance(ident, str) else None, tool)
            tools.append(tool)
        return joined(data.get("content")) if isinstance(data, dict) else "", tools

    def count(self, event: _Event, tally: SessionTally) -> tuple[int, bool]:
        """Tell besides calls that stand in no message, and what a failed call gave."""
        before = sum(tally.tool_calls.values()) if event.type == "tool.execution_start" else 0
        counted = super().count(event, tally)
        data = self._line.value.get("data") if event.type.startswith("tool.execution_") else None
        if not isinstance(data, dict) or not self.tells(tally):
            return counted
        call = event.data.toolCallId if event.data is not None else None
        if event.type == "tool.execution_start":
            if sum(tally.tool_calls.values()) > before:
                tool = tool_use(data.get("toolName"), data.get("arguments"))
                self._telling.knows(call, tool)
                self._telling.call(tool, self.at_ms(), self.ref())
        elif event.type == "tool.execution_complete" and data.get("success") is False:
            error, result = data.get("error"), data.get("result")
            text = error.get("message") if isinstance(error, dict) else error
            content = result.get("content") if isinstance(result, dict) else result
            told = "\n".join(each for each in (joined(text), joined(content)) if each)
            self._telling.error(self.ref(), told or "it failed and said nothing", self.at_ms(), call=call)
        return counted

"""
What was said in Qwen Code's sessions.

The rules are those of `core/transcript/qwen_code.py`, whose parser this one listens to: telemetry, compressed history,
reminders, schedules' prompts and sub-agents' records are passed over. Of a prompt that is a skill's body only what the
person typed is told, as far as the host wrote it down beside the body.
"""

from __future__ import annotations

from typing import Any

from curatord.core.conversation.record_teller import RecordTeller
from curatord.core.conversation.telling import joined, members, tool_use, without_tags
from curatord.core.distil.said import ToolUse
from curatord.core.transcript.events import SessionTally
from curatord.core.transcript.qwen_code import BODY, QwenCodeParser, _Record

__all__ = ["QwenCodeTeller"]


REMINDERS = ("system-reminder",)


class QwenCodeTeller(RecordTeller, QwenCodeParser):
    """The teller of one session's file."""

    def ref(self) -> str | None:
        """Return the record's uuid."""
        ident = self._line.value.get("uuid")
        return ident if isinstance(ident, str) else None

    def tells(self, tally: SessionTally) -> bool:
        """Return whether what is counted is told: not what a sub-agent said."""
        record: _Record = self._record
        agent = record.agentId or record.agentName or record.subagentId or record.isSidechain is True
        return super().tells(tally) and not agent

    def words(self, value: dict[str, Any]) -> tuple[str, list[ToolUse]]:
        """Return text and calls of a message's parts, without its thoughts."""
        texts, tools = [], []
        for part in members(value.get("message"), "parts"):
            if part.get("thought") is not True and joined(part):
                texts.append(joined(part))
            call = part.get("functionCall")
            if isinstance(call, dict):
                tool = tool_use(call.get("name"), call.get("args"))
                ident = call.get("id")
                self._telling.knows(ident if isinstance(ident, str) else None, tool)
                tools.append(tool)
        return "\n".join(texts), tools

    def typed(self, text: str) -> str:
        """Return a prompt, of a skill's body what the person typed for it."""
        if not text.startswith(BODY):
            return without_tags(text, REMINDERS)
        folder, _, rest = text[len(BODY) :].partition("\n")
        command = "/" + folder.strip().replace("\\", "/").rstrip("/").rpartition("/")[2]
        before, end, _ = rest.rpartition("</skill-args>")
        if end and "<skill-args>" in before:
            return f"{command} {before.rpartition('<skill-args>')[2].strip()}".strip()
        lines = [line for line in rest.splitlines() if line == command or line.startswith(command + " ")]
        return lines[-1].strip() if lines else command

    def count(self, record: _Record, tally: SessionTally) -> tuple[int, bool]:
        """Tell besides what a failed call gave."""
        counted = super().count(record, tally)
        if record.type in ("tool_result", "user") and self.tells(tally):
            status = record.toolCallResult.status if record.toolCallResult is not None else None
            for part in members(self._line.value.get("message"), "parts"):
                answer = part.get("functionResponse")
                if not isinstance(answer, dict):
                    continue
                response = answer.get("response")
                error = response.get("error") if isinstance(response, dict) else None
                if error or status in ("error", "cancelled"):
                    output = response.get("output") if isinstance(response, dict) else None
                    call = answer.get("id")
                    text = joined(error) or joined(output) or str(status or "error")
                    self._telling.error(self.ref(), text, self.at_ms(), call=call if isinstance(call, str) else None)
        return counted

"""
What was said in OpenCode's sessions: messages with their parts, rows of its database or files of its older tree.

The rules are those of `core/transcript/opencode.py`, whose parser this one listens to, a message with all its parts at
a time. Synthetic parts, compaction's own answers (`summary`) and sub-agents' sessions are passed over. Of a prompt that
is a skill's body only what the person typed behind it is told; where it stands inside the body instead, only the
command. A message whose id was made later than itself, while another session has one of that moment, is a fork's copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from curatord.core.conversation.record_teller import Line
from curatord.core.conversation.telling import Telling, joined, tool_use
from curatord.core.distil.said import ToolUse
from curatord.core.transcript.events import SessionKind
from curatord.core.transcript.ids import Guard
from curatord.core.transcript.opencode import (
    _BODY,
    _ID_MS,
    COPIED_LATER_MS,
    SHELLS,
    Lookup,
    OpenCodeParser,
    _made_ms,
)

__all__ = ["Entry", "OpenCodeTeller"]


class Entry(NamedTuple):
    """A message or a part: its id, when it was made (ms), and its JSON, of which only the beginning if *cut*."""

    id: str
    created: Any
    data: bytes
    cut: bool = False


class OpenCodeTeller(OpenCodeParser):
    """
    The teller of one session's messages, in order.

    Args:
        lookup: See `OpenCodeParser`.
        telling: What is told.
        elsewhere: Says whether another session has a message of that moment (ms).
    """

    def __init__(self, lookup: Lookup, *, telling: Telling, elsewhere: Callable[[int], bool]) -> None:
        super().__init__(lookup, state=b"", guard=Guard(), now_ms=0)
        self._telling = telling
        self._elsewhere = elsewhere
        self._line = Line()

    def take(self, message: Entry, parts: Iterable[Entry], place: tuple[int, int]) -> None:
        """Take a message with its parts; *place*: where it begins and ends, in the unit of the item's watermark."""
        session_id = self._telling.session_id
        self._telling.at(*place)
        tally = self._findings.session(session_id)
        users, assistants = tally.user_turns, tally.assistant_turns
        self.message(message.id, session_id, message.created, message.data, place=0, cut=message.cut)
        told = self._decoded_whole(message)
        texts: list[str] = []
        tools: list[ToolUse] = []
        errors: list[tuple[str, str, ToolUse]] = []
        for part in parts:
            self.part(part.id, message.id, session_id, part.created, part.data, place=0, cut=part.cut)
            value = self._decoded_whole(part)
            kind = value.get("type")
            if kind == "text" and value.get("synthetic") is not True and value.get("ignored") is not True:
                texts.append(joined(value))
            elif kind == "tool":
                state = value.get("state")
                state = state if isinstance(state, dict) else {}
                tool = tool_use(value.get("tool"), state.get("input"))
                tools.append(tool)
                failure = _failure(value.get("tool"), state)
                if failure:
                    errors.append((part.id, failure, tool))
        if self._session(session_id).kind in (SessionKind.OWN, SessionKind.SUBAGENT):
            self._telling.silence()
        if self._telling.silent:
            return
        at_ms = self._time(message.created, None)
        if at_ms is None:
            seen = self._message(message.id)
            at_ms = seen.at_ms if seen is not None else None
        if tally.user_turns > users:
            self._telling.user(message.id, typed("\n".join(texts)), at_ms)
        elif tally.assistant_turns > assistants and told.get("summary") is not True:
            self._telling.assistant(None, message.id, "\n".join(texts), tools, at_ms, new=True)
            for part_id, failure, tool in errors:
                self._telling.knows(part_id, tool)
                self._telling.error(part_id, failure, at_ms, call=part_id)

    def _decoded_whole(self, entry: Entry) -> dict[str, Any]:
        if entry.cut:
            self._line.cut(entry.data)
            value = self._line.value
            self._line.cut(None)
            return value
        self._line.of(entry.data)
        return self._line.value

    def _is_copy(self, message_id: str, role: str, at_ms: int, *, new: bool) -> bool:
        made_ms = _made_ms(message_id)
        later = 0 if made_ms is None else (made_ms - at_ms) % _ID_MS
        if COPIED_LATER_MS < later < _ID_MS // 2 and self._elsewhere(at_ms):
            return True
        return super()._is_copy(message_id, role, at_ms, new=new)


def typed(text: str) -> str:
    """Return a prompt, of a skill's body what the person typed for it."""
    body = _BODY.search(text)
    if body is None:
        return text
    command = "/" + body[1].replace("\\", "/").rstrip("/").rpartition("/")[2]
    return f"{command} {text[body.end() :].strip().partition(chr(10) * 2)[2].strip()}".strip()


def _failure(tool: object, state: dict[str, Any]) -> str:
    """Return what a call gave that failed, nothing of any other."""
    if state.get("status") == "error":
        return joined(state.get("error")) or "it failed and said nothing"
    metadata = state.get("metadata")
    code = metadata.get("exit") if isinstance(metadata, dict) else None
    if tool in SHELLS and state.get("status") == "completed" and isinstance(code, int) and code != 0:
        return joined(state.get("output")) or f"exit code {code}"
    return ""

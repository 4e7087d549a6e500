"""
What was said in Cursor's agent transcripts, as lines and in the older text form.

The rules are those of `core/transcript/cursor.py`, whose parsers these listen to. Of a prompt only what stands in
`<user_query>` is told, where it has any; the context around it is the program's. Records have no ids and mostly no
times: a message is named by its offset, and only that says whether it is known.

Unknown: in the text form a thought of several lines looks like an answer, so only its first line is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from curatord.core.conversation.record_teller import RecordTeller
from curatord.core.conversation.telling import Telling, joined, members, shortened, tool_use
from curatord.core.distil.said import MAX_SAID, ToolUse
from curatord.core.transcript.cursor import CursorParser, CursorTextParser, _Record
from curatord.core.transcript.events import OWN_MARK, SessionKind, SessionTally

__all__ = ["CursorTeller", "CursorTextTeller"]

_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_HEADS = {b"user:": "user", b"assistant:": "assistant"}
_CALL = "[Tool call]"


def queried(text: str) -> str:
    """Return what the person wrote in a prompt's *text*."""
    queries = _QUERY.findall(text)
    return "\n".join(query.strip() for query in queries) if queries else text


class CursorTeller(RecordTeller, CursorParser):
    """The teller of one session's file."""

    def ref(self) -> None:
        """Return nothing: records have no ids."""

    def typed(self, text: str) -> str:
        """Return a prompt without the context around it."""
        return queried(text)

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
            elif block.get("type") == "tool_use":
                tool = tool_use(block.get("name"), block.get("input"))
                ident = block.get("id")
                self._telling.knows(ident if isinstance(ident, str) else None, tool)
                tools.append(tool)
        return "\n".join(texts), tools

    def count(self, record: _Record, tally: SessionTally) -> tuple[int, bool]:
        """Tell besides what a failed call gave."""
        counted = super().count(record, tally)
        if record.role == "user" and self.tells(tally):
            for block in members(self._line.value.get("message"), "content"):
                if block.get("type") == "tool_result" and block.get("is_error") is True:
                    call = block.get("tool_use_id")
                    self._telling.error(
                        None, joined(block.get("content")), self.at_ms(), call=call if isinstance(call, str) else None
                    )
        return counted


class CursorTextTeller(CursorTextParser):
    """The teller of one session's text: a block is a message."""

    def __init__(self, path: str, *, telling: Telling, **how: Any) -> None:
        super().__init__(path, **how)
        self._telling = telling
        telling.before_finish(self._close)
        self._role = ""
        self._texts: list[str] = []
        self._size = 0
        self._tools: list[tuple[str, list[str]]] = []
        self._aside = False  # the lines are a thought's, a call's or a result's
        self._begun = self._ended = 0
        self._counted = False
        self._spoken = False

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """Take lines; a head begins a block, all others belong to the one before."""
        for line, offset in lines:
            line = line.rstrip(b"\n")
            role = _HEADS.get(line)
            if role is not None:
                self._close()
                self._role, self._begun, self._counted = role, offset, role == "assistant"
            turns = self._current.tally.user_turns
            super().feed([(line, offset)])
            self._counted = self._counted or self._current.tally.user_turns > turns
            if role is None and self._role:
                self._take_line(line.decode("utf-8", "replace"))
            self._ended = offset + len(line)

    def _take_line(self, line: str) -> None:
        if line.startswith("["):
            self._aside = True
            if line.startswith(_CALL) and len(self._tools) < 256:
                self._tools.append((line[len(_CALL) :].strip(), []))
            elif line.startswith("[Thinking]"):
                self._aside = False  # what follows on further lines is the answer
            return
        if self._aside and self._tools and line.startswith(" "):
            arguments = self._tools[-1][1]
            if len(arguments) < 64:
                arguments.append(shortened(line.strip(), 4096))
            return
        if not self._aside and self._size <= MAX_SAID:
            self._texts.append(shortened(line))
            self._size += len(line)

    def _close(self) -> None:
        """Tell the block that ends here."""
        role, self._role = self._role, ""
        text, tools = "\n".join(self._texts).strip(), self._tools
        self._texts, self._tools, self._size, self._aside = [], [], 0, False
        told = self._counted and not self._side and self._session == self._telling.session_id
        if not role or not told:
            return
        self._telling.at(self._begun, self._ended)
        if role == "user":
            # What the parser saw of the prompt is its first line.
            if self._kind is SessionKind.OWN or (not self._spoken and OWN_MARK in text):
                self._telling.silence()
            self._spoken = True
            self._telling.user(None, queried(text), None)
        else:
            used = [tool_use(name, "\n".join(arguments)) for name, arguments in tools]
            self._telling.assistant(None, None, text, used, None, new=True)

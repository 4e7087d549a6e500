"""
What was said in Gemini CLI's chats, journals and older documents.

The rules are those of `core/transcript/gemini_cli.py`, whose parser this one listens to. A message is written again
whenever it grows, and the last state of it is what was said; `$rewindTo` takes messages back, and those are not told
(they did happen, and count, but the conversation went on without them). So messages are held back until the end, or
until there are more of them than `HELD`: a message that far behind is told as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from curatord.core.conversation.record_teller import RecordTeller, ms_of
from curatord.core.conversation.telling import Telling, joined, members, shortened, tool_use
from curatord.core.distil.said import ToolUse
from curatord.core.transcript.events import SessionKind, SessionTally
from curatord.core.transcript.gemini_cli import FAILED, GeminiCliParser, _Line, _Message

__all__ = ["GeminiCliTeller"]

HELD = 2048
HELD_CHARS = 16 * 1024 * 1024


class _Held:
    """A message that may still change, and where it first stood."""

    __slots__ = ("at_ms", "begin", "end", "errors", "role", "text", "tools")

    def __init__(self, role: str, begin: int, end: int, at_ms: int | None) -> None:
        self.role = role
        self.begin = begin
        self.end = end
        self.at_ms = at_ms
        self.text = ""
        self.tools: list[ToolUse] = []
        self.errors: dict[str, tuple[str, int, int]] = {}  # by call, with where each was first told

    @property
    def size(self) -> int:
        return (
            len(self.text)
            + sum(len(tool.arguments) for tool in self.tools)
            + sum(len(text) for text, _, _ in self.errors.values())
        )


class GeminiCliTeller(RecordTeller, GeminiCliParser):
    """The teller of one chat's file, or of the lines made of a document."""

    def __init__(self, path: str, *, telling: Telling, **how: Any) -> None:
        self._held: dict[str, _Held] = {}
        self._held_chars = 0
        self._message_at_hand: dict[str, Any] = {}
        self._values: dict[str, dict[str, Any]] | None = None  # of the record at hand, by id
        telling.before_finish(self._hand_over)
        super().__init__(path, telling=telling, **how)

    def words(self, value: dict[str, Any]) -> tuple[str, list[ToolUse]]:
        """Return the text and the calls of a message."""
        tools = [tool_use(call.get("name"), call.get("args")) for call in members(value, "toolCalls")]
        return joined(value.get("content")), tools

    # -- the parser, listened to

    def _take(self, record: Any, line: bytes) -> None:
        self._values = None
        super()._take(record, line)

    def count(self, line: _Line, tally: SessionTally) -> tuple[int, bool]:
        """Take back besides what was rewound."""
        if bytes(line.rewind_to) and not self._telling.beyond:
            self._rewind(self._line.value.get("$rewindTo"))
        return super().count(line, tally)

    def again(self, line: _Line, tally: SessionTally) -> None:
        """Take the newer states of messages."""
        super().again(line, tally)
        for value in self._messages_at_hand():
            self._renew(value)

    def _listed(self, message: _Message, tally: SessionTally) -> int:
        turns = super()._listed(message, tally)
        self._renew(self._value_of(message))
        return turns

    def _message(self, message: _Message, tally: SessionTally) -> int:
        self._message_at_hand = self._value_of(message)
        return super()._message(message, tally)

    def _said(self, text: str, tally: SessionTally, by: SessionKind = SessionKind.PERSON) -> None:
        # Not `RecordTeller`'s, which tells at once.
        super(RecordTeller, self)._said(text, tally, by)
        if self.tells(tally):
            self._hold_back("user", text)

    def _answered(self, ident: str | None, tally: SessionTally) -> int:
        turns = super(RecordTeller, self)._answered(ident, tally)
        if turns and self.tells(tally):
            self._hold_back("assistant", "")
            self._renew(self._message_at_hand)
        return turns

    # -- messages held back

    def _hold_back(self, role: str, text: str) -> None:
        if self._telling.beyond:
            return
        value = self._message_at_hand
        ident = value.get("id")
        begin, end = self._telling.place
        held = _Held(role, begin, end, ms_of(value.get("timestamp")))
        held.text = shortened(text)
        self._held[ident if isinstance(ident, str) and ident else self._telling.here] = held
        self._held_chars += held.size
        while len(self._held) > HELD or self._held_chars > HELD_CHARS:
            self._tell(next(iter(self._held)))
        self._telling.at(begin, end)  # where we are still

    def _renew(self, value: dict[str, Any]) -> None:
        ident = value.get("id")
        held = self._held.get(ident) if isinstance(ident, str) else None
        if held is None or held.role != "assistant" or self._telling.beyond:
            return
        self._held_chars -= held.size
        text, held.tools = self.words(value)
        held.text = shortened(text)
        held.tools = held.tools[:256]
        for call in members(value, "toolCalls")[:256]:
            status = call.get("status")
            if isinstance(status, str) and status in FAILED:
                ident = _text(call.get("id")) or _text(call.get("name"))
                held.errors.setdefault(ident, (shortened(_failure(call)), *self._telling.place))
        for call, tool in zip(members(value, "toolCalls"), held.tools, strict=False):
            self._telling.knows(_text(call.get("id")), tool)
        self._held_chars += held.size

    def _rewind(self, ident: object) -> None:
        if isinstance(ident, str) and ident in self._held:
            names = list(self._held)
            for name in names[names.index(ident) :]:
                self._held_chars -= self._held.pop(name).size

    def _hand_over(self) -> None:
        for ident in list(self._held):
            self._tell(ident)

    def _tell(self, ident: str) -> None:
        held = self._held.pop(ident)
        self._held_chars -= held.size
        self._telling.at(held.begin, held.end)
        ref = None if ident.startswith("@") else ident
        if held.role == "user":
            self._telling.user(ref, held.text, held.at_ms)
            return
        self._telling.assistant(None, ref, held.text, held.tools, held.at_ms, new=True)
        for call, (text, begin, end) in held.errors.items():
            self._telling.at(begin, end)
            self._telling.error(ref, text, held.at_ms, call=call or None)

    # -- the record at hand

    def _messages_at_hand(self) -> Iterator[dict[str, Any]]:
        value = self._line.value
        listed = value.get("$set")
        if isinstance(listed, dict):
            yield from members(listed, "messages")
        else:
            yield value

    def _value_of(self, message: _Message) -> dict[str, Any]:
        if self._values is None:
            self._values = {_text(value.get("id")): value for value in self._messages_at_hand()}
        return self._values.get(message.id or "", {})


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _failure(call: dict[str, Any]) -> str:
    """Return what a failed call gave."""
    for answer in members(call, "result"):
        given = answer.get("functionResponse")
        response = given.get("response") if isinstance(given, dict) else None
        if isinstance(response, dict):
            text = joined(response.get("error")) or joined(response.get("output"))
            if text:
                return text
    return joined(call.get("resultDisplay")) or str(call.get("status"))

"""
What was said in Claude Code's sessions.

The rules are those of `core/transcript/claude_code.py`, whose parser this one listens to. What it adds: the text that a
person typed for a slash command stands in the record before the one that shows it was a turn, and a prompt typed while
the agent works in a queue operation before the one that takes it out; both are kept until then. A prompt that a
schedule fired is not told.

Not told: thoughts, what the program put in front of a prompt or behind it, messages that the program made itself
(`<synthetic>`), a skill's body, records of other sessions in the same file (a copied history that names its origin).

Unknown: a fork's file (`--fork-session`) holds its origin's records under its own session's id and says nowhere which
they are; alone it is told whole. The same is true of sessions that older versions resumed into a new file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from curatord.core.conversation.record_teller import Line, ms_of
from curatord.core.conversation.telling import Telling, joined, members, shortened, tool_use, without_tags
from curatord.core.transcript.claude_code import (
    IN_FRONT,
    KEEP_QUEUE,
    NOT_SAID,
    SLASH,
    ClaudeCodeParser,
    _failed,
    _without_front,
)
from curatord.core.transcript.claude_records import (
    Block,
    Message,
    Record,
    attachment_of,
    decode_record,
    outcome_of,
    prompt_text,
)
from curatord.core.transcript.events import SessionKind, SessionTally
from curatord.core.transcript.ids import content_key
from curatord.core.transcript.salvage import text_of_raw

__all__ = ["ClaudeCodeTeller"]

_NAME = re.compile(r"<command-name>\s*/?([^<]{1,200}?)\s*</command-name>")


class ClaudeCodeTeller(ClaudeCodeParser):
    """
    The teller of one file.

    Args:
        path: Below the source's folder.
        telling: What is told.
        how: See `ClaudeCodeParser`.
    """

    def __init__(self, path: str, *, telling: Telling, **how: Any) -> None:
        super().__init__(path, **how)
        self._telling = telling
        self._line = Line()
        self._typed = ""  # by a person, of a turn whose own record does not say it
        self._typed_in: str | None = None  # the record that does
        self._command = ""  # of the slash record that waits
        self._texts: dict[bytes, str] = {}  # of queued prompts, by what the queue knows them by
        if self._side:
            telling.silence()

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """Take whole lines with the offset at which each begins, one by one."""
        for line, offset in lines:
            self._telling.line(line, offset)
            try:
                record = decode_record(line)
            except (msgspec.MsgspecError, RecursionError):
                self._odd(line, offset)
                continue
            self._take(record, line)

    def oversize(self, head: bytes, tail: bytes, size: int, offset: int) -> None:
        """Take a line too long to hold: what its beginning says of it."""
        self._telling.at(offset, offset + size)
        self._line.cut(head)
        super().oversize(head, tail, size, offset)
        self._line.cut(None)

    def _take(self, record: Record, content: bytes) -> None:
        self._line.of(content)
        super()._take(record, content)

    def _tells(self, tally: SessionTally, record: Record) -> bool:
        return not self._side and record.isSidechain is not True and tally.session_id == self._telling.session_id

    # -- the model

    def _assistant(self, record: Record, message: Message, tally: SessionTally) -> int:
        turns = super()._assistant(record, message, tally)
        if message.model == "<synthetic>" or not self._tells(tally, record):
            return turns
        texts, tools = [], []
        for block in members(self._line.value.get("message"), "content"):
            if block.get("type") == "text":
                texts.append(joined(block))
            elif block.get("type") == "tool_use":
                tool = tool_use(block.get("name"), block.get("input"))
                ident = block.get("id")
                self._telling.knows(ident if isinstance(ident, str) else None, tool)
                tools.append(tool)
        self._telling.assistant(
            message.id, record.uuid, "\n".join(texts), tools, ms_of(record.timestamp), new=turns > 0
        )
        return turns

    # -- the user, and what looks like one

    def _user(self, record: Record, message: Message, tally: SessionTally, side: bool) -> None:
        content = message.content
        if not side and self._tells(tally, record):
            if isinstance(content, list) and any(block.type == "tool_result" for block in content):
                self._errors(record)
            elif not record.isMeta:
                self._command = _typed_command(content)
        super()._user(record, message, tally, side)

    def _errors(self, record: Record) -> None:
        outcome = outcome_of(record.toolUseResult)
        for block in members(self._line.value.get("message"), "content"):
            if block.get("type") != "tool_result":
                continue
            if _failed(Block(is_error=block.get("is_error") is True), outcome):
                call = block.get("tool_use_id")
                self._telling.error(
                    record.uuid,
                    joined(block.get("content")),
                    ms_of(record.timestamp),
                    call=call if isinstance(call, str) else None,
                )

    def _turn(self, record: Record, tally: SessionTally, text: str) -> None:
        fired = self._scheduled == 2  # the prompt of the schedule; the next one is a person's
        super()._turn(record, tally, text)
        if not self._tells(tally, record):
            return
        if tally.kind is SessionKind.OWN:
            self._telling.silence()
        elif not fired:
            text = without_tags(text, IN_FRONT) or self._typed or self._text_at_hand()
            if not text.startswith(NOT_SAID):
                self._telling.user(self._typed_in or record.uuid, text, ms_of(record.timestamp))

    def _text_at_hand(self) -> str:
        """Return the prompt in a record of which the parser saw only the ends."""
        message = self._line.value.get("message") if self._line.is_cut else None
        return _without_front(joined(message.get("content"))) if isinstance(message, dict) else ""

    def _meta(self, record: Record, content: str | list[Block] | None, tally: SessionTally, side: bool) -> None:
        self._typed = self._command
        self._typed_in = self._slash[0] if self._slash is not None else None
        super()._meta(record, content, tally, side)
        self._typed = ""
        self._typed_in = None

    # -- prompts typed while the agent works

    def _queue_operation(self, record: Record, tally: SessionTally) -> None:
        if record.operation == "enqueue":
            text = text_of_raw(record.content).lstrip()
            self._texts[content_key(text.encode("utf-8", "replace"))] = shortened(text)
            if len(self._texts) > KEEP_QUEUE:
                del self._texts[next(iter(self._texts))]
        elif self._queue:
            self._typed = self._texts.get(self._queue[0][0], "")
        super()._queue_operation(record, tally)
        self._typed = ""

    def _attachment(self, record: Record, tally: SessionTally, side: bool) -> None:
        self._typed = prompt_text(attachment_of(record.attachment).prompt).strip()
        super()._attachment(record, tally, side)
        self._typed = ""


def _typed_command(content: str | list[Block] | None) -> str:
    """Return what a person typed where *content* is a slash record, else nothing."""
    if isinstance(content, list):
        text = "\n".join(text_of_raw(block.text) for block in content if block.type == "text")
    else:
        text = content or ""
    text = _without_front(text)
    if not text.startswith(SLASH):
        return ""
    name = _NAME.search(text)
    arguments = text.partition("<command-args>")[2].partition("</command-args>")[0]
    return f"/{name[1] if name else ''} {arguments}".strip()

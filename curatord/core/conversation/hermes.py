"""
What was said in Hermes' sessions: rows of its database, or messages of its older files.

The rules are those of `core/transcript/hermes.py`, whose parser this one listens to: copies that a compaction or a
branch inserted, summaries, the reviewer's prompts of older builds and other people's talk in a group are not told;
rewound rows did happen, and are. Of a prompt that Hermes made of a slash command only what the person typed is told,
of one that a channel put skills in front of only what stands behind them, of one with recalled memory around it (a
section in `<memory-context>`) only what is no memory. Prompts of a schedule are not told, though
what the model did on them is.

Unknown: where the body of an auto-loaded skill ends, if it names no folder; then only the last paragraph is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from curatord.core.conversation.telling import Telling, tool_use, without_tags
from curatord.core.transcript.events import SessionKind, SessionTally
from curatord.core.transcript.hermes import (
    _INVOKED,
    _LOADED,
    _SKILL_FOLDER,
    HermesParser,
    History,
    Row,
    _decode_calls,
    _failed,
    _Session,
    text_of_content,
)

__all__ = ["HermesTeller"]

_ALONGSIDE = "The user has provided the following instruction alongside the skill invocation: "
_INSTRUCTION = re.compile(r"^User instruction: (.*?)(?=\n\n|\n\[|\Z)", re.MULTILINE | re.DOTALL)

RECALLED = ("memory-context",)  # what some builds leave in the row of what a memory put beside it

Places = Callable[[int], tuple[int, int]]


class HermesTeller(HermesParser):
    """
    The teller of one session's rows, in order.

    Args:
        history: See `HermesParser`; of an item that is opened anew it can be exchanged (`reads`).
        telling: What is told.
        places: Where a row begins and ends, in the unit of the item's watermark; None: its number says so.
        how: See `HermesParser`.
    """

    def __init__(self, history: History, *, telling: Telling, places: Places | None = None, **how: Any) -> None:
        super().__init__(history, **how)
        self._telling = telling
        self._places = places

    def reads(self, history: History) -> None:
        """Ask *history* from here on."""
        self._history = history

    def feed(self, rows: Iterable[Row]) -> None:
        """Take rows of the session in order of their id."""
        for row in rows:
            self._telling.at(*(self._places(row.id) if self._places is not None else (row.id - 1, row.id)))
            self._take(row)

    def _tells(self, kind: SessionKind, row: Row) -> bool:
        if kind is SessionKind.SUBAGENT or not kind.counts:
            self._telling.silence()
        return row.session_id == self._telling.session_id

    def _user(self, row: Row, text: str, at: int | None, session: _Session, tally: SessionTally) -> None:
        before = tally.user_turns
        super()._user(row, text, at, session, tally)
        if tally.user_turns > before and self._tells(session.kind, row) and session.kind is not SessionKind.SCHEDULED:
            said = typed(text)
            if said or not text.strip():  # else all of it is recalled
                self._telling.user(str(row.id), said, at)

    def _assistant(self, row: Row, at: int | None, session: _Session, tally: SessionTally) -> int:
        turns = super()._assistant(row, at, session, tally)
        if self._tells(session.kind, row):
            tools = []
            for call in _decode_calls(row.tool_calls) if row.tool_calls else ():
                function = call.function
                tool = tool_use((function.name if function else None) or call.name, function and function.arguments)
                self._telling.knows(call.id or call.call_id, tool)
                tools.append(tool)
            self._telling.assistant(None, str(row.id), text_of_content(row.content), tools, at, new=True)
        return turns

    def _result(self, row: Row, tally: SessionTally) -> None:
        super()._result(row, tally)
        if self._tells(tally.kind, row) and _failed(row.content, None):
            text = text_of_content(row.content)
            self._telling.error(str(row.id), text, self._time(row.timestamp), call=row.tool_call_id)


def typed(text: str) -> str:
    """Return of a user's row what the person typed: a command with its text, or the text behind loaded skills."""
    text = without_tags(text, RECALLED)
    if not text.startswith(("[IMPORTANT: ", "[SYSTEM: ")):
        return text
    invoked = _INVOKED.match(text)
    if invoked is not None:
        said = ""
        if invoked[2] == "skill":
            said = text.rpartition(_ALONGSIDE)[2] if _ALONGSIDE in text else ""
        elif instruction := _INSTRUCTION.search(text):
            said = instruction[1]
        names = invoked[1] if invoked[1].startswith("/") else f"/{invoked[1]}"
        return f"{names} {said.strip()}".strip()
    if not _LOADED.match(text):
        return text
    last = list(_LOADED.finditer(text))[-1]
    folder = _SKILL_FOLDER.search(text, last.end())
    if folder is not None:
        return text[folder.end() :].partition("\n\n")[2].strip()
    return text[last.end() :].strip().rpartition("\n\n")[2].strip()

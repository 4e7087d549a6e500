"""
A host's reader of records, listened to: whatever it counts as a turn is told.

What is a user's turn, what a copy, what a sub-agent's, all that the ingest parsers know already (`core/transcript`).
A teller is such a parser, fed one record at a time, that hands on the words of what the parser counts: so the two
never differ, and a rule is written once. The parsers decode only what counting needs; the words are taken from the
record decoded whole, and only for records that have some.

`RecordTeller` is put in front of a parser derived from `RecordParser`; the host's module then says where the words are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import msgspec

from curatord.core.conversation.telling import Telling
from curatord.core.distil.said import ToolUse
from curatord.core.transcript.events import SessionKind, SessionTally
from curatord.core.transcript.lines import Unreadable, objects
from curatord.core.transcript.record_parser import LONG_ENOUGH, RecordParser
from curatord.core.transcript.salvage import cut_off
from curatord.core.transcript.times import ms_of_iso, ms_of_number

__all__ = ["Line", "RecordTeller", "ms_of"]

_UNTOLD = frozenset({SessionKind.OWN, SessionKind.REVIEWER, SessionKind.SUBAGENT})
_decode = msgspec.json.Decoder().decode


class Line:
    """The record at hand, decoded whole when it is asked for."""

    __slots__ = ("_cut", "_text", "_value")

    def __init__(self) -> None:
        self._text = b""
        self._cut = False
        self._value: dict[str, Any] | None = None

    def of(self, text: bytes) -> None:
        """Take *text* as the record at hand, unless it is one of which only both ends are there."""
        if not self._cut:
            self._text, self._value = text, None

    def cut(self, head: bytes | None) -> None:
        """Take the record that begins with *head* and is too long to hold; None: it is done with."""
        self._cut = head is not None
        self._text, self._value = b"", cut_off(head) if head is not None else None

    @property
    def is_cut(self) -> bool:
        """Whether only both ends of the record are there."""
        return self._cut

    @property
    def value(self) -> dict[str, Any]:
        """The record as an object, an empty one where it is none."""
        if self._value is None:
            self._value = _object(self._text)
        return self._value


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = _decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        value = next((each for each in objects(text) if not isinstance(each, Unreadable)), None)
    return value if isinstance(value, dict) else {}


def ms_of(time: object) -> int | None:
    """Return a record's time, ISO 8601 text or a number, in ms; None where it is none."""
    if isinstance(time, str):
        return ms_of_iso(time, now_ms=0).ms
    if isinstance(time, (int, float)) and not isinstance(time, bool):
        return ms_of_number(time, now_ms=0).ms
    return None


class RecordTeller(RecordParser[Any, Any]):
    """
    The part of a teller that no host differs in; stands before the host's parser among the bases.

    Args:
        path: Of the item, as the parser wants it.
        telling: What is told.
        how: See `RecordParser`.
    """

    def __init__(self, path: str, *, telling: Telling, **how: Any) -> None:
        self._telling = telling
        self._line = Line()
        self._record: Any = None
        super().__init__(path, **how)
        if self._side:
            telling.silence()

    # -- what a host says

    @abstractmethod
    def words(self, value: dict[str, Any]) -> tuple[str, list[ToolUse]]:
        """Return what the model says in the record *value*, and its calls."""

    def typed(self, text: str) -> str:
        """Return of a prompt's *text* what the person typed."""
        return text

    def ref(self) -> str | None:
        """Return the id of the record at hand, None where it has none."""
        ident = self._line.value.get("id")
        return ident if isinstance(ident, str) else None

    # -- the parser, listened to

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """Take whole lines with the offset at which each begins, one by one: no counting in bulk here."""
        decode = self._decode
        for line, offset in lines:
            self._telling.line(line, offset)
            try:
                record = decode(line)
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

    def _take(self, record: Any, line: bytes) -> None:
        self._record = record
        self._line.of(line)
        super()._take(record, line)

    def at_ms(self) -> int | None:
        """Return the time of the record at hand."""
        return ms_of(self.time_of(self._record))

    def tells(self, tally: SessionTally) -> bool:
        """Return whether what is counted in *tally* is told at all."""
        if self._kind in _UNTOLD and tally.session_id == self._telling.session_id:
            self._telling.silence()
        return not self._side and tally.session_id == self._telling.session_id and not self._telling.silent

    def _said(self, text: str, tally: SessionTally, by: SessionKind = SessionKind.PERSON) -> None:
        super()._said(text, tally, by)
        if self.tells(tally) and self._kind is not SessionKind.SCHEDULED:
            typed = self.typed(text)
            if typed.strip() or not text.strip():  # else all of it is the program's
                self._telling.user(self.ref(), typed, self.at_ms())

    def _answered(self, ident: str | None, tally: SessionTally) -> int:
        turns = super()._answered(ident, tally)
        if self.tells(tally):
            text, tools = self.words(self._line.value)
            # A short id may be that of every message: it makes no two of them one.
            key = ident if ident is not None and len(ident) >= LONG_ENOUGH else None
            self._telling.assistant(key, self.ref(), text, tools, self.at_ms(), new=turns > 0)
        return turns

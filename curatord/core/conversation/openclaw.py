"""
What was said in OpenClaw's sessions: in files, or in rows of an agent's database.

The rules are those of `core/transcript/openclaw.py`, whose parser this one listens to: heartbeats, schedules, other
sessions' messages and notices are no person's; sub-agents' sessions tell nothing. Of a prompt only what the person said
is told (`spoken`), of one that names skills the names and the request.

A fork's entries keep their times: what is older than the session itself is passed over, where the header or the table
of sessions says that it is a fork.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from curatord.core.conversation.pi import PiTeller
from curatord.core.conversation.telling import Telling
from curatord.core.transcript.openclaw import (
    _MANY_SKILLS,
    _NAMED,
    _ONE_SKILL,
    KEEP_ASKED,
    OpenClawParser,
    spoken,
)

__all__ = ["OpenClawRowsTeller", "OpenClawTeller"]

_INPUT = re.compile(r"^User (?:input|request):[ \t]*", re.MULTILINE)


class OpenClawTeller(PiTeller, OpenClawParser):
    """The teller of one session's file; see `OpenClawParser` for *kind* and *parent*."""

    def typed(self, text: str) -> str:
        """Return what the person said in a prompt."""
        said = spoken(text)
        names = []
        one = _ONE_SKILL.search(said[:4096])
        many = _MANY_SKILLS.search(said[:4096])
        if one is not None:
            names = [one[1]]
        elif many is not None:
            at = many.end()
            while (found := _NAMED.match(said, at)) and len(names) < KEEP_ASKED:
                names.append(found[1])
                at = found.end()
        if not names:
            return super().typed(said)
        asked = _INPUT.search(said)
        words = said[asked.end() :].strip() if asked is not None else ""
        return f"{' '.join('/' + name for name in names)} {words}".strip()


class OpenClawRowsTeller(OpenClawTeller):
    """
    The teller of one session's rows.

    Args:
        session: Its id, which the table says; a fork's header may be its origin's.
        telling: What is told.
        forked_ms: When the session began, if it is a fork.
        how: See `OpenClawParser`.
    """

    def __init__(self, session: str, *, telling: Telling, forked_ms: int | None, **how: Any) -> None:
        super().__init__(session, telling=telling, **how)
        self._in_session(session)
        self._forked_ms = forked_ms

    def _note_session(self, entry: Any) -> None:
        """The table says which session a row is of."""

    def row(self, line: bytes, number: int) -> None:
        """Take the row with this *number* of the table."""
        self._telling.at(number - 1, number)
        try:
            record = self._decode(line)
        except (msgspec.MsgspecError, RecursionError):
            self._odd(line, number)
            return
        self._take(record, line)

    def long_row(self, head: bytes, tail: bytes, size: int, number: int) -> None:
        """Take a row too long to hold."""
        self.oversize(head, tail, size, number - 1)

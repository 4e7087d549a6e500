"""
What was said in an OpenClaw home: rows of an agent's database, or the files of the time before.

A session's rows are asked for a few hundred at a time in order of their `seq`, each time in a transaction of its own
that is over before anything is handed on. The watermark is a row's number; a transcript that was rewritten has new
rows with old words, so of such a session a row is only new if its time is, too. Files stay after the upgrade to the
database: where that has the session, it wins.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import msgspec

from curatord.adapters.sources.openclaw_db import DATABASE, OpenClawSource, Queries, unpacked_event
from curatord.adapters.sources.sqlite_read import ChangedError, DatabaseFiles, InUseError, Reading
from curatord.adapters.sources.told_lines import LineConversations
from curatord.core.conversation.openclaw import OpenClawRowsTeller, OpenClawTeller
from curatord.core.conversation.record_teller import ms_of
from curatord.core.conversation.telling import Telling
from curatord.core.distil.said import Said
from curatord.core.transcript.ids import Guard
from curatord.core.transcript.lines import EDGE, MAX_LINE
from curatord.core.transcript.salvage import decoded
from curatord.errors import TranscriptError
from curatord.ports.conversation import Since
from curatord.ports.source import LineParser, Start

__all__ = ["OpenClawConversations"]

CHUNK_ROWS = 200
CHUNK_BYTES = 4 * 1024 * 1024  # of rows held at a time
TRIES = 3
MAX_ID = (1 << 63) - 1


class OpenClawConversations(LineConversations):
    """
    The `Conversations` of one home.

    Args:
        path: The home, its folder of agents, one agent's folder, or one database.
        scratch: Where a private copy of a database goes, where one is needed.
    """

    def __init__(self, path: str, *, scratch: str | None = None) -> None:
        self._claw = OpenClawSource(path, scratch=scratch)
        self._databases = DatabaseFiles(scratch=scratch)
        super().__init__(self._claw, self._teller_of)

    def said(
        self, path: str, session_id: str, since: Since, *, until: int | None, stop: Callable[[], bool]
    ) -> Iterator[Said]:
        """Yield what was said in *session_id* in the database or file at *path*; see `Conversations`."""
        item = self._source.item_at(path)
        if item is not None and item.path.endswith(".sqlite"):
            if item.size:
                yield from self._in_database(item.path, session_id, since, until, stop)
            return
        if item is not None and self._database_has(item.path, session_id):
            return  # the upgrade took it over
        yield from super().said(path, session_id, since, until=until, stop=stop)

    def _database_has(self, path: str, session_id: str) -> bool:
        """Return whether the database of the agent whose file is at *path* holds the session as well."""
        database = os.path.join(os.path.dirname(os.path.dirname(path)), "agent", DATABASE)
        try:
            if not os.path.getsize(database):
                return False
            with self._databases.at(database).open() as reading:
                if "session_id" not in reading.columns("transcript_events"):
                    return False
                query = "SELECT 1 FROM transcript_events WHERE session_id = ? LIMIT 1"
                return reading.connection.execute(query, (session_id,)).fetchone() is not None
        except (FileNotFoundError, TranscriptError):
            return False  # of a damaged database is told where it is read itself

    def _teller_of(self, path: str, start: Start, telling: Telling) -> LineParser:
        kind, parent = self._claw.told_of(f"{self._claw.path}/{path}")
        return OpenClawTeller(
            path,
            telling=telling,
            kind=kind,
            parent=parent,
            state=b"",
            fresh=True,
            guard=Guard(),
            before=Guard(),
            now_ms=start.now_ms,
            mtime_ms=start.mtime_ms,
        )

    def _in_database(
        self, path: str, session_id: str, since: Since, until: int | None, stop: Callable[[], bool]
    ) -> Iterator[Said]:
        file = self._databases.at(path)
        teller: OpenClawRowsTeller | None = None
        telling = Telling(session_id)
        last = -MAX_ID
        tries = 0
        while True:
            try:
                with file.open() as reading:
                    queries = _queries(reading)
                    if queries is None:
                        return
                    while not stop():
                        with reading.transaction():
                            if teller is None:
                                both = _was_rewritten(reading, session_id)
                                telling = Telling(
                                    session_id, offset=since.offset, at_ms=since.at_ms, until=until, both=both
                                )
                                teller = _rows_teller(reading, queries, telling)
                            asked = (session_id, last, MAX_ID if until is None else until, CHUNK_ROWS)
                            rows = _some(reading.connection.execute(queries.from_seq, asked))
                            reading.check()
                        for row in rows:
                            _take(teller, *row)
                            last = row[2]
                        yield from telling.take()
                        if not rows or telling.silent:
                            telling.finish()
                            yield from telling.take()
                            return
                        tries = 0
                        teller.findings()
                    return
            except ChangedError:
                tries += 1
                if tries >= TRIES:
                    raise InUseError(f"{path} changes faster than it can be read") from None


def _some(cursor: sqlite3.Cursor) -> list[tuple[Any, ...]]:
    """Return the next rows, some `CHUNK_BYTES` of them."""
    rows = []
    size = 0
    with closing(cursor):
        for row in cursor:
            rows.append(row)
            size += sum(len(each) for each in row[3:5] if isinstance(each, (bytes, str)))
            if size >= CHUNK_BYTES:
                break
    return rows


class _Header(msgspec.Struct, gc=False):
    id: str | None = None
    timestamp: str | float | None = None


def _queries(reading: Reading) -> Queries | None:
    """Return what is asked of the database, None where sessions were still files."""
    have = set(reading.columns("transcript_events"))
    if not {"session_id", "seq"} <= have or not have & {"event_json", "event_zstd"}:
        return None
    return Queries(reading, have)


def _rows_teller(reading: Reading, queries: Queries, telling: Telling) -> OpenClawRowsTeller:
    session = telling.session_id
    kind, parent = queries.told_of(session)
    return OpenClawRowsTeller(
        session,
        telling=telling,
        forked_ms=_forked_ms(reading, queries, session),
        kind=kind,
        parent=parent,
        state=b"",
        fresh=True,
        guard=Guard(),
        before=Guard(),
        now_ms=0,
    )


def _forked_ms(reading: Reading, queries: Queries, session: str) -> int | None:
    """Return when a fork began: its header is its origin's, or the table of sessions says so; None of any other."""
    have = set(reading.columns("session_windows"))
    if not {"session_id", "reason", "created_at"} <= have:
        return None
    query = "SELECT reason, created_at FROM session_windows WHERE session_id = ?"
    row = reading.connection.execute(query, (session,)).fetchone()
    if row is None or not isinstance(row[1], int):
        return None
    header = reading.connection.execute(queries.header, (session,)).fetchone()
    first = decoded(header[0], _Header) if header is not None and isinstance(header[0], bytes) else _Header()
    began = ms_of(first.timestamp)
    if row[0] == b"fork" or (first.id is not None and first.id != session and began is not None and began < row[1]):
        return int(row[1])
    return None


def _was_rewritten(reading: Reading, session: str) -> bool:
    if "session_id" not in reading.columns("transcript_rewrite_watermarks"):
        return False
    query = "SELECT 1 FROM transcript_rewrite_watermarks WHERE session_id = ? LIMIT 1"
    return reading.connection.execute(query, (session,)).fetchone() is not None


def _take(
    teller: OpenClawRowsTeller, number: int, _: object, seq: object, text: object, packed: object, size: int | None
) -> None:
    """Give one row to the teller; what holds no event is passed over."""
    if text is None and packed is not None:
        text, reason = unpacked_event(packed)
        if reason:
            return
    if text is None:
        return
    line = text if isinstance(text, bytes) else str(text).encode("utf-8", "replace")
    if size is not None and size > MAX_LINE:
        teller.long_row(line[:EDGE], line[-EDGE:], size, number)
    else:
        teller.row(line, number)

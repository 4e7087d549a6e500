"""
What was said in OpenCode's data folder: in its databases, and in the tree of files of the time before 1.2.

A message is read with all its parts, in order of the messages' times. The watermark is the sum of the numbers of the
last row of both tables, which no single row has: a message is told by its time where the last look has one. A database
is asked for one message at a time, in a transaction of its own that is over before anything is handed on. Where the
database has a session, it wins over the tree.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator

from curatord.adapters.sources.opencode_db import OpenCodeSource, _content, _names, _session_query, _Tree
from curatord.adapters.sources.sqlite_read import ChangedError, DatabaseFiles, InUseError, Reading
from curatord.core.conversation.opencode import Entry, OpenCodeTeller
from curatord.core.conversation.telling import Telling
from curatord.core.distil.said import Said
from curatord.core.transcript.columns import column_bytes, column_text, column_text_or_none
from curatord.core.transcript.lines import EDGE, MAX_LINE
from curatord.core.transcript.opencode import SessionFacts
from curatord.errors import TranscriptError
from curatord.ports.conversation import Since

__all__ = ["OpenCodeConversations"]

TRIES = 3
MAX_PARTS = 2000  # of one message
MAX_MOMENTS = 2_000_000
MANY_BYTES = 32 * 1024 * 1024  # of one message's parts


class OpenCodeConversations:
    """
    The `Conversations` of one data folder, or one database.

    Args:
        path: The place.
        scratch: Where a private copy of a database goes, where one is needed.
    """

    def __init__(self, path: str, *, scratch: str | None = None) -> None:
        self._source = OpenCodeSource(path, scratch=scratch)
        self._databases = DatabaseFiles(scratch=scratch)

    def said(
        self, path: str, session_id: str, since: Since, *, until: int | None, stop: Callable[[], bool]
    ) -> Iterator[Said]:
        """Yield what was said in *session_id* in the database or session file at *path*; see `Conversations`."""
        item = self._source.item_at(path)
        if item is None or not item.size:
            return
        telling = Telling(session_id, offset=since.offset, at_ms=since.at_ms, until=until, by_time=True)
        if item.path.endswith(".json"):
            yield from self._in_tree(item.path, telling, stop)
        else:
            yield from self._in_database(item.path, telling, stop)
        telling.finish()
        yield from telling.take()

    def _in_tree(self, path: str, telling: Telling, stop: Callable[[], bool]) -> Iterator[Said]:
        tree = _Tree(path)
        if tree.id != telling.session_id or self._source.database_has(tree.id):
            return
        teller = OpenCodeTeller(tree, telling=telling, elsewhere=lambda _: False)
        read = 0
        for message_id in _names(tree.messages):
            if stop() or telling.silent:
                return
            try:
                data, cut = _content(os.path.join(tree.messages, message_id + ".json"))
            except FileNotFoundError:
                continue  # reverted
            begin = read
            read += len(data)
            parts: list[Entry] = []
            size = 0
            folder = tree.parts_of(message_id)
            for part_id in _names(folder)[:MAX_PARTS]:
                try:
                    part, part_cut = _content(os.path.join(folder, part_id + ".json"))
                except FileNotFoundError:
                    continue
                read += len(part)
                size += len(part)
                if size > MANY_BYTES:
                    part, part_cut = part[:EDGE], True
                parts.append(Entry(part_id, None, part, part_cut))
            teller.take(Entry(message_id, None, data, cut), parts, (begin, read))
            teller.findings()
            yield from telling.take()

    def _in_database(self, path: str, telling: Telling, stop: Callable[[], bool]) -> Iterator[Said]:
        file = self._databases.at(path)
        asked: _Asked | None = None
        teller: OpenCodeTeller | None = None
        messages: list[tuple[int, str]] | None = None
        at = tries = 0
        while True:
            try:
                with file.open() as reading:
                    if asked is None:
                        asked = _Asked(reading, telling.session_id)
                        teller = OpenCodeTeller(asked, telling=telling, elsewhere=asked.elsewhere)
                    asked.of(reading)
                    assert teller is not None, "made with what it asks"
                    if messages is None:
                        with reading.transaction():
                            messages = asked.messages()
                            reading.check()
                    while at < len(messages):
                        if stop() or telling.silent:
                            return
                        with reading.transaction():
                            whole = asked.whole(*messages[at])
                            if whole is not None:
                                message, parts, place = whole
                                reading.check()
                                teller.take(message, parts, place)
                        at += 1
                        tries = 0
                        teller.findings()
                        yield from telling.take()
                    return
            except ChangedError:
                tries += 1
                if tries >= TRIES:
                    raise InUseError(f"{path} changes faster than it can be read") from None


class _Asked:
    """What is asked of an open database about one session; the teller's `Lookup`."""

    def __init__(self, reading: Reading, session_id: str) -> None:
        self._session_id = session_id
        self._reading = reading
        self._moments: array[int] | None = None
        messages, parts = set(reading.columns("message")), set(reading.columns("part"))
        if not {"id", "session_id", "data"} <= messages or not {"id", "message_id", "data"} <= parts:
            raise TranscriptError(
                f"{reading.path} has no tables of messages and parts with ids and data: it is no database of OpenCode",
                hint="point the source at the folder that OpenCode keeps its data in",
            )
        self._timed = "time_created" in messages
        made = "time_created" if self._timed else "NULL"
        size = "length(CAST(data AS BLOB))"
        data = f"CASE WHEN {size} > {MAX_LINE} THEN substr(CAST(data AS BLOB), 1, {EDGE}) ELSE data END"
        self._ids = f"SELECT rowid, id FROM message WHERE session_id = ? ORDER BY {made}, id"  # noqa: S608 -- ours
        self._message = f"SELECT {made}, {data}, {size} > {MAX_LINE} FROM message WHERE rowid = ? AND id = ?"  # noqa: S608
        part_made = "time_created" if "time_created" in parts else "NULL"
        self._parts = (
            f"SELECT rowid, id, {part_made}, {data}, {size} > {MAX_LINE} FROM part WHERE message_id = ?"  # noqa: S608
            f" ORDER BY id LIMIT {MAX_PARTS}"
        )
        have = reading.columns("session")
        self._session = _session_query(have) if "id" in have else None

    def of(self, reading: Reading) -> None:
        """Ask *reading* from here on."""
        self._reading = reading

    def messages(self) -> list[tuple[int, str]]:
        """Return row and id of the session's messages, in order."""
        rows = self._reading.connection.execute(self._ids, (self._session_id,))
        return [(int(row), column_text(ident)) for row, ident in rows]

    def whole(self, row: int, message_id: str) -> tuple[Entry, list[Entry], tuple[int, int]] | None:
        """Return a message, its parts, and where they begin and end; None where it is gone."""
        connection = self._reading.connection
        found = connection.execute(self._message, (row, message_id)).fetchone()
        if found is None:
            return None
        last = size = 0
        parts: list[Entry] = []
        for number, ident, made, data, cut in connection.execute(self._parts, (message_id,)):
            data = column_bytes(data)
            size += len(data)
            last = max(last, int(number))
            if size > MANY_BYTES:
                data, cut = data[:EDGE], True
            parts.append(Entry(column_text(ident), made, data, bool(cut)))
        parts.sort(key=lambda part: (part.created if isinstance(part.created, int) else 0, part.id))
        message = Entry(message_id, found[0], column_bytes(found[1]), bool(found[2]))
        return message, parts, (row + last - 1, row + last)

    def elsewhere(self, at_ms: int) -> bool:
        """Return whether another session has a message of that moment."""
        if not self._timed:
            return False
        if self._moments is None:
            query = "SELECT time_created FROM message WHERE session_id != ? LIMIT ?"
            rows = self._reading.connection.execute(query, (self._session_id, MAX_MOMENTS))
            self._moments = array("q", sorted(at for (at,) in rows if isinstance(at, int) and 0 <= at < 1 << 62))
        at = bisect_left(self._moments, at_ms)
        return at < len(self._moments) and self._moments[at] == at_ms

    # -- the teller's questions

    def session(self, session_id: str) -> SessionFacts | None:
        if self._session is None:
            return None
        row = self._reading.connection.execute(self._session, (session_id,)).fetchone()
        return SessionFacts(*(column_text_or_none(value) for value in row)) if row is not None else None

    def message(self, message_id: str) -> bytes | None:
        row = self._reading.connection.execute("SELECT data FROM message WHERE id = ?", (message_id,)).fetchone()
        return column_bytes(row[0]) if row is not None else None

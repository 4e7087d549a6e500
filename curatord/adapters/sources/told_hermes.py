"""
What was said in a Hermes home: in its database, and in the session files of its earlier years.

A session's rows are asked for a few hundred at a time, each time in a transaction of its own that is over before
anything is handed on, so that no writer waits for whoever reads on. A database that changes under an idle opening is
opened anew, and reading goes on behind the last row.

A session file is one document or was rewritten by `/undo`: where its messages have times those say what is known
already, else their places in the file do. One that became shorter than the last look's watermark is told whole, since
nobody knows what is new in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import msgspec

from curatord.adapters.sources.hermes_db import TRIES, HermesSource, _DocumentHistory, _History, _whole
from curatord.adapters.sources.sqlite_read import ChangedError, DatabaseFiles, InUseError
from curatord.adapters.sources.told_lines import handed
from curatord.core.conversation.hermes import HermesTeller
from curatord.core.conversation.telling import Telling
from curatord.core.distil.said import Said
from curatord.core.transcript.hermes_files import Document, read_document, read_lines
from curatord.core.transcript.ids import Guard
from curatord.ports.conversation import Since

__all__ = ["HermesConversations"]

CHUNK_BYTES = 1024 * 1024  # of rows held at a time


class HermesConversations:
    """
    The `Conversations` of one Hermes home.

    Args:
        path: The home, its database, or a folder with session files alone.
        scratch: Where a private copy of the database goes, where one is needed.
    """

    def __init__(self, path: str, *, scratch: str | None = None) -> None:
        self._source = HermesSource(path, scratch=scratch)
        self._databases = DatabaseFiles(scratch=scratch)

    def said(
        self, path: str, session_id: str, since: Since, *, until: int | None, stop: Callable[[], bool]
    ) -> Iterator[Said]:
        """Yield what was said in *session_id* in the database or file at *path*; see `Conversations`."""
        item = self._source.item_at(path)
        if item is None or not item.size:
            return
        if item.path.endswith((".json", ".jsonl")):
            if not os.path.isfile(item.path):
                return
            yield from self._in_file(item.path, session_id, since, until)
            return
        telling = Telling(session_id, offset=since.offset, until=until)
        yield from self._in_database(item.path, telling, until, stop)
        telling.finish()
        yield from telling.take()

    # -- the database

    def _in_database(self, path: str, telling: Telling, until: int | None, stop: Callable[[], bool]) -> Iterator[Said]:
        file = self._databases.at(path)
        teller: HermesTeller | None = None
        last = 0
        tries = 0
        while True:
            try:
                with file.open() as reading:
                    history = _History(reading)
                    if teller is None:
                        teller = _teller(history, telling)
                    else:
                        teller.reads(history)
                    while not stop():
                        with reading.transaction():
                            rows = history.of_session(telling.session_id, last, until, CHUNK_BYTES)
                            reading.check()
                            teller.feed(rows)
                        if not rows or telling.silent:
                            return
                        last = rows[-1].id
                        tries = 0
                        teller.findings()
                        yield from telling.take()
                    return
            except ChangedError:
                tries += 1
                if tries >= TRIES:
                    raise InUseError(f"{path} changes faster than it can be read") from None

    # -- session files

    def _in_file(self, path: str, session_id: str, since: Since, until: int | None) -> Iterator[Said]:
        item = self._source.item_at(path)
        if item is None:
            return
        data = _whole(item)
        name = os.path.basename(path)
        stem = name.removesuffix(".jsonl").removesuffix(".json").removeprefix("session_")
        lines = name.endswith(".jsonl")
        document = read_lines(data, stem) if lines else read_document(data, stem)
        if document.facts.id != session_id or self._source.database_has(session_id):
            return  # the database wins
        shrunken = len(data) < since.offset
        telling = Telling(
            session_id, offset=0 if shrunken else since.offset, at_ms=since.at_ms, until=until, by_time=True
        )
        ends = _ends(data, document, lines=lines)
        teller = _teller(_DocumentHistory(document), telling, places=ends, copies=False)
        teller.feed(document.rows)
        telling.finish()
        yield from handed(telling)


def _teller(
    history: _History | _DocumentHistory,
    telling: Telling,
    *,
    places: Callable[[int], tuple[int, int]] | None = None,
    copies: bool = True,
) -> HermesTeller:
    return HermesTeller(
        history,
        telling=telling,
        places=places,
        home=None,
        state=b"",
        fresh=True,
        guard=Guard(),
        before=Guard(),
        now_ms=0,
        copies=copies,
    )


class _Messages(msgspec.Struct):
    messages: list[msgspec.Raw] = []


def _ends(data: bytes, document: Document, *, lines: bool) -> Callable[[int], tuple[int, int]]:
    """Return what says where in *data* a row of *document*, told by its place from 1 on, begins and ends."""
    found: list[int] = []
    if lines:
        found = document.ends
    else:
        try:
            raws = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=_Messages).messages
        except (msgspec.MsgspecError, RecursionError):
            raws = []
        at = 0
        for raw in raws:
            text = bytes(raw)
            at = data.find(text, at) + len(text)
            found.append(at)

    def place(row: int) -> tuple[int, int]:
        end = found[row - 1] if row <= len(found) else len(data)
        return (found[row - 2] if 1 < row <= len(found) + 1 else 0), end

    return place

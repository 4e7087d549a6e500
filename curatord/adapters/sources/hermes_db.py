"""
A Hermes home: its database of sessions, and the session files of its earlier years.

The database is one item; its watermark is the largest id of a message that is durably counted. What Hermes does to rows
behind it (flags flipped by compaction and rewind, sessions pruned) changes no count, and what it inserts anew is known
by its body, so nothing behind the watermark is ever read again, but for the one row *at* it: if that is not the row it
was, the file was replaced or rebuilt, and everything is read anew under the keys of what was counted. The same happens
when the newest session of all was deleted; it costs one reading and counts nothing twice.

A session file (`session_<id>.json`, rewritten whole after each turn; `<id>.jsonl` of the gateway, which `/undo`
rewrites) is read whole whenever it changed, and its messages are told from those of before by the same keys. Where
the database has the session too, the database wins. Their times are local without a zone; they are taken as UTC and
noted (bugs B106), and where a message has none, the time of the last turn stands for it.
"""

from __future__ import annotations

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

from curatord.adapters.sources.sqlite_read import ChangedError, DatabaseFile, InUseError, Reading, signature
from curatord.core.transcript.columns import column_text, column_text_or_none
from curatord.core.transcript.events import Findings, SessionTally
from curatord.core.transcript.hermes import HermesParser, Row, SessionFacts
from curatord.core.transcript.hermes_files import Document, read_document, read_lines
from curatord.core.transcript.ids import content_key
from curatord.core.transcript.times import ms_of_iso
from curatord.errors import TranscriptError
from curatord.ports.source import Item, Marks, Slice, Start

__all__ = ["HermesSource"]

DATABASE = "state.db"
CHUNK_ROWS = 5000
CHUNK_BYTES = 2 * 1024 * 1024  # of rows held at a time
SLICE_BYTES = 24 * 1024 * 1024
MAX_CONTENT = 1024 * 1024  # of a message's content or calls; of a longer one both ends are read
EDGE = 64 * 1024
MAX_DOCUMENT = 128 * 1024 * 1024
KEPT_SESSIONS = 4096
MAX_ID = (1 << 63) - 1
TRIES = 3
NO_SESSION_FILES = ("request_dump_", "sessions.json")


class HermesSource:
    """
    The `Source` over one Hermes home.

    Args:
        path: The home, its database, or a folder with session files alone.
        scratch: Where a private copy of the database goes, where one is needed.
    """

    host = "hermes"

    def __init__(self, path: str, *, scratch: str | None = None) -> None:
        self.path = path
        self._home = os.path.dirname(path) if path.endswith(".db") else path
        if os.path.basename(self._home) == "sessions" and not os.path.exists(os.path.join(self._home, DATABASE)):
            self._home = os.path.dirname(self._home)
        self._database = path if path.endswith(".db") else os.path.join(self._home, DATABASE)
        self._scratch = scratch
        self._files: dict[str, DatabaseFile] = {}
        self._problems: list[str] = []

    @property
    def problems(self) -> list[str]:
        """What the last `items` could not look at."""
        return self._problems

    def items(self) -> Iterator[Item]:
        """Yield the database and the session files."""
        self._problems = []
        for file in self._files.values():
            file.release()
        os.stat(self.path)  # the place itself must be there
        try:
            yield self._item(self._database)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._problems.append(f"cannot look at {self._database}: {error.strerror}")
        if self.path == self._database:
            return
        folder = os.path.join(self._home, "sessions")
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        except OSError as error:
            self._problems.append(f"cannot list {folder}: {error.strerror}")
            return
        for entry in entries:
            if not _is_session_file(entry.name):
                continue
            try:
                found = entry.stat()
                if not entry.is_file():
                    continue
            except FileNotFoundError:
                continue
            except OSError as error:
                self._problems.append(f"cannot look at {entry.path}: {error.strerror}")
                continue
            yield _plain_item(entry.path, found)

    def item_at(self, path: str) -> Item | None:
        """Return the database for it or its companions, or the session file at *path*."""
        if path == self._database or path in (self._database + "-wal", self._database + "-shm"):
            return self._item(self._database)
        if os.path.dirname(path) != os.path.join(self._home, "sessions") or not _is_session_file(
            os.path.basename(path)
        ):
            return None
        return _plain_item(path, os.stat(path))

    def examine(self, item: Item, offset: int) -> Marks:
        """Return what *item* is recognised by: its place, and the row at the watermark."""
        if item.path != self._database:
            with open(item.path, "rb"):
                pass
            name = os.path.basename(item.path).encode("utf-8", "replace")
            return Marks(head=content_key(b"hermes session file", name), tail=_DOCUMENT_TAIL if offset else b"")
        head = content_key(b"hermes database", item.path.encode("utf-8", "replace"))
        if not offset or not item.size:
            return Marks(head=head, tail=b"")
        for _ in range(TRIES):
            with self._file(item.path).open() as reading:
                tail = _row_mark(reading, offset)
                try:
                    reading.check()
                except ChangedError:
                    continue
                return Marks(head=head, tail=tail)
        raise InUseError(f"{item.path} changes faster than it can be read")

    def read(self, item: Item, start: Start, stop: Callable[[], bool]) -> Iterator[Slice]:
        """Yield what *item* holds from *start* on."""
        if item.path == self._database:
            yield from self._read_database(item, start, stop)
        else:
            yield self._read_file(item, start)

    # -- the database

    def _read_database(self, item: Item, start: Start, stop: Callable[[], bool]) -> Iterator[Slice]:
        file = self._file(item.path)
        given = 0
        try:
            if not item.size:  # just made: nothing in it yet
                yield self._slice(item, start.offset, Findings(), start.state, b"", 0, last=True, waiting=False)
                return
            for _ in range(TRIES):
                try:
                    for done in self._slices(file, item, start, stop):
                        given += 1
                        yield done
                except ChangedError:
                    if given:
                        return  # what was given out is good; the next scan goes on from there
                else:
                    return
            raise InUseError(f"{item.path} changes faster than it can be read")
        finally:
            file.release()

    def _slices(self, file: DatabaseFile, item: Item, start: Start, stop: Callable[[], bool]) -> Iterator[Slice]:
        with file.open() as reading:
            history = _History(reading)
            parser = HermesParser(
                history,
                home=self._home,
                state=start.state,
                fresh=start.offset == 0,
                guard=start.guard,
                before=start.before,
                now_ms=start.now_ms,
            )
            offset = start.offset
            while True:
                with reading.transaction():
                    history.forget_sessions()
                    size = 0
                    ended = False
                    while not ended and size < SLICE_BYTES:
                        rows, read, ended = history.after(offset)
                        parser.feed(rows)
                        size += read
                        if rows:
                            offset = rows[-1].id
                    if ended and start.settled:
                        parser.settle()
                    mark = _row_mark(reading, offset) if offset else b""
                reading.check()
                found = parser.findings()
                found.versions.update(history.versions)
                found.notes.extend(history.notes)
                history.notes.clear()
                last = ended or stop()
                yield self._slice(
                    item,
                    offset,
                    found,
                    parser.state(),
                    mark,
                    size,
                    last=ended,
                    waiting=parser.waiting and not start.settled,
                )
                if last:
                    return

    def _slice(
        self,
        item: Item,
        offset: int,
        findings: Findings,
        state: bytes,
        mark: bytes,
        size: int,
        *,
        last: bool,
        waiting: bool,
    ) -> Slice:
        head = content_key(b"hermes database", item.path.encode("utf-8", "replace"))
        return Slice(
            findings=findings,
            offset=offset,
            size=item.size,
            state=state,
            marks=Marks(head=head, tail=mark),
            bytes_read=size,
            waiting=waiting,
            last=last,
        )

    def _file(self, path: str) -> DatabaseFile:
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = DatabaseFile(path, scratch=self._scratch)
        return file

    def _item(self, path: str) -> Item:
        (dev, ino, _, _), size, mtime = signature(path)
        return Item(path, dev, ino, size, mtime)

    # -- session files

    def _read_file(self, item: Item, start: Start) -> Slice:
        data = _whole(item)
        name = os.path.basename(item.path)
        session_id = name.removesuffix(".jsonl").removesuffix(".json").removeprefix("session_")
        document = read_lines(data, session_id) if name.endswith(".jsonl") else read_document(data, session_id)
        history = _DocumentHistory(document)
        parser = HermesParser(
            history,
            home=self._home,
            state=start.state,
            fresh=True,
            guard=start.guard,
            before=start.before,
            now_ms=start.now_ms,
            copies=False,
        )
        if self.database_has(document.facts.id):
            found = parser.findings()
            found.notes.append(f"{name}: its session is in the database, which wins")
        else:
            parser.feed(document.rows)
            for offset, reason, content in document.bad:
                parser.unreadable(document.facts.id, offset, reason, content)
            if start.settled:
                parser.settle()
            found = parser.findings()
            _tell_document_times(found, document, start.now_ms)
        return Slice(
            findings=found,
            offset=max(1, len(data)),
            size=item.size,
            state=parser.state(),
            marks=Marks(head=self.examine(item, 1).head, tail=_DOCUMENT_TAIL),
            bytes_read=len(data),
            waiting=parser.waiting and not start.settled,
            last=True,
        )

    def database_has(self, session_id: str) -> bool:
        """Return whether the database holds the session as well."""
        try:
            if not os.path.getsize(self._database):
                return False
        except FileNotFoundError:
            return False
        file = self._file(self._database)
        try:
            with file.open() as reading:
                if "id" not in reading.columns("sessions"):
                    return False
                found = reading.connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone()
                return found is not None
        except TranscriptError:
            return False  # a damaged database is told of where it is read itself
        finally:
            file.release()


_DOCUMENT_TAIL = content_key(b"hermes session file, read whole")


class _History:
    """The `History` over an open database, and the rows to come."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._connection = reading.connection
        self.versions: set[str] = set()
        self.notes: list[str] = []
        self._sessions: OrderedDict[str, SessionFacts | None] = OrderedDict()
        messages = reading.columns("messages")
        if not {"session_id", "role", "content"} <= set(messages):
            raise TranscriptError(
                f"{reading.path} has no table of messages: it is no session database of Hermes",
                hint="point the source at the folder that Hermes calls its home",
            )
        self._key = "id" if "id" in messages else "rowid"
        self._rows = f"SELECT {_columns(self._key, messages)} FROM messages"  # noqa: S608 -- names of our own
        self._session_query = _session_query(reading.columns("sessions"))
        if "version" in reading.columns("schema_version"):
            row = self._connection.execute("SELECT max(version) FROM schema_version").fetchone()
            if row and row[0] is not None:
                self.versions.add(f"schema {row[0]}"[:40])

    def after(self, offset: int) -> tuple[list[Row], int, bool]:
        """Return the next rows behind *offset*, their size in bytes, and whether there are no more."""
        query = f"{self._rows} WHERE {self._key} > ? ORDER BY {self._key} LIMIT ?"
        rows: list[Row] = []
        size = 0
        last = offset
        cursor = self._connection.execute(query, (offset, CHUNK_ROWS))
        try:
            for raw in cursor:
                row = _row_behind(last, raw)
                last = row.id
                rows.append(row)
                size += len(row.content or b"") + len(row.tool_calls or b"") + 64
                if size >= CHUNK_BYTES:
                    return rows, size, False
        except sqlite3.DatabaseError as error:
            if not rows:
                raise
            return self._before_damage(rows, size, error)
        finally:
            cursor.close()
        return rows, size, len(rows) < CHUNK_ROWS

    def _before_damage(self, rows: list[Row], size: int, error: sqlite3.Error) -> tuple[list[Row], int, bool]:
        """Give out what was read before the damage; the next call meets it first and raises."""
        self.notes.append(f"{self._reading.path}: damaged behind message {rows[-1].id}: {error}")
        return rows, size, False

    def session(self, session_id: str) -> SessionFacts | None:
        """Return what the table of sessions says of one."""
        if session_id in self._sessions:
            return self._sessions[session_id]
        facts = None
        if self._session_query is not None:
            row = self._connection.execute(self._session_query, (session_id,)).fetchone()
            if row is not None:
                source, parent, config, started, reason, cwd, preloads = row
                facts = SessionFacts(
                    id=session_id,
                    source=column_text_or_none(source),
                    parent=column_text_or_none(parent),
                    model_config=column_text_or_none(config),
                    started_at=column_text_or_none(started) if isinstance(started, bytes) else started,
                    end_reason=column_text_or_none(reason),
                    cwd=column_text_or_none(cwd),
                    preloads=column_text_or_none(preloads),
                )
        self._sessions[session_id] = facts
        if len(self._sessions) > KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        return facts

    def forget_sessions(self) -> None:
        """Ask anew what may have changed since the last slice."""
        self._sessions.clear()

    def of_session(self, session_id: str, after: int, until: int | None, most: int) -> list[Row]:
        """Return the session's next rows behind *after*, in order, some *most* bytes of them, not beyond *until*."""
        key = self._key
        query = f"{self._rows} WHERE session_id = ? AND {key} > ? AND {key} <= ? ORDER BY {key} LIMIT ?"
        cursor = self._connection.execute(query, (session_id, after, MAX_ID if until is None else until, CHUNK_ROWS))
        last = after
        rows: list[Row] = []
        size = 0
        with closing(cursor):
            for raw in cursor:
                row = _row_behind(last, raw)
                last = row.id
                rows.append(row)
                size += len(row.content or b"") + len(row.tool_calls or b"") + 64
                if size >= most:
                    break
        return rows

    def earlier(self, session_id: str, before_id: int) -> Iterator[Row]:
        """Yield the session's rows with a smaller id, in order."""
        query = f"{self._rows} WHERE session_id = ? AND {self._key} < ? ORDER BY {self._key}"
        yield from map(_row, self._connection.execute(query, (session_id, before_id)))


class _DocumentHistory:
    """The `History` over one session file: nothing stands before it but itself."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def session(self, session_id: str) -> SessionFacts | None:
        """Return what the file says of its session."""
        return self._document.facts if session_id == self._document.facts.id else None

    def earlier(self, session_id: str, before_id: int) -> Iterable[Row]:
        """Return the file's rows before one of them."""
        return [row for row in self._document.rows if row.id < before_id and row.session_id == session_id]


def _columns(key: str, have: list[str]) -> str:
    """Return the columns of a `Row`; one that this database lacks is NULL, a very long content both its ends."""

    def one(name: str, *, otherwise: str = "NULL") -> str:
        return name if name in have else otherwise

    def cut(name: str) -> str:
        # As bytes, since text functions end at a NUL, with which structured content begins.
        if name not in have:
            return "NULL"
        data = f"CAST({name} AS BLOB)"
        return (
            f"CASE WHEN length({data}) > {MAX_CONTENT} THEN CAST(substr({data}, 1, {EDGE}) || ' … ' || length({data})"
            f" || ' … ' || substr({data}, -{EDGE}) AS BLOB) ELSE {name} END"
        )

    return ", ".join([
        key, "session_id", "role", cut("content"), one("tool_call_id"), cut("tool_calls"), one("tool_name"),
        one("timestamp"), one("observed", otherwise="0"),
    ])  # fmt: skip


def _session_query(have: list[str]) -> str | None:
    if "id" not in have:
        return None
    wanted = [
        name if name in have else "NULL"
        for name in ("source", "parent_session_id", "model_config", "started_at", "end_reason", "cwd")
    ]
    if "system_prompt" in have:
        # Prompts are large and most speak of no preloaded skill: those stay where they are.
        wanted.append("CASE WHEN instr(system_prompt, 'preloaded') THEN system_prompt END")
    else:
        wanted.append("NULL")
    return f"SELECT {', '.join(wanted)} FROM sessions WHERE id = ?"  # noqa: S608 -- names of our own


def _row(raw: tuple[Any, ...]) -> Row:
    key, session_id, role, content, call, calls, tool, timestamp, observed = raw
    return Row(
        int(key),
        column_text(session_id),
        _ROLES.get(role) or column_text(role),
        content if content is None or isinstance(content, bytes) else str(content).encode(),
        column_text_or_none(call),
        calls if calls is None or isinstance(calls, bytes) else str(calls).encode(),
        column_text_or_none(tool),
        column_text_or_none(timestamp) if isinstance(timestamp, bytes) else timestamp,
        1 if observed else 0,
    )


_ROLES = {role.encode(): role for role in ("user", "assistant", "tool", "system")}


def _row_behind(last: int, raw: tuple[Any, ...]) -> Row:
    row = _row(raw)
    if row.id <= last:  # in a damaged tree, rows can come round in a circle
        raise sqlite3.DatabaseError(f"message {row.id} stands behind message {last}")
    return row


def _row_mark(reading: Reading, offset: int) -> bytes:
    """Return a hash of the row at *offset*, of what Hermes does not change in a row; empty where there is none."""
    key = "id" if "id" in reading.columns("messages") else "rowid"
    columns = "CAST(session_id AS BLOB), CAST(role AS BLOB), CAST(substr(content, 1, 4096) AS BLOB), length(content)"
    query = f"SELECT {columns} FROM messages WHERE {key} = ?"  # noqa: S608 -- names of our own
    row = reading.connection.execute(query, (offset,)).fetchone()
    if row is None:
        return b""
    return content_key(*(part if isinstance(part, bytes) else str(part).encode() for part in row))


def _is_session_file(name: str) -> bool:
    if name.startswith(NO_SESSION_FILES):
        return False
    return name.endswith(".jsonl") or (name.startswith("session_") and name.endswith(".json"))


def _plain_item(path: str, found: os.stat_result) -> Item:
    return Item(path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_nlink > 1)


def _whole(item: Item) -> bytes:
    if item.size > MAX_DOCUMENT:
        raise TranscriptError(
            f"{item.path} has {item.size} bytes, more than a session file can have",
            hint=f"files above {MAX_DOCUMENT} bytes are not read",
        )
    with open(item.path, "rb") as file:
        return file.read(MAX_DOCUMENT + 1)


def _tell_document_times(found: Findings, document: Document, now_ms: int) -> None:
    """Give a session file's own times to what has none in it."""
    times = [
        told
        for text in (document.started_at, document.updated_at)
        if text and (told := ms_of_iso(text, now_ms=now_ms)).ms is not None
    ]
    found.naive_times += sum(told.naive for told in times)
    tally: SessionTally | None = found.sessions.get(document.facts.id)
    if tally is None or not times:
        return
    for told in times:
        assert told.ms is not None, "only such were kept"
        tally.saw(told.ms, work=tally.kind.is_work)
    latest = max(told.ms for told in times if told.ms is not None)
    for sighting in tally.sightings:
        if sighting.at_ms is None:
            sighting.at_ms = latest
            sighting.estimated = True

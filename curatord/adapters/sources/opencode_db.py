"""
OpenCode's data folder: its database, and the tree of JSON files of the time before 1.2.

The database is one item. Both of its tables are read on from their last row (`row_tail`), messages before parts, and
the parts that were not at their end are looked up again by their ids; so a scan costs what is new. The watermark is the
sum of both row numbers.

In the tree a session is an item: its own file, with the folder of its messages beside it and a folder of parts for each
of those. A file each for a word or two makes many: they are only read when the session's file or its folder of messages
changed, and once more when it has settled, since a part that is rewritten changes neither. Where the database has the
session too, the database wins.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from curatord.adapters.sources.json_lines import open_quietly
from curatord.adapters.sources.row_tail import SLICE_BYTES, SLICE_ROWS, Ladder, database_marks, read_rows, refuse_order
from curatord.adapters.sources.sqlite_read import DatabaseFile, Reading, signature
from curatord.core.transcript.columns import column_text, column_text_or_none
from curatord.core.transcript.events import Findings
from curatord.core.transcript.ids import Guard, content_key
from curatord.core.transcript.kept_state import kept_state
from curatord.core.transcript.lines import EDGE, MAX_LINE
from curatord.core.transcript.opencode import OpenCodeParser, SessionFacts
from curatord.core.transcript.salvage import decoded
from curatord.errors import TranscriptError
from curatord.ports.source import Item, Marks, Slice, Start

__all__ = ["OpenCodeSource"]

HOST = "opencode"
KEPT_SESSIONS = 4096
MAX_FILES = 200_000  # of one session in the tree
_TREE_TAIL = content_key(b"opencode session, read whole")


class _State(msgspec.Struct, array_like=True):
    """What goes from one reading of the database to the next."""

    parser: bytes = b""
    messages: list[tuple[int, bytes]] = []
    parts: list[tuple[int, bytes]] = []


_encode = msgspec.msgpack.Encoder().encode


class OpenCodeSource:
    """
    The `Source` over one data folder.

    Args:
        path: The folder, or one database.
        scratch: Where a private copy of a database goes, where one is needed.
    """

    host = HOST

    def __init__(self, path: str, *, scratch: str | None = None) -> None:
        self.path = path
        self._is_database = path.endswith(".db") or os.path.isfile(path)
        self._scratch = scratch
        self._files: dict[str, DatabaseFile] = {}
        self._problems: list[str] = []

    @property
    def problems(self) -> list[str]:
        """What the last `items` could not look at."""
        return self._problems

    # -- listing

    def items(self) -> Iterator[Item]:
        """Yield the databases of all channels, and the sessions of the tree."""
        self._problems = []
        os.stat(self.path)  # the place itself must be there
        if self._is_database:
            yield _database_item(self.path)
            return
        for path in self._databases():
            try:
                yield _database_item(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._problems.append(f"cannot look at {path}: {error.strerror}")
        for folder in self._session_folders():
            for path in self._listed(folder):
                if _is_session(os.path.basename(path)):
                    try:
                        yield _session_item(path)
                    except FileNotFoundError:
                        continue
                    except OSError as error:
                        self._problems.append(f"cannot look at {path}: {error.strerror}")

    def item_at(self, path: str) -> Item | None:
        """Return the database for it or its companions, or the session that a file of the tree belongs to."""
        for suffix in ("-wal", "-shm"):
            path = path.removesuffix(suffix)
        folder, name = os.path.split(path)
        if self._is_database:
            return _database_item(path) if path == self.path else None
        if folder == self.path and _is_database(name):
            return _database_item(path)
        if _is_session(name) and os.path.dirname(folder) == os.path.join(self.path, "storage", "session"):
            return _session_item(path)
        if _is_session(name) and folder.endswith(os.path.join("storage", "session", "info")):
            return _session_item(path)
        return None

    def _databases(self) -> list[str]:
        return [path for path in self._listed(self.path) if _is_database(os.path.basename(path))]

    def _session_folders(self) -> Iterator[str]:
        """Yield the folders with sessions' files: of the tree, and of the older tree of each project."""
        session = os.path.join(self.path, "storage", "session")
        for folder in self._listed(session):
            if os.path.basename(folder) not in ("message", "part", "share") and os.path.isdir(folder):
                yield folder
        for project in self._listed(os.path.join(self.path, "project")):
            folder = os.path.join(project, "storage", "session", "info")
            if os.path.isdir(folder):
                yield folder

    def _listed(self, folder: str) -> list[str]:
        try:
            with os.scandir(folder) as entries:
                return sorted(entry.path for entry in entries)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._problems.append(f"cannot list {folder}: {error.strerror}")
            return []

    # -- reading

    def examine(self, item: Item, offset: int) -> Marks:
        """Return what *item* is recognised by."""
        if item.path.endswith(".json"):
            os.close(open_quietly(item.path))
            name = os.path.basename(item.path).encode("utf-8", "replace")
            return Marks(head=content_key(b"opencode session", name), tail=_TREE_TAIL if offset else b"")
        return database_marks(HOST, item.path, offset)

    def read(self, item: Item, start: Start, stop: Callable[[], bool]) -> Iterator[Slice]:
        """Yield what *item* holds from *start* on."""
        if item.path.endswith(".json"):
            yield self._read_session(item, start)
            return
        yield from read_rows(HOST, self._file(item.path), item, start, stop, lambda reading: _Rows(reading, start))

    def _file(self, path: str) -> DatabaseFile:
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = DatabaseFile(path, scratch=self._scratch)
        return file

    # -- the tree

    def _read_session(self, item: Item, start: Start) -> Slice:
        tree = _Tree(item.path)
        parser = OpenCodeParser(tree, state=start.state, guard=_all_known(start), now_ms=start.now_ms)
        if self.database_has(tree.id):
            found, size = parser.findings(), 0
        else:
            size = tree.feed(parser)
            if start.settled:
                parser.settle()
            found = parser.findings()
        return Slice(
            findings=found,
            offset=max(1, size),
            size=item.size,
            state=parser.state(),
            marks=self.examine(item, 1),
            bytes_read=size,
            # A part that is rewritten changes nothing that is looked at: once settled, all is read once more.
            waiting=not start.settled,
        )

    def database_has(self, session_id: str) -> bool:
        """Return whether one of the databases holds the session as well."""
        for path in self._databases():
            file = self._file(path)
            try:
                with file.open() as reading:
                    if "id" in reading.columns("session"):
                        query = "SELECT 1 FROM session WHERE id = ?"
                        if reading.connection.execute(query, (session_id,)).fetchone() is not None:
                            return True
            except (FileNotFoundError, TranscriptError):
                continue  # of a damaged database is told where it is read itself
            finally:
                file.release()
        return False


class _Row(NamedTuple):
    """A row of either table; of a part, *message* is its message's id."""

    number: int
    id: str
    message: str
    session: str
    created: Any
    data: bytes
    cut: bool


class _Rows:
    """The `Rows` of one reading of the database, and the parser's `Lookup`."""

    def __init__(self, reading: Reading, start: Start) -> None:
        self._reading = reading
        self._connection = reading.connection
        saved = kept_state(start.state, _State)
        fresh = start.offset == 0
        self._messages = _Table(reading, "message", [] if fresh else saved.messages)
        self._parts = _Table(reading, "part", [] if fresh else saved.parts)
        have = reading.columns("session")
        self._session_query = _session_query(have) if "id" in have else None
        self._known: OrderedDict[str, SessionFacts | None] = OrderedDict()
        self._parser = OpenCodeParser(self, state=saved.parser, guard=_all_known(start), now_ms=start.now_ms)
        for table in (self._messages, self._parts):
            if table.stepped_back:
                self._parser.note(f"{reading.path}: {table.stepped_back}")
        self._opened = False

    @property
    def offset(self) -> int:
        return self._messages.at + self._parts.at

    @property
    def waiting(self) -> bool:
        return self._parser.waiting

    def step(self) -> tuple[int, bool]:
        self._known.clear()
        size = 0
        if not self._opened:
            self._opened = True
            size += self._take_open_parts()
        self._parser.messages(self._messages.next_rows(self._parser))
        size += self._messages.size
        if not self._messages.ended:
            return size, False
        self._parser.parts(self._parts.next_rows(self._parser))
        return size + self._parts.size, self._parts.ended

    def _take_open_parts(self) -> int:
        size = 0
        for part_id in self._parser.open_parts():
            row = self._parts.row(part_id)
            if row is None:
                self._parser.gone(part_id)
                continue
            size += len(row.data)
            self._parser.part(row.id, row.message, row.session, row.created, row.data, place=row.number, cut=row.cut)
        return size

    def settle(self) -> None:
        self._parser.settle()

    def findings(self) -> Findings:
        return self._parser.findings()

    def state(self) -> bytes:
        return _encode(
            _State(parser=self._parser.state(), messages=self._messages.ladder.rungs, parts=self._parts.ladder.rungs)
        )

    # -- the parser's questions

    def session(self, session_id: str) -> SessionFacts | None:
        if session_id in self._known:
            return self._known[session_id]
        facts = None
        if self._session_query is not None:
            row = self._connection.execute(self._session_query, (session_id,)).fetchone()
            if row is not None:
                facts = SessionFacts(*map(column_text_or_none, row))
        self._known[session_id] = facts
        if len(self._known) > KEPT_SESSIONS:
            self._known.popitem(last=False)
        return facts

    def message(self, message_id: str) -> bytes | None:
        row = self._messages.row(message_id)
        return row.data if row is not None else None


class _Table:
    """One of the two tables, read on from its last row."""

    def __init__(self, reading: Reading, name: str, rungs: list[tuple[int, bytes]]) -> None:
        have = set(reading.columns(name))
        if not {"id", "session_id", "data"} <= have:
            raise TranscriptError(
                f"{reading.path} has no table of {name}s with ids and data: it is no database of OpenCode",
                hint="point the source at the folder that OpenCode keeps its data in",
            )
        self._reading = reading
        self._connection = reading.connection
        message = "message_id" if "message_id" in have else "NULL"
        created = "time_created" if "time_created" in have else "NULL"
        size = "length(CAST(data AS BLOB))"
        data = f"CASE WHEN {size} > {MAX_LINE} THEN substr(CAST(data AS BLOB), 1, {EDGE}) ELSE data END"
        columns = f"rowid, id, {message}, session_id, {created}, {data}, {size} > {MAX_LINE}"
        self._after = f"SELECT {columns} FROM {name} WHERE rowid > ? ORDER BY rowid LIMIT ?"  # noqa: S608 -- ours
        self._by_id = f"SELECT {columns} FROM {name} WHERE id = ?"  # noqa: S608
        self._mark = f"SELECT id FROM {name} WHERE rowid = ?"  # noqa: S608
        self.ended = False
        self.size = 0
        self.ladder = Ladder(rungs)
        before = self.ladder.top
        self.at = self.ladder.descend(self._mark_of)
        self.stepped_back = (
            f"rows of {name}s up to {before} are not those that were counted; read again behind {self.at}"
            if self.at < before
            else ""
        )

    def next_rows(self, parser: OpenCodeParser) -> Iterator[tuple[Any, ...]]:
        """Yield the next rows as they are; `ended` then says whether there are no more, `size` their bytes."""
        size = count = 0
        cursor = self._connection.execute(self._after, (self.at, SLICE_ROWS))
        self.ended = False
        try:
            last = self.at
            for raw in cursor:
                number = raw[0]
                if number <= last:
                    refuse_order(number, last)
                yield raw
                self.at = last = number
                count += 1
                data = raw[5]
                size += len(data) if type(data) is bytes else 8
                if size >= SLICE_BYTES:
                    break
            else:
                self.ended = count < SLICE_ROWS
        except sqlite3.DatabaseError as error:
            if not count:
                raise
            # What was read before the damage is given out; the next call meets it first, and raises.
            parser.note(f"{self._reading.path}: damaged behind row {self.at}: {error}")
        finally:
            cursor.close()
            self.size = size
        if count:
            self.ladder.climb(self.at, self._mark_of(self.at))

    def row(self, row_id: str) -> _Row | None:
        raw = self._connection.execute(self._by_id, (row_id,)).fetchone()
        return _row(raw) if raw is not None else None

    def _mark_of(self, number: int) -> bytes:
        raw = self._connection.execute(self._mark, (number,)).fetchone()
        return content_key((column_text(raw[0])).encode("utf-8", "replace")) if raw is not None else b""


class _Tree:
    """One session's files, and the parser's `Lookup`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.id = os.path.basename(path).removesuffix(".json")
        self.messages = _messages_of(path)
        # …/storage/session/<project>/<ses>.json, or older …/storage/session/info/<ses>.json
        top = os.path.dirname(self.messages)
        self._parts = os.path.join(os.path.dirname(top), "part")
        self._parts_by_session = os.path.basename(os.path.dirname(path)) == "info"
        self._facts = _facts_in_file(path)

    def feed(self, parser: OpenCodeParser) -> int:
        """Give all messages with their parts to *parser*, in order; return the bytes read."""
        size = 0
        files = 0
        for message_id in _names(self.messages):
            data, cut = _content(os.path.join(self.messages, message_id + ".json"))
            size += len(data)
            parser.message(message_id, self.id, None, data, place=0, cut=cut)
            folder = self.parts_of(message_id)
            for part_id in _names(folder):
                data, cut = _content(os.path.join(folder, part_id + ".json"))
                size += len(data)
                parser.part(part_id, message_id, self.id, None, data, place=0, cut=cut)
                files += 1
                if files > MAX_FILES:
                    raise TranscriptError(f"{self._path} has more than {MAX_FILES} parts")
        return size

    def parts_of(self, message_id: str) -> str:
        """Return the folder with a message's parts."""
        return os.path.join(self._parts, *([self.id] if self._parts_by_session else []), message_id)

    def session(self, session_id: str) -> SessionFacts | None:
        return self._facts if session_id == self.id else None

    def message(self, message_id: str) -> bytes | None:
        try:
            return _content(os.path.join(self.messages, message_id + ".json"))[0]
        except OSError:
            return None


class _SessionFile(msgspec.Struct, gc=False):
    parentID: str | None = None  # noqa: N815 -- the host's names
    directory: str | None = None
    version: str | None = None


def _facts_in_file(path: str) -> SessionFacts:
    found = decoded(_content(path)[0], _SessionFile)
    return SessionFacts(found.parentID, found.directory, found.version)


def _messages_of(path: str) -> str:
    """Return the folder with the messages of the session whose file is at *path*."""
    name = os.path.basename(path).removesuffix(".json")
    folder = os.path.dirname(os.path.dirname(path))  # …/session
    if os.path.basename(os.path.dirname(path)) != "info":
        folder = os.path.dirname(folder)
    return os.path.join(folder, "message", name)


def _names(folder: str) -> list[str]:
    """Return the ids in *folder*, in order."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name.removesuffix(".json") for entry in entries if entry.name.endswith(".json"))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _content(path: str) -> tuple[bytes, bool]:
    """Return a file's bytes, and whether they are only its beginning."""
    descriptor = open_quietly(path)
    try:
        data = b""
        while len(data) <= MAX_LINE:
            more = os.read(descriptor, MAX_LINE)
            if not more:
                return data, False
            data += more
        return data[:EDGE], True
    finally:
        os.close(descriptor)


def _database_item(path: str) -> Item:
    (dev, ino, _, _), size, mtime = signature(path)
    return Item(path, dev, ino, size, mtime)


def _session_item(path: str) -> Item:
    """Return a session of the tree; a new message shows in the time of their folder."""
    found = os.stat(path)
    newest = found.st_mtime_ns
    with contextlib.suppress(FileNotFoundError):
        newest = max(newest, os.stat(_messages_of(path)).st_mtime_ns)
    return Item(path, found.st_dev, found.st_ino, found.st_size, newest, found.st_nlink > 1)


def _is_database(name: str) -> bool:
    return name == "opencode.db" or (name.startswith("opencode-") and name.endswith(".db"))


def _is_session(name: str) -> bool:
    return name.startswith("ses") and name.endswith(".json")


def _all_known(start: Start) -> Guard:
    return Guard(*start.guard.packed, *start.before.packed)


def _session_query(have: list[str]) -> str:
    wanted = ", ".join(name if name in have else "NULL" for name in ("parent_id", "directory", "version"))
    return f"SELECT {wanted} FROM session WHERE id = ?"  # noqa: S608 -- names of our own


def _row(raw: tuple[Any, ...]) -> _Row:
    number, row_id, message, session, created, data, cut = raw
    if not isinstance(data, bytes):
        data = b"" if data is None else str(data).encode("utf-8", "replace")
    return _Row(int(number), column_text(row_id), column_text(message), column_text(session), created, data, bool(cut))

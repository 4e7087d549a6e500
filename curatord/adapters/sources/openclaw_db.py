"""
OpenClaw's home: a database for each agent since 2026.8, before that files of JSON lines in each agent's folder.

The database also holds credentials: only the tables of sessions and their events are ever asked. Events are read on
from the last row (`row_tail`). A transcript that was rewritten gets another generation: that session is then read again
from its start, and what was counted is passed over. The files stay after the upgrade, in an archive folder, and give
the same keys as the rows made of them.

A file does not say whose session it is: the index `sessions.json` beside it does, as far as it still has the session.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from curatord.adapters.sources.compressed import PACKED, _zstd
from curatord.adapters.sources.json_lines import HEAD, open_quietly
from curatord.adapters.sources.row_tail import SLICE_BYTES, SLICE_ROWS, Ladder, database_marks, read_rows, refuse_order
from curatord.adapters.sources.sqlite_read import DatabaseFile, Reading, signature
from curatord.adapters.sources.tree import TreeSource
from curatord.core.transcript.columns import column_text, column_text_or_none
from curatord.core.transcript.events import Findings, SessionKind
from curatord.core.transcript.ids import Guard, content_key
from curatord.core.transcript.kept_state import kept_state
from curatord.core.transcript.ledger import Ledger
from curatord.core.transcript.lines import EDGE, MAX_LINE
from curatord.core.transcript.openclaw import OpenClawParser, OpenClawRows, Place, kind_of_session, session_in
from curatord.core.transcript.salvage import decoded
from curatord.core.transcript.times import ms_of_iso
from curatord.errors import TranscriptError
from curatord.ports.source import Item, LineParser, Marks, Slice, Start

__all__ = ["OpenClawSource", "Queries", "unpacked_event"]

HOST = "openclaw"
DATABASE = "openclaw-agent.sqlite"
FOLDERS = ("sessions", "session-sqlite-import-archive")
MAX_INDEX = 64 * 1024 * 1024
KEPT_INDEXES = 8
KEPT_PARSERS = 512
KEPT_STATES = 48  # of sessions that are at work, between two readings
KEPT_GENERATIONS = 64
KEPT_WAITING = 256
MOST_SESSIONS = 2000  # in one slice

_Told = tuple[SessionKind, str | None]  # who drives a session, and the id of the one it comes from


class OpenClawSource(TreeSource):
    """
    The `Source` over one home.

    Args:
        path: The home, its folder of agents, one agent's folder, or one database.
        scratch: Where a private copy of a database goes, where one is needed.
    """

    def __init__(self, path: str, *, scratch: str | None = None) -> None:
        super().__init__(
            host=HOST,
            path=path,
            parser=self._parser_of,
            below=("agents",),
            accepts=_is_ours,
            suffixes=("",),  # what was put away has the time behind the suffix: `_is_ours` decides
            skip_folders=frozenset({"codex-home", "cli-auth", "node_modules", ".git"}),
        )
        self._scratch = scratch
        self._databases: dict[str, DatabaseFile] = {}
        self._indexes: OrderedDict[str, tuple[tuple[int, int, int], dict[str, _Told]]] = OrderedDict()

    # -- listing

    def items(self) -> Iterator[Item]:
        """Yield the databases and the files."""
        for item in super().items():
            if _is_database(item.path):
                try:
                    yield _database_item(item.path)
                except FileNotFoundError:
                    continue
            else:
                yield item

    def item_at(self, path: str) -> Item | None:
        """Return the database for it or its companions, or the file at *path*."""
        for suffix in ("-wal", "-shm"):
            path = path.removesuffix(suffix)
        item = super().item_at(path)
        return _database_item(path) if item is not None and _is_database(path) else item

    def began_ns(self, item: Item) -> int:
        """Return when the session in *item* began, as its header tells: origins come before their forks."""
        if not _is_database(item.path) and not item.path.endswith(PACKED):
            with contextlib.suppress(OSError):
                descriptor = open_quietly(item.path)
                try:
                    head = os.pread(descriptor, HEAD, 0)
                finally:
                    os.close(descriptor)
                told = decoded(head.partition(b"\n")[0], _Header).timestamp
                at = ms_of_iso(told, now_ms=0).ms if told else None
                if at is not None:
                    return at * 1_000_000
        return item.mtime_ns

    # -- reading

    def examine(self, item: Item, offset: int) -> Marks:
        """Return what *item* is recognised by."""
        if _is_database(item.path):
            return database_marks(HOST, item.path, offset)
        return super().examine(item, offset)

    def read(self, item: Item, start: Start, stop: Callable[[], bool]) -> Iterator[Slice]:
        """Yield what *item* holds from *start* on."""
        if not _is_database(item.path):
            yield from super().read(item, start, stop)
            return
        file = self._databases.get(item.path)
        if file is None:
            file = self._databases[item.path] = DatabaseFile(item.path, scratch=self._scratch)
        yield from read_rows(HOST, file, item, start, stop, lambda reading: _Rows(reading, start))

    def left_behind(self, item: Item, start: Start) -> tuple[Findings, bytes]:
        """Return what waited in *item*, which is gone, taken as done; a database's calls wait on in its state."""
        return (Findings(), start.state) if _is_database(item.path) else super().left_behind(item, start)

    def _parser_of(self, path: str, start: Start) -> LineParser:
        kind, parent = self.told_of(os.path.join(self.path, path.replace("/", os.sep)))
        return OpenClawParser(
            path,
            kind=kind,
            parent=parent,
            state=start.state,
            fresh=start.offset == 0,
            guard=start.guard,
            before=start.before,
            now_ms=start.now_ms,
            mtime_ms=start.mtime_ms,
        )

    def told_of(self, path: str) -> tuple[SessionKind, str | None]:
        """Return what the index beside a file says of its session."""
        session = session_in(path.replace(os.sep, "/"))
        agent = os.path.dirname(os.path.dirname(path))
        return self._index(os.path.join(agent, "sessions", "sessions.json")).get(session, (SessionKind.UNKNOWN, None))

    def _index(self, path: str) -> dict[str, _Told]:
        """Return the kind and the parent of the sessions in the index at *path*, read anew where it changed."""
        try:
            found = os.stat(path)
        except OSError:
            return {}
        stamp = (found.st_ino, found.st_size, found.st_mtime_ns)
        held = self._indexes.get(path)
        if held is not None and held[0] == stamp:
            return held[1]
        index: dict[str, _Told] = {}
        if found.st_size <= MAX_INDEX:
            try:
                with open(open_quietly(path), "rb") as file:
                    entries = msgspec.json.decode(file.read(MAX_INDEX + 1), type=dict[str, _Entry])
            except (OSError, msgspec.MsgspecError, RecursionError):
                entries = {}  # caught half-written, or of another shape: what the prompts say must do
            for key, entry in entries.items():
                if entry.sessionId:
                    parent = entries.get(entry.spawnedBy or entry.parentSessionKey or "")
                    index[entry.sessionId] = (
                        kind_of_session(key, None, entry.spawnedBy),
                        parent.sessionId if parent is not None else None,
                    )
        self._indexes[path] = (stamp, index)
        if len(self._indexes) > KEPT_INDEXES:
            self._indexes.popitem(last=False)
        return index


class _Entry(msgspec.Struct, gc=False):
    """An entry of the index, by session key."""

    sessionId: str | None = None  # noqa: N815 -- the host's names
    spawnedBy: str | None = None  # noqa: N815
    parentSessionKey: str | None = None  # noqa: N815


class _Header(msgspec.Struct, gc=False):
    timestamp: str | None = None


class _State(msgspec.Struct, array_like=True):
    """What goes from one reading of the database to the next."""

    rungs: list[tuple[int, bytes]] = []
    sessions: dict[str, bytes] = {}
    rewritten_at: int = 0
    generations: dict[str, str] = {}
    waits: list[str] = []  # of *sessions*, those with a call that waits for its result


_encode = msgspec.msgpack.Encoder().encode


class _Rows:
    """The `Rows` of one reading of a database."""

    def __init__(self, reading: Reading, start: Start) -> None:
        have = set(reading.columns("transcript_events"))
        if not {"session_id", "seq"} <= have or not have & {"event_json", "event_zstd"}:
            if reading.columns("schema_meta") or reading.columns("auth_profile_store"):
                have = set()  # of the time when sessions were still files
            else:
                raise TranscriptError(
                    f"{reading.path} has no table of transcript events: it is no agent's database of OpenClaw",
                    hint="point the source at the folder that OpenClaw calls its state",
                )
        self._reading = reading
        self._connection = reading.connection
        self._start = start
        fresh = start.offset == 0
        saved = kept_state(start.state, _State)
        self._states = saved.sessions
        self._ledger = Ledger(Guard(*start.guard.packed, *start.before.packed))
        self._parsers: OrderedDict[str, OpenClawRows] = OrderedDict()
        self._waits: dict[str, None] = dict.fromkeys(saved.waits)
        self._notes: list[str] = []
        self._versions = _versions(reading)
        self._queries = Queries(reading, have) if have else None
        self.ladder = Ladder([] if fresh else saved.rungs)
        before = self.ladder.top
        self._at = self.ladder.descend(self._queries.mark) if self._queries is not None else 0
        if self._at < before:
            self._notes.append(
                f"{reading.path}: rows up to {before} are not those that were counted; read again behind {self._at}"
            )
        self._rewritten_at = 0 if fresh else saved.rewritten_at
        self._generations: dict[str, str] = {} if fresh else saved.generations
        changed = self._rewritten()
        self._to_read_again = [] if fresh else changed

    @property
    def offset(self) -> int:
        return self._at

    @property
    def waiting(self) -> bool:
        return bool(self._waits) or any(parser.waiting for parser in self._parsers.values())

    def step(self) -> tuple[int, bool]:
        if self._queries is None:
            return 0, True
        if self._to_read_again:
            session = self._to_read_again.pop()
            again = self._connection.execute(self._queries.of_session, (session, self._at))
            return sum(map(self._take, again)), False
        place = Place(self._at, SLICE_BYTES)
        cursor = self._connection.execute(self._queries.after, (self._at, SLICE_ROWS))
        ended = False
        try:
            raw = next(cursor, None)
            while raw is not None and place.room > 0 and not (place.count and len(self._parsers) >= MOST_SESSIONS):
                at = place.at
                raw = self._parser(column_text(raw[1]), None).rows(raw, cursor, place)
                if raw is not None and raw[0] <= place.at:
                    refuse_order(raw[0], place.at)
                if raw is not None and place.at == at and place.room > 0:  # one that needs care
                    place.room -= self._take(raw)
                    place.at = raw[0]
                    place.count += 1
                    raw = next(cursor, None)
            ended = raw is None and place.count < SLICE_ROWS
        except sqlite3.DatabaseError as error:
            if not place.count:
                raise
            # What was read before the damage is given out; the next call meets it first, and raises.
            self._notes.append(f"{self._reading.path}: damaged behind row {place.at}: {error}")
        finally:
            cursor.close()
            self._at = place.at
        if place.count:
            self.ladder.climb(self._at, self._queries.mark(self._at))
        return SLICE_BYTES - place.room, ended

    def settle(self) -> None:
        for session in list(self._waits):
            self._parser(session, None)
        for parser in self._parsers.values():
            parser.settle()

    def findings(self) -> Findings:
        whole = Findings()
        for one in [parser.findings() for parser in self._parsers.values()]:
            whole.sessions.update(one.sessions)
            whole.bad += one.bad[: max(0, 32 - len(whole.bad))]
            whole.oversize += one.oversize
            whole.repeated += one.repeated
            whole.naive_times += one.naive_times
            whole.future_times += one.future_times
            whole.versions |= one.versions
            whole.notes += one.notes
            for name, count in one.unknown.items():
                whole.unknown[name] = whole.unknown.get(name, 0) + count
        whole.versions |= self._versions
        whole.notes += self._notes
        self._notes = []
        whole.keys, whole.heads = self._ledger.take()
        return whole

    def state(self) -> bytes:
        """Return what must be known to go on, and let go of the parsers that are not at work."""
        names = list(self._parsers)
        latest = set(names[-KEPT_STATES:])
        for name in names:
            parser = self._parsers[name]
            if parser.waiting:
                self._waits[name] = None
            if parser.waiting or name in latest:
                self._states[name] = parser.state()
        while len(self._waits) > KEPT_WAITING:
            del self._waits[next(iter(self._waits))]
        others = [name for name in self._states if name not in self._waits]
        for name in others[:-KEPT_STATES]:
            del self._states[name]
        state = _encode(
            _State(
                rungs=self.ladder.rungs,
                sessions=self._states,
                rewritten_at=self._rewritten_at,
                generations=dict(list(self._generations.items())[-KEPT_GENERATIONS:]),
                waits=[name for name in self._waits if name in self._states],
            )
        )
        if len(self._parsers) > KEPT_PARSERS:
            self._parsers.clear()  # those at work come back with their state
        else:
            for name in names:
                self._states.pop(name, None)
                self._waits.pop(name, None)
        return state

    # -- rows

    def _take(self, raw: tuple[Any, ...]) -> int:
        """Give one row to its session's parser; return its size."""
        number, session_id, seq, text, packed, size = raw
        session = column_text(session_id)
        seq = seq if isinstance(seq, int) else 0
        parser = self._parser(session, seq)
        if text is None and packed is not None:
            data, reason = unpacked_event(packed)
            if reason:
                parser.unreadable(bytes(packed) if isinstance(packed, bytes) else b"", seq, number, reason)
                return len(packed) if isinstance(packed, bytes) else 0
            text = data
        if text is None:
            parser.unreadable(b"", seq, number, "a row without an event")
            return 0
        line = text if isinstance(text, bytes) else str(text).encode("utf-8", "replace")
        if size is not None and size > MAX_LINE:
            parser.oversize(line[:EDGE], line[-EDGE:], size, number)
            return len(line)
        parser.take(line, seq, number)
        return len(line)

    def _parser(self, session: str, seq: int | None) -> OpenClawRows:
        parser = self._parsers.get(session)
        if parser is not None:
            return parser
        state = self._states.pop(session, b"")
        self._waits.pop(session, None)
        kind, parent = self._facts(session)
        parser = OpenClawRows(
            session,
            self._ledger,
            kind=kind,
            parent=parent,
            state=state,
            fresh=False,
            guard=Guard(),
            before=Guard(),
            now_ms=self._start.now_ms,
        )
        if not state and seq != 0 and self._queries is not None:
            header = self._connection.execute(self._queries.header, (session,)).fetchone()
            if header is not None and isinstance(header[0], bytes):
                parser.note_header(header[0])
        self._parsers[session] = parser
        return parser

    # -- what other tables say

    def _facts(self, session: str) -> _Told:
        return self._queries.told_of(session) if self._queries is not None else (SessionKind.UNKNOWN, None)

    def _rewritten(self) -> list[str]:
        """Return the sessions whose transcripts were rewritten since the last reading, and remember up to when."""
        have = set(self._reading.columns("transcript_rewrite_watermarks"))
        if not {"session_id", "generation", "updated_at"} <= have:
            return []
        query = "SELECT session_id, generation, updated_at FROM transcript_rewrite_watermarks WHERE updated_at >= ?"
        changed = []
        newest = self._rewritten_at
        at_newest = dict(self._generations)
        for raw_session, raw_generation, at in self._connection.execute(query, (self._rewritten_at,)):
            session, generation = column_text(raw_session), column_text(raw_generation)
            if self._generations.get(session) != generation:
                changed.append(session)
            if not isinstance(at, int) or at < newest:
                continue
            if at > newest:
                newest, at_newest = at, {}
            at_newest[session] = generation
        self._rewritten_at = newest
        self._generations = at_newest
        return changed


class Queries:
    """What is asked of a database, with the columns that it has."""

    def __init__(self, reading: Reading, have: set[str]) -> None:
        self._connection = reading.connection
        text = "CAST(event_json AS BLOB)" if "event_json" in have else "NULL"
        size = f"length({text})"
        cut = f"substr({text}, 1, {EDGE}) || substr({text}, -{EDGE})"
        event = f"CASE WHEN {size} > {MAX_LINE} THEN CAST({cut} AS BLOB) ELSE {text} END"
        packed = "event_zstd" if "event_zstd" in have else "NULL"
        columns = f"rowid, session_id, seq, {event}, {packed}, {size}"
        table = "FROM transcript_events"
        self.after = f"SELECT {columns} {table} WHERE rowid > ? ORDER BY rowid LIMIT ?"
        self.of_session = f"SELECT {columns} {table} WHERE session_id = ? AND rowid <= ? ORDER BY seq"
        self.from_seq = f"SELECT {columns} {table} WHERE session_id = ? AND seq > ? AND rowid <= ? ORDER BY seq LIMIT ?"
        self.header = f"SELECT {event} {table} WHERE session_id = ? ORDER BY seq LIMIT 1"
        created = "created_at" if "created_at" in have else "NULL"
        self._mark = f"SELECT session_id, seq, {created} {table} WHERE rowid = ?"
        self.facts = _facts_query(set(reading.columns("session_windows")), set(reading.columns("session_nodes")))

    def told_of(self, session: str) -> _Told:
        """Return what the tables say of a session."""
        row = self._connection.execute(self.facts, (session,)).fetchone() if self.facts is not None else None
        if row is None:
            return SessionKind.UNKNOWN, None
        key, previous, spawned_by, via, parent = map(column_text_or_none, row)
        return kind_of_session(key, via, spawned_by), previous or parent

    def mark(self, number: int) -> bytes:
        """Return what the row with *number* is known by; empty where there is none."""
        row = self._connection.execute(self._mark, (number,)).fetchone()
        if row is None:
            return b""
        return content_key(*(part if isinstance(part, bytes) else str(part).encode() for part in row))


def _facts_query(windows: set[str], nodes: set[str]) -> str | None:
    """Return what is asked of a session: its key, the one it goes on from, who spawned it and how, its parent's id."""
    if not {"session_id", "session_key"} <= windows:
        return None

    def one(table: str, have: set[str], name: str) -> str:
        return f"{table}.{name}" if name in have else "NULL"

    spawned = f"coalesce({one('w', windows, 'spawned_by')}, {one('n', nodes, 'spawned_by')})"
    above = (
        f"coalesce({one('w', windows, 'parent_session_key')}, {one('n', nodes, 'parent_session_key')},"
        f" {one('w', windows, 'spawned_by')}, {one('n', nodes, 'spawned_by')})"
    )
    joined = ""
    parent = "NULL"
    if {"session_key", "current_session_id"} <= nodes:
        joined = (
            " LEFT JOIN session_nodes n ON n.session_key = w.session_key"
            f" LEFT JOIN session_nodes p ON p.session_key = {above}"
        )
        parent = "p.current_session_id"
    else:
        spawned = one("w", windows, "spawned_by")
    via = one("n", nodes, "created_via") if joined else "NULL"
    columns = f"w.session_key, {one('w', windows, 'previous_session_id')}, {spawned}, {via}, {parent}"
    return f"SELECT {columns} FROM session_windows w{joined} WHERE w.session_id = ?"  # noqa: S608 -- names of our own


def _versions(reading: Reading) -> set[str]:
    """Return the schema's number and the program's version."""
    found = set()
    row = reading.connection.execute("PRAGMA user_version").fetchone()
    if row and row[0]:
        found.add(f"schema {row[0]}"[:40])
    if "app_version" in reading.columns("schema_meta"):
        for (version,) in reading.connection.execute("SELECT app_version FROM schema_meta LIMIT 8"):
            if version:
                found.add(column_text(version)[:40])
    return found


def unpacked_event(packed: object) -> tuple[bytes, str]:
    """Return a compressed event, or why it cannot be had."""
    if not isinstance(packed, bytes):
        return b"", "its compressed event is no bytes"
    zstd = _zstd()
    try:
        data: bytes = zstd.ZstdDecompressor().decompress(packed, MAX_LINE)
    except (zstd.ZstdError, ValueError) as error:
        return b"", f"cannot be unpacked: {error}"[:200]
    return data, ""


def _is_ours(path: str) -> bool:
    parts = path.split(os.sep)
    name = parts[-1]
    if name.endswith(".sqlite"):
        return name == DATABASE
    if len(parts) < 2 or parts[-2] not in FOLDERS or ".jsonl" not in name:
        return False
    rest = name.partition(".jsonl")[2]
    put_away = rest == "" or rest.startswith((".reset.", ".deleted.", ".bak.", ".zst", ".gz"))
    return put_away and not name.partition(".jsonl")[0].endswith(".trajectory")


def _is_database(path: str) -> bool:
    return path.endswith(".sqlite")


def _database_item(path: str) -> Item:
    (dev, ino, _, _), size, mtime = signature(path)
    return Item(path, dev, ino, size, mtime)

"""
The ingest tables: the writing side, one transaction a batch.

A batch is many small files or one slice of a large one. Everything about a file goes into the same transaction: its
watermark and parser state, its parts, events, keys and anchors, its share of the source's hours and days. Cut anywhere,
the file is either counted up to the new watermark or stands at the old one.

Rows of a batch are gathered per table and written with `executemany`, since a first scan writes some ten rows a file.
`synchronous` is NORMAL for it: after a power cut the last batches may be missing, never torn, and are read again.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from curatord.adapters.store.database import Database
from curatord.adapters.store.stretches import note_stretches, summed
from curatord.core.cheap import dataclass, field
from curatord.core.transcript.events import (
    DAY_MS,
    MAX_CWDS,
    MAX_NAMES,
    MAX_OFFSETS,
    SessionKind,
    SessionTally,
)
from curatord.core.watermark import Watermark
from curatord.errors import BusyError, StateError
from curatord.ports.ingest_store import Census, Details, Known, Reading, signed_inode
from curatord.ports.source import Item

__all__ = ["IngestStore"]

MAX_RESTARTS = 20
MAX_PROBLEMS = 50
MAX_KIN = 256
MAX_COPIES = 16
KEYS_ROW = 2048  # bytes up to which a file's last row of keys is added to: written line by line, it would get as many
MERGE_KEYS_AT = 64  # rows of keys of one file, then put into one

_KNOWN_ROW = "SELECT path, id, dev, ino, size, mtime_ns, waiting OR failures FROM files"
_KNOWN = _KNOWN_ROW + " WHERE source = ? AND gone_at IS NULL"
# For who is most of the table: going through it takes half as long as going to each row by the index.
_KNOWN_THROUGH = _KNOWN_ROW + " NOT INDEXED WHERE source = ? AND gone_at IS NULL"
_SHARE = "SELECT present, (SELECT max(id) FROM files) FROM sources WHERE id = ?"
_TAKEN = "SELECT path FROM files WHERE source = ? AND path IN (SELECT value FROM json_each(?)) AND gone_at IS NULL"
_KNOWN_AT = _KNOWN + " AND path IN (SELECT value FROM json_each(?)) ORDER BY id"  # noqa: S608 -- constants
_FILE = (
    "SELECT id, path, dev, ino, size, mtime_ns, offset, head, tail, state, waiting, grown_at, gone_at,"
    " failures, retry_at, error, kin, copies, restarts != '[]' FROM files"
)
_FILE_BY_ID = _FILE + " WHERE id = ?"
_FILES_BY_ID = _FILE + " WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608 -- constants
_KEYS_OF = "SELECT file, keys FROM keys WHERE file IN (SELECT value FROM json_each(?)) ORDER BY file, seq"
_HELD = (
    "SELECT id, offset, head, tail, source, path, dev, ino, gone_at IS NULL, bad, restarts, kin,"
    " coalesce((SELECT max(seq) FROM keys WHERE file = files.id), 0),"
    " (SELECT CASE WHEN length(keys) < ? THEN keys END FROM keys WHERE file = files.id ORDER BY seq DESC LIMIT 1)"
    " FROM files WHERE id IN (SELECT value FROM json_each(?))"
)
_UPDATED = (
    "state = ?, waiting = ?, grown_at = CASE WHEN ? THEN ? ELSE grown_at END, failures = 0, retry_at = NULL,"
    " error = NULL, bad = ?, kin = ?, restarts = ? WHERE id = ?"
)
# Of the usual file, which has only grown, no column is named that an index is over: naming one writes the index.
_UPDATE_GROWN = "UPDATE files SET size = ?, mtime_ns = ?, offset = ?, tail = ?, " + _UPDATED  # noqa: S608 -- constants
_UPDATE_MOVED = (
    "UPDATE files SET source = ?, path = ?, dev = ?, ino = ?, size = ?, mtime_ns = ?, offset = ?, head = ?, tail = ?,"  # noqa: S608 -- constants
    " gone_at = NULL, " + _UPDATED
)
# A cross join is done in its written order: a look-up for each pair, and never one for each part of a file, since a
# host with one database for all has thousands of those.
_PARTS = (
    "SELECT file, session, records, unreadable, user_turns, assistant_turns, first_at, last_at, tool_calls"
    " FROM json_each(?) AS pair CROSS JOIN parts"
    " ON file = json_extract(pair.value, '$[0]') AND session = json_extract(pair.value, '$[1]')"
)
_ANY_GONE = (
    "SELECT EXISTS (SELECT 1 FROM files WHERE gone_at IS NOT NULL"
    " AND source IN (SELECT id FROM sources WHERE host = ?))"
)
_FILES_LEFT = (
    _FILE + " INDEXED BY files_left WHERE source = ? AND gone_at IS NOT NULL AND waiting"
    " AND min(gone_at, max(mtime_ns / 1000000, coalesce(grown_at, 0))) <= ? LIMIT ?"
)
_FILES_GONE = (
    _FILE  # noqa: S608 -- both are constants
    + " JOIN (SELECT id AS of_host FROM sources WHERE host = ?1) ON source = of_host"
    " WHERE ((head = ?2 AND ?2 != x'') OR (ino = ?4 AND dev = ?3)) AND gone_at IS NOT NULL"
    " ORDER BY (dev = ?3 AND ino = ?4) DESC, path = ?5 DESC, id DESC LIMIT 8"
)


@dataclass(slots=True)
class _Session:
    """A session's row while a batch is gathered."""

    rowid: int
    kind: SessionKind
    parent: str | None
    cwds: list[str]
    new: bool
    changed: bool = False


@dataclass(slots=True)
class _Held:
    """
    What a batch must know of the row of a file that was read before; lists are JSON texts, mostly empty ones.

    *seq* is of its last row of keys (0: it has none), *keys* what stands in that, None where nothing more goes into it.
    """

    stands: tuple[int, bytes, bytes]
    place: tuple[Any, ...]  # source, path, device, inode, and whether it is there
    bad: str
    restarts: str
    kin: str
    seq: int
    keys: bytes | None


@dataclass(slots=True)
class _Batch:
    """The rows of one transaction."""

    files: list[tuple[Any, ...]] = field(default_factory=list)
    parts: list[tuple[Any, ...]] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    keys: dict[tuple[int, int], bytes] = field(default_factory=dict)  # by file and place
    longer_keys: dict[tuple[int, int], bytes] = field(default_factory=dict)
    anchors: dict[int, int] = field(default_factory=dict)
    copies: dict[int, list[int]] = field(default_factory=dict)
    hours: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    days: dict[tuple[int, int], int] = field(default_factory=dict)
    grown: list[tuple[Any, ...]] = field(default_factory=list)
    moved: list[tuple[Any, ...]] = field(default_factory=list)
    held: dict[int, _Held] = field(default_factory=dict)
    taken: set[tuple[int, str]] = field(default_factory=set)  # source and path of files that are there
    held_parts: dict[tuple[int, int], tuple[Any, ...]] = field(default_factory=dict)
    sessions: dict[tuple[str, str], _Session] = field(default_factory=dict)


class IngestStore:
    """The `IngestWriter` over the state database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection = database.connection
        self._hosts: dict[int, str] = {}
        self._versions: dict[int, set[str]] = {}
        self._censuses: dict[int, tuple[int, Census]] = {}  # by source, with the version of the database
        self._known_at: dict[int, int] = {}  # by source, the version of the database when its rows were read
        self._unwritten: dict[int, int] = {}  # source -> time of a complete scan that found nothing new

    # -- sources and files

    def source_id(self, host: str, path: str, *, now_ms: int) -> int:
        """Return the row of the source, made where it is new."""
        query = "SELECT id FROM sources WHERE host = ? AND path = ?"
        row = self._connection.execute(query, (host, path)).fetchone()
        if row is None:
            with self._transaction() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO sources (host, path, first_seen_at) VALUES (?, ?, ?)", (host, path, now_ms)
                )
                row = connection.execute(query, (host, path)).fetchone()
        self._hosts[row[0]] = host
        return int(row[0])

    def known(self, source_id: int) -> dict[str, Known]:
        """Return all files of the source that were there when last looked, by path."""
        self._known_at[source_id] = self._version()
        present, all_files = self._connection.execute(_SHARE, (source_id,)).fetchone() or (0, 0)
        most = 2 * present > (all_files or 0)
        rows = self._connection.execute(_KNOWN_THROUGH if most else _KNOWN, (source_id,))
        return {row[0]: row for row in rows}

    def census(self, source_id: int) -> Census | None:
        """Return what `keep_census` was given last, None where anything was written since, by whomever."""
        version, census = self._censuses.get(source_id, (0, None))
        return census if census is not None and version == self._version() else None

    def keep_census(self, source_id: int, census: Census) -> None:
        """Keep *census*, made of the rows that `known` returned last, in memory."""
        self._censuses[source_id] = (self._known_at[source_id], census)

    def _version(self) -> int:
        """Return a number that is another one when another connection has written; our own writing clears censuses."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def known_at(self, source_id: int, paths: Sequence[str]) -> dict[str, Known]:
        """Return those of them that are at *paths*."""
        rows = self._connection.execute(_KNOWN_AT, (source_id, _json(paths)))
        return {row[0]: row for row in rows}

    def details(self, file_id: int) -> Details:
        """Return a file's row."""
        return _details(self._connection.execute(_FILE_BY_ID, (file_id,)).fetchone())

    def details_of(self, file_ids: Sequence[int]) -> dict[int, Details]:
        """Return the rows of several files at once."""
        return {row[0]: _details(row) for row in self._connection.execute(_FILES_BY_ID, (_json(file_ids),))}

    def keys_of(self, file_ids: Sequence[int]) -> dict[int, list[bytes]]:
        """Return each file's own packed keys; one that has none is left out."""
        found: dict[int, list[bytes]] = {}
        for file_id, keys in self._connection.execute(_KEYS_OF, (_json(file_ids),)):
            found.setdefault(file_id, []).append(keys)
        return found

    def any_gone(self, host: str) -> bool:
        """Return whether any file of the host is gone."""
        return bool(self._connection.execute(_ANY_GONE, (host,)).fetchone()[0])

    def at_inode(self, source_id: int, item: Item) -> list[tuple[int, str]]:
        """Return (file id, path) of files of the source that are thought to be there and had *item*'s inode."""
        return self._connection.execute(
            "SELECT id, path FROM files WHERE ino = ? AND dev = ? AND source = ? AND gone_at IS NULL AND path != ?",
            (signed_inode(item.ino), signed_inode(item.dev), source_id, item.path),
        ).fetchall()

    def gone_like(self, host: str, item: Item, head: bytes) -> list[Details]:
        """Return files of the host that are gone and had this head or inode, those of the same inode first."""
        # Inodes are held signed, since some file systems use all 64 bits.
        wanted = (host, head, signed_inode(item.dev), signed_inode(item.ino), item.path)
        rows = self._connection.execute(_FILES_GONE, wanted)
        return [_details(row) for row in rows]

    def left_waiting(self, source_id: int, *, since_ms: int, most: int) -> list[Details]:
        """Return files of the source, *most* of them, that are gone while something waits, quiet *since_ms*."""
        return [_details(row) for row in self._connection.execute(_FILES_LEFT, (source_id, since_ms, most))]

    def keys(self, file_ids: Iterable[int], *, kin: bool) -> list[bytes]:
        """Return the packed keys of the files and, with *kin*, of all that repeat or are repeated by one of them."""
        found: list[bytes] = []
        for file_id in self.related(file_ids) if kin else dict.fromkeys(file_ids):
            rows = self._connection.execute("SELECT keys FROM keys WHERE file = ? ORDER BY seq", (file_id,))
            found.extend(row[0] for row in rows)
        return found

    def related(self, file_ids: Iterable[int]) -> list[int]:
        """Return the files and, nearest first and bounded, all that repeat or are repeated by one of them."""
        wanted = list(dict.fromkeys(file_ids))
        for file_id in wanted:  # grows while it is gone through
            if len(wanted) >= MAX_KIN:
                break
            told = self._connection.execute("SELECT kin, copies FROM files WHERE id = ?", (file_id,)).fetchone()
            wanted += [other for other in json.loads(told[0]) + json.loads(told[1]) if other not in wanted]
        return wanted

    def gone(self, file_ids: Sequence[int], *, now_ms: int) -> None:
        """Note that files are no longer there."""
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE files SET gone_at = ? WHERE id = ?", [(now_ms, file_id) for file_id in file_ids]
            )

    def failed(self, source_id: int, item: Item, file_id: int | None, error: str, *, retry_ms: int) -> None:
        """Note that a file could not be read, and when to try again."""
        stat = (signed_inode(item.dev), signed_inode(item.ino), item.size, item.mtime_ns)
        with self._transaction() as connection:
            if file_id is None:
                connection.execute(
                    "INSERT INTO files (source, path, dev, ino, size, mtime_ns, offset, head, tail, state, failures,"
                    " retry_at, error) VALUES (?, ?, ?, ?, ?, ?, 0, x'', x'', x'', 1, ?, ?)",
                    (source_id, item.path, *stat, retry_ms, error[:500]),
                )
            else:
                connection.execute(
                    "UPDATE files SET failures = CASE WHEN size = ? AND mtime_ns = ? THEN failures + 1 ELSE 1 END,"
                    " retry_at = ?, error = ?, dev = ?, ino = ?, size = ?, mtime_ns = ? WHERE id = ?",
                    (item.size, item.mtime_ns, retry_ms, error[:500], *stat, file_id),
                )

    def missing(self, source_id: int, *, now_ms: int) -> None:
        """Note that a source that was there before is not there now; one that never was has no problem, it waits."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE sources SET problems = ? WHERE id = ? AND complete_at IS NOT NULL AND problems != ?",
                (told := _json(["it is not there any more"]), source_id, told),
            )

    def finished(
        self,
        source_id: int,
        *,
        now_ms: int,
        complete: bool,
        present: int,
        problems: Sequence[str],
        lazily: bool = False,
    ) -> None:
        """Note the end of a scan of the source; a *complete* one settles from when the source testifies."""
        connection = self._connection
        row = connection.execute(
            "SELECT complete_at, testifies_from, present, problems FROM sources WHERE id = ?", (source_id,)
        ).fetchone()
        complete_at, testifies, was_present, were_problems = row
        same = was_present == present and were_problems == _json(list(problems)[:MAX_PROBLEMS])
        if lazily and complete and complete_at is not None and same:
            if present:
                self._unwritten[source_id] = now_ms
            return
        # A scan since then that only memory knows of; a kill forgets it, which makes testimony younger, never older.
        if complete_at is not None:
            complete_at = max(complete_at, self._unwritten.pop(source_id, complete_at))
        if complete:
            testifies = self._testimony(source_id, now_ms, complete_at, testifies, present)
            # An empty place says nothing: a folder that is not mounted must not make all older testimony void.
            if present or complete_at is None:
                complete_at = now_ms
        with self._transaction() as connection:
            connection.execute(
                "UPDATE sources SET scanned_at = ?, complete_at = ?, testifies_from = ?, present = ?, problems = ?"
                " WHERE id = ?",
                (now_ms, complete_at, testifies, present, _json(list(problems)[:MAX_PROBLEMS]), source_id),
            )

    def _testimony(
        self, source_id: int, now_ms: int, complete_at: int | None, testifies: int | None, present: int
    ) -> int | None:
        """
        Return from when the source testifies (contract section 7, rule 4).

        Before the first complete scan anything may have been pruned: what is there can testify from the oldest
        `last_at` on. The same holds anew where everything older than the scan before is gone: who prunes after 30
        days and was not looked at for 60 has lost 30 of them unseen.
        """
        if not present:
            return now_ms if complete_at is None else testifies
        if complete_at is not None and testifies is not None:
            (older_gone,) = self._connection.execute(
                "SELECT EXISTS (SELECT 1 FROM files WHERE source = ? AND gone_at IS NOT NULL)", (source_id,)
            ).fetchone()
            if not older_gone:
                return int(testifies)  # the usual case, told without asking all parts
        oldest_first, oldest_last = self._connection.execute(
            "SELECT min(first_at), min(last_at) FROM (SELECT min(p.first_at) AS first_at, max(p.last_at) AS last_at"
            " FROM parts p JOIN files f ON f.id = p.file WHERE f.source = ? AND f.gone_at IS NULL GROUP BY p.session)",
            (source_id,),
        ).fetchone()
        if oldest_last is None:
            return testifies if testifies is not None else now_ms
        if complete_at is None or testifies is None:
            return int(min(oldest_last, now_ms))
        if oldest_first is not None and oldest_first >= complete_at:
            return int(max(testifies, min(oldest_last, now_ms)))
        return int(testifies)

    # -- the batch

    def write(self, readings: Sequence[Reading], *, now_ms: int) -> list[tuple[int, int | None, frozenset[int]]]:
        """
        Commit the readings in one transaction, each of them whole or, where it meets others' anchors, not at all.

        Raises:
            BusyError: Another scan has counted one of the files meanwhile; none of the readings is committed.
        """
        with self._transaction() as connection:
            batch = _Batch()
            owners = self._owners(connection, readings)  # and, as it goes on, of the anchors of the batch itself
            self._load_sessions(connection, readings, batch)
            self._load_held(connection, readings, batch)
            self._load_taken(connection, readings, batch)
            (next_file,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM files").fetchone()
            (next_session,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM sessions").fetchone()
            done: list[tuple[int, int | None, frozenset[int]]] = []
            known = owners.keys()
            for place, reading in enumerate(readings):
                shared = _NOBODY
                if not (known.isdisjoint(reading.anchors) and known.isdisjoint(reading.probes)):
                    met = {owners[anchor] for anchor in (*reading.anchors, *reading.probes) if anchor in owners}
                    shared = frozenset(met - reading.guarded)
                if shared:
                    done.append((place, None, shared))
                    continue
                self._refuse_counted(batch, reading)
                file_id = reading.file_id
                if file_id is None:
                    file_id, next_file = next_file, next_file + 1
                    batch.files.append(_file_row(file_id, reading))
                else:
                    self._update_file(batch, file_id, reading, now_ms)
                for other in reading.guarded:
                    if other != file_id:
                        batch.copies.setdefault(other, []).append(file_id)
                for anchor in reading.anchors:
                    if anchor not in owners:
                        owners[anchor] = batch.anchors[anchor] = file_id
                findings = reading.slice.findings
                if findings.keys:
                    _add_keys(batch, file_id, findings.keys)
                host = self._hosts[reading.source_id]
                for name, tally in findings.sessions.items():
                    session = batch.sessions.get((host, name))
                    if session is None:
                        session = _Session(next_session, tally.kind, tally.parent, tally.cwds[:MAX_CWDS], new=True)
                        batch.sessions[host, name] = session
                        next_session += 1
                    else:
                        _join_session(session, tally)
                    self._gather(connection, batch, reading, file_id, session, tally)
                done.append((place, file_id, shared))
            self._flush(connection, batch)
            written = [r for r, (_, i, _) in zip(readings, done, strict=True) if i is not None]
            self._note_sources(connection, written, now_ms)
        return done

    def _refuse_counted(self, batch: _Batch, reading: Reading) -> None:
        """Raise `BusyError` where the file does not stand where it stood when *reading* began: it would count twice."""
        if reading.file_id is None:
            stale = (reading.source_id, reading.item.path) in batch.taken
        else:
            row, held = batch.held.get(reading.file_id), reading.held
            expected = None if held is None else (held.offset, held.head, held.tail)
            stale = (None if row is None else row.stands) != expected
        if stale:
            raise BusyError(
                f"another scan has read {reading.item.path} meanwhile", hint="the next scan reads what is left"
            )

    def _owners(self, connection: sqlite3.Connection, readings: Sequence[Reading]) -> dict[int, int]:
        """Return which files hold those anchors of the batch that are known."""
        wanted = list({key for reading in readings for keys in (reading.anchors, reading.probes) for key in keys})
        if not wanted:
            return {}
        return dict(
            connection.execute(
                "SELECT key, file FROM anchors WHERE key IN (SELECT value FROM json_each(?))", (_json(wanted),)
            )
        )

    def _load_sessions(self, connection: sqlite3.Connection, readings: Sequence[Reading], batch: _Batch) -> None:
        wanted: dict[str, set[str]] = {}
        for reading in readings:
            wanted.setdefault(self._hosts[reading.source_id], set()).update(reading.slice.findings.sessions)
        for host, names in wanted.items():
            rows = connection.execute(
                "SELECT session_id, id, kind, parent, cwds FROM sessions"
                " WHERE host = ? AND session_id IN (SELECT value FROM json_each(?))",
                (host, _json(sorted(names))),
            )
            for name, rowid, kind, parent, cwds in rows:
                held = [] if cwds == "[]" else msgspec.json.decode(cwds)
                batch.sessions[host, name] = _Session(rowid, SessionKind(kind), parent, held, new=False)

    def _load_taken(self, connection: sqlite3.Connection, readings: Sequence[Reading], batch: _Batch) -> None:
        """Read which of the paths of files never seen before are known by now: to a scan that was quicker."""
        wanted: dict[int, list[str]] = {}
        for reading in readings:
            if reading.file_id is None:
                wanted.setdefault(reading.source_id, []).append(reading.item.path)
        for source_id, paths in wanted.items():
            batch.taken.update((source_id, row[0]) for row in connection.execute(_TAKEN, (source_id, _json(paths))))

    def _load_held(self, connection: sqlite3.Connection, readings: Sequence[Reading], batch: _Batch) -> None:
        """Read what is held of the files that were read before, and of their parts that are added to, all at once."""
        wanted: set[int] = set()
        pairs: list[tuple[int, int]] = []
        for reading in readings:
            if reading.file_id is None:
                continue
            wanted.add(reading.file_id)
            host = self._hosts[reading.source_id]
            for name in reading.slice.findings.sessions:
                session = batch.sessions.get((host, name))
                if session is not None:
                    pairs.append((reading.file_id, session.rowid))
        if wanted:
            for row in connection.execute(_HELD, (KEYS_ROW, _json(sorted(wanted)))):
                batch.held[row[0]] = _Held(row[1:4], row[4:9], *row[9:])
        if pairs:
            for row in connection.execute(_PARTS, (_json(pairs),)):
                batch.held_parts[row[:2]] = row[2:]

    def _gather(
        self,
        connection: sqlite3.Connection,
        batch: _Batch,
        reading: Reading,
        file_id: int,
        session: _Session,
        tally: SessionTally,
    ) -> None:
        row = session.rowid
        first, last, calls = tally.first_ms, tally.last_ms, tally.tool_calls
        counts = [tally.records, tally.unreadable, tally.user_turns, tally.assistant_turns]
        told = _json(calls) if calls else "{}"
        if reading.file_id is not None:
            held = batch.held_parts.get((file_id, row))
            if held is not None:
                records, unreadable, user_turns, assistant_turns, held_first, held_last, held_calls = held
                counts[0] += records
                counts[1] += unreadable
                counts[2] += user_turns
                counts[3] += assistant_turns
                if first is None or (held_first is not None and held_first < first):
                    first = held_first
                if last is None or (held_last is not None and held_last > last):
                    last = held_last
                if held_calls != "{}":
                    told = _json(summed(msgspec.json.decode(held_calls), calls)) if calls else held_calls
        batch.parts.append((file_id, row, tally.side, *counts, first, last, told))
        mtime_ms = reading.item.mtime_ns // 1_000_000
        for s in tally.sightings:
            # No record near it has a time: the file's own is the best guess, and said to be one.
            at = mtime_ms if s.at_ms is None else s.at_ms
            guessed = s.estimated or s.at_ms is None
            batch.events.append((row, at, s.skill, s.kind.value, s.via, s.path, s.cwd, s.ref, guessed))
        if tally.retracted:
            connection.executemany(
                "DELETE FROM events WHERE session = ? AND ref = ?", [(row, ref) for ref in tally.retracted]
            )
        if tally.amended:
            connection.executemany(
                "UPDATE events SET path = ? WHERE session = ? AND ref = ?",
                [(path, row, ref) for ref, path in tally.amended.items()],
            )
        if not session.kind.counts:
            return
        source = reading.source_id
        for number, hour in tally.hours.items():
            known = batch.hours.get((source, number))
            if known is None:
                batch.hours[source, number] = [hour.first_ms, hour.last_ms]
            else:
                known[0] = min(known[0], hour.first_ms)
                known[1] = max(known[1], hour.last_ms)
        for day, turns in tally.turns_by_day.items():
            batch.days[source, day] = batch.days.get((source, day), 0) + turns

    def _flush(self, connection: sqlite3.Connection, batch: _Batch) -> None:
        many = connection.executemany
        many(
            "INSERT INTO sessions (id, host, session_id, parent, kind, cwds) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (s.rowid, host, name, s.parent, s.kind.value, _json(s.cwds))
                for (host, name), s in batch.sessions.items()
                if s.new
            ],
        )
        many(
            "UPDATE sessions SET parent = ?, kind = ?, cwds = ? WHERE id = ?",
            [
                (s.parent, s.kind.value, _json(s.cwds), s.rowid)
                for s in batch.sessions.values()
                if s.changed and not s.new
            ],
        )
        many(
            "INSERT INTO files (id, source, path, dev, ino, size, mtime_ns, offset, head, tail, state, waiting, bad,"
            " kin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            batch.files,
        )
        many(_UPDATE_GROWN, batch.grown)
        many(_UPDATE_MOVED, batch.moved)
        many("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", batch.parts)
        many(
            "INSERT INTO events (session, at, skill, kind, via, path, cwd, ref, estimated)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            batch.events,
        )
        many("INSERT INTO keys VALUES (?, ?, ?)", [(*at, keys) for at, keys in batch.keys.items()])
        many(
            "UPDATE keys SET keys = ? WHERE file = ? AND seq = ?",
            [(keys, *at) for at, keys in batch.longer_keys.items()],
        )
        for file_id in {file_id for file_id, seq in batch.keys if seq > MERGE_KEYS_AT}:
            whole = b"".join(self.keys([file_id], kin=False))
            connection.execute("DELETE FROM keys WHERE file = ?", (file_id,))
            connection.execute("INSERT INTO keys VALUES (?, 1, ?)", (file_id, whole))
        for file_id, copies in batch.copies.items():
            (told,) = connection.execute("SELECT copies FROM files WHERE id = ?", (file_id,)).fetchone()
            held = json.loads(told)
            more = [copy for copy in copies if copy not in held]
            if more:
                newest = _json([*held, *more][-MAX_COPIES:])
                connection.execute("UPDATE files SET copies = ? WHERE id = ?", (newest, file_id))
        many("INSERT OR IGNORE INTO anchors VALUES (?, ?)", sorted(batch.anchors.items()))  # in the table's order
        many(
            "INSERT INTO hours VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at)",
            [(*at, *times) for at, times in batch.hours.items()],
        )
        many(
            "INSERT INTO days VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET turns = turns + excluded.turns",
            [(*at, turns) for at, turns in batch.days.items()],
        )

    def _update_file(self, batch: _Batch, file_id: int, reading: Reading, now_ms: int) -> None:
        done, item, held = reading.slice, reading.item, batch.held[file_id]
        if len(reading.guarded) > 1 or file_id not in reading.guarded:
            known = json.loads(held.kin)
            more = reading.guarded.difference(known, [file_id])
            if more:
                held.kin = _json([*known, *sorted(more)][:MAX_KIN])
        if done.findings.bad:
            held.bad = _json((json.loads(held.bad) + done.findings.bad)[-MAX_OFFSETS:])
        if reading.restarted:
            told = [*json.loads(held.restarts), [now_ms, reading.restarted]]
            held.restarts = _json(told[-MAX_RESTARTS:])
        mtime_ns = item.mtime_ns if done.last else 0  # stopped in its middle, it must look changed to the next scan
        marks = done.marks
        rest = (done.state, done.waiting, reading.grown, now_ms, held.bad, held.kin, held.restarts, file_id)
        place = (reading.source_id, item.path, signed_inode(item.dev), signed_inode(item.ino))
        if reading.gone or (held.place == (*place, 1) and held.stands[1] == marks.head):
            batch.grown.append((item.size, mtime_ns, done.offset, marks.tail, *rest))
        else:
            batch.moved.append((*place, item.size, mtime_ns, done.offset, marks.head, marks.tail, *rest))
        # A second reading of the file in this batch is measured by the first, and refused where it begins before it.
        held.stands = (done.offset, done.marks.head, done.marks.tail)

    def _note_sources(self, connection: sqlite3.Connection, readings: Sequence[Reading], now_ms: int) -> None:
        """Add to the sources what `doctor` wants to know."""
        for source_id in {reading.source_id for reading in readings}:
            found = [r.slice.findings for r in readings if r.source_id == source_id]
            note_stretches(connection, source_id, found, now_ms // DAY_MS)
            versions = {version for f in found for version in f.versions}
            unknown: dict[str, int] = {}
            for f in found:
                for name, count in f.unknown.items():
                    unknown[name] = unknown.get(name, 0) + count
            sums = [sum(getattr(f, name) for f in found) for name in _SUMS]
            seen = self._versions.get(source_id)
            if seen is not None and versions <= seen and not unknown and not any(sums):
                continue
            held = connection.execute("SELECT unknown, versions FROM sources WHERE id = ?", (source_id,)).fetchone()
            kept = sorted(versions | set(json.loads(held[1])))[-MAX_NAMES:]
            self._versions[source_id] = set(kept)
            connection.execute(
                "UPDATE sources SET unknown = ?, versions = ?, oversize = oversize + ?, repeated = repeated + ?,"
                " naive_times = naive_times + ?, future_times = future_times + ? WHERE id = ?",
                (_json(summed(json.loads(held[0]), unknown)), _json(kept), *sums, source_id),
            )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction that need not be on the platter when it ends; later ones are strict."""
        self._censuses.clear()
        self._connection.execute("PRAGMA synchronous = NORMAL")
        try:
            with self._database.transaction() as connection:
                yield connection
        except sqlite3.OperationalError as failed:
            if failed.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise BusyError(f"the database is in use: {failed}", hint="try again in a moment") from failed
            raise StateError(
                f"cannot write what was read into {self._database.path}: {failed}",
                hint="look at its permissions and the free space; what was committed stays, the next scan goes on",
            ) from failed
        except sqlite3.DatabaseError as failed:
            raise self._database.failure(failed) from failed
        finally:
            self._connection.execute("PRAGMA synchronous = FULL")


_NOBODY: frozenset[int] = frozenset()
_SUMS = ("oversize", "repeated", "naive_times", "future_times")


def _json(value: Any) -> str:
    """Return *value* as JSON text; some ten times as fast as the standard library, and called ten times a file."""
    return msgspec.json.encode(value).decode()


def _file_row(file_id: int, reading: Reading) -> tuple[Any, ...]:
    item, done = reading.item, reading.slice
    return (
        file_id,
        reading.source_id,
        item.path,
        signed_inode(item.dev),
        signed_inode(item.ino),
        item.size,
        item.mtime_ns if done.last else 0,  # stopped in its middle, it must look changed to the next scan
        done.offset,
        done.marks.head,
        done.marks.tail,
        done.state,
        done.waiting,
        _json(done.findings.bad) if done.findings.bad else "[]",
        _json(sorted(reading.guarded - {file_id})[:MAX_KIN]) if reading.guarded else "[]",
    )


def _add_keys(batch: _Batch, file_id: int, keys: bytes) -> None:
    """Put *keys* behind those of the file: into its last row while that is short, else into a row of their own."""
    held = batch.held.get(file_id)
    if held is None:
        batch.keys[file_id, 1] = keys
        return
    if held.keys is not None and len(held.keys) + len(keys) <= KEYS_ROW:
        held.keys += keys
        at = (file_id, held.seq)
        (batch.keys if at in batch.keys else batch.longer_keys)[at] = held.keys
        return
    held.seq += 1
    held.keys = batch.keys[file_id, held.seq] = keys


def _details(row: tuple[Any, ...]) -> Details:
    return Details(
        file_id=row[0],
        path=row[1],
        dev=row[2],
        ino=row[3],
        size=row[4],
        mtime_ns=row[5],
        watermark=Watermark(offset=row[6], head=row[7], tail=row[8]),
        state=row[9],
        waiting=bool(row[10]),
        kin=() if row[16] == row[17] == "[]" else tuple(dict.fromkeys(json.loads(row[16]) + json.loads(row[17]))),
        grown_ms=row[11],
        gone=row[12] is not None,
        failures=row[13],
        retry_ms=row[14],
        error=row[15],
        restarted=bool(row[18]),
    )


def _join_session(session: _Session, tally: SessionTally) -> None:
    kind = session.kind.stronger(tally.kind)
    if kind is not session.kind:
        session.kind = kind
        session.changed = True
    if tally.parent and not session.parent:
        session.parent = tally.parent
        session.changed = True
    for cwd in tally.cwds:
        if cwd not in session.cwds and len(session.cwds) < MAX_CWDS:
            session.cwds.append(cwd)
            session.changed = True

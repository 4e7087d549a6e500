"""The tables of distilling behind the port `ports.distil_store`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from curatord.adapters.store.database import Database, from_ms, to_ms
from curatord.ports.distil_store import (
    FilePart,
    Judged,
    LastLook,
    LogRow,
    LookedTo,
    SessionToDistil,
    Settled,
    SkillTouch,
    StoredCandidate,
)

__all__ = ["SqliteDistilStore"]

MAX_LINEAGE = 64  # sessions that a chain of forks is followed back
LOG_KEPT = 20_000
MAX_TOUCHED = 50

_THESE = (
    "SELECT d.session, s.host, s.session_id, s.kind, s.parent, s.cwds, d.touches, d.since, d.state, d.reason, d.at,"
    " d.looked_at, d.through, d.user_turns, d.tool_calls, d.offsets, d.failures, d.retry_at, d.aside, d.answer,"
    " d.verdict, d.why, p.side, p.user_turns, p.tool_calls, p.first_at, p.last_at, p.records, f.id, f.source, f.path,"
    " f.offset, f.head, f.gone_at, f.grown_at, o.host, o.path, o.first_seen_at, d.waits"
    " FROM distil_sessions d JOIN sessions s ON s.id = d.session JOIN parts p ON p.session = d.session"
    " JOIN files f ON f.id = p.file JOIN sources o ON o.id = f.source"
    " WHERE d.session IN (SELECT value FROM json_each(?)) ORDER BY d.session, p.side, p.last_at, f.id"
)


_COPIED_FROM = """
    SELECT other.session_id FROM sessions AS this
    JOIN parts AS part ON part.session = this.id
    JOIN files AS file ON file.id = part.file
    JOIN json_each(file.kin) AS kin
    JOIN parts AS theirs ON theirs.file = kin.value AND theirs.session <> this.id AND theirs.records > 0
    JOIN sessions AS other ON other.id = theirs.session
    WHERE this.host = ? AND this.session_id = ?
      AND (SELECT count(*) FROM parts WHERE file = part.file) = 1
      AND (SELECT count(*) FROM parts WHERE file = theirs.file) = 1
    ORDER BY other.id LIMIT 1
"""


class SqliteDistilStore:
    """Fills `DistilStore` from the state database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection = database.connection

    # -- asking

    def queued(self, now: datetime, *, limit: int = 500) -> list[SessionToDistil]:
        """See `DistilStore.queued`."""
        rows = self._connection.execute(
            "SELECT session FROM distil_sessions WHERE look_at <= ? ORDER BY look_at, session LIMIT ?",
            (to_ms(now), limit),
        )
        return self._sessions([row for (row,) in rows])

    def next_look_at(self) -> int | None:
        """Return when (ms) the next session wants to be judged, None while none does; one step in an index."""
        found = self._connection.execute(
            "SELECT look_at FROM distil_sessions WHERE look_at IS NOT NULL ORDER BY look_at LIMIT 1"
        ).fetchone()
        return None if found is None else int(found[0])

    def unlooked(self, *, after: int = 0, limit: int = 500) -> list[SessionToDistil]:
        """See `DistilStore.unlooked`."""
        rows = self._connection.execute(
            "SELECT session FROM distil_sessions WHERE session > ? AND looked_at IS NULL ORDER BY session LIMIT ?",
            (after, limit),
        )
        return self._sessions([row for (row,) in rows])

    def due(self) -> list[int]:
        """See `DistilStore.due`."""
        rows = self._connection.execute(
            "SELECT session FROM distil_sessions WHERE due IS NOT NULL ORDER BY due, session"
        )
        return [row for (row,) in rows]

    def waiting(self) -> list[int]:
        """See `DistilStore.waiting`."""
        rows = self._connection.execute(
            "SELECT session FROM distil_sessions WHERE waits > 0 AND aside = 0 AND due IS NULL ORDER BY at, session"
        )
        return [row for (row,) in rows]

    def due_by_source(self) -> dict[tuple[str, str], int]:
        """Return how many sessions of each source (host, path) are due."""
        rows = self._connection.execute(
            "SELECT o.host, o.path, count(DISTINCT d.session) FROM distil_sessions d"
            " JOIN parts p ON p.session = d.session AND p.side = 0 JOIN files f ON f.id = p.file"
            " JOIN sources o ON o.id = f.source"
            " WHERE d.due IS NOT NULL GROUP BY o.id"
        )
        return {(host, path): count for host, path, count in rows}

    def session(self, row: int) -> SessionToDistil:
        """See `DistilStore.session`."""
        (found,) = self._sessions([row])
        return found

    def find(self, said: str) -> list[SessionToDistil]:
        """See `DistilStore.find`."""
        host, colon, rest = said.partition(":")
        tries: list[tuple[str, tuple[Any, ...]]] = [("session_id = ?", (said,))]
        if colon:
            tries.append(("host = ? AND session_id = ?", (host, rest)))
        prefix = said.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        tries.append(("session_id LIKE ? ESCAPE '\\'", (f"{prefix}%",)))
        for condition, values in tries:
            rows = self._connection.execute(
                f"SELECT s.id FROM sessions s WHERE {condition} AND s.kind NOT IN ('own', 'reviewer') LIMIT 20",  # noqa: S608 - our words
                values,
            ).fetchall()
            if rows:
                return self._sessions([row for (row,) in rows])
        return []

    def _sessions(self, rows: Sequence[int]) -> list[SessionToDistil]:
        """Return sessions with their parts, in the order of *rows*."""
        found: dict[int, SessionToDistil] = {}
        parts: list[tuple[Any, ...]] = []
        for row in self._connection.execute(_THESE, (json.dumps(list(rows)),)):
            if parts and parts[0][0] != row[0]:
                found[parts[0][0]] = _session(parts)
                parts = []
            parts.append(row)
        if parts:
            found[parts[0][0]] = _session(parts)
        return [found[row] for row in rows if row in found]

    def lineage(self, host: str, session_id: str) -> str:
        """See `DistilStore.lineage`."""
        seen = [session_id]
        while len(seen) < MAX_LINEAGE:
            row = self._connection.execute(
                "SELECT parent FROM sessions WHERE host = ? AND session_id = ?", (host, seen[-1])
            ).fetchone()
            before = row[0] if row is not None and row[0] is not None else self._copied_from(host, seen[-1])
            if before is None or before in seen:
                break
            seen.append(before)
        return seen[-1]

    def _copied_from(self, host: str, session_id: str) -> str | None:
        """
        Return the session whose records this one's file repeats, where no pointer says so: a fork under a new id.

        Only files of one session each are asked: two databases that repeat each other say nothing of their sessions.
        """
        row = self._connection.execute(_COPIED_FROM, (host, session_id)).fetchone()
        return None if row is None else str(row[0])

    def touched(self, row: int) -> list[SkillTouch]:
        """See `DistilStore.touched`."""
        rows = self._connection.execute(
            "SELECT skill, kind, max(path), max(cwd) FROM events WHERE session = ? GROUP BY skill, kind"
            " ORDER BY max(at) DESC LIMIT ?",
            (row, MAX_TOUCHED),
        )
        return [SkillTouch(*found) for found in rows]

    def aside(self) -> list[SessionToDistil]:
        """See `DistilStore.aside`."""
        rows = self._connection.execute("SELECT session FROM distil_sessions WHERE aside != 0 ORDER BY session")
        return self._sessions([row for (row,) in rows])

    def totals(self) -> tuple[int, int]:
        """Return how many sessions are due, and how many were put aside; both stand in an index of their own."""
        (due,) = self._connection.execute("SELECT count(*) FROM distil_sessions WHERE due IS NOT NULL").fetchone()
        (aside,) = self._connection.execute("SELECT count(*) FROM distil_sessions WHERE aside != 0").fetchone()
        return due, aside

    def last_at(self) -> datetime | None:
        """Return when a session was last looked at with an outcome, None where none ever was."""
        (newest,) = self._connection.execute("SELECT max(looked_at) FROM distil_sessions").fetchone()
        return from_ms(newest)

    def states(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return for each session (host, id) what `sessions` says of distilling."""
        rows = self._connection.execute(
            "SELECT s.host, s.session_id, d.state, d.reason, d.at, d.through, d.verdict, d.why, d.due, d.aside,"
            " d.failures, d.retry_at FROM distil_sessions d JOIN sessions s ON s.id = d.session"
        )
        return {
            (host, session_id): {
                "state": state,
                "reason": reason,
                "at": from_ms(at),
                "through": from_ms(through),
                "verdict": verdict,
                "why": why,
                "due": due is not None,
                "aside": bool(aside),
                "failures": failures,
                "retry_at": from_ms(retry_at),
            }
            for host, session_id, state, reason, at, through, verdict, why, due, aside, failures, retry_at in rows
        }

    # -- keeping

    def judge(self, judged: Iterable[Judged]) -> None:
        """See `DistilStore.judge`."""
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE distil_sessions SET look_at = ?, due = ?, verdict = ?, why = ?"
                " WHERE session = ? AND touches = ?",
                [(one.look_at_ms, one.due, one.verdict, one.why, one.row, one.touches) for one in judged],
            )

    def ask_all_again(self) -> None:
        """See `DistilStore.ask_all_again`."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE distil_sessions SET look_at = 0")

    def keep_answer(self, row: int, answer: bytes | None) -> None:
        """See `DistilStore.keep_answer`."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE distil_sessions SET answer = ? WHERE session = ?", (answer, row))

    def settle(self, settled: Settled, candidates: Sequence[StoredCandidate] = ()) -> None:
        """See `DistilStore.settle`."""
        session, at = settled.session, to_ms(settled.at)
        with self._database.transaction() as connection:
            (before,) = connection.execute(
                "SELECT offsets FROM distil_sessions WHERE session = ?", (session.row,)
            ).fetchone() or ("{}",)
            offsets = _offsets(settled, json.loads(before))
            connection.execute(
                "UPDATE distil_sessions SET state = ?, reason = ?, at = ?, looked_at = ?, through = ?, user_turns = ?,"
                " tool_calls = ?, offsets = ?, failures = 0, retry_at = NULL, aside = 0, waits = 0, answer = NULL,"
                " look_at = 0, due = NULL, since = CASE WHEN touches = ? THEN NULL ELSE ? END WHERE session = ?",
                (
                    settled.state,
                    settled.reason,
                    at,
                    at,
                    settled.through_ms,
                    session.user_turns,
                    session.tool_calls,
                    json.dumps(offsets),
                    session.touches,
                    at,
                    session.row,
                ),
            )
            self._log(
                session.row,
                at,
                settled.state,
                settled.reason,
                settled.run_id,
                settled.asked,
                settled.digest,
                settled.told,
            )
            connection.executemany(
                "INSERT INTO candidates (id, library, name, last_at, told) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id)"
                " DO UPDATE SET name = excluded.name, last_at = excluded.last_at, told = excluded.told",
                [(one.id, one.library, one.name, to_ms(one.last_at), json.dumps(one.told)) for one in candidates],
            )

    def failed(
        self,
        session: SessionToDistil,
        *,
        state: str,
        reason: str,
        at: datetime,
        counts: bool,
        retry_at: datetime | None,
        aside: bool = False,
        run_id: str | None = None,
        asked: bool = False,
        waits: bool = False,
    ) -> None:
        """See `DistilStore.failed`."""
        stays = (retry_at is None or retry_at <= at) and not aside
        behind = to_ms(retry_at) or 0
        again = waits and session.look.waits > 0 and (state, reason) == (session.look.state, session.look.reason)
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE distil_sessions SET state = ?, reason = ?, at = ?, failures = failures + ?, retry_at = ?,"
                " aside = ?, waits = CASE WHEN ? THEN 0 ELSE waits + ? END,"
                " due = CASE WHEN ? THEN max(due, ?) END, look_at = CASE WHEN ? THEN look_at ELSE 0 END"
                " WHERE session = ?",
                # With nothing to wait for it is as due as before.
                (
                    state,
                    reason,
                    to_ms(at),
                    int(counts),
                    to_ms(retry_at),
                    int(aside),
                    int(counts),
                    int(waits),
                    stays,
                    behind,
                    stays,
                    session.row,
                ),
            )
            if not again:
                self._log(session.row, to_ms(at), state, reason, run_id, asked, None, {})

    def retry(self, rows: Iterable[int] | None) -> list[tuple[str, str]]:
        """See `DistilStore.retry`."""
        with self._database.transaction() as connection:
            query = (
                "SELECT d.session, s.host, s.session_id FROM distil_sessions d JOIN sessions s ON s.id = d.session"
                " WHERE (d.aside != 0 OR d.failures > 0 OR d.waits > 0)"
            )
            values: tuple[str, ...] = ()
            if rows is not None:
                query += " AND d.session IN (SELECT value FROM json_each(?))"
                values = (json.dumps(list(rows)),)
            found = connection.execute(f"{query} ORDER BY d.session", values).fetchall()
            connection.executemany(
                "UPDATE distil_sessions SET failures = 0, retry_at = NULL, aside = 0, waits = 0, look_at = 0,"
                " answer = NULL WHERE session = ?",
                [(row,) for row, _, _ in found],
            )
        return [(host, session_id) for _, host, session_id in found]

    def _log(
        self,
        row: int,
        at: int | None,
        state: str,
        reason: str,
        run_id: str | None,
        asked: bool,
        digest: str | None,
        told: Any,
    ) -> None:
        """Add a line to the log, inside the caller's transaction, and drop lines beyond what is kept."""
        connection = self._connection
        connection.execute(
            "INSERT INTO distil_log (session, at, state, reason, run_id, asked, digest, told)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (row, at, state, reason, run_id, int(asked), digest, json.dumps(told, ensure_ascii=False)),
        )
        connection.execute("DELETE FROM distil_log WHERE id <= (SELECT max(id) FROM distil_log) - ?", (LOG_KEPT,))

    def log(
        self, *, since: datetime | None = None, host: str | None = None, session_id: str | None = None
    ) -> list[LogRow]:
        """See `DistilStore.log`."""
        query = (
            "SELECT s.host, s.session_id, l.at, l.state, l.reason, l.run_id, l.asked, l.digest, l.told"
            " FROM distil_log l JOIN sessions s ON s.id = l.session WHERE 1"
        )
        values: list[Any] = []
        for column, value in (("s.host", host), ("s.session_id", session_id)):
            if value is not None:
                query += f" AND {column} = ?"
                values.append(value)
        if since is not None:
            query += " AND l.at >= ?"
            values.append(to_ms(since))
        return [
            LogRow(
                host=row[0],
                session_id=row[1],
                at=_at(row[2]),
                state=row[3],
                reason=row[4],
                run_id=row[5],
                asked=bool(row[6]),
                digest=row[7],
                told=json.loads(row[8]),
            )
            for row in self._connection.execute(query + " ORDER BY l.at, l.id", values)
        ]

    # -- lessons seen once

    def candidates(self, library: str) -> list[StoredCandidate]:
        """See `DistilStore.candidates`."""
        rows = self._connection.execute(
            "SELECT id, library, name, last_at, told FROM candidates WHERE library = ? ORDER BY last_at DESC, id",
            (library,),
        )
        return [StoredCandidate(row[0], row[1], row[2], _at(row[3]), json.loads(row[4])) for row in rows]

    def forget_candidates(self, ids: Iterable[str]) -> None:
        """See `DistilStore.forget_candidates`."""
        with self._database.transaction() as connection:
            connection.executemany("DELETE FROM candidates WHERE id = ?", [(one,) for one in ids])

    def new_skills_since(self, at: datetime) -> int:
        """See `DistilStore.new_skills_since`."""
        total = 0
        for (told,) in self._connection.execute(
            "SELECT told FROM distil_log WHERE at >= ? AND state IN ('created', 'updated', 'pending')", (to_ms(at),)
        ):
            total += int(json.loads(told).get("new_skills", 0))
        return total


def _session(parts: Sequence[tuple[Any, ...]]) -> SessionToDistil:
    """Return one session of its joined rows, its own files' first."""
    first = parts[0]
    looks = json.loads(first[15])
    held = {part[28]: (part[23], sum(json.loads(part[24]).values())) for part in parts}  # of each file, turns and calls
    is_there = any(not part[22] and part[33] is None for part in parts)
    counts = [
        # No look reads a sub-agent's file, so whether that is gone is all one as long as there is something to look at.
        held[part[28]]
        if part[33] is None or (part[22] and is_there)
        else _looked_at(held[part[28]], looks.get(str(part[28]), ()))
        for part in parts
    ]
    look = LastLook(
        state=first[8],
        reason=first[9],
        at_ms=first[10],
        looked_ms=first[11],
        through_ms=first[12],
        user_turns=first[13],
        tool_calls=first[14],
        offsets={int(file_id): LookedTo(*looked[:2]) for file_id, looked in looks.items()},
        failures=first[16],
        retry_ms=first[17],
        aside=bool(first[18]),
        waits=first[38],
    )
    return SessionToDistil(
        row=first[0],
        host=first[1],
        session_id=first[2],
        kind=first[3],
        parent=first[4],
        cwds=tuple(json.loads(first[5])),
        touches=first[6],
        since_ms=first[7],
        look=look,
        answer=first[19],
        verdict=first[20],
        why=first[21],
        files=tuple(_files(parts, held)),
        first_ms=min((part[25] for part in parts if part[25] is not None), default=None),
        last_ms=max((part[26] for part in parts if part[26] is not None), default=None),
        alive_ms=max((at for part in parts for at in (part[26], part[34]) if at is not None), default=None),
        user_turns=sum(turns for turns, _ in counts),
        tool_calls=sum(calls for _, calls in counts),
        first_seen_ms=min(part[37] for part in parts),
    )


def _looked_at(held: tuple[int, int], looked: Sequence[Any]) -> tuple[int, int]:
    """
    Return the user turns and tool calls that were looked at of a file that is gone.

    What the last look kept contains them: without them what the session says elsewhere would seem old. The rest of
    *held* counts when the file comes back: it is new then.
    """
    if len(looked) < 2 or looked[1] == "":
        return 0, 0
    # Where the look did not keep how much it was, all of the file stands for it.
    return (looked[2], looked[3]) if len(looked) > 2 else held


def _offsets(settled: Settled, before: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """
    Return how far each file was looked at as it is kept: offset, head, and where known the turns and calls up to there.

    A file that this look passed by, as it is gone, keeps what stood there *before*.
    """
    kept: dict[str, Sequence[Any]] = {}
    files = {file.file_id: file for file in settled.session.files}
    for file_id, looked in settled.offsets.items():
        old, file = before.get(str(file_id), ()), files.get(file_id)
        if file is not None and file.counts is not None and looked == (file.offset, file.head):
            kept[str(file_id)] = [*looked, *file.counts]
        elif list(old[:2]) == list(looked):
            kept[str(file_id)] = old
        else:
            kept[str(file_id)] = list(looked)
    return kept


def _files(parts: Sequence[tuple[Any, ...]], held: Mapping[int, tuple[int, int]]) -> Iterator[FilePart]:
    for part in parts:
        if not part[22]:
            yield FilePart(
                file_id=part[28],
                source_id=part[29],
                host=part[35],
                source=part[36],
                path=part[30],
                offset=part[31],
                head=bytes(part[32]).hex()[:16],
                gone=part[33] is not None,
                records=part[27],
                last_ms=part[26],
                counts=held[part[28]],
            )


def _at(ms: int) -> datetime:
    at = from_ms(ms)
    assert at is not None, "a time that is never null"
    return at

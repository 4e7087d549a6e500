"""
The ingest tables: what was learnt, for everyone who only asks.

Sessions of curatord itself and of a host's own reviewer or curator are in the tables, so that they are not read again,
and left out of every answer here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from curatord.adapters.store.database import Database, from_ms, to_ms
from curatord.adapters.store.stretches import stretches_of
from curatord.core.values import Event, EventKind, LibraryName, SessionId, SkillName
from curatord.ports.ingest_store import CreatedBy, Resolve, SessionRow, SkillUse, SourceState

__all__ = ["IngestQueries"]

_EVENTS = (
    "SELECT s.host, s.session_id, e.at, e.skill, e.kind, e.via, e.path, e.cwd, e.session"
    " FROM events e JOIN sessions s ON s.id = e.session WHERE s.kind NOT IN ('own', 'reviewer')"
)
_PARTS = (
    "SELECT s.id, s.host, s.session_id, s.parent, s.kind, s.cwds, p.side, p.records, p.unreadable, p.user_turns,"
    " p.assistant_turns, p.first_at, p.last_at, p.tool_calls, f.source, f.path, f.offset, f.size, f.grown_at,"
    " f.gone_at, f.restarts FROM sessions s JOIN parts p ON p.session = s.id JOIN files f ON f.id = p.file"
    " WHERE s.kind NOT IN ('own', 'reviewer')"
)


class IngestQueries:
    """The `IngestReader` over the state database."""

    def __init__(self, database: Database) -> None:
        self._connection = database.connection

    def sessions(
        self, *, host: str | None = None, since: datetime | None = None, session_id: str | None = None
    ) -> list[SessionRow]:
        """Return the sessions, oldest first; *since* is of their last record."""
        query, values = _narrowed(_PARTS, {"s.host": host, "s.session_id": session_id})
        events = dict(self._connection.execute("SELECT session, count(*) FROM events GROUP BY session"))
        found: list[SessionRow] = []
        parts: list[tuple[Any, ...]] = []
        for row in self._connection.execute(query + " ORDER BY s.id, p.side, p.file", values):
            if parts and parts[0][0] != row[0]:
                found.append(_session(parts, events))
                parts = []
            parts.append(row)
        if parts:
            found.append(_session(parts, events))
        if since is not None:
            found = [session for session in found if session.last_at is not None and session.last_at >= since]
        return sorted(found, key=lambda s: (s.first_at is None, s.first_at or 0, s.host, s.session_id))

    def events(
        self,
        *,
        resolve: Resolve,
        skill: str | None = None,
        since: datetime | None = None,
        host: str | None = None,
        library: str | None = None,
        session_id: str | None = None,
    ) -> list[Event]:
        """Return the skill events, oldest first."""
        query, values = _narrowed(_EVENTS, {"e.skill": skill, "s.host": host, "s.session_id": session_id})
        if since is not None:
            query += " AND e.at >= ?"
            values.append(to_ms(since))
        resolve = _remembering(resolve)
        found = []
        for row in self._connection.execute(query + " ORDER BY e.at, e.id", values):
            name = resolve(host=row[0], skill=row[3], path=row[6], cwd=row[7])
            if library is None or name == library:
                found.append(
                    Event(
                        host=row[0],
                        session_id=SessionId(row[1]),
                        at=_at(row[2]),
                        library=LibraryName(name) if name is not None else None,
                        skill=SkillName(row[3]),
                        kind=EventKind(row[4]),
                        via=row[5],
                        path=row[6],
                    )
                )
        return found

    def skill_usage(self, *, resolve: Resolve) -> list[SkillUse]:
        """Return what the events say per library and skill, ordered by both."""
        resolve = _remembering(resolve)
        uses: dict[tuple[str | None, str], _Use] = {}
        for host, session_id, at, skill, kind, via, path, cwd, session in self._connection.execute(_EVENTS):
            key = (resolve(host=host, skill=skill, path=path, cwd=cwd), skill)
            use = uses.get(key)
            if use is None:
                use = uses[key] = _Use()
            use.counts[kind] = use.counts.get(kind, 0) + 1
            use.newest[kind] = max(use.newest.get(kind, at), at)
            use.sessions.add(session)
            use.hosts.add(host)
            if kind == "create" and (use.created is None or at < use.created[0]):
                use.created = (at, host, session_id, via, path)
        return [
            use.told(library, skill)
            for (library, skill), use in sorted(uses.items(), key=lambda item: (item[0][0] or "", item[0][1]))
        ]

    def work_gaps(self, source_ids: Sequence[int], *, longer_than: timedelta) -> list[tuple[datetime, datetime]]:
        """Return the stretches without work on any of the sources, between work before and work after, oldest first."""
        bound = round(longer_than.total_seconds() * 1000)
        gaps = []
        last: int | None = None
        for first_at, last_at in self._connection.execute(
            "SELECT first_at, last_at FROM hours WHERE source IN (SELECT value FROM json_each(?)) ORDER BY first_at",
            (json.dumps(list(source_ids)),),
        ):
            if last is not None and first_at - last > bound:
                gaps.append((_at(last), _at(first_at)))
            last = last_at if last is None else max(last, last_at)
        return gaps

    def first_work_at(self, source_ids: Sequence[int]) -> datetime | None:
        """Return when somebody first worked on any of the sources, as far as it is known."""
        (first,) = self._connection.execute(
            "SELECT min(first_at) FROM hours WHERE source IN (SELECT value FROM json_each(?))",
            (json.dumps(list(source_ids)),),
        ).fetchone()
        return from_ms(first)

    def newest_work_at(self, source_ids: Sequence[int]) -> datetime | None:
        """Return when somebody last worked on any of the sources."""
        (newest,) = self._connection.execute(
            "SELECT max(newest) FROM (SELECT"
            " (SELECT last_at FROM hours WHERE source = value ORDER BY hour DESC LIMIT 1) AS newest FROM json_each(?))",
            (json.dumps(list(source_ids)),),
        ).fetchone()
        return from_ms(newest)

    def testifies_from(self, source_ids: Sequence[int]) -> datetime | None:
        """Return the latest time from which each of the non-empty sources can testify; None: there is none such."""
        (latest,) = self._connection.execute(
            "SELECT max(testifies_from) FROM sources WHERE present > 0 AND id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(source_ids)),),
        ).fetchone()
        return from_ms(latest)

    def source_ids(self) -> list[int]:
        """Return the ids of all sources; the gates ask for no more at every tick."""
        return [source_id for (source_id,) in self._connection.execute("SELECT id FROM sources ORDER BY id")]

    def sources(self) -> list[SourceState]:
        """Return all sources, for `status` and `doctor`."""
        found = []
        rows = self._connection.execute(
            "SELECT id, host, path, scanned_at, complete_at, testifies_from, oversize, repeated, naive_times,"
            " future_times, unknown, versions, problems FROM sources ORDER BY host, path"
        ).fetchall()
        for row in rows:
            source_id = row[0]
            present, gone, failing = self._one(
                "SELECT coalesce(sum(gone_at IS NULL), 0), coalesce(sum(gone_at IS NOT NULL), 0),"
                " coalesce(sum(gone_at IS NULL AND failures > 0), 0) FROM files WHERE source = ?",
                source_id,
            )
            sessions, records, unreadable, newest = self._one(
                "SELECT count(DISTINCT session), coalesce(sum(records), 0), coalesce(sum(unreadable), 0), max(last_at)"
                " FROM parts WHERE file IN (SELECT id FROM files WHERE source = ?)",
                source_id,
            )
            errors = self._connection.execute(
                "SELECT path, error FROM files WHERE source = ? AND gone_at IS NULL AND failures > 0"
                " ORDER BY path LIMIT 20",
                (source_id,),
            )
            bad = self._connection.execute(
                "SELECT path, bad FROM files WHERE source = ? AND bad != '[]' ORDER BY id DESC LIMIT 20", (source_id,)
            )
            found.append(
                SourceState(
                    source_id=source_id,
                    host=row[1],
                    path=row[2],
                    scanned_at=from_ms(row[3]),
                    complete_at=from_ms(row[4]),
                    testifies_from=from_ms(row[5]),
                    newest_record_at=from_ms(newest),
                    sessions=sessions,
                    present=present,
                    gone=gone,
                    failing=failing,
                    records=records,
                    unreadable=unreadable,
                    oversize=row[6],
                    repeated=row[7],
                    naive_times=row[8],
                    future_times=row[9],
                    unknown=json.loads(row[10]),
                    versions=tuple(json.loads(row[11])),
                    problems=(*json.loads(row[12]), *(f"{path}: {error}" for path, error in errors)),
                    bad=tuple((path, offset, why) for path, told in bad for offset, why in json.loads(told)),
                    stretches=stretches_of(self._connection, source_id),
                )
            )
        return found

    def calls_per_day(self, source_ids: Sequence[int], *, since: datetime, until: datetime) -> float:
        """Return turns of the model per day over the time given."""
        from curatord.core.transcript.events import DAY_MS

        days = (until - since) / timedelta(days=1)
        if days <= 0:
            return 0.0
        (turns,) = self._connection.execute(
            "SELECT coalesce(sum(turns), 0) FROM days WHERE source IN (SELECT value FROM json_each(?))"
            " AND day BETWEEN ? AND ?",
            (json.dumps(list(source_ids)), (to_ms(since) or 0) // DAY_MS, (to_ms(until) or 0) // DAY_MS),
        ).fetchone()
        return float(turns / days)

    def _one(self, query: str, source_id: int) -> Any:
        return self._connection.execute(query, (source_id,)).fetchone()


class _Use:
    """A skill's use while the events are gone through."""

    __slots__ = ("counts", "created", "hosts", "newest", "sessions")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.newest: dict[str, int] = {}
        self.sessions: set[int] = set()
        self.hosts: set[str] = set()
        self.created: tuple[int, str, str, str, str | None] | None = None

    def told(self, library: str | None, skill: str) -> SkillUse:
        created = None
        if self.created is not None:
            at, host, session_id, via, path = self.created
            created = CreatedBy(host=host, session_id=session_id, at=_at(at), via=via, path=path)
        return SkillUse(
            library=library,
            skill=skill,
            counts={EventKind(kind): count for kind, count in self.counts.items()},
            newest={EventKind(kind): _at(at) for kind, at in self.newest.items()},
            created=created,
            sessions=len(self.sessions),
            hosts=tuple(sorted(self.hosts)),
        )


def _remembering(resolve: Resolve) -> Resolve:
    """Return *resolve* asked once for each distinct question; events repeat few paths many times."""
    answers: dict[tuple[str, str, str | None, str | None], str | None] = {}

    def asked(*, host: str, skill: str, path: str | None, cwd: str | None) -> str | None:
        key = (host, skill, path, cwd)
        if key not in answers:
            answers[key] = resolve(host=host, skill=skill, path=path, cwd=cwd)
        return answers[key]

    return asked


def _narrowed(query: str, wanted: dict[str, str | None]) -> tuple[str, list[Any]]:
    """Return *query* with a condition for each column that is *wanted*; the columns are this module's own words."""
    values: list[Any] = []
    for column, value in wanted.items():
        if value is not None:
            query += f" AND {column} = ?"
            values.append(value)
    return query, values


def _session(parts: Sequence[tuple[Any, ...]], events: dict[int, int]) -> SessionRow:
    """Return one session from its parts, the main file's first."""
    main = parts[0]
    calls: dict[str, int] = {}
    for part in parts:
        for name, count in json.loads(part[13]).items():
            calls[name] = calls.get(name, 0) + count
    first = [part[11] for part in parts if part[11] is not None]
    last = [part[12] for part in parts if part[12] is not None]
    grown = [part[18] for part in parts if part[18] is not None]
    restarts = sorted((at, reason) for part in parts for at, reason in json.loads(part[20]))
    return SessionRow(
        host=main[1],
        session_id=main[2],
        parent=main[3],
        kind=main[4],
        cwds=tuple(json.loads(main[5])),
        records=sum(part[7] for part in parts),
        unreadable=sum(part[8] for part in parts),
        user_turns=sum(part[9] for part in parts),
        assistant_turns=sum(part[10] for part in parts),
        first_at=from_ms(min(first, default=None)),
        last_at=from_ms(max(last, default=None)),
        tool_calls=dict(sorted(calls.items(), key=lambda item: (-item[1], item[0]))),
        skill_events=events.get(main[0], 0),
        source_id=main[14],
        path=main[15],
        offset=main[16],
        size=main[17],
        restarts=tuple((_at(at), reason) for at, reason in restarts),
        settled_from=from_ms(max(last + grown, default=None)),
        present=any(part[19] is None for part in parts),
    )


def _at(ms: int) -> datetime:
    at = from_ms(ms)
    assert at is not None
    return at

"""Skills, runs, proposals and actions in SQLite: the real `CurationStore`."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from curatord.adapters.store.database import Database, from_ms, to_ms
from curatord.core.cheap import dataclass, field, fields, replace
from curatord.core.curation import WITHDRAWN, ActionRow, HistoryRow, Proposal, RunRow
from curatord.core.skill_record import SkillRecord
from curatord.core.small_facts import FORGOTTEN_UNTIL, PAUSED_SINCE, REBUILT_FROM, REFILLED_AT
from curatord.core.values import (
    ActionId,
    Fingerprint,
    Importance,
    LibraryName,
    Mode,
    Outcome,
    RelPath,
    RunId,
    SkillKey,
    State,
    Trigger,
    skill_key,
)
from curatord.errors import StateCorruptError

if TYPE_CHECKING:
    from curatord.core.journal import ArchiveItem, JournalEntry, RecordChange
    from curatord.ports.decisions import KnownDecisions, Rejection

# What actions and proposals hold is imported where it is read: `status` asks for neither, and must start quickly.

__all__ = ["SqliteCurationStore"]

_FIELDS = tuple(spec.name for spec in fields(SkillRecord) if spec.name != "key")
_TIMES = frozenset(name for name in _FIELDS if name.endswith(("_at", "_since")))
# What a scan may write of a skill that is known; the rest is changed by actions, in the transaction that records them,
# so that a scan which began before a pin cannot take it back.
_SCANNED = (
    "born_at",
    "born_from",
    "managed_since",
    "trusted_fingerprint",
    "seen_fingerprint",
    "seen_at",
    "missing_since",
)


def _nothing(_name: str) -> None:
    """Do nothing: the hook outside of tests."""


@dataclass(slots=True, kw_only=True)
class SqliteCurationStore:
    """The real `CurationStore`; *hook* is told before and after each commit, where tests cut."""

    database: Database
    hook: Callable[[str], None] = field(default=_nothing)

    # -- skills

    def skill(self, key: SkillKey) -> SkillRecord | None:
        """See `CurationStore.skill`."""
        with self._reading() as db:
            row = db.execute(f"{_SELECT_SKILLS} WHERE library = ? AND rel = ?", (key.library, key.rel)).fetchone()
        return None if row is None else _record(row, _Times())

    def skills(self, library: LibraryName | None = None) -> dict[SkillKey, SkillRecord]:
        """See `CurationStore.skills`."""
        where, given = ("", ()) if library is None else (" WHERE library = ?", (library,))
        with self._reading() as db:
            rows = db.execute(f"{_SELECT_SKILLS}{where} ORDER BY library, rel", given).fetchall()
        times = _Times()
        records = [_record(row, times) for row in rows]
        return {record.key: record for record in records}

    def put_skills(self, records: Iterable[SkillRecord], *, gone: Iterable[SkillKey] = ()) -> None:
        """See `CurationStore.put_skills`."""
        records = list(records)
        with self._writing() as db:
            known = {
                (library, rel): first_seen_at
                for library, rel, first_seen_at in db.execute("SELECT library, rel, first_seen_at FROM skills")
            }
            same = [r for r in records if known.get((r.key.library, r.key.rel)) == to_ms(r.first_seen_at)]
            _put(db, [r for r in records if known.get((r.key.library, r.key.rel)) != to_ms(r.first_seen_at)])
            assignments = ", ".join(f"{name} = ?" for name in _SCANNED)
            db.executemany(
                f"UPDATE skills SET {assignments} WHERE library = ? AND rel = ?",  # noqa: S608  # our own field names
                [(*(_values(r)[name] for name in _SCANNED), r.key.library, r.key.rel) for r in same],
            )
            db.executemany("DELETE FROM skills WHERE library = ? AND rel = ?", [(key.library, key.rel) for key in gone])

    def history(self, key: SkillKey) -> tuple[HistoryRow, ...]:
        """See `CurationStore.history`."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT at, from_state, to_state, reason, run_id FROM history"
                " WHERE library = ? AND rel = ? ORDER BY at, id",
                (key.library, key.rel),
            ).fetchall()
        return tuple(
            HistoryRow(
                key=key,
                at=_time(at),
                from_state=None if from_state is None else State(from_state),
                to_state=State(to_state),
                reason=reason,
                run_id=run_id,
            )
            for at, from_state, to_state, reason, run_id in rows
        )

    # -- actions and archive

    def commit_action(self, entry: JournalEntry) -> None:
        """See `CurationStore.commit_action`."""
        from curatord.core.journal import entry_to_json
        from curatord.ports.decisions import Rejection

        with self._writing() as db:
            if _has(db, entry.action_id):
                return
            for change in entry.changes:
                _apply_change(db, change)
            for moved in entry.archive:
                for item in (moved.before, moved.after):
                    if item is not None:
                        db.execute("DELETE FROM archive WHERE library = ? AND path = ?", (item.key.library, item.path))
                if moved.after is not None:
                    _put_item(db, moved.after)
            db.executemany(
                "INSERT INTO history (library, rel, at, from_state, to_state, reason, run_id)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (line.key.library, line.key.rel, to_ms(entry.at), line.from_state, line.to_state, line.reason,
                     entry.run_id)
                    for line in entry.history
                ],
            )  # fmt: skip
            seq = db.execute(
                "INSERT INTO actions (action_id, run_id, kind, library, targets, summary, reason, at, status, undoes,"
                " proposal, entry) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'done', ?, ?, ?)",
                (
                    entry.action_id, entry.run_id, entry.kind, entry.library, _names(entry.targets), entry.summary,
                    entry.reason, to_ms(entry.at), entry.undoes, entry.proposal, entry_to_json(entry),
                ),
            ).lastrowid  # fmt: skip
            db.executemany(
                "INSERT OR IGNORE INTO action_targets (library, rel, seq) VALUES (?, ?, ?)",
                [(key.library, key.rel, seq) for key in entry.targets],
            )
            if entry.proposal is not None and entry.undoes is None:
                db.execute(
                    "UPDATE proposals SET status = 'approved', decided_at = ? WHERE id = ? AND status = 'pending'",
                    (to_ms(entry.at), entry.proposal),
                )
            if entry.undoes is not None:
                db.execute(
                    "UPDATE actions SET status = 'undone', undone_by = ? WHERE action_id = ?",
                    (entry.action_id, entry.undoes),
                )
                if entry.proposal is not None:
                    _reject(db, Rejection(id=entry.proposal, at=entry.at, reason=entry.reason))
                    db.execute(
                        "UPDATE proposals SET status = 'rejected', decided_at = ?, decided_reason = ? WHERE id = ?",
                        (to_ms(entry.at), entry.reason, entry.proposal),
                    )

    def has_action(self, action_id: ActionId) -> bool:
        """See `CurationStore.has_action`."""
        with self._reading() as db:
            return _has(db, action_id)

    def action(self, action_id: ActionId) -> ActionRow | None:
        """See `CurationStore.action`."""
        rows = self._actions("WHERE action_id = ?", (action_id,), None)
        return rows[0] if rows else None

    def actions(
        self,
        *,
        run_id: RunId | None = None,
        proposal: str | None = None,
        key: SkillKey | None = None,
        limit: int | None = None,
    ) -> tuple[ActionRow, ...]:
        """See `CurationStore.actions`."""
        where: list[str] = []
        given: list[str] = []
        if run_id is not None:
            where.append("run_id = ?")
            given.append(run_id)
        if proposal is not None:
            where.append("proposal = ?")
            given.append(proposal)
        if key is not None:
            where.append("seq IN (SELECT seq FROM action_targets WHERE library = ? AND rel = ?)")
            given += [key.library, key.rel]
        return self._actions(f"WHERE {' AND '.join(where)}" if where else "", tuple(given), limit)

    def _actions(self, where: str, given: tuple[str, ...], limit: int | None) -> tuple[ActionRow, ...]:
        with self._reading() as db:
            rows = db.execute(
                f"{_SELECT_ACTIONS} {where} ORDER BY seq DESC LIMIT ?",
                (*given, -1 if limit is None else limit),
            ).fetchall()
        return tuple(
            ActionRow(
                seq=seq,
                status=status,
                undone_by=None if undone_by is None else ActionId(undone_by),
                entry=_entry(entry),
            )
            for seq, status, undone_by, entry in rows
        )

    def last_run_to_undo(self) -> RunId | None:
        """See `CurationStore.last_run_to_undo`."""
        with self._reading() as db:
            row = db.execute(
                "SELECT run_id FROM actions WHERE status = 'done' AND undoes IS NULL AND run_id IS NOT NULL"
                " ORDER BY seq DESC LIMIT 1"
            ).fetchone()
        return None if row is None else RunId(row[0])

    def archive(self, library: LibraryName | None = None) -> tuple[ArchiveItem, ...]:
        """See `CurationStore.archive`."""
        from curatord.core.journal import ArchiveItem

        where, given = ("", ()) if library is None else ("WHERE library = ?", (library,))
        with self._reading() as db:
            rows = db.execute(
                f"{_SELECT_ARCHIVE} {where} ORDER BY at DESC, library, path",
                given,
            ).fetchall()
        return tuple(
            ArchiveItem(
                key=_key(library_, rel),
                path=RelPath(path),
                at=_time(at),
                reason=reason,
                action_id=ActionId(action_id),
                absorbed_into=absorbed_into,
                fingerprint=None if fingerprint is None else Fingerprint(fingerprint),
            )
            for library_, rel, path, at, reason, action_id, absorbed_into, fingerprint in rows
        )

    def forget_actions(self, keep: int) -> int:
        """See `CurationStore.forget_actions`."""
        with self._writing() as db:
            found = db.execute(
                "SELECT seq FROM actions ORDER BY seq DESC LIMIT 1 OFFSET ?", (max(keep, 1) - 1,)
            ).fetchone()
            if found is None:
                return 0
            # The oldest of those that are kept for their number alone.
            old = db.execute(_SELECT_TOO_OLD, found).fetchall()
            if not old:
                return 0
            db.executemany("DELETE FROM action_targets WHERE seq = ?", [(seq,) for seq, _ in old])
            db.executemany("DELETE FROM actions WHERE seq = ?", [(seq,) for seq, _ in old])
            until = _time(max(at for _, at in old)).isoformat()
            known = db.execute("SELECT value FROM meta WHERE key = ?", (FORGOTTEN_UNTIL,)).fetchone()
            if known is None or known[0] < until:
                db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (FORGOTTEN_UNTIL, until))
        return len(old)

    def blobs_in_use(self) -> frozenset[str]:
        """See `CurationStore.blobs_in_use`."""
        from curatord.core.journal import WriteFile

        used: set[str] = set()
        with self._reading() as db:
            for (entry,) in db.execute("SELECT entry FROM actions"):
                for step in _entry(entry).steps:
                    if isinstance(step, WriteFile):
                        used.update(image.blob for image in (step.before, step.after) if image is not None)
        return frozenset(used)

    # -- runs

    def put_run(self, run: RunRow) -> None:
        """See `CurationStore.put_run`."""
        with self._writing() as db:
            db.execute(
                "INSERT INTO runs"
                " (run_id, trigger, dry_run, mode, outcome, started_at, finished_at, duration_s, summary, whole, seq)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(seq), 0) + 1 FROM runs))"
                " ON CONFLICT (run_id) DO UPDATE SET outcome = excluded.outcome,"
                " finished_at = excluded.finished_at, duration_s = excluded.duration_s, summary = excluded.summary",
                (
                    run.run_id, run.trigger, run.dry_run, run.mode, run.outcome, to_ms(run.started_at),
                    to_ms(run.finished_at), run.duration_s, run.summary, run.whole,
                ),
            )  # fmt: skip

    def forget_runs(self, run_ids: Iterable[RunId]) -> None:
        """See `CurationStore.forget_runs`."""
        with self._writing() as db:
            db.executemany("DELETE FROM runs WHERE run_id = ?", [(run_id,) for run_id in run_ids])

    def run(self, run_id: RunId) -> RunRow | None:
        """See `CurationStore.run`."""
        found = self._runs("WHERE run_id = ?", (run_id,), 1)
        return found[0] if found else None

    def runs(self, limit: int | None = None) -> tuple[RunRow, ...]:
        """See `CurationStore.runs`."""
        return self._runs("", (), limit)

    def _runs(self, where: str, given: tuple[str, ...], limit: int | None) -> tuple[RunRow, ...]:
        with self._reading() as db:
            rows = db.execute(
                f"{_SELECT_RUNS} {where} ORDER BY seq DESC LIMIT ?",
                (*given, -1 if limit is None else limit),
            ).fetchall()
        return tuple(
            RunRow(
                run_id=RunId(run_id),
                trigger=Trigger(trigger),
                dry_run=bool(dry_run),
                mode=Mode(mode),
                outcome=Outcome(outcome),
                started_at=_time(started_at),
                finished_at=from_ms(finished_at),
                duration_s=duration_s,
                summary=summary,
                whole=bool(whole),
            )
            for run_id, trigger, dry_run, mode, outcome, started_at, finished_at, duration_s, summary, whole in rows
        )

    def interrupt_runs(self, now: datetime) -> tuple[RunId, ...]:
        """See `CurationStore.interrupt_runs`."""
        with self._writing() as db:
            found = [RunId(row[0]) for row in db.execute("SELECT run_id FROM runs WHERE outcome = 'running'")]
            db.execute(
                "UPDATE runs SET outcome = 'interrupted', finished_at = ?, summary = 'it was killed'"
                " WHERE outcome = 'running'",
                (to_ms(now),),
            )
        return tuple(found)

    def last_finished(self) -> RunRow | None:
        """See `CurationStore.last_finished`."""
        found = self._runs(
            "WHERE whole AND dry_run = 0 AND trigger <> 'distil'"
            " AND outcome NOT IN ('running', 'failed', 'interrupted')",
            (),
            1,
        )
        return found[0] if found else None

    # -- proposals

    def propose(self, proposal: Proposal) -> str:
        """See `CurationStore.propose`."""
        from curatord.core.plan import actions_to_json

        with self._writing() as db:
            if db.execute("SELECT 1 FROM rejections WHERE id = ?", (proposal.id,)).fetchone():
                return "rejected"
            known = db.execute("SELECT status FROM proposals WHERE id = ?", (proposal.id,)).fetchone()
            # An approved one that is due again, after it was restored or undone, is a new question.
            if known is not None and known[0] in ("pending", "rejected"):
                return str(known[0])
            db.execute(
                "UPDATE proposals SET status = 'superseded', decided_at = ?, decided_reason = ?"
                " WHERE status = 'pending' AND library = ? AND kind = ? AND targets = ?",
                (
                    to_ms(proposal.created_at), f"replaced by {proposal.id}", proposal.library, proposal.kind,
                    _names(sorted(proposal.targets)),
                ),
            )  # fmt: skip
            db.execute(
                "INSERT OR REPLACE INTO proposals (id, kind, library, targets, summary, reason, created_at, run_id,"
                " diff, actions, status) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')",
                (
                    proposal.id, proposal.kind, proposal.library, _names(sorted(proposal.targets)), proposal.summary,
                    proposal.reason, to_ms(proposal.created_at), proposal.run_id, proposal.diff,
                    actions_to_json(proposal.actions),
                ),
            )  # fmt: skip
        return "new"

    def proposal(self, proposal_id: str) -> Proposal | None:
        """See `CurationStore.proposal`."""
        if not proposal_id:
            return None
        escaped = proposal_id.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        found = self._proposals("WHERE id LIKE ? ESCAPE '\\'", (f"{escaped}%",))
        exact = [proposal for proposal in found if proposal.id == proposal_id]
        return exact[0] if exact else found[0] if len(found) == 1 else None

    def proposals(self, status: str | None = "pending") -> tuple[Proposal, ...]:
        """See `CurationStore.proposals`."""
        return self._proposals("", ()) if status is None else self._proposals("WHERE status = ?", (status,))

    def withdrawn(self, *, since: datetime) -> tuple[Proposal, ...]:
        """See `CurationStore.withdrawn`."""
        return self._proposals(
            "WHERE status = 'superseded' AND decided_at >= ? AND substr(decided_reason, 1, ?) = ?",
            (to_ms(since), len(WITHDRAWN), WITHDRAWN),
        )

    def _proposals(self, where: str, given: tuple[str | int | None, ...]) -> tuple[Proposal, ...]:
        with self._reading() as db:
            rows = db.execute(
                f"{_SELECT_PROPOSALS} {where} ORDER BY created_at, id",
                given,
            ).fetchall()
        return tuple(map(_proposal, rows))

    def decide(self, proposal_id: str, status: str, *, now: datetime, reason: str = "") -> bool:
        """See `CurationStore.decide`."""
        from curatord.ports.decisions import Rejection

        with self._writing() as db:
            known = db.execute("SELECT status FROM proposals WHERE id = ?", (proposal_id,)).fetchone()
            if known is not None and known[0] not in ("pending", status):
                return False
            db.execute(
                "UPDATE proposals SET status = ?, decided_at = ?, decided_reason = ? WHERE id = ?",
                (status, to_ms(now), reason, proposal_id),
            )
            if status == "rejected":
                _reject(db, Rejection(id=proposal_id, at=now, reason=reason))
        return True

    def reject_id(self, rejection: Rejection) -> None:
        """See `CurationStore.reject_id`."""
        with self._writing() as db:
            _reject(db, rejection)

    def rejections(self) -> dict[str, Rejection]:
        """See `CurationStore.rejections`."""
        from curatord.ports.decisions import Rejection

        with self._reading() as db:
            rows = db.execute("SELECT id, at, reason FROM rejections ORDER BY id").fetchall()
        return {id_: Rejection(id=id_, at=_time(at), reason=reason) for id_, at, reason in rows}

    # -- small facts

    def meta(self, key: str) -> str | None:
        """See `CurationStore.meta`."""
        with self._reading() as db:
            row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str | None) -> None:
        """See `CurationStore.set_meta`."""
        with self._writing() as db:
            if value is None:
                db.execute("DELETE FROM meta WHERE key = ?", (key,))
            else:
                db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    def refill(self, known: KnownDecisions, *, now: datetime, rebuilt_from: str | None = None) -> int:
        """See `CurationStore.refill`."""
        count = 0
        with self._writing() as db:
            for name, value in (
                (REFILLED_AT, now.isoformat()),
                (PAUSED_SINCE, known.paused_since),
                (REBUILT_FROM, rebuilt_from),
            ):
                if value is not None:
                    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (name, value))
            for key, decision in sorted(known.skills.items()):
                row = db.execute(f"{_SELECT_SKILLS} WHERE library = ? AND rel = ?", (key.library, key.rel)).fetchone()
                have = (
                    SkillRecord(key=key, state_since=now, first_seen_at=now, born_at=now)
                    if row is None
                    else _record(row, _Times())
                )
                want = replace(
                    have,
                    owner=decision.owner,
                    owner_at=decision.owner_at,
                    pinned=decision.pinned,
                    importance=decision.importance,
                )
                if row is None or want != have:
                    _put(db, (want,))
                    count += 1
            for rejection in known.rejected.values():
                count += _reject(db, rejection)
            for item in known.archive:
                given = (item.key.library, item.path)
                if db.execute("SELECT 1 FROM archive WHERE library = ? AND path = ?", given).fetchone() is None:
                    _put_item(db, item)
                    count += 1
        return count

    # -- how it is reached

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self.database.connection
        except sqlite3.Error as error:
            raise self.database.failure(error) from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self.database.transaction() as connection:
                yield connection
                self.hook("commit")
            self.hook("commit.done")
        except sqlite3.Error as error:
            raise self.database.failure(error) from error


_SELECT_SKILLS = (  # in the order of `_record`
    "SELECT library, rel, state, state_since, stale_since, first_seen_at, born_at, born_from, restored_at, pinned,"
    " importance, owner, owner_at, managed_since, trusted_fingerprint, seen_fingerprint, seen_at, missing_since,"
    " archived_at, archive_path, archive_reason, absorbed_into FROM skills"
)
_SELECT_TOO_OLD = """
    WITH stays AS (
        SELECT seq, run_id, proposal FROM actions WHERE seq >= ? OR action_id IN (SELECT action_id FROM archive)
    )
    SELECT seq, at FROM actions
    WHERE seq NOT IN (SELECT seq FROM stays)
    AND (run_id IS NULL OR run_id NOT IN (SELECT run_id FROM stays WHERE run_id IS NOT NULL))
    AND (proposal IS NULL OR proposal NOT IN (SELECT proposal FROM stays WHERE proposal IS NOT NULL))
"""
_SELECT_ACTIONS = "SELECT seq, status, undone_by, entry FROM actions"
_SELECT_ARCHIVE = "SELECT library, rel, path, at, reason, action_id, absorbed_into, fingerprint FROM archive"
_SELECT_RUNS = (
    "SELECT run_id, trigger, dry_run, mode, outcome, started_at, finished_at, duration_s, summary, whole FROM runs"
)
_SELECT_PROPOSALS = (
    "SELECT id, kind, library, targets, summary, reason, created_at, run_id, diff, actions, status,"
    " decided_at, decided_reason FROM proposals"
)


def _time(ms: int) -> datetime:
    at = from_ms(ms)
    assert at is not None, "the column is NOT NULL"
    return at


def _key(library: str, rel: str) -> SkillKey:
    return SkillKey(library=LibraryName(library), rel=RelPath(rel))


def _names(keys: Iterable[SkillKey]) -> str:
    import msgspec

    return msgspec.json.encode([key.rel for key in keys]).decode()


_STATES = {state.value: state for state in State}
_IMPORTANCES = {importance.value: importance for importance in Importance}


class _Times(dict[Any, Any]):
    """What milliseconds, or None, were read as: thousands of skills share a few times, those of scans."""

    def __missing__(self, ms: Any) -> Any:
        at = self[ms] = from_ms(ms)
        return at


def _record(row: tuple[Any, ...], times: _Times) -> SkillRecord:
    """Return the record of a row of `_SELECT_SKILLS`, column by column, since a run reads thousands."""
    (
        library, rel, state, state_since, stale_since, first_seen_at, born_at, born_from, restored_at, pinned,
        importance, owner, owner_at, managed_since, trusted_fingerprint, seen_fingerprint, seen_at, missing_since,
        archived_at, archive_path, archive_reason, absorbed_into,
    ) = row  # fmt: skip
    return SkillRecord(
        key=skill_key(library, rel),
        state=_STATES[state],
        state_since=times[state_since],
        stale_since=times[stale_since],
        first_seen_at=times[first_seen_at],
        born_at=times[born_at],
        born_from=born_from,
        restored_at=times[restored_at],
        pinned=bool(pinned),
        importance=_IMPORTANCES[importance],
        owner=owner,
        owner_at=times[owner_at],
        managed_since=times[managed_since],
        trusted_fingerprint=trusted_fingerprint,
        seen_fingerprint=seen_fingerprint,
        seen_at=times[seen_at],
        missing_since=times[missing_since],
        archived_at=times[archived_at],
        archive_path=archive_path,
        archive_reason=archive_reason,
        absorbed_into=absorbed_into,
    )


def _values(record: SkillRecord) -> dict[str, Any]:
    return {name: to_ms(getattr(record, name)) if name in _TIMES else getattr(record, name) for name in _FIELDS}


def _put(db: sqlite3.Connection, records: Iterable[SkillRecord]) -> None:
    columns = ("library", "rel", "name", *_FIELDS)
    db.executemany(
        f"INSERT OR REPLACE INTO skills ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",  # noqa: S608  # our own names
        [(r.key.library, r.key.rel, r.key.name, *_values(r).values()) for r in records],
    )


def _apply_change(db: sqlite3.Connection, change: RecordChange) -> None:
    """Write the fields that differ, so that what a scan wrote meanwhile stays; a lost row is made whole."""
    key = change.key
    row = db.execute("SELECT 1 FROM skills WHERE library = ? AND rel = ?", (key.library, key.rel)).fetchone()
    if row is None or change.before is None:
        _put(db, (change.after,))
        return
    before, after = _values(change.before), _values(change.after)
    changed: Mapping[str, Any] = {name: after[name] for name in _FIELDS if after[name] != before[name]}
    if changed:
        assignments = ", ".join(f"{name} = ?" for name in changed)
        db.execute(
            f"UPDATE skills SET {assignments} WHERE library = ? AND rel = ?",  # noqa: S608  # field names of our own class
            (*changed.values(), key.library, key.rel),
        )


def _put_item(db: sqlite3.Connection, item: ArchiveItem) -> None:
    db.execute(
        "INSERT OR REPLACE INTO archive (library, path, rel, name, at, reason, action_id, absorbed_into, fingerprint)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            item.key.library, item.path, item.key.rel, item.key.name, to_ms(item.at), item.reason, item.action_id,
            item.absorbed_into, item.fingerprint,
        ),
    )  # fmt: skip


def _reject(db: sqlite3.Connection, rejection: Rejection) -> int:
    return db.execute(
        "INSERT OR IGNORE INTO rejections (id, at, reason) VALUES (?, ?, ?)",
        (rejection.id, to_ms(rejection.at), rejection.reason),
    ).rowcount


def _has(db: sqlite3.Connection, action_id: ActionId) -> bool:
    return db.execute("SELECT 1 FROM actions WHERE action_id = ?", (action_id,)).fetchone() is not None


def _entry(data: bytes) -> JournalEntry:
    from curatord.core.journal import entry_from_json

    try:
        return entry_from_json(data)
    except ValueError as error:
        raise StateCorruptError(f"a recorded action cannot be read: {error}") from error


def _proposal(row: tuple[Any, ...]) -> Proposal:
    import msgspec

    from curatord.core.plan import actions_from_json

    library = row[2]
    try:
        actions = actions_from_json(row[9])
        rels = msgspec.json.decode(row[3], type=list[str])
    except ValueError as error:
        raise StateCorruptError(f"proposal {row[0]} cannot be read: {error}") from error
    return Proposal(
        id=row[0],
        kind=row[1],
        library=LibraryName(library),
        targets=tuple(_key(library, rel) for rel in rels),
        summary=row[4],
        reason=row[5],
        created_at=_time(row[6]),
        run_id=row[7],
        diff=row[8],
        actions=actions,
        status=row[10],
        decided_at=from_ms(row[11]),
        decided_reason=row[12],
    )

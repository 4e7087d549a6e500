"""Tables of the curation: skills, runs, actions, proposals, small facts. Times are ms since 1970, UTC."""

from __future__ import annotations

__all__ = ["CURATION_1"]

CURATION_1: tuple[str, ...] = (
    """
    CREATE TABLE meta (
        key TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE skills (
        library TEXT NOT NULL,
        rel TEXT NOT NULL,
        name TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('active', 'stale', 'archived')),
        state_since INTEGER NOT NULL,
        stale_since INTEGER,
        first_seen_at INTEGER NOT NULL,
        born_at INTEGER NOT NULL,
        born_from TEXT NOT NULL,
        restored_at INTEGER,
        pinned INTEGER NOT NULL DEFAULT 0,
        importance TEXT NOT NULL DEFAULT 'normal',
        owner TEXT,
        owner_at INTEGER,
        managed_since INTEGER,
        trusted_fingerprint TEXT,
        seen_fingerprint TEXT,
        seen_at INTEGER,
        missing_since INTEGER,
        archived_at INTEGER,
        archive_path TEXT,
        archive_reason TEXT,
        absorbed_into TEXT,
        PRIMARY KEY (library, rel)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX skills_by_name ON skills (name)",
    """
    CREATE TABLE history (
        id INTEGER PRIMARY KEY,
        library TEXT NOT NULL,
        rel TEXT NOT NULL,
        at INTEGER NOT NULL,
        from_state TEXT,
        to_state TEXT NOT NULL,
        reason TEXT NOT NULL,
        run_id TEXT
    )
    """,
    "CREATE INDEX history_by_skill ON history (library, rel, at)",
    """
    CREATE TABLE runs (
        run_id TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,
        trigger TEXT NOT NULL,
        dry_run INTEGER NOT NULL,
        mode TEXT NOT NULL,
        outcome TEXT NOT NULL,
        started_at INTEGER NOT NULL,
        finished_at INTEGER,
        duration_s REAL,
        summary TEXT NOT NULL DEFAULT '',
        whole INTEGER NOT NULL DEFAULT 1
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE actions (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        action_id TEXT NOT NULL UNIQUE,
        run_id TEXT,
        kind TEXT NOT NULL,
        library TEXT NOT NULL,
        targets TEXT NOT NULL,
        summary TEXT NOT NULL,
        reason TEXT NOT NULL,
        at INTEGER NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('done', 'undone')),
        undone_by TEXT,
        undoes TEXT,
        proposal TEXT,
        entry BLOB NOT NULL
    )
    """,
    "CREATE INDEX actions_by_proposal ON actions (proposal) WHERE proposal IS NOT NULL",
    "CREATE INDEX actions_by_run ON actions (run_id)",
    # Which skills an action touched, so that the newest of one skill is found without reading every entry.
    """
    CREATE TABLE action_targets (
        library TEXT NOT NULL,
        rel TEXT NOT NULL,
        seq INTEGER NOT NULL REFERENCES actions (seq),
        PRIMARY KEY (library, rel, seq)
    ) WITHOUT ROWID
    """,
    # A package in an archive, and where it came from. It has its own table, since its old path may be taken by a new
    # skill of the same name, and one name may be archived many times.
    """
    CREATE TABLE archive (
        library TEXT NOT NULL,
        path TEXT NOT NULL,
        rel TEXT NOT NULL,
        name TEXT NOT NULL,
        at INTEGER NOT NULL,
        reason TEXT NOT NULL,
        action_id TEXT NOT NULL,
        absorbed_into TEXT,
        fingerprint TEXT,
        PRIMARY KEY (library, path)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX archive_by_name ON archive (name)",
    # Ids that must not be proposed again, also those of proposals that were applied without being asked for.
    """
    CREATE TABLE rejections (
        id TEXT PRIMARY KEY,
        at INTEGER NOT NULL,
        reason TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE proposals (
        id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        library TEXT NOT NULL,
        targets TEXT NOT NULL,
        summary TEXT NOT NULL,
        reason TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        run_id TEXT,
        diff TEXT NOT NULL,
        actions BLOB NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'superseded')),
        decided_at INTEGER,
        decided_reason TEXT
    ) WITHOUT ROWID
    """,
    "CREATE INDEX proposals_by_status ON proposals (status)",
)

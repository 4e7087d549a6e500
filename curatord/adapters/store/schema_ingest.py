"""
Tables of the ingest: what was read of which transcript, and what it said. Times are ms since 1970, UTC.

`files` holds one row a file that was ever seen, known by `head`, device and inode rather than by path; `gone_at` says
that it is no longer there, its counts stay. `parts` is what one file says about one session: a session's totals are
sums over its parts, so a file can be moved, restarted or gone without touching another's. `kin` are files whose records
this one repeats: its own keys lack those, so whoever shares with it shares with them; `copies`
are the newest of those that repeat it, since a mirror gets each later record too. `keys` and `anchors`: see
`core/transcript/ids.py`; an anchor's key is salted with the host, since copies count once per host. `hours` and
`days` are per source, over sessions that count: when somebody worked, and turns of the model.
"""

from __future__ import annotations

__all__ = ["INGEST_1", "INGEST_2"]

INGEST_1: tuple[str, ...] = (
    """
    CREATE TABLE sources (
        id INTEGER PRIMARY KEY,
        host TEXT NOT NULL,
        path TEXT NOT NULL,
        first_seen_at INTEGER NOT NULL,
        scanned_at INTEGER,
        complete_at INTEGER,
        testifies_from INTEGER,
        present INTEGER NOT NULL DEFAULT 0,
        oversize INTEGER NOT NULL DEFAULT 0,
        repeated INTEGER NOT NULL DEFAULT 0,
        naive_times INTEGER NOT NULL DEFAULT 0,
        future_times INTEGER NOT NULL DEFAULT 0,
        unknown TEXT NOT NULL DEFAULT '{}',
        versions TEXT NOT NULL DEFAULT '[]',
        problems TEXT NOT NULL DEFAULT '[]',
        UNIQUE (host, path)
    )
    """,
    """
    CREATE TABLE files (
        id INTEGER PRIMARY KEY,
        source INTEGER NOT NULL REFERENCES sources (id),
        path TEXT NOT NULL,
        dev INTEGER NOT NULL,
        ino INTEGER NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        offset INTEGER NOT NULL,
        head BLOB NOT NULL,
        tail BLOB NOT NULL,
        state BLOB NOT NULL,
        waiting INTEGER NOT NULL DEFAULT 0,
        grown_at INTEGER,
        gone_at INTEGER,
        failures INTEGER NOT NULL DEFAULT 0,
        retry_at INTEGER,
        error TEXT,
        bad TEXT NOT NULL DEFAULT '[]',
        kin TEXT NOT NULL DEFAULT '[]',
        copies TEXT NOT NULL DEFAULT '[]',
        restarts TEXT NOT NULL DEFAULT '[]'
    )
    """,
    "CREATE INDEX files_by_path ON files (source, path)",
    "CREATE INDEX files_by_head ON files (head)",
    "CREATE INDEX files_by_inode ON files (ino)",
    "CREATE INDEX files_gone ON files (source) WHERE gone_at IS NOT NULL",
    """
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        host TEXT NOT NULL,
        session_id TEXT NOT NULL,
        parent TEXT,
        kind TEXT NOT NULL,
        cwds TEXT NOT NULL DEFAULT '[]',
        UNIQUE (host, session_id)
    )
    """,
    """
    CREATE TABLE parts (
        file INTEGER NOT NULL REFERENCES files (id),
        session INTEGER NOT NULL REFERENCES sessions (id),
        side INTEGER NOT NULL,
        records INTEGER NOT NULL,
        unreadable INTEGER NOT NULL,
        user_turns INTEGER NOT NULL,
        assistant_turns INTEGER NOT NULL,
        first_at INTEGER,
        last_at INTEGER,
        tool_calls TEXT NOT NULL,
        PRIMARY KEY (file, session)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX parts_by_session ON parts (session)",
    """
    CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (id),
        at INTEGER NOT NULL,
        skill TEXT NOT NULL,
        kind TEXT NOT NULL,
        via TEXT NOT NULL,
        path TEXT,
        cwd TEXT,
        ref TEXT,
        estimated INTEGER NOT NULL DEFAULT 0
    )
    """,
    "CREATE INDEX events_by_skill ON events (skill, at)",
    "CREATE INDEX events_by_session ON events (session)",
    """
    CREATE TABLE keys (
        file INTEGER NOT NULL REFERENCES files (id),
        seq INTEGER NOT NULL,
        keys BLOB NOT NULL,
        PRIMARY KEY (file, seq)
    )
    """,
    """
    CREATE TABLE anchors (
        key INTEGER PRIMARY KEY,
        file INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE hours (
        source INTEGER NOT NULL,
        hour INTEGER NOT NULL,
        first_at INTEGER NOT NULL,
        last_at INTEGER NOT NULL,
        PRIMARY KEY (source, hour)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE days (
        source INTEGER NOT NULL,
        day INTEGER NOT NULL,
        turns INTEGER NOT NULL,
        PRIMARY KEY (source, day)
    ) WITHOUT ROWID
    """,
)

INGEST_2: tuple[str, ...] = ("CREATE INDEX files_left ON files (source) WHERE gone_at IS NOT NULL AND waiting",)

"""
Tables of distilling: which session was looked at up to where, what came of it, and lessons seen once. Times are ms
since 1970, UTC.

`distil_sessions` has a row for every session that was ever read: a trigger on `parts` makes it, and puts it back into
the queue (`look_at` 0) whenever something of the session was read. `look_at` is when somebody should next ask whether
it is due, NULL: not before it grows; `due` orders those that were found to be, `verdict` and `why` are the answer in
words. `since` is the newest record at the first growth after the last look, which stands for its oldest unreviewed
one. `touches` counts what the trigger did, so that an answer to an older state of the session does not take it out of
the queue.

`waits` counts in a row how often something that is no fault of the session stood in the way, so that each pause is
longer than the one before.

The rest of the row is the last look: its outcome, how far it went (`through`, a record's time; `offsets`, per file of
the session its offset and the hash of its head), the counts up to there, and failures since. `answer` is a model's
reply that was decided on and not settled yet: a start after a kill goes on from it and asks nothing again.

`distil_log` is one row an outcome. `candidates` are lessons that one session taught and another has to confirm.

The trigger has no conflict clause, since the policy of the statement that fires it (`INSERT OR REPLACE`) would take
its place.
"""

from __future__ import annotations

__all__ = ["DISTIL_1", "DISTIL_2"]

DISTIL_1: tuple[str, ...] = (
    """
    CREATE TABLE distil_sessions (
        session INTEGER PRIMARY KEY REFERENCES sessions (id),
        look_at INTEGER,
        due INTEGER,
        verdict TEXT,
        why TEXT NOT NULL DEFAULT '',
        since INTEGER,
        touches INTEGER NOT NULL DEFAULT 0,
        state TEXT,
        reason TEXT NOT NULL DEFAULT '',
        at INTEGER,
        through INTEGER,
        user_turns INTEGER NOT NULL DEFAULT 0,
        tool_calls INTEGER NOT NULL DEFAULT 0,
        offsets TEXT NOT NULL DEFAULT '{}',
        failures INTEGER NOT NULL DEFAULT 0,
        retry_at INTEGER,
        aside INTEGER NOT NULL DEFAULT 0,
        looked_at INTEGER,
        answer BLOB
    )
    """,
    "CREATE INDEX distil_queue ON distil_sessions (look_at) WHERE look_at IS NOT NULL",
    "CREATE INDEX distil_due ON distil_sessions (due) WHERE due IS NOT NULL",
    "CREATE INDEX distil_aside ON distil_sessions (session) WHERE aside != 0",
    """
    CREATE TRIGGER parts_to_distil AFTER INSERT ON parts BEGIN
        UPDATE distil_sessions
            SET look_at = 0, touches = touches + 1, since = coalesce(since, NEW.last_at)
            WHERE session = NEW.session;
        INSERT INTO distil_sessions (session, look_at, since)
            SELECT NEW.session, 0, NEW.first_at
            WHERE NOT EXISTS (SELECT 1 FROM distil_sessions WHERE session = NEW.session);
    END
    """,
    """
    INSERT INTO distil_sessions (session, look_at, since)
        SELECT session, 0, min(first_at) FROM parts GROUP BY session
    """,
    """
    CREATE TABLE distil_log (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (id),
        at INTEGER NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        run_id TEXT,
        asked INTEGER NOT NULL DEFAULT 0,
        digest TEXT,
        told TEXT NOT NULL DEFAULT '{}'
    )
    """,
    "CREATE INDEX distil_log_by_time ON distil_log (at)",
    "CREATE INDEX distil_log_by_session ON distil_log (session)",
    """
    CREATE TABLE candidates (
        id TEXT PRIMARY KEY,
        library TEXT NOT NULL,
        name TEXT NOT NULL,
        last_at INTEGER NOT NULL,
        told TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX candidates_by_library ON candidates (library, last_at)",
)

DISTIL_2: tuple[str, ...] = (
    "ALTER TABLE distil_sessions ADD COLUMN waits INTEGER NOT NULL DEFAULT 0",
    # A file that goes or comes back changes what there is to look at, and brings no part.
    """
    CREATE TRIGGER gone_to_distil AFTER UPDATE OF gone_at ON files
    WHEN (OLD.gone_at IS NULL) <> (NEW.gone_at IS NULL) BEGIN
        UPDATE distil_sessions
            SET look_at = 0, touches = touches + 1, since = coalesce(
                since, (SELECT first_at FROM parts WHERE file = NEW.id AND session = distil_sessions.session)
            )
            WHERE session IN (SELECT session FROM parts WHERE file = NEW.id);
    END
    """,
)

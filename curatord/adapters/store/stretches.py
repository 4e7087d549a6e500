"""What was read of each source, by version of the host and UTC day of reading: the ingest writes it, `doctor` asks."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import date

from curatord.core.drift import Stretch, newest_version
from curatord.core.transcript.events import MAX_NAMES, OTHER, Findings

__all__ = ["note_stretches", "stretches_of", "summed"]

MAX_VERSION_CHARS = 80  # it is other people's text
EPOCH_DAY = date(1970, 1, 1).toordinal()


def note_stretches(connection: sqlite3.Connection, source_id: int, found: Sequence[Findings], day: int) -> None:
    """Add what was found to the stretches of the day, by version; a slice with several belongs to the newest."""
    sums: dict[str, tuple[list[int], dict[str, int]]] = {}
    for findings in found:
        versions = findings.versions
        version = (newest_version(versions) if len(versions) > 1 else next(iter(versions), ""))[:MAX_VERSION_CHARS]
        held = sums.get(version)
        if held is None:
            held = sums[version] = ([0, 0, 0], {})
        counts = held[0]
        for tally in findings.sessions.values():
            counts[0] += tally.records
            counts[1] += tally.unreadable
            counts[2] += tally.user_turns + tally.assistant_turns
        if findings.unknown:
            summed(held[1], findings.unknown)
    for version, (counts, unknown) in sums.items():
        key = (source_id, day, version)
        if not (any(counts) or unknown):
            continue
        if unknown:
            before = connection.execute(
                "SELECT unknown FROM stretches WHERE source = ? AND day = ? AND version = ?", key
            ).fetchone()
            unknown = summed(json.loads(before[0]) if before else {}, unknown)
        connection.execute(
            "INSERT INTO stretches VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET records = records +"
            " excluded.records, unreadable = unreadable + excluded.unreadable, turns = turns + excluded.turns,"
            " unknown = CASE excluded.unknown WHEN '{}' THEN unknown ELSE excluded.unknown END",
            (*key, *counts, json.dumps(unknown)),
        )


def stretches_of(connection: sqlite3.Connection, source_id: int) -> tuple[Stretch, ...]:
    """Return what was read of a source by day and version, oldest first."""
    rows = connection.execute(
        "SELECT day, version, records, unreadable, turns, unknown FROM stretches WHERE source = ?"
        " ORDER BY day, version",
        (source_id,),
    )
    return tuple(
        Stretch(date.fromordinal(EPOCH_DAY + day), version, records, unreadable, turns, json.loads(unknown))
        for day, version, records, unreadable, turns, unknown in rows
    )


def summed(into: dict[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Add *more* to *into* and return it; names beyond `MAX_NAMES` are counted together."""
    for name, count in more.items():
        if name not in into and len(into) >= MAX_NAMES:
            name = OTHER
        into[name] = into.get(name, 0) + count
    return into

"""
The plain way to a first scan, to measure ours by: `python -m tests.bench.plain_scan PROJECTS DATABASE`.

It is what the goals were drawn from ("a few dozen lines of prototype"): a read buffer of 1 MiB, one typed decode a line
that makes no object of what is not asked for, and turns with their text, skill events and watermarks into SQLite. It
takes every line for whole and every file for unread, tells no copy of a history from the first, keeps no state for the
next scan, and knows of no record's kind but those two. What it and a scan cost on one machine says what all the rest
costs there; how either stands to other programs depends on the processor.
"""

from __future__ import annotations

import sqlite3
import sys

import msgspec

from tests.bench.sides import MIB, transcripts


class Block(msgspec.Struct, gc=False):
    """One block of a message."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    tool_use_id: str | None = None
    is_error: bool | None = None


class Message(msgspec.Struct, gc=False):
    """What was said."""

    id: str | None = None
    content: str | list[Block] = ""


class Line(msgspec.Struct, gc=False):
    """One record."""

    type: str = ""
    uuid: str | None = None
    sessionId: str | None = None  # noqa: N815 -- the host's name
    timestamp: str | None = None
    cwd: str | None = None
    isMeta: bool | None = None  # noqa: N815 -- the host's name
    message: Message | None = None


class Call(msgspec.Struct, gc=False):
    """What the tool for skills is given."""

    skill: str = ""


def scan(projects: str, database: str) -> None:
    """Read every transcript of *projects* into a new *database*."""
    db = sqlite3.connect(database, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE files (path TEXT PRIMARY KEY, offset INTEGER, records INTEGER, turns INTEGER)")
    db.execute("CREATE TABLE turns (session TEXT, at TEXT, role TEXT, text TEXT)")
    db.execute("CREATE TABLE events (session TEXT, at TEXT, skill TEXT, cwd TEXT, call TEXT)")
    decode, decode_call = msgspec.json.Decoder(Line).decode, msgspec.json.Decoder(Call).decode
    for path in transcripts(projects):
        offset, seen, answers = 0, set(), {}
        turns: list[tuple[object, ...]] = []
        events: list[tuple[object, ...]] = []
        calls: dict[str | None, tuple[object, ...]] = {}
        with open(path, "rb", buffering=MIB) as file:  # noqa: PTH123 -- as barely as can be
            for line in file:
                if line[-1] != 10:
                    break
                offset += len(line)
                try:
                    record = decode(line)
                except msgspec.MsgspecError:
                    continue
                message = record.message
                if record.uuid in seen or message is None:
                    continue
                seen.add(record.uuid)
                content = message.content
                if isinstance(content, str):
                    if not record.isMeta:
                        turns.append((record.sessionId, record.timestamp, record.type, content))
                    continue
                for block in content:
                    if block.type == "text":
                        if record.type == "user" and not record.isMeta:
                            turns.append((record.sessionId, record.timestamp, "user", block.text))
                        elif record.type == "assistant":
                            answers[message.id] = (record.sessionId, record.timestamp, "assistant", block.text)
                    elif block.type == "tool_use" and block.name == "Skill":
                        skill = decode_call(block.input).skill
                        calls[block.id] = (record.sessionId, record.timestamp, skill, record.cwd, block.id)
                    elif block.type == "tool_result" and block.tool_use_id in calls and not block.is_error:
                        events.append(calls.pop(block.tool_use_id))
        db.execute("BEGIN")
        db.execute("INSERT INTO files VALUES (?, ?, ?, ?)", (path, offset, len(seen), len(turns) + len(answers)))
        db.executemany("INSERT INTO turns VALUES (?, ?, ?, ?)", [*turns, *answers.values()])
        db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", events)
        db.execute("COMMIT")
    db.close()


if __name__ == "__main__":
    scan(*sys.argv[1:])

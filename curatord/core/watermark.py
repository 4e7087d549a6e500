"""
Whether a transcript may be read on from its watermark, or must be read anew, and why.

A watermark is good for a file, not for a path. What can go wrong: the file was truncated and written again, replaced by
another under the same name, rewritten in place (a migration, an editor), moved, copied to another file system, or its
inode was given to a new file. Reading on from an old offset would then lose or garble records without anyone noticing.

So a file is recognised by its first record (`head`) and by the bytes just before the watermark (`tail`); device and
inode only say where to look first. Both hashes equal: all that was read is still there, whatever inode or name it
has, and reading goes on. Else it is read from the start under the guard of its own keys, so that what was counted
stays counted once. The weaker promise, where a rewrite takes the stronger one away: records without an id that now
stand behind other neighbours count as new.
"""

from __future__ import annotations

from curatord.core.cheap import dataclass

__all__ = ["Facts", "Restart", "Resume", "Watermark", "resume"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """What is durably counted of a file: all bytes before *offset* (or rows up to it), and what it looked like then."""

    offset: int
    head: bytes
    tail: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the file looks like now; *tail* is of the bytes before the watermark's offset, empty where it ends
    earlier."""

    head: bytes
    tail: bytes


@dataclass(frozen=True, slots=True)
class Resume:
    """Read on from *offset*."""

    offset: int


@dataclass(frozen=True, slots=True)
class Restart:
    """Read from the start, under the guard of what is counted already; *reason* goes into the log and the session."""

    reason: str


def resume(record: Watermark | None, facts: Facts) -> Resume | Restart:
    """
    Return how to read a file of which *record* is known and *facts* are seen.

    A file that was never counted, or of which nothing was counted yet, is read from 0 without this being a restart.
    """
    if record is None or record.offset == 0:
        return Resume(0)
    if record.head and facts.head != record.head:
        return Restart("replaced: its first record is another one" if facts.head else "truncated: it has no record now")
    if not facts.tail:
        return Restart(f"truncated: it ends before offset {record.offset}, up to which it was counted")
    if facts.tail != record.tail:
        return Restart(f"rewritten: the bytes before offset {record.offset} are not those that were counted")
    return Resume(record.offset)

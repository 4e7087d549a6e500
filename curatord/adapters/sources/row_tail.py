"""
Reading a table of another program's database on from the last row that was counted.

Wanted: new rows only, at the cost of a seek, whatever happened to the old ones. A table with a `rowid` gives new rows
the number after the largest there is, so "behind the watermark" is nearly right. What can go wrong: the newest rows are
deleted (a revert, a session thrown away) and others get their numbers; the table is rebuilt (`VACUUM`, a repair) and
all numbers change; the file is another one. Then rows at or below the watermark are new, and nobody said so.

The plan: some rows that were counted are remembered with a mark of what they are (`Ladder`), dense near the end and
ever wider apart before it. Reading goes on behind the highest one that is still what it was. All rows above that are
read again, and told from new ones by their keys; of a database that is not what it was at all, that is everything.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import NoReturn, Protocol

from curatord.adapters.sources.sqlite_read import ChangedError, DatabaseFile, InUseError, Reading
from curatord.core.transcript.events import Findings
from curatord.core.transcript.ids import content_key
from curatord.ports.source import Item, Marks, Slice, Start

__all__ = ["SLICE_BYTES", "SLICE_ROWS", "Ladder", "Rows", "database_marks", "read_rows", "refuse_order"]

SLICE_ROWS = 20_000
SLICE_BYTES = 24 * 1024 * 1024
TRIES = 3


class Ladder:
    """Row numbers, rising, each with a mark of its row; `rungs` is their plain form for the state."""

    __slots__ = ("rungs",)

    def __init__(self, rungs: list[tuple[int, bytes]] | None = None) -> None:
        self.rungs = list(rungs or [])

    @property
    def top(self) -> int:
        """The highest row that is remembered, 0 for none."""
        return self.rungs[-1][0] if self.rungs else 0

    def descend(self, mark_of: Callable[[int], bytes]) -> int:
        """Return the highest row that is still what it was, 0 for none, and forget those above it."""
        while self.rungs and mark_of(self.rungs[-1][0]) != self.rungs[-1][1]:
            self.rungs.pop()
        return self.top

    def climb(self, row: int, mark: bytes) -> None:
        """Remember a further row; of the old ones enough stay that their distances double downwards."""
        if row <= self.top:
            return
        kept: list[tuple[int, bytes]] = []
        wanted = 1
        for rung in reversed(self.rungs):
            if row - rung[0] >= wanted:
                kept.append(rung)
                wanted = 2 * (row - rung[0])
        self.rungs = [*reversed(kept), (row, mark)]


def refuse_order(number: int, last: int) -> NoReturn:
    """Refuse the row with *number* behind row *last*: in a damaged tree, rows can come round in a circle."""
    raise sqlite3.DatabaseError(f"row {number} stands behind row {last}")


class Rows(Protocol):
    """One reading of one open database, of which a host knows the tables."""

    @property
    def offset(self) -> int:
        """The watermark after what was taken; 0 only while there was no row."""
        ...

    @property
    def waiting(self) -> bool:
        """Whether something waits for a later row."""
        ...

    def step(self) -> tuple[int, bool]:
        """Take the next rows, within a transaction; return their size in bytes, and whether there are no more."""
        ...

    def settle(self) -> None:
        """Take what still waits as done."""
        ...

    def findings(self) -> Findings:
        """Return what was found since the last call."""
        ...

    def state(self) -> bytes:
        """Return what must be known to go on."""
        ...


def database_marks(host: str, path: str, offset: int) -> Marks:
    """Return what a database is recognised by: its place. What became of its rows is seen when they are read."""
    head = content_key(f"{host} database".encode(), path.encode("utf-8", "replace"))
    return Marks(head=head, tail=content_key(b"rows", head) if offset else b"")


def read_rows(
    host: str,
    file: DatabaseFile,
    item: Item,
    start: Start,
    stop: Callable[[], bool],
    begin: Callable[[Reading], Rows],
) -> Iterator[Slice]:
    """
    Yield what *item* holds that is new, each slice in a transaction of its own, so that no writer waits.

    Args:
        host: As in the configuration.
        file: The database of *item*; its private copy, where one was needed, is removed afterwards.
        item: As it was listed.
        start: Where the last reading ended.
        stop: Asked between slices.
        begin: Makes the reading of an open database.

    Raises:
        InUseError: It is locked, or changes faster than it can be read. OSError: It cannot be opened.
        TranscriptError: It is damaged, or not that host's.
    """
    given = 0
    try:
        if not item.size:  # just made: nothing in it yet
            yield _slice(host, item, Findings(), start.offset, start.state, 0, last=True, waiting=False)
            return
        for _ in range(TRIES):
            try:
                for done in _slices(host, file, item, start, stop, begin):
                    given += 1
                    yield done
            except ChangedError:
                if given:
                    return  # what was given out is good; the next scan goes on from there
            else:
                return
        raise InUseError(f"{item.path} changes faster than it can be read")
    finally:
        file.release()


def _slices(
    host: str,
    file: DatabaseFile,
    item: Item,
    start: Start,
    stop: Callable[[], bool],
    begin: Callable[[Reading], Rows],
) -> Iterator[Slice]:
    with file.open() as reading:
        rows: Rows | None = None
        while True:
            with reading.transaction():
                if rows is None:
                    rows = begin(reading)
                size, ended = rows.step()
                if ended and start.settled:
                    rows.settle()
            reading.check()
            last = ended or stop()
            yield _slice(
                host, item, rows.findings(), rows.offset, rows.state(), size,
                last=ended, waiting=rows.waiting and not start.settled,
            )  # fmt: skip
            if last:
                return


def _slice(
    host: str, item: Item, findings: Findings, offset: int, state: bytes, size: int, *, last: bool, waiting: bool
) -> Slice:
    return Slice(
        findings=findings,
        offset=offset,
        size=item.size,
        state=state,
        marks=database_marks(host, item.path, offset),
        bytes_read=size,
        waiting=waiting,
        last=last,
    )

"""
Readers in other processes: each opens the same sources, gets items, and sends back what it found.

Parsing is all of a first scan's time, and one process can only parse on one core. The pass goes on reading too, so
one worker makes two readers. A worker is a fresh interpreter that imports the readers and nothing else (no copy of a
daemon with threads), speaks pickled values over a socket pair that only the two hold, and ends when its end is
closed. Should it die, its jobs are handed back unread.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

from curatord.adapters.sources.registry import open_source
from curatord.core.settings import SourceSettings
from curatord.errors import TranscriptError
from curatord.ports.reader_pool import PoolResult
from curatord.ports.source import Item, Source, Start

__all__ = ["ProcessPool", "reader_processes"]

DEPTH = 16  # jobs given to one worker ahead, so that it never waits for the pass
STOP_S = 5.0


class ProcessPool:
    """The `ReaderPool` over *count* processes that know *places*: settings and path of each of the pass's sources."""

    def __init__(self, places: Sequence[tuple[SourceSettings, str]], *, count: int) -> None:
        workers = [_Worker(places) for _ in range(count)]
        self._workers = {worker.connection.fileno(): worker for worker in workers}
        self._poll = select.poll()  # kept: asked for each file, and a new one costs as much as a short file
        for descriptor in self._workers:
            self._poll.register(descriptor, select.POLLIN)

    @property
    def free(self) -> bool:
        """Whether a job given now would be begun soon."""
        return any(len(worker.jobs) < DEPTH for worker in self._workers.values())

    def submit(self, number: int, source: int, item: Item, start: Start) -> None:
        """Have *item* read by the worker with the least to do."""
        worker = min(self._workers.values(), key=lambda worker: len(worker.jobs))
        worker.jobs.add(number)
        with contextlib.suppress(OSError):  # it died; `results` hands the job back
            worker.connection.send((number, source, item, start))

    def results(self, *, wait: bool) -> list[PoolResult]:
        """Return what is done; with *wait*, at least one, unless nothing is under way."""
        found: list[PoolResult] = []
        while any(worker.jobs for worker in self._workers.values()):
            ready = self._poll.poll(None if wait and not found else 0)
            if not ready:
                break
            for descriptor, _ in ready:
                found += self._receive(descriptor)
        return found

    def _receive(self, descriptor: int) -> list[PoolResult]:
        """Return the next result of the worker there, or its jobs unread where it died."""
        worker = self._workers[descriptor]
        try:
            result: PoolResult = worker.connection.recv()
        except (EOFError, OSError):
            self._poll.unregister(descriptor)
            del self._workers[descriptor]
            worker.close()
            return [PoolResult(number, ()) for number in sorted(worker.jobs)]
        worker.jobs.discard(result.number)
        return [result]

    def close(self) -> None:
        """Let the workers end, and wait for them."""
        for worker in self._workers.values():
            worker.close()


class _Worker:
    """One process and the jobs it was given."""

    def __init__(self, places: Sequence[tuple[SourceSettings, str]]) -> None:
        ours, theirs = socket.socketpair()
        self.jobs: set[int] = set()
        self.connection = Connection(ours.detach())
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 -- our own interpreter and module
                [sys.executable, "-c", f"from {__name__} import work; work({theirs.fileno()})"],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
        self.connection.send(list(places))

    def close(self) -> None:
        """Close our end, on which the worker ends."""
        self.connection.close()
        try:
            self._process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def reader_processes(places: Sequence[tuple[SourceSettings, str]], *, count: int = 1) -> Iterator[ProcessPool]:
    """Yield a pool of *count* processes, ended afterwards; *places* are those of the pass's sources, in order."""
    pool = ProcessPool(places, count=count)
    try:
        yield pool
    finally:
        pool.close()


def work(descriptor: int) -> None:
    """Be a worker: take jobs from *descriptor* until it is closed."""
    gc.set_threshold(50_000, 10, 10)  # as the pass does for itself
    with Connection(descriptor) as connection, contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        sources = [open_source(settings, path) for settings, path in connection.recv()]
        while True:
            number, source, item, start = connection.recv()
            connection.send(_read(sources[source], number, item, start))


def _read(source: Source, number: int, item: Item, start: Start) -> PoolResult:
    try:
        return PoolResult(number, tuple(source.read(item, start, lambda: False)))
    except OSError as error:
        return PoolResult(number, (), OSError(error.errno, error.strerror or str(error), error.filename))
    except TranscriptError as error:
        return PoolResult(number, (), OSError(0, str(error), item.path))

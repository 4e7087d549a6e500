"""
The ingest pass: transcripts into counts and skill events, each record once.

Wanted: whatever is appended, moved, copied, truncated or torn on disk, and wherever we are killed, the rows end as
those of one clean scan; an unchanged file costs one stat; no file stops another; memory does not depend on the
history.

What happens to a source, in this order, and what a cut leaves behind:

1. All items are listed and compared with the table of known files, which is read once. Equal in inode, size and time:
   done. (Nothing written.)
2. Known files that were not listed are marked gone. (Their counts stay; a mark too many is taken back when they are
   seen.)
3. The changed ones are read: those that are known in the order of their rows, then the others, oldest first, since
   hosts delete those first (bugs B095). Each is looked up by path, else among the gone by its head: then it was moved
   and keeps its row.
4. `core.watermark.resume` says from where; a slice is parsed; slices gather to a batch. (Nothing written.)
5. The batch is committed in one transaction: watermark, parser state, counts, events, keys, anchors. (Before or after.)
   A slice that meets another file's anchors shares history with it: it is not written, but read again under the guard
   of that file's keys, until no new sharer shows.
6. What still waited in files that are gone is taken as done, as it would be had they stayed. (Before or after.)
7. At the end the scan is noted, complete or not; only a complete one moves the source's testimony.

Files that cannot be read are tried again after a growing pause, and only when they change after `PARKED_AFTER` tries.
"""

from __future__ import annotations

import contextlib
import errno
import gc
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from curatord.core.cheap import dataclass, field
from curatord.core.path_text import printable_path
from curatord.core.transcript.events import Findings
from curatord.core.transcript.ids import KEY_BYTES, Guard, anchors_of, content_key, probes_of
from curatord.core.watermark import Facts, Restart, Watermark, resume
from curatord.errors import TranscriptError
from curatord.ports.clock import Clock
from curatord.ports.ingest_store import Census, Details, IngestWriter, Known, Reading, signed_inode
from curatord.ports.reader_pool import PoolResult, ReaderPool
from curatord.ports.source import Item, Marks, News, Slice, Source, Start

__all__ = ["Note", "ScanReport", "SourceReport", "ingest_paths", "scan"]

BATCH_FILES = 512
BATCH_BYTES = 64 * 1024 * 1024  # read since the last commit: what a kill costs to read again, a fifth of a second
READY_BYTES = 256 * 1024  # a file read up to here has a few thousand keys at most, so that a batch's take some MiB
POOL_FROM = 64 * 1024 * 1024  # with less to read, starting other processes takes longer than reading
POOL_ITEM = 32 * 1024 * 1024  # larger items are read by the pass itself, slice by slice
RETRY_FIRST = timedelta(seconds=30)
RETRY_MOST = timedelta(hours=6)
PARKED_AFTER = 10
_NEVER = timedelta(days=3650)
MAX_NOTES = 1000
MAX_CHANGED = 10_000
TAKEN_CARE_OF = OSError()  # stands for a job that was over before it was read
_NO_KEYS = Guard()
_NOT_BEGUN = Start(guard=_NO_KEYS, before=_NO_KEYS)  # of a job that nobody has looked at yet, and of one that is done


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something worth knowing of a scan; *kind* is `restart`, `vanished`, `failed`, `waiting`, `problem` or `note`."""

    kind: str
    path: str
    text: str


@dataclass(slots=True, kw_only=True)
class SourceReport:
    """What a scan did for one source. *waiting*: its place does not exist (yet)."""

    host: str
    path: str
    files: int = 0
    changed: int = 0
    bytes: int = 0
    records: int = 0
    unreadable: int = 0
    waiting: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as `scan --json` shows it."""
        return {
            "host": self.host,
            "path": self.path,
            "files": self.files,
            "changed": self.changed,
            "bytes": self.bytes,
            "records": self.records,
            "unreadable": self.unreadable,
            "waiting": self.waiting,
        }


@dataclass(slots=True, kw_only=True)
class ScanReport:
    """What a scan did. *sessions* were added to, *events* found. *stopped*: not all was read; the next one goes on."""

    sources: list[SourceReport] = field(default_factory=list)
    sessions: int = 0
    events: int = 0
    elapsed_s: float = 0.0
    stopped: bool = False
    notes: list[Note] = field(default_factory=list)
    changed_paths: list[str] = field(default_factory=list)  # the first MAX_CHANGED of them; not in the JSON

    @property
    def failed(self) -> bool:
        """Whether something could not be read."""
        return any(note.kind in ("failed", "problem") for note in self.notes)

    def as_json(self) -> dict[str, Any]:
        """Return it as `scan --json` and `run.json` show it."""
        return {
            "sources": [source.as_json() for source in self.sources],
            "sessions": self.sessions,
            "events": self.events,
            "elapsed_s": round(self.elapsed_s, 3),
            "stopped": self.stopped,
            "notes": [{"kind": n.kind, "path": n.path, "text": n.text} for n in self.notes],
        }


Progress = Callable[[int, int], None]  # bytes done, bytes to do


def scan(
    sources: Sequence[Source],
    store: IngestWriter,
    *,
    clock: Clock,
    quiet: timedelta,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    pool: Callable[[], contextlib.AbstractContextManager[ReaderPool]] | None = None,
    lazily: bool = False,
) -> ScanReport:
    """
    Bring the store up to what is on disk now.

    Args:
        sources: Each place once.
        store: Where it goes.
        clock: Read once at the start for `now`, and for the time taken.
        quiet: A file that was not touched for so long is settled (`gates.session_quiet`).
        progress: Called with bytes done and bytes to do, some times a second.
        stop: Asked between files and slices; what was committed stays, the next scan goes on from there.
        pool: Makes workers; used where there is enough to read.
        lazily: A scan that found nothing new of a source is not written down; for who scans again soon.

    Raises:
        StateError: The store cannot be written; what was committed stays.
    """
    began = clock.monotonic()
    work = _Ingest(sources, store, now=clock.now(), quiet=quiet, progress=progress, stop=stop, lazily=lazily)
    with _fewer_collections():
        work.scan_all(pool)
    work.report.elapsed_s = clock.monotonic() - began
    return work.report


def ingest_paths(
    source: Source,
    paths: Sequence[str],
    store: IngestWriter,
    *,
    clock: Clock,
    quiet: timedelta,
    stop: Callable[[], bool] = lambda: False,
) -> ScanReport:
    """
    Bring the store up to date for single files of *source*, as a change event named them, without listing the place.

    Files that are not there any more are left to the next whole scan, which tells moved from gone.
    """
    began = clock.monotonic()
    work = _Ingest([source], store, now=clock.now(), quiet=quiet, progress=None, stop=stop)
    with _fewer_collections():
        work.take_paths(paths)
    work.report.elapsed_s = clock.monotonic() - began
    return work.report


@dataclass(slots=True)
class _Job:
    """An item that is to be read, and where it stands."""

    source: int
    item: Item
    file_id: int | None
    details: Details | None = None
    held: Watermark | None = None
    start: Start = _NOT_BEGUN
    restarted: str | None = None
    kin: Sequence[int] = ()  # files that are not this one, and may have lent it their records
    guarded: frozenset[int] = frozenset()


class _Ingest:
    """One scan at work."""

    def __init__(
        self,
        sources: Sequence[Source],
        store: IngestWriter,
        *,
        now: datetime,
        quiet: timedelta,
        progress: Progress | None,
        stop: Callable[[], bool],
        lazily: bool = False,
    ) -> None:
        self.report = ScanReport()
        self._lazily = lazily
        self._touched_sources: set[int] = set()
        self._sources = sources
        self._store = store
        self._now_ms = round(now.timestamp() * 1000)
        self._quiet_ms = round(quiet.total_seconds() * 1000)
        self._progress = progress
        self._stop = stop
        self._ids = [store.source_id(source.host, source.path, now_ms=self._now_ms) for source in sources]
        self._reports = [SourceReport(host=source.host, path=source.path) for source in sources]
        self.report.sources = self._reports
        self._salts = [int.from_bytes(content_key(source.host.encode()), "big", signed=True) for source in sources]
        self._batch: list[tuple[_Job, Slice]] = []
        self._batch_bytes = 0
        self._unwritten: set[int] = set()  # files of the batch, and those that they share records with
        self._touched: set[tuple[str, str]] = set()
        self._inodes: set[tuple[str, int, int]] = set()
        self._gone: dict[str, bool] = {}
        self._adopted: set[int] = set()  # rows of gone files that turned up elsewhere in this scan
        # Rows and keys of the files that come next, read together; what this pass writes since takes them out again.
        self._ready: dict[int, Details] = {}
        self._ready_keys: dict[int, list[bytes]] = {}
        self._left: set[int] = set()  # files that this pass has marked gone
        self._found: set[int] = set()  # rows whose file this pass has found, wherever that is now
        self._to_do = 0
        self._done = 0

    # -- which items

    def scan_all(self, pool: Callable[[], contextlib.AbstractContextManager[ReaderPool]] | None) -> None:
        """List everything, read what changed, note how it ended."""
        jobs: list[_Job] = []
        listed: list[bool] = []
        told: list[list[str]] = []  # of each source, what could not be looked at
        several = len({source.host for source in self._sources}) < len(self._sources)
        for number, source in enumerate(self._sources):
            try:
                jobs.extend(self._list(number, source, check_links=several))
                listed.append(not source.problems)
            except FileNotFoundError:
                self._reports[number].waiting = True
                self._note("waiting", source.path, "is not there yet; nothing to read")
                listed.append(False)
            except OSError as error:
                self._note("problem", source.path, f"cannot be listed: {error.strerror}")
                listed.append(False)
            # A name that is no UTF-8 can be neither stored nor printed as it is, whatever host's reader met it.
            told.append([printable_path(problem) for problem in source.problems])
            for problem in told[-1]:
                self._note("problem", source.path, problem)
        # Files that are known in the order of their rows, which then lie side by side: after a burst over all of them
        # each batch would else write most pages of the database. The others behind them, oldest first: what such a file
        # has from one that is known should stay with that. Equal times by name, so that two scans do the same.
        jobs.sort(key=lambda job: (job.file_id is None, job.file_id or self._began_ns(job), job.item.path))
        self._to_do = sum(job.item.size for job in jobs)
        self._touched_sources.update(job.source for job in jobs)
        if pool is not None and self._to_do >= POOL_FROM:
            with pool() as workers:
                self._read_all(jobs, workers)
        else:
            self._read_all(jobs, None)
        self._flush()
        for number, source in enumerate(self._sources):
            self._settle_gone(number, source)
        self.report.sessions = len(self._touched)
        for number in range(len(self._sources)):
            if self._reports[number].waiting:
                self._store.missing(self._ids[number], now_ms=self._now_ms)
                continue
            self._store.finished(
                self._ids[number],
                now_ms=self._now_ms,
                complete=listed[number] and not self.report.stopped,
                present=self._reports[number].files,
                problems=told[number],
                lazily=self._lazily and number not in self._touched_sources,
            )

    def _began_ns(self, job: _Job) -> int:
        """Return by when *job* comes: its file's time, or what its source knows better."""
        began_ns: Callable[[Item], int] | None = getattr(self._sources[job.source], "began_ns", None)
        return job.item.mtime_ns if began_ns is None else began_ns(job.item)

    def take_paths(self, paths: Sequence[str]) -> None:
        """Read single files of the only source."""
        source = self._sources[0]
        from_stat = source.item_at
        known = self._store.known_at(self._ids[0], [path for path in paths if printable_path(path) == path])
        # In the order of their rows, which then lie side by side: a burst over all files would else write most pages
        # of the database once for each batch.
        ordered = sorted(set(paths), key=lambda path: (path not in known, known[path][1] if path in known else 0, path))
        for place, path in enumerate(ordered):
            if place % BATCH_FILES == 0:
                self._prepare([known[name][1] for name in ordered[place : place + BATCH_FILES] if name in known])
            if self._stop():
                self.report.stopped = True
                break
            try:
                item = from_stat(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                # In the words of a whole scan, which meets it again: it is one trouble, and no news then.
                cannot = "cannot name" if error.errno == errno.EILSEQ else "cannot look at"
                self._note("problem", source.path, f"{cannot} {printable_path(path)}: {error.strerror}")
                continue
            if item is None:
                continue
            self._reports[0].files += 1
            row = known.get(path)
            if row is None or row[1] in self._left:
                row = None
                self._notice_move(0, item)
            job = self._changed(0, item, row)
            if job is not None:
                self._read_one(job)
        self._flush()
        self.report.sessions = len(self._touched)

    def _notice_move(self, number: int, item: Item, *, but: Collection[int] = ()) -> None:
        """
        Mark the file gone that *item*, whose path is new or was another's, was until now.

        A whole scan lists first and so knows which paths are gone before it reads, but not which files have changed
        places. Without this a moved file would be taken for a copy of itself, and what its row holds of unfinished
        calls would wait there for ever. *but*: rows that are left as they are.
        """
        from_stat = self._sources[number].item_at
        for file_id, path in self._store.at_inode(self._ids[number], item):
            if file_id in but:
                continue
            try:
                there = from_stat(path)
            except FileNotFoundError:
                there = None
            except OSError:
                continue  # it cannot be told; the whole scan will
            if there is None or (there.dev, there.ino) != (item.dev, item.ino):
                self._mark_gone(self._sources[number].host, [file_id])

    def _list(self, number: int, source: Source, *, check_links: bool) -> list[_Job]:
        news: News | None = None if check_links else getattr(source, "news", None)
        if news is not None and self._lazily:
            found = self._list_again(number, source, news)
            if found is not None:
                return found
        known = self._store.known(self._ids[number])
        report = self._reports[number]
        jobs = []
        before = len(known)
        count = taken = 0
        several = False  # items with several names; those may be there under another one, so a census cannot tell
        marks: set[int] = set()
        take = known.pop
        for item in (
            source.items() if news is None or not known else news(known, collect=marks if self._lazily else None)
        ):
            row = take(item.path, None)
            taken += row is not None
            if check_links or item.several_links:
                several = True
                inode = (source.host, item.dev, item.ino)
                if inode in self._inodes:
                    continue
                self._inodes.add(inode)
            count += 1
            # The usual case, told without a call: nothing changed and nothing waits.
            if row is not None:
                _, _, _, ino, size, mtime_ns, special = row
                if size == item.size and mtime_ns == item.mtime_ns and ino == item.ino and not special:
                    continue
            job = self._changed(number, item, row)
            if job is not None:
                jobs.append(job)
        report.files = count + before - taken - len(known)  # with those that `news` took
        same = len(marks) + taken == before == report.files and not known and not jobs
        if marks and same and not several and not source.problems:
            self._store.keep_census(self._ids[number], Census(frozenset(marks), taken))
        if known and not source.problems:
            self._touched_sources.add(number)
            self._mark_gone(source.host, [file_id for _, file_id, *_ in known.values()])
        return jobs

    def _list_again(self, number: int, source: Source, news: News) -> list[_Job] | None:
        """Return what is to be read by the census of the scan before; None where it does not tell."""
        census = self._store.census(self._ids[number])
        if census is None:
            return None
        left = set(census.marks)
        items = list(news({}, census=left))
        known = self._store.known_at(self._ids[number], [item.path for item in items]) if items else {}
        if left or source.problems or len(known) != census.special or any(item.several_links for item in items):
            return None  # something has changed or is gone: the rows of all tell what
        self._reports[number].files = len(census.marks) + len(items)
        changed = (self._changed(number, item, known.get(item.path)) for item in items)
        return [job for job in changed if job is not None]

    def _changed(self, number: int, item: Item, row: Known | None) -> _Job | None:
        if row is None:
            return _Job(number, item, None)
        _, file_id, _, ino, size, mtime_ns, special = row
        if size != item.size or mtime_ns != item.mtime_ns or ino != signed_inode(item.ino):
            return _Job(number, item, file_id)
        if not special:
            return None
        details = self._store.details(file_id)
        if details.failures:
            due = details.retry_ms is None or self._now_ms >= details.retry_ms
            return _Job(number, item, file_id) if due else None
        if details.waiting and self._settled(item, details):
            return _Job(number, item, file_id)
        return None

    def _settled(self, item: Item, details: Details | None) -> bool:
        """Return whether *item* was left alone for long enough; a time in the future says nothing."""
        newest = item.mtime_ns // 1_000_000
        if details is not None and details.grown_ms is not None:
            newest = max(newest, details.grown_ms)
        return self._now_ms - newest >= self._quiet_ms

    # -- reading

    def _read_all(self, jobs: list[_Job], workers: ReaderPool | None) -> None:
        if workers is not None:
            self._read_with(jobs, workers)
            return
        for place, job in enumerate(jobs):
            if place % BATCH_FILES == 0:
                self._prepare([j.file_id for j in jobs[place : place + BATCH_FILES] if j.file_id is not None])
            if self._stop():
                self.report.stopped = True
                return
            self._read_one(job)

    def _prepare(self, file_ids: list[int]) -> None:
        """Read the rows of files that come next, and the keys of those that are small, in two questions."""
        self._ready = self._store.details_of(file_ids) if file_ids else {}
        small = [file_id for file_id, told in self._ready.items() if 0 < told.watermark.offset <= READY_BYTES]
        found = self._store.keys_of(small) if small else {}
        self._ready_keys = {file_id: found.get(file_id, []) for file_id in small}

    def _details(self, file_id: int) -> Details:
        return self._ready.pop(file_id, None) or self._store.details(file_id)

    def _own_keys(self, file_id: int | None) -> list[bytes]:
        if file_id is None:
            return []
        ready = self._ready_keys.pop(file_id, None)
        return self._store.keys([file_id], kin=False) if ready is None else ready

    def _read_with(self, jobs: list[_Job], workers: ReaderPool) -> None:
        """
        Read *jobs* with the help of *workers*, and commit them in their order all the same.

        The order decides which of two files with the same history it belongs to, so it must not depend on who was
        quicker. Results that come early wait in `done`, no more of them than jobs that workers hold.
        """
        done: dict[int, PoolResult] = {}
        turn = 0  # the next job to be added to the batch

        def add() -> None:
            nonlocal turn
            while turn in done:
                self._take_result(jobs[turn], done.pop(turn))
                turn += 1

        def collect(*, wait: bool) -> None:
            for result in workers.results(wait=wait):
                done[result.number] = result
            add()

        given = 0
        for place, job in enumerate(jobs):
            if self._stop():
                self.report.stopped = True
                break
            collect(wait=False)
            given = place + 1
            if not self._begin(job):
                done[place] = PoolResult(place, (), TAKEN_CARE_OF)
            elif job.item.size > POOL_ITEM or job.start.guard or job.kin:
                while turn < place:
                    collect(wait=True)
                self._flush()
                self._guard_from(job, job.start.offset)  # what was committed since may be history that it shares
                self._read_one(job)
                turn = given
            elif workers.free:
                workers.submit(place, job.source, job.item, job.start)
            else:
                done[place] = self._read_here(place, job)
            add()
        while turn < given:
            collect(wait=True)

    def _read_here(self, place: int, job: _Job) -> PoolResult:
        try:
            return PoolResult(place, tuple(self._sources[job.source].read(job.item, job.start, lambda: False)))
        except OSError as error:
            return PoolResult(place, (), error)
        except TranscriptError as error:
            return PoolResult(place, (), OSError(0, str(error), job.item.path))

    def _take_result(self, job: _Job, result: PoolResult) -> None:
        if result.error is TAKEN_CARE_OF:
            return
        if result.error is not None:
            self._failed(job, result.error)
        elif not result.slices:
            self._read_one(job)
        for done in result.slices:
            self._add(job, done)
            if not done.last and self._flush():
                break

    def _read_one(self, job: _Job) -> None:
        """Read *job* slice by slice; what goes wrong with it stays with it."""
        if not self._begin(job):
            return
        try:
            self._read_from(job)
        except (OSError, TranscriptError) as error:
            self._failed(job, error)

    def _begin(self, job: _Job) -> bool:
        """Find out which file it is and from where it is read; False: there is nothing to read."""
        if job.start.now_ms:
            return True
        source = self._sources[job.source]
        try:
            return self._identify(job, source)
        except (OSError, TranscriptError) as error:
            self._failed(job, error)
            return False

    def _identify(self, job: _Job, source: Source) -> bool:
        item = job.item
        kin: list[int] = []
        if job.file_id is not None and job.file_id in self._left:
            kin.append(job.file_id)  # it was found under another name
            job.file_id = None
        details = self._details(job.file_id) if job.file_id is not None else None
        if details is None and not self._any_gone(source.host):
            job.start = self._start(item, None)
            return True  # a new file that cannot have been another before: no need to look twice
        marks = source.examine(item, details.watermark.offset if details is not None else 0)
        if details is not None and details.watermark.head not in (b"", marks.head) and not _same_inode(details, item):
            # Another file has taken the name. The old one is gone, or turns up elsewhere under its head.
            self._mark_gone(source.host, [details.file_id])
            kin.append(details.file_id)
            details = None
            self._notice_move(job.source, item, but=self._found)
        if details is None:
            for candidate in self._store.gone_like(source.host, item, marks.head):
                if candidate.file_id in self._adopted:
                    kin.append(candidate.file_id)  # a second copy of what is gone
                    continue
                moved = source.examine(item, candidate.watermark.offset)
                if moved.head == candidate.watermark.head and moved.tail == candidate.watermark.tail:
                    details, marks = candidate, moved
                    self._adopted.add(candidate.file_id)
                    break
                kin.append(candidate.file_id)
        offset = 0
        if details is not None:
            answer = resume(details.watermark, Facts(head=marks.head, tail=marks.tail))
            if isinstance(answer, Restart):
                job.restarted = answer.reason
                self._note("restart", item.path, answer.reason)
            else:
                offset = answer.offset
            kin += details.kin
        job.details = details
        job.file_id = details.file_id if details is not None else None
        if job.file_id is not None:
            self._found.add(job.file_id)
        job.held = details.watermark if details is not None else None
        job.kin = kin
        self._guard_from(job, offset)
        return True

    def _guard_from(self, job: _Job, offset: int) -> None:
        """Have *job* read from *offset*, past what the files hold that it may repeat, as they stand now."""
        details, kin = job.details, job.kin
        guard = before = _NO_KEYS
        if details is not None or kin:
            own = [details.file_id] if details is not None else []
            if kin and not self._unwritten.isdisjoint(self._store.related(kin)):
                self._flush()  # what they were just found to hold must be asked too
            job.guarded = frozenset([*own, *kin])
            if offset:
                ours = self._own_keys(own[0] if own else None)
                again = ours if details is not None and details.restarted else []
                if kin or again:
                    guard = Guard(*self._store.keys(kin, kin=True), *again)
                if ours:
                    before = Guard(*ours)
            else:
                # Read anew, or from the start because it was emptied once, it may bring again what it had.
                guard = Guard(*self._store.keys([*own, *kin], kin=True))
        job.start = self._start(job.item, details, offset=offset, guard=guard, before=before)

    def _settle_gone(self, number: int, source: Source) -> None:
        """
        Take as done what still waited in files of *source* that are gone, once they have been quiet for long enough.

        A host that prunes a session takes nothing from its counts. The calls are remembered as let go: should the file
        come back, a failure that is told there takes them back, and nothing is counted twice.
        """
        left_behind: Callable[[Item, Start], tuple[Findings, bytes]] | None = getattr(source, "left_behind", None)
        since_ms = self._now_ms - self._quiet_ms
        while left_behind is not None and not self._stop():
            left = self._store.left_waiting(self._ids[number], since_ms=since_ms, most=BATCH_FILES)
            readings = [self._left_reading(number, details, left_behind) for details in left]
            if not readings:
                return
            self._store.write(readings, now_ms=self._now_ms)
            self.report.events += sum(
                len(tally.sightings) for one in readings for tally in one.slice.findings.sessions.values()
            )

    def _left_reading(
        self, number: int, details: Details, left_behind: Callable[[Item, Start], tuple[Findings, bytes]]
    ) -> Reading:
        held = details.watermark
        item = Item(details.path, details.dev, details.ino, details.size, details.mtime_ns or self._now_ms * 1_000_000)
        start = Start(
            offset=held.offset,
            state=details.state,
            settled=True,
            now_ms=self._now_ms,
            mtime_ms=item.mtime_ns // 1_000_000,
        )
        findings, state = left_behind(item, start)
        slice_ = Slice(
            findings=findings,
            offset=held.offset,
            size=item.size,
            state=state,
            marks=Marks(head=held.head, tail=held.tail),
            bytes_read=0,
            last=details.whole,
        )
        return Reading(
            source_id=self._ids[number],
            item=item,
            file_id=details.file_id,
            held=held,
            slice=slice_,
            anchors=(),
            gone=True,
        )

    def _any_gone(self, host: str) -> bool:
        """Return whether a file of *host* is gone, or was when this was first asked; asked for each new file."""
        if host not in self._gone:
            self._gone[host] = self._store.any_gone(host)
        return self._gone[host]

    def _mark_gone(self, host: str, file_ids: Sequence[int]) -> None:
        self._store.gone(file_ids, now_ms=self._now_ms)
        self._gone[host] = True
        self._left.update(file_ids)
        for file_id in file_ids:
            self._ready.pop(file_id, None)

    def _start(
        self,
        item: Item,
        details: Details | None,
        *,
        offset: int = 0,
        guard: Guard = _NO_KEYS,
        before: Guard = _NO_KEYS,
    ) -> Start:
        return Start(
            offset=offset,
            state=details.state if details is not None else b"",
            guard=guard,
            before=before,
            settled=self._settled(item, details),
            now_ms=self._now_ms,
            mtime_ms=item.mtime_ns // 1_000_000,
        )

    def _read_from(self, job: _Job) -> None:
        """Read *job* from its start; large items are committed slice by slice."""
        source = self._sources[job.source]
        for done in source.read(job.item, job.start, self._stop):
            self._add(job, done)
            if done.last:
                return
            if self._flush() or self._stop():
                # Shared history was met, and the rest read on from there; or a signal came.
                self.report.stopped = self.report.stopped or self._stop()
                return

    def _add(self, job: _Job, done: Slice) -> None:
        self._batch.append((job, done))
        self._unwritten |= job.guarded
        self._batch_bytes += done.bytes_read
        if done.last and (len(self._batch) >= BATCH_FILES or self._batch_bytes >= BATCH_BYTES):
            self._flush()

    def _flush(self) -> bool:
        """Commit the batch; return whether the last of it had to be read again."""
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        self._unwritten.clear()
        if not batch:
            return False
        readings = [self._reading(job, done) for job, done in batch]
        for related in {other for job, _ in batch for other in job.guarded}:
            self._ready.pop(related, None)  # they get to know of each other
        again: list[tuple[_Job, frozenset[int]]] = []
        last_again = False
        written = self._store.write(readings, now_ms=self._now_ms)
        for (job, done), (_, file_id, shared) in zip(batch, written, strict=True):
            last_again = file_id is None
            if file_id is None:
                again.append((job, shared))
            else:
                self._written(job, done, file_id)
        for job, shared in again:
            try:
                self._read_shared(job, shared)
            except (OSError, TranscriptError) as error:
                self._failed(job, error)
        if self._progress is not None:
            self._progress(self._done, self._to_do)
        return last_again

    def _read_shared(self, job: _Job, shared: frozenset[int]) -> None:
        """Read *job* once more, passing over what the files *shared* hold already, until it meets no further ones."""
        source = self._sources[job.source]
        while True:
            job.guarded |= shared
            own = self._store.keys([job.file_id], kin=False) if job.file_id is not None else []
            others = self._store.keys(sorted(job.guarded - {job.file_id}), kin=True)
            start = job.start
            anew = start.offset == 0
            again = anew or (job.details is not None and job.details.restarted)
            job.start = Start(
                offset=start.offset,
                state=start.state,
                guard=Guard(*others, *(own if again else [])),
                before=Guard(*([] if anew else own)),
                settled=start.settled,
                now_ms=start.now_ms,
                mtime_ms=start.mtime_ms,
            )
            for done in source.read(job.item, job.start, self._stop):
                ((_, file_id, shared),) = self._store.write([self._reading(job, done)], now_ms=self._now_ms)
                if file_id is None:
                    break
                self._written(job, done, file_id)
                if not done.last and self._stop():
                    self.report.stopped = True
                    return
            else:
                return

    def _reading(self, job: _Job, done: Slice) -> Reading:
        salt = self._salts[job.source]
        details, keys = job.details, done.findings.keys
        return Reading(
            source_id=self._ids[job.source],
            item=job.item,
            file_id=job.file_id,
            held=job.held,
            slice=done,
            guarded=job.guarded,
            anchors=[anchor ^ salt for anchor in anchors_of(keys, done.findings.heads)],
            probes=[probe ^ salt for probe in probes_of(keys)] if len(keys) > KEY_BYTES else (),
            grown=details is not None and details.whole and not details.gone and job.item.size > details.size,
            restarted=job.restarted,
        )

    def _written(self, job: _Job, done: Slice, file_id: int) -> None:
        """Account for a slice that is durable, and make the job go on from it, or let go of what it held."""
        job.file_id = file_id
        job.restarted = None
        if done.last:
            job.start, job.details, job.held = _NOT_BEGUN, None, None
        else:
            start = job.start
            job.held = Watermark(offset=done.offset, head=done.marks.head, tail=done.marks.tail)
            job.start = Start(
                offset=done.offset,
                state=done.state,
                guard=start.guard,
                before=start.before,
                settled=start.settled,
                now_ms=start.now_ms,
                mtime_ms=start.mtime_ms,
            )
        report = self._reports[job.source]
        report.bytes += done.bytes_read
        report.changed += done.last
        if done.last and len(self.report.changed_paths) < MAX_CHANGED:
            self.report.changed_paths.append(job.item.path)
        host = report.host
        for name, tally in done.findings.sessions.items():
            report.records += tally.records
            report.unreadable += tally.unreadable
            self.report.events += len(tally.sightings) - len(tally.retracted)
            if tally.records or tally.unreadable:
                self._touched.add((host, name))
        for text in done.findings.notes:
            self._note("note", job.item.path, text)
        self._done += done.bytes_read

    # -- what goes wrong

    def _failed(self, job: _Job, error: OSError | TranscriptError) -> None:
        path = job.item.path
        if isinstance(error, FileNotFoundError):
            self._note("vanished", path, "was listed, and gone before it could be read")
            if job.file_id is not None:
                self._mark_gone(self._reports[job.source].host, [job.file_id])
            return
        if isinstance(error, BlockingIOError):
            # Its own program has it locked, or moves it: nothing is wrong with it, and the next scan asks again.
            self._note("waiting", path, error.strerror or str(error))
            return
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        self._note("failed", path, f"cannot be read: {text}")
        failures = job.details.failures if job.details is not None else 0
        if job.file_id is not None and job.details is None:
            failures = self._store.details(job.file_id).failures
        pause = _NEVER if failures + 1 >= PARKED_AFTER else min(RETRY_FIRST * 2**failures, RETRY_MOST)
        self._store.failed(
            self._ids[job.source],
            job.item,
            job.file_id,
            text,
            retry_ms=self._now_ms + round(pause.total_seconds() * 1000),
        )

    def _note(self, kind: str, path: str, text: str) -> None:
        if len(self.report.notes) < MAX_NOTES:
            self.report.notes.append(Note(kind=kind, path=path, text=text))


def _same_inode(details: Details, item: Item) -> bool:
    return details.ino == signed_inode(item.ino) and details.dev == signed_inode(item.dev)


@contextlib.contextmanager
def _fewer_collections() -> Iterator[None]:
    """
    Let the garbage collector run seldom while records stream through.

    Nothing in the readers makes cycles, yet each record's lists count towards a collection: left as it is, that costs a
    tenth of a first scan. A collection still comes after 50,000 net allocations, so that a leak stays bounded.
    """
    before = gc.get_threshold()
    gc.set_threshold(50_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)

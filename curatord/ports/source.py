"""
A place with transcripts, as the ingest pass sees it: it lists items, and reads one from where it was left.

How a host is added. Its records are understood by a pure module `core/transcript/<host>.py` that fills `Findings`.
Hosts that write JSON lines give a `LineParser` and are read by the shared tailer; hosts with a database or whole
documents write a `Source` of their own around their parser. Either way the new host is one line in
`adapters/sources/registry.py`. The pass does the rest: identity, watermarks, copies, transactions, back-off. What was
said in its sessions is told by a listener to that parser (`ports/conversation.py`).

Order of one item: `items` (one stat each) → unchanged? done → `examine` (opens it: head and tail) →
`core.watermark.resume` → `read`, which yields `Slice`s. Each slice is committed whole, watermark and counts together;
killed between two of them, the next scan goes on from the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from curatord.core.cheap import dataclass, field
from curatord.core.transcript.events import Findings
from curatord.core.transcript.ids import Guard

if TYPE_CHECKING:
    from curatord.ports.ingest_store import Known

__all__ = ["Item", "LineParser", "Marks", "News", "ParserFactory", "Slice", "Source", "Start"]


class Item(NamedTuple):
    """
    One file (or database) with sessions, as one stat shows it.

    For a database *size* and *mtime_ns* are over the file and its `-wal`, so that a commit shows in them.
    *several_links*: other names lead to the same inode, which the pass then counts once.
    """

    path: str
    dev: int
    ino: int
    size: int
    mtime_ns: int
    several_links: bool = False


@dataclass(frozen=True, slots=True)
class Marks:
    """
    What an item is recognised by besides its inode.

    *head* is a hash of its first record (empty while it has none); *tail* of the bytes just before the watermark that
    was asked about (empty where that lies beyond its end). A database hashes what identifies it and its last row.
    """

    head: bytes
    tail: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """
    Where and how to read.

    Args:
        offset: Watermark to go on from: bytes, or a row id.
        state: What the parser gave as its state with that watermark; empty where it was never read. With *offset* 0
            and a state, the item is read anew: calls that were waiting still are, the rest of the state is void.
        guard: Keys that are counted already: in other items that this one shares history with and, when it is read
            anew, in itself. Such a record is passed over.
        before: Keys of this item's own records before *offset*. A record with such a key was written twice.
        settled: The item has been quiet for long enough that a last line without a newline is a whole one, and that
            calls still waiting for their result are taken as they are.
        now_ms: For times in the future.
        mtime_ms: The item's own time, for hosts whose records have none (mark what uses it as estimated).
    """

    offset: int = 0
    state: bytes = b""
    guard: Guard = field(default_factory=Guard)
    before: Guard = field(default_factory=Guard)
    settled: bool = False
    now_ms: int = 0
    mtime_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """
    One stretch of an item, whole in itself.

    *offset* is the watermark after it, *size* the item's size as far as it was read or seen. *waiting*: something waits
    for more (a half line, a call without its result), so the item is looked at again when it settles, though unchanged.
    *last*: nothing more was there to read.
    """

    findings: Findings
    offset: int
    size: int
    state: bytes
    marks: Marks
    bytes_read: int
    waiting: bool = False
    last: bool = True


class Source(Protocol):
    """
    One place of one host.

    A source may have three methods beside these. `news` (see `News`) is `items` for who knows most of them already.
    `began_ns(item) -> int`: when what *item* holds began, in nanoseconds since
    1970. Items are read in this order, else in that of their files' times. It matters where copies have new times: a
    session that goes on after it was copied has the younger file, and is the older one all the same. And
    `left_behind(item, start) -> tuple[Findings, bytes]`: what still waited in *item*, which is gone, taken as done
    (`LineParser.settle`), and the state behind that, both made of the state in *start* alone.
    """

    @property
    def host(self) -> str:
        """The host's name, as in the configuration."""
        ...

    @property
    def path(self) -> str:
        """The folder or file that was configured or found, absolute."""
        ...

    def items(self) -> Iterator[Item]:
        """
        Yield what is there, each with one stat, in any order.

        Raises:
            FileNotFoundError: The place itself does not exist (yet): the source waits.
            OSError: The place itself cannot be listed. Parts of it that cannot are noted in `problems` and passed over.
        """
        ...

    @property
    def problems(self) -> list[str]:
        """What the last `items` could not look at, in words."""
        ...

    def item_at(self, path: str) -> Item | None:
        """
        Return the item that *path* is or belongs to (a database's `-wal`), or None where `items` would not list it.

        Raises:
            FileNotFoundError: Nothing is there. OSError: It cannot be looked at.
        """
        ...

    def examine(self, item: Item, offset: int) -> Marks:
        """
        Return what *item* is recognised by; *offset* is the watermark that is known of it (0: none).

        Raises:
            FileNotFoundError: It vanished. OSError: It cannot be read. TranscriptError: It is no transcript.
        """
        ...

    def read(self, item: Item, start: Start, stop: Callable[[], bool]) -> Iterator[Slice]:
        """
        Yield what *item* holds from *start* on, one slice for each few dozen megabytes, at least one.

        *stop* is asked between slices; when it says yes, no more come and the last one has `last=False`.

        Raises:
            FileNotFoundError: It vanished. OSError: It cannot be read. TranscriptError: It is no transcript.
        """
        ...


class News(Protocol):
    """Lists what is not known yet; a source that has no short way may list all."""

    def __call__(
        self, known: dict[str, Known], *, collect: set[int] | None = None, census: set[int] | None = None
    ) -> Iterator[Item]:
        """
        Yield the items as `Source.items` does, without those that are as they were.

        Args:
            known: Rows by path. A row is taken out, and its item not yielded, where that is there with one link and
                equal in inode, size and time; rows that are special stay in.
            collect: Gets the mark of each item that was not yielded.
            census: Marks of items (`ingest_store.Census`), each taken out where its item is there, and not yielded.
        """
        ...


class LineParser(Protocol):
    """The pure reader of one file of JSON lines. A new one is made for each reading, from the state of the last."""

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """
        Take whole lines with the offset at which each begins, without CR, BOM or NULs around and never blank. The LF
        may still be there, since cutting it off would copy every line: what is keyed by its content leaves it out.

        A line may still hold several values, or none that is whole: `lines.objects` takes such a line apart. Never
        raises for what a line holds: a line that cannot be understood is counted in the findings.
        """
        ...

    def oversize(self, head: bytes, tail: bytes, size: int, offset: int) -> None:
        """Take a line of *size* bytes that was too long to hold, of which only *head* and *tail* are given."""
        ...

    def settle(self) -> None:
        """Take what still waits for a result as done: the session is over for now."""
        ...

    def findings(self) -> Findings:
        """Return what was found since the last call, and begin anew."""
        ...

    def state(self) -> bytes:
        """Return what must be known to go on after the last line fed; bounded, a few KiB."""
        ...

    @property
    def waiting(self) -> bool:
        """Whether something waits for a later record."""
        ...


class ParserFactory(Protocol):
    """Makes the parser of one file."""

    def __call__(self, path: str, start: Start) -> LineParser:
        """Return a parser for *path*, given as the file's path below the source's, with `/` between its parts."""
        ...

"""One digest out of all files that hold something of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from curatord.core.distil.digest import DigestBuilder
from curatord.core.distil.said import Said
from curatord.core.settings import DigestSettings
from curatord.passes.distil_read import Reading, read_session
from curatord.ports.conversation import Since
from curatord.ports.distil_store import FilePart, LastLook, LookedTo, SessionToDistil

HEAD = "aabbccddeeff0011"


class Told:
    """Conversations from a table of what stands in each file."""

    def __init__(self, files: Mapping[str, list[Said] | Exception]) -> None:
        self.files = files
        self.asked: list[tuple[str, Since, int | None]] = []

    def said(
        self, path: str, session_id: str, since: Since, *, until: int | None, stop: Callable[[], bool]
    ) -> Iterator[Said]:
        self.asked.append((path, since, until))
        held = self.files[path]
        if isinstance(held, Exception):
            raise held
        for said in held:
            if said.offset > since.offset and (until is None or said.offset <= until) and not stop():
                yield said


def user(text: str, offset: int, ref: str = "", at: int | None = None) -> Said:
    return Said(ref=ref or f"@{offset}", role="user", text=text, at_ms=at or offset, offset=offset)


def part(
    path: str, offset: int, *, file_id: int = 1, head: str = HEAD, records: int = 3, gone: bool = False
) -> FilePart:
    return FilePart(
        file_id=file_id,
        source_id=1,
        host="pi",
        source="/p",
        path=path,
        offset=offset,
        head=head,
        gone=gone,
        records=records,
        last_ms=offset,
    )


def session(*files: FilePart, **look: Any) -> SessionToDistil:
    return SessionToDistil(
        row=1,
        host="pi",
        session_id="s",
        kind="person",
        parent=None,
        cwds=(),
        files=files,
        first_ms=1,
        last_ms=900,
        alive_ms=900,
        user_turns=3,
        tool_calls=0,
        touches=0,
        since_ms=None,
        first_seen_ms=0,
        look=LastLook(**look),
    )


def read(told: Told, one: SessionToDistil, *, whole: bool = False) -> Reading:
    builder = DigestBuilder(DigestSettings())
    return read_session(one, lambda _: told, builder, whole=whole, stop=lambda: False)


def texts(reading: Reading) -> list[tuple[bool, str]]:
    return [(entry.evidence, entry.text) for entry in reading.digest.entries]


def test_nothing_is_read_beyond_what_was_counted() -> None:
    """What ingest has not reached yet belongs to the next look."""
    told = Told({"/p/1": [user("a", 10), user("b", 20), user("c", 30)]})
    reading = read(told, session(part("/p/1", 20)))

    assert [(True, "a"), (True, "b")] == texts(reading)
    assert {1: LookedTo(20, HEAD)} == reading.offsets


def test_what_was_looked_at_is_context() -> None:
    """It is shown, cannot be cited, and a person's order for the whole makes all of it evidence."""
    told = Told({"/p/1": [user("a", 10), user("b", 20)]})
    one = session(part("/p/1", 20), looked_ms=5, through_ms=10, offsets={1: LookedTo(10, HEAD)})

    assert [(False, "a"), (True, "b")] == texts(read(told, one))
    assert [(True, "a"), (True, "b")] == texts(read(told, one, whole=True))


def test_a_copy_counts_once() -> None:
    """Records with ids of their own are known again in another file; one that brought nothing new is not read."""
    told = Told({"/p/1": [user("a", 10, "u1")], "/p/2": [user("a", 10, "u1"), user("b", 20, "u2")]})
    reading = read(told, session(part("/p/1", 10), part("/p/2", 20, file_id=2), part("/p/3", 9, file_id=3, records=0)))

    assert [(True, "a"), (True, "b")] == texts(reading)
    assert ["/p/1", "/p/2"] == [path for path, _, _ in told.asked]


def test_a_file_that_was_replaced_is_read_anew_by_time() -> None:
    """What is not newer than the last look is context, wherever it stands now."""
    told = Told({"/p/1": [user("a", 5, at=100), user("b", 9, at=300)]})
    one = session(part("/p/1", 9, head="ff"), looked_ms=5, through_ms=200, offsets={1: LookedTo(50, HEAD)})

    assert [(False, "a"), (True, "b")] == texts(read(told, one))


AWAY, CLOSED = FileNotFoundError("/p/1"), PermissionError(13, "Permission denied")


@pytest.mark.parametrize(
    ("error", "gone", "lasting"), [(AWAY, True, True), (AWAY, False, False), (CLOSED, False, False)]
)
def test_what_cannot_be_read_is_said(error: Exception, *, gone: bool, lasting: bool) -> None:
    """What a scan has missed too is gone for good; a permission may come back, so the session stays due."""
    reading = read(Told({"/p/1": error}), session(part("/p/1", 10, gone=gone)))

    assert reading.problem is not None
    assert lasting == reading.lasting


def test_one_file_that_is_gone_does_not_hide_the_other() -> None:
    """What can be read is looked at."""
    told = Told({"/p/1": AWAY, "/p/2": [user("b", 20)]})
    reading = read(told, session(part("/p/1", 10, gone=True), part("/p/2", 20, file_id=2)))

    assert (None, [(True, "b")]) == (reading.problem, texts(reading))


@pytest.mark.parametrize("error", [AWAY, CLOSED])
def test_a_file_that_is_away_for_a_moment_holds_up_the_others(error: Exception) -> None:
    """The rest would be settled without what it says, and nobody would look at it again (promise 8)."""
    told = Told({"/p/1": error, "/p/2": [user("b", 20)]})
    reading = read(told, session(part("/p/1", 10), part("/p/2", 20, file_id=2)))

    assert (True, False) == (reading.problem is not None, reading.lasting)

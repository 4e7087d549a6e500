"""From when a source can testify, over scans that go well, badly, or come too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from curatord.core.idle import Gap
from curatord.core.testimony import ScanFacts, SourceTestimony, after_scan, library_clock
from curatord.core.values import LibraryName

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
LIB = LibraryName("claude")


def at(days: float) -> datetime:
    """Return the instant so many days after the start."""
    return START + days * DAY


def scan(day: float, *sessions: tuple[float, float], problem: str | None = None) -> ScanFacts:
    """Return a scan on *day* that finds *sessions*, each from its first to its last record."""
    return ScanFacts(
        at=at(day),
        sessions=len(sessions),
        oldest_first_at=min((at(first) for first, _ in sessions), default=None),
        oldest_last_at=min((at(last) for _, last in sessions), default=None),
        problem=problem,
    )


def after(*scans: ScanFacts) -> SourceTestimony:
    """Return what is known of a source after *scans*."""
    known = SourceTestimony(name="claude-code ~/.claude/projects")
    for one in scans:
        known = after_scan(known, one)
    return known


def test_a_source_testifies_from_the_oldest_end_of_its_first_scan() -> None:
    """Not from a session's begin: one that began long ago may be all that a host's pruning left."""
    known = after(scan(100, (2, 60), (10, 40), (90, 99)))

    assert (at(40), at(100), at(100), 3) == (known.since, known.first_scanned_at, known.scanned_at, known.sessions)


def test_pruning_while_curatord_looks_takes_nothing_away() -> None:
    """The host drops old sessions one by one; what they said was counted, and testimony stands."""
    known = after(
        scan(100, (70, 70), (99, 99)),
        scan(101, (99, 99), (101, 101)),
        scan(130, (101, 101), (129, 129)),
    )

    assert (at(70), None) == (known.since, known.restarted)


def test_when_all_that_was_older_is_gone_testimony_starts_again() -> None:
    """Nobody looked for 60 days and the host kept 30: sessions may have come and gone unseen."""
    known = after(scan(100, (70, 70), (99, 99)), scan(160, (131, 131), (159, 159)))

    assert at(100) == known.since
    assert known.restarted is not None
    assert "everything older than the previous scan was gone" in known.restarted


def test_a_session_that_grew_is_not_gone() -> None:
    """Its last record is new, its first is not."""
    assert at(99) == after(scan(100, (99, 99)), scan(101, (99, 100.5))).since


def test_an_empty_source_begins_with_its_first_sessions() -> None:
    """Nothing found is no testimony; the first sessions are, and do not start it again at each scan."""
    empty = after(scan(1))
    begun = after(scan(1), scan(2, (1.5, 1.8)), scan(3, (1.5, 2.5)), scan(4, (1.5, 2.5), (3.5, 3.9)))

    assert (None, at(1.8), None) == (empty.since, begun.since, begun.restarted)


def test_an_emptied_source_starts_again_when_it_fills() -> None:
    """Everything was deleted, by whoever: it testifies again from the scan before new sessions came."""
    emptied = after(scan(100, (70, 99)), scan(101))
    filled = after_scan(emptied, scan(102, (101.5, 101.6)))

    assert ((at(100), 0), (at(101), 1)) == ((emptied.since, emptied.sessions), (filled.since, filled.sessions))


def test_an_incomplete_scan_proves_nothing() -> None:
    """A folder that cannot be read looks empty: what was known stands, with the problem beside it."""
    before = after(scan(100, (70, 99)))

    broken = after_scan(before, scan(101, problem="Permission denied"))
    mended = after_scan(broken, scan(102, (70, 99)))

    assert (before.since, before.sessions, "Permission denied") == (broken.since, broken.sessions, broken.problem)
    assert (at(70 + 29), None, None) == (mended.since, mended.problem, mended.restarted)


def test_a_library_takes_its_latest_source_that_holds_anything() -> None:
    """Both must be able to tell; an empty third holds nobody up."""
    sources = [after(scan(100, (10, 20))), after(scan(100, (80, 90))), after(scan(100))]

    clock = library_clock(LIB, sources, first_work=at(10), newest_work=at(99), gaps=[Gap(start=at(10), end=at(99))])

    assert (at(90), 3, at(10), at(99)) == (clock.observed_since, clock.sources, clock.first_work, clock.newest_work)


def test_an_emptied_source_holds_nobody_up() -> None:
    """It testifies to nothing any more, so the other one alone decides; with none left nobody can tell."""
    emptied, holding = after(scan(100, (80, 90)), scan(101)), after(scan(100, (10, 20)))

    both = library_clock(LIB, [emptied, holding], first_work=None, newest_work=None, gaps=())
    alone = library_clock(LIB, [emptied], first_work=None, newest_work=None, gaps=())

    assert (at(20), None) == (both.observed_since, alone.observed_since)


def test_sessions_without_any_time_testify_to_nothing() -> None:
    """They are there, but nobody can say from when."""
    timeless = after(ScanFacts(at=at(100), sessions=2))

    assert (None, None) == (
        timeless.since,
        library_clock(LIB, [timeless], first_work=None, newest_work=None, gaps=()).observed_since,
    )


def test_a_source_that_cannot_be_read_is_a_doubt_of_its_library() -> None:
    """What a skill was used for there nobody sees, so nothing ages."""
    sources = [after(scan(100, (10, 20)), scan(101, problem="Permission denied"))]

    clock = library_clock(LIB, sources, first_work=None, newest_work=None, gaps=(), doubts=("the clock jumped",))

    assert (
        "claude-code ~/.claude/projects could not be read whole: Permission denied",
        "the clock jumped",
    ) == clock.doubts


@given(
    steps=st.lists(
        st.tuples(
            st.floats(0.01, 50),
            st.lists(st.tuples(st.floats(0, 30), st.floats(0, 30)), max_size=3),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_testimony_never_reaches_further_back_than_it_did(
    steps: list[tuple[float, list[tuple[float, float]], bool]],
) -> None:
    """Whatever scans find: once known, `since` only moves forward, and never beyond the newest complete scan."""
    known = SourceTestimony(name="any")
    day = 100.0
    for wait, sessions, fails in steps:
        day += wait
        found = [(day - max(a, b), day - min(a, b)) for a, b in sessions]
        later = after_scan(known, scan(day, *found, problem="failed" if fails else None))
        if known.since is not None:
            assert later.since is not None
            assert later.since >= known.since
        if later.since is not None:
            assert later.scanned_at is not None
            assert later.since <= later.scanned_at
        known = later

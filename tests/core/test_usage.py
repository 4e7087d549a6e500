"""Testimony of use from several witnesses, joined so that nobody's blindness ages a skill."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.usage import NO_USAGE, HostCounters, UsageRow, fold_name, usage_by_skill
from curatord.core.values import Event, EventKind, LibraryName, RelPath, SessionId, SkillKey, SkillName

T1, T2, T3 = (datetime(2026, 5, day, tzinfo=UTC) for day in (1, 2, 3))


def a_row(
    skill: str = "csv-fix",
    *,
    library: str | None = "claude",
    kind: EventKind = EventKind.USE,
    host: str = "claude-code",
    session: str = "s1",
    count: int = 1,
    at: datetime = T1,
) -> UsageRow:
    """Return a row of usage."""
    return UsageRow(
        library=None if library is None else LibraryName(library),
        skill=SkillName(skill),
        kind=kind,
        host=host,
        session_id=SessionId(session),
        count=count,
        newest_at=at,
    )


def key(rel: str = "csv-fix", library: str = "claude") -> SkillKey:
    """Return a key."""
    return SkillKey(library=LibraryName(library), rel=RelPath(rel))


def test_events_count_by_kind_session_and_host() -> None:
    """Counts add up over sessions, sessions and hosts are distinct, the newest of each kind is kept."""
    rows = [
        a_row(count=2, at=T1),
        a_row(session="s2", host="codex", at=T3),
        a_row(kind=EventKind.VIEW, at=T2),
        a_row(kind=EventKind.PATCH, at=T1),
    ]

    usage = usage_by_skill([key()], rows)[key()]

    assert (3, 1, 1, 2, ("claude-code", "codex")) == (
        usage.use,
        usage.view,
        usage.patch,
        usage.sessions,
        usage.hosts,
    )
    assert (T3, T2, T1, None) == tuple(
        usage.newest_at(kind) for kind in (EventKind.USE, EventKind.VIEW, EventKind.PATCH, EventKind.DELETE)
    )
    assert (T3, "codex") == (usage.last_at, usage.last.witness if usage.last else None)


def test_a_skill_nobody_named_has_no_usage() -> None:
    """Every key gets an answer."""
    usage = usage_by_skill([key()], [a_row("other")])[key()]

    assert (NO_USAGE.use, NO_USAGE.last, False) == (usage.use, usage.last, usage.ever_used)


def test_an_event_without_library_is_activity_of_every_namesake() -> None:
    """Doubt means no ageing: a use that cannot be placed counts for both."""
    usage = usage_by_skill([key(), key(library="hermes"), key("other")], [a_row(library=None)])

    assert [1, 1, 0] == [usage[key()].use, usage[key(library="hermes")].use, usage[key("other")].use]


def test_an_event_with_a_library_counts_there_alone() -> None:
    """A placed event is no activity of a namesake in another library."""
    usage = usage_by_skill([key(), key(library="hermes")], [a_row(library="hermes")])

    assert [0, 1] == [usage[key()].use, usage[key(library="hermes")].use]


def test_two_categories_with_one_name_both_count_unless_a_path_tells() -> None:
    """A bare name is activity of both; `category/name` is activity of the one (bugs B069)."""
    keys = [key("data/lint"), key("web/lint")]

    both = usage_by_skill(keys, [a_row("lint")])
    one = usage_by_skill(keys, [a_row("web/lint")])
    unknown = usage_by_skill(keys, [a_row("elsewhere/lint")])

    assert [1, 1] == [both[k].use for k in keys]
    assert [0, 1] == [one[k].use for k in keys]
    assert [1, 1] == [unknown[k].use for k in keys]


@pytest.mark.parametrize("spelling", ["CSV-Fix", "csv_fix", "csv fix", "\N{FULLWIDTH LATIN SMALL LETTER C}sv-fix"])
def test_spellings_of_one_name_are_one(spelling: str) -> None:
    """What differs only in case, spaces, `_` or Unicode form names the same skill."""
    assert 1 == usage_by_skill([key()], [a_row(spelling)])[key()].use


def test_a_folded_name_never_looks_like_a_path() -> None:
    """A slash's look-alike folds to a slash; were it kept, events of such a skill would be lost and it would age."""
    odd = key("a\N{FULLWIDTH SOLIDUS}b")

    assert 1 == usage_by_skill([odd], [a_row("a\N{FULLWIDTH SOLIDUS}b")])[odd].use


@given(name=st.text(max_size=12))
def test_folding_twice_is_folding_once(name: str) -> None:
    """Fold is stable, so it can be stored."""
    assert fold_name(name) == fold_name(fold_name(name))


def test_hermes_counts_are_not_added_to_ours() -> None:
    """hermes.md, cases 36 and 43: both saw the same acts; the larger count is shown, and whose it is."""
    ours = [a_row(library="hermes", host="hermes", count=3, at=T3)]
    theirs = HostCounters(host="hermes", use=5, view=1, last_used_at=T2, last_viewed_at=T1)

    usage = usage_by_skill([key(library="hermes")], ours, {key(library="hermes"): theirs})[key(library="hermes")]

    assert (5, 1, T3, "host") == (usage.use, usage.view, usage.last_at, usage.counted_by)


def test_a_newer_time_of_the_host_wins() -> None:
    """The host saw a use that no transcript shows: that is the newest, and the witness says so."""
    theirs = HostCounters(host="hermes", use=1, last_used_at=T3)

    usage = usage_by_skill([key()], [a_row(at=T1)], {key(): theirs})[key()]

    assert (T3, "hermes' own counter", "transcripts") == (
        usage.last_at,
        usage.last.witness if usage.last else None,
        usage.counted_by,
    )


def test_a_count_without_a_time_is_use_all_the_same() -> None:
    """Old records of Hermes hold counts only; the skill was used, though nobody knows when."""
    usage = usage_by_skill([key()], [], {key(): HostCounters(host="hermes", use=2)})[key()]

    assert (True, None) == (usage.ever_used, usage.last_at)


def test_an_event_becomes_a_row_of_one() -> None:
    """`UsageRow.of` keeps what counts."""
    event = Event(
        host="hermes",
        session_id=SessionId("s9"),
        at=T2,
        library=None,
        skill=SkillName("x"),
        kind=EventKind.CREATE,
        via="skill_manage",
    )

    row = UsageRow.of(event)

    assert a_row("x", library=None, kind=EventKind.CREATE, host="hermes", session="s9", at=T2) == row


@given(
    rows=st.lists(
        st.builds(
            a_row,
            st.sampled_from(["csv-fix", "CSV fix", "other", "data/csv-fix"]),
            library=st.sampled_from([None, "claude", "hermes"]),
            kind=st.sampled_from(EventKind),
            session=st.sampled_from(["s1", "s2"]),
            count=st.integers(1, 5),
            at=st.sampled_from([T1, T2, T3]),
        ),
        max_size=12,
    ),
    seed=st.randoms(use_true_random=False),
    more=st.builds(a_row, at=st.sampled_from([T1, T2, T3])),
)
def test_order_does_not_matter_and_more_never_takes_away(rows: list[UsageRow], seed: object, more: UsageRow) -> None:
    """The same rows in any order give the same; one more never lowers a count or a time."""
    keys = [key(), key("data/csv-fix", "hermes")]
    shuffled = sorted(rows, key=lambda _: seed.random())  # type: ignore[attr-defined]  # hypothesis hands a Random

    before, after = usage_by_skill(keys, rows), usage_by_skill(keys, [*rows, more])

    assert before == usage_by_skill(keys, shuffled)
    for k in keys:
        assert before[k].use <= after[k].use
        times = [at for at in (before[k].last_at, after[k].last_at) if at is not None]
        assert sorted(times) == times
        assert before[k].last_at is None or after[k].last_at is not None


@pytest.mark.parametrize("count", [0, -1])
def test_a_row_counts_something(count: int) -> None:
    """A row without events is a mistake of whoever made it."""
    with pytest.raises(ValueError, match="at least one event"):
        a_row(count=count)

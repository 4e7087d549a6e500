"""Heard of use from several witnesses, joined so that nobody's blindness ages a skill."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.namesakes import fold_name
from curatord.core.usage import (
    NO_USAGE,
    Heard,
    HostCounters,
    SkillUsage,
    usage_by_skill,
)
from curatord.core.values import Event, EventKind, LibraryName, RelPath, SessionId, SkillKey, SkillName

T1, T2, T3 = (datetime(2026, 5, day, tzinfo=UTC) for day in (1, 2, 3))


def heard_of(events: Iterable[Event]) -> list[Heard]:
    """Return what *events*, in any order, say of each (library, skill), ordered by both."""
    groups: dict[tuple[LibraryName | None, SkillName], list[Event]] = defaultdict(list)
    for event in events:
        groups[event.library, event.skill].append(event)
    return [
        Heard(
            library=library,
            skill=skill,
            counts=Counter(event.kind for event in group),
            newest={
                kind: max(event.at for event in group if event.kind is kind)
                for kind in EventKind
                if any(event.kind is kind for event in group)
            },
            sessions=len({(event.host, event.session_id) for event in group}),
            hosts=tuple(sorted({event.host for event in group})),
        )
        for (library, skill), group in sorted(groups.items(), key=lambda item: (item[0][0] or "", item[0][1]))
    ]


def an_event(
    skill: str = "csv-fix",
    *,
    library: str | None = "claude",
    kind: EventKind = EventKind.USE,
    host: str = "claude-code",
    session: str = "s1",
    at: datetime = T1,
) -> Event:
    """Return an event."""
    return Event(
        host=host,
        session_id=SessionId(session),
        at=at,
        library=None if library is None else LibraryName(library),
        skill=SkillName(skill),
        kind=kind,
        via="Skill",
    )


def usage_of(
    keys: Sequence[SkillKey], *events: Event, counters: Mapping[SkillKey, HostCounters] | None = None
) -> dict[SkillKey, SkillUsage]:
    """Return the usage that *events* and *counters* make."""
    return usage_by_skill(keys, heard_of(events), counters)


def key(rel: str = "csv-fix", library: str = "claude") -> SkillKey:
    """Return a key."""
    return SkillKey(library=LibraryName(library), rel=RelPath(rel))


def test_events_count_by_kind_session_and_host() -> None:
    """Counts add up over sessions, sessions and hosts are distinct, the newest of each kind is kept."""
    usage = usage_of(
        [key()],
        an_event(at=T1),
        an_event(at=T1),
        an_event(session="s2", at=T3),
        an_event(kind=EventKind.VIEW, at=T2),
        an_event(kind=EventKind.PATCH, host="codex", at=T1),
    )[key()]

    assert (3, 1, 1, 3, ("claude-code", "codex")) == (
        usage.use,
        usage.view,
        usage.patch,
        usage.sessions,
        usage.hosts,
    )
    assert (T3, T2, T1, None) == tuple(
        usage.newest_at(kind) for kind in (EventKind.USE, EventKind.VIEW, EventKind.PATCH, EventKind.DELETE)
    )
    assert (T3, "claude-code or codex") == (usage.last_at, usage.last.witness if usage.last else None)


def test_a_skill_nobody_named_has_no_usage() -> None:
    """Every key gets an answer."""
    usage = usage_of([key()], an_event("other"))[key()]

    assert (NO_USAGE.use, NO_USAGE.last, False) == (usage.use, usage.last, usage.ever_used)


def test_an_event_without_library_is_activity_of_every_namesake() -> None:
    """Doubt means no ageing: a use that cannot be placed counts for both."""
    usage = usage_of([key(), key(library="hermes"), key("other")], an_event(library=None))

    assert [1, 1, 0] == [usage[key()].use, usage[key(library="hermes")].use, usage[key("other")].use]


def test_an_event_with_a_library_counts_there_alone() -> None:
    """A placed event is no activity of a namesake in another library."""
    usage = usage_of([key(), key(library="hermes")], an_event(library="hermes"))

    assert [0, 1] == [usage[key()].use, usage[key(library="hermes")].use]


def test_two_categories_with_one_name_both_count_unless_a_path_tells() -> None:
    """A bare name is activity of both; `category/name` is activity of the one (bugs B069)."""
    keys = [key("data/lint"), key("web/lint")]

    both = usage_of(keys, an_event("lint"))
    one = usage_of(keys, an_event("web/lint"))
    unknown = usage_of(keys, an_event("elsewhere/lint"))

    assert [1, 1] == [both[k].use for k in keys]
    assert [0, 1] == [one[k].use for k in keys]
    assert [1, 1] == [unknown[k].use for k in keys]


@pytest.mark.parametrize("spelling", ["CSV-Fix", "csv_fix", "csv fix", "\N{FULLWIDTH LATIN SMALL LETTER C}sv-fix"])
def test_spellings_of_one_name_are_one(spelling: str) -> None:
    """What differs only in case, spaces, `_` or Unicode form names the same skill."""
    assert 1 == usage_of([key()], an_event(spelling))[key()].use


def test_a_folded_name_never_looks_like_a_path() -> None:
    """A slash's look-alike folds to a slash; were it kept, events of such a skill would be lost and it would age."""
    odd = key("a\N{FULLWIDTH SOLIDUS}b")

    assert 1 == usage_of([odd], an_event("a\N{FULLWIDTH SOLIDUS}b"))[odd].use


@given(name=st.text(max_size=12))
def test_folding_twice_is_folding_once(name: str) -> None:
    """Fold is stable, so it can be stored."""
    assert fold_name(name) == fold_name(fold_name(name))


def test_hermes_counts_are_not_added_to_ours() -> None:
    """hermes.md, cases 36 and 43: both saw the same acts; the larger count is shown, and whose it is."""
    ours = [an_event(library="hermes", host="hermes", at=at) for at in (T1, T2, T3)]
    theirs = HostCounters(host="hermes", use=5, view=1, last_used_at=T2, last_viewed_at=T1)

    usage = usage_of([key(library="hermes")], *ours, counters={key(library="hermes"): theirs})[key(library="hermes")]

    assert (5, 1, T3, "host") == (usage.use, usage.view, usage.last_at, usage.counted_by)


def test_a_newer_time_of_the_host_wins() -> None:
    """The host saw a use that no transcript shows: that is the newest, and the witness says so."""
    theirs = HostCounters(host="hermes", use=1, last_used_at=T3)

    usage = usage_of([key()], an_event(at=T1), counters={key(): theirs})[key()]

    assert (T3, "hermes' own counter", "transcripts") == (
        usage.last_at,
        usage.last.witness if usage.last else None,
        usage.counted_by,
    )


def test_a_count_without_a_time_is_use_all_the_same() -> None:
    """Old records of Hermes hold counts only; the skill was used, though nobody knows when."""
    usage = usage_by_skill([key()], [], {key(): HostCounters(host="hermes", use=2)})[key()]

    assert (True, None) == (usage.ever_used, usage.last_at)


def test_what_was_heard_is_sorted_and_whole() -> None:
    """Each (library, skill) once, those without a library first, whatever the order of the events."""
    events = [
        an_event("b"),
        an_event("a", library=None, kind=EventKind.VIEW, at=T2),
        an_event("b", session="s2", at=T3),
    ]

    assert [
        Heard(
            library=None,
            skill=SkillName("a"),
            counts={EventKind.VIEW: 1},
            newest={EventKind.VIEW: T2},
            sessions=1,
            hosts=("claude-code",),
        ),
        Heard(
            library=LibraryName("claude"),
            skill=SkillName("b"),
            counts={EventKind.USE: 2},
            newest={EventKind.USE: T3},
            sessions=2,
            hosts=("claude-code",),
        ),
    ] == heard_of(events)


any_event = st.builds(
    an_event,
    st.sampled_from(["csv-fix", "CSV fix", "other", "data/csv-fix"]),
    library=st.sampled_from([None, "claude", "hermes"]),
    kind=st.sampled_from(EventKind),
    session=st.sampled_from(["s1", "s2"]),
    at=st.sampled_from([T1, T2, T3]),
)


@given(events=st.lists(any_event, max_size=12), data=st.data(), more=any_event)
def test_order_does_not_matter_and_more_never_takes_away(events: list[Event], data: st.DataObject, more: Event) -> None:
    """The same events in any order give the same; one more never lowers a count or a time."""
    keys = [key(), key("data/csv-fix", "hermes")]

    before, after = usage_of(keys, *events), usage_of(keys, *events, more)

    assert before == usage_of(keys, *data.draw(st.permutations(events)))
    for k in keys:
        assert before[k].use <= after[k].use
        assert before[k].sessions <= after[k].sessions
        times = [at for at in (before[k].last_at, after[k].last_at) if at is not None]
        assert sorted(times) == times
        assert before[k].last_at is None or after[k].last_at is not None


def test_a_count_is_never_negative() -> None:
    """A testimony that takes away is a mistake of whoever made it."""
    with pytest.raises(ValueError, match="negative counts"):
        Heard(library=None, skill=SkillName("x"), counts={EventKind.USE: -1}, newest={}, sessions=0, hosts=())

"""Which sessions are due: what the store keeps of the answers, and what may never be sent."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from curatord.core.cheap import replace
from curatord.core.distil.due import Due
from curatord.core.settings import DistilSettings, GateSettings
from curatord.passes.distil_due import Judge, SourceRule
from curatord.ports.distil_store import FilePart, Judged, LastLook, SessionToDistil

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def place(source: str = "/p", number: int = 1) -> FilePart:
    return FilePart(
        file_id=number, source_id=number, host="pi", source=source, path=f"{source}/x", offset=9, head="aa", gone=False,
        records=9, last_ms=0,
    )  # fmt: skip


def session(row: int = 1, *, ago: timedelta = timedelta(hours=2), **more: Any) -> SessionToDistil:
    at = ms(NOW - ago)
    values: dict[str, Any] = {
        "row": row, "host": "pi", "session_id": f"s{row}", "kind": "person", "parent": None, "cwds": ("/w",),
        "files": (place(),), "first_ms": at - 1000, "last_ms": at, "alive_ms": at, "user_turns": 5, "tool_calls": 9,
        "touches": 0, "since_ms": at, "first_seen_ms": ms(NOW) - 1, "look": LastLook(),
    }  # fmt: skip
    return SessionToDistil(**(values | more))


class Store:
    """The part of the store that judging needs, in memory."""

    def __init__(self, *sessions: SessionToDistil) -> None:
        self.sessions = {one.row: one for one in sessions}
        self.waiting = set(self.sessions)
        self.answers: dict[int, Judged] = {}

    def queued(self, now: datetime, *, limit: int = 500) -> list[SessionToDistil]:
        return [self.sessions[row] for row in sorted(self.waiting)][:limit]

    def judge(self, judged: Iterable[Judged]) -> None:
        for one in judged:
            self.answers[one.row] = one
            self.waiting.discard(one.row)

    def ask_all_again(self) -> None:
        self.waiting = set(self.sessions)

    def unlooked(self, *, after: int = 0, limit: int = 500) -> list[SessionToDistil]:
        found = [one for row, one in sorted(self.sessions.items()) if row > after and one.look.looked_ms is None]
        return found[:limit]

    def due(self) -> list[int]:
        return [row for row, one in self.answers.items() if one.due is not None]


def judge(store: Store, *, since: datetime = NOW, **rules: SourceRule) -> Judge:
    kept: dict[str, str] = {}
    found = {("pi", name if name.startswith("/") else f"/{name}"): rule for name, rule in rules.items()}
    return Judge(
        store=store,  # type: ignore[arg-type]  # as much of it as judging asks for
        settings=DistilSettings(),
        gates=GateSettings(),
        rules=found or {("pi", "/p"): SourceRule()},
        since=since,
        kept_hash=lambda: kept.get("hash"),
        keep_hash=lambda value: kept.__setitem__("hash", value),
    )


def test_answers_are_kept_with_when_to_look_again() -> None:
    """A due session has its place, one that is alive a time, one with too little none."""
    store = Store(session(1), session(2, ago=timedelta(minutes=5)), session(3, user_turns=1, tool_calls=0))
    judge(store).judge(NOW)

    assert [1] == store.due()
    assert ms(NOW + timedelta(minutes=25)) == store.answers[2].look_at_ms
    assert (None, "waiting") == (store.answers[3].look_at_ms, store.answers[3].verdict)


def test_a_change_of_the_settings_has_all_judged_anew() -> None:
    """The same settings do not."""
    store = Store(session(1))
    first = judge(store)
    first.judge(NOW)
    again = first.judge(NOW)
    other = replace(first, settings=DistilSettings(min_turns=6)).judge(NOW)

    assert (0, 1) == (again, other)
    assert [] == store.due()


@pytest.mark.parametrize(
    ("rule", "by_name", "sent"),
    [
        (SourceRule(), False, True),
        (SourceRule(off="`distil: off`"), False, False),
        (SourceRule(off="`distil: off`"), True, False),
        (SourceRule(off="`distil: auto`", auto=True), False, False),
        (SourceRule(off="`distil: auto`", auto=True), True, True),
        (SourceRule(exclude=("/w",)), True, False),
        (SourceRule(off="`distil: auto`", auto=True, exclude=("/w",)), True, False),
    ],
)
def test_a_persons_order_passes_over_auto_and_nothing_else(rule: SourceRule, *, by_name: bool, sent: bool) -> None:
    """What is off, or excluded, is never sent."""
    assert sent == (judge(Store(), p=rule).never(session(1), by_name=by_name) is None)


def test_a_session_is_excluded_where_any_of_its_places_excludes_it() -> None:
    """Also with the maximum of folders known, since a further one might be excluded."""
    both = session(1, files=(place("/p", 1), place("/q", 2)))
    many = session(2, cwds=tuple(f"/x/{number}" for number in range(16)))
    judging = judge(Store(), p=SourceRule(), q=SourceRule(exclude=("/w",)))

    assert judging.never(both) is not None
    assert judge(Store(), p=SourceRule(exclude=("/y",))).never(many) is not None
    assert judge(Store(), p=SourceRule()).never(many) is None


def test_the_backlog_counts_from_when_distilling_could_be_done() -> None:
    """A model that is configured half a year later does not bring half a year of sessions."""
    old = session(1, ago=timedelta(days=10), first_seen_ms=ms(NOW - timedelta(days=200)))
    recent = session(2, ago=timedelta(days=2), first_seen_ms=ms(NOW - timedelta(days=200)))
    judging = judge(Store(old, recent))
    judging.judge(NOW)

    assert not isinstance(judging.answer(old, NOW), Due)
    assert isinstance(judging.answer(recent, NOW), Due)
    assert [1, 2] == judging.backlog(NOW)

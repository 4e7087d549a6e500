"""The `CurationStore` port, on the real one."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from curatord.adapters.store import Database, open_database
from curatord.adapters.store.curation import SqliteCurationStore
from curatord.core.curation import WITHDRAWN, Proposal, RunRow
from curatord.core.journal import (
    ArchiveChange,
    ArchiveItem,
    FileImage,
    HistoryChange,
    JournalEntry,
    Place,
    RecordChange,
    WriteFile,
)
from curatord.core.plan import Pin
from curatord.core.skill_record import SkillRecord
from curatord.core.values import (
    ActionId,
    BlobId,
    Fingerprint,
    Importance,
    LibraryName,
    Mode,
    Outcome,
    RelPath,
    RunId,
    SkillKey,
    State,
    Trigger,
)
from curatord.errors import StateError
from curatord.ports.curation_store import CurationStore
from curatord.ports.decisions import Decision, KnownDecisions, Rejection

NOW = datetime(2026, 3, 1, 12, 0, 0, 123000, tzinfo=UTC)
LIB = LibraryName("lib")
KEY = SkillKey(library=LIB, rel=RelPath("cat/a"))


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return open_database(tmp_path, now=NOW)


@pytest.fixture
def store(database: Database) -> CurationStore:
    return SqliteCurationStore(database=database)


def record(key: SkillKey = KEY, **more: object) -> SkillRecord:
    return SkillRecord(key=key, state_since=NOW, first_seen_at=NOW, born_at=NOW, **more)  # type: ignore[arg-type]


def entry(action_id: str, **more: object) -> JournalEntry:
    given: dict[str, object] = {
        "action_id": ActionId(action_id), "run_id": RunId("r1"), "at": NOW, "kind": "archive", "by": "rules",
        "library": LIB, "targets": (KEY,), "summary": "s", "reason": "r",
    } | more  # fmt: skip
    return JournalEntry(**given)  # type: ignore[arg-type]


def test_records_come_back_as_they_went_in(store: CurationStore) -> None:
    """Every field of a record survives, with its type, its zone and its milliseconds."""
    full = record(
        state=State.ARCHIVED, stale_since=NOW, born_from="ledger", restored_at=NOW, pinned=True,
        importance=Importance.LOW, owner="adopted", owner_at=NOW, managed_since=NOW,
        trusted_fingerprint=Fingerprint("t"), seen_fingerprint=Fingerprint("s"), seen_at=NOW, missing_since=NOW,
        archived_at=NOW, archive_path="/x", archive_reason="y", absorbed_into="z",
    )  # fmt: skip
    bare = record(SkillKey(library=LIB, rel=RelPath("b")))

    store.put_skills([full, bare])

    assert {bare.key: bare, full.key: full} == store.skills(LIB) == store.skills()
    assert full == store.skill(KEY)
    assert store.skill(SkillKey(library=LIB, rel=RelPath("none"))) is None
    assert {} == store.skills(LibraryName("other"))


def test_a_scan_leaves_states_and_decisions_alone(store: CurationStore) -> None:
    """Of a known skill only what a scan may say is written; another first sight is another skill."""
    store.put_skills([record(pinned=True, state=State.STALE)])

    store.put_skills([record(seen_at=NOW, seen_fingerprint=Fingerprint("f"))])
    same = store.skill(KEY)
    later = NOW + timedelta(days=1)
    store.put_skills([replace(record(), first_seen_at=later)])
    other = store.skill(KEY)

    assert same is not None
    assert (True, State.STALE, NOW, "f") == (same.pinned, same.state, same.seen_at, same.seen_fingerprint)
    assert replace(record(), first_seen_at=later) == other


def test_an_action_changes_only_its_fields_and_once(store: CurationStore) -> None:
    """What a scan wrote meanwhile stays; a second call for the same action does nothing."""
    before = record()
    store.put_skills([before])
    store.put_skills([replace(before, seen_at=NOW)])
    done = entry(
        "a1",
        changes=(RecordChange(key=KEY, before=before, after=replace(before, state=State.STALE)),),
        history=(HistoryChange(key=KEY, from_state=State.ACTIVE, to_state=State.STALE, reason="idle"),),
    )

    store.commit_action(done)
    store.commit_action(done)

    after = store.skill(KEY)
    assert after is not None
    assert (State.STALE, NOW) == (after.state, after.seen_at)
    assert [(State.ACTIVE, State.STALE, "idle", "r1", NOW)] == [
        (line.from_state, line.to_state, line.reason, line.run_id, line.at) for line in store.history(KEY)
    ]
    assert [done] == [row.entry for row in store.actions()]


def test_actions_are_found_by_run_proposal_and_skill(store: CurationStore) -> None:
    """Newest first, however they are asked for; an undo marks what it undoes and rejects its proposal."""
    other = SkillKey(library=LIB, rel=RelPath("b"))
    store.commit_action(entry("a1", proposal="p1"))
    store.commit_action(entry("a2", run_id=RunId("r2"), targets=(other,)))
    store.commit_action(entry("a3", run_id=None, targets=(KEY, other), undoes=ActionId("a1"), proposal="p1"))

    assert ["a3", "a2", "a1"] == [row.entry.action_id for row in store.actions()]
    assert ["a1"] == [row.entry.action_id for row in store.actions(run_id=RunId("r1"))]
    assert ["a3", "a1"] == [row.entry.action_id for row in store.actions(key=KEY)]
    assert ["a3"] == [row.entry.action_id for row in store.actions(key=KEY, limit=1)]
    assert ["a3", "a1"] == [row.entry.action_id for row in store.actions(proposal="p1")]
    undone = store.action(ActionId("a1"))
    assert undone is not None
    assert ("undone", "a3") == (undone.status, undone.undone_by)
    assert "r2" == store.last_run_to_undo()
    assert ["p1"] == list(store.rejections())
    assert (True, False) == (store.has_action(ActionId("a2")), store.has_action(ActionId("a9")))


def test_a_lost_database_is_made_whole_by_the_entry(store: CurationStore) -> None:
    """A record that is not there any more comes back whole with the action."""
    after = record(state=State.STALE, pinned=True)

    store.commit_action(entry("a1", changes=(RecordChange(key=KEY, before=record(pinned=True), after=after),)))

    assert after == store.skill(KEY)


def test_archive_items_come_and_go(store: CurationStore) -> None:
    """One path may be archived many times; each item is its own."""
    items = [
        ArchiveItem(key=KEY, path=RelPath(path), at=NOW + timedelta(days=n), reason="r", action_id=ActionId("a1"))
        for n, path in enumerate(("a", "a-20260302120000"))
    ]
    for n, item in enumerate(items):
        store.commit_action(entry(f"a{n}", archive=(ArchiveChange(before=None, after=item),)))

    assert (items[1], items[0]) == store.archive(LIB)
    store.commit_action(entry("a9", archive=(ArchiveChange(before=items[1], after=None),)))
    assert (items[0],) == store.archive()


def test_blobs_in_use(store: CurationStore) -> None:
    """All bytes that an undo may need are named."""
    step = WriteFile(
        place=Place(root="/l", path=RelPath("a/SKILL.md")),
        before=FileImage(blob=BlobId("b1"), mode=0o644),
        after=FileImage(blob=BlobId("b2"), mode=0o644),
    )
    store.commit_action(entry("a1", steps=(step,)))

    assert {"b1", "b2"} == store.blobs_in_use()


def run(run_id: str, outcome: Outcome, *, trigger: Trigger = Trigger.SCHEDULE, dry: bool = False) -> RunRow:
    at = datetime.strptime(run_id, "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    return RunRow(run_id=RunId(run_id), trigger=trigger, dry_run=dry, mode=Mode.GUARDED, outcome=outcome, started_at=at)


def test_runs(store: CurationStore) -> None:
    """The last finished whole run is of all libraries, no dry run, no distil batch, neither failed nor killed."""
    rows = [
        run("20260301-000000", Outcome.OK),
        run("20260302-000000", Outcome.OK, dry=True),
        run("20260303-000000", Outcome.OK, trigger=Trigger.DISTIL),
        run("20260304-000000", Outcome.FAILED),
        run("20260305-000000", Outcome.RUNNING),
        replace(run("20260306-000000", Outcome.OK), whole=False),
    ]
    assert store.last_finished() is None
    for row in rows:
        store.put_run(row)

    assert rows[::-1] == list(store.runs())
    assert rows[:-3:-1] == list(store.runs(limit=2))
    assert rows[0] == store.last_finished()
    assert ("20260305-000000",) == store.interrupt_runs(NOW)
    assert () == store.interrupt_runs(NOW)
    killed = store.run(RunId("20260305-000000"))
    assert killed is not None
    assert (Outcome.INTERRUPTED, NOW) == (killed.outcome, killed.finished_at)
    done = replace(rows[0], outcome=Outcome.PARTIAL, finished_at=NOW, duration_s=1.5, summary="s")
    store.put_run(done)
    assert done == store.run(rows[0].run_id)


def proposal(id_: str, **more: object) -> Proposal:
    given: dict[str, object] = {
        "id": id_, "kind": "merge", "library": LIB, "targets": (KEY,), "summary": "s", "reason": "r",
        "created_at": NOW, "actions": (Pin(key=KEY, reason="r", by="user"),), "diff": "- a\n+ b\n",
    } | more  # fmt: skip
    return Proposal(**given)  # type: ignore[arg-type]


def test_the_same_proposal_is_never_asked_twice(store: CurationStore) -> None:
    """A known id is not stored again; one of the same targets with other content takes the place of the old."""
    assert "new" == store.propose(proposal("aaa"))
    assert "pending" == store.propose(proposal("aaa", summary="other words"))
    assert "new" == store.propose(proposal("abb"))
    assert "new" == store.propose(proposal("ccc", kind="archive"))

    assert [("abb", "pending"), ("ccc", "pending")] == [(p.id, p.status) for p in store.proposals()]
    assert ["aaa", "abb", "ccc"] == [p.id for p in store.proposals(None)]
    old = store.proposal("aaa")
    assert old is not None
    assert ("superseded", "replaced by abb") == (old.status, old.decided_reason)
    assert proposal("ccc", kind="archive") == store.proposal("c")
    assert store.proposal("") is None
    assert store.proposal("a") is None
    assert store.proposal("%") is None
    assert "new" == store.propose(proposal("aaa")), "what was replaced may come back when the content does"


def test_rejected_stays_rejected(store: CurationStore) -> None:
    """Also where the proposal itself is not known any more, as in a rebuilt database."""
    store.propose(proposal("aaa"))
    store.decide("aaa", "rejected", now=NOW, reason="no")
    store.decide("zzz", "rejected", now=NOW, reason="undone")

    assert "rejected" == store.propose(proposal("aaa"))
    assert "rejected" == store.propose(proposal("zzz"))
    assert {"aaa": "no", "zzz": "undone"} == {id_: r.reason for id_, r in store.rejections().items()}


def test_withdrawn_proposals_are_those_of_late_that_a_gone_skill_superseded(store: CurationStore) -> None:
    """From the given time on, that included; what was replaced, or withdrawn before, is not read at all."""
    for id_, at, reason in [
        ("old", NOW - timedelta(milliseconds=1), WITHDRAWN + "gone"),
        ("then", NOW, WITHDRAWN + "gone"),
        ("late", NOW + timedelta(days=1), WITHDRAWN + "gone"),
        ("other", NOW, "replaced by late"),
    ]:
        store.propose(proposal(id_, kind=id_))
        store.decide(id_, "superseded", now=at, reason=reason)
    store.propose(proposal("waits"))

    assert ["late", "then"] == [found.id for found in store.withdrawn(since=NOW)]


def test_an_approved_proposal_is_marked_with_its_action(store: CurationStore) -> None:
    """In the transaction of the action itself, so that a kill cannot leave it pending."""
    store.propose(proposal("aaa"))

    store.commit_action(entry("a1", proposal="aaa"))

    found = store.proposal("aaa")
    assert found is not None
    assert "approved" == found.status


def test_what_was_approved_once_is_asked_again_when_it_is_due_again(store: CurationStore) -> None:
    """It was restored since, so that it is due anew with the same content is a new question."""
    store.propose(proposal("aaa"))
    store.decide("aaa", "approved", now=NOW)

    assert "new" == store.propose(proposal("aaa"))
    assert ["aaa"] == [p.id for p in store.proposals()]


def test_a_decision_is_not_overwritten_by_a_later_one(store: CurationStore) -> None:
    """Whoever comes second is told, and nothing changes."""
    store.propose(proposal("aaa"))

    assert store.decide("aaa", "approved", now=NOW)
    assert not store.decide("aaa", "rejected", now=NOW, reason="no")
    assert store.decide("aaa", "approved", now=NOW, reason="in part")
    found = store.proposal("aaa")
    assert found is not None
    assert ("approved", "in part") == (found.status, found.decided_reason)
    assert {} == store.rejections()


def test_small_facts(store: CurationStore) -> None:
    """A fact is kept, replaced and forgotten."""
    assert store.meta("paused") is None
    store.set_meta("paused", "1")
    store.set_meta("paused", "2")
    assert "2" == store.meta("paused")
    store.set_meta("paused", None)
    assert store.meta("paused") is None


def test_refill_is_idempotent_and_keeps_what_a_scan_found(store: CurationStore) -> None:
    """Decisions come back to skills that were found already and to those that were not."""
    store.put_skills([record(seen_at=NOW)])
    other = SkillKey(library=LIB, rel=RelPath("b"))
    known = KnownDecisions(
        skills={
            KEY: Decision(owner="adopted", owner_at=NOW, pinned=True),
            other: Decision(importance=Importance.CRITICAL),
        },
        rejected={"p": Rejection(id="p", at=NOW)},
        archive=(ArchiveItem(key=other, path=RelPath("b"), at=NOW, reason="r", action_id=ActionId("a")),),
    )

    assert 4 == store.refill(known, now=NOW)
    assert 0 == store.refill(known, now=NOW + timedelta(days=1))
    first = store.skill(KEY)
    assert first is not None
    assert (True, "adopted", NOW) == (first.pinned, first.owner, first.seen_at)
    assert known.archive == store.archive()


def test_a_failed_transaction_leaves_nothing(store: CurationStore, database: Database) -> None:
    """An entry that cannot be recorded whole is not recorded at all, and the next one can be."""
    bad = entry("a1", history=(HistoryChange(key=KEY, from_state=None, to_state=None, reason="x"),))  # type: ignore[arg-type]
    with pytest.raises(StateError):
        store.commit_action(bad)

    assert () == store.actions()
    assert () == store.history(KEY)
    store.commit_action(entry("a1"))
    assert 1 == len(store.actions())


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    """Eight connections write their actions at once: all of them are there, in one order."""
    open_database(tmp_path, now=NOW).close()
    errors: list[Exception] = []

    def work(n: int) -> None:
        try:
            database = open_database(tmp_path, now=NOW)
            mine = SqliteCurationStore(database=database)
            for m in range(10):
                mine.commit_action(entry(f"a{n}-{m}"))
            database.close()
        except (StateError, sqlite3.Error) as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == errors
    assert 80 == len(SqliteCurationStore(database=open_database(tmp_path, now=NOW)).actions())


def run_of(number: int, run_id: str | None, **more: object) -> JournalEntry:
    """Return an action of *run_id*, *number* minutes later than the first."""
    at = NOW + timedelta(minutes=number)
    return entry(f"a{number}", run_id=None if run_id is None else RunId(run_id), at=at, **more)


@pytest.mark.parametrize(
    ("keep", "stays"),
    [
        (10, ["a4", "a3", "a2", "a1", "a0"]),
        (5, ["a4", "a3", "a2", "a1", "a0"]),
        (3, ["a4", "a3", "a2"]),
        (2, ["a4", "a3", "a2"]),  # a2 and a3 are one run
        (1, ["a4"]),
    ],
)
def test_the_newest_actions_stay_and_runs_whole(store: CurationStore, keep: int, stays: list[str]) -> None:
    """Beyond *keep* they go, with what was known of their targets; a run is never remembered in part."""
    for number, run_id in enumerate([None, "r1", "r2", "r2", None]):
        store.commit_action(run_of(number, run_id))

    assert 5 - len(stays) == store.forget_actions(keep)

    assert stays == [row.entry.action_id for row in store.actions()]
    assert stays == [row.entry.action_id for row in store.actions(key=KEY)]
    gone = 5 - len(stays)
    until = (NOW + timedelta(minutes=gone - 1)).isoformat() if gone else None
    assert until == store.meta("undo.forgotten_until")
    assert 0 == store.forget_actions(keep)


def test_what_the_archive_needs_is_not_forgotten(store: CurationStore) -> None:
    """Actions whose package is still known in the archive stay, with their run and their proposal; then they go."""
    item = ArchiveItem(key=KEY, path=RelPath("a"), at=NOW, reason="r", action_id=ActionId("a1"))
    put = ArchiveChange(before=None, after=item)
    store.commit_action(run_of(0, "r1"))
    store.commit_action(run_of(1, "r1", archive=(put,)))
    store.commit_action(run_of(2, None, proposal="p"))
    store.commit_action(run_of(3, None, proposal="p"))
    store.commit_action(run_of(4, None))

    assert 2 == store.forget_actions(1)
    assert ["a4", "a1", "a0"] == [row.entry.action_id for row in store.actions()]

    store.commit_action(run_of(5, None, archive=(ArchiveChange(before=item, after=None),)))
    assert 3 == store.forget_actions(1)
    assert ["a5"] == [row.entry.action_id for row in store.actions()]

"""What a look at a library changes in what is remembered, and what it does not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from curatord.core.cheap import replace
from curatord.core.library import ArchivedPackage, LibrarySnapshot, Skill, SkillContent
from curatord.core.observation import Birth, Observation, observe
from curatord.core.skill_record import SkillRecord
from curatord.core.values import Fingerprint, LibraryName, RelPath, SkillKey, SkillName, State

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
THEN = NOW - timedelta(days=40)
MAIN = LibraryName("main")


def a_key(rel: str) -> SkillKey:
    return SkillKey(library=MAIN, rel=RelPath(rel))


def a_skill(rel: str = "deploy", *, content: str = "f1", newest: datetime = THEN) -> Skill:
    return Skill(
        key=a_key(rel),
        path=f"/skills/{rel}",
        form="folder",
        content=SkillContent(fingerprint=Fingerprint(content), newest_ns=int(newest.timestamp()) * 10**9),
    )


def a_record(rel: str = "deploy", **changes: Any) -> SkillRecord:
    record = SkillRecord(
        key=a_key(rel),
        state_since=THEN,
        first_seen_at=THEN,
        born_at=THEN,
        seen_fingerprint=Fingerprint("f1"),
        seen_at=THEN,
        managed_since=THEN,
        trusted_fingerprint=Fingerprint("f1"),
    )
    return replace(record, **changes)


def a_look(
    *skills: Skill,
    records: tuple[SkillRecord, ...] = (),
    archived: tuple[ArchivedPackage, ...] = (),
    complete: bool = True,
    managed: bool = True,
    explained: bool = False,
    birth: Birth | None = None,
) -> Observation:
    snapshot = LibrarySnapshot(
        library=MAIN,
        root="/skills",
        real_root="/skills",
        layout="agent-skills",
        archive="/.skills-archive",
        skills=skills,
        archived=archived,
        complete=complete,
    )
    return observe(
        snapshot,
        {record.key: record for record in records},
        now=NOW,
        birth=lambda _skill: birth,
        managed=lambda _skill, _record: managed,
        explained=lambda _skill, _record: explained,
    )


def in_archive(folder: str, *, at: datetime | None = None) -> ArchivedPackage:
    return ArchivedPackage(
        path=f"/.skills-archive/{folder}", folder=folder, name=SkillName(folder.split("-2")[0]), archived_at=at
    )


def test_a_new_skill_is_born_when_the_evidence_says() -> None:
    """Ledger or event before file, and the newest file only where nothing else tells."""
    by_ledger = a_look(a_skill(), birth=Birth(at=THEN - timedelta(days=9), source="ledger"))
    by_file = a_look(a_skill())

    assert (THEN - timedelta(days=9), "ledger") == _born(by_ledger)
    assert (THEN, "file") == _born(by_file)
    assert 1 == by_file.met


def test_nobody_was_born_tomorrow() -> None:
    """A file dated ahead of the clock makes no skill younger than now."""
    assert (NOW, "file") == _born(a_look(a_skill(newest=NOW + timedelta(days=400))))


def test_birth_is_frozen() -> None:
    """A touch changes neither birth nor anything else (B022)."""
    look = a_look(a_skill(newest=NOW), records=(a_record(),))

    assert () == look.put


def test_a_skill_that_is_gone_is_missing_not_archived() -> None:
    """B115: a vanished folder is no decision of anyone."""
    look = a_look(records=(a_record(),))

    assert NOW == look.records[a_key("deploy")].missing_since
    assert State.ACTIVE is look.records[a_key("deploy")].state


def test_an_incomplete_look_makes_nothing_missing() -> None:
    """A folder that could not be listed is no evidence of absence (promise 9)."""
    assert () == a_look(records=(a_record(),), complete=False).put


def test_a_moved_skill_keeps_its_history() -> None:
    """The same name and content in another category is the same skill, pins and birth included."""
    look = a_look(a_skill("ops/deploy"), records=(a_record(pinned=True),))

    assert [a_key("ops/deploy")] == list(look.records)
    assert look.records[a_key("ops/deploy")].pinned
    assert ((a_key("deploy"),), [a_key("ops/deploy")]) == (look.gone, [record.key for record in look.moved])
    assert THEN == look.records[a_key("ops/deploy")].first_seen_at


def test_two_candidates_are_one_too_many() -> None:
    """Where it cannot be told which of two moved, neither did."""
    look = a_look(a_skill("new/deploy"), records=(a_record("a/deploy", pinned=True), a_record("b/deploy", pinned=True)))

    assert not look.records[a_key("new/deploy")].pinned
    assert NOW == look.records[a_key("a/deploy")].missing_since


def test_what_the_host_archived_is_archived() -> None:
    """Its package stands in the archive, so that is where it is; the history says by whom."""
    look = a_look(records=(a_record(),), archived=(in_archive("deploy", at=NOW - timedelta(days=1)),))

    record = look.records[a_key("deploy")]
    assert (State.ARCHIVED, "/.skills-archive/deploy") == (record.state, record.archive_path)
    assert ["it was found in the archive, put there by the host"] == [shift.reason for shift in look.shifts]


def test_an_old_archive_of_the_name_explains_nothing() -> None:
    """A package that was archived before the skill was last seen alive is another one (B034)."""
    old = in_archive("deploy-20200101000000", at=datetime(2020, 1, 1, tzinfo=UTC))

    look = a_look(records=(a_record(),), archived=(old,))

    assert NOW == look.records[a_key("deploy")].missing_since


def test_what_was_put_back_by_hand_lives_again() -> None:
    """Its idle clock starts anew, as after a restore."""
    archived = a_record(state=State.ARCHIVED, archived_at=THEN, archive_path="/.skills-archive/deploy")

    look = a_look(a_skill(), records=(archived,))

    record = look.records[a_key("deploy")]
    assert (State.ACTIVE, NOW, None) == (record.state, record.restored_at, record.archive_path)
    assert 1 == len(look.shifts)


def test_an_explained_change_is_trusted() -> None:
    """A patch that a session shows is no hand edit (promise 10)."""
    look = a_look(a_skill(content="f2"), records=(a_record(),), explained=True)

    assert "f2" == look.records[a_key("deploy")].trusted_fingerprint


def test_an_unexplained_change_is_not() -> None:
    """The mark stays at what curatord had the licence to change."""
    record = a_look(a_skill(content="f2"), records=(a_record(),)).records[a_key("deploy")]

    assert ("f1", "f2") == (record.trusted_fingerprint, record.seen_fingerprint)


def test_a_later_event_does_not_explain_an_earlier_hand() -> None:
    """Once edited by hand, a patch on top does not make the hand's edit ours."""
    edited = a_record(seen_fingerprint=Fingerprint("f2"))

    record = a_look(a_skill(content="f3"), records=(edited,), explained=True).records[a_key("deploy")]

    assert "f1" == record.trusted_fingerprint


def test_trust_begins_with_management_and_ends_with_it() -> None:
    """First sight under management sets the mark; a skill that is not managed has none."""
    begun = a_look(a_skill(content="f2"), records=(a_record(managed_since=None, trusted_fingerprint=None),))
    ended = a_look(a_skill(), records=(a_record(),), managed=False)

    assert (NOW, "f2") == (_only(begun).managed_since, _only(begun).trusted_fingerprint)
    assert (None, None) == (_only(ended).managed_since, _only(ended).trusted_fingerprint)


def test_strangers_in_the_archive_can_be_listed() -> None:
    """What Hermes archived before curatord came is there to be restored."""
    look = a_look(archived=(in_archive("old-way"), in_archive("old-way-20260101000000", at=THEN)))

    assert [("old-way", State.ARCHIVED)] == [(key.rel, record.state) for key, record in look.records.items()]


def test_a_second_look_changes_nothing() -> None:
    """What was observed once is known."""
    first = a_look(a_skill(), a_skill("ops/pack"), archived=(in_archive("old-way"),))

    second = a_look(
        a_skill(), a_skill("ops/pack"), records=tuple(first.records.values()), archived=(in_archive("old-way"),)
    )

    assert ((), (), 0) == (second.put, second.shifts, second.met)


def _only(look: Observation) -> SkillRecord:
    (record,) = look.records.values()
    return record


def _born(look: Observation) -> tuple[datetime, str]:
    record = _only(look)
    return record.born_at, record.born_from

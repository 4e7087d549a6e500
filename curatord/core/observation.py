"""
What a look at a library changes in what we remember of its skills.

*Wanted.* A skill that is met for the first time gets a record with its birth, frozen from then on. One that moved to
another folder keeps its history. One that is gone is *missing*, which is never a reason to call it archived (bugs
B115); it is *archived* only where its package was found in the archive, or because we put it there. One that came back
by somebody else's hand starts its idle clock anew, as a restore does.

*Trust.* `trusted_fingerprint` is the content curatord last had the licence to change: set at the first sight under
management, at adoption and by our own writes. A change of content that a transcript's event or the host's ledger
explains moves it along; one that nothing explains is a person's edit, and the mark stays where it was, so that the
difference is seen until `adopt` is said again (promise 10). That `adopt` is an action and not decided here.

Nothing here is an act of curatord on the library: all of it follows from what is there. States that change by other
hands come back as `Shift`s, so that they reach the history with their reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Literal

from curatord.core.cheap import dataclass, field, replace
from curatord.core.library import ArchivedPackage, LibrarySnapshot, Skill
from curatord.core.skill_record import SkillRecord
from curatord.core.values import RelPath, SkillKey, State

__all__ = ["Birth", "Observation", "Shift", "observe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """When a skill was born, and which evidence says so."""

    at: datetime
    source: Literal["ledger", "event", "file", "seen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A state that changed by other hands than ours: the record *before* and *after*, and why in words."""

    before: SkillRecord
    after: SkillRecord
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """
    What a look at one library leads to.

    Attributes:
        before: What was known of the library when the look began; what has changed since was changed by an action,
            which knows better (`unless_overtaken`).
        records: All records of the library as they are now, the changed ones included.
        put: Records that are new, or differ in what a scan may say.
        shifts: States that changed by other hands.
        moved: Records of skills that stand at another path now; their old keys are in `gone`.
        gone: Keys under which nothing is remembered any more.
        met: How many skills were met for the first time.
    """

    records: Mapping[SkillKey, SkillRecord]
    before: Mapping[SkillKey, SkillRecord] = field(default_factory=dict)
    put: tuple[SkillRecord, ...] = ()
    shifts: tuple[Shift, ...] = ()
    moved: tuple[SkillRecord, ...] = ()
    gone: tuple[SkillKey, ...] = ()
    met: int = 0

    def unless_overtaken(self, stored: Mapping[SkillKey, SkillRecord]) -> Observation:
        """
        Return what still holds of this look, where *stored* is what is known of the library now.

        A look takes its time, and an action may be done meanwhile: what the look concludes from a record that is
        another one by now would tell a false story and take the action's word back. The next look sees both.
        """
        overtaken = {key for key in {*self.before, *stored} if self.before.get(key) != stored.get(key)}
        # A skill that moved is two records; both must be as they were.
        left = {key for key in self.gone if key in overtaken}
        moved = {record.key for record in self.moved}
        if left or moved & overtaken:
            overtaken |= moved | set(self.gone)
        if not overtaken:
            return self
        kept = {key: record for key, record in self.records.items() if key not in overtaken}
        return replace(
            self,
            records=dict(sorted({**kept, **{k: stored[k] for k in overtaken if k in stored}}.items())),
            put=tuple(record for record in self.put if record.key not in overtaken),
            shifts=tuple(shift for shift in self.shifts if shift.after.key not in overtaken),
            moved=tuple(record for record in self.moved if record.key not in overtaken),
            gone=tuple(key for key in self.gone if key not in overtaken),
        )


def observe(
    snapshot: LibrarySnapshot,
    records: Mapping[SkillKey, SkillRecord],
    *,
    now: datetime,
    birth: Callable[[Skill], Birth | None],
    managed: Callable[[Skill, SkillRecord], bool],
    explained: Callable[[Skill, SkillRecord], bool],
    archived_by_host: Mapping[str, datetime] | None = None,
) -> Observation:
    """
    Return what we know of the library's skills after this look.

    Args:
        snapshot: What is there. An incomplete one makes nothing missing.
        records: What we knew, of this library.
        now: The tick's one reading of the clock.
        birth: Evidence of a new skill's birth beside its files, or None.
        managed: Whether curatord may change the skill, with that record.
        explained: Whether sessions or the host's ledger explain that its content is not the one last seen.
        archived_by_host: When the host says that it archived which name.
    """
    known = {key: record for key, record in records.items() if key.library == snapshot.library}
    after = dict(known)
    shifts: list[Shift] = []
    moved: list[SkillKey] = []
    gone: list[SkillKey] = []
    met = 0
    missing = _orphans(snapshot, known)
    orphans = list(missing)
    for skill in snapshot.skills:
        met_as = record = after.get(skill.key)
        if record is None:
            record = _moved(skill, orphans)
            if record is None:
                met += 1
                record = _first_sight(skill, birth(skill), now)
            else:
                del after[record.key]
                gone.append(record.key)
                moved.append(skill.key)
                record = replace(record, key=skill.key, missing_since=None)
        elif record.state is State.ARCHIVED:
            back = _came_back(record, now)
            shifts.append(Shift(before=record, after=back, reason="it stands in the library again, put back by hand"))
            record = back
        record = _brought_up_to_date(skill, record, now, managed=managed, explained=explained)
        if record is not met_as:
            after[skill.key] = record
    in_archive = _newest_by_name(snapshot.archived)
    if snapshot.complete:
        for record in missing:
            key = record.key
            if key not in after:
                continue  # it stands at another path now
            package = in_archive.get(key.name)
            if package is not None and _is_news(package, record):
                at = (archived_by_host or {}).get(key.name) or package.archived_at or now
                away = _archived_elsewhere(record, package, at, now)
                shifts.append(
                    Shift(before=record, after=away, reason="it was found in the archive, put there by the host")
                )
                after[key] = away
            elif record.missing_since is None:
                after[key] = replace(record, missing_since=now)
    for record in _strangers_in_archive(snapshot, after, archived_by_host or {}, now):
        after[record.key] = record
    ordered = sorted(after.items(), key=_place)
    put = tuple([record for key, record in ordered if (old := known.get(key)) is not record and old != record])
    return Observation(
        records=dict(ordered),
        before=known,
        put=put,
        shifts=tuple(shifts),
        moved=tuple(after[key] for key in moved),
        gone=tuple(gone),
        met=met,
    )


def _place(item: tuple[SkillKey, SkillRecord]) -> tuple[str, str]:
    return item[0].place


def _first_sight(skill: Skill, birth: Birth | None, now: datetime) -> SkillRecord:
    if birth is None:
        newest = skill.newest_file_at
        birth = Birth(at=newest, source="file") if newest is not None else Birth(at=now, source="seen")
    # A file may be dated ahead of the clock; nobody was born tomorrow.
    return SkillRecord(
        key=skill.key, state_since=now, first_seen_at=now, born_at=min(birth.at, now), born_from=birth.source
    )


def _orphans(snapshot: LibrarySnapshot, known: Mapping[SkillKey, SkillRecord]) -> list[SkillRecord]:
    """Return records of live skills that are not where they were."""
    if not snapshot.complete:
        return []
    there = snapshot.by_key
    gone = [r for key, r in known.items() if r.state is not State.ARCHIVED and key not in there]
    return sorted(gone, key=lambda record: record.key.place)


def _moved(skill: Skill, orphans: list[SkillRecord]) -> SkillRecord | None:
    """Return the record of the one skill of this name that is gone and had this content, and take it off the list."""
    found = [
        record
        for record in orphans
        if record.key.name == skill.name
        and record.seen_fingerprint is not None
        and record.seen_fingerprint == skill.fingerprint
    ]
    if len(found) != 1:
        return None
    orphans.remove(found[0])
    return found[0]


def _came_back(record: SkillRecord, now: datetime) -> SkillRecord:
    return replace(
        record,
        state=State.ACTIVE,
        state_since=now,
        stale_since=None,
        restored_at=now,
        missing_since=None,
        archived_at=None,
        archive_path=None,
        archive_reason=None,
        absorbed_into=None,
    )


def _brought_up_to_date(
    skill: Skill,
    record: SkillRecord,
    now: datetime,
    *,
    managed: Callable[[Skill, SkillRecord], bool],
    explained: Callable[[Skill, SkillRecord], bool],
) -> SkillRecord:
    """Return *record* with content, presence and trust as this look found them."""
    record = record if record.missing_since is None else replace(record, missing_since=None)
    fingerprint = skill.fingerprint
    is_managed = managed(skill, record)
    if not is_managed:
        if record.managed_since is not None or record.trusted_fingerprint is not None:
            record = replace(record, managed_since=None, trusted_fingerprint=None)
    elif record.managed_since is None:
        record = replace(record, managed_since=now, trusted_fingerprint=fingerprint)
    elif (
        fingerprint is not None
        and fingerprint != record.trusted_fingerprint
        # Only a change of content that we trusted can be explained away: once it was edited by hand, a later event
        # does not say that the hand's edit is ours.
        and record.seen_fingerprint in (record.trusted_fingerprint, None)
        and explained(skill, record)
    ):
        record = replace(record, trusted_fingerprint=fingerprint)
    if fingerprint is not None and fingerprint != record.seen_fingerprint:
        record = replace(record, seen_fingerprint=fingerprint, seen_at=now)
    return record


def _newest_by_name(archived: Iterable[ArchivedPackage]) -> dict[str, ArchivedPackage]:
    newest: dict[str, ArchivedPackage] = {}
    for package in archived:
        other = newest.get(package.name)
        # One without a stamp was there first: the stamp is only given to a name that was taken.
        if other is None or (package.archived_at is not None and _later(package, other)):
            newest[package.name] = package
    return newest


def _later(package: ArchivedPackage, other: ArchivedPackage) -> bool:
    return other.archived_at is None or (package.archived_at is not None and package.archived_at > other.archived_at)


def _is_news(package: ArchivedPackage, record: SkillRecord) -> bool:
    """Return whether *package* can be what became of *record*: not older than what we last saw of it alive."""
    return package.archived_at is None or record.seen_at is None or package.archived_at >= record.seen_at


def _archived_elsewhere(record: SkillRecord, package: ArchivedPackage, at: datetime, now: datetime) -> SkillRecord:
    return replace(
        record,
        state=State.ARCHIVED,
        state_since=min(at, now),
        stale_since=None,
        missing_since=None,
        archived_at=min(at, now),
        archive_path=package.path,
        archive_reason="archived by the host",
    )


def _strangers_in_archive(
    snapshot: LibrarySnapshot,
    records: Mapping[SkillKey, SkillRecord],
    archived_by_host: Mapping[str, datetime],
    now: datetime,
) -> Iterable[SkillRecord]:
    """Yield records for archived packages that none of ours speaks of, so that they can be listed and restored."""
    spoken_of = {record.archive_path for record in records.values()}
    taken = set(records)
    for package in snapshot.archived:
        if package.path in spoken_of:
            continue
        rel = f"{package.category}/{package.name}" if package.category else package.name
        try:
            key = SkillKey(library=snapshot.library, rel=RelPath(rel))
        except ValueError:
            continue
        if key in taken:
            continue  # a live skill, or a newer archived one, has this name; `restore` finds the others by their folder
        taken.add(key)
        at = min(archived_by_host.get(package.name) or package.archived_at or now, now)
        yield SkillRecord(
            key=key,
            state=State.ARCHIVED,
            state_since=at,
            first_seen_at=now,
            born_at=at,
            born_from="seen",
            archived_at=at,
            archive_path=package.path,
            archive_reason="in the archive before curatord saw it",
        )

"""
From what shall be so to what has to be done: an action becomes a journal entry, on the disk as it is now.

Nothing is written here. The caller holds the locks, so that what is read stays true until it is acted on. The order of
steps is such that a kill between any two of them loses nothing even before recovery has run: what takes something in
is written first, references follow, packages leave last, and the host's record of a package changes after it moved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, assert_never

import msgspec

from curatord.core.cheap import dataclass, field, replace
from curatord.core.hermes_edits import Rename, field_edits, job_changes, usage_record
from curatord.core.journal import (
    ArchiveChange,
    ArchiveItem,
    EditItem,
    FileImage,
    HistoryChange,
    JournalEntry,
    MakeDir,
    MovePackage,
    Place,
    RecordChange,
    RemoveDir,
    Seal,
    SetLine,
    Step,
    WriteFile,
)
from curatord.core.plan import (
    Action,
    Adopt,
    Archive,
    BringBack,
    CreateSkill,
    Disown,
    FileChange,
    MarkStale,
    Merge,
    PackageWrite,
    Patch,
    Pin,
    Reactivate,
    Restore,
    SetImportance,
    SkipCode,
    Standing,
    Unpin,
    WriteSupportFile,
    expectations,
    fold,
    targets,
)
from curatord.core.reach import Site
from curatord.core.skill_record import SkillRecord
from curatord.core.values import ActionId, BlobId, RelPath, RunId, SkillKey, State
from curatord.errors import InputError
from curatord.ports.mutator import FoundPackage, Mutator

__all__ = ["Draft", "NotNowError", "archive_name", "archived_source", "compile_action", "place_at"]

NEW_FILE_MODE = 0o644


class NotNowError(InputError):
    """The action cannot be done as things stand; *code* says of which kind the reason is."""

    def __init__(self, message: str, *, code: SkipCode, key: SkillKey) -> None:
        super().__init__(message)
        self.code = code
        self.key = key


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry ready for the writer, and the bytes that must be kept before it begins."""

    entry: JournalEntry
    blobs: tuple[bytes, ...]


def compile_action(
    action: Action,
    *,
    site: Site,
    standings: Mapping[SkillKey, Standing],
    records: Mapping[SkillKey, SkillRecord],
    archive: Sequence[ArchiveItem],
    disk: Mutator,
    now: datetime,
    run_id: RunId | None,
    action_id: ActionId,
) -> Draft:
    """
    Return the entry that carries out *action*.

    Args:
        action: Already asked about with `plan.objections`.
        site: Its library.
        standings, records: Of all its targets, where there are any.
        archive: What is known of the library's archived packages.
        disk: Read only, under the lock.

    Raises:
        NotNowError: There is nothing to do, or something stands in the way.
        InputError: A file of the host that has to change cannot be read.
    """
    work = _Work(
        action=action, site=site, standings=standings, records=records, archive=archive, disk=disk, now=now,
        action_id=action_id,
    )  # fmt: skip
    work.compile()
    if not (work.steps or work.changes or work.archived):
        raise NotNowError("it is so already", code="nothing", key=targets(action)[0])
    return Draft(
        entry=JournalEntry(
            action_id=action_id,
            run_id=run_id,
            at=now,
            kind=str(action.__struct_config__.tag),
            by=action.by,
            library=site.library,
            targets=targets(action),
            summary=work.summary,
            reason=action.reason,
            steps=tuple(work.steps),
            changes=tuple(work.changes),
            archive=tuple(work.archived),
            history=tuple(work.history),
            expected=expectations(action),
            proposal=action.proposal,
        ),
        blobs=tuple(work.blobs.values()),
    )


@dataclass(slots=True, kw_only=True)
class _Work:
    """One action on its way to an entry."""

    action: Action
    site: Site
    standings: Mapping[SkillKey, Standing]
    records: Mapping[SkillKey, SkillRecord]
    archive: Sequence[ArchiveItem]
    disk: Mutator
    now: datetime
    action_id: ActionId
    summary: str = ""
    steps: list[Step] = field(default_factory=list)
    changes: list[RecordChange] = field(default_factory=list)
    archived: list[ArchiveChange] = field(default_factory=list)
    history: list[HistoryChange] = field(default_factory=list)
    blobs: dict[BlobId, bytes] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    def compile(self) -> None:
        """Fill in steps and changes."""
        action = self.action
        match action:
            case MarkStale():
                self.summary = f"{action.key.name}: active → stale"
                self._state(action.key, State.STALE, action.reason, stale_since=self.now)
                self._usage(action.key, {"state": "stale"})
            case Reactivate():
                self.summary = f"{action.key.name}: stale → active"
                self._state(action.key, State.ACTIVE, action.reason, stale_since=None)
                self._usage(action.key, {"state": "active", "archived_at": None})
            case Archive():
                self.summary = f"{action.key.name}: archived"
                if action.drop_references:
                    self._references((Rename(old=action.key, new=None),))
                self._into_archive(action.key, action.reason, absorbed_into=None)
            case Restore():
                self._out_of_archive(action)
            case BringBack():
                self._out_of_backup(action)
            case Pin() | Unpin():
                pinned = isinstance(action, Pin)
                self.summary = f"{action.key.name}: {'pinned' if pinned else 'no longer pinned'}"
                self._change(action.key, pinned=pinned)
                # Read in any case: where it cannot be, all skills count as protected, and a pin that only we know of
                # is none for the host.
                self._host_record(action.key)
                if not self._standing(action.key).protected:
                    self._usage(action.key, {"pinned": pinned}, make=pinned)
            case SetImportance():
                self.summary = f"{action.key.name}: importance {action.importance}"
                self._change(action.key, importance=action.importance)
            case Adopt():
                record = self._record(action.key)
                fingerprint = self._standing(action.key).fingerprint
                self.summary = f"{action.key.name}: adopted"
                self._change(
                    action.key,
                    owner="adopted",
                    owner_at=self.now,
                    managed_since=record.managed_since or self.now,
                    trusted_fingerprint=fingerprint,
                    seen_fingerprint=fingerprint,
                )
            case Disown():
                self.summary = f"{action.key.name}: disowned"
                if self._record(action.key).owner != "disowned":
                    self._change(action.key, owner="disowned", owner_at=self.now, managed_since=None)
            case Patch() | WriteSupportFile():
                self.summary = f"{action.key.name}: {', '.join(file.path for file in action.files)} written"
                self._write(PackageWrite(key=action.key, expected=action.expected, files=action.files))
            case CreateSkill():
                self.summary = f"{action.key.name}: created"
                self._write(PackageWrite(key=action.key, expected=None, files=action.files))
            case Merge():
                self._merge(action)
            case _:
                assert_never(action)

    # -- records

    def _standing(self, key: SkillKey) -> Standing:
        return self.standings.get(key) or Standing(key=key, there=False)

    def _record(self, key: SkillKey) -> SkillRecord:
        """Return what we know of *key*; a skill that no scan has met yet is first seen now."""
        return self.records.get(key) or SkillRecord(
            key=key, state_since=self.now, first_seen_at=self.now, born_at=self.now
        )

    def _change(self, key: SkillKey, *, written: bool = False, **to: Any) -> None:
        before = self.records.get(key)
        after = replace(self._record(key), **to)
        if before != after or written:
            self.changes.append(RecordChange(key=key, before=before, after=after, written=written))

    def _state(self, key: SkillKey, state: State, reason: str, **to: Any) -> None:
        record = self._record(key)
        self._change(key, state=state, state_since=self.now, **to)
        self.history.append(
            HistoryChange(
                key=key, from_state=record.state if key in self.records else None, to_state=state, reason=reason
            )
        )

    # -- the host's records

    def _usage(self, key: SkillKey, want: dict[str, Any], *, make: bool = True) -> None:
        """Bring the fields *want* of the host's record of *key* about; *make*: also where it has none."""
        if self.site.home is None:
            return
        file = Place(root=self.site.root, path=RelPath(".usage.json"))
        image = self.disk.image(file)
        record = usage_record(None if image is None else image[0], key.name)
        if record is None:
            if not make:
                return
            want = {**want, "created_at": self._record(key).born_at.isoformat()}
        if (record or {}).get("archived_at") is None and want.get("archived_at", "") is None:
            del want["archived_at"]  # cleared means null; one that was never set is left alone
        edits = field_edits(record, want)
        if edits:
            self.steps.append(
                EditItem(
                    file=file,
                    format="usage",
                    item=key.name,
                    edits=edits,
                    item_there=record is not None,
                    file_there=image is not None,
                )
            )

    def _references(self, renames: Sequence[Rename]) -> None:
        """Let the host's schedules follow *renames*."""
        if self.site.home is None:
            return
        file = Place(root=self.site.home, path=RelPath("cron/jobs.json"))
        image = self.disk.image(file)
        roots = (self.site.root, *self.site.seen_as)
        for change in job_changes(None if image is None else image[0], renames, roots):
            self.steps.append(EditItem(file=file, format="jobs", item=change.job_id, edits=change.edits))

    def _suppressed(self, key: SkillKey, *, after: bool) -> None:
        """Keep the host's updater from copying a bundled skill back (or let it do so again)."""
        if self.site.home is None:
            return
        manifest = self.disk.image(Place(root=self.site.root, path=RelPath(".bundled_manifest")))
        file = Place(root=self.site.root, path=RelPath(".curator_suppressed"))
        image = self.disk.image(file)
        listed = key.name in _lines(image)
        bundled = key.name in {line.partition(":")[0] for line in _lines(manifest)}
        if listed != after and (bundled or not after):
            self.steps.append(
                SetLine(file=file, line=key.name, before=listed, after=after, file_there=image is not None)
            )

    def _host_pinned(self, key: SkillKey) -> None:
        """Refuse what the host pinned a moment ago: its file is read under its lock, so this is the last word."""
        record = self._host_record(key)
        if record is not None and record.get("pinned"):
            raise NotNowError(f"{key} is pinned by its host", code="pinned", key=key)

    def _host_record(self, key: SkillKey) -> dict[str, Any] | None:
        """
        Return what the host's file says of *key*, None where it says nothing or the library has no such host.

        Raises:
            OwnershipError: The file cannot be read.
        """
        if self.site.home is None:
            return None
        image = self.disk.image(Place(root=self.site.root, path=RelPath(".usage.json")))
        return usage_record(None if image is None else image[0], key.name)

    # -- archive

    def _into_archive(self, key: SkillKey, reason: str, *, absorbed_into: SkillKey | None) -> None:
        self._host_pinned(key)
        found = self.disk.package(self.site, key)
        if found is None:
            raise NotNowError(f"{key} is not in the library any more", code="gone", key=key)
        name = archive_name(key.name, self._names_in_archive(), self.now)
        self._taken.add(fold(name))
        entry = RelPath(f"{name}/{found.place.path.rpartition('/')[2]}" if found.form == "file" else name)
        target = Place(root=self.site.archive, path=entry)
        self._make_dirs(target)
        self.steps.append(MovePackage(source=found.place, target=target, seal=found.seal))
        self._usage(key, {"state": "archived", "archived_at": self.now.isoformat()})
        self._suppressed(key, after=True)
        into = None if absorbed_into is None else str(absorbed_into.name)
        self._state(
            key,
            State.ARCHIVED,
            reason,
            archived_at=self.now,
            archive_path=f"{self.site.archive}/{name}",
            archive_reason=reason,
            absorbed_into=into,
        )
        item = ArchiveItem(
            key=key,
            path=RelPath(name),
            at=self.now,
            reason=reason,
            action_id=self.action_id,
            absorbed_into=into,
            fingerprint=self._standing(key).fingerprint,
        )
        self.archived.append(ArchiveChange(before=None, after=item))

    def _names_in_archive(self) -> set[str]:
        self._taken.update(fold(name) for name in self.disk.names(self.site.archive))
        return self._taken

    def _out_of_archive(self, action: Restore) -> None:
        key = action.key
        self.summary = f"{key.name}: restored"
        source, form = archived_source(self.disk, self.site, action.archived, key)
        target = place_at(self.site, key, flat=form == "file")
        self._free(target, key)
        self._make_dirs(target)
        seal = self.disk.archived(self.site, source.path)
        assert seal is not None, "archived_source has just found it"
        self.steps.append(MovePackage(source=source, target=target, seal=seal.seal))
        if form == "file":
            self.steps.append(RemoveDir(place=Place(root=self.site.archive, path=action.archived)))
        if self.site.home is not None:
            self._usage(key, {"state": "active", "archived_at": None}, make=False)
            self._suppressed(key, after=False)
        item = next((item for item in self.archive if item.path == action.archived), None)
        if item is not None:
            self.archived.append(ArchiveChange(before=item, after=None))
        self._state(
            key,
            State.ACTIVE,
            action.reason,
            stale_since=None,
            restored_at=self.now,
            missing_since=None,
            archived_at=None,
            archive_path=None,
            archive_reason=None,
            absorbed_into=None,
        )

    # -- backup

    def _out_of_backup(self, action: BringBack) -> None:
        key, site = action.key, self.site
        seal = self.disk.seal(action.staged)
        if seal is None:
            raise NotNowError(f"the copy of {key} is gone", code="gone", key=key)
        if action.into is not None:
            self.summary = f"{key.name}: back in the archive, from backup {action.backup}"
            self._back_into_archive(action, action.into, seal)
            return
        self.summary = f"{key.name}: restored from backup {action.backup}"
        target = place_at(site, key, flat=action.form == "file")
        found = self.disk.package(site, key)
        if found is not None and found.seal == seal:
            raise NotNowError("it is as in the backup already", code="nothing", key=key)
        if found is not None:
            self._keep_standing(action, found)
        self._free(target, key, but=None if found is None else found.place)
        before = len(self.steps)
        self._make_dirs(target)
        for place, step in enumerate(self.steps[before:], before):
            depth = step.place.path.count("/") if isinstance(step, MakeDir) else len(action.above)
            if isinstance(step, MakeDir) and depth < len(action.above):
                self.steps[place] = MakeDir(place=step.place, mode=action.above[depth])
        self.steps.append(MovePackage(source=action.staged, target=target, seal=seal))
        if site.home is not None and not self._standing(key).protected:
            self._usage(key, {"state": "active", "archived_at": None}, make=False)
            self._suppressed(key, after=False)
        self._state(
            key,
            State.ACTIVE,
            action.reason,
            stale_since=None,
            restored_at=self.now,
            missing_since=None,
            archived_at=None,
            archive_path=None,
            archive_reason=None,
            absorbed_into=None,
        )

    def _keep_standing(self, action: BringBack, found: FoundPackage) -> None:
        """Move what stands at the skill's place into the archive: it may be the only copy of what it is."""
        key = action.key
        name = archive_name(key.name, self._names_in_archive(), self.now)
        self._taken.add(fold(name))
        inner = f"{name}/{found.place.path.rpartition('/')[2]}" if found.form == "file" else name
        place = Place(root=self.site.archive, path=RelPath(inner))
        self._make_dirs(place)
        self.steps.append(MovePackage(source=found.place, target=place, seal=found.seal))
        item = ArchiveItem(
            key=key,
            path=RelPath(name),
            at=self.now,
            reason=f"replaced by the one of backup {action.backup}",
            action_id=self.action_id,
            fingerprint=self._standing(key).fingerprint,
        )
        self.archived.append(ArchiveChange(before=None, after=item))

    def _back_into_archive(self, action: BringBack, into: RelPath, seal: Seal) -> None:
        key = action.key
        name = archive_name(into, self._names_in_archive(), self.now)
        target = Place(root=self.site.archive, path=RelPath(name))
        self._make_dirs(target)
        self.steps.append(MovePackage(source=action.staged, target=target, seal=seal))
        reason = f"in the archive of backup {action.backup}"
        known = action.item or ArchiveItem(key=key, path=into, at=self.now, reason=reason, action_id=self.action_id)
        item = msgspec.structs.replace(known, path=RelPath(name))
        self.archived.append(ArchiveChange(before=None, after=item))

    # -- content

    def _merge(self, action: Merge) -> None:
        absorbed = [member for member in action.members if member.absorbed]
        self.summary = f"{len(absorbed)} into {action.umbrella.name}"
        if len(absorbed) != len(action.members):
            self.summary += f", {len(action.members) - len(absorbed)} pruned"
        for write in action.writes:
            self._write(write)
        self._references([Rename(old=m.key, new=action.umbrella if m.absorbed else None) for m in action.members])
        for member in action.members:
            self._into_archive(member.key, member.reason, absorbed_into=action.umbrella if member.absorbed else None)

    def _write(self, write: PackageWrite) -> None:
        key = write.key
        found = self.disk.package(self.site, key)
        if write.expected is None:
            self._create(write)
            return
        self._host_pinned(key)
        if found is None:
            raise NotNowError(f"{key} is not in the library any more", code="gone", key=key)
        if found.form == "link":
            raise NotNowError(f"{key} is a link; what it points to is not ours", code="unmanaged", key=key)
        before = len(self.steps)
        if found.form == "file" and any(file.path != "SKILL.md" for file in write.files):
            folder = place_at(self.site, key)
            body = Place(root=folder.root, path=RelPath(f"{folder.path}/SKILL.md"))
            self.steps.append(MakeDir(place=folder))
            self.steps.append(MovePackage(source=found.place, target=body, seal=found.seal))
            for file in write.files:
                now_at = found.place if file.path == "SKILL.md" else None
                self._file(key, folder, file, now_at=now_at, fresh=True)
        else:
            for file in write.files:
                self._file(key, found.place, file, single=found.form == "file")
        if len(self.steps) > before:
            self._change(key, written=True)

    def _create(self, write: PackageWrite) -> None:
        key = write.key
        single = self.site.layout == "flat" and [file.path for file in write.files] == ["SKILL.md"]
        place = place_at(self.site, key, flat=single)
        self._free(place, key)
        for file in write.files:
            self._file(key, place, file, single=single, fresh=True)
        record = SkillRecord(
            key=key,
            state_since=self.now,
            first_seen_at=self.now,
            born_at=self.now,
            born_from="event",
            owner="curatord",
            owner_at=self.now,
            managed_since=self.now,
        )
        self.changes.append(RecordChange(key=key, before=self.records.get(key), after=record, written=True))
        self.history.append(HistoryChange(key=key, from_state=None, to_state=State.ACTIVE, reason=self.action.reason))

    def _file(
        self,
        key: SkillKey,
        package: Place,
        file: FileChange,
        *,
        single: bool = False,
        fresh: bool = False,
        now_at: Place | None = None,
    ) -> None:
        """Add the step that brings *file* of *package* about; *now_at* is where it stands until an earlier step."""
        place = package if single else Place(root=package.root, path=RelPath(f"{package.path}/{file.path}"))
        if not fresh:
            above, _, name = place.path.rpartition("/")
            twin = next((n for n in self.disk.names(place.root, above) if fold(n) == fold(name) and n != name), None)
            if twin is not None:
                raise NotNowError(f"{key}: {name} differs from {twin} only in case", code="taken", key=key)
        image = self.disk.image(now_at or place) if now_at or not fresh else None
        if image is not None and file.only_new:
            raise NotNowError(f"{key}: {file.path} is there already", code="taken", key=key)
        mode = file.mode if file.mode is not None else NEW_FILE_MODE if image is None else image[1]
        before = None if image is None else FileImage(blob=self._keep(image[0]), mode=image[1])
        after = FileImage(blob=self._keep(file.content), mode=mode)
        if before != after:
            self._make_dirs(place)
            self.steps.append(WriteFile(place=place, before=before, after=after))

    def _keep(self, data: bytes) -> BlobId:
        name = BlobId(hashlib.sha256(data).hexdigest())
        self.blobs[name] = data
        return name

    def _make_dirs(self, place: Place) -> None:
        known = {step.place for step in self.steps if isinstance(step, MakeDir)}
        self.steps.extend(step for step in self.disk.missing_dirs(place) if step.place not in known)

    def _free(self, place: Place, key: SkillKey, *, but: Place | None = None) -> None:
        """Refuse to put a package where one stands, also one that differs in case or Unicode form; *but* is leaving."""
        above, _, name = place.path.rpartition("/")
        stem = fold(name.removesuffix(".md") if self.site.layout == "flat" else name)
        for other in self.disk.names(place.root, above):
            if but is not None and f"{above}/{other}".lstrip("/") == but.path:
                continue
            if fold(other) in (stem, fold(name)) or (self.site.layout == "flat" and fold(other) == f"{stem}.md"):
                raise NotNowError(f"something stands at {place.root}/{above}/{other} already", code="taken", key=key)


def archive_name(name: str, taken: set[str], now: datetime) -> str:
    """Return the name under which *name* goes into an archive where *taken* (folded names) stand already."""
    if fold(name) not in taken:
        return name
    at = now
    while fold(f"{name}-{at:%Y%m%d%H%M%S}") in taken:
        at += timedelta(seconds=1)
    return f"{name}-{at:%Y%m%d%H%M%S}"


def archived_source(disk: Mutator, site: Site, entry: RelPath, key: SkillKey) -> tuple[Place, str]:
    """
    Return the place of the package that the archive keeps as *entry*, and its form.

    A skill of a flat library stands as a single file in a folder of its own there.

    Raises:
        NotNowError: It is not there.
    """
    found = disk.archived(site, entry)
    if found is None:
        raise NotNowError(f"{site.archive}/{entry} is not there any more", code="gone", key=key)
    names = disk.names(site.archive, entry) if found.form == "folder" else ()
    if site.layout == "flat" and len(names) == 1 and names[0].endswith(".md") and names[0] != "SKILL.md":
        return Place(root=site.archive, path=RelPath(f"{entry}/{names[0]}")), "file"
    return found.place, found.form


def place_at(site: Site, key: SkillKey, *, flat: bool = False) -> Place:
    """Return where the package of *key* stands, or would stand; *flat*: as a single file."""
    return Place(root=site.root, path=RelPath(f"{key.rel}.md") if flat else key.rel)


def _lines(image: tuple[bytes, int] | None) -> frozenset[str]:
    text = b"" if image is None else image[0]
    return frozenset(line.strip() for line in text.decode("utf-8", "surrogateescape").splitlines())

"""
Taking skills out of a backup, back to where they stood: through the one writer, journaled, undoable.

Nothing that stands now is the price of it. What is the same is left alone; what differs goes into the archive, whole;
what is not in the backup stays. A skill that stands in the archive as the backup has it comes back from there, so that
no second copy is made. Of the host's files that curatord edits one that is gone is put back. The rest of the library's
files are left alone: they are its user's or its host's, and `take_out` gives them to a folder beside.

It is a person's order, so it may reach what curatord itself would never change: unmanaged skills, and, named one by
one, pinned and critical ones. What is a link, a broken library or a version control of its own stays out of reach.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Literal

from curatord.core.backup import (
    BackupId,
    Entry,
    LibraryBackup,
    Manifest,
    StoredItem,
    as_bytes,
    as_text,
    content_id,
    entry_at,
    packages_in,
    quoted,
    unquoted,
)
from curatord.core.cheap import dataclass
from curatord.core.journal import ArchiveItem, FileImage, JournalEntry, MakeDir, Place, WriteFile
from curatord.core.plan import BringBack, Outcome, Restore, Standing, objections
from curatord.core.reach import Site, host_files
from curatord.core.values import ActionId, BlobId, Fingerprint, Importance, LibraryName, RelPath, SkillKey
from curatord.errors import InputError, UsageError
from curatord.passes.apply import Applier
from curatord.passes.compile import Draft, NotNowError, compile_action
from curatord.passes.undo import same_name
from curatord.ports.backups import Backups, DamagedBackupError, TreeReader

__all__ = ["BackupRow", "BringBackOrder", "bring_back", "choose_backup", "files_apart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BringBackOrder:
    """
    What is to be brought back.

    Attributes:
        library: Of this library only.
        skills: Only these: name, path, or either below `library/`; empty for all, with the archive.
        dry_run: Only say what would be done.
        foreign: Why a skill may not be touched whoever orders it, in words, or None.
    """

    library: str | None = None
    skills: tuple[str, ...] = ()
    dry_run: bool = False
    foreign: Callable[[SkillKey], str | None] = lambda _key: None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRow:
    """One line of the answer; *outcome* is what the writer said where it was asked."""

    what: Literal["done", "unchanged", "skipped", "failed"]
    skill: str
    words: str
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """A package of the backup: where it goes to, and what is known of it where that is the archive."""

    key: SkillKey
    entry: Entry
    form: Literal["folder", "file", "link"]
    path: bytes
    into: RelPath | None = None
    item: ArchiveItem | None = None
    above: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """What names this one and no other."""
        return str(self.key) if self.into is None else f"{self.key.library}/{self.into}/"

    @property
    def shown(self) -> str:
        return str(self.key) if self.into is None else f"{self.label} (archived)"


def choose_backup(backups: Backups, said: str) -> BackupId:
    """Return the backup that *said* names: its id, or `last`; `UsageError` where there is none."""
    ids = backups.ids()
    if said == "last" and ids:
        return ids[0]
    if said not in ids:
        raise UsageError(
            f"there is no backup {said!r}" if said != "last" else "there is no backup yet",
            hint="curatord backup list names them; curatord backup create makes one",
        )
    return BackupId(said)


def bring_back(
    backups: Backups, reader: TreeReader, applier: Applier, manifest: Manifest, order: BringBackOrder, *, now: datetime,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[BackupRow]:  # fmt: skip
    """
    Bring back what *order* says, and yield what became of each package; under the backups' lock.

    Raises:
        UsageError: Something is named that is not in the backup.
        BusyError: A lock is held by another process; what was yielded is done.
    """
    chosen = [library for library in manifest.libraries if order.library in (None, library.name)]
    if not chosen:
        names = ", ".join(library.name for library in manifest.libraries)
        raise UsageError(f"library {order.library!r} is not in backup {manifest.id}", hint=f"it has: {names}")
    wishes: list[_Wish] = []
    archived: list[_Wish] = []
    for library in chosen:
        site = applier.sites[LibraryName(library.name)] if library.name in applier.sites else None
        if site is None:
            words = "that library is not configured any more; --to DIR takes it out all the same"
            yield BackupRow(what="skipped", skill=library.name, words=words)
            continue
        damaged: list[str] = []
        found = list(_live(backups, library, site, damaged))
        archived += _archived(backups, library, site, damaged)
        if not order.skills:
            yield from _host_files(backups, applier, manifest, library, site, order, now)
        for words in damaged:
            yield BackupRow(what="failed", skill=library.name, words=words)
        wishes += found
    wishes = _named(wishes, archived, order.skills, manifest) if order.skills else [*wishes, *archived]
    for wish in wishes:
        if stop():
            yield BackupRow(what="skipped", skill=wish.shown, words="it was stopped before this")
        else:
            yield _one(backups, reader, applier, manifest, order, wish, now)


def _named(live: Sequence[_Wish], archived: Sequence[_Wish], said: Sequence[str], manifest: Manifest) -> list[_Wish]:
    """Return the packages that *said* names: those that lived, and where none of that name did, archived ones."""
    chosen: dict[SkillKey, _Wish] = {}
    for one in said:
        for wishes in (live, archived):
            exact = [wish for wish in wishes if one in (str(wish.key), wish.key.rel, wish.label)]
            found = exact or [wish for wish in wishes if one in (wish.key.name, f"{wish.key.library}/{wish.key.name}")]
            if found:
                break
        if not found:
            raise UsageError(f"no skill in backup {manifest.id} is called {one!r}", hint="an older backup may have it")
        if len(found) > 1:
            choices = ", ".join(wish.label for wish in found)
            raise UsageError(
                f"{len(found)} skills in backup {manifest.id} are called {one!r}", hint=f"say which: {choices}"
            )
        chosen[found[0].key] = found[0]
    return list(chosen.values())


# -- what a backup has


def _live(backups: Backups, library: LibraryBackup, site: Site, damaged: list[str]) -> Iterator[_Wish]:
    """Yield the packages that stood in the library; *damaged* gets words for what cannot be looked into."""
    top = library.top()
    paths: dict[bytes, Literal["folder", "file", "link"]] = {}
    try:
        for path in packages_in(top, backups.tree):
            paths[path] = "folder"
    except DamagedBackupError as error:
        damaged.append(f"a part of the library cannot be looked into: {error}")
    for skill in library.skills:
        paths.setdefault(unquoted(skill.path), "folder")
    for path in sorted(paths):
        try:
            entry = entry_at(top, path, backups.tree)
        except DamagedBackupError as error:
            damaged.append(f"{quoted(path)}: {error}")
            continue
        if entry is None:
            continue
        flat = entry.kind == "file" and site.layout == "flat" and path.endswith(b".md")
        if entry.kind == "file" and not flat:
            continue
        rel = as_text(path.removesuffix(b".md") if flat else path)
        form: Literal["folder", "file", "link"] = "file" if flat else "link" if entry.kind == "link" else "folder"
        parts = path.split(b"/")[:-1]
        folders = [entry_at(top, b"/".join(parts[: count + 1]), backups.tree) for count in range(len(parts))]
        above = tuple(folder.mode for folder in folders if folder is not None)
        key = SkillKey(library=site.library, rel=RelPath(rel))
        yield _Wish(key=key, entry=entry, form=form, path=path, above=above)


def _archived(backups: Backups, library: LibraryBackup, site: Site, damaged: list[str]) -> Iterator[_Wish]:
    top = library.archive_top()
    if top is None:
        return
    items = {unquoted(item.path): item for item in library.items}
    try:
        entries = backups.tree(top.ref)
    except DamagedBackupError as error:
        damaged.append(f"the archive cannot be looked into: {error}")
        return
    for entry in entries:
        if entry.name.startswith(b".") or entry.kind == "file":
            continue
        told = items.get(entry.name)
        rel = RelPath(as_text(entry.name if told is None else unquoted(told.rel)))
        key = SkillKey(library=site.library, rel=rel)
        item = None if told is None else _item(told, key)
        form: Literal["folder", "link"] = "link" if entry.kind == "link" else "folder"
        yield _Wish(key=key, entry=entry, form=form, path=entry.name, into=RelPath(as_text(entry.name)), item=item)


def _item(told: StoredItem, key: SkillKey) -> ArchiveItem:
    return ArchiveItem(
        key=key,
        path=RelPath(as_text(unquoted(told.path))),
        at=told.at,
        reason=told.reason,
        action_id=ActionId(told.action_id),
        absorbed_into=told.absorbed_into,
        fingerprint=None if told.fingerprint is None else Fingerprint(told.fingerprint),
    )


def files_apart(backups: Backups, library: LibraryBackup) -> Iterator[bytes]:
    """Yield the paths of those files of a library that lie in none of its skills, and no hidden ones."""
    skills = {unquoted(skill.path) for skill in library.skills}

    def walk(folder: Entry, path: bytes) -> Iterator[bytes]:
        entries = backups.tree(folder.ref)
        if path and any(entry.kind != "dir" and entry.name.lower() == b"skill.md" for entry in entries):
            return
        for entry in entries:
            inner = path + b"/" + entry.name if path else entry.name
            if entry.name.startswith(b".") or inner in skills:
                continue
            if entry.kind == "dir":
                yield from walk(entry, inner)
            else:
                yield inner

    yield from walk(library.top(), b"")


# -- the host's files


def _host_files(
    backups: Backups,
    applier: Applier,
    manifest: Manifest,
    library: LibraryBackup,
    site: Site,
    order: BringBackOrder,
    now: datetime,
) -> Iterator[BackupRow]:
    """Put back those of the host's files that curatord edits and that are gone: one that is there is the host's."""
    for place in host_files(site):
        shown = f"{library.name}: {place.path}"
        try:
            stored = _stored_host_file(backups, library, site, place)
            if stored is None:
                continue
            image = applier.mutator.image(place)
            if image is not None:
                words = "it is as in the backup"
                if image[0] != stored[0]:
                    words = "it is there, and its host has gone on writing it; --to DIR takes the old one out"
                yield BackupRow(what="unchanged", skill=shown, words=words)
            elif order.dry_run:
                yield BackupRow(what="done", skill=shown, words="would be put back: it is gone")
            else:
                outcome = _put_back(applier, manifest, site, place, *stored, now)
                yield BackupRow(what="done", skill=shown, words="put back: it was gone", outcome=outcome)
        except DamagedBackupError as error:
            yield BackupRow(what="failed", skill=shown, words=str(error))
        except (OSError, InputError) as error:
            yield BackupRow(what="skipped", skill=shown, words=f"it cannot be looked at: {error}")


def _stored_host_file(backups: Backups, library: LibraryBackup, site: Site, place: Place) -> tuple[bytes, int] | None:
    """Return content and mode of a host's file as the backup has it, or None."""
    if place.root == site.root:
        entry = entry_at(library.top(), as_bytes(place.path), backups.tree)
        return None if entry is None or entry.kind != "file" else (backups.content(entry.ref), entry.mode)
    kept = next((file for file in library.host_files if file.path == quoted(as_bytes(place.path))), None)
    return None if kept is None else (backups.content(BlobId(kept.ref)), kept.mode)


def _put_back(
    applier: Applier, manifest: Manifest, site: Site, place: Place, data: bytes, mode: int, now: datetime
) -> Outcome:
    """Write a host's file where none is, through the journal; the folder above it is made where that is gone too."""
    above = place.path.rpartition("/")[0]
    made: tuple[MakeDir, ...] = ()
    with applier.mutator.hold(site):
        if above and applier.mutator.names_or_none(place.root, above) is None:
            made = (MakeDir(place=Place(root=place.root, path=RelPath(above))),)
        image = FileImage(blob=BlobId(hashlib.sha256(data).hexdigest()), mode=mode)
        entry = JournalEntry(
            action_id=applier.new_id(),
            run_id=None,
            at=now,
            kind="bring_back",
            by="user",
            library=site.library,
            targets=(SkillKey(library=site.library, rel=RelPath(place.path)),),
            summary=f"{place.path}: put back from backup {manifest.id}",
            reason=f"put back from backup {manifest.id}",
            steps=(*made, WriteFile(place=place, before=None, after=image)),
        )
        return applier.carry_out(None, Draft(entry=entry, blobs=(data,)))


# -- one of them


def _one(
    backups: Backups,
    reader: TreeReader,
    applier: Applier,
    manifest: Manifest,
    order: BringBackOrder,
    wish: _Wish,
    now: datetime,
) -> BackupRow:
    key, site = wish.key, applier.sites[wish.key.library]
    shown = wish.shown
    if not _is_text(key.rel) or not _is_text(wish.into or ""):
        words = "its name is not UTF-8, which no record can hold; --to DIR takes it out"
        return BackupRow(what="skipped", skill=quoted(as_bytes(key.rel)), words=words)
    try:
        wanted = content_id(wish.entry, backups.tree)
        now_there = reader.look(site.root if wish.into is None else site.archive, wish.path)
        if now_there is not None and now_there[1] == wanted:
            return BackupRow(what="unchanged", skill=shown, words="it is as in the backup")
        twin = _in_archive(reader, applier, site, key, wanted, wish)
        if wish.into is not None and (twin is not None or _lives(reader, site, wish, wanted)):
            return BackupRow(what="unchanged", skill=shown, words="its content is still there")
    except DamagedBackupError as error:
        return BackupRow(what="failed", skill=shown, words=f"{error}; an older backup may have it whole")
    except (OSError, InputError, ValueError) as error:
        return BackupRow(what="skipped", skill=shown, words=f"what stands there cannot be looked at: {error}")
    standing = applier.standings([key])[key]
    there = now_there is not None
    if now_there is not None and now_there[0].kind == "link":
        return BackupRow(what="skipped", skill=shown, words="a link stands there, which is never changed")
    name_taken = same_name(applier, key) if wish.into is None and not there else None
    if name_taken is not None:
        words = f"{name_taken} has that name already, and its host knows names only"
        return BackupRow(what="skipped", skill=shown, words=words)
    against = _against(standing, order, key, replaces=there) if wish.into is None else None
    if against is not None:
        return BackupRow(what="skipped", skill=shown, words=against)
    umbrella = None if wish.into is not None or there else _doubled(applier, key)
    if umbrella is not None and not order.skills:
        words = (
            f"it went into {umbrella}, where its text would stand twice; `curatord undo` of that merge takes it back"
        )
        return BackupRow(what="skipped", skill=shown, words=f"{words}, --skill restores it all the same")
    words = _words(standing, wish, replaces=there, from_archive=twin is not None, site=site)
    if umbrella is not None:
        words += f" (its text stands in {umbrella} too)"
    if order.dry_run:
        return BackupRow(what="done", skill=shown, words=f"would be {words}")
    if twin is not None and wish.into is None and not there:
        action = Restore(key=key, reason=f"restored as in backup {manifest.id}", by="user", archived=twin)
        return BackupRow(what="done", skill=shown, words=words, outcome=applier.apply(action, now=now))
    return _stage_and_apply(backups, applier, manifest, wish, now, words)


def _stage_and_apply(
    backups: Backups, applier: Applier, manifest: Manifest, wish: _Wish, now: datetime, words: str
) -> BackupRow:
    key, site = wish.key, applier.sites[wish.key.library]
    waits = applier.recover(now=now).waits()
    if key in waits:
        return BackupRow(what="skipped", skill=wish.shown, words=waits[key])
    action_id = applier.new_id()
    try:
        with (
            applier.mutator.hold(site),
            applier.mutator.stage(action_id, site) as (place, folder, like),
        ):
            trouble = backups.take_out(wish.entry, folder, "package", like)
            if trouble:
                more = f" and {len(trouble) - 1} more" if len(trouble) > 1 else ""
                return BackupRow(what="failed", skill=wish.shown, words=f"not restored, {trouble[0]}{more}")
            action = BringBack(
                key=key,
                reason=f"restored from backup {manifest.id}",
                by="user",
                backup=manifest.id,
                staged=place,
                form=wish.form,
                into=wish.into,
                item=wish.item,
                above=wish.above,
            )
            standings = applier.standings([key])
            found = objections(action, standings)
            if found:
                return BackupRow(what="skipped", skill=wish.shown, words=found[0].what)
            record = applier.store.skill(key)
            draft = compile_action(
                action,
                site=site,
                standings=standings,
                records={} if record is None else {key: record},
                archive=(),
                disk=applier.mutator,
                now=now,
                run_id=None,
                action_id=action_id,
            )
            return BackupRow(what="done", skill=wish.shown, words=words, outcome=applier.carry_out(action, draft))
    except NotNowError as error:
        return BackupRow(what="skipped", skill=wish.shown, words=str(error))
    except InputError as error:
        return BackupRow(what="skipped", skill=wish.shown, words=str(error))
    except OSError as error:
        return BackupRow(what="failed", skill=wish.shown, words=f"{error.strerror or error}")


def _in_archive(
    reader: TreeReader, applier: Applier, site: Site, key: SkillKey, wanted: str, wish: _Wish
) -> RelPath | None:
    """Return the entry of the archive that holds this very content of *key*, or None."""
    for item in applier.store.archive(site.library):
        if item.key != key:
            continue
        inner = as_bytes(item.path) + (b"/" + wish.path.rpartition(b"/")[2] if wish.form == "file" else b"")
        try:
            found = reader.look(site.archive, inner)
        except (OSError, InputError):
            continue
        if found is not None and found[1] == wanted:
            return item.path
    return None


def _lives(reader: TreeReader, site: Site, wish: _Wish, wanted: str) -> bool:
    found = reader.look(site.root, as_bytes(wish.key.rel))
    return found is not None and found[1] == wanted


def _doubled(applier: Applier, key: SkillKey) -> str | None:
    """Return the live umbrella that took *key* in, or None."""
    record = applier.store.skill(key)
    if record is None or record.absorbed_into is None:
        return None
    same = [one for one in applier.store.skills(key.library) if one.name == record.absorbed_into]
    seen = applier.look(same)
    return record.absorbed_into if any(seen[one].there for one in same) else None


def _against(standing: Standing, order: BringBackOrder, key: SkillKey, *, replaces: bool) -> str | None:
    """Return why it may not come back over what stands there, or None."""
    foreign = order.foreign(key)
    if foreign is not None:
        return foreign
    if not replaces or order.skills:
        return None
    if standing.pinned:
        return "it is pinned, and differs from the backup; name it with --skill to restore it all the same"
    if standing.importance is Importance.CRITICAL:
        return "its importance is critical, and it differs from the backup; name it with --skill to restore it"
    if standing.protected:
        return f"{standing.why or 'it is protected'}; name it with --skill to restore it all the same"
    return None


def _words(standing: Standing, wish: _Wish, *, replaces: bool, from_archive: bool, site: Site) -> str:
    if wish.into is not None:
        return "brought back into the archive"
    words = "restored from the backup"
    if replaces:
        words += f"; what stood there is in {site.archive}"
    elif from_archive:
        words = "restored from the archive, where it stands as in the backup"
    if standing.pinned and replaces:
        words += " (it is pinned, and was named)"
    elif replaces and not standing.managed:
        words += " (it is not managed: your order alone)"
    return words


def _is_text(rel: str) -> bool:
    try:
        rel.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True

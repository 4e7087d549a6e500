"""
Making backups, and letting the oldest go.

One backup covers every library with its archive, what was known of the archived packages, and the host's schedule
beside it (the host's other records lie in the library itself). It is read library by library, each under the work lock,
so that no half of an action is in it; what a kill had left half-way was brought to an end before.

What goes, goes oldest first, when there are more than may be kept or they are larger together than allowed. The newest
one stays in any case, and so does the newest that has a library which later ones lack: a library that is away for a
while (a disk not mounted) must not lose its last backup to those that were made without it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from curatord.core.backup import (
    MAX_LEFT_OUT,
    BackupId,
    HostFile,
    LeftOut,
    LibraryBackup,
    Manifest,
    StoredItem,
    StoredSkill,
    as_bytes,
    new_backup_id,
    quoted,
    spared,
)
from curatord.core.cheap import dataclass
from curatord.core.journal import ArchiveItem
from curatord.core.values import LibraryName
from curatord.errors import InputError, StateError
from curatord.ports.backups import Backups, DamagedBackupError, TreeReader

__all__ = ["Created", "LibraryToKeep", "create", "drop_old"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryToKeep:
    """
    A library as its last look found it.

    Attributes:
        root, archive, home: Absolute paths; *home* is the Hermes home, or None.
        skills: (path below the root, form) of every live skill.
        items: What is known of its archived packages.
        apart: Absolute paths that lie in no library even where they lie below it: our own state.
    """

    name: LibraryName
    root: str
    archive: str
    layout: str
    home: str | None = None
    skills: tuple[StoredSkill, ...] = ()
    items: tuple[ArchiveItem, ...] = ()
    apart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """
    What making a backup came to.

    Attributes:
        manifest: The backup: a new one, or the newest one where *unchanged* says that nothing differs from it.
        failed: (library, why) of those that could not be read at all, and are not in it.
        dropped: Older ones that went.
        freed: How many bytes that freed.
        warnings: What else is to be told.
    """

    manifest: Manifest
    unchanged: bool = False
    failed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[BackupId, ...] = ()
    freed: int = 0
    warnings: tuple[str, ...] = ()


def create(
    backups: Backups,
    reader: TreeReader,
    libraries: Sequence[LibraryToKeep],
    *,
    now: datetime,
    reason: str,
    version: str,
    keep: int,
    max_bytes: int,
    at_rest: Callable[[], AbstractContextManager[None]],
    anyway: bool = True,
) -> Created:
    """
    Make a backup of *libraries*, then let the oldest go.

    Args:
        at_rest: Holds the work lock: nobody of ours is half-way through an action meanwhile.
        anyway: Also where nothing differs from the newest one.

    Raises:
        BusyError: A lock is held by another process.
        TooLargeError: It is larger than all of them together may be; nothing was kept.
        StateError: None of the libraries could be read, or nothing could be written.
    """
    with backups.hold():
        try:
            backups.begin()
            manifest, failed = _read_all(
                backups, reader, libraries, now=now, reason=reason, version=version, at=at_rest
            )
            if not manifest.libraries:
                words = "; ".join(f"{name}: {why}" for name, why in failed) or "no library is configured"
                raise StateError(f"there is nothing to back up: {words}")
            newest = None if anyway else _newest(backups)
            if newest is not None and not failed and _same(newest, manifest):
                return Created(manifest=newest, unchanged=True)
            backups.commit(manifest)
        except OSError as error:
            raise StateError(
                f"no backup was made: {error.strerror or error}",
                hint="look at the free space and the permissions of the state folder; what was backed up before stays",
            ) from error
        finally:
            backups.abandon()
        dropped, freed, warnings = drop_old(
            backups, keep=keep, max_bytes=max_bytes, names=[library.name for library in libraries]
        )
    return Created(manifest=manifest, failed=failed, dropped=dropped, freed=freed, warnings=warnings)


def _read_all(
    backups: Backups,
    reader: TreeReader,
    libraries: Sequence[LibraryToKeep],
    *,
    now: datetime,
    reason: str,
    version: str,
    at: Callable[[], AbstractContextManager[None]],
) -> tuple[Manifest, tuple[tuple[str, str], ...]]:
    kept: list[LibraryBackup] = []
    failed: list[tuple[str, str]] = []
    left_out: list[LeftOut] = []
    count = 0
    for library in libraries:
        try:
            with at():
                one, left, more = _read(reader, library)
        except FileNotFoundError:
            failed.append((library.name, f"{library.root} is not there"))
        except (PermissionError, NotADirectoryError) as error:
            failed.append((library.name, f"{error.filename or library.root}: {error.strerror}"))
        else:
            kept.append(one)
            left_out += left
            count += more
    manifest = Manifest(
        id=new_backup_id(now, backups.ids()),
        at=now,
        reason=reason,
        version=version,
        libraries=tuple(kept),
        left_out=tuple(left_out[:MAX_LEFT_OUT]),
        left_out_count=count,
    )
    return manifest, tuple(failed)


def _read(reader: TreeReader, library: LibraryToKeep) -> tuple[LibraryBackup, list[LeftOut], int]:
    hidden = {skill.path.split("/")[0] for skill in library.skills if skill.path.startswith(".")}
    found = reader.read(library.root, apart=(library.archive, *library.apart), hidden=hidden)
    try:
        archive = reader.read(library.archive, apart=library.apart)
    except FileNotFoundError:
        archive = None
    trees = [(found, library.root), *([(archive, library.archive)] if archive is not None else [])]
    left_out = [_placed(left, quoted(as_bytes(where))) for tree, where in trees for left in tree.left_out]
    host_files, more = _read_host_files(reader, library)
    return (
        LibraryBackup(
            name=library.name,
            root=quoted(as_bytes(library.root)),
            archive=quoted(as_bytes(library.archive)),
            layout=library.layout,
            tree=found.top.ref,
            mode=found.top.mode,
            archive_tree=None if archive is None else archive.top.ref,
            archive_mode=0o755 if archive is None else archive.top.mode,
            skills=library.skills,
            items=tuple(_stored(item) for item in sorted(library.items, key=lambda item: item.path)),
            host_files=tuple(host_files),
            files=sum(tree.files for tree, _ in trees) + len(host_files),
            bytes=sum(tree.bytes for tree, _ in trees),
        ),
        [*left_out, *more],
        sum(tree.left_out_count for tree, _ in trees) + len(more),
    )


def _read_host_files(reader: TreeReader, library: LibraryToKeep) -> tuple[list[HostFile], list[LeftOut]]:
    """Keep the schedule, and what the host's hub has installed: hidden folders of a library are not read else."""
    found: list[HostFile] = []
    left_out: list[LeftOut] = []
    if library.home is not None:
        for path in (f"{library.home}/cron/jobs.json", f"{library.root}/.hub/lock.json"):
            try:
                file = reader.read_file(path)
            except InputError as error:
                left_out.append(LeftOut(path=quoted(as_bytes(path)), why=str(error)))
                continue
            if file is not None:
                rel = quoted(as_bytes(posixpath.relpath(path, library.home)))
                found.append(HostFile(path=rel, ref=file[0], mode=file[1]))
    return found, left_out


def _placed(left: LeftOut, where: str) -> LeftOut:
    """Return *left* with its path made absolute."""
    return LeftOut(path=f"{where}/{left.path}", why=left.why, ordinary=left.ordinary)


def _stored(item: ArchiveItem) -> StoredItem:
    return StoredItem(
        path=quoted(as_bytes(item.path)),
        rel=quoted(as_bytes(item.key.rel)),
        at=item.at,
        reason=item.reason,
        action_id=item.action_id,
        absorbed_into=item.absorbed_into,
        fingerprint=item.fingerprint,
    )


def _newest(backups: Backups) -> Manifest | None:
    """Return the newest backup where it can be read as a whole."""
    for backup in backups.ids()[:1]:
        try:
            manifest = backups.manifest(backup)
            if not any(size == 0 for ref, size in backups.needs(manifest).items() if ref != _EMPTY):
                return manifest
        except DamagedBackupError:
            return None
    return None


_EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256 of nothing


def _same(one: Manifest, other: Manifest) -> bool:
    return one.libraries == other.libraries


def drop_old(
    backups: Backups, *, keep: int, max_bytes: int, names: Sequence[LibraryName] = ()
) -> tuple[tuple[BackupId, ...], int, tuple[str, ...]]:
    """
    Let the oldest backups go, under the lock; return which, how many bytes that freed, and warnings.

    Args:
        keep, max_bytes: How many may stay, and how large they may be together.
        names: Libraries of which the newest backup stays whatever its age.
    """
    ids = backups.ids()
    sizes: list[dict[str, int]] = []
    has: dict[BackupId, set[str]] = {}
    warnings: list[str] = []
    damaged = set()
    for backup in ids:
        try:
            manifest = backups.manifest(backup)
            has[backup] = {library.name for library in manifest.libraries}
            sizes.append(backups.needs(manifest))
        except DamagedBackupError as error:
            warnings.append(f"backup {backup} is damaged: {error}; until it goes in its turn no bytes are freed")
            has.setdefault(backup, set())
            sizes.append({})
            damaged.add(backup)
    count = spared(sizes, keep=keep, max_bytes=max_bytes)
    stays = set(ids[:count])
    for name in names:
        newest = next((backup for backup in ids if name in has[backup] and backup not in damaged), None)
        if newest is not None:
            stays.add(newest)
    dropped: list[BackupId] = []
    freed = 0
    try:
        for backup in reversed(ids):
            if backup not in stays:
                backups.drop(backup)
                dropped.append(backup)
        freed = backups.collect()
    except DamagedBackupError:
        pass  # told above
    except OSError as error:
        warnings.append(f"older backups could not be dropped, or their bytes not freed: {error.strerror or error}")
    return tuple(dropped), freed, tuple(warnings)

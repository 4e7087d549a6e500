"""The commands of backups: make, list, verify, take out; and the backup that a run makes before it changes anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curatord.application.working import recover
from curatord.core.backup import LibraryBackup, Manifest, StoredSkill, as_bytes, as_text, quoted, unquoted
from curatord.core.plan import Applied, Failed, Skipped
from curatord.core.values import LibraryName, SkillKey
from curatord.core.words import iso, plural
from curatord.errors import BusyError, CuratorError, InputError, StateError, UsageError
from curatord.passes.backup import Created, LibraryToKeep, create

if TYPE_CHECKING:
    from curatord.core.library import Skill
    from curatord.passes.bring_back import BackupRow
    from curatord.wiring import Parts

__all__ = ["backup_before_run", "backup_create", "backup_list", "backup_restore", "backup_verify"]

BY_HAND = "made by hand"


def backup_create(parts: Parts, *, reason: str | None) -> dict[str, Any]:
    """Make a backup of all libraries now, let the oldest go, and say what is in it."""
    recover(parts)
    made = make(parts, reason=reason or BY_HAND, anyway=True)
    faults = [left for left in made.manifest.left_out if not left.ordinary]
    return {
        **_row(made.manifest),
        "left_out": [
            {"path": left.path, "why": left.why, "ordinary": left.ordinary} for left in made.manifest.left_out
        ],
        "left_out_count": made.manifest.left_out_count,
        "failed": [{"library": name, "error": why} for name, why in made.failed],
        "faults": len(faults),
        "dropped": list(made.dropped),
        "freed": made.freed,
        "total_bytes": parts.backups.total_bytes(),
        "warnings": list(made.warnings),
    }


def make(parts: Parts, *, reason: str, anyway: bool) -> Created:
    """Make a backup of all libraries, or none where nothing differs from the newest and not *anyway*."""
    from curatord import __version__

    parts.make_state_dir()
    return create(
        parts.backups,
        parts.backup_reader,
        list(_libraries(parts)),
        now=parts.clock.now(),
        reason=reason,
        version=__version__,
        keep=parts.config.backups.keep,
        max_bytes=parts.config.backups.max_size,
        at_rest=parts.work,
        anyway=anyway,
    )


def backup_before_run(parts: Parts) -> list[str]:
    """Make the backup that a run asks for before its first change; return warnings, also where it could not be made."""
    if not parts.config.backups.before_run:
        return []
    try:
        made = make(parts, reason="before a run", anyway=False)
    except CuratorError as error:
        parts.log.warning("backup.not_made", reason=str(error))
        return [f"no backup was made before this run: {error}"]
    if made.unchanged:
        return []
    parts.log.info("backup.made", backup=made.manifest.id, dropped=len(made.dropped))
    faults = [left for left in made.manifest.left_out if not left.ordinary]
    return [
        *(f"library {name} is not in the backup before this run: {why}" for name, why in made.failed),
        *(f"not in the backup before this run: {left.path}: {left.why}" for left in faults[:3]),
        *made.warnings,
    ]


def _libraries(parts: Parts) -> Iterator[LibraryToKeep]:
    for settings, library in parts.libraries:
        name = LibraryName(settings.name)
        snapshot = parts.library_view(settings, library).snapshot
        yield LibraryToKeep(
            name=name,
            root=snapshot.root,
            archive=snapshot.archive.rstrip("/"),
            layout=snapshot.layout,
            home=parts.sites[name].home,
            skills=tuple(_stored(skill) for skill in snapshot.skills),
            items=parts.store.archive(name),
            apart=(str(parts.state_dir),),
        )


def _stored(skill: Skill) -> StoredSkill:
    suffix = ".md" if skill.form == "flat" else ""
    form = "link" if skill.link_target is not None else skill.form
    return StoredSkill(path=quoted(as_bytes(f"{skill.key.rel}{suffix}")), form=form)


def _row(manifest: Manifest) -> dict[str, Any]:
    return {
        "id": manifest.id,
        "at": iso(manifest.at),
        "reason": manifest.reason,
        "libraries": [
            {"name": library.name, "skills": len(library.skills), "files": library.files, "bytes": library.bytes}
            for library in manifest.libraries
        ],
        "damaged": None,
    }


def backup_list(parts: Parts) -> list[dict[str, Any]]:
    """Return all backups, newest first; of one that cannot be read, why."""
    rows = []
    for backup in parts.backups.ids():
        try:
            rows.append(_row(parts.backups.manifest(backup)))
        except InputError as error:
            rows.append({"id": backup, "at": None, "reason": None, "libraries": [], "damaged": str(error)})
    return rows


def backup_verify(parts: Parts, said: str | None) -> list[dict[str, Any]]:
    """Read everything that a backup (None: each of them) needs, and say what is damaged."""
    from curatord.passes.bring_back import choose_backup

    parts.make_state_dir()
    with parts.backups.hold():
        rows = []
        for backup in parts.backups.ids() if said is None else [choose_backup(parts.backups, said)]:
            try:
                damaged = parts.backups.check(parts.backups.manifest(backup))
            except InputError as error:
                damaged = [str(error)]
            rows.append({"id": backup, "damaged": damaged})
    return rows


def backup_restore(
    parts: Parts, said: str, *, library: str | None, skills: Sequence[str], to: str | None, dry_run: bool
) -> dict[str, Any]:
    """Take a backup out: into the library through the writer, or with *to* into a folder of its own."""
    from curatord.passes.bring_back import BringBackOrder, bring_back, choose_backup

    if to is not None:
        parts.make_state_dir()
        with parts.backups.hold():
            manifest = parts.backups.manifest(choose_backup(parts.backups, said))
            return _take_out(parts, manifest, Path(to), library=library, skills=skills, dry_run=dry_run)
    if dry_run:
        parts.database  # noqa: B018 - opened for writing before anything is made from it
    else:
        recover(parts)
    look = parts.look(remember=not dry_run)

    def foreign(key: SkillKey) -> str | None:
        snapshot = look.libraries[key.library].snapshot
        if snapshot.observe_only:
            return "its library can only be observed: " + "; ".join(
                problem.words for problem in snapshot.problems if problem.severity != "note"
            )
        skill = look.live.get(key)
        if skill is None:
            return None
        if skill.link_target is not None:
            return "it is a link out of the library, which is never changed"
        return skill.external or skill.foreign_vcs

    changes: dict[str, Any] = {"backup": None, "done": [], "unchanged": [], "skipped": [], "failed": []}
    order = BringBackOrder(library=library, skills=tuple(skills), dry_run=dry_run, foreign=foreign)
    with parts.backups.hold():
        manifest = parts.backups.manifest(choose_backup(parts.backups, said))
        changes["backup"] = manifest.id
        rows = bring_back(
            parts.backups, parts.backup_reader, parts.applier, manifest, order,
            now=parts.clock.now(), stop=parts.surroundings.stop,
        )  # fmt: skip
        try:
            for row in rows:
                _add(changes, row)
        except BusyError as error:
            if not (changes["done"] or changes["unchanged"]):
                raise
            changes["skipped"].append({"skill": "the rest", "reason": str(error), "code": "busy"})
        except StateError as error:
            if not changes["done"]:
                raise
            changes["failed"].append({"skill": "the rest", "error": str(error)})
    if any(row["skill"].endswith("(archived)") for row in changes["done"]) and skills:
        changes["hint"] = "what was archived when that backup was made is in the archive again: curatord restore SKILL"
    if not skills:
        there = {(one.name, unquoted(skill.path)) for one in manifest.libraries for skill in one.skills}
        more = sum(
            (key.library, as_bytes(f"{key.rel}{'.md' if skill.form == 'flat' else ''}")) not in there
            for key, skill in look.live.items()
            if library in (None, key.library)
        )
        hints = [f"left as it is, since it is not in this backup: {plural(more, 'skill')}"] if more else []
        gone = sum(_files_gone(parts, one) for one in manifest.libraries if library in (None, one.name))
        if gone:
            hints.append(f"gone, and left so, since in no skill: {plural(gone, 'file')} (--to DIR takes them out)")
        if hints:
            changes["hint"] = "; ".join(hints)
    return changes


def _files_gone(parts: Parts, library: LibraryBackup) -> int:
    """Return how many of a library's files that belong to no skill are in the backup and not on disk any more."""
    from curatord.passes.bring_back import files_apart

    root = as_text(unquoted(library.root))
    try:
        paths = list(files_apart(parts.backups, library))
    except InputError:
        return 0  # what is damaged was told
    return sum(not os.path.lexists(f"{root}/{as_text(path)}") for path in paths)


def _add(changes: dict[str, Any], row: BackupRow) -> None:
    match row.outcome:
        case None if row.what == "done":
            changes["done"].append({"skill": row.skill, "what": row.words, "action": None})
        case None if row.what == "failed":
            changes["failed"].append({"skill": row.skill, "error": row.words})
        case None:
            changes[row.what].append({"skill": row.skill, "reason": row.words})
        case Applied():
            changes["done"].append({"skill": row.skill, "what": row.words, "action": row.outcome.entry.action_id})
        case Skipped():
            changes["skipped"].append({"skill": row.skill, "reason": row.outcome.reason, "code": row.outcome.code})
        case Failed():
            changes["failed"].append({"skill": row.skill, "error": row.outcome.error})


def _take_out(
    parts: Parts, manifest: Manifest, to: Path, *, library: str | None, skills: Sequence[str], dry_run: bool
) -> dict[str, Any]:
    """Write what is asked for below *to*, new or empty: into `LIBRARY/library`, `LIBRARY/archive`, `LIBRARY/host`."""
    from curatord.core.backup import Entry, entry_at, packages_in
    from curatord.core.values import BlobId

    backups = parts.backups
    chosen = [one for one in manifest.libraries if library in (None, one.name)]
    if not chosen:
        names = ", ".join(one.name for one in manifest.libraries)
        raise UsageError(f"library {library!r} is not in backup {manifest.id}", hint=f"it has: {names}")
    to = to.absolute()
    changes: dict[str, Any] = {"backup": manifest.id, "done": [], "unchanged": [], "skipped": [], "failed": []}
    wanted: list[tuple[str, str, Entry]] = []  # what it is called, where it goes, what it is
    for one in chosen:
        folder = quoted(as_bytes(one.name)).replace("/", "%2F") if one.name not in (".", "..") else f"_{one.name}"
        top, archive = one.top(), one.archive_top()
        if not skills:
            wanted.append((f"{one.name}: library", f"{folder}/library", top))
            if archive is not None:
                wanted.append((f"{one.name}: archive", f"{folder}/archive", archive))
            for file in one.host_files:
                name = unquoted(file.path).replace(b"/", b"-")
                entry = Entry(name=name, kind="file", mode=file.mode, ref=BlobId(file.ref), size=0, mtime_ns=0)
                wanted.append((f"{one.name}: {file.path}", f"{folder}/host/{as_text(name)}", entry))
            continue
        paths = {*packages_in(top, backups.tree), *(unquoted(skill.path) for skill in one.skills)}
        for path in sorted(paths):
            rel = as_text(path)
            last = rel.rpartition("/")[2]
            meant = {rel, rel.removesuffix(".md"), last, last.removesuffix(".md")}
            if not {*meant, *(f"{one.name}/{name}" for name in meant)}.isdisjoint(skills):
                found = entry_at(top, path, backups.tree)
                if found is not None:
                    wanted.append((f"{one.name}/{rel}", f"{folder}/library/{rel}", found))
    if not wanted:
        raise UsageError(f"nothing in backup {manifest.id} is called {', '.join(skills)}")
    if dry_run:
        changes["done"] = [
            {"skill": shown, "what": f"would be written to {to}/{path}", "action": None} for shown, path, _ in wanted
        ]
        return changes
    try:
        to.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(to.iterdir()):
            raise UsageError(f"{to} is not empty", hint="name a new or an empty folder; nothing is ever overwritten")
        like = to.stat()
        for shown, below, what in wanted:
            place = to / below
            place.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                trouble = backups.take_out(what, descriptor, place.name, like)
            finally:
                os.close(descriptor)
            changes["failed"] += [{"skill": shown, "error": words} for words in trouble]
            changes["done"].append({"skill": shown, "what": f"written to {place}", "action": None})
    except OSError as error:
        raise InputError(f"cannot write below {to}: {error.strerror or error}") from error
    return changes

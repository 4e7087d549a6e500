"""
Taking back what was done, and bringing back what was archived.

An undo is an action: its steps are the inverse of those it takes back, it goes through the same journal, and it can be
undone. Actions are taken back newest first. One of them is taken back whole or not at all: where its files, or the
records it changed, are not as it left them, it is refused and what stands in the way is named; the others go on.

A package that an action created is not removed by its undo but archived (promise 3).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from curatord.core.cheap import dataclass, replace
from curatord.core.curation import ActionRow
from curatord.core.journal import (
    ArchiveChange,
    ArchiveItem,
    HistoryChange,
    JournalEntry,
    MakeDir,
    MovePackage,
    Place,
    RecordChange,
    RemoveDir,
    Step,
    WriteFile,
    inverse,
)
from curatord.core.plan import Failed, Outcome, Restore, SkipCode, Skipped, fold
from curatord.core.skill_record import SkillRecord
from curatord.core.small_facts import FORGOTTEN_UNTIL
from curatord.core.values import ActionId, LibraryName, RelPath, RunId, SkillKey, State
from curatord.errors import BusyError, UsageError
from curatord.passes.apply import Applier
from curatord.passes.compile import Draft, archive_name
from curatord.ports.mutator import LinkError

__all__ = ["ArchivedPackage", "archived_packages", "choose_archived", "restore", "same_name", "undo"]

RUN_ID = re.compile(r"\d{8}-\d{6}(-\d+)?")
STAMPED = re.compile(r"-\d{14}$")
# What a later action may have changed, so that the earlier one cannot be taken back any more.
_WORDS = {"state": "its state", "pinned": "its pin", "importance": "its importance", "owner": "its owner"}


def undo(applier: Applier, ref: str, *, now: datetime, run_id: RunId | None = None) -> tuple[Outcome, ...]:
    """
    Take back an action, all of a proposal, or all of a run, newest first.

    Args:
        applier: The gate.
        ref: The id of an action, a proposal or a run, or `last` for the newest run with something to undo.
        now: The time of the undo.
        run_id: A run that this is part of, if any.

    Returns:
        One outcome for each action; `Skipped` ones say what stands in the way.

    Raises:
        UsageError: There is nothing of that name, or nothing of it left to undo.
        BusyError: A lock is held by somebody else, and nothing was taken back yet.
    """
    rows = _rows(applier, ref)
    outcomes: list[Outcome] = []
    for row in rows:
        try:
            outcomes.append(_undo_one(applier, row, now, run_id))
        except BusyError as error:
            if not outcomes:
                raise
            outcomes.append(_stands(row.entry, "busy", (str(error),)))
        except OSError as error:
            outcomes.append(Failed(action=None, error=f"{row.entry.action_id} cannot be undone: {error}"))
        except LinkError as error:
            outcomes.append(_stands(row.entry, "unreadable", (str(error),)))
    return tuple(outcomes)


def _rows(applier: Applier, ref: str) -> tuple[ActionRow, ...]:
    store = applier.store
    if ref == "last":
        newest = store.last_run_to_undo()
        if newest is None:
            raise UsageError("no run has anything to undo")
        ref = newest
    one = store.action(ActionId(ref))
    if one is not None:
        found: tuple[ActionRow, ...] = (one,)
    else:
        found = store.actions(run_id=RunId(ref)) or store.actions(proposal=ref)
        found = tuple(row for row in found if row.entry.undoes is None)
        if not found:
            raise UsageError(
                f"there is no run, action or proposal {ref!r} that changed anything",
                hint=_forgotten(store.meta(FORGOTTEN_UNTIL), ref) or "`curatord runs` lists runs",
            )
    left = tuple(row for row in found if row.status == "done")
    if not left:
        raise UsageError(f"{ref} was undone already", hint=f"by {found[0].undone_by}")
    return left


def _forgotten(until: str | None, ref: str) -> str | None:
    """Return words where *ref* may be older than what is remembered for undo, or None."""
    if until is None:
        return None
    moment = datetime.fromisoformat(until)
    if RUN_ID.fullmatch(ref) and ref[:15] > f"{moment:%Y%m%d-%H%M%S}":
        return None
    return (
        f"actions up to {moment:%Y-%m-%d %H:%M} UTC are too old to be undone (undo.keep); a backup may have what it was"
    )


def _undo_one(applier: Applier, row: ActionRow, now: datetime, run_id: RunId | None) -> Outcome:
    entry = row.entry
    site = applier.sites.get(entry.library)
    if site is None:
        return _stands(entry, "gone", (f"there is no library {entry.library!r} any more",))
    waits = applier.recover(now=now).waits()
    with applier.mutator.hold(site):
        if any(item.after is not None and entry.kind == "bring_back" and not entry.changes for item in entry.archive):
            return _stands(entry, "invalid", ("what came back into the archive stays there: nothing is deleted",))
        fresh = applier.store.action(entry.action_id)
        if fresh is None or fresh.status != "done":
            return _stands(entry, "nothing", ("it was undone just now",))
        blocking = [f"{key}: {waits[key]}" for key in entry.targets if key in waits]
        if blocking:
            return _stands(entry, "conflict", tuple(blocking))
        in_the_way = (*applier.mutator.obstacles(entry), *_records_in_the_way(applier, entry))
        if in_the_way:
            return _stands(entry, "edited", in_the_way)
        return applier.carry_out(None, _draft(applier, entry, now, run_id))


def _stands(entry: JournalEntry, code: SkipCode, what: tuple[str, ...]) -> Skipped:
    return Skipped(
        action=None,
        code=code,
        reason=f"{entry.action_id} ({entry.summary}) cannot be undone: " + "; ".join(what),
        keys=entry.targets,
    )


def _records_in_the_way(applier: Applier, entry: JournalEntry) -> Iterator[str]:
    """Yield what of our records is not as *entry* left it, so that something newer has to be undone first."""
    for change in entry.changes:
        now = applier.store.skill(change.key)
        if now is None:
            continue
        for name, words in _WORDS.items():
            before = None if change.before is None else getattr(change.before, name)
            if getattr(change.after, name) != before and getattr(now, name) != getattr(change.after, name):
                newer = applier.store.actions(key=change.key, limit=1)
                by = f" by {newer[0].entry.action_id}" if newer and newer[0].entry.action_id != entry.action_id else ""
                yield f"{change.key}: {words} was changed since{by}"
    seen = applier.look([key for key, _ in entry.after])
    for key, fingerprint in entry.after:
        if fingerprint is not None and seen[key].fingerprint != fingerprint:
            yield f"{key}: it was edited since"


def _draft(applier: Applier, entry: JournalEntry, now: datetime, run_id: RunId | None) -> Draft:
    action_id = applier.new_id()
    written = dict(entry.after)
    # What stood there when it was decided on was not made by it, even where our records had not heard of it yet.
    stood = {key for key, fingerprint in entry.expected if fingerprint is not None}
    created = {change.key for change in entry.changes if change.key in written and _is_new(change)} - stood
    site = applier.sites[entry.library]
    steps: list[Step] = []
    moved: dict[SkillKey, ArchiveItem] = {}
    for key in sorted(created):
        found = applier.mutator.package(site, key)
        assert found is not None, "what it wrote stands there, or it would be in the way"
        taken = {fold(name) for name in applier.mutator.names(site.archive)} | {fold(i.path) for i in moved.values()}
        name = archive_name(key.name, taken, now)
        inner = f"{name}/{found.place.path.rpartition('/')[2]}" if found.form == "file" else name
        target = Place(root=site.archive, path=RelPath(inner))
        known = {step.place for step in steps if isinstance(step, MakeDir)}
        steps.extend(step for step in applier.mutator.missing_dirs(target) if step.place not in known)
        steps.append(MovePackage(source=found.place, target=target, seal=found.seal))
        moved[key] = ArchiveItem(
            key=key, path=RelPath(name), at=now, reason=f"its creation was undone ({entry.action_id})",
            action_id=action_id, fingerprint=written[key],
        )  # fmt: skip
    # Members come out of the archive before anything else is put back, the created packages left first of all.
    back = [step for step in inverse(entry.steps) if not _within(step, created, site.root)]
    if entry.kind == "bring_back":
        back = list(_into_archive_instead(applier, entry, back, action_id, now, moved))
    steps.extend(back)
    empty = set(moved) - {item.after.key for item in entry.archive if item.after is not None}
    changes = []
    history = []
    for change in entry.changes:
        current = applier.store.skill(change.key) or change.after
        put_back = _put_back(current, change, entry, now)
        if change.key in created or (change.key in empty and put_back.state is not State.ARCHIVED):
            item = moved[change.key]
            after = replace(
                current, state=State.ARCHIVED, state_since=now, archived_at=now,
                archive_path=f"{site.archive}/{item.path}", archive_reason=item.reason,
            )  # fmt: skip
        else:
            after = put_back
        changes.append(
            RecordChange(
                key=change.key, before=current, after=after, written=change.written and change.key not in moved
            )
        )
        if after.state is not current.state:
            history.append(
                HistoryChange(
                    key=change.key, from_state=current.state, to_state=after.state, reason=f"{entry.action_id} undone"
                )
            )
    archive = [ArchiveChange(before=item.after, after=item.before) for item in entry.archive]
    archive += [ArchiveChange(before=None, after=item) for item in moved.values()]
    return Draft(
        entry=JournalEntry(
            action_id=action_id,
            run_id=run_id,
            at=now,
            kind="undo",
            by="user",
            library=entry.library,
            targets=entry.targets,
            summary=f"undone: {entry.summary}",
            reason=f"undo of {entry.action_id}",
            steps=tuple(steps),
            changes=tuple(changes),
            archive=tuple(archive),
            history=tuple(history),
            undoes=entry.action_id,
            proposal=entry.proposal if entry.by == "model" else None,
        ),
        blobs=(),
    )


def _into_archive_instead(
    applier: Applier,
    entry: JournalEntry,
    steps: Sequence[Step],
    action_id: ActionId,
    now: datetime,
    moved: dict[SkillKey, ArchiveItem],
) -> Iterator[Step]:
    """Yield *steps* with what came out of a backup going into the archive: its staged copy is gone for good."""
    (key,) = entry.targets
    site = applier.sites[entry.library]
    for step in steps:
        if not isinstance(step, MovePackage) or step.target.root in (site.root, site.archive):
            yield step
            continue
        name = archive_name(key.name, {fold(name) for name in applier.mutator.names(site.archive)}, now)
        inner = f"{name}/{step.source.path.rpartition('/')[2]}" if step.source.path != key.rel else name
        target = Place(root=site.archive, path=RelPath(inner))
        yield from applier.mutator.missing_dirs(target)
        yield msgspec.structs.replace(step, target=target)
        moved[key] = ArchiveItem(
            key=key, path=RelPath(name), at=now, reason=f"its way out of a backup was undone ({entry.action_id})",
            action_id=action_id,
        )  # fmt: skip


def _is_new(change: RecordChange) -> bool:
    """Return whether the action made the skill, also where an archived one of that path was known."""
    return change.before is None or change.before.first_seen_at != change.after.first_seen_at


def _within(step: Step, created: set[SkillKey], root: str) -> bool:
    """Return whether *step* is about the inside of a package that leaves whole."""
    if not isinstance(step, WriteFile | RemoveDir) or step.place.root != root:
        return False
    path = step.place.path
    return any(path in (key.rel, f"{key.rel}.md") or path.startswith(f"{key.rel}/") for key in created)


def _put_back(current: SkillRecord, change: RecordChange, entry: JournalEntry, now: datetime) -> SkillRecord:
    """Return the record with the fields that the action changed as they were before it."""
    if change.before is None:
        return current
    fields: dict[str, object] = {}
    for name in SkillRecord.__dataclass_fields__:
        before, after = getattr(change.before, name), getattr(change.after, name)
        if before != after and getattr(current, name) == after:
            fields[name] = before
    leaves_archive = change.after.state is State.ARCHIVED and fields.get("state", State.ARCHIVED) is not State.ARCHIVED
    if ("state" in fields and entry.by == "rules") or leaves_archive or entry.kind == "bring_back":
        # Else the rules would do it (again) at once: undoing it says that the skill is wanted.
        fields["restored_at"] = now
    return replace(current, **fields)  # type: ignore[arg-type]  # names are the class's own


# -- archive


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedPackage:
    """
    One package in an archive, on disk now.

    *item* is what we know of it, or None for one that somebody else put there. *key* is where it would go back to.
    """

    key: SkillKey
    path: RelPath
    item: ArchiveItem | None = None

    @property
    def label(self) -> str:
        """What names this one and no other: its library and its entry, with a slash at its end."""
        return f"{self.key.library}/{self.path}/"


def archived_packages(applier: Applier, library: LibraryName) -> tuple[ArchivedPackage, ...]:
    """Return what stands in the archive of *library*, also what the host or a person put there, newest first."""
    site = applier.sites[library]
    known = {item.path: item for item in applier.store.archive(library)}
    # What the host archived of a skill that we know goes back to where that stood, under its pin and all that was said.
    stood = {
        record.archive_path: key
        for key, record in applier.store.skills(library).items()
        if record.state is State.ARCHIVED and record.archive_path is not None
    }
    found: list[ArchivedPackage] = []
    for path in _packages_below(applier, site.archive):
        item = known.get(RelPath(path))
        if item is not None:
            found.append(ArchivedPackage(key=item.key, path=item.path, item=item))
            continue
        name = STAMPED.sub("", path.rpartition("/")[2])
        if (key := stood.get(f"{site.archive}/{path}")) is not None:
            found.append(ArchivedPackage(key=key, path=RelPath(path)))
        elif name and not name.startswith("."):
            found.append(ArchivedPackage(key=SkillKey(library=library, rel=RelPath(name)), path=RelPath(path)))
    return tuple(sorted(found, key=_newest_first))


def _packages_below(applier: Applier, root: str) -> Iterator[str]:
    """Yield the entries of an archive; a folder without SKILL.md may be a category of an older archive."""
    for name in applier.mutator.names(root):
        if name.startswith("."):
            continue
        inside = applier.mutator.names_or_none(root, name)
        if inside is None or not inside:
            if inside is None:
                yield name
            continue
        packages = [
            f"{name}/{child}"
            for child in inside
            if "SKILL.md" in (applier.mutator.names_or_none(root, f"{name}/{child}") or ())
        ]
        if "SKILL.md" in inside or not packages:
            yield name
        else:
            yield from packages


def _newest_first(package: ArchivedPackage) -> tuple[float, str]:
    return (-package.item.at.timestamp() if package.item is not None else 0.0, package.path)


def choose_archived(applier: Applier, ref: str) -> ArchivedPackage:
    """
    Return the archived package that *ref* names: `name`, `library/name`, `library/path`, or an entry of the archive.

    Raises:
        UsageError: None, or more than one; the choices are listed.
    """
    everything = [package for library in sorted(applier.sites) for package in archived_packages(applier, library)]
    exact = [p for p in everything if ref in (p.label, f"{p.path}/")]
    named = [
        p
        for p in everything
        if ref
        in (p.key.name, p.key.rel, str(p.key), f"{p.key.library}/{p.key.name}", p.path, f"{p.key.library}/{p.path}")
    ]
    found = exact or named
    if not found:
        raise UsageError(f"nothing archived is called {ref!r}", hint="`curatord skills` lists archived ones too")
    if len(found) > 1:
        stamped = [p for p in found if ref in (p.path, f"{p.key.library}/{p.path}") and STAMPED.search(p.path)]
        if len(stamped) == 1:
            return stamped[0]
        raise UsageError(
            f"{len(found)} archived packages are called {ref!r}", hint="say which: " + ", ".join(p.label for p in found)
        )
    return found[0]


def restore(applier: Applier, ref: str, *, now: datetime, anyway: bool = False, run_id: RunId | None = None) -> Outcome:
    """
    Bring an archived skill back to where it stood; its idle clock starts again.

    Raises:
        UsageError: None or several are called so; or it went into an umbrella, and undoing that merge is what is
            wanted, unless *anyway*.
        BusyError: A lock is held by somebody else.
    """
    package = choose_archived(applier, ref)
    item = package.item
    if item is not None and item.absorbed_into is not None and not anyway:
        raise UsageError(
            f"{package.key} went into {item.absorbed_into}; restored alone, its text would stand twice",
            hint=f"`curatord undo {item.action_id}` takes the merge back; --anyway restores it alone",
        )
    twin = same_name(applier, package.key)
    action = Restore(key=package.key, reason="restored by its user", by="user", archived=package.path)
    if twin is not None:
        return Skipped(
            action=action,
            code="taken",
            reason=f"{twin} has that name already, and its host knows names only",
            keys=(twin,),
        )
    return applier.apply(action, now=now, run_id=run_id)


def same_name(applier: Applier, wanted: SkillKey) -> SkillKey | None:
    """Return another live skill of that name where the host tells skills apart by name alone."""
    if applier.sites[wanted.library].layout != "hermes":
        return None
    for key, record in applier.store.skills(wanted.library).items():
        live = record.state is not State.ARCHIVED and record.missing_since is None
        if live and key != wanted and key.name == wanted.name and applier.look([key])[key].there:
            return key
    return None

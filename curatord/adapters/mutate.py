"""
THE writer: the only module that changes a library, its archive, or the host's files beside it.

It does the steps of a journaled action (`core.journal`), each of them idempotent and synced, and brings what a kill
left half-way to before or after. It trusts nobody:

- *Ownership.* `begin` asks `licence` about every package that the steps reach, however the entry was come by: a bug or
  a model upstream cannot make it touch what is pinned, critical, unmanaged, broken, or edited since (promises 2, 4,
  10). A place in a library that lies in none of the entry's own packages is refused.
- *Links.* Everything happens relative to open folders, no part of a path below a root is followed (`disk`).
- *Races.* A package is sealed before it moves and looked at again after; a file is exchanged, and what came out is
  compared with what was to be replaced. Whoever slipped in between gets their version back, and the action never was.
- *Deletion.* There is no way to remove a package. Between two file systems a package is copied under a temporary name,
  verified by its seal, renamed, and only then the original goes: first by a rename under a hidden name, so that no
  half of it is ever seen, then file by file.

Temporary names are made of the action's id and the place, so recovery finds whatever a kill left of them.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from curatord.adapters.disk import Disk, exists_at, open_dir, parent_of
from curatord.adapters.hermes_records import HermesLocks
from curatord.adapters.journal_dir import BrokenIntent, JournalDir, blob_id
from curatord.adapters.lock import work_lock
from curatord.adapters.trees import SealedTree, copy_tree, names_in, remove_tree, seal_at, trace_at
from curatord.core.hermes_edits import edit_item, see_item, see_line, set_line
from curatord.core.journal import (
    Conflict,
    EditItem,
    FileImage,
    JournalEntry,
    MakeDir,
    MovePackage,
    Place,
    Redo,
    RemoveDir,
    Resolution,
    SetLine,
    Sighting,
    Step,
    Undo,
    WriteFile,
    inverse,
    place_of,
    resolve,
)
from curatord.core.plan import SkipCode, Standing
from curatord.core.values import Importance, LibraryName, RelPath, SkillKey
from curatord.errors import BusyError, CuratorError, InputError, StateError
from curatord.ports.mutator import (
    EditedError,
    FoundPackage,
    LinkError,
    RefusedError,
    Site,
    TakenError,
    UnreadableIntent,
)

__all__ = ["FileMutator"]

MAX_FILE_BYTES = 64 << 20  # more is no text that anybody edits; a bound for what is read whole


@dataclass(slots=True, kw_only=True)
class FileMutator:
    """
    The real `Mutator`.

    Attributes:
        state_dir: Where journal, blobs and the work lock are.
        sites: Every library that may be changed, by name.
        licence: Asked anew, from disk, about each package before it is touched.
        disk: The primitives; tests hand in one with a hook.
        wait_s: How many seconds a lock is waited for.
    """

    state_dir: Path
    sites: Mapping[LibraryName, Site]
    licence: Callable[[SkillKey], Standing]
    disk: Disk = field(default_factory=Disk)
    wait_s: float = 10.0
    journal: JournalDir = field(init=False)
    _holding: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.journal = JournalDir(state_dir=self.state_dir, disk=self.disk)

    # -- locks

    @contextmanager
    def hold(self, site: Site | None) -> Iterator[None]:
        """See `Mutator.hold`."""
        with ExitStack() as stack:
            stack.enter_context(work_lock(self.state_dir, self.wait_s))
            if site is not None:
                stack.enter_context(self._host(site))
            self._holding = True
            try:
                yield
            finally:
                self._holding = False

    @contextmanager
    def _host(self, site: Site) -> Iterator[None]:
        if site.home is None:
            yield
            return
        with HermesLocks(state_dir=self.state_dir, disk=self.disk, wait_s=self.wait_s).hold(site.home, site.root):
            yield

    # -- looking

    def package(self, site: Site, key: SkillKey) -> FoundPackage | None:
        """See `Mutator.package`."""
        return self._found(site.root, key.rel) or (
            self._found(site.root, f"{key.rel}.md") if site.layout == "flat" else None
        )

    def archived(self, site: Site, path: str) -> FoundPackage | None:
        """See `Mutator.archived`."""
        return self._found(site.archive, path)

    def _found(self, root: str, path: str) -> FoundPackage | None:
        place = Place(root=root, path=RelPath(path))
        try:
            with parent_of(place) as (folder, name):
                found = exists_at(folder, name)
                if found is None:
                    return None
                kind = stat.S_IFMT(found.st_mode)
                forms = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
                if kind not in forms:
                    raise LinkError(f"{place} is neither file, folder nor link")
                return FoundPackage(place=place, form=forms[kind], seal=seal_at(folder, name).seal)  # type: ignore[arg-type]
        except FileNotFoundError:
            return None

    def names(self, root: str, path: str = "") -> tuple[str, ...]:
        """See `Mutator.names`."""
        try:
            with open_dir(root, path) as folder:
                return tuple(names_in(folder))
        except FileNotFoundError:
            return ()

    def names_or_none(self, root: str, path: str) -> tuple[str, ...] | None:
        """See `Mutator.names_or_none`."""
        try:
            with open_dir(root, path) as folder:
                return tuple(names_in(folder))
        except (FileNotFoundError, LinkError):
            return None

    def image(self, place: Place) -> tuple[bytes, int] | None:
        """See `Mutator.image`."""
        try:
            with parent_of(place) as (folder, name):
                found = _read(folder, name)
        except FileNotFoundError:
            return None
        return None if found is None else (found[0], stat.S_IMODE(found[1].st_mode))

    def missing_dirs(self, place: Place) -> tuple[MakeDir, ...]:
        """See `Mutator.missing_dirs`."""
        parts = place.path.split("/")[:-1]
        missing: list[MakeDir] = []
        root = Path(place.root)
        if not root.exists():  # an archive's own folder; what is above it must be there
            above = root.parent
            mode = stat.S_IMODE(above.stat().st_mode) & 0o777
            missing.append(MakeDir(place=Place(root=str(above), path=RelPath(root.name)), mode=mode))
        mode = 0o755
        for count in range(1, len(parts) + 1):
            path = "/".join(parts[:count])
            if not missing:
                try:
                    with open_dir(place.root, path) as folder:
                        mode = stat.S_IMODE(os.fstat(folder).st_mode) & 0o777
                except FileNotFoundError:
                    pass
                else:
                    continue
            missing.append(MakeDir(place=Place(root=place.root, path=RelPath(path)), mode=mode))
        return tuple(missing)

    # -- the order of effects

    def begin(self, entry: JournalEntry, blobs: Iterable[bytes]) -> None:
        """See `Mutator.begin`."""
        assert self._holding, "an action begins under the lock"
        why_not = self._refusal(entry, entry.steps)
        if why_not is not None:
            raise why_not
        self.journal.keep(blobs)
        try:
            self.journal.write_intent(entry)
        except OSError:
            with suppress(OSError, StateError):
                self.journal.remove_intent(entry.action_id)
            raise

    def carry_out(self, entry: JournalEntry) -> None:
        """See `Mutator.carry_out`."""
        assert self._holding, "an action is carried out under the lock"
        try:
            for step in entry.steps:
                self._perform(step, entry)
        except (OSError, CuratorError) as error:
            try:
                self.take_back(entry)
            except (OSError, CuratorError) as worse:
                raise StateError(
                    f"{error}; and it could not be taken back now: {worse}",
                    hint="it is taken back, or finished, at the next start",
                ) from error
            raise

    def take_back(self, entry: JournalEntry) -> None:
        """See `Mutator.take_back`."""
        for step in entry.steps:
            self._settle(step, entry)
        done = [step for step in entry.steps if self._sight(step).what == "after"]
        for step in inverse(done):
            self._perform(step, entry)

    def finish(self, entry: JournalEntry) -> None:
        """See `Mutator.finish`."""
        self.journal.remove_intent(entry.action_id)

    # -- after a kill

    def unfinished(self) -> tuple[JournalEntry | UnreadableIntent, ...]:
        """See `Mutator.unfinished`."""
        return tuple(
            UnreadableIntent(path=str(found.path), error=found.error) if isinstance(found, BrokenIntent) else found
            for found in self.journal.intents()
        )

    def recover(self, entry: JournalEntry) -> Resolution:
        """See `Mutator.recover`."""
        site = self.sites.get(entry.library)
        try:
            with self._host(site) if site is not None else ExitStack():
                return self._recover(entry)
        except BusyError:
            raise
        except (OSError, CuratorError) as error:
            return Conflict(where=str(entry.library), expected="to be finished or taken back", found=str(error))

    def _recover(self, entry: JournalEntry) -> Resolution:
        for step in entry.steps:
            self._settle(step, entry)
        seen = [self._sight(step) for step in entry.steps]
        left = [step for step, sighting in zip(entry.steps, seen, strict=True) if sighting.what == "before"]
        why_not = self._refusal(entry, left)
        resolution = resolve(entry, seen, may_go_on=why_not is None, why_not="" if why_not is None else str(why_not))
        if isinstance(resolution, Redo):
            try:
                for step in resolution.steps:
                    self._perform(step, entry)
            except (OSError, CuratorError) as error:
                self.take_back(entry)
                return Undo(steps=(), why=str(error))
        elif isinstance(resolution, Undo):
            for step in resolution.steps:
                self._perform(step, entry)
        return resolution

    def obstacles(self, entry: JournalEntry) -> tuple[str, ...]:
        """See `Mutator.obstacles`."""
        found: list[str] = []
        for step in entry.steps:
            if isinstance(step, MakeDir | RemoveDir):
                continue
            sighting = self._sight(step, strict=True)
            if sighting.what == "before" and isinstance(step, EditItem | SetLine):
                continue  # the host has taken it back itself
            if sighting.what != "after":
                found.append(f"{place_of(step)[-1]}: {sighting.found or 'it is as it was before'}")
        return tuple(found)

    # -- licence

    def _refusal(self, entry: JournalEntry, steps: Iterable[Step]) -> RefusedError | None:
        """Return why *steps* may not be done now, or None."""
        site = self.sites.get(entry.library)
        expected = dict(entry.expected)
        if entry.kind in ("mark_stale", "reactivate"):  # these change a state and no byte
            refusal = self._ask(entry.targets[0], entry, appears=False, expected=expected)
            if refusal is not None:
                return refusal
        for step in steps:
            if isinstance(step, EditItem | SetLine):
                if site is not None and site.home is not None and step.file in _host_files(site):
                    continue
                return _refused(entry.targets[0], "invalid", f"{step.file} is no file of this library's host")
            for place in place_of(step):
                if site is None:
                    return _refused(entry.targets[0], "unmanaged", f"there is no library {entry.library!r} any more")
                if place.root == site.archive or (isinstance(step, MakeDir | RemoveDir) and f"{place}" == site.archive):
                    continue
                if place.root != site.root:
                    return _refused(entry.targets[0], "invalid", f"{place} is in no library that curatord knows")
                if isinstance(step, MakeDir | RemoveDir):
                    continue  # an empty folder on the way to a package
                key = _package_of(place, entry, site)
                if key is None:
                    return _refused(entry.targets[0], "invalid", f"{place} is in no package that this is about")
                appears = isinstance(step, MovePackage) and place is step.target
                if appears and isinstance(step, MovePackage) and _package_of(step.source, entry, site) == key:
                    continue  # a flat file becomes the folder of the same skill
                refusal = self._ask(key, entry, appears=appears, expected=expected)
                if refusal is not None:
                    return refusal
        return None

    def _ask(
        self, key: SkillKey, entry: JournalEntry, *, appears: bool, expected: Mapping[SkillKey, str | None]
    ) -> RefusedError | None:
        standing = self.licence(key)
        if appears or (key in expected and expected[key] is None):
            return _refused(key, "taken", f"a skill stands at {key} again") if standing.there else None
        if standing.pinned:
            return _refused(key, "pinned", "it is pinned")
        if standing.importance is Importance.CRITICAL:
            return _refused(key, "critical", "its importance is critical")
        if entry.kind == "undo":
            return None  # what stands there is ours, to the byte: `obstacles` saw to that
        if not standing.there:
            return _refused(key, "gone", "it is not in the library any more")
        if standing.broken is not None:
            return _refused(key, "broken", standing.broken)
        if not standing.managed:
            return _refused(key, "unmanaged", standing.why or "it was not handed over")
        if expected.get(key) not in (None, standing.fingerprint):
            return _refused(key, "edited", "it was edited since this was decided")
        return None

    # -- steps: doing

    def _perform(self, step: Step, entry: JournalEntry) -> None:
        """Do one step, all of it synced; one that is done already is left alone."""
        match step:
            case MakeDir():
                self._make_dir(step, entry)
            case RemoveDir():
                with suppress(FileNotFoundError), parent_of(step.place) as (folder, name):
                    self.disk.remove_empty_dir(folder, name)
            case MovePackage():
                self._move(step, entry)
            case WriteFile():
                self._write(step, entry)
            case EditItem():
                self._edit(step.file, entry, lambda data: edit_item(data, step), lambda data: see_item(data, step))
            case SetLine():
                self._edit(step.file, entry, lambda data: set_line(data, step), lambda data: see_line(data, step))

    def _make_dir(self, step: MakeDir, entry: JournalEntry) -> None:
        with parent_of(step.place) as (folder, name):
            if exists_at(folder, name) is not None:
                return
            temporary = _temporary(entry, step.place)
            self.disk.remove_empty_dir(folder, temporary)
            self.disk.make_dir(folder, temporary, step.mode)
            try:
                self.disk.rename_new(folder, temporary, folder, name)
            except TakenError:
                self.disk.remove_empty_dir(folder, temporary)
            self.disk.sync_dir(folder)

    def _write(self, step: WriteFile, entry: JournalEntry) -> None:
        with parent_of(step.place) as (folder, name):
            found = _read(folder, name)
            have = _image(found)
            if have == step.after:
                return
            if have != step.before:
                raise EditedError(f"{step.place} is not what it was when this was worked out")
            data = None if step.after is None else self.journal.blob(step.after.blob)
            mode = 0 if step.after is None else step.after.mode
            self._swap(folder, name, found, data, mode, _temporary(entry, step.place), shown=str(step.place))

    def _edit(
        self,
        file: Place,
        entry: JournalEntry,
        change: Callable[[bytes | None], bytes | None],
        see: Callable[[bytes | None], Sighting],
    ) -> None:
        with parent_of(file) as (folder, name):
            found = _read(folder, name)
            data = None if found is None else found[0]
            sighting = see(data)
            if sighting.what == "after":
                return
            if sighting.what != "before":
                raise EditedError(f"{file}: {sighting.found}")
            new = change(data)
            mode = 0o644 if found is None else stat.S_IMODE(found[1].st_mode)
            if new != data:
                self._swap(folder, name, found, new, mode, _temporary(entry, file), shown=str(file))

    def _swap(
        self,
        folder: int,
        name: str,
        found: tuple[bytes, os.stat_result] | None,
        data: bytes | None,
        mode: int,
        temporary: str,
        *,
        shown: str,
    ) -> None:
        """Bring the file *name* from *found* to *data*; whoever wrote it in between gets their version back."""
        if exists_at(folder, temporary) is not None:
            self.disk.unlink(folder, temporary)
        if data is None:
            # Taken out under a hidden name first, so that what is removed is what was looked at.
            self.disk.rename_new(folder, name, folder, temporary)
            if _image(_read(folder, temporary)) != _image(found):
                self.disk.rename_new(folder, temporary, folder, name)
                raise EditedError(f"{shown} was edited just now")
            self.disk.unlink(folder, temporary)
            self.disk.sync_dir(folder)
            return
        self.disk.write_new(folder, temporary, data, mode=mode, like=None if found is None else found[1])
        try:
            if found is None:
                self.disk.rename_new(folder, temporary, folder, name)
            elif self.disk.replace(folder, name, temporary):
                if _image(_read(folder, temporary)) != _image(found):
                    self.disk.replace(folder, name, temporary)
                    raise EditedError(f"{shown} was edited just now")
                self.disk.unlink(folder, temporary)
        except (OSError, InputError):
            if exists_at(folder, temporary) is not None and _digest(folder, temporary) == blob_id(data):
                self.disk.unlink(folder, temporary)
            raise
        self.disk.sync_dir(folder)

    def _move(self, step: MovePackage, entry: JournalEntry) -> None:
        with parent_of(step.source) as (source, name), parent_of(step.target) as (target, new_name):
            if exists_at(source, name) is None:
                if exists_at(target, new_name) is not None:
                    return
                raise EditedError(f"{step.source} is gone")
            sealed = seal_at(source, name)
            if sealed.seal != step.seal:
                raise EditedError(f"{step.source} is not what it was when this was worked out")
            if exists_at(target, new_name) is not None:
                # The very same there already: an earlier start copied it to another file system and was cut.
                if seal_at(target, new_name).seal != step.seal:
                    raise TakenError(f"something stands at {step.target} already")
            else:
                try:
                    self.disk.rename_new(source, name, target, new_name)
                except OSError as error:
                    if error.errno != errno.EXDEV:
                        raise
                    self._copy_across(step, entry, source, name, target, new_name)
                else:
                    self._check_moved(step, sealed, source, name, target, new_name)
                    self.disk.sync_dir(target)
                    self.disk.sync_dir(source)
                    return
            self._drop_original(step, entry, source, name)

    def _check_moved(
        self, step: MovePackage, sealed: SealedTree, source: int, name: str, target: int, new_name: str
    ) -> None:
        """Move back what somebody edited between the look and the rename."""
        if trace_at(target, new_name) == sealed.trace or seal_at(target, new_name).seal == sealed.seal:
            return
        self.disk.rename_new(target, new_name, source, name)
        raise EditedError(f"{step.source} was edited just now")

    def _copy_across(
        self, step: MovePackage, entry: JournalEntry, source: int, name: str, target: int, new_name: str
    ) -> None:
        temporary = _temporary(entry, step.target)
        if exists_at(target, temporary) is not None:
            remove_tree(self.disk, target, temporary)
        try:
            copy_tree(self.disk, source, name, target, temporary)
            if seal_at(target, temporary).seal != step.seal:
                raise EditedError(f"{step.source} was edited while it was copied")
            self.disk.rename_new(target, temporary, target, new_name)
        except (OSError, InputError):
            with suppress(FileNotFoundError):
                remove_tree(self.disk, target, temporary)
            raise
        self.disk.sync_dir(target)

    def _drop_original(self, step: MovePackage, entry: JournalEntry, source: int, name: str) -> None:
        """Remove the original of a package that stands, verified and synced, on another file system."""
        temporary = _temporary(entry, step.source)
        self.disk.rename_new(source, name, source, temporary)
        self.disk.sync_dir(source)
        if seal_at(source, temporary).seal != step.seal:
            self.disk.rename_new(source, temporary, source, name)
            raise EditedError(f"{step.source} was edited just now")
        remove_tree(self.disk, source, temporary)
        self.disk.sync_dir(source)

    # -- steps: what a kill left

    def _settle(self, step: Step, entry: JournalEntry) -> None:
        """Clear away the temporary names of *step*, so that its places tell whether it was done."""
        match step:
            case MakeDir() | RemoveDir():
                with suppress(FileNotFoundError), parent_of(step.place) as (folder, _):
                    self.disk.remove_empty_dir(folder, _temporary(entry, step.place))
            case MovePackage():
                self._settle_move(step, entry)
                self._settle_move(MovePackage(source=step.target, target=step.source, seal=step.seal), entry)
            case WriteFile():
                self._settle_file(step.place, entry, step)
            case EditItem() | SetLine():
                self._settle_file(step.file, entry, step)

    def _settle_file(self, place: Place, entry: JournalEntry, step: _FileStep) -> None:
        with suppress(FileNotFoundError), parent_of(place) as (folder, name):
            temporary = _temporary(entry, place)
            if exists_at(folder, temporary) is None:
                return
            left = _read(folder, temporary)
            here = _read(folder, name)
            if here is None and _is_before(step, left):
                self.disk.rename_new(folder, temporary, folder, name)  # taken out to be removed, and not yet removed
            elif here is not None and _is_after(step, here) and not _made_from(step, left, here):
                # Exchanged, and what came out is somebody's edit in the last instant: it is theirs again.
                self.disk.replace(folder, name, temporary)
                if exists_at(folder, temporary) is not None:
                    self.disk.unlink(folder, temporary)
            else:
                self.disk.unlink(folder, temporary)
            self.disk.sync_dir(folder)

    def _settle_move(self, step: MovePackage, entry: JournalEntry) -> None:
        with suppress(FileNotFoundError), parent_of(step.source) as (source, name):
            parked = _temporary(entry, step.source)
            if exists_at(source, parked) is not None:
                if self._seal(step.target) == step.seal:
                    remove_tree(self.disk, source, parked)
                elif exists_at(source, name) is None and seal_at(source, parked).seal == step.seal:
                    self.disk.rename_new(source, parked, source, name)
                self.disk.sync_dir(source)
        with suppress(FileNotFoundError), parent_of(step.target) as (target, _):
            copy = _temporary(entry, step.target)
            if exists_at(target, copy) is not None and self._seal(step.source) is not None:
                remove_tree(self.disk, target, copy)
                self.disk.sync_dir(target)

    def _seal(self, place: Place) -> str | None:
        try:
            with parent_of(place) as (folder, name):
                return None if exists_at(folder, name) is None else seal_at(folder, name).seal
        except FileNotFoundError:
            return None

    # -- steps: looking

    def _sight(self, step: Step, *, strict: bool = False) -> Sighting:
        """Return whether *step* was done; *strict* asks for the very content that it left."""
        try:
            match step:
                case MakeDir():
                    with parent_of(step.place) as (folder, name):
                        return Sighting(what="before" if exists_at(folder, name) is None else "after")
                case RemoveDir():
                    left = self.names(step.place.root, step.place.path)
                    there = self._found_dir(step.place)
                    return Sighting(what="before" if there and not left else "after")
                case MovePackage():
                    return self._sight_move(step, strict=strict)
                case WriteFile():
                    return self._sight_write(step)
                case EditItem():
                    return see_item(self._data(step.file), step)
                case SetLine():
                    return see_line(self._data(step.file), step)
        except FileNotFoundError:
            if isinstance(step, MakeDir | RemoveDir):
                return Sighting(what="before" if isinstance(step, MakeDir) else "after")
            if isinstance(step, WriteFile) and step.before is None:
                return Sighting(what="before")  # its folder is not made yet
            return Sighting(what="other", found=f"the folder of {place_of(step)[-1]} is gone")
        except (OSError, InputError) as error:
            return Sighting(what="unreadable", found=str(error))

    def _found_dir(self, place: Place) -> bool:
        with parent_of(place) as (folder, name):
            found = exists_at(folder, name)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def _data(self, place: Place) -> bytes | None:
        found = self.image(place)
        return None if found is None else found[0]

    def _sight_write(self, step: WriteFile) -> Sighting:
        found = self.image(step.place)
        have = None if found is None else FileImage(blob=blob_id(found[0]), mode=found[1])
        if have == step.after:
            return Sighting(what="after")
        if have == step.before:
            return Sighting(what="before")
        return Sighting(what="other", found="it is gone" if have is None else "it was changed since")

    def _sight_move(self, step: MovePackage, *, strict: bool) -> Sighting:
        source, target = self._seal(step.source), self._seal(step.target)
        if source is None and target is None:
            return Sighting(what="other", found=f"neither {step.source} nor {step.target} is there")
        if source is None:
            if strict and target != step.seal:
                return Sighting(what="other", found="it was changed since")
            return Sighting(what="after")
        if target is None:
            if source == step.seal:
                return Sighting(what="before")
            return Sighting(what="edited", found=f"{step.source} was edited meanwhile")
        if target == step.seal and not strict:
            if source == step.seal:
                return Sighting(what="before")  # copied to another file system, the original not yet gone
            return Sighting(what="other", found=f"{step.source} was edited, and a copy stands at {step.target}")
        return Sighting(what="other", found=f"something stands at both {step.source} and {step.target}")


def _host_files(site: Site) -> tuple[Place, ...]:
    assert site.home is not None
    return (
        Place(root=site.root, path=RelPath(".usage.json")),
        Place(root=site.root, path=RelPath(".curator_suppressed")),
        Place(root=site.home, path=RelPath("cron/jobs.json")),
    )


def _package_of(place: Place, entry: JournalEntry, site: Site) -> SkillKey | None:
    """Return which of the entry's own skills *place* belongs to, or None."""
    for key in entry.targets:
        if key.library != site.library or place.root != site.root:
            continue
        if place.path == key.rel or place.path.startswith(f"{key.rel}/"):
            return key
        if site.layout == "flat" and place.path == f"{key.rel}.md":
            return key
    return None


def _refused(key: SkillKey, code: SkipCode, what: str) -> RefusedError:
    return RefusedError(f"{key}: {what}", key=key, code=code)


def _temporary(entry: JournalEntry, place: Place) -> str:
    """Return the hidden name that the action uses beside *place*."""
    told = hashlib.sha256(f"{place.root}\0{place.path}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f".curatord-{entry.action_id}-{told}"


def _read(folder: int, name: str) -> tuple[bytes, os.stat_result] | None:
    """
    Return content and facts of the file *name*, or None where there is none.

    Raises:
        LinkError: It is a link, or no regular file.
        InputError: It is larger than anything we edit.
    """
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LinkError(f"{name!r} is a link", hint="put the file itself there") from error
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise LinkError(f"{name!r} is no regular file")
        if found.st_size > MAX_FILE_BYTES:
            raise InputError(f"{name!r} has {found.st_size} bytes, more than the {MAX_FILE_BYTES} that are ever edited")
        chunks = []
        while chunk := os.read(descriptor, 1 << 20):
            chunks.append(chunk)
        return b"".join(chunks), found
    finally:
        os.close(descriptor)


def _image(found: tuple[bytes, os.stat_result] | None) -> FileImage | None:
    return None if found is None else FileImage(blob=blob_id(found[0]), mode=stat.S_IMODE(found[1].st_mode))


def _digest(folder: int, name: str) -> str | None:
    found = _read(folder, name)
    return None if found is None else blob_id(found[0])


_FileStep = WriteFile | EditItem | SetLine
_Found = tuple[bytes, os.stat_result] | None


def _see(step: _FileStep, found: _Found) -> str:
    data = None if found is None else found[0]
    match step:
        case WriteFile():
            have = _image(found)
            return "after" if have == step.after else "before" if have == step.before else "other"
        case EditItem():
            return see_item(data, step).what
        case SetLine():
            return see_line(data, step).what


def _is_before(step: _FileStep, found: _Found) -> bool:
    return found is not None and _see(step, found) == "before"


def _is_after(step: _FileStep, found: _Found) -> bool:
    return _see(step, found) == "after"


def _made_from(step: _FileStep, left: _Found, here: _Found) -> bool:
    """Return whether *here* is what *step* makes of *left*."""
    if left is None or here is None:
        return False
    if isinstance(step, WriteFile):
        return _image(left) == step.before
    try:
        new = edit_item(left[0], step) if isinstance(step, EditItem) else set_line(left[0], step)
    except InputError:
        return False
    return new == here[0]

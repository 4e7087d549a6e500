"""
THE writer: the only module that changes a library, its archive, or the host's files beside it.

It does the steps of a journaled action (`core.journal`), each of them idempotent and synced, and brings what a kill
left half-way to before or after. It trusts nobody:

- *Ownership.* `begin` asks `licence` about every package that the steps reach, however the entry was come by: a bug or
  a model upstream cannot make it touch what is pinned, critical, unmanaged, broken, or edited since (promises 2, 4,
  10). A place in a library that lies in none of the entry's own packages is refused.
- *Links.* Everything happens relative to open folders, no part of a path below a root is followed (`disk`).
- *Races.* What moves or is replaced is looked at again after it moved (`movestep`, `filestep`). Whoever slipped in
  between gets their version back, and the action never was.
- *Deletion.* There is no way to remove a package; only the original of one that was copied to another file system
  goes, after the copy was verified and synced.

Hidden names are made of the action's id and the place, so recovery finds whatever a kill left of them.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from curatord.adapters.disk import Disk, exists_at, open_dir, parent_of
from curatord.adapters.filestep import FileStep, read_file, see, settle, swap
from curatord.adapters.hermes_records import HermesLocks
from curatord.adapters.journal_dir import STAGING, BrokenIntent, JournalDir
from curatord.adapters.lock import work_lock
from curatord.adapters.movestep import Namer, move, seal_of, see_move, settle_move
from curatord.adapters.trees import names_in, seal_at
from curatord.core.cheap import dataclass, field
from curatord.core.hermes_edits import edit_item, paused_state, set_line
from curatord.core.journal import (
    Conflict,
    EditItem,
    JournalEntry,
    MakeDir,
    MovePackage,
    Place,
    Redo,
    RemoveDir,
    Resolution,
    Seal,
    SetLine,
    Sighting,
    Step,
    Undo,
    WriteFile,
    inverse,
    place_of,
    resolve,
)
from curatord.core.reach import Refusal, Site, reached, refusal
from curatord.core.values import ActionId, LibraryName, RelPath, SkillKey
from curatord.errors import BusyError, CuratorError, InputError, StateError
from curatord.ports.mutator import (
    EditedError,
    FoundPackage,
    LinkError,
    Look,
    RefusedError,
    TakenError,
    UnfinishedError,
    UnreadableIntent,
)

__all__ = ["FileMutator"]

NEW_FILE_MODE = 0o644


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
    licence: Look
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

    def seal(self, place: Place) -> Seal | None:
        """See `Mutator.seal`."""
        return seal_of(place)

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
                found = read_file(folder, name)
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
                raise UnfinishedError(
                    f"{error}; and it could not be taken back now: {worse}",
                    hint="it is taken back, or finished, at the next start",
                ) from error
            raise

    def take_back(self, entry: JournalEntry) -> None:
        """See `Mutator.take_back`."""
        for step in entry.steps:
            self._settle(step, entry)
        done = [step for step in entry.steps if self._sight(step, entry).what in ("after", "half")]
        for step in inverse(done):
            self._perform(step, entry)

    def finish(self, entry: JournalEntry) -> None:
        """See `Mutator.finish`."""
        self.journal.remove_intent(entry.action_id)
        if entry.kind == "bring_back":
            self.journal.unstage(entry.action_id)

    @contextmanager
    def stage(self, action_id: ActionId, site: Site) -> Iterator[tuple[Place, int, os.stat_result]]:
        """See `Mutator.stage`."""
        assert self._holding, "a package is staged under the lock"
        name = "package"
        with open_dir(site.root) as root:
            like = os.fstat(root)
        folder = self.journal.stage(action_id)
        try:
            with open_dir(str(folder)) as staged:
                yield Place(root=str(folder.parent), path=RelPath(f"{action_id}/{name}")), staged, like
        finally:
            # An action that could not be finished or taken back needs it at the next start.
            if not self.journal.has_intent(action_id):
                self.journal.unstage(action_id)

    # -- after a kill

    def unfinished(self) -> tuple[JournalEntry | UnreadableIntent, ...]:
        """See `Mutator.unfinished`."""
        return tuple(
            UnreadableIntent(path=str(found.path), error=found.error) if isinstance(found, BrokenIntent) else found
            for found in self.journal.intents()
        )

    def tidy(self) -> None:
        """See `Mutator.tidy`."""
        self.journal.tidy()

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
        seen = [self._sight(step, entry) for step in entry.steps]
        left = [step for step, sighting in zip(entry.steps, seen, strict=True) if sighting.what in ("before", "half")]
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

    def pause_host(self, site: Site) -> bool:
        """See `Mutator.pause_host`."""
        assert self._holding, "a file of the host is changed under the lock"
        if site.home is None:
            return False
        with open_dir(site.root) as folder:
            name = ".curator_state"
            found = read_file(folder, name)
            new = paused_state(None if found is None else found[0])
            if new is None:
                return False
            mode = NEW_FILE_MODE if found is None else stat.S_IMODE(found[1].st_mode)
            # The name is always the same, so a file that a kill left is cleared away by the next one.
            swap(self.disk, folder, name, found, new, mode, ".curatord-pause-", shown=f"{site.root}/{name}")
        return True

    def drop_blobs(self, in_use: Collection[str]) -> int:
        """See `Mutator.drop_blobs`."""
        assert self._holding, "bytes are dropped under the lock"
        intents = [entry for entry in self.journal.intents() if isinstance(entry, JournalEntry)]
        waiting = {
            image.blob
            for entry in intents
            for step in entry.steps
            if isinstance(step, WriteFile)
            for image in (step.before, step.after)
            if image is not None
        }
        return self.journal.drop(lambda name: name not in in_use and name not in waiting)

    def obstacles(self, entry: JournalEntry) -> tuple[str, ...]:
        """See `Mutator.obstacles`."""
        found: list[str] = []
        for step in entry.steps:
            if isinstance(step, MakeDir | RemoveDir):
                continue
            sighting = self._sight(step, entry, strict=True)
            if sighting.what == "before" and isinstance(step, EditItem | SetLine):
                continue  # the host has taken it back itself
            if sighting.what != "after":
                found.append(f"{place_of(step)[-1]}: {sighting.found or 'it is as it was before'}")
        return tuple(found)

    # -- licence

    def _refusal(self, entry: JournalEntry, steps: Iterable[Step]) -> RefusedError | None:
        """Return why *steps* may not be done now, or None."""
        found = reached(entry, steps, self.sites.get(entry.library), staging=str(self.state_dir / STAGING))
        if not isinstance(found, Refusal):
            why = refusal(entry, found, self.licence(tuple(dict.fromkeys(one.key for one in found)))) if found else None
        else:
            why = found
        return None if why is None else RefusedError(f"{why.key}: {why.what}", key=why.key, code=why.code)

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
                move(self.disk, step, _namer(entry, f"move {step.seal}"))
            case WriteFile() | EditItem() | SetLine():
                self._change_file(step, entry)

    def _make_dir(self, step: MakeDir, entry: JournalEntry) -> None:
        with parent_of(step.place) as (folder, name):
            if exists_at(folder, name) is not None:
                return
            temporary = _namer(entry, "dir")(step.place)
            self.disk.remove_empty_dir(folder, temporary)
            self.disk.make_dir(folder, temporary, step.mode)
            try:
                self.disk.rename_new(folder, temporary, folder, name)
            except TakenError:
                self.disk.remove_empty_dir(folder, temporary)
            self.disk.sync_dir(folder)

    def _change_file(self, step: FileStep, entry: JournalEntry) -> None:
        (place,) = place_of(step)
        with parent_of(place) as (folder, name):
            found = read_file(folder, name)
            sighting = see(step, found)
            if sighting.what == "after":
                return
            if sighting.what != "before":
                raise EditedError(f"{place}: {sighting.found}")
            mode = NEW_FILE_MODE if found is None else stat.S_IMODE(found[1].st_mode)
            match step:
                case WriteFile():
                    new = None if step.after is None else self.journal.blob(step.after.blob)
                    mode = mode if step.after is None else step.after.mode
                case EditItem():
                    new = edit_item(None if found is None else found[0], step)
                case SetLine():
                    new = set_line(None if found is None else found[0], step)
            swap(self.disk, folder, name, found, new, mode, _namer(entry, _word(step))(place), shown=str(place))

    # -- steps: what a kill left

    def _settle(self, step: Step, entry: JournalEntry) -> None:
        """Clear away the temporary names of *step*, so that its places tell whether it was done."""
        match step:
            case MakeDir() | RemoveDir():
                with suppress(FileNotFoundError), parent_of(step.place) as (folder, _):
                    self.disk.remove_empty_dir(folder, _namer(entry, "dir")(step.place))
            case MovePackage():
                settle_move(self.disk, step, _namer(entry, f"move {step.seal}"))
            case WriteFile() | EditItem() | SetLine():
                (place,) = place_of(step)
                with suppress(FileNotFoundError), parent_of(place) as (folder, name):
                    settle(self.disk, folder, name, _namer(entry, _word(step))(place), step)

    # -- steps: looking

    def _sight(self, step: Step, entry: JournalEntry, *, strict: bool = False) -> Sighting:
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
                    after, before = _neighbours(step, entry)
                    return see_move(step, strict=strict, comes_after=after, leaves_before=before)
                case WriteFile() | EditItem() | SetLine():
                    with parent_of(place_of(step)[0]) as (folder, name):
                        return see(step, read_file(folder, name))
        except FileNotFoundError:
            if isinstance(step, MakeDir | RemoveDir):
                return Sighting(what="before" if isinstance(step, MakeDir) else "after")
            if isinstance(step, WriteFile) and None in (step.before, step.after):
                return Sighting(what="before" if step.before is None else "after")  # no folder, no file
            return Sighting(what="other", found=f"the folder of {place_of(step)[-1]} is gone")
        except (OSError, InputError) as error:
            return Sighting(what="unreadable", found=str(error))

    def _found_dir(self, place: Place) -> bool:
        with parent_of(place) as (folder, name):
            found = exists_at(folder, name)
        return found is not None and stat.S_ISDIR(found.st_mode)


def _neighbours(step: MovePackage, entry: JournalEntry) -> tuple[Seal | None, Seal | None]:
    """Return what a later step puts where *step* takes from, and what an earlier one takes from where it puts."""
    moves = [one for one in entry.steps if isinstance(one, MovePackage)]
    place = moves.index(step)
    after = next((one.seal for one in moves[place + 1 :] if one.target == step.source), None)
    before = next((one.seal for one in moves[:place] if one.source == step.target), None)
    return after, before


def _word(step: FileStep) -> str:
    """Return what tells apart two steps of one action on the same file."""
    match step:
        case WriteFile():
            return "write"
        case EditItem():
            return f"edit {step.item}"
        case SetLine():
            return f"line {step.line}"


def _namer(entry: JournalEntry, word: str) -> Namer:
    """Return what gives the hidden names that the action uses for one kind of step, beside a place."""

    def hidden(place: Place) -> str:
        told = hashlib.sha256(f"{word}\0{place.root}\0{place.path}".encode("utf-8", "surrogatepass")).hexdigest()
        return f".curatord-{entry.action_id}-{told[:10]}"

    return hidden

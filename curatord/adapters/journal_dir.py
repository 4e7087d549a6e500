"""
The journal on disk: one intent file for an action in progress, and a store of the bytes that actions overwrite.

Intents are what recovery reads; the database is not needed for it, so a lost one loses no half-done action. Blobs are
named by their content, written once, and verified each time they are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from curatord.adapters.disk import Disk, open_dir
from curatord.adapters.trees import remove_tree
from curatord.core.cheap import dataclass, field
from curatord.core.journal import JournalEntry, entry_from_json, entry_to_json
from curatord.core.values import ActionId, BlobId
from curatord.errors import StateCorruptError, StateError

__all__ = ["STAGING", "BrokenIntent", "JournalDir", "blob_id"]


STAGING = "staging"  # copies of packages on their way out of a backup, one folder an action


def blob_id(data: bytes) -> BlobId:
    """Return the name under which *data* is kept."""
    return BlobId(hashlib.sha256(data).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenIntent:
    """An intent file that cannot be read, which nothing of ours leaves behind."""

    path: Path
    error: str


@dataclass(slots=True, kw_only=True)
class JournalDir:
    """`<state_dir>/journal/*.json` and `<state_dir>/blobs/`, both private to their user."""

    state_dir: Path
    disk: Disk = field(default_factory=Disk)

    def keep(self, blobs: Iterable[bytes]) -> None:
        """Store each of *blobs* that is not there yet, synced."""
        for data in blobs:
            name = blob_id(data)
            path = self.state_dir / "blobs" / name[:2] / name
            if path.exists() and path.stat().st_size == len(data):
                continue
            self._make(path.parent)
            self.disk.put(path, data)

    def blob(self, name: BlobId) -> bytes:
        """
        Return the bytes named *name*.

        Raises:
            StateCorruptError: They are gone, or are not what they were.
        """
        path = self.state_dir / "blobs" / name[:2] / name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise StateCorruptError(f"kept bytes cannot be read: {error}", hint="this cannot be undone") from error
        if blob_id(data) != name:
            raise StateCorruptError(f"{path} is damaged", hint="this cannot be undone")
        return data

    def drop(self, unused: Callable[[str], bool]) -> int:
        """Remove the blobs of which *unused* says so, by name; return how many."""
        count = 0
        for path in sorted((self.state_dir / "blobs").glob("*/[!.]*")):
            if unused(path.name):
                path.unlink()
                count += 1
        return count

    def write_intent(self, entry: JournalEntry) -> None:
        """Write down what is about to be done, synced."""
        folder = self.state_dir / "journal"
        path = folder / f"{entry.action_id}.json"
        if path.exists():
            raise StateError(f"an unfinished action has the id {entry.action_id} already", hint=f"look at {path}")
        self._make(folder)
        self.disk.put(path, entry_to_json(entry))

    def remove_intent(self, action_id: ActionId) -> None:
        """Forget an intent whose action is whole or never was; one that is gone already is fine."""
        try:
            with open_dir(str(self.state_dir), "journal") as folder:
                self.disk.unlink(folder, f"{action_id}.json")
                self.disk.sync_dir(folder)
        except FileNotFoundError:
            return

    def intents(self) -> tuple[JournalEntry | BrokenIntent, ...]:
        """Return what is unfinished, oldest first, then what cannot be read."""
        folder = self.state_dir / "journal"
        entries: list[JournalEntry] = []
        broken: list[BrokenIntent] = []
        for path in sorted(folder.glob("[!.]*.json")):
            try:
                entries.append(entry_from_json(path.read_bytes()))
            except (OSError, ValueError) as error:
                broken.append(BrokenIntent(path=path, error=str(error)))
        return (*sorted(entries, key=lambda entry: (entry.at, entry.action_id)), *broken)

    def tidy(self) -> None:
        """Remove the temporary files that a kill left in the state folder; the caller holds the work lock."""
        for pattern in (".decisions.json.tmp", "journal/.*.tmp", "blobs/*/.*.tmp"):
            for path in self.state_dir.glob(pattern):
                with suppress(OSError):  # gone, or a disk that lets nothing be removed now: it is in nobody's way
                    path.unlink()

        for path in self.state_dir.glob(f"{STAGING}/*"):
            if not self.has_intent(ActionId(path.name)):
                self.unstage(ActionId(path.name))

    def has_intent(self, action_id: ActionId) -> bool:
        """Return whether that action is unfinished."""
        return (self.state_dir / "journal" / f"{action_id}.json").exists()

    def stage(self, action_id: ActionId) -> Path:
        """Return a new, empty, private folder for the copy that an action brings in."""
        folder = self.state_dir / STAGING / action_id
        self._make(folder)
        return folder

    def unstage(self, action_id: ActionId) -> None:
        """Remove such a folder: what is left in it is a copy of what a backup has."""
        with suppress(FileNotFoundError), open_dir(str(self.state_dir), STAGING) as folder:
            remove_tree(self.disk, folder, action_id)

    def _make(self, folder: Path) -> None:
        """Make *folder* and those above it within the state folder; their names are synced."""
        if folder.is_dir():
            return
        if folder.parent != self.state_dir:
            self._make(folder.parent)
        with suppress(FileExistsError), open_dir(str(folder.parent)) as above:
            self.disk.make_dir(above, folder.name, 0o700)

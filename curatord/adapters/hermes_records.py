"""
Being a good neighbour to Hermes while its library is changed: its locks, its claim.

Held for one action: the claim `skills/.locks/curator-run` (so that its own curator and we never work at once), then
`flock` on `skills/.usage.json.lock` and on `cron/.jobs.lock`. What is written under them is `core.hermes_edits`' and
goes through `mutate` like everything else.

The claim is a file that is created exclusively and holds a process id; Hermes takes over one that is older than an
hour. A kill would therefore lock us out of the library for an hour, so the identity of our claim is noted in the state
folder first: whoever holds the work lock knows that a claim noted there belongs to a process that is no more.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from curatord.adapters.disk import Disk, exists_at, open_dir
from curatord.adapters.lock import locked_file
from curatord.core.cheap import dataclass, field
from curatord.errors import BusyError

__all__ = ["HermesLocks"]

CLAIM_STALE_S = 3600.0  # Hermes' own: an older claim is taken over
CLAIM = "curator-run"


@dataclass(slots=True, kw_only=True)
class HermesLocks:
    """Takes what Hermes takes; *wait_s* is how long its short locks are waited for."""

    state_dir: Path
    disk: Disk = field(default_factory=Disk)
    wait_s: float = 10.0

    @contextmanager
    def hold(self, home: str, library: str) -> Iterator[None]:
        """
        Hold claim and locks of the Hermes home *home* with the skills folder *library*.

        Raises:
            BusyError: Hermes' curator is at work, or a lock is held for too long.
        """
        with ExitStack() as stack:
            stack.enter_context(self._claim(library))
            skills = stack.enter_context(open_dir(library))
            stack.enter_context(
                locked_file(skills, ".usage.json.lock", f"{library}/.usage.json.lock", wait_s=self.wait_s)
            )
            with suppress(FileNotFoundError):  # no cron folder: nothing is scheduled
                cron = stack.enter_context(open_dir(home, "cron"))
                stack.enter_context(locked_file(cron, ".jobs.lock", f"{home}/cron/.jobs.lock", wait_s=self.wait_s))
            yield

    @contextmanager
    def _claim(self, library: str) -> Iterator[None]:
        note = self.state_dir / f"claim-{hashlib.sha256(os.fsencode(library)).hexdigest()[:16]}"
        with open_dir(library) as skills, suppress(FileExistsError):
            os.mkdir(".locks", 0o755, dir_fd=skills)
        with open_dir(library, ".locks") as locks:
            self._make_claim(locks, note, f"{library}/.locks/{CLAIM}")
            try:
                yield
            finally:
                # One that cannot be given back now stays noted, and is taken over by whoever holds the work lock next.
                with suppress(OSError):
                    self.disk.hook("unclaim")
                    os.unlink(CLAIM, dir_fd=locks)
                    note.unlink(missing_ok=True)
                    self.disk.hook("unclaim.done")

    def _make_claim(self, locks: int, note: Path, shown: str) -> None:
        self._drop_dead(locks, note, shown)
        temporary = f".{CLAIM}-curatord"
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=locks)
        self.disk.hook("claim")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=locks)
        try:
            os.write(descriptor, f"{os.getpid()}".encode())
            found = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        note.write_text(_identity(found), encoding="ascii")
        self.disk.hook("claim.noted")
        try:
            os.link(temporary, CLAIM, src_dir_fd=locks, dst_dir_fd=locks, follow_symlinks=False)
        except FileExistsError as error:
            note.unlink(missing_ok=True)
            raise self._busy(locks, shown) from error
        except OSError:
            # No hard links here (some FUSE and phone file systems): create it exclusively, and note it after.
            try:
                descriptor = os.open(CLAIM, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=locks)
            except FileExistsError as error:
                note.unlink(missing_ok=True)
                raise self._busy(locks, shown) from error
            try:
                os.write(descriptor, f"{os.getpid()}".encode())
                found = os.fstat(descriptor)
            finally:
                os.close(descriptor)
            note.write_text(_identity(found), encoding="ascii")
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=locks)
        self.disk.hook("claim.done")

    def _drop_dead(self, locks: int, note: Path, shown: str) -> None:
        """Remove a claim that an earlier, killed curatord left, or one that Hermes would take over too."""
        found = exists_at(locks, CLAIM)
        if found is None:
            return
        try:
            ours = note.read_text(encoding="ascii") == _identity(found)
        except (OSError, ValueError):
            ours = False
        if not ours and time.time() - found.st_mtime <= CLAIM_STALE_S:
            raise self._busy(locks, shown)
        os.unlink(CLAIM, dir_fd=locks)

    def _busy(self, locks: int, shown: str) -> BusyError:
        holder = ""
        with suppress(OSError):
            descriptor = os.open(CLAIM, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=locks)
            try:
                holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
            finally:
                os.close(descriptor)
        by = f" (process {holder})" if holder else ""
        return BusyError(
            f"Hermes' own curator is at work on this library{by}",
            holder=holder,
            hint=f"try again when it is done; it holds {shown}",
        )


def _identity(found: os.stat_result) -> str:
    """Return what tells a claim of ours from a later one that got the same inode."""
    return f"{found.st_dev}:{found.st_ino}:{found.st_mtime_ns}"

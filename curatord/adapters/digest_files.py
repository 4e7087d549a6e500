"""
Digests that a model was shown, kept redacted under their own hash in the state folder: the record of what was asked.

Bounded by number and age; a digest that is gone takes nothing else with it. Files are private to their user.
"""

from __future__ import annotations

import contextlib
import os
import re
from datetime import datetime, timedelta
from pathlib import Path

from curatord.core.cheap import dataclass
from curatord.errors import StateError

__all__ = ["DigestFiles"]

KEPT = 1_000
KEPT_FOR = timedelta(days=90)
_NAME = re.compile(r"[0-9a-f]{64}\.jsonl\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestFiles:
    """The folder `digests` of *state_dir*."""

    state_dir: Path

    @property
    def folder(self) -> Path:
        """Where they are."""
        return self.state_dir / "digests"

    def keep(self, sha256: str, text: str) -> None:
        """
        Write *text* under its hash, where it is not there yet.

        Raises:
            StateError: It cannot be written; a question must not be asked without its record.
        """
        try:
            self._keep(sha256, text)
        except OSError as error:
            raise StateError(
                f"a digest cannot be kept in {self.folder}: {error.strerror or error}",
                hint="look at the free space and the permissions of the state folder",
            ) from error

    def _keep(self, sha256: str, text: str) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self.folder / f"{sha256}.jsonl"
        if path.exists():
            os.utime(path)
            return
        part = self.folder / f".{sha256}.part"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
        part.rename(path)

    def read(self, sha256: str) -> str | None:
        """Return the digest with this hash, or None where it is not kept any more."""
        try:
            return (self.folder / f"{sha256}.jsonl").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def prune(self, now: datetime) -> int:
        """Remove the oldest beyond what is kept; return how many went."""
        try:
            names = [entry for entry in os.scandir(self.folder) if _NAME.match(entry.name)]
        except FileNotFoundError:
            return 0
        times: list[tuple[float, str]] = []
        for entry in names:
            with contextlib.suppress(FileNotFoundError):
                times.append((entry.stat().st_mtime, entry.path))
        times.sort(reverse=True)
        oldest = (now - KEPT_FOR).timestamp()
        gone = [path for place, (at, path) in enumerate(times) if place >= KEPT or at < oldest]
        for path in gone:
            Path(path).unlink(missing_ok=True)
        return len(gone)

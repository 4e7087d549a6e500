"""Packages read whole, with modes and bytes; fills the port `PackageReader`."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from curatord.adapters.package import ATTEMPTS, ChangedWhileReadError, read_beneath, survey
from curatord.core.fingerprint import is_ignored
from curatord.core.library import Skill
from curatord.core.skill import SKILL_FILE
from curatord.core.umbrella.packed import Packed, PackedFile
from curatord.core.values import SkillKey
from curatord.errors import InputError

__all__ = ["PackedPackages"]

MAX_BYTES = 16 * 1024 * 1024  # of a package that is folded; what is larger is no narrow skill
MAX_FILES = 500
MAX_ENTRY_BYTES = 1024 * 1024  # of a text that likeness is measured by


class PackedPackages:
    """Reads packages from disk; nothing is followed, nothing special is opened."""

    def read(self, skill: Skill) -> Packed:
        """See `PackageReader.read`."""
        return self.read_at(skill.key, skill.path, entry=skill.content.entry_file or SKILL_FILE)

    def read_at(self, key: SkillKey, path: str, *, entry: str = SKILL_FILE) -> Packed:
        """See `PackageReader.read_at`; *entry* is the file that makes it a skill."""
        for _ in range(ATTEMPTS):
            try:
                return _read(key, path, entry)
            except ChangedWhileReadError as error:
                last = error
            except OSError as error:
                raise InputError(f"{key} cannot be read: {error.strerror or error}") from error
        raise last

    def entry(self, skill: Skill) -> bytes:
        """See `PackageReader.entry`."""
        rel = skill.content.entry_file or SKILL_FILE
        base, rel = skill.path.rpartition("/")[::2] if skill.form == "flat" else (skill.path, rel)
        return read_beneath(base, rel, limit=MAX_ENTRY_BYTES)


def _read(key: SkillKey, path: str, entry: str) -> Packed:
    found = survey(path)
    if found.broken is not None:
        raise InputError(f"{key}: {found.broken}")
    flat = not stat.S_ISDIR(found.rows[0][1])
    base = path.rpartition("/")[0] if flat else path
    files: list[PackedFile] = []
    links: list[tuple[str, str]] = []
    total = 0
    for row in found.rows:
        mode, size = row[1:3]
        rel = row[0][1:] or path.rpartition("/")[2]
        if stat.S_ISDIR(mode) or is_ignored(rel, link=stat.S_ISLNK(mode)):
            continue
        if stat.S_ISLNK(mode):
            links.append((rel, str(Path(base, rel).readlink())))
            continue
        total += size
        if total > MAX_BYTES or len(files) >= MAX_FILES:
            raise InputError(f"{key} has more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB, which is never folded")
        data = read_beneath(base, rel, limit=MAX_BYTES)
        if len(data) != size:
            raise ChangedWhileReadError(f"{base}/{rel} changed while it was read")
        files.append(PackedFile(path=SKILL_FILE if flat else rel, data=data, mode=stat.S_IMODE(mode)))
    after = os.lstat(path)
    if after.st_mtime_ns != found.rows[0][3]:
        raise ChangedWhileReadError(f"{path} changed while it was read")
    return Packed.of(key, files, entry=SKILL_FILE if flat else entry, flat=flat, links=links)

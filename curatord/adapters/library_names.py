"""
Which names more than one skill of a library has, known without looking at every package again.

Hermes keys its records by a skill's name alone, so where two skills share one, the record is nobody's. To know that of
one skill takes the names of all. They are known from a scan as long as every folder that holds packages lists the same
names, and every package's own folder is the one it was, since only a SKILL.md that comes or goes in it changes what it
is. A folder that changed is listed again; one that changed so shortly before the scan that its times could hide a
second change is listed each time.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Mapping, Sequence

from curatord.adapters.library_scan import Find, entry_file_of, visible
from curatord.adapters.package import RACY_NS
from curatord.core.cheap import dataclass

__all__ = ["KnownNames", "known_names"]

Identity = tuple[int, int, int]  # inode, mtime and ctime in ns


@dataclass(slots=True, kw_only=True)
class KnownNames:
    """
    Names from one scan.

    Attributes:
        shared: Those that more than one skill has.
        external: The external folders of the scan.
        groups: What each folder that is no package listed, by real path.
        packages: The real paths of the packages' folders.
        identities: Of all those folders; one that is not in there must be listed to know whether it is the same.
    """

    shared: frozenset[str]
    external: tuple[tuple[str, str], ...]
    groups: Mapping[str, frozenset[str]]
    packages: Sequence[str]
    identities: Mapping[str, Identity]

    def still_holds(self, external: Sequence[tuple[str, str]]) -> bool:
        """Return whether a scan now would find packages at the same places and nowhere else."""
        if self.external != tuple(external):
            return False
        lstat, known = os.lstat, self.identities
        try:
            for path, names in self.groups.items():
                if known.get(path) == _identity(lstat(path)):
                    continue
                with os.scandir(path) as scan:
                    if visible(scan) != names:
                        return False
            for path in self.packages:
                found = lstat(path)
                if known.get(path) == (found.st_ino, found.st_mtime_ns, found.st_ctime_ns):
                    continue
                if not stat.S_ISDIR(found.st_mode) or entry_file_of(os.listdir(path)) is None:  # noqa: PTH208
                    return False
        except OSError:
            return False
        return True


def known_names(find: Find, external: Sequence[tuple[str, str]], begun_ns: int) -> KnownNames | None:
    """
    Return the names of *find*, a scan begun at *begun_ns* (the kernel's clock of file times), or None.

    None where there is more to a later look than folders: links, folders elsewhere or that could not be listed.
    """
    if find.links or find.unlisted or any(rel[0] == "@" for rel in find.packages):
        return None
    if any(package.flat or package.broken is not None for package in find.packages.values()):
        return None
    packages = [package.real for package in find.packages.values()]
    identities: dict[str, Identity] = {}
    for path in (*find.groups, *packages):
        try:
            identity = _identity(os.lstat(path))
        except OSError:
            return None
        if max(identity[1:]) < begun_ns - RACY_NS:
            identities[path] = identity
    counted = Counter(rel.rpartition("/")[2] for rel in find.packages)
    return KnownNames(
        shared=frozenset(name for name, count in counted.items() if count > 1),
        external=tuple(external),
        groups={path: visible(listed) for path, listed in find.groups.items()},
        packages=packages,
        identities=identities,
    )


def _identity(found: os.stat_result) -> Identity:
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns

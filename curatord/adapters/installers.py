"""The lock files of installers beside a library, and whether the library itself is a plugin's."""

from __future__ import annotations

import os

from curatord.adapters.small_files import read_small
from curatord.core.cheap import dataclass, field
from curatord.core.installers import parse_lock, plugin_words
from curatord.errors import OwnershipError

__all__ = ["Installed", "read_installed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """Words by the name of each installed skill, words for what cannot be read, and words for a plugin's library."""

    names: dict[str, str] = field(default_factory=dict)
    unjudged: tuple[str, ...] = ()
    plugin: str | None = None


def read_installed(root: str) -> Installed:
    """Return what installers wrote beside the library at *root* (absolute path as configured)."""
    parent = root.rstrip("/").rpartition("/")[0]
    names: dict[str, str] = {}
    unjudged: list[str] = []
    for path, words in (
        (f"{parent}/.clawhub/lock.json", "it was installed from ClawHub (`.clawhub/lock.json`)"),
        (f"{root}/.clawhub/lock.json", "it was installed from ClawHub (`.clawhub/lock.json`)"),
        (f"{parent}/.skill-lock.json", "it was installed by the `skills` command (`.skill-lock.json`)"),
    ):
        try:
            data = read_small(path)
            if data is not None:
                names.update(dict.fromkeys(parse_lock(data, path), words))
        except OwnershipError as error:
            unjudged.append(str(error))
    return Installed(names=names, unjudged=tuple(unjudged), plugin=plugin_words(os.path.realpath(root)))

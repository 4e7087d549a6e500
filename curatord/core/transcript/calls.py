"""
Calls of tools into skill events, the same for all hosts: files read and written, patches, shell commands.

`reading_is_use` is true of hosts whose own skill mechanism is that the model reads `SKILL.md` (contract section 5);
a support file is viewed with any of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from curatord.core.cheap import dataclass
from curatord.core.path_text import join
from curatord.core.transcript.events import MAX_FOLDER, MAX_NAME, Sighting
from curatord.core.transcript.packages import in_package, skill_of_path
from curatord.core.transcript.shell import patch_targets, touched
from curatord.core.values import EventKind

__all__ = ["Call", "may_touch", "names_skill"]


def may_touch(arguments: bytes | msgspec.Raw) -> bool:
    """Return whether *arguments* can name a file of a package; the usual no is told without decoding."""
    data = bytes(arguments)
    return b"SKILL.md" in data or b"/skill" in data or b"\\skill" in data


def names_skill(arguments: msgspec.Raw) -> bool:
    """Return whether *arguments* are to be looked at closely: a quicker question, with a yes to all of `may_touch`."""
    data = bytes(arguments)
    return b"skill" in data or b"SKILL" in data


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool: *at_ms* its record's time, *cwd* the folder it ran in, *ref* its id."""

    at_ms: int | None
    cwd: str | None
    ref: str | None
    reading_is_use: bool = False
    estimated: bool = False

    def skill(self, name: str, via: str, path: str | None = None) -> list[Sighting]:
        """Return the use of the skill *name* by the host's own mechanism."""
        name = name.strip()
        return [self._sighting(name[:MAX_NAME], EventKind.USE, via, path)] if name else []

    def file(self, path: str, kind: EventKind, via: str) -> list[Sighting]:
        """Return what reading or changing the file *path* is, nothing where it is in no package."""
        if not path or len(path) > MAX_FOLDER:
            return []
        path = join(self.cwd, path)
        skill = skill_of_path(path)
        return [self._sighting(skill, self._kind(kind, path), via, path)] if skill else []

    def shell(self, command: str | Sequence[str]) -> list[Sighting]:
        """Return what a shell command does."""
        found = []
        for touch in touched(command, cwd=self.cwd, in_package=in_package):
            skill = skill_of_path(touch.path)
            if skill:
                found.append(self._sighting(skill, self._kind(touch.kind, touch.path), "shell", touch.path))
        return found

    def patch(self, text: str, via: str) -> list[Sighting]:
        """Return what applying the patch *text* does: it says itself what is new and what goes."""
        found = []
        seen = set()
        for target in patch_targets(text):
            path = join(self.cwd, target.path)
            skill = skill_of_path(path)
            if not skill:
                continue
            kind = EventKind.PATCH
            if path.endswith("/SKILL.md"):
                kind = {"add": EventKind.CREATE, "delete": EventKind.DELETE}.get(target.op, kind)
            if (kind, path) not in seen:
                seen.add((kind, path))
                found.append(self._sighting(skill, kind, via, path))
        return found

    def _kind(self, kind: EventKind, path: str) -> EventKind:
        reads = kind is EventKind.VIEW and self.reading_is_use and path.replace("\\", "/").endswith("/SKILL.md")
        return EventKind.USE if reads else kind

    def _sighting(self, skill: str, kind: EventKind, via: str, path: str | None) -> Sighting:
        return Sighting(
            skill=skill,
            kind=kind,
            via=via[:MAX_NAME],
            at_ms=self.at_ms,
            path=path if path is None or len(path) <= MAX_FOLDER else None,
            cwd=self.cwd if self.cwd is None or len(self.cwd) <= MAX_FOLDER else None,
            ref=None if self.ref is None else self.ref[:MAX_NAME],
            estimated=self.estimated,
        )

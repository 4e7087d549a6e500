"""
Which skill a path in a transcript belongs to, told from the path alone.

A `SKILL.md` names its folder. Any other file counts only where it surely lies in a package: below a `skills` folder
of a host (one with a dot folder above it, as in `~/.claude/skills/…` or `…/.claude/plugins/cache/…/skills/…`), since
a project may well have a `skills` folder that has nothing to do with agents. Which package that is can be ambiguous
with categories between; the folder before `references`, `scripts` and their like is taken, else the first below
`skills`.
"""

from __future__ import annotations

__all__ = ["in_package", "skill_of_path"]

SUPPORT_FOLDERS = frozenset({"references", "reference", "templates", "scripts", "assets", "examples", "resources"})
SKILL_FILE = "SKILL.md"


def skill_of_path(path: str) -> str | None:
    """Return the name of the skill whose file *path* (`/` or `\\` between its parts) is, or None."""
    parts = path.replace("\\", "/").rstrip("/").split("/")
    if len(parts) < 2 or "*" in path:
        return None
    if parts[-1] == SKILL_FILE:
        name = parts[-2]
        return name if name not in ("", ".", "..", "~") and not name.endswith(":") else None
    for at in range(len(parts) - 1, 0, -1):
        if parts[at] not in ("skills", "skill"):
            continue
        if not any(part.startswith(".") and part not in (".", "..") for part in parts[:at]):
            return None
        below = parts[at + 1 :]
        if len(below) < 2 or below[0].startswith("."):
            return None
        for depth, part in enumerate(below[:-1]):
            if part in SUPPORT_FOLDERS and depth > 0:
                return below[depth - 1]
        return below[0]
    return None


def in_package(path: str) -> bool:
    """Return whether *path* surely is a file of some skill's package."""
    return skill_of_path(path) is not None

"""Whether a notice's file could be written and its program started; nothing is written, and nothing started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from curatord.adapters.vitals.mounts import existing
from curatord.core.doctor.outlets import ProgramFacts

__all__ = ["look_at_program", "why_unwritable"]

HEAD_BYTES = 256  # what the kernel reads of a file to tell how it is run
START_FOLDER = "/"  # where a notice's command is started (`adapters.notices`)


def why_unwritable(path: str) -> str | None:
    """Return in words why `adapters.notices.write_file` could not write *path*, or None; folders above it are made."""
    if os.path.isdir(path):  # noqa: PTH112 - unlike pathlib's it raises nothing where this user may not look
        return f"{path} is a folder"
    above = existing(os.path.dirname(path))  # noqa: PTH120 - text
    if not os.path.isdir(above):  # noqa: PTH112 - as above
        return f"{above} is no folder"
    if not os.access(above, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return f"{above} cannot be written by this user"
    return None


def look_at_program(command: Sequence[str], environ: Mapping[str, str], home: Path) -> ProgramFacts:
    """
    Return what would be started for *command*, found as `adapters.notices.run_command` finds it.

    *home* tells programs of the user's own, which a service's PATH may not have.
    """
    name = command[0]
    if os.sep not in name:
        found = shutil.which(name, path=environ.get("PATH") or os.defpath)
        if found is None:
            mend = "install it, or name it by its full path in `notices.command`"
            return ProgramFacts(name=name, fault="is not found on PATH", mend=mend)
        found = os.path.join(START_FOLDER, found)  # noqa: PTH118 - text
    else:
        found = os.path.join(START_FOLDER, name)  # noqa: PTH118 - text
    fault, mend = _fault(name, Path(found))
    by_chance = os.sep not in name and Path(found).is_relative_to(home)
    return ProgramFacts(name=name, path=found, fault=fault, mend=mend, by_chance=by_chance)


def _fault(name: str, path: Path) -> tuple[str | None, str]:
    """Return why *path* cannot be started, or None, and what helps."""
    whole = "write its full path in `notices.command`: it is started in /, and `~` stays as it is"
    try:
        if not path.exists():
            return "does not exist", whole if not name.startswith("/") else "write it, or correct `notices.command`"
        if path.is_dir():
            return "is a folder", "name the program in it in `notices.command`"
        if not os.access(path, os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            return "may not be executed by this user", f"chmod u+x {path}"
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except PermissionError:
        # A program may be executed and not read; what it is run by is then told by the first try.
        return (None, "") if os.access(path, os.X_OK) else ("cannot be reached by this user", whole)
    except (OSError, ValueError) as error:
        return f"cannot be looked at: {getattr(error, 'strerror', None) or error}", whole
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n", 1)[0].split()
        runner = Path(os.fsdecode(words[0])) if words else None
        if runner is None or not os.access(runner, os.X_OK):
            return f"names {runner or 'nothing'} in its first line, which is not there", "correct its first line"
    elif b"\0" not in head:
        return "is a text, and its first line does not say what runs it", f"begin {path} with a line such as #!/bin/sh"
    return None, ""

"""
The folders of runs: `<state_dir>/runs/<YYYYMMDD-HHMMSS[-N]>/` with `run.json`, `REPORT.md`, `plan.json`.

A run's folder is made before its work starts, with `run.json` saying `running`, so that a killed run leaves its trace
(bugs B045); the next start finds it and tells the truth in it (`passes.run.Curation`). Every file is written beside
its place and renamed, since a reader may come at any moment.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from curatord.core.values import RunId
from curatord.errors import InputError, StateError

__all__ = ["Pruned", "RunFolders"]

_ID = re.compile(r"\d{8}-\d{6}(-\d+)?")
_OUTCOME = re.compile(rb'^  "outcome": "(\w+)",$', re.MULTILINE)
HEAD_BYTES = 1024
JSON_NAME, REPORT_NAME, PLAN_NAME = "run.json", "REPORT.md", "plan.json"


class Pruned(NamedTuple):
    """What retention did: ids of the folders that are gone, and words for each that could not be removed."""

    removed: list[RunId]
    problems: list[str]


class RunFolders:
    """All run folders below *state_dir*."""

    def __init__(self, state_dir: Path) -> None:
        self.root = state_dir / "runs"

    def create(self, started_at: datetime) -> RunId:
        """Make a new, empty folder named after *started_at* and return its id; two in one second get `-1`, `-2` …"""
        stamp = f"{started_at.astimezone(UTC):%Y%m%d-%H%M%S}"
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for number in range(10_000):
                run_id = RunId(stamp if number == 0 else f"{stamp}-{number}")
                try:
                    (self.root / run_id).mkdir(mode=0o700)
                except FileExistsError:
                    continue
                return run_id
        except OSError as error:
            raise StateError(
                f"cannot make a folder for this run in {self.root}: {error}",
                hint="look at the free space and the permissions of the state folder",
            ) from error
        raise StateError(f"ten thousand runs began in one second in {self.root}", hint="is something in a loop?")

    def path(self, run_id: RunId) -> Path:
        """Return the folder of *run_id*, which need not exist; an id that is none is a `ValueError`."""
        if not _ID.fullmatch(run_id):
            raise ValueError(f"not a run's id: {run_id!r}")
        return self.root / run_id

    def report_path(self, run_id: RunId) -> Path:
        """Return where the report of *run_id* stands or would stand."""
        return self.path(run_id) / REPORT_NAME

    def write(self, run_id: RunId, run: Mapping[str, Any], report: str) -> None:
        """Write `REPORT.md`, then `run.json`, whole or not at all, and on the platter when this returns."""
        folder = self.path(run_id)
        self._replace(folder / REPORT_NAME, report)
        self._replace(folder / JSON_NAME, _indented(run))

    def write_plan(self, run_id: RunId, plan: Mapping[str, Any]) -> None:
        """Write `plan.json`: what was decided, before anything of it is applied."""
        self._replace(self.path(run_id) / PLAN_NAME, _indented(plan))

    def read(self, run_id: RunId) -> dict[str, Any]:
        """
        Return `run.json` of *run_id*.

        Raises:
            InputError: There is none, or it cannot be read.
        """
        path = self.path(run_id) / JSON_NAME
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise InputError(f"no run {run_id}: {path} does not exist", hint="`curatord runs` lists them") from error
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read {path}: {error}") from error
        if not isinstance(value, dict):
            raise InputError(f"cannot read {path}: not a JSON object")
        return value

    def outcome(self, run_id: RunId) -> str | None:
        """Return the outcome that `run.json` of *run_id* tells, from its first lines; None where there is none."""
        try:
            with (self.path(run_id) / JSON_NAME).open("rb") as file:
                found = _OUTCOME.search(file.read(HEAD_BYTES))
        except OSError:
            return None
        if found is not None:
            return found[1].decode()
        try:
            told = self.read(run_id).get("outcome")
        except InputError:
            return None  # a folder whose first write was cut claims nothing
        return told if isinstance(told, str) else None

    def read_report(self, run_id: RunId) -> str:
        """Return the text of `REPORT.md` of *run_id*, or raise `InputError`."""
        path = self.report_path(run_id)
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"no report of run {run_id}: {error}", hint="`curatord runs` lists them") from error

    def ids(self) -> list[RunId]:
        """Return the ids of all folders, oldest first."""
        try:
            names = [entry.name for entry in os.scandir(self.root) if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        return sorted((RunId(name) for name in names if _ID.fullmatch(name)), key=_order)

    def discard(self, run_id: RunId) -> None:
        """Remove the folder of a run that could not even begin; where that fails, it stays and claims nothing."""
        with contextlib.suppress(OSError):
            _remove(self.path(run_id))

    def tidy(self, run_id: RunId) -> None:
        """Remove what a kill left of a file that was being written; what cannot be removed is in nobody's way."""
        with contextlib.suppress(OSError):
            for path in self.path(run_id).glob(".*.tmp"):
                path.unlink()

    def prune(self, keep: int, *, spare: Iterable[RunId] = (), apart: Iterable[RunId] = ()) -> Pruned:
        """
        Remove the oldest folders beyond *keep*, but none in *spare*.

        *apart* are counted by themselves, *keep* of them too: looking often at what would happen (dry runs) must not
        push out the reports of what did. A folder that cannot be removed is told of and tried again the next time.
        """
        if keep <= 0:
            return Pruned([], [])
        spared, others = set(spare), set(apart)
        ids = self.ids()
        surplus = {
            *[run_id for run_id in ids if run_id not in others][:-keep],
            *[run_id for run_id in ids if run_id in others][:-keep],
        }
        removed, problems = [], []
        for run_id in ids:
            if run_id in surplus and run_id not in spared:
                try:
                    _remove(self.path(run_id))
                except OSError as error:
                    why = error.strerror or error
                    problems.append(f"the folder of run {run_id} cannot be removed: {error.filename}: {why}")
                else:
                    removed.append(run_id)
        return Pruned(removed, problems)

    def _replace(self, path: Path, text: str) -> None:
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            descriptor = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise StateError(
                f"cannot write {path}: {error}", hint="look at the free space and the permissions of the state folder"
            ) from error


def _remove(folder: Path) -> None:
    import shutil  # most runs remove none

    shutil.rmtree(folder)


def _indented(value: Mapping[str, Any]) -> str:
    """Return *value* as JSON with two blanks a level; the standard library takes five times as long for that."""
    import msgspec  # `status` asks for a report's path, and must start quickly

    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
    except UnicodeEncodeError:  # a lone surrogate, out of a file's name; it is escaped as the file is written
        return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _order(run_id: RunId) -> tuple[str, int]:
    """Sort key: `-10` comes after `-9`."""
    stamp, number = run_id[:15], run_id[16:]
    return stamp, int(number or 0)

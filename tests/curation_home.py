"""
A made-up state folder with a library beside it, for tests of everything that writes.

`Home` builds the real thing on a real disk: the writer, the database, the decisions file. Only `look` is a small
stand-in for the library reader: it reads the disk each time, as that one does.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import signal
import stat
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from curatord.adapters.decisions import DecisionsFile
from curatord.adapters.disk import Disk
from curatord.adapters.mutate import FileMutator
from curatord.adapters.store import Database, open_database
from curatord.adapters.store.curation import SqliteCurationStore
from curatord.core.plan import Standing
from curatord.core.reach import Site
from curatord.core.skill_record import SkillRecord
from curatord.core.values import ActionId, Fingerprint, LibraryName, RelPath, SkillKey, State
from curatord.passes.apply import Applier, standing_with

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LIB = LibraryName("lib")
# What comes and goes with locks, and is no part of what an action does.
LOCKS = (".locks", ".usage.json.lock", ".jobs.lock")


def key(rel: str) -> SkillKey:
    """Return the key of a skill of the one library here."""
    return SkillKey(library=LIB, rel=RelPath(rel))


def tree(root: Path, *, without: tuple[str, ...] = LOCKS) -> dict[str, str]:
    """Return type, mode and content of everything below *root*, by path."""
    found: dict[str, str] = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in without]
        for name in [*names, *files]:
            path = Path(folder) / name
            if name in without:
                continue
            info = path.lstat()
            what = f"{stat.S_IFMT(info.st_mode):o} {stat.S_IMODE(info.st_mode):o} "
            if path.is_symlink():
                what += str(path.readlink())
            elif path.is_file():
                what += hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(root))] = what
    return found


@dataclass(slots=True, kw_only=True)
class Home:
    """One home; `applier()` may be asked for again after a kill, as a new process would."""

    base: Path
    layout: Literal["agent-skills", "hermes", "flat"] = "agent-skills"
    archive: Path | None = None
    managed: set[str] | None = None
    protected: set[str] = field(default_factory=set)
    hook: Callable[[str], None] = lambda _: None
    on_look: Callable[[SkillKey], None] = lambda _: None
    ids: str = "a"
    reads_usage: bool = True  # False: a reader that misses the host's pins, so that the writer is on its own
    database: Database | None = None

    def close(self) -> None:
        """Close the database, as the end of a process does."""
        if self.database is not None:
            self.database.close()
            self.database = None

    def __post_init__(self) -> None:
        self.state.mkdir(parents=True, exist_ok=True)
        self.root.mkdir(parents=True, exist_ok=True)

    @property
    def state(self) -> Path:
        return self.base / "state"

    @property
    def root(self) -> Path:
        return self.base / "home" / "skills"

    @property
    def site(self) -> Site:
        default = self.root / ".archive" if self.layout == "hermes" else self.root.parent / ".skills-archive"
        return Site(
            library=LIB,
            root=str(self.root),
            archive=str(self.archive or default),
            layout=self.layout,
            home=str(self.root.parent) if self.layout == "hermes" else None,
        )

    def skill(self, rel: str, body: str = "text", *, files: dict[str, bytes] | None = None) -> Path:
        """Write a package and return its folder."""
        folder = self.root / rel
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: d\n---\n{body}\n", encoding="utf-8")
        for path, data in (files or {}).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return folder

    def usage(self, records: dict[str, dict[str, Any]]) -> None:
        """Write Hermes' `.usage.json` as Hermes writes it."""
        text = json.dumps(records, indent=2, sort_keys=True, ensure_ascii=False)
        (self.root / ".usage.json").write_text(text, encoding="utf-8")

    def usage_of(self, name: str) -> dict[str, Any]:
        """Return a record of `.usage.json`."""
        record: dict[str, Any] = json.loads((self.root / ".usage.json").read_text(encoding="utf-8"))[name]
        return record

    def jobs(self, jobs: list[dict[str, Any]]) -> Path:
        """Write Hermes' schedule and return its path."""
        path = self.root.parent / "cron" / "jobs.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"jobs": jobs, "updated_at": "x"}, indent=2), encoding="utf-8")
        return path

    def fingerprint(self, rel: str) -> Fingerprint:
        """Return what the stand-in for the library reader calls the content of a skill."""
        fingerprint = self.look_at(key(rel)).fingerprint
        assert fingerprint is not None
        return fingerprint

    def look(self, skills: Sequence[SkillKey]) -> dict[SkillKey, Standing]:
        """Read skills from disk, as the library reader does."""
        return {skill: self.look_at(skill) for skill in skills}

    def look_at(self, skill: SkillKey) -> Standing:
        """Read one skill from disk."""
        self.on_look(skill)
        path = self.root / skill.rel
        if self.layout == "flat" and not path.exists():
            path = self.root / f"{skill.rel}.md"
        name = skill.name
        pinned = False
        if self.reads_usage and self.layout == "hermes" and (self.root / ".usage.json").exists():
            try:
                pinned = json.loads((self.root / ".usage.json").read_bytes()).get(name, {}).get("pinned", False)
            except ValueError:
                return Standing(key=skill, there=True, why="the ownership file cannot be read", protected=True)
        there = os.path.lexists(path)
        managed = (self.managed is None or name in self.managed) and name not in self.protected
        told = json.dumps(tree(path) if path.is_dir() and not path.is_symlink() else [str(path), there])
        if path.is_file():
            told += path.read_text(encoding="utf-8")
        return Standing(
            key=skill,
            there=there,
            managed=managed,
            why="" if managed else "it was not handed over",
            protected=name in self.protected,
            pinned=bool(pinned),
            fingerprint=Fingerprint(hashlib.sha256(told.encode()).hexdigest()) if there else None,
        )

    def applier(self, *, wait_s: float = 0.3) -> Applier:
        """Return the gate as a new process would build it; its database is closed with the next one."""
        self.close()
        disk = Disk(hook=lambda name: self.hook(name))
        database = self.database = open_database(self.state, now=NOW)
        store = SqliteCurationStore(database=database, hook=lambda name: self.hook(name))
        numbers = itertools.count(len(store.actions()) + len(list(self.state.glob("journal/*.json"))) + 1)
        return Applier(
            mutator=FileMutator(
                state_dir=self.state,
                sites={LIB: self.site},
                licence=lambda skills: {
                    skill: standing_with(seen, store.skill(skill)) for skill, seen in self.look(skills).items()
                },
                disk=disk,
                wait_s=wait_s,
            ),
            store=store,
            decisions=DecisionsFile(state_dir=self.state, disk=disk),
            look=self.look,
            sites={LIB: self.site},
            new_id=lambda: ActionId(f"{self.ids}{next(numbers)}"),
        )

    def know(self, applier: Applier, *rels: str, state: State = State.ACTIVE, **more: Any) -> None:
        """Put records of skills into the database, as a scan does."""
        applier.store.put_skills(
            SkillRecord(
                key=key(rel), state=state, state_since=NOW, first_seen_at=NOW, born_at=NOW, managed_since=NOW, **more
            )
            for rel in rels
        )

    def files(self) -> dict[str, str]:
        """Return all that an action may change on disk: library, archive, the host's files."""
        found = tree(self.root.parent)
        if self.archive is not None and self.archive.exists():
            found |= {f"archive:{path}": what for path, what in tree(self.archive).items()}
        return found

    def copy_to(self, base: Path) -> Home:
        """Return a copy of this home elsewhere, links and modes kept."""
        shutil.copytree(self.base, base, symlinks=True)
        return Home(base=base, layout=self.layout, managed=self.managed, protected=self.protected, archive=self.archive)


def fork() -> int:
    """Fork without the warning of newer Pythons about threads: the child only ever works, and is killed or exits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def as_user(work: Callable[[], int], *paths: Path) -> int:
    """Run *work* in a process that is no root, with *paths* given to it; return its exit code."""
    if os.geteuid() == 0:
        for path in paths:
            for folder, names, files in os.walk(path):
                for name in (".", *names, *files):
                    os.lchown(Path(folder, name), 65534, 65534)
    child = fork()
    if child == 0:
        code = 99
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            code = work()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def killed_after(count: int, work: Callable[[Callable[[str], None]], None]) -> bool:
    """
    Run *work* in a process of its own and kill -9 it at the *count*-th hook; return whether it was killed.

    *work* is handed the hook to build its home with. A child that ends otherwise than by our kill or in peace fails
    the test.
    """
    child = fork()
    if child == 0:
        left = itertools.count(1)

        def hook(_name: str) -> None:
            if next(left) == count:
                os.kill(os.getpid(), signal.SIGKILL)

        code = 99
        try:
            work(hook)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the child failed by itself"
    return False

"""
A made-up library on a real disk, with the real reader, writer, database and journal around it, for the umbrella pass.

Only `facts` is short: every skill is managed and long there unless a test says otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from curatord.adapters.decisions import DecisionsFile
from curatord.adapters.disk import Disk
from curatord.adapters.library import DiskLibrary
from curatord.adapters.mutate import FileMutator
from curatord.adapters.packed_packages import PackedPackages
from curatord.adapters.prompts import PromptFiles
from curatord.adapters.store import Database, open_database
from curatord.adapters.store.answers import StoredAnswers
from curatord.adapters.store.curation import SqliteCurationStore
from curatord.core.header import Fault
from curatord.core.idle import LibraryClock
from curatord.core.library import LibrarySnapshot
from curatord.core.lifecycle import SkillFacts
from curatord.core.plan import Standing
from curatord.core.reach import Site
from curatord.core.settings import LibrarySettings, LifecycleSettings, LlmBudget, UmbrellaSettings
from curatord.core.skill_record import SkillRecord
from curatord.core.values import ActionId, LibraryName, Mode, RelPath, RunId, SkillKey, State
from curatord.passes.apply import Applier, standing_with
from curatord.passes.consult import Consultation
from curatord.passes.umbrella import LibraryCase, UmbrellaPass, UmbrellaResult
from curatord.ports.model import Model
from tests.fakes.model import HandClock, Memory
from tests.fakes.package_cache import MemoryCache

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LIB = LibraryName("lib")
DAY = timedelta(days=1)


def key(rel: str) -> SkillKey:
    """Return the key of a skill of the one library here."""
    return SkillKey(library=LIB, rel=RelPath(rel))


def contents(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and bytes of every file below *root*, by path."""
    return {
        str(path.relative_to(root)): (path.stat().st_mode & 0o777, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink() and not {".locks"} & set(path.parts) and path.suffix != ".lock"
    }


@dataclass(slots=True, kw_only=True)
class UmbrellaHome:
    """
    One home. *pinned*, *unmanaged* and *edited* name skills; *stale* says since how many days; *hook* is told of every
    step of the writer.
    """

    base: Path
    layout: Literal["agent-skills", "hermes", "flat"] = "agent-skills"
    pinned: set[str] = field(default_factory=set)
    unmanaged: set[str] = field(default_factory=set)
    edited: set[str] = field(default_factory=set)
    referenced: set[str] = field(default_factory=set)
    stale: dict[str, float] = field(default_factory=dict)
    young: set[str] = field(default_factory=set)
    hook: Callable[[str], None] = lambda _: None
    database: Database | None = None
    clock: HandClock = field(default_factory=lambda: HandClock(NOW))
    endpoint_memory: Memory = field(default_factory=Memory)
    readings: MemoryCache = field(default_factory=MemoryCache)

    def __post_init__(self) -> None:
        self.state.mkdir(parents=True, exist_ok=True)
        self.root.mkdir(parents=True, exist_ok=True)

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.base / "state"

    @property
    def root(self) -> Path:
        """The library."""
        return self.base / "home" / "skills"

    @property
    def archive(self) -> Path:
        """Where absorbed skills go."""
        return self.root / ".archive" if self.layout == "hermes" else self.root.parent / ".skills-archive"

    def skill(
        self,
        rel: str,
        body: str = "",
        *,
        description: str = "",
        files: Mapping[str, bytes] | None = None,
        modes: Mapping[str, int] | None = None,
        header: str = "",
    ) -> Path:
        """Write a package and return its folder."""
        folder = self.root / rel
        folder.mkdir(parents=True)
        told = description or f"Use when {folder.name.replace('-', ' ')} is asked for."
        text = body or f"# {folder.name}\n\n1. Look at {folder.name}.\n2. Do it.\n"
        data = f"---\nname: {folder.name}\ndescription: {told}\n{header}---\n\n{text}"
        (folder / "SKILL.md").write_bytes(data.encode())
        for path, content in (files or {}).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
            (folder / path).chmod((modes or {}).get(path, 0o644))
        return folder

    # -- what a run would know

    def library(self) -> DiskLibrary:
        """Return the reader of the library."""
        return DiskLibrary(
            LibrarySettings(name=LIB, path=str(self.root), layout=self.layout, archive=str(self.archive), manage="all"),
            self.readings,
        )

    def snapshot(self) -> LibrarySnapshot:
        """Return what is on disk now."""
        return self.library().read()

    def facts(self, snapshot: LibrarySnapshot) -> dict[SkillKey, SkillFacts]:
        """Return what a run would know of each skill."""
        found = {}
        for skill in snapshot.skills:
            name = skill.name
            stale = self.stale.get(name)
            born = NOW - (1 if name in self.young else 300) * DAY
            since = NOW - (stale if stale is not None else 300) * DAY
            record = SkillRecord(
                key=skill.key,
                state=State.STALE if stale is not None else State.ACTIVE,
                state_since=since,
                stale_since=since if stale is not None else None,
                first_seen_at=born,
                born_at=born,
                born_from="event" if name in self.young else "file",
                managed_since=born,
                trusted_fingerprint=skill.fingerprint,
                seen_fingerprint=skill.fingerprint,
            )
            found[skill.key] = SkillFacts(
                record=record,
                managed=name not in self.unmanaged,
                why="adopted" if name not in self.unmanaged else "it was not handed over",
                broken=skill.broken,
                host_pinned=name in self.pinned,
                referenced="the schedule" if name in self.referenced else None,
                edited="edited by hand" if name in self.edited else None,
            )
        return found

    def case(self, **changes: Any) -> LibraryCase:
        """Return the library as a run hands it to the pass."""
        snapshot = self.snapshot()
        clock = LibraryClock(
            library=LIB,
            sources=1,
            observed_since=NOW - 365 * DAY,
            first_scan_at=NOW - 300 * DAY,
            first_work=NOW - 365 * DAY,
            newest_work=NOW - DAY / 8,
            newest_evidence=NOW - DAY / 8,
        )
        values: dict[str, Any] = {
            "snapshot": snapshot,
            "facts": self.facts(snapshot),
            "clock": clock,
            "policy": LifecycleSettings(),
        }
        return LibraryCase(**(values | changes))

    # -- the gate

    def look(self, skills: Sequence[SkillKey]) -> dict[SkillKey, Standing]:
        """Read skills from disk."""
        return {skill: self._look(skill) for skill in skills}

    def _look(self, skill: SkillKey) -> Standing:
        path = self.root / skill.rel
        if self.layout == "flat" and not path.exists():
            path = self.root / f"{skill.rel}.md"
        managed = skill.name not in self.unmanaged
        why = "" if managed else "it was not handed over"
        if not path.exists():
            return Standing(key=skill, there=False, managed=managed, why=why)
        package = PackedPackages().read_at(skill, str(path))
        text = package.text
        return Standing(
            key=skill,
            there=True,
            managed=managed,
            why=why,
            fingerprint=package.fingerprint,
            broken=str(text) if isinstance(text, Fault) else None,
            pinned=skill.name in self.pinned,
        )

    def open(self) -> Database:
        """Return the database."""
        if self.database is None:
            self.database = open_database(self.state, now=NOW)
        return self.database

    def close(self) -> None:
        """Close the database, as the end of a process does."""
        if self.database is not None:
            self.database.close()
            self.database = None

    def applier(self) -> Applier:
        """Return the gate as a new process would build it."""
        disk = Disk(hook=lambda name: self.hook(name))
        store = SqliteCurationStore(database=self.open(), hook=lambda name: self.hook(name))
        numbers = itertools.count(len(store.actions()) + len(list(self.state.glob("journal/*.json"))) + 1)
        site = Site(
            library=LIB,
            root=str(self.root),
            archive=str(self.archive),
            layout=self.layout,
            home=str(self.root.parent) if self.layout == "hermes" else None,
        )
        return Applier(
            mutator=FileMutator(
                state_dir=self.state,
                sites={LIB: site},
                licence=lambda skills: {
                    s: standing_with(seen, store.skill(s)) for s, seen in self.look(skills).items()
                },
                disk=disk,
                wait_s=0.3,
            ),
            store=store,
            decisions=DecisionsFile(state_dir=self.state, disk=disk),
            look=self.look,
            sites={LIB: site},
            new_id=lambda: ActionId(f"a{next(numbers)}"),
        )

    # -- the pass

    def consultation(self, model: Model, *, fallback: Model | None = None, **changes: Any) -> Consultation:
        """Return one run's dealings with *model*."""
        values: dict[str, Any] = {
            "limits": LlmBudget(),
            "memory": self.endpoint_memory,
            "clock": self.clock,
            "workers": 4,
        }
        return Consultation(model, fallback, **(values | changes))

    def run(
        self,
        model: Model | Consultation | None,
        *,
        mode: Mode = Mode.AUTO,
        dry_run: bool = False,
        stop: Callable[[], bool] = lambda: False,
        prompts: str | None = None,
        prune_room: int = 3,
        run_id: str = "20260301-120000",
        **settings: Any,
    ) -> UmbrellaResult:
        """Run the pass once."""
        consultation = model if isinstance(model, Consultation) or model is None else self.consultation(model)
        applier = self.applier()
        applier.recover(now=NOW)
        case = self.case(prune_room=prune_room)
        applier.store.put_skills(facts.record for facts in case.facts.values())
        return UmbrellaPass(
            settings=replace(UmbrellaSettings(), **settings),
            mode=mode,
            packages=PackedPackages(),
            prompts=PromptFiles(prompts),
            memory=StoredAnswers(self.open()),
            store=applier.store,
            consultation=consultation,
            applier=None if dry_run else applier,
            stop=stop,
        ).run([case], now=NOW, run_id=RunId(run_id))

"""
From a configuration to an application: the one module that knows every adapter (with `curatord.loading`, which makes
the configuration).

Everything is made when it is first asked for, and imported then too: `status` must not wait for what only a run needs.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from curatord.adapters.clock import SystemClock
from curatord.adapters.store.database import FILE_NAME, Database, open_database, open_empty_database
from curatord.cli.app import Progress, Surroundings
from curatord.config import Loaded
from curatord.core.settings import Config, LibrarySettings
from curatord.core.small_facts import REFILLED_AT
from curatord.core.values import ActionId, LibraryName, RunId
from curatord.errors import BusyError, ConfigError, InputError, StateCorruptError, StateError, StateForbiddenError
from curatord.logs import Log, set_up
from curatord.ports.clock import Clock

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from curatord.adapters.backup_reader import BackupReader
    from curatord.adapters.backup_store import BackupStore
    from curatord.adapters.decisions import DecisionsFile
    from curatord.adapters.library import DiskLibrary
    from curatord.adapters.model_http import HttpModel
    from curatord.adapters.run_folder import RunFolders
    from curatord.adapters.standing import LibraryStandings
    from curatord.adapters.store.curation import SqliteCurationStore
    from curatord.adapters.store.distil import SqliteDistilStore
    from curatord.adapters.store.ingest import IngestStore
    from curatord.adapters.store.ingest_read import IngestQueries
    from curatord.adapters.store.overview import Overview
    from curatord.application import Application
    from curatord.application.narrating import Narrator
    from curatord.core.affinity import PlacedSource
    from curatord.core.library import LibraryProblem, LibrarySnapshot
    from curatord.core.ownership import LibraryView
    from curatord.core.reach import Site
    from curatord.core.resolve import HostResolvers
    from curatord.passes.apply import Applier
    from curatord.passes.consult import Consultation, Exchange
    from curatord.passes.distil_due import Judge
    from curatord.passes.distil_order import DistilOrder, DistilResult
    from curatord.passes.host_view import HostWords
    from curatord.passes.ingest import ScanReport
    from curatord.passes.look import Look, Looker
    from curatord.passes.model_books import ModelBooks
    from curatord.passes.remembering import SkillMemory
    from curatord.passes.run import Curation
    from curatord.passes.testimony import TranscriptTestimony
    from curatord.passes.umbrella_case import LibraryCase, UmbrellaResult
    from curatord.ports.conversation import Conversations
    from curatord.ports.distil_store import FilePart
    from curatord.ports.observer import Observer
    from curatord.ports.reader_pool import ReaderPool
    from curatord.ports.source import Source

__all__ = ["Parts", "open_app"]


@contextlib.contextmanager
def open_app(loaded: Loaded, surroundings: Surroundings) -> Iterator[Application]:
    """Give the application of a configuration, and close it."""
    from curatord.application import Application

    parts = Parts(loaded.config, surroundings)
    try:
        with parts.own_errors():
            yield Application(parts)
    finally:
        parts.close()


_WITHOUT_DATABASE = frozenset(
    {"log", "decisions", "folders", "backups", "backup_reader", "placed_sources", "opened_sources", "conflicts"}
)
# What says nothing of how the disk looked when it was made.
_LASTING = frozenset(
    {
        "log",
        "decisions",
        "folders",
        "backups",
        "backup_reader",
        "store",
        "overview",
        "ingest_store",
        "ingest_reader",
        "distil_store",
    }
)


class Parts:
    """
    What an application is put together from, each made when it is first asked for.

    Args:
        config: The configuration in force.
        surroundings: Stop, progress and log of the process.
        environ: All variables; the hosts' own ones say where their homes are.
        clock: The time; tests hand in another.
    """

    def __init__(
        self,
        config: Config,
        surroundings: Surroundings,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.config = config
        self.surroundings = surroundings
        self.environ = os.environ if environ is None else environ
        self.clock: Clock = clock or SystemClock()
        self.narrator: Narrator | None = None  # of the daemon; it outlives what is made anew after a reload
        self._database: Database | None = None
        self.notes: list[str] = []

    def close(self) -> None:
        """Close the database."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def reread(self) -> Config:
        """
        Return the configuration as its file and environment say it now; nothing is taken over.

        Raises:
            ConfigError: It is wrong, or names another state folder, which only a new start can change.
        """
        from curatord.loading import load_config

        config = load_config(self.config.origin, self.environ).config
        if config.state_dir != self.config.state_dir:
            raise ConfigError(
                f"state_dir is {config.state_dir} now, and was {self.config.state_dir}",
                key="state_dir",
                hint="restart the daemon to change it",
            )
        return config

    def take_over(self, config: Config) -> tuple[str, ...]:
        """Let *config* be in force as a whole, and return what is different, a line each."""
        from curatord.config.changes import changes_of

        self._forget_made(but=("log",))
        before, self.config = self.config, config
        return changes_of(before, config)

    @contextlib.contextmanager
    def telling(self, progress: Progress) -> Iterator[None]:
        """Tell *progress* how far work is, for as long as this lasts."""
        before = self.surroundings
        self.surroundings = before._replace(progress=progress)
        try:
            yield
        finally:
            self.surroundings = before

    @contextlib.contextmanager
    def apart(self) -> Iterator[Parts]:
        """Give parts of the same configuration that share nothing but the log: for another thread."""
        parts = Parts(self.config, Surroundings(), environ=self.environ, clock=self.clock)
        parts.__dict__["log"] = self.log  # set up once a process
        try:
            with parts.own_errors():
                yield parts
        finally:
            parts.close()

    def begin_round(self) -> None:
        """
        Forget what was made from how the disk looked: libraries, hosts and places may have come or gone since.

        Database and readers of unchanged places stay, and nothing is looked at that nobody asks for.
        """
        stays = set(_LASTING)
        if self.__dict__.get("placed_sources") == self._places():
            stays |= {"placed_sources", "opened_sources"}
        self._forget_made(but=stays)

    # -- state

    @property
    def state_dir(self) -> Path:
        """The state folder as configured; it need not exist yet."""
        return Path(self.config.state_dir)

    @property
    def home(self) -> Path:
        """The home of the user whose agents are watched."""
        return Path(self.environ.get("HOME") or Path.home())

    @cached_property
    def log(self) -> Log:
        """Where events go."""
        form = self.surroundings.log_format
        return set_up(form="json" if form == "json" else "text", verbose=self.surroundings.verbose > 0)

    @property
    def narrating(self) -> bool:
        """Whether all that happens is told in the log."""
        return self.narrator is not None

    @property
    def observer(self) -> Observer:
        """Whoever hears what happens."""
        from curatord.application.narrating import QuietObserver

        return self.narrator or QuietObserver(lambda: self.log)

    def make_state_dir(self) -> Path:
        """
        Return the state folder, made private to its user where it was not there.

        Raises:
            StateError: It cannot be made or is no folder.
        """
        path = self.state_dir
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            mode = path.stat().st_mode
        except OSError as error:
            raise StateError(
                f"cannot make the state folder {path}: {error.strerror}",
                hint="set `state_dir` to a folder that this user can write, or look at the free space",
            ) from error
        if not os.access(path, os.W_OK | os.X_OK) or not stat.S_ISDIR(mode):
            raise StateForbiddenError(
                f"the state folder {path} cannot be written by this user (id {os.getuid()})",
                hint="give it to this user, or set another `state_dir`",
            )
        return path

    @property
    def database(self) -> Database:
        """The database, for writing; made, migrated or set aside where needed."""
        if self._database is None or self._database.read_only:
            self.close()
            state_dir = self.make_state_dir()
            self._database = open_database(state_dir, now=self.clock.now())
            self._forget_made(but=_WITHOUT_DATABASE)
            try:
                self._refill()
            except BaseException:
                # Nothing may go on with a database that lacks what people decided.
                self.close()
                self._forget_made(but=_WITHOUT_DATABASE)
                raise
        return self._database

    def renew_database(self) -> None:
        """Open the database anew where another process has replaced it, or somebody has found it damaged."""
        if self._database is not None and not self._database.is_current():
            self.log.warning("state.reopened", path=str(self._database.path))
            self.close()
            self._forget_made(but=_WITHOUT_DATABASE)

    @contextlib.contextmanager
    def own_errors(self) -> Iterator[None]:
        """Make the database's errors ours (`StateError`), wherever it is asked; it is marked where it is damaged."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            from curatord.adapters.store.damage import is_damage

            if self._database is None or not (isinstance(error, sqlite3.OperationalError) or is_damage(error)):
                raise
            raise self._database.failure(error) from error
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            # An error of ours, or a value that nobody wrote: a bit may have flipped where SQLite sees none.
            damage = self._database.odd() if self._database is not None else None
            if damage is None:
                raise
            raise damage from error

    @property
    def looking_database(self) -> Database:
        """The database for a command that only looks: what is there is read, and where nothing is, nothing is made."""
        if self._database is None:
            if not (self.state_dir / FILE_NAME).exists():
                self._database = open_empty_database()
            else:
                try:
                    self._database = open_database(self.state_dir, now=self.clock.now(), read_only=True)
                except StateCorruptError:
                    raise  # a command that looks mends nothing
                except StateError:
                    # Of an older schema, or in a folder that lets nothing be read without a shared-memory file: the
                    # writing way either works or says what is wrong.
                    return self.database
        return self._database

    def look_with(self, database: Database) -> None:
        """Use *database*, opened for looking, until something is to be written; for who examines the file itself."""
        self.close()
        self._forget_made(but=_WITHOUT_DATABASE)
        self._database = database

    def _forget_made(self, *, but: Container[str]) -> None:
        """Forget every part that was made and is not in *but*; each is made anew when it is next asked for."""
        for name in [name for name in self.__dict__ if isinstance(getattr(type(self), name, None), cached_property)]:
            if name not in but:
                del self.__dict__[name]

    def _refill(self) -> None:
        """
        Give a database that never got it what people had decided before (promise: decisions survive a lost database).

        That it has them is a row in it, written with them: a kill or an error in between leaves it to the next start.
        """
        database = self._database
        assert database is not None, "it was opened just now"
        if self.store.meta(REFILLED_AT) is None:
            from curatord.adapters.lock import work_lock

            with work_lock(self.state_dir):
                if self.store.meta(REFILLED_AT) is None:
                    rebuilt_from = str(database.rebuilt_from) if database.rebuilt_from is not None else None
                    known = self.decisions.load()
                    restored = self.store.refill(known, now=self.clock.now(), rebuilt_from=rebuilt_from)
                    if rebuilt_from is not None:
                        self.log.warning("state.rebuilt", damaged=rebuilt_from, decisions_restored=restored)
        database.mended()

    @cached_property
    def store(self) -> SqliteCurationStore:
        """Skills, runs, actions, proposals."""
        from curatord.adapters.store.curation import SqliteCurationStore

        return SqliteCurationStore(database=self._database or self.looking_database)

    @cached_property
    def overview(self) -> Overview:
        """Counts and lists for `status`."""
        from curatord.adapters.store.overview import Overview

        return Overview(self._database or self.looking_database)

    @cached_property
    def ingest_store(self) -> IngestStore:
        """What the ingest pass writes."""
        from curatord.adapters.store.ingest import IngestStore

        return IngestStore(self.database)

    @cached_property
    def ingest_reader(self) -> IngestQueries:
        """What was learnt from transcripts."""
        from curatord.adapters.store.ingest_read import IngestQueries

        return IngestQueries(self._database or self.looking_database)

    @cached_property
    def decisions(self) -> DecisionsFile:
        """The plain file of decisions."""
        from curatord.adapters.decisions import DecisionsFile

        return DecisionsFile(state_dir=self.state_dir)

    @cached_property
    def folders(self) -> RunFolders:
        """The folders of runs."""
        from curatord.adapters.run_folder import RunFolders

        return RunFolders(self.state_dir)

    @cached_property
    def memory(self) -> SkillMemory:
        """What is remembered of skills."""
        from curatord.passes.remembering import SkillMemory

        return SkillMemory(store=self.store, decisions=self.decisions, new_id=new_action_id, lock=self.work)

    # -- transcripts

    @cached_property
    def placed_sources(self) -> tuple[PlacedSource, ...]:
        """All places of all configured sources, each once."""
        return self._places()

    def _places(self) -> tuple[PlacedSource, ...]:
        from curatord.adapters.sources.places import places
        from curatord.core.affinity import PlacedSource

        found: dict[tuple[str, str], PlacedSource] = {}
        for settings in self.config.sources:
            for place in places(settings, self.environ, home=self.home):
                placed = PlacedSource(settings=settings, path=place.path)
                found.setdefault(placed.key, placed)
        return tuple(found.values())

    @cached_property
    def opened_sources(self) -> tuple[Source, ...]:
        """The readers of all places."""
        from curatord.adapters.sources.registry import open_source

        return tuple(open_source(placed.settings, placed.path) for placed in self.placed_sources)

    def _reader_pool(self) -> AbstractContextManager[ReaderPool]:
        """Begin one more process that reads; the pass itself reads too, so that two cores are busy."""
        from curatord.adapters.sources.pool import reader_processes

        return reader_processes([(placed.settings, placed.path) for placed in self.placed_sources], count=1)

    def scan(
        self, stop: Callable[[], bool], progress: Callable[[int, int], None] | None = None, *, lazily: bool = False
    ) -> ScanReport:
        """
        Ingest all sources up to now; *lazily*: a scan that finds nothing new writes nothing.

        Raises:
            BusyError: Another scan is at work.
        """
        from curatord.adapters.lock import scan_lock
        from curatord.passes.ingest import scan

        with scan_lock(self.make_state_dir()), self.own_errors(), self._courtesy():
            report = scan(
                self.opened_sources,
                self.ingest_store,
                clock=self.clock,
                quiet=self.config.gates.session_quiet,
                progress=progress,
                stop=stop,
                lazily=lazily,
                pool=self._reader_pool if (os.cpu_count() or 1) > 1 else None,
            )
        self.observer.scanned(report, whole=not report.stopped)
        return report

    def _courtesy(self) -> AbstractContextManager[None]:
        """Return what makes a first scan, which reads all there is, stand back from the disk."""
        from curatord.adapters.priority import gently

        self.database  # noqa: B018 - opened for writing before anything is made from it
        first = not {one.key for one in self.placed_sources} <= self.overview.scanned()
        return gently() if first else contextlib.nullcontext()

    # -- libraries

    @cached_property
    def libraries(self) -> tuple[tuple[LibrarySettings, DiskLibrary], ...]:
        """Each configured library with its reader."""
        from curatord.adapters.library import DiskLibrary
        from curatord.adapters.store.package_readings import StoredReadings

        cache = StoredReadings(self._database or self.looking_database)
        return tuple((settings, DiskLibrary(settings, cache)) for settings in self.config.libraries)

    @cached_property
    def conflicts(self) -> tuple[LibraryProblem, ...]:
        """How configured paths lie to each other in ways that cannot be meant."""
        from curatord.adapters.places import look_for_conflicts

        return tuple(look_for_conflicts(self.config))

    def library_view(self, settings: LibrarySettings, library: DiskLibrary) -> LibraryView:
        """Return what is in a library now, and what bears on whose it is."""
        return library.look(observed=self.observed(settings))

    def observed(self, settings: LibrarySettings) -> list[str]:
        """Return why a library is only looked at, in words: it is in conflict with another configured path."""
        return [p.words for p in self.conflicts if p.library == settings.name and p.severity != "note"]

    def host_words(self, views: Mapping[LibraryName, LibraryView]) -> dict[LibraryName, HostWords]:
        """Return what the libraries' hosts and live skills say of them, read now."""
        from curatord.adapters.hermes_home import HermesHome
        from curatord.core.references import SkillIndex, references_by_skill
        from curatord.passes.host_view import HostWords

        settings_of = {settings.name: settings for settings in self.config.libraries}
        snapshots = [view.snapshot for view in views.values()]
        schedules = [
            (str(name), reference)
            for name, view in views.items()
            if view.hermes is not None
            for reference in view.hermes.schedule
        ]
        index = SkillIndex(snapshots, settings_of, home=str(self.home))
        named, unknown = references_by_skill(snapshots, schedules, index)
        return {
            name: HostWords(
                settings=settings_of[name],
                snapshot=view.snapshot,
                facts=view.facts,
                hermes=view.hermes,
                ledger=HermesHome(settings_of[name].path).ledger if view.hermes is not None else None,
                named=named,
                notes=tuple(unknown) if view.hermes is not None else (),
            )
            for name, view in views.items()
        }

    def resolver(self, snapshots: Mapping[LibraryName, LibrarySnapshot]) -> HostResolvers:
        """Return what tells whose skill an event meant."""
        from curatord.passes.testimony import known_libraries, resolvers

        known = known_libraries(self.config.libraries, snapshots, self.overview.archived())
        return resolvers(known, self.placed_sources, str(self.home))

    def testimony(self, snapshots: Mapping[LibraryName, LibrarySnapshot]) -> TranscriptTestimony:
        """Return what transcripts say, read now."""
        from curatord.passes.testimony import TranscriptTestimony

        return TranscriptTestimony(
            self.ingest_reader,
            sources=self.placed_sources,
            libraries=self.config.libraries,
            resolve=self.resolver(snapshots),
            away_after=self.config.lifecycle.away_after,
        )

    @cached_property
    def looker(self) -> Looker:
        """Looks at everything."""
        from curatord.adapters.store.twins import StoredTwins
        from curatord.passes.look import Looker

        return Looker(
            libraries=[
                (settings, partial(self.library_view, settings, library)) for settings, library in self.libraries
            ],
            host_views=self.host_words,
            testimony=self.testimony,
            twins=StoredTwins(self._database or self.looking_database),
            records=self.memory,
            policy=self.config.lifecycle,
        )

    def look(self, *, remember: bool = False) -> Look:
        """Look at everything now."""
        return self.looker.look(self.clock.now(), remember=remember)

    # -- backups

    @cached_property
    def backups(self) -> BackupStore:
        """The backups."""
        from curatord.adapters.backup_store import BackupStore

        return BackupStore(state_dir=self.state_dir)

    @cached_property
    def backup_reader(self) -> BackupReader:
        """Reads libraries into backups."""
        from curatord.adapters.backup_reader import BackupReader

        return BackupReader(store=self.backups, max_bytes=self.config.backups.max_size)

    # -- changing

    @cached_property
    def sites(self) -> Mapping[LibraryName, Site]:
        """Where each library is, looked for when it is first asked for, and again while it cannot be seen."""
        from curatord.adapters.standing import Sites

        return Sites(self.libraries)

    @cached_property
    def standings(self) -> LibraryStandings:
        """Tells what is true of skills on disk right now; asked by the writer before it touches anything."""
        from curatord.adapters.standing import LibraryStandings

        settings = {LibraryName(one.name): one for one, _ in self.libraries}
        return LibraryStandings(
            libraries={LibraryName(one.name): library for one, library in self.libraries},
            settings=settings,
            record_of=self.store.skill,
            observed=lambda name: self.observed(settings[name]),
        )

    @cached_property
    def applier(self) -> Applier:
        """The gate that every change goes through."""
        from curatord.adapters.mutate import FileMutator
        from curatord.passes.apply import Applier

        self.database  # noqa: B018 - opened for writing before anything is made from it
        mutator = FileMutator(state_dir=self.make_state_dir(), sites=self.sites, licence=self.standings)
        return Applier(
            mutator=mutator,
            store=self.store,
            decisions=self.decisions,
            look=self.standings,
            sites=self.sites,
            new_id=new_action_id,
            before_run=self._before_run,
            told=self.observer.acted,
        )

    def _before_run(self, _run_id: RunId) -> None:
        """Make the backup that the configuration asks for, and note what is to be told of it."""
        from curatord.application.backing_up import backup_before_run

        self.notes += backup_before_run(self)

    def take_notes(self) -> list[str]:
        """Return, once, what this run is to tell of its backup."""
        notes = list(self.notes)
        self.notes.clear()
        return notes

    @contextlib.contextmanager
    def work(self) -> Iterator[None]:
        """Hold the work lock."""
        from curatord.adapters.lock import work_lock

        with work_lock(self.make_state_dir()):
            yield

    @contextlib.contextmanager
    def one_run(self) -> Iterator[None]:
        """Hold the lock of all runs."""
        from curatord.adapters.lock import run_lock

        with run_lock(self.make_state_dir()):
            yield

    @cached_property
    def curation(self) -> Curation:
        """Does runs."""
        from curatord import __version__
        from curatord.application.cost import cost_of
        from curatord.application.gating import gate_facts
        from curatord.core.gates import Closed, Open, due
        from curatord.passes.run import Curation

        self.database  # noqa: B018 - opened for writing before anything is made from it

        def gates(now: datetime, *, bypass: bool) -> Open | Closed:
            return due(gate_facts(self), self.config.gates, now, bypass=bypass)

        def scan(stop: Callable[[], bool]) -> Mapping[str, object]:
            return self.scan(stop, self.byte_progress()).as_json()

        return Curation(
            config=self.config,
            version=__version__,
            scan=scan,
            looker=self.looker,
            gates=gates,
            applier=lambda: self.applier,
            consult=self.consultation,
            distiller=self.distil,
            merger=self.merge,
            store=self.store,
            folders=self.folders,
            one_at_a_time=self.one_run,
            cost_of=partial(cost_of, self),
            keep_house=self.keep_house,
            unsettled=self.unsettled,
            notes=self.take_notes,
            clock=self.clock,
            telling=self.observer.running,
        )

    def unsettled(self, *, dry_run: bool) -> list[str]:
        """Return words for unfinished actions: those that wait for a person, in a dry run all that wait."""
        if dry_run:
            from curatord.adapters.journal_dir import BrokenIntent, JournalDir

            return [
                "an action that a kill left half-way waits: "
                + (f"{found.path}: {found.error}" if isinstance(found, BrokenIntent) else found.summary)
                for found in JournalDir(state_dir=self.state_dir).intents()
            ]
        return [why for _, why in self.applier.recover(now=self.clock.now()).conflicts]

    # -- models

    @cached_property
    def books(self) -> ModelBooks:
        """What was spent on models, and what is remembered of their endpoints."""
        from curatord.passes.model_books import ModelBooks

        return ModelBooks(self.store)

    def open_breaker(self, now: datetime) -> str | None:
        """Return why the primary is left alone for now, in words, or None; nothing is asked."""
        from curatord.adapters.models import models_of
        from curatord.core.model import EndpointError
        from curatord.passes.consult import breaker_of

        if self.config.llm is None:
            return None
        primary, _ = models_of(
            self.config.llm, self.books, self.clock, hermes_home=self.hermes_home(), environment=self.environ
        )
        try:
            identity = primary.identity()
        except EndpointError as error:
            return f"cannot be asked: {error}"
        breaker = breaker_of(self.books, identity)
        return None if breaker is None or now >= breaker.until else f"open: {breaker.kind}: {breaker.message}"

    def consultation(self, *, by_hand: bool) -> Consultation | None:
        """Return this run's dealings with models, or None where none is configured."""
        from curatord.adapters.models import models_of
        from curatord.core.endpoint import workers
        from curatord.passes.consult import Consultation

        if self.config.llm is None:
            return None
        self.log  # noqa: B018 - what is said of retries belongs on standard error
        started: list[HttpModel] = []
        primary, fallback = models_of(
            self.config.llm,
            self.books,
            self.clock,
            hermes_home=self.hermes_home(),
            environment=self.environ,
            on_start=started.append,
        )

        observer = self.observer

        def book(exchange: Exchange) -> None:
            self.books.book(exchange)
            observer.asked(exchange)

        def end() -> None:
            for model in started:
                model.stop()

        return Consultation(
            primary,
            fallback,
            limits=self.config.llm.budget,
            memory=self.books,
            clock=self.clock,
            spent_today=self.books.spent_on(self.clock.now()),
            workers=workers(self.config.llm),
            book=book,
            bypass_breaker=by_hand,
            end=end,
        )

    def hermes_home(self) -> Path | None:
        """Return the home of the first Hermes library, for `from_host: hermes`; None where that is not said."""
        if self.config.llm is None or self.config.llm.from_host is None:
            return None
        for settings, library in self.libraries:
            view = self.library_view(settings, library)
            if view.hermes is not None:
                return Path(view.hermes.home)
        return None

    def merge(
        self,
        cases: Callable[[], Sequence[LibraryCase]],
        *,
        now: datetime,
        run_id: RunId,
        dry_run: bool,
        llm: bool,
        consultation: Callable[[], Consultation | None],
        stop: Callable[[], bool],
    ) -> UmbrellaResult:
        """Do the umbrella pass of a run; a dry run's has no applier, and so cannot change anything."""
        from curatord.passes.umbrella_case import UmbrellaResult

        asks = self.config.umbrella.enabled and self.config.umbrella.planner == "llm"
        if asks and self.config.llm is None:
            return UmbrellaResult(state="skipped", reason="not configured")
        if asks and not llm:
            return UmbrellaResult(state="skipped", reason="no model was to be asked")
        from curatord.adapters.packed_packages import PackedPackages
        from curatord.adapters.prompts import PromptFiles
        from curatord.adapters.store.answers import StoredAnswers
        from curatord.passes.umbrella import UmbrellaPass

        umbrella = UmbrellaPass(
            settings=self.config.umbrella,
            mode=self.config.mode,
            packages=PackedPackages(),
            prompts=PromptFiles(self.config.prompts),
            memory=StoredAnswers(self.database),
            store=self.store,
            consultation=consultation() if asks else None,
            applier=None if dry_run else self.applier,
            stop=stop,
        )
        return umbrella.run(cases(), now=now, run_id=run_id)

    # -- distilling

    @cached_property
    def distil_store(self) -> SqliteDistilStore:
        """What is remembered of distilling."""
        from curatord.adapters.store.distil import SqliteDistilStore

        return SqliteDistilStore(self._database or self.looking_database)

    @cached_property
    def distil_judge(self) -> Judge:
        """Says which sessions are due."""
        from curatord.core.distil.due import source_off
        from curatord.core.small_facts import DISTIL_SINCE
        from curatord.passes.distil_due import JUDGED_BY, Judge, SourceRule

        local = self._local_model()
        rules: dict[tuple[str, str], SourceRule] = {}
        for placed in self.placed_sources:
            settings = placed.settings
            off = source_off(
                settings.distil,
                enabled=self.config.distill.enabled,
                local_model=local,
                host_reviewer=settings.distil == "auto" and self._reviewed_by_host(placed),
            )
            auto = settings.distil == "auto" and self.config.distill.enabled
            rules[placed.key] = SourceRule(off=off, auto=off is not None and auto, exclude=settings.exclude)
        since = self.store.meta(DISTIL_SINCE)
        if since is None:
            since = self.clock.now().isoformat()
            self.store.set_meta(DISTIL_SINCE, since)
        return Judge(
            store=self.distil_store,
            settings=self.config.distill,
            gates=self.config.gates,
            rules=rules,
            since=datetime.fromisoformat(since),
            kept_hash=lambda: self.store.meta(JUDGED_BY),
            keep_hash=lambda value: self.store.set_meta(JUDGED_BY, value),
        )

    def _local_model(self) -> bool:
        """Return whether every model that may be asked runs on this machine."""
        from curatord.adapters.models import models_of
        from curatord.core.model import EndpointError

        if self.config.llm is None:
            return False
        models = models_of(
            self.config.llm, self.books, self.clock, hermes_home=self.hermes_home(), environment=self.environ
        )
        try:
            return all(model.identity().loopback for model in models if model is not None)
        except EndpointError:
            return False  # who would be asked cannot be told now

    def _reviewed_by_host(self, placed: PlacedSource) -> bool:
        """Return whether the host of a place reviews its sessions itself; only of Hermes is that known."""
        if placed.settings.host != "hermes":
            return False
        from curatord.adapters.small_files import read_small
        from curatord.core.hermes_review import reviews_itself
        from curatord.errors import OwnershipError

        path = Path(placed.path)
        home = path if path.is_dir() else path.parent
        try:
            return reviews_itself(read_small(str(home / "config.yaml")))
        except OwnershipError:
            return True  # a doubt must not cost a call

    def distil(
        self,
        order: DistilOrder,
        *,
        look: Look,
        now: datetime,
        run_id: Callable[[], RunId],
        consultation: Callable[[], Consultation | None],
        stop: Callable[[], bool],
    ) -> DistilResult:
        """Do the distil pass; a dry run's has no applier, and so cannot change anything."""
        from curatord.passes.distil_order import DistilResult

        if not self.config.distill.enabled and order.sessions is None:
            return DistilResult(state="skipped", reason="switched off in the configuration")
        if self.config.llm is None:
            return DistilResult(state="skipped", reason="not configured")
        if not order.llm:
            return DistilResult(state="skipped", reason="no model was to be asked")
        from curatord.adapters.digest_files import DigestFiles
        from curatord.adapters.packed_packages import PackedPackages
        from curatord.adapters.prompts import PromptFiles
        from curatord.passes.distil import DistilPass

        digests = DigestFiles(state_dir=self.state_dir)
        result = DistilPass(
            config=self.config,
            store=self.store,
            distil=self.distil_store,
            judge=self.distil_judge,
            packages=PackedPackages(),
            prompts=PromptFiles(self.config.prompts),
            opened=self._conversations(),
            libraries_of=self._libraries_of(),
            host_names=self._host_names,
            keep_digest=digests.keep,
            applier=None if order.dry_run else self.applier,
            relook=lambda: self.look(remember=not order.dry_run),
            say=self.log.info,
            warn=self.log.warning,
            bug=lambda session, error: self.log.error(
                "distil.bug", host=session.host, session_id=session.session_id, exc_info=error
            ),
        ).run(order, look=look, now=now, run_id=run_id, consultation=consultation, stop=stop)
        if result.asked:
            digests.prune(now)
        return result

    def _conversations(self) -> Callable[[FilePart], Conversations | None]:
        """Return what opens the conversations of a file's place, each place once."""
        from curatord.adapters.sources.conversations import open_conversations

        places = {placed.key: placed for placed in self.placed_sources}
        opened: dict[tuple[str, str], Conversations] = {}

        def open_(file: FilePart) -> Conversations | None:
            key = (file.host, file.source)
            if key not in opened:
                placed = places.get(key)
                if placed is None:
                    return None
                opened[key] = open_conversations(placed.settings, placed.path)
            return opened[key]

        return open_

    def _libraries_of(self) -> Callable[[FilePart], Sequence[LibraryName]]:
        """Return what tells the libraries whose skills the sessions of a place use, those of its host first."""
        from curatord.core.affinity import host_of, libraries_of

        places = {placed.key: placed for placed in self.placed_sources}

        def of(file: FilePart) -> Sequence[LibraryName]:
            placed = places.get((file.host, file.source))
            if placed is None:
                return ()
            names = libraries_of(placed.settings, self.config.libraries)
            own = {one.name for one in self.config.libraries if host_of(one) == file.host}
            return [LibraryName(name) for name in sorted(names, key=lambda name: name not in own)]

        return of

    def _host_names(self, library: LibraryName, folders: Sequence[str]) -> Mapping[str, str]:
        """Return what the library's host finds besides skills of libraries, given the folders of a session."""
        from curatord.adapters.host_names import HostNames
        from curatord.core.affinity import host_of

        settings = next((one for one in self.config.libraries if one.name == library), None)
        host = host_of(settings) if settings is not None else None
        if settings is None or host is None:
            return {}
        root = Path(settings.path)
        homes = [str(root.parent)] if root.name == "skills" else []
        for placed in self.placed_sources:
            if placed.settings.host == host and placed.path is not None:
                place = Path(placed.path)
                homes.append(str(place.parent if place.name == "projects" else place))
        return HostNames(host=host, homes=homes, home=str(self.home)).taken(folders)

    def keep_house(self, names: Sequence[LibraryName]) -> list[str]:
        """
        Pause hosts' own curators where that is asked for, drop bytes that nothing needs; return warnings.

        *names* are the libraries that this run may change; of the others nothing is written.
        """
        warnings = []
        for settings, _ in self.libraries:
            name = LibraryName(settings.name)
            if settings.host_curator != "pause" or settings.manage == "none" or name not in names:
                continue
            try:
                site = self.sites[name]
                with self.applier.mutator.hold(site):
                    if self.applier.mutator.pause_host(site):
                        self.log.info("host.curator_paused", library=settings.name)
            except (InputError, BusyError, OSError) as error:
                warnings.append(f"library {settings.name}: its host's own curator could not be paused: {error}")
        with contextlib.suppress(BusyError):  # somebody else writes just now; the next run drops them
            self.applier.forget_old(self.config.undo.keep)
            self.applier.drop_blobs()
        return warnings

    def byte_progress(self) -> Callable[[int, int], None] | None:
        """Return what tells the surroundings how far a scan is, or None where nobody asks."""
        progress = self.surroundings.progress
        if progress is None:
            return None

        def tell(done: int, total: int) -> None:
            progress(done, total, "transcripts")

        return tell

    def calls_per_day(self, library: LibraryName) -> float | None:
        """Return model calls a day of the library's sources over the last 30 days; None where none were seen."""
        from datetime import timedelta

        from curatord.core.affinity import speaks_of

        settings = next((s for s in self.config.libraries if s.name == library), None)
        if settings is None:
            return None
        ours = {
            placed.key for placed in self.placed_sources if speaks_of(placed.settings, settings, self.config.libraries)
        }
        ids = [state.source_id for state in self.ingest_reader.sources() if (state.host, state.path) in ours]
        now = self.clock.now()
        rate = self.ingest_reader.calls_per_day(ids, since=now - timedelta(days=30), until=now) if ids else 0.0
        return rate or None


def new_action_id() -> ActionId:
    """Return an id that no other action has: 12 hex digits from the system's randomness."""
    import secrets

    return ActionId(secrets.token_hex(6))

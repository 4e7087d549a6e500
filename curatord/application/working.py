"""Commands that work: a scan and a run by hand, and the daemon's service."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from curatord.adapters.true_path import true_path
from curatord.application.announcing import announced_run
from curatord.core.run_record import summary_of, to_json
from curatord.core.values import LibraryName, RunId, Trigger
from curatord.errors import BusyError, ConfigError, StateError, UsageError
from curatord.passes.interrupted_runs import finish_interrupted
from curatord.passes.run import RunOrder

if TYPE_CHECKING:
    from curatord.adapters.control_server import ControlServer
    from curatord.adapters.metrics_server import MetricsServer
    from curatord.daemon import Daemon
    from curatord.wiring import Parts

__all__ = ["Service", "manual_order", "recover", "reload", "run", "run_told_by", "scan", "serve"]


def scan(parts: Parts, stop: Callable[[], bool]) -> dict[str, Any]:
    """Ingest up to now, look at the libraries, and return the contract's `scan`."""
    from curatord.application.distilling import judge

    recover(parts)
    report = parts.scan(stop, parts.byte_progress())
    parts.look(remember=True)
    judge(parts)
    return report.as_json()


def manual_order(parts: Parts, *, dry_run: bool, respect_gates: bool, llm: bool, library: str | None) -> RunOrder:
    """
    Return the order of a run by hand.

    Raises:
        UsageError: There is no such library.
    """
    if library is not None and all(settings.name != library for settings in parts.config.libraries):
        names = ", ".join(settings.name for settings in parts.config.libraries) or "none"
        raise UsageError(f"there is no library {library!r}", hint=f"configured are: {names}")
    return RunOrder(
        trigger=Trigger.MANUAL,
        dry_run=dry_run,
        respect_gates=respect_gates,
        llm=llm,
        library=LibraryName(library) if library is not None else None,
    )


def run(
    parts: Parts, order: RunOrder, *, stop: Callable[[], bool], alive: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Do one whole curation by hand and return the value of its run.json."""
    if order.dry_run:
        parts.database  # noqa: B018 - opened for writing before anything is made from it; nothing else is mended
    else:
        recover(parts)
    return to_json(announced_run(parts, order, stop=stop, alive=alive))


def run_told_by(parts: Parts, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of run.json of a run that the daemon did for us, from its folder; *answer* is the daemon's."""
    closed = answer.get("closed")
    if isinstance(closed, dict):
        return closed  # its gates were, so there is no folder
    return parts.folders.read(RunId(str(answer["run_id"])))


def reload(parts: Parts) -> dict[str, Any]:
    """Have the running daemon read its configuration again, and return changes."""
    from curatord.adapters.instance import running_daemon
    from curatord.application.handing import hand_over

    changes: dict[str, Any] = {"done": [], "unchanged": [], "skipped": [], "failed": []}
    daemon = running_daemon(parts.state_dir)
    if not daemon["alive"]:
        reason = "none is running; it reads the configuration when it starts"
        return {**changes, "unchanged": [{"skill": "daemon", "reason": reason}]}
    handed = hand_over(parts, "reload", {}, same_config=False)
    if handed is None:
        if not isinstance(daemon.get("pid"), int):
            raise BusyError("the daemon is only just starting", hint="try again")
        os.kill(daemon["pid"], signal.SIGHUP)
        row = {"skill": "daemon", "what": "asked to by a signal; its log tells what came of it", "action": None}
        return {**changes, "done": [row]}
    found = list(handed.value["changed"])
    if not found:
        return {**changes, "unchanged": [{"skill": "daemon", "reason": "the configuration says what it said before"}]}
    return {**changes, "done": [{"skill": "daemon", "what": line, "action": None} for line in found]}


def recover(parts: Parts) -> None:
    """Bring to an end what a kill left: unfinished actions, then runs that still say `running`."""
    from curatord.passes.agreement import agree  # a dry run brings nothing to an end

    parts.database  # noqa: B018 - opened for writing before anything is made from it
    now = parts.clock.now()
    recovered = parts.applier.recover(now=now)
    for entry in recovered.finished:
        parts.log.info("action.finished_after_kill", action=entry.action_id, summary=entry.summary)
    for entry, why in recovered.dropped:
        parts.log.info("action.dropped_after_kill", action=entry.action_id, summary=entry.summary, reason=why)
    for conflict, why in recovered.conflicts:
        action = getattr(conflict, "action_id", None) or getattr(conflict, "path", None)
        parts.log.error("action.conflict", action=action, reason=why)
    try:
        agree(parts.decisions, parts.store, parts.applier.mutator)
    except BusyError:
        pass  # whoever holds the lock, or the next start, does it
    except StateError as error:  # whatever has something to change stops because of it, and says so itself
        parts.log.warning("decisions.unreadable", reason=str(error))
    try:
        with parts.one_run():
            interrupted = finish_interrupted(parts.curation.store, parts.curation.folders, now)
    except BusyError:
        return  # a run is at work; it is not interrupted
    for run_id in interrupted:
        parts.log.warning("run.interrupted", run_id=run_id)


def serve(parts: Parts) -> int:
    """Be the daemon until a signal, and return the exit code."""
    from curatord.adapters.control_server import ControlServer
    from curatord.adapters.priority import stand_back
    from curatord.adapters.service_manager import ServiceManager
    from curatord.daemon import Daemon
    from curatord.desk import FrontDesk

    state_dir = parts.make_state_dir()
    stand_back(nice=parts.config.daemon.nice, io=parts.config.daemon.io)
    service = Service(parts)
    return Daemon(
        app=service,
        clock=parts.clock,
        log=parts.log,
        manager=ServiceManager(os.environ),
        control=lambda daemon: _Doors(ControlServer(state_dir, FrontDesk(daemon, service), parts.log), service, daemon),
    ).run()


class _Doors:
    """What others may come in by, opened once no other daemon can be there: orders, and figures."""

    def __init__(self, control: ControlServer, service: Service, daemon: Daemon) -> None:
        self._control = control
        self._service = service
        self._daemon = daemon

    def start(self) -> None:
        self._control.start()
        self._service.open_metrics(self._daemon.told)

    def check(self) -> None:
        self._control.check()
        self._service.check_metrics()

    def stop(self) -> None:
        self._control.stop()
        self._service.close_metrics()


class Service:
    """Fills the protocols `curatord.daemon.DaemonApp` and, for its socket's threads, `curatord.desk.DeskApp`."""

    def __init__(self, parts: Parts) -> None:
        from curatord import __version__
        from curatord.application.metering import Meter
        from curatord.application.narrating import Narrator
        from curatord.logs import Repeating

        self._parts = parts
        self._meter = Meter(version=__version__, now=parts.clock.now)
        self._metrics: MetricsServer | None = None
        self._live: Callable[[], Mapping[str, Any]] = dict
        parts.narrator = Narrator(parts.log, Repeating(parts.log, parts.clock.now), self._meter)

    @property
    def state_dir(self) -> Path:
        """Where the state lives."""
        return self._parts.state_dir

    @property
    def rescan_every_s(self) -> float:
        """Seconds between two full rescans."""
        return self._parts.config.daemon.rescan_every.total_seconds()

    @property
    def watch_mode(self) -> Literal["auto", "events", "poll"]:
        """The configured way of watching."""
        return self._parts.config.daemon.watch

    def watch_roots(self) -> Sequence[Path]:
        """Return the folders and files whose changes matter: the transcripts, where they are in this round."""
        paths: list[str] = []
        for source in self._parts.opened_sources:
            narrowed: Callable[[], Sequence[str]] | None = getattr(source, "watch_paths", None)
            paths += [source.path] if narrowed is None else narrowed()
        return [Path(path) for path in paths]

    @property
    def curated(self) -> Sequence[str]:
        """The paths of the libraries that may be changed."""
        return [settings.path for settings in self._parts.config.libraries if settings.manage != "none"]

    @property
    def figures_at(self) -> str | None:
        """Where figures may be asked for just now."""
        return self._metrics.listen if self._metrics is not None and self._metrics.listening else None

    def begin_round(self) -> None:
        """Forget what was learnt of where things lie."""
        self._parts.begin_round()

    def recover(self) -> None:
        """Bring every unfinished action and run to an end."""
        recover(self._parts)

    def rescan(self, *, stop: Callable[[], bool], alive: Callable[[], None]) -> Sequence[str]:
        """Scan all sources and return the paths, links followed, that had changed since they were last read."""
        self._parts.renew_database()
        try:
            report = self._parts.scan(stop, lambda _done, _total: alive(), lazily=True)
        except BusyError:
            return []  # somebody scans by hand, which does just as well; the next tick looks again
        if not report.changed_paths:
            return []
        roots = [(source.path.rstrip("/"), true_path(source.path)) for source in self._parts.opened_sources]
        return [_moved(path, roots) or path for path in report.changed_paths]

    def scan_paths(self, paths: Sequence[str], *, stop: Callable[[], bool]) -> None:
        """Scan the sessions in *paths* alone."""
        from curatord.passes.ingest import ingest_paths

        parts = self._parts
        for source in parts.opened_sources:
            if stop():
                return
            # Events name paths with all links followed; the store knows them below the root as it is configured.
            root = source.path.rstrip("/")
            names = [(root, root), (true_path(root), root)]
            ours = [ours for path in paths if (ours := _moved(path, names)) is not None]
            if ours:
                report = ingest_paths(
                    source,
                    ours,
                    parts.ingest_store,
                    clock=parts.clock,
                    quiet=parts.config.gates.session_quiet,
                    stop=stop,
                )
                parts.observer.scanned(report, whole=False)

    def work_if_due(self, *, stop: Callable[[], bool], alive: Callable[[], None]) -> str | None:
        """Ask the gates, do a run where they are open, else distil what is due; return its summary."""
        from curatord.application.distilling import batch

        order = RunOrder(trigger=Trigger.SCHEDULE, respect_gates=True)
        try:
            with self._parts.own_errors():
                record = announced_run(self._parts, order, stop=stop, alive=alive)
            if record.run_id:
                return summary_of(record)
            with self._parts.own_errors():
                return batch(self._parts, stop=stop, alive=alive)
        except BusyError:
            return None  # somebody runs one by hand; the next tick asks again
        finally:
            self._measure()

    def reload(self) -> Sequence[str]:
        """Read the configuration again, take it over as a whole, and return what is different."""
        config = self._parts.reread()
        try:
            self._listen(config.metrics.listen)  # the last thing that can fail, and nothing has changed by then
        except ConfigError as error:
            # What may pass for a start, which is tried again, is for whoever ordered this a place to be chosen better.
            error.exit_code = ConfigError.exit_code
            raise
        return self._parts.take_over(config)

    def open_metrics(self, live: Callable[[], Mapping[str, Any]]) -> None:
        """
        Let figures be asked for, where that is configured; *live* is what the daemon says of itself.

        Raises:
            ConfigError: Nobody can listen there.
        """
        self._live = live
        self._listen(self._parts.config.metrics.listen)

    def check_metrics(self) -> None:
        """Listen anew where that was broken."""
        if self._metrics is not None:
            self._metrics.check()

    def close_metrics(self) -> None:
        """Answer no more."""
        if self._metrics is not None:
            self._metrics.stop()

    def _listen(self, wanted: str | None) -> None:
        """Serve figures at *wanted* and nowhere else; where that cannot be, everything stays as it was."""
        before = self._metrics
        if wanted == (before.listen if before is not None else None):
            return
        after = None
        if wanted is not None:
            from curatord.adapters.metrics_server import MetricsServer
            from curatord.core.metrics import exposition

            after = MetricsServer(wanted, lambda: exposition(self._meter.families(self._live())), self._parts.log)
            after.start()
            self._parts.log.info("metrics.listening", listen=wanted)
        self._metrics = after
        if before is not None:
            before.stop()

    def _measure(self) -> None:
        """Read the figures that stand in the store, where somebody may ask for them."""
        if self._metrics is not None:
            from curatord.application.metering import gauges_of

            self._meter.note(gauges_of(self._parts))

    def obey(
        self,
        command: str,
        arguments: Mapping[str, Any],
        *,
        stop: Callable[[], bool],
        alive: Callable[[], None],
        progress: Callable[[int, int | None, str], None],
    ) -> Any:
        """Do what somebody ordered, as the command line would do it."""
        parts = self._parts
        parts.begin_round()
        parts.renew_database()

        def asked() -> bool:
            alive()
            return stop()

        with parts.telling(progress), parts.own_errors():
            if command == "scan":
                return scan(parts, asked)
            order = manual_order(
                parts,
                dry_run=arguments.get("dry_run", False),
                respect_gates=arguments.get("respect_gates", False),
                llm=arguments.get("llm", True),
                library=arguments.get("library"),
            )
            value = run(parts, order, stop=stop, alive=alive)
        self._measure()
        return {"run_id": value["run_id"]} if value["run_id"] else {"closed": value}

    @property
    def version(self) -> str:
        """Which curatord this is."""
        from curatord import __version__

        return __version__

    @property
    def config_fingerprint(self) -> str:
        """Which configuration is in force."""
        return self._parts.config.fingerprint

    def is_run_at_work(self) -> bool:
        """Return whether a run holds the lock of all runs."""
        from curatord.adapters.lock import is_run_at_work

        return is_run_at_work(self._parts.state_dir)

    def aside(self, command: str) -> Any:
        """Pause or resume, with a database connection of its own: it is called from another thread than the worker."""
        from curatord.application.deciding import pause, resume

        with self._parts.apart() as parts:
            return pause(parts) if command == "pause" else resume(parts)


def _moved(path: str, roots: Sequence[tuple[str, str]]) -> str | None:
    """Return *path* with the first of *roots* that it lies below, or is, put in its place by the other name of it."""
    for root, other in roots:
        if path == root:
            return other
        if path.startswith(root + "/"):
            return other + path[len(root) :]
    return None

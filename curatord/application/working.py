"""Commands that work: a run by hand, and the daemon's service."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from curatord.core.run_record import summary_of, to_json
from curatord.core.values import LibraryName, Trigger
from curatord.errors import BusyError, UsageError
from curatord.passes.run import RunOrder

if TYPE_CHECKING:
    from curatord.wiring import Parts

__all__ = ["Service", "run", "serve"]


def run(parts: Parts, *, dry_run: bool, respect_gates: bool, llm: bool, library: str | None) -> dict[str, Any]:
    """Do one whole curation by hand and return the value of its run.json."""
    if library is not None and all(settings.name != library for settings in parts.config.libraries):
        names = ", ".join(settings.name for settings in parts.config.libraries) or "none"
        raise UsageError(f"there is no library {library!r}", hint=f"configured are: {names}")
    if dry_run:
        parts.database  # noqa: B018 - opened for writing before anything is made from it; nothing else is mended
    else:
        recover(parts)
    order = RunOrder(
        trigger=Trigger.MANUAL,
        dry_run=dry_run,
        respect_gates=respect_gates,
        llm=llm,
        library=LibraryName(library) if library is not None else None,
    )
    record = parts.curation.run(order, stop=parts.surroundings.stop)
    return to_json(record)


def recover(parts: Parts) -> None:
    """Bring to an end what a kill left: unfinished actions, then runs that still say `running`."""
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
        with parts.one_run():
            interrupted = parts.curation.finish_interrupted(now)
    except BusyError:
        return  # a run is at work; it is not interrupted
    for run_id in interrupted:
        parts.log.warning("run.interrupted", run_id=run_id)


def serve(parts: Parts) -> int:
    """Be the daemon until a signal, and return the exit code."""
    from curatord.adapters.service_manager import ServiceManager
    from curatord.daemon import Daemon

    parts.make_state_dir()
    service = Service(parts)
    return Daemon(app=service, clock=parts.clock, log=parts.log, manager=ServiceManager(os.environ)).run()


class Service:
    """Fills the protocol `curatord.daemon.DaemonApp`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

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
        roots = [(source.path.rstrip("/"), os.path.realpath(source.path)) for source in self._parts.opened_sources]
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
            names = [(root, root), (os.path.realpath(root), root)]
            ours = [ours for path in paths if (ours := _moved(path, names)) is not None]
            if ours:
                ingest_paths(
                    source,
                    ours,
                    parts.ingest_store,
                    clock=parts.clock,
                    quiet=parts.config.gates.session_quiet,
                    stop=stop,
                )

    def work_if_due(self, *, stop: Callable[[], bool], alive: Callable[[], None]) -> str | None:
        """Ask the gates, do a run where they are open, else distil what is due; return its summary."""
        from curatord.application.distilling import batch

        order = RunOrder(trigger=Trigger.SCHEDULE, respect_gates=True)
        try:
            with self._parts.own_errors():
                record = self._parts.curation.run(order, stop=stop, alive=alive)
        except BusyError:
            return None  # somebody runs one by hand; the next tick asks again
        if record.run_id:
            return summary_of(record)
        with self._parts.own_errors():
            return batch(self._parts, stop=stop, alive=alive)

    def reload(self) -> None:
        """Read the configuration again and take it over as a whole."""
        self._parts.reload()


def _moved(path: str, roots: Sequence[tuple[str, str]]) -> str | None:
    """Return *path* with the first of *roots* that it lies below, or is, put in its place by the other name of it."""
    for root, other in roots:
        if path == root:
            return other
        if path.startswith(root + "/"):
            return other + path[len(root) :]
    return None

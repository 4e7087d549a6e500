"""
A Hermes home, read: the files beside and around its library, as the facts they state.

Only reading is here; what curatord writes into Hermes' files goes through the journal. A file that is not there says
nothing. One that is there and cannot be read is told, and where it protects skills the whole library is protected.
Nothing is locked for reading: Hermes replaces these files by rename, so each is seen whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

from curatord.adapters.small_files import read_small
from curatord.core.hermes_files import (
    CuratorState,
    HermesConfig,
    HermesFacts,
    HubEntry,
    LedgerEntry,
    RunClaim,
    ScheduleReference,
    UsageRow,
    parse_claim,
    parse_config,
    parse_curator_state,
    parse_hub_lock,
    parse_ledger_line,
    parse_manifest,
    parse_schedule,
    parse_suppressed,
    parse_usage,
)
from curatord.errors import OwnershipError

__all__ = ["HermesFiles", "HermesHome"]

LEDGER_TAIL_BYTES = 16 * 1024 * 1024  # Hermes itself keeps 5 MiB by default

T = TypeVar("T")


class HermesFiles:
    """
    What the last reading made of each file's bytes, kept for the next: many changes in a row ask for the same files.

    The bytes are read each time and compared, so nothing that was changed is missed.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[bytes, object]] = {}

    def parsed(self, path: str, data: bytes, parse: Callable[[bytes], T]) -> T:
        """Return *parse* of *data*, which was read from *path* now; what is returned must not be changed."""
        last = self._last.get(path)
        if last is not None and last[0] == data:
            return last[1]  # type: ignore[return-value]  # each path has one parser
        value = parse(data)
        self._last[path] = (data, value)
        return value


class HermesHome:
    """
    The home whose library lies at *skills* (absolute path, as configured); its other files are beside that folder.

    A library with Hermes' files that is not called `skills` in a home is read alike: what is not there says nothing.
    """

    def __init__(self, skills: str, files: HermesFiles | None = None) -> None:
        self.skills = skills.rstrip("/")
        self._files = HermesFiles() if files is None else files
        self.home = os.path.dirname(self.skills)  # noqa: PTH120 - text in, text out: nothing is looked up

    def read(self) -> HermesFacts:
        """Return what all files but the ledger say now."""
        reading = _Reading(self._files)
        usage, usage_warnings = reading.protecting(f"{self.skills}/.usage.json", parse_usage, _no_usage())
        bundled: frozenset[str] = reading.protecting(f"{self.skills}/.bundled_manifest", parse_manifest, frozenset())
        hub: tuple[HubEntry, ...] = reading.protecting(f"{self.skills}/.hub/lock.json", parse_hub_lock, ())
        config = reading.protecting(f"{self.home}/config.yaml", parse_config, HermesConfig())
        suppressed: frozenset[str] = reading.told(f"{self.skills}/.curator_suppressed", parse_suppressed, frozenset())
        state, state_warnings = reading.told(f"{self.skills}/.curator_state", parse_curator_state, _no_curator_state())
        schedule, schedule_warnings, schedule_unreadable = self._schedule()
        return HermesFacts(
            home=self.home,
            usage=usage,
            bundled=bundled,
            hub=hub,
            suppressed=suppressed,
            curator=state,
            claim=self._claim(reading),
            schedule=schedule,
            config=self._expanded(config),
            protected=tuple(reading.protected),
            schedule_unreadable=schedule_unreadable,
            warnings=(*usage_warnings, *state_warnings, *schedule_warnings, *reading.warnings),
        )

    def ledger(self, since: datetime) -> Iterator[LedgerEntry]:
        """
        Yield the changes that Hermes recorded at or after *since*, oldest first, from the newest 16 MiB of its ledger.

        Lines that cannot be read are passed over: the ledger can only explain a change, never license one.
        """
        try:
            data = read_small(f"{self.skills}/.curator_ledger.jsonl", tail=LEDGER_TAIL_BYTES)
        except OwnershipError:
            return
        for line in (data or b"").split(b"\n"):
            entry = parse_ledger_line(line) if line.strip() else None
            if entry is not None and entry.at >= since:
                yield entry

    def _schedule(self) -> tuple[tuple[ScheduleReference, ...], list[str], str | None]:
        try:
            data = read_small(f"{self.home}/cron/jobs.json")
            references, warnings = parse_schedule(data) if data is not None else ((), [])
        except OwnershipError as error:
            return (), [], str(error)
        return references, warnings, None

    def _claim(self, reading: _Reading) -> RunClaim | None:
        path = f"{self.skills}/.locks/curator-run"
        try:
            modified_at = datetime.fromtimestamp(os.lstat(path).st_mtime_ns // 1_000_000_000, UTC)
        except FileNotFoundError:
            return None
        except OSError as error:
            reading.warnings.append(f"{path} cannot be read: {error.strerror}")
            return None
        data = reading.told(path, bytes, b"")
        return parse_claim(data, modified_at)

    def _expanded(self, config: HermesConfig) -> HermesConfig:
        paths = (os.path.expandvars(os.path.expanduser(path)) for path in config.external_dirs)  # noqa: PTH111 - text
        return HermesConfig(
            curator_enabled=config.curator_enabled,
            external_dirs=tuple(os.path.normpath(os.path.join(self.home, path)) for path in paths),  # noqa: PTH118
        )


class _Reading:
    """Collects what could not be read."""

    def __init__(self, files: HermesFiles) -> None:
        self._files = files
        self.protected: list[str] = []
        self.warnings: list[str] = []

    def protecting(self, path: str, parse: Callable[[bytes], T], missing: T) -> T:
        """Return *parse* of the file at *path*; where it cannot be read, the library is protected."""
        return self._read(path, parse, missing, self.protected)

    def told(self, path: str, parse: Callable[[bytes], T], missing: T) -> T:
        """Return *parse* of the file at *path*; where it cannot be read, that is only told."""
        return self._read(path, parse, missing, self.warnings)

    def _read(self, path: str, parse: Callable[[bytes], T], missing: T, words: list[str]) -> T:
        try:
            data = read_small(path)
            return missing if data is None else self._files.parsed(path, data, parse)
        except OwnershipError as error:
            words.append(str(error))
            return missing


def _no_usage() -> tuple[dict[str, UsageRow], list[str]]:
    return {}, []


def _no_curator_state() -> tuple[CuratorState, list[str]]:
    return CuratorState(), []

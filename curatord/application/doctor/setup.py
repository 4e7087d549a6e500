"""Examinations of the ground: version, configuration, prompts, state folder, database, disk, clock."""

from __future__ import annotations

import platform
import sqlite3
import sys
from collections.abc import Sequence

from curatord.application.doctor.ward import Ward
from curatord.core.doctor import Check, Issue, check_of
from curatord.core.doctor.setup import (
    VersionFacts,
    check_clock,
    check_config,
    check_database,
    check_disk,
    check_state,
    check_version,
)

__all__ = ["clock", "config", "database", "disk", "prompts", "state", "version", "versions"]


def version(_ward: Ward) -> Sequence[Check]:
    """Return whether the programs are new enough."""
    return [versions()]


def versions() -> Check:
    """Return whether the programs are new enough; nothing else is looked at."""
    from curatord import __version__
    from curatord.adapters.sources.compressed import zstd_is_there

    lacking = []
    if not zstd_is_there():
        lacking.append("transcripts compressed with zstd cannot be read: the package `backports.zstd` is not installed")
    facts = VersionFacts(
        curatord=__version__,
        python=tuple(sys.version_info[:3]),
        sqlite=sqlite3.sqlite_version_info,
        platform="win32" if sys.platform == "win32" else f"{platform.system()} {platform.release()}",
        lacking=lacking,
    )
    return check_version(facts)


def config(ward: Ward) -> Sequence[Check]:
    """Return which configuration is in force."""
    from curatord.loading import places

    looked_at = places(ward.parts.environ).looked_at
    return [check_config(ward.parts.config.origin, ward.notices, looked_at)]


def prompts(ward: Ward) -> Sequence[Check]:
    """Return whether the user's own prompts can be used; nothing where there are none."""
    folder = ward.parts.config.prompts
    if folder is None:
        return []
    from importlib.resources import files

    from curatord.adapters.prompts import PromptFiles
    from curatord.errors import ConfigError

    own, issues = [], []
    for packaged in sorted(files("curatord.prompts").iterdir(), key=lambda file: file.name):
        if not packaged.name.endswith((".md", ".txt")):
            continue
        try:
            prompt = PromptFiles(folder).read(packaged.name)
        except ConfigError as error:
            mend = error.hint or "mend it, or remove it: then the packaged one counts"
            issues.append(Issue(level="failure", words=str(error), mend=mend))
            continue
        if prompt.own:
            own.append(packaged.name)
    return [check_of("prompts", f"{folder}: {', '.join(own) or 'none of the packaged ones is replaced'}", issues)]


def state(ward: Ward) -> Sequence[Check]:
    """Return how the state folder is."""
    from curatord.adapters.vitals.state_folder import look_at_state

    return [check_state(look_at_state(ward.parts.state_dir))]


def database(ward: Ward) -> Sequence[Check]:
    """Return how the database is."""
    return [check_database(ward.database)]


def disk(ward: Ward) -> Sequence[Check]:
    """Return whether there is room where we write."""
    from curatord.adapters.vitals.state_folder import look_at_disks

    places = [(str(ward.parts.state_dir), "the state")]
    for settings, library in ward.parts.libraries:
        if settings.manage != "none":
            root, _, archive = library.place()
            places += [(root, f"the library {settings.name}"), (archive, f"the library {settings.name}")]
    return [check_disk(look_at_disks(places))]


def clock(ward: Ward) -> Sequence[Check]:
    """Return whether the clock can be right."""
    from curatord.adapters.vitals.database_file import newest_times

    newest = [state.newest_record_at for state in ward.counted.values() if state.newest_record_at is not None]
    stored = newest_times(ward.parts.looking_database)
    record = max(newest, default=None)
    return [check_clock(ward.now, newest_record_at=record, newest_stored=stored, forgotten=ward.forgot)]

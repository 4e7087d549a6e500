"""
`curatord doctor`: a list of examinations, each by itself.

An examination is a function that takes the `Ward` and returns checks; the list below is all there is to add one. What
one cannot find out for an expected reason (`CuratorError`, the system, SQLite) is its own failing check, and the others
go on, so that a broken machine is told of as a whole.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from curatord.application.doctor.distil import distil
from curatord.application.doctor.libraries import libraries
from curatord.application.doctor.models import models
from curatord.application.doctor.outlets import metrics, notices
from curatord.application.doctor.running import daemon, others, service
from curatord.application.doctor.setup import clock, config, database, disk, prompts, state, version
from curatord.application.doctor.transcripts import transcripts
from curatord.application.doctor.ward import Ward
from curatord.application.doctor.watching import events, inotify
from curatord.core.doctor import Check
from curatord.core.doctor.setup import check_unreadable_config
from curatord.errors import ConfigError, CuratorError

if TYPE_CHECKING:
    from curatord.wiring import Parts

__all__ = ["CHECKS", "Examination", "doctor", "doctor_without_config"]


class Examination(NamedTuple):
    """One entry of the list: *name* is what its check is called where it cannot be made."""

    name: str
    examine: Callable[[Ward], Sequence[Check]]


CHECKS: tuple[Examination, ...] = (
    Examination("version", version),
    Examination("config", config),
    Examination("prompts", prompts),
    Examination("state", state),
    Examination("database", database),
    Examination("disk", disk),
    Examination("clock", clock),
    Examination("sources", transcripts),
    Examination("libraries", libraries),
    Examination("events", events),
    Examination("inotify", inotify),
    Examination("model", models),
    Examination("distilling", distil),
    Examination("notices", notices),
    Examination("metrics", metrics),
    Examination("daemon", daemon),
    Examination("others", others),
    Examination("service", service),
)


def doctor(parts: Parts, *, notices: Sequence[str], llm: bool) -> list[dict[str, Any]]:
    """
    Return the contract's `doctor`.

    Args:
        parts: Only ever opened for looking.
        notices: What the reading of the configuration had to say.
        llm: Whether models are asked.
    """
    parts.log  # noqa: B018 - what is said of retries belongs on standard error, and not before the answer
    progress = parts.surroundings.progress
    checks: list[Check] = []
    with Ward(parts, notices=notices, asks=llm) as ward:
        for number, examination in enumerate(CHECKS):
            if parts.surroundings.stop():
                break
            if progress is not None:
                progress(number, len(CHECKS), examination.name)
            checks += _examined(examination, ward)
    return [check.as_json() for check in checks]


def _examined(examination: Examination, ward: Ward) -> Sequence[Check]:
    try:
        return examination.examine(ward)
    except (CuratorError, OSError, sqlite3.Error) as error:
        mend = getattr(error, "hint", "") or "mend that first, then ask again"
        return [Check(check=examination.name, level="failure", found=f"cannot be examined: {error}", mend=mend)]


def doctor_without_config(error: ConfigError) -> list[dict[str, Any]]:
    """Return what can be told where the configuration cannot be read: why, and what needs none."""
    from curatord.application.doctor.setup import versions

    return [versions().as_json(), check_unreadable_config(str(error), error.hint).as_json()]

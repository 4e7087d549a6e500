"""Examinations of what runs: the daemon, other daemons, the service."""

from __future__ import annotations

from collections.abc import Sequence

from curatord.application.doctor.ward import Ward
from curatord.core.doctor import Check
from curatord.core.doctor.running import DaemonFacts, check_daemon, check_others, check_service
from curatord.core.small_facts import PAUSED_SINCE

__all__ = ["daemon", "others", "service"]


def daemon(ward: Ward) -> Sequence[Check]:
    """Return whether the daemon is well."""
    from curatord import __version__
    from curatord.adapters.instance import silence_of

    last = ward.parts.overview.last_run()
    told = ward.daemon
    silent = told["last_error"] if told.get("control") == "silent" else None
    facts = DaemonFacts(
        alive=told["alive"],
        pid=told.get("pid"),
        since=told.get("since"),
        activity=told.get("activity"),
        silence=silence_of(told, ward.now) or silent,
        trouble=None if silent else told.get("last_error"),
        paused=ward.parts.store.meta(PAUSED_SINCE) is not None,
        version=told.get("version"),
        ours=__version__,
        last_run_failed=last.summary if last is not None and last.outcome == "failed" else None,
    )
    return [check_daemon(facts)]


def others(ward: Ward) -> Sequence[Check]:
    """Return whether other daemons of this user run."""
    from curatord.adapters.vitals.daemons import other_daemons

    ours = [(settings.name, settings.path) for settings in ward.parts.config.libraries]
    found, can_see = other_daemons(ward.parts.state_dir, ours)
    return [check_others(found, can_see=can_see)]


def service(ward: Ward) -> Sequence[Check]:
    """Return whether a service is installed."""
    from curatord.adapters.vitals.service_files import look_for_services

    return [check_service(look_for_services(ward.parts.home, ward.parts.environ.get("XDG_CONFIG_HOME")))]

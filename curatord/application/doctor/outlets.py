"""Examinations of the ways out: notices and figures; no line for what is not configured."""

from __future__ import annotations

from collections.abc import Sequence

from curatord.application.doctor.ward import Ward
from curatord.core.doctor import Check
from curatord.core.doctor.outlets import MetricsFacts, NoticeFacts, check_metrics, check_notices

__all__ = ["metrics", "notices"]


def notices(ward: Ward) -> Sequence[Check]:
    """Return whether a notice would arrive by file and command."""
    settings = ward.parts.config.notices
    if settings.file is None and settings.command is None:
        return []
    from curatord.adapters.vitals.outlets import look_at_program, why_unwritable

    facts = NoticeFacts(
        file=settings.file,
        fault=None if settings.file is None else why_unwritable(settings.file),
        program=None
        if settings.command is None
        else look_at_program(settings.command, ward.parts.environ, ward.parts.home),
    )
    return [check_notices(facts)]


def metrics(ward: Ward) -> Sequence[Check]:
    """Return whether figures can be served; the place is tried unless our own daemon has it."""
    listen = ward.parts.config.metrics.listen
    if listen is None:
        return []
    from curatord.adapters.metrics_server import why_not_there

    daemon = ward.daemon
    serving = daemon.get("figures_at")
    facts = MetricsFacts(
        listen=listen,
        refused=None if serving == listen else why_not_there(listen),
        alive=daemon["alive"],
        serving=serving,
        told="figures_at" in daemon,
        silent=daemon.get("control") == "silent",
    )
    return [check_metrics(facts)]

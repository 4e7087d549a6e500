"""
Logging: one event per thing that happened, key and value, to standard error.

`Log` is what the shell logs with; structlog is behind it, imported only where something is logged, since a command
that only looks should start quickly. Core never logs, it returns reasons.
"""

from __future__ import annotations

import sys
from typing import Any, Literal, Protocol

__all__ = ["Log", "set_up"]


class Log(Protocol):
    """What this project uses of a structured logger; *event* is `thing.happened`, values carry units in their names."""

    def debug(self, event: str, **values: Any) -> Any:
        """Say what helps to find a fault."""
        ...

    def info(self, event: str, **values: Any) -> Any:
        """Say what happened."""
        ...

    def warning(self, event: str, **values: Any) -> Any:
        """Say what somebody should look at some day."""
        ...

    def error(self, event: str, **values: Any) -> Any:
        """Say what went wrong."""
        ...


def set_up(*, form: Literal["text", "json"], verbose: bool) -> Log:
    """
    Return the logger of this process, set up to write *form* to standard error.

    Under a service manager's journal (which stamps each line itself) text lines carry no time and no colour.
    """
    import logging
    import os

    import structlog

    from curatord.core.inert import visible

    def inert(_logger: Any, _method: str, event: Any) -> Any:
        return {key: visible(value) if isinstance(value, str) else value for key, value in event.items()}

    terminal = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    processors: list[Any] = [structlog.contextvars.merge_contextvars, structlog.processors.add_log_level]
    if form == "json" or not os.environ.get("JOURNAL_STREAM"):
        processors.append(structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"))
    if form == "json":
        # The traceback's lines are data here; the console renderer below formats them itself.
        processors += [structlog.processors.format_exc_info, inert, structlog.processors.JSONRenderer(default=str)]
    else:
        processors += [
            inert,
            structlog.dev.ConsoleRenderer(
                colors=terminal, timestamp_key="at", exception_formatter=structlog.dev.plain_traceback
            ),
        ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if verbose else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    # Libraries that log by the standard way are heard from warnings upwards, on the same stream.
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
    log: Log = structlog.get_logger()
    return log

"""
Logging: one event per thing that happened, key and value, to standard error.

`Log` is what the shell logs with; structlog is behind it, imported only where something is logged, since a command
that only looks should start quickly. Core never logs, it returns reasons. Names of events are `thing.happened`, names
of values carry their units (`duration_s`, `size_bytes`). Whatever is said goes through a last door on its way out:
secrets are replaced, and what could act on a terminal is shown as an escape.

`bound` adds values, a run's id above all, to everything that is said meanwhile. It holds for all threads: one thing is
done at a time, and the threads that ask a model for it belong to it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

from curatord.core.repetition import Repeats

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Log", "Repeating", "bound", "set_up"]


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


_bound: dict[str, Any] = {}


@contextmanager
def bound(**values: Any) -> Iterator[None]:
    """Add *values* to every event of this process for as long as this lasts."""
    _bound.update(values)
    try:
        yield
    finally:
        for name in values:
            _bound.pop(name, None)


class Repeating:
    """
    Says trouble that comes again and again seldom, and its end once (`core.repetition`).

    An *event* `source.failed` ends as `source.recovered`.
    """

    def __init__(self, log: Log, now: Callable[[], datetime]) -> None:
        self._log = log
        self._now = now
        self._lock = threading.Lock()  # models are asked from several threads
        self._repeats = Repeats()

    def met(self, event: str, key: str, text: str, **values: Any) -> None:
        """Take note that *key* is in the trouble that *text* tells."""
        with self._lock:
            self._repeats, times = self._repeats.met(_mark(event, key), text, self._now())
        if times is not None:
            self._log.warning(event, **values, text=text, times=times)

    def gone(self, event: str, key: str, **values: Any) -> None:
        """Take note that *key* is not, or no longer, in trouble."""
        self._end(_mark(event, key), values)

    def whole(self, event: str, keys: Mapping[str, Mapping[str, Any]]) -> None:
        """Take note that a whole look met *event* for no others than *keys*: the rest has recovered."""
        ours = _mark(event, "")
        for mark in self._repeats.others([_mark(event, key) for key in keys]):
            if mark.startswith(ours):
                self._end(mark, {"what": mark.removeprefix(ours)})

    def _end(self, mark: str, values: Mapping[str, Any]) -> None:
        with self._lock:
            self._repeats, over = self._repeats.gone(mark, self._now())
        if over is not None:
            event = mark.partition("\0")[0].rpartition(".")[0] + ".recovered"
            self._log.info(event, **values, after=over.times, duration_s=round(over.duration_s, 1), was=over.text)


def _mark(event: str, key: str) -> str:
    return f"{event}\0{key}"


def set_up(*, form: Literal["text", "json"], verbose: bool) -> Log:
    """
    Return the logger of this process, set up to write *form* to standard error.

    Under a service manager's journal (which stamps each line itself) text lines carry no time and no colour.
    """
    import logging
    import os

    import structlog

    class SafeFormatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return str(_safe("", super().format(record)))

    def with_bound(_logger: Any, _method: str, event: Any) -> Any:
        return {**_bound, **event}

    def last_door(_logger: Any, _method: str, event: Any) -> Any:
        return {key: value if key in ("level", "at") else _safe(key, value) for key, value in event.items()}

    terminal = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    processors: list[Any] = [with_bound, structlog.contextvars.merge_contextvars, structlog.processors.add_log_level]
    if form == "json" or not os.environ.get("JOURNAL_STREAM"):
        processors.append(structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"))
    # A traceback becomes text before the last door, since what an exception says may hold anything.
    processors += [structlog.processors.format_exc_info, last_door]
    if form == "json":
        processors.append(structlog.processors.JSONRenderer(default=str))
    else:
        processors.append(
            structlog.dev.ConsoleRenderer(
                colors=terminal, timestamp_key="at", exception_formatter=structlog.dev.plain_traceback
            )
        )
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if verbose else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    # Libraries that log by the standard way are heard from warnings upwards, on the same stream.
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(SafeFormatter("%(name)s: %(message)s"))
    log: Log = structlog.get_logger()
    return log


def _safe(key: str, value: Any) -> Any:
    """Return *value* without secrets and without what could act on a terminal; *key* is what it is called."""
    from curatord.core.inert import visible
    from curatord.core.redact import redact_value

    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): _safe(str(name), part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_safe(key, part) for part in value]
    redacted = redact_value({key: str(value)})
    return visible(str(next(iter(redacted.values()))))

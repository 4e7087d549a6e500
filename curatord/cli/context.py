"""What a command is run with: its arguments, the two streams, the configuration and the application, both on demand."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from curatord.cli.app import App, AppFactory, Surroundings
from curatord.cli.output import Output
from curatord.cli.progress import progress_bar
from curatord.cli.stopping import Stopping
from curatord.errors import UsageError

if TYPE_CHECKING:
    from curatord.config import Loaded

__all__ = ["Context", "since"]


def open_wired_app() -> AppFactory:
    """Return the factory of `curatord.wiring`, imported only now: it knows every adapter."""
    factory: AppFactory = importlib.import_module("curatord.wiring").open_app
    return factory


class Context:
    """
    A command's surroundings.

    *factory* opens the application; tests put their own. *stopping* turns signals into a question that work asks
    between two actions.
    """

    def __init__(
        self,
        *,
        arguments: argparse.Namespace,
        out: Output,
        environ: Mapping[str, str],
        factory: AppFactory | None = None,
    ) -> None:
        self.arguments = arguments
        self.out = out
        self.environ = environ
        self.factory = factory
        self.stopping = Stopping()

    def loaded(self, *, links: bool = True) -> Loaded:
        """Return the configuration in force; raises `ConfigError`. Without *links*, no place it names is looked at."""
        from curatord.loading import load_config

        return load_config(self.arguments.config, self.environ, links=links)

    @contextmanager
    def app(self, *, loaded: Loaded | None = None, bar: str = "") -> Iterator[App]:
        """Open the application; with *bar*, show a bar of that title on a terminal while it works."""
        factory = self.factory or open_wired_app()
        with progress_bar(self.out, bar) as progress:
            surroundings = Surroundings(
                stop=self.stopping.asked,
                progress=progress,
                log_format=self.log_format,
                verbose=self.arguments.verbose,
                say=lambda text: self.out.note(("note: ", "yellow"), text),
            )
            with factory(loaded or self.loaded(), surroundings) as app:
                yield app

    @property
    def log_format(self) -> str:
        """How logs are written: the option, else `CURATORD_LOG_FORMAT`, else text."""
        said: str = self.arguments.log_format or self.environ.get("CURATORD_LOG_FORMAT", "").strip() or "text"
        if said not in ("text", "json"):
            raise UsageError(f"CURATORD_LOG_FORMAT is {said!r}", hint="text or json")
        return said

    def answer(self, value: Any, view: Any, **options: Any) -> None:
        """Print *value*: as JSON where that was asked for, else by *view*."""
        if getattr(self.arguments, "json", False):
            self.out.json(value)
        else:
            view(self.out, value, **options)


def since(said: str | None, now: datetime) -> datetime | None:
    """
    Return the moment that `--since` says: a period back from *now*, a date, or a time; a naive one is UTC.

    Raises:
        UsageError: It is none of these.
    """
    if said is None:
        return None
    from curatord.core.units import parse_duration

    try:
        return now - parse_duration(said)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        raise UsageError(
            f"--since: {said!r} is no period, date or time", hint="7d, 2026-01-31 or an ISO time"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

"""Commands that set up: config, completion, demo, try."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from curatord.cli import exits
from curatord.cli.context import Context
from curatord.core.cheap import replace
from curatord.errors import ConfigError

if TYPE_CHECKING:
    from curatord.config import Loaded

__all__ = ["completion", "config_check", "config_schema", "config_show", "demo", "man", "try_out"]


def config_show(context: Context) -> int:
    """Print the configuration in force, and where each value comes from."""
    from curatord.config.show import as_json, as_yaml

    loaded = context.loaded()
    if context.arguments.json:
        context.out.json(as_json(loaded))
    else:
        for line in as_yaml(loaded):
            context.out.line(line)
        _notices(context, loaded.notices)
    return exits.OK


def config_check(context: Context) -> int:
    """Read the configuration; an error goes its usual way, but as JSON where that was asked for."""
    try:
        loaded = context.loaded()
    except ConfigError as error:
        if not context.arguments.json:
            raise
        problem = {"file": error.file, "line": error.line, "key": error.key, "error": str(error), "hint": error.hint}
        context.out.json({"ok": False, **problem, "notices": []})
        return exits.of_error(error)
    if context.arguments.json:
        context.out.json({"ok": True, "file": loaded.config.origin, "notices": list(loaded.notices)})
    else:
        context.out.line(f"{loaded.config.origin or 'no configuration file, so the defaults'}: fine")
        _notices(context, loaded.notices)
    return exits.OK


def config_schema(context: Context) -> int:
    """Print the JSON Schema."""
    from curatord.config.schema import json_schema

    context.out.json(json_schema())
    return exits.OK


def completion(context: Context) -> int:
    """Print completions."""
    from curatord.cli.completion import completion as script

    context.out.text(script(context.arguments.shell))
    return exits.OK


def man(context: Context) -> int:
    """Print the manual page."""
    from curatord.cli.manual import manual

    context.out.text(manual())
    return exits.OK


def demo(context: Context) -> int:
    """Make a small home with a year of history, and run on it."""
    said = context.arguments.folder
    folder = Path(said).absolute() if said else Path(tempfile.mkdtemp(prefix="curatord-demo-"))
    return _demo(context, folder, run=not context.arguments.no_run)


def _demo(context: Context, folder: Path, *, run: bool = True, kept: bool = True) -> int:
    """Make the demonstration home in *folder*; *kept*: it is there afterwards, so how to go on with it is told."""
    import shlex

    from curatord.config import parse
    from curatord.demo import make_demo

    made = make_demo(folder, datetime.now(UTC))
    out = context.out
    out.line("made a demonstration home: ", (str(folder), "bold"), "" if kept else "  (removed at the end)")
    out.line(f"  {made.skills} skills and {made.sessions} sessions of a year, all of it invented")
    config = shlex.quote(str(made.config))
    code = exits.OK
    if run:
        # The demo stands by itself: neither the user's variables nor the hosts of this machine have a say.
        loaded = parse(made.config.read_bytes(), {}, file=str(made.config), home=str(folder), platform=sys.platform)
        code = _dry_run(context, loaded)
        out.line()
    if not kept:
        out.line("the demonstration home is removed again; one to play with: curatord demo DIR")
        return code
    if run:
        out.line(f"look around: curatord --config {config} skills")
        out.line(f"do it:       curatord --config {config} run, then undo last")
    else:
        out.line(f"next: curatord --config {config} run --dry-run")
    out.line(f"remove it:   rm -r {shlex.quote(str(folder))}")
    return code


def _dry_run(context: Context, loaded: Loaded) -> int:
    from curatord.cli.views.status import show_status

    with context.stopping.listening(), context.app(loaded=loaded, bar="looking") as app:
        record = app.run(dry_run=True, respect_gates=False, llm=False, library=None)
        if context.stopping.asked():
            return 128 + context.stopping.number
        report, status = app.report(record["run_id"]), app.status()
    context.out.line()
    context.out.text(report["text"])
    context.out.line()
    show_status(context.out, status)
    return exits.of_run(record)


def try_out(context: Context) -> int:
    """
    Show what curatord would do here, and change nothing.

    With a configuration, or with state of an earlier run, that is `run --dry-run`. Without, the hosts found are looked
    at with a state folder that is thrown away, so that a newcomer's machine stays as it was. Without hosts: the demo,
    which is thrown away too where no folder was named for it.
    """
    loaded = context.loaded()
    config = loaded.config
    if not config.sources and not config.libraries:
        context.out.line("no agent host was found on this machine, so here is a demonstration")
        if context.arguments.folder:
            return _demo(context, Path(context.arguments.folder).absolute())
        with _passing("curatord-demo-") as passing:
            return _demo(context, passing, kept=False)
    _notices(context, loaded.notices)
    if config.origin is not None or Path(config.state_dir).exists():
        code = _dry_run(context, loaded)
    else:
        context.out.line(f"found: {_names([source.host for source in config.sources])}; looking, changing nothing")
        with _passing("curatord-try-") as folder:
            code = _dry_run(context, replace(loaded, config=replace(config, state_dir=str(folder / "state"))))
    context.out.line()
    context.out.line("next: curatord init writes a configuration; curatord run does what was shown")
    return code


@contextmanager
def _passing(prefix: str) -> Iterator[Path]:
    """Give a folder for temporary files that is gone afterwards, also where a signal or a closed terminal ends us."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in ending}
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    # The name is known before the folder is there: a signal right behind its making finds what to remove.
    folder = Path(tempfile.gettempdir(), prefix + os.urandom(16).hex())
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_IGN)  # the removal takes a moment, and half of one would be left for ever
        shutil.rmtree(folder, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)


def _names(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names)) or "libraries only"


def _notices(context: Context, notices: Sequence[str]) -> None:
    for notice in notices:
        context.out.note(("note: ", "yellow"), notice)

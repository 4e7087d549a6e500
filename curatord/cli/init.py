"""`curatord init`: what is here, what would become of it, and a configuration that says so."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from curatord.cli import exits
from curatord.cli.context import Context
from curatord.cli.views.words import count
from curatord.core.cheap import replace
from curatord.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from curatord.adapters.discover import Discovery

__all__ = ["agreed", "init"]


def init(context: Context) -> int:
    """Find hosts and libraries, say what was found and what follows, and write a configuration where none is."""
    from curatord.loading import discover_hosts, places

    found = discover_hosts(context.environ)
    text = _config_text(found)
    output = context.arguments.output
    if output == "-":
        context.out.text(text)
        return exits.OK
    _tell_found(context, found)
    named = context.arguments.config or context.environ.get("CURATORD_CONFIG", "").strip()
    where = output or named or places(context.environ).own
    if where is None:
        raise ConfigError("no home folder is known, so there is no place for a configuration", hint="--output FILE")
    target = Path(where).absolute()
    if target.exists() or target.is_symlink():
        context.out.line(f"{target} is there already and stays as it is")
        _tell_missing(context, target, found)
        context.out.note("curatord init --output - prints what would be written now")
        return exits.OK
    if not context.arguments.yes and not agreed(context, f"write {target}?"):
        return exits.OK
    _write_new(target, text)
    context.out.line("wrote ", (str(target), "bold"))
    _tell_next(context, found)
    return exits.OK


def _config_text(found: Discovery) -> str:
    """Return the commented configuration for what was found; places that variables name are written out."""
    from curatord.config import parse
    from curatord.config.sample import render_sample

    settings = found.as_settings()
    named = {host.host: host.named for host in found.hosts}
    sources = tuple(
        replace(source, path=path) for source in settings.sources for path in (named.get(source.host) or (None,))
    )
    text = render_sample(sources=sources or None, libraries=settings.libraries or None)
    parse(text, {}, file="/config.yaml", home="/")  # never write what could not be read back
    return text


def _tell_found(context: Context, found: Discovery) -> None:
    out = context.out
    if not found.hosts:
        out.line("no agent host was found on this machine; the configuration will find those that come later")
    width = max((len(host.host) for host in found.hosts), default=0)
    for host in found.hosts:
        why = "" if host.why == "default" else f" (named by {host.why})"
        out.line("host     ", (f"{host.host:<{width}}", "bold"), f"  {host.home}{why}")
    width = max((len(library.name) for library in found.libraries), default=0)
    for library in found.libraries:
        handed = f", {library.handed_over} of them its agent's own" if library.handed_over else ""
        skills = count(library.skills, "skill")
        out.line("library  ", (f"{library.name:<{width}}", "bold"), f"  {library.path}, {skills}{handed}")
        for other in library.same_as:
            out.line(f"         the same folder as {other}")
    for path, reason in found.problems:
        out.note(("note: ", "yellow"), f"{path}: {reason}")
    if found.hosts:
        out.line("transcripts of these hosts are read and never changed")
    _tell_managed(context, found)


def _tell_managed(context: Context, found: Discovery) -> None:
    out = context.out
    handed = sum(library.handed_over for library in found.libraries)
    if handed:
        out.line(f"managed from the start: the {handed} that Hermes' own ledger marks as made by its agent")
    if found.libraries:
        rest = "all others" if handed else "they are all yours: nothing"
        told = "stay untouched until you hand them over" if handed else "is touched until you hand it over"
        out.line(f"{rest} {told} (curatord adopt NAME)")
    elif found.hosts:
        out.line("there is no library of skills yet, so there is nothing to manage")


def _tell_missing(context: Context, target: Path, found: Discovery) -> None:
    """Say which hosts and libraries a configuration that is there does not name; one that cannot be read is told."""
    from curatord.loading import load_config

    try:
        config = load_config(str(target), context.environ).config
    except ConfigError as error:
        context.out.note(("note: ", "yellow"), f"it cannot be used: {error} (curatord doctor)")
        return
    sources = {source.host for source in config.sources}
    libraries = {os.path.realpath(library.path) for library in config.libraries}
    for host in found.hosts:
        if host.host not in sources:
            context.out.line("it does not name the host ", (host.host, "bold"), f" at {host.home}")
    for library in found.libraries:
        if os.path.realpath(library.path) not in libraries:
            context.out.line("it does not name the library ", (library.name, "bold"), f" at {library.path}")


def _tell_next(context: Context, found: Discovery) -> None:
    from curatord.adapters.vitals.service_files import service_command

    steps = [
        ("curatord doctor", "whether everything is in its place"),
        ("curatord run --dry-run", "what would be done; changes nothing"),
        (service_command(), "do it when things are quiet, from now on"),
    ]
    if found.libraries and not any(library.handed_over for library in found.libraries):
        steps.insert(
            2, ("curatord adopt --agent-made --dry-run", "which skills an agent made; these could be handed over")
        )
    width = max(len(command) for command, _ in steps)
    context.out.line("next:")
    for command, told in steps:
        context.out.line("  ", (f"{command:<{width}}", "bold"), f"  {told}")


def agreed(context: Context, question: str) -> bool:
    """Ask the person at the terminal; `UsageError` where nobody is there."""
    if not sys.stdin.isatty():
        raise UsageError("there is nobody to ask", hint="add --yes")
    context.out.flush()
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _write_new(target: Path, text: str) -> None:
    """Write *text* to *target*, which must not be there; leaves nothing half written."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except OSError as error:
        raise ConfigError(
            f"{target}: {error.strerror}", file=str(target), hint="--output names another place"
        ) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        target.unlink(missing_ok=True)
        raise ConfigError(f"{target}: {error.strerror}", file=str(target), hint="nothing was written") from error

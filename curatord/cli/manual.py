"""The manual page, in the man macros of roff: made from the parser's own help, so that the two cannot differ."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from curatord import __version__
from curatord.cli.commands import COMMANDS, GROUPS, Command
from curatord.cli.parser import build

__all__ = ["manual"]

EXITS = (
    ("0", "Done, or nothing to do."),
    ("1", "A bug; its traceback is shown."),
    ("2", "Usage or configuration."),
    ("3", "Finished, but something was skipped or failed, or the budget ran out."),
    ("4", "Needs a human."),
    ("5", "Another instance is at work."),
    ("130, 143", "Stopped by a signal."),
)
FILES = (
    ("~/.config/curatord/config.yaml, /etc/curatord/config.yaml", "The configuration; see curatord config schema."),
    ("~/.local/state/curatord", "State: database, runs with their reports, journal. On macOS in Application Support."),
)


def manual() -> str:
    """Return the page of section 1."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    parser = build()
    yield f'.TH CURATORD 1 "" "curatord {_text(__version__)}" "User Commands"'
    yield ".SH NAME"
    yield r"curatord \- a background curator for the skill libraries of AI agents"
    yield ".SH SYNOPSIS"
    yield r".B curatord"
    yield r"[\fB\-\-config\fR \fIPATH\fR] [\fB\-\-log\-format\fR text|json] [\fB\-v\fR] \fICOMMAND\fR ..."
    yield ".SH DESCRIPTION"
    yield _text(
        "curatord stands beside AI agents, reads their session transcripts, learns which skills are used, and retires "
        "the rest by rules: first marked stale, later moved into an archive. It never deletes a skill, never touches "
        "one that was not handed to it, explains every change, and can undo each one byte for byte."
    )
    yield ".SH OPTIONS"
    yield "These may stand before and behind the command."
    yield from _options(parser)
    yield ".SH COMMANDS"
    parsers = _children(parser)
    for group, title in GROUPS:
        yield f".SS {_text(title)}"
        for command in COMMANDS:
            if command.group == group:
                yield from _command(command, parsers[command.name], command.name)
    yield ".SH EXIT STATUS"
    for code, words in EXITS:
        yield from (".TP", f".B {_text(code)}", _text(words))
    yield ".SH FILES"
    for name, words in FILES:
        yield from (".TP", f".I {_text(name)}", _text(words))
    yield ".SH ENVIRONMENT"
    yield _text(
        "Every key of the configuration can be set by a variable: CURATORD_GATES__INTERVAL=3d. CURATORD_CONFIG names "
        "the file. NO_COLOR and TERM=dumb are respected."
    )


def _command(command: Command, parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
    if command.inner:
        inner = _children(parser)
        for child in command.inner:
            yield from _command(child, inner[child.name], f"{name} {child.name}")
        return
    arguments = [action for action in parser._actions if not action.option_strings]
    words = " ".join(rf"\fI{_text(_metavar(action))}\fR" for action in arguments)
    yield ".TP"
    yield rf"\fB{_text(name)}\fR {words}".rstrip()
    yield _text(command.help[0].upper() + command.help[1:] + ".")
    yield ".RS"
    yield from _options(parser, own=True)
    yield ".PP"
    yield f"Example: {_text(command.example)}"
    yield ".RE"


def _options(parser: argparse.ArgumentParser, *, own: bool = False) -> Iterator[str]:
    """Give the options of *parser*; with *own*, without those that every command takes."""
    for action in parser._actions:  # argparse has no public list of them
        if isinstance(action, argparse._SubParsersAction) or (own and action.default is argparse.SUPPRESS):
            continue
        names = ", ".join(rf"\fB{_text(option)}\fR" for option in action.option_strings)
        value = "" if action.nargs == 0 else rf" \fI{_text(_metavar(action))}\fR"
        yield from (".TP", names + value if names else value.strip(), _text(action.help or ""))


def _metavar(action: argparse.Action) -> str:
    """Return how an argument is written: its choices, else its name, dots where there may be more of it."""
    name = "|".join(action.choices) if action.choices else str(action.metavar or action.dest.upper())
    if action.nargs in ("+", "*"):
        name = f"{name} ..."
    return f"[{name}]" if action.nargs in ("?", "*") else name


def _children(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _text(text: str) -> str:
    """Return *text* for roff: its own signs as signs, and no line that would be a command."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("…", "...")
    return f"\\&{safe}" if safe[:1] in (".", "'") else safe

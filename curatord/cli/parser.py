"""The argument parser, made from the table of commands; and what is said to a word that is none."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from curatord import __version__
from curatord.cli.commands import COMMANDS, GROUPS, Command
from curatord.errors import UsageError

__all__ = ["build", "unknown_command"]

_GLOBAL_WITH_VALUE = ("--config", "--log-format")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Asks for the terminal's width only where help is shown: argparse makes a formatter for every argument."""

    def __init__(self, prog: str, **more: Any) -> None:
        super().__init__(prog, **{"width": _help_width, **more})


_help_width = 78


class _Parser(argparse.ArgumentParser):
    """Raises `UsageError` where argparse would print and exit, so that one place says how errors look."""

    def format_help(self) -> str:
        global _help_width
        import shutil

        _help_width = max(shutil.get_terminal_size().columns - 2, 40)
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"{self.prog} --help shows the usage")


def _common(*, top: bool) -> argparse.ArgumentParser:
    """Return the options that may stand before and behind the command; behind, they default to what was before."""
    parser = argparse.ArgumentParser(add_help=False)
    group = parser.add_argument_group("general options")

    def default(value: Any) -> Any:
        return value if top else argparse.SUPPRESS

    group.add_argument("--config", metavar="PATH", default=default(None), help="the configuration file")
    group.add_argument("--log-format", choices=("text", "json"), default=default(None), help="how logs are written")
    group.add_argument("-v", "--verbose", action="count", default=default(0), help="log more")
    return parser


def build(only: str | None = None, *, listed: bool = False) -> argparse.ArgumentParser:
    """
    Return the parser of all commands, or, where *only* names one, of that one alone, which is quicker to make.

    *listed*: argparse's own flat list of them is in its help, where the completions' maker looks for them.
    """
    parser = _Parser(
        prog="curatord",
        usage="curatord [--config PATH] [--log-format text|json] [-v] COMMAND …",
        description="A background curator for the skill libraries of AI agents.",
        epilog=_overview(),
        formatter_class=_Help,
        parents=[_common(top=True)],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"curatord {__version__}")
    more: dict[str, Any] = {} if listed else {"help": argparse.SUPPRESS}
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", prog="curatord", **more)
    for command in COMMANDS:
        if only is None or command.name == only:
            _add(commands, command)
    return parser


def _add(commands: Any, command: Command) -> None:
    parser = commands.add_parser(
        command.name,
        help=command.help,
        description=command.help[0].upper() + command.help[1:] + ".",
        epilog=f"example:\n  {command.example}",
        formatter_class=_Help,
        parents=[_common(top=False)],
        allow_abbrev=False,
    )
    if command.arguments is not None:
        command.arguments(parser)
    if command.json:
        parser.add_argument("--json", action="store_true", help="print one JSON value and nothing else")
    if command.inner:
        inner = parser.add_subparsers(dest="inner", metavar="COMMAND", required=True)
        for child in command.inner:
            _add(inner, child)
    else:
        parser.set_defaults(handler=command.run)


def _overview() -> str:
    lines = []
    for group, title in GROUPS:
        lines.append(f"{title}:")
        lines += [f"  {command.name:<12}{command.help}" for command in COMMANDS if command.group == group]
        lines.append("")
    lines += ["`curatord COMMAND --help` has an example of each. `curatord try` shows what it would do here."]
    return "\n".join(lines)


def first_word(arguments: Sequence[str]) -> str | None:
    """Return the first argument that is no global option or its value: the command, if it is one."""
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in _GLOBAL_WITH_VALUE:
            skip = True
        elif not argument.startswith("-"):
            return argument
        elif argument in ("-h", "--help", "--version", "--"):
            return None
    return None


def unknown_command(word: str) -> UsageError | None:
    """Return the error for a *word* that is no command, naming the nearest; None where it is one."""
    names = [command.name for command in COMMANDS]
    if word in names:
        return None
    import difflib

    close = difflib.get_close_matches(word.lower(), names, n=2, cutoff=0.55)
    hint = f"did you mean {' or '.join(close)}?" if close else "curatord --help lists them"
    return UsageError(f"there is no command {word!r}", hint=hint)

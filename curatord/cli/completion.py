"""Completions: bash and zsh by shtab out of the parser, fish by ourselves out of the table of commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from curatord.cli.commands import COMMANDS, Command
from curatord.cli.parser import build

__all__ = ["completion"]


def completion(shell: str) -> str:
    """Return the script for *shell*: bash, zsh or fish."""
    if shell == "fish":
        return "\n".join(_fish()) + "\n"
    import shtab

    script: str = shtab.complete(build(listed=True), shell=shell)
    return script.rstrip("\n") + "\n"


def _fish() -> Iterator[str]:
    yield "# completions of curatord for fish"
    yield "complete -c curatord -f"
    for option, text in (("config", "the configuration file"), ("version", "show the version"), ("help", "show help")):
        yield f"complete -c curatord -l {option}{' -r -F' if option == 'config' else ''} -d {_quoted(text)}"
    yield "complete -c curatord -l log-format -x -a 'text json' -d 'how logs are written'"
    yield "complete -c curatord -s v -l verbose -d 'log more'"
    for command in COMMANDS:
        yield from _command(command, "__fish_use_subcommand")
        for inner in command.inner:
            words = " ".join(child.name for child in command.inner)
            unless = f"__fish_seen_subcommand_from {command.name}; and not __fish_seen_subcommand_from {words}"
            yield from _command(inner, unless)


def _command(command: Command, condition: str) -> Iterator[str]:
    yield f"complete -c curatord -n {_quoted(condition)} -a {command.name} -d {_quoted(command.help)}"
    parser = argparse.ArgumentParser(add_help=False)
    if command.arguments is not None:
        command.arguments(parser)
    if command.json:
        parser.add_argument("--json", action="store_true", help="print one JSON value and nothing else")
    seen = _quoted(f"__fish_seen_subcommand_from {command.name}")
    for action in parser._actions:  # argparse has no public list of them; shtab looks there too
        options = [option[2:] for option in action.option_strings if option.startswith("--")]
        values = " ".join(str(choice) for choice in action.choices or ())
        for option in options:
            takes = "" if action.nargs == 0 else " -x"
            choices = f" -a {_quoted(values)}" if values else ""
            yield f"complete -c curatord -n {seen} -l {option}{takes}{choices} -d {_quoted(action.help or '')}"
        if not options and values:
            yield f"complete -c curatord -n {seen} -a {_quoted(values)} -d {_quoted(action.help or '')}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

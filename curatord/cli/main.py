"""
The command line: read arguments, call one function, print, exit code.

Errors raised on purpose become one line, a hint and their code, here and nowhere else. Anything else is a bug: its
traceback is shown, and the code is 1.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Mapping, Sequence

from curatord.cli import exits
from curatord.cli.app import AppFactory
from curatord.cli.output import Output
from curatord.cli.parser import build, first_word, unknown_command
from curatord.errors import CuratorError

__all__ = ["main", "say"]

_USUAL = gc.get_threshold()


def main(
    arguments: Sequence[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    factory: AppFactory | None = None,
) -> int:
    """
    Do what *arguments* say and return the exit code.

    *environ* and *factory* are for tests: other variables than the process's, and another application.
    """
    # A command ends soon, and what it builds lives till then: looking through it for cycles again and again took a
    # tenth of a run over thousands of skills. What a look at thousands of sessions leaves in cycles is still found:
    # were that five times as seldom, it would hold half as much memory again, and no command would be quicker.
    gc.set_threshold(200_000, 20, 100)
    arguments = sys.argv[1:] if arguments is None else arguments
    environ = os.environ if environ is None else environ
    out = Output(sys.stdout, sys.stderr, environ)
    try:
        code = _run(arguments, environ, out, factory)
    except CuratorError as error:
        say(out, error)
        code = exits.of_error(error)
    except KeyboardInterrupt:
        out.note("curatord: stopped")
        code = 130
    except SystemExit as asked:  # argparse, after --help and --version
        code = int(asked.code or 0)
    out.flush()
    if out.lost is not None:
        out.note("curatord: the answer could not be written: ", out.lost.strerror or str(out.lost))
        return code or 1
    return code


def _run(arguments: Sequence[str], environ: Mapping[str, str], out: Output, factory: AppFactory | None) -> int:
    word = first_word(arguments)
    unknown = unknown_command(word) if word is not None else None
    if unknown is not None:
        raise unknown
    parser = build(only=word)
    said = parser.parse_args(arguments)
    if getattr(said, "handler", None) is None:
        parser.print_help(sys.stderr)
        return 2
    from curatord.cli.context import Context

    module, _, name = said.handler.partition(":")
    handler = getattr(importlib.import_module(f"curatord.cli.{module}"), name)
    if word == "daemon":  # it is to live
        gc.set_threshold(*_USUAL)
    return int(handler(Context(arguments=said, out=out, environ=environ, factory=factory)))


def say(out: Output, error: CuratorError) -> None:
    """Print *error*: a line for each thing that is wrong, then what to do."""
    for line in str(error).split("\n"):
        out.note(("curatord: ", "red"), line)
    if error.hint:
        out.note("  ", (error.hint, "dim"))

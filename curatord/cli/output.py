"""
Where all printing goes through: the answer to standard output, everything else to standard error.

Names, descriptions and paths are other people's text, so every text is made inert here, in one place
(`core.inert.visible`), before colours are put around it. A terminal that cannot show a character gets an escape instead
of a traceback, and a reader that goes away (`| head`) ends the printing, not the command.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from curatord.core.inert import visible

__all__ = ["Cell", "Output", "cell_text", "json_text", "line_text", "width"]

Cell = str | tuple[str, str]
"""A text, or `(text, style)`."""

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_NOT_PLAIN = r"[^\x20-\x7e\n]"


def line_text(text: str) -> str:
    """Return *text* as it may be printed: inert, on one line whatever it holds."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def cell_text(cell: Cell) -> str:
    """Return a cell's text without its style, as it may be printed."""
    return line_text(cell if isinstance(cell, str) else cell[0])


def width(text: str) -> int:
    """Return how many columns *text* takes on a terminal: wide East Asian characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(ch) else 2 if unicodedata.east_asian_width(ch) in "WF" else 1 for ch in text)


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    """
    Return *value* as JSON that is also safe to look at: what is not printable stands as `\\u` escape.

    A list has an entry a line, so that long ones can be read and cut by line; an object is indented.
    """
    if isinstance(value, list):
        entries = [json.dumps(item, ensure_ascii=ascii_only) for item in value]
        text = "[" + ",".join(f"\n  {entry}" for entry in entries) + ("\n]" if entries else "]")
    else:
        text = _indented(value, ascii_only)
    return re.sub(_NOT_PLAIN, _json_escape, text)


def _indented(value: Any, ascii_only: bool) -> str:
    """Return *value* with two blanks a level; by the quicker library where the command has loaded it for its work."""
    quick: Any = sys.modules.get("msgspec")
    if quick is not None and not ascii_only:
        with contextlib.suppress(UnicodeEncodeError, TypeError):
            text: str = quick.json.format(quick.json.encode(value), indent=2).decode()
            return text
    return json.dumps(value, ensure_ascii=ascii_only, indent=2)


def _json_escape(match: re.Match[str]) -> str:
    ch = match.group()
    return ch if visible(ch) == ch and ch != "\t" else json.dumps(ch)[1:-1]


class Output:
    """
    The two streams of a command.

    Args:
        out: Standard output.
        err: Standard error.
        environ: `NO_COLOR` and `TERM` are looked at.
    """

    def __init__(self, out: TextIO, err: TextIO, environ: Mapping[str, str]) -> None:
        self._out = out
        self._err = err
        self._gone = False
        self.lost: OSError | None = None  # why what was printed did not arrive
        plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
        self.terminal = _is_terminal(out) and environ.get("TERM") != "dumb"
        self.error_terminal = _is_terminal(err) and environ.get("TERM") != "dumb"
        self.colour = self.terminal and not plain
        self.error_colour = self.error_terminal and not plain
        for stream in (out, err):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                # `LC_ALL=C` would otherwise end a listing at the first name with an accent.
                reconfigure(errors="backslashreplace")

    def json(self, value: Any) -> None:
        """Print *value* as one JSON value."""
        self._write(json_text(value, ascii_only=not _is_unicode(self._out)) + "\n")

    def line(self, *cells: Cell) -> None:
        """Print one line made of *cells*."""
        self._write("".join(self._styled(cell, colour=self.colour) for cell in cells) + "\n")

    def text(self, text: str) -> None:
        """Print a text of several lines, such as a report or a diff, inert but as it is."""
        self._write(visible(text) if text.endswith("\n") or not text else visible(text) + "\n")

    def note(self, *cells: Cell) -> None:
        """Say something beside the answer, on standard error."""
        line = "".join(self._styled(cell, colour=self.error_colour) for cell in cells)
        try:
            self._err.write(line + "\n")
            self._err.flush()
        except OSError:
            # Nobody can be told that nobody can be told.
            return

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[Cell]], *, right: Sequence[int] = ()) -> None:
        """Print *rows* under *headers*, columns in *right* to the right: boxed on a terminal, aligned elsewhere."""
        body = [list(row) for row in rows]
        if self.terminal:
            self._rich_table(headers, body, right)
            return
        grid = [[cell_text(header) for header in headers], *[[cell_text(cell) for cell in row] for row in body]]
        widths = [max(width(row[column]) for row in grid) for column in range(len(headers))]
        for row in grid:
            cells = []
            for column, text in enumerate(row):
                space = " " * (widths[column] - width(text))
                cells.append(space + text if column in right else text + space)
            self._write("  ".join(cells).rstrip() + "\n")

    def _rich_table(self, headers: Sequence[str], rows: list[list[Cell]], right: Sequence[int]) -> None:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column, header in enumerate(headers):
            table.add_column(Text(line_text(header)), justify="right" if column in right else "left", overflow="fold")
        for row in rows:
            cells = [Text(cell_text(cell), style=cell[1] if isinstance(cell, tuple) else "") for cell in row]
            table.add_row(*cells)
        console = Console(file=self._out, no_color=not self.colour, highlight=False, markup=False, emoji=False)
        if not self._gone:
            try:
                console.print(table)
            except OSError as error:
                self._leave(error)

    def _styled(self, cell: Cell, *, colour: bool) -> str:
        if isinstance(cell, str):
            return line_text(cell)
        text, style = cell
        codes = ";".join(_STYLES[name] for name in style.split())
        return f"\x1b[{codes}m{line_text(text)}\x1b[0m" if colour and text else line_text(text)

    def _write(self, text: str) -> None:
        if self._gone:
            return
        try:
            self._out.write(text)
        except OSError as error:
            self._leave(error)

    def flush(self) -> None:
        """Bring what was printed to its reader; a reader that is gone is no error, a full disk is one (`lost`)."""
        try:
            self._out.flush()
        except OSError as error:
            self._leave(error)

    def _leave(self, error: OSError) -> None:
        """Stop printing, and keep the interpreter from complaining of it at its end."""
        self._gone = True
        if not isinstance(error, BrokenPipeError):
            self.lost = error
        try:
            descriptor = self._out.fileno()
        except (OSError, ValueError):
            return
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, descriptor)
        os.close(devnull)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _is_unicode(stream: TextIO) -> bool:
    return (getattr(stream, "encoding", None) or "").lower().replace("-", "").startswith("utf")

"""The page of `doctor`: a line a subject, and below it what mends it."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from typing import Any

from curatord.cli.output import Cell, Output
from curatord.cli.views.words import count, joined

__all__ = ["show_doctor"]

_MARKS: dict[str, tuple[str, str]] = {
    "fine": ("ok", "green"),
    "note": ("note", "cyan"),
    "warning": ("WARN", "bold yellow"),
    "failure": ("FAIL", "bold red"),
}


def show_doctor(out: Output, checks: Any, *, verbose: bool) -> None:
    """Print *checks*; details where something is wrong, all of them with *verbose*. On a terminal lines are folded."""
    name_width = max((len(check["check"]) for check in checks), default=0)
    indent = 6 + name_width + 2
    told: set[str] = set()  # what a note advises is said once, however many sources were never scanned
    for check in checks:
        mark, style = _MARKS[check["level"]]
        head: list[Cell] = [(f"{mark:<6}", style), (f"{check['check']:<{name_width}}  ", "bold")]
        lines = _folded(out, check["found"], indent)
        out.line(*head, lines[0])
        for line in lines[1:]:
            out.line(" " * indent, line)
        mends = check["mend"].split("\n") if check["mend"] else []
        if check["level"] == "note":
            mends = [mend for mend in mends if mend not in told]
        told.update(mends)
        for mend in mends:
            for number, line in enumerate(_folded(out, mend, indent + 3)):
                out.line(" " * indent, "-> " if number == 0 else "   ", line if check["ok"] else (line, "bold"))
        if verbose or check["level"] in ("warning", "failure"):
            for detail in check["details"]:
                out.line(" " * indent, (detail, "dim"))
    out.line()
    out.line(*_summary(checks))


def _folded(out: Output, text: str, indent: int) -> list[str]:
    """Return *text* in lines as wide as a terminal; elsewhere in one, for `grep`."""
    if not out.terminal:
        return [text]
    room = max(shutil.get_terminal_size().columns - indent, 40)
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]


def _summary(checks: Any) -> list[Cell]:
    levels = Counter(check["level"] for check in checks)
    failed, warned = levels["failure"], levels["warning"]
    told = joined(
        [
            count(len(checks), "check"),
            f"{failed} failed" if failed else "",
            count(warned, "warning") if warned else "",
            count(levels["note"], "note") if levels["note"] else "",
        ]
    )
    if failed:
        return [("something is wrong", "bold red"), f": {told}"]
    return [("nothing is broken", "bold green"), f": {told}"]

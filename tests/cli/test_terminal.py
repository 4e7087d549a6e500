"""On a real (pseudo) terminal: colour, tables and bars, and nothing of other people's text acts on it."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import sys, copy
from tests.cli.fake_app import FakeApp, SKILL, SCAN
from curatord.cli.main import main
nasty = "\\x1b[2J[bold]x[/bold]\\u202e"
app = FakeApp({"skills": [{**SKILL, "state": "stale", "name": nasty, "path": nasty, "library": "技能"}]})
def scan():
    for done in (1, 2) if app.surroundings.progress else ():
        app.surroundings.progress(done, 2, nasty)
    return SCAN
app._answers["scan"] = scan
sys.exit(main(sys.argv[1:], factory=app.opened))
"""


def on_terminal(*arguments: str, **environ: str) -> str:
    """Return what a command wrote to the terminal that was all of its streams."""
    leader, follower = pty.openpty()
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "TERM": "xterm-256color",
        "COLUMNS": "100",
        **environ,
    }
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=variables,
        cwd=ROOT,
    )
    os.close(follower)
    data = b""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            data += piece
        elif process.poll() is not None:
            break
    os.close(leader)
    assert 0 == process.wait(timeout=10), data
    return data.decode()


def test_a_table_is_coloured_and_inert() -> None:
    """States have their colour; the skill's name is text, whatever it holds."""
    text = on_terminal("skills")

    assert "\x1b[33mstale" in text
    assert "\\x1b[2J" in text
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    assert "[bold]" in text


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_is_not_for_everybody(environ: dict[str, str]) -> None:
    """Without colour there is none, and the text is the same."""
    text = on_terminal("skills", **environ)

    assert [] == re.findall(r"\x1b\[[0-9;]*m(?=stale)", re.sub(r"\x1b\[[01]?m", "", text))
    assert "stale" in text


def test_a_bar_moves_and_goes() -> None:
    """`scan` shows how far it is, and its answer stands alone at the end; the bar's text is inert too."""
    text = on_terminal("scan")

    assert "scanning" in text
    assert "100%" in text
    assert "2 sessions, 3 skill events" in text
    assert "\x1b[2J" not in text


def test_a_dumb_terminal_has_no_bar() -> None:
    """It could not draw one."""
    assert "\x1b" not in on_terminal("scan", TERM="dumb")

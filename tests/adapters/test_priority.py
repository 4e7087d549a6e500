"""Standing back: in a process of its own, since what was lowered stays lowered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells of a process")


def after(code: str) -> list[str]:
    """Return what a process prints that did *code*."""
    head = "import os, psutil, threading\nfrom curatord.adapters.priority import gently, stand_back\n"
    tell = "\ndef told():\n    io = psutil.Process().ionice()\n    print(os.nice(0), int(io.ioclass), io.value)\n"
    done = subprocess.run(
        [sys.executable, "-c", head + tell + code], capture_output=True, text=True, cwd=ROOT, timeout=60, check=True
    )
    return done.stdout.splitlines()


@needs_linux
def test_both_are_lowered() -> None:
    """Threads and processes that are made later inherit it."""
    code = "stand_back(nice=7, io='low'); told(); t = threading.Thread(target=told); t.start(); t.join()"

    assert ["7 2 7", "7 2 7"] == after(code)


@needs_linux
def test_nothing_is_raised() -> None:
    """A service manager that has lowered it further is right."""
    code = "os.nice(12); psutil.Process().ionice(3); stand_back(nice=5, io='low'); told()"

    assert ["12 3 0"] == after(code)


@needs_linux
def test_it_can_be_left_as_it_is() -> None:
    """As configured."""
    assert after("told()") == after("stand_back(nice=0, io='normal'); told()")


@needs_linux
def test_a_first_scan_is_idle_and_no_longer() -> None:
    """Also where it ends by an error."""
    code = """
stand_back(nice=3, io='low')
try:
    with gently():
        told()
        raise ValueError
except ValueError:
    told()
"""

    assert ["3 3 0", "3 2 7"] == after(code)


def test_where_there_is_no_such_call_nothing_happens() -> None:
    """On a system that we do not know."""
    code = "import sys; sys.platform = 'plan9'; stand_back(nice=2, io='idle')\nwith gently(): print(os.nice(0))"

    assert ["2"] == after(code)

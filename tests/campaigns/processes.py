"""
Real processes that are cut: the command line in a child of its own, with `cut.c` between it and the kernel.

Starting Python anew for each of thousands of cuts would take an hour. `Cutter` therefore starts one process with the
shim loaded and everything imported; that one forks a child for each command, which is then alone in the world: it
opens the configuration, the database and the locks itself, and dies by SIGKILL or meets its fault at the n-th call by
which it changes a file below the folder.
"""

from __future__ import annotations

import errno
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from tests.campaigns.home import BigHome

__all__ = ["COUNT", "FAIL", "KILL", "STOP", "TORN", "Cut", "Cutter", "Ended", "cutter", "shim"]

ROOT = Path(__file__).resolve().parent.parent.parent
COUNT, KILL, TORN, FAIL, STOP = range(5)
HUNG_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """At which call something happens, what, and with which error number; *sticky*: to every call from there on."""

    how: int = COUNT
    at: int = 0
    errno: int = errno.ENOSPC
    sticky: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended: *code* is None where it was killed; *calls* is how often it changed a file."""

    code: int | None
    calls: int
    out: str
    err: str

    @property
    def killed(self) -> bool:
        """Whether it was killed by the cut."""
        return self.code is None


def shim(folder: Path) -> Path:
    """Build `cut.c` and return the library; skip where that cannot be done."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("cutting between a process and the kernel needs Linux and a C compiler")
    target = folder / "cut.so"
    source = Path(__file__).with_name("cut.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(target), str(source), "-ldl"], check=True)
    return target


class Cutter:
    """The process that forks the ones that are cut."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.out = folder
        self.kills = 0
        self.faults = 0
        self.stops = 0
        self._log = (folder / "cutter.log").open("wb")
        environ = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.campaigns.worker"],
            cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()
        self._log.close()

    def do(
        self,
        home: BigHome,
        *words: str,
        cut: Cut | None = None,
        meanwhile: Callable[[], None] = lambda: None,
        **order: Any,
    ) -> Ended:
        """
        Carry out a command of the command line, or an *order* of `worker`, with *cut*.

        With a cut that stops, *meanwhile* is done while the command stands still.
        """
        cut = cut or Cut()
        told: dict[str, Any] = {
            "folder": str(home.folder),
            "environ": home.environ,
            "clock": home.clock.isoformat(),
            "words": words,
            "cut": [cut.how, cut.at, cut.errno, int(cut.sticky)],
            "out": str(self.out),
            **order,
        }
        told = self._ask(told)
        if told.get("stopped"):
            self.stops += 1
            meanwhile()
            told = self._ask({"go": "on"})
        if told["signal"]:
            assert told["signal"] == signal.SIGKILL, told
            self.kills += 1
        elif cut.how == FAIL and cut.at <= told["calls"]:
            self.faults += 1
        return Ended(
            code=None if told["signal"] else told["code"],
            calls=told["calls"],
            out=(self.out / "stdout").read_text(errors="replace"),
            err=(self.out / "stderr").read_text(errors="replace"),
        )

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._pipes()
        stdin.write(json.dumps(order).encode() + b"\n")
        stdin.flush()
        ready, _, _ = select.select([stdout], [], [], HUNG_S)
        assert ready, f"it hangs: {order}"
        line = stdout.readline()
        assert line, f"the worker ended: {(self.out / 'cutter.log').read_text()}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout


@contextmanager
def cutter(folder: Path) -> Iterator[Cutter]:
    """Give a `Cutter` that writes what its commands print below *folder*, outside of what is counted."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Cutter(shim(folder), folder)
    try:
        yield made
    finally:
        made.close()


def command(home: BigHome, *words: str) -> Sequence[str]:
    """Return a command line over *home*, for a process that is really started."""
    return [sys.executable, "-m", "curatord", "--config", str(home.folder / "curatord.yaml"), *words]


def wait_for(condition: Any, seconds: float = 30.0) -> None:
    """Wait until *condition* returns something true."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came to be"
        time.sleep(0.02)

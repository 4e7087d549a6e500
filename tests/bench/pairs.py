"""
Side-by-side measuring, for all benchmarks: processor time of whole processes, pair by pair within one run.

Wall time on a busy machine tells about its other guests, and absolute times differ from call to call; what counts is
the median of ratios within one run.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

REPO = Path(__file__).resolve().parents[2]
GENERATOR = REPO.parent / "shared" / "bench" / "gen_corpus.py"


class Ratio(NamedTuple):
    """What one command took: median seconds of processor time, and the median of its ratios to the first."""

    seconds: float
    ratio: float


def environ(home: Path) -> dict[str, str]:
    """Return the variables of a measured process: only what it needs, so that byte code is kept as for users."""
    return {"HOME": str(home), "PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(REPO)}


def processor_time(arguments: Sequence[str], home: Path) -> float:
    """Return the seconds of processor time, user and system, of one process of this interpreter."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=environ(home),
        cwd=REPO,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def compare(commands: Mapping[str, Sequence[str]], home: Path, *, rounds: int) -> dict[str, Ratio]:
    """Run each of *commands* once to warm it, then *rounds* times in turn; ratios are to the first of them."""
    for arguments in commands.values():
        processor_time(arguments, home)
    taken = [{name: processor_time(arguments, home) for name, arguments in commands.items()} for _ in range(rounds)]
    first = next(iter(commands))
    return {
        name: Ratio(
            statistics.median(one[name] for one in taken),
            statistics.median(one[name] / one[first] for one in taken),
        )
        for name in commands
    }


def curatord(config: Path, *arguments: str) -> list[str]:
    """Return the interpreter's arguments of a command with *config*."""
    return ["-m", "curatord", "--config", str(config), *arguments]


def run(arguments: Sequence[str], home: Path, *, seconds: float = 300.0) -> str:
    """Run a process of this interpreter to its end and return what it printed; raises where it fails."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environ(home),
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def generate(out: Path, *arguments: str, seconds: float = 900.0) -> None:
    """Let the corpus generator beside the repository write below *out*."""
    subprocess.run(
        [sys.executable, str(GENERATOR), "--out", str(out), *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=seconds,
    )


def table(figures: Mapping[str, Ratio], goals: Mapping[str, float]) -> str:
    """Return the figures for people."""
    lines = [f"{'':<34}{'ms':>9}{'ratio':>8}{'goal':>7}"]
    lines += [
        f"{name:<34}{told.seconds * 1000:>9.1f}{told.ratio:>8.2f}{goals.get(name, ''):>7}"
        for name, told in figures.items()
    ]
    return "\n".join(lines)


def over(figures: Mapping[str, Ratio], goals: Mapping[str, float]) -> dict[str, float]:
    """Return what is above its goal."""
    return {name: round(told.ratio, 2) for name, told in figures.items() if told.ratio > goals.get(name, told.ratio)}

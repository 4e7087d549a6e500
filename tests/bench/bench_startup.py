"""
Measures how long commands take to start, as a multiple of the bare interpreter.

Run `python tests/bench/bench_startup.py` for a table, or `pytest -m bench tests/bench/bench_startup.py` to hold the
goals: `--version` at most 3 times `python -c pass`, `status` at most 8 times. Processor time is compared, pair by pair
within one run, since wall time on a busy machine tells about its other guests. `status` runs on an empty state folder;
where the application is not there to be run, the frame around it is measured with a made-up one.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PAIRS = 9
GOALS = {"--version": 3.0, "status": 8.0}

_MADE_UP = "import tests.cli.fake_app as f, curatord.cli.main as m; m.main(['status'], factory=f.FakeApp().opened)"


def commands() -> dict[str, list[str]]:
    """Return what is measured: name -> arguments of the interpreter."""
    wired = (REPO / "curatord" / "wiring.py").exists()
    return {
        "python -c pass": ["-c", "pass"],
        "--version": ["-m", "curatord", "--version"],
        "--help": ["-m", "curatord", "--help"],
        "config check": ["-m", "curatord", "config", "check"],
        "status": ["-m", "curatord", "status"] if wired else ["-c", _MADE_UP],
    }


def processor_time(arguments: list[str], home: str) -> float:
    """Return the seconds of processor time, user and system, that one process took."""
    environ = {"HOME": home, "PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(REPO)}
    process = subprocess.Popen(
        [sys.executable, *arguments], env=environ, cwd=REPO, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_utime + usage.ru_stime


def measure() -> dict[str, tuple[float, float]]:
    """Return, by name, the median seconds and the median ratio to the bare interpreter's of the same round."""
    with tempfile.TemporaryDirectory() as home:
        config = Path(home) / ".config" / "curatord" / "config.yaml"
        config.parent.mkdir(parents=True)
        config.write_bytes((REPO / "config" / "curatord.yaml").read_bytes())
        wanted = commands()
        for arguments in wanted.values():
            processor_time(arguments, home)  # compiles what is not compiled yet
        rounds = [{name: processor_time(arguments, home) for name, arguments in wanted.items()} for _ in range(PAIRS)]
    return {
        name: (
            statistics.median(one[name] for one in rounds),
            statistics.median(one[name] / one["python -c pass"] for one in rounds),
        )
        for name in wanted
    }


@pytest.mark.bench
def test_commands_start_quickly() -> None:
    """`--version` and `status` hold their goals."""
    figures = measure()

    assert {} == {name: figures[name][1] for name, goal in GOALS.items() if figures[name][1] > goal}


if __name__ == "__main__":
    print(f"{'command':<16}{'ms':>8}{'ratio':>8}{'goal':>8}")
    for name, (seconds, ratio) in measure().items():
        print(f"{name:<16}{seconds * 1000:>8.1f}{ratio:>8.2f}{GOALS.get(name, 0) or '':>8}")

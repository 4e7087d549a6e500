"""
Measures how long commands take to start, as a multiple of the bare interpreter.

Run `python tests/bench/bench_startup.py` for a table, or `pytest -m bench tests/bench/bench_startup.py` to hold the
goals: `--version` at most 3 times `python -c pass`, `status` at most 8 times, on the demonstration's state and, where
the corpus generator stands beside the repository, on one of 350 skills and 2,000 sessions.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.pairs import GENERATOR, Ratio, compare, curatord, generate, over, run, table

ROUNDS = 9
GOALS = {"--version": 3.0, "status, demonstration": 8.0, "status, 2,000 sessions": 8.0}

CONFIG = """
state_dir: state
sources:
  - host: claude-code
    path: corpus/transcripts/projects
libraries:
  - name: claude
    path: corpus/library/skills
    host: claude-code
    manage: all
"""


def measure(folder: Path) -> dict[str, Ratio]:
    """Return the figures by name; everything is made below *folder*."""
    home = folder / "home"
    home.mkdir()
    run(["-m", "curatord", "demo", str(folder / "demo")], home)
    commands = {
        "python -c pass": ["-c", "pass"],
        "--version": ["-m", "curatord", "--version"],
        "--help": ["-m", "curatord", "--help"],
        "config check": curatord(folder / "demo" / "curatord.yaml", "config", "check"),
        "status, demonstration": curatord(folder / "demo" / "curatord.yaml", "status"),
    }
    if GENERATOR.exists():
        generate(folder / "corpus", "--sessions", "2000", "--mb", "100", "--skills", "350", "--seed", "1")
        config = folder / "large.yaml"
        config.write_text(CONFIG)
        run(curatord(config, "scan"), home)
        commands["status, 2,000 sessions"] = curatord(config, "status")
    return compare(commands, home, rounds=ROUNDS)


@pytest.mark.bench
def test_commands_start_quickly(tmp_path: Path) -> None:
    """`--version` and `status` hold their goals."""
    figures = measure(tmp_path)
    print("\n" + table(figures, GOALS))

    assert {} == over(figures, GOALS)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(table(measure(Path(made)), GOALS))

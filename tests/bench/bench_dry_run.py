"""
Measures a dry run over 5,000 skills as a whole process, as a multiple of a bare `os.walk` with a stat of everything.

Run `python tests/bench/bench_dry_run.py` for a table, or `pytest -m bench tests/bench/bench_dry_run.py` to hold what
was reached. The goal is 3 times; measured were 3.3 here, where 2,834 skills are due to be marked stale and each is told
with its reason, and 2.9 over the same library with those marks made. Some 0.6 are the interpreter and the modules of a
run, 0.7 the look at packages that did not change, and the rest is deciding 5,000 times why. A run that has to read each
package and to compare all descriptions takes 17 to 20.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.pairs import GENERATOR, Ratio, compare, curatord, generate, over, run, table

ROUNDS = 7
GOALS = {"run --dry-run": 3.5, "a dry run, nothing kept": 24.0}

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

WALK = """
import os, sys
for folder, folders, files in os.walk(sys.argv[1]):
    for name in folders + files:
        os.lstat(os.path.join(folder, name))
"""

FORGET = """
import sqlite3, sys
database = sqlite3.connect(sys.argv.pop(1))
with database:
    database.execute("DELETE FROM package_readings")
    database.execute("DELETE FROM meta WHERE key = 'library.twins'")
database.close()
from curatord.__main__ import main
sys.exit(main())
"""


def measure(folder: Path) -> dict[str, Ratio]:
    """Return the figures by name; everything is made below *folder*."""
    home = folder / "home"
    home.mkdir()
    generate(folder / "corpus", "--sessions", "500", "--mb", "50", "--skills", "5000", "--seed", "1")
    config = folder / "curatord.yaml"
    config.write_text(CONFIG)
    dry = curatord(config, "run", "--dry-run")
    for _ in range(2):
        run(dry, home)
        time.sleep(3)  # what was read while its files were young is not kept
    return compare(
        {
            "walk and stat": ["-c", WALK, str(folder / "corpus" / "library" / "skills")],
            "run --dry-run": dry,
            "skills --json": curatord(config, "skills", "--json"),
            "a dry run, nothing kept": ["-c", FORGET, str(folder / "state" / "curatord.db"), *dry[2:]],
        },
        home,
        rounds=ROUNDS,
    )


@pytest.mark.bench
@pytest.mark.skipif(not GENERATOR.exists(), reason="the generator of libraries is not beside the repository")
def test_a_dry_run_costs_little_more_than_a_walk(tmp_path: Path) -> None:
    """A dry run over 5,000 managed skills holds what was reached."""
    figures = measure(tmp_path)
    print("\n" + table(figures, GOALS))

    assert {} == over(figures, GOALS)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(table(measure(Path(made)), GOALS))

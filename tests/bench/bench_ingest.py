"""
Speed and size of the ingest, as ratios within one run: pairs side by side (A B A B …), medians.

    python -m tests.bench.bench_ingest --corpus DIR [--pairs 5] [--goals 1,2] [--ccusage PATH] [--fast-resume PATH]
        [--orjson FOLDER]
    python -m pytest -m bench tests/bench/bench_ingest.py

Each side is a fresh process that says its own wall and CPU seconds and its peak memory, start-up included. Peers are
optional, given by the path of their program; they are run with a home of their own whose files are hard links to the
corpus, or a link to it where that lies on another file system. *FOLDER* is one that holds the package orjson.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of one side cost: seconds, seconds, bytes."""

    wall: float
    cpu: float
    peak: int


def run(command: list[str], *, env: dict[str, str] | None = None) -> Cost:
    """Return the cost of *command* with all its children."""
    began = time.perf_counter()
    process = subprocess.Popen(command, env=env, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    complaint = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[:4]}… ended with {process.returncode}: {complaint[-2000:].decode()}")
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def ours(what: str, *arguments: str) -> list[str]:
    """Return the command for one of `sides`."""
    return [sys.executable, "-m", "tests.bench.sides", what, *arguments]


def paired(a: Callable[[], Cost], b: Callable[[], Cost], pairs: int) -> dict[str, float]:
    """Return medians of *a*, of *b* and of their ratios over *pairs* pairs."""
    costs = [(a(), b()) for _ in range(pairs)]
    return {
        "wall": statistics.median(x.wall for x, _ in costs),
        "cpu": statistics.median(x.cpu for x, _ in costs),
        "other_wall": statistics.median(y.wall for _, y in costs),
        "other_cpu": statistics.median(y.cpu for _, y in costs),
        "wall_ratio": statistics.median(x.wall / y.wall for x, y in costs),
        "cpu_ratio": statistics.median(x.cpu / y.cpu for x, y in costs),
        "peak_mib": max(x.peak for x, _ in costs) / MIB,
        "other_peak_mib": max(y.peak for _, y in costs) / MIB,
    }


# -- the goals

ONE_FIELD = "3 to one msgspec field (<= 1.7)"
APPEND = "7 append to commit, without the watcher, ms (p50 <= 2, p95 <= 10)"


def _home(scratch: Path, projects: Path) -> Path:
    """Return a home with the transcripts of *projects*, made once."""
    home = scratch / "home"
    if not home.exists():
        (home / ".claude").mkdir(parents=True)
        try:
            shutil.copytree(projects, home / ".claude" / "projects", copy_function=os.link)
        except (OSError, shutil.Error):
            shutil.rmtree(home / ".claude" / "projects", ignore_errors=True)
            (home / ".claude" / "projects").symlink_to(projects)
    return home


def measure(
    projects: Path,
    *,
    pairs: int,
    ccusage: str | None = None,
    fast_resume: str | None = None,
    orjson: str | None = None,
    goals: str = "123467",
    log: Callable[[str], None],
) -> dict[str, dict[str, float]]:
    """Return the figures of those *goals* whose digits are named; *log* gets a line for each as it is done."""
    told: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=projects.parent) as name:
        scratch = Path(name)

        def fresh(workers: int) -> Callable[[], Cost]:
            def go() -> Cost:
                shutil.rmtree(scratch / "state", ignore_errors=True)
                return run(ours("scan", str(projects), str(scratch / "state"), str(workers)))

            return go

        def note(goal: str, figures: dict[str, float]) -> None:
            told[goal] = figures
            log(f"{goal}: " + ", ".join(f"{key} {value:.3f}" for key, value in figures.items()))

        if "3" in goals:
            idle = run(ours("imports")).peak / MIB
            figures = paired(fresh(0), lambda: run(ours("one_field", str(projects))), pairs)
            figures["over_idle_mib"] = figures["peak_mib"] - idle
            note(ONE_FIELD, figures)
            log(f"5 memory over the idle process (<= 48 MiB): {figures['over_idle_mib']:.1f}")
            paths = os.pathsep.join(path for path in (orjson, os.environ.get("PYTHONPATH")) if path)
            with_orjson = {**os.environ, **({"PYTHONPATH": paths} if paths else {})}
            try:
                whole = paired(fresh(0), lambda: run(ours("orjson", str(projects)), env=with_orjson), pairs)
                note("3 to orjson (<= 1.0)", whole)
            except RuntimeError:
                log("3 to orjson: not installed")

            def plain() -> Cost:
                (scratch / "plain.db").unlink(missing_ok=True)
                return run([sys.executable, "-m", "tests.bench.plain_scan", str(projects), str(scratch / "plain.db")])

            note("3 to the plain way of the same", paired(fresh(0), plain, pairs))
        if "2" in goals:
            note("2 two readers to one", paired(fresh(1), fresh(0), pairs))
        env = {key: value for key, value in os.environ.items() if key != "CLAUDE_CONFIG_DIR"}
        if ccusage:
            env["HOME"] = str(_home(scratch, projects))
            peer = [ccusage, "claude", "daily", "--offline", "--json"]
            if "1" in goals:
                note("1 to ccusage (cpu <= 0.6, wall <= 1.0)", paired(fresh(0), lambda: run(peer, env=env), pairs))
            if "2" in goals:
                note("2 two readers to ccusage (wall <= 0.75)", paired(fresh(1), lambda: run(peer, env=env), pairs))
        if fast_resume and "4" in goals:
            home = _home(scratch, projects)
            env["HOME"] = str(home)

            def index() -> Cost:
                shutil.rmtree(home / ".cache", ignore_errors=True)
                return run([fast_resume, "--rebuild", "--stats"], env=env)

            note("4 to fast-resume (<= 0.5), one reader", paired(fresh(0), index, pairs))
            note("4 to fast-resume (<= 0.5), two readers, as `curatord scan` has them", paired(fresh(1), index, pairs))
        if "6" in goals:
            note("6 unchanged rescan to scandir and stat (<= 1.5, less imports)", _rescan(projects, scratch, pairs))
        if "7" in goals:
            note(APPEND, _append(projects, scratch))
    return told


def _rescan(projects: Path, scratch: Path, pairs: int) -> dict[str, float]:
    state = scratch / "kept"
    run(ours("scan", str(projects), str(state), "0"))
    imports = statistics.median(run(ours("imports")).wall for _ in range(pairs))
    bare = statistics.median(run([sys.executable, "-c", "pass"]).wall for _ in range(pairs))
    figures = paired(
        lambda: run(ours("scan", str(projects), str(state), "0")), lambda: run(ours("stat", str(projects))), pairs
    )
    figures["less_imports_ratio"] = (figures["wall"] - (imports - bare)) / figures["other_wall"]
    return figures


def _append(projects: Path, scratch: Path) -> dict[str, float]:
    copy = scratch / "copy"
    shutil.copytree(projects, copy, ignore=lambda folder, names: names[200:] if len(names) > 200 else [])
    run(ours("scan", str(copy), str(scratch / "append"), "0"))
    run(ours("append", str(copy), str(scratch / "append"), "300"))
    took = json.loads((scratch / "append" / "append.json").read_text(encoding="utf-8"))
    return {"p50": took[len(took) // 2], "p95": took[len(took) * 95 // 100]}


@pytest.mark.bench
def test_goals(tmp_path: Path) -> None:
    """The ratios that need no peer hold on a corpus of 128 MiB, with room for a small sample."""
    from tests.bench.corpus import make

    projects = make(tmp_path / "corpus", megabytes=128, sessions=250)
    told = measure(projects, pairs=5, log=print)

    scan = told[ONE_FIELD]
    assert scan["over_idle_mib"] <= 48
    assert told[APPEND]["p50"] <= 2


def main() -> None:
    """Measure all goals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="a `projects` folder; default: one is made")
    parser.add_argument("--megabytes", type=int, default=256, help="of the corpus that is made")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--ccusage", help="path of the program")
    parser.add_argument("--fast-resume", help="path of the program")
    parser.add_argument("--orjson", help="folder that holds the package")
    parser.add_argument("--goals", default="1,2,3,4,6,7", help="numbers of those to measure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="corpus-") as made:
        projects = options.corpus
        if projects is None:
            from tests.bench.corpus import make

            projects = make(Path(made), megabytes=options.megabytes, sessions=options.megabytes * 2)
        figures = measure(
            projects.resolve(),
            pairs=options.pairs,
            ccusage=options.ccusage,
            fast_resume=options.fast_resume,
            orjson=options.orjson,
            goals=options.goals,
            log=lambda line: print(line, flush=True),
        )
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()

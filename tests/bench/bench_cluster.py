"""
Measures clustering: time, memory and how well it finds the groups a library was generated from.

Run `python tests/bench/bench_cluster.py [--skills N …] [--seeds N …]` for a table, or `pytest -m bench tests/bench` to
hold the figures against their goals. Libraries come from the generator that stands beside the repository; without it
there is nothing to measure. Each library is measured in a process of its own, so that memory is its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
GENERATOR = REPO.parent / "shared" / "bench" / "gen_corpus.py"

if __name__ == "__main__":
    sys.path.insert(0, str(REPO))

from curatord.core.cluster import (  # noqa: E402 - run as a script it finds the package by the line above
    SHORTLIST,
    TIGHT,
    Clustering,
    SkillText,
    build_index,
    cut,
    links,
)

# Skills -> CPU seconds, MiB added at the peak, pairwise F1 of the tight cut. The time is that of the tight cut with all
# before it; a second cut comes on top of it.
GOALS = {346: (0.3, 16, 0.97), 5_000: (5.0, 128, 0.87), 50_000: (300.0, 1_536, 0.87)}
SIBLINGS = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one library gave; seconds are CPU time, the median of *rounds*."""

    skills: int
    seed: int
    rounds: int
    seconds: float
    index_seconds: float
    links_seconds: float
    cut_seconds: float
    added_mib: float
    precision: float
    recall: float
    f1: float
    siblings_tight: float
    siblings_shortlist: float
    largest: int


def generate(out: Path, skills: int, seed: int) -> None:
    """Write a library with its truth below *out*."""
    command = [sys.executable, str(GENERATOR), "--only", "library", "--out", str(out)]
    subprocess.run(
        [*command, "--skills", str(skills), "--seed", str(seed)], check=True, stdout=subprocess.DEVNULL, timeout=1_800
    )


def read_library(corpus: Path) -> tuple[list[SkillText], dict[str, int]]:
    """Return the generated skills and the true group of each."""
    truth = json.loads((corpus / "truth" / "clusters.json").read_text(encoding="utf-8"))["skills"]
    skills = []
    for name, row in truth.items():
        text = (corpus / "library" / "skills" / row["path"] / "SKILL.md").read_text(encoding="utf-8")
        head, _, body = text.removeprefix("---\n").partition("\n---\n")
        described = next(line for line in head.splitlines() if line.startswith("description: "))
        skills.append(
            SkillText(key=name, name=name, description=json.loads(described.removeprefix("description: ")), body=body)
        )
    return skills, {name: row["cluster"] for name, row in truth.items()}


def agreement(found: Clustering, truth: Mapping[str, int]) -> tuple[float, float, float]:
    """Return precision, recall and F1 over pairs of skills."""
    label = {key: number for number, group in enumerate(found.groups) for key in group.members}
    lone = {key: -number for number, key in enumerate(found.alone, start=1)}
    label |= lone
    both = _pairs(Counter((label[key], group) for key, group in truth.items()).values())
    precision = both / max(1, _pairs(Counter(label.values()).values()))
    recall = both / max(1, _pairs(Counter(truth.values()).values()))
    return precision, recall, 2 * precision * recall / max(1e-9, precision + recall)


def siblings(found: Clustering, truth: Mapping[str, int]) -> float:
    """Return the part of the skills with siblings that have one in their group or among their nearest outside."""
    group_of = {key: group.members for group in found.groups for key in group.members}
    sizes = Counter(truth.values())
    hits = [
        any(
            truth[other] == group and other != key
            for other in (*group_of.get(key, ()), *(near.key for near in found.nearest[key]))
        )
        for key, group in truth.items()
        if sizes[group] > 1
    ]
    return sum(hits) / max(1, len(hits))


def _pairs(sizes: Iterable[int]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes)


def measure(corpus: Path, *, seed: int, rounds: int) -> Measured:
    """Return the figures of one library, in this process."""
    skills, truth = read_library(corpus)
    before = _forget_peak()
    spent: list[tuple[float, float, float]] = []
    added = 0.0
    for turn in range(rounds):
        started = time.process_time()
        index = build_index(skills)
        indexed = time.process_time()
        measured = links(index)
        linked = time.process_time()
        tight = cut(measured, TIGHT)
        spent.append((indexed - started, linked - indexed, time.process_time() - linked))
        if turn == 0:
            added = _peak_mib() - before
    shortlist = cut(measured, SHORTLIST)
    precision, recall, f1 = agreement(tight, truth)
    columns = [statistics.median(column) for column in zip(*spent, strict=True)]
    return Measured(
        skills=len(skills),
        seed=seed,
        rounds=rounds,
        seconds=statistics.median(sum(row) for row in spent),
        index_seconds=columns[0],
        links_seconds=columns[1],
        cut_seconds=columns[2],
        added_mib=added,
        precision=precision,
        recall=recall,
        f1=f1,
        siblings_tight=siblings(tight, truth),
        siblings_shortlist=siblings(shortlist, truth),
        largest=max(len(group.members) for group in shortlist.groups),
    )


def _forget_peak() -> float:
    """Forget the peak of resident memory where the kernel can; return what is the peak from now on, in MiB."""
    forget = Path("/proc/self/clear_refs")
    if forget.exists():
        forget.write_text("5", encoding="ascii")
    return _peak_mib()


def _peak_mib() -> float:
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured_apart(corpus: Path, *, skills: int, seed: int, rounds: int) -> Measured:
    """Generate a library in *corpus* and return its figures, measured in a fresh process."""
    generate(corpus, skills, seed)
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", str(corpus)]
    done = subprocess.run(
        [*command, "--seeds", str(seed), "--rounds", str(rounds)],
        check=True,
        capture_output=True,
        text=True,
        timeout=1_800,
    )
    return Measured(**json.loads(done.stdout))


def table(rows: Iterable[Measured]) -> str:
    """Return the figures for people."""
    head = (
        "skills  seed   CPU s = index + links + tight cut    MiB added   F1 (precision, recall)"
        "    sibling: tight, shortlist  largest"
    )
    lines = [head]
    lines += [
        f"{row.skills:6}  {row.seed:4}  {row.seconds:6.2f} = {row.index_seconds:5.2f} + {row.links_seconds:5.2f}"
        f" + {row.cut_seconds:5.2f}         {row.added_mib:9.1f}   {row.f1:.3f} ({row.precision:.3f}, {row.recall:.3f})"
        f"      {row.siblings_tight:.3f}, {row.siblings_shortlist:.3f}               {row.largest:2}"
        for row in rows
    ]
    return "\n".join(lines)


@pytest.mark.bench
@pytest.mark.skipif(not GENERATOR.exists(), reason="the generator of libraries is not beside the repository")
@pytest.mark.parametrize(("skills", "seed"), [(346, 1), (346, 2), (346, 3), (5_000, 1), (5_000, 2)])
def test_goals_are_met(tmp_path: Path, skills: int, seed: int) -> None:
    """Time, memory, groups and siblings meet their goals on a generated library."""
    got = measured_apart(tmp_path, skills=skills, seed=seed, rounds=5 if skills < 1_000 else 3)
    print("\n" + table([got]))

    seconds, mib, f1 = GOALS[skills]
    assert got.seconds <= seconds
    assert got.added_mib <= mib
    assert got.f1 >= f1
    assert min(got.siblings_tight, got.siblings_shortlist) >= SIBLINGS


def main() -> int:
    """Print the table, or measure the one library named by --measure and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skills", type=int, nargs="+", default=[346, 5_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(asdict(measure(asked.measure, seed=asked.seeds[0], rounds=asked.rounds))))
        return 0
    if not GENERATOR.exists():
        print(f"nothing to measure: {GENERATOR} is missing", file=sys.stderr)
        return 2
    rows = []
    for skills in asked.skills:
        for seed in asked.seeds:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measured_apart(Path(folder), skills=skills, seed=seed, rounds=asked.rounds))
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""
Fuzzes the parsers: `python -m tests.fuzz.run --seconds 60 [TARGET …]`.

With atheris (the extra `fuzz`) the coverage of curatord's own code guides it; without it inputs are only mutated. Each
target is a process of its own, so that one that hangs or eats memory is a finding and not the end. What broke is kept
as a file below `--findings`; copied into `tests/fuzz/corpus/TARGET/` it becomes a test.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import pkgutil
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["main"]

HANG_S = 20
MEMORY_MIB = 1500


def main(arguments: list[str] | None = None) -> int:
    """Return 0 where nothing broke, 1 where something did, 2 where a target's name is not known."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("targets", metavar="TARGET", nargs="*", help="default: all")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--no-guidance", action="store_true", help="only mutate, though atheris is there")
    parser.add_argument("--list", action="store_true", help="name the targets")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    told = parser.parse_args(arguments)
    guided = importlib.util.find_spec("atheris") is not None and not told.no_guidance
    if told.inside:
        return _guided(told) if guided else _unguided(told)
    from tests.fuzz.targets import TARGETS

    if told.list:
        print("\n".join(TARGETS))
        return 0
    unknown = sorted(set(told.targets) - set(TARGETS))
    if unknown:
        print(f"no such target: {', '.join(unknown)}", file=sys.stderr)
        return 2
    how = "coverage guidance" if guided else "mutation alone"
    total, broken = 0, []
    for name in told.targets or TARGETS:
        executions, trouble = _run(name, told, guided)
        total += executions
        broken += [name] if trouble else []
        print(f"{name:24} {executions:9} executions  {'BROKE: ' + trouble if trouble else 'sound'}", flush=True)
    print(f"{total} executions by {how}, {told.seconds} s a target; broken: {', '.join(broken) or 'none'}")
    return 1 if broken else 0


def _run(name: str, told: argparse.Namespace, guided: bool) -> tuple[int, str]:
    """Return how many inputs were tried on a target in a process of its own, and what broke it, or the empty text."""
    told.findings.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.run", "--inside", name, "--seconds", str(told.seconds)]
    command += ["--seed", str(told.seed), "--findings", str(told.findings)] + ([] if guided else ["--no-guidance"])
    # Its own limit should end it; a target that hangs in C code is ended from here.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            said, _ = process.communicate(timeout=told.seconds + 120)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            return 0, "it did not end"
    counts = re.findall(r"number_of_executed_units:\s*(\d+)|^#(\d+)\s", said, re.MULTILINE)
    executions = max((int(a or b) for a, b in counts), default=0)
    if process.returncode == 0:
        return executions, ""
    (told.findings / f"{name}.log").write_text(said, encoding="utf-8")
    found = re.findall(r"^(?:[A-Za-z_.]*(?:Error|Exception)|ERROR: libFuzzer|TimeoutError).*", said, re.MULTILINE)
    return executions, (found[-1] if found else f"exit code {process.returncode}")[:200]


def _guided(told: argparse.Namespace) -> int:
    """Run one target under atheris; it ends the process itself."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["curatord"], enable_loader_override=False):
        import curatord

        for package in ("core", "config", "adapters"):
            for found in pkgutil.walk_packages([f"{curatord.__path__[0]}/{package}"], f"curatord.{package}."):
                importlib.import_module(found.name)
        from tests.fuzz.mutate import mutated
        from tests.fuzz.targets import TARGETS, corpus
    target = TARGETS[told.inside]
    seeds = told.findings / f"{told.inside}-corpus"
    seeds.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(corpus(told.inside)):
        (seeds / f"seed-{number}").write_bytes(data)

    def change(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return bytes(atheris.Mutate(data, most))
        return mutated(bytes(data), rng)[:most]

    atheris.Setup(
        [
            told.inside, f"-max_total_time={told.seconds}", f"-timeout={HANG_S}", f"-rss_limit_mb={MEMORY_MIB}",
            f"-seed={told.seed}", "-max_len=20000", "-print_final_stats=1", "-verbosity=1", "-report_slow_units=5",
            f"-artifact_prefix={told.findings}/{told.inside}-", str(seeds),
        ],
        target.run,
        custom_mutator=change,
    )  # fmt: skip
    atheris.Fuzz()
    return 0


def _unguided(told: argparse.Namespace) -> int:
    """Run one target on mutated seeds until its time is up."""
    from tests.fuzz.mutate import mutated
    from tests.fuzz.targets import TARGETS, corpus

    rng = random.Random(told.seed)
    target, known = TARGETS[told.inside], corpus(told.inside)
    until = time.monotonic() + told.seconds
    count = 0
    while time.monotonic() < until:
        data = mutated(rng.choice(known), rng)
        try:
            target.run(data)
        except BaseException:
            (told.findings / f"{told.inside}-crash").write_bytes(data)
            raise
        count += 1
    print(f"number_of_executed_units: {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

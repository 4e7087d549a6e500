"""A kill at each step of a merge: afterwards the library is as before or as after, and a new start says which."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

import pytest

from tests.passes.umbrella_rules import by_rule
from tests.umbrella_home import NOW, UmbrellaHome, contents


class KilledError(BaseException):
    """Stands for kill -9: nothing catches it, so nothing is tidied up."""


def a_home(base: Path) -> UmbrellaHome:
    """Write two skills that merge, with files, and a third whose link follows."""
    home = UmbrellaHome(base=base)
    home.skill(
        "dns-a", "# A\n\n[s](scripts/run.sh)\n", files={"scripts/run.sh": b"#!\n"}, modes={"scripts/run.sh": 0o755}
    )
    home.skill("dns-b", "# B\n\n[a](../dns-a/SKILL.md)\n")
    home.skill("lone", "[b](../dns-b/SKILL.md)\n")
    return home


def everything(home: UmbrellaHome) -> dict[str, tuple[int, bytes]]:
    """Return all files of library and archive."""
    found = {f"live/{path}": entry for path, entry in contents(home.root).items()}
    if home.archive.exists():
        found |= {f"archive/{path}": entry for path, entry in contents(home.archive).items()}
    return found


def kill_at_every(tmp_path: Path, stride: int) -> None:
    """Kill a run at each *stride*-th step, and look at what a new start makes of it."""
    whole = a_home(tmp_path / "whole")
    before = everything(whole)
    steps: list[str] = []
    whole.hook = steps.append
    whole.run(by_rule())
    after = everything(whole)
    whole.close()
    assert before != after
    assert len(steps) > 20

    seen = set()
    for count in range(1, len(steps) + 1, stride):
        home = a_home(tmp_path / str(count))
        left = itertools.count(1)

        def hook(_name: str, left: itertools.count[int] = left, count: int = count) -> None:
            if next(left) == count:
                raise KilledError

        home.hook = hook
        with contextlib.suppress(KilledError):
            home.run(by_rule())
        home.hook = lambda _: None
        home.close()

        home.applier().recover(now=NOW)
        found = everything(home)

        assert found in (before, after), steps[count - 1]
        seen.add(found == after)
        home.run(by_rule(), run_id="20260302-120000")
        assert after == everything(home)
        home.close()
    assert {True, False} == seen


def test_a_kill_at_some_steps_leaves_before_or_after(tmp_path: Path) -> None:
    """And the next run finishes the work, whatever was found."""
    kill_at_every(tmp_path, 9)


@pytest.mark.campaign
def test_a_kill_at_any_step_leaves_before_or_after(tmp_path: Path) -> None:
    """The same, for every single one."""
    kill_at_every(tmp_path, 1)

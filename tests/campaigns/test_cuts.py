"""
The command line, killed at every call by which it changes a file, over a library of 300 skills; then started again.

`tests/passes/test_crash.py` cuts at the effects that our own writer names. Here nothing of ours is asked: a library
loaded before the process counts every write, sync, rename, truncation, folder and removal below the home, SQLite's own
among them, and kills the real command there (SIGKILL), every other time with half of the write done. A fresh start then
recovers, and is itself killed, once or twice, before it may. What must be so afterwards: the user's and the hosts'
files are to the byte what they were before the command or what they are after an undisturbed one; the records agree
with the files; the plain file of decisions agrees with the database; nothing temporary is left; what was done can be
undone to the byte, and what was not done can be done.

The ordinary run takes a sample of about a minute. The campaign, at least a thousand cuts, is

    python -m pytest -m campaign tests/campaigns/test_cuts.py -s

and prints how many cuts there were and how many losses (it fails at the first). `CUT_STRIDE=1` cuts at every single
call of every kind, which takes the better part of an hour; without it, it is every third.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.campaigns.home import BigHome
from tests.campaigns.kinds import KINDS
from tests.campaigns.processes import KILL, TORN, Cut, Cutter
from tests.campaigns.stage import Stage

STRIDE = int(os.environ.get("CUT_STRIDE", "3"))
MOST = 500  # cuts of one kind: a backup of 300 packages makes thousands of calls, all alike


def cut_at(stage: Stage, number: int, *, deep: bool) -> None:
    """Kill the command at its *number*-th call, *deep*: its recovery too, and look at what a new start makes of it."""
    stage.again()
    stage.cutter.do(stage.home, *stage.words, cut=Cut(how=TORN if number % 2 else KILL, at=number))
    where = f"{' '.join(stage.words)}, cut at call {number} of {stage.calls}"
    if deep:
        for _ in range(stage.dice.randint(1, 2)):
            stage.cutter.do(stage.home, order="recover", cut=Cut(how=KILL, at=stage.dice.randint(1, 60)))
    stage.must("recover", where)
    stage.judge(where, deep=deep)


def _campaign(home: BigHome, cutter: Cutter, name: str, *, cuts: int | None) -> None:
    seed = sorted(KINDS).index(name)
    stage = Stage(cutter, home, KINDS[name], seed)
    if cuts is None:
        stride = max(STRIDE, stage.calls // MOST)
        numbers = list(range(1 + seed % stride, stage.calls + 1, stride))
    else:
        numbers = sorted(random.Random(seed).sample(range(1, stage.calls + 1), cuts))
    kills = cutter.kills
    for count, number in enumerate(numbers):
        cut_at(stage, number, deep=count % 3 == 0)
    kills = cutter.kills - kills
    print(f"\n{name}: {stage.calls} calls, {kills} kills, recovery's among them; {cutter.kills} so far, 0 losses")
    assert kills > len(numbers) / 2


@pytest.mark.parametrize("name", KINDS)
def test_a_sample_of_cuts(big: BigHome, cutting: Cutter, name: str) -> None:
    """Some calls of each kind of change, drawn by lot but the same each time."""
    _campaign(big, cutting, name, cuts=3)


@pytest.mark.campaign
@pytest.mark.parametrize("name", KINDS)
def test_every_cut(big: BigHome, cutting: Cutter, name: str) -> None:
    """Every third call of each kind of change, or every single one with `CUT_STRIDE=1`."""
    _campaign(big, cutting, name, cuts=None)

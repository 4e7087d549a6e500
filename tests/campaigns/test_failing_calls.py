"""
The command line over 300 skills, with a call that fails: a full, broken or read-only disk, a permission that is gone.

As in `test_cuts`, between the process and the kernel, so that SQLite's own calls fail too; once, or from there on for
good. The process lives on, and has to end in a clear line and one of its codes, never in a traceback. Where it says
that it is done, it is done; where it says that it is not, everything is as it was, at once or after the next start; and
once the disk is well again, the same command works.

    python -m pytest -m campaign tests/campaigns/test_failing_calls.py -s
"""

from __future__ import annotations

import errno
import os
import random

import pytest

from tests.campaigns.home import BigHome
from tests.campaigns.kinds import KINDS
from tests.campaigns.processes import FAIL, Cut, Cutter
from tests.campaigns.stage import Stage

FAULTS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES)
STRIDE = int(os.environ.get("FAULT_STRIDE", "11"))
MOST = 50  # calls of one kind: a backup of 300 packages makes thousands, all alike
CODES = (0, 3, 4, 5)


def fail_at(stage: Stage, number: int, error: int, *, sticky: bool) -> None:
    """Let the *number*-th call fail, and look at what was said and what is there."""
    stage.again()
    ended = stage.cutter.do(stage.home, *stage.words, cut=Cut(how=FAIL, at=number, errno=error, sticky=sticky))
    kept = "from there on" if sticky else "once"
    said = f"{ended.code} {ended.out[-300:]} {ended.err[-700:]}"
    where = f"{stage.words}, {errno.errorcode[error]} at call {number} of {stage.calls}, {kept}: {said}"
    assert ended.code in CODES, where
    assert "Traceback" not in ended.err, where
    if ended.code:
        assert ended.err.strip() or ended.out.strip(), where
    stage.must("recover", where)
    if not stage.kind.whole:
        stage.judge(where, deep=False)
        return
    done = stage.before_or_after(where, deep=not sticky)
    stage.sound(where)
    if ended.code == 0:
        assert done, where


def _campaign(home: BigHome, cutter: Cutter, name: str, *, faults: int | None) -> None:
    seed = sorted(KINDS).index(name)
    stage = Stage(cutter, home, KINDS[name], seed)
    if faults is None:
        stride = max(STRIDE, stage.calls // MOST)
        numbers = list(range(1 + seed % stride, stage.calls + 1, stride))
    else:
        numbers = sorted(random.Random(seed).sample(range(1, stage.calls + 1), faults))
    met = cutter.faults
    for count, number in enumerate(numbers):
        every = FAULTS if faults is None else (FAULTS[(seed + count) % len(FAULTS)],)
        for error in every:
            fail_at(stage, number, error, sticky=(count + error) % 2 == 0)
    print(f"\n{name}: {stage.calls} calls, {cutter.faults - met} faults; {cutter.faults} so far, 0 losses")
    assert cutter.faults > met


@pytest.mark.parametrize("name", KINDS)
def test_a_sample_of_faults(big: BigHome, cutting: Cutter, name: str) -> None:
    """Some calls of each kind of change, each with one of the faults."""
    _campaign(big, cutting, name, faults=3)


@pytest.mark.campaign
@pytest.mark.parametrize("name", KINDS)
def test_every_fault(big: BigHome, cutting: Cutter, name: str) -> None:
    """Every eleventh call (`FAULT_STRIDE`) of each kind of change, with each of the faults."""
    _campaign(big, cutting, name, faults=None)

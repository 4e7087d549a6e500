"""
The command line, killed at every call by which it changes a file, over a library of 300 skills; then started again.

`tests/passes/test_crash.py` cuts at the effects that our own writer names. Here nothing of ours is asked: a library
loaded before the process counts every write, sync, rename, truncation, folder and removal below the home, SQLite's own
among them, and kills the real command there (SIGKILL), every other time with half of the write done. A fresh start then
recovers, and is itself killed, once or twice, before it may. What must be so afterwards: the user's and the hosts' files
are to the byte what they were before the command or what they are after an undisturbed one; the records agree with the
files; the plain file of decisions agrees with the database; nothing temporary is left; what was done can be undone to
the byte, and what was not done can be done.

The ordinary run takes a sample of about a minute. The campaign, at least a thousand cuts, is

    python -m pytest -m campaign tests/campaigns/test_cuts.py -s

and prints how many cuts there were and how many losses (it fails at the first). `CUT_STRIDE=1` cuts at every single
call of every kind, which takes the better part of an hour; without it, it is every third.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.campaigns.home import BigHome, differences
from tests.campaigns.kinds import KINDS, Kind
from tests.campaigns.processes import KILL, TORN, Cut, Cutter

STRIDE = int(os.environ.get("CUT_STRIDE", "3"))


class Campaign:
    """One kind of change, cut again and again from the same beginning."""

    def __init__(self, cutter: Cutter, home: BigHome, kind: Kind, seed: int) -> None:
        self.cutter = cutter
        self.home = home
        self.kind = kind
        self.dice = random.Random(seed)
        self.words = kind.prepare(cutter, home)
        self.must("recover")
        self.begin = home.image()
        self.before = home.files(self.begin)
        self.before_records = home.records()
        self.texts = home.texts()
        done = cutter.do(home, *self.words)
        assert done.code == 0, done
        self.calls = done.calls
        self.must("recover")
        self.after = home.files()
        self.after_records = home.records()
        self.sound("undisturbed")

    def must(self, order: str) -> None:
        """Carry out an order that has to succeed."""
        done = self.cutter.do(self.home, order=order)
        assert done.code == 0, done

    def cut_at(self, number: int, *, deep: bool) -> None:
        """Kill the command at its *number*-th call and look at what a new start makes of it."""
        home = self.home
        home.put_back(self.begin)
        self.cutter.do(home, *self.words, cut=Cut(how=TORN if number % 2 else KILL, at=number))
        where = f"{' '.join(self.words)}, cut at call {number} of {self.calls}"
        if deep:
            for _ in range(self.dice.randint(1, 2)):
                self.cutter.do(home, order="recover", cut=Cut(how=KILL, at=self.dice.randint(1, 60)))
        done = self.cutter.do(home, order="recover")
        assert done.code == 0, (where, done)
        self.sound(where)
        if self.kind.whole:
            self.before_or_after(where, deep=deep)
        else:
            self.parts_are_whole(where)

    def before_or_after(self, where: str, *, deep: bool) -> None:
        """Assert that nothing is in between, then go the other way: undo what was done, do what was not."""
        home = self.home
        found, records = home.files(), home.records()
        if records == self.after_records:
            assert found == self.after, (where, differences(found, self.after))
            if deep and self.kind.undo:
                done = self.cutter.do(home, "undo", str(home.last_action()))
                assert done.code == 0, (where, done)
                found = home.files()
                assert found == self.before, (where, differences(found, self.before))
                self.sound(f"{where}, undone")
            return
        assert records == self.before_records, (where, _unlike(records, self.before_records, self.after_records))
        assert found == self.before, (where, differences(found, self.before))
        if deep:
            done = self.cutter.do(home, *self.words)
            assert done.code == 0, (where, done)
            found = home.files()
            assert found == self.after, (where, differences(found, self.after))

    def parts_are_whole(self, where: str) -> None:
        """Assert of several actions that no text was lost, and that going on brings the end that was wanted."""
        assert self.texts == self.home.texts(), where
        if self.words[0] == "run":
            done = self.cutter.do(self.home, *self.words)
            assert done.code == 0, (where, done)
            found = self.home.files()
            assert found == self.after, (where, differences(found, self.after))

    def sound(self, where: str) -> None:
        """Assert what must hold after every start."""
        assert self.home.disagreements() == [], where
        assert self.home.leftovers() == [], where


def _unlike(records: dict[str, object], *others: dict[str, object]) -> dict[str, object]:
    """Return the parts of the records that are like none of *others*."""
    return {name: part for name, part in records.items() if all(other[name] != part for other in others)}


def _campaign(memory: Path, cutter: Cutter, name: str, *, cuts: int | None) -> None:
    seed = sorted(KINDS).index(name)
    home = BigHome(folder=memory / "world").make()
    done = cutter.do(home, "scan")
    assert done.code == 0, done
    campaign = Campaign(cutter, home, KINDS[name], seed)
    if cuts is None:
        numbers = list(range(1 + seed % STRIDE, campaign.calls + 1, STRIDE))
    else:
        numbers = sorted(random.Random(seed).sample(range(1, campaign.calls + 1), cuts))
    for count, number in enumerate(numbers):
        campaign.cut_at(number, deep=count % 3 == 0)
    print(f"\n{name}: {campaign.calls} calls, {cutter.kills} kills (recovery's among them), 0 losses")
    assert cutter.kills > len(numbers) / 2


@pytest.mark.parametrize("name", KINDS)
def test_a_sample_of_cuts(memory: Path, cutting: Cutter, name: str) -> None:
    """Some calls of each kind of change, drawn by lot but the same each time."""
    _campaign(memory, cutting, name, cuts=5)


@pytest.mark.campaign
@pytest.mark.parametrize("name", KINDS)
def test_every_cut(memory: Path, cutting: Cutter, name: str) -> None:
    """Every third call of each kind of change, or every single one with `CUT_STRIDE=1`."""
    _campaign(memory, cutting, name, cuts=None)

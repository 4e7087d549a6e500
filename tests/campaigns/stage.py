"""One kind of change over the big home, done once undisturbed, and what must hold however it was disturbed."""

from __future__ import annotations

import random
from typing import Any

from tests.campaigns.home import BigHome, differences
from tests.campaigns.kinds import Kind
from tests.campaigns.processes import Cutter, Ended

__all__ = ["Stage"]


class Stage:
    """The beginning, and both ends that there may be: *before* and *after*."""

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

    def must(self, order: str, where: str = "") -> Ended:
        """Carry out an order that has to succeed."""
        done = self.cutter.do(self.home, order=order)
        assert done.code == 0, (where, done)
        return done

    def again(self) -> None:
        """Put everything back to the beginning."""
        self.home.put_back(self.begin)

    def sound(self, where: str) -> None:
        """Assert what must hold after every start."""
        assert self.home.disagreements() == [], where
        assert self.home.leftovers() == [], where

    def is_done(self, where: str) -> bool:
        """Return whether it is after; assert that it is that or before, files and records alike."""
        home = self.home
        found, records = home.files(), home.records()
        if records == self.after_records:
            assert found == self.after, (where, differences(found, self.after))
            return True
        assert records == self.before_records, (where, _unlike(records, self.before_records, self.after_records))
        assert found == self.before, (where, differences(found, self.before))
        return False

    def before_or_after(self, where: str, *, deep: bool) -> bool:
        """Assert that nothing is in between; *deep*: then undo what was done, or do what was not. Whether it was."""
        home = self.home
        done = self.is_done(where)
        if not deep:
            return done
        if not done:
            ended = self.cutter.do(home, *self.words)
            assert ended.code == 0, (where, ended)
            assert self.is_done(f"{where}, done again"), where
        elif self.kind.undo:
            ended = self.cutter.do(home, "undo", str(home.last_action()))
            assert ended.code == 0, (where, ended)
            found = home.files()
            assert found == self.before, (where, differences(found, self.before))
            self.sound(f"{where}, undone")
        return done

    def parts_are_whole(self, where: str) -> None:
        """Assert of several actions that no text was lost, and that going on brings the end that was wanted."""
        assert self.texts == self.home.texts(), where
        if self.words[0] in ("run", "scan"):
            ended = self.cutter.do(self.home, *self.words)
            assert ended.code == 0, (where, ended)
            found = self.home.files()
            assert found == self.after, (where, differences(found, self.after))

    def judge(self, where: str, *, deep: bool) -> None:
        """Assert all of it, after a start that recovered."""
        if self.words[0] == "scan":  # what a look has not written yet, the next look writes
            self.parts_are_whole(where)
            records = self.home.records()
            assert {**records, "actions": self.after_records["actions"]} == self.after_records, where
            self.sound(where)
            return
        self.sound(where)
        if self.kind.whole:
            self.before_or_after(where, deep=deep)
        else:
            self.parts_are_whole(where)


def _unlike(records: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of the records that are like none of *others*."""
    return {name: part for name, part in records.items() if all(other[name] != part for other in others)}

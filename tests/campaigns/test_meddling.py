"""
Somebody else at the worst moment: a user or a host changes things while a command of ours stands still.

The real command is stopped (SIGSTOP) at one of the calls by which it changes a file, somewhere between its first look
and its last commit; then a skill is edited, thrown away, pinned, used or archived by its host; then it goes on. The
host takes its lock as it does, and waits where we hold it; a user with an editor takes none. What must be so: not a
byte of the other's work is lost and it stands where it was put; either the command was done as well, or it left all as
it was and said why (exit code 3).

    python -m pytest -m campaign tests/campaigns/test_meddling.py -s
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.campaigns.home import BigHome, Image, differences
from tests.campaigns.kinds import KINDS, A
from tests.campaigns.processes import STOP, Cut, Cutter
from tests.campaigns.stage import Stage

MARK = b"\nA line of its user, written at the worst moment.\n"
STRIDE = int(os.environ.get("MEDDLE_STRIDE", "5"))
NAME = A.rpartition("/")[2]


class Meddler:
    """Somebody who does one thing, now or, where our lock is respected, as soon as it may be done."""

    def __init__(self, home: BigHome) -> None:
        self.home = home
        self.package = home.library / A
        self.did = False
        self.waits = False

    def edit_in_place(self) -> None:
        """Write into the open file, as some editors do."""
        if (self.package / "SKILL.md").exists():
            with (self.package / "SKILL.md").open("ab") as file:
                file.write(MARK)
            self.did = True

    def edit_by_rename(self) -> None:
        """Write a new file over the old one, as most editors do."""
        skill = self.package / "SKILL.md"
        if skill.exists():
            new = skill.with_name(".SKILL.md.swp")
            new.write_bytes(skill.read_bytes() + MARK)
            new.rename(skill)
            self.did = True

    def throw_away(self) -> None:
        """Delete the package, as its owner may."""
        if self.package.exists():
            shutil.rmtree(self.package)
            self.did = True

    def pin(self) -> None:
        """Pin it in the host's record."""
        self._record(NAME, {"pinned": True})

    def use(self) -> None:
        """Count a use of another skill in the host's record."""
        self._record("skill-200", {"use_count": 41})

    def archive(self) -> None:
        """Archive it as the host does."""
        if self._locked() and self.package.exists():
            (self.home.library / ".archive").mkdir(exist_ok=True)
            self.package.rename(self.home.library / ".archive" / NAME)
            self._change(NAME, {"state": "archived"})
            self.did = True

    def _record(self, name: str, fields: dict[str, object]) -> None:
        if self._locked():
            self._change(name, fields)
            self.did = True

    def _change(self, name: str, fields: dict[str, object]) -> None:
        path = self.home.library / ".usage.json"
        usage = json.loads(path.read_text(encoding="utf-8"))
        usage.setdefault(name, {}).update(fields)
        new = path.with_name(".usage_host.tmp")
        new.write_text(json.dumps(usage, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
        new.rename(path)

    def _locked(self) -> bool:
        """Return whether the host's lock could be taken; it is given back at once, since nobody else runs now."""
        with (self.home.library / ".usage.json.lock").open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.waits = True
                return False
        return True


DEEDS: dict[str, Callable[[Meddler], None]] = {
    "edit in place": Meddler.edit_in_place,
    "edit by rename": Meddler.edit_by_rename,
    "throw away": Meddler.throw_away,
    "pin": Meddler.pin,
    "use": Meddler.use,
    "archive": Meddler.archive,
}
COMMANDS = ("archive", "patch", "support", "merge", "stale", "undo patch", "adopt")


def meddle_at(stage: Stage, number: int, deed: str) -> None:
    """Stop the command at its *number*-th call, do the deed, let it go on, and look at all of it."""
    home = stage.home
    stage.again()
    meddler = Meddler(home)
    moment: list[Image] = []

    def meanwhile() -> None:
        DEEDS[deed](meddler)
        moment.append(home.files())

    ended = stage.cutter.do(home, *stage.words, cut=Cut(how=STOP, at=number), meanwhile=meanwhile)
    if meddler.waits:  # the host waited for our lock, and has it now
        meddler.waits = False
        DEEDS[deed](meddler)
        assert not meddler.waits
    said = f"{ended.code} {ended.out[-300:]} {ended.err[-700:]}"
    where = f"{stage.words}, {deed} at call {number} of {stage.calls}: {said}"
    # Archived by its host while we looked, a name may stand twice for that look: it is asked which one is meant.
    assert ended.code in ((0, 2, 3) if deed == "archive" else (0, 3)), where
    recovered = stage.cutter.do(home, order="recover")
    if deed == "throw away" and recovered.code == 4:
        # Thrown away in the middle of our writing: neither before nor after, so it waits for its owner, named.
        assert NAME in recovered.err, (where, recovered)
        assert ended.code == 3, where
        return
    assert recovered.code == 0, (where, recovered)
    assert home.leftovers() == [], where
    found = home.files()
    if ended.code == 3 and moment:
        assert found.keys() >= {path for path in stage.before if not path.startswith(f"home/.hermes/skills/{A}")}, where
    if not meddler.did:
        return
    skill = f"home/.hermes/skills/{A}/SKILL.md"
    match deed:
        case "edit in place" | "edit by rename":
            if ended.code == 0 and stage.words[0] in ("archive", "approve") and skill not in found:
                # Edited before the command's own first look: what its user sees is what goes, the edit with it.
                skill = f"home/.hermes/skills/.archive/{NAME}/SKILL.md"
            assert skill in found, (where, "the edited skill is not where its user left it")
            assert MARK in found[skill][1], (where, "the edit is gone")
            assert home.disagreements() == [], where
        case "pin":
            assert _usage(home)[NAME]["pinned"] is True, where
        case "use":
            assert _usage(home)["skill-200"]["use_count"] == 41, where
            assert home.disagreements() == [], where
        case "archive":
            assert any(path.startswith(f"home/.hermes/skills/.archive/{NAME}/") for path in found), where
    others = {path for path in found if "/skill-03" not in path and "/.archive/" not in path and "/kit" not in path}
    if ended.code == 3:
        untouched = {path: found[path] for path in others if ".usage.json" not in path and path in stage.before}
        assert all(entry == stage.before[path] for path, entry in untouched.items()), (
            where,
            differences(untouched, {path: stage.before[path] for path in untouched}),
        )


def _usage(home: BigHome) -> dict[str, dict[str, object]]:
    value: dict[str, dict[str, object]] = json.loads((home.library / ".usage.json").read_text(encoding="utf-8"))
    return value


def _campaign(home: BigHome, cutter: Cutter, name: str, *, count: int | None) -> None:
    stage = Stage(cutter, home, KINDS[name], 0)
    stops = cutter.stops
    for place, deed in enumerate(DEEDS):
        if count is None:
            numbers = list(range(1 + place % STRIDE, stage.calls + 1, STRIDE))
        else:
            numbers = random.Random(f"{name} {deed}").sample(range(1, stage.calls + 1), count)
        for number in numbers:
            meddle_at(stage, number, deed)
    print(f"\n{name}: {stage.calls} calls, {cutter.stops - stops} times meddled with; {cutter.stops} so far, 0 losses")
    assert cutter.stops > stops


@pytest.mark.parametrize("name", COMMANDS)
def test_a_sample_of_moments(big: BigHome, cutting: Cutter, name: str) -> None:
    """One moment for each deed, drawn by lot but the same each time."""
    _campaign(big, cutting, name, count=1)


@pytest.mark.campaign
@pytest.mark.parametrize("name", COMMANDS)
def test_every_moment(big: BigHome, cutting: Cutter, name: str) -> None:
    """Every fifth call of each command (`MEDDLE_STRIDE`), for each deed."""
    _campaign(big, cutting, name, count=None)


def test_what_a_shim_stops_is_a_path_below_the_home(big: BigHome, cutting: Cutter, tmp_path: Path) -> None:
    """The harness itself: nothing is counted outside the folder, and what is counted changed something inside."""
    done = cutting.do(big, "skills", "--json")
    assert done.code == 0
    other = BigHome(folder=tmp_path / "elsewhere", settings=big.settings, clock=big.clock)
    (tmp_path / "elsewhere").mkdir()
    looked = cutting.do(other, "--version")
    assert looked.calls == 0

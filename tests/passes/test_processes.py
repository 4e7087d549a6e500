"""
Real processes, killed at random instants, and several at once.

`test_crash` cuts at every effect there is; here nobody chooses the instant. A process works through a random row of
archives, restores, patches, merges and undos and is killed by a timer; the next one goes on. What is checked is what a
person would check: no skill is lost, none stands twice, records and disk agree.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from curatord.core.plan import (
    Action,
    Adopt,
    Archive,
    FileChange,
    MarkStale,
    Member,
    Merge,
    PackageWrite,
    Patch,
    Pin,
    Unpin,
)
from curatord.core.values import ActionId, RelPath, State
from curatord.errors import BusyError, UsageError
from curatord.passes.apply import Applier
from curatord.passes.undo import archived_packages, restore, undo
from tests.curation_home import LIB, NOW, Home, key, tree
from tests.passes.test_crash import consistent, no_leftovers


def a_library(base: Path, count: int) -> Home:
    """Return a Hermes home with *count* skills in three categories, each with a text of its own."""
    home = Home(base=base, layout="hermes")
    rels = [f"cat{n % 3}/skill-{n:03}" for n in range(count)]
    for rel in rels:
        home.skill(rel, f"the text of {rel}", files={"scripts/x.sh": rel.encode()})
    home.usage({rel.rpartition("/")[2]: {"created_by": "agent", "state": "active"} for rel in rels})
    home.jobs([{"id": f"j{n}", "skills": [rels[n].rpartition("/")[2]]} for n in range(0, count, 10)])
    home.know(home.applier(), *rels)
    home.close()
    return home


def random_action(home: Home, applier: Applier, dice: random.Random, live: Sequence[str]) -> Action:
    rel = dice.choice(live)
    expected = home.fingerprint(rel)
    match dice.randrange(7):
        case 0:
            return MarkStale(key=key(rel), reason="r", expected=expected)
        case 1:
            text = f"patched {dice.random()}".encode()
            files = (FileChange(path=RelPath("references/p.md"), content=text),)
            return Patch(key=key(rel), reason="r", by="model", expected=expected, files=files)
        case 2:
            members = dice.sample(live, min(3, len(live)))
            umbrella = f"umbrella-{dice.randrange(10**9)}"
            writes = PackageWrite(
                key=key(umbrella), expected=None, files=(FileChange(path=RelPath("SKILL.md"), content=b"umbrella"),)
            )
            return Merge(
                umbrella=key(umbrella),
                reason="r",
                writes=(writes,),
                members=tuple(Member(key=key(m), expected=home.fingerprint(m), reason="r") for m in members),
            )
        case 3:
            decisions: list[Action] = [
                Pin(key=key(rel), reason="r", by="user"),
                Unpin(key=key(rel), reason="r", by="user"),
                Adopt(key=key(rel), reason="r", by="user"),
            ]
            return dice.choice(decisions)
        case _:
            return Archive(key=key(rel), reason="r", expected=expected)


def work(home: Home, seed: int) -> None:
    """Do random things for ever; somebody will stop us."""
    dice = random.Random(seed)
    applier = home.applier(wait_s=20)
    applier.new_id = lambda: ActionId(f"p{seed}-{dice.randrange(10**12)}")
    now = NOW + timedelta(seconds=seed)
    while True:
        now += timedelta(seconds=1)
        live = sorted(
            record.key.rel
            for record in applier.store.skills(LIB).values()
            if record.state is not State.ARCHIVED and applier.look(record.key).there
        )
        try:
            choice = dice.random()
            if choice < 0.2 and (packages := archived_packages(applier, LIB)):
                restore(applier, dice.choice(packages).label, now=now, anyway=True)
            elif choice < 0.4 and (rows := applier.store.actions(limit=20)):
                undo(applier, dice.choice(rows).entry.action_id, now=now)
            elif live:
                applier.apply(random_action(home, applier, dice, live), now=now)
        except (UsageError, BusyError, AssertionError, OSError):
            continue  # another process was quicker between our look and our act


def texts(home: Home) -> Counter[str]:
    """Return how often each skill's own text stands anywhere below the home."""
    return Counter(path.read_text() for path in home.root.rglob("SKILL.md") if "the text of" in path.read_text())


def killed_in(seconds: float, home: Home, seed: int) -> None:
    child = os.fork()
    if child == 0:
        try:
            work(home, seed)
        finally:
            os._exit(99)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the child ended by itself: {status}"


def campaign(home: Home, kills: int, seed: int) -> None:
    before = texts(home)
    dice = random.Random(seed)
    for number in range(kills):
        killed_in(dice.uniform(0.02, 0.25), home, seed * 10_000 + number)
        applier = home.applier()
        recovered = applier.recover(now=NOW)
        assert () == recovered.conflicts, recovered
        with applier.mutator.hold(home.site):
            pass
        assert before == texts(home), f"after kill {number}"
        home.close()
        consistent(home)
        no_leftovers(home)
    home.close()


def test_killed_at_random_instants(tmp_path: Path) -> None:
    """Each skill's text stands exactly once, in the library or the archive, after every kill."""
    campaign(a_library(tmp_path, 30), kills=25, seed=1)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_thousand_kills(tmp_path: Path, seed: int) -> None:
    """The same with 300 skills and a hundred kills for each seed."""
    campaign(a_library(tmp_path, 300), kills=100, seed=seed)


def test_two_at_once(tmp_path: Path) -> None:
    """Two processes work on one library; both are killed; nothing is lost or doubled."""
    home = a_library(tmp_path, 30)
    before = texts(home)
    children = []
    for seed in (77, 78):
        child = os.fork()
        if child == 0:
            try:
                work(home, seed)
            finally:
                os._exit(99)
        children.append(child)
    time.sleep(2)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    applier = home.applier()
    assert () == applier.recover(now=NOW).conflicts
    with applier.mutator.hold(home.site):
        pass
    assert before == texts(home)
    assert len(applier.store.actions()) > 10
    home.close()
    consistent(home)
    no_leftovers(home)


def test_everything_can_be_undone(tmp_path: Path) -> None:
    """A hundred random actions, all undone newest first: the home is what it was, to the byte."""
    home = a_library(tmp_path, 150)
    before = home.files()
    dice = random.Random(5)
    applier = home.applier()
    for number in range(100):
        live = sorted(r.key.rel for r in applier.store.skills(LIB).values() if r.state is not State.ARCHIVED)
        applier.apply(random_action(home, applier, dice, live), now=NOW + timedelta(seconds=number))
    rows = applier.store.actions()
    assert len(rows) > 50

    for row in rows:
        undo(applier, row.entry.action_id, now=NOW + timedelta(days=1))

    assert all(row.status == "undone" for row in applier.store.actions() if row.entry.undoes is None)
    created = {path for path in tree(home.root / ".archive") if path.startswith("umbrella")}
    assert before == {
        path: what
        for path, what in home.files().items()
        if path != "skills/.archive" and path.removeprefix("skills/.archive/") not in created
    }

"""
Faults that are no kill: a full disk at every effect, an effect that fails once, a folder that vanishes.

The same cuts as in `test_crash`, but the process lives on: it must take back what it did, say so, and leave a home
that is before or after at once; where even that fails, at the next start.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from curatord.core.plan import Action, Applied, Failed, Outcome, Skipped
from curatord.errors import StateError
from curatord.passes.undo import undo
from tests.curation_home import NOW, Home
from tests.passes.test_crash import KINDS, LATER, STRIDES, a_home, consistent, differences, do, no_leftovers

MOST = 400


def failing_at(count: int, *, for_good: bool) -> Callable[[str], None]:
    """Return a hook that raises "no space left" at the *count*-th effect, or from there on."""
    counter = itertools.count(1)

    def hook(name: str) -> None:
        now = next(counter)
        if now == count or (for_good and now > count):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)

    return hook


def attempt(home: Home, work: Callable[[Home], Action] | None) -> Outcome | None:
    """Return the outcome, or None where our own state could not be used."""
    try:
        applier = home.applier()
        if work is None:
            return undo(applier, applier.store.actions()[0].entry.action_id, now=LATER)[0]
        return applier.apply(work(home), now=LATER)
    except (StateError, OSError):
        return None


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("kind", ["archive", "patch", "merge", "create", "stale", "pin", "undo"])
def test_no_space_at_every_effect(quick: Path, kind: str, for_good: bool, stride: int) -> None:
    """A failed effect leaves the home as it was, or done where only our second record is behind."""
    home = a_home(quick / "home", "hermes", None)
    work = None
    if kind == "undo":
        do(home, KINDS["archive"][0])
    else:
        (work,) = KINDS[kind]
    before = home.files()
    clean = home.copy_to(quick / "clean")
    # The undo of a copy is about the first home's paths, so there the clean run is done at the same place.
    if work is not None:
        do(clean, work)
        after = clean.files()
    shutil.rmtree(clean.base)
    failed = 0
    for count in range(1 + len(kind) % stride, MOST, stride):
        saved = quick / "saved"
        shutil.copytree(home.base, saved, symlinks=True)
        home.hook = failing_at(count, for_good=for_good)
        outcome = attempt(home, work)
        home.hook = lambda _: None
        home.close()
        found = home.files()
        if isinstance(outcome, Applied):
            if work is None:
                after = found
            assert found == after, (count, differences(found, after))
        elif isinstance(outcome, Failed) and outcome.unfinished:
            failed += 1
        else:
            assert found == before, (count, outcome, differences(found, before))
            failed += 1
        fresh = home.applier()
        fresh.recover(now=LATER)
        with fresh.mutator.hold(home.site):
            pass
        assert () == fresh.last_recovery.conflicts, (count, fresh.last_recovery)
        if isinstance(outcome, Applied):
            assert found == home.files()
        elif isinstance(outcome, Failed) and outcome.unfinished:
            assert home.files() in (before, after) if work is not None else True
        else:
            assert before == home.files()
        home.close()
        consistent(home)
        no_leftovers(home)
        home.close()
        shutil.rmtree(home.base)
        saved.rename(home.base)
        if isinstance(outcome, Applied) and outcome.note == "":
            assert failed > 3
            return
    raise AssertionError("it never got through")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of 512 KiB; skip where none may be mounted."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() != 0 or mount is None:
        pytest.skip("only root may mount")
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)], check=False).returncode != 0:
        pytest.skip("nothing may be mounted here")
    yield folder
    # Lazily: a test that fails leaves its database open, and must not leave the mount too.
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_really_full_disk(tmp_path: Path, small_disk: Path) -> None:
    """A package that does not fit into an archive on a small disk stays where it is; with room made it goes."""
    home = a_home(tmp_path / "home", "agent-skills", small_disk / "archive")
    (home.root / "cat/old/big").write_bytes(os.urandom(600_000))
    before = home.files()

    outcome = attempt(home, KINDS["archive"][0])

    assert isinstance(outcome, Failed), outcome
    assert "No space left" in outcome.error
    assert before == home.files()
    (home.root / "cat/old/big").write_bytes(b"small")
    assert isinstance(attempt(home, KINDS["archive"][0]), Applied)
    consistent(home)


def test_a_full_state_folder(tmp_path: Path, small_disk: Path) -> None:
    """With no room for journal or database nothing is changed, and it works again once there is."""
    home = a_home(tmp_path / "home", "hermes", None)
    home.close()
    shutil.copytree(home.state, small_disk / "state")
    shutil.rmtree(home.state)
    home.state.symlink_to(small_disk / "state")
    before = home.files()
    with (small_disk / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"x" * 4096)
        except OSError:
            pass

    for kind in ("archive", "patch", "pin"):
        assert not isinstance(attempt(home, KINDS[kind][0]), Applied)
        assert before == home.files()

    (small_disk / "filler").unlink()
    assert isinstance(attempt(home, KINDS["archive"][0]), Applied)
    consistent(home)


def test_a_library_that_went_away(quick: Path) -> None:
    """An unmounted library is a failure that names it, and everything works again when it is back."""
    home = a_home(quick / "home", "hermes", None)
    action = KINDS["archive"][0](home)
    applier = home.applier()
    away = home.root.with_name("away")
    home.root.rename(away)

    outcome = applier.apply(action, now=NOW)

    assert isinstance(outcome, Failed | Skipped)
    away.rename(home.root)
    assert isinstance(applier.apply(action, now=NOW), Applied)

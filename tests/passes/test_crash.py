"""
Every kind of action, killed with `kill -9` at every effect, then recovered: before or after, never between.

Each case runs in a process of its own that kills itself at the n-th hook (before and after each write, sync, rename,
commit), for n = 1, 2, … until it gets through. A fresh process then starts, and whatever it finds is compared, byte
for byte, with the home before the action and with the home after an undisturbed one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from curatord.core.plan import (
    Action,
    Adopt,
    Applied,
    Archive,
    CreateSkill,
    FileChange,
    MarkStale,
    Member,
    Merge,
    PackageWrite,
    Patch,
    Pin,
    Restore,
    WriteSupportFile,
)
from curatord.core.values import RelPath, State
from curatord.passes.undo import undo
from tests.curation_home import LIB, NOW, Home, key, killed_after

LATER = NOW + timedelta(days=1)
BODY = b"---\nname: kit\ndescription: d\n---\n"
MOST_CUTS = 400  # a bound for the loop; no action has so many effects


def a_home(base: Path, layout: str, archive: Path | None) -> Home:
    home = Home(base=base, layout=layout, archive=archive)  # type: ignore[arg-type]
    if layout == "flat":
        (home.root / "old.md").write_text("---\ndescription: d\n---\ntext\n")
    else:
        old = home.skill("cat/old", files={"scripts/run.sh": b"#!/bin/sh\n", "references/a.md": b"a\r\n\xff"})
        (old / "scripts/run.sh").chmod(0o755)
        (old / "empty").mkdir()
        (old / "link").symlink_to("../../nowhere")
        home.skill("other")
    if layout == "hermes":
        home.usage({"old": {"created_by": "agent", "state": "active", "use_count": 3}, "x": {"ü": 1}})
        home.jobs([{"id": "j1", "skills": ["old", "other"], "next": 5}, {"id": "j2", "skill": "old"}])
    applier = home.applier()
    home.know(applier, "old" if layout == "flat" else "cat/old", *([] if layout == "flat" else ["other"]))
    home.close()
    return home


def old(home: Home) -> str:
    return "old" if home.layout == "flat" else "cat/old"


def archive(home: Home) -> Action:
    return Archive(key=key(old(home)), reason="r", expected=home.fingerprint(old(home)))


def prune(home: Home) -> Action:
    return Archive(key=key(old(home)), reason="r", expected=home.fingerprint(old(home)), drop_references=True)


def stale(home: Home) -> Action:
    return MarkStale(key=key(old(home)), reason="r", expected=home.fingerprint(old(home)))


def pin(home: Home) -> Action:
    return Pin(key=key(old(home)), reason="r", by="user")


def adopt(home: Home) -> Action:
    return Adopt(key=key(old(home)), reason="r", by="user")


def patch(home: Home) -> Action:
    files = (
        FileChange(path=RelPath("SKILL.md"), content=BODY),
        FileChange(path=RelPath("scripts/run.sh"), content=b"new", mode=0o700),
        FileChange(path=RelPath("templates/deep/t"), content=b"t"),
    )
    return Patch(key=key(old(home)), reason="r", by="model", expected=home.fingerprint(old(home)), files=files)


def support(home: Home) -> Action:
    files = (FileChange(path=RelPath("references/x.md"), content=b"x"),)
    return WriteSupportFile(
        key=key(old(home)), reason="r", by="model", expected=home.fingerprint(old(home)), files=files
    )


def create(_home: Home) -> Action:
    files = (
        FileChange(path=RelPath("SKILL.md"), content=BODY),
        FileChange(path=RelPath("scripts/x"), content=b"x", mode=0o755),
    )
    return CreateSkill(key=key("new/kit"), reason="r", by="model", files=files)


def merge(home: Home) -> Action:
    return Merge(
        umbrella=key("kit"),
        reason="r",
        writes=(
            PackageWrite(
                key=key("kit"),
                expected=None,
                files=(
                    FileChange(path=RelPath("SKILL.md"), content=BODY),
                    FileChange(path=RelPath("references/old.md"), content=b"old"),
                ),
            ),
        ),
        members=tuple(
            Member(key=key(rel), expected=home.fingerprint(rel), reason="narrow") for rel in ("cat/old", "other")
        ),
    )


def restored(home: Home) -> Action:
    return Restore(key=key(old(home)), reason="r", by="user", archived=RelPath("old"))


KINDS: dict[str, tuple[Callable[[Home], Action], ...]] = {
    "archive": (archive,),
    "prune": (prune,),
    "stale": (stale,),
    "pin": (pin,),
    "adopt": (adopt,),
    "patch": (patch,),
    "support": (support,),
    "create": (create,),
    "merge": (merge,),
    "restore": (archive, restored),
}
CASES = [(layout, kind) for layout in ("agent-skills", "hermes") for kind in KINDS]
CASES += [("flat", kind) for kind in ("archive", "restore", "support", "create")]


def consistent(home: Home) -> None:
    """Assert that records and disk agree: what is archived by the record stands in the archive, and the reverse."""
    applier = home.applier()
    for skill, record in applier.store.skills(LIB).items():
        there = applier.look(skill).there
        assert there == (record.state is not State.ARCHIVED), (skill, record.state)
        if record.archive_path is not None:
            assert Path(record.archive_path).exists()
    for item in applier.store.archive(LIB):
        assert (Path(home.site.archive) / item.path).exists()
    assert sorted(applier.store.archive(LIB), key=str) == sorted(applier.decisions.load().archive, key=str)
    home.close()


def differences(found: dict[str, str], wanted: dict[str, str]) -> dict[str, str]:
    """Return what differs between two homes, for the message."""
    return {
        path: f"{wanted.get(path)} -> {found.get(path)}"
        for path in sorted({*found, *wanted})
        if found.get(path) != wanted.get(path)
    }


def no_leftovers(home: Home) -> None:
    """Assert that no temporary name, no intent and no claim is left."""
    left = [path for path in home.base.rglob("*") if path.name.startswith(".curatord-") or path.name.endswith(".tmp")]
    if home.archive is not None:
        left += list(home.archive.rglob(".curatord-*"))
    assert [] == left
    assert [] == list((home.state / "journal").glob("*"))
    assert [] == list(home.root.glob(".locks/*"))


def do(home: Home, action: Callable[[Home], Action] | None) -> None:
    applier = home.applier()
    if action is None:
        outcomes = undo(applier, applier.store.actions()[0].entry.action_id, now=LATER)
    else:
        outcomes = (applier.apply(action(home), now=LATER),)
    assert all(isinstance(outcome, Applied) for outcome in outcomes), outcomes
    home.close()


def campaign(tmp_path: Path, home: Home, work: Callable[[Home], Action] | None, archive_dir: Path | None) -> int:
    """Cut *work* (None: the undo of the last action) at every effect; return how many cuts there were."""

    def copy(name: str) -> Home:
        target = None
        if archive_dir is not None:
            target = archive_dir.parent / name
            shutil.rmtree(target, ignore_errors=True)
            if archive_dir.exists():
                shutil.copytree(archive_dir, target, symlinks=True)
        twin = home.copy_to(tmp_path / name)
        twin.archive = target
        return twin

    before = home.files()
    clean = copy("clean")
    fix_paths(clean, home)
    do(clean, work)
    after = clean.files()
    consistent(clean)
    for count in range(1, MOST_CUTS):
        twin = copy(f"cut{count}")
        fix_paths(twin, home)

        def child(hook: Callable[[str], None], twin: Home = twin) -> None:
            twin.hook = hook
            do(twin, work)

        killed = killed_after(count, child)
        fresh = twin.applier()
        fresh.recover(now=LATER)
        with fresh.mutator.hold(twin.site):  # a claim of the dead is taken over here
            pass
        assert not fresh.last_recovery.conflicts, fresh.last_recovery
        twin.close()
        found = twin.files()
        assert found in (before, after), (
            f"cut {count} left {differences(found, before)} and {differences(found, after)}"
        )
        consistent(twin)
        no_leftovers(twin)
        shutil.rmtree(twin.base)
        if twin.archive is not None:
            shutil.rmtree(twin.archive, ignore_errors=True)
        if not killed:
            assert after == found
            return count - 1
    raise AssertionError("it never got through")


def fix_paths(twin: Home, home: Home) -> None:
    """Let the copied database speak of the copy: entries and records hold absolute paths."""
    twin.applier()
    database = twin.database
    assert database is not None
    pairs = [(str(home.base), str(twin.base))]
    if home.archive is not None:
        pairs.append((str(home.archive), str(twin.archive)))
    with database.transaction() as db:
        for was, now in pairs:
            db.execute("UPDATE skills SET archive_path = replace(archive_path, ?, ?)", (was, now))
            db.execute("UPDATE actions SET entry = CAST(replace(CAST(entry AS TEXT), ?, ?) AS BLOB)", (was, now))
    twin.close()


@pytest.mark.parametrize(("layout", "kind"), CASES)
def test_killed_at_every_effect(tmp_path: Path, layout: str, kind: str) -> None:
    """Whatever the instant of the kill, after the next start the action is whole or absent."""
    home = a_home(tmp_path / "home", layout, None)
    *first, work = KINDS[kind]
    for action in first:
        do(home, action)

    cuts = campaign(tmp_path, home, work, None)

    assert cuts > 10


@pytest.mark.parametrize(("layout", "kind"), [("hermes", "archive"), ("hermes", "merge"), ("flat", "support")])
def test_undo_killed_at_every_effect(tmp_path: Path, layout: str, kind: str) -> None:
    """An undo is cut and recovered like any action."""
    home = a_home(tmp_path / "home", layout, None)
    for action in KINDS[kind]:
        do(home, action)

    assert campaign(tmp_path, home, None, None) > 10


@pytest.mark.parametrize("kind", ["archive", "restore"])
def test_across_file_systems_killed_at_every_effect(tmp_path: Path, other_device: Path, kind: str) -> None:
    """With the archive on another file system there is one whole copy in the end, whatever the instant."""
    home = a_home(tmp_path / "home", "agent-skills", other_device / "archive")
    *first, work = KINDS[kind]
    for action in first:
        do(home, action)

    assert campaign(tmp_path, home, work, other_device / "archive") > 10


def test_recovery_killed_at_every_effect(tmp_path: Path) -> None:
    """Recovery itself may be killed, again and again, and still ends before or after."""
    home = a_home(tmp_path / "home", "hermes", None)
    before = home.files()
    clean = home.copy_to(tmp_path / "clean")
    do(clean, merge)
    after = clean.files()
    for first in range(5, MOST_CUTS, 7):
        twin = home.copy_to(tmp_path / f"cut{first}")

        def child(hook: Callable[[str], None], twin: Home = twin) -> None:
            twin.hook = hook
            do(twin, merge)

        if not killed_after(first, child):
            return

        def recovering(hook: Callable[[str], None], twin: Home = twin) -> None:
            twin.hook = hook
            twin.applier().recover(now=LATER)

        for second in range(1, MOST_CUTS, 3):  # each start gets a little further before it is killed
            if not killed_after(second, recovering):
                break
        twin.hook = lambda _: None
        assert twin.applier().recover(now=LATER).conflicts == ()
        assert twin.files() in (before, after)
        consistent(twin)
        shutil.rmtree(twin.base)


@pytest.mark.parametrize("kind", ["archive", "patch", "merge"])
def test_the_database_lost_after_the_kill(tmp_path: Path, kind: str) -> None:
    """Recovery reads the intent alone: with the database gone too, the home is before or after."""
    home = a_home(tmp_path / "home", "hermes", None)
    before = home.files()
    clean = home.copy_to(tmp_path / "clean")
    (work,) = KINDS[kind]
    do(clean, work)
    after = clean.files()
    for count in range(8, MOST_CUTS, 5):
        twin = home.copy_to(tmp_path / f"cut{count}")

        def child(hook: Callable[[str], None], twin: Home = twin) -> None:
            twin.hook = hook
            do(twin, work)

        killed = killed_after(count, child)
        for path in twin.state.glob("curatord.db*"):
            path.unlink()
        fresh = twin.applier()
        fresh.recover(now=LATER)
        assert twin.files() in (before, after)
        assert () == fresh.mutator.unfinished()
        shutil.rmtree(twin.base)
        if not killed:
            return


def test_an_edit_between_kill_and_start_wins(tmp_path: Path) -> None:
    """A skill that its user edited before recovery ran is kept as edited, and the action never was."""
    home = a_home(tmp_path / "home", "agent-skills", None)
    kept = 0
    for count in range(1, MOST_CUTS):
        twin = home.copy_to(tmp_path / f"cut{count}")

        def child(hook: Callable[[str], None], twin: Home = twin) -> None:
            twin.hook = hook
            do(twin, archive)

        killed = killed_after(count, child)
        skill = twin.root / "cat/old/SKILL.md"
        edited = skill.exists()
        if edited:
            skill.write_text("mine")
        fresh = twin.applier()
        fresh.recover(now=LATER)
        assert () == fresh.mutator.unfinished()
        if edited:
            assert "mine" == skill.read_text()
            kept += 1
        shutil.rmtree(twin.base)
        if not killed:
            break
    assert kept > 5


def test_a_conflict_waits_for_a_person(tmp_path: Path) -> None:
    """What is neither before nor after is kept and told; that skill is left alone, others go on."""
    home = a_home(tmp_path / "home", "agent-skills", None)
    for count in range(1, MOST_CUTS):
        twin = home.copy_to(tmp_path / f"cut{count}")

        def child(hook: Callable[[str], None], twin: Home = twin) -> None:
            twin.hook = hook
            do(twin, merge)

        assert killed_after(count, child), "no cut between umbrella and members was found"
        umbrella = twin.root / "kit/SKILL.md"
        if umbrella.exists() and (twin.root / "cat/old").exists() and (twin.root / "kit/references/old.md").exists():
            break
    umbrella.write_text("mine")
    fresh = twin.applier()

    recovered = fresh.recover(now=LATER)

    assert 1 == len(recovered.conflicts)
    assert "kit/SKILL.md" in recovered.conflicts[0][1]
    assert "mine" == umbrella.read_text()
    blocked = fresh.apply(archive(twin), now=LATER)
    assert "conflict" == blocked.code  # type: ignore[union-attr]
    twin.skill("third")
    twin.know(fresh, "third")
    free = fresh.apply(Archive(key=key("third"), reason="r", expected=twin.fingerprint("third")), now=LATER)
    assert isinstance(free, Applied)
    assert json.loads((twin.state / "journal" / f"{recovered.conflicts[0][0].action_id}.json").read_text())  # type: ignore[union-attr]

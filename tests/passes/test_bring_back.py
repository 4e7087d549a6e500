"""
Skills come back out of a backup through the writer: nothing that stands now is lost, all of it can be undone, and a
kill at any instant leaves before or after.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curatord.adapters.backup_reader import BackupReader
from curatord.adapters.backup_store import BackupStore
from curatord.adapters.disk import Disk
from curatord.core.backup import Manifest, StoredSkill, quoted
from curatord.core.plan import Applied, Archive, Failed, Pin
from curatord.core.values import SkillKey, State
from curatord.errors import UsageError
from curatord.passes.backup import LibraryToKeep, create
from curatord.passes.bring_back import BackupRow, BringBackOrder, bring_back
from curatord.passes.undo import restore, undo
from tests.curation_home import LIB, NOW, Home, as_user, fork, key, killed_after, tree
from tests.passes.test_crash import consistent, do, fix_paths, merge, no_leftovers

LATER = NOW + timedelta(days=1)
MUCH = 1 << 40


def store_of(home: Home) -> BackupStore:
    return BackupStore(state_dir=home.state, disk=Disk(hook=lambda name: home.hook(name)))


def reader_of(home: Home) -> BackupReader:
    return BackupReader(store=store_of(home), max_bytes=MUCH)


def back_up(home: Home, *flat: str, now: datetime = NOW) -> Manifest:
    """Make a backup of the library as it stands."""
    site = home.site
    applier = home.applier()
    store = store_of(home)
    made = create(
        store,
        BackupReader(store=store, max_bytes=MUCH),
        [
            LibraryToKeep(
                name=LIB,
                root=site.root,
                archive=site.archive,
                layout=site.layout,
                home=site.home,
                skills=tuple(StoredSkill(path=quoted(name.encode()), form="flat") for name in flat),
                items=applier.store.archive(LIB),
                apart=(str(home.state),),
            )
        ],
        now=now,
        reason="test",
        version="0",
        keep=10,
        max_bytes=MUCH,
        at_rest=nullcontext,
    )
    home.close()
    return made.manifest


def bring(
    home: Home, manifest: Manifest, *skills: str, dry_run: bool = False, now: datetime = LATER
) -> list[BackupRow]:
    """Bring back *skills*, or all."""
    store = store_of(home)
    applier = home.applier()
    order = BringBackOrder(skills=skills, dry_run=dry_run)
    reader = BackupReader(store=store, max_bytes=MUCH)
    with store.hold():
        rows = list(bring_back(store, reader, applier, manifest, order, now=now))
    home.close()
    return rows


def told(rows: list[BackupRow]) -> dict[str, str]:
    """Return what became of each: `done` only where the writer did it."""
    return {
        row.skill: row.what if row.outcome is None or isinstance(row.outcome, Applied) else type(row.outcome).__name__
        for row in rows
    }


def action_of(row: BackupRow) -> str:
    assert isinstance(row.outcome, Applied), row
    return row.outcome.entry.action_id


def a_home(base: Path, layout: str = "agent-skills") -> Home:
    home = Home(base=base, layout=layout)  # type: ignore[arg-type]
    old = home.skill("cat/old", files={"scripts/run.sh": b"#!/bin/sh\n", "references/ä": b"\xff"})
    (old / "scripts/run.sh").chmod(0o4755)
    (old / "empty").mkdir(mode=0o555)
    (old / "link").symlink_to("../../nowhere")
    home.skill("other", "other text")
    if layout == "hermes":
        home.usage({"old": {"created_by": "agent", "state": "active", "use_count": 3}})
    home.know(home.applier(), "cat/old", "other")
    home.close()
    return home


def skills(home: Home) -> dict[str, str]:
    """Return the library without the host's own files."""
    return {path: what for path, what in tree(home.root).items() if not path.startswith(".")}


# -- one at a time


def test_what_is_gone_comes_back_byte_for_byte(quick: Path) -> None:
    """Modes, links, empty folders and set-id bits too; its clock starts anew; what stood untouched is left alone."""
    home = a_home(quick)
    before = skills(home)
    manifest = back_up(home)
    (home.root / "cat/old/empty").chmod(0o755)
    shutil.rmtree(home.root / "cat")

    rows = bring(home, manifest)

    assert {"lib/cat/old": "done", "lib/other": "unchanged"} == told(rows)
    assert before == skills(home)
    record = home.applier().store.skill(key("cat/old"))
    assert record is not None
    assert (LATER, State.ACTIVE, None) == (record.restored_at, record.state, record.missing_since)
    consistent(home)
    no_leftovers(home)


def test_what_differs_goes_into_the_archive(quick: Path) -> None:
    """The version of now is kept whole, under its name, as what it was; the one of the backup stands in its place."""
    home = a_home(quick)
    before = skills(home)
    manifest = back_up(home)
    (home.root / "cat/old/SKILL.md").write_text("newer")
    newer = tree(home.root / "cat/old")

    (row,) = bring(home, manifest, "old")

    assert before == skills(home)
    assert newer == tree(Path(home.site.archive) / "old")
    assert home.site.archive in row.words
    (item,) = home.applier().store.archive(LIB)
    assert (key("cat/old"), "old") == (item.key, item.path)
    assert manifest.id in item.reason
    home.close()


def test_it_can_be_undone_and_that_again(quick: Path) -> None:
    """Undo puts the version of before back and the backup's into the archive; both can be had again."""
    home = a_home(quick)
    manifest = back_up(home)
    of_backup = tree(home.root / "cat/old")
    (home.root / "cat/old/SKILL.md").write_text("newer")
    newer = skills(home)
    (row,) = bring(home, manifest, "old")

    applier = home.applier()
    (outcome,) = undo(applier, action_of(row), now=LATER + timedelta(days=1))

    assert isinstance(outcome, Applied), outcome
    assert newer == skills(home)
    archived = {name: tree(Path(home.site.archive) / name) for name in applier.mutator.names(home.site.archive)}
    assert [of_backup] == list(archived.values())
    record = applier.store.skill(key("cat/old"))
    assert record is not None
    assert LATER + timedelta(days=1) == record.restored_at
    (again,) = undo(applier, outcome.entry.action_id, now=LATER + timedelta(days=2))
    assert isinstance(again, Applied), again
    assert of_backup == tree(home.root / "cat/old")
    home.close()
    no_leftovers(home)


@pytest.mark.parametrize("known", [True, False])
def test_undoing_what_had_been_gone_archives_it(quick: Path, known: bool) -> None:
    """The skill that was not there before is not deleted by the undo, whether our records had heard of it or not."""
    home = a_home(quick)
    manifest = back_up(home)
    of_backup = tree(home.root / "cat/old")
    (home.root / "cat/old/empty").chmod(0o755)
    shutil.rmtree(home.root / "cat")
    if not known:
        home.applier().store.put_skills((), gone=[key("cat/old")])
        home.close()
    (row,) = bring(home, manifest, "old")

    applier = home.applier()
    (outcome,) = undo(applier, action_of(row), now=LATER)

    assert isinstance(outcome, Applied), outcome
    assert not (home.root / "cat/old").exists()
    assert of_backup == tree(Path(home.site.archive) / "old")
    consistent(home)
    applier = home.applier()
    back = restore(applier, "old", now=LATER)
    assert isinstance(back, Applied), back
    assert of_backup == tree(home.root / "cat/old")
    home.close()


def test_an_archived_skill_comes_back_from_the_archive(quick: Path) -> None:
    """Where the archive has what the backup says, that is moved: there is one copy, and nothing is left behind."""
    home = a_home(quick)
    before = skills(home)
    manifest = back_up(home)
    applier = home.applier()
    applier.apply(Archive(key=key("cat/old"), reason="r", expected=home.fingerprint("cat/old")), now=NOW)

    (row,) = bring(home, manifest, "cat/old")

    assert "from the archive" in row.words
    assert before == skills(home)
    assert [] == list(Path(home.site.archive).iterdir())
    consistent(home)


def test_the_archive_comes_back_too(quick: Path) -> None:
    """A package that vanished from the archive returns to it, with where it came from, and can be restored."""
    home = a_home(quick)
    applier = home.applier()
    applier.apply(Archive(key=key("cat/old"), reason="idle", expected=home.fingerprint("cat/old")), now=NOW)
    archived = tree(Path(home.site.archive))
    manifest = back_up(home)
    (Path(home.site.archive) / "old/empty").chmod(0o755)
    shutil.rmtree(Path(home.site.archive) / "old")

    rows = bring(home, manifest)

    assert {"lib/other": "unchanged", "lib/old/ (archived)": "done"} == told(rows)
    assert archived == tree(Path(home.site.archive))
    (item,) = home.applier().store.archive(LIB)
    assert ("idle", key("cat/old")) == (item.reason, item.key)
    consistent(home)
    back = restore(home.applier(), "old", now=LATER)
    assert isinstance(back, Applied), back
    assert (home.root / "cat/old/SKILL.md").exists()
    home.close()


def test_an_archived_skill_by_its_name(quick: Path) -> None:
    """One that was archived when the backup was made comes back into the archive, whatever else is gone there."""
    home = a_home(quick)
    applier = home.applier()
    for name in ("cat/old", "other"):
        applier.apply(Archive(key=key(name), reason="idle", expected=home.fingerprint(name)), now=NOW)
    manifest = back_up(home)
    (Path(home.site.archive) / "old/empty").chmod(0o755)
    shutil.rmtree(home.site.archive)

    assert {"lib/old/ (archived)": "done"} == told(bring(home, manifest, "old"))
    assert ["old"] == [path.name for path in Path(home.site.archive).iterdir()]


def test_a_skill_that_lives_is_not_brought_back_into_the_archive(quick: Path) -> None:
    """It was archived when the backup was made and was restored since: that it lives is enough."""
    home = a_home(quick)
    applier = home.applier()
    applier.apply(Archive(key=key("cat/old"), reason="idle", expected=home.fingerprint("cat/old")), now=NOW)
    manifest = back_up(home)
    restore(home.applier(), "old", now=NOW)
    before = home.files()

    assert {"lib/other": "unchanged", "lib/old/ (archived)": "unchanged"} == told(bring(home, manifest))
    assert before == home.files()


def test_undo_of_a_return_to_the_archive_is_refused_in_words(quick: Path) -> None:
    """Nothing is deleted, so it stays there."""
    home = a_home(quick)
    applier = home.applier()
    applier.apply(Archive(key=key("other"), reason="idle", expected=home.fingerprint("other")), now=NOW)
    manifest = back_up(home)
    shutil.rmtree(Path(home.site.archive) / "other")
    row = next(row for row in bring(home, manifest) if "archived" in row.skill)

    (outcome,) = undo(home.applier(), action_of(row), now=LATER)

    assert "nothing is deleted" in getattr(outcome, "reason", "")
    home.close()


def test_what_is_not_in_the_backup_stays(quick: Path) -> None:
    """A skill that is newer than the backup is not touched by restoring all of it."""
    home = a_home(quick)
    manifest = back_up(home)
    newer = tree(home.skill("newer"))

    bring(home, manifest)

    assert newer == tree(home.root / "newer")


def test_a_dry_run_changes_nothing(quick: Path) -> None:
    """It says what would be done, and neither library nor state differ afterwards."""
    home = a_home(quick)
    manifest = back_up(home)
    (home.root / "other/SKILL.md").write_text("newer")
    before = tree(home.base)

    (row,) = bring(home, manifest, "other", dry_run=True)

    assert ("done", None) == (row.what, row.outcome)
    assert row.words.startswith("would be restored")
    changed = {path for path, what in tree(home.base).items() if before.get(path) != what}
    assert {path for path in changed if "curatord.db" not in path} <= {"state/backup.lock"}


def test_what_a_merge_took_in_is_only_restored_by_its_name(quick: Path) -> None:
    """While its umbrella lives its text would stand twice: that is said, and how the merge is taken back."""
    home = a_home(quick)
    manifest = back_up(home)
    do(home, merge)

    rows = bring(home, manifest)
    assert {"lib/cat/old": "skipped", "lib/other": "skipped"} == told(rows)
    assert "went into kit" in rows[0].words

    (row,) = bring(home, manifest, "other")
    assert {"lib/other": "done"} == told([row])
    assert "its text stands in kit too" in row.words
    shutil.rmtree(home.root / "kit")
    assert {"lib/cat/old": "done", "lib/other": "unchanged"} == told(bring(home, manifest))


# -- who may be reached


@pytest.mark.parametrize("how", ["ours", "host"])
def test_a_pinned_skill_is_only_restored_by_its_name(quick: Path, how: str) -> None:
    """All of a backup leaves it as it is and says how; by name it is restored, and said to be pinned."""
    home = a_home(quick, "hermes")
    manifest = back_up(home)
    (home.root / "cat/old/SKILL.md").write_text("newer")
    if how == "ours":
        home.applier().apply(Pin(key=key("cat/old"), reason="r", by="user"), now=NOW)
    else:
        home.usage({"old": {"created_by": "agent", "state": "active", "pinned": True}})

    rows = bring(home, manifest)
    assert "skipped" == told(rows)["lib/cat/old"]
    assert "newer" == (home.root / "cat/old/SKILL.md").read_text()
    assert "--skill" in next(row.words for row in rows if row.skill == "lib/cat/old")

    (row,) = bring(home, manifest, "cat/old")
    assert {"lib/cat/old": "done"} == told([row])
    assert "pinned" in row.words
    assert "newer" == (home.root / ".archive/old/SKILL.md").read_text()


def test_an_unmanaged_skill_is_restored_and_said_to_be(quick: Path) -> None:
    """It is its user's own order."""
    home = a_home(quick)
    manifest = back_up(home)
    home.managed = set()
    (home.root / "other/SKILL.md").write_text("newer")

    (row,) = bring(home, manifest, "other")

    assert {"lib/other": "done"} == told([row])
    assert "not managed" in row.words


def test_a_link_that_stands_there_is_left(quick: Path) -> None:
    """What a person linked there now is not moved, whatever the backup has."""
    home = a_home(quick)
    manifest = back_up(home)
    shutil.rmtree(home.root / "other")
    (home.root / "other").symlink_to("cat/old")

    (row,) = bring(home, manifest, "other")

    assert {"lib/other": "skipped"} == told([row])
    assert (home.root / "other").is_symlink()


def test_a_place_that_is_taken_by_a_twin(quick: Path) -> None:
    """A name that differs only in case, or a file, stands there: it is not replaced."""
    home = a_home(quick)
    manifest = back_up(home)
    (home.root / "other").rename(home.root / "Other")

    (row,) = bring(home, manifest, "other")

    assert {"lib/other": "skipped"} == told([row])
    assert {"Other", "cat"} == {path.name for path in home.root.iterdir()}


def test_hermes_knows_names_only(quick: Path) -> None:
    """A live skill of that name in another category keeps the old one out: the host could not tell them apart."""
    home = a_home(quick, "hermes")
    manifest = back_up(home)
    (home.root / "cat").rename(home.root / "moved")
    home.know(home.applier(), "moved/old")
    home.close()

    (row,) = bring(home, manifest, "cat/old")

    assert "lib/moved/old has that name already" in row.words


def test_the_hosts_record_follows(quick: Path) -> None:
    """Hermes' record says active again, with all else of it as it was."""
    home = a_home(quick, "hermes")
    manifest = back_up(home)
    shutil.rmtree(home.root / "other")
    home.usage({"other": {"state": "archived", "archived_at": "2026-01-01", "use_count": 9}, "x": {"ü": 1}})

    bring(home, manifest, "other")

    assert {"state": "active", "archived_at": None, "use_count": 9} == home.usage_of("other")
    assert {"ü": 1} == home.usage_of("x")


def test_a_flat_skill_comes_back_as_its_file(quick: Path) -> None:
    """A single file of a flat library, gone or changed."""
    home = Home(base=quick, layout="flat")
    (home.root / "old.md").write_text("---\ndescription: d\n---\nold\n")
    (home.root / "two.md").write_text("---\ndescription: d\n---\ntwo\n")
    home.know(home.applier(), "old", "two")
    manifest = back_up(home, "old.md", "two.md")
    before = skills(home)
    (home.root / "old.md").unlink()
    (home.root / "two.md").write_text("newer")

    rows = bring(home, manifest)

    assert {"lib/old": "done", "lib/two": "done"} == told(rows)
    assert before == skills(home)
    assert "newer" == (Path(home.site.archive) / "two/two.md").read_text()
    applier = home.applier()
    for row in rows:
        (outcome,) = undo(applier, action_of(row), now=LATER)
        assert isinstance(outcome, Applied), outcome
    assert {"two.md"} == {path.name for path in home.root.iterdir()}
    assert "newer" == (home.root / "two.md").read_text()
    assert ["old.md", "two.md"] == sorted(path.name for path in Path(home.site.archive).rglob("*.md"))
    home.close()


def test_a_name_that_is_no_text_is_left_to_a_folder(quick: Path) -> None:
    """No record can hold it, so it is not put into the library; the others are."""
    home = a_home(quick)
    odd = os.fsencode(home.root) + b"/odd-\xff"
    os.mkdir(odd)  # noqa: PTH102 - a path as bytes
    with open(odd + b"/SKILL.md", "w") as file:  # noqa: PTH123
        file.write("odd")
    manifest = back_up(home)
    shutil.rmtree(odd)
    shutil.rmtree(home.root / "other")

    rows = bring(home, manifest)

    assert {"lib/cat/old": "unchanged", "odd-%FF": "skipped", "lib/other": "done"} == told(rows)
    assert "--to DIR" in next(row.words for row in rows if row.skill == "odd-%FF")


def test_folders_above_come_back_with_their_modes(quick: Path) -> None:
    """A category that is gone is made as it was."""
    home = a_home(quick)
    (home.root / "cat").chmod(0o2750)
    manifest = back_up(home)
    before = skills(home)
    (home.root / "cat/old/empty").chmod(0o755)
    shutil.rmtree(home.root / "cat")

    bring(home, manifest)

    assert before == skills(home)


def test_names_that_are_wrong_or_mean_two(quick: Path) -> None:
    """Nothing is done for a name that is not in the backup, or is twice."""
    home = a_home(quick)
    home.skill("cat2/old")
    manifest = back_up(home)

    with pytest.raises(UsageError, match="no skill in backup"):
        bring(home, manifest, "none")
    with pytest.raises(UsageError, match="2 skills"):
        bring(home, manifest, "old")


# -- damage


def test_a_damaged_skill_fails_and_the_rest_comes_back(quick: Path) -> None:
    """No hollow package is put anywhere; the others are restored."""
    home = a_home(quick)
    manifest = back_up(home)
    before = skills(home)
    store = store_of(home)
    (home.root / "cat/old/empty").chmod(0o755)
    shutil.rmtree(home.root / "cat")
    shutil.rmtree(home.root / "other")
    import hashlib

    blob = store._path(hashlib.sha256(b"#!/bin/sh\n").hexdigest())
    blob.write_bytes(b"#!/bin/SH\n")

    rows = bring(home, manifest)

    assert {"lib/cat/old": "failed", "lib/other": "done"} == told(rows)
    assert {path: what for path, what in before.items() if path.startswith("other")} == skills(home)
    no_leftovers(home)
    assert [] == list((home.state / "staging").iterdir())


# -- kills


def the_case(base: Path, layout: str) -> tuple[Home, Manifest]:
    """Return a home of which one skill is gone and one differs from the backup."""
    home = a_home(base, layout)
    manifest = back_up(home)
    (home.root / "cat/old/SKILL.md").write_text("newer")
    return home, manifest


@pytest.mark.parametrize(
    "stride", [pytest.param(4, id="every fourth"), pytest.param(1, id="every", marks=pytest.mark.campaign)]
)
@pytest.mark.parametrize("work", ["replace", "undo"])
@pytest.mark.parametrize("layout", ["agent-skills", "hermes"])
def test_killed_at_every_effect(quick: Path, layout: str, work: str, stride: int) -> None:
    """Before or after, with no staged copy left; whatever it is, the version of before stands somewhere whole."""
    home, manifest = the_case(quick / "home", layout)
    if work == "undo":
        bring(home, manifest, "old")

    def do(twin: Home) -> None:
        if work == "replace":
            (row,) = bring(twin, manifest, "old")
            assert isinstance(row.outcome, Applied), row
            return
        applier = twin.applier()
        (outcome,) = undo(applier, applier.store.actions()[0].entry.action_id, now=LATER)
        assert isinstance(outcome, Applied), outcome
        twin.close()

    before = home.files()
    clean = home.copy_to(quick / "clean")
    fix_staged(clean, home)
    do(clean)
    after = clean.files()
    for count in range(1, 600, stride):
        twin = home.copy_to(quick / f"cut{count}")
        fix_staged(twin, home)

        def child(hook: Callable[[str], None], twin: Home = twin) -> None:
            twin.hook = hook
            do(twin)

        killed = killed_after(count, child)
        fresh = twin.applier()
        fresh.recover(now=LATER)
        with fresh.mutator.hold(twin.site):
            pass
        assert not fresh.last_recovery.conflicts, fresh.last_recovery
        twin.close()
        assert twin.files() in (before, after), f"cut {count}"
        consistent(twin)
        no_leftovers(twin)
        assert [] == list(twin.state.glob("staging/*"))
        shutil.rmtree(twin.base)
        if not killed:
            assert count > 15
            return
    raise AssertionError("it never got through")


def fix_staged(twin: Home, home: Home) -> None:
    """Let the copied database speak of the copy, as for every other campaign."""
    fix_paths(twin, home)


@pytest.mark.parametrize("layout", ["agent-skills", "hermes"])
def test_no_space_at_any_effect(quick: Path, layout: str) -> None:
    """An error at each effect: the home is as before or as after, nothing is left over, and the row says it."""
    home, manifest = the_case(quick / "home", layout)
    before = home.files()
    seen: set[str] = set()
    for count in range(1, 600):
        twin = home.copy_to(quick / f"full{count}")
        fix_paths(twin, home)
        left = [count]

        def full(_name: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise OSError(28, "No space left on device")

        twin.hook = full
        try:
            (row,) = bring(twin, manifest, "old")
        except OSError:  # the very first effects: before the writer has begun
            what = "error"
        else:
            what = told([row])["lib/cat/old"]
        twin.hook = lambda _: None
        fresh = twin.applier()
        fresh.recover(now=LATER)
        assert not fresh.last_recovery.conflicts
        with fresh.mutator.hold(twin.site):
            pass
        twin.close()
        consistent(twin)
        no_leftovers(twin)
        assert [] == list(twin.state.glob("staging/*"))
        seen.add(what)
        if what != "done":
            assert before == twin.files(), f"effect {count}: {what}"
        shutil.rmtree(twin.base)
        if left[0] > 0:
            assert "done" == what
            break
    assert {"done", Failed.__name__} <= seen


# -- what the archive gives back


def hostile(folder: Path) -> None:
    """Make a package of everything that a file system allows."""
    (folder / "SKILL.md").write_bytes(b"---\nname: odd\ndescription: d\n---\n\r\n\xff\x00")
    (folder / "UPPER").write_text("1")
    (folder / "upper").write_text("2")
    (folder / "nfc-\u00e9").write_text("3")
    (folder / "nfd-e\u0301").write_text("4")
    (folder / "new\nline").write_text("5")
    (folder / "-rf").write_text("6")
    (folder / "CON").write_text("7")
    bytes_path = bytes(folder) + b"/\xff\xfe"
    with open(bytes_path, "wb") as file:  # noqa: PTH123
        file.write(b"8")
    (folder / "setuid").write_text("9")
    (folder / "setuid").chmod(0o6755)
    (folder / "read-only").write_text("10")
    (folder / "read-only").chmod(0o400)
    (folder / "link").symlink_to("SKILL.md")
    (folder / "out").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to("loop")
    (folder / "empty").mkdir()
    deep = folder / "/".join(["d"] * 40)
    deep.mkdir(parents=True)
    (deep / "x").write_text("deep")
    (folder / "shut").mkdir()
    (folder / "shut" / "x").write_text("in a folder that is read-only")
    (folder / "shut").chmod(0o555)


@pytest.mark.parametrize("across", [False, True], ids=["one file system", "two file systems"])
def test_the_archive_gives_back_what_it_got(tmp_path: Path, other_device: Path, across: bool) -> None:
    """Hostile names, twins, set-id bits, read-only files and folders, links, deep trees: in, out, and in by undo."""
    home = Home(base=tmp_path / "home", archive=other_device / "archive" if across else None)
    hostile(home.skill("cat/odd"))
    home.know(home.applier(), "cat/odd")
    before = tree(home.root)
    applier = home.applier()
    done = applier.apply(Archive(key=key("cat/odd"), reason="r", expected=home.fingerprint("cat/odd")), now=NOW)
    assert isinstance(done, Applied), done
    assert not (home.root / "cat/odd").exists()

    back = restore(applier, "odd", now=LATER)
    assert isinstance(back, Applied), back
    assert before == tree(home.root)

    (undone,) = undo(applier, back.entry.action_id, now=LATER)
    assert isinstance(undone, Applied), undone
    (again,) = undo(applier, undone.entry.action_id, now=LATER)
    assert isinstance(again, Applied), again
    assert before == tree(home.root)
    home.close()


def test_a_backup_gives_back_the_same(tmp_path: Path) -> None:
    """The same hostile package, out of a backup."""
    home = Home(base=tmp_path)
    hostile(home.skill("cat/odd"))
    home.know(home.applier(), "cat/odd")
    before = tree(home.root)
    manifest = back_up(home)
    (home.root / "cat/odd/shut").chmod(0o755)
    shutil.rmtree(home.root / "cat/odd")

    rows = bring(home, manifest)

    assert {"lib/cat/odd": "done"} == told(rows)
    assert before == tree(home.root)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_three_of_one_name(tmp_path: Path, order: tuple[int, ...]) -> None:
    """Three versions archived under one name are three entries, and each is given back by its own (bugs B032, B034)."""
    home = Home(base=tmp_path)
    applier = home.applier()
    texts = []
    for number in range(3):
        texts.append(tree(home.skill("cat/probe", f"version {number}")))
        home.know(applier, "cat/probe")
        at = NOW + timedelta(seconds=number)
        done = applier.apply(Archive(key=key("cat/probe"), reason="r", expected=home.fingerprint("cat/probe")), now=at)
        assert isinstance(done, Applied), done
    entries = sorted(applier.store.archive(LIB), key=lambda item: item.at)
    assert 3 == len({item.path for item in entries})

    for number in order:
        back = restore(applier, f"lib/{entries[number].path}/", now=LATER + timedelta(minutes=number))
        assert isinstance(back, Applied), back
        assert texts[number] == tree(home.root / "cat/probe")
        (undone,) = undo(applier, back.entry.action_id, now=LATER)
        assert isinstance(undone, Applied), undone
    home.close()


def test_undoing_an_archive_by_hand_resets_the_clock(tmp_path: Path) -> None:
    """Whoever takes it back wants the skill: the rules must not archive it again at the next run."""
    home = a_home(tmp_path)
    applier = home.applier()
    done = applier.apply(Archive(key=key("other"), reason="r", by="user", expected=home.fingerprint("other")), now=NOW)
    assert isinstance(done, Applied), done

    undo(applier, done.entry.action_id, now=LATER)

    record = applier.store.skill(SkillKey(library=LIB, rel=key("other").rel))
    assert record is not None
    assert (State.ACTIVE, LATER) == (record.state, record.restored_at)
    home.close()


def test_nothing_of_the_state_is_said_in_the_manifest_but_names(tmp_path: Path) -> None:
    """The manifest names skills and hashes, and no content."""
    home = a_home(tmp_path)
    manifest = back_up(home)
    text = (home.state / "backups" / f"{manifest.id}.backup").read_text()
    value: dict[str, Any] = json.loads(text.partition("\n")[2])

    assert manifest.id == value["id"]
    assert "other text" not in text


# -- whatever was done meanwhile

EDITS = st.lists(
    st.tuples(
        st.sampled_from(["change", "delete", "archive", "restore", "chmod", "add", "link", "cache"]), st.integers(0, 3)
    ),
    max_size=8,
)


def packages(home: Home) -> dict[str, dict[str, str]]:
    """Return the content of every package that stands anywhere, by what it holds."""
    found = {}
    for root in (home.root, Path(home.site.archive)):
        for skill in root.rglob("SKILL.md"):
            content = tree(skill.parent)
            found[json.dumps(content, sort_keys=True)] = content
    return found


def edit(home: Home, what: str, number: int, at: datetime) -> None:
    """Do one of the things that a person, a host or curatord does to a library."""
    folder = home.root / f"skill-{number}"
    if what == "restore":
        with suppress(UsageError):
            restore(home.applier(), f"skill-{number}", now=at)
    elif not folder.is_dir() or folder.is_symlink():
        return
    elif what == "change":
        (folder / "SKILL.md").write_text(f"changed {at}")
    elif what == "delete":
        shutil.rmtree(folder)
    elif what == "archive":
        home.applier().apply(Archive(key=key(folder.name), reason="r", expected=home.fingerprint(folder.name)), now=at)
    elif what == "chmod":
        (folder / "run.sh").chmod(0o700)
    elif what == "add":
        (folder / "more").mkdir(exist_ok=True)
    elif what == "link":
        with suppress(FileExistsError):
            (folder / "link").symlink_to(f"../{at:%H%M%S}")
    else:
        (folder / "__pycache__").mkdir(exist_ok=True)
    home.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
def test_all_of_it_comes_back_and_nothing_is_lost(quick: Path, edits: list[tuple[str, int]]) -> None:
    """After any edits all skills are as in the backup again, and every version that stood before still stands."""
    base = quick / "case"
    shutil.rmtree(base, ignore_errors=True)
    home = Home(base=base)
    for number in range(4):
        home.skill(f"skill-{number}", f"text {number}", files={"run.sh": b"#!/bin/sh\n"})
    home.know(home.applier(), *(f"skill-{number}" for number in range(4)))
    wanted = skills(home)
    manifest = back_up(home)
    for count, (what, number) in enumerate(edits):
        edit(home, what, number, NOW + timedelta(minutes=count + 1))
    before = packages(home)

    rows = bring(home, manifest)

    assert {"done", "unchanged"} >= set(told(rows).values())
    assert wanted == {path: what for path, what in skills(home).items() if "__pycache__" not in path}
    assert set(before) <= set(packages(home))
    consistent(home)
    no_leftovers(home)


def work_for_ever(home: Home, manifests: list[Manifest], seed: int) -> None:
    """Bring back now one backup, now another; somebody will stop us."""
    for number in itertools.count():
        now = LATER + timedelta(seconds=seed * 100 + number)
        rows = bring(home, manifests[(seed + number) % 2], now=now)
        assert "failed" not in told(rows).values()


def random_kills(base: Path, kills: int, seed: int) -> None:
    home = Home(base=base, layout="hermes", ids=f"s{seed}-")
    manifests: list[Manifest] = []
    for version in ("one", "two"):
        for number in range(4):
            folder = home.root / f"skill-{number}"
            shutil.rmtree(folder, ignore_errors=True)
            home.skill(folder.name, f"version {version} of {number}", files={"run.sh": version.encode() * 1000})
        home.know(home.applier(), *(f"skill-{number}" for number in range(4)))
        manifests.append(back_up(home, now=NOW + timedelta(seconds=len(manifests))))
    dice = random.Random(seed)
    for number in range(kills):
        child = fork()
        if child == 0:
            try:
                home.ids = f"s{seed}-{number}-"
                work_for_ever(home, manifests, number)
            finally:
                os._exit(99)
        time.sleep(dice.uniform(0.02, 0.2))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"the child ended by itself: {status}"
        applier = home.applier()
        assert () == applier.recover(now=NOW).conflicts
        with applier.mutator.hold(home.site):
            pass
        home.close()
        for skill in range(4):
            texts = (
                (home.root / f"skill-{skill}/SKILL.md").read_text(),
                (home.root / f"skill-{skill}/run.sh").read_text(),
            )
            version = texts[1][:3]
            assert texts[1] == version * 1000
            assert f"version {version} of {skill}" in texts[0]
        archived = [path.read_text() for path in (home.root / ".archive").rglob("run.sh")]
        assert {True} >= {text in ("one" * 1000, "two" * 1000) for text in archived}
        consistent(home)
        no_leftovers(home)
        assert [] == list(home.state.glob("staging/*"))
    assert len(home.applier().store.actions()) > kills
    home.close()


def test_killed_at_random_instants(quick: Path) -> None:
    """A process that restores over and over is killed by a timer: each skill is whole, of one backup or the other."""
    random_kills(quick, 25, 1)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(2, 8))
def test_killed_at_many_random_instants(quick: Path, seed: int) -> None:
    """A hundred kills for each seed."""
    random_kills(quick, 100, seed)


def test_a_read_only_folder_is_archived_by_its_user(open_to_all: Path) -> None:
    """One that its own user may not write cannot change its parent by a rename: it is copied, verified, dropped."""
    home = Home(base=open_to_all / "h")
    shut = home.skill("shut", files={"references/a.md": b"a"})
    for path in (shut / "references", shut):
        path.chmod(0o555)
    home.know(home.applier(), "shut")
    home.close()
    before = skills(home)

    def work() -> int:
        applier = home.applier()
        done = applier.apply(Archive(key=key("shut"), reason="r", expected=home.fingerprint("shut")), now=NOW)
        if not isinstance(done, Applied) or (home.root / "shut").exists():
            return 1
        back = restore(applier, "shut", now=LATER)
        return 0 if isinstance(back, Applied) and before == skills(home) else 2

    assert 0 == as_user(work, home.base)

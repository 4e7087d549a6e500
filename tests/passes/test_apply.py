"""The gate: what it applies, what it refuses, and that nothing is changed where it refuses."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from curatord.adapters.journal_dir import JournalDir
from curatord.core.cheap import replace
from curatord.core.curation import Proposal, content_of
from curatord.core.journal import FileImage, JournalEntry, Place, WriteFile
from curatord.core.plan import (
    Action,
    Adopt,
    Applied,
    Archive,
    CreateSkill,
    Disown,
    Failed,
    FileChange,
    MarkStale,
    Member,
    Merge,
    PackageWrite,
    Patch,
    Pin,
    Reactivate,
    SetImportance,
    Skipped,
    Unpin,
    WriteSupportFile,
)
from curatord.core.proposal_id import proposal_id
from curatord.core.values import ActionId, BlobId, Fingerprint, Importance, RelPath, SkillKey, State
from curatord.errors import UsageError
from curatord.passes.undo import restore, undo
from curatord.ports.mutator import RefusedError
from tests.curation_home import LIB, NOW, Home, key, tree


def archive_of(home: Home, rel: str, **more: object) -> Archive:
    return Archive(key=key(rel), reason="idle for 97 days", expected=home.fingerprint(rel), **more)  # type: ignore[arg-type]


def code_of(outcome: object) -> str:
    assert isinstance(outcome, Skipped), outcome
    return outcome.code


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(base=tmp_path)
    old = home.skill("cat/old", files={"scripts/run.sh": b"#!/bin/sh\n", "references/a.md": b"a\r\n\xff"})
    (old / "scripts/run.sh").chmod(0o755)
    (old / "empty").mkdir()
    (old / "link").symlink_to("../../nowhere")
    home.skill("young")
    return home


def test_archive_moves_the_package_whole(home: Home) -> None:
    """Every byte, mode, link and empty folder stands in the archive afterwards, and the record says where."""
    applier = home.applier()
    home.know(applier, "cat/old")
    before = tree(home.root / "cat/old")

    outcome = applier.apply(archive_of(home, "cat/old"), now=NOW)

    assert isinstance(outcome, Applied), outcome
    assert not (home.root / "cat/old").exists()
    assert before == tree(Path(home.site.archive) / "old")
    record = applier.store.skill(key("cat/old"))
    assert record is not None
    assert (State.ARCHIVED, f"{home.site.archive}/old") == (record.state, record.archive_path)
    assert [State.ARCHIVED] == [line.to_state for line in applier.store.history(key("cat/old"))]


def test_undo_of_an_archive_brings_everything_back(home: Home) -> None:
    """After the undo the home is what it was, also the archive folder that had to be made."""
    applier = home.applier()
    home.know(applier, "cat/old")
    before = home.files()
    done = applier.apply(archive_of(home, "cat/old"), now=NOW)
    assert isinstance(done, Applied)

    undone = undo(applier, done.entry.action_id, now=NOW + timedelta(days=1))

    assert [Applied] == [type(outcome) for outcome in undone]
    assert before == home.files()
    record = applier.store.skill(key("cat/old"))
    assert record is not None
    assert (State.ACTIVE, NOW + timedelta(days=1), None) == (record.state, record.restored_at, record.archive_path)


def test_restore_puts_it_back_under_its_category(home: Home) -> None:
    """Restore needs the name only, brings it back where it stood, and starts the idle clock again."""
    applier = home.applier()
    home.know(applier, "cat/old")
    before = tree(home.root)
    applier.apply(archive_of(home, "cat/old"), now=NOW)
    (home.root / "cat").rmdir()

    outcome = restore(applier, "old", now=NOW + timedelta(days=2))

    assert isinstance(outcome, Applied), outcome
    assert before == tree(home.root)
    record = applier.store.skill(key("cat/old"))
    assert record is not None
    assert (State.ACTIVE, NOW + timedelta(days=2)) == (record.state, record.restored_at)
    assert () == applier.store.archive(LIB)


def test_the_archive_never_overwrites(home: Home) -> None:
    """A second package of the same name gets a stamped name, and restore asks which one is meant."""
    applier = home.applier()
    home.know(applier, "cat/old")
    applier.apply(archive_of(home, "cat/old"), now=NOW)
    home.skill("cat/old", "another text")
    home.know(applier, "cat/old", seen_fingerprint=Fingerprint("x"))
    applier.apply(archive_of(home, "cat/old", by="user"), now=NOW + timedelta(days=1))
    names = sorted(path.name for path in Path(home.site.archive).iterdir())

    assert ["old", "old-20260302120000"] == names
    with pytest.raises(Exception, match="2 archived packages are called") as caught:
        restore(applier, "old", now=NOW)
    assert "lib/old/" in caught.value.hint  # type: ignore[attr-defined]
    assert isinstance(restore(applier, "lib/old/", now=NOW), Applied)
    assert "text" in (home.root / "cat/old/SKILL.md").read_text().splitlines()


def test_restore_refuses_a_taken_place(home: Home) -> None:
    """A skill that came to stand there meanwhile is left alone, and the archived one stays."""
    applier = home.applier()
    home.know(applier, "young")
    applier.apply(archive_of(home, "young"), now=NOW)
    home.skill("young", "new one")
    before = home.files()

    assert "taken" == code_of(restore(applier, "young", now=NOW))
    assert before == home.files()


def test_restore_of_a_package_that_nobody_recorded(home: Home) -> None:
    """What a person or the host put into the archive can be restored by its name."""
    applier = home.applier()
    folder = Path(home.site.archive) / "stray-20250101010101"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: stray\n---\n")

    assert isinstance(restore(applier, "stray", now=NOW), Applied)
    assert (home.root / "stray/SKILL.md").exists()


@pytest.mark.parametrize("change", ["edit", "pin", "record pin", "critical", "unmanaged", "gone", "mode"])
def test_what_changed_since_the_plan_is_left_alone(home: Home, change: str) -> None:
    """An edit, a pin, importance or lost ownership between plan and apply wins; not a byte changes."""
    applier = home.applier()
    home.know(applier, "young")
    action = archive_of(home, "young")
    expected = change
    match change:
        case "edit":
            (home.root / "young/SKILL.md").write_text("mine")
            expected = "edited"
        case "mode":
            (home.root / "young/SKILL.md").chmod(0o600)
            expected = "edited"
        case "pin":
            applier.apply(Pin(key=key("young"), reason="", by="user"), now=NOW)
            expected = "pinned"
        case "record pin":
            applier.apply(Pin(key=key("young"), reason="", by="user"), now=NOW)
            expected = "pinned"
        case "critical":
            applier.apply(
                SetImportance(key=key("young"), reason="", by="user", importance=Importance.CRITICAL), now=NOW
            )
        case "unmanaged":
            home.managed = set()
        case "gone":
            (home.root / "young/SKILL.md").unlink()
            (home.root / "young").rmdir()
    before = home.files()

    assert expected == code_of(applier.apply(action, now=NOW))
    assert before == home.files()
    assert () == applier.mutator.unfinished()


def test_the_writer_asks_by_itself(home: Home) -> None:
    """A pin that arrives after the gate's own question is still seen: the writer asks again, from disk."""
    applier = home.applier()
    home.know(applier, "young")
    action = archive_of(home, "young")
    looks = 0

    def pin_late(_key: object) -> None:
        nonlocal looks
        looks += 1
        if looks == 2:  # the gate, then the writer
            home.managed = set()

    home.on_look = pin_late
    before = home.files()

    assert "unmanaged" == code_of(applier.apply(action, now=NOW))
    assert before == home.files()


def test_a_model_cannot_decide(home: Home) -> None:
    """Pins, adoption and importance are a person's; said by anybody else they are refused."""
    applier = home.applier()
    decisions: list[Action] = [
        Pin(key=key("young"), reason="", by="model"),
        Unpin(key=key("young"), reason="", by="rules"),
        Adopt(key=key("young"), reason="", by="model"),
        Disown(key=key("young"), reason="", by="model"),
        SetImportance(key=key("young"), reason="", by="model", importance=Importance.LOW),
    ]

    assert ["invalid"] * 5 == [code_of(applier.apply(action, now=NOW)) for action in decisions]


def test_states_and_decisions_are_recorded_twice(home: Home) -> None:
    """Decisions stand in the database and in the plain file, and refill a database that was lost."""
    applier = home.applier()
    home.know(applier, "young", "cat/old")
    for action in (
        Pin(key=key("young"), reason="", by="user"),
        SetImportance(key=key("young"), reason="", by="user", importance=Importance.IMPORTANT),
        Adopt(key=key("cat/old"), reason="", by="user"),
        Archive(key=key("cat/old"), reason="r", by="user"),
    ):
        assert isinstance(applier.apply(action, now=NOW), Applied)
    records = applier.store.skills()
    archive = applier.store.archive()
    for path in home.state.glob("curatord.db*"):
        path.unlink()

    fresh = home.applier()
    count = fresh.store.refill(fresh.decisions.load(), now=NOW)

    assert 3 == count
    young = fresh.store.skill(key("young"))
    assert young is not None
    assert (True, Importance.IMPORTANT) == (young.pinned, young.importance)
    old = fresh.store.skill(key("cat/old"))
    assert old is not None
    assert (records[key("cat/old")].owner_at, "adopted") == (old.owner_at, old.owner)
    assert archive == fresh.store.archive()
    assert 0 == fresh.store.refill(fresh.decisions.load(), now=NOW)


def test_stale_and_back(home: Home) -> None:
    """A stale mark and its reactivation touch no byte of the library and leave two lines of history."""
    applier = home.applier()
    home.know(applier, "young")
    before = home.files()
    fingerprint = home.fingerprint("young")

    applier.apply(MarkStale(key=key("young"), reason="idle 31 days", expected=fingerprint), now=NOW)
    stale = applier.store.skill(key("young"))
    applier.apply(Reactivate(key=key("young"), reason="used", expected=fingerprint), now=NOW + timedelta(days=1))
    active = applier.store.skill(key("young"))

    assert stale is not None
    assert active is not None
    assert (State.STALE, NOW) == (stale.state, stale.stale_since)
    assert (State.ACTIVE, None) == (active.state, active.stale_since)
    assert ["idle 31 days", "used"] == [line.reason for line in applier.store.history(key("young"))]
    assert before == home.files()


def test_an_undone_rule_resets_the_clock(home: Home) -> None:
    """Else the rule would do the same again at the next run."""
    applier = home.applier()
    home.know(applier, "young")
    done = applier.apply(MarkStale(key=key("young"), reason="r", expected=home.fingerprint("young")), now=NOW)
    assert isinstance(done, Applied)

    undo(applier, done.entry.action_id, now=NOW + timedelta(days=3))

    record = applier.store.skill(key("young"))
    assert record is not None
    assert (State.ACTIVE, NOW + timedelta(days=3)) == (record.state, record.restored_at)


def test_undo_is_refused_whole_where_a_file_changed(home: Home) -> None:
    """An archived package that somebody edited stays where it is, and the reason names it."""
    applier = home.applier()
    home.know(applier, "young")
    done = applier.apply(archive_of(home, "young"), now=NOW, run_id="20260301-120000")  # type: ignore[arg-type]
    assert isinstance(done, Applied)
    (Path(home.site.archive) / "young/SKILL.md").write_text("mine")
    before = home.files()

    outcome = undo(applier, "20260301-120000", now=NOW)[0]

    assert "edited" == code_of(outcome)
    assert f"{home.root}/young" in outcome.reason or "young" in outcome.reason  # type: ignore[union-attr]
    assert before == home.files()


def test_undo_of_the_older_action_names_the_newer(home: Home) -> None:
    """A stale mark cannot be taken back while the archiving after it stands."""
    applier = home.applier()
    home.know(applier, "young")
    first = applier.apply(MarkStale(key=key("young"), reason="r", expected=home.fingerprint("young")), now=NOW)
    second = applier.apply(archive_of(home, "young"), now=NOW)
    assert isinstance(first, Applied)
    assert isinstance(second, Applied)

    outcome = undo(applier, first.entry.action_id, now=NOW)[0]

    assert "edited" == code_of(outcome)
    assert second.entry.action_id in outcome.reason  # type: ignore[union-attr]


def test_a_run_is_undone_newest_first(home: Home) -> None:
    """Undo of a run takes back all its actions; `last` finds it, and a second time there is nothing left."""
    applier = home.applier()
    home.know(applier, "young", "cat/old")
    before = home.files()
    run = "20260301-120000"
    applier.apply_all(
        [
            MarkStale(key=key("young"), reason="r", expected=home.fingerprint("young")),
            archive_of(home, "young"),
            archive_of(home, "cat/old"),
        ],
        now=NOW,
        run_id=run,  # type: ignore[arg-type]
    )

    outcomes = undo(applier, "last", now=NOW)

    assert [Applied] * 3 == [type(outcome) for outcome in outcomes]
    assert before == home.files()
    with pytest.raises(Exception, match="undone already"):
        undo(applier, run, now=NOW)


def test_an_undo_can_be_undone(home: Home) -> None:
    """An undo is an action like any other."""
    applier = home.applier()
    home.know(applier, "young")
    done = applier.apply(archive_of(home, "young"), now=NOW)
    assert isinstance(done, Applied)
    after = home.files()
    undone = undo(applier, done.entry.action_id, now=NOW)[0]
    assert isinstance(undone, Applied)

    again = undo(applier, undone.entry.action_id, now=NOW)[0]

    assert isinstance(again, Applied)
    assert after == home.files()


def patch_of(home: Home, rel: str, *files: FileChange) -> Patch:
    return Patch(key=key(rel), reason="r", by="model", expected=home.fingerprint(rel), files=files)


def test_patch_keeps_modes_and_undoes(home: Home) -> None:
    """A patched file keeps its mode, a new one is 0644, and the undo removes what was added."""
    applier = home.applier()
    home.know(applier, "cat/old")
    before = home.files()
    done = applier.apply(
        patch_of(
            home,
            "cat/old",
            FileChange(path=RelPath("scripts/run.sh"), content=b"#!/bin/sh\nset -e\n"),
            FileChange(path=RelPath("templates/deep/new.txt"), content=b"new"),
        ),
        now=NOW,
    )
    assert isinstance(done, Applied), done
    package = home.root / "cat/old"

    assert 0o755 == (package / "scripts/run.sh").stat().st_mode & 0o777
    assert 0o644 == (package / "templates/deep/new.txt").stat().st_mode & 0o777
    record = applier.store.skill(key("cat/old"))
    assert record is not None
    assert home.fingerprint("cat/old") == record.trusted_fingerprint
    assert [Applied] == [type(outcome) for outcome in undo(applier, done.entry.action_id, now=NOW)]
    assert before == home.files()


def test_patch_that_changes_nothing_writes_nothing(home: Home) -> None:
    """The same content is `nothing`, and the file is not touched."""
    applier = home.applier()
    home.know(applier, "young")
    same = (home.root / "young/SKILL.md").read_bytes()
    before = (home.root / "young/SKILL.md").stat()

    outcome = applier.apply(patch_of(home, "young", FileChange(path=RelPath("SKILL.md"), content=same)), now=NOW)

    assert "nothing" == code_of(outcome)
    after = (home.root / "young/SKILL.md").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


@pytest.mark.parametrize(
    "path", ["../escape", "/etc/x", "a/../../x", "", "a//b", "./a", "con.txt", "a\\b", "a\x00b", "x/" * 20 + "y", "a:b"]
)
def test_paths_out_of_the_package_are_refused(home: Home, path: str) -> None:
    """A file change names a plain path within its package, whatever a model makes up."""
    applier = home.applier()
    before = home.files()

    outcome = applier.apply(patch_of(home, "young", FileChange(path=RelPath(path), content=b"x")), now=NOW)

    assert "invalid" == code_of(outcome)
    assert before == home.files()


def test_links_inside_a_package_lead_nowhere(home: Home, tmp_path: Path) -> None:
    """A folder of a package that is a link out of it is not written through."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (home.root / "young/references").symlink_to(outside)
    (home.root / "young/file").symlink_to(outside / "target")
    applier = home.applier()
    home.know(applier, "young")

    for path in ("references/x.md", "file"):
        outcome = applier.apply(patch_of(home, "young", FileChange(path=RelPath(path), content=b"x")), now=NOW)
        assert "unreadable" == code_of(outcome)

    assert [] == list(outside.iterdir())


def test_archiving_a_link_moves_the_link(home: Home, tmp_path: Path) -> None:
    """The link goes into the archive as a link; what it points to is not touched, dangling or looping ones too."""
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "SKILL.md").write_text("theirs")
    for name, to in (("pen", target), ("dangling", tmp_path / "nothing"), ("loop", home.root / "loop")):
        (home.root / name).symlink_to(to)
    applier = home.applier()
    before = tree(target)

    for name in ("pen", "dangling", "loop"):
        outcome = applier.apply(archive_of(home, name, by="user"), now=NOW)
        assert isinstance(outcome, Applied), outcome
        assert (Path(home.site.archive) / name).is_symlink()

    assert before == tree(target)


def test_create_and_undo(home: Home) -> None:
    """A new skill is curatord's own; its undo archives it, so that nothing is lost."""
    applier = home.applier()
    before = tree(home.root)
    action = CreateSkill(
        key=key("cat/fresh"), reason="lesson", by="model", proposal="p1",
        files=(
            FileChange(path=RelPath("SKILL.md"), content=b"---\nname: fresh\n---\n"),
            FileChange(path=RelPath("scripts/x"), content=b"x", mode=0o755),
        ),
    )  # fmt: skip
    done = applier.apply(action, now=NOW)
    assert isinstance(done, Applied), done
    record = applier.store.skill(key("cat/fresh"))
    assert record is not None
    assert ("curatord", home.fingerprint("cat/fresh")) == (record.owner, record.trusted_fingerprint)

    undone = undo(applier, "p1", now=NOW)

    assert [Applied] == [type(outcome) for outcome in undone]
    assert before == tree(home.root)
    assert (Path(home.site.archive) / "fresh/scripts/x").exists()
    assert {"p1"} == set(applier.store.rejections()) == set(applier.decisions.load().rejected)


@pytest.mark.parametrize("rel", ["young", "Young", "cat/OLD", ".hidden", "a/.git"])
def test_create_refuses_twins_and_hidden_names(home: Home, rel: str) -> None:
    """A name that is taken, also up to case, or that hosts would not see, is refused."""
    applier = home.applier()
    before = home.files()
    files = (FileChange(path=RelPath("SKILL.md"), content=b"x"),)

    outcome = applier.apply(CreateSkill(key=key(rel), reason="", by="model", files=files), now=NOW)

    assert code_of(outcome) in ("taken", "invalid")
    assert before == home.files()


def merge_of(home: Home, *members: str, umbrella: str = "kit", existing: bool = False) -> Merge:
    return Merge(
        umbrella=key(umbrella),
        reason="one class",
        proposal="m1",
        writes=(
            PackageWrite(
                key=key(umbrella),
                expected=home.fingerprint(umbrella) if existing else None,
                files=(
                    FileChange(path=RelPath("SKILL.md"), content=b"---\nname: kit\n---\nall\n"),
                    FileChange(path=RelPath("references/young.md"), content=b"young"),
                ),
            ),
        ),
        members=tuple(Member(key=key(m), expected=home.fingerprint(m), reason="narrow") for m in members),
    )


@pytest.mark.parametrize("existing", [False, True])
def test_merge_and_its_undo(home: Home, existing: bool) -> None:
    """Members go into the archive after the umbrella stands; the undo brings the library back to the byte."""
    if existing:
        home.skill("kit", "old umbrella")
    applier = home.applier()
    home.know(applier, "young", "cat/old", *(["kit"] if existing else []))
    before = tree(home.root)
    done = applier.apply(merge_of(home, "young", "cat/old", existing=existing), now=NOW)
    assert isinstance(done, Applied), done
    assert {"cat", "kit"} == {path.name for path in home.root.iterdir()}
    record = applier.store.skill(key("young"))
    assert record is not None
    assert ("kit", State.ARCHIVED) == (record.absorbed_into, record.state)
    with pytest.raises(Exception, match="went into kit"):
        restore(applier, "young", now=NOW)

    undone = undo(applier, done.entry.action_id, now=NOW)

    assert [Applied] == [type(outcome) for outcome in undone], undone
    assert before == tree(home.root)
    assert ["m1"] == list(applier.store.rejections())


def test_merge_is_refused_when_one_member_was_edited(home: Home) -> None:
    """One edited member stops the whole merge: neither umbrella nor archive appears."""
    applier = home.applier()
    home.know(applier, "young", "cat/old")
    action = merge_of(home, "young", "cat/old")
    (home.root / "cat/old/SKILL.md").write_text("mine")
    before = home.files()

    assert "edited" == code_of(applier.apply(action, now=NOW))
    assert before == home.files()


def test_undo_of_a_merge_is_refused_after_the_umbrella_was_edited(home: Home) -> None:
    """A file that a user added to the umbrella stands in the way too."""
    applier = home.applier()
    home.know(applier, "young")
    done = applier.apply(merge_of(home, "young"), now=NOW)
    assert isinstance(done, Applied)
    (home.root / "kit/mine.txt").write_text("mine")
    before = home.files()

    assert "edited" == code_of(undo(applier, done.entry.action_id, now=NOW)[0])
    assert before == home.files()


def test_support_file_turns_a_flat_skill_into_a_folder(tmp_path: Path) -> None:
    """In a flat layout the text becomes SKILL.md of a folder, and the undo makes it a file again."""
    home = Home(base=tmp_path, layout="flat")
    (home.root / "note.md").write_text("---\ndescription: d\n---\n")
    applier = home.applier()
    home.know(applier, "note")
    before = home.files()
    action = WriteSupportFile(
        key=key("note"), reason="r", by="model", expected=home.fingerprint("note"),
        files=(FileChange(path=RelPath("references/x.md"), content=b"x"),),
    )  # fmt: skip
    done = applier.apply(action, now=NOW)
    assert isinstance(done, Applied), done
    assert {"note/SKILL.md", "note/references/x.md"} <= set(tree(home.root))
    assert not (home.root / "note.md").exists()

    assert [Applied] == [type(outcome) for outcome in undo(applier, done.entry.action_id, now=NOW)]
    assert before == home.files()


def test_flat_skills_are_archived_in_a_folder_of_their_name(tmp_path: Path) -> None:
    """`note.md` stands as `note/note.md` in the archive, and comes back as the file that it was."""
    home = Home(base=tmp_path, layout="flat")
    (home.root / "note.md").write_text("---\ndescription: d\n---\n")
    applier = home.applier()
    home.know(applier, "note")
    before = home.files()
    applier.apply(archive_of(home, "note"), now=NOW)
    assert (Path(home.site.archive) / "note/note.md").is_file()

    outcome = restore(applier, "note", now=NOW)

    assert isinstance(outcome, Applied), outcome
    assert before == {path: what for path, what in home.files().items() if path != ".skills-archive"}


def test_unreadable_decisions_stop_everything(home: Home) -> None:
    """A decisions file that cannot be read is never replaced, and nothing is changed while it is so."""
    applier = home.applier()
    home.know(applier, "young")
    (home.state / "decisions.json").write_text('{"skills": {')
    before = home.files()

    with pytest.raises(Exception, match=r"decisions\.json cannot be read"):
        applier.apply(archive_of(home, "young"), now=NOW)

    assert before == home.files()
    assert '{"skills": {' == (home.state / "decisions.json").read_text()


def test_unknown_keys_of_the_decisions_are_carried_along(home: Home) -> None:
    """What a newer version put into the file survives this one's writing, at every level."""
    told = {"x_future": 1, "skills": {"lib": {"young": {"pinned": False, "x": [1]}, "other": {"y": 2}}}}
    (home.state / "decisions.json").write_text(json.dumps(told))
    applier = home.applier()

    applier.apply(Pin(key=key("young"), reason="", by="user"), now=NOW)

    after = json.loads((home.state / "decisions.json").read_text())
    assert (1, [1], True) == (after["x_future"], *(after["skills"]["lib"]["young"][name] for name in ("x", "pinned")))
    assert {"y": 2} == after["skills"]["lib"]["other"]
    assert 0o600 == (home.state / "decisions.json").stat().st_mode & 0o777


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_a_folder_that_may_not_be_written(home: Home) -> None:
    """A read-only library makes a failure that names it, and nothing is left half-way."""
    applier = home.applier()
    home.know(applier, "young")
    action = archive_of(home, "young")
    home.root.chmod(0o555)
    try:
        outcome = applier.apply(action, now=NOW)
    finally:
        home.root.chmod(0o755)

    assert "denied" in str(outcome)
    assert () == applier.mutator.unfinished()


def test_a_scan_cannot_take_a_pin_back(home: Home) -> None:
    """A record read before a pin and written after it leaves the pin alone."""
    applier = home.applier()
    home.know(applier, "young")
    read = applier.store.skill(key("young"))
    assert read is not None
    applier.apply(Pin(key=key("young"), reason="", by="user"), now=NOW)

    applier.store.put_skills([replace(read, seen_at=NOW)])

    record = applier.store.skill(key("young"))
    assert record is not None
    assert (True, NOW) == (record.pinned, record.seen_at)


def test_undo_of_a_restore_archives_it_again(home: Home) -> None:
    """Everything is as before the restore, the archive's own record of it too."""
    applier = home.applier()
    home.know(applier, "cat/old")
    applier.apply(archive_of(home, "cat/old"), now=NOW)
    before, record, items = home.files(), applier.store.skill(key("cat/old")), applier.store.archive()
    done = restore(applier, "old", now=NOW + timedelta(days=1))
    assert isinstance(done, Applied)

    assert [Applied] == [type(o) for o in undo(applier, done.entry.action_id, now=NOW + timedelta(days=2))]

    assert (before, record, items) == (home.files(), applier.store.skill(key("cat/old")), applier.store.archive())


@pytest.mark.parametrize("damage", ["gone", "other bytes"])
def test_an_undo_whose_kept_bytes_are_damaged(home: Home, damage: str) -> None:
    """Lost bytes make a failure that says so; the patched file stays as it is, whole."""
    applier = home.applier()
    home.know(applier, "young")
    done = applier.apply(patch_of(home, "young", FileChange(path=RelPath("SKILL.md"), content=b"new")), now=NOW)
    assert isinstance(done, Applied)
    for blob in home.state.glob("blobs/*/*"):
        if damage == "gone":
            blob.unlink()
        else:
            blob.write_bytes(b"something else")
    before = home.files()

    outcome = undo(applier, done.entry.action_id, now=NOW)[0]

    assert isinstance(outcome, Failed)
    assert not outcome.unfinished
    assert before == home.files()
    assert () == applier.mutator.unfinished()


def test_bytes_that_nobody_needs_are_dropped(home: Home) -> None:
    """What an undo may need stays; what a failed action left goes."""
    applier = home.applier()
    home.know(applier, "young")
    done = applier.apply(patch_of(home, "young", FileChange(path=RelPath("SKILL.md"), content=b"new")), now=NOW)
    assert isinstance(done, Applied)
    with applier.mutator.hold(None):
        JournalDir(state_dir=home.state).keep([b"nobody's"])
    before = len(list(home.state.glob("blobs/*/*")))

    assert 1 == applier.drop_blobs()

    assert before - 1 == len(list(home.state.glob("blobs/*/*")))
    assert isinstance(undo(applier, done.entry.action_id, now=NOW)[0], Applied)


def test_approving_applies_all_or_nothing(home: Home) -> None:
    """A proposal of two archives is refused whole after one of them was edited, and its state is kept right."""
    applier = home.applier()
    home.know(applier, "young", "cat/old")
    actions = (archive_of(home, "young"), archive_of(home, "cat/old"))
    made = Proposal(
        id=proposal_id(LIB, "archive", [key("young"), key("cat/old")], content_of(actions)), kind="archive",
        library=LIB, targets=(key("cat/old"), key("young")), summary="s", reason="r", created_at=NOW, actions=actions,
    )  # fmt: skip
    assert "new" == applier.store.propose(made)
    text = (home.root / "young/SKILL.md").read_bytes()
    (home.root / "young/SKILL.md").write_text("mine")
    before = home.files()

    refused = applier.approve(made, now=NOW)

    assert ["edited"] == [code_of(outcome) for outcome in refused]
    assert before == home.files()
    assert [made] == list(applier.store.proposals())
    (home.root / "young/SKILL.md").write_bytes(text)
    assert [Applied] * 2 == [type(outcome) for outcome in applier.approve(made, now=NOW)]
    stored = applier.store.proposal(made.id)
    assert stored is not None
    assert "approved" == stored.status
    assert 2 == len(undo(applier, made.id, now=NOW))
    with pytest.raises(Exception, match="approved already"):
        applier.approve(stored, now=NOW)


def test_a_rejection_in_the_middle_of_an_approval_wins(home: Home) -> None:
    """Somebody says no after the approval has looked, and before it has the locks: nothing is archived."""
    applier = home.applier()
    home.know(applier, "young")
    actions = (archive_of(home, "young"),)
    made = Proposal(
        id=proposal_id(LIB, "archive", [key("young")], content_of(actions)), kind="archive", library=LIB,
        targets=(key("young"),), summary="s", reason="r", created_at=NOW, actions=actions,
    )  # fmt: skip
    applier.store.propose(made)
    before = home.files()
    said: list[SkillKey] = []

    def say_no(skill: SkillKey) -> None:
        if not said:
            said.append(skill)
            applier.reject(made, now=NOW, reason="no")

    home.on_look = say_no
    (outcome,) = applier.approve(made, now=NOW)

    assert "conflict" == code_of(outcome)
    assert before == home.files()
    stored = applier.store.proposal(made.id)
    assert stored is not None
    assert "rejected" == stored.status
    with pytest.raises(UsageError, match="rejected already"):
        applier.approve(made, now=NOW)


def test_an_approval_that_is_stopped_ends_between_two_actions(home: Home) -> None:
    """What was done is told, the rest is not begun."""
    applier = home.applier()
    home.know(applier, "young", "cat/old")
    actions = (archive_of(home, "young"), archive_of(home, "cat/old"))
    made = Proposal(
        id=proposal_id(LIB, "archive", [key("young"), key("cat/old")], content_of(actions)), kind="archive",
        library=LIB, targets=(key("cat/old"), key("young")), summary="s", reason="r", created_at=NOW, actions=actions,
    )  # fmt: skip
    applier.store.propose(made)
    asked = iter([False, True])

    outcomes = applier.approve(made, now=NOW, stop=lambda: next(asked))

    assert [Applied] == [type(outcome) for outcome in outcomes]
    assert (home.root / "cat/old").exists()


def test_rejecting_is_kept_twice(home: Home) -> None:
    """In the database and in the plain file."""
    applier = home.applier()
    made = Proposal(
        id="abc",
        kind="archive",
        library=LIB,
        targets=(key("young"),),
        summary="s",
        reason="r",
        created_at=NOW,
        actions=(),
    )
    applier.store.propose(made)

    applier.reject(made, now=NOW, reason="no")

    assert {"abc"} == set(applier.store.rejections()) == set(applier.decisions.load().rejected)
    assert "rejected" == applier.store.propose(made)


def test_a_tampered_entry_reaches_nothing_outside(home: Home, tmp_path: Path) -> None:
    """The writer judges places, not words: an entry that points elsewhere is refused before anything is written."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("theirs")
    applier = home.applier()
    image = FileImage(blob=BlobId("0" * 64), mode=0o644)
    places = [
        Place(root=str(outside), path=RelPath("file")),
        Place(root=str(home.root), path=RelPath("cat/old/SKILL.md")),
        Place(root=str(home.root), path=RelPath("youngest/SKILL.md")),
    ]
    for place in places:
        entry = JournalEntry(
            action_id=ActionId("x"), run_id=None, at=NOW, kind="patch", by="model", library=LIB, summary="", reason="",
            targets=(key("young"),), steps=(WriteFile(place=place, before=None, after=image),),
        )  # fmt: skip
        with applier.mutator.hold(home.site), pytest.raises(RefusedError):
            applier.mutator.begin(entry, [])
    with pytest.raises(ValueError, match="not a place"):
        Place(root=str(home.root), path=RelPath("young/../../outside/file"))
    assert "theirs" == (outside / "file").read_text()

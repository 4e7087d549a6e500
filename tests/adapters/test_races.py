"""
Somebody else at the very instant: edits and swapped links between our look and our rename.

The hook runs just before an effect, which is the worst moment there is; what is tested is that the other's version is
kept, and that nothing outside the library is reached.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from curatord.adapters import disk as disk_module
from curatord.core.plan import Applied, Archive, FileChange, Patch, Skipped
from curatord.core.values import RelPath
from curatord.passes.undo import restore
from tests.curation_home import NOW, Home, key, tree


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(base=tmp_path)
    home.skill("cat/old", files={"references/a.md": b"a"})
    applier = home.applier()
    home.know(applier, "cat/old")
    return home


def patch(home: Home) -> Patch:
    files = (FileChange(path=RelPath("SKILL.md"), content=b"ours"),)
    return Patch(key=key("cat/old"), reason="r", by="model", expected=home.fingerprint("cat/old"), files=files)


def archive(home: Home) -> Archive:
    return Archive(key=key("cat/old"), reason="r", expected=home.fingerprint("cat/old"))


def once_at(
    name: str, folder: Path, act: Callable[[], None], *, when: Callable[[], bool] = lambda: True
) -> Callable[[str], None]:
    """Return a hook that runs *act* at the first effect *name* after the intent was written."""
    done = False

    def hook(effect: str) -> None:
        nonlocal done
        if not done and effect == name and list(folder.glob("*.json")) and when():
            done = True
            act()

    return hook


def save(path: Path, text: str) -> None:
    """Save as editors do: a new file renamed over the old."""
    new = path.with_name("editor.tmp")
    new.write_text(text)
    new.rename(path)


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "by rename"])
@pytest.mark.parametrize("effect", ["create", "write", "sync", "rename"])
def test_a_save_just_before_our_exchange_is_given_back(home: Home, effect: str, in_place: bool) -> None:
    """The user's text stands, ours does not, and the outcome says so."""
    action = patch(home)
    target = home.root / "cat/old/SKILL.md"

    def edit() -> None:
        target.write_text("mine") if in_place else save(target, "mine")

    home.hook = once_at(effect, home.state / "journal", edit)
    outcome = home.applier().apply(action, now=NOW)

    assert isinstance(outcome, Skipped), outcome
    assert "edited" == outcome.code
    assert "mine" == target.read_text()
    assert ["SKILL.md", "references"] == sorted(path.name for path in target.parent.iterdir())


def test_a_save_just_before_our_move_is_given_back(home: Home) -> None:
    """A package that was edited between seal and rename goes back to where it stood, with the edit."""
    action = archive(home)
    target = home.root / "cat/old/references/a.md"

    def when() -> bool:
        return Path(home.site.archive).exists()  # the rename of the package, not that of the archive's own folder

    home.hook = once_at("rename", home.state / "journal", lambda: save(target, "mine"), when=when)
    outcome = home.applier().apply(action, now=NOW)

    assert isinstance(outcome, Skipped), outcome
    assert "mine" == target.read_text()
    assert not Path(home.site.archive).exists()


def test_a_folder_swapped_for_a_link_leads_nowhere(home: Home, tmp_path: Path) -> None:
    """While we work the category becomes a link to a folder outside: nothing outside is moved or written."""
    outside = tmp_path / "outside"
    (outside / "old").mkdir(parents=True)
    (outside / "old/SKILL.md").write_text("theirs")
    before = tree(outside)

    def swap() -> None:
        (home.root / "cat").rename(home.root / "was")
        (home.root / "cat").symlink_to(outside)

    for effect in ("rename", "sync_dir", "create"):
        action = archive(home) if effect != "create" else patch(home)
        home.hook = once_at(effect, home.state / "journal", swap)
        home.applier().apply(action, now=NOW)
        home.hook = lambda _: None
        assert before == tree(outside)
        if (home.root / "cat").is_symlink():
            (home.root / "cat").unlink()
            (home.root / "was").rename(home.root / "cat")
        applier = home.applier()
        applier.recover(now=NOW)
        if not (home.root / "cat/old").exists():
            restore(applier, "old", now=NOW)


def test_a_category_that_is_a_link_is_refused(home: Home, tmp_path: Path) -> None:
    """Below the root no part of a path may be a link, from the start."""
    (home.root / "cat").rename(tmp_path / "real")
    (home.root / "cat").symlink_to(tmp_path / "real")
    before = tree(tmp_path / "real")

    outcome = home.applier().apply(archive(home), now=NOW)

    assert isinstance(outcome, Skipped)
    assert "unreadable" == outcome.code
    assert before == tree(tmp_path / "real")


def test_something_that_appears_in_the_archive_is_not_overwritten(home: Home) -> None:
    """A folder of that name that came just now, even an empty one, is not replaced."""
    action = archive(home)
    taken = Path(home.site.archive) / "old"
    home.hook = once_at("rename", home.state / "journal", taken.mkdir, when=taken.parent.exists)

    outcome = home.applier().apply(action, now=NOW)

    assert isinstance(outcome, Skipped), outcome
    assert "taken" == outcome.code
    assert (home.root / "cat/old/SKILL.md").exists()
    assert [] == list(taken.iterdir())


def test_special_files_hang_nobody(home: Home) -> None:
    """A FIFO in a package is moved with it on one file system, and is never opened."""
    os.mkfifo(home.root / "cat/old/pipe")

    outcome = home.applier().apply(archive(home), now=NOW)

    assert isinstance(outcome, Applied), outcome
    assert (Path(home.site.archive) / "old/pipe").is_fifo()


def test_a_fifo_in_place_of_a_file_is_refused(home: Home) -> None:
    """A patch of what is no regular file is refused, and does not wait for a writer."""
    os.mkfifo(home.root / "cat/old/references/pipe")
    files = (FileChange(path=RelPath("references/pipe"), content=b"x"),)
    action = Patch(key=key("cat/old"), reason="", by="model", expected=home.fingerprint("cat/old"), files=files)

    outcome = home.applier().apply(action, now=NOW)

    assert isinstance(outcome, Skipped), outcome
    assert "unreadable" == outcome.code


@pytest.mark.parametrize("kind", ["archive", "patch"])
def test_without_conditional_renames(home: Home, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Where the system cannot exchange, plain renames do, after a look."""
    monkeypatch.setattr(disk_module, "_load_rename2", lambda: None)
    action = archive(home) if kind == "archive" else patch(home)

    outcome = home.applier().apply(action, now=NOW)

    assert isinstance(outcome, Applied), outcome
    if kind == "archive":
        assert (Path(home.site.archive) / "old/SKILL.md").exists()
    else:
        assert b"ours" == (home.root / "cat/old/SKILL.md").read_bytes()


def test_a_hard_link_is_not_written_through(home: Home, tmp_path: Path) -> None:
    """A file of the package that has another name elsewhere is replaced here and stays as it was there."""
    elsewhere = tmp_path / "elsewhere"
    os.link(home.root / "cat/old/SKILL.md", elsewhere)
    before = elsewhere.read_bytes()

    assert isinstance(home.applier().apply(patch(home), now=NOW), Applied)
    assert before == elsewhere.read_bytes()

"""Backups on a real disk: what goes in comes out, whatever it is called; damage, kills and full disks lose nothing."""

from __future__ import annotations

import dataclasses
import errno
import itertools
import os
import resource
import shutil
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curatord.adapters import backup_reader
from curatord.adapters.backup_reader import BackupReader
from curatord.adapters.backup_store import BackupStore
from curatord.adapters.disk import Disk
from curatord.adapters.lock import work_lock
from curatord.core.backup import BackupId, Manifest, content_id, quoted
from curatord.core.values import LibraryName
from curatord.errors import BusyError, InputError, StateError
from curatord.passes.backup import Created, LibraryToKeep, create
from curatord.ports.backups import DamagedBackupError, TooLargeError
from tests.curation_home import as_user, fork, killed_after

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MUCH = 1 << 40


def bytes_tree(root: Path) -> dict[bytes, tuple[object, ...]]:
    """Return type, mode, content or target, and time of files, of everything below *root*, names as bytes."""
    found: dict[bytes, tuple[object, ...]] = {}
    top = os.fsencode(root)
    for folder, names, files in os.walk(top):
        for name in [*names, *files]:
            path = os.path.join(folder, name)  # noqa: PTH118 - paths as bytes
            facts = os.lstat(path)
            rel = path[len(top) + 1 :]
            if stat.S_ISLNK(facts.st_mode):
                found[rel] = ("link", os.readlink(path))  # noqa: PTH115
            elif stat.S_ISREG(facts.st_mode):
                with open(path, "rb") as file:  # noqa: PTH123
                    found[rel] = ("file", stat.S_IMODE(facts.st_mode), file.read(), facts.st_mtime_ns)
            else:
                found[rel] = (stat.S_IFMT(facts.st_mode), stat.S_IMODE(facts.st_mode))
    return found


class Kept:
    """A library with a store for its backups; each call of `create` is a second later."""

    def __init__(self, base: Path, hook: Callable[[str], None] = lambda _: None) -> None:
        self.base = base
        self.root, self.state = base / "skills", base / "state"
        for path in (self.root, self.state):
            path.mkdir(parents=True, exist_ok=True)
        self.store = BackupStore(state_dir=self.state, disk=Disk(hook=hook), wait_s=0.2)
        self.seconds = itertools.count()

    def library(self) -> LibraryToKeep:
        return LibraryToKeep(
            name=LibraryName("lib"),
            root=str(self.root),
            archive=str(self.base / ".skills-archive"),
            layout="agent-skills",
            apart=(str(self.state),),
        )

    def create(
        self, *, keep: int = 100, max_bytes: int = MUCH, anyway: bool = True, second: int | None = None
    ) -> Created:
        reader = BackupReader(store=self.store, max_bytes=max_bytes)
        return create(
            self.store,
            reader,
            [self.library()],
            now=NOW + timedelta(seconds=next(self.seconds) if second is None else second),
            reason="test",
            version="0",
            keep=keep,
            max_bytes=max_bytes,
            at_rest=nullcontext,
            anyway=anyway,
        )

    def take_out(self, manifest: Manifest, to: Path) -> list[str]:
        """Take the library of a backup out to *to*, which must not be there."""
        to.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(to.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return self.store.take_out(manifest.libraries[0].top(), descriptor, to.name, to.parent.stat())
        finally:
            os.close(descriptor)

    def whole(self) -> dict[str, list[str]]:
        """Return what is damaged of each listed backup."""
        return {backup: self.store.check(self.store.manifest(backup)) for backup in self.store.ids()}


def damage(path: Path) -> None:
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


def blob_of(kept: Kept, data: bytes) -> Path:
    import hashlib

    ref = hashlib.sha256(data).hexdigest()
    return kept.state / "backups" / "blobs" / ref[:2] / ref


# -- round trips

Tree = dict[bytes, tuple[str, object, object, object]]

NAMES = st.one_of(
    st.binary(min_size=1, max_size=12),
    st.sampled_from(
        [b"SKILL.md", b"a\nb", b"\xff\xfe", "ü".encode(), "u\u0308".encode(), b"A", b"a", b" ", b"-rf", b"CON"]
    ),
).filter(
    lambda n: b"/" not in n and b"\0" not in n and n not in (b".", b"..") and not n.startswith((b".curatord-", b"."))
)
FILE_MODES = st.sampled_from([0o644, 0o600, 0o755, 0o4755, 0o2755, 0o400, 0o444, 0o1644])
FOLDER_MODES = st.sampled_from([0o755, 0o700, 0o555, 0o2775, 0o1777])
LEAVES = st.one_of(
    st.tuples(st.just("file"), st.binary(max_size=40), FILE_MODES, st.integers(0, 2**60)),
    st.tuples(
        st.just("link"), st.binary(min_size=1, max_size=20).filter(lambda t: b"\0" not in t), st.none(), st.none()
    ),
)
TREES = st.recursive(
    st.dictionaries(NAMES, LEAVES, max_size=4),
    lambda inner: st.dictionaries(
        NAMES, LEAVES | st.tuples(st.just("dir"), inner, FOLDER_MODES, st.none()), max_size=4
    ),
    max_leaves=12,
)


def build(root: bytes, tree: Tree) -> None:
    for name, (kind, what, mode, at) in tree.items():
        path = root + b"/" + name
        if kind == "link":
            os.symlink(what, path)  # type: ignore[arg-type]  # noqa: PTH211
        elif kind == "file":
            with open(path, "wb") as file:  # noqa: PTH123
                file.write(what)  # type: ignore[arg-type]
            os.chmod(path, mode)  # type: ignore[arg-type]  # noqa: PTH101
            os.utime(path, ns=(at, at))  # type: ignore[arg-type]
        else:
            os.mkdir(path)  # noqa: PTH102
            build(path, what)  # type: ignore[arg-type]
            os.chmod(path, mode)  # type: ignore[arg-type]  # noqa: PTH101


def writable(root: Path) -> None:
    """Let everything below be removed again, by whoever is no root too."""
    for folder, names, _ in os.walk(os.fsencode(root)):
        for name in names:
            path = folder + b"/" + name
            if not os.path.islink(path):  # noqa: PTH114
                os.chmod(path, 0o700)  # noqa: PTH101


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trees=st.lists(TREES, min_size=1, max_size=3))
def test_whatever_goes_in_comes_out(
    tmp_path: Path, trees: list[dict[bytes, tuple[str, object, object, object]]]
) -> None:
    """Random trees, each an edit of the whole library: every backup gives back its own, to the byte, mode and time."""
    base = tmp_path / "case"
    shutil.rmtree(base, ignore_errors=True)
    kept = Kept(base)
    known: list[tuple[Manifest, dict[bytes, tuple[object, ...]]]] = []
    for tree in trees:
        shutil.rmtree(kept.root)
        kept.root.mkdir()
        build(os.fsencode(kept.root), tree)
        known.append((kept.create().manifest, bytes_tree(kept.root)))

    for number, (manifest, expected) in enumerate(known):
        out = base / "out" / str(number)
        assert [] == kept.take_out(manifest, out)
        assert expected == bytes_tree(out)
    for path in (kept.root, base / "out"):
        writable(path)


def a_library(kept: Kept) -> dict[bytes, tuple[object, ...]]:
    skill = kept.root / "cat" / "notes"
    (skill / "references").mkdir(parents=True)
    (skill / "SKILL.md").write_bytes(b"---\nname: notes\n---\ntext\r\n\xff")
    (skill / "references" / "a.md").write_bytes(b"a" * 1000)
    os.link(skill / "references" / "a.md", skill / "references" / "b.md")
    (skill / "empty").mkdir(mode=0o555)
    (skill / "absolute").symlink_to("/etc/passwd")
    (skill / "outside").symlink_to("../../../elsewhere")
    (skill / "dangling").symlink_to("nowhere")
    (kept.root / "README").write_text("mine")
    return bytes_tree(kept.root)


def test_links_stay_links_and_hard_links_are_files(tmp_path: Path) -> None:
    """Absolute, outside and dangling links come back as such (bugs B036); nothing behind them is read."""
    kept = Kept(tmp_path)
    expected = a_library(kept)

    manifest = kept.create().manifest

    assert [] == kept.take_out(manifest, tmp_path / "out")
    assert expected == bytes_tree(tmp_path / "out")
    assert 1 == (tmp_path / "out/cat/notes/references/a.md").stat().st_nlink
    assert b"root:" not in b"".join(path.read_bytes() for path in (kept.state / "backups/blobs").glob("*/*"))


def test_caches_and_what_is_special_stay_out(tmp_path: Path) -> None:
    """Caches, version control, environments, our own files are silently not in it; pipes and sockets are told."""
    kept = Kept(tmp_path)
    skill = kept.root / "notes"
    for name in ("__pycache__", ".git", "node_modules", ".venv", "my env", ".curatord-a1-22", "deep/venv"):
        (skill / name).mkdir(parents=True)
        (skill / name / "x").write_text("no")
    (skill / "my env" / "pyvenv.cfg").write_text("home = /usr")
    (skill / "SKILL.md").write_text("yes")
    os.mkfifo(skill / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(skill)  # a socket's path may be 108 bytes long
        server.bind("socket")
        os.chdir(here)
    (kept.root / ".cachedir").mkdir()
    (kept.root / ".cachedir" / "x").write_text("a tool's own")
    made = kept.create()

    assert [] == kept.take_out(made.manifest, tmp_path / "out")
    assert {b"notes", b"notes/SKILL.md", b"notes/deep"} == set(bytes_tree(tmp_path / "out"))
    assert [
        (quoted(os.fsencode(skill / "pipe")), "it is a pipe, which no backup holds", True),
        (quoted(os.fsencode(skill / "socket")), "it is a socket, which no backup holds", True),
    ] == [(left.path, left.why, left.ordinary) for left in made.manifest.left_out]


def test_the_archive_and_our_own_state_within_the_library_are_apart(tmp_path: Path) -> None:
    """An archive inside of the library is kept once, as the archive; the state folder never."""
    kept = Kept(tmp_path)
    kept.state = kept.root / "state"
    kept.state.mkdir()
    kept.store = BackupStore(state_dir=kept.state)
    (kept.root / "kept-apart" / "old").mkdir(parents=True)
    (kept.root / "kept-apart" / "old" / "SKILL.md").write_text("old")
    (kept.root / "new").mkdir()
    library = kept.library()
    apart = LibraryToKeep(
        name=library.name,
        root=library.root,
        archive=str(kept.root / "kept-apart"),
        layout="agent-skills",
        apart=(str(kept.state),),
    )
    for _ in range(2):
        made = create(
            kept.store,
            BackupReader(store=kept.store, max_bytes=MUCH),
            [apart],
            now=NOW + timedelta(seconds=next(kept.seconds)),
            reason="r",
            version="0",
            keep=9,
            max_bytes=MUCH,
            at_rest=nullcontext,
        )
    kept.take_out(made.manifest, tmp_path / "out")

    assert {b"new"} == set(bytes_tree(tmp_path / "out"))
    archive = made.manifest.libraries[0].archive_top()
    assert archive is not None
    assert [b"old"] == [entry.name for entry in kept.store.tree(archive.ref)]


def test_extended_attributes_come_back(tmp_path: Path) -> None:
    """Those of the user, of files and folders, where the file system has them."""
    kept = Kept(tmp_path)
    a_library(kept)
    file, folder = kept.root / "cat/notes/SKILL.md", kept.root / "cat"
    try:
        for path in (file, folder):
            os.setxattr(path, "user.origin", b"\0\xffx")
    except OSError:
        pytest.skip("this file system has no extended attributes")

    kept.take_out(kept.create().manifest, tmp_path / "out")

    assert b"\0\xffx" == os.getxattr(tmp_path / "out/cat/notes/SKILL.md", "user.origin")
    assert b"\0\xffx" == os.getxattr(tmp_path / "out/cat", "user.origin")


def test_what_did_not_change_costs_nothing(tmp_path: Path) -> None:
    """The second backup of an unchanged library adds one manifest, and none at all where none is wanted then."""
    kept = Kept(tmp_path)
    a_library(kept)
    first = kept.create().manifest
    before = set((kept.state / "backups/blobs").glob("*/*"))

    kept.create()
    again = kept.create(anyway=False)

    assert before == set((kept.state / "backups/blobs").glob("*/*"))
    assert 2 == len(kept.store.ids())
    assert again.unchanged
    assert first.libraries == again.manifest.libraries


def test_backups_are_private(tmp_path: Path) -> None:
    """Nobody but their user reads what may hold secrets."""
    kept = Kept(tmp_path)
    a_library(kept)
    kept.create()
    folder = kept.state / "backups"

    assert {0o700} == {stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")] if path.is_dir()}
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


def test_a_file_that_is_written_meanwhile_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that never stands still is no file of the backup; that is a fault that is told."""
    kept = Kept(tmp_path)
    (kept.root / "log").write_text("x")
    (kept.root / "still").write_text("y")
    real = os.fstat

    def restless(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == "log":
            with (kept.root / "log").open("ab") as file:
                file.write(b"more")
        return found

    monkeypatch.setattr(os, "fstat", restless)
    made = kept.create()
    monkeypatch.undo()

    assert [("it kept changing while it was read", False)] == [
        (left.why, left.ordinary) for left in made.manifest.left_out
    ]
    kept.take_out(made.manifest, tmp_path / "out")
    assert {b"still"} == set(bytes_tree(tmp_path / "out"))


def test_a_file_that_the_disk_does_not_give_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read error costs that file, told as a fault, and no other."""
    kept = Kept(tmp_path)
    (kept.root / "bad").write_text("x")
    (kept.root / "good").write_text("y")
    real = backup_reader._read

    def failing(folder: int, name: bytes) -> object:
        if name == b"bad":
            raise OSError(errno.EIO, "Input/output error")
        return real(folder, name)

    monkeypatch.setattr(backup_reader, "_read", failing)
    made = kept.create()

    told = [(left.why, left.ordinary) for left in made.manifest.left_out]
    assert [("cannot be read: Input/output error", False)] == told
    assert 1 == made.manifest.libraries[0].files


def test_a_hosts_file_that_is_a_link_is_told(tmp_path: Path) -> None:
    """It is not followed, and its absence is a fault that is named."""
    kept = Kept(tmp_path)
    (tmp_path / "cron").mkdir()
    (tmp_path / "elsewhere").write_text("{}")
    (tmp_path / "cron" / "jobs.json").symlink_to("../elsewhere")
    (kept.root / ".hub").mkdir()
    (kept.root / ".hub" / "lock.json").write_text("{}")
    made = create(
        kept.store,
        BackupReader(store=kept.store, max_bytes=MUCH),
        [dataclasses.replace(kept.library(), home=str(tmp_path))],
        now=NOW,
        reason="r",
        version="0",
        keep=9,
        max_bytes=MUCH,
        at_rest=nullcontext,
    )

    assert ["skills/.hub/lock.json"] == [file.path for file in made.manifest.libraries[0].host_files]
    assert ["it is a link, which is not followed"] == [left.why for left in made.manifest.left_out]
    assert 1 == made.manifest.left_out_count


def test_a_folder_too_deep_is_left_out(tmp_path: Path) -> None:
    """Depth is bounded, on the way in and on the way out."""
    kept = Kept(tmp_path)
    (kept.root / "/".join(["d"] * 80)).mkdir(parents=True)

    made = kept.create()

    assert ["folders are nested deeper than 64"] == [left.why for left in made.manifest.left_out]
    assert [] == kept.take_out(made.manifest, tmp_path / "out")


def test_a_file_too_large_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And named, with both sizes."""
    monkeypatch.setattr(backup_reader, "MAX_FILE_BYTES", 100)
    kept = Kept(tmp_path)
    (kept.root / "large").write_bytes(b"x" * 101)

    made = kept.create()

    assert ["it has 101 bytes, more than the 100 of a skill's file"] == [left.why for left in made.manifest.left_out]


def test_more_than_all_backups_may_be_is_refused(tmp_path: Path) -> None:
    """Nothing is kept of it, and what was kept before stays."""
    kept = Kept(tmp_path)
    (kept.root / "a").write_bytes(b"a" * 100)
    first = kept.create().manifest
    (kept.root / "b").write_bytes(b"b" * 5000)

    with pytest.raises(TooLargeError, match="3000 bytes"):
        kept.create(max_bytes=3000)

    assert [] == list((kept.state / "backups/incoming").iterdir())
    assert {first.id: []} == kept.whole()


# -- damage


@pytest.mark.parametrize("how", ["flip", "cut", "gone", "pipe", "link", "folder"])
def test_a_damaged_content_is_found_and_the_rest_comes_back(tmp_path: Path, how: str) -> None:
    """The file is named, nothing of it is written, all others are."""
    kept = Kept(tmp_path)
    expected = a_library(kept)
    manifest = kept.create().manifest
    blob = blob_of(kept, b"a" * 1000)
    if how == "gone":
        blob.unlink()
    elif how == "cut":
        blob.write_bytes(b"a" * 999)
    elif how == "flip":
        damage(blob)
    else:
        blob.rename(tmp_path / "moved")
        if how == "pipe":
            os.mkfifo(blob)
        elif how == "link":
            blob.symlink_to(tmp_path / "moved")
        else:
            blob.mkdir()

    (trouble, _) = kept.take_out(manifest, tmp_path / "out")

    assert "a.md" in trouble
    lost = {b"cat/notes/references/a.md", b"cat/notes/references/b.md"}
    assert {path: what for path, what in expected.items() if path not in lost} == bytes_tree(tmp_path / "out")
    assert 1 == len(kept.whole()[manifest.id])  # one content, that two names share


def test_strange_things_in_the_store_are_nobodys_trouble(tmp_path: Path) -> None:
    """A file manager's own file, a folder and a pipe among the contents are neither counted nor dropped."""
    kept = Kept(tmp_path)
    a_library(kept)
    first = kept.create()
    blobs = kept.state / "backups" / "blobs"
    size = kept.store.total_bytes()
    shelf = sorted(blobs.iterdir())[0]
    (blobs / ".DS_Store").write_bytes(b"x")
    (shelf / "sub").mkdir()
    os.mkfifo(shelf / ("0" * 64))

    again = kept.create()

    assert [] == list(again.warnings)
    assert size < kept.store.total_bytes() < 2 * size  # one more list, and nothing of the strangers
    assert {first.manifest.id: [], again.manifest.id: []} == kept.whole()
    assert (blobs / ".DS_Store").exists()
    assert (shelf / "sub").exists()


def test_a_damaged_folder_takes_no_other_with_it(tmp_path: Path) -> None:
    """What a damaged tree held is lost and named; its siblings come back."""
    kept = Kept(tmp_path)
    a_library(kept)
    (kept.root / "other").mkdir()
    (kept.root / "other" / "SKILL.md").write_text("other")
    manifest = kept.create().manifest
    tree = next(e for e in kept.store.tree(manifest.libraries[0].top().ref) if e.name == b"cat")
    damage(kept.store._path(tree.ref))
    kept.store._trees.clear()

    (trouble,) = kept.take_out(manifest, tmp_path / "out")

    assert "out/cat" in trouble
    assert {b"README", b"other", b"other/SKILL.md"} == set(bytes_tree(tmp_path / "out"))


def test_the_next_backup_mends_what_is_damaged(tmp_path: Path) -> None:
    """What the library still has is written anew, and older backups are whole again."""
    kept = Kept(tmp_path)
    a_library(kept)
    first = kept.create().manifest
    for path in list((kept.state / "backups/blobs").glob("*/*")):
        damage(path)
    assert kept.whole()[first.id]

    kept.create()

    assert {True} == {not damaged for damaged in kept.whole().values()}


@pytest.mark.parametrize("how", ["flip", "empty", "other"])
def test_a_damaged_manifest_is_listed_as_such(tmp_path: Path, how: str) -> None:
    """It is said which file; the others can be used, and no bytes are freed while nobody knows what it needs."""
    kept = Kept(tmp_path)
    a_library(kept)
    first, second = kept.create().manifest, kept.create().manifest
    path = kept.state / "backups" / f"{first.id}.backup"
    if how == "flip":
        damage(path)
    elif how == "empty":
        path.write_bytes(b"")
    else:
        shutil.copy(kept.state / "backups" / f"{second.id}.backup", path)
    shutil.rmtree(kept.root / "cat")
    before = set((kept.state / "backups/blobs").glob("*/*"))

    with pytest.raises(DamagedBackupError):
        kept.store.manifest(BackupId(first.id))
    made = kept.create(keep=2)

    assert [first.id] == list(made.dropped)  # in its turn
    assert [] == kept.whole()[second.id]
    assert before <= set((kept.state / "backups/blobs").glob("*/*"))
    made = kept.create(keep=1)
    assert before > set((kept.state / "backups/blobs").glob("*/*")) - {
        kept.store._path(made.manifest.libraries[0].tree)
    }


# -- retention


def test_the_oldest_go_first_with_their_bytes(tmp_path: Path) -> None:
    """What only they needed is freed, what others share stays, and those that stay are whole."""
    kept = Kept(tmp_path)
    made = []
    for number in range(5):
        (kept.root / "same").write_bytes(b"same")
        (kept.root / "new").write_bytes(f"text {number}".encode())
        made.append(kept.create(keep=3))

    assert [0, 0, 0, 1, 1] == [len(one.dropped) for one in made]
    assert [one.manifest.id for one in reversed(made[2:])] == list(kept.store.ids())
    assert {one.manifest.id: [] for one in made[2:]} == kept.whole()
    assert not blob_of(kept, b"text 1").exists()
    assert blob_of(kept, b"text 2").exists()
    assert blob_of(kept, b"same").exists()


def test_size_is_bounded(tmp_path: Path) -> None:
    """A hundred backups of a library that changes wholly each time stay below the bound, manifests aside."""
    kept = Kept(tmp_path)
    for number in range(40):
        (kept.root / "new").write_bytes(f"{number:03}".encode() * 1000)
        kept.create(max_bytes=20_000)
        size = sum(path.stat().st_size for path in (kept.state / "backups/blobs").glob("*/*"))
        assert size <= 20_000
    assert 4 <= len(kept.store.ids()) <= 6
    assert {True} == {not damaged for damaged in kept.whole().values()}


def test_a_library_that_is_away_keeps_its_last_backup(tmp_path: Path) -> None:
    """Backups made without it do not push out the newest one that has it."""
    kept = Kept(tmp_path)
    a_library(kept)
    first = kept.create().manifest
    other = Kept(tmp_path / "other")
    (other.root / "x").write_text("x")
    kept.root.rename(tmp_path / "away")
    libraries = [
        kept.library(),
        LibraryToKeep(name=LibraryName("two"), root=str(other.root), archive="/none", layout="x"),
    ]
    for number in range(4):
        made = create(
            kept.store,
            BackupReader(store=kept.store, max_bytes=MUCH),
            libraries,
            now=NOW + timedelta(days=1 + number),
            reason="r",
            version="0",
            keep=2,
            max_bytes=MUCH,
            at_rest=nullcontext,
        )

    assert (("lib", f"{kept.root} is not there"),) == made.failed
    assert 3 == len(kept.store.ids())
    assert first.id in kept.store.ids()
    assert [] == kept.whole()[first.id]


def test_nothing_to_back_up_is_an_error(tmp_path: Path) -> None:
    """No library at all: nothing is listed, and it is said why."""
    kept = Kept(tmp_path)
    kept.root.rmdir()

    with pytest.raises(StateError, match="is not there"):
        kept.create()
    assert () == kept.store.ids()


# -- locks


def test_one_at_a_time(tmp_path: Path) -> None:
    """Another process that makes or takes out keeps this one out, with its number; listing goes on."""
    kept = Kept(tmp_path)
    (kept.root / "x").write_text("x")
    kept.create()
    ready, done = os.pipe(), os.pipe()
    child = fork()
    if child == 0:
        try:
            with BackupStore(state_dir=kept.state).hold():
                os.write(ready[1], b"x")
                os.read(done[0], 1)
        finally:
            os._exit(0)
    os.read(ready[0], 1)
    try:
        with pytest.raises(BusyError, match=str(child)):
            kept.create()
        assert 1 == len(kept.store.ids())
    finally:
        os.write(done[1], b"x")
        os.waitpid(child, 0)
    assert kept.create().manifest.id


def test_somebody_at_work_on_a_library(tmp_path: Path) -> None:
    """Where the work lock is not had, nothing is listed and nothing of it stays; the next one works."""
    kept = Kept(tmp_path)
    a_library(kept)

    with work_lock(kept.state), pytest.raises(BusyError, match="another curatord is at work"):
        create(
            kept.store,
            BackupReader(store=kept.store, max_bytes=MUCH),
            [kept.library()],
            now=NOW,
            reason="r",
            version="0",
            keep=9,
            max_bytes=MUCH,
            at_rest=lambda: work_lock(kept.state, 0.1),
        )

    assert () == kept.store.ids()
    assert [] == list((kept.state / "backups/incoming").iterdir())
    assert kept.create().manifest.id


# -- kills


def kill_campaign(base: Path, stride: int, first: int) -> int:
    """Cut a create that drops the oldest at every *stride*-th effect; return how many cuts there were."""
    start = Kept(base / "start")
    for number in range(3):
        shutil.rmtree(start.root / "cat", ignore_errors=True)
        a_library(start)
        (start.root / "new").write_bytes(f"text {number}".encode())
        start.create()
    (start.root / "new").write_bytes(b"text last")
    (start.root / "more").write_bytes(b"more")
    known = start.store.ids()
    for cuts, count in enumerate(range(first, 500, stride)):
        folder = base / f"cut{count}"
        shutil.copytree(base / "start", folder, symlinks=True)

        def child(hook: Callable[[str], None], folder: Path = folder) -> None:
            Kept(folder, hook).create(keep=2, second=50)

        killed = killed_after(count, child)
        after = Kept(folder)
        assert {True} == {not damaged for damaged in after.whole().values()}, f"cut {count}"
        assert set(after.store.ids()[-1:]) <= set(known)
        assert 2 <= len(after.store.ids()) <= 4
        again = after.create(keep=2, second=60)
        assert [] == after.take_out(again.manifest, folder / "out")
        assert bytes_tree(after.root) == bytes_tree(folder / "out")
        with after.store.hold():
            assert 0 == after.store.collect()  # nothing is left of the one that was cut
        assert not list((folder / "state/backups/incoming").iterdir())
        shutil.rmtree(folder)
        if not killed:
            return cuts
    raise AssertionError("it never got through")


def test_killed_at_many_effects(quick: Path) -> None:
    """`kill -9` at every third write, sync, rename, unlink: each listed backup is whole, and the next one cleans up."""
    assert kill_campaign(quick, 3, 1) > 8


@pytest.mark.campaign
def test_killed_at_every_effect(quick: Path) -> None:
    """The same at each."""
    assert kill_campaign(quick, 1, 1) > 24


def work_for_ever(folder: Path, seed: int) -> None:
    """Edit the library and back it up, over and over, keeping few; somebody will stop us."""
    import random

    dice = random.Random(seed)
    kept = Kept(folder)
    for number in itertools.count():
        for name in dice.sample(range(12), 3):
            (kept.root / f"f{name}").write_bytes(dice.randbytes(dice.randrange(20_000)))
        kept.create(keep=dice.randrange(1, 4), second=seed * 1000 + number)


@contextmanager
def at_work(folder: Path, seed: int) -> Iterator[int]:
    child = fork()
    if child == 0:
        try:
            work_for_ever(folder, seed)
        finally:
            os._exit(99)
    yield child
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the child ended by itself: {status}"


def random_kills(folder: Path, kills: int, seed: int) -> None:
    import random
    import time

    dice = random.Random(seed)
    Kept(folder).root.joinpath("x").write_text("x")
    for number in range(kills):
        with at_work(folder, seed * 1000 + number):
            time.sleep(dice.uniform(0.01, 0.12))
        after = Kept(folder)
        assert set() == {backup for backup, damaged in after.whole().items() if damaged}, f"after kill {number}"
        for backup in after.store.ids()[:1]:
            shutil.rmtree(folder / "out", ignore_errors=True)
            assert [] == after.take_out(after.store.manifest(backup), folder / "out")
    after = Kept(folder)
    assert after.store.ids()
    after.create(keep=1, second=10**7)
    with after.store.hold():
        assert 0 == after.store.collect()


def test_killed_at_random_instants(quick: Path) -> None:
    """A process that edits, backs up and drops is killed by a timer, thirty times: every listed backup is whole."""
    random_kills(quick, 30, 1)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(2, 8))
def test_killed_at_many_random_instants(quick: Path, seed: int) -> None:
    """Two hundred kills for each seed."""
    random_kills(quick, 200, seed)


# -- faults


def test_no_space_at_any_write(quick: Path) -> None:
    """An error at each effect in turn: it is told, what was listed stays whole, and the next one works."""
    told: list[str] = []
    for count in range(1, 500):
        folder = quick / f"full{count}"
        kept = Kept(folder)
        a_library(kept)
        kept.create()
        (kept.root / "more").write_bytes(b"more")
        left = itertools.count(1)

        def full(_name: str, left: Iterator[int] = left, count: int = count) -> None:
            if next(left) == count:
                raise OSError(errno.ENOSPC, "No space left on device")

        kept.store.disk.hook = full
        try:
            told += kept.create(keep=1).warnings
        except StateError as error:
            told.append(str(error))
        kept.store.disk.hook = lambda _: None
        assert kept.store.ids()
        assert {True} == {not damaged for damaged in kept.whole().values()}
        again = kept.create(keep=1)
        assert {again.manifest.id: []} == kept.whole()
        shutil.rmtree(folder)
        if next(left) <= count:  # it got through
            break
    assert count - 1 == len(told)
    assert {True} == {"No space left" in words for words in told}
    assert count > 20


def test_a_file_size_limit(tmp_path: Path) -> None:
    """The kernel refuses a large write for real (RLIMIT_FSIZE): no backup is listed, and the error says so."""
    kept = Kept(tmp_path)
    (kept.root / "small").write_bytes(b"x" * 10)
    first = kept.create().manifest
    (kept.root / "large").write_bytes(b"y" * 300_000)
    child = fork()
    if child == 0:
        code = 99
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
            try:
                kept.create()
            except StateError as error:
                code = 3 if "too large" in str(error) else 4
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)

    assert 3 == os.waitstatus_to_exitcode(status)
    assert {first.id: []} == kept.whole()


def test_what_may_not_be_read_is_a_fault(open_to_all: Path) -> None:
    """A file without the right to read it is left out and named; the rest is kept."""
    kept = Kept(open_to_all / "k")
    (kept.root / "open").write_text("x")
    (kept.root / "shut").write_text("y")
    (kept.root / "shut").chmod(0)
    (kept.root / "folder").mkdir(mode=0)

    def work() -> int:
        made = Kept(kept.base).create()
        told = [(Path(left.path).name, left.ordinary) for left in made.manifest.left_out]
        return 0 if told == [("folder", False), ("shut", False)] and made.manifest.libraries[0].files == 1 else 1

    assert 0 == as_user(work, kept.base)


def test_a_read_only_state_folder(open_to_all: Path) -> None:
    """Nothing can be written: an error, and what was listed can still be taken out."""
    kept = Kept(open_to_all / "k")
    a_library(kept)
    first = kept.create().manifest

    def work() -> int:
        for folder in (kept.state / "backups", kept.state / "backups/incoming"):
            folder.chmod(0o500)
        (kept.root / "cat/notes/SKILL.md").write_bytes(b"new")
        mine = Kept(kept.base)
        try:
            mine.create()
        except StateError:
            ok = mine.take_out(first, kept.base / "out") == []
            return 0 if ok and {first.id: []} == mine.whole() else 1
        return 2

    assert 0 == as_user(work, kept.base)


# -- looking


def test_a_look_keeps_nothing_and_sees_the_same(tmp_path: Path) -> None:
    """What stands there has the identity that its backup has, without a byte being written."""
    kept = Kept(tmp_path)
    a_library(kept)
    manifest = kept.create().manifest
    before = bytes_tree(kept.state)
    reader = BackupReader(store=kept.store, max_bytes=MUCH)

    found = reader.look(str(kept.root), b"cat/notes")

    assert found is not None
    cat = next(e for e in kept.store.tree(manifest.libraries[0].top().ref) if e.name == b"cat")
    notes = next(e for e in kept.store.tree(cat.ref) if e.name == b"notes")
    assert content_id(notes, kept.store.tree) == found[1]
    assert before == bytes_tree(kept.state)
    assert None is reader.look(str(kept.root), b"cat/none")
    with pytest.raises(InputError):
        reader.look(str(kept.root), b"cat/notes/outside/x")

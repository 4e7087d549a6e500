"""Reading libraries from disk: what is a skill, what is broken, what only listed, and that kept readings are true."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curatord.adapters import package as package_module
from curatord.adapters.library import DiskLibrary
from curatord.core.library import LibrarySnapshot, Skill, linked_skills
from curatord.core.settings import LibrarySettings
from curatord.errors import InputError
from tests.fakes.package_cache import MemoryCache

TEXT = "---\nname: {name}\ndescription: Does {name}\nwhen_to_use: asked to\n---\n# {name}\n"


def a_skill(root: Path, rel: str, text: str | None = None, **files: str) -> Path:
    """Write a package at *rel* below *root*; *files* have `__` for `/` and no suffix but `.md`."""
    folder = root / rel
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text if text is not None else TEXT.format(name=folder.name))
    for name, content in files.items():
        path = folder / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def library(root: Path, cache: MemoryCache | None = None, **options: Any) -> DiskLibrary:
    """Return the library at *root*."""
    return DiskLibrary(LibrarySettings(name="lib", path=str(root), **options), cache or MemoryCache())


def look(root: Path, **options: Any) -> LibrarySnapshot:
    """Return what is at *root*."""
    return library(root, **options).read()


def rels(snapshot: LibrarySnapshot) -> list[str]:
    """Return the paths of the live skills."""
    return [skill.key.rel for skill in snapshot.skills]


def one(snapshot: LibrarySnapshot, rel: str) -> Skill:
    """Return the one skill at *rel*."""
    (skill,) = [skill for skill in snapshot.skills if skill.key.rel == rel]
    return skill


def codes(skill: Skill) -> list[str]:
    """Return the codes of a skill's problems."""
    return [problem.code for problem in skill.problems]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return an empty library."""
    path = tmp_path / "skills"
    path.mkdir()
    return path


# --- What is a skill --------------------------------------------------------------------------------------------------


def test_a_sound_skill(root: Path) -> None:
    """A package is found with its name, text, size, time and identity."""
    folder = a_skill(root, "greet", references__x="# X\n")
    os.utime(folder / "SKILL.md", (1000, 1000))
    os.utime(folder / "references/x.md", (2000, 2000))
    skill = one(look(root), "greet")

    assert ("greet", str(folder), "folder", None, ()) == (
        skill.name,
        skill.path,
        skill.form,
        skill.broken,
        skill.problems,
    )
    assert ("Does greet", 2, 2000) == (
        skill.description,
        skill.content.files,
        skill.newest_file_at and skill.newest_file_at.timestamp(),
    )
    assert (str(folder), "SKILL.md") == (skill.path, skill.content.entry_file)
    assert library(root).fingerprint(str(folder)) == skill.fingerprint
    assert ("greet",) == skill.content.headings


def test_search_stops_at_a_skill_and_at_foreign_folders(root: Path) -> None:
    """Below a skill, in dependencies, builds and hidden folders nothing is a skill (bugs B041, B070)."""
    a_skill(root, "one")
    for rel in (
        "one/references", "one/node_modules/x", "node_modules/y", ".hidden/z", ".archive/old", ".hub/quarantine/q",
        "venv/lib/v", "build/deep/b", ".git/x", ".curator_backups/c", "__pycache__/d", "vendor/e",
    ):  # fmt: skip
        a_skill(root, rel)

    assert ["one"] == rels(look(root))


def test_a_skill_may_be_called_build(root: Path) -> None:
    """A folder named like a build's output is a skill where it holds a SKILL.md itself."""
    a_skill(root, "build")

    assert ["build"] == rels(look(root))


def test_categories(root: Path) -> None:
    """Folders may group skills; the same name in two groups is two skills, both flagged (bugs B069)."""
    (root / "a").mkdir()
    (root / "a/DESCRIPTION.md").write_text("---\ndescription: group\n---\n")
    for rel in ("a/greet", "b/greet", "c/d/deep"):
        a_skill(root, rel)
    snapshot = look(root)

    assert ("hermes", ["a/greet", "b/greet", "c/d/deep"]) == (snapshot.layout, rels(snapshot))
    assert [["same-name"], ["same-name"], []] == [codes(skill) for skill in snapshot.skills]
    assert ["a/greet", "b/greet"] == [skill.key.rel for skill in snapshot.find("greet")]
    assert ["b/greet"] == [skill.key.rel for skill in snapshot.find("b/greet")]
    assert () == snapshot.find("../x")


def test_both_names_find_a_skill(root: Path) -> None:
    """A skill is found by the name in its header too (bugs B068)."""
    a_skill(root, "soft-skill", TEXT.format(name="redesign-soft"))
    snapshot = look(root)

    assert ["soft-skill"] == [skill.key.rel for skill in snapshot.find("redesign-soft")]
    assert "its header says `redesign-soft`, its folder `soft-skill`" == one(snapshot, "soft-skill").broken


@pytest.mark.parametrize(
    ("header_name", "broken", "problem"),
    [("my-skill", False, []), ("My_Skill", False, ["name-spelling"]), ("other", True, [])],
)
def test_names_that_differ(root: Path, header_name: str, broken: bool, problem: list[str]) -> None:
    """Spelling is noted, another name breaks the skill (contract, section 6)."""
    skill = one(look(a_skill(root, "my-skill", TEXT.format(name=header_name)).parent), "my-skill")

    assert (broken, problem) == (skill.broken is not None, codes(skill))


def test_a_missing_name_is_fine(root: Path) -> None:
    """A header without a name is no problem."""
    a_skill(root, "x", "---\ndescription: for d\n---\n")

    assert (None, ()) == (one(look(root), "x").broken, one(look(root), "x").problems)


def test_spellings_of_the_file(root: Path) -> None:
    """`skill.md` alone is found and flagged; beside `SKILL.md` the exact one counts (bugs B071)."""
    lower = a_skill(root, "lower")
    (lower / "SKILL.md").rename(lower / "skill.md")
    both = a_skill(root, "both")
    (both / "skill.md").write_text("---\nname: other\n---\n")
    snapshot = look(root)

    assert [("both", ["two-spellings"]), ("lower", ["lower-case-file"])] == [
        (skill.key.rel, codes(skill)) for skill in snapshot.skills
    ]
    assert "skill.md" == one(snapshot, "lower").content.entry_file


def test_twins(root: Path) -> None:
    """Names that one file system tells apart and another does not are flagged on both."""
    for rel in ("Greet", "greet", "caf\u00e9", "cafe\u0301", "x"):
        a_skill(root, rel)

    assert {"Greet": True, "greet": True, "caf\u00e9": True, "cafe\u0301": True, "x": False} == {
        skill.key.rel: "twin" in codes(skill) for skill in look(root).skills
    }


def test_hermes_does_not_lose_a_nested_skill(root: Path) -> None:
    """A skill within a skill, outside of the support folders, keeps the outer one where it is."""
    a_skill(root, "outer")
    a_skill(root, "outer/inner")

    assert (
        one(look(root, layout="hermes"), "outer").broken
        == "holds another skill, `inner/SKILL.md`, which some hosts list by itself"
    )
    assert ["nested-skill"] == codes(one(look(root, layout="agent-skills"), "outer"))


def test_hermes_own_idea_of_a_name(root: Path) -> None:
    """Where Hermes' tools would take another line for the name, the skill is broken in its library and nowhere else."""
    a_skill(root, "x", "---\nmetadata:\n  name: inner\nname: x\ndescription: d\n---\n")
    a_skill(root, "y", "---\nname: 'y'\ndescription: d\n---\nname: z\n")

    assert ["Hermes takes `inner` for its name, from the first line with `name:`", None] == [
        skill.broken for skill in look(root, layout="hermes").skills
    ]
    assert [None, None] == [skill.broken for skill in look(root, layout="agent-skills").skills]


def test_a_skill_linked_into_another_library(root: Path, tmp_path: Path) -> None:
    """A package kept in one library and linked into another is known to be the same (bugs B054)."""
    a_skill(root, "tools/x")
    a_skill(root, "y")
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts/x").symlink_to(root / "tools/x")
    (tmp_path / "hosts/twin").symlink_to("x")
    hosts = DiskLibrary(LibrarySettings(name="hosts", path=str(tmp_path / "hosts")), MemoryCache()).read()
    found = linked_skills([look(root), hosts])

    assert {"hosts/twin": "lib/tools/x"} == {str(key): str(real) for key, real in found.items()}
    assert [str(tmp_path / "hosts/x")] == list(hosts.skills[0].also_at)


# --- The flat layout --------------------------------------------------------------------------------------------------


def test_flat(root: Path) -> None:
    """A root `<name>.md` with a description is a skill; other loose files and hidden ones are none."""
    a_skill(root, "folder")
    (root / "loose.md").write_text(TEXT.format(name="loose"))
    (root / "README.md").write_text("# Read me\n")
    (root / "bare.md").write_text("---\nname: bare\n---\n")
    (root / ".hidden.md").write_text(TEXT.format(name="hidden"))
    (root / "DESCRIPTION.md").write_text(TEXT.format(name="description"))
    (root / "notes.txt").write_text("x")
    snapshot = look(root)

    assert ("flat", [("folder", "folder"), ("loose", "flat")]) == (
        snapshot.layout,
        [(skill.key.rel, skill.form) for skill in snapshot.skills],
    )
    assert ("flat", str(root / "loose.md")) == (one(snapshot, "loose").form, one(snapshot, "loose").path)
    assert b"---\nname: loose" == library(root).read_text(one(snapshot, "loose"))[:15]


def test_flat_and_folder_of_one_name_are_broken(root: Path) -> None:
    """Both forms of one name are one broken skill, whichever is found first (contract, section 6)."""
    a_skill(root, "x")
    (root / "x.md").write_text(TEXT.format(name="x"))
    skill = one(look(root, layout="flat"), "x")

    assert ("there are both `x/` and `x.md`", "folder", (str(root / "x.md"),)) == (
        skill.broken,
        skill.form,
        skill.also_at,
    )


def test_a_loose_file_with_a_broken_header_is_listed(root: Path) -> None:
    """A flat skill whose header cannot be read does not vanish (bugs B055)."""
    (root / "x.md").write_text("---\nname: x\nother: a: b\n---\n")

    assert "x.md, line 3: not YAML" in (one(look(root, layout="flat"), "x").broken or "")


@pytest.mark.parametrize(
    ("make", "options", "layout"),
    [
        (".usage.json", {}, "hermes"),
        (".bundled_manifest", {"host": "claude-code"}, "hermes"),
        ("loose.md", {}, "flat"),
        ("loose.md", {"host": "claude-code"}, "agent-skills"),
        ("README.txt", {}, "agent-skills"),
        ("README.txt", {"host": "dsh"}, "flat"),
        ("README.txt", {"host": "hermes"}, "hermes"),
        (".usage.json", {"layout": "flat"}, "flat"),
    ],
)
def test_layouts_are_told_apart(root: Path, make: str, options: dict[str, Any], layout: str) -> None:
    """Configuration first, then the host's habit, then what stands there."""
    (root / make).write_text(TEXT.format(name="loose"))

    assert layout == look(root, **options).layout


# --- Broken and hostile ones ------------------------------------------------------------------------------------------


def test_one_bad_skill_hides_no_other(root: Path) -> None:
    """Nine good ones and one with a tab in its header: nine sound, one broken with its line (bugs B060)."""
    for number in range(9):
        a_skill(root, f"good-{number}")
    a_skill(root, "bad", "---\nname: bad\n\tdescription: d\n---\n")
    snapshot = look(root)

    assert 9 == sum(skill.broken is None for skill in snapshot.skills)
    assert "SKILL.md, line 3: not YAML" in (one(snapshot, "bad").broken or "")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"---\nname: x\n", "no closing fence"),
        (b"---\nname: \xff\n---\n", "not UTF-8"),
        (b"---\nname: x\n---\na\0b", "NUL"),
        (b"---\nname: x\nnotes: " + b"y" * 200_000 + b"\n---\n", "at most 65536"),
        (b"---\nname: x\n---\n" + b"y" * (5 * 1024 * 1024), "too large to be read"),
    ],
    ids=["unterminated", "bytes", "nul", "long-header", "long-file"],
)
def test_bad_files_say_why(root: Path, data: bytes, words: str) -> None:
    """What cannot be read is listed with its reason (bugs B061, B074, B077)."""
    (a_skill(root, "x") / "SKILL.md").write_bytes(data)

    assert words in (one(look(root), "x").broken or "")


def test_special_files_are_never_opened(root: Path) -> None:
    """A pipe or a socket in a package breaks it and hangs nobody; its description is still shown."""
    os.mkfifo(a_skill(root, "pipe") / "in")
    with socket.socket(socket.AF_UNIX) as server:
        cwd = Path.cwd()
        os.chdir(a_skill(root, "sock"))  # the path of a socket must be short
        server.bind("s")
        os.chdir(cwd)
    fifo = root / "entry"
    fifo.mkdir()
    os.mkfifo(fifo / "SKILL.md")
    snapshot = look(root)

    assert ["SKILL.md is a pipe, which is never opened", "in is a pipe, which is never opened",
            "s is a socket, which is never opened"] == [skill.broken for skill in snapshot.skills]  # fmt: skip
    assert "Does pipe" == one(snapshot, "pipe").description
    assert None is one(snapshot, "pipe").fingerprint


def test_too_large_packages_are_not_read(root: Path) -> None:
    """A huge file (here a sparse one) or thousands of files break a package without being read."""
    huge = a_skill(root, "huge") / "model.bin"
    with huge.open("wb") as file:
        file.truncate(50 * 1024**3)
    many = a_skill(root, "many")
    for number in range(package_module.MAX_FILES + 1):
        (many / str(number)).touch()
    begun = time.process_time()
    snapshot = look(root)

    assert time.process_time() - begun < 5.0
    assert [
        "model.bin is 53687091200 bytes: too large for a skill",
        "more than 5000 files and folders: too large for a skill",
    ] == [skill.broken for skill in snapshot.skills]


@contextmanager
def as_nobody() -> Iterator[None]:
    """Give up root for a while: permissions mean nothing to it."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_root(tmp_path: Path, root: Path) -> Path:
    """Return an empty library that any user can reach."""
    for folder in (root, *list(root.parents)[: len(tmp_path.parts) - 2]):
        if os.geteuid() == 0:
            folder.chmod(0o777)
    return root


def test_unreadable_parts_stay_with_their_skill(open_root: Path) -> None:
    """An unreadable file or folder breaks its own skill only; nothing is remembered of it."""
    a_skill(open_root, "fine")
    (a_skill(open_root, "file") / "SKILL.md").chmod(0)
    (a_skill(open_root, "support", references__x="x") / "references/x.md").chmod(0)
    a_skill(open_root, "folder").chmod(0)
    (a_skill(open_root, "inner", references__x="x") / "references").chmod(0)
    cache = MemoryCache()
    with as_nobody():
        snapshot = library(open_root, cache).read()
    for rel in ("file/SKILL.md", "support/references/x.md", "folder", "inner/references"):
        (open_root / rel).chmod(0o755)

    assert {
        "fine": None,
        "file": "cannot be read: SKILL.md: Permission denied",
        "support": "cannot be read: references/x.md: Permission denied",
        "folder": "the folder cannot be read: Permission denied",
        "inner": "cannot be read: references: Permission denied",
    } == {skill.key.rel: skill.broken for skill in snapshot.skills}
    assert ("Does support", False) == (one(snapshot, "support").description, snapshot.complete)
    assert [] == [skill.broken for skill in library(open_root, cache).read().skills if skill.broken]


def test_names_that_are_no_text(root: Path) -> None:
    """A folder or file whose name is not UTF-8 is shown escaped, is broken, and hides no other."""
    folder = Path(os.fsdecode(os.fsencode(root) + b"/bad\xff"))
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\ndescription: d\n---\n")
    inner = a_skill(root, "inner")
    Path(os.fsdecode(os.fsencode(inner) + b"/\xfe.txt")).write_text("x")
    a_skill(root, "good")
    cache = MemoryCache()
    library(root, cache).read()
    snapshot = library(root, cache).read()

    assert {"bad\\xff": "its name is not UTF-8", "inner": "a file name is not UTF-8: \\xfe.txt", "good": None} == {
        skill.key.rel: skill.broken for skill in snapshot.skills
    }


def test_links_whose_targets_are_no_text(root: Path) -> None:
    """A link's target that is not UTF-8 is shown escaped and breaks nothing else."""
    target = os.fsdecode(b"../\xff")
    (a_skill(root, "x") / "out").symlink_to(target)
    (root / "y").mkdir()
    (root / "y/SKILL.md").symlink_to(target)
    (root / "z").symlink_to(target)
    outside = root.parent / os.fsdecode(b"w\xfe")
    a_skill(outside.parent, outside.name, TEXT.format(name="w"))
    (root / "w").symlink_to(outside)
    cache = MemoryCache()
    library(root, cache).read()
    snapshot = library(root, cache).read()

    assert [None, None, "its SKILL.md is a link (to ../\\xff)", "the link leads nowhere: ../\\xff"] == [
        skill.broken for skill in snapshot.skills
    ]
    for skill in snapshot.skills:
        str(skill).encode()  # nothing of it has lone surrogates, which no file or database could hold


def test_other_scripts_are_fine(root: Path) -> None:
    """Names and texts in any script are read whatever the locale (bugs B073, B077)."""
    a_skill(root, "技能")
    code = (
        "from curatord.adapters.library import *; from curatord.core.settings import LibrarySettings; import sys;"
        "from tests.fakes.package_cache import MemoryCache;"
        "s = DiskLibrary(LibrarySettings(name='l', path=sys.argv[1]), MemoryCache()).read();"
        "assert [(x.key.rel, x.broken, x.description) for x in s.skills] == [('技能', None, 'Does 技能')]"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)],
        env={**os.environ, "LC_ALL": "C"},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert (0, b"") == (done.returncode, done.stderr)


# --- Links and foreign ground -----------------------------------------------------------------------------------------


def test_links_to_one_skill_are_one_skill(root: Path) -> None:
    """Twenty-six links to one real skill are one entry with all its paths (bugs B010, B054)."""
    real = a_skill(root, "real")
    for letter in "abcdefghijklmnopqrstuvwxyz":
        (root / letter).symlink_to(real)
    snapshot = look(root)

    assert ["real"] == rels(snapshot)
    assert 26 == len(one(snapshot, "real").also_at)
    assert ["several-paths"] == codes(one(snapshot, "real"))


def test_links_out_of_the_library(root: Path, tmp_path: Path) -> None:
    """A link out is listed once with where it leads, and is read; a second one is a further path of it."""
    outside = a_skill(tmp_path / "elsewhere", "pen")
    (root / "pen").symlink_to("../elsewhere/pen")
    (root / "quill").symlink_to(outside)
    skill = one(look(root), "pen")

    assert (str(outside), "Does pen", (str(root / "quill"),)) == (skill.link_target, skill.description, skill.also_at)
    assert ["pen"] == rels(look(root))
    assert library(root).read_text(skill).startswith(b"---\nname: pen")


def test_a_link_to_everything_is_not_followed(root: Path) -> None:
    """The root of the file system is a folder above the library too."""
    (root / "all").symlink_to("/")

    snapshot = look(root)

    assert [] == list(snapshot.skills)


def test_a_link_to_a_large_tree_is_looked_into_for_a_while(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many folders behind it and no more; the library's own skills are all found, and the cut is said."""
    monkeypatch.setattr("curatord.adapters.library_scan.MAX_BEHIND_LINK", 5)
    for number in range(20):
        (tmp_path / "big" / f"s{number}").mkdir(parents=True)
        (tmp_path / "big" / f"s{number}" / "SKILL.md").write_text("---\nname: x\ndescription: d\n---\n")
    (root / "big").symlink_to(tmp_path / "big")
    a_skill(root, "zz")

    snapshot = look(root)

    assert "zz" in [skill.name for skill in snapshot.skills]
    assert 6 > sum(skill.link_target is not None for skill in snapshot.skills)
    assert any("behind this link" in str(problem) for problem in snapshot.problems)
    assert snapshot.complete


def test_a_linked_group_of_skills(root: Path, tmp_path: Path) -> None:
    """A link to a folder full of skills outside lists each as a link out; one to a group inside adds nothing."""
    a_skill(tmp_path / "team", "a")
    a_skill(tmp_path / "team", "b")
    a_skill(root, "group/c")
    (root / "team").symlink_to(tmp_path / "team")
    (root / "again").symlink_to(root / "group")
    snapshot = look(root)

    assert ["group/c", "team/a", "team/b"] == rels(snapshot)
    assert [None, str(tmp_path / "team/a"), str(tmp_path / "team/b")] == [
        skill.link_target for skill in snapshot.skills
    ]


def test_dead_links_and_circles(root: Path) -> None:
    """A dangling link is a broken skill, a circle is cut, a link upwards is not followed (bugs B053)."""
    a_skill(root, "fine")
    (root / "dangling").symlink_to("../gone")
    (root / "circle").symlink_to("circle")
    (root / "up").symlink_to("..")
    (root / "here").symlink_to(".")
    (root / "notes.txt").symlink_to("nowhere")
    snapshot = look(root)

    assert {
        "fine": None,
        "dangling": "the link leads nowhere: ../gone",
        "circle": "the link leads in a circle: circle",
    } == {skill.key.rel: skill.broken for skill in snapshot.skills}
    assert 3 == sum(problem.code == "odd-entry" for problem in snapshot.problems)


def test_a_linked_skill_file_is_broken(root: Path, tmp_path: Path) -> None:
    """A SKILL.md that is itself a link would be cut loose by a write, so its skill is never changed."""
    folder = root / "x"
    folder.mkdir()
    (tmp_path / "real.md").write_text(TEXT.format(name="x"))
    (folder / "SKILL.md").symlink_to(tmp_path / "real.md")

    assert f"its SKILL.md is a link (to {tmp_path / 'real.md'})" == one(look(root), "x").broken


def test_links_within_packages_are_not_followed(root: Path, tmp_path: Path) -> None:
    """A link in a package counts by its target's name; what is behind it is neither read nor hashed."""
    (tmp_path / "secret").write_text("x")
    folder = a_skill(root, "x")
    (folder / "out").symlink_to(tmp_path / "secret")
    before = one(look(root), "x")
    (tmp_path / "secret").write_text("changed")

    assert before.fingerprint == one(look(root), "x").fingerprint
    assert ["link-outward"] == codes(before)
    with pytest.raises(InputError):
        library(root).read_file(before, "out")
    with pytest.raises(InputError):
        library(root).read_file(before, "../x/SKILL.md")


def test_a_root_that_is_a_link(root: Path, tmp_path: Path) -> None:
    """The library's own path may be a link; skills are shown below the path as configured (bugs B125)."""
    a_skill(root, "x")
    (tmp_path / "shown").symlink_to(root)

    assert str(tmp_path / "shown/x") == one(look(tmp_path / "shown"), "x").path


def test_external_folders(root: Path, tmp_path: Path) -> None:
    """External folders within and outside of the library are listed as such (contract, section 6)."""
    a_skill(root, "own")
    a_skill(root, "mounted/guide")
    a_skill(tmp_path / "team", "a")
    snapshot = look(root, external_dirs=(str(root / "mounted"), str(tmp_path / "team")))

    assert {"own": None, "mounted/guide": True, "@team/a": True} == {
        skill.key.rel: skill.external and "external folder" in skill.external for skill in snapshot.skills
    }
    assert str(tmp_path / "team/a") == one(snapshot, "@team/a").path


def test_organisation_mirrors(root: Path) -> None:
    """Hermes' mirrors of an organisation's skills are that organisation's."""
    a_skill(root, "_org/acme/x")

    assert "an organisation's mirror" == one(look(root, layout="hermes"), "_org/acme/x").external


@pytest.mark.parametrize("where", ["x", "group"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_foreign_version_control(root: Path, where: str, kind: str) -> None:
    """A submodule or a clone below the root is somebody else's; the user's own repository at the root is not."""
    (root / ".git").mkdir()
    a_skill(root, "group/x")
    a_skill(root, "y")
    mark = root / ("group/x" if where == "x" else "group") / ".git"
    mark.mkdir() if kind == "folder" else mark.write_text("gitdir: ../../.git/modules/x\n")
    cache = MemoryCache()

    for _ in range(2):
        snapshot = library(root, cache).read()
        assert {"group/x": True, "y": False} == {skill.key.rel: bool(skill.foreign_vcs) for skill in snapshot.skills}


# --- The library as a whole -------------------------------------------------------------------------------------------


def test_a_missing_library(tmp_path: Path) -> None:
    """A library that is not there is observed as such, never as an empty one."""
    snapshot = look(tmp_path / "gone")

    assert (False, True, ["missing"]) == (
        snapshot.complete,
        snapshot.observe_only,
        [problem.code for problem in snapshot.problems],
    )


def test_a_file_instead_of_a_library(tmp_path: Path) -> None:
    """A path that is a file is said to be no folder."""
    (tmp_path / "x").write_text("x")

    assert ["missing"] == [problem.code for problem in look(tmp_path / "x").problems]


def test_a_read_only_library_is_observed(open_root: Path) -> None:
    """A library that cannot be written is read and reported, nothing more."""
    a_skill(open_root, "x")
    open_root.chmod(0o555)
    with as_nobody():
        snapshot = look(open_root)
    open_root.chmod(0o755)

    assert (["x"], True) == (rels(snapshot), snapshot.observe_only)


def test_a_skill_configured_as_a_library(root: Path) -> None:
    """A path that is itself a skill is said to be one."""
    assert ["is-a-skill"] == [problem.code for problem in look(a_skill(root, "x")).problems]


def test_archived_packages(root: Path) -> None:
    """Archived packages are listed with name, time and the folders of older tools; live they are not."""
    a_skill(root, ".archive/plain")
    a_skill(root, ".archive/taken-20260102030405")
    a_skill(root, ".archive/release-20269999999999")
    a_skill(root, ".archive/old/category/nested")
    snapshot = look(root, layout="hermes")

    assert [] == rels(snapshot)
    assert [
        ("nested", None, "old/category"),
        ("plain", None, ""),
        ("release-20269999999999", None, ""),
        ("taken", "2026-01-02T03:04:05+00:00", ""),
    ] == [
        (package.name, package.archived_at and package.archived_at.isoformat(), package.category)
        for package in snapshot.archived
    ]


def test_archive_beside_the_library(root: Path) -> None:
    """Outside of Hermes the archive stands beside the library, where no host looks; a flat file is archived as one."""
    archive = root.parent / ".skills-archive"
    a_skill(archive, "x")
    (archive / "loose-20260102030405.md").parent.mkdir(exist_ok=True)
    (archive / "loose-20260102030405.md").write_text(TEXT.format(name="loose"))
    snapshot = look(root)

    assert str(archive) == snapshot.archive
    assert [("loose", "flat"), ("x", "folder")] == [(package.name, package.form) for package in snapshot.archived]


def test_an_archive_within_the_library_is_not_live(root: Path) -> None:
    """Wherever the archive is configured to be, what is in it is not live."""
    a_skill(root, "old/x")

    assert [] == rels(look(root, archive=str(root / "old")))


# --- Kept readings ----------------------------------------------------------------------------------------------------


@pytest.fixture
def no_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take readings of files as young as a test makes them for good ones."""
    monkeypatch.setattr(package_module, "RACY_NS", -(10**12))


@pytest.mark.usefixtures("no_race")
def test_what_did_not_change_is_not_read_again(root: Path) -> None:
    """A second look reads nothing and says the same."""
    a_skill(root, "a", references__x="see [b](../../b/SKILL.md)")
    a_skill(root, "b", "---\nname: b\ndescription: [x]\n---\n")
    a_skill(root, "g/c")
    cache = MemoryCache()
    first = library(root, cache).read()
    second = library(root, cache).read()

    assert (3, 0) == (first.reread, second.reread)
    assert first.skills == second.skills == look(root).skills


def rewrite(path: Path, *, keep_times: bool = False, replace: bool = False) -> None:
    """Change one letter of *path*, in place or by *replace*, and put its old times back where asked for."""
    status = path.stat()
    target = path.with_name("new") if replace else path
    target.write_text(path.read_text().replace("Does", "Dies"))
    if keep_times:
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    if replace:
        target.rename(path)


EDITS: dict[str, Callable[[Path], object]] = {
    "same-size": lambda p: rewrite(p / "SKILL.md"),
    "old-times": lambda p: rewrite(p / "SKILL.md", keep_times=True),
    "replaced": lambda p: rewrite(p / "SKILL.md", keep_times=True, replace=True),
    "added": lambda p: (p / "references/new.md").write_text("x"),
    "removed": lambda p: (p / "references/x.md").unlink(),
    "renamed": lambda p: (p / "references/x.md").rename(p / "references/y.md"),
    "mode": lambda p: (p / "references/x.md").chmod(0o755),
    "linked": lambda p: (p / "references/l").symlink_to("x.md"),
    "folder-moved": lambda p: (p / "references").rename(p / "templates"),
}


@pytest.mark.usefixtures("no_race")
@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_is_seen(root: Path, edit: str) -> None:
    """Whatever is done to a package, the kept reading is dropped and the new one is as good as a fresh one."""
    folder = a_skill(root, "a", references__x="x")
    a_skill(root, "b")
    cache = MemoryCache()
    before = library(root, cache).read()
    time.sleep(0.02)  # a tick of the kernel's clock for file times, whose absence is the next test's matter
    EDITS[edit](folder)
    after = library(root, cache).read()

    assert 1 == after.reread
    assert look(root).skills == after.skills
    assert one(before, "a").fingerprint != one(after, "a").fingerprint


@pytest.mark.usefixtures("no_race")
def test_a_package_swapped_for_another_is_seen(root: Path) -> None:
    """A package that takes the place of another, times and all, is read."""
    a_skill(root, "a")
    other = a_skill(root, "z", TEXT.format(name="a").replace("Does", "Dies"))
    cache = MemoryCache()
    library(root, cache).read()
    (root / "a").rename(root / "old")
    other.rename(root / "a")

    assert "Dies a" == one(library(root, cache).read(), "a").description


def coarse(status: os.stat_result) -> Any:
    """Return *status* as a file system tells it whose clock has steps of two seconds."""
    step = 2_000_000_000
    times = {name: getattr(status, name) // step * step for name in ("st_mtime_ns", "st_ctime_ns")}
    return SimpleNamespace(st_mode=status.st_mode, st_size=status.st_size, st_ino=status.st_ino, **times)


@pytest.mark.parametrize("clock", ["as it is", "coarse"])
def test_edits_within_one_tick_are_seen(root: Path, clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast one write follows another, of the same size, each look sees the newest."""
    path = a_skill(root, "a") / "SKILL.md"
    if clock == "coarse":
        lstat, fstat, row = os.lstat, os.fstat, package_module._row
        monkeypatch.setattr(os, "lstat", lambda path: coarse(lstat(path)))
        monkeypatch.setattr(os, "fstat", lambda descriptor: coarse(fstat(descriptor)))
        monkeypatch.setattr(package_module, "_row", lambda rel, status: row(rel, coarse(status)))
    cache = MemoryCache()
    for number in range(100):
        path.write_text(TEXT.format(name="a").replace("Does", f"D{number:03}"))

        assert f"D{number:03} a" == one(library(root, cache).read(), "a").description


@pytest.mark.usefixtures("no_race")
def test_git_checkout_is_seen(root: Path) -> None:
    """A checkout back and forth between commits is seen, also when the times are put back."""
    folder = a_skill(root, "a")
    git = [
        "git",
        "-C",
        str(root),
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@example.invalid",
        "-c",
        "commit.gpgsign=false",
    ]
    try:
        subprocess.run([*git, "init", "-q"], check=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    for text in ("Does", "Doest"):
        path = folder / "SKILL.md"
        path.write_text(TEXT.format(name="a").replace("Does", text))
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", text], check=True)
    cache = MemoryCache()

    assert "Doest a" == one(library(root, cache).read(), "a").description
    subprocess.run([*git, "checkout", "-q", "HEAD~1"], check=True)
    os.utime(folder / "SKILL.md", (1000, 1000))
    assert "Does a" == one(library(root, cache).read(), "a").description


@pytest.mark.usefixtures("no_race")
def test_gone_skills_are_forgotten(root: Path) -> None:
    """Nothing is kept of a package that is not there any more."""
    folder = a_skill(root, "a")
    cache = MemoryCache()
    library(root, cache).read()
    folder.rename(root.parent / "away")
    library(root, cache).read()

    assert {} == cache.load("lib")


@pytest.mark.usefixtures("no_race")
def test_rubbish_in_the_cache_costs_a_reading(root: Path) -> None:
    """A kept reading that makes no sense is made again."""
    a_skill(root, "a")
    cache = MemoryCache()
    fresh = library(root, cache).read()
    cache.keep("lib", {"a": (b"\xc1rubbish", b"\xc1")}, [])

    assert fresh.skills == library(root, cache).read().skills


def test_nothing_is_touched(root: Path) -> None:
    """Looking changes no byte, mode or time of the library."""
    a_skill(root, "a", references__x="x")
    a_skill(root, "b", "---\nbroken")

    def state() -> list[tuple[str, int, int, int, int]]:
        return sorted(
            (str(path), path.lstat().st_mode, path.lstat().st_mtime_ns, path.lstat().st_ctime_ns, path.lstat().st_size)
            for path in [root, *root.rglob("*")]
        )

    before = state()
    snapshot = look(root)
    for skill in snapshot.skills:
        library(root).read_text(skill)
        library(root).entries(skill)

    assert before == state()


def test_a_package_that_keeps_changing_is_broken_for_now(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is written all the time is given up after some attempts, and tried again at the next look."""
    path = a_skill(root, "a") / "SKILL.md"
    real = package_module.open_beneath

    def busy(base: str, rel: str) -> int:
        path.write_text(path.read_text() + "x")
        return real(base, rel)

    monkeypatch.setattr(package_module, "open_beneath", busy)

    assert "it kept changing while it was read" == one(look(root), "a").broken


NAMES = st.sampled_from(["a", "b", "g/c", "g/d"])
PARTS = st.sampled_from(["SKILL.md", "skill.md", "references/x.md", "scripts/y.sh", "__pycache__/z.pyc", ".git/HEAD"])
TEXTS = st.sampled_from(
    [TEXT.format(name="a"), TEXT.format(name="b"), "---\nbroken", "[x](../b/SKILL.md)", "", "x" * 70, "y" * 70]
)
STEPS = st.one_of(
    st.tuples(st.just("write"), NAMES, PARTS, TEXTS),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("rename-part"), NAMES, PARTS, PARTS),
    st.tuples(st.just("delete"), NAMES, PARTS),
    st.tuples(st.just("link"), NAMES, NAMES),
    st.tuples(st.just("link-part"), NAMES, PARTS),
    st.tuples(st.just("mode"), NAMES, PARTS),
    st.tuples(st.just("old-times"), NAMES, PARTS),
)


def step(root: Path, action: tuple[str, ...]) -> None:
    """Do one thing to the library, or nothing where it cannot be done."""
    path = root / action[1]
    try:
        match action:
            case ("write", _, part, text):
                (path / part).parent.mkdir(parents=True, exist_ok=True)
                (path / part).write_text(text)
            case ("rename", _, other):
                path.rename(root / other)
            case ("rename-part", _, part, other):
                (path / part).rename(path / other)
            case ("delete", _, part):
                (path / part).unlink()
            case ("link", _, other):
                path.symlink_to(root / other)
            case ("link-part", _, part):
                (path / part).symlink_to("SKILL.md")
            case ("mode", _, part):
                (path / part).chmod(0o755)
            case ("old-times", _, part):
                os.utime(path / part, (1000, 1000))
    except OSError:
        return


@given(actions=st.lists(STEPS, min_size=2, max_size=8))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_kept_readings_say_what_fresh_ones_say(
    actions: list[tuple[str, ...]], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever happens to a library between two looks, the kept readings never show."""
    monkeypatch.setattr(package_module, "RACY_NS", 15_000_000)  # some ticks, so that a test may wait them out
    root = tmp_path_factory.mktemp("library")
    for name in ("a", "b", "g/c"):
        a_skill(root, name, references__x="x")
    cache = MemoryCache()
    time.sleep(0.02)
    library(root, cache).read()
    assert ["a", "b", "g/c"] == sorted(cache.load("lib"))
    for action in actions:
        step(root, action)
        time.sleep(0.02)
        kept = library(root, cache).read()
        fresh = look(root)

        assert fresh.skills == kept.skills
        assert fresh.problems == kept.problems

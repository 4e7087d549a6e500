"""Packages read whole from disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from curatord.adapters.library import DiskLibrary
from curatord.adapters.packed_packages import PackedPackages
from curatord.core.settings import LibrarySettings
from curatord.core.values import LibraryName, RelPath, SkillKey
from curatord.errors import InputError
from tests.fakes.package_cache import MemoryCache

KEY = SkillKey(library=LibraryName("lib"), rel=RelPath("one"))


def a_skill(root: Path) -> Path:
    """Write a package with a script and a cache."""
    folder = root / "one"
    (folder / "scripts" / "__pycache__").mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(b"---\nname: one\ndescription: d\n---\n")
    (folder / "scripts" / "run.sh").write_bytes(b"#!\n")
    (folder / "scripts" / "run.sh").chmod(0o750)
    (folder / "scripts" / "__pycache__" / "x.pyc").write_bytes(b"x")
    return folder


def test_all_files_come_with_bytes_and_modes(tmp_path: Path) -> None:
    """But for caches, which are no part of what a package is."""
    folder = a_skill(tmp_path)

    package = PackedPackages().read_at(KEY, str(folder))

    assert [("SKILL.md", 0o644), ("scripts/run.sh", 0o750)] == [(file.path, file.mode) for file in package.files]
    assert b"#!\n" == package.files[1].data


@pytest.mark.parametrize("kind", ["folder", "flat", "link"])
def test_its_fingerprint_is_the_librarys(tmp_path: Path, kind: str) -> None:
    """What is planned in memory can be compared with what the library reader finds."""
    flat = kind == "flat"
    if flat:
        (tmp_path / "one.md").write_bytes(b"---\nname: one\ndescription: d\n---\n")
    else:
        a_skill(tmp_path)
    if kind == "link":
        (tmp_path / "one" / "link").symlink_to("SKILL.md")
    reader = DiskLibrary(
        LibrarySettings(name="lib", path=str(tmp_path), layout="flat" if flat else "agent-skills"), MemoryCache()
    )
    (skill,) = reader.read().skills

    package = PackedPackages().read(skill)

    assert skill.fingerprint == package.fingerprint
    assert flat == package.flat


def test_links_are_named_and_not_followed(tmp_path: Path) -> None:
    """So that folding can refuse the package."""
    folder = a_skill(tmp_path)
    (folder / "secret").symlink_to("/etc/passwd")

    package = PackedPackages().read_at(KEY, str(folder))

    assert (("secret", "/etc/passwd"),) == package.links
    assert None is package.file("secret")


@pytest.mark.parametrize("kind", ["gone", "pipe", "large"])
def test_what_cannot_be_read_whole_is_an_error(tmp_path: Path, kind: str) -> None:
    """Gone, special, or larger than what is ever folded: it is left alone with that reason."""
    folder = a_skill(tmp_path)
    if kind == "gone":
        folder = tmp_path / "two"
    elif kind == "pipe":
        os.mkfifo(folder / "pipe")
    else:
        with (folder / "large.bin").open("wb") as file:
            file.truncate(17 << 20)

    with pytest.raises(InputError):
        PackedPackages().read_at(KEY, str(folder))

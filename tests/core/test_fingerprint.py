"""The fingerprint: what counts for a package's identity, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.fingerprint import PackageEntry, file_entry, fingerprint, link_entry

BASE = [file_entry("SKILL.md", b"x"), file_entry("scripts/a.sh", b"y", executable=True), link_entry("ref", "../b")]


@pytest.mark.parametrize(
    "changed",
    [
        [file_entry("SKILL.md", b"X"), *BASE[1:]],
        [file_entry("skill.md", b"x"), *BASE[1:]],
        [BASE[0], file_entry("scripts/a.sh", b"y"), BASE[2]],
        [*BASE[:2], link_entry("ref", "../c")],
        [*BASE[:2], file_entry("ref", b"../b")],
        BASE[:2],
        [*BASE, file_entry("empty", b"")],
        [*BASE, file_entry(".SKILL.md.swp", b"")],
        [BASE[0], file_entry("scripts", b"a.sh"), BASE[2]],
    ],
    ids=["content", "case", "mode", "target", "kind", "gone", "new", "swap", "path"],
)
def test_edits_show(changed: list[PackageEntry]) -> None:
    """Content, path, executable bit, kind and target of a link each make another fingerprint."""
    assert fingerprint(BASE) != fingerprint(changed)


@pytest.mark.parametrize(
    "rel",
    [
        "__pycache__/a.cpython-311.pyc",
        "scripts/__pycache__/x",
        ".DS_Store",
        "node_modules/x/SKILL.md",
        "a.pyc",
        ".git/HEAD",
    ],
)
def test_caches_do_not_show(rel: str) -> None:
    """What running a skill leaves behind is no edit."""
    assert fingerprint(BASE) == fingerprint([*BASE, file_entry(rel, b"z")])


def test_a_file_named_like_a_cache_folder_shows() -> None:
    """Only folders of those names are caches; a file called `venv` is somebody's file."""
    assert fingerprint(BASE) != fingerprint([*BASE, file_entry("venv", b"z")])
    assert fingerprint(BASE) == fingerprint([*BASE, link_entry("venv", "/opt/venv")])


def test_one_path_twice_is_a_bug() -> None:
    """Two entries with one path are refused, not one of them dropped."""
    with pytest.raises(ValueError, match="two entries"):
        fingerprint([*BASE, BASE[0]])


def test_bytes_that_are_not_utf8() -> None:
    """Names are compared as bytes, also where they are no text."""
    odd = [file_entry(b"\xff".decode("utf-8", "surrogateescape"), b"")]
    other = [file_entry(b"\xfe".decode("utf-8", "surrogateescape"), b"")]

    assert fingerprint(odd) != fingerprint(other)


@given(st.permutations(BASE))
def test_order_does_not_matter(entries: list[PackageEntry]) -> None:
    """The order in which a disk lists its files is not content."""
    assert fingerprint(BASE) == fingerprint(entries)

"""Prompt files: ours, and the user's in their place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from curatord.adapters.prompts import PromptFiles
from curatord.errors import ConfigError


@pytest.mark.parametrize("name", ["survey", "merge", "distil"])
def test_the_package_brings_its_prompts(name: str) -> None:
    """Each is a short text, and says that it is not the user's."""
    prompt = PromptFiles().read(name)

    assert not prompt.own
    assert 400 < len(prompt.text) < 5_000
    assert 64 == len(prompt.sha256)


def test_prompts_hold_no_data_mark() -> None:
    """The one data part stands in the user message."""
    assert all("<curatord-data>" not in PromptFiles().read(name).text for name in ("survey", "merge", "distil"))


def test_a_whole_file_name_is_taken_as_it_is(tmp_path: Path) -> None:
    """The patterns of wishes are no prompt, and stand in the same folder."""
    assert "NAME" in PromptFiles().read("wishes.txt").text
    (tmp_path / "wishes.txt").write_text("keep it\n", encoding="utf-8")

    assert ("keep it\n", True) == (lambda p: (p.text, p.own))(PromptFiles(str(tmp_path)).read("wishes.txt"))


def test_a_users_file_takes_the_place_of_ours(tmp_path: Path) -> None:
    """One by one: what is not there is ours still. A byte-order mark is no part of it."""
    (tmp_path / "merge.md").write_bytes(b"\xef\xbb\xbfMine.")

    prompts = PromptFiles(str(tmp_path))

    assert ("Mine.", True) == (prompts.read("merge").text, prompts.read("merge").own)
    assert not prompts.read("survey").own


@pytest.mark.parametrize("data", [b"", b"  \n", b"\xff\xfe", b"x" * 70_000])
def test_a_file_that_cannot_be_a_prompt_is_named(tmp_path: Path, data: bytes) -> None:
    """Empty, no UTF-8, or far too long: an error of the configuration with the path."""
    (tmp_path / "merge.md").write_bytes(data)

    with pytest.raises(ConfigError, match=r"merge\.md"):
        PromptFiles(str(tmp_path)).read("merge")


@pytest.mark.parametrize("what", ["pipe", "folder", "dead link", "shut"])
def test_what_is_no_file_of_text_is_named(tmp_path: Path, what: str) -> None:
    """It is neither waited for nor passed over in silence; a name too long stands for a folder that is kept shut."""
    path = tmp_path / "merge.md"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "dead link":
        path.symlink_to(tmp_path / "gone")
    folder = tmp_path / ("x" * 300) if what == "shut" else tmp_path

    with pytest.raises(ConfigError, match=r"merge\.md cannot be used as a prompt"):
        PromptFiles(str(folder)).read("merge")


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    """A typo in the path is not answered with our own words in silence."""
    with pytest.raises(ConfigError, match="no folder"):
        PromptFiles(str(tmp_path / "gone")).read("merge")

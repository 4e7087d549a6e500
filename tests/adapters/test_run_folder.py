"""Each run has a folder of its own from before its work starts, and its files are whole at every moment."""

from __future__ import annotations

import errno
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from curatord.adapters.run_folder import RunFolders
from curatord.core.values import RunId
from curatord.errors import InputError, StateError

AT = datetime(2026, 11, 30, 12, 0, 5, tzinfo=UTC)


def test_two_runs_in_one_second_get_folders_of_their_own(tmp_path: Path) -> None:
    """Hermes case 79."""
    folders = RunFolders(tmp_path)

    assert ["20261130-120005", "20261130-120005-1"] == [folders.create(AT), folders.create(AT)]


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    """Text of any script survives, and a lone surrogate cannot make a report fail."""
    folders = RunFolders(tmp_path)
    run_id = folders.create(AT)

    folders.write(run_id, {"name": "技能"}, "# 技能 \udc80\n")

    assert {"name": "技能"} == folders.read(run_id)
    assert "# 技能 \\udc80\n" == folders.read_report(run_id)


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    """Retention counts runs, `-10` is newer than `-9`, and a spared one stays."""
    folders = RunFolders(tmp_path)
    ids = [folders.create(AT) for _ in range(12)]

    removed = folders.prune(2, spare=[ids[0]])

    assert [ids[0], *ids[-2:]] == folders.ids()
    assert (ids[1:-2], []) == removed


def test_some_are_counted_apart(tmp_path: Path) -> None:
    """Dry runs push out older dry runs, and none of the others."""
    folders = RunFolders(tmp_path)
    ids = [folders.create(AT) for _ in range(8)]

    folders.prune(2, apart=ids[3:])

    assert [*ids[1:3], *ids[-2:]] == folders.ids()


def test_a_folder_that_cannot_be_removed_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of, the others go, and the next pruning tries it again."""
    folders = RunFolders(tmp_path)
    ids = [folders.create(AT) for _ in range(4)]
    remove = shutil.rmtree

    def refuse(path: Path) -> None:
        if path.name == ids[0]:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        remove(path)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", refuse)
        removed, problems = folders.prune(1)

    assert ids[1:3] == removed
    assert [True] == [ids[0] in problem and "Permission denied" in problem for problem in problems]
    assert [ids[0]] == folders.prune(1).removed


@pytest.mark.parametrize("bad", ["../etc", "20261130-120005/..", "", "last"])
def test_an_id_is_no_path(tmp_path: Path, bad: str) -> None:
    """No id leads out of the folder."""
    with pytest.raises(ValueError, match="not a run's id"):
        RunFolders(tmp_path).path(RunId(bad))


def test_an_unknown_run_says_where_to_look(tmp_path: Path) -> None:
    """Asking for what is not there is the asker's error, with the way on."""
    with pytest.raises(InputError) as caught:
        RunFolders(tmp_path).read(RunId("20200101-000000"))

    assert "curatord runs" in caught.value.hint


def test_a_state_folder_that_is_a_file_is_an_error_of_state(tmp_path: Path) -> None:
    """What cannot be written is said, naming the place."""
    (tmp_path / "runs").write_text("in the way", encoding="utf-8")

    with pytest.raises(StateError, match="runs"):
        RunFolders(tmp_path).create(AT)

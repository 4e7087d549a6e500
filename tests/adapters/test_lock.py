"""The work lock: held by the kernel, waited for, and told with its holder."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from curatord.adapters.lock import work_lock
from curatord.errors import BusyError, StateError
from tests.curation_home import fork


def test_a_second_holder_waits_and_is_then_told_who_holds_it(tmp_path: Path) -> None:
    """Within one process too: whoever comes second gets a `BusyError` with the first one's id, after its wait."""
    with work_lock(tmp_path):
        begun = time.monotonic()
        with pytest.raises(BusyError) as caught, work_lock(tmp_path, wait_s=0.1):
            pass
        assert 0.1 <= time.monotonic() - begun < 5
    assert str(os.getpid()) == caught.value.holder
    with work_lock(tmp_path, wait_s=0):
        pass


def test_it_dies_with_its_holder(tmp_path: Path) -> None:
    """A killed holder leaves no stale lock, whatever its file says."""
    ready, told = os.pipe()
    child = fork()
    if child == 0:
        with work_lock(tmp_path):
            os.write(told, b"x")
            time.sleep(60)
        os._exit(0)
    assert b"x" == os.read(ready, 1)
    with pytest.raises(BusyError), work_lock(tmp_path, wait_s=0):
        pass
    os.kill(child, 9)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(told)

    with work_lock(tmp_path, wait_s=1):
        assert f"{os.getpid()}\n" == (tmp_path / "work.lock").read_text()


def test_it_is_private_and_follows_no_link(tmp_path: Path) -> None:
    """The file is the user's alone, and a link in its place is an error, not another file's lock."""
    with work_lock(tmp_path):
        assert 0o600 == (tmp_path / "work.lock").stat().st_mode & 0o777
    (tmp_path / "work.lock").unlink()
    (tmp_path / "work.lock").symlink_to(tmp_path / "other")

    with pytest.raises(StateError, match="cannot open"), work_lock(tmp_path):
        pass
    assert not (tmp_path / "other").exists()

"""Fixtures for tests that write."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder in memory where there is one: hundreds of starts and kills wait for the disk else."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or not os.access(shared, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="curatord-test-", dir=shared))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def other_device(tmp_path: Path) -> Iterator[Path]:
    """Yield an empty folder on another file system than *tmp_path*; skip where there is none."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or not os.access(shared, os.W_OK) or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    folder = Path(tempfile.mkdtemp(prefix="curatord-test-", dir=shared))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def open_to_all(quick: Path) -> Path:
    """Return a folder that users other than ours reach."""
    for path in (quick, *quick.parents):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
        if not path.stat().st_mode & 0o001:
            pytest.skip(f"{path} lets nobody through")
    return quick

"""Fixtures of the campaigns: one home with 300 skills, scanned, put back for each test."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaigns.home import BigHome, Image
from tests.campaigns.processes import Cutter, cutter


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder in memory where there is one: thousands of syncs wait for the disk else."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or not os.access(shared, os.W_OK):
        yield tmp_path_factory.mktemp("campaigns")
        return
    folder = Path(tempfile.mkdtemp(prefix="curatord-test-", dir=shared))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cutting(memory: Path) -> Iterator[Cutter]:
    """Yield what runs commands and cuts them."""
    with cutter(memory / "out") as made:
        yield made


@pytest.fixture(scope="session")
def scanned(memory: Path, cutting: Cutter) -> tuple[BigHome, Image]:
    """Return the home after its first scan, and how it was then."""
    home = BigHome(folder=memory / "world").make()
    done = cutting.do(home, "scan")
    assert done.code == 0, done
    return home, home.image()


@pytest.fixture
def big(scanned: tuple[BigHome, Image]) -> BigHome:
    """Return the home as it was after its first scan."""
    home, image = scanned
    home.put_back(image)
    return home

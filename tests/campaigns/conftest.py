"""Fixtures of the campaigns."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaigns.processes import Cutter, cutter


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder in memory where there is one: thousands of syncs wait for the disk else."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or not os.access(shared, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="curatord-test-", dir=shared))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cutting(memory: Path) -> Iterator[Cutter]:
    """Yield what runs commands and cuts them."""
    with cutter(memory / "out") as made:
        yield made

"""The packages as they are published, and an empty environment with nothing but one of them in it."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    """Run *command* and return what came of it, or skip the test where packages cannot be had."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **more,  # type: ignore[call-overload]  # passed on
    )
    if done.returncode != 0 and any(word in done.stdout + done.stderr for word in ("Max retries", "Temporary failure")):
        pytest.skip("no package index can be reached")
    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    return done  # type: ignore[no-any-return]  # of the call above


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the wheel and the source distribution it was built from."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "-o", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="session")
def installed(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a virtual environment that the wheel alone was installed into."""
    folder = tmp_path_factory.mktemp("venv") / "curatord"
    venv.create(folder, with_pip=True)
    run(folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", built[0])
    return folder

"""What is installed works alone: commands, package data, units, and no test's or builder's packages beside it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT

DATA = {"curatord/py.typed", "curatord/prompts/merge.md", "curatord/prompts/survey.md"}


def curatord(installed: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command with a bare environment, from a folder that is not ours."""
    return subprocess.run(
        [str(installed / "bin/curatord"), *arguments],
        cwd="/",
        env={"HOME": str(home), "PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_wheel_holds_what_is_read_at_run_time(built: tuple[Path, Path]) -> None:
    """Prompts and the marker of types, and nothing but the package."""
    names = set(zipfile.ZipFile(built[0]).namelist())

    assert DATA <= names
    assert {"curatord", "curatord-0.1.0.dist-info"} == {name.split("/")[0] for name in names}


def test_the_sources_hold_what_a_packager_needs(built: tuple[Path, Path]) -> None:
    """Units, samples, tests, the lock of CI, the licence."""
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert DATA <= names
    assert {
        "systemd/curatord.service", "config/launchd/curatord.plist", "config/docker/Dockerfile", "config/curatord.yaml",
        ".ci/run", ".ci/constraints.txt", "tests/conftest.py", "README.md", "LICENSE",
    } <= names  # fmt: skip


def test_it_works_alone(installed: Path, tmp_path: Path) -> None:
    """A demonstration from the first command to the report, a completion, the manual, the module form."""
    done = curatord(installed, tmp_path, "demo", str(tmp_path / "demo"))
    assert (0, "") == (done.returncode, re.sub(r"note: .*\n", "", done.stderr))
    assert "managed" in done.stdout

    for arguments in (["completion", "bash"], ["completion", "zsh"], ["completion", "fish"], ["man"]):
        assert 0 == curatord(installed, tmp_path, *arguments).returncode
    version = [str(installed / "bin/python"), "-m", "curatord", "--version"]
    assert "curatord 0.1.0\n" == subprocess.run(version, capture_output=True, text=True, check=True, cwd="/").stdout


def test_its_service_starts_what_was_installed(installed: Path, tmp_path: Path) -> None:
    """The unit names the command of this environment, and the command can be started as it is written there."""
    (tmp_path / ".claude/skills").mkdir(parents=True)
    done = curatord(installed, tmp_path, "service", "install", "systemd", "--yes")
    unit = (tmp_path / ".config/systemd/user/curatord.service").read_text()

    assert 0 == done.returncode, done.stderr
    command = re.search(r"(?m)^ExecStart=(\S+) daemon$", unit)
    assert command is not None
    assert str(installed / "bin/curatord") == command[1].replace("%h", str(tmp_path))
    assert os.access(command[1], os.X_OK)


def test_nothing_is_installed_that_is_not_named(installed: Path) -> None:
    """Each dependency has a range with both ends; what tests need stays out."""
    metadata = subprocess.run(
        [str(installed / "bin/python"), "-m", "pip", "inspect", "--local"], capture_output=True, text=True, check=True
    )
    packages = {one["metadata"]["name"].lower() for one in json.loads(metadata.stdout)["installed"]}

    assert {"pytest", "hypothesis", "ruff", "mypy", "psutil"}.isdisjoint(packages)


def test_every_dependency_has_a_range_and_a_locked_version() -> None:
    """Ranges for those who install it, one version of each for CI, which lies in the range; no index is named."""
    import tomllib

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / ".ci/constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    locked = {canonicalize_name(name): version for name, version in pairs}
    needed = [Requirement(text) for text in (*project["dependencies"], *project["optional-dependencies"]["test"])]
    runtime = [Requirement(text) for text in project["dependencies"]]

    assert [] == [one.name for one in needed if canonicalize_name(one.name) not in locked]
    assert [] == [one.name for one in needed if not one.specifier.contains(locked[canonicalize_name(one.name)])]
    assert [] == [one.name for one in runtime if {">=", "<"} - {part.operator for part in one.specifier}]
    assert [] == [line for line in lines if "://" in line or "@" in line]


@pytest.mark.skipif(sys.platform == "win32", reason="it is what Windows itself would say")
def test_windows_is_refused_clearly(tmp_path: Path) -> None:
    """Before anything is imported that is not there; it says where to go on."""
    program = "import sys; sys.platform = 'win32'; import curatord.__main__ as entry; sys.exit(entry.main())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 2 == done.returncode
    assert "Windows Subsystem for Linux" in done.stderr
    assert "Traceback" not in done.stderr

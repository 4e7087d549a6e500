"""The daemon and a run that changes things, under the very system-call rules of our units."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from curatord.core.service.samples import samples
from curatord.demo.make import make_demo
from tests.e2e import confine
from tests.e2e.test_service_manager import ROOT, STOP_S, Manager

UNITS = sorted(path for path in samples() if path.startswith("systemd/"))
CONFINE = Path(confine.__file__)


def unit_can_be_put_on() -> bool:
    if sys.platform != "linux" or shutil.which("systemd-analyze") is None or not confine.HEADER.exists():
        return False
    probe = [sys.executable, str(CONFINE), str(ROOT / UNITS[0]), "/bin/true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(
    not unit_can_be_put_on(), reason="needs systemd-analyze, the kernel's headers and Linux 6.3"
)


def test_the_rules_hold() -> None:
    """What a unit forbids is refused, so that the tests below mean something."""
    program = (
        "import mmap, os\n"
        "for act in (lambda: mmap.mmap(-1, 4096, prot=7), lambda: os.nice(-1), lambda: os.chroot('/')):\n"
        "    try: act(); print('done')\n"
        "    except OSError: print('refused')\n"
    )
    command = [sys.executable, str(CONFINE), str(ROOT / UNITS[0]), sys.executable, "-c", program]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert ["refused"] * 3 == done.stdout.split()


@pytest.mark.parametrize("unit", UNITS)
def test_a_run_that_changes_things_needs_nothing_more(tmp_path: Path, unit: str) -> None:
    """Adopting, archiving, undoing: as many as asked for, and no call was refused on the way."""
    make_demo(tmp_path / "demo", datetime.now(UTC))

    def curatord(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(CONFINE), str(ROOT / unit), sys.executable, "-m", "curatord"]
        return subprocess.run(
            [*command, "--config", str(tmp_path / "demo/curatord.yaml"), *arguments],
            env={"HOME": str(tmp_path / "demo/home"), "PATH": os.defpath, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert 0 == curatord("adopt", "--all").returncode
    run = curatord("run", "--json")
    name = json.loads(curatord("skills", "--json").stdout)[0]
    archived = curatord("archive", f"{name['library']}/{name['name']}", "--json")
    undone = curatord("undo", json.loads(archived.stdout)["done"][0]["action"])

    assert (0, []) == (run.returncode, json.loads(run.stdout)["failed"])
    assert (0, 0) == (archived.returncode, undone.returncode), archived.stderr + undone.stderr
    assert "Traceback" not in run.stderr + archived.stderr + undone.stderr


@pytest.mark.parametrize("unit", UNITS)
def test_the_daemon_needs_nothing_more(tmp_path: Path, unit: str) -> None:
    """It watches by events, reads with its second process, runs, reloads and stops."""
    make_demo(tmp_path / "demo", datetime.now(UTC))
    manager = Manager(tmp_path / "demo", through=[sys.executable, str(CONFINE), str(ROOT / unit)])
    try:
        process = manager.start()
        manager.until("READY=1\nSTATUS=.*watching 2 places by events")
        manager.until("STATUS=idle")
        process.send_signal(signal.SIGHUP)
        manager.until("READY=1\nSTATUS=configuration read")
        process.send_signal(signal.SIGTERM)

        assert 143 == process.wait(timeout=STOP_S)
        events = [json.loads(line) for line in manager.errors().splitlines()]
        assert [] == [event for event in events if event["level"] not in ("info", "debug")]
    finally:
        manager.end()

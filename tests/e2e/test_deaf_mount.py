"""A mount that really brings no events: an overlay whose lower layer is written outside of the daemon's namespace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_service_manager import ROOT, STOP_S

MAKE = 'mount -t overlay overlay -o "lowerdir=$1:$2" "$3" && shift 3 && exec "$@"'


def may_mount(folder: Path) -> bool:
    if sys.platform != "linux" or os.getuid() != 0 or shutil.which("unshare") is None:
        return False
    paths = [folder / name for name in ("probe-lower", "probe-empty", "probe")]
    for path in paths:
        path.mkdir()
    probe = ["unshare", "--mount", "sh", "-c", MAKE, "sh", *map(str, paths), "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


@pytest.mark.campaign
def test_a_mount_without_events_is_found_out(tmp_path: Path) -> None:
    """What is written there is counted all the same, and after two changes without an event the folder is polled."""
    if not may_mount(tmp_path):
        pytest.skip("needs root, namespaces and an overlay on Linux")
    lower, empty, home = tmp_path / "lower", tmp_path / "empty", tmp_path / "home"
    for folder in (lower / "p", empty, home / ".claude/projects", home / ".claude/skills"):
        folder.mkdir(parents=True)
    environ = {
        "HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "CURATORD_DAEMON__RESCAN_EVERY": "5s",
    }  # fmt: skip
    curatord = [sys.executable, "-m", "curatord"]
    mounted = [str(path) for path in (lower, empty, home / ".claude/projects")]
    written = 0

    def write() -> None:
        nonlocal written
        written += 1
        told = {"type": "user", "sessionId": "one", "uuid": f"u{written}", "timestamp": "2026-11-30T10:00:00.000Z"}
        with (lower / "p/one.jsonl").open("a") as file:
            file.write(json.dumps({**told, "message": {"role": "user", "content": "x"}}) + "\n")

    def asked(*arguments: str) -> Any:
        done = subprocess.run([*curatord, *arguments, "--json"], env=environ, capture_output=True, check=True)
        return json.loads(done.stdout)

    write()
    with (tmp_path / "log").open("wb") as log:
        daemon = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", MAKE, "sh", *mounted, *curatord, "daemon"], env=environ, stderr=log
        )
    try:
        deadline = time.monotonic() + 120
        while (watching := asked("status")["daemon"]["watching"]) != "poll" and time.monotonic() < deadline:
            if asked("sessions") and asked("sessions")[0]["user_turns"] == written:
                write()
            time.sleep(0.5)
        daemon.terminate()

        assert 143 == daemon.wait(timeout=STOP_S)
    finally:
        daemon.kill()
        daemon.wait()
    assert "poll" == watching
    assert written > 2
    assert "its changes arrive without events" in (tmp_path / "log").read_text()

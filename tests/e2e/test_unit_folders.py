"""
The daemon with the folders of a made unit: a home that is read-only but for what the unit opens.

A namespace of its own stands for what the manager would make of `ProtectHome=read-only`, `ReadWritePaths=` and
`ReadOnlyPaths=`; the home in it is a file system in memory, since what lies among temporary files is hidden from units.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def may_unshare() -> bool:
    if sys.platform != "linux" or os.getuid() != 0 or shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not may_unshare(), reason="needs root and namespaces on Linux")

CONFIG = """\
sources: [{host: claude-code, path: ~/.claude/projects}, {host: hermes, path: ~/.hermes}]
libraries: [{name: hermes, path: ~/.hermes/skills, host: hermes}]
umbrella: {enabled: false}
prompts: ~/.config/curatord/prompts
notices: {file: ~/.cache/curatord/notice}
metrics: {listen: 'unix:/home/me/.cache/figures/m.sock'}
llm: {primary: {base_url: 'http://127.0.0.1:9/v1', model: m, api_key: {file: ~/.config/curatord/keys/k}}}
"""

# $1: where what was seen goes, $2: the interpreter.
SCRIPT = r"""
set -eu
out=$1; python=$2
curatord() { "$python" -m curatord "$@"; }
mount -t tmpfs t /home
mkdir -p /home/me/.config/curatord/keys /home/me/.config/curatord/prompts
curatord demo --no-run /home/demo >/dev/null
cp -R /home/demo/home/.claude /home/demo/home/.hermes /home/me
cp "$out/config.yaml" /home/me/.config/curatord/config.yaml
printf 'a-key' >/home/me/.config/curatord/keys/k
printf 'Mine.' >/home/me/.config/curatord/prompts/merge.md
curatord service install systemd --yes >"$out/installed" 2>"$out/notes"
unit=/home/me/.config/systemd/user/curatord.service
cp "$unit" "$out/unit"
mount --bind /home /home
mount -o remount,bind,ro /home
paths() { sed -n "s#^$1=-\{0,1\}%h#/home/me#p" "$unit"; }
for path in $(paths ReadWritePaths); do mount --bind "$path" "$path"; mount -o remount,bind,rw "$path"; done
for path in $(paths ReadOnlyPaths); do mount --bind "$path" "$path"; mount -o remount,bind,ro "$path"; done
touch /home/me/probe /home/me/.claude/projects/probe /home/me/.config/curatord/keys/probe 2>"$out/refused" && exit 9
"$python" -m curatord daemon 2>"$out/log" &
daemon=$!
trap 'kill -9 $daemon 2>/dev/null || true' EXIT
for _ in $(seq 300); do grep -q run.finished "$out/log" && break; sleep 0.1; done
curatord doctor --no-llm --json >"$out/doctor" || true
curatord run --no-llm --json >"$out/run" || true
cp /home/me/.cache/curatord/notice "$out/notice" || true
kill -TERM $daemon; wait $daemon || true
trap - EXIT
"""


def test_a_made_unit_lets_through_what_the_configuration_names(tmp_path: Path) -> None:
    """The folders of a notice and of a socket for figures are made and opened; prompts and keys are read."""
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    environ = {"HOME": "/home/me", "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    command = ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", str(tmp_path), sys.executable]
    done = subprocess.run(command, env=environ, cwd="/", capture_output=True, text=True, timeout=120, check=False)

    assert 0 == done.returncode, done.stderr + (tmp_path / "notes").read_text()
    told = {name: (tmp_path / name).read_text() for name in ("installed", "notes", "refused", "log", "notice")}
    assert 3 == told["refused"].count("Read-only file system")
    checks = {row["check"]: row for row in json.loads((tmp_path / "doctor").read_text())}
    assert ["fine"] * 3 == [checks[name]["level"] for name in ("prompts", "notices", "metrics")]
    assert "where the running daemon answers" in checks["metrics"]["found"]
    assert "failure" != checks["model"]["level"], checks["model"]
    assert told["notice"].startswith("curatord: ")
    assert "notice.failed" not in told["log"]
    assert [True, True] == [f"/home/me/.cache/{name}\n" in told["installed"] for name in ("curatord", "figures")]
    # Where the tests themselves lie, among temporary files, is another matter.
    notes = [line for line in told["notes"].splitlines() if sys.executable not in line]
    assert [] == [line for line in notes if "lies in" in line or "cannot be" in line]

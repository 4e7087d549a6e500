"""
The sidecar, as far as it can be run without an engine: its entrypoint with its environment, user and mounts.

The root is made of read-only mounts in a namespace of its own, in which the daemon is the first process, as the user
that the composition names, without any capability. What is mounted, and how, is read from the made compose.yaml, and
the command and variables from the made Dockerfile. What no test here can see is the base image and Docker's own part.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from curatord.demo.make import make_demo
from tests.core.service.test_files import instructions

WAIT_S = 30.0
STOP_S = 10.0
UID = GID = 41234


def may_unshare() -> bool:
    if (
        sys.platform != "linux"
        or os.getuid() != 0
        or shutil.which("unshare") is None
        or shutil.which("setpriv") is None
    ):
        return False
    probe = ["unshare", "--mount", "--pid", "--fork", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not may_unshare(), reason="needs root and namespaces on Linux")

# $1: the new root; then lines `ro|rw PATH` on standard input; then the command.
MAKE_ROOT = r"""
set -eu
path_inside=$PATH
root=$1; shift
mount -t tmpfs -o mode=755 tmpfs "$root"
for path in /bin /lib /lib64 /sbin; do [ -L "$path" ] && cp -P "$path" "$root$path"; done
mkdir "$root/tmp"
mount -t tmpfs -o size=64m,mode=1777,noexec,nosuid,nodev tmpfs "$root/tmp"
while read -r how path; do
  mkdir -p "$root$(dirname "$path")"
  if [ -d "$path" ]; then mkdir -p "$root$path"; else touch "$root$path"; fi  # one file may be mounted by itself
  mount --bind "$path" "$root$path"
  [ "$how" = rw ] || mount -o remount,bind,ro "$root$path"
done
mkdir -p "$root/proc" "$root/dev"
mount -t proc proc "$root/proc"
touch "$root/dev/null" "$root/dev/urandom"
mount --bind /dev/null "$root/dev/null"
mount --bind /dev/urandom "$root/dev/urandom"
mount -o remount,ro "$root"
PATH=$PATH:/usr/sbin:/sbin
exec chroot "$root" env PATH="$path_inside" "$@"
"""


class Sidecar:
    """One container that is none."""

    def __init__(self, folder: Path, installed: Path) -> None:
        self.folder, self.installed = folder, installed
        self.home = folder / "home"
        (folder / "root").mkdir()
        said = dict(instructions((folder / "docker/Dockerfile").read_text()))
        whole = yaml.safe_load((folder / "docker/compose.yaml").read_text())
        self.service: dict[str, Any] = whole["services"]["curatord"]
        self.command = [*json.loads(said["ENTRYPOINT"]), *json.loads(said["CMD"])]
        self.health = json.loads(said["HEALTHCHECK"].partition("CMD ")[2])
        image = dict(word.split("=", 1) for word in shlex.split(said["ENV"]))
        image["PATH"] = image["PATH"].replace("/opt/curatord", str(installed)).replace("$PATH", "/usr/bin:/bin")
        self.environ = {**image, **self.service["environment"]}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def mounts(self) -> list[str]:
        """Return the lines that tell the root's mounts: the image's, then the composition's, outer ones first."""
        image = ["/usr", "/etc", sys.base_prefix, str(self.installed)]
        image = [path for path in dict.fromkeys(image) if path == "/usr" or not path.startswith("/usr/")]
        volumes = [(one["target"], one.get("read_only", False)) for one in self.service["volumes"]]
        return [f"ro {path}" for path in image] + [f"{'ro' if ro else 'rw'} {path}" for path, ro in sorted(volumes)]

    def as_user(self, command: list[str]) -> list[str]:
        ids = [f"--reuid={UID}", f"--regid={GID}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
        return ["setpriv", *ids, "--inh-caps=-all", *command]

    def start(self) -> subprocess.Popen[bytes]:
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", MAKE_ROOT, "sh"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, str(self.folder / "root"), *self.as_user(self.command)],
                env=self.environ, stdin=subprocess.PIPE, stdout=log, stderr=log,
            )  # fmt: skip
        assert self.process.stdin is not None
        self.process.stdin.write("\n".join([*self.mounts, ""]).encode())
        self.process.stdin.close()
        return self.process

    def daemon_pid(self) -> int:
        """Return the daemon's process as it is seen from outside: the only child of `unshare`."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def inside(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run *command* in there, as `docker exec` and the health check do."""
        pid = str(self.daemon_pid())
        enter = ["nsenter", "--target", pid, "--mount", "--pid", "--root", "env", "--chdir=/"]
        return subprocess.run(
            [*enter, *self.as_user(list(command))],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def until(self, condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if condition():
                return True
            assert self.process is not None
            assert self.process.poll() is None, self.log()
            time.sleep(0.05)
        return False


def made(folder: Path, installed: Path, config: dict[str, Any] | None = None) -> Sidecar:
    """Return a sidecar of the demonstration's home, *config* over its own, owned by a user without a name."""
    make_demo(folder, datetime.now(UTC))
    file = folder / "curatord.yaml"
    file.write_text(json.dumps({**yaml.safe_load(file.read_text()), **(config or {})}))
    done = subprocess.run(
        [str(installed / "bin/curatord"), "--config", str(file),
         "service", "install", "docker", "--yes", "--output", str(folder / "docker")],
        env={"HOME": str(folder / "home"), "PATH": os.defpath}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, UID, GID, follow_symlinks=False)
    return Sidecar(folder, installed)


@pytest.fixture
def sidecar(tmp_path: Path, installed: Path) -> Iterator[Sidecar]:
    """A sidecar as `service install docker` makes it."""
    sidecar = made(tmp_path / "demo", installed)
    yield sidecar
    ended(sidecar)


def ended(sidecar: Sidecar) -> None:
    """
    End it where it still runs: by its first process, whose end is that of all in there.

    What `unshare --kill-child` asks the kernel for is forgotten where that process becomes another user.
    """
    if sidecar.process is not None and sidecar.process.poll() is None:
        children = Path(f"/proc/{sidecar.process.pid}/task/{sidecar.process.pid}/children").read_text().split()
        for pid in children:
            os.kill(int(pid), signal.SIGKILL)
        sidecar.process.kill()
        sidecar.process.wait()


def test_the_entrypoint_runs_as_in_its_container(sidecar: Sidecar) -> None:
    """As the first process, without a name, rights or a writable root: it scans, is healthy, reloads, and stops."""
    process = sidecar.start()
    assert sidecar.until(lambda: "run.finished" in sidecar.log()), sidecar.log()
    facts = dict(re.findall(r"(?m)^(\w+):\t(.*)$", Path(f"/proc/{sidecar.daemon_pid()}/status").read_text()))

    assert (str(UID), "0000000000000000") == (facts["Uid"].split()[0], facts["CapBnd"])
    assert "1" == facts["NSpid"].split()[-1]
    healthy = sidecar.inside(*sidecar.health)
    assert 0 == healthy.returncode, healthy.stdout + healthy.stderr
    assert "351" in sidecar.inside("sh", "-c", "curatord sessions --json | grep -c session_id").stdout

    os.kill(sidecar.daemon_pid(), signal.SIGHUP)
    assert sidecar.until(lambda: "config.reloaded" in sidecar.log())
    os.kill(sidecar.daemon_pid(), signal.SIGTERM)
    assert 143 == process.wait(timeout=STOP_S)
    assert all(json.loads(line)["event"] for line in sidecar.log().splitlines())


def test_only_what_is_mounted_for_it_can_be_written(sidecar: Sidecar) -> None:
    """State and libraries, and of all else nothing: transcripts, configuration, the root, its own program."""
    sidecar.start()
    assert sidecar.until(lambda: "daemon.started" in sidecar.log()), sidecar.log()
    home, state = str(sidecar.home), str(sidecar.folder / "state")
    closed = ["/", "/etc", f"{home}/.claude/projects", str(sidecar.folder), str(sidecar.installed), home]
    opened = [state, f"{home}/.claude/skills", f"{home}/.claude", f"{home}/.hermes/skills", "/tmp"]

    script = 'for path; do touch "$path/probe" 2>/dev/null && echo "$path"; done; true'
    done = sidecar.inside("sh", "-c", script, "sh", *closed, *opened)

    assert opened == done.stdout.splitlines()


def test_a_skill_is_archived_by_a_rename_in_there(sidecar: Sidecar) -> None:
    """Library and archive lie in one mount, so that nothing is copied, and what is written is the user's."""
    sidecar.start()
    assert sidecar.until(lambda: "run.finished" in sidecar.log()), sidecar.log()
    skill = next(path for path in sorted((sidecar.home / ".claude/skills").iterdir()) if (path / "SKILL.md").exists())
    before = skill.stat().st_ino
    sidecar.inside("curatord", "adopt", skill.name)

    done = sidecar.inside("curatord", "archive", skill.name)

    moved = sidecar.home / ".claude/.skills-archive" / skill.name
    assert 0 == done.returncode, done.stdout + done.stderr
    assert (before, UID) == (moved.stat().st_ino, (sidecar.home / ".claude/.skills-archive").stat().st_uid)


def test_a_state_folder_of_another_user_ends_it_at_once(sidecar: Sidecar) -> None:
    """With the path, the id and what to do, instead of a process that stays up half-dead (bugs B154)."""
    state = sidecar.folder / "state"
    os.chown(state, 4242, 4242)
    state.chmod(0o700)
    process = sidecar.start()

    assert 4 == process.wait(timeout=WAIT_S)
    assert str(state) in sidecar.log()
    assert f"id {UID}" in sidecar.log()


def test_what_lies_outside_is_reached_where_it_has_folders_of_its_own(tmp_path: Path, installed: Path) -> None:
    """A notice comes out, figures are answered through a socket, prompts and a key are read."""
    folder = tmp_path / "demo"
    own = tmp_path / "own"
    (own / "keys").mkdir(parents=True)
    (own / "keys/k").write_text("a-key")
    (own / "prompts").mkdir()
    (own / "prompts/merge.md").write_text("Mine.")
    for path in (own, *own.rglob("*")):
        os.chown(path, UID, GID)
    primary = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key": {"file": str(own / "keys/k")}}
    sidecar = made(
        folder,
        installed,
        {
            "notices": {"file": str(own / "out/notice")},
            "metrics": {"listen": f"unix:{own}/figures/m.sock"},
            "prompts": str(own / "prompts"),
            "llm": {"primary": primary},
        },
    )
    for name in ("out", "figures"):
        os.chown(own / name, UID, GID)  # made by root, who runs this test
    try:
        sidecar.start()
        assert sidecar.until(lambda: "run.finished" in sidecar.log()), sidecar.log()
        checks = {
            row["check"]: row for row in json.loads(sidecar.inside("curatord", "doctor", "--no-llm", "--json").stdout)
        }
        sidecar.inside("curatord", "run", "--no-llm")
        with socket.socket(socket.AF_UNIX) as figures:
            figures.connect(str(own / "figures/m.sock"))
            figures.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            answer = figures.recv(65536)
    finally:
        ended(sidecar)

    assert ["fine"] * 3 == [checks[name]["level"] for name in ("prompts", "notices", "metrics")]
    assert "merge.md" in checks["prompts"]["found"]
    assert "failure" != checks["model"]["level"], checks["model"]
    assert (own / "out/notice").read_text().startswith("curatord: ")
    assert b"curatord_build_info" in answer

"""A daemon over transcripts that grow, killed again and again, knows what one clean scan knows."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
WAIT_S = 30.0
CONFIG = """
state_dir: {state}
sources:
  - host: claude-code
    path: {projects}
libraries: []
daemon: {{rescan_every: 1s}}
"""
ROWS = {
    "sessions": "SELECT s.host, s.session_id, s.kind, sum(p.records), sum(p.unreadable), sum(p.user_turns),"
    " sum(p.assistant_turns), min(p.first_at), max(p.last_at) FROM sessions s JOIN parts p ON p.session = s.id"
    " GROUP BY s.id ORDER BY 1, 2",
    "events": "SELECT s.session_id, e.at, e.skill, e.kind, e.via FROM events e JOIN sessions s ON s.id = e.session"
    " ORDER BY 1, 2, 3, 4, 5",
    "hours": "SELECT hour, min(first_at), max(last_at) FROM hours GROUP BY hour ORDER BY 1",
}


class Growth:
    """Sessions that grow by whole and half lines, get company, and are now and then truncated or moved."""

    def __init__(self, projects: Path, seed: int) -> None:
        self.projects = projects
        self.random = random.Random(seed)
        self.files: list[Path] = []
        self.halves: dict[Path, bytes] = {}
        self.at = 1_790_000_000

    def step(self) -> None:
        """Do one thing that a host does."""
        if not self.files or self.random.random() < 0.1:
            folder = self.projects / f"-p{self.random.randrange(4)}"
            folder.mkdir(parents=True, exist_ok=True)
            self.files.append(folder / f"{uuid.UUID(int=self.random.getrandbits(128))}.jsonl")
        path = self.random.choice(self.files)
        data = self.halves.pop(path, b"") + b"".join(self._turn(path) for _ in range(self.random.randint(1, 4)))
        if self.random.random() < 0.3:
            cut = self.random.randrange(1, len(data))
            data, self.halves[path] = data[:cut], data[cut:]
        with path.open("ab") as file:
            file.write(data)
        if self.random.random() < 0.03:
            moved = self.projects / "-moved"
            moved.mkdir(exist_ok=True)
            self.files.remove(path)
            target = moved / path.name
            path.rename(target)
            self.files.append(target)
            if path in self.halves:
                self.halves[target] = self.halves.pop(path)

    def finish(self) -> None:
        """Write what is left of half lines."""
        for path, rest in self.halves.items():
            with path.open("ab") as file:
                file.write(rest)
        self.halves.clear()

    def _turn(self, path: Path) -> bytes:
        self.at += 1
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(self.at))
        base = {"sessionId": path.stem, "cwd": "/p", "timestamp": stamp, "version": "2.1.0", "isSidechain": False}
        if self.random.random() < 0.5:
            message: dict[str, Any] = {"role": "user", "content": "go on " + "x" * self.random.randrange(400)}
            record = {**base, "type": "user", "uuid": self._id(), "message": message}
            return json.dumps(record).encode() + b"\n"
        call = f"toolu_{self._id()}"
        used = {"type": "tool_use", "id": call, "name": "Skill", "input": {"skill": f"s{self.random.randrange(5)}"}}
        message = {"id": f"msg_{self._id()}", "role": "assistant", "model": "m", "content": [used]}
        result = [{"type": "tool_result", "tool_use_id": call, "content": "Launching", "is_error": False}]
        records = [
            {**base, "type": "assistant", "uuid": self._id(), "message": message},
            {**base, "type": "user", "uuid": self._id(), "message": {"role": "user", "content": result}},
        ]
        return b"".join(json.dumps(record).encode() + b"\n" for record in records)

    def _id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128)))


class DaemonProcess:
    """The real command, started anew after each kill."""

    def __init__(self, tmp_path: Path, projects: Path) -> None:
        self.state = tmp_path / "state"
        self.config = tmp_path / "curatord.yaml"
        self.config.write_text(CONFIG.format(state=self.state, projects=projects))
        self.log = tmp_path / "log"
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "curatord", "--config", str(self.config), *words]

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command("--log-format", "json", "daemon"), cwd=ROOT, stderr=log, stdout=log, env=os.environ.copy()
            )

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=WAIT_S)


def rows(state: Path) -> dict[str, list[Any]]:
    """Return what the database knows, as far as it must not depend on how it was learnt."""
    with sqlite3.connect(state / "curatord.db") as db:
        found = {name: db.execute(query).fetchall() for name, query in ROWS.items()}
    db.close()
    return found


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    path = tmp_path / "projects"
    path.mkdir()
    return path


def _grow_and_kill(tmp_path: Path, projects: Path, *, seconds: float, kills: int, seed: int) -> None:
    growth = Growth(projects, seed)
    daemon = DaemonProcess(tmp_path, projects)
    daemon.start()
    moments = sorted(growth.random.uniform(0.3, seconds) for _ in range(kills))
    began = time.monotonic()
    try:
        while (elapsed := time.monotonic() - began) < seconds:
            growth.step()
            time.sleep(growth.random.uniform(0, 0.02))
            if moments and elapsed > moments[0]:
                moments.pop(0)
                daemon.kill()
                daemon.start()
        growth.finish()
    finally:
        # Ended by a signal before everything was read, it goes on from there at the next scan.
        code = daemon.stop()
    assert code in (143, -signal.SIGTERM)
    subprocess.run(daemon.command("scan"), cwd=ROOT, check=True, capture_output=True, timeout=WAIT_S)
    grown = rows(daemon.state)

    daemon.state = tmp_path / "clean"
    daemon.config.write_text(CONFIG.format(state=daemon.state, projects=projects))
    subprocess.run(daemon.command("scan"), cwd=ROOT, check=True, capture_output=True, timeout=WAIT_S)

    assert rows(daemon.state) == grown
    assert grown["events"]


def test_a_killed_daemon_ends_with_the_rows_of_one_clean_scan(tmp_path: Path, projects: Path) -> None:
    """Eight seconds of growth with three kills; the long form is a campaign."""
    _grow_and_kill(tmp_path, projects, seconds=8, kills=3, seed=7)


@pytest.mark.campaign
def test_ten_minutes_with_ten_kills(tmp_path: Path, projects: Path) -> None:
    """Ten minutes, ten kills."""
    _grow_and_kill(tmp_path, projects, seconds=600, kills=10, seed=11)


def test_daemon_and_command_line_count_once(tmp_path: Path, projects: Path) -> None:
    """Scans by hand beside a daemon that reads the same files add nothing twice."""
    growth = Growth(projects, 3)
    daemon = DaemonProcess(tmp_path, projects)
    daemon.start()
    try:
        for _ in range(5):
            for _ in range(20):
                growth.step()
            subprocess.run(daemon.command("scan"), cwd=ROOT, check=True, capture_output=True, timeout=WAIT_S)
        growth.finish()
    finally:
        daemon.stop()
    subprocess.run(daemon.command("scan"), cwd=ROOT, check=True, capture_output=True, timeout=WAIT_S)
    beside = rows(daemon.state)
    daemon.state = tmp_path / "clean"
    daemon.config.write_text(CONFIG.format(state=daemon.state, projects=projects))
    subprocess.run(daemon.command("scan"), cwd=ROOT, check=True, capture_output=True, timeout=WAIT_S)

    assert rows(daemon.state) == beside

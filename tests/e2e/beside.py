"""A demonstration home with a real daemon, real commands and a slow model, for tests of what they do together."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from curatord.adapters.control_client import live_status
from curatord.demo.make import make_demo

__all__ = ["WAIT_S", "Beside", "SlowModel", "a_home", "free_port"]

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 40.0


class SlowModel:
    """A server that takes requests and answers none until it is told to, and then with an error."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.asked = 0
        self.answers = threading.Event()
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            if connection.recv(65536):
                self.asked += 1
                self.answers.wait(WAIT_S)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

    def close(self) -> None:
        self.answers.set()
        self._listening.close()


class Beside:
    """A demonstration home with a daemon and commands, all of them processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_demo(folder, datetime.now(UTC))
        self.config = folder / "curatord.yaml"
        self.state = folder / "state"
        self.log_file = folder / "daemon.log"
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CURATORD_")},
            "HOME": str(folder / "home"),
            "PYTHONPATH": str(ROOT),
            "CURATORD_UMBRELLA__ENABLED": "false",
        }
        self.processes: list[subprocess.Popen[Any]] = []

    def model(self, port: int) -> None:
        """Have runs ask a model on this machine."""
        self.environ["CURATORD_UMBRELLA__ENABLED"] = "true"
        self.environ["CURATORD_UMBRELLA__PLANNER"] = "llm"
        self.environ["CURATORD_LLM"] = f"{{primary: {{base_url: 'http://127.0.0.1:{port}/v1', model: m}}}}"

    def daemon(self) -> subprocess.Popen[Any]:
        """Start the daemon, and wait until it has nothing to do."""
        with self.log_file.open("ab") as log:
            process = self.begin("--log-format", "json", "daemon", stderr=log)
        self.until(lambda: "run.finished" in self.log() and self.live().get("activity") == "idle")
        return process

    def begin(self, *arguments: str, stderr: Any = subprocess.PIPE) -> subprocess.Popen[Any]:
        """Begin a command."""
        process = subprocess.Popen(
            [sys.executable, "-m", "curatord", "--config", str(self.config), *arguments],
            cwd=ROOT,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        self.processes.append(process)
        return process

    def do(self, *arguments: str) -> tuple[int, str, str]:
        """Do a command and return its exit code and what it said on both streams."""
        process = self.begin(*arguments)
        out, err = process.communicate(timeout=WAIT_S)
        return process.returncode, out, err

    def live(self) -> dict[str, Any]:
        """Return what the daemon says of itself."""
        return live_status(self.state) or {}

    def threads(self) -> int:
        """Return how many threads the daemon has; 0 where the system does not tell."""
        tasks = Path(f"/proc/{self.processes[0].pid}/task")
        return len(list(tasks.iterdir())) if tasks.exists() else 0

    def log(self) -> str:
        return self.log_file.read_text()

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the daemon's events of this name."""
        lines = [json.loads(line) for line in self.log().splitlines()]
        return [line for line in lines if line["event"] == name]

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for *condition* as long as a busy machine may need."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def outcome(self) -> str:
        """Return the newest run's outcome."""
        code, out, _ = self.do("runs", "--json")
        assert 0 == code
        return str(json.loads(out)[0]["outcome"])


@contextmanager
def a_home(folder: Path) -> Iterator[Beside]:
    """Give a home whose processes are gone at the end."""
    made = Beside(folder)
    try:
        yield made
    finally:
        for process in made.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


def free_port() -> int:
    """Return a port of this machine that nobody listens at just now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])

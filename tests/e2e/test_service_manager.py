"""
The real daemon under a service manager that is made up: its socket, its watchdog, its signals.

What it is told and when is the whole of the notify protocol that the units rely on (sd_notify(3)).
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from curatord.adapters.instance import running_daemon
from curatord.demo.make import make_demo

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 20.0
STOP_S = 10.0  # contract, section 10


class Manager:
    """Starts one daemon, *through* another program where that is said, and collects what it says."""

    def __init__(self, folder: Path, *, through: Sequence[str] = ()) -> None:
        self.through = through
        self.folder = folder
        self.home = folder / "home"
        self.config = folder / "curatord.yaml"
        self.said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.heard: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._address = folder.parent / "notify"
        self._socket.bind(str(self._address))
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.process: subprocess.Popen[bytes] | None = None

    def _listen(self) -> None:
        while (message := self._socket.recv(65536)) != b"end":
            self.said.put(message.decode())

    def start(self, **environ: str) -> subprocess.Popen[bytes]:
        """Start the daemon as a manager does: with a bare environment."""
        command = [sys.executable, "-m", "curatord"]
        with (self.folder / "errors").open("ab") as errors:
            self.process = subprocess.Popen(
                [*self.through, *command, "--log-format", "json", "--config", str(self.config), "daemon"],
                cwd="/",
                env={
                    "HOME": str(self.home),
                    "PATH": os.defpath,
                    "PYTHONPATH": str(ROOT),
                    "NOTIFY_SOCKET": str(self._address),
                    "WATCHDOG_USEC": "600000",
                    **environ,
                },
                stderr=errors,
            )
        return self.process

    def until(self, pattern: str) -> str:
        """Return the first message from now on in which *pattern* is found."""
        while True:
            try:
                message = self.said.get(timeout=WAIT_S)
            except queue.Empty:
                pytest.fail(f"no {pattern!r}; said were {self.heard[-20:]}; {self.errors()[-2000:]}")
            self.heard.append(message)
            if re.search(pattern, message):
                return message

    def errors(self) -> str:
        return (self.folder / "errors").read_text()

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"end", str(self._address))
        self._listener.join()
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    """A manager over the demonstration's home, whose configuration is its own."""
    make_demo(tmp_path / "demo", datetime.now(UTC))
    made = Manager(tmp_path / "demo")
    yield made
    made.end()


def counted(manager: Manager) -> int:
    """Return how many sessions are known, as another process sees it."""
    done = subprocess.run(
        [sys.executable, "-m", "curatord", "--config", str(manager.config), "sessions", "--json"],
        cwd=ROOT,
        env={**os.environ, "HOME": str(manager.home)},
        capture_output=True,
        timeout=60,
        check=True,
    )
    return len(json.loads(done.stdout))


def test_ready_comes_after_the_first_scan(manager: Manager) -> None:
    """Before it the start may take its time; with it, all that lay there is counted."""
    manager.start()
    ready = manager.until("READY=1")

    assert re.fullmatch(r"READY=1\nSTATUS=\w+; watching 2 places by events", ready)
    assert [] == [one for one in manager.heard[:-1] if not one.startswith("EXTEND_TIMEOUT_USEC=300000000\nSTATUS=")]
    assert 351 == counted(manager)


def test_the_status_follows_the_work(manager: Manager) -> None:
    """The first run, of which nothing but a record comes, is told, and so is the quiet after it; then it lives on."""
    manager.start()
    manager.until("READY=1")

    assert manager.until("STATUS=curating; watching 2 places by events")
    assert manager.until("STATUS=idle; watching 2 places by events")
    assert manager.until("WATCHDOG=1")


def test_a_reload_is_told_from_its_beginning_to_its_end(manager: Manager) -> None:
    """With the time of the clock that the manager compares by; a refused one is over too, and the status says why."""
    before = int(float(Path("/proc/uptime").read_text().split()[0]) * 1e6) if sys.platform == "linux" else 0
    process = manager.start()
    manager.until("READY=1")

    process.send_signal(signal.SIGHUP)
    told = re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)", manager.until("RELOADING"))
    assert told is not None
    assert before <= int(told[1]) + 60_000_000  # of one clock; the machine's uptime counts sleep too
    assert "READY=1\nSTATUS=configuration read" == manager.until("READY=1")

    with manager.config.open("a") as file:
        file.write("nonsense: 1\n")
    process.send_signal(signal.SIGHUP)
    assert "STATUS=configuration refused, the old one stays" in manager.until("READY=1")
    assert process.poll() is None


def test_stopping_is_told_and_soon_over(manager: Manager) -> None:
    """Idle, it is gone at once."""
    process = manager.start()
    manager.until("READY=1")
    process.send_signal(signal.SIGTERM)

    assert manager.until("STOPPING=1\nSTATUS=stopping")
    assert 143 == process.wait(timeout=STOP_S)


def long_history(manager: Manager, *, sessions: int, records: int) -> None:
    """Put *sessions* more transcripts into the home, of *records* lines each."""
    folder = manager.home / ".claude/projects/-long"
    folder.mkdir(parents=True)
    text = "word " * 400
    for number in range(sessions):
        with (folder / f"s{number:05}.jsonl").open("w") as file:
            for line in range(records):
                told = {
                    "type": "user",
                    "sessionId": f"s{number:05}",
                    "uuid": f"{number}-{line}",
                    "timestamp": "2026-01-01T10:00:00.000Z",
                    "message": {"role": "user", "content": text},
                }
                file.write(json.dumps(told) + "\n")


def test_a_stop_in_the_first_scan_is_heard(manager: Manager) -> None:
    """In the midst of a long history it ends after the file at hand; what was not read is read by the next start."""
    long_history(manager, sessions=3000, records=20)
    process = manager.start()
    deadline = time.monotonic() + WAIT_S
    while running_daemon(manager.folder / "state").get("activity") != "scanning":
        assert time.monotonic() < deadline, manager.errors()
        time.sleep(0.005)  # reading all of it takes some two hundred times as long
    process.send_signal(signal.SIGTERM)

    assert manager.until("STOPPING=1\nSTATUS=stopping, was scanning")
    assert 143 == process.wait(timeout=STOP_S)
    assert "READY=1" not in "".join(manager.heard)

    manager.start()
    manager.until("READY=1")
    assert 3351 == counted(manager)


@contextlib.contextmanager
def silent_server() -> Iterator[tuple[int, Callable[[], None]]]:
    """Give the port of a server that takes a request and never answers, and what waits for one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        held: list[socket.socket] = []

        def wait() -> None:
            connection, _ = server.accept()
            held.append(connection)
            connection.recv(1024)

        try:
            yield server.getsockname()[1], wait
        finally:
            for connection in held:
                connection.close()


def test_a_stop_while_a_model_is_silent_is_heard(manager: Manager) -> None:
    """The wait is broken off, and the run is over and says so; while it waited, the watchdog was spoken to."""
    with silent_server() as (port, request_came):
        process = manager.start(
            CURATORD_LLM=f"{{primary: {{base_url: 'http://127.0.0.1:{port}/v1', model: silent}}}}",
            CURATORD_UMBRELLA__PLANNER="llm",
            CURATORD_GATES__FIRST_RUN="run",
            CURATORD_GATES__MIN_IDLE="0s",
        )
        request_came()
        while not manager.said.empty():
            manager.heard.append(manager.said.get())
        beats = [manager.until("WATCHDOG=1") for _ in range(3)]
        process.send_signal(signal.SIGTERM)

        assert ["WATCHDOG=1"] * 3 == beats
        assert manager.until("STOPPING=1\nSTATUS=stopping, was curating")
        assert 143 == process.wait(timeout=STOP_S)
    (run,) = sorted((manager.folder / "state/runs").glob("*/run.json"))
    assert "interrupted" == json.loads(run.read_text())["outcome"]


def ended(folder: Path, *flags: str, **environ: str) -> tuple[int, str]:
    """Start a daemon that cannot work, and return its exit code and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "curatord", "--config", str(folder / "curatord.yaml"), "daemon", *flags],
        env={"HOME": str(folder / "home"), "PATH": os.defpath, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("flags", [(), ("--exit-zero-if-final",)])
def test_a_state_that_cannot_be_used_just_now_is_worth_another_start(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """A disk that is full or away for a minute must not make the service manager give up for good."""
    make_demo(tmp_path / "demo", datetime.now(UTC))
    (tmp_path / "file").write_text("no folder")

    code, words = ended(tmp_path / "demo", *flags, CURATORD_STATE_DIR=str(tmp_path / "file" / "state"))

    assert (3, True) == (code, "state folder" in words)


@pytest.mark.parametrize("flags", [(), ("--exit-zero-if-final",)])
def test_a_port_that_is_taken_is_worth_another_start(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Whoever has it may leave; a configuration that is wrong stays wrong, and is told once."""
    make_demo(tmp_path / "demo", datetime.now(UTC))
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        taken = ended(tmp_path / "demo", *flags, CURATORD_METRICS__LISTEN=f"127.0.0.1:{port}")
    wrong = ended(tmp_path / "demo", *flags, CURATORD_METRICS__LISTEN="0.0.0.0:9464")

    assert (3, 0 if flags else 2) == (taken[0], wrong[0])

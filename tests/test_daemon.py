"""The daemon's frame: one worker, signals, one instance, service manager (a real process with a made-up app)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from curatord.adapters.instance import DaemonInstance, running_daemon
from curatord.daemon import rescan_pause
from curatord.errors import BusyError

ROOT = Path(__file__).resolve().parent.parent
WAIT_S = 15.0

# A daemon whose application writes down each call as one line, and does what the environment says.
PROGRAM = """
import os, sys, time
from pathlib import Path
from curatord.adapters.clock import SystemClock
from curatord.adapters.service_manager import ServiceManager
from curatord.daemon import Daemon
from curatord.errors import ConfigError, CuratorError
from curatord.logs import set_up

class App:
    state_dir = Path(os.environ["STATE"])
    rescan_every_s = float(os.environ.get("RESCAN_S", "0.2"))
    watch_mode = "auto"
    tries = 0
    def note(self, line):
        with open(os.environ["CALLS"], "a") as file:
            file.write(line + "\\n")
    def watch_roots(self):
        return [Path(os.environ["ROOT"])]
    def recover(self):
        self.note("recover")
    def rescan(self, *, stop, alive):
        self.tries += 1
        self.note("rescan")
        if os.environ.get("FAIL") == "bug" and self.tries <= 3:
            raise ZeroDivisionError("a bug")
        if os.environ.get("FAIL") == "input" and self.tries <= 3:
            raise CuratorError("no good", hint="mend it")
        return []
    def scan_paths(self, paths, *, stop):
        self.note("paths " + " ".join(sorted(os.path.basename(p) for p in paths)))
    def work_if_due(self, *, stop, alive):
        if os.environ.get("BUSY"):
            self.note("action begins")
            while not stop():
                time.sleep(0.01)
            time.sleep(0.3)
            self.note("action ends")
        return None
    def reload(self):
        self.note("reload")
        if os.environ.get("BAD_CONFIG"):
            raise ConfigError("line 3: nonsense", hint="mend it")

log = set_up(form="json", verbose=False)
try:
    sys.exit(Daemon(app=App(), clock=SystemClock(), log=log, manager=ServiceManager(os.environ)).run())
except CuratorError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


class Process:
    """A running daemon and what it wrote down."""

    def __init__(self, tmp_path: Path, **environment: str) -> None:
        self.calls_file = tmp_path / "calls"
        self.state = tmp_path / "state"
        self.root = tmp_path / "root"
        self.state.mkdir(exist_ok=True)
        self.root.mkdir(exist_ok=True)
        self.errors = tmp_path / "errors"
        with self.errors.open("ab") as errors:
            self.popen = subprocess.Popen(
                [sys.executable, "-c", PROGRAM],
                cwd=ROOT,
                stderr=errors,
                env={
                    **os.environ,
                    "STATE": str(self.state),
                    "ROOT": str(self.root),
                    "CALLS": str(self.calls_file),
                    **environment,
                },
            )

    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []

    def log(self) -> str:
        return self.errors.read_text()

    def until(self, condition: Callable[[], bool]) -> bool:
        """Return whether *condition* comes true in the time that a busy machine may need."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(0.02)
        return False

    def end(self, number: int = signal.SIGTERM) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(timeout=WAIT_S)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Return a maker of daemons that are gone at the end."""
    made: list[Process] = []

    def make(**environment: str) -> Process:
        process = Process(tmp_path, **environment)
        made.append(process)
        return process

    yield make
    for process in made:
        if process.popen.poll() is None:
            process.popen.kill()
        process.popen.wait()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_it_with_its_own_code(start: Callable[..., Process], number: int, code: int) -> None:
    """Recovery comes first, then a rescan, then ticks; a signal ends it cleanly."""
    daemon = start()
    assert daemon.until(lambda: daemon.calls().count("rescan") >= 2)

    assert code == daemon.end(number)
    assert ["recover", "rescan"] == daemon.calls()[:2]


def test_the_action_at_hand_is_finished(start: Callable[..., Process]) -> None:
    """Stop is looked at between actions, never inside one."""
    daemon = start(BUSY="1")
    assert daemon.until(lambda: "action begins" in daemon.calls())

    daemon.end()

    assert "action ends" == daemon.calls()[-1]


def test_a_change_is_taken_long_before_the_rescan(start: Callable[..., Process]) -> None:
    """An event names its file, and that file alone is scanned."""
    daemon = start(RESCAN_S="3600")
    assert daemon.until(lambda: "daemon.started" in daemon.log())

    (daemon.root / "s.jsonl").write_text("{}\n")

    assert daemon.until(lambda: "paths s.jsonl" in daemon.calls())


@pytest.mark.parametrize("kind", ["bug", "input"])
def test_trouble_ends_a_round_not_the_daemon(start: Callable[..., Process], kind: str) -> None:
    """It is logged (a bug with its traceback), the next round goes on, and recovery says how often it failed."""
    daemon = start(FAIL=kind)

    assert daemon.until(lambda: "worker.recovered" in daemon.log())
    daemon.end()

    events = [json.loads(line) for line in daemon.log().splitlines()]
    failed = [event for event in events if event["event"] == "worker.failed"]
    assert [3] == [event["after"] for event in events if event["event"] == "worker.recovered"]
    assert [1, 2] == [event["times"] for event in failed]
    assert (kind == "bug") == ("Traceback" in failed[0].get("exception", ""))


def test_a_second_daemon_is_kept_out(start: Callable[..., Process]) -> None:
    """It exits 5 at once and names the first one's process; the first goes on."""
    first = start()
    assert first.until(lambda: running_daemon(first.state).get("pid") == first.popen.pid)

    second = start()

    assert 5 == second.popen.wait(timeout=WAIT_S)
    assert str(first.popen.pid) in second.log()
    assert first.popen.poll() is None


def test_a_killed_daemon_leaves_no_lock(start: Callable[..., Process]) -> None:
    """The kernel holds the lock, so nothing stale keeps the next one out or looks alive."""
    first = start()
    assert first.until(lambda: running_daemon(first.state)["alive"])
    first.popen.kill()
    first.popen.wait()

    assert {"alive": False} == running_daemon(first.state)
    second = start()
    assert second.until(lambda: running_daemon(second.state).get("pid") == second.popen.pid)


def test_a_bad_configuration_is_refused_as_a_whole(start: Callable[..., Process]) -> None:
    """SIGHUP with a wrong file says so and leaves the daemon at work with the old one."""
    daemon = start(BAD_CONFIG="1", RESCAN_S="3600")
    assert daemon.until(lambda: "daemon.started" in daemon.log())

    daemon.popen.send_signal(signal.SIGHUP)

    assert daemon.until(lambda: "config.refused" in daemon.log())
    assert daemon.popen.poll() is None


def test_the_service_manager_hears_all(start: Callable[..., Process], tmp_path: Path) -> None:
    """READY once it watches, WATCHDOG from the worker, RELOADING and READY around a reload, STOPPING at the end."""
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(WAIT_S)
        daemon = start(NOTIFY_SOCKET=str(address), WATCHDOG_USEC="60000000")

        heard: list[str] = []

        def hear(wanted: str) -> None:
            while wanted not in "\n".join(heard):
                heard.append(manager.recv(4096).decode())

        hear("READY=1")
        hear("WATCHDOG=1")
        del heard[:]
        daemon.popen.send_signal(signal.SIGHUP)
        hear("RELOADING=1\nMONOTONIC_USEC=")
        hear("READY=1")
        daemon.popen.send_signal(signal.SIGTERM)
        hear("STOPPING=1")

    assert 143 == daemon.popen.wait(timeout=WAIT_S)


def test_the_lock_can_be_taken_again_after_it_was_given_back(tmp_path: Path) -> None:
    """Within one process, too, there is one at a time."""
    with DaemonInstance(tmp_path), pytest.raises(BusyError), DaemonInstance(tmp_path):
        pass

    with DaemonInstance(tmp_path) as instance:
        instance.publish({"pid": 1})

        assert {"alive": True, "pid": 1} == running_daemon(tmp_path)


@pytest.mark.parametrize(
    ("cost_s", "watched", "proven", "pause_s"),
    [
        (0.3, True, 9, 1000.0),
        (9.0, True, 9, 1800.0),  # never longer than half an hour
        (0.001, True, 9, 60.0),  # never more often than configured
        (0.3, False, 9, 60.0),  # a place without events
        (0.3, True, 2, 60.0),  # events that have proven nothing yet
    ],
)
def test_rescans_come_seldom_where_events_are_proven(cost_s: float, watched: bool, proven: int, pause_s: float) -> None:
    """They take the same small share of a processor, however large the history is."""
    assert pause_s == pytest.approx(rescan_pause(cost_s, every_s=60.0, watched=watched, proven=proven))

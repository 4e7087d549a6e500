"""The daemon's frame: one worker, signals, one instance, service manager (a real process with a made-up app)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from curatord.adapters.control_client import Ended, ask, live_status
from curatord.adapters.instance import DaemonInstance, running_daemon, silence_of
from curatord.core.control import Ask
from curatord.daemon import rescan_pause
from curatord.errors import BusyError, StateError

ROOT = Path(__file__).resolve().parent.parent
WAIT_S = 15.0

# A daemon whose application writes down each call as one line, and does what the environment says.
PROGRAM = """
import os, sys, time
from pathlib import Path
from curatord.adapters.clock import SystemClock
from curatord.adapters.control_server import ControlServer
from curatord.adapters.service_manager import ServiceManager
from curatord.daemon import Daemon
from curatord.desk import FrontDesk
from curatord.errors import BusyError, ConfigError, CuratorError, StateError
from curatord.logs import set_up

class App:
    state_dir = Path(os.environ["STATE"])
    watch_mode = "auto"
    curated = ("/home/u/.claude/skills",)
    figures_at = None
    tries = 0
    @property
    def rescan_every_s(self):
        file = Path(os.environ["CALLS"] + ".every")
        return float(file.read_text() if file.exists() else os.environ.get("RESCAN_S", "0.2"))
    def note(self, line):
        with open(os.environ["CALLS"], "a") as file:
            file.write(line + "\\n")
    def watch_roots(self):
        roots = Path(os.environ["CALLS"] + ".roots")
        return [Path(line) for line in roots.read_text().splitlines()] if roots.exists() else [Path(os.environ["ROOT"])]
    def begin_round(self):
        self.note("round")
    recoveries = 0
    def recover(self):
        self.recoveries += 1
        self.note("recover")
        if os.environ.get("RECOVER") == "busy" and self.recoveries <= 3:
            raise BusyError("another curatord is at work on it")
        if os.environ.get("RECOVER") == "state":
            raise StateError("the state folder cannot be used")
    def rescan(self, *, stop, alive):
        self.tries += 1
        self.note("rescan")
        if os.environ.get("FAIL") == "busy":
            raise BusyError("a scan is at work")
        if os.environ.get("FAIL") == "hang" and self.tries == 2:
            time.sleep(3600)
        if os.environ.get("FAIL") == "bug" and self.tries <= 3:
            raise ZeroDivisionError("a bug")
        if os.environ.get("FAIL") == "input" and self.tries <= 3:
            raise CuratorError("no good", hint="mend it")
        return []
    def scan_paths(self, paths, *, stop):
        self.note("paths " + " ".join(sorted(os.path.basename(p) for p in paths)))
    def work_if_due(self, *, stop, alive):
        self.note("gates")
        if os.environ.get("LONG"):
            for _ in range(40):
                stop()
                alive()
                time.sleep(0.1)
            self.note("long work ends")
        if os.environ.get("BUSY"):
            self.note("action begins")
            while not stop():
                time.sleep(0.01)
            time.sleep(0.3)
            self.note("action ends")
        return None
    version, config_fingerprint = "1", "ab"
    def is_run_at_work(self):
        return False
    def obey(self, command, arguments, *, stop, alive, progress):
        self.note("order " + command)
        if command == "run":
            raise ZeroDivisionError("a bug")
        return {"command": command}
    def reload(self):
        self.note("reload")
        if os.environ.get("BAD_CONFIG"):
            raise ConfigError("line 3: nonsense", hint="mend it")
        return ["gates.interval: 7d -> 3d"]

if os.environ.get("TICK_S"):
    import curatord.daemon
    curatord.daemon.MAX_TICK_S = float(os.environ["TICK_S"])
log = set_up(form="json", verbose=False)
try:
    app = App()
    def control(daemon):
        return ControlServer(app.state_dir, FrontDesk(daemon, app), log)
    daemon = Daemon(app=app, clock=SystemClock(), log=log, manager=ServiceManager(os.environ), control=control)
    sys.exit(daemon.run())
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
    assert ["recover", "round", "rescan"] == daemon.calls()[:3]


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


def test_a_busy_recovery_is_retried(start: Callable[..., Process]) -> None:
    """Somebody at work by hand while it starts neither ends the daemon nor lets it work unrecovered; no trouble."""
    daemon = start(RECOVER="busy")

    assert daemon.until(lambda: "gates" in daemon.calls())
    state = running_daemon(daemon.state)

    calls = daemon.calls()
    assert 4 == calls[: calls.index("gates")].count("recover")
    assert "rescan" in calls[: calls.index("gates")]
    assert state["last_error"] is None
    assert "worker.failed" not in daemon.log()


def test_a_busy_scan_is_no_trouble(start: Callable[..., Process]) -> None:
    """A lock that somebody else holds is waited for at the next tick, and nothing calls the daemon unhealthy."""
    daemon = start(FAIL="busy")

    assert daemon.until(lambda: daemon.calls().count("rescan") >= 3)

    assert running_daemon(daemon.state)["last_error"] is None
    assert daemon.popen.poll() is None


def test_an_unusable_state_ends_the_start(start: Callable[..., Process]) -> None:
    """The service manager must not see a daemon that is up; by the exit code it tries again, or not."""
    daemon = start(RECOVER="state")

    assert StateError.exit_code == daemon.popen.wait(timeout=WAIT_S)
    assert "cannot be used" in daemon.log()


def test_the_rescan_keeps_its_own_time(start: Callable[..., Process]) -> None:
    """Ticks come oftener than rescans, the gates are asked at each, and a new value counts from the next tick on."""
    daemon = start(RESCAN_S="3600", TICK_S="0.1")
    assert daemon.until(lambda: daemon.calls().count("gates") >= 5)
    before = daemon.calls().count("rescan")

    Path(f"{daemon.calls_file}.every").write_text("0.1")

    assert daemon.until(lambda: daemon.calls().count("rescan") >= 4)
    assert 1 == before


def test_the_roots_follow(start: Callable[..., Process], tmp_path: Path) -> None:
    """A place that appears while it runs is watched from the next tick on."""
    daemon = start(RESCAN_S="3600", TICK_S="0.1")
    other = tmp_path / "other"
    other.mkdir()
    assert daemon.until(lambda: "daemon.started" in daemon.log())

    Path(f"{daemon.calls_file}.roots").write_text(f"{daemon.root}\n{other}\n")
    watched = daemon.until(lambda: str(other) in daemon.log())
    (other / "s.jsonl").write_text("{}\n")

    assert watched
    assert daemon.until(lambda: any(call.startswith(("paths s.jsonl",)) for call in daemon.calls()))


def test_a_hung_worker_gives_no_sign_of_life(start: Callable[..., Process]) -> None:
    """`at` stands still, and `silence_of` says so after a while; the lock alone proves nothing."""
    daemon = start(FAIL="hang", RESCAN_S="0.1")
    assert daemon.until(lambda: daemon.calls().count("rescan") == 2)
    time.sleep(0.3)
    first = running_daemon(daemon.state)
    time.sleep(1.2)
    second = running_daemon(daemon.state)

    at = datetime.fromisoformat(first["at"])
    assert first["at"] == second["at"]
    assert silence_of(second, at + timedelta(minutes=14)) is None
    assert "no sign of life" in (silence_of(second, at + timedelta(minutes=16)) or "")


def test_long_work_that_asks_whether_to_stop_is_alive(start: Callable[..., Process], tmp_path: Path) -> None:
    """The service manager hears of it from inside a round, from the worker itself."""
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(WAIT_S)
        daemon = start(NOTIFY_SOCKET=str(address), LONG="1", RESCAN_S="3600")
        assert daemon.until(lambda: "gates" in daemon.calls())
        manager.settimeout(0.0)
        with contextlib.suppress(BlockingIOError):
            while manager.recv(4096):
                pass
        manager.settimeout(WAIT_S)

        heard: list[str] = []
        while heard.count("WATCHDOG=1") < 2:  # what it is busy with may be told between
            heard.append(manager.recv(4096).decode())

    assert "long work ends" not in daemon.calls()


def test_a_hung_worker_feeds_no_watchdog(start: Callable[..., Process], tmp_path: Path) -> None:
    """The scheduler still ticks, but a sign of life comes from the worker alone, so the manager would start it anew."""
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(WAIT_S)
        daemon = start(NOTIFY_SOCKET=str(address), WATCHDOG_USEC="300000", FAIL="hang", RESCAN_S="0.1")
        assert daemon.until(lambda: daemon.calls().count("rescan") == 2)
        manager.settimeout(0.1)
        with contextlib.suppress(TimeoutError):
            while manager.recv(4096):
                pass
        manager.settimeout(1.5)

        with pytest.raises(TimeoutError):
            manager.recv(4096)
    assert daemon.popen.poll() is None


def test_a_manager_that_does_not_read_stops_nothing(start: Callable[..., Process], tmp_path: Path) -> None:
    """Its socket is full; telling it is a courtesy."""
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler, contextlib.suppress(BlockingIOError):
            filler.setblocking(False)
            while True:
                filler.sendto(b"x" * 4096, str(address))
        daemon = start(NOTIFY_SOCKET=str(address), WATCHDOG_USEC="60000000")

        assert daemon.until(lambda: "gates" in daemon.calls())
        assert 143 == daemon.end()


@pytest.mark.parametrize("round_", range(3))
def test_a_storm_of_signals_stops_it(start: Callable[..., Process], round_: int) -> None:
    """Handlers interrupt one another in their first instructions; none may wait for a lock that the other holds."""
    daemon = start(RESCAN_S="0.1")
    assert daemon.until(lambda: "daemon.started" in daemon.log())

    for number in [signal.SIGHUP, signal.SIGTERM, signal.SIGINT] * 60:
        with contextlib.suppress(ProcessLookupError):
            os.kill(daemon.popen.pid, number)

    assert daemon.popen.wait(timeout=WAIT_S) in (130, 143)


def test_a_second_daemon_is_kept_out(start: Callable[..., Process]) -> None:
    """It exits 5 at once and names the first one's process; the first goes on."""
    first = start()
    assert first.until(lambda: running_daemon(first.state).get("pid") == first.popen.pid)

    second = start()

    assert 5 == second.popen.wait(timeout=WAIT_S)
    assert str(first.popen.pid) in second.log()
    assert first.popen.poll() is None


def test_a_state_that_cannot_be_written_is_trouble(start: Callable[..., Process]) -> None:
    """Who asks hears of it, the log tells it seldom, and it is over as soon as it can be written."""
    daemon = start()
    assert daemon.until(lambda: (live_status(daemon.state) or {}).get("activity") == "idle")
    in_its_way = daemon.state / ".daemon.json.tmp"

    in_its_way.mkdir()
    assert daemon.until(lambda: "cannot be written" in str((live_status(daemon.state) or {}).get("last_error")))
    rounds = daemon.calls().count("round")
    assert daemon.until(lambda: daemon.calls().count("round") > rounds + 8)
    told = daemon.log().count("status.unwritten")
    in_its_way.rmdir()

    assert daemon.until(lambda: "status.recovered" in daemon.log())
    assert daemon.until(lambda: (live_status(daemon.state) or {"last_error": "silent"})["last_error"] is None)
    assert running_daemon(daemon.state)["last_error"] is None
    assert told < 8


def test_a_state_folder_that_is_removed_is_made_anew(start: Callable[..., Process]) -> None:
    """It is seen, asked and kept for itself as before: a lock of a removed file would keep nobody out."""
    daemon = start()
    assert daemon.until(lambda: live_status(daemon.state) is not None)

    daemon.state.rename(daemon.state.with_name("removed"))  # at once: it may be writing there just now

    assert daemon.until(lambda: (live_status(daemon.state) or {}).get("activity") == "idle")
    assert daemon.until(lambda: running_daemon(daemon.state).get("pid") == daemon.popen.pid)
    second = start()
    assert 5 == second.popen.wait(timeout=WAIT_S)
    assert daemon.popen.poll() is None
    assert 1 == daemon.log().count("daemon.renewed")


def test_what_was_in_a_removed_folder_is_read_again_at_once(start: Callable[..., Process]) -> None:
    """The state is empty then; a rescan would be due in an hour only."""
    daemon = start(RESCAN_S="3600", TICK_S="0.2")
    assert daemon.until(lambda: "gates" in daemon.calls())

    daemon.state.rename(daemon.state.with_name("removed"))  # at once: it may be writing there just now

    assert daemon.until(lambda: daemon.calls().count("rescan") >= 2)
    assert daemon.until(lambda: daemon.calls().count("recover") >= 2)


def test_who_lost_its_folder_to_another_daemon_stops(start: Callable[..., Process], tmp_path: Path) -> None:
    """Two would do everything twice; the one that has the lock that others find stays, and keeps what it published."""
    first = start(RESCAN_S="3600", TICK_S="1.5")
    assert first.until(lambda: "gates" in first.calls())

    first.state.rename(tmp_path / "away")
    second = start()

    assert 5 == first.popen.wait(timeout=WAIT_S)
    assert "daemon.ousted" in first.log()
    assert second.until(lambda: running_daemon(second.state).get("pid") == second.popen.pid)
    assert live_status(second.state) is not None


def test_a_folder_that_cannot_be_made_just_now_is_waited_for(start: Callable[..., Process], tmp_path: Path) -> None:
    """It does nothing meanwhile, and goes on where it was once that is possible."""
    daemon = start()
    assert daemon.until(lambda: live_status(daemon.state) is not None)
    daemon.state.rename(tmp_path / "away")
    daemon.state.write_text("in its place")
    assert daemon.until(lambda: "worker.failed" in daemon.log())
    scans = daemon.calls().count("rescan")

    daemon.state.unlink()

    assert daemon.until(lambda: running_daemon(daemon.state)["alive"])
    assert daemon.until(lambda: daemon.calls().count("rescan") > scans)
    assert daemon.popen.poll() is None


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


def test_an_order_is_one_message_among_others(start: Callable[..., Process]) -> None:
    """The worker does it between two rounds, and its answer goes back."""
    daemon = start(RESCAN_S="3600")
    assert daemon.until(lambda: "gates" in daemon.calls())

    scan = ask(daemon.state, Ask(command="scan"))
    reload = ask(daemon.state, Ask(command="reload"))

    assert Ended(key="result", value={"command": "scan"}) == scan
    assert Ended(key="result", value={"changed": ["gates.interval: 7d -> 3d"]}) == reload
    assert ["order scan", "reload"] == [call for call in daemon.calls() if call in ("order scan", "reload")]


def test_a_reload_that_is_refused_says_why(start: Callable[..., Process]) -> None:
    """To the client as to the log; the daemon is well all the same."""
    daemon = start(BAD_CONFIG="1", RESCAN_S="3600")
    assert daemon.until(lambda: "gates" in daemon.calls())

    answer = ask(daemon.state, Ask(command="reload"))

    told = {"kind": "ConfigError", "message": "line 3: nonsense", "hint": "mend it", "exit_code": 2}
    assert Ended(key="error", value=told) == answer
    assert "config.refused" in daemon.log()
    assert running_daemon(daemon.state)["last_error"] is None


def test_a_bug_in_an_order_is_told_and_passes(start: Callable[..., Process]) -> None:
    """The client hears of it, `status` too, and the next good round says that all is well again."""
    daemon = start(RESCAN_S="3600", TICK_S="1")
    assert daemon.until(lambda: "gates" in daemon.calls())

    answer = ask(daemon.state, Ask(command="run"))

    assert isinstance(answer, Ended)
    assert ("error", "bug", 1) == (answer.key, answer.value["kind"], answer.value["exit_code"])
    assert daemon.until(lambda: "worker.recovered" in daemon.log())
    assert running_daemon(daemon.state)["last_error"] is None
    assert "Traceback" in daemon.log()


def test_what_is_due_is_shown_while_it_is_at_work(start: Callable[..., Process]) -> None:
    """A run of the daemon's own takes minutes."""
    daemon = start(LONG="1", RESCAN_S="3600")

    assert daemon.until(lambda: (live_status(daemon.state) or {}).get("activity") == "curating")
    assert daemon.until(lambda: (live_status(daemon.state) or {}).get("activity") == "idle")
    assert "long work ends" in daemon.calls()


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


def test_a_lock_is_kept_where_files_have_no_lasting_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems number a file anew at each look; a daemon there must not think itself ousted by itself."""
    monkeypatch.setattr(os.path, "samestat", lambda _one, _other: False)

    with DaemonInstance(tmp_path) as instance:
        assert not instance.renew()
        assert running_daemon(tmp_path)["alive"]
        (tmp_path / "daemon.lock").unlink()
        assert instance.renew()
        assert running_daemon(tmp_path)["alive"]

"""The control socket, both ends, over real sockets: names, strangers, hostile clients, orders taken back."""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from curatord.adapters import control_server
from curatord.adapters.control_client import Declined, Ended, LostError, ask, live_status
from curatord.adapters.control_server import NAME, ControlServer, Order, Refused
from curatord.adapters.local_socket import bind, connect, peer_uid
from curatord.core.control import Ask
from curatord.errors import BusyError
from curatord.logs import set_up

WAIT_S = 15.0


class Office:
    """A desk whose worker is the test itself."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.refuse: Exception | None = None
        self.silence = 0.0

    def told(self) -> dict[str, Any]:
        return {"activity": "scanning", "pid": os.getpid()}

    def silent_s(self) -> float:
        return self.silence

    def take(self, order: Order, ask: Ask) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.orders.append(order)

    def aside(self, command: str) -> Any:
        if command == "resume":
            raise ZeroDivisionError("a bug")
        return {"done": [command]}


class Heard:
    """A log that keeps the names of its events."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def note(self, event: str, **_values: Any) -> None:
        self.events.append(event)

    debug = info = warning = error = note


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.fixture
def folder(tmp_path: Path, office: Office) -> Iterator[Path]:
    """Return the folder of a control socket that is answered."""
    server = ControlServer(tmp_path, office, set_up(form="text", verbose=False))
    server.start()
    yield tmp_path
    server.stop(0.0)


def until(condition: Callable[[], bool]) -> None:
    """Wait for *condition* as long as a busy machine may need."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def in_background(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Begin *work* in a thread; what it returned, or raised, is in the list once it has ended."""
    got: list[Any] = []

    def do() -> None:
        try:
            got.append(work())
        except Exception as error:  # noqa: BLE001 - handed to the test
            got.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    return thread, got


# Names and rights.


@pytest.mark.parametrize("length", [10, 90, 100, 101, 102, 103, 104, 108, 150, 230])
def test_a_folder_of_any_length_has_its_socket(tmp_path: Path, length: int) -> None:
    """Kernels take about a hundred bytes; the socket is in the folder all the same, and nothing else is left."""
    folder = tmp_path / ("x" * max(length - len(str(tmp_path)) - 1, 1))
    folder.mkdir()

    with bind(folder, NAME) as listening, connect(folder, NAME, 1.0):
        connection, _ = listening.accept()
        connection.close()

    assert [NAME] == [path.name for path in folder.iterdir()]
    assert 0o600 == stat.S_IMODE((folder / NAME).lstat().st_mode)


def test_without_proc_a_link_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS; the link is gone afterwards."""
    monkeypatch.setattr("sys.platform", "darwin")
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    links = tmp_path / "tmp"
    links.mkdir()
    monkeypatch.setattr("tempfile.tempdir", "/tmp")

    with bind(folder, NAME) as listening, connect(folder, NAME, 1.0):
        connection, _ = listening.accept()
        connection.close()

    assert [NAME] == [path.name for path in folder.iterdir()]


def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    """Whoever binds holds the daemon's lock, so whatever stands there is dead."""
    bind(tmp_path, NAME).close()
    with pytest.raises(ConnectionRefusedError):
        connect(tmp_path, NAME, 1.0)

    with bind(tmp_path, NAME), connect(tmp_path, NAME, 1.0) as connection:
        assert os.geteuid() == peer_uid(connection)


def test_a_folder_in_its_place_is_told_and_left(tmp_path: Path, office: Office) -> None:
    """The daemon does without, and says so."""
    (tmp_path / NAME / "kept").mkdir(parents=True)

    with capture_logs() as logs:
        server = ControlServer(tmp_path, office, set_up(form="text", verbose=False))
        server.start()
        server.stop()

    assert (tmp_path / NAME / "kept").is_dir()
    assert live_status(tmp_path) is None
    assert logs == [] or logs[0]["event"] == "control.unavailable"


def test_a_removed_socket_comes_back(folder: Path, tmp_path: Path, office: Office) -> None:
    """Cleaners of old files take it away; the next look renews it."""
    other = tmp_path / "other"
    other.mkdir()
    server = ControlServer(other, office, set_up(form="text", verbose=False))
    server.start()
    (other / NAME).unlink()

    server.check()
    found = live_status(other)
    server.stop()

    assert found is not None
    assert not (other / NAME).exists()


def test_a_socket_that_could_not_be_made_is_tried_again(tmp_path: Path, office: Office) -> None:
    """A folder that is away at the first try may be there at the next look; meanwhile it is said once."""
    folder = tmp_path / "away"
    log = Heard()
    server = ControlServer(folder, office, log)
    server.start()
    server.check()
    before = list(log.events)
    folder.mkdir()

    server.check()
    found = live_status(folder)
    server.stop()

    assert ["control.unavailable"] == before
    assert found is not None
    assert ["control.unavailable", "control.recovered"] == log.events


def test_a_socket_that_another_took_the_place_of_comes_back(tmp_path: Path, office: Office) -> None:
    """Whoever holds the daemon's lock is the daemon, so the place is ours; a stale socket there would be silent."""
    server = ControlServer(tmp_path, office, Heard())
    server.start()
    bind(tmp_path, NAME).close()

    server.check()
    found = live_status(tmp_path)
    server.stop()

    assert found is not None


def test_a_stranger_hears_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says who it is; not a byte is read or written for anybody else."""
    monkeypatch.setattr(control_server, "peer_uid", lambda _connection: os.geteuid() + 1)

    assert live_status(folder) is None


def test_the_client_trusts_no_other_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that another user's process listens at is none."""
    monkeypatch.setattr("curatord.adapters.local_socket.peer_uid", lambda _connection: os.geteuid() + 1)

    answer = ask(folder, Ask(command="status"))

    assert isinstance(answer, Declined)


# Hostile clients.


def raw(folder: Path) -> socket.socket:
    """Return a connection that says nothing by itself."""
    return connect(folder, NAME, WAIT_S)


def pour(connection: socket.socket, part: bytes, *, pause_s: float = 0.0) -> None:
    """Send *part* again and again."""
    for _ in range(1000):
        connection.sendall(part)
        time.sleep(pause_s)


@pytest.mark.parametrize(
    "sent",
    [b"\n", b"junk\n", b"\x00\xff\n", b"[" * 15_000 + b"\n", b'{"curatord":1,"do":"format"}\n'],
    ids=["empty", "junk", "bytes", "deep", "unknown"],
)
def test_junk_is_refused_and_the_next_one_served(folder: Path, sent: bytes) -> None:
    """In words, on one line."""
    with raw(folder) as connection:
        connection.sendall(sent)
        answer = connection.makefile("rb").read()

    assert answer.startswith(b'{"refused":')
    assert live_status(folder) is not None


def test_a_line_without_end_is_cut_off(folder: Path) -> None:
    """What is kept of it is bounded, and nobody else waits for it."""
    with raw(folder) as connection, pytest.raises((BrokenPipeError, ConnectionResetError)):
        pour(connection, b"x" * 65536)

    assert live_status(folder) is not None


def test_a_slow_question_is_cut_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is for the whole line: a byte now and then does not stretch it."""
    monkeypatch.setattr(control_server, "ASK_WITHIN_S", 0.3)

    with raw(folder) as connection, pytest.raises((BrokenPipeError, ConnectionResetError)):
        pour(connection, b"x", pause_s=0.05)

    assert live_status(folder) is not None


def test_a_crowd_leaves_room_again(folder: Path) -> None:
    """Beyond the slots each is told so; once they are free the next one is served."""
    crowd = [raw(folder) for _ in range(control_server.SLOTS)]
    with raw(folder) as late:
        told = late.makefile("rb").read()
    for connection in crowd:
        connection.close()

    assert b"too many" in told
    until(lambda: live_status(folder) is not None)


def test_a_bug_in_one_answer_harms_no_other(folder: Path) -> None:
    """The client of it is left without an answer, the next one has one."""
    first = ask(folder, Ask(command="resume"))
    second = ask(folder, Ask(command="pause"))

    assert isinstance(first, Declined)
    assert Ended(key="result", value={"done": ["pause"]}) == second


def test_who_does_not_take_the_answer_is_left(folder: Path, office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a long answer keeps a thread for longer than a while, and the work goes on."""
    monkeypatch.setattr(control_server, "TAKE_WITHIN_S", 0.3)
    with raw(folder) as connection:
        connection.sendall(b'{"curatord":1,"do":"scan"}\n')
        until(lambda: bool(office.orders))
        assert office.orders[0].begin()
        office.orders[0].finish({"text": "x" * 10_000_000})
        until(lambda: not any(thread.name == "control-client" for thread in threading.enumerate()))

    assert live_status(folder) is not None


# Orders.


def test_an_order_is_begun_told_and_ended(folder: Path, office: Office) -> None:
    """The client hears what it waits for, how far it is, and what came of it."""
    heard: list[Any] = []
    thread, got = in_background(
        lambda: ask(
            folder,
            Ask(command="scan"),
            progress=lambda done, total, what: heard.append((done, total, what)),
            waiting=heard.append,
        )
    )
    until(lambda: bool(office.orders))
    order = office.orders[0]

    assert order.begin()
    order.progress(1, 2, "transcripts")
    order.finish({"sessions": 3})
    thread.join(WAIT_S)

    assert [Ended(key="result", value={"sessions": 3})] == got
    assert ["scanning", (1, 2, "transcripts")] == heard


def test_a_client_that_leaves_first_takes_its_order_back(folder: Path, office: Office) -> None:
    """So that nothing is done twice: the client has gone on by itself."""
    office.silence = 60.0
    answer = ask(folder, Ask(command="run"))
    until(lambda: bool(office.orders))
    order = office.orders[0]

    assert isinstance(answer, Declined)
    assert "no sign of life" in answer.reason
    until(lambda: not order.open)
    assert not order.begin()


def test_a_client_that_leaves_later_does_not(folder: Path, office: Office) -> None:
    """What was begun is finished."""
    with raw(folder) as connection:
        connection.sendall(b'{"curatord":1,"do":"run"}\n')
        until(lambda: bool(office.orders))
        order = office.orders[0]
        assert order.begin()

    time.sleep(2 * control_server.LOOK_EVERY_S)
    assert order.open
    assert not order.stop_asked


def test_a_stop_is_heard_between_two_actions(folder: Path, office: Office) -> None:
    """The client asks once, and goes on waiting for what came of it."""
    asked: list[str] = []
    stop = threading.Event()
    thread, got = in_background(
        lambda: ask(folder, Ask(command="run"), stop=stop.is_set, stopping=lambda: asked.append("stop"))
    )
    until(lambda: bool(office.orders))
    order = office.orders[0]
    order.begin()

    stop.set()
    until(lambda: order.stop_asked)
    order.finish({"run_id": "1"})
    thread.join(WAIT_S)

    assert [Ended(key="result", value={"run_id": "1"})] == got
    assert ["stop"] == asked


def test_an_error_keeps_its_kind_and_code(folder: Path, office: Office) -> None:
    """So that the exit code is the same as without a daemon."""
    office.refuse = BusyError("a run is at work", hint="later")

    answer = ask(folder, Ask(command="run"))

    told = {"kind": "BusyError", "message": "a run is at work", "hint": "later", "exit_code": 5}
    assert Ended(key="error", value=told) == answer


def test_a_refusal_is_told(folder: Path, office: Office) -> None:
    """Quietly, where nobody needs to hear of it."""
    office.refuse = Refused("a run is at work", quiet=True)

    assert Declined(reason="a run is at work", quiet=True) == ask(folder, Ask(command="scan"))


def test_a_daemon_that_goes_away_is_told(tmp_path: Path) -> None:
    """In the middle of an order, what was begun may be half of what was wanted: that is an error."""
    listening = bind(tmp_path, NAME)

    def die() -> None:
        connection, _ = listening.accept()
        connection.recv(1000)
        connection.sendall(b'{"begun":true}\n')
        connection.close()

    thread, _ = in_background(die)
    with pytest.raises(LostError, match="went away"):
        ask(tmp_path, Ask(command="run"))
    thread.join(WAIT_S)
    listening.close()


def test_a_daemon_that_is_stopped_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes the connection, and nobody answers."""
    monkeypatch.setattr("curatord.adapters.control_client.HEARD_WITHIN_S", 0.3)
    with bind(tmp_path, NAME):
        answer = ask(tmp_path, Ask(command="run"))

    assert Declined(reason="it does not answer") == answer


@pytest.mark.parametrize("sent", [b"junk\n", b"{}\n", b'{"progress":{}}\n', b'{"waiting":7}\n'])
def test_an_answer_that_is_none_is_no_answer(tmp_path: Path, sent: bytes) -> None:
    """A client believes nothing it cannot read."""
    listening = bind(tmp_path, NAME)

    def babble() -> None:
        connection, _ = listening.accept()
        connection.recv(1000)
        connection.sendall(sent)
        connection.close()

    thread, _ = in_background(babble)
    answer = ask(tmp_path, Ask(command="run"), progress=lambda *_: None)
    thread.join(WAIT_S)
    listening.close()

    assert isinstance(answer, Declined)

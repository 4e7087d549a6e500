"""The page of figures over real sockets: who may ask, how, and what a hostile client gets."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from curatord.adapters import metrics_server
from curatord.adapters.metrics_server import MetricsServer, why_not_there
from curatord.errors import ConfigError
from curatord.logs import set_up

PAGE = "curatord_up 1\n"
GET = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.fixture
def port() -> Iterator[int]:
    """Return the port of a running server."""
    number = free_port()
    server = MetricsServer(f"127.0.0.1:{number}", lambda: PAGE, set_up(form="text", verbose=False))
    server.start()
    yield number
    server.stop()


def ask(connection: socket.socket, request: str) -> tuple[str, str]:
    """Return the first line and the body of the answer."""
    with connection:
        connection.settimeout(15)
        connection.sendall(request.encode("latin-1"))
        answer = connection.makefile("rb").read().decode()
    head, _, body = answer.partition("\r\n\r\n")
    return head.split("\r\n")[0], body


def get(port: int, request: str = GET) -> tuple[str, str]:
    return ask(socket.create_connection(("127.0.0.1", port)), request)


def test_the_page_is_given(port: int) -> None:
    """To GET, and its head to HEAD."""
    assert ("HTTP/1.1 200 OK", PAGE) == get(port)
    assert ("HTTP/1.1 200 OK", "") == get(port, GET.replace("GET", "HEAD"))
    assert ("HTTP/1.1 200 OK", PAGE) == get(port, "GET /metrics?x=1 HTTP/1.0\r\n\r\n")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("GET /metrics/../../etc/passwd HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "405"),
        ("GET /metrics HTTP/1.1\r\nHost: rebound.example:9464\r\n\r\n", "403"),
        ("GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nHOST: rebound.example\r\n\r\n", "403"),
        ("GET /metrics HTTP/1.1\r\nHost: 127.evil.example\r\n\r\n", "403"),
        ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.evil.example:80\r\n\r\n", "403"),
        ("nonsense\r\n\r\n", "400"),
        ("\x00\xff\r\n\r\n", "400"),
    ],
)
def test_anything_else_is_refused(port: int, request_: str, status: str) -> None:
    """In one line, and nothing of the page."""
    first, body = get(port, request_)

    assert status == first.split()[1]
    assert PAGE not in body


@pytest.mark.parametrize("host", ["localhost:1", "[::1]:9464", "127.0.0.1"])
def test_this_machine_has_several_names(port: int, host: str) -> None:
    """All of them are ours."""
    assert "HTTP/1.1 200 OK" == get(port, f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n")[0]


def test_a_slow_or_endless_request_is_cut_off(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is served meanwhile and afterwards."""
    monkeypatch.setattr(metrics_server, "WITHIN_S", 0.3)
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    for connection in slow:
        connection.sendall(b"GET /met")

    assert "HTTP/1.1 200 OK" == get(port)[0]
    for connection in slow:
        connection.settimeout(15)
        assert b"" == connection.recv(100)
        connection.close()
    with (
        socket.create_connection(("127.0.0.1", port)) as endless,
        pytest.raises((BrokenPipeError, ConnectionResetError)),
    ):
        pour(endless)
    assert "HTTP/1.1 200 OK" == get(port)[0]


def pour(connection: socket.socket) -> None:
    """Send a head without end."""
    for _ in range(1000):
        connection.sendall(b"x-y: " + b"z" * 65536 + b"\r\n")
        time.sleep(0.001)


def test_a_bug_in_the_page_harms_nobody() -> None:
    """The client gets nothing, the log is told, the next one is asked."""
    answers: list[Callable[[], str]] = [lambda: PAGE, lambda: str(1 // 0)]
    number = free_port()
    server = MetricsServer(f"127.0.0.1:{number}", lambda: answers.pop()(), set_up(form="text", verbose=False))
    server.start()

    first, second = get(number)[0], get(number)[0]
    server.stop()

    assert ["", "HTTP/1.1 200 OK"] == [first, second]


def test_a_unix_socket_does_too(tmp_path: Path) -> None:
    """A stale one is replaced, and it is gone afterwards."""
    path = tmp_path / "m.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    server = MetricsServer(f"unix:{path}", lambda: PAGE, set_up(form="text", verbose=False))
    server.start()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))

    answer = ask(connection, "GET /metrics HTTP/1.1\r\nHost: whatever\r\n\r\n")
    server.stop()

    assert ("HTTP/1.1 200 OK", PAGE) == answer
    assert not path.exists()


def test_a_socket_that_somebody_listens_at_is_left(tmp_path: Path) -> None:
    """Another program's callers must not come to us, nor find nothing when we have gone."""
    path = tmp_path / "m.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(ConfigError) as met:
            MetricsServer(f"unix:{path}", lambda: PAGE, set_up(form="text", verbose=False)).start()
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(path))
        connection.close()

    assert "metrics.listen" == met.value.key
    assert path.is_socket()


def test_a_file_in_its_place_is_left(tmp_path: Path) -> None:
    """It is somebody's, and the error names the key."""
    path = tmp_path / "m.sock"
    path.write_text("kept")

    with pytest.raises(ConfigError) as met:
        MetricsServer(f"unix:{path}", lambda: PAGE, set_up(form="text", verbose=False)).start()

    assert "metrics.listen" == met.value.key
    assert "kept" == path.read_text()


def test_a_taken_port_is_an_error_of_the_configuration(port: int) -> None:
    """It says which."""
    with pytest.raises(ConfigError, match=str(port)):
        MetricsServer(f"127.0.0.1:{port}", lambda: PAGE, set_up(form="text", verbose=False)).start()


def test_the_folder_of_a_socket_is_made(tmp_path: Path) -> None:
    """As that of a notice is, for its user only."""
    server = MetricsServer(f"unix:{tmp_path}/a/b/m.sock", lambda: PAGE, set_up(form="text", verbose=False))
    server.start()
    there = (tmp_path / "a/b/m.sock").is_socket()
    server.stop()

    assert there
    assert 0o700 == (tmp_path / "a/b").stat().st_mode & 0o777


def test_a_socket_that_was_removed_comes_back(tmp_path: Path) -> None:
    """As the control socket does; one that is there is left alone, and so is a port."""
    path = tmp_path / "run/m.sock"
    server = MetricsServer(f"unix:{path}", lambda: PAGE, set_up(form="text", verbose=False))
    server.start()
    first = path.lstat().st_ino
    server.check()
    kept = path.lstat().st_ino
    shutil.rmtree(path.parent)
    server.check()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    answer = ask(connection, "GET /metrics HTTP/1.1\r\n\r\n")
    server.stop()

    assert first == kept
    assert PAGE == answer[1]
    assert not path.exists()


def test_what_took_a_sockets_place_is_left_until_it_goes(tmp_path: Path) -> None:
    """It is said once, and nobody is told that figures may be asked for meanwhile."""
    path = tmp_path / "m.sock"
    with capture_logs() as logs:
        server = MetricsServer(f"unix:{path}", lambda: PAGE, structlog.get_logger())
        server.start()
        path.unlink()
        path.write_text("kept")
        for _ in range(3):
            server.check()
        meanwhile = server.listening, path.read_text()
        path.unlink()
        server.check()
        after = server.listening
        server.stop()

    assert ((False, "kept"), True) == (meanwhile, after)
    assert ["metrics.lost", "metrics.unavailable", "metrics.listening"] == [line["event"] for line in logs]


def test_a_trial_of_a_port_leaves_it_free(port: int) -> None:
    """A taken one is told, and whoever has it answers as before."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        free = int(found.getsockname()[1])

    assert [None, None] == [why_not_there(f"127.0.0.1:{free}") for _ in range(2)]
    assert "another program listens there" == why_not_there(f"127.0.0.1:{port}")
    assert PAGE == ask(socket.create_connection(("127.0.0.1", port)), "GET /metrics HTTP/1.1\r\n\r\n")[1]


def test_a_trial_of_a_socket_makes_none(tmp_path: Path) -> None:
    """A file in its place or its way and somebody's socket are told; a stale one is nobody's."""
    (tmp_path / "file").write_text("kept")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "stale"))
    stale.close()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "taken"))
        other.listen()
        names = ("new", "stale", "taken", "file", "none/new", "file/new")
        told = [why_not_there(f"unix:{tmp_path}/{name}") for name in names]

    assert told == [
        None,
        None,
        "another program listens there",
        f"{tmp_path}/file is there, and is no socket",
        None,
        f"{tmp_path}/file is no folder",
    ]
    assert {"file", "stale", "taken"} == {path.name for path in tmp_path.iterdir()}

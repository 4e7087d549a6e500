"""The notify protocol over a real socket whose reader may be slow."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from curatord.adapters import service_manager
from curatord.adapters.service_manager import ServiceManager


@pytest.fixture
def full(tmp_path: Path) -> Iterator[tuple[ServiceManager, socket.socket]]:
    """Yield a manager whose socket takes no more, since nobody reads it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        reader.bind(str(tmp_path / "notify"))
        reader.settimeout(5)
        manager = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "notify")})
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler:
            filler.setblocking(False)
            try:
                while True:
                    filler.sendto(b"x", str(tmp_path / "notify"))
            except BlockingIOError:
                pass
        yield manager, reader


def test_what_comes_again_waits_for_nobody(
    full: tuple[ServiceManager, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signs of life and states are dropped where nobody reads: the worker goes on with its work."""
    manager, reader = full
    monkeypatch.setattr(service_manager, "SEND_S", None)  # whoever waits here waits for ever
    for _ in range(100):
        manager.alive()
        manager.status("idle")
        manager.starting("reading")
    while reader.recv(64) == b"x":
        reader.settimeout(0.2)
        try:
            reader.recv(64)
        except TimeoutError:
            break
    reader.settimeout(5)

    manager.alive()

    assert b"WATCHDOG=1" == reader.recv(64)


def test_what_is_said_once_is_said_when_somebody_reads(
    full: tuple[ServiceManager, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manager that missed `READY` would end a service that is well; it hears it before the next sign of life."""
    manager, reader = full
    monkeypatch.setattr(service_manager, "SEND_S", 0.0)
    manager.reloading()
    manager.ready("up")
    manager.alive()
    reader.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            assert b"x" == reader.recv(64)

    manager.alive()
    manager.alive()

    assert [b"READY=1\nSTATUS=up", b"WATCHDOG=1", b"WATCHDOG=1"] == [reader.recv(64) for _ in range(3)]

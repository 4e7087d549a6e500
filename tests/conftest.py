"""Fixtures for all tests, and the latch that keeps them on this machine."""

from __future__ import annotations

import socket
from typing import Any

import pytest

LOOPBACK = ("127.", "::1", "localhost")


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail any connection that would leave the machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and not str(address[0]).startswith(LOOPBACK):
            raise AssertionError(f"a test tried to reach {address!r}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _no_real_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep tests away from the home and the configuration of whoever runs them."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in (
        "CURATORD_CONFIG",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "CLAUDE_CONFIG_DIR",
        "HERMES_HOME",
        "CODEX_HOME",
    ):
        monkeypatch.delenv(name, raising=False)

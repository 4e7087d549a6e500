"""Where metrics may be asked for: an address of this machine, or a Unix socket; nowhere else."""

from __future__ import annotations

import re

from curatord.core.cheap import dataclass

__all__ = ["TcpPlace", "UnixPlace", "is_loopback", "place_of", "why_not"]

# 127.0.0.0/8 and ::1 as addresses; `localhost` is a name that a machine may point elsewhere, so it is taken for the
# address it stands for.
_IPV4 = re.compile(r"127\.(?:\d{1,3})\.(?:\d{1,3})\.(?:\d{1,3})")
_TCP = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:/\s]+):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpPlace:
    """A loopback address and port."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnixPlace:
    """The absolute path of a socket."""

    path: str


def is_loopback(host: str) -> bool:
    """Return whether *host*, without brackets, is an address of this machine's loopback; a name is none."""
    return host == "::1" or (
        _IPV4.fullmatch(host) is not None and host.isascii() and all(int(part) < 256 for part in host.split("."))
    )


def place_of(said: str) -> TcpPlace | UnixPlace:
    """
    Return the place that *said* names.

    Raises:
        ValueError: It names none, or one that other machines could reach; the text says which.
    """
    if said.startswith("unix:"):
        path = said.removeprefix("unix:")
        if not path.startswith("/") or path.endswith("/") or "\0" in path:
            raise ValueError(f"{said!r} needs an absolute path behind unix:")
        return UnixPlace(path=path)
    found = _TCP.fullmatch(said)
    if found is None:
        raise ValueError(f"{said!r} is no address with a port")
    host, port = found["host"].strip("[]"), int(found["port"])
    if not 0 < port < 65536:
        raise ValueError(f"there is no port {port}")
    if host.lower() == "localhost":
        host = "127.0.0.1"
    if is_loopback(host):
        return TcpPlace(host=host, port=port)
    raise ValueError(f"{host} could be reached from other machines; only this machine's own addresses are taken")


def why_not(said: str) -> str | None:
    """Return in words why *said* is no place for metrics, or None where it is one."""
    try:
        place_of(said)
    except ValueError as error:
        return str(error)
    return None

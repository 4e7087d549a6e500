"""
One POST to a model's endpoint: bounded in time and size, and nothing of it leaves for anywhere else.

- Bounds in time: connecting, the longest silence, the whole exchange. The last one is kept by a timer that shuts the
  socket, since a server may drip headers for ever; `stop` ends a wait the same way, from another thread.
- Bounds in size: a response is read up to `MAX_RESPONSE_BYTES`, a compressed one after unpacking too.
- No redirect is followed: it would take the key to a host that nobody configured. No proxy and no `.netrc` of the
  environment is used, for the same reason. Connections are not kept: the next question comes seconds later, and a
  stale connection looks like a server that hangs up.
- The key is put into the header as the request leaves. Errors of the HTTP library are not chained to ours, since
  they carry the request and with it the key.
"""

from __future__ import annotations

import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Mapping
from json import loads
from typing import TYPE_CHECKING, Any

from curatord import __version__
from curatord.core.cheap import dataclass
from curatord.core.endpoint import Secret, Timeouts
from curatord.core.model import Fault, FaultKind
from curatord.core.redact import redact
from curatord.errors import StoppedError

if TYPE_CHECKING:
    import httpx

__all__ = ["MAX_RESPONSE_BYTES", "KeyHeader", "ModelTransport", "Response"]

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
SIGTERM = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHeader:
    """The header that carries the key: *name*, and what stands before the key in it."""

    name: str
    prefix: str
    key: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What came back. *body* is the decoded JSON, or the beginning of a text that was none (*is_json* false)."""

    status: int
    headers: Mapping[str, str]
    body: Any
    is_json: bool


class ModelTransport:
    """
    The one user of HTTP.

    Args:
        transport: An httpx transport, for tests; None: the network.
    """

    def __init__(self, transport: httpx.BaseTransport | None = None) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._sockets: dict[int, socket.socket] = {}
        self.stopped = threading.Event()

    def stop(self) -> None:
        """End all open exchanges and every later one."""
        self.stopped.set()
        with self._lock:
            open_sockets = list(self._sockets.values())
        for sock in open_sockets:
            _shut(sock)

    def stand(self) -> None:
        """Go on, or raise `StoppedError` where we were asked to stop."""
        if self.stopped.is_set():
            raise StoppedError("asked to stop while a model was waited for", signal=SIGTERM)

    def post(
        self,
        url: str,
        content: bytes,
        *,
        headers: Mapping[str, str],
        key: KeyHeader | None,
        bounds: Timeouts,
        proxy: str | None,
    ) -> Response | Fault:
        """
        Return the response to *content*, whatever its status, or the fault that kept one from coming.

        Raises:
            StoppedError: `stop` was called.
        """
        import httpx

        self.stand()
        mine: list[socket.socket] = []
        late = threading.Event()
        timer = threading.Timer(bounds.whole, _end, (late, mine))
        timer.daemon = True
        timer.start()
        try:
            with (
                self._client(url, bounds, proxy) as client,
                client.stream(
                    "POST",
                    url,
                    content=content,
                    headers={**_HEADERS, **headers},
                    auth=_signer(key),
                    extensions={"trace": self._trace(mine, late)},
                ) as response,
            ):
                raw = _read(response)
                if isinstance(raw, Fault):
                    return raw
                if key is not None:  # servers echo it, most of all when they refuse it
                    raw = key.key.scrub_bytes(raw)
                return _decode(response.status_code, dict(response.headers), raw)
        except httpx.ConnectTimeout:
            fault = Fault(kind=FaultKind.NETWORK, message=f"no connection to {url} within {bounds.connect:.0f} s")
        except httpx.TimeoutException:
            fault = Fault(kind=FaultKind.TIMEOUT, message=f"{url} was silent for {bounds.idle:.0f} s")
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            words = redact(str(error))[:200] or type(error).__name__
            fault = Fault(kind=FaultKind.NETWORK, message=f"{url}: {key.key.scrub(words) if key else words}")
        finally:
            timer.cancel()
            with self._lock:
                for sock in mine:
                    self._sockets.pop(id(sock), None)
        self.stand()
        if late.is_set():
            return Fault(kind=FaultKind.TIMEOUT, message=f"{url} did not finish within {bounds.whole:.0f} s")
        return fault

    def _client(self, url: str, bounds: Timeouts, proxy: str | None) -> httpx.Client:
        """Return a client for one exchange."""
        import httpx

        tls = url.startswith("https:") and self._transport is None
        return httpx.Client(
            timeout=httpx.Timeout(bounds.idle, connect=bounds.connect),
            follow_redirects=False,
            trust_env=False,
            proxy=proxy,
            transport=self._transport,
            verify=_tls_context() if tls else False,
        )

    def _trace(self, mine: list[socket.socket], late: threading.Event) -> Callable[[str, Mapping[str, Any]], None]:
        """Return the hook through which the HTTP library shows its connections; they are noted in *mine* too."""

        def seen(name: str, info: Mapping[str, Any]) -> None:
            if name not in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
                return
            sock = info["return_value"].get_extra_info("socket")
            if not isinstance(sock, socket.socket):
                return
            mine.append(sock)
            with self._lock:
                self._sockets[id(sock)] = sock
            if self.stopped.is_set() or late.is_set():
                _shut(sock)

        return seen


_HEADERS = {
    "content-type": "application/json",
    "accept": "application/json",
    "accept-encoding": "identity",
    "user-agent": f"curatord/{__version__}",
}


def _end(late: threading.Event, sockets: list[socket.socket]) -> None:
    """End an exchange whose time is over."""
    late.set()
    for sock in list(sockets):
        _shut(sock)


def _shut(sock: socket.socket) -> None:
    """Wake whoever reads from *sock*."""
    try:
        # The plain method, also of a TLS socket: its own would first say goodbye in the protocol.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        return  # closed already


def _tls_context() -> ssl.SSLContext:
    """Return a context that trusts what this machine trusts (a company's own authority too) and the bundled roots."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _signer(key: KeyHeader | None) -> Callable[[httpx.Request], httpx.Request] | None:
    """Return the hook that puts the key into a request."""
    if key is None:
        return None

    def sign(request: httpx.Request) -> httpx.Request:
        request.headers[key.name] = key.prefix + key.key.reveal()
        return request

    return sign


def _read(response: httpx.Response) -> bytes | Fault:
    """Return the body, or the fault of one that is too large or packed in a way that cannot be bounded."""
    coding = response.headers.get("content-encoding", "").strip().lower() or "identity"
    if coding not in {"identity", "gzip"}:
        return Fault(kind=FaultKind.BAD_REPLY, message=f"the body is packed with {coding}, which was not asked for")
    large = Fault(kind=FaultKind.BAD_REPLY, message=f"the response is larger than {MAX_RESPONSE_BYTES:,} bytes")
    packed = bytearray()
    for chunk in response.iter_raw():
        packed += chunk
        if len(packed) > MAX_RESPONSE_BYTES:
            return large
    if coding == "identity":
        return bytes(packed)
    try:
        unpacker = zlib.decompressobj(wbits=31)
        raw = unpacker.decompress(bytes(packed), MAX_RESPONSE_BYTES)
    except zlib.error as error:
        return Fault(kind=FaultKind.BAD_REPLY, message=f"the body cannot be unpacked: {error}")
    return large if unpacker.unconsumed_tail else raw


def _decode(status: int, headers: Mapping[str, str], raw: bytes) -> Response:
    try:
        return Response(status=status, headers=headers, body=loads(raw), is_json=True)
    except (ValueError, RecursionError):
        # No JSON is an answer too: a page of a proxy, say. What it says is shown, not used.
        return Response(status=status, headers=headers, body=raw[:8_000].decode("utf-8", "replace"), is_json=False)

"""
One endpoint with everything about it worked out from the settings: the final URL, the limits, the bounds in time.

Text is never glued to text here: `normal_url` is the one place where a base URL becomes the URL that requests go to,
and `doctor` shows its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from ipaddress import ip_address
from typing import Any, Literal
from urllib.parse import urlsplit

from curatord.core.cheap import dataclass, field
from curatord.core.settings import KeyRef, LlmEndpoint, LlmPrice, LlmSettings
from curatord.errors import ConfigError

__all__ = [
    "Api",
    "Endpoint",
    "Identity",
    "Secret",
    "Timeouts",
    "endpoint_notes",
    "is_loopback",
    "normal_url",
    "workers",
]

Api = Literal["openai-chat", "anthropic-messages"]

# Sensible silences. A server of this machine thinks slowly and one that streams nothing is silent until it is done.
LOOPBACK_TIMEOUT = timedelta(seconds=600)
REMOTE_TIMEOUT = timedelta(seconds=120)
CONNECT_TIMEOUT = timedelta(seconds=10)
WHOLE_FACTOR = 3
LOOPBACK_CONTEXT = 8192
REMOTE_CONTEXT = 128_000


def is_loopback(url: str) -> bool:
    """
    Return whether *url* names this very machine; a name other than `localhost` never does, whatever it resolves to.
    """
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def normal_url(api: Api, base_url: str) -> str:
    """
    Return the one URL that requests to *base_url* go to, so that slashes and a missing or doubled `/v1` do not matter.

    A path of the user's own (`/api/paas/v4`, `/anthropic`) is kept; an empty one gets `/v1`. A query
    (`api-version=…`) stays.

    Raises:
        ConfigError: No http(s) URL, no host, or a name and password inside.
    """
    text = base_url.strip()
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise ConfigError(f"the base URL cannot be read: {error}", key="base_url") from error
    if parts.scheme.lower() not in {"http", "https"} or not parts.hostname:
        raise ConfigError(
            "the base URL must be a whole http or https URL",
            key="base_url",
            hint="write it like http://localhost:11434/v1",
        )
    if parts.username or parts.password:
        raise ConfigError(
            "the base URL holds a name or password", key="base_url", hint="keys belong into api_key: {env: NAME}"
        )
    segments = [s for s in parts.path.split("/") if s]
    tail = ["chat", "completions"] if api == "openai-chat" else ["messages"]
    if segments[-len(tail) :] == tail:
        segments = segments[: -len(tail)]
    while len(segments) >= 2 and segments[-1] == segments[-2] == "v1":
        segments.pop()
    if api == "anthropic-messages":
        if not segments or segments[-1] != "v1":
            segments.append("v1")
    elif not segments:
        segments = ["v1"]
    path = "/" + "/".join(segments + tail)
    return parts._replace(path=path, fragment="", scheme=parts.scheme.lower()).geturl()


class Secret:
    """
    A key in memory whose text no message, log, `repr` or traceback with locals will show; `reveal` is for the header.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the key itself; only the code that sets a request's header has a reason to call this."""
        return self._text

    def scrub(self, text: str) -> str:
        """Return *text* without the key in it, whoever echoed it (servers do, in their error messages)."""
        return text.replace(self._text, "[redacted:api-key]") if len(self._text) >= 4 else text

    def scrub_bytes(self, raw: bytes) -> bytes:
        """Return *raw* without the key in it."""
        return raw.replace(self._text.encode(), b"[redacted:api-key]") if len(self._text) >= 4 else raw

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a key is not to be copied to disk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """
    How long one HTTP exchange may take, in seconds.

    *connect* until the connection stands; *idle* the longest silence, before the first byte as well as between two;
    *whole* the end of the exchange whatever the server drips.
    """

    connect: float
    idle: float
    whole: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """
    One model behind one URL, ready to be asked.

    *timeout* of None means 600 s of silence for a server of this machine, which says nothing while a slow model
    thinks, and 120 s for others. *proxy* is the only way to a proxy: the environment's variables are not used, since
    a forgotten one would send transcripts to a host that the configuration does not name.
    """

    api: Api
    base_url: str
    model: str
    api_key: KeyRef | None = None
    timeout: timedelta | None = None
    context_tokens: int | None = None
    max_output_tokens: int = 8192
    price: LlmPrice | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    proxy: str | None = None
    provider: str = ""

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise ConfigError("no model is named", key="model")
        normal_url(self.api, self.base_url)
        if self.timeout is not None and not timedelta(0) < self.timeout <= timedelta(days=1):
            raise ConfigError(f"a timeout of {self.timeout} makes no sense", key="timeout")
        if self.context_tokens is not None and self.context_tokens < 1024:
            raise ConfigError("a context below 1024 tokens holds no question", key="context_tokens")
        if self.max_output_tokens < 64:
            raise ConfigError("an answer needs at least 64 tokens", key="max_output_tokens")

    @classmethod
    def of(cls, settings: LlmEndpoint) -> Endpoint:
        """Return the endpoint that *settings* describe."""
        return cls(
            api=settings.api,
            base_url=settings.base_url,
            model=settings.model,
            api_key=settings.api_key,
            timeout=settings.timeout,
            context_tokens=settings.context_tokens,
            max_output_tokens=settings.max_output_tokens,
            price=settings.price,
            extra_body=settings.extra_body,
        )

    @property
    def url(self) -> str:
        """The URL that requests go to."""
        return normal_url(self.api, self.base_url)

    @property
    def loopback(self) -> bool:
        """Whether the server runs on this machine."""
        return is_loopback(self.base_url)

    @property
    def context(self) -> int:
        """Tokens that prompt and answer may have together."""
        return self.context_tokens or (LOOPBACK_CONTEXT if self.loopback else REMOTE_CONTEXT)

    @property
    def output_limit(self) -> int:
        """
        Tokens kept for the answer: the smaller of `max_output_tokens` and a quarter of the context (contract,
        section 4).
        """
        return min(self.max_output_tokens, self.context // 4)

    @property
    def timeouts(self) -> Timeouts:
        """The bounds in time of one exchange."""
        idle = (self.timeout or (LOOPBACK_TIMEOUT if self.loopback else REMOTE_TIMEOUT)).total_seconds()
        return Timeouts(connect=min(CONNECT_TIMEOUT.total_seconds(), idle), idle=idle, whole=idle * WHOLE_FACTOR)


def endpoint_notes(endpoint: Endpoint, environment: Mapping[str, str]) -> tuple[str, ...]:
    """
    Return what `doctor` should say about *endpoint*: nothing wrong, but better known. *environment*: of the process.
    """
    notes = []
    if endpoint.url.startswith("http:") and not endpoint.loopback:
        what = "transcripts and the key" if endpoint.api_key else "transcripts"
        notes.append(f"{what} go unencrypted to {urlsplit(endpoint.url).hostname}: the URL begins with http:")
    proxies = sorted(n for n, v in environment.items() if v and n.lower() in {"https_proxy", "http_proxy", "all_proxy"})
    if proxies and not endpoint.loopback and endpoint.proxy is None:
        notes.append(f"{', '.join(proxies)} of the environment is not used")
    return tuple(notes)


def workers(settings: LlmSettings) -> int:
    """
    Return how many requests may be open at a time.

    By default one for a server of this machine, which somebody is working with (bugs B028), and for a host's own
    model, which we cannot tell; four else.
    """
    if settings.concurrency is not None:
        return max(1, settings.concurrency)
    return 1 if settings.primary is None or is_loopback(settings.primary.base_url) else 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """
    Which model at which endpoint is really meant, for reports, for remembered answers and for the breaker.

    *fingerprint* changes when endpoint, model or key change; it is a short hash and tells nothing of the key.
    """

    api: Api
    provider: str
    url: str
    model: str
    fingerprint: str
    context_tokens: int
    output_limit: int
    loopback: bool
    price: LlmPrice | None = None

    @property
    def key(self) -> str:
        """What is remembered about a server is filed under this."""
        return f"{self.api} {self.url} {self.model}"

"""
The values between a pass that has a question and an endpoint that answers it.

A `Request` is text only: a system prompt, one user message, the schema of the reply. A `Reply` is text and its bill.
What goes wrong is a `Fault` with a kind, carried by one of two errors: an `EndpointError` says that the endpoint
cannot work (the fallback may be asked), a `ReplyError` that it worked and the answer cannot be used (asking another
model for luck would be spending without a reason).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from json import dumps
from typing import Any, Literal

from curatord.core.cheap import dataclass, field
from curatord.errors import ModelMisbehavedError, ModelUnavailableError

__all__ = [
    "BREAKING_KINDS",
    "ENDPOINT_KINDS",
    "TASKS",
    "TRANSIENT_KINDS",
    "Bill",
    "EndpointError",
    "Fault",
    "FaultKind",
    "Message",
    "Reply",
    "ReplyError",
    "Request",
    "Task",
    "Usage",
]

Task = Literal["survey", "merge", "distil"]
TASKS: tuple[Task, ...] = ("survey", "merge", "distil")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """
    One question, redacted and complete. *system* never changes within a task, so it stands first for the servers'
    prompt caches.

    *schema* is a JSON schema or None; *max_output_tokens* None means what the endpoint's configuration allows.
    """

    task: str
    system: str
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    max_output_tokens: int | None = None

    @property
    def sha256(self) -> str:
        """The identity of all the words that leave the machine."""
        rows = [["system", self.system], *([m.role, m.text] for m in self.messages)]
        return sha256(dumps(rows, ensure_ascii=True).encode()).hexdigest()

    @property
    def chars(self) -> int:
        """Characters of all its texts."""
        return len(self.system) + sum(len(m.text) for m in self.messages)

    @property
    def text(self) -> str:
        """All its texts in a row, for counting."""
        return self.system + "".join(m.text for m in self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """
    Tokens of one or more exchanges. *cached_tokens* are those of *input_tokens* that a prompt cache served.

    *estimated*: the server gave no count (or not for all), so the numbers are ours.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False

    @property
    def tokens(self) -> int:
        """All tokens, cached ones too."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            estimated=self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """
    What one exchange cost: usage, dollars (None: unknown, neither a price nor the server's word), HTTP requests sent.
    """

    usage: Usage = field(default_factory=Usage)
    usd: float | None = None
    requests: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """
    An answer that came whole, with its terminal marker. *notes* are oddities a person should know of (a limit ignored).
    """

    text: str
    bill: Bill
    model: str = ""  # what the server says it used
    notes: tuple[str, ...] = ()


class FaultKind(StrEnum):
    """What went wrong with one exchange; the word is what reports show."""

    CONFIG = "not usable as configured"
    AUTH = "key refused"
    PAYMENT = "payment"
    MODEL_UNKNOWN = "model or address unknown"
    REDIRECT = "redirected"
    NETWORK = "unreachable"
    TIMEOUT = "timed out"
    RATE = "rate limited"
    DEFERRED = "deferred"
    SERVER = "server error"
    BAD_REPLY = "bad reply"
    BREAKER = "breaker open"
    TOO_LONG = "prompt too long"
    BAD_REQUEST = "request refused"
    CUT = "reply cut"
    NO_ANSWER = "no answer"
    PROMPT_CUT = "prompt cut"
    REFUSED = "refused by the model"
    INVALID = "invalid reply"
    TOO_LARGE = "reply too large"


# The endpoint cannot work, so another one may be asked. The rest are about this question or this answer.
ENDPOINT_KINDS = frozenset(
    {
        FaultKind.CONFIG, FaultKind.AUTH, FaultKind.PAYMENT, FaultKind.MODEL_UNKNOWN, FaultKind.REDIRECT,
        FaultKind.NETWORK, FaultKind.TIMEOUT, FaultKind.RATE, FaultKind.DEFERRED, FaultKind.SERVER,
        FaultKind.BAD_REPLY, FaultKind.BREAKER,
    }
)  # fmt: skip
TRANSIENT_KINDS = frozenset(
    {FaultKind.NETWORK, FaultKind.TIMEOUT, FaultKind.RATE, FaultKind.SERVER, FaultKind.BAD_REPLY}
)
BREAKING_KINDS = frozenset({FaultKind.AUTH, FaultKind.PAYMENT, FaultKind.MODEL_UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """
    One failure in words a user can act on.

    *words* are the provider's own, redacted and bounded; *retry_after* is in seconds as the server said; *until* is
    when asking again makes sense, where that is known.
    """

    kind: FaultKind
    message: str
    status: int | None = None
    words: str = ""
    retry_after: float | None = None
    until: datetime | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return what `run.json` holds of it."""
        return {
            "kind": self.kind.value,
            "message": self.message,
            "status": self.status,
            "words": self.words,
            "until": self.until.isoformat() if self.until else None,
        }


class EndpointError(ModelUnavailableError):
    """The endpoint cannot work now: key, account, address, network, load. *bill* is what was spent in finding out."""

    def __init__(self, fault: Fault, *, bill: Bill | None = None, hint: str = "") -> None:
        super().__init__(f"{fault.kind.value}: {fault.message}", retry_after=fault.retry_after, hint=hint)
        self.fault = fault
        self.bill = bill or Bill()


class ReplyError(ModelMisbehavedError):
    """
    The endpoint worked and the question or the answer is the trouble. *text* is the whole useless reply, *bill* its
    cost.
    """

    def __init__(self, fault: Fault, *, text: str = "", bill: Bill | None = None, hint: str = "") -> None:
        super().__init__(f"{fault.kind.value}: {fault.message}", hint=hint)
        self.fault = fault
        self.text = text
        self.bill = bill or Bill()

"""
What an endpoint's failure means: one table from status, code and words to a `FaultKind`, for every provider alike.

The status alone misleads: out of credit comes as 402, 429, 403 or 400, a model that is not offered as 401 or 400, a
prompt that is too long as 400, 413 or 500, and any of them as an error object in a 200 (bugs B135, B137, B138,
B139). So the words are asked first, the provider's code word next, the number last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from curatord.core.model import Fault, FaultKind
from curatord.core.redact import redact

__all__ = ["RETRY_CAP", "classify", "error_words", "retry_after"]

# A server that wants to be left alone for longer ends the pass as deferred; nobody sits and waits for two weeks
# (bugs B134).
RETRY_CAP = timedelta(minutes=15)
MAX_WORDS = 300


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


PAYMENT = _any(
    r"insufficient[_ ](?:quota|credit|fund|balance)",
    r"exceeded your current quota|quota[_ ]exceeded",
    r"billing|payment|arrears|hard limit|spending limit",
    r"credit balance|out of credit|requires more credits|not enough (?:credit|balance)|balance is too low",
)
TOO_LONG = _any(
    r"context[_ ]length|context window|context size|maximum context",
    r"(?:prompt|input) (?:is )?too long|input length|reduce the length|string_above_max_length",
    r"too many (?:input )?tokens|max(?:imum)?[_ ]?(?:input|prompt)[_ ]?tokens",
    r"exceeds? the (?:limit|maximum|max) of \d+ (?:input )?tokens",
    r"request_too_large|payload too large|request entity too large",
)
MODEL = _any(
    r"model[_ ]not[_ ]found|(?:unknown|invalid|no such|unsupported) model|not a valid model|access to (?:the )?model",
    r"model[^.\n]{0,80}(?:does not exist|not found|not (?:available|offered|supported|accessible|loaded))",
    r"model[^.\n]{0,80}(?:unknown|is invalid|no access|not have access|deprecated|retired)",
    r"try pulling it|no endpoints found",
)
AUTH = _any(
    r"(?:invalid|incorrect|missing|no|bad|expired|revoked)[_ ](?:x-)?(?:api[_ -]?key|auth\w{0,20}|credentials?|token)",
    r"authentication|unauthori[sz]ed",
)
RATE = _any(r"rate[_ -]?limit|too many requests|slow down|tokens per (?:min|day)|requests per")
OVERLOADED = _any(r"overloaded|server is busy|temporarily unavailable|at capacity|try again later")

# Words that Anthropic and OpenAI put into `type` or `code`, as the status they come with.
CODES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "internal_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
BY_STATUS = {
    401: FaultKind.AUTH,
    402: FaultKind.PAYMENT,
    403: FaultKind.AUTH,
    404: FaultKind.MODEL_UNKNOWN,
    405: FaultKind.MODEL_UNKNOWN,
    407: FaultKind.AUTH,
    410: FaultKind.MODEL_UNKNOWN,
    413: FaultKind.TOO_LONG,
    429: FaultKind.RATE,
}
BUSY_STATUS = frozenset({408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})


def error_words(body: Any) -> tuple[str, str, int | None]:
    """
    Return the message, the code word and the status that an error *body* holds, as far as it does.

    Args:
        body: A decoded JSON value, or text that was none.
    """
    if isinstance(body, str):
        return " ".join(body.split()), "", None
    if not isinstance(body, Mapping):
        return "", "", None
    error = body.get("error", body)
    if isinstance(error, str):
        return error, "", None
    if not isinstance(error, Mapping):
        return "", "", None
    words = next((error[k] for k in ("message", "detail", "msg", "error_description", "error") if error.get(k)), "")
    codes = [str(error[k]) for k in ("code", "type", "status") if error.get(k)]
    numbers = [int(c) for c in codes if c.isascii() and c.isdigit() and len(c) == 3]
    named = [CODES[c.lower()] for c in codes if c.lower() in CODES]
    word = " ".join(c for c in codes if not c.isdigit())
    return words if isinstance(words, str) else str(words), word, (numbers + named + [None])[0]


def classify(
    status: int, body: Any, *, url: str = "", model: str = "", wait_s: float | None = None, now: datetime
) -> Fault:
    """
    Return the fault that an answer with *status* and error *body* is.

    Args:
        status: HTTP status; 200 where an error object came in a success.
        body: A decoded JSON value, or text.
        url: The URL tried, for the message of what is not found.
        model: The model asked for, likewise.
        wait_s: What `retry_after` read.
        now: For the date until which a long wait lasts.
    """
    message, word, inner = error_words(body)
    number = inner if status < 400 and inner is not None else status
    everything = f"{word} {message}"[:4_000]
    kind = _kind(number, word, everything)
    words = _clean(message)
    until = None
    if kind in {FaultKind.RATE, FaultKind.SERVER} and wait_s is not None and wait_s > RETRY_CAP.total_seconds():
        kind = FaultKind.DEFERRED
        until = now + timedelta(seconds=min(wait_s, 366 * 86_400.0))
    said = f": {words}" if words else ""
    text = {
        FaultKind.MODEL_UNKNOWN: f"{number} for model {model!r} at {url}{said}",
        FaultKind.DEFERRED: f"the server asks to come back {until:%Y-%m-%d %H:%M} UTC{said}" if until else "",
    }.get(kind, f"status {number}{said}")
    return Fault(kind=kind, message=text, status=number, words=words, retry_after=wait_s, until=until)


def _kind(number: int, word: str, everything: str) -> FaultKind:
    """Return the kind for a status *number*, a code *word* and all the words."""
    if number in {429, 402, 403, 400} and PAYMENT.search(everything):
        return FaultKind.PAYMENT
    if number in {400, 413, 422, 500} and TOO_LONG.search(everything):
        return FaultKind.TOO_LONG
    if number in {400, 401, 403, 404, 422} and MODEL.search(everything):
        return FaultKind.MODEL_UNKNOWN
    if number in BY_STATUS:
        return BY_STATUS[number]
    if number in BUSY_STATUS or number >= 500:
        return FaultKind.SERVER
    if 300 <= number < 400:
        return FaultKind.REDIRECT
    if number >= 400:
        return FaultKind.BAD_REQUEST
    return _kind_by_words(f"{word} {everything}")


def _kind_by_words(everything: str) -> FaultKind:
    """Return the kind where an error came with a success and without a number."""
    for pattern, kind in (
        (PAYMENT, FaultKind.PAYMENT),
        (TOO_LONG, FaultKind.TOO_LONG),
        (MODEL, FaultKind.MODEL_UNKNOWN),
        (AUTH, FaultKind.AUTH),
        (RATE, FaultKind.RATE),
        (OVERLOADED, FaultKind.SERVER),
    ):
        if pattern.search(everything):
            return kind
    return FaultKind.BAD_REPLY


def _clean(text: str) -> str:
    """Return a provider's words on one line, redacted, without control characters, and bounded."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:4_000]).split())
    line = redact(line)
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """
    Return the seconds that a server asks to wait, or None where it says nothing that can be understood.

    `retry-after-ms` counts before `retry-after`, which may be seconds or a date (bugs B133). Never negative.
    """
    millis = _number(headers.get("retry-after-ms", ""))
    if millis is not None:
        return millis / 1000
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())


def _number(text: str) -> float | None:
    """Return *text* as a finite number from 0, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e12 else None

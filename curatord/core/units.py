"""
Durations and sizes as people write them: `90d`, `1h30m`, `8KiB`.

Reading refuses what is ambiguous (a bare number has no unit, `1m` is a minute, months and years are no fixed lengths).
Writing gives the shortest form that reads back to the same value.
"""

from __future__ import annotations

import re
from datetime import timedelta

__all__ = ["LONGEST", "ByteSize", "format_duration", "format_size", "parse_duration", "parse_size"]

# Beyond this a date minus a duration leaves the calendar; nobody means it.
LONGEST = timedelta(days=365_000)

_SECONDS = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_ONE_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[wdhms])")
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|[wdhms])\s*)+")

_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}
_SIZE = r"([0-9]+(?:\.[0-9]+)?)\s*(B|KiB|MiB|GiB|kB|MB|GB)"


def parse_duration(text: str) -> timedelta:
    """
    Return the duration that *text* says: `90d`, `2h`, `1h30m`, `1.5h`, `250ms`; `0` alone needs no unit.

    A sign in front is read, so that a caller can say "negative" instead of "not a duration".

    Raises:
        ValueError: It is no duration, has no unit, or is longer than `LONGEST`.
    """
    body = text.strip()
    sign = 1
    if body[:1] in ("-", "+"):
        sign = -1 if body[0] == "-" else 1
        body = body[1:].strip()
    if body == "0":
        return timedelta(0)
    if len(body) > 60 or not _DURATION.fullmatch(body):
        raise ValueError("write a number with a unit, such as 90d, 2h, 10m, 30s or 1h30m")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _ONE_DURATION.findall(body))
    if seconds > LONGEST.total_seconds():
        raise ValueError("longer than a thousand years")
    return sign * timedelta(seconds=seconds)


def format_duration(value: timedelta) -> str:
    """Return the shortest text that reads back to *value*, to the millisecond: `1d12h`, `90d`, `0s`."""
    millis = round(value / timedelta(milliseconds=1))
    sign, millis = ("-", -millis) if millis < 0 else ("", millis)
    parts = []
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)):
        count, millis = divmod(millis, length)
        if count:
            parts.append(f"{count}{unit}")
    return sign + ("".join(parts) or "0s")


class ByteSize(int):
    """A number of bytes that is said again with its unit."""


def parse_size(text: str) -> ByteSize:
    """
    Return the number of bytes that *text* says: `8KiB`, `1.5MiB`, `10kB`, `512B`; `0` alone needs no unit.

    Raises:
        ValueError: It is no size, or has no unit.
    """
    body = text.strip()
    if body == "0":
        return ByteSize(0)
    found = re.fullmatch(_SIZE, body) if len(body) <= 40 else None
    if found is None:
        raise ValueError("write a number with a unit, such as 512B, 8KiB or 2MiB")
    return ByteSize(round(float(found[1]) * _BYTES[found[2]]))


def format_size(value: int) -> str:
    """Return the shortest exact text that `parse_size` reads back to *value* bytes: `8KiB`, `1000B`."""
    for unit in ("GiB", "MiB", "KiB"):
        if value and value % _BYTES[unit] == 0:
            return f"{value // _BYTES[unit]}{unit}"
    return f"{value}B"

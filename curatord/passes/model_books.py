"""What outlives a run about models: what servers take, open breakers, what each day has spent, the last error."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from curatord.core.budget import Spend
from curatord.errors import StateCorruptError
from curatord.passes.consult import Exchange

__all__ = ["Facts", "ModelBooks"]

DAYS_KEPT = 8
SPEND = "model spend"
LAST_ERROR = "model last error"


class Facts(Protocol):
    """Small texts by key that are kept at once; the store's `meta` and `set_meta`."""

    def meta(self, key: str) -> str | None:
        """Return a small fact, or None."""
        ...

    def set_meta(self, key: str, value: str | None) -> None:
        """Keep a small fact; None forgets it."""
        ...


class ModelBooks:
    """
    An `EndpointMemory`, and the account of days. May be called from several threads.

    The daily budget survives restarts through it (bugs B029). Two processes that book in the same moment may lose
    one of the two bills; whoever writes runs holds the work lock, so that does not happen in practice.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._lock = threading.Lock()

    def recall(self, key: str) -> Mapping[str, Any] | None:
        """Return what was kept under *key*; what cannot be read is nothing, it costs one request to find out again."""
        text = self._facts.meta(_of_endpoint(key))
        try:
            row = json.loads(text) if text is not None else None
        except ValueError:
            return None
        return row if isinstance(row, Mapping) else None

    def keep(self, key: str, value: Mapping[str, Any] | None) -> None:
        """Keep *value* under *key*; None forgets."""
        self._facts.set_meta(_of_endpoint(key), None if value is None else json.dumps(value))

    def book(self, exchange: Exchange) -> None:
        """Add an exchange's bill to its UTC day and to the total; keep its error as the last one."""
        day = f"{exchange.at:%Y-%m-%d}"
        with self._lock:
            days, total = self._read()
            days[day] = days.get(day, Spend()).plus(exchange.bill)
            kept = sorted(days)[-DAYS_KEPT:]
            row = {
                "days": {name: days[name].as_dict() for name in kept},
                "total": total.plus(exchange.bill).as_dict(),
            }
            self._facts.set_meta(SPEND, json.dumps(row))
            if exchange.fault is not None:
                fault = {"at": exchange.at.isoformat(), "model": exchange.model, **exchange.fault.as_dict()}
                self._facts.set_meta(LAST_ERROR, json.dumps(fault))

    def spent_on(self, now: datetime) -> Spend:
        """
        Return what the UTC day of *now* has spent.

        Raises:
            StateCorruptError: The record cannot be read; a budget must not begin anew because of that.
        """
        return self._read()[0].get(f"{now:%Y-%m-%d}", Spend())

    def spent_ever(self) -> Spend:
        """Return all that was ever spent. Raises as `spent_on`."""
        return self._read()[1]

    def last_error(self) -> Mapping[str, Any] | None:
        """Return the last exchange's error with its time, or None."""
        text = self._facts.meta(LAST_ERROR)
        return json.loads(text) if text is not None else None

    def _read(self) -> tuple[dict[str, Spend], Spend]:
        text = self._facts.meta(SPEND)
        if text is None:
            return {}, Spend()
        try:
            row = json.loads(text)
            return {day: Spend.from_dict(spend) for day, spend in row["days"].items()}, Spend.from_dict(row["total"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StateCorruptError(
                f"the record of what models cost ({SPEND!r} in the state database) cannot be read: {error}",
                hint="no daily budget can be kept without it; restore the database, or remove that row to begin anew",
            ) from error


def _of_endpoint(key: str) -> str:
    return f"model {key}"

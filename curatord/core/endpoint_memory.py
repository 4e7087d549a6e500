"""
What is remembered about an endpoint from one process to the next: which forms it takes, and whether it is worth asking.

Both are plain values with a JSON form. A row that cannot be read is no row: forgetting costs one request.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from curatord.core.cheap import dataclass
from curatord.core.model import BREAKING_KINDS, Fault, FaultKind

__all__ = ["BREAKER_WAIT", "STRUCTURES", "Breaker", "Structure", "Takes"]

# A breaker that opened for the key or the account stays open this long unless the configuration changes: long enough
# that an idle daemon asks four times a day and not a thousand times an hour, short enough that a topped-up account
# is found by itself.
BREAKER_WAIT = timedelta(hours=6)

Structure = Literal["json_schema", "json_object+schema", "json_object", "none"]
STRUCTURES: tuple[Structure, ...] = ("json_schema", "json_object+schema", "json_object", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Takes:
    """
    What a server was found to take: how to ask for structure, the name of the output limit, whether a temperature.
    """

    structure: Structure = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens", "none"] = "max_tokens"
    temperature: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return a value that can be kept as JSON."""
        return {"structure": self.structure, "limit": self.limit, "temperature": self.temperature}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Takes | None:
        """
        Return what *row* says, or None where it is not ours or of another version: the ladder is then climbed again.
        """
        structure, limit, temperature = row.get("structure"), row.get("limit"), row.get("temperature")
        if structure not in STRUCTURES or limit not in {"max_tokens", "max_completion_tokens", "none"}:
            return None
        if not isinstance(temperature, bool):
            return None
        return cls(structure=structure, limit=limit, temperature=temperature)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """
    An endpoint that is not worth asking: why, since when, until when, and for which configuration.

    It closes by itself when *until* has passed, and at once when the fingerprint differs: a new key or model was set.
    """

    kind: FaultKind
    message: str
    opened_at: datetime
    until: datetime
    fingerprint: str

    def holds(self, now: datetime, fingerprint: str) -> bool:
        """Return whether the endpoint with *fingerprint* should still be left alone at *now*."""
        return fingerprint == self.fingerprint and self.opened_at <= now < self.until

    def as_dict(self) -> dict[str, Any]:
        """Return a value that can be kept as JSON."""
        return {
            "kind": self.kind.value,
            "message": self.message,
            "opened_at": self.opened_at.isoformat(),
            "until": self.until.isoformat(),
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Breaker | None:
        """Return the breaker *row* holds, or None where it cannot be read: a lost breaker costs one request."""
        try:
            opened_at, until = datetime.fromisoformat(row["opened_at"]), datetime.fromisoformat(row["until"])
            if opened_at.tzinfo is None or until.tzinfo is None:
                return None
            return cls(
                kind=FaultKind(row["kind"]),
                message=str(row["message"]),
                opened_at=opened_at,
                until=until,
                fingerprint=str(row["fingerprint"]),
            )
        except (KeyError, TypeError, ValueError):
            return None

    @classmethod
    def after(cls, fault: Fault, fingerprint: str, now: datetime) -> Breaker | None:
        """
        Return the breaker that *fault* opens, or None: only key, account, model and a long deferral are worth one.
        """
        if fault.kind in BREAKING_KINDS:
            until = now + BREAKER_WAIT
        elif fault.kind is FaultKind.DEFERRED and fault.until is not None and fault.until > now:
            until = fault.until
        else:
            return None
        return cls(kind=fault.kind, message=fault.message, opened_at=now, until=until, fingerprint=fingerprint)

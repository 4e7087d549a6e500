"""
What model calls may spend, and what they have spent.

When each limit is checked: **before** a call, with its estimate and with the estimates of all calls that are still open
(several run at once), so a call that would pass a limit is not made and nothing was spent on it; and **after** it,
the bill takes the estimate's place. A bill may be larger than its estimate, so a limit can be passed by at most what
the open calls were billed above theirs; the next call is then refused. Wall time is checked before a call, and is
the call's deadline.

Dollars are checked only as far as they are known: a model without a price costs an unknown amount, which is counted as
unknown and never as nothing spent. Cached tokens count as tokens and are booked apart. A day is a UTC day.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curatord.core.cheap import dataclass, field, replace
from curatord.core.model import Bill, Usage
from curatord.core.settings import LlmBudget, LlmPrice

__all__ = ["Budget", "Estimate", "Exhausted", "Spend", "estimate_tokens", "least_tokens", "price_of"]


def estimate_tokens(text: str) -> int:
    """
    Return about how many tokens *text* is for a usual tokenizer, rather too many than too few.

    English prose is at 4 to 5 characters a token, code and JSON at 3 to 4, Cyrillic near 2, Chinese near 1.3.
    Counted are 3.6 ASCII characters and 1.3 others.
    """
    ascii_chars = len(text.encode("ascii", "ignore"))
    return -(-ascii_chars * 5 // 18) + -(-(len(text) - ascii_chars) * 3 // 4)


def least_tokens(text: str) -> int:
    """Return how many tokens *text* has at the very least: a server that counts fewer has not read all of it."""
    return len(text) // 8


def price_of(usage: Usage, price: LlmPrice | None) -> float | None:
    """Return the dollars that *usage* costs, or None where there is no price."""
    if price is None:
        return None
    fresh = usage.input_tokens - usage.cached_tokens
    total = fresh * price.input + usage.cached_tokens * price.cached_input + usage.output_tokens * price.output
    return total / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a call will probably take. *usd* None: unknown."""

    tokens: int
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """
    What was spent. *usd* is the known part; *unpriced_calls* were billed in tokens only, so more than *usd* was spent.
    """

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    usd: float = 0.0
    unpriced_calls: int = 0

    def plus(self, bill: Bill) -> Spend:
        """Return the sum of this and *bill*. A call that used no token costs nothing, whatever the price."""
        unknown = bill.usd is None and bill.usage.tokens > 0
        return Spend(
            calls=self.calls + bill.requests,
            usage=self.usage + bill.usage,
            usd=self.usd + (bill.usd or 0.0),
            unpriced_calls=self.unpriced_calls + int(unknown),
        )

    @property
    def known_usd(self) -> float | None:
        """Dollars, or None where some call's cost is unknown; *usd* is then the least that was spent."""
        return None if self.unpriced_calls else self.usd

    def as_dict(self) -> dict[str, Any]:
        """Return a value that can be kept as JSON."""
        return {
            "calls": self.calls,
            "input": self.usage.input_tokens,
            "cached": self.usage.cached_tokens,
            "output": self.usage.output_tokens,
            "estimated": self.usage.estimated,
            "usd": self.usd,
            "unpriced_calls": self.unpriced_calls,
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Spend:
        """
        Return the spend that *row* holds.

        Raises:
            ValueError: It is not ours; a budget must not begin at zero because a record was damaged.
        """
        try:
            return cls(
                calls=int(row["calls"]),
                usage=Usage(
                    input_tokens=int(row["input"]),
                    cached_tokens=int(row["cached"]),
                    output_tokens=int(row["output"]),
                    estimated=bool(row["estimated"]),
                ),
                usd=float(row["usd"]),
                unpriced_calls=int(row["unpriced_calls"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"a record of model spending cannot be read: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted:
    """
    A call that is not to be made: which *limit* (the key of the configuration) and why.

    *alone*: it passes the limit by itself, so no later time is a better one.
    """

    limit: str
    reason: str
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """
    Limits, what this run and this UTC day have spent (the day includes the run), and what open calls will probably
    take.

    Every change returns a new value; whoever shares one between threads does so under a lock.
    """

    limits: LlmBudget
    run: Spend = field(default_factory=Spend)
    day: Spend = field(default_factory=Spend)
    open_calls: int = 0
    open_tokens: int = 0
    open_usd: float = 0.0

    def check(self, estimate: Estimate, *, elapsed_s: float) -> Exhausted | None:
        """
        Return why a call of *estimate* must not be made now, or None. *elapsed_s*: seconds since the run's first call.
        """
        limits = self.limits
        wall = limits.wall_per_run.total_seconds()
        if elapsed_s >= wall:
            return Exhausted(
                limit="wall_per_run", reason=f"the run's model calls took {elapsed_s:.0f} s of {wall:.0f} s"
            )
        if self.run.calls + self.open_calls + 1 > limits.calls_per_run:
            return Exhausted(limit="calls_per_run", reason=f"all {limits.calls_per_run} calls of the run were made")
        for name, spent, limit in (
            ("tokens_per_run", self.run, limits.tokens_per_run),
            ("tokens_per_day", self.day, limits.tokens_per_day),
        ):
            total = spent.usage.tokens + self.open_tokens + estimate.tokens
            if total > limit:
                reason = f"the next call would make about {total:,} tokens of {limit:,}"
                return Exhausted(limit=name, reason=reason, alone=estimate.tokens > limit)
        for name, spent, ceiling in (
            ("usd_per_run", self.run, limits.usd_per_run),
            ("usd_per_day", self.day, limits.usd_per_day),
        ):
            known = spent.usd + self.open_usd + (estimate.usd or 0.0)
            if known > ceiling or (spent.usd >= ceiling and estimate.usd != 0.0):
                reason = f"the next call would make about ${known:.4f} of ${ceiling:.2f}"
                return Exhausted(limit=name, reason=reason, alone=(estimate.usd or 0.0) > ceiling)
        return None

    def reserve(self, estimate: Estimate) -> Budget:
        """Return the budget with a call of *estimate* open."""
        return replace(
            self,
            open_calls=self.open_calls + 1,
            open_tokens=self.open_tokens + estimate.tokens,
            open_usd=self.open_usd + (estimate.usd or 0.0),
        )

    def settle(self, estimate: Estimate, bill: Bill) -> Budget:
        """Return the budget with *bill* in the place of *estimate*."""
        open_calls = self.open_calls - 1
        return replace(
            self,
            run=self.run.plus(bill),
            day=self.day.plus(bill),
            open_calls=open_calls,
            open_tokens=self.open_tokens - estimate.tokens,
            open_usd=self.open_usd - (estimate.usd or 0.0) if open_calls else 0.0,  # no dust of subtraction stays
        )

    @property
    def requests_left(self) -> int:
        """HTTP requests that this run may still send beside those that are open."""
        return max(0, self.limits.calls_per_run - self.run.calls - self.open_calls)

    def left(self) -> dict[str, Any]:
        """Return what is left of each limit, as `run.json` shows it (`budget_left`)."""
        return {
            "tokens_per_run": max(0, self.limits.tokens_per_run - self.run.usage.tokens),
            "tokens_per_day": max(0, self.limits.tokens_per_day - self.day.usage.tokens),
            "usd_per_run": round(max(0.0, self.limits.usd_per_run - self.run.usd), 6),
            "usd_per_day": round(max(0.0, self.limits.usd_per_day - self.day.usd), 6),
            "calls_per_run": max(0, self.limits.calls_per_run - self.run.calls),
            "usd_known": self.run.unpriced_calls == 0,
        }

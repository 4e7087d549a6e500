"""The budget: what is refused, what is booked, and that it never forgets."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.budget import Budget, Estimate, Exhausted, Spend, estimate_tokens, least_tokens, price_of
from curatord.core.model import Bill, Usage
from curatord.core.settings import LlmBudget, LlmPrice

LIMITS = LlmBudget(
    tokens_per_run=1000,
    tokens_per_day=5000,
    usd_per_run=1.0,
    usd_per_day=2.0,
    calls_per_run=3,
    wall_per_run=timedelta(seconds=60),
)


def a_bill(tokens: int = 100, usd: float | None = 0.1, requests: int = 1) -> Bill:
    """Return a bill with defaults."""
    return Bill(usage=Usage(input_tokens=tokens), usd=usd, requests=requests)


CASES = [
    (Budget(limits=LIMITS), Estimate(tokens=1000, usd=1.0), 0.0, None),
    (Budget(limits=LIMITS), Estimate(tokens=1001), 0.0, "tokens_per_run"),
    (Budget(limits=LIMITS, day=Spend(usage=Usage(input_tokens=4500))), Estimate(tokens=501), 0.0, "tokens_per_day"),
    (Budget(limits=LIMITS), Estimate(tokens=1, usd=1.01), 0.0, "usd_per_run"),
    (Budget(limits=LIMITS, day=Spend(usd=1.5)), Estimate(tokens=1, usd=0.51), 0.0, "usd_per_day"),
    (Budget(limits=LIMITS, day=Spend(usd=2.5)), Estimate(tokens=1), 0.0, "usd_per_day"),
    (Budget(limits=LIMITS, day=Spend(usd=2.5)), Estimate(tokens=1, usd=0.0), 0.0, "usd_per_day"),
    (Budget(limits=LIMITS, run=Spend(calls=3)), Estimate(tokens=1), 0.0, "calls_per_run"),
    (Budget(limits=LIMITS, run=Spend(calls=2), open_calls=1), Estimate(tokens=1), 0.0, "calls_per_run"),
    (Budget(limits=LIMITS, open_tokens=900), Estimate(tokens=101), 0.0, "tokens_per_run"),
    (Budget(limits=LIMITS, open_usd=0.9), Estimate(tokens=1, usd=0.2), 0.0, "usd_per_run"),
    (Budget(limits=LIMITS), Estimate(tokens=1), 60.0, "wall_per_run"),
]


@pytest.mark.parametrize(("budget", "estimate", "elapsed", "limit"), CASES)
def test_the_limit_that_would_be_passed_is_named(
    budget: Budget, estimate: Estimate, elapsed: float, limit: str | None
) -> None:
    """Each limit, with what is spent, what is open and what comes."""
    found = budget.check(estimate, elapsed_s=elapsed)

    assert limit == (found.limit if isinstance(found, Exhausted) else None)


def test_a_bill_takes_the_place_of_its_estimate() -> None:
    """Nothing stays open, and run and day both know."""
    estimate = Estimate(tokens=500, usd=0.3)
    budget = Budget(limits=LIMITS).reserve(estimate)
    settled = budget.settle(estimate, a_bill(80, 0.05))

    assert (budget.open_calls, budget.open_tokens, budget.open_usd) == (1, 500, 0.3)
    assert (settled.open_calls, settled.open_tokens, settled.open_usd) == (0, 0, 0.0)
    assert (settled.run.usage.tokens, settled.day.usage.tokens, settled.run.usd) == (80, 80, 0.05)


def test_an_unknown_cost_is_not_nothing() -> None:
    """One unpriced call makes the sum unknown; what is known is the least."""
    spend = Spend().plus(a_bill(usd=0.2)).plus(a_bill(usd=None))

    assert (spend.known_usd, spend.usd, spend.unpriced_calls) == (None, 0.2, 1)
    assert Spend().plus(a_bill(usd=0.2)).plus(Bill(requests=3)).known_usd == 0.2


def test_spending_survives_the_store() -> None:
    """What is kept as JSON comes back; what cannot be read is an error and never a fresh start (bugs B029)."""
    spend = Spend(calls=2, usage=Usage(input_tokens=5, cached_tokens=3, output_tokens=1, estimated=True), usd=0.5)

    assert spend == Spend.from_dict(json.loads(json.dumps(spend.as_dict())))
    for row in ({}, {"calls": "many"}, {"calls": None}):
        with pytest.raises(ValueError, match=r"spending|many"):
            Spend.from_dict(row)


def test_prices_know_the_cache() -> None:
    """Cached tokens have their own price."""
    usage = Usage(input_tokens=1_000_000, cached_tokens=400_000, output_tokens=100_000)

    assert (
        pytest.approx(price_of(usage, LlmPrice(input=2.0, cached_input=0.5, output=10.0)) or 0)
        == 0.6 * 2 + 0.4 * 0.5 + 0.1 * 10
    )
    assert price_of(usage, None) is None


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("", 0, 0),
        ("The quick brown fox jumps over the lazy dog. " * 20, 180, 300),  # 200 with a usual tokenizer
        ('{"name":"git-rebase","tokens":123},' * 20, 180, 280),
        ("Быстрая коричневая лиса " * 20, 150, 480),
        ("快速的棕色狐狸跳过懒狗" * 20, 150, 260),
    ],
)
def test_estimates_are_near_a_usual_tokenizer(text: str, low: int, high: int) -> None:
    """Near enough to budget with, for several scripts."""
    assert low <= estimate_tokens(text) <= high


@settings(deadline=None)
@given(st.text())
def test_the_least_is_below_the_estimate(text: str) -> None:
    """A server that counts as we do has never cut the prompt."""
    assert least_tokens(text) <= estimate_tokens(text)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=20))
def test_a_limit_is_passed_by_no_more_than_bills_above_their_estimates(calls: list[tuple[int, int]]) -> None:
    """One call after the other: the sum stays below the limit plus the last surprise."""
    budget = Budget(limits=LlmBudget(tokens_per_run=1000, calls_per_run=1000))
    surprise = 0
    for guess, real in calls:
        estimate = Estimate(tokens=guess)
        if budget.check(estimate, elapsed_s=0) is None:
            budget = budget.reserve(estimate).settle(estimate, a_bill(real, None))
            surprise = max(surprise, real - guess)

    assert budget.run.usage.tokens <= 1000 + surprise

"""What a library costs in every call, and when that is worth a word."""

from __future__ import annotations

import pytest

from curatord.core.library_cost import IndexEntry, index_warning, library_cost


def entries(count: int, *, size: int = 100, tokens: int = 25) -> list[IndexEntry]:
    """Return *count* skills with descriptions of *size* bytes and *tokens* tokens."""
    return [
        IndexEntry(name=f"s{n:04}", description_bytes=size, description_tokens=tokens, body_tokens=1000)
        for n in range(count)
    ]


def test_tokens_are_paid_once_per_call() -> None:
    """Twenty skills of 25 tokens at 200 calls a day."""
    cost = library_cost("main", entries(20), calls_per_day=200.0, usd_per_million_input=3.0)

    assert (500, 20_000, 36_500_000, 109.5) == (
        cost.per_call_tokens,
        cost.body_tokens,
        cost.tokens_per_year,
        cost.usd_per_year,
    )


def test_no_evidence_is_said_to_be_none() -> None:
    """Without calls seen there is no yearly figure, without a price no money."""
    cost = library_cost("main", entries(1), calls_per_day=None)

    assert (None, None, None) == (cost.calls_per_day, cost.tokens_per_year, cost.usd_per_year)


def test_the_dearest_lead() -> None:
    """The list of the ten dearest is what a person can act on."""
    dear = IndexEntry(name="z", description_bytes=900, description_tokens=300, body_tokens=1)

    cost = library_cost("main", [*entries(20), dear], calls_per_day=None)

    assert ("z", 300) == cost.top[0]
    assert 10 == len(cost.top)


@pytest.mark.parametrize(
    ("count", "context", "words"),
    [
        (10, None, None),
        (60, None, "grows large"),
        (80, None, "too large"),
        (10, 1600, "grows large"),
        (10, 900, "too large"),
    ],
)
def test_a_large_index_is_worth_a_word(count: int, context: int | None, words: str | None) -> None:
    """Above 6 KiB or 15 % of the context a warning, above 8 KiB or 25 % a louder one, below silence."""
    said = index_warning([library_cost("main", entries(count), calls_per_day=None)], context_tokens=context)

    assert said is None if words is None else said is not None and words in said

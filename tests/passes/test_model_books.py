"""What outlives a run: days of spending, breakers, the last error."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from curatord.core.model import Bill, Fault, FaultKind, Usage
from curatord.core.settings import LlmBudget
from curatord.core.wire import Question
from curatord.errors import BudgetExhaustedError, StateCorruptError
from curatord.passes.consult import Consultation, Exchange
from curatord.passes.model_books import SPEND, ModelBooks
from tests.fakes.model import HandClock, ScriptedModel, ask_all

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
QUESTION = Question(task="survey", prompt="Sort.", data={"library": "l", "skills": [], "candidates": []})


class Table:
    """The store's small facts, in a dict."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}

    def meta(self, key: str) -> str | None:
        """Return a fact."""
        return self.rows.get(key)

    def set_meta(self, key: str, value: str | None) -> None:
        """Keep or forget."""
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = value


def an_exchange(at: datetime = NOW, tokens: int = 10, **more: Any) -> Exchange:
    """Return an exchange with defaults."""
    values: dict[str, Any] = {
        "task": "survey",
        "at": at,
        "request_sha256": "0" * 64,
        "reply": "",
        "bill": Bill(usage=Usage(input_tokens=tokens), usd=0.5, requests=1),
        "model": "m",
        "provider": "p",
        "role": "primary",
    }
    return Exchange(**(values | more))


def test_days_are_booked_apart_and_summed() -> None:
    """Each exchange counts for the UTC day it ended on; old days go, the total stays."""
    table = Table()
    for days in range(12):
        ModelBooks(table).book(an_exchange(NOW + timedelta(days=days)))
    books = ModelBooks(table)

    assert (10, 0) == (books.spent_on(NOW + timedelta(days=11)).usage.tokens, books.spent_on(NOW).usage.tokens)
    assert (120, 6.0) == (books.spent_ever().usage.tokens, books.spent_ever().usd)
    assert 8 == len(json.loads(table.rows[SPEND])["days"])


def test_a_daily_budget_survives_restarts() -> None:
    """Run after run, each a new process, and the day's limit holds (bugs B029)."""
    table, clock = Table(), HandClock()
    ends = []
    for _ in range(30):
        books = ModelBooks(table)
        model = ScriptedModel(rule=lambda _: {"clusters": []})
        limits = LlmBudget(tokens_per_day=5_000)
        consultation = Consultation(
            model, limits=limits, memory=books, clock=clock, spent_today=books.spent_on(clock.now()), book=books.book
        )
        ends.append(isinstance(ask_all(consultation, [QUESTION])[0], BudgetExhaustedError))

    assert ends[-1]
    assert ModelBooks(table).spent_on(clock.now()).usage.tokens <= 5_000
    assert ends == sorted(ends)


def test_a_damaged_record_is_no_fresh_budget() -> None:
    """It is said, with the row that is meant."""
    table = Table()
    for text in ("no json", "{}", '{"days": [], "total": {}}', '{"days": {"x": 1}, "total": {}}'):
        table.rows[SPEND] = text
        with pytest.raises(StateCorruptError, match=SPEND):
            ModelBooks(table).spent_on(NOW)


def test_what_is_remembered_of_servers_comes_back_and_damage_is_nothing() -> None:
    """A lost row costs one request."""
    table = Table()
    books = ModelBooks(table)
    books.keep("takes x", {"a": 1})
    table.rows["model takes y"] = "no json"

    assert ({"a": 1}, None, None) == (books.recall("takes x"), books.recall("takes y"), books.recall("takes z"))
    books.keep("takes x", None)
    assert books.recall("takes x") is None


def test_the_last_error_is_kept_with_its_time() -> None:
    """`status` shows it."""
    books = ModelBooks(Table())
    before = books.last_error()
    books.book(an_exchange(fault=Fault(kind=FaultKind.AUTH, message="status 401", status=401)))
    books.book(an_exchange())
    after = books.last_error()

    assert before is None
    assert after is not None
    assert ("key refused", NOW.isoformat()) == (after["kind"], after["at"])


def test_threads_lose_no_bill() -> None:
    """Parallel questions book at once."""
    books = ModelBooks(Table())
    threads = [threading.Thread(target=books.book, args=(an_exchange(),)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 200 == books.spent_on(NOW).usage.tokens

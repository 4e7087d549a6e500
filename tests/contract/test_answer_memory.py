"""What remembers models' answers, the real one and whatever stands in for it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from curatord.adapters.store import Database, open_database
from curatord.adapters.store.answers import StoredAnswers

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An open state database."""
    opened = open_database(tmp_path, now=NOW)
    yield opened
    opened.close()


def test_an_answer_is_there_again(database: Database) -> None:
    """Byte for byte, and the newest one."""
    memory = StoredAnswers(database)
    memory.keep("k", "s", b"old", now=NOW)
    memory.keep("k", "s", b"new\xff", now=NOW + DAY)

    assert b"new\xff" == memory.answer("k", now=NOW + DAY)
    assert None is memory.answer("other", now=NOW)


def test_a_scope_gives_its_own_answers(database: Database) -> None:
    """The last used first."""
    memory = StoredAnswers(database)
    memory.keep("a", "s", b"1", now=NOW)
    memory.keep("b", "s", b"2", now=NOW + DAY)
    memory.keep("c", "t", b"3", now=NOW)

    assert [b"2", b"1"] == list(memory.answers("s"))


def test_what_was_of_no_use_for_long_is_forgotten(database: Database) -> None:
    """Hearing an answer keeps it."""
    memory = StoredAnswers(database)
    memory.keep("a", "s", b"1", now=NOW)
    memory.keep("b", "s", b"2", now=NOW)
    memory.answer("a", now=NOW + 10 * DAY)

    assert 1 == memory.forget(before=NOW + 5 * DAY)
    assert [b"1"] == list(memory.answers("s"))

"""The ladder of migrations and the number that `database` knows of it."""

from __future__ import annotations

from curatord.adapters.store.database import NEWEST
from curatord.adapters.store.schema import MIGRATIONS


def test_the_known_number_is_the_ladders_length() -> None:
    """`database` names the newest schema without importing the statements; the two must not part."""
    assert len(MIGRATIONS) == NEWEST

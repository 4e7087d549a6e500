"""The same change has the same id, another content another, and nothing else matters."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curatord.core.proposal_id import proposal_id
from curatord.core.values import LibraryName
from tests.core.skill_facts import LIB, a_key

A, B = a_key("a"), a_key("b")


def test_an_id_is_short_and_safe_and_stays_what_it_is() -> None:
    """Ten letters for a shell, a file name and an eye; a release must not change them, or all would be asked again."""
    made = proposal_id(LIB, "archive", [A], {"claude/a": "f" * 64})

    assert re.fullmatch(r"[0-9a-hjkmnp-tv-z]{10}", made)
    assert "fqthyjk96t" == made


def test_order_and_repetition_of_targets_do_not_matter() -> None:
    """Targets are a set, and the keys of a mapping have no order."""
    assert proposal_id(LIB, "archive", [A, B, A], {"x": 1, "y": 2}) == proposal_id(
        LIB, "archive", [B, A], {"y": 2, "x": 1}
    )


@pytest.mark.parametrize(
    "other",
    [
        proposal_id(LibraryName("other"), "archive", [A], "text"),
        proposal_id(LIB, "merge", [A], "text"),
        proposal_id(LIB, "archive", [A, B], "text"),
        proposal_id(LIB, "archive", [A], "another text"),
        proposal_id(LIB, "archive", [A], ["text"]),
        proposal_id(LIB, "archive", [A], None),
    ],
)
def test_any_difference_makes_another_id(other: str) -> None:
    """Library, kind, targets and content all count."""
    assert proposal_id(LIB, "archive", [A], "text") != other


@given(text=st.text(alphabet=st.characters(), max_size=20))
def test_any_text_has_an_id(text: str) -> None:
    """Lone surrogates too: names of files need not be UTF-8."""
    assert 10 == len(proposal_id(LIB, "patch", [A], {"text": text, "odd": "\udcff"}))

"""The table of states, walked whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from curatord.core.states import TRANSITIONS, Signal, after, diagram
from curatord.core.values import State

A, S, X = State.ACTIVE, State.STALE, State.ARCHIVED

# Written by hand, row by row, from the contract: where each state goes on each signal.
EXPECTED = {
    Signal.EXEMPT: (A, S, X),
    Signal.PINNED: (A, S, X),
    Signal.REFERENCED: (A, A, X),
    Signal.UNKNOWN: (A, S, X),
    Signal.YOUNG: (A, A, X),
    Signal.LONG_IDLE: (A, X, X),
    Signal.SPARED: (A, S, X),
    Signal.IDLE: (S, S, X),
    Signal.RECENT: (A, A, X),
    Signal.ABSORBED: (X, X, X),
    Signal.ARCHIVE_ASKED: (X, X, X),
    Signal.RESTORE_ASKED: (A, S, A),
}


@pytest.mark.parametrize("signal", Signal)
def test_every_pair_goes_where_it_should(signal: Signal) -> None:
    """Every (state, signal) pair: the row's state, or the same."""
    assert EXPECTED[signal] == tuple(after(state, signal) for state in (A, S, X))


def test_no_row_says_stays() -> None:
    """A missing row means "stays", so a row that says it would be a second way to say one thing."""
    assert [] == [pair for pair, to in TRANSITIONS.items() if pair[0] is to]


def test_the_diagram_has_every_row_and_no_other() -> None:
    """Each row of the table is on an arrow between its two states."""
    lines = diagram().splitlines()

    assert "stateDiagram-v2" == lines[0]
    for (state, signal), to in TRANSITIONS.items():
        assert any(line.strip().startswith(f"{state} --> {to}: ") and signal.value in line for line in lines)
    assert len({(state, to) for (state, _), to in TRANSITIONS.items()}) == len(lines) - 2


def test_readme_shows_the_diagram() -> None:
    """README's diagram is the table's, between its markers."""
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    if "<!-- states -->" not in readme:
        pytest.skip("README has no diagram of the states yet")

    shown = readme.partition("<!-- states -->")[2].partition("<!-- /states -->")[0]

    assert diagram() == shown.strip().removeprefix("```mermaid").removesuffix("```").strip()

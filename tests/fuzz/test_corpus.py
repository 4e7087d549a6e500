"""What fuzzing once found stays mended: every kept input, and some hundred changes of each, go through its parser."""

from __future__ import annotations

import random
from zlib import crc32

import pytest

from tests.fuzz.mutate import mutated
from tests.fuzz.targets import TARGETS, corpus


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs(name: str) -> None:
    """Each goes through without an error that the parser may not raise."""
    for data in corpus(name):
        TARGETS[name].run(data)


@pytest.mark.parametrize("name", TARGETS)
def test_changes_of_kept_inputs(name: str) -> None:
    """The same hundred changes at each run: values of other types, odd texts, lost and doubled lines, flipped bits."""
    rng = random.Random(crc32(name.encode()))
    known = corpus(name)
    for _ in range(100):
        TARGETS[name].run(mutated(rng.choice(known), rng))

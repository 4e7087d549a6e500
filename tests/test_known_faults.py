"""The table of known faults is whole, and each test that it names is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.known_faults import KNOWN_FAULTS, Fault

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = {"B": range(30, 46), "C": range(46, 55), "D": range(55, 79), "J": range(150, 159)}
# Numbers that no fault has.
UNUSED = {31, 35, 37, 48, 49, 62, 63, 67, 72, 75}


@cache
def functions_of(file: str) -> frozenset[str]:
    """Return the names of the test functions of a module."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_fault_has_a_row() -> None:
    """Each number once, in order."""
    expected = [f"B{number:03}" for numbers in CHAPTERS.values() for number in numbers if number not in UNUSED]

    assert expected == [fault.id for fault in KNOWN_FAULTS]


@pytest.mark.parametrize("fault", KNOWN_FAULTS, ids=lambda fault: fault.id)
def test_a_fault_is_kept_away(fault: Fault) -> None:
    """By tests that exist, or by a reason in a sentence; and its report can be looked up."""
    missing = [node for node in fault.tests if node.partition("::")[2] not in functions_of(node.partition("::")[0])]

    assert [] == missing
    assert fault.tests or len(fault.cannot.split()) > 5
    assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", fault.report)

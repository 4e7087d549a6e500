"""Questions that are given up where nobody answers."""

from __future__ import annotations

import threading
import time

import pytest

from curatord.adapters.in_time import in_time


def test_who_answers_in_time_is_heard() -> None:
    """By key; whoever does not is left out, and asked again once it has come back."""
    free, began = threading.Event(), time.monotonic()
    asks = {"one": lambda: 1, "slow": lambda: free.wait(30) and 2}

    assert {"one": 1} == in_time(asks, within_s=0.1)
    assert {"one": 1} == in_time(asks, within_s=0.1)  # the slow one is not even asked
    assert 10 > time.monotonic() - began
    assert 1 == sum(thread.name == "in-time" for thread in threading.enumerate())

    free.set()
    while any(thread.name == "in-time" for thread in threading.enumerate()):
        time.sleep(0.01)
    assert {"one": 1, "slow": 2} == in_time(asks, within_s=30)


def test_a_fault_is_the_askers() -> None:
    """It is not lost in a thread."""
    with pytest.raises(ZeroDivisionError):
        in_time({"one": lambda: 1 // 0}, within_s=30)

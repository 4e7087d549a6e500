"""Cheap dataclasses behave as the standard library's frozen ones do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any

import pytest

from curatord.core.cheap import dataclass as cheap


@cheap(frozen=True, slots=True, kw_only=True)
class Cheap:
    """Made of shared functions."""

    a: int
    b: str = "b"
    c: tuple[int, ...] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("a")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """The same by the standard library."""

    a: int
    b: str = "b"
    c: tuple[int, ...] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("a")


@cheap(frozen=True, slots=True)
class Positional:
    """Takes its values by position too."""

    a: int
    b: int = 2


BOTH: list[Any] = [Cheap, Standard]


@pytest.mark.parametrize("cls", BOTH)
def test_values_and_defaults(cls: Any) -> None:
    """What is not said has its default; factories are called each time."""
    value = cls(a=1)

    assert (1, "b", ()) == (value.a, value.b, value.c)
    assert {"a": 1, "b": "b", "c": ()} == dataclasses.asdict(value)
    assert not hasattr(value, "__dict__")


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("said", [{}, {"a": 1, "d": 2}, {"a": -1}])
def test_nonsense_is_refused(cls: Any, said: dict[str, int]) -> None:
    """A missing field, an unknown one, and what `__post_init__` refuses."""
    with pytest.raises((TypeError, ValueError)):
        cls(**said)


@pytest.mark.parametrize("cls", BOTH)
def test_nothing_changes(cls: Any) -> None:
    """Neither set nor deleted, and no new attribute."""
    value = cls(a=1)

    refused = (FrozenInstanceError, TypeError, AttributeError)
    with pytest.raises(refused):
        value.a = 2
    with pytest.raises(refused):
        del value.a
    with pytest.raises(refused):
        value.z = 1
    assert 1 == value.a


@pytest.mark.parametrize("cls", BOTH)
def test_values_are_equal_by_content(cls: Any) -> None:
    """Equal, with equal hashes, where all fields are; never equal to another class."""
    assert cls(a=1) == cls(a=1, b="b")
    assert hash(cls(a=1)) == hash(cls(a=1))
    assert cls(a=1) != cls(a=2)
    assert cls(a=1) != (1, "b", ())
    assert f"{cls.__name__}(a=1, b='b', c=())" == repr(cls(a=1))


@pytest.mark.parametrize("cls", BOTH)
def test_copies_are_values_again(cls: Any) -> None:
    """By `replace`, copy, deepcopy and pickle."""
    value = cls(a=1, c=(1, 2))

    assert cls(a=2, c=(1, 2)) == dataclasses.replace(value, a=2)
    assert value == copy.copy(value) == copy.deepcopy(value) == pickle.loads(pickle.dumps(value))


def test_fields_are_told_as_usual() -> None:
    """Names, order, defaults and keywords are the standard library's own."""
    assert [f.name for f in dataclasses.fields(Standard)] == [f.name for f in dataclasses.fields(Cheap)]
    assert dataclasses.is_dataclass(Cheap)
    assert Standard.__match_args__ == Cheap.__match_args__


def test_values_by_position() -> None:
    """Where the class is not `kw_only`."""
    assert Positional(1) == Positional(a=1, b=2)
    match Positional(3, 4):
        case Positional(a, b):
            assert (3, 4) == (a, b)
    with pytest.raises(TypeError):
        Positional(1, 2, 3)  # type: ignore[call-arg]  # what is tested
    with pytest.raises(TypeError):
        Positional(1, a=1)  # type: ignore[misc]  # what is tested

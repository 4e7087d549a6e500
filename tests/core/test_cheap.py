"""Cheap dataclasses behave as the standard library's do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, field
from pathlib import Path
from typing import Any

import pytest

from curatord.core.cheap import dataclass as cheap


@cheap(frozen=True, slots=True, kw_only=True)
class Cheap:
    """Made here."""

    a: int
    b: str = "b"
    c: tuple[int, ...] = field(default_factory=tuple)
    d: int = field(default=0, compare=False, repr=False)
    e: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    f: int = field(default=3, init=False, repr=False, compare=False)
    g: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("a")
        object.__setattr__(self, "g", self.a + 1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """The same by the standard library."""

    a: int
    b: str = "b"
    c: tuple[int, ...] = field(default_factory=tuple)
    d: int = field(default=0, compare=False, repr=False)
    e: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    f: int = field(default=3, init=False, repr=False, compare=False)
    g: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("a")
        object.__setattr__(self, "g", self.a + 1)


@cheap(frozen=True, slots=True, order=True)
class CheapPair:
    """By position, and in order."""

    a: int
    b: int = 2


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class StandardPair:
    """The same by the standard library."""

    a: int
    b: int = 2


@cheap(slots=True)
class CheapTally:
    """Changes."""

    a: int = 0
    b: list[int] = field(default_factory=list)


@dataclasses.dataclass(slots=True)
class StandardTally:
    """The same by the standard library."""

    a: int = 0
    b: list[int] = field(default_factory=list)


@cheap(frozen=True, slots=True, kw_only=True)
class CheapChild(Cheap):
    """Inherits fields."""

    h: int = 5


@cheap(frozen=True, slots=True, kw_only=True)
class Empty:
    """Has no field."""


BOTH: list[Any] = [Cheap, Standard]
PAIRS: list[Any] = [CheapPair, StandardPair]
TALLIES: list[Any] = [CheapTally, StandardTally]


@pytest.mark.parametrize("cls", [*BOTH, CheapChild])
def test_values_and_defaults(cls: Any) -> None:
    """What is not said has its default; there is no dictionary behind it."""
    value = cls(a=1)

    assert (1, "b", (), 0) == (value.a, value.b, value.c, value.d)
    assert ([], 3, 2) == (value.e, value.f, value.g)
    assert {"a": 1, "b": "b", "c": (), "d": 0} == {k: v for k, v in dataclasses.asdict(value).items() if k < "e"}
    assert not hasattr(value, "__dict__")


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("said", [{}, {"a": 1, "z": 2}, {"a": -1}])
def test_nonsense_is_refused(cls: Any, said: dict[str, int]) -> None:
    """A missing field, an unknown one, and what `__post_init__` refuses; also the second time."""
    for _ in range(2):
        with pytest.raises((TypeError, ValueError)):
            cls(**said)


@pytest.mark.parametrize("cls", BOTH)
def test_frozen_values_do_not_change(cls: Any) -> None:
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
    """Equal, with equal hashes, where all compared fields are; never equal to another class."""
    assert cls(a=1, d=7) == cls(a=1, b="b")
    assert hash(cls(a=1, d=7)) == hash(cls(a=1))
    assert cls(a=1) != cls(a=2)
    assert cls(a=1) != (1, "b", ())
    assert f"{cls.__name__}(a=1, b='b', c=())" == repr(cls(a=1))


@pytest.mark.parametrize("cls", BOTH)
def test_copies_are_values_again(cls: Any) -> None:
    """By `replace`, copy, deepcopy and pickle."""
    value = cls(a=1, c=(1, 2))

    assert cls(a=2, c=(1, 2)) == dataclasses.replace(value, a=2)
    assert value == copy.copy(value) == copy.deepcopy(value) == pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("cls", PAIRS)
def test_values_by_position_and_in_order(cls: Any) -> None:
    """Where the class is not `kw_only`; order by fields, none with another class."""
    assert cls(1) == cls(a=1, b=2) == cls(1, 2)
    assert [cls(1, 1), cls(1, 3), cls(2, 0)] == sorted([cls(2, 0), cls(1, 3), cls(1, 1)])
    assert cls(1) <= cls(1) < cls(2) > cls(1) >= cls(1)
    match cls(3, 4):
        case cls.__class__():
            raise AssertionError
        case value:
            assert (3, 4) == (value.a, value.b)
    with pytest.raises(TypeError):
        cls(1, 2, 3)
    with pytest.raises(TypeError):
        cls(1, a=1)
    with pytest.raises(TypeError):
        assert cls(1) < (1, 2)
    assert cls(1) != (1, 2)


def test_patterns_match_by_position() -> None:
    """`match` knows the order of fields."""
    match CheapPair(3, 4):
        case CheapPair(a, b):
            assert (3, 4) == (a, b)


@pytest.mark.parametrize("cls", TALLIES)
def test_what_is_not_frozen_changes_and_is_no_key(cls: Any) -> None:
    """Fields are set, factories make a new list each time, equal by content, not hashable."""
    one, other = cls(), cls()
    one.a += 1
    one.b.append(1)

    assert (1, [1]) == (one.a, one.b)
    assert (0, []) == (other.a, other.b)
    assert one != other
    with pytest.raises(TypeError):
        hash(one)
    assert one == copy.deepcopy(one) == pickle.loads(pickle.dumps(one))


def test_a_child_has_its_parents_fields() -> None:
    """Inherited ones first; each class makes its own instances."""
    assert ["a", "b", "c", "d", "e", "f", "g", "h"] == [f.name for f in dataclasses.fields(CheapChild)]
    assert (1, 6) == (CheapChild(a=1, h=6).a, CheapChild(a=1, h=6).h)
    assert Cheap(a=1) != CheapChild(a=1)
    assert Cheap(a=1) == Cheap(a=1)
    assert Empty() == Empty()


def test_what_a_class_writes_itself_is_kept() -> None:
    """Its own `__repr__`, `__eq__` or `__hash__` wins."""

    @cheap(frozen=True, slots=True)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 7

    assert ("own", 7) == (repr(Own(1)), hash(Own(2)))


def test_fields_are_told_as_usual() -> None:
    """Names, order, defaults and keywords are the standard library's own."""
    assert [f.name for f in dataclasses.fields(Standard)] == [f.name for f in dataclasses.fields(Cheap)]
    assert dataclasses.is_dataclass(Cheap)
    assert StandardPair.__match_args__ == CheapPair.__match_args__ == ("a", "b")


@pytest.mark.bench
def test_defining_one_is_cheap() -> None:
    """At least four times cheaper than the standard library's, and instances cost no more than a quarter above."""
    script = """
import time
from dataclasses import dataclass as standard
from curatord.core.cheap import dataclass as cheap
def defined(decorator):
    best = 9.0
    for _ in range(7):
        began = time.process_time()
        for _ in range(40):
            cls = type("A", (), {"__annotations__": dict.fromkeys("abcdef", "int"), "f": 1})
            made = decorator(frozen=True, slots=True, kw_only=True)(cls)
        best = min(best, time.process_time() - began)
    made(a=1, b=2, c=3, d=4, e=5)
    fast = 9.0
    for _ in range(7):
        began = time.process_time()
        for _ in range(20000):
            made(a=1, b=2, c=3, d=4, e=5)
        fast = min(fast, time.process_time() - began)
    return best, fast
a, b = defined(standard), defined(cheap)
print(a[0] / b[0], b[1] / a[1])
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root, check=True)
    defining, making = map(float, done.stdout.split())

    assert defining > 4
    assert making < 1.25


@cheap(frozen=True, slots=True)
class Wide:
    """Of so many fields that it is filled by way of another class, by position and by name."""

    a: int
    b: int = 2
    c: list[int] = field(default_factory=list)
    d: int = field(default=4, kw_only=True)
    e: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "e", self.e + self.a)


class Plain(Wide):
    """Derived without a word: it has a dictionary besides."""


class Slotted(Wide):
    """Derived with a slot of its own."""

    __slots__ = ("more",)


class Bare(Wide):
    """Derived with nothing besides."""

    __slots__ = ()


@pytest.mark.parametrize("cls", [Plain, Slotted, Bare, Wide])
def test_a_derived_class_is_filled_as_often_as_wanted(cls: type[Wide]) -> None:
    """The first few and all others, those of the class itself between them; each is of its own class."""
    for number in range(20):
        value, between = cls(number, d=number), Wide(number, 3, [number])

        assert (cls, number, 2, [], number, number) == (type(value), value.a, value.b, value.c, value.d, value.e)
        assert (Wide, number, 3, [number], 4) == (type(between), between.a, between.b, between.c, between.d)
        with pytest.raises(FrozenInstanceError):
            value.a = 1  # type: ignore[misc]  # what is tried

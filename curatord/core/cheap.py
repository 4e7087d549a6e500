"""
Frozen dataclasses that are cheap to define.

Python compiles five or six functions for each frozen dataclass, some 0.65 ms a class: thirty of them are twice the
start of the interpreter, and `curatord status` imports more. This `dataclass` behaves the same for values that are made
and compared seldom (settings, reports): fields are the standard library's, so `fields`, `replace`, `asdict` and `match`
work, while `__init__`, `__eq__`, `__hash__`, `__repr__` and the refusal to change are functions that all classes share.
Defining one costs 0.08 ms; making an instance some microseconds instead of a half. For values made by the thousand
(events, records) use the standard one.

Use: `from curatord.core.cheap import dataclass`, with `frozen=True, slots=True` as everywhere here.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]


def _init(self: Any, /, *given: Any, **said: Any) -> None:
    put = object.__setattr__
    known = self.__dataclass_fields__
    if given:
        names = self.__match_args__
        if len(given) > len(names):
            raise TypeError(f"{type(self).__name__} takes {len(names)} values by position, not {len(given)}")
        for name, value in zip(names, given, strict=False):
            if name in said:
                raise TypeError(f"{type(self).__name__}: {name} is said twice")
            said[name] = value
    for name, field in known.items():
        if name in said:
            put(self, name, said[name])
        elif field.default is not MISSING:
            put(self, name, field.default)
        elif field.default_factory is not MISSING:
            put(self, name, field.default_factory())
        else:
            raise TypeError(f"{type(self).__name__}: {name} is missing")
    if len(said) > len(known) or not said.keys() <= known.keys():
        raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(said.keys() - known.keys()))}")
    check = getattr(self, "__post_init__", None)
    if check is not None:
        check()


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in self.__dataclass_fields__)


def _eq(self: Any, other: object) -> Any:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _set(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> tuple[Any, ...]:
    return _values(self)


def _set_state(self: Any, state: tuple[Any, ...]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)


_SHARED = {
    "__init__": _init,
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _set,
    "__delattr__": _delete,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}

if TYPE_CHECKING:
    # A type checker should see nothing special.
    from dataclasses import dataclass
else:

    def dataclass(*, frozen, slots, kw_only=False):
        """Return a decorator that makes a frozen, slotted dataclass out of shared functions."""
        if not (frozen and slots):
            raise TypeError("cheap dataclasses are frozen and slotted")

        def make(cls):
            for name, function in _SHARED.items():
                if name not in cls.__dict__:
                    setattr(cls, name, function)
            return dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)

        return make

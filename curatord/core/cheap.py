"""
Dataclasses that cost next to nothing until they are used.

Python compiles up to seven functions when a frozen dataclass is defined, some 0.65 ms a class: the hundred classes that
`curatord status` imports, of which it uses a few, took five times the start of the interpreter. This `dataclass` has
the same fields (they are made by the standard library, so `fields`, `replace`, `asdict` and `match` work) and behaves
the same, but its functions are shared by all classes, and a class's own `__init__` is compiled when its first instance
is made. From then on an instance costs what it costs with the standard library. Defining a class: 0.08 ms.

Use: `from curatord.core.cheap import dataclass`, and as ever `@dataclass(frozen=True, slots=True, kw_only=True)`.
Taken are *frozen*, *slots*, *kw_only* and *order*; what a class writes itself is kept. There is no `InitVar`, and a
frozen class of the standard library cannot inherit from one of these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]


def _defining(cls: type[Any]) -> type[Any]:
    """Return the class of *cls*'s line that was made here: itself, or the nearest it inherits from."""
    return next(one for one in cls.__mro__ if "__dataclass_fields__" in one.__dict__)


def _first_init(self: Any, /, *given: Any, **said: Any) -> None:
    """Compile the class's own `__init__`, put it in the place of this one, and make the instance by it."""
    cls = _defining(type(self))
    made = _compile_init(cls)
    type.__setattr__(cls, "__init__", made)
    made(self, *given, **said)


def _compile_init(cls: type[Any]) -> Callable[..., None]:
    fields = [field for field in dataclasses.fields(cls) if field.init]
    names: dict[str, Any] = {"__set": object.__setattr__, "__MISSING": MISSING}
    positional: list[str] = []
    keywords: list[str] = []
    body: list[str] = []
    for field in fields:
        value = field.name
        if field.default is not MISSING:
            names[f"__default_{field.name}"] = field.default
            parameter = f"{field.name}=__default_{field.name}"
        elif field.default_factory is not MISSING:
            names[f"__factory_{field.name}"] = field.default_factory
            parameter = f"{field.name}=__MISSING"
            value = f"__factory_{field.name}() if {field.name} is __MISSING else {field.name}"
        else:
            parameter = field.name
        (keywords if field.kw_only else positional).append(parameter)
        body.append(f" __set(__self, {field.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append(" __self.__post_init__()")
    parameters = ["__self", *positional, *(["*", *keywords] if keywords else [])]
    source = f"def __init__({', '.join(parameters)}):\n" + "\n".join(body or [" pass"])
    exec(source, names)  # noqa: S102 - what the standard library does; the names are the class's own fields
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _key(cls: type[Any]) -> Callable[[Any], Any]:
    """Return what gets the compared fields' values out of an instance of *cls*, made when it is first asked for."""
    found: Callable[[Any], Any] | None = cls.__dict__.get("__cheap_key__")
    if found is None:
        names = [field.name for field in dataclasses.fields(cls) if field.compare]
        found = attrgetter(*names) if names else lambda _: ()
        type.__setattr__(cls, "__cheap_key__", staticmethod(found))
        return found
    return cls.__cheap_key__  # type: ignore[no-any-return]  # unwrapped by the class


def _eq(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    key = _key(self.__class__)
    return key(self) == key(other)


def _hash(self: Any) -> int:
    return hash(_key(self.__class__)(self))


def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _set(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _lt(self: Any, other: Any) -> Any:
    key = _key(self.__class__)
    return key(self) < key(other) if other.__class__ is self.__class__ else NotImplemented


def _le(self: Any, other: Any) -> Any:
    key = _key(self.__class__)
    return key(self) <= key(other) if other.__class__ is self.__class__ else NotImplemented


def _gt(self: Any, other: Any) -> Any:
    key = _key(self.__class__)
    return key(self) > key(other) if other.__class__ is self.__class__ else NotImplemented


def _ge(self: Any, other: Any) -> Any:
    key = _key(self.__class__)
    return key(self) >= key(other) if other.__class__ is self.__class__ else NotImplemented


_ALWAYS = {"__init__": _first_init, "__eq__": _eq, "__repr__": _repr}
_FROZEN = {
    "__hash__": _hash,
    "__setattr__": _set,
    "__delattr__": _delete,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
_ORDERED = {"__lt__": _lt, "__le__": _le, "__gt__": _gt, "__ge__": _ge}

if TYPE_CHECKING:
    # A type checker should see nothing special.
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, order=False):
        """Return *cls* as a dataclass, or a decorator that does; see the module."""
        shared = {**_ALWAYS, **(_FROZEN if frozen else {}), **(_ORDERED if order else {})}

        def make(cls):
            for name, function in shared.items():
                if name not in cls.__dict__:
                    setattr(cls, name, function)
            if not frozen and cls.__dict__.get("__hash__") is None:
                cls.__hash__ = None  # equal by content and changeable: no key of a dict
            return dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)

        return make if cls is None else make(cls)

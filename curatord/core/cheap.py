"""
Dataclasses that cost next to nothing until they are used.

Python compiles up to seven functions when a frozen dataclass is defined, some 0.65 ms a class: the hundred classes that
`curatord status` imports, of which it uses a few, took five times the start of the interpreter. This `dataclass` has
the same fields (they are made by the standard library, so `fields`, `replace`, `asdict` and `match` work) and behaves
the same, but its functions are shared by all classes, and a class's own `__init__`, `__eq__`, `__hash__` and order are
compiled when they are first called. From then on all costs what it costs with the standard library. Defining a class:
0.08 ms.

Use: `from curatord.core.cheap import dataclass`, and as ever `@dataclass(frozen=True, slots=True, kw_only=True)`.
Taken are *frozen*, *slots*, *kw_only* and *order*; what a class writes itself is kept. There is no `InitVar`, and a
frozen class of the standard library cannot inherit from one of these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
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
    names: dict[str, Any] = {"__set": object.__setattr__, "__MISSING": MISSING}
    positional: list[str] = []
    keywords: list[str] = []
    body: list[str] = []
    for field in dataclasses.fields(cls):
        value = field.name
        if not field.init:
            # No argument; one without a default is set by `__post_init__`, and one with a plain default of a class
            # without slots need not be set at all, but may.
            if field.default_factory is not MISSING:
                names[f"__factory_{field.name}"] = field.default_factory
                body.append(f" __set(__self, {field.name!r}, __factory_{field.name}())")
            elif field.default is not MISSING:
                names[f"__default_{field.name}"] = field.default
                body.append(f" __set(__self, {field.name!r}, __default_{field.name})")
            continue
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


def _first(name: str) -> Callable[..., Any]:
    """Return what stands for the method *name* until it is first called: it compiles the class's own, and calls it."""

    def first(self: Any, *others: Any) -> Any:
        cls = _defining(type(self))
        made = _compile(cls, name)
        type.__setattr__(cls, name, made)
        return made(self, *others)

    return first


_COMPARES = {"__eq__": "==", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


def _compile(cls: type[Any], name: str) -> Callable[..., Any]:
    """Compile a method over the compared fields: `__hash__`, or one of `_COMPARES`."""
    fields = [field.name for field in dataclasses.fields(cls) if field.compare]
    own, others = ("".join(f"{of}.{field}, " for field in fields) for of in ("self", "other"))
    if name == "__hash__":
        source = f"def {name}(self):\n return hash(({own}))"
    else:
        told = f"({own}) {_COMPARES[name]} ({others})"
        source = f"def {name}(self, other):\n return {told} if other.__class__ is self.__class__ else NotImplemented"
    names: dict[str, Any] = {}
    exec(source, names)  # noqa: S102 - as above
    made: Callable[..., Any] = names[name]
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    return made


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


_ALWAYS = {"__init__": _first_init, "__eq__": _first("__eq__"), "__repr__": _repr}
_FROZEN = {
    "__hash__": _first("__hash__"),
    "__setattr__": _set,
    "__delattr__": _delete,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
_ORDERED = {name: _first(name) for name in _COMPARES if name != "__eq__"}

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

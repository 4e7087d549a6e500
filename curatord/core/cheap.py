"""
Dataclasses that cost next to nothing until they are used.

The standard library compiles up to seven functions when a frozen dataclass is defined, some 0.65 ms a class, and
importing it costs as much as starting the interpreter: the hundred classes that `curatord status` imports, of which it
uses a few, took five times the start of the interpreter. This `dataclass` behaves the same and costs 0.03 ms: its
functions are shared by all classes, and a class's own `__init__`, `__eq__`, `__hash__` and order are compiled when they
are first called. From then on all costs what it costs with the standard library, and making a frozen instance of many
fields costs half of that: the standard library sets each field by a call, since plain assignment is what a frozen class
forbids. Here an instance is, while its `__init__` fills it, of a twin of its class that differs in nothing but allowing
assignment, which the interpreter then does at its full speed. Nobody sees it so: it is of its own class again before
`__post_init__`, and before the caller has it. A look at 5,000 skills makes some 80,000 such values.

Use: `from curatord.core.cheap import dataclass, field, replace`, and as ever
`@dataclass(frozen=True, slots=True, kw_only=True)`. Taken are *frozen*, *slots*, *kw_only* and *order*; what a class
writes itself is kept. `dataclasses.fields`, `replace`, `asdict`, `is_dataclass`, `match` and libraries that know
dataclasses work too: the standard library's own description of a class is made when somebody asks for it. There is no
`InitVar`, a class of the standard library cannot inherit from one of these, and a child that adds anything to an
instance has to be made by this decorator as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["MISSING", "dataclass", "field", "fields", "is_dataclass", "replace"]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


_MISSING: Any = _Missing()


class _Field:
    """One field; the same attributes as the standard library's."""

    __slots__ = ("compare", "default", "default_factory", "init", "kw_only", "metadata", "name", "repr", "type")

    def __init__(
        self,
        default: Any = _MISSING,
        default_factory: Any = _MISSING,
        init: bool = True,
        repr: bool = True,  # noqa: A002 - the standard library's name
        compare: bool = True,
        metadata: Any = None,
    ) -> None:
        self.name = ""
        self.type: Any = None
        self.kw_only = False
        self.default = default
        self.default_factory = default_factory
        self.init = init
        self.repr = repr
        self.compare = compare
        self.metadata = metadata or {}


_Slot: Any = type(_Field.__dict__["name"])  # of what stands for a slot in its class


def _defining(cls: type[Any]) -> type[Any]:
    """Return the class of *cls*'s line that was made here: itself, or the nearest it inherits from."""
    return next(one for one in cls.__mro__ if "__cheap_fields__" in one.__dict__)


def _fields(cls: type[Any]) -> dict[str, _Field]:
    found: dict[str, _Field] = cls.__cheap_fields__
    return found


# A class's own functions, made when they are first called.


def _run(source: str, name: str, names: dict[str, Any], cls: type[Any]) -> Callable[..., Any]:
    exec(source, names)  # noqa: S102 - what the standard library does; the names are the class's own fields
    made: Callable[..., Any] = names[name]
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    return made


_FEW = 6  # instances of a class, up to which its own `__init__` costs more to compile than it saves


def _first_init(self: Any, /, *given: Any, **said: Any) -> None:
    """Fill the first few instances field by field; then put the class's own `__init__` in the place of this one."""
    cls = _defining(type(self))
    made: int = cls.__dict__.get("__cheap_made__", 0)
    if made < _FEW and not given and (values := _values(cls, said)) is not None:
        type.__setattr__(cls, "__cheap_made__", made + 1)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if hasattr(cls, "__post_init__"):
            self.__post_init__()
        return
    init = _compile_init(cls, _twin(cls))
    type.__setattr__(cls, "__init__", init)
    init(self, *given, **said)


def _values(cls: type[Any], said: dict[str, Any]) -> dict[str, Any] | None:
    """Return every field's value with the arguments *said*; None where they do not fit."""
    values: dict[str, Any] = {}
    taken = 0
    for name, field in _fields(cls).items():
        if field.init and name in said:
            values[name] = said[name]
            taken += 1
        elif field.default is not _MISSING:
            values[name] = field.default
        elif field.default_factory is not _MISSING:
            values[name] = field.default_factory()
        elif field.init:
            return None
    return values if taken == len(said) else None


_MANY = 5  # fields, from which on the two changes of class cost less than a call a field


def _twin(cls: type[Any]) -> type[Any] | None:
    """Return a class with the slots of *cls* that allows assignment; None where there is none or it is not worth it."""
    slots = cls.__dict__.get("__slots__")
    setter: object = cls.__setattr__
    if slots is None or setter is not _set or len(slots) < _MANY:
        return None
    return type(cls.__name__, cls.__bases__, {"__slots__": slots, "__setattr__": object.__setattr__})


def _of_heirs(cls: type[Any]) -> Callable[..., None]:
    """Return what fills an instance of a class derived from *cls*, field by field; it is compiled when first called."""
    made: list[Callable[..., None]] = []

    def init(self: Any, /, *given: Any, **said: Any) -> None:
        if not made:
            made.append(_compile_init(cls, None))
        made[0](self, *given, **said)

    return init


def _compile_init(cls: type[Any], twin: type[Any] | None) -> Callable[..., None]:
    """Compile the `__init__` of *cls*, by way of its *twin* where there is one."""
    names: dict[str, Any] = {"__set": object.__setattr__, "__MISSING": _MISSING}
    setter: object = cls.__setattr__
    free = twin is not None or setter is object.__setattr__
    positional: list[str] = []
    keywords: list[str] = []
    body: list[str] = []
    for field in _fields(cls).values():
        name = value = field.name
        if field.default is not _MISSING:
            names[f"__default_{name}"] = field.default
            parameter = f"{name}=__default_{name}"
        elif field.default_factory is not _MISSING:
            names[f"__factory_{name}"] = field.default_factory
            parameter = f"{name}=__MISSING"
            value = f"__factory_{name}() if {name} is __MISSING else {name}"
        else:
            parameter = name
        if field.init:
            (keywords if field.kw_only else positional).append(parameter)
        elif field.default_factory is not _MISSING:
            value = f"__factory_{name}()"
        elif field.default is not _MISSING:
            value = f"__default_{name}"
        else:
            continue  # `__post_init__` sets it
        slot: Any = getattr(cls, name, None)
        if free:
            body.append(f" __self.{name} = {value}")
        elif type(slot) is _Slot:  # frozen: past its refusal, and without looking up the name each time
            names[f"__set_{name}"] = slot.__set__
            body.append(f" __set_{name}(__self, {value})")
        else:
            body.append(f" __set(__self, {name!r}, {value})")
    if twin is not None:
        # An instance of a derived class may have a dictionary or slots besides, and no such can be of the twin.
        names |= {"__twin": twin, "__cls": cls, "__of_heirs": _of_heirs(cls)}
        said = [field for field in _fields(cls).values() if field.init]
        handed = [f"{field.name}={field.name}" if field.kw_only else field.name for field in said]
        body = [
            " if __self.__class__ is not __cls:",
            f"  return __of_heirs({', '.join(['__self', *handed])})",
            " __set(__self, '__class__', __twin)",
            *body,
            " __self.__class__ = __cls",
        ]
    if hasattr(cls, "__post_init__"):
        body.append(" __self.__post_init__()")
    parameters = ["__self", *positional, *(["*", *keywords] if keywords else [])]
    source = f"def __init__({', '.join(parameters)}):\n" + "\n".join(body or [" pass"])
    return _run(source, "__init__", names, cls)


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
    compared = [field.name for field in _fields(cls).values() if field.compare]
    own, others = ("".join(f"{of}.{field}, " for field in compared) for of in ("self", "other"))
    if name == "__hash__":
        source = f"def {name}(self):\n return hash(({own}))"
    else:
        told = f"({own}) {_COMPARES[name]} ({others})"
        source = f"def {name}(self, other):\n return {told} if other.__class__ is self.__class__ else NotImplemented"
    return _run(source, name, {}, cls)


# Functions that all classes share.


def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in _fields(type(self)).values() if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _set(self: Any, name: str, value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in _fields(type(self))]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(_fields(type(self)), state, strict=True):
        object.__setattr__(self, name, value)


_ALWAYS = {"__init__": _first_init, "__eq__": _first("__eq__"), "__repr__": _repr}
_FROZEN = {
    "__hash__": _first("__hash__"),
    "__setattr__": _set,
    "__delattr__": _delete,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
_ORDERED = {name: _first(name) for name in _COMPARES if name != "__eq__"}


class _AsStandard:
    """The standard library's description of a class, `__dataclass_fields__`, made when it is first asked for."""

    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        import dataclasses

        cls = _defining(owner)
        members: dict[str, Any] = {"__annotations__": {}}
        for field in _fields(cls).values():
            said: dict[str, Any] = {
                "init": field.init,
                "repr": field.repr,
                "compare": field.compare,
                "metadata": field.metadata,
            }
            if field.default is not _MISSING:
                said["default"] = field.default
            elif field.default_factory is not _MISSING:
                said["default_factory"] = field.default_factory
            members["__annotations__"][field.name] = field.type
            members[field.name] = dataclasses.field(kw_only=field.kw_only, **said)
        plain: Any = type(cls.__name__, (), members)
        described: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(plain)
        type.__setattr__(cls, "__dataclass_fields__", described.__dataclass_fields__)
        return cls.__dict__["__dataclass_fields__"]


# Making one.


def _collect(cls: type[Any], kw_only: bool) -> dict[str, _Field]:
    """Return the fields of *cls*, inherited ones first."""
    found: dict[str, _Field] = {}
    for base in cls.__mro__[-1:0:-1]:
        found.update(base.__dict__.get("__cheap_fields__", {}))
    standard: Any = getattr(sys.modules.get("dataclasses"), "Field", ())
    for name, hint in cls.__dict__.get("__annotations__", {}).items():  # noqa: RUF063 - asking `inspect` costs more than the rest
        if isinstance(hint, str) and hint.startswith(("ClassVar", "typing.ClassVar")):
            continue
        said = cls.__dict__.get(name, _MISSING)
        if isinstance(said, _Field):
            field = said
        elif isinstance(said, standard):
            field = _of_standard(said)
        else:
            if said is not _MISSING and type(said).__hash__ is None:
                raise ValueError(f"{cls.__qualname__}.{name}: a default that can change; give a default_factory")
            field = _Field(said)
        field.name, field.type, field.kw_only = name, hint, kw_only
        found[name] = field
    return found


def _of_standard(said: Any) -> _Field:
    from dataclasses import MISSING as NONE

    field = _Field(init=said.init, repr=said.repr, compare=said.compare, metadata=said.metadata)
    if said.default is not NONE:
        field.default = said.default
    if said.default_factory is not NONE:
        field.default_factory = said.default_factory
    return field


def _with_slots(cls: type[Any], names: list[str]) -> type[Any]:
    """Return *cls* made anew with slots for *names*, since they can only be said when a class is made."""
    there = {slot for base in cls.__mro__[1:] for slot in base.__dict__.get("__slots__", ())}
    members = dict(cls.__dict__)
    for name in (*names, "__dict__", "__weakref__"):
        members.pop(name, None)
    members["__slots__"] = tuple(name for name in names if name not in there)
    meta: Any = type(cls)
    made: type[Any] = meta(cls.__name__, cls.__bases__, members)
    made.__qualname__ = cls.__qualname__
    return made


def _make(cls: type[Any], *, frozen: bool, slots: bool, kw_only: bool, order: bool) -> type[Any]:
    found = _collect(cls, kw_only)
    for name, function in {**_ALWAYS, **(_FROZEN if frozen else {}), **(_ORDERED if order else {})}.items():
        if name not in cls.__dict__:
            setattr(cls, name, function)
    if not frozen and cls.__dict__.get("__hash__") is None:
        cls.__hash__ = None  # type: ignore[assignment]  # equal by content and changeable: no key of a dict
    if "__match_args__" not in cls.__dict__:
        by_position = tuple(field.name for field in found.values() if field.init and not field.kw_only)
        type.__setattr__(cls, "__match_args__", by_position)
    if slots:
        cls = _with_slots(cls, list(found))
    else:
        for field in found.values():
            if field.default is not _MISSING:
                setattr(cls, field.name, field.default)
            elif field.name in cls.__dict__:
                delattr(cls, field.name)
    cls.__cheap_fields__ = found
    cls.__dataclass_fields__ = _AsStandard()
    return cls


if TYPE_CHECKING:
    # A type checker should see nothing special.
    from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
else:
    MISSING = _MISSING

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, order=False):
        """Return *cls* as a dataclass, or a decorator that does; see the module."""

        def make(cls):
            return _make(cls, frozen=frozen, slots=slots, kw_only=kw_only, order=order)

        return make if cls is None else make(cls)

    def field(**said):
        """Return what stands for a field's default in the class: the standard library's arguments but `hash`."""
        return _Field(**said)

    def fields(cls):
        """Return the fields of a class made here, or of an instance of one."""
        return tuple(cls.__cheap_fields__.values())

    def is_dataclass(value):
        """Return whether *value* is a class made here, or an instance of one."""
        return hasattr(value, "__cheap_fields__")

    def replace(value, /, **changes):
        """Return *value*, of a class made here or a msgspec struct, with *changes*; only arguments can be changed."""
        if not hasattr(value, "__cheap_fields__"):
            from msgspec.structs import replace as replace_struct  # it is loaded already: there is a struct

            return replace_struct(value, **changes)
        for name, field in value.__cheap_fields__.items():
            if not field.init:
                if name in changes:
                    raise ValueError(f"{name} is no argument of {type(value).__qualname__}")
            elif name not in changes:
                changes[name] = getattr(value, name)
        return value.__class__(**changes)

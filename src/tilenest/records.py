"""Records: frozen classes with slots, named fields and equality by value, cheap to define.

In: a class whose annotations are its fields, with defaults as class attributes. Out: the class
with `__init__`, `__eq__`, `__hash__`, `__repr__` and `__match_args__`, as a frozen dataclass with
slots has them. Defining one takes a tenth of a dataclass's time: only `__init__` is compiled, the
rest is shared. The package defines about a hundred, and a program waits for them when it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

ClassT = TypeVar("ClassT", bound=type)
RecordT = TypeVar("RecordT")

REQUIRED = object()
"""Stands for the default of a field without one."""
_FIELDS = "__record_fields__"
_INSTANCE_SPACE = ("__dict__", "__weakref__")


@overload
def record(cls: ClassT, /) -> ClassT: ...
@overload
def record(*, eq: bool = True) -> Callable[[ClassT], ClassT]: ...
@dataclass_transform(frozen_default=True)
def record(cls: ClassT | None = None, /, *, eq: bool = True) -> ClassT | Callable[[ClassT], ClassT]:
    """Make a class a record: `@record`, or `@record(eq=False)` for one that defines equality itself
    or is equal to nothing else."""

    def make(declared: ClassT) -> ClassT:
        return _made(declared, eq)

    return make if cls is None else make(cls)


def is_record(value: object) -> bool:
    """Whether a value is an instance of a record class."""
    return hasattr(type(value), _FIELDS)


def fields_of(cls: type) -> Mapping[str, Any]:
    """The fields of a record class and their defaults, in order."""
    fields: Mapping[str, Any] = getattr(cls, _FIELDS)
    return fields


def replace(instance: RecordT, /, **changes: Any) -> RecordT:
    """The same record with other values in some fields."""
    cls = type(instance)
    values = {name: getattr(instance, name) for name in fields_of(cls)}
    return cls(**(values | changes))


def _made(declared: ClassT, eq: bool) -> ClassT:
    space = vars(declared)
    # An annotation of a class variable is text or the object itself, as its module has it.
    own = {
        name: space.get(name, REQUIRED)
        for name, annotation in space.get("__annotations__", {}).items()
        if not str(annotation).removeprefix("typing.").startswith("ClassVar")
    }
    fields = {**getattr(declared, _FIELDS, {}), **own}
    kept = {name: value for name, value in space.items() if name not in (*own, *_INSTANCE_SPACE)}
    made = {
        **_SHARED,
        **(_equality(tuple(fields)) if eq else {}),
        "__init__": _initialiser(fields, hasattr(declared, "__post_init__")),
        "__slots__": tuple(own),
        "__match_args__": tuple(fields),
        _FIELDS: fields,
    }
    # What a class defines itself stays.
    finished: ClassT = type(declared)(declared.__name__, declared.__bases__, made | kept)
    return finished


def _initialiser(fields: Mapping[str, Any], has_check: bool) -> Callable[..., None]:
    parameters = [
        name if default is REQUIRED else f"{name}=defaults[{name!r}]"
        for name, default in fields.items()
    ]
    lines = [f"def __init__({', '.join(['self', *parameters])}):"]
    lines += [f" put(self, {name!r}, {name})" for name in fields]
    lines.append(" self.__post_init__()" if has_check else " pass")
    space: dict[str, Any] = {"put": object.__setattr__, "defaults": fields}
    exec("\n".join(lines), space)
    initialiser: Callable[..., None] = space["__init__"]
    return initialiser


def _equality(names: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    values = attrgetter(*names) if names else type

    def equal(self: object, other: object) -> object:
        if type(self) is not type(other):
            return NotImplemented
        return self is other or values(self) == values(other)

    def digest(self: object) -> int:
        return hash(values(self))

    return {"__eq__": equal, "__hash__": digest}


def _text(self: object) -> str:
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in fields_of(type(self)))
    return f"{type(self).__qualname__}({values})"


def _refuse(self: object, name: str, *_: object) -> NoReturn:
    raise AttributeError(f"{type(self).__qualname__} is frozen: {name!r} cannot change")


def _reduced(self: object) -> tuple[type, tuple[Any, ...]]:
    return type(self), tuple(getattr(self, name) for name in fields_of(type(self)))


_SHARED: dict[str, Callable[..., Any]] = {
    "__repr__": _text,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__reduce__": _reduced,
}

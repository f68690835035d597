"""Under which facts a captured kernel stays valid.

In: what capture reads outside the kernel: names, attributes of modules, the code of functions; then
the extents, strides and coincidences of arguments. Out: frozen `Guards` that say whether another
call may use the same variant; their facts about arrays are the attribute `guards` of the IR's
function, the types of its arguments and what compiled code checks. Numbers, strings, None and
tuples of those are compared by value (and type), everything else by identity.
"""

from __future__ import annotations

import builtins
import weakref
from collections.abc import Hashable, Iterable, Mapping, Sequence
from types import CellType, FunctionType, ModuleType

import numpy as np

from tilenest.capture.signature import ALONE, ArraySpec, Specification
from tilenest.dialects import Guard, PassedArguments, PassedArray
from tilenest.errors import UndefinedVariableError
from tilenest.records import record

_BY_VALUE = (bool, int, float, complex, str, bytes, type(None), np.generic)
_MISSING = object()
_PARTS_OF_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__")
Numbers = tuple[int | None, ...]
"""Extents or strides of an array; None for what is known only at run time."""


@record
class FreeVariable:
    """Something that capture read outside the kernel, and what it held."""

    name: str
    place: dict[str, object] | CellType | ModuleType | FunctionType
    """the globals a function looks it up in, the cell of a closure, or what it is an attribute of
    """
    expected: object
    """the value, or a weak reference to it"""
    is_weak: bool

    def __repr__(self) -> str:
        return f"FreeVariable({self.name!r}, {self.expected!r})"

    @property
    def is_absent(self) -> bool:
        """Whether there was nothing."""
        return self.expected is _MISSING

    def current(self) -> object:
        """What it holds now."""
        if isinstance(self.place, dict):
            return _looked_up(self.place, self.name)
        if isinstance(self.place, CellType):
            try:
                return self.place.cell_contents
            except ValueError:
                return _MISSING
        return getattr(self.place, self.name, _MISSING)

    def holds(self) -> bool:
        """Whether it still holds what capture saw."""
        current = self.current()
        if self.is_weak:
            assert isinstance(self.expected, weakref.ref)
            return current is not None and current is self.expected()
        return current is self.expected or (
            _is_constant(self.expected) and is_same_constant(current, self.expected)
        )


@record
class Guards:
    """Everything a variant was specialised on, beside dtypes and ranks."""

    facts: tuple[Guard, ...]
    """about arrays, by the arguments of the IR's function"""
    arguments: tuple[int, ...]
    """the parameter behind each argument of the IR's function"""
    kinds: tuple[Hashable, ...]
    """per argument: what cannot change without another variant (dtype and rank, dtype, None)"""
    free_variables: tuple[FreeVariable, ...]
    configuration: tuple[tuple[str, object], ...]

    def check(self, specs: Sequence[Specification], configuration: Mapping[str, object]) -> bool:
        """Whether a call with these arguments and this configuration may run the variant."""
        return (
            self.check_arguments(specs)
            and self.check_configuration(configuration)
            and self.check_free_variables()
        )

    def check_arguments(self, specs: Sequence[Specification]) -> bool:
        """Whether the arguments have the guarded kinds, extents, strides and coincidences."""
        if len(specs) != len(self.kinds):
            return False
        if any(spec.kind != kind for spec, kind in zip(specs, self.kinds, strict=True)):
            return False
        call = passed_arguments(specs, self.arguments)
        return all(fact.is_met(call) for fact in self.facts)

    def layout_of(self, argument: int, rank: int) -> tuple[Numbers, Numbers]:
        """The extents and strides that are known of an argument of the IR's function."""
        extents: list[int | None] = [None] * rank
        strides: list[int | None] = [None] * rank
        for fact in self.facts:
            if fact.argument == argument and fact.axis is not None:
                if fact.kind == "extent":
                    extents[fact.axis] = fact.value
                elif fact.kind == "stride" or fact.value:
                    strides[fact.axis] = fact.value
        return tuple(extents), tuple(strides)

    def unit_stride_of(self, argument: int) -> bool | None:
        """Whether the last stride of an argument is 1; None for what has no stride."""
        value = self._value_of("unit_stride", argument)
        return None if value is None else bool(value)

    def first_alike(self, argument: int) -> int:
        """The first argument of the IR's function that is the same array."""
        value = self._value_of("first_alike", argument)
        return argument if value is None else value

    def _value_of(self, kind: str, argument: int) -> int | None:
        about = (fact for fact in self.facts if (fact.kind, fact.argument) == (kind, argument))
        return next((fact.value for fact in about), None)

    def check_configuration(self, configuration: Mapping[str, object]) -> bool:
        """Whether the keyword configuration is the captured one."""
        return len(configuration) == len(self.configuration) and all(
            name in configuration and is_same_constant(configuration[name], value)
            for name, value in self.configuration
        )

    def check_free_variables(self) -> bool:
        """Whether every free variable still holds what capture read."""
        return all(variable.holds() for variable in self.free_variables)


def _is_constant(value: object) -> bool:
    """Whether it is compared by value."""
    if type(value) is tuple:
        return all(map(_is_constant, value))
    return isinstance(value, _BY_VALUE)


def is_same_constant(one: object, other: object) -> bool:
    """Equal values of one type; 1, 1.0 and True differ, a NaN equals a NaN."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if type(one) is tuple and type(other) is tuple:
        return len(one) == len(other) and all(map(is_same_constant, one, other))
    if isinstance(one, float | complex | np.inexact):
        return repr(one) == repr(other)
    return bool(one == other)


def _looked_up(namespace: dict[str, object], name: str) -> object:
    """What a name means to a function with these globals."""
    if name in namespace:
        return namespace[name]
    library = namespace.get("__builtins__", builtins)
    names = vars(library) if isinstance(library, ModuleType) else library
    assert isinstance(names, Mapping)
    return names.get(name, _MISSING)


def is_package_module(name: object) -> bool:
    """Whether a module of this name belongs to this package."""
    return isinstance(name, str) and name.partition(".")[0] == __name__.partition(".")[0]


def alias_groups(specs: Sequence[Specification]) -> tuple[int, ...]:
    """Per argument the index of the first one that coincides with it."""
    return tuple(
        spec.group if isinstance(spec, ArraySpec) and spec.group != ALONE else place
        for place, spec in enumerate(specs)
    )


def passed_arguments(specs: Sequence[Specification], arguments: Sequence[int]) -> PassedArguments:
    """A call as guards see it: by the arguments of the IR's function."""
    groups = alias_groups(specs)
    position = {place: number for number, place in enumerate(arguments)}
    call: list[PassedArray | None] = []
    for place in arguments:
        spec = specs[place]
        passed = None
        if isinstance(spec, ArraySpec):
            shape = tuple(extent if isinstance(extent, int) else None for extent in spec.shape)
            passed = PassedArray(shape, spec.element_strides, position[groups[place]])
        call.append(passed)
    return tuple(call)


def facts_of(
    specs: Sequence[Specification],
    arguments: Sequence[int],
    reads: Mapping[int, Iterable[tuple[str, int]]],
) -> tuple[Guard, ...]:
    """What a variant is specialised on: the extents and strides that were read, whether the last
    stride of each array is 1, and which arrays are one.

    `arguments` are the parameters that become arguments of the IR's function, `reads` what was read
    of each.
    """
    facts: list[Guard] = []
    call = passed_arguments(specs, arguments)
    for number, (place, passed) in enumerate(zip(arguments, call, strict=True)):
        if passed is None:
            continue
        for what, axis in sorted(reads.get(place, ())):
            value = (passed.shape if what == "extent" else passed.strides)[axis]
            if value is not None:
                facts.append(Guard(what, number, value, axis))
        last = passed.strides[-1] if passed.strides else None
        if last is not None:
            facts.append(Guard("unit_stride", number, int(last == 1), len(passed.strides) - 1))
        if any(specs[other].kind == specs[place].kind for other in arguments[:number]):
            facts.append(Guard("first_alike", number, passed.alike))
    return tuple(facts)


class GuardRecorder:
    """Collects what one capture reads outside. The package's own library does not change while a
    program runs, and functions of its own have nothing to watch."""

    def __init__(self) -> None:
        self._variables: dict[tuple[int, str], FreeVariable] = {}

    @property
    def free_variables(self) -> tuple[FreeVariable, ...]:
        return tuple(self._variables.values())

    def read_free(self, function: FunctionType, name: str) -> object:
        """A name that is not local to a live function: closure, globals, then builtins."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        if name in cells:
            return self._read_cell(cells[name], name)
        value = _looked_up(function.__globals__, name)
        if value is _MISSING:
            raise UndefinedVariableError(
                f"{name!r} is not defined",
                remedy="define or import it before the kernel is called, and check the spelling",
            )
        if not is_package_module(function.__module__):
            self._record(name, function.__globals__, value)
        return value

    def read_attribute(self, function: FunctionType, module: ModuleType, name: str) -> None:
        """Note what a function reads from a module, or that it finds nothing there."""
        home = vars(module).get("__name__")
        if not is_package_module(function.__module__) and not is_package_module(home):
            self._record(name, module, getattr(module, name, _MISSING))

    def interpret(self, function: FunctionType) -> None:
        """Note which code and defaults a live function has."""
        if not is_package_module(function.__module__):
            for name in _PARTS_OF_FUNCTIONS:
                value = getattr(function, name)
                # Without defaults, every argument is given.
                if value is not None:
                    self._record(name, function, value)

    def _read_cell(self, cell: CellType, name: str) -> object:
        try:
            value: object = cell.cell_contents
        except ValueError:
            raise UndefinedVariableError(
                f"{name!r} is not assigned yet in the function around the kernel",
                remedy=f"assign {name!r} before the kernel is called",
            ) from None
        self._record(name, cell, value)
        return value

    def _record(
        self,
        name: str,
        place: dict[str, object] | CellType | ModuleType | FunctionType,
        value: object,
    ) -> None:
        key = (id(place), name)
        if key in self._variables:
            return
        reference = None if isinstance(value, _BY_VALUE) else _weak_reference(value)
        variable = FreeVariable(
            name, place, value if reference is None else reference, reference is not None
        )
        # What a module computes anew each time it is asked would never hold.
        if variable.holds():
            self._variables[key] = variable


def _weak_reference(value: object) -> weakref.ref[object] | None:
    try:
        return weakref.ref(value)
    except TypeError:
        return None

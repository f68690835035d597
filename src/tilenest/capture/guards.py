"""Under which facts a captured kernel stays valid.

In: reads of free variables during capture, then the extents, strides and coincidences of
arguments. Out: frozen `Guards` that say whether another call may use the same variant. Numbers,
strings and None are compared by value (and type), everything else by identity.
"""

from __future__ import annotations

import builtins
import weakref
from collections.abc import Hashable, Mapping, Sequence
from types import CellType, FunctionType, ModuleType

import numpy as np

from tilenest.capture.signature import ALONE, ArraySpec, Specification
from tilenest.errors import UndefinedVariableError
from tilenest.records import record

_BY_VALUE = (bool, int, float, complex, str, bytes, type(None), np.generic)
_MISSING = object()


@record
class FreeVariable:
    """A name that capture read outside the kernel, and what it held."""

    name: str
    place: dict[str, object] | CellType | ModuleType
    expected: object
    """the value, or a weak reference to it"""
    is_weak: bool

    def __repr__(self) -> str:
        return f"FreeVariable({self.name!r}, {self.expected!r})"

    def current(self) -> object:
        """What the name holds now."""
        if isinstance(self.place, CellType):
            try:
                return self.place.cell_contents
            except ValueError:
                return _MISSING
        if isinstance(self.place, ModuleType):
            return getattr(self.place, self.name, _MISSING)
        return self.place.get(self.name, _MISSING)

    def holds(self) -> bool:
        """Whether the name still holds what capture saw."""
        current = self.current()
        if self.is_weak:
            assert isinstance(self.expected, weakref.ref)
            return current is self.expected()
        return current is self.expected or (
            isinstance(self.expected, _BY_VALUE) and is_same_constant(current, self.expected)
        )


@record
class Guards:
    """Everything a variant was specialised on, beside dtypes and ranks."""

    extents: tuple[tuple[int, int, int], ...]
    """(argument, axis, extent)"""
    strides: tuple[tuple[int, int, int], ...]
    """(argument, axis, stride in elements)"""
    unit_strides: tuple[bool | None, ...]
    """per argument: whether an array's last stride is 1; None for what has no stride"""
    alias_groups: tuple[int, ...]
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
        return (
            all(spec.kind == kind for spec, kind in zip(specs, self.kinds, strict=True))
            and alias_groups(specs) == self.alias_groups
            and tuple(unit_stride(spec) for spec in specs) == self.unit_strides
            and all(_array(specs[i]).shape[axis] == size for i, axis, size in self.extents)
            and all(_stride(specs[i], axis) == size for i, axis, size in self.strides)
        )

    def check_configuration(self, configuration: Mapping[str, object]) -> bool:
        """Whether the keyword configuration is the captured one."""
        return len(configuration) == len(self.configuration) and all(
            name in configuration and is_same_constant(configuration[name], value)
            for name, value in self.configuration
        )

    def check_free_variables(self) -> bool:
        """Whether every free variable still holds what capture read."""
        return all(variable.holds() for variable in self.free_variables)


def is_same_constant(one: object, other: object) -> bool:
    """Equal values of one type; 1, 1.0 and True differ, a NaN equals a NaN."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, float | np.floating) and one != one:
        return bool(other != other)
    if isinstance(one, float) and one == 0.0:
        return str(one) == str(other)
    return bool(one == other)


def is_package_module(name: str | None) -> bool:
    """Whether a module belongs to this package."""
    return (name or "").partition(".")[0] == __name__.partition(".")[0]


def alias_groups(specs: Sequence[Specification]) -> tuple[int, ...]:
    """Per argument the index of the first one that coincides with it."""
    return tuple(
        spec.group if isinstance(spec, ArraySpec) and spec.group != ALONE else place
        for place, spec in enumerate(specs)
    )


def unit_stride(spec: Specification) -> bool | None:
    """Whether an array's last stride is 1; None for anything without strides."""
    if not isinstance(spec, ArraySpec) or not spec.shape:
        return None
    return spec.element_strides[-1] == 1


def _array(spec: Specification) -> ArraySpec:
    assert isinstance(spec, ArraySpec)
    return spec


def _stride(spec: Specification, axis: int) -> int | None:
    return _array(spec).element_strides[axis]


class GuardRecorder:
    """Collects the free variables that one capture reads."""

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
        if name in function.__globals__:
            value = function.__globals__[name]
            # The package's own library does not change while a program runs.
            if not is_package_module(function.__module__):
                self._record(name, function.__globals__, value)
            return value
        if name in vars(builtins):
            found: object = vars(builtins)[name]
            return found
        raise UndefinedVariableError(
            f"{name!r} is not defined",
            remedy="define or import it before the kernel is called, and check the spelling",
        )

    def read_attribute(self, module: ModuleType, name: str, value: object) -> None:
        """Note a number or string read from a module of the user's."""
        if isinstance(value, _BY_VALUE):
            self._record(name, module, value)

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
        self, name: str, place: dict[str, object] | CellType | ModuleType, value: object
    ) -> None:
        key = (id(place), name)
        if key in self._variables:
            return
        reference = None if isinstance(value, _BY_VALUE) else _weak_reference(value)
        self._variables[key] = FreeVariable(
            name, place, value if reference is None else reference, reference is not None
        )


def _weak_reference(value: object) -> weakref.ref[object] | None:
    try:
        return weakref.ref(value)
    except TypeError:
        return None

"""The entry: bind a caller's arguments to a function's parameters and run it.

In: a module in any form and the arguments in the kernel's parameter order. Out: the returned
values; arrays are written in place. In Machine form an array becomes a pointer followed by its
extents and its strides in elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilenest.dialects import Call, Launch
from tilenest.errors import ArgumentTypeError, RankError, ShapeError, shown
from tilenest.interp import (
    atomics,
    atoms,
    compound,
    control,
    machine,
    memory,
    phases,
    scalar,
    tensor,
    tile,
    updates,
    views,
)
from tilenest.interp import exec as structured
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.values import Array, RuntimeValue, Storage, argument_memory, numpy_dtype
from tilenest.ir import Function, Module, Operation, PointerType, ScalarType, Type, ViewType
from tilenest.layouts import check_kind

HANDLERS: dict[type[Operation], Handler] = {
    **control.HANDLERS,
    **structured.HANDLERS,
    **updates.HANDLERS,
    **compound.HANDLERS,
    **atoms.HANDLERS,
    **scalar.HANDLERS,
    **views.HANDLERS,
    **memory.HANDLERS,
    **atomics.HANDLERS,
    **phases.HANDLERS,
    **tile.HANDLERS,
    **tensor.HANDLERS,
    **machine.HANDLERS,
}


def interpret(
    module: Module,
    arguments: Sequence[Any],
    *,
    function: str | None = None,
    shuffle: int | None = None,
) -> list[Any]:
    """Run a function (by default the kernel's main one) and give back what it returns.

    `shuffle` seeds the order in which independent instances and chunks run and how chunks are cut.
    """
    chosen = _chosen(module, function)
    order = None if shuffle is None else _drawn(shuffle)
    frame = Frame(module, HANDLERS, order)
    with np.errstate(all="ignore"):
        returned = frame.run(chosen.body, bind(chosen, arguments))
    return [value[()] if isinstance(value, np.ndarray) else value for value in returned]


def _drawn(seed: object) -> np.random.Generator:
    if isinstance(seed, int) and seed >= 0:
        return np.random.default_rng(seed)
    raise ArgumentTypeError(
        f"shuffle is {shown(seed)}", remedy="use an int from 0 on, or None for the text's order"
    )


def _chosen(module: Module, name: str | None) -> Function:
    """The function of a name; without one, the first that no other one runs."""
    if not isinstance(module, Module):
        raise ArgumentTypeError(
            f"a {type(module).__name__} is interpreted", remedy="pass a module, as tn.parse gives"
        )
    check_kind(name, str | None, "the name of a function")
    run = {op.callee for op in module.walk() if isinstance(op, Launch | Call)}
    for function in module.functions:
        if function.name == name or (name is None and function.name not in run):
            return function
    wanted = "to begin with" if name is None else f"named {name!r}"
    raise ArgumentTypeError(
        f"the module has no function {wanted}",
        remedy=f"its functions: {', '.join(f.name for f in module.functions) or 'none'}",
    )


def bind(function: Function, arguments: Sequence[Any]) -> list[RuntimeValue]:
    """One run-time value per parameter of the function."""
    passed: object = arguments
    has_items = passed.ndim > 0 if isinstance(passed, np.ndarray) else isinstance(passed, Sequence)
    if not has_items:
        raise ArgumentTypeError(
            f"the arguments are a {type(arguments).__name__}", remedy="pass a list of them"
        )
    types = [parameter.type for parameter in function.arguments]
    names = [parameter.name or f"argument {i}" for i, parameter in enumerate(function.arguments)]
    values: list[RuntimeValue] = []
    given = 0
    while given < len(arguments) and len(values) < len(types):
        place = len(values)
        values += _bind_one(types[place], arguments[given], names[place])
        given += 1
    scratch_bytes = function.attributes.get("scratch_bytes")
    if scratch_bytes is not None and len(values) == len(types) - 1:
        values.append(machine.fresh_scratch(scratch_bytes))
    if given < len(arguments) or len(values) != len(types):
        raise ArgumentTypeError(
            f"{len(arguments)} arguments do not fit the {len(types)} parameters of {function.name}",
            remedy="pass the kernel's arguments in the order of its parameters",
        )
    return values


def _bind_one(type_: Type, argument: Any, name: str) -> list[RuntimeValue]:
    match type_:
        case ViewType():
            return [_bind_view(type_, argument, name)]
        case ScalarType():
            return [scalar.number(argument, type_.dtype)]
        case PointerType():
            return _bind_pointer(argument, name)
    raise AssertionError(type_)


def _bind_view(type_: ViewType, argument: Any, name: str) -> Storage:
    if not isinstance(argument, np.ndarray) or argument.dtype != numpy_dtype(type_.dtype):
        raise ArgumentTypeError(
            f"{name} is no array of {type_.dtype.name}", remedy="pass an array of that dtype"
        )
    if argument.ndim != type_.rank:
        raise RankError(
            f"{name} has {argument.ndim} axes, the program expects {type_.rank}",
            remedy="pass an array of that rank",
        )
    strides = [step // argument.itemsize for step in argument.strides]
    facts = [*zip(type_.shape, argument.shape, strict=True)]
    # The stride of an axis with at most one element is never used, nor any of an empty array.
    facts += [
        (known, given)
        for known, given, extent in zip(type_.strides, strides, argument.shape, strict=True)
        if extent > 1 and argument.size
    ]
    if any(known is not None and known != given for known, given in facts):
        raise ShapeError(
            f"{name} has shape {argument.shape} and strides {tuple(strides)}, the program is "
            f"made for {type_.shape} and {type_.strides}",
            remedy="pass an array of that layout",
        )
    return Storage(argument, name)


def _bind_pointer(argument: Any, name: str) -> list[RuntimeValue]:
    if not isinstance(argument, np.ndarray):
        raise ArgumentTypeError(f"{name} is no array", remedy="pass an array")
    numbers = [*argument.shape, *(step // argument.itemsize for step in argument.strides)]
    extents_and_strides: list[Array] = [np.asarray(number, np.int64) for number in numbers]
    return [argument_memory(argument, name), *extents_and_strides]

"""Elementwise operations as IR: scalar functions, constants and casts, lifted over tiles.

In: IR values, weakly typed values and host numbers. Out: an IR value: a plain scalar operation when
all operands are scalars, else one `tile.map` over the joined dims with that operation inside. The
dtype is settled here (see `dtypes`), so the operations that come out have operands of one dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from tilenest.dialects import SCALAR_FUNCTIONS, Apply, Bitcast, Cast, Constant, Map, Yield
from tilenest.errors import DTypeError
from tilenest.ir import (
    INDEX,
    Block,
    DType,
    Region,
    ScalarType,
    TileType,
    Value,
    bool_,
    element_dtype,
    float64,
    index,
    int64,
)
from tilenest.language.dtypes import (
    Number,
    common_dtype,
    constant_value,
    numpy_scalar_dtype,
    weak_dtype,
)
from tilenest.language.session import Session
from tilenest.layouts import Dim, join_dims
from tilenest.records import record

ElementBuilder = Callable[[Sequence[Value], Sequence[Value]], Value]
"""(one index per dim, one element per input) -> the element, built inside the map's body"""


@record
class Weak:
    """A run-time scalar that came from a Python number: it takes the dtype it meets."""

    value: Value


Operand = Value | Weak | Number | np.generic


def dims_of(value: Value) -> tuple[Dim, ...]:
    """The dims of a tile, none for a scalar."""
    return value.type.dims if isinstance(value.type, TileType) else ()


def type_over(dtype: DType, dims: tuple[Dim, ...]) -> TileType | ScalarType:
    """A tile over these dims, or a scalar when there are none."""
    return TileType(dtype, dims) if dims else ScalarType(dtype)


def constant(session: Session, number: Number | np.generic, dtype: DType) -> Value:
    """A scalar constant of `dtype`."""
    operation = Constant(result_types=[ScalarType(dtype)], value=constant_value(number, dtype))
    return session.insert(operation).result


def map_elements(
    session: Session,
    dtype: DType,
    dims: tuple[Dim, ...],
    inputs: Sequence[Value],
    build: ElementBuilder,
) -> Value:
    """A tile over `dims` (at least one) whose elements `build` computes."""
    distinct = list(dict.fromkeys(inputs))
    elements = [ScalarType(element_dtype(value.type)) for value in distinct]
    body = Block([*(INDEX for _ in dims), *elements])
    operation = Map(result_types=[TileType(dtype, dims)], regions=[Region([body])], inputs=distinct)
    session.insert(operation)
    arguments = dict(zip(distinct, body.arguments[len(dims) :], strict=True))
    with session.builder.at_end(body):
        element = build(body.arguments[: len(dims)], [arguments[value] for value in inputs])
        session.insert(Yield(values=[element]))
    return operation.result


def convert(session: Session, value: Value, dtype: DType) -> Value:
    """`value` cast to `dtype`; itself when it already has it."""
    if element_dtype(value.type) is dtype:
        return value
    dims = dims_of(value)
    if not dims:
        return session.insert(Cast(result_types=[ScalarType(dtype)], value=value)).result
    return map_elements(
        session, dtype, dims, [value], lambda _, given: convert(session, given[0], dtype)
    )


def reinterpret(session: Session, value: Value, dtype: DType) -> Value:
    """The bits of `value` as `dtype`, which has the same width."""
    source = element_dtype(value.type)
    if source.bits != dtype.bits or "x" in (source.kind, dtype.kind):
        raise DTypeError(
            f"the bits of {source} cannot be read as {dtype}",
            remedy="use a dtype of the same width, or cast to convert the number",
        )
    if source is dtype:
        return value
    dims = dims_of(value)
    if not dims:
        return session.insert(Bitcast(result_types=[ScalarType(dtype)], value=value)).result
    return map_elements(
        session, dtype, dims, [value], lambda _, given: reinterpret(session, given[0], dtype)
    )


def apply(session: Session, name: str, operands: Sequence[Operand]) -> Value | Weak:
    """The function `name` of the scalar table on operands that join.

    The result is weak when every operand that has a dtype of its own is weak and the function does
    not decide the dtype itself.
    """
    predicate, numbers = _split_predicate(session, name, operands)
    values = [*predicate, *(value_in(operand) for operand in numbers)]
    dims = joined_dims(values)
    dtype, is_weak = operand_dtype(name, numbers, bool(dims))
    check_domain(name, dtype)
    given = [*predicate, *(materialize(session, operand, dtype) for operand in numbers)]
    result = bool_ if SCALAR_FUNCTIONS[name].result == "bool" else dtype
    value = _apply_over(session, name, result, dims, given)
    return Weak(value) if is_weak and result is dtype else value


def value_in(operand: Operand) -> Value | None:
    """The IR value of an operand, None for a host number."""
    if isinstance(operand, Weak):
        return operand.value
    return operand if isinstance(operand, Value) else None


def joined_dims(values: Sequence[Value | None]) -> tuple[Dim, ...]:
    """The dims over which these values meet; ShapeError when they do not join."""
    return reduce(join_dims, (dims_of(value) for value in values if value is not None), ())


def operand_dtype(name: str, operands: Sequence[Operand], has_tile: bool) -> tuple[DType, bool]:
    """The dtype of an operation, and whether it is only weak."""
    strong = [
        element_dtype(operand.type) if isinstance(operand, Value) else numpy_scalar_dtype(operand)
        for operand in operands
        if isinstance(operand, Value | np.generic)
    ]
    weak = [element_dtype(operand.value.type) for operand in operands if isinstance(operand, Weak)]
    if strong:
        dtype = common_dtype(strong, has_tile)
        _check_weak(weak, dtype)
        return dtype, False
    if not weak:
        raise DTypeError(
            f"{name} gets only Python numbers, which have no dtype of their own",
            remedy="compute it with Python's math module, or make one a tn.scalar(number, dtype)",
        )
    host = [_host_dtype(operand) for operand in operands if isinstance(operand, bool | int | float)]
    return weak_dtype([*weak, *host]), True


def check_domain(name: str, dtype: DType) -> None:
    """Refuse a function on a dtype that it has no meaning for."""
    if dtype.kind in SCALAR_FUNCTIONS[name].domain:
        return
    if dtype.is_bool:
        remedy = "cast the bool operand, as mask.cast(tn.int32), or combine masks with & | ^ ~"
    elif name == "div":
        remedy = "use // for integers, or cast the operands to a float dtype"
    elif dtype.is_integer:
        remedy = "cast the operand to a float dtype, as x.cast(tn.float32)"
    elif name in ("floordiv", "mod"):
        remedy = "use tn.floor(a / b), and a - tn.floor(a / b) * b for the rest"
    else:
        remedy = "use tn.bitcast to work on the bits of a float"
    raise DTypeError(f"{name} does not take {dtype}", remedy)


def materialize(session: Session, operand: Operand, dtype: DType) -> Value:
    """An operand as a value of exactly `dtype`, converting where that is allowed."""
    if isinstance(operand, Weak):
        return convert(session, operand.value, dtype)
    if isinstance(operand, Value):
        return convert(session, operand, dtype)
    return constant(session, operand, dtype)


def required(session: Session, operand: Operand, dtype: DType, what: str) -> Value:
    """An operand where only `dtype` fits: weak numbers take it, an index becomes any integer."""
    if isinstance(operand, Weak):
        _check_weak([element_dtype(operand.value.type)], dtype)
    elif isinstance(operand, Value | np.generic):
        given = (
            element_dtype(operand.type)
            if isinstance(operand, Value)
            else numpy_scalar_dtype(operand)
        )
        if given is not dtype and not (given is index and dtype.is_integer):
            raise DTypeError(
                f"{what} has dtype {given} where {dtype} is needed",
                remedy=f"cast it, as value.cast(tn.{dtype.name})",
            )
    return materialize(session, operand, dtype)


def _split_predicate(
    session: Session, name: str, operands: Sequence[Operand]
) -> tuple[list[Value], Sequence[Operand]]:
    if name != "where":
        return [], operands
    predicate, *branches = operands
    if isinstance(predicate, bool | np.bool_):
        return [constant(session, predicate, bool_)], branches
    value = value_in(predicate)
    if value is None or element_dtype(value.type) is not bool_:
        raise DTypeError("the condition of tn.where is not bool", remedy="compare it, as x != 0")
    return [value], branches


def _apply_over(
    session: Session, name: str, dtype: DType, dims: tuple[Dim, ...], arguments: Sequence[Value]
) -> Value:
    if not dims:
        operation = Apply(result_types=[ScalarType(dtype)], arguments=arguments, function=name)
        return session.insert(operation).result
    return map_elements(
        session,
        dtype,
        dims,
        arguments,
        lambda _, elements: _apply_over(session, name, dtype, (), elements),
    )


def _check_weak(weak: Sequence[DType], dtype: DType) -> None:
    """A weak float does not become an integer, nor a number a bool."""
    for given in weak:
        if given.is_bool is not dtype.is_bool or (given.is_float and not dtype.is_float):
            raise DTypeError(
                f"a Python {given.name.rstrip('_0123456789')} meets {dtype}",
                _remedy_for_weak(given, dtype),
            )


def _remedy_for_weak(given: DType, dtype: DType) -> str:
    """What to do with a Python number of a dtype that does not become the other."""
    if dtype.is_bool:
        return "make a bool of the number, as a != 0"
    if given.is_bool:
        return f"make a number of the bool, as a.cast(tn.{dtype.name}), or choose by tn.where"
    return (
        f"cast the operand of integers, as x.cast(tn.float32), or the number, as "
        f"a.cast(tn.{dtype.name})"
    )


def _host_dtype(number: Number) -> DType:
    if isinstance(number, bool):
        return bool_
    return int64 if isinstance(number, int) else float64

"""Run-time scalars where Python has host values: conditions, bounds, numbers that become scalars.

In: host numbers and staged values of kernels. Out: conditions, IR values of an agreed type, and
handles on results. A number, or a scalar that came from one, has no dtype of its own: it takes
the one it meets at a merge or a carry.
"""

from __future__ import annotations

import numpy as np

from tilenest.dialects import Apply
from tilenest.errors import CaptureError
from tilenest.ir import (
    BOOL,
    DType,
    ScalarType,
    Type,
    Value,
    bool_,
    element_dtype,
    float64,
    index,
    int64,
)
from tilenest.language import Element, Scalar, Session, numpy_scalar_dtype, scalar, wrap
from tilenest.records import record


@record
class Kind:
    """What a variable is at run time: its type, and whether it came from Python numbers only."""

    type: Type
    is_weak: bool = False


def truth(value: object, construct: str) -> bool | Scalar:
    """Python's truth of a host value; for a run-time scalar, whether it is not zero."""
    if not isinstance(value, Element):
        return bool(value)
    if not isinstance(value, Scalar):
        raise CaptureError(
            f"a tile is used as the condition of `{construct}`",
            remedy="combine masks with & | ~ and choose elements with tn.where(mask, a, b)",
        )
    if value.dtype.is_bool:
        return value
    compared = value != 0
    assert isinstance(compared, Scalar)
    return compared


def combine_conditions(session: Session, word: str, one: Scalar, other: Scalar) -> Scalar:
    """`and` or `or` of two bool scalars; both are computed."""
    arguments = [session.value_of(one), session.value_of(other)]
    operation = Apply(result_types=[BOOL], arguments=arguments, function=word)
    return Scalar(session.insert(operation).result, session)


def negate_condition(session: Session, value: bool | Scalar) -> bool | Scalar:
    """`not` of a condition."""
    if not isinstance(value, Scalar):
        return not value
    operation = Apply(result_types=[BOOL], arguments=[session.value_of(value)], function="not")
    return Scalar(session.insert(operation).result, session)


def index_value(session: Session, bound: int | Scalar) -> Value:
    """A bound of a nest as an index value."""
    if isinstance(bound, int):
        return session.value_of(scalar(bound, index))
    return session.value_of(bound.cast(index))


def is_dtypeless(leaf: object) -> bool:
    """Whether a number or scalar takes the dtype it meets."""
    return leaf.is_weak if isinstance(leaf, Element) else not isinstance(leaf, np.generic)


def kind_of(leaf: object) -> Kind:
    """The kind of a number or staged value."""
    if isinstance(leaf, Element):
        return Kind(leaf.value.type, leaf.is_weak)
    if isinstance(leaf, np.generic):
        return Kind(ScalarType(numpy_scalar_dtype(leaf)))
    return Kind(ScalarType(_weak_dtype(leaf)), is_weak=True)


def common_kind(one: Kind, other: Kind) -> Kind | None:
    """The kind that both can become, None when there is none."""
    if one.is_weak and other.is_weak:
        dtypes = {element_dtype(one.type), element_dtype(other.type)}
        if float64 in dtypes and bool_ not in dtypes:
            return Kind(ScalarType(float64), is_weak=True)
        return one if one.type is other.type else None
    if one.is_weak or other.is_weak:
        weak, strong = (one, other) if one.is_weak else (other, one)
        return strong if _admits(strong.type, element_dtype(weak.type)) else None
    return one if one.type is other.type else None


def value_as(session: Session, leaf: object, kind: Kind) -> Value:
    """A number or staged value as an IR value of a kind that it can become."""
    dtype = element_dtype(kind.type)
    if isinstance(leaf, Element):
        return session.value_of(leaf if leaf.dtype is dtype else leaf.cast(dtype))
    assert isinstance(leaf, bool | int | float | np.generic), leaf
    return session.value_of(scalar(leaf, dtype))


def handle_on(session: Session, value: Value, is_weak: bool) -> Element:
    """The handle on a merged or carried value."""
    return Scalar(value, session, is_weak=True) if is_weak else wrap(value, session)


def _admits(type_: Type, weak: DType) -> bool:
    if not isinstance(type_, ScalarType):
        return False
    if weak.is_bool or type_.dtype.is_bool:
        return weak.is_bool and type_.dtype.is_bool
    return type_.dtype.is_float or not weak.is_float


def _weak_dtype(number: object) -> DType:
    if isinstance(number, bool):
        return bool_
    assert isinstance(number, int | float), number
    return int64 if isinstance(number, int) else float64

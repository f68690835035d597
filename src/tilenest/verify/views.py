"""Rules `OP60` to `OP62`: views of views.

In: operations of the view dialect, and what stores through them. Out: findings about maps, extents,
strides, and about elements that a view shows more than once.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis import shows_elements_once
from tilenest.dialects import Remap, Store, Stride, chain_of, strides_of
from tilenest.ir import (
    DType,
    Fault,
    Rule,
    Subject,
    Value,
    ViewType,
    describe_attribute,
    describe_type,
)
from tilenest.layouts import AffineMap
from tilenest.verify.expectations import Findings, describe_types, expect_index, op_rule, types_of


def _remap(op: Remap) -> Findings:
    types = types_of([op.view, *op.results])
    if len(types) != 2 or not all(isinstance(type_, ViewType) for type_ in types):
        yield f"goes between {describe_types(types)}", "make one view of a view"
        return
    below, own = (type_ for type_ in types if isinstance(type_, ViewType))
    yield from expect_index("symbol", op.symbols)
    yield from expect_index("extent", op.extents)
    if own.dtype is not below.dtype:
        yield f"shows {below.dtype.text} as {own.dtype.text}", "keep the element type"
    if own.shape.count(None) != len(op.extents):
        yield (
            f"gives {len(op.extents)} extents for the type {describe_type(own)}",
            "give one for each extent that the type leaves open",
        )
    if any(extent is not None and extent < 0 for extent in own.shape):
        yield f"has the extents {describe_attribute(own.shape)}", "use extents of at least 0"
    yield from _elements(op, own)
    known = strides_of(op.view, op.map)
    if any(s is not None and s != k for s, k in zip(own.strides, known, strict=True)):
        claimed, given = describe_attribute(own.strides), describe_attribute(known)
        yield f"claims the strides {claimed}, the map gives {given}", "leave open what is not known"


def _elements(op: Remap, own: ViewType) -> Findings:
    """Where there are elements, and what is read elsewhere."""
    if not isinstance(op.valid, AffineMap | None):
        yield f"`valid` is {op.valid}", "use a map of the same dims and symbols, or none"
    if op.fill is None:
        if op.valid is not None:
            yield "has conditions and no `fill`", "say what is read where they do not hold"
    elif not _is_number_of(op.fill, own.dtype):
        yield f"`fill` is {op.fill!r}", f"use a number of {own.dtype.text}"


def _is_number_of(number: object, dtype: DType) -> bool:
    if dtype.is_bool:
        return isinstance(number, bool) or number in (0, 1)
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    if dtype.is_float:
        return True
    lowest = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    return isinstance(number, int) and lowest <= number < lowest + (1 << dtype.bits)


def _writes(subject: Subject) -> Iterator[Fault]:
    for op in subject.of(Store):
        yield from shown_twice(op, op.view)


def shown_twice(op: Store, view: Value) -> Iterator[Fault]:
    """A fault where a view below a write is not proven to show its elements once."""
    for remap in chain_of(view):
        if any(True for _ in _remap(remap)):
            return
        answer = shows_elements_once(remap)
        if not answer.is_proven:
            yield Fault(
                op,
                f"writes through a view that may show one element at several places: {answer}",
                "write to the storage, or through a view whose map is one to one",
            )
            return


def _stride(op: Stride) -> Findings:
    chain = chain_of(op.view)
    if chain and any(result.coefficient(op.axis) is None for result in chain[0].map.results):
        yield f"the view does not move evenly along axis {op.axis}", "ask the view below it"


VIEW_RULES = (
    op_rule("OP60", "a view of a view shows its elements", Remap, _remap),
    Rule("OP61", "what is written is shown once", _writes),
    op_rule("OP62", "strides are asked where they are constant", Stride, _stride),
)

"""Rules `OP70` to `OP72`: atomic updates and synchronization.

In: operations of the atomic dialect. Out: findings about operands, functions and dtypes, about
updates of many elements where one is meant, and about synchronizations that not every instance
would reach.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis import enclosing, nearest_parallel
from tilenest.dialects import (
    ATOMIC_FUNCTIONS,
    CANDIDATE,
    AddressAtomic,
    Atomic,
    CarryingNest,
    Reduce,
    Synchronize,
)
from tilenest.ir import (
    BOOL,
    POINTER,
    DType,
    Fault,
    Rule,
    ScalarType,
    Subject,
    TileType,
    Type,
    ViewType,
    describe_type,
)
from tilenest.layouts import Dim
from tilenest.verify.expectations import (
    Findings,
    broadcasts_to,
    describe_types,
    expect_choice,
    expect_index,
    expect_types,
    is_bool,
    is_storable,
    op_rule,
    type_is_over,
    types_of,
)
from tilenest.verify.tiles import BOUNDS

_BITWISE = ("and", "or", "xor")
_NUMERIC = ("add", "minimum", "maximum")


def _atomic(op: Atomic) -> Findings:
    yield from expect_choice("`bounds`", op.bounds, BOUNDS)
    yield from expect_choice("the function", op.function, ATOMIC_FUNCTIONS)
    yield from expect_index("origin", op.origins)
    view, dims = op.view.type, tuple(dim for dim in op.dims if isinstance(dim, Dim))
    if not isinstance(view, ViewType):
        yield f"updates a {describe_type(view)}", "update a view"
        return
    if len(op.origins) != view.rank or len(dims) not in (0, view.rank):
        yield (
            f"has {len(op.origins)} origins and {len(op.dims)} dims for a view of rank {view.rank}",
            "give one origin and one dim per axis, or no dims for one element",
        )
        return
    if len(dims) != len(op.dims) or len(set(dims)) != len(dims):
        yield "`dims` are not distinct dims", "name one dim per axis"
        return
    yield from _operands(op, view, dims)
    content: list[Type] = [TileType(view.dtype, dims)] if dims else []
    if op.results and dims:
        yield from expect_types("results", types_of(op.results), content)
    elif op.results and not (len(op.results) == 1 and type_is_over(op.results[0].type, view.dtype)):
        yield f"gives {describe_types(types_of(op.results))}", "give the old element, or nothing"


def _operands(op: Atomic, view: ViewType, dims: tuple[Dim, ...]) -> Findings:
    for value in (op.value, op.expected):
        if value is not None and not (
            type_is_over(value.type, view.dtype) and is_storable(value.type, dims)
        ):
            yield (
                f"an operand is a {describe_type(value.type)}",
                f"use a {view.dtype.text} that could be stored there",
            )
    if op.mask is not None and not (is_bool(op.mask.type) and broadcasts_to(op.mask.type, dims)):
        yield f"the mask is a {describe_type(op.mask.type)}", "use a bool that broadcasts"
    yield from _function(op, view.dtype)


def _function(op: Atomic | AddressAtomic, dtype: DType) -> Findings:
    if (op.function == "compare_exchange") != (op.expected is not None):
        yield "only compare_exchange expects a value", "give `expected` to it, and to no other"
    is_wrong = (op.function in _BITWISE and dtype.is_float) or (
        op.function in _NUMERIC and dtype.is_bool
    )
    if is_wrong:
        yield f"{op.function} has no meaning for {dtype.text}", "use another function"


def _single(subject: Subject) -> Iterator[Fault]:
    for op in subject.of(Atomic):
        if op.dims and subject.module.form != CANDIDATE:
            yield Fault(op, "updates many elements", "update one after the other")


def _address(op: AddressAtomic) -> Findings:
    kind = op.value.type
    if op.pointer.type is not POINTER or not isinstance(kind, ScalarType):
        yield f"updates {describe_types(types_of(op.operands))}", "update a scalar at a pointer"
        return
    yield from expect_choice("the function", op.function, ATOMIC_FUNCTIONS)
    yield from expect_types("results", types_of(op.results), [kind])
    if op.mask is not None:
        yield from expect_types("masks", [op.mask.type], [BOOL])
    if op.expected is not None:
        yield from expect_types("expected values", [op.expected.type], [kind])
    yield from _function(op, kind.dtype)


def _synchronize(op: Synchronize) -> Findings:
    if op.results:
        yield "has results", "a synchronization gives nothing"
    for owner in enclosing(op, nearest_parallel(op)):
        if not isinstance(owner, CarryingNest) or isinstance(owner, Reduce):
            yield (
                f"stands in {owner.NAME}, where some instances may not come",
                "synchronize in the body of the nest itself, or in a serial nest",
            )
            return


ATOMIC_RULES = (
    op_rule("OP70", "atomic updates fit their view", Atomic, _atomic),
    Rule("OP70b", "atomic updates of lifted work take one element", _single),
    op_rule("OP71", "all instances reach a synchronization", Synchronize, _synchronize),
    op_rule("OP72", "atomic updates of memory take a scalar", AddressAtomic, _address),
)

"""Hand the items of tuples on one by one: no region takes or yields a tuple.

In: Candidate form without pipelines. Out: nests and conditionals whose states and results are the
items, tuples put together again where they are read; what only takes them apart folds away when the
program is simplified. A kernel that itself takes or returns tuples is refused.

    %t = exec.serial [%u : tuple<f32, index>] { (%i, %s): ...; yield %n }
    becomes   %a, %b = exec.serial [%u.0, %u.1] { (%i, %p, %q): ...; yield %n.0, %n.1 }
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.dialects import Aggregate, CarryingNest, Extract, If
from tilenest.errors import TargetError
from tilenest.ir import Block, Builder, Function, Operation, Rewriter, TupleType, Type, Value
from tilenest.passes.pieces import keep_laws


def unpack_tuples(function: Function, rewriter: Rewriter) -> tuple[()]:
    """Rewrite one function in place; there is nothing to decide."""
    outside = [*(argument.type for argument in function.arguments), *function.result_types]
    if any(isinstance(type_, TupleType) for type_ in outside):
        raise TargetError(
            f"@{function.name} takes or returns a tuple",
            "give the function its items one by one",
        )
    for op in list(function.walk()):
        if isinstance(op, CarryingNest | If):
            while (place := _tuple_place(op)) is not None:
                _unpack(op, place, rewriter)
    return ()


def _tuple_place(op: CarryingNest | If) -> int | None:
    places = (i for i, result in enumerate(op.results) if isinstance(result.type, TupleType))
    return next(places, None)


def _unpack(op: CarryingNest | If, place: int, rewriter: Rewriter) -> None:
    """Put the items of one state or result behind all others."""
    result = op.results[place]
    items = _items(result.type)
    if isinstance(op, CarryingNest):
        before = rewriter.builder_before(op)
        states = _behind(op.initial, place, _extracted(op.initial[place], before))
        rewriter.set_operands(op, "initial", states)
        # A tuple has no law, and what its items have is seen when they are looked at.
        keep_laws(op, (), rewriter)
        _unpack_argument(op.body, op.rank + place, items, rewriter)
    for region in op.regions:
        end = region.block.terminator
        parts = _extracted(end.operands[place], rewriter.builder_before(end))
        rewriter.set_operands(end, "values", _behind(end.operands, place, parts))
    parts = [rewriter.add_result(op, item, result.name) for item in items]
    _assemble(result, parts, rewriter.builder_after(op), rewriter)
    rewriter.remove_result(op, place)


def _unpack_argument(block: Block, place: int, items: Sequence[Type], rewriter: Rewriter) -> None:
    whole = block.arguments[place]
    parts = [rewriter.add_argument(block, item, whole.name) for item in items]
    first = block.operations.first
    assert first is not None
    _assemble(whole, parts, rewriter.builder_before(first), rewriter)
    rewriter.remove_argument(block, place)


def _items(type_: Type) -> tuple[Type, ...]:
    assert isinstance(type_, TupleType)
    return type_.items


def _behind(values: Sequence[Value], place: int, parts: Sequence[Value]) -> list[Value]:
    return [*values[:place], *values[place + 1 :], *parts]


def _extracted(whole: Value, builder: Builder) -> list[Value]:
    return [
        builder.insert(Extract(aggregate=whole, index=index, result_types=[item])).result
        for index, item in enumerate(_items(whole.type))
    ]


def _assemble(
    whole: Value, parts: Sequence[Value], builder: Builder, rewriter: Rewriter
) -> Operation:
    """The tuple of the parts instead of the whole."""
    made = builder.insert(Aggregate(items=parts, result_types=[whole.type]))
    rewriter.replace_all_uses(whole, made.result)
    return made

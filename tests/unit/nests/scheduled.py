"""Small Scheduled modules for nest tests: one map_reduce_post over view arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilenest.dialects import Access, Apply, MapReducePost, ResultSpec, Return, Sched, Yield
from tilenest.dialects import Constant as ConstantOp
from tilenest.ir import (
    INDEX,
    Block,
    Builder,
    DType,
    Function,
    Module,
    Region,
    ScalarType,
    Type,
    Value,
    ViewType,
)
from tilenest.layouts import AffineMap, IndexExpr

Body = Callable[[Builder, list[Value]], list[Value]]


def apply(builder: Builder, function: str, *arguments: Value) -> Value:
    op = Apply(arguments=arguments, function=function, result_types=[arguments[-1].type])
    return builder.insert(op).result


def constant(builder: Builder, value: float, type_: Type) -> Value:
    return builder.insert(ConstantOp(value=value, result_types=[type_])).result


def region(types: Sequence[Type], body: Body) -> Region:
    block = Block(types)
    builder = Builder(block)
    values = body(builder, list(block.arguments))
    builder.insert(Yield(values=values))
    return Region([block])


def access(n_dims: int, results: Sequence[IndexExpr], bounds: str = "proven") -> Access:
    return Access(AffineMap(n_dims, 0, tuple(results)), bounds)


def identity_post(rank: int, type_: Type) -> Region:
    return region([INDEX] * rank + [type_], lambda _, values: [values[rank]])


def one_op_module(
    dtype: DType,
    shapes: Sequence[tuple[int, ...]],
    extents: tuple[int, ...],
    inputs: Sequence[Access],
    output: Access,
    spec: ResultSpec,
    body: Body,
    sched: Sched,
    seed: float = 0.0,
) -> Module:
    """Arguments: one dense view per input, then the output; the fold's seed is a constant."""
    module = Module("scheduled")
    types: list[Type] = [ViewType(dtype, shape, _row_major(shape)) for shape in shapes]
    function = module.add(Function("main", types))
    builder = Builder(function.body)
    element = ScalarType(dtype)
    is_fold = spec.policy is not None
    arguments = [INDEX] * len(extents) + [element] * len(inputs) + [element] * is_fold
    regions = [region(arguments, body)]
    seeds = []
    if is_fold:
        regions.append(identity_post(len(extents), element))
        seeds.append(constant(builder, seed, element))
    builder.insert(
        MapReducePost(
            inputs=function.arguments[:-1],
            seeds=seeds,
            outputs=[function.arguments[-1]],
            extents=extents,
            input_access=tuple(inputs),
            seed_access=(access(len(extents), ()),) if is_fold else (),
            output_access=(output,),
            specs=(spec,),
            sched=sched,
            regions=regions,
        )
    )
    builder.insert(Return())
    return module


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)

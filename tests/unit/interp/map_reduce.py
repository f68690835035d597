"""Writing a map_reduce_post by hand, for the tests of the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.unit.interp.programs import Program, blank
from tilenest.dialects import Access, MapReducePost, ResultSpec, contract_of
from tilenest.ir import INDEX, DType, ScalarType, TileType, Value, float32
from tilenest.layouts import AffineMap, Const, DimRef, IndexExpr

F32 = ScalarType(float32)
Body = Callable[..., Value | tuple[Value, ...]]
Operand = tuple[Value, Sequence[IndexExpr | int]]
D = [DimRef(place) for place in range(6)]


def access(work: Work, results: Sequence[IndexExpr | int], **fields: Any) -> Access:
    exprs = tuple(Const(item) if isinstance(item, int) else item for item in results)
    return Access(AffineMap(len(work.extents), work.symbols, exprs), **fields)


class Work:
    """A map_reduce_post written by hand: what the op needs, then `emit`."""

    def __init__(self, program: Program, *extents: int, symbols: int = 0) -> None:
        self.program = program
        self.extents = extents
        self.symbols = symbols
        self.fields: dict[str, Any] = {"extents": extents, "input_access": ()}
        self.dtypes: list[ScalarType] = []

    def inputs(self, *operands: Operand, dtype: DType = float32, **fields: Any) -> Work:
        self.fields["inputs"] = [value for value, _ in operands]
        self.fields["input_access"] = tuple(access(self, at, **fields) for _, at in operands)
        self.dtypes = [ScalarType(dtype)] * len(operands)
        return self

    def seeds(self, *operands: Operand) -> Work:
        self.fields["seeds"] = [value for value, _ in operands]
        self.fields["seed_access"] = tuple(access(self, at) for _, at in operands)
        return self

    def posts(self, *operands: Operand) -> Work:
        self.fields["posts"] = [value for value, _ in operands]
        self.fields["post_access"] = tuple(access(self, at) for _, at in operands)
        return self

    def outputs(self, *operands: Operand, **fields: Any) -> Work:
        self.fields["outputs"] = [value for value, _ in operands]
        self.fields["output_access"] = tuple(access(self, at, **fields) for _, at in operands)
        return self

    def clip(self, dim: int, bound: Value) -> Work:
        self.fields["clipped"] = (dim,)
        self.fields["upper"] = [bound]
        return self

    def at(self, *values: Value) -> Work:
        self.fields["symbols"] = list(values)
        return self

    def emit(
        self,
        specs: Sequence[ResultSpec],
        fold: Body,
        posts: Sequence[Body] = (),
        results: Sequence[ScalarType | TileType] = (),
        dtype: DType = float32,
    ) -> MapReducePost:
        indices = [INDEX] * len(self.extents)
        folded = [spec for spec in specs if spec.policy is not None]
        state = ScalarType(dtype)
        regions = [blank(*indices, *self.dtypes, *[state] * len(folded))]
        regions += [blank(*indices, state, *[F32] * spec.posts) for spec in folded]
        op = self.program.add(
            MapReducePost(
                specs=tuple(specs), regions=regions, result_types=list(results), **self.fields
            )
        )
        bodies = [fold, *posts, *[last_state] * (len(folded) - len(posts))]
        for place, body in enumerate(bodies):
            with self.program.inside(op, place) as arguments:
                given = body(*arguments[len(indices) :])
                self.program.yields(*(given if isinstance(given, tuple) else (given,)))
        return op


def last_state(state: Value) -> Value:
    return state


def fold(
    dims: tuple[int, ...], policy: str = "fold_left", merge: str | None = None, **fields: Any
) -> ResultSpec:
    return ResultSpec(dims, contract_of(policy, merge), **fields)

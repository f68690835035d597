"""Tile values: loads, stores, elementwise maps, reindexing, matrix multiply-accumulate; view facts.

Tiles have dims by identity (`TileType.dims`). A tile operand broadcasts over the dims it lacks, and
over a dim it has with a different identity when both are positional and its extent is 1
(`layouts.join_dims`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tilenest.dialects.iterations import (
    broadcast_map,
    dims_of,
    parallel_dims,
    rank_of,
    stored_map,
    window,
    window_map,
)
from tilenest.dialects.stages import CANDIDATE, LIFTED, STRUCTURED
from tilenest.ir import (
    DType,
    Effect,
    EffectKind,
    Iteration,
    IterationDim,
    MapUse,
    Operation,
    OwnAccesses,
    OwnEffects,
    RegionUse,
    Touch,
    Value,
    attribute,
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    open_attribute,
    operand,
    optional,
    uint8,
    uint16,
    uint32,
    uint64,
    variadic,
)
from tilenest.layouts import AffineMap, Dim

ACCUMULATORS: Mapping[DType, tuple[DType, ...]] = {
    int8: (int8, int16, int32, int64),
    int16: (int16, int32, int64),
    int32: (int32, int64),
    int64: (int64,),
    uint8: (uint8, uint16, uint32, uint64, int16, int32, int64),
    uint16: (uint16, uint32, uint64, int32, int64),
    uint32: (uint32, uint64, int64),
    uint64: (uint64,),
    float16: (float16, float32, float64),
    bfloat16: (bfloat16, float32, float64),
    float32: (float32, float64),
    float64: (float64,),
}
"""What a factor of `Mma` may be accumulated in: dtypes of its kind that hold all its numbers."""


class Extent(Operation):
    """The run-time extent of one axis of a view, an index."""

    NAME = "view.extent"
    FORMS = STRUCTURED
    view = operand()
    axis = attribute(int)

    def effects(self) -> OwnEffects:
        return ()


class Stride(Operation):
    """The run-time stride of one axis of a view, in elements, an index."""

    NAME = "view.stride"
    FORMS = STRUCTURED
    view = operand()
    axis = attribute(int)

    def effects(self) -> OwnEffects:
        return ()


class Load(Operation):
    """A snapshot of part of a view.

    Element (t0, t1, ...) of the result is view[origin0 + t0, origin1 + t1, ...]: the result tile
    has one dim per axis of the view; a scalar result reads the one element at the origins. `bounds`
    'zero' gives `other` (0 when absent) outside the view and where `mask` (a bool tile or scalar
    that broadcasts) is false, 'assume' promises that nothing is outside, 'check' raises. `site`
    counts the accesses of a program that check.
    """

    NAME = "tile.load"
    ACTION = "load"
    FORMS = STRUCTURED
    view = operand()
    origins = variadic()
    other = optional()
    mask = optional()
    bounds = attribute(str, default="zero")
    site = attribute(int, default=0)
    place = open_attribute(object, default=None)
    """a Placement, or None"""

    def effects(self) -> OwnEffects:
        return _access_effects(Effect(EffectKind.READ, self.view), self.bounds)

    def accesses(self) -> OwnAccesses:
        return (_window(self, EffectKind.READ, dims_of(self.result.type)),)

    def iteration(self) -> Iteration:
        dims, count = dims_of(self.result.type), len(self.origins)
        others = [value for value in (self.other, self.mask) if value is not None]
        operands = (
            window_map(dims, count),
            *[None] * count,
            *(broadcast_map(value.type, dims, count) for value in others),
        )
        result = broadcast_map(self.result.type, dims, count)
        return Iteration(parallel_dims(dims), operands, (result,), tuple(range(1, 1 + count)))


class Store(Operation):
    """Write a tile (or scalar) at the origins; the value broadcasts to `dims` (one per axis; empty
    writes one element). Out of range and masked elements are dropped."""

    NAME = "tile.store"
    ACTION = "store"
    FORMS = (CANDIDATE, LIFTED)
    view = operand()
    origins = variadic()
    value = operand()
    mask = optional()
    bounds = attribute(str, default="zero")
    dims = attribute(tuple, default=())
    site = attribute(int, default=0)
    place = open_attribute(object, default=None)
    """a Placement, or None"""

    def effects(self) -> OwnEffects:
        return _access_effects(Effect(EffectKind.WRITE, self.view), self.bounds)

    def accesses(self) -> OwnAccesses:
        return (_window(self, EffectKind.WRITE, self.dims),)

    def iteration(self) -> Iteration:
        count = len(self.origins)
        stored = [value for value in (self.value, self.mask) if value is not None]
        operands = (
            window_map(self.dims, count),
            *[None] * count,
            *(stored_map(value.type, self.dims, count) for value in stored),
        )
        return Iteration(parallel_dims(self.dims), operands, (), tuple(range(1, 1 + count)))


def _access_effects(access: Effect[Value], bounds: str) -> OwnEffects:
    return (access, Effect(EffectKind.FAULT)) if bounds == "check" else (access,)


def _window(op: Load | Store, kind: EffectKind, dims: tuple[Dim, ...]) -> Touch[Value]:
    is_masked = op.mask is not None
    return window(op.view, op.origins, dims, kind, bounds=op.bounds, is_masked=is_masked)


class _Computation(Operation):
    """Values in, values out, and nothing else."""

    FORMS = (CANDIDATE,)
    place = open_attribute(object, default=None)
    """a Placement, or None"""

    def effects(self) -> OwnEffects:
        return ()


class Map(_Computation):
    """Elementwise: one scalar region lifted over the result's dims.

    Region: (one index per result dim, one element per operand) -> one element. Operands are tiles
    or scalars. A constant tile is a map without operands, iota is a map that yields a coordinate.
    """

    NAME = "tile.map"
    REGION_USE = RegionUse.ELEMENTWISE
    inputs = variadic()

    def iteration(self) -> Iteration:
        dims = dims_of(self.result.type)
        operands = tuple(broadcast_map(value.type, dims) for value in self.inputs)
        return Iteration(parallel_dims(dims), operands, (AffineMap.identity(len(dims)),))


class Reindex(_Computation):
    """Result element d is value[map(d; symbols)], 0 where the coordinate is outside the value.

    `map`: result dims and symbols -> one coordinate per dim of `value`. Transpose, broadcast,
    reshape, slice, projection at a coordinate are all this op. The result may be a scalar.
    """

    NAME = "tile.reindex"
    value = operand()
    symbols = variadic()
    map = attribute(AffineMap)

    def map_uses(self) -> tuple[MapUse, ...]:
        source = rank_of(self.value.type)
        target = rank_of(self.results[0].type) if len(self.results) == 1 else None
        if source is None or target is None:
            return ()
        return (MapUse("the value", self.map, target, len(self.symbols), source),)

    def iteration(self) -> Iteration:
        dims, count = dims_of(self.result.type), len(self.symbols)
        operands = (self.map, *[None] * count)
        result = broadcast_map(self.result.type, dims, count)
        return Iteration(parallel_dims(dims), operands, (result,), tuple(range(1, 1 + count)))


class Mma(_Computation):
    """c + sum of a * b over the dims a and b share and c lacks, K upwards with fused multiply-add
    in c's dtype.

    Dims in a, b and c are batch; `ordered` demands the order on every target. The factors are
    converted to c's dtype, which holds all their numbers (`takes`).
    """

    NAME = "tile.mma"
    a = operand()
    b = operand()
    c = operand()
    ordered = attribute(bool, default=False)

    def iteration(self) -> Iteration:
        kept, factors = dims_of(self.c.type), [dims_of(value.type) for value in (self.a, self.b)]
        folded = [dim for dim in factors[0] if dim in factors[1] and dim not in kept]
        domain = (*kept, *folded)
        reduced = tuple(IterationDim(dim.extent, self._policy) for dim in folded)
        operands = tuple(broadcast_map(value.type, domain) for value in self.operands)
        result = broadcast_map(self.result.type, domain)
        return Iteration((*parallel_dims(kept), *reduced), operands, (result,))

    @property
    def _policy(self) -> str:
        return "fold_left" if self.ordered else "unordered_tree"

    @staticmethod
    def takes(a: DType, b: DType, c: DType) -> bool:
        """Whether a and b may be multiplied into c: floats of one dtype, integers of any."""
        is_pair = a is b or not (a.is_float or b.is_float)
        return is_pair and all(c in ACCUMULATORS.get(factor, ()) for factor in (a, b))

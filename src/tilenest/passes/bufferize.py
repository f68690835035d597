"""Give every tile a buf and put the work into destination form; nests carry scalars only.

In: fused work on values. Out: map_reduce_posts with outputs, `buf.alloc`s, `buf.read`s of folded
scalars. Tiles that share a buf (see `plan.sharing`) are updated in place; where a loop or a branch
hands on a tile from another buf it is copied, all copies of one moment reading before any writes,
so that swaps stay right. The schedule of a loop that was a pipeline says of each buf it updates
that there is one version.

    %acc = exec.serial [%zero] { (%k, %a): %n = mma(.., seed %a); yield %n }
    becomes   fill -> %b;  exec.serial { (%k): mma(.., seed %b) -> %b }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilenest.analysis import carried_storage
from tilenest.dialects import (
    Access,
    Alloc,
    MapReducePost,
    PipelineSchedule,
    Read,
    Repartition,
    Serial,
    Spread,
)
from tilenest.ir import (
    Block,
    BufType,
    Builder,
    Function,
    Operation,
    OpResult,
    RegionUse,
    Rewriter,
    ScalarType,
    TileType,
    Type,
    Value,
    element_dtype,
)
from tilenest.layouts import AffineMap, Const, DimRef, IndexExpr
from tilenest.machine import Target
from tilenest.passes.pieces import insert_copy, state_capabilities
from tilenest.plan import plan_sharing
from tilenest.records import replace

_Bufs = Mapping[Value, Value]


def bufferize(function: Function, target: Target, rewriter: Rewriter) -> tuple[()]:
    """Rewrite one function in place; there is nothing to decide."""
    bufs = _make_bufs(function, rewriter)
    for tile, buf in bufs.items():
        rewriter.replace_by_storage(tile, buf)
    for op in list(function.walk()):
        if isinstance(op, MapReducePost):
            _convert_work(op, bufs, rewriter)
        elif op.carries():
            _convert_loop(op, bufs, rewriter)
        elif op.REGION_USE is RegionUse.ALTERNATIVE:
            _convert_branches(op, bufs, rewriter)
    for op in function.walk():
        if isinstance(op, Serial) and isinstance(op.schedule, PipelineSchedule):
            versions = tuple(buf.versions for buf in carried_storage(op))
            rewriter.set_attribute(op, "schedule", replace(op.schedule, versions=versions))
    # Products were scheduled when their operands were packed.
    state_capabilities(function, target, rewriter)
    return ()


def _make_bufs(function: Function, rewriter: Rewriter) -> dict[Value, Value]:
    """The buf of every tile, made before anything lives in it."""
    bufs: dict[Value, Value] = {}
    for shared in plan_sharing(function, rewriter.analyses):
        name = next((tile.name for tile in shared.tiles if tile.name), None)
        builder = rewriter.builder_before(shared.anchor)
        spread = _spread(shared.tiles[0]) if len(shared.tiles) == 1 else None
        buf = _allocate(builder, shared.tiles[0].type, name, spread)
        bufs.update(dict.fromkeys(shared.tiles, buf))
    return bufs


def _spread(tile: Value) -> Spread | None:
    """How a tile is held where the work that makes it says so."""
    maker = tile.owner if isinstance(tile, OpResult) else None
    change = maker.repartition if isinstance(maker, MapReducePost) else None
    return change.target if isinstance(change, Repartition) else None


def _allocate(
    builder: Builder, type_: Type, name: str | None, spread: Spread | None = None
) -> Value:
    shape = type_.shape if isinstance(type_, TileType | BufType) else ()
    types = [BufType(element_dtype(type_), shape)]
    buf = builder.insert(Alloc(spread=spread, result_types=types)).result
    buf.name = name
    return buf


# Work ------------------------------------------------------------------------------------------


def _convert_work(op: MapReducePost, bufs: _Bufs, rewriter: Rewriter) -> None:
    """Results become outputs; a scalar is read back from its buf."""
    if not op.results:
        return
    _read_units_at_zero(op, rewriter)
    before, after = rewriter.builder_before(op), rewriter.builder_after(op)
    accesses: list[Access] = []
    outputs: list[Value] = []
    for j, result in enumerate(op.results):
        if isinstance(result.type, ScalarType):
            buf = _allocate(before, result.type, result.name)
            accesses.append(Access(AffineMap(op.rank, len(op.symbols), ())))
            read = after.insert(Read(buffer=buf, result_types=[result.type]))
            rewriter.replace_all_uses(result, read.result)
        else:
            buf = bufs[result]
            kept = tuple(_coordinate(op, d) for d in op.spec(j).dims)
            accesses.append(Access(AffineMap(op.rank, len(op.symbols), kept)))
        outputs.append(buf)
    for j in reversed(range(len(op.results))):
        rewriter.remove_result(op, j)
    rewriter.set_operands(op, "outputs", outputs)
    rewriter.set_attribute(op, "output_access", tuple(accesses))


def _coordinate(op: MapReducePost, dim: int) -> IndexExpr:
    return Const(0) if op.extents[dim] == 1 else DimRef(dim)


def _read_units_at_zero(op: MapReducePost, rewriter: Rewriter) -> None:
    """Spell the coordinate of a dim of extent 1 as 0, so that equal places look equal."""
    units = [_coordinate(op, d) for d in range(op.rank)]
    for name in ("input_access", "seed_access", "post_access"):
        accesses: tuple[Access, ...] = op.attributes[name]
        spelled = tuple(replace(a, map=a.map.with_dims(units, op.rank)) for a in accesses)
        rewriter.set_attribute(op, name, spelled)


# Loops and branches ----------------------------------------------------------------------------


def _convert_loop(op: Operation, bufs: _Bufs, rewriter: Rewriter) -> None:
    tiles = _tile_positions(op)
    targets = [bufs[op.results[i]] for i in tiles]
    initial, first = [carry.initial for carry in op.carries()], len(op.inductions())
    _copy_together([initial[i] for i in tiles], targets, rewriter.builder_before(op))
    _hand_on(op.body, tiles, targets, rewriter)
    rewriter.set_operands(op, "initial", _without(initial, tiles))
    for i in reversed(tiles):
        rewriter.remove_argument(op.body, first + i)
        rewriter.remove_result(op, i)


def _convert_branches(op: Operation, bufs: _Bufs, rewriter: Rewriter) -> None:
    tiles = _tile_positions(op)
    targets = [bufs[op.results[i]] for i in tiles]
    for region in op.regions:
        _hand_on(region.block, tiles, targets, rewriter)
    for i in reversed(tiles):
        rewriter.remove_result(op, i)


def _tile_positions(op: Operation) -> list[int]:
    return [i for i, result in enumerate(op.results) if isinstance(result.type, TileType)]


def _without(values: Sequence[Value], positions: Sequence[int]) -> list[Value]:
    return [value for i, value in enumerate(values) if i not in positions]


def _hand_on(
    block: Block, tiles: Sequence[int], targets: Sequence[Value], rewriter: Rewriter
) -> None:
    """Copy the tiles that a block yields to where they are expected, and yield the rest."""
    end = block.terminator
    values = end.operands
    _copy_together([values[i] for i in tiles], targets, rewriter.builder_before(end))
    rewriter.set_operands(end, "values", _without(values, tiles))


def _copy_together(sources: Sequence[Value], targets: Sequence[Value], builder: Builder) -> None:
    """Copy sources to targets, which differ from each other, as if all reads came first."""
    moves = zip(sources, targets, strict=True)
    pending = [(source, target) for source, target in moves if source is not target]
    while pending:
        unread = [move for move in pending if all(source is not move[1] for source, _ in pending)]
        if not unread:
            # Every target is read by another copy: save one of them.
            _, target = pending[0]
            saved = _allocate(builder, target.type, None)
            insert_copy(builder, target, saved, _shape(target))
            pending = [(saved if s is target else s, t) for s, t in pending]
            continue
        for source, target in unread:
            insert_copy(builder, source, target, _shape(target))
        pending = [move for move in pending if move not in unread]


def _shape(buf: Value) -> tuple[int, ...]:
    assert isinstance(buf.type, BufType)
    return buf.type.shape

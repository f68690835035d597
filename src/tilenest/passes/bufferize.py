"""Give every tile a buf and put the work into destination form; nests carry scalars only.

In: fused work on values. Out: map_reduce_posts with outputs, `buf.alloc`s where tiles are made,
`buf.read`s of folded scalars. A carried tile lives in one buf outside its loop. Its update is
written in place when nothing reads the old state afterwards (see `claims`); else it is copied,
all copies reading before any writes, so that swaps stay right.

    %acc = exec.serial [%zero] { (%k, %a): %n = mma(.., seed %a); yield %n }
    becomes   fill -> %b;  exec.serial { (%k): mma(.., seed %b) -> %b }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilenest.analysis import ancestor_in, uses_after
from tilenest.dialects import Access, Alloc, If, MapReducePost, Read, Serial
from tilenest.ir import (
    Block,
    BufType,
    Builder,
    Function,
    Operation,
    OpResult,
    Rewriter,
    ScalarType,
    TileType,
    Type,
    Value,
    element_dtype,
)
from tilenest.layouts import AffineMap, Const, DimRef, IndexExpr
from tilenest.passes.claims import Claims
from tilenest.passes.pieces import insert_copy


def bufferize(function: Function, rewriter: Rewriter) -> tuple[()]:
    """Rewrite one function in place; there is nothing to decide."""
    _convert(function.body, Claims(), rewriter)
    return ()


def _convert(block: Block, claims: Claims, rewriter: Rewriter) -> None:
    for op in block.operations:
        match op:
            case MapReducePost():
                _convert_work(op, claims, rewriter)
            case Serial():
                _convert_loop(op, claims, rewriter)
            case If():
                _convert_branches(op, claims, rewriter)
            case _:
                for region in op.regions:
                    _convert(region.block, claims, rewriter)


def _allocate(builder: Builder, type_: Type, name: str | None) -> Value:
    shape = type_.shape if isinstance(type_, TileType | BufType) else ()
    buf = builder.insert(Alloc(result_types=[BufType(element_dtype(type_), shape)])).result
    buf.name = name
    return buf


# Work ------------------------------------------------------------------------------------------


def _convert_work(op: MapReducePost, claims: Claims, rewriter: Rewriter) -> None:
    """Results become outputs; a scalar is read back from its buf."""
    if not op.results:
        return
    _read_units_at_zero(op, rewriter)
    before, after = rewriter.builder_before(op), rewriter.builder_after(op)
    accesses: list[Access] = []
    outputs: list[Value] = []
    for j, result in enumerate(op.results):
        buf = claims.taken(result) or _allocate(before, result.type, result.name)
        outputs.append(buf)
        if isinstance(result.type, ScalarType):
            accesses.append(Access(AffineMap(op.rank, len(op.symbols), ())))
            read = after.insert(Read(buffer=buf, result_types=[result.type]))
            rewriter.replace_all_uses(result, read.result)
        else:
            kept = tuple(_coordinate(op, d) for d in op.spec(j).dims)
            accesses.append(Access(AffineMap(op.rank, len(op.symbols), kept)))
            rewriter.replace_all_uses(result, buf)
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


# Loops -----------------------------------------------------------------------------------------


def _convert_loop(op: Serial, claims: Claims, rewriter: Rewriter) -> None:
    carried = [i for i, result in enumerate(op.results) if isinstance(result.type, TileType)]
    body = op.body
    bufs = {i: _carry_buf(op, i, claims, rewriter) for i in carried}
    for i in carried:
        claims.claim(body.terminator.operands[i], bufs[i], body.arguments[op.rank + i], body)
    for i in carried:
        rewriter.replace_all_uses(body.arguments[op.rank + i], bufs[i])
    _convert(body, claims, rewriter)
    moves = [(body.terminator.operands[i], bufs[i]) for i in carried]
    _copy_together(moves, rewriter.builder_before(body.terminator))
    for i in reversed(carried):
        rewriter.replace_all_uses(op.results[i], bufs[i])
        _drop_carry(op, i, rewriter)


def _carry_buf(op: Serial, position: int, claims: Claims, rewriter: Rewriter) -> Value:
    """Where the state lives: a claimed buf, its initial value's, or a new one."""
    initial, result = op.initial[position], op.results[position]
    builder = rewriter.builder_before(op)
    buf = claims.taken(result)
    if buf is None and _may_take_over(initial, op):
        return initial
    if buf is None:
        buf = _allocate(builder, result.type, result.name)
    if buf is not initial:
        insert_copy(builder, initial, buf, _shape(buf))
    return buf


def _may_take_over(initial: Value, op: Serial) -> bool:
    """Whether the initial buf is made here and only this loop's state sees it from now on."""
    if not isinstance(initial, OpResult) or not isinstance(initial.owner, Alloc):
        return False
    if initial.owner.parent is not op.parent or uses_after(initial, op):
        return False
    assert op.parent is not None
    inside = [user for user in initial.users if ancestor_in(op.parent, user) is op]
    return len(inside) == 1


def _copy_together(moves: Sequence[tuple[Value, Value]], builder: Builder) -> None:
    """Copy sources to destinations as if all reads came first."""
    pending = [(source, target) for source, target in moves if source is not target]
    while pending:
        sources = {source for source, _ in pending}
        free = next((move for move in pending if move[1] not in sources), None)
        if free is None:
            source, target = pending[0]
            saved = _allocate(builder, target.type, None)
            insert_copy(builder, target, saved, _shape(target))
            pending = [(saved if s is target else s, t) for s, t in pending]
            free = source if source is not target else saved, target
        pending.remove(free)
        insert_copy(builder, free[0], free[1], _shape(free[1]))


def _shape(buf: Value) -> tuple[int, ...]:
    assert isinstance(buf.type, BufType)
    return buf.type.shape


def _drop_carry(op: Serial, position: int, rewriter: Rewriter) -> None:
    _drop_yield(op.body, position, rewriter)
    rewriter.remove_argument(op.body, op.rank + position)
    rewriter.set_operands(op, "initial", [v for i, v in enumerate(op.initial) if i != position])
    rewriter.remove_result(op, position)


def _drop_yield(block: Block, position: int, rewriter: Rewriter) -> None:
    end = block.terminator
    kept = [value for i, value in enumerate(end.operands) if i != position]
    rewriter.set_operands(end, "values", kept)


# Branches --------------------------------------------------------------------------------------


def _convert_branches(op: If, claims: Claims, rewriter: Rewriter) -> None:
    tiles = [i for i, result in enumerate(op.results) if isinstance(result.type, TileType)]
    builder = rewriter.builder_before(op)
    bufs = {
        i: claims.taken(op.results[i]) or _allocate(builder, op.results[i].type, op.results[i].name)
        for i in tiles
    }
    for block in _blocks(op):
        for i in tiles:
            claims.claim(block.terminator.operands[i], bufs[i], None, block)
        _convert(block, claims, rewriter)
        moves = [(block.terminator.operands[i], bufs[i]) for i in tiles]
        _copy_together(moves, rewriter.builder_before(block.terminator))
        for i in reversed(tiles):
            _drop_yield(block, i, rewriter)
    for i in reversed(tiles):
        rewriter.replace_all_uses(op.results[i], bufs[i])
        rewriter.remove_result(op, i)


def _blocks(op: Operation) -> Iterator[Block]:
    return (region.block for region in op.regions)

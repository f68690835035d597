"""How a matrix product's operands are laid out, and how many accumulators stay in registers.

In: a fold on values and the machine. Out: None unless the fold is a contraction (one state, `fma(p,
q, state)`, one kept dim in each operand alone, one folded dim in both); else the register block
(rows x columns) and, per operand, whether it is read in place or copied into panels first.

A block of mr rows and nv vectors has to fit the registers with its operands. Its cost per
multiply-add is bounded by arithmetic, by loads, and by the latency of the chain; the cheapest
block, with what it wastes on the extents, wins.
"""

from __future__ import annotations

from math import prod

from tilenest.analysis import (
    held_by_each,
    is_inside,
    offset_step,
    panels,
    participants_of,
    ranges_of,
    register_pressure,
    repartition_cost,
    whole,
)
from tilenest.decisions import Decision
from tilenest.dialects import Access, Apply, Cast, Loop, MapReducePost, Repartition, Sched
from tilenest.ir import OpResult, TileType, Value, ViewType, element_dtype
from tilenest.layouts import DimRef
from tilenest.machine import Machine
from tilenest.records import record

_CHAINS_TO_FILL = 8
"""Independent multiply-adds that hide the latency of two units."""
_LOAD_COST = 0.25
"""What a load adds to a multiply-add although both can start in one cycle: not all come in time."""
_LATENCY_COST = 0.25
"""What a block with just enough chains loses to the steps that come late; larger ones lose less.
Both were fitted to products of 129 to 1024 rows on a machine with 32 registers of 16 lanes."""
_MOST_VECTORS = 3
_NEAR_COLUMNS_BYTES = 1024
_NEAR_ROWS_BYTES = 2048
"""Rows of a view this close together share pages and cache sets well enough to be read in place:
every row of k for the operand along the vectors, the rows of one block for the other."""
_FEW_BLOCKS = 2
"""A panel read by so few blocks is not worth its copy."""


@record
class Contraction:
    """Loop dims and input positions of `acc[m, n] += a[m, k] * b[k, n]`."""

    m: int
    n: int
    k: int
    a: int
    b: int


@record
class OperandPlan:
    """One operand: held in panels of `block` along its kept dim from here on, or read in place."""

    block: int
    repartition: Repartition | None

    @property
    def is_packed(self) -> bool:
        return self.repartition is not None


@record
class PackPlan:
    """The register block of a contraction and what becomes of its operands."""

    contraction: Contraction
    a: OperandPlan
    b: OperandPlan
    sched: Sched
    decisions: tuple[Decision, ...]


def contraction_of(op: MapReducePost) -> Contraction | None:
    """The roles of the loop dims, if the op is a contraction of two operands."""
    if len(op.specs) != 1 or len(op.inputs) != 2 or op.spec(0).policy is None:
        return None
    roles = _factors(op)
    if roles is None:
        return None
    used = [_dims_of(op.access("input", i)) for i in range(2)]
    if used[0] is None or used[1] is None:
        return None
    kept = set(op.spec(0).dims)
    first, second = used[0] & kept, used[1] & kept
    folded = set(range(op.rank)) - kept
    if len(first) != 1 or len(second) != 1 or first & second or len(folded) != 1:
        return None
    if not folded <= used[0] & used[1]:
        return None
    (left,), (right,), (k,) = first, second, folded
    # The last kept dim runs along vectors, so the operand that has it is b.
    if op.spec(0).dims.index(left) < op.spec(0).dims.index(right):
        return Contraction(left, right, k, 0, 1)
    return Contraction(right, left, k, 1, 0)


def _factors(op: MapReducePost) -> tuple[int, int] | None:
    """Input positions of the two factors when the body adds their product to the state."""
    block = op.fold_block
    factors = _multiplied(block.terminator.operands[0], block.arguments[-1])
    if factors is None:
        return None
    elements = block.arguments[op.rank : op.rank + 2]
    sources = [_uncast(factor) for factor in factors]
    positions = [elements.index(s) for s in sources if s in elements]
    return (positions[0], positions[1]) if sorted(positions) == [0, 1] else None


def _multiplied(step: Value, state: Value) -> list[Value] | None:
    """p and q of fma(p, q, state), or of state + p * q where that is as exact."""
    op = _apply_of(step)
    if op is None:
        return None
    if op.function == "fma" and op.arguments[2] is state:
        return op.arguments[:2]
    if op.function == "add" and element_dtype(state.type).is_integer:
        others = [argument for argument in op.arguments if argument is not state]
        product = _apply_of(others[0]) if len(others) == 1 else None
        if product is not None and product.function == "mul":
            return product.arguments
    return None


def _apply_of(value: Value) -> Apply | None:
    owner = value.owner if isinstance(value, OpResult) else None
    return owner if isinstance(owner, Apply) else None


def _uncast(value: Value) -> Value:
    while isinstance(value, OpResult) and isinstance(value.owner, Cast):
        value = value.owner.value
    return value


def _dims_of(access: Access) -> set[int] | None:
    """The loop dims an access reads at, when it is proven and each axis is one dim or constant."""
    dims: set[int] = set()
    for result in access.map.results:
        if isinstance(result, DimRef):
            dims.add(result.position)
        elif result.dim_mask:
            return None
    return dims if access.bounds == "proven" else None


def plan_packing(op: MapReducePost, machine: Machine) -> PackPlan | None:
    """The register block and the operands' layouts, for a contraction of tiles."""
    roles = contraction_of(op)
    if roles is None:
        return None
    rows, columns = op.extents[roles.m], op.extents[roles.n]
    state = element_dtype(op.fold_block.arguments[-1].type)
    lanes = machine.lanes(state.bytes)
    mr, nv = _register_block(op, roles, lanes, machine)
    nr = nv * lanes
    a, why_a = _operand(op, roles.a, roles.m, mr, -(-columns // nr))
    b, why_b = _operand(op, roles.b, roles.n, nr, -(-rows // mr))
    name = op.results[0].name
    subject = f"product %{name}" if name else f"product in {op.NAME}"
    block = Decision(
        subject,
        f"{mr} x {nr} accumulators",
        "another block",
        f"wastes least of {rows} x {columns} with {machine.vector_registers} registers",
        op.location,
    )
    panel_bytes = op.extents[roles.k] * nr * state.bytes
    sched = _blocked(roles, mr, nr, lanes, panel_bytes <= machine.l1_bytes // 2)
    return PackPlan(roles, a, b, sched, (block, why_a, why_b))


def _blocked(roles: Contraction, mr: int, nr: int, lanes: int, fits: bool) -> Sched:
    """Register blocks; b's panel stays in the first cache while a's stream, unless it leaves them
    and the accumulators no room there."""
    outer = [Loop(roles.n, nr), Loop(roles.m, mr)]
    if not fits:
        outer.reverse()
    inner = [Loop(roles.k, 1), Loop(roles.m, 1, "unrolled"), Loop(roles.n, lanes, "vector")]
    return Sched((*outer, *inner), "register_blocked")


def register_block_of(op: MapReducePost) -> tuple[int, int] | None:
    """(rows, columns) of the register blocks a scheduled contraction over (m, n, k) runs."""
    blocks = op.sched.blocks if isinstance(op.sched, Sched) and op.folded_results else {}
    return (blocks[0], blocks[1]) if {0, 1} <= blocks.keys() else None


def _register_block(
    op: MapReducePost, roles: Contraction, lanes: int, machine: Machine
) -> tuple[int, int]:
    """(mr, nv) of least cost."""
    rows, columns = op.extents[roles.m], op.extents[roles.n]
    best: tuple[float, int, int, int] | None = None
    for nv in range(1, _MOST_VECTORS + 1):
        if nv > 1 and nv * lanes >= columns + lanes:
            break
        for mr in range(1, max(rows, 1) + 1):
            block = _blocked(roles, mr, nv * lanes, lanes, True)
            if mr > 1 and not register_pressure(op, block, machine).fits:
                break
            padded = -(-rows // mr) * mr * (-(-columns // (nv * lanes)) * nv * lanes)
            loads = (mr + nv) / (mr * nv)
            chains = _CHAINS_TO_FILL / (mr * nv)
            work = (1 + _LOAD_COST * loads + _LATENCY_COST * chains) * max(1.0, loads, chains)
            cost = padded / max(1, rows * columns) * work
            candidate = cost, -mr * nv, nv, mr
            best = candidate if best is None or candidate < best else best
    assert best is not None
    return best[3], best[2]


def _operand(
    op: MapReducePost, position: int, kept: int, block: int, readers: int
) -> tuple[OperandPlan, Decision]:
    """Panels or in place, and why; `readers` blocks read each panel."""
    value = op.inputs[position]
    name = value.name or f"input {position}"
    is_vector = kept == op.spec(0).dims[-1]
    obstacle = _obstacle_in_place(op, position, kept, is_vector)
    if obstacle is None and not is_vector and op.extents[kept] % block and readers > _FEW_BLOCKS:
        obstacle = "its last block is partial, and panels are filled up"
    if obstacle is not None:
        is_packed, reason = True, obstacle
    elif readers <= _FEW_BLOCKS:
        is_packed, reason = False, f"only {readers} block(s) read each element"
    elif not _is_near(value, _NEAR_COLUMNS_BYTES if is_vector else _NEAR_ROWS_BYTES):
        is_packed, reason = True, "its rows lie far apart and are read by many blocks"
    else:
        is_packed, reason = False, "its elements lie as the blocks read them"
    choice, other = ("panels", "in place") if is_packed else ("in place", "panels")
    change = _repartition(op, position, kept, block) if is_packed else None
    if change is not None:
        held = prod((*change.target.participants, *change.target.fragment))
        reason = f"{reason}; {change.kept} elements are copied, {held} held"
    decision = Decision(f"operand %{name}", choice, other, reason, op.location)
    return OperandPlan(block, change), decision


def _repartition(op: MapReducePost, position: int, kept: int, block: int) -> Repartition:
    """From a tile as its owner has it to panels along its kept dim, which every instance of the
    parallel nests in between makes for itself."""
    value = op.inputs[position]
    assert isinstance(value.type, TileType)
    axes = op.access("input", position).map.results
    (k,) = set(range(op.rank)) - set(op.spec(0).dims)
    source = whole(value.type.shape)
    own = panels(value.type.shape, axes.index(DimRef(kept)), axes.index(DimRef(k)), block)
    target = held_by_each(own, participants_of(value, op))
    cost = repartition_cost(source, target)
    assert cost is not None, "one holder's elements are counted"
    return Repartition(source, target, *cost)


def _obstacle_in_place(op: MapReducePost, position: int, kept: int, is_vector: bool) -> str | None:
    load = plain_load(op.inputs[position])
    if load is None:
        return None if op.extents[kept] == 1 else "it is computed here"
    access = load.access("input", 0)
    inside = access.bounds in ("proven", "assume") or all(
        is_inside(access, load.inputs[0], ranges_of(load.extents, load.symbols), load.symbols)
    )
    if not inside:
        return "it may reach outside its view"
    if is_vector and not _is_contiguous(op, position, kept, load):
        return "its elements are not contiguous along the vectors"
    return None


def plain_load(value: Value) -> MapReducePost | None:
    """The producer, when it only copies elements of one view."""
    owner = value.owner if isinstance(value, OpResult) else None
    if not isinstance(owner, MapReducePost) or owner.folded_results or len(owner.inputs) != 1:
        return None
    only = owner.fold_block.terminator.operands[0]
    is_copy = only is owner.fold_block.arguments[owner.rank]
    return owner if is_copy and isinstance(owner.inputs[0].type, ViewType) else None


def _is_contiguous(op: MapReducePost, position: int, kept: int, load: MapReducePost) -> bool:
    """Whether neighbours along the kept dim are neighbours in memory."""
    axes = op.access("input", position).map.results
    dim = load.spec(0).dims[axes.index(DimRef(kept))]
    step = offset_step(load.inputs[0].type, load.access("input", 0).map, dim, load.extents)
    return step in (0, 1)


def _is_near(value: Value, limit: int) -> bool:
    load = plain_load(value)
    if load is None:
        return True
    view = load.inputs[0].type
    assert isinstance(view, ViewType)
    far = [s for s in view.strides if s != 1]
    return all(s is not None and s * view.dtype.bytes <= limit for s in far)

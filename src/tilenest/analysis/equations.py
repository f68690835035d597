"""The memory equation of every access of a Scheduled function, for the numbers of one call.

In: a function, `Facts`, and a target. Out: per access its events (the instances of the nests around
it, then the point of the work's domain) and the equation that takes each to a byte. A buf lies in
the frame of the code that runs it: one a call for what stands outside of every parallel, one a
worker for the rest; storage of a pipeline's stage takes turns in a ring of versions. An argument is
memory of the caller's, from its lowest element on. Accesses that depend on what the program
computes are listed with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilenest.analysis.execution_prefix import Prefix, prefix_of
from tilenest.analysis.index_values import Facts, index_formula
from tilenest.analysis.modulo_schedules import live_length
from tilenest.analysis.scratch_layout import ScratchLayout, frame_of
from tilenest.analysis.stage_dependences import made_as, stage_storage
from tilenest.analysis.storages import Storage, storage_of_argument, storage_of_buf
from tilenest.analysis.structure import enclosing
from tilenest.dialects import Alloc, Parallel, Pipeline, PipelineSchedule
from tilenest.execution import MemoryEquation
from tilenest.ir import BufType, Function, Operation, OpResult, Touch, Value, element_dtype, fresh
from tilenest.layouts import (
    Axis,
    Const,
    Constraint,
    DimRef,
    Expressions,
    IndexExpr,
    IndexSet,
    LayoutMap,
    Project,
    Space,
)
from tilenest.machine import OPEN_SCOPE, Target
from tilenest.records import record

_NEVER = Constraint(Const(-1))


@record
class MemoryUse:
    """One access of one operation, with its equation.

    It `is_exact` when every event happens; else a condition or a mask that the program computes
    decides, and the events are all that may happen.
    """

    operation: Operation
    touch: Touch[Value]
    equation: MemoryEquation
    is_exact: bool


@record
class Undecided:
    """An operation whose accesses have no equation, and why."""

    operation: Operation
    reason: str


@record
class MemoryEquations:
    """All accesses of one function, in program order."""

    uses: tuple[MemoryUse, ...]
    undecided: tuple[Undecided, ...]


def memory_equations(function: Function, facts: Facts, target: Target) -> MemoryEquations:
    """The equations of a function in Scheduled form."""
    layout = fresh(ScratchLayout, function)
    uses: list[MemoryUse] = []
    undecided: list[Undecided] = []
    for op in function.walk():
        touches = op.accesses()
        prefix = prefix_of(op, facts) if touches else ""
        if isinstance(prefix, Prefix):
            builder = _Operation(op, prefix, facts, layout, target)
            found = [builder.use(touch) for touch in touches]
            uses += [use for use in found if isinstance(use, MemoryUse)]
            undecided += [Undecided(op, why) for why in found if isinstance(why, str)]
        elif touches:
            undecided.append(Undecided(op, prefix))
    return MemoryEquations(tuple(uses), tuple(undecided))


@record
class _States:
    """What tells the states of a memory apart, and which are needed at once."""

    places: tuple[int, ...]
    """levels of the use, iterations of a pipeline the innermost"""
    turns: int
    """iterations of the pipeline around the memory; 1 where there is none"""
    apart: int
    """iterations later that a state is still needed"""


@record
class _Memory:
    """A storage, the levels of the use that tell its owners apart, and its states."""

    storage: Storage
    frame: Parallel | None
    owner: tuple[int, ...]
    states: _States


class _Operation:
    """The arrows that all accesses of one operation share."""

    def __init__(
        self,
        op: Operation,
        prefix: Prefix,
        facts: Facts,
        layout: ScratchLayout,
        target: Target,
    ) -> None:
        self.op = op
        self.prefix = prefix
        self.facts = facts
        self.layout = layout
        self.target = target
        axes = zip(prefix.levels, prefix.extents, strict=True)
        self.space = Space(tuple(Axis(place.level.identity, extent) for place, extent in axes))
        root = frame_of(op)
        self.root = tuple(i for i, place in enumerate(prefix.levels) if place.nest is root)
        self.rest = tuple(i for i in range(self.space.rank) if i not in self.root)

    def use(self, touch: Touch[Value]) -> MemoryUse | str:
        """The equation of one access, or why there is none."""
        memory = self._memory(made_as(touch.memory))
        if isinstance(memory, str):
            return memory
        if any(not self.prefix.levels[place].is_box for place in self.root):
            return "how many instances its root parallel has varies"
        events = self._events(touch, memory.storage)
        if isinstance(events, str):
            return events
        equation = self._equation(touch, memory, *events)
        return MemoryUse(self.op, touch, equation, self.prefix.is_exact and not touch.is_masked)

    # Storage ---------------------------------------------------------------------------------

    def _memory(self, memory: Value) -> _Memory | str:
        if isinstance(memory.type, BufType):
            assert isinstance(memory, OpResult) and isinstance(memory.owner, Alloc)
            return self._buf(memory.owner)
        if memory not in self.facts.extents:
            return f"%{memory.name} is no argument whose extents are known"
        size = element_dtype(memory.type).bytes
        extents, strides = self.facts.extents[memory], self.facts.strides[memory]
        storage = storage_of_argument(extents, strides, size, self.target)
        return _Memory(storage, None, (), self._in_place)

    def _buf(self, op: Alloc) -> _Memory | str:
        if op.resource not in {resource.name for resource in self.target.resources}:
            return f"%{op.result.name or '_'} is in no class of memory of the target"
        around = list(enclosing(op))
        owner = tuple(
            i
            for i, place in enumerate(self.prefix.levels)
            if place.nest in around and place.level.is_spatial
        )
        storage = storage_of_buf(op, self.layout.bases[op], self.target)
        ring = next((nest for nest in around if isinstance(nest, Pipeline)), None)
        states = self._in_place if ring is None else self._in_turn(op, ring)
        return _Memory(storage, frame_of(op), owner, states)

    @property
    def _in_place(self) -> _States:
        """What it held before is not needed any more."""
        levels = self.prefix.levels
        return _States(tuple(i for i, p in enumerate(levels) if not p.level.is_spatial), 1, 0)

    def _in_turn(self, op: Alloc, ring: Pipeline) -> _States:
        """One state for each iteration, as long as it lives by the schedule."""
        levels = self.prefix.levels
        mine = [i for i in self._in_place.places if levels[i].nest is ring]
        outer = [i for i in self._in_place.places if levels[i].nest in set(enclosing(ring))]
        apart = 0
        if isinstance(ring.schedule, PipelineSchedule):
            (need,) = [stored.need for stored in stage_storage(ring) if stored.value is op.result]
            schedule = ring.schedule
            length = live_length(need, schedule.interval, schedule.starts, schedule.ends)
            apart = (length - 1) // schedule.interval
        turns = prod(self.prefix.extents[place] for place in mine)
        return _States((*outer, *mine), max(1, turns), apart)

    # Events ----------------------------------------------------------------------------------

    def _events(
        self, touch: Touch[Value], storage: Storage
    ) -> tuple[IndexSet, tuple[IndexExpr, ...]] | str:
        """When the access happens, and at which coordinates."""
        rank = self.space.rank
        local = Space.box(*touch.extents, prefix="local")
        dims = [DimRef(rank + place) for place in range(local.rank)]
        symbols: list[IndexExpr] = []
        for value in (*touch.symbols, *(end for _, end in touch.clips)):
            formula = index_formula(value, self.prefix.coordinates, self.facts)
            if formula is None:
                return "an index is computed by the program"
            symbols.append(formula)
        results = tuple(r.substitute(dims, symbols) for r in touch.map.results)
        ends = symbols[len(touch.symbols) :]
        constraints = [
            Constraint(end - dims[dim] - 1) for (dim, _), end in zip(touch.clips, ends, strict=True)
        ]
        if touch.bounds == "zero":
            for result, extent in zip(results, storage.extents, strict=True):
                constraints += [Constraint(result), Constraint(extent - 1 - result)]
        space = self.space.product(local)
        return IndexSet(space, (*self.prefix.constraints, *constraints)), results

    # Arrows ----------------------------------------------------------------------------------

    def _equation(
        self,
        touch: Touch[Value],
        memory: _Memory,
        events: IndexSet,
        coordinates: tuple[IndexExpr, ...],
    ) -> MemoryEquation:
        storage, times = memory.storage, memory.states
        owner_projection = Project(self.space, memory.owner)
        owners = owner_projection.codomain
        binding = self._binding()
        kept = (0,) if self._tells_workers(memory) else ()
        topology = Project(binding.codomain, kept)
        runs = (self._worker(memory),) if kept else ()
        states = Space.box(1, self._count(times.places), prefix="state")
        version = DimRef(1) % times.turns % storage.versions
        return MemoryEquation(
            name=f"{touch.operation} of %{touch.memory.name or '_'}",
            active=IndexSet(self.space, self.prefix.constraints),
            events=events,
            exec_binding=binding,
            topology=topology,
            owner_projection=owner_projection,
            instance=Expressions(owners, topology.codomain, runs),
            base=storage.base_of(owners),
            access=Expressions(events.space, storage.view.domain, coordinates),
            view=storage.view,
            reaching=Expressions(self.space, states, (Const(0), self._row_major(times.places))),
            version=Expressions(states, Space.box(storage.versions, prefix="version"), (version,)),
            address=storage.address,
            simultaneous=IndexSet(states.product(states), _needed_at_once(times)),
            allocation=storage.allocation,
            right=storage.right(touch.operation, self.target),
        )

    def _binding(self) -> LayoutMap:
        """Workers take `grain` instances of the root parallel at a time, in turns; all else is the
        worker's own time. Code outside of it is run by the caller, who is counted behind them."""
        workers, grain = self.facts.workers, self.facts.grain
        item = self._row_major(self.root)
        turns = -(-self._count(self.root) // (workers * grain)) * grain
        turn = item // (workers * grain) * grain + item % grain
        axes = (Axis("worker", workers + 1), Axis("turn", turns))
        rest = tuple(self.space.axes[place] for place in self.rest)
        worker = item // grain % workers if self.root else Const(workers)
        results = (worker, turn, *map(DimRef, self.rest))
        return Expressions(self.space, Space((*axes, *rest)), results)

    def _tells_workers(self, memory: _Memory) -> bool:
        """Whether the class has an instance for each worker: where what its instances belong to is
        no wider than what the root parallel is bound to."""
        if memory.frame is not None and memory.frame.scope == self.target.outermost:
            return True
        root = frame_of(self.op)
        bound = OPEN_SCOPE if root is None else root.scope
        if bound == OPEN_SCOPE:
            bound = self.target.root_scopes[0]
        return bool(self.target.tells_apart(memory.storage.resource.topology, (bound,)))

    def _worker(self, memory: _Memory) -> IndexExpr:
        """Who runs an owner, over the coordinates of owners."""
        if memory.frame is None:
            return Const(self.facts.workers)
        item: IndexExpr = Const(0)
        for place in self.root:
            item = item * self.prefix.extents[place] + DimRef(memory.owner.index(place))
        return item // self.facts.grain % self.facts.workers

    def _count(self, places: Sequence[int]) -> int:
        return prod(self.prefix.extents[place] for place in places)

    def _row_major(self, places: Sequence[int]) -> IndexExpr:
        """The place of a point among all that differ in some levels only."""
        found: IndexExpr = Const(0)
        for place in places:
            found = found * self.prefix.extents[place] + DimRef(place)
        return found


def _needed_at_once(times: _States) -> tuple[Constraint, ...]:
    """Pairs of states, the earlier first, of one run of the pipeline."""
    if not times.apart:
        return (_NEVER,)
    first, second = DimRef(1), DimRef(3)
    return (
        Constraint(second - first - 1),
        Constraint(times.apart - (second - first)),
        Constraint(second // times.turns - first // times.turns, is_equality=True),
    )

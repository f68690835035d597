"""The memory equation of every access of a Scheduled function, for the numbers of one call.

In: a function, and `Facts`. Out: per access its events (the instances of the nests around it, then
the point of the work's domain) and the equation that takes each to a byte. A buf lies in the frame
of the code that runs it: one a call for what stands outside of every parallel, one a worker for the
rest. An argument is memory of the caller's, from its lowest element on. Accesses that depend on
what the program computes are listed with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilenest.analysis.execution_prefix import Prefix, prefix_of
from tilenest.analysis.run_time_values import Facts, index_formula
from tilenest.analysis.scratch_layout import (
    SCRATCH_ALIGNMENT,
    ScratchLayout,
    frame_of,
    padded_bytes,
)
from tilenest.analysis.touches import Touch, touches_of
from tilenest.execution import AccessRight, Allocation, MemoryEquation
from tilenest.ir import BufType, Function, Operation, OpResult, Value, element_dtype, fresh
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
from tilenest.machine import Target
from tilenest.records import record

_NEVER = Constraint(Const(-1))


@record
class MemoryUse:
    """One access of one operation, with its equation.

    It `is_exact` when every event happens; else a condition or a mask that the program computes
    decides, and the events are all that may happen.
    """

    operation: Operation
    touch: Touch
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
        touches = touches_of(op)
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
class _Storage:
    """Where a memory lies: its resource, owner, start, and the shape and strides of its view."""

    resource: str
    owner: tuple[int, ...]
    """the levels of the use that tell its owners apart"""
    offset: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    allocation: Allocation

    @property
    def lowest(self) -> int:
        """The offset in elements of its lowest element from that at the origin."""
        pairs = zip(self.extents, self.strides, strict=True)
        return sum(min(0, stride) * max(0, extent - 1) for extent, stride in pairs)

    @property
    def span(self) -> int:
        """Elements from the lowest to the highest."""
        return _span(self.extents, self.strides)


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

    def use(self, touch: Touch) -> MemoryUse | str:
        """The equation of one access, or why there is none."""
        storage = self._storage(touch.memory)
        if isinstance(storage, str):
            return storage
        if any(not self.prefix.levels[place].is_box for place in self.root):
            return "how many instances its root parallel has varies"
        events = self._events(touch, storage)
        if isinstance(events, str):
            return events
        equation = self._equation(touch, storage, *events)
        return MemoryUse(self.op, touch, equation, self.prefix.is_exact and not touch.is_masked)

    # Storage ---------------------------------------------------------------------------------

    def _storage(self, memory: Value) -> _Storage | str:
        size = element_dtype(memory.type).bytes
        if isinstance(memory.type, BufType):
            assert isinstance(memory, OpResult)
            return self._buf(memory, memory.type, size)
        if memory not in self.facts.extents:
            return f"%{memory.name} is no argument whose extents are known"
        extents, strides = self.facts.extents[memory], self.facts.strides[memory]
        span = _span(extents, strides)
        allocation = Allocation(span * size, size, is_owned=False)
        return _Storage("global", (), 0, extents, strides, allocation)

    def _buf(self, memory: OpResult, type_: BufType, size: int) -> _Storage:
        frame = frame_of(memory.owner)
        holders = {place.nest for place in self.prefix.levels}
        around = [nest for nest in holders if nest.is_ancestor_of(memory.owner)]
        owner = tuple(
            i
            for i, place in enumerate(self.prefix.levels)
            if place.nest in around and place.level.is_spatial
        )
        strides = tuple(prod(type_.shape[axis + 1 :]) for axis in range(len(type_.shape)))
        resource = "call" if frame is None else "private"
        room, most = self.layout.sizes[frame], self.target.resource(resource).capacity
        capacity = room if most is None else min(room, most)
        allocation = Allocation(padded_bytes(type_), size, SCRATCH_ALIGNMENT, capacity)
        offset = self.layout.offsets[memory.owner]
        return _Storage(resource, owner, offset, type_.shape, strides, allocation)

    # Events ----------------------------------------------------------------------------------

    def _events(
        self, touch: Touch, storage: _Storage
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
        results = tuple(r.substitute(dims, symbols) for r in touch.access.map.results)
        ends = symbols[len(touch.symbols) :]
        constraints = [
            Constraint(end - dims[dim] - 1) for (dim, _), end in zip(touch.clips, ends, strict=True)
        ]
        if touch.access.bounds == "zero":
            for result, extent in zip(results, storage.extents, strict=True):
                constraints += [Constraint(result), Constraint(extent - 1 - result)]
        space = self.space.product(local)
        return IndexSet(space, (*self.prefix.constraints, *constraints)), results

    # Arrows ----------------------------------------------------------------------------------

    def _equation(
        self,
        touch: Touch,
        storage: _Storage,
        events: IndexSet,
        coordinates: tuple[IndexExpr, ...],
    ) -> MemoryEquation:
        owner_projection = Project(self.space, storage.owner)
        owners = owner_projection.codomain
        binding = self._binding()
        is_private = storage.resource == "private"
        topology = Project(binding.codomain, (0,) if is_private else ())
        instance = Expressions(owners, topology.codomain, self._worker(storage)[:is_private])
        base = Space.box(storage.offset + 1, prefix="base")
        view = Space.box(*storage.extents, prefix="view")
        elements = Space.box(storage.span, prefix="element")
        element: IndexExpr = Const(-storage.lowest)
        for axis, stride in enumerate(storage.strides):
            element += DimRef(axis) * stride
        size, bytes_ = storage.allocation.element_bytes, storage.allocation.bytes
        states, versions = Space.box(1, self._instants, prefix="state"), Space.box(1, prefix="v")
        return MemoryEquation(
            name=f"{touch.operation} of %{touch.memory.name or '_'}",
            active=IndexSet(self.space, self.prefix.constraints),
            events=events,
            exec_binding=binding,
            topology=topology,
            owner_projection=owner_projection,
            instance=instance,
            base=Expressions(owners, base, (Const(storage.offset),)),
            access=Expressions(events.space, view, coordinates),
            view=Expressions(view, elements, (element,)),
            reaching=Expressions(self.space, states, (Const(0), self._time())),
            version=Expressions(states, versions, (Const(0),)),
            address=Expressions(
                versions.product(elements),
                Space.box(bytes_, prefix="byte"),
                (DimRef(0) * bytes_ + DimRef(1) * size,),
            ),
            # A buf is updated in place: what it held before is not needed any more.
            simultaneous=IndexSet(states.product(states), (_NEVER,)),
            allocation=storage.allocation,
            right=self._right(storage.resource, touch.operation),
        )

    def _right(self, resource: str, operation: str) -> AccessRight:
        relation = self.target.resource(resource).relation
        return AccessRight("worker", resource, operation, relation)

    def _binding(self) -> LayoutMap:
        """Workers take `grain` instances of the root parallel at a time, in turns; all else is the
        worker's own time. Code outside of it is run by the caller, the first of them."""
        workers, grain = self.facts.workers, self.facts.grain
        item = self._row_major(self.root)
        total = prod(self.prefix.extents[place] for place in self.root)
        turns = -(-total // (workers * grain)) * grain
        turn = item // (workers * grain) * grain + item % grain
        axes = (Axis("worker", workers), Axis("turn", turns))
        rest = tuple(self.space.axes[place] for place in self.rest)
        results = (item // grain % workers, turn, *map(DimRef, self.rest))
        return Expressions(self.space, Space((*axes, *rest)), results)

    def _worker(self, storage: _Storage) -> tuple[IndexExpr, ...]:
        """The worker that runs an owner, over the coordinates of owners."""
        if storage.resource != "private":
            return ()
        item: IndexExpr = Const(0)
        for place in self.root:
            item = item * self.prefix.extents[place] + DimRef(storage.owner.index(place))
        return (item // self.facts.grain % self.facts.workers,)

    @property
    def _temporal(self) -> tuple[int, ...]:
        levels = self.prefix.levels
        return tuple(i for i, place in enumerate(levels) if not place.level.is_spatial)

    @property
    def _instants(self) -> int:
        return prod(self.prefix.extents[place] for place in self._temporal)

    def _time(self) -> IndexExpr:
        return self._row_major(self._temporal)

    def _row_major(self, places: Sequence[int]) -> IndexExpr:
        """The place of a point among all that differ in some levels only."""
        found: IndexExpr = Const(0)
        for place in places:
            found = found * self.prefix.extents[place] + DimRef(place)
        return found


def _span(extents: Sequence[int], strides: Sequence[int]) -> int:
    if 0 in extents:
        return 0
    return 1 + sum(abs(s) * (n - 1) for n, s in zip(extents, strides, strict=True))

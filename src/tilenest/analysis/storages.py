"""Storage as a memory equation sees it, and the equation of an allocation for itself.

In: a buf with the base and the class of memory that were decided for it, or what is known of an
argument; a target. Out: a frozen storage with the arrows base, view and address, and equations that
need no numbers of a call. That of an allocation stands for any unit that has the buf: what is
reserved. That of a buf inside of nests says whose instance of its class they use.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilenest.analysis.scratch_layout import bytes_of, padded_bytes
from tilenest.analysis.structure import trip_counts
from tilenest.dialects import Alloc, Parallel
from tilenest.execution import AccessRight, Allocation, MemoryEquation
from tilenest.ir import BufType
from tilenest.layouts import (
    Const,
    Constraint,
    DimRef,
    Expressions,
    Identity,
    IndexExpr,
    IndexSet,
    LayoutMap,
    Project,
    Space,
)
from tilenest.machine import ResourceClass, Target
from tilenest.records import record


@record
class Storage:
    """Where a memory lies in an instance of its class, and the shape and strides of its view."""

    resource: ResourceClass
    base: int
    versions: int
    version_bytes: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    allocation: Allocation

    @property
    def view(self) -> Expressions:
        """From coordinates to the element, counted from the lowest."""
        element: IndexExpr = Const(-self._lowest)
        for axis, stride in enumerate(self.strides):
            element += DimRef(axis) * stride
        elements = Space.box(span_of(self.extents, self.strides), prefix="element")
        return Expressions(Space.box(*self.extents, prefix="view"), elements, (element,))

    @property
    def address(self) -> Expressions:
        """From a version and an element to the first byte."""
        versions = Space.box(self.versions, prefix="version")
        byte = DimRef(0) * self.version_bytes + DimRef(1) * self.allocation.element_bytes
        space = Space.box(self.allocation.bytes, prefix="byte")
        return Expressions(versions.product(self.view.codomain), space, (byte,))

    def base_of(self, owners: Space) -> Expressions:
        """Every owner has it at the same byte."""
        return Expressions(owners, Space.box(self.base + 1, prefix="base"), (Const(self.base),))

    def right(self, operation: str, target: Target) -> AccessRight:
        """The access of the code that runs."""
        return AccessRight(target.accessor, self.resource.name, operation, self.resource.relation)

    @property
    def _lowest(self) -> int:
        """The offset in elements of its lowest element from that at the origin."""
        pairs = zip(self.extents, self.strides, strict=True)
        return sum(min(0, stride) * max(0, extent - 1) for extent, stride in pairs)


def span_of(extents: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the lowest to the highest."""
    if 0 in extents:
        return 0
    return 1 + sum(abs(s) * (n - 1) for n, s in zip(extents, strides, strict=True))


def storage_of_argument(
    extents: tuple[int, ...], strides: tuple[int, ...], element_bytes: int, target: Target
) -> Storage:
    """Memory of the caller's, from its lowest element on."""
    size = span_of(extents, strides) * element_bytes
    allocation = Allocation(size, element_bytes, is_owned=False)
    resource = target.resource(target.arguments)
    return Storage(resource, 0, 1, size, extents, strides, allocation)


def storage_of_buf(op: Alloc, base: int, target: Target) -> Storage:
    """A buf in a class of memory that the target has."""
    type_ = op.result.type
    assert isinstance(type_, BufType)
    resource = target.resource(op.resource)
    allocation = Allocation(bytes_of(op), type_.dtype.bytes, resource.alignment, resource.capacity)
    strides = tuple(prod(type_.shape[axis + 1 :]) for axis in range(len(type_.shape)))
    return Storage(
        resource, base, op.versions, padded_bytes(type_), type_.shape, strides, allocation
    )


def allocation_equation(name: str, storage: Storage, target: Target) -> MemoryEquation:
    """The equation of a buf in one unit that has it."""
    unit = Space.box(1, prefix="unit")
    same = Identity(unit)
    return _equation(name, storage, target, (same, same, same, same))


def nested_equation(op: Alloc, nests: Sequence[Parallel], target: Target) -> MemoryEquation:
    """The equation of a buf for code inside of parallel nests, from the outside in, some of which
    are around the buf: as many instances as any call has, each run by a unit of its own."""
    storage = storage_of_buf(op, 0, target)
    axes = [
        (place, f"n{place}_{axis}" if trips is None else trips)
        for place, nest in enumerate(nests)
        for axis, trips in enumerate(trip_counts(nest))
    ]
    space = Space.box(*(extent for _, extent in axes), prefix="instance")
    told = target.tells_apart(storage.resource.topology, [nest.scope for nest in nests])
    units = tuple(i for i, (place, _) in enumerate(axes) if place in told)
    owner = tuple(i for i, (place, _) in enumerate(axes) if nests[place].is_ancestor_of(op))
    topology, owners = Project(space, units), Project(space, owner)
    # What an owner does not know of a unit is the same for all that it runs: the first.
    places = tuple(DimRef(owner.index(i)) if i in owner else Const(0) for i in units)
    instance = Expressions(owners.codomain, topology.codomain, places)
    name = f"%{op.result.name or '_'}"
    return _equation(name, storage, target, (Identity(space), topology, owners, instance))


def _equation(
    name: str,
    storage: Storage,
    target: Target,
    spatial: tuple[LayoutMap, LayoutMap, LayoutMap, LayoutMap],
) -> MemoryEquation:
    """All elements of one state, in every execution coordinate, with these spatial arrows."""
    binding, topology, owner_projection, instance = spatial
    space, local = binding.domain, storage.view.domain
    events = space.product(local)
    states = Space.box(storage.versions, prefix="version")
    later = Constraint(DimRef(1) - DimRef(0) - 1)
    return MemoryEquation(
        name=name,
        active=IndexSet(space),
        events=IndexSet(events),
        exec_binding=binding,
        topology=topology,
        owner_projection=owner_projection,
        instance=instance,
        base=storage.base_of(owner_projection.codomain),
        access=Project(events, tuple(range(space.rank, events.rank))),
        view=storage.view,
        reaching=Expressions(space, states, (Const(0),)),
        version=Identity(states),
        address=storage.address,
        simultaneous=IndexSet(states.product(states), (later,)),
        allocation=storage.allocation,
        right=storage.right("allocate", target),
    )

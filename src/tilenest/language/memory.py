"""Memory: explicit storage with an identity, for what needs an address that stays.

In: a dtype, a shape or a layout, and the class of storage. Out: loads and stores of whole memories
and of parts as IR; which state of the memory each takes is found when its region is complete. Tiles
are the ordinary way to keep values: the compiler places them by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Never

from tilenest.analysis import layout_problem
from tilenest.dialects import MemoryAllocate, MemoryLoad, MemoryStore
from tilenest.errors import CaptureError, RankError, ShapeError, shown
from tilenest.ir import STATE, DType, MemoryType, OpResult, Value, element_dtype
from tilenest.language.dtypes import as_dtype
from tilenest.language.elements import (
    dims_of,
    map_elements,
    required,
    type_over,
)
from tilenest.language.index_maps import IndexMap
from tilenest.language.positions import (
    Extents,
    Position,
    dims_of_shape,
    index_values,
    part_remedy,
    positions_of,
    split_key,
)
from tilenest.language.reindexing import (
    broadcast_value,
)
from tilenest.language.session import Session, Staged, current_session
from tilenest.language.values import Scalar, Tile, operand_of, wrap
from tilenest.layouts import Dim, dims_compatible_by_position, shape_dims
from tilenest.opaque import Opaque
from tilenest.records import record


class Resource(Enum):
    """Classes of storage, which are not levels of anything: a target has some of them."""

    auto = "auto"
    private = "private"
    shared = "shared"
    cluster = "cluster"
    global_ = "global"
    tensor = "tensor"


class Memory(Staged, Opaque):
    """Storage of one instance of the nearest parallel nest, or of the kernel."""

    __slots__ = ("owner_name",)

    def __init__(self, value: Value, session: Session) -> None:
        super().__init__(value, session)
        self.owner_name: tuple[object, str] | None = None
        """the frame and the name that hold it"""

    @property
    def dtype(self) -> DType:
        """The element format."""
        return self._type.dtype

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dims of the tiles that it holds."""
        return self._type.dims

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the tiles that it holds."""
        return Extents(self._type.shape)

    @property
    def _type(self) -> MemoryType:
        assert isinstance(self.value.type, MemoryType)
        return self.value.type

    def load(self) -> Tile | Scalar:
        """A snapshot: what is stored afterwards does not change it.

        UninitialisedMemoryError where not all of it may be stored yet.
        """
        return wrap(_load(self, (), self.dims), current_session())

    def store(self, value: object) -> None:
        """Every element anew: a tile, scalar or number of its dtype, which broadcasts.

        DTypeError for another dtype, ShapeError for a tile that does not broadcast.
        """
        _store(self, (), self.dims, value)

    def __getitem__(self, key: object) -> Tile:
        """`m[origin, shape]` loads a part: `m(origin, shape).load()`."""
        remedy = part_remedy("memory", len(self.dims))
        origin, shape = split_key(key, "a memory", remedy)
        return self._part(origin, shape, remedy).load()

    def __call__(self, origin: object, shape: object) -> MemoryPart:
        """A reference to the part at `origin` of the given shape, to `.load()` and `.store(v)`.

        Both are tuples with one item per dim, bare when there is one. RankError otherwise,
        ShapeError for a negative extent.
        """
        return self._part(origin, shape, part_remedy("memory", len(self.dims), "()"))

    def _part(self, origin: object, shape: object, remedy: str) -> MemoryPart:
        session = current_session()
        positions = positions_of(session, origin, len(self.dims), "the origin in a memory", remedy)
        dims = dims_of_shape(shape)
        if len(dims) != len(self.dims):
            raise RankError(
                f"a part of rank {len(dims)} is taken of a memory of rank {len(self.dims)}",
                remedy="give one extent per dimension of the memory, 1 for those that are fixed",
            )
        return MemoryPart(self, tuple(positions), dims)

    def _misuse(self) -> CaptureError:
        return CaptureError(
            "a memory is used as a value", remedy="take its content, as memory.load()"
        )

    def __bool__(self) -> Never:
        raise self._misuse()

    def __setitem__(self, key: object, value: object) -> Never:
        raise CaptureError(
            "a memory is assigned through []",
            remedy="store a part, as memory(origin, shape).store(x), or all, as memory.store(x)",
        )

    def __repr__(self) -> str:
        return f"Memory({self.dtype.name}, {self.shape})"


@record(eq=False)
class MemoryPart(Opaque):
    """A part of a memory. What lies outside of the memory reads 0 and is not stored."""

    memory: Memory
    origin: tuple[Position, ...]
    dims: tuple[Dim, ...]

    def load(self) -> Tile:
        """A snapshot of the part.

        UninitialisedMemoryError where not all of it may be stored yet.
        """
        return Tile(_load(self.memory, self.origin, self.dims), current_session())

    def store(self, value: object) -> None:
        """The part anew, as the memory's own `store` takes it; the rest stays as it is."""
        _store(self.memory, self.origin, self.dims, value)

    def _misuse(self) -> CaptureError:
        return CaptureError(
            "a part of a memory is used as a value", remedy="take its content, as part.load()"
        )


def _load(memory: Memory, origin: Sequence[Position], dims: tuple[Dim, ...]) -> Value:
    session = current_session()
    value = session.value_of(memory)
    operation = MemoryLoad(
        memory=value,
        state=_first_state(value),
        origins=index_values(session, origin),
        result_types=[type_over(memory.dtype, dims)],
    )
    return session.insert(operation).result


def _store(
    memory: Memory, origin: Sequence[Position], dims: tuple[Dim, ...], value: object
) -> None:
    session = current_session()
    target = session.value_of(memory)
    stored = required(session, operand_of(session, value), memory.dtype, "the stored value")
    dims_compatible_by_position(dims_of(stored), dims)
    if dims_of(stored) != dims:
        stored = _broadcast(session, stored, dims)
    operation = MemoryStore(
        memory=target,
        state=_first_state(target),
        value=stored,
        origins=index_values(session, origin),
        result_types=[STATE],
    )
    session.insert(operation)


def memory(dtype: object, shape_or_layout: object, resource: object = Resource.auto) -> Memory:
    """Storage for tiles of a dtype over a shape, one per instance of the nearest parallel nest.

    A shape asks for dense storage. A layout (`tn.layout`, `tn.index_map` from a shape of axes and
    ints into a shape of ints) says where each element lies; every element needs a place of its own,
    and what no element uses is padding. ShapeError for any other layout, for extents that only run
    time knows, and for more bytes than 64 bits address. `resource`, one of `tn.mem`, restricts the
    class of storage; CaptureError otherwise.
    """
    session = current_session()
    if not isinstance(resource, Resource):
        raise CaptureError(
            f"{shown(resource)} is no class of storage",
            remedy="use tn.mem.auto, private, shared, cluster, global_ or tensor",
        )
    layout = shape_or_layout.map if isinstance(shape_or_layout, IndexMap) else None
    storage: tuple[int, ...] = ()
    if isinstance(shape_or_layout, IndexMap):
        dims, storage = _static(shape_or_layout)
    else:
        dims = dims_of_shape(shape_or_layout)
    operation = MemoryAllocate(
        resource=resource.value,
        layout=layout,
        storage=storage,
        result_types=[MemoryType(as_dtype(dtype), dims), STATE],
    )
    problem = layout_problem(operation)
    if problem is not None:
        raise ShapeError(f"a memory {problem.text}", remedy=problem.remedy)
    session.insert(operation)
    return Memory(operation.memory, session)


def _static(layout: IndexMap) -> tuple[tuple[Dim, ...], tuple[int, ...]]:
    """The dims of a layout and the extents of its storage, which the compiler has to know."""
    items = [item for item in layout.domain if not isinstance(item, Value)]
    storage = tuple(size for size in layout.codomain if isinstance(size, int))
    if layout.symbols or len(items) < len(layout.domain) or len(storage) < len(layout.codomain):
        raise ShapeError(
            "the layout of a memory depends on run-time scalars",
            remedy="use ints and axes: storage has a fixed size and order",
        )
    return shape_dims(items), storage


def _first_state(memory: Value) -> Value:
    assert isinstance(memory, OpResult) and isinstance(memory.owner, MemoryAllocate)
    return memory.owner.state


def _broadcast(session: Session, value: Value, dims: tuple[Dim, ...]) -> Value:
    if dims_of(value):
        return broadcast_value(session, value, dims)
    return map_elements(
        session, element_dtype(value.type), dims, [value], lambda _, elements: elements[0]
    )

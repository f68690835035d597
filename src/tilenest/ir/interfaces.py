"""What operations say about themselves: effects, iteration spaces, atoms, how regions run.

In: the answers of op classes. Out: frozen records that analyses and passes read, so that they ask
an operation instead of listing classes. An `Effect` is of the operation alone: whoever asks for
what is nested in it walks the regions. Operands are named by their flat position, so nothing here
knows what a value is; `core` says of which values it all is.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, Generic, TypeVar

from tilenest.ir.types import DType
from tilenest.layouts import AffineMap
from tilenest.records import record

ResourceT = TypeVar("ResourceT")
ValueT = TypeVar("ValueT")


class EffectKind(Enum):
    """What an operation does besides computing its results."""

    READ = "read"
    WRITE = "write"
    ALLOCATE = "allocate"
    """The result is storage of its own: two such operations are never one."""
    ATOMIC = "atomic"
    """Reads and writes at once, as other instances see it."""
    SYNCHRONIZE = "synchronize"
    """Orders the effects of instances."""
    FAULT = "fault"
    """May end the program."""
    CALL = "call"
    """Whatever a function does."""

    @property
    def operation(self) -> str:
        """What a target calls it where it is done to memory."""
        return {"read": "load", "write": "store"}.get(self.value, self.value)


@record
class Effect(Generic[ResourceT]):
    """One effect on a view, buf or memory; on anything where `resource` is None."""

    kind: EffectKind
    resource: ResourceT | None = None


@record
class Touch(Generic[ValueT]):
    """An access of a memory: which of its elements an operation touches at the points of a box.

    `map` takes a point and the `symbols` to coordinates; outside of the memory `bounds` says what
    happens. Dims in `clips` end at run time. Where it `is_masked`, the program computes which
    points there are. `group` and `position` name the operand for a reader.
    """

    group: str
    position: int
    memory: ValueT
    kind: EffectKind
    map: AffineMap
    bounds: str
    extents: tuple[int, ...] = ()
    symbols: tuple[ValueT, ...] = ()
    clips: tuple[tuple[int, ValueT], ...] = ()
    """dims of the box, and where they end at run time"""
    is_masked: bool = False

    @property
    def operation(self) -> str:
        """What a target calls it."""
        return self.kind.operation


class RegionUse(Enum):
    """How the regions of an operation run."""

    IN_TURN = "in turn"
    """Each once, in order."""
    REPEATED = "repeated"
    """Each run takes all regions in order, and there are any number of runs."""
    ALTERNATIVE = "alternative"
    """One of them; it yields the results."""
    ELEMENTWISE = "elementwise"
    """Scalar code, run for every element; without effects."""


@record
class Induction(Generic[ValueT]):
    """An index of a repeated region: lower, lower + step, ... before upper."""

    lower: ValueT
    upper: ValueT
    step: ValueT


@record
class Carry(Generic[ValueT]):
    """A state that a repeated region hands from one run to the next."""

    initial: ValueT
    arguments: tuple[ValueT, ...]
    """what it is called in each region"""
    yielded: ValueT
    result: ValueT


@record
class MapUse:
    """A map among the attributes of an operation, and between how many coordinates it has to go.
    `what` is addressed by it, for a reader."""

    what: str
    map: AffineMap
    dims: int
    symbols: int
    results: int


@record
class IterationDim:
    """One dim of an iteration space; `policy` is that of the reduction over it, None where points
    are independent."""

    extent: int
    policy: str | None = None


@record
class Iteration:
    """The points an operation computes at, and what it touches at each.

    A map takes the iteration coordinates to those of an operand or a result (no coordinates for a
    scalar). All maps share the symbols, which are the operands at these positions.
    """

    dims: tuple[IterationDim, ...]
    operands: tuple[AffineMap | None, ...]
    """by flat operand position; None where the operand is no part of a point's work"""
    results: tuple[AffineMap, ...]
    symbols: tuple[int, ...] = ()

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(dim.extent for dim in self.dims)

    @property
    def reduced(self) -> tuple[int, ...]:
        """The dims that are folded."""
        return tuple(place for place, dim in enumerate(self.dims) if dim.policy is not None)


MOVE = "move"
"""What an atom is asked for where elements only come to lie elsewhere."""
COMBINE = "combine."
"""Before the scalar function of two arguments by which an atom is asked to combine elements."""


@record
class AtomRequest:
    """What an atom of a machine must provide to finish a result of an operation."""

    semantic: str
    """what is computed, by a name without a target"""
    dtype: DType
    """of the elements"""
    policy: str | None
    """the order in which elements are combined, None where they are not"""
    rounding: str
    """what is rounded: nothing ('exact'), or every step to the type of the elements ('each')"""
    result: AffineMap
    """from iteration coordinates to what the result keeps of them"""
    is_exact: bool = False
    """whether it is known that no order and no rounding of steps gives other numbers"""


class Interfaces(Generic[ValueT]):
    """What every operation can be asked. An op class declares `FORMS` and `effects`, and the rest
    where the default does not fit it."""

    __slots__ = ()

    FORMS: ClassVar[tuple[str, ...]] = ()
    """the forms of a module it may stand in"""
    REGION_USE: ClassVar[RegionUse] = RegionUse.IN_TURN
    NEEDS: ClassVar[tuple[str, ...]] = ()
    """what a target must have for the operation to be exported to it; a backend lists what its
    target has, and refuses the rest"""
    ACTION: ClassVar[str] = ""
    """What messages call an access of a view, whose attributes `bounds` and `site` say what happens
    outside and which access it is; of other operations nothing."""
    IS_ELEMENTWISE: ClassVar[bool] = False
    """True when it may stand in an elementwise region: scalars in, one scalar out, no effects."""
    IS_ISOLATED: ClassVar[bool] = False
    """True when its regions use no value from outside."""

    def effects(self) -> tuple[Effect[ValueT], ...]:
        """Its own effects; those of nested operations come on top."""
        raise NotImplementedError(f"{type(self).__name__} declares no effects")

    def accesses(self) -> tuple[Touch[ValueT], ...]:
        """What its effects on memory touch, element by element; nothing of an effect means that it
        may be anywhere in the memory."""
        return ()

    def map_uses(self) -> tuple[MapUse, ...]:
        """The maps that it holds, and what they have to meet; said of operations that need not be
        right yet. Maps in a record that rules of its own judge are left out."""
        return ()

    def iteration(self) -> Iteration | None:
        """Its iteration space, for what computes many elements."""
        return None

    def atom_requests(self) -> tuple[AtomRequest | None, ...]:
        """For each result what an atom must provide that takes its elements, computed at points of
        the iteration, and gives the result; None where none can, nothing where none is asked."""
        return ()

    def inductions(self) -> tuple[Induction[ValueT], ...]:
        """The indices that come first among the arguments of each repeated region."""
        return ()

    def carries(self) -> tuple[Carry[ValueT], ...]:
        """The states that come next."""
        return ()

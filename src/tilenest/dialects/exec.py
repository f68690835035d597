"""Structured execution: nests, conditionals, yields.

Every nest takes its domain as index operands `lower`, `upper`, `step` (one of each per axis; a
domain of several axes runs in lexicographic order). Body blocks get one index argument per axis,
then the carried states.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from tilenest.dialects.contracts import ReductionContract
from tilenest.dialects.stages import STRUCTURED
from tilenest.ir import (
    Block,
    Carry,
    Induction,
    Operation,
    OwnEffects,
    RegionUse,
    Value,
    attribute,
    open_attribute,
    operand,
    variadic,
)


class Yield(Operation):
    """Ends a region, handing values to the operation that owns it."""

    NAME = "exec.yield"
    TERMINATOR = True
    FORMS = STRUCTURED
    values = variadic()

    def effects(self) -> OwnEffects:
        return ()


class Nest(Operation):
    """Common shape of the four nests."""

    FORMS = STRUCTURED
    REGION_USE = RegionUse.REPEATED
    LEVELS: ClassVar[Literal["parallel", "serial", "pipeline", "reduce"]]
    """what its axes are as levels of execution"""
    lower = variadic()
    upper = variadic()
    step = variadic()

    def effects(self) -> OwnEffects:
        return ()

    def inductions(self) -> tuple[Induction[Value], ...]:
        bounds = zip(self.lower, self.upper, self.step, strict=False)
        return tuple(Induction(lower, upper, step) for lower, upper, step in bounds)

    @property
    def rank(self) -> int:
        return len(self.lower)

    @property
    def policy(self) -> str:
        """The order in which a reduction combines; nothing of other nests."""
        return ""


class CarryingNest(Nest):
    """A nest whose last region yields the next states."""

    initial = variadic()

    def carries(self) -> tuple[Carry[Value], ...]:
        blocks = [region.block for region in self.regions]
        following = blocks[-1].terminator.operands
        return tuple(
            Carry(
                initial,
                tuple(block.arguments[self.rank + place] for block in blocks),
                following[place],
                self.results[place],
            )
            for place, initial in enumerate(self.initial)
        )


class Parallel(Nest):
    """Independent instances, promised by the user. Region: (indices..., entry values...).

    With `initial` tiles and scalars, instances update them by patches (`exec.yield_updates`) and
    the results are what they are afterwards. Every instance gets the initial values as they were
    on entry, none sees the patches of another. Without, the region yields nothing.
    """

    NAME = "exec.parallel"
    LEVELS = "parallel"
    initial = variadic()
    scope = open_attribute(str, default="auto")


class Serial(CarryingNest):
    """Ordered instances carrying states. Region: (indices..., states...) -> states."""

    NAME = "exec.serial"
    LEVELS = "serial"
    schedule = attribute(object, default=None)
    """the `PipelineSchedule` of the pipeline it was, now in order, or None"""


class Reduce(CarryingNest):
    """Combines contributions into states. Region: (indices..., states...) -> next states.

    With two regions the first is the lift, (indices..., states...) -> the states of one
    contribution alone; the second, the update, gets them behind the states. A lift has no use for
    the states before.
    """

    NAME = "exec.reduce"
    LEVELS = "reduce"
    contract = attribute(ReductionContract, default=ReductionContract())
    ordering = attribute(object, default=None)
    """the `OrderingContract` of the elements whose position is found, for the last step of an
    arg-max, or None"""

    @property
    def policy(self) -> str:
        return self.contract.policy

    @property
    def lift(self) -> Block | None:
        return self.body if len(self.regions) > 1 else None

    @property
    def update(self) -> Block:
        block = self.regions[-1].blocks.first
        assert block is not None
        return block


class Pipeline(CarryingNest):
    """Ordered instances that may overlap, cut into stage regions.

    Region of stage s: (indices..., states..., the values yielded by stages 0..s-1 in order). The
    last stage yields the next states. `window` is the number of iterations in flight (0 = open).
    """

    NAME = "exec.pipeline"
    LEVELS = "pipeline"
    window = open_attribute(int, default=0)
    interval = attribute(int, default=1)
    stage_names = attribute(tuple, default=())
    """one str or None per stage"""
    dependences = attribute(object, default=None)
    """a tuple of every `Dependence` between stages; None where nobody stated them, and iterations
    and stages run in order"""
    schedule = attribute(object, default=None)
    """a `PipelineSchedule` once it is decided, or None"""


class If(Operation):
    """Two regions without arguments that yield the results."""

    NAME = "exec.if"
    FORMS = STRUCTURED
    REGION_USE = RegionUse.ALTERNATIVE
    condition = operand()

    def effects(self) -> OwnEffects:
        return ()

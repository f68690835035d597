"""What a program needs of a machine: registers of a nest, bytes of a frame, turns of the workers.

In: work with a schedule, a function in Scheduled form, how many items a parallel has. Out: frozen
counts. A nest keeps the accumulators of all copies of its kept loops in registers, or the results
of a straight line until it stores them; an input takes part of the registers for as long as copies
share it. Memory that the program asks for and temporaries of the compiler lie in one frame and are
counted together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import ClassVar

from tilenest.analysis.scratch_layout import ScratchLayout, bufs_of_frames, bytes_of
from tilenest.dialects import Alloc, Loop, MapReducePost, Parallel, Sched
from tilenest.ir import Analysis, Asker, Edit, Function, Type, element_dtype
from tilenest.layouts import IndexExpr
from tilenest.machine import Machine
from tilenest.records import record

CHUNK_NS = 20_000.0
"""Less work than this is not worth a worker's turn."""
ALONE_NS = 50_000.0
"""All of it, and no other worker is asked."""
MOST_CHUNKS = 256
_WIDENED_BYTES = 4
"""Narrower elements are widened before anything is computed."""

# Registers -------------------------------------------------------------------------------------


@record
class RegisterPressure:
    """Vector registers that one step of a nest occupies."""

    states: int
    """accumulators, and results that wait to be stored"""
    inputs: int
    available: int

    @property
    def needed(self) -> int:
        return self.states + self.inputs

    @property
    def fits(self) -> bool:
        """Whether nothing has to be kept in memory meanwhile."""
        return self.needed <= self.available


def register_pressure(op: MapReducePost, sched: Sched, machine: Machine) -> RegisterPressure:
    """The registers of work under a schedule."""
    loops = sched.loops
    kept = [set(op.spec(result).dims) for result in op.folded_results]
    folded = frozenset(d for dims in kept for d in range(op.rank) if d not in dims)
    first = next((i for i, loop in enumerate(loops) if loop.dim in folded), len(loops))
    copies = _copies(loops, folded)
    lanes = next((loop.step for loop in loops if loop.policy == "vector"), 1)
    types = [value.type for value in op.fold_block.terminator.operands]
    states = 0
    for result, spec in enumerate(op.specs):
        inside = [n for i, n in copies.items() if spec.policy is None or i >= first]
        states += math.prod(inside) * _registers(types[result], lanes, machine)
    inputs = sum(
        _shared(op.access("input", i).map.results, loops, copies)
        * _registers(value.type, lanes if _varies(op, i, loops) else 1, machine)
        for i, value in enumerate(op.inputs)
    )
    return RegisterPressure(states, inputs, machine.vector_registers)


def _copies(loops: Sequence[Loop], folded: frozenset[int]) -> dict[int, int]:
    """How many times each loop that becomes copies repeats its body, by place."""
    found: dict[int, int] = {}
    for place, loop in enumerate(loops):
        outer = next((o for o in reversed(loops[:place]) if o.dim == loop.dim), None)
        if loop.policy == "plain":
            continue
        if outer is not None:
            found[place] = max(1, outer.step // loop.step)
        elif loop.policy == "vector" or loop.dim in folded:
            found[place] = 1
    return found


def _shared(results: Iterable[IndexExpr], loops: Sequence[Loop], copies: dict[int, int]) -> int:
    """How many elements of an input are held at once.

    Copies run one after the other, so an element that one copy alone needs is gone after it; where
    copies of an outer loop need the same elements again, all of those are held.
    """
    mask = _mask(results)
    uses = {place: bool(mask >> loops[place].dim & 1) for place in copies}
    again = [place for place, count in copies.items() if count > 1 and not uses[place]]
    outermost = min(again, default=len(loops))
    return math.prod(n for place, n in copies.items() if uses[place] and place > outermost)


def _mask(results: Iterable[IndexExpr]) -> int:
    mask = 0
    for result in results:
        mask |= result.dim_mask
    return mask


def _varies(op: MapReducePost, place: int, loops: Sequence[Loop]) -> bool:
    """Whether an input has another element in each lane."""
    mask = _mask(op.access("input", place).map.results)
    return any(loop.policy == "vector" and mask >> loop.dim & 1 for loop in loops)


def _registers(type_: Type, lanes: int, machine: Machine) -> int:
    """Vector registers that so many elements take; a single one has one for itself."""
    size = max(_WIDENED_BYTES, element_dtype(type_).bytes)
    return max(1, -(-lanes * size // machine.vector_bytes))


# Scratch memory --------------------------------------------------------------------------------


@record
class Footprint:
    """What the bufs of one class of memory occupy in one frame."""

    resource: str
    frame: Parallel | None
    """the parallel whose workers have it; None where the call does"""
    bytes: int
    users: tuple[tuple[Alloc, int], ...]
    """the bufs with their bytes, the largest first"""


@record
class ResourcePressure(Analysis[Function, "ResourcePressure"]):
    """The memory that a function needs, by class and frame."""

    NAME: ClassVar[str] = "resource pressure"
    DEPENDS_ON: ClassVar = (ScratchLayout,)

    footprints: tuple[Footprint, ...]

    @classmethod
    def compute(cls, subject: Function, ask: Asker, /) -> ResourcePressure:
        regions = ask.get(ScratchLayout, subject).regions
        footprints: list[Footprint] = []
        for frame, classes in bufs_of_frames(subject).items():
            for resource, allocs in classes.items():
                users = sorted(((op, bytes_of(op)) for op in allocs), key=lambda user: -user[1])
                size = regions[frame, resource].size
                footprints.append(Footprint(resource, frame, size, tuple(users)))
        return cls(tuple(footprints))

    @classmethod
    def is_affected_by(cls, _: Edit) -> bool:
        # What changes it changes the layout.
        return False


# Workers ---------------------------------------------------------------------------------------


@record
class Occupancy:
    """How the items of a parallel are shared out."""

    items: int
    grain: int
    workers: int

    @property
    def chunks(self) -> int:
        return -(-self.items // self.grain)

    @property
    def rounds(self) -> int:
        """Chunks that the busiest worker runs."""
        return -(-self.chunks // self.workers) if self.workers else 0

    @property
    def busy(self) -> float:
        """The part of the workers' time in which they have work, if all chunks take the same."""
        rounds = self.rounds * self.workers
        return self.chunks / rounds if rounds else 0.0


def occupancy(items: int, item_ns: float, cores: int) -> Occupancy:
    """The grain and the workers of so many items: the same rule as run time has."""
    cost = max(item_ns, 1e-3)
    if items < math.ceil(ALONE_NS / cost):
        return Occupancy(items, max(items, 1), 1)
    grain = max(-(-items // MOST_CHUNKS), math.ceil(CHUNK_NS / cost))
    return Occupancy(items, grain, min(cores, -(-items // grain)))

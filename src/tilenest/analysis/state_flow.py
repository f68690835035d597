"""Which state of every explicit memory reaches each access, and which parts are stored in it.

In: a function in Candidate form. Out: the memory that each state belongs to, and every place where
a state is used that is not the one that reaches it: one from before a store, one of another memory,
one in which not all that is read is stored yet, one that a region changes and does not hand on.
States enter and leave regions as carried values, results of branches and what earlier stages yield.
What is stored stays stored: a branch leaves what all ways store, a loop what was there before and
what its turns surely store, and a turn of a serial loop finds what the turns before it stored. Two
walks are enough for that. The first takes nothing for granted of the turns before one, so what it
finds at the end of a turn holds of every turn; with that the second knows where each turn starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import ClassVar

from tilenest.analysis.effects import is_computation
from tilenest.analysis.stored_parts import Box, PartReader, Stored
from tilenest.dialects import (
    CarryingNest,
    MemoryAllocate,
    MemoryLoad,
    MemoryStore,
    Parallel,
    Pipeline,
    Reduce,
)
from tilenest.ir import (
    Analysis,
    Asker,
    Block,
    Carry,
    Edit,
    EditKind,
    Function,
    MemoryType,
    Operation,
    Region,
    RegionUse,
    StateType,
    Value,
)
from tilenest.records import record


class StateFault(Enum):
    """What is wrong with a use of a state."""

    STALE = "takes a state that a store has ended"
    FOREIGN = "takes the state of another memory"
    UNINITIALISED = "reads a memory where not all that is read may be stored yet"
    LOST = "changes what is in a memory and does not hand on its state"
    SHARED = "stores in a memory of the instances around it"
    MISPLACED = "is no operation that takes a state"


@record
class StateProblem:
    """An operation and what is wrong there."""

    operation: Operation
    fault: StateFault
    missing: Box | None = None
    """where elements may be that it reads and nothing may have stored"""

    def __str__(self) -> str:
        if not self.missing:
            return self.fault.value
        axes = ", ".join(f"{low}:{high}" for low, high in self.missing)
        return f"{self.fault.value}: elements of [{axes}]"


@record
class MemoryStates(Analysis[Function, "MemoryStates"]):
    """The memory of every state, and the problems in the order of the program."""

    NAME: ClassVar[str] = "memory states"

    memory_of: Mapping[Value, Value]
    problems: tuple[StateProblem, ...]

    @classmethod
    def compute(cls, subject: Function, _: Asker, /) -> MemoryStates:
        walk = _Walk()
        walk.region(subject.region, {})
        if walk.has_turns and any(p.fault is StateFault.UNINITIALISED for p in walk.problems):
            # Once more, knowing what the turns of each nest store.
            walk.problems.clear()
            walk.region(subject.region, {})
        return cls(walk.memory_of, tuple(walk.problems))

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        if edit.kind is EditKind.ATTRIBUTE:
            # Places are known by what computes them, of which any attribute may be a part.
            return edit.operation is not None and is_computation(edit.operation)
        return edit.kind not in (EditKind.LABEL, EditKind.FUNCTION)


_Current = dict[Value, Value]
"""The state that reaches this point, by memory; states are named by their first name."""


@record
class _Turn:
    """A nest, what it carries of states, and the memories these are of."""

    nest: CarryingNest
    carried: Sequence[Carry[Value]]
    memories: Sequence[Value]


def _is_state(value: Value) -> bool:
    return isinstance(value.type, StateType)


class _Walk:
    def __init__(self) -> None:
        self.memory_of: dict[Value, Value] = {}
        self.problems: list[StateProblem] = []
        self._first_name: dict[Value, Value] = {}
        self._stored: dict[Value, Stored] = {}
        self._parts = PartReader()
        self._handed_memory: dict[Value, Value] = {}
        self._turn_ends: dict[CarryingNest, list[Stored]] = {}

    @property
    def has_turns(self) -> bool:
        """Whether a turn of a nest may find what one before it stored."""
        return any(not isinstance(nest, Reduce) for nest in self._turn_ends)

    # States ------------------------------------------------------------------------------------

    def _define(self, state: Value, memory: Value, stored: Stored, current: _Current) -> None:
        self.memory_of[state] = memory
        self._first_name[state] = state
        self._stored[state] = stored
        current[memory] = state

    def _alias(self, state: Value, same: Value) -> None:
        """Another name of a state."""
        self.memory_of[state] = self.memory_of[same]
        self._first_name[state] = self._first_name[same]

    def _memory(self, value: Value) -> Value:
        """The memory by the name that its allocation gives it."""
        return self._handed_memory.get(value, value)

    def _report(self, operation: Operation, fault: StateFault, missing: Box | None = None) -> None:
        self.problems.append(StateProblem(operation, fault, missing))

    def _reaches(self, op: Operation, state: Value, memory: Value, current: _Current) -> bool:
        """Whether the state is that of the memory here; if not, that is a problem."""
        known = self._first_name.get(state)
        if known is None or self.memory_of[state] is not memory:
            self._report(op, StateFault.FOREIGN)
        elif current.get(memory) is not known:
            self._report(op, StateFault.STALE)
        else:
            return True
        return False

    # The program -------------------------------------------------------------------------------

    def region(self, region: Region, current: _Current) -> list[Value]:
        """Walk a region; what it hands out."""
        if len(region.blocks) != 1:
            for op in region.walk():
                if any(map(_is_state, [*op.operands, *op.results])):
                    self._report(op, StateFault.MISPLACED)
            return []
        return self.block(region.block, current)

    def block(self, block: Block, current: _Current) -> list[Value]:
        for op in block.operations:
            if op.TERMINATOR:
                self._check_terminator(op)
                return list(op.operands)
            self._operation(op, current)
        return []

    def _check_terminator(self, op: Operation) -> None:
        if op.parent_op is None and any(map(_is_state, op.operands)):
            self._report(op, StateFault.MISPLACED)

    def _operation(self, op: Operation, current: _Current) -> None:
        self._parts.note(op)
        match op:
            case MemoryAllocate():
                self._define(op.state, op.memory, (), current)
            case MemoryLoad():
                memory = self._memory(op.memory)
                if self._reaches(op, op.state, memory, current):
                    part = self._parts.part_of(op)
                    missing = self._parts.missing(part, self._stored[current[memory]])
                    if missing is not None:
                        self._report(op, StateFault.UNINITIALISED, missing)
            case MemoryStore():
                memory = self._memory(op.memory)
                is_reached = self._reaches(op, op.state, memory, current)
                before = self._stored[current[memory]] if is_reached else ()
                stored = self._parts.with_part(before, self._parts.part_of(op))
                self._define(op.result, memory, stored, current)
            case CarryingNest():
                self._nest(op, current)
            case _ if op.REGION_USE is RegionUse.ALTERNATIVE and op.regions:
                self._branches(op, current)
            case _:
                self._other(op, current)

    def _other(self, op: Operation, current: _Current) -> None:
        if any(map(_is_state, [*op.operands, *op.results])):
            self._report(op, StateFault.MISPLACED)
        for region in op.regions:
            inner = dict(current)
            self.region(region, inner)
            fault = StateFault.SHARED if isinstance(op, Parallel) else StateFault.LOST
            self._expect_kept(op, current, inner, fault)

    def _expect_kept(
        self, op: Operation, before: _Current, after: _Current, fault: StateFault
    ) -> None:
        """No memory of outside was changed without a state that says so."""
        if any(after[memory] is not state for memory, state in before.items()):
            self._report(op, fault)

    def _nest(self, op: CarryingNest, current: _Current) -> None:
        carried = [carry for carry in op.carries() if _is_state(carry.initial)]
        memories = [self.memory_of.get(carry.initial) for carry in carried]
        found = [memory for memory in memories if memory is not None]
        if len(found) < len(carried):
            self._report(op, StateFault.FOREIGN)
            return
        for carry, memory in zip(carried, found, strict=True):
            self._reaches(op, carry.initial, memory, current)
        entry = [self._stored[self._first_name[carry.initial]] for carry in carried]
        turn = _Turn(op, carried, found)
        ends = self._turn_ends.get(op)
        if ends is None:
            inner, ends = self._run(turn, entry, current)
            self._turn_ends[op] = ends
        else:
            inner, _ = self._run(turn, self._later(op, entry, ends), current)
        kept = dict(inner)
        for carry, memory, initial, end in zip(carried, found, entry, ends, strict=True):
            stored = self._parts.with_parts(initial, self._parts.after(op, end))
            self._define(carry.result, memory, stored, current)
            kept[memory] = current[memory]
        self._expect_kept(op, current, kept, StateFault.LOST)

    def _later(
        self, op: CarryingNest, entry: Sequence[Stored], ends: Sequence[Stored]
    ) -> Sequence[Stored]:
        """What is stored at the start of any turn of a nest whose turns store this."""
        if isinstance(op, Reduce):
            return entry
        earlier = (self._parts.before_turn(op, end) for end in ends)
        return [self._parts.with_parts(*both) for both in zip(entry, earlier, strict=True)]

    def _run(
        self, turn: _Turn, entry: Sequence[Stored], current: _Current
    ) -> tuple[_Current, list[Stored]]:
        """Walk a nest at whose every turn this is stored; its end, and what is stored there."""
        inner = dict(current)
        for carry, memory, stored in zip(turn.carried, turn.memories, entry, strict=True):
            first, *others = carry.arguments
            self._define(first, memory, stored, inner)
            for other in others:
                self._alias(other, first)
        self._stages(turn.nest, inner)
        end = turn.nest.regions[-1].block.terminator
        ends: list[Stored] = []
        for carry, memory in zip(turn.carried, turn.memories, strict=True):
            is_handed = self._reaches(end, carry.yielded, memory, inner)
            ends.append(self._stored[inner[memory]] if is_handed else ())
        return inner, ends

    def _stages(self, op: CarryingNest, inner: _Current) -> None:
        """The regions in turn; what an earlier stage yields has a name in each later one."""
        handed: list[Value] = []
        start = op.rank + len(op.initial)
        first = op.regions[0].block
        for region in op.regions:
            arguments = region.block.arguments
            if region.block is not first:
                for argument, same in zip(arguments[:start], first.arguments, strict=False):
                    self._parts.alias(argument, same)
            if isinstance(op, Pipeline):
                for argument, value in zip(arguments[start:], handed, strict=False):
                    if _is_state(value) and value in self.memory_of:
                        self._alias(argument, value)
                    elif isinstance(value.type, MemoryType):
                        self._handed_memory[argument] = self._memory(value)
                    else:
                        self._parts.alias(argument, value)
            handed += self.region(region, inner)

    def _branches(self, op: Operation, current: _Current) -> None:
        before = dict(current)
        ends = [dict(current) for _ in op.regions]
        handed = [self.region(region, end) for region, end in zip(op.regions, ends, strict=True)]
        for place, result in enumerate(op.results):
            if _is_state(result):
                self._merge(op, result, [values[place] for values in handed], ends, current)
        for end in ends:
            kept = {m: current[m] if current[m] is not before[m] else end[m] for m in before}
            if any(kept[m] is not current[m] for m in before):
                self._report(op, StateFault.LOST)
                return

    def _merge(
        self,
        op: Operation,
        result: Value,
        values: list[Value],
        ends: list[_Current],
        current: _Current,
    ) -> None:
        """A result that is, in each branch, the state of one memory."""
        memory = self.memory_of.get(values[0])
        if memory is None or memory not in current:
            self._report(op, StateFault.FOREIGN)
            return
        reached = [
            self._reaches(region.block.terminator, value, memory, end)
            for region, value, end in zip(op.regions, values, ends, strict=True)
        ]
        stored: Stored = ()
        if all(reached):
            stored, *others = (self._stored[end[memory]] for end in ends)
            for other in others:
                stored = self._parts.in_both(stored, other)
        self._define(result, memory, stored, current)

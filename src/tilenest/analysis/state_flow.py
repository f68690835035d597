"""Which state of every explicit memory reaches each access, and whether anything is in it.

In: a function in Candidate form. Out: the memory that each state belongs to, and every place where
a state is used that is not the one that reaches it: one from before a store, one of another memory,
one in which nothing is stored yet, one that a region changes and does not hand on. States enter and
leave regions as carried values, results of branches and what earlier stages yield; a loop that may
run no time leaves in a memory what was there before.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import ClassVar

from tilenest.analysis.structure import trip_counts
from tilenest.dialects import (
    CarryingNest,
    MemoryAllocate,
    MemoryLoad,
    MemoryStore,
    Parallel,
    Pipeline,
)
from tilenest.ir import (
    Analysis,
    Asker,
    Block,
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
    UNINITIALISED = "reads a memory in which nothing may be stored yet"
    LOST = "changes what is in a memory and does not hand on its state"
    SHARED = "stores in a memory of the instances around it"
    MISPLACED = "is no operation that takes a state"


@record
class StateProblem:
    """An operation and what is wrong there."""

    operation: Operation
    fault: StateFault


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
        return cls(walk.memory_of, tuple(walk.problems))

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        if edit.kind is EditKind.ATTRIBUTE:
            # Loops that run at least once are known by their constants.
            return edit.detail == "value"
        return edit.kind not in (EditKind.LABEL, EditKind.FUNCTION)


_Current = dict[Value, Value]
"""The state that reaches this point, by memory; states are named by their first name."""


def _is_state(value: Value) -> bool:
    return isinstance(value.type, StateType)


class _Walk:
    def __init__(self) -> None:
        self.memory_of: dict[Value, Value] = {}
        self.problems: list[StateProblem] = []
        self._first_name: dict[Value, Value] = {}
        self._is_filled: dict[Value, bool] = {}
        self._handed_memory: dict[Value, Value] = {}

    # States ------------------------------------------------------------------------------------

    def _define(self, state: Value, memory: Value, is_filled: bool, current: _Current) -> None:
        self.memory_of[state] = memory
        self._first_name[state] = state
        self._is_filled[state] = is_filled
        current[memory] = state

    def _alias(self, state: Value, same: Value) -> None:
        """Another name of a state."""
        self.memory_of[state] = self.memory_of[same]
        self._first_name[state] = self._first_name[same]

    def _memory(self, value: Value) -> Value:
        """The memory by the name that its allocation gives it."""
        return self._handed_memory.get(value, value)

    def _report(self, operation: Operation, fault: StateFault) -> None:
        self.problems.append(StateProblem(operation, fault))

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
        match op:
            case MemoryAllocate():
                self._define(op.state, op.memory, False, current)
            case MemoryLoad():
                memory = self._memory(op.memory)
                is_reached = self._reaches(op, op.state, memory, current)
                if is_reached and not self._is_filled[current[memory]]:
                    self._report(op, StateFault.UNINITIALISED)
            case MemoryStore():
                memory = self._memory(op.memory)
                self._reaches(op, op.state, memory, current)
                self._define(op.result, memory, True, current)
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
        memories: list[Value] = []
        inner = dict(current)
        for carry in carried:
            memory = self.memory_of.get(carry.initial)
            if memory is None:
                self._report(op, StateFault.FOREIGN)
                return
            self._reaches(op, carry.initial, memory, current)
            is_filled = self._is_filled[self._first_name[carry.initial]]
            first, *others = carry.arguments
            self._define(first, memory, is_filled, inner)
            for other in others:
                self._alias(other, first)
            memories.append(memory)
        self._stages(op, inner)
        runs = all(count is not None and count > 0 for count in trip_counts(op))
        kept = dict(inner)
        for carry, memory in zip(carried, memories, strict=True):
            end = op.regions[-1].block.terminator
            is_handed = self._reaches(end, carry.yielded, memory, inner)
            is_filled = self._is_filled[self._first_name[carry.initial]] or (
                runs and is_handed and self._is_filled[inner[memory]]
            )
            self._define(carry.result, memory, is_filled, current)
            kept[memory] = current[memory]
        self._expect_kept(op, current, kept, StateFault.LOST)

    def _stages(self, op: CarryingNest, inner: _Current) -> None:
        """The regions in turn; what an earlier stage yields has a name in each later one."""
        handed: list[Value] = []
        start = op.rank + len(op.initial)
        for region in op.regions:
            if isinstance(op, Pipeline):
                for argument, value in zip(region.block.arguments[start:], handed, strict=False):
                    if _is_state(value) and value in self.memory_of:
                        self._alias(argument, value)
                    elif isinstance(value.type, MemoryType):
                        self._handed_memory[argument] = self._memory(value)
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
        is_filled = all(reached) and all(self._is_filled[end[memory]] for end in ends)
        self._define(result, memory, is_filled, current)

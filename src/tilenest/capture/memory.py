"""States of explicit memory, threaded through each region when its body has been captured.

In: a block in which every access takes the first state of its memory. Out: the accesses take the
state that reaches them from the start of the block; what the block changes in memories of outside
is carried by its nest or yielded by its branch. The block around it does the same in its turn, so
that at the end every access of the program has its state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilenest.analysis import MemoryStates, StateFault
from tilenest.dialects import (
    CarryingNest,
    If,
    MemoryAllocate,
    MemoryStore,
    Nest,
    Reduce,
)
from tilenest.errors import AncestorUpdateError, ReductionPolicyError, UninitialisedMemoryError
from tilenest.ir import (
    STATE,
    Block,
    BlockArgument,
    Function,
    Operation,
    OpResult,
    StateType,
    Value,
    fresh,
)


def carry_states(op: Nest) -> None:
    """Let a nest, whose only block is complete, carry the states that its body changes."""
    body = op.body
    memories = _changed(body)
    if isinstance(op, CarryingNest):
        _refuse_regrouping(op, memories)
        op.set_group("initial", [*op.initial, *map(_first_state, memories)])
        arguments = {memory: body.add_argument(STATE) for memory in memories}
        last = _thread(body, arguments)
        end = body.terminator
        end.set_group("values", [*end.operands, *(last[memory] for memory in memories)])
        for _ in memories:
            op.add_result(STATE)
        return
    for memory in memories:
        raise _shared_store(body, memory)
    _thread(body, {})


def yield_states(op: If) -> None:
    """Let a conditional, whose branches are complete, yield the states that they change."""
    blocks = [region.block for region in op.regions]
    memories = list(dict.fromkeys(memory for block in blocks for memory in _changed(block)))
    for block in blocks:
        last = _thread(block, {})
        end = block.terminator
        states = [last.get(memory, _first_state(memory)) for memory in memories]
        end.set_group("values", [*end.operands, *states])
    for _ in memories:
        op.add_result(STATE)


def finish_states(function: Function) -> None:
    """Thread the block of the function itself, and refuse what reads elements that may not
    be stored."""
    if not any(isinstance(op, MemoryAllocate) for op in function.walk()):
        return
    _thread(function.body, {})
    for problem in fresh(MemoryStates, function).problems:
        assert problem.fault is StateFault.UNINITIALISED, problem
        raise UninitialisedMemoryError(
            f"a load {problem}",
            remedy="store in it first, on every way to the load, in all of the part that is "
            "loaded; a loop that may run no time stores nothing for sure; limit the numbers that "
            "places are computed from, as in tn.minimum(n, 64), and where places are known at run "
            "time only or there are very many, store the whole once before",
            location=problem.operation.location,
        )


def _thread(block: Block, entry: Mapping[Value, Value]) -> dict[Value, Value]:
    """Give the accesses their states; those after the block, by memory."""
    states = dict(entry)
    for op in block.operations:
        for inner in op.walk():
            for place, value in enumerate(inner.operands):
                if isinstance(value, OpResult) and isinstance(value.owner, MemoryAllocate):
                    state = states.get(value.owner.memory)
                    if state is not None and value is value.owner.state:
                        inner.set_operand(place, state)
        for result in _state_results(op):
            states[_memory_of(result)] = result
    return states


def _state_results(op: Operation) -> Sequence[Value]:
    return [result for result in op.results if isinstance(result.type, StateType)]


def _changed(block: Block) -> list[Value]:
    """The memories of outside whose state the block changes, in order."""
    found = [
        _memory_of(state)
        for op in block.operations
        if not isinstance(op, MemoryAllocate)
        for state in _state_results(op)
    ]
    return [memory for memory in dict.fromkeys(found) if memory.defining_block is not block]


def _memory_of(state: Value) -> Value:
    """The memory of a state, by where the state comes from."""
    while True:
        owner = state.block.parent_op if isinstance(state, BlockArgument) else state.owner  # type: ignore[attr-defined]  # else a result
        match owner:
            case MemoryAllocate():
                return owner.memory
            case MemoryStore():
                return owner.memory
            case CarryingNest():
                place = state.index - owner.rank * isinstance(state, BlockArgument)
                state = owner.initial[place]
            case If():
                state = owner.regions[0].block.terminator.operands[state.index]
            case _:
                raise AssertionError(f"{owner} gives no state")


def _first_state(memory: Value) -> Value:
    assert isinstance(memory, OpResult) and isinstance(memory.owner, MemoryAllocate)
    return memory.owner.state


def _refuse_regrouping(op: CarryingNest, memories: Sequence[Value]) -> None:
    if memories and isinstance(op, Reduce) and op.contract.is_tree:
        raise ReductionPolicyError(
            f"the policy {op.policy} regroups contributions, but the body stores to a memory that "
            "is declared outside",
            remedy="give the reduction a fold policy such as tn.reduction.fold_left",
            location=op.location,
        )


def _shared_store(body: Block, memory: Value) -> AncestorUpdateError:
    stores = [op for op in body.walk() if isinstance(op, MemoryStore) and op.memory is memory]
    return AncestorUpdateError(
        "a memory is declared outside the parallel region and stored to inside it",
        remedy="declare it inside the region, so that every instance has its own, or store to a "
        "view",
        location=stores[0].location,
    )

"""Simplify: fold constants, drop dead and duplicate work, unroll what runs once.

In: any form before Machine. Out: the same program with less in it: index arithmetic on constants is
a constant, as is the extent of a static axis; an item of a tuple made in sight is that item; equal
scalar ops of a block are one; a pure op nobody uses is gone, inside scalar regions too; a carried
state that never changes is its initial value; a branch on a constant is the block taken; a loop
that runs exactly once is its body; an instance that is alone waits for nobody. Float arithmetic is
left to run time.
"""

from __future__ import annotations

from collections.abc import Callable

from tilenest.analysis import (
    constant_of,
    is_computation,
    is_pure,
    nearest_parallel,
    trip_counts,
)
from tilenest.dialects import (
    Aggregate,
    Apply,
    Constant,
    Extent,
    Extract,
    If,
    MapReducePost,
    Nest,
    Parallel,
    Stride,
    Synchronize,
)
from tilenest.ir import (
    INDEX,
    Block,
    Function,
    Operation,
    OpResult,
    Rewriter,
    ScalarType,
    Value,
    ViewType,
    inline_block,
)
from tilenest.passes.pieces import keep_laws
from tilenest.passes.remap_places import leave_levels

_FOLDERS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "neg": lambda a: -a,
    "minimum": min,
    "maximum": max,
}


def canonicalize(function: Function, rewriter: Rewriter) -> tuple[()]:
    """Simplify one function in place until nothing changes; there is nothing to decide."""
    while _simplify_block(function.body, {}, rewriter):
        pass
    return ()


def _simplify_block(block: Block, known: dict[object, Operation], rewriter: Rewriter) -> bool:
    """One walk down, folding and sharing, then one walk up, dropping what is dead."""
    changed = False
    seen = dict(known)
    for op in block.operations:
        if op.parent is not block:
            continue
        if _fold(op, rewriter) or _share(op, seen, rewriter):
            changed = True
            continue
        for region in op.regions:
            for nested in region.blocks:
                changed |= _simplify_block(nested, {} if op.IS_ISOLATED else seen, rewriter)
        changed |= _simplify_nest(op, rewriter)
    for op in reversed(block.operations):
        if is_pure(op) and not any(result.has_uses for result in op.results):
            rewriter.erase(op)
            changed = True
    for op in block.operations:
        if isinstance(op, MapReducePost):
            changed |= _drop_unread_inputs(op, rewriter)
    return changed


def _share(op: Operation, seen: dict[object, Operation], rewriter: Rewriter) -> bool:
    # What works on tiles is shared by the plan, which weighs keeping a value.
    types = [value.type for value in (*op.operands, *op.results)]
    if not all(isinstance(t, ScalarType | ViewType) for t in types) or not is_computation(op):
        return False
    attributes = tuple((name, type(v), repr(v)) for name, v in op.attributes.items())
    key = (type(op), op.segments, tuple(op.operands), *types[len(op.operands) :], *attributes)
    first = seen.setdefault(key, op)
    if first is op:
        return False
    rewriter.replace_op(op, first.results)
    return True


def _fold(op: Operation, rewriter: Rewriter) -> bool:
    """Replace `op` by something simpler; True when it is gone."""
    match op:
        case Apply() if op.result.type is INDEX:
            return _fold_index(op, rewriter)
        case Extent():
            assert isinstance(op.view.type, ViewType)
            return _become_constant(op, op.view.type.shape[op.axis], rewriter)
        case Stride():
            assert isinstance(op.view.type, ViewType)
            return _become_constant(op, op.view.type.strides[op.axis], rewriter)
        case If():
            return _fold_if(op, rewriter)
        case Extract():
            return _fold_extract(op, rewriter)
        case Synchronize():
            return _drop_wait(op, rewriter)
        case _:
            return False


def _become_constant(op: Operation, value: int | None, rewriter: Rewriter) -> bool:
    if value is None or not -(1 << 63) <= value < 1 << 63:
        return False
    constant = Constant(value=value, result_types=[op.results[0].type])
    rewriter.replace_op(op, [rewriter.builder_before(op).insert(constant).result])
    return True


def _fold_index(op: Apply, rewriter: Rewriter) -> bool:
    numbers = [constant_of(argument) for argument in op.arguments]
    folder = _FOLDERS.get(op.function)
    if folder is not None and all(number is not None for number in numbers):
        return _become_constant(op, folder(*numbers), rewriter)
    if op.function in ("minimum", "maximum") and op.arguments[0] is op.arguments[1]:
        rewriter.replace_op(op, [op.arguments[0]])
        return True
    neutral = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1}.get(op.function)
    if neutral is not None and numbers[1] == neutral:
        rewriter.replace_op(op, [op.arguments[0]])
        return True
    if op.function in ("add", "mul") and numbers[0] == neutral:
        rewriter.replace_op(op, [op.arguments[1]])
        return True
    return False


def _fold_extract(op: Extract, rewriter: Rewriter) -> bool:
    """An item of a tuple that is made in sight."""
    maker = op.aggregate.owner if isinstance(op.aggregate, OpResult) else None
    if not isinstance(maker, Aggregate):
        return False
    rewriter.replace_op(op, [maker.items[op.index]])
    return True


def _fold_if(op: If, rewriter: Rewriter) -> bool:
    condition = constant_of(op.condition)
    if condition is None:
        return False
    taken = op.regions[0 if condition else 1].block
    rewriter.replace_op(op, inline_block(taken, [], rewriter.builder_before(op)))
    return True


def _drop_wait(op: Synchronize, rewriter: Rewriter) -> bool:
    """A synchronisation of one instance: it comes after what it did itself anyway."""
    nest = nearest_parallel(op)
    if nest is None or any(count != 1 for count in trip_counts(nest)):
        return False
    rewriter.erase(op)
    return True


# Nests -----------------------------------------------------------------------------------------


def _simplify_nest(op: Operation, rewriter: Rewriter) -> bool:
    """Drop carries that never change; inline what runs once. True when something changed."""
    if not op.inductions() or op.parent is None:
        return False
    if all(count == 1 for count in trip_counts(op)) and _inline_once(op, rewriter):
        return True
    if _fix_indices(op, rewriter):
        return True
    return len(op.regions) == 1 and _drop_constant_carries(op, rewriter)


def _fix_indices(op: Operation, rewriter: Rewriter) -> bool:
    """An index that takes one value is that value."""
    changed = False
    for axis, count in enumerate(trip_counts(op)):
        arguments = [region.block.arguments[axis] for region in op.regions]
        if count != 1 or not any(argument.has_uses for argument in arguments):
            continue
        for argument in arguments:
            rewriter.replace_all_uses(argument, op.inductions()[axis].lower)
        changed = True
    return changed


def _inline_once(op: Operation, rewriter: Rewriter) -> bool:
    carries = op.carries()
    if len(op.results) > len(carries) or (isinstance(op, Parallel) and op.parent_op is None):
        return False
    if isinstance(op, Nest):
        leave_levels(op, rewriter)
    builder = rewriter.builder_before(op)
    arguments = [axis.lower for axis in op.inductions()] + [carry.initial for carry in carries]
    results: list[Value] = []
    for region in op.regions:
        results = inline_block(region.block, arguments, builder)
        arguments += results
    rewriter.replace_op(op, results)
    return True


def _drop_constant_carries(op: Operation, rewriter: Rewriter) -> bool:
    """A state handed on unchanged is its initial value; one nobody reads at all is dropped."""
    changed = False
    for i, carry in reversed(list(enumerate(op.carries()))):
        (argument,) = carry.arguments
        if carry.yielded is argument or carry.yielded is carry.initial:
            rewriter.replace_all_uses(argument, carry.initial)
            rewriter.replace_all_uses(carry.result, carry.initial)
        elif carry.result.has_uses or not _feeds_only_itself(argument, op.body, i):
            continue
        else:
            # Its updates are dead from now on, and go in the walk up.
            rewriter.replace_all_uses(argument, carry.initial)
        _remove_carry(op, i, rewriter)
        changed = True
    return changed


def _feeds_only_itself(argument: Value, block: Block, position: int) -> bool:
    """Whether a state that nobody reads after the loop is read by its own update at most."""
    reached = {argument}
    for op in block.operations:
        if op.TERMINATOR:
            others = [v for i, v in enumerate(op.operands) if i != position]
            return not any(value in reached for value in others)
        if any(inner_operand in reached for inner in op.walk() for inner_operand in inner.operands):
            if not is_pure(op) or (op.regions and not op.IS_ISOLATED):
                return False
            reached.update(op.results)
    return False


def _remove_carry(op: Operation, position: int, rewriter: Rewriter) -> None:
    kept = [carry for i, carry in enumerate(op.carries()) if i != position]
    keep_laws(op, [i for i in range(len(op.results)) if i != position], rewriter)
    rewriter.set_operands(op.body.terminator, "values", [carry.yielded for carry in kept])
    rewriter.remove_argument(op.body, len(op.inductions()) + position)
    rewriter.set_operands(op, "initial", [carry.initial for carry in kept])
    rewriter.remove_result(op, position)


# Work ------------------------------------------------------------------------------------------


def _drop_unread_inputs(op: MapReducePost, rewriter: Rewriter) -> bool:
    """Inputs whose element the region never uses."""
    first = op.rank
    unread = [i for i in range(len(op.inputs)) if not op.fold_block.arguments[first + i].has_uses]
    if not unread:
        return False
    for i in reversed(unread):
        rewriter.remove_argument(op.fold_block, first + i)
    kept = [i for i in range(len(op.inputs)) if i not in unread]
    accesses = tuple(op.access("input", i) for i in kept)
    rewriter.set_operands(op, "inputs", [op.inputs[i] for i in kept])
    rewriter.set_attribute(op, "input_access", accesses)
    return True
